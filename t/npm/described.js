// SPDX-License-Identifier: ISC
// Checks recorded requests to Git servers and their responses against
// published descriptions of the APIs: GitHub's own OpenAPI document as types
// (@octokit/openapi-types), types generated from Gitea's document (gitea-js),
// and the types of GitLab's best known client (@gitbeaker/core), as no package
// has GitLab's document. The TypeScript compiler finds the faults.
// usage: node described.js RECORDS
// RECORDS is an array of {type, method, path, query, body, answer}: path is
// relative to the base of the API, query has strings, body and answer (of the
// response) are JSON or null. Prints an array with the faults of each record.
'use strict';
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const records = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const source = (name) => {
	const file = path.join(__dirname, 'node_modules', name);
	return ts.createSourceFile(file, fs.readFileSync(file, 'utf8'),
		ts.ScriptTarget.ES2022, true);
};

// Gitea: "GET /repos/{owner}/{repo}" => type and parameter names.
function giteaOperations() {
	const found = new Map();
	const visit = (node) => {
		const tag = ts.getJSDocTags(node).find((one) =>
			one.tagName.text === 'request');
		const words = tag && /^(\w+):(\S+)/.exec(
			ts.getTextOfJSDocComment(tag.comment));
		if (words && node.type && ts.isFunctionTypeNode(node.type))
			found.set(words[1] + ' ' + words[2], {
				type: `Gitea<unknown>['${words[2].split('/')[1]}']['${node.name.text}']`,
				names: node.type.parameters.map((one) => one.name.text),
			});
		ts.forEachChild(node, visit);
	};
	visit(source('gitea-js/dist/index.d.ts'));
	return found;
}

// GitHub: the paths of its document.
function githubPaths() {
	const found = [];
	ts.forEachChild(source('@octokit/openapi-types/types.d.ts'), (node) => {
		if (ts.isInterfaceDeclaration(node) && node.name.text === 'paths')
			found.push(...node.members.map((one) => one.name.text));
	});
	return found;
}

// GitLab: type, index of the options, and the indices of members that are separate.
const gitlab = new Map([
	['GET /user', ["Users['showCurrentUser']", 0]],
	['GET /projects', ["Projects['all']", 0]],
	['GET /projects/{id}', ["Projects['show']", 1]],
	['GET /projects/{id}/repository/branches', ["Branches['all']", 1]],
	['GET /projects/{id}/repository/commits', ["Commits['all']", 1]],
	['GET /projects/{id}/repository/commits/{sha}', ["Commits['show']", 2]],
	['GET /projects/{id}/repository/merge_base', ["Repositories['mergeBase']", 2, { 'refs[]': 1 }]],
	['POST /projects/{id}/statuses/{sha}', ["Commits['editStatus']", 3, { state: 2 }]],
]);

// Returns the form that matches a path; if several do, the one with the fewest
// parameters.
function formOf(forms, wanted) {
	return forms.filter((form) => new RegExp('^' + form.replace(
		/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+') + '$')
		.test(wanted)).sort((a, b) => a.split('{').length - b.split('{').length)[0];
}

// Converts query values, which are strings, to numbers and booleans.
function typed(query) {
	return Object.fromEntries(Object.entries(query || {}).map(([name, value]) =>
		[name, /^(?:page|limit|per_page|uid)$/.test(name) ? Number(value)
			: /^(?:true|false)$/.test(value) ? value === 'true' : value]));
}

function camel(object) {
	return Object.fromEntries(Object.entries(object).map(([name, value]) =>
		[name.replace(/_(\w)/g, (all, letter) => letter.toUpperCase()), value]));
}

function without(value) {
	if (Array.isArray(value))
		return value.map(without);
	if (value === null || typeof value !== 'object')
		return value;
	return Object.fromEntries(Object.entries(value)
		.filter(([, member]) => member !== null)
		.map(([name, member]) => [name, without(member)]));
}

const gitea = giteaOperations();
const github = githubPaths();
const text = JSON.stringify;
const declare = (name, type, value) => `const ${name}: ${type} = ${text(value)};`;

// Write TypeScript that compiles if the record is valid.
const writers = {
	gitea(r) {
		const form = formOf([...gitea.keys()].map((key) => key.split(' ')[1]), r.path);
		const operation = gitea.get(r.method + ' ' + form);
		if (!operation)
			return null;
		const of = (name) => `NonNullable<Parameters<F>[${operation.names.indexOf(name)}]>`;
		return [`type F = ${operation.type};`,
			Object.keys(r.query || {}).length ? declare('query', of('query'), typed(r.query)) : '',
			r.body ? declare('body', of('body'), r.body) : '',
			r.answer ? declare('answer', "Some<Awaited<ReturnType<F>>['data']>", without(r.answer)) : ''];
	},
	github(r) {
		// GitHub redirects requests for a former name there
		const form = formOf(github, r.path.replace(/^\/repositories\/\d+/, '/repos/o/r'));
		if (!form)
			return null;
		const json = "['content']['application/json']";
		const body = `NonNullable<F extends { requestBody?: infer B } ? B : never>${json}`;
		const status = r.method === 'POST' ? 201 : 200;
		return [`type F = paths['${form}']['${r.method.toLowerCase()}'];`,
			Object.keys(r.query || {}).length
				? declare('query', "NonNullable<F['parameters']['query']>", typed(r.query)) : '',
			r.body ? declare('body', body, r.body) : '',
			r.answer ? declare('answer', `Some<F['responses'][${status}]${json}>`, without(r.answer)) : ''];
	},
	gitlab(r) {
		const form = formOf([...gitlab.keys()].map((key) => key.split(' ')[1]), r.path);
		const operation = gitlab.get(r.method + ' ' + form);
		if (!operation)
			return null;
		const [type, options, apart] = operation;
		const sent = { ...typed(r.query), ...r.body };
		const lines = [`type F = ${type};`];
		for (const [name, index] of Object.entries(apart || {})) {
			const value = name.endsWith('[]') ? [sent[name]] : sent[name];
			lines.push(declare(name.replace('[]', ''), `Parameters<F>[${index}]`, value));
			delete sent[name];
		}
		return [...lines, declare('options', `NonNullable<Parameters<F>[${options}]>`, camel(sent))];
	},
};

const faults = records.map(() => []);
const lines = ["import type { Api as Gitea } from 'gitea-js';",
	"import type { paths } from '@octokit/openapi-types';",
	"import type { Branches, Commits, Projects, Repositories, Users } from '@gitbeaker/core';",
	'type Some<T> = T extends (infer U)[] ? Some<U>[]',
	'\t: T extends object ? { [K in keyof T]?: Some<T[K]> } : T;'];
const owner = [];
records.forEach((record, i) => {
	const written = writers[record.type](record);
	if (!written) {
		faults[i].push('no such operation');
		return;
	}
	for (const line of ['{', ...written, '}']) {
		owner[lines.length] = i;
		lines.push(line);
	}
});

const file = path.join(__dirname, 'records.ts');
fs.writeFileSync(file, lines.join('\n') + '\n');
const program = ts.createProgram([file], { strict: true, noEmit: true, skipLibCheck: true, types: [],
	target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext,
	moduleResolution: ts.ModuleResolutionKind.Bundler, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'] });
for (const one of ts.getPreEmitDiagnostics(program)) {
	const said = ts.flattenDiagnosticMessageText(one.messageText, ' ');
	const line = one.file && one.file.fileName === file
		? one.file.getLineAndCharacterOfPosition(one.start).line : -1;
	if (owner[line] === undefined)
		throw new Error((one.file ? one.file.fileName + ': ' : '') + said);
	faults[owner[line]].push(/const (\w+)/.exec(lines[line])[1] + ': ' + said);
}
process.stdout.write(JSON.stringify(faults) + '\n');
