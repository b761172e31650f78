// SPDX-License-Identifier: ISC
// Validates recorded responses against an OpenAPI document.
// usage: node validate.js DOCUMENT RECORDS
// RECORDS is an array of {operation, status, headers, body, sent}: headers have
// lower-case names, body is text, sent is the JSON text of the request or null.
// Prints an array with the faults of each record.
'use strict';
const fs = require('fs');
const Ajv = require('ajv/dist/2020');
const addFormats = require('ajv-formats');

const [doc, records] = process.argv.slice(2, 4)
	.map((path) => JSON.parse(fs.readFileSync(path, 'utf8')));
const ajv = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true });
addFormats(ajv);
ajv.addVocabulary(['openapi', 'info', 'servers', 'security', 'tags', 'paths',
	'components']);
ajv.addSchema(doc, 'api', false, false);

// Follows a reference; returns the object and its place in the document.
function follow(pointer) {
	let at = doc;
	for (const word of pointer.split('/').slice(1))
		at = at[word.replace(/~1/g, '/').replace(/~0/g, '~')];
	return at && at.$ref ? follow(at.$ref.slice(1)) : { at, pointer };
}

function below(pointer, ...words) {
	return pointer + words.map((word) =>
		'/' + word.replace(/~/g, '~0').replace(/\//g, '~1')).join('');
}

const validators = new Map();
function faultsOf(pointer, value, what) {
	if (!validators.has(pointer))
		validators.set(pointer, ajv.compile({
			$ref: 'api#' + encodeURI(pointer) }));
	const valid = validators.get(pointer);
	if (valid(value))
		return [];
	return valid.errors.map((e) => what + e.instancePath + ' ' + e.message +
		' ' + JSON.stringify(e.params));
}

const operations = new Map();
for (const [path, item] of Object.entries(doc.paths))
	for (const [method, operation] of Object.entries(item))
		operations.set(operation.operationId,
			{ method, path, pointer: below('/paths', path, method) });

function headerFaults(response, pointer, headers) {
	const faults = [];
	const documented = new Set();
	for (const name of Object.keys(response.headers || {})) {
		const header = follow(below(pointer, 'headers', name));
		let value = headers[name.toLowerCase()];
		documented.add(name.toLowerCase());
		if (value === undefined) {
			if (header.at.required)
				faults.push('header ' + name + ' is missing');
			continue;
		}
		if (header.at.schema.type === 'integer' && /^[0-9]+$/.test(value))
			value = Number(value);
		faults.push(...faultsOf(below(header.pointer, 'schema'), value,
			'header ' + name));
	}
	for (const name of ['etag', 'link', 'location', 'x-total-count',
		'retry-after', 'www-authenticate', 'content-range', 'x-log-size',
		'x-log-complete', 'set-cookie'])
		if (headers[name] !== undefined && !documented.has(name))
			faults.push('header ' + name + ' is not documented');
	return faults;
}

function bodyFaults(response, pointer, record) {
	const media = record.headers['content-type'];
	const types = Object.keys(response.content || {});
	if (types.length === 0)
		return record.body === '' ? [] : ['a body is not documented'];
	const type = types.find((one) => one === media);
	if (type === undefined)
		return ['content type ' + media + ' is not one of ' + types];
	let value = record.body;
	if (/json/.test(type)) {
		try {
			value = JSON.parse(value);
		} catch (e) {
			return ['the body is not JSON: ' + e.message];
		}
	}
	const faults = faultsOf(below(pointer, 'content', type, 'schema'), value,
		'body');
	if (type === 'application/problem+json' && value.status !== record.status)
		faults.push('the problem has status ' + value.status);
	return faults;
}

function judge(record) {
	const operation = operations.get(record.operation);
	if (!operation)
		return ['no such operation'];
	const found = follow(operation.pointer);
	const code = String(record.status);
	if (!found.at.responses[code])
		return ['status ' + code + ' is not documented'];
	const { at, pointer } = follow(below(found.pointer, 'responses', code));
	const faults = headerFaults(at, pointer, record.headers);
	faults.push(...bodyFaults(at, pointer, record));
	if (record.status < 300 && record.sent !== null)
		faults.push(...(found.at.requestBody
			? faultsOf(below(found.pointer, 'requestBody', 'content',
				'application/json', 'schema'), JSON.parse(record.sent),
				'request')
			: ['a request body is not documented']));
	return faults;
}

process.stdout.write(JSON.stringify(records.map(judge)) + '\n');
