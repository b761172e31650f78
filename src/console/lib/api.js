// SPDX-License-Identifier: ISC
/**
 * Requests to the API. An error is a Problem: what the service said about it, in
 * its own words (RFC 9457), or that the service could not be reached.
 */
import { t } from '../texts.js';

/**
 * @typedef {{ pointer: string, detail: string }} Fault an invalid member of a body
 * @typedef {object} Options
 * @property {any} [body] sent as JSON
 * @property {string} [match] an ETag that the object must still have
 * @property {string} [known] an ETag that the caller has; a 304 has no data
 * @property {string} [once] an Idempotency-Key
 * @property {string} [token] an API token, instead of the cookie
 * @property {Record<string, string>} [headers]
 * @property {boolean} [quiet] a 401 is an error, not a reason to sign in again
 * @property {AbortSignal} [signal]
 * @typedef {object} Answer
 * @property {number} status
 * @property {string} text
 * @property {any} data the parsed body; undefined if it is not JSON
 * @property {string | null} etag
 * @property {Headers} headers
 */

export class Problem extends Error {
	/**
	 * @param {object} members
	 * @param {number} [members.status] 0: no response; 1: a fault of the console
	 * @param {string} [members.code]
	 * @param {string} [members.detail]
	 * @param {string} [members.requestId]
	 * @param {Fault[]} [members.errors]
	 */
	constructor({ status = 0, code = 'internal', detail = t.lost.detail, requestId = '', errors = [] }) {
		super(detail);
		this.status = status;
		this.code = code;
		this.detail = detail;
		this.requestId = requestId;
		this.errors = errors;
	}

	/** Whether repeating the request later can succeed. */
	get passing() {
		return this.status === 0 || this.status === 429 || this.status >= 500;
	}
}

/**
 * Called for a 401; resolves to true when the user has signed in again.
 * @type {() => Promise<boolean>}
 */
let renew = async () => false;

/** @param {() => Promise<boolean>} handler */
export function onUnauthenticated(handler) {
	renew = handler;
}

/** @param {Options} options */
function headersOf({ body, match, known, once, token, headers }) {
	const all = new Headers(headers);
	if (body !== undefined)
		all.set('Content-Type', 'application/json');
	if (match)
		all.set('If-Match', match);
	if (known)
		all.set('If-None-Match', known);
	if (once)
		all.set('Idempotency-Key', once);
	if (token)
		all.set('Authorization', `Bearer ${token}`);
	return all;
}

/**
 * @param {Response} response
 * @returns {Promise<Answer>}
 */
async function read(response) {
	const text = await response.text();
	const type = response.headers.get('Content-Type') ?? '';
	const data = /json/.test(type) && text !== '' ? JSON.parse(text) : undefined;
	return { status: response.status, text, data, etag: response.headers.get('ETag'),
		headers: response.headers };
}

/**
 * @param {string} method
 * @param {string} path below /api
 * @param {Options} options
 * @returns {Promise<Answer>}
 */
async function send(method, path, options) {
	try {
		return await read(await fetch(`/api${path}`, { method, headers: headersOf(options),
			body: options.body === undefined ? undefined : JSON.stringify(options.body),
			signal: options.signal, credentials: 'same-origin', cache: 'no-store' }));
	} catch (error) {
		if (options.signal?.aborted)
			throw error;
		throw new Problem({ code: 'lost' });
	}
}

/**
 * Sends a request. If the session has ended, the user signs in and the request
 * is repeated.
 * @param {string} method
 * @param {string} path below /api, for example /projects/3
 * @param {Options} [options]
 * @returns {Promise<Answer>}
 * @throws {Problem}
 */
export async function request(method, path, options = {}) {
	const answer = await send(method, path, options);
	if (answer.status === 401 && !options.token && !options.quiet && await renew())
		return request(method, path, options);
	if (answer.status >= 400)
		throw new Problem({ status: answer.status, code: 'internal',
			detail: t.lost.status(answer.status), ...answer.data });
	return answer;
}

/**
 * @param {string} path
 * @param {Options} [options]
 */
export async function get(path, options) {
	return (await request('GET', path, options)).data;
}

/**
 * @param {string} path
 * @param {any} [body]
 * @param {Options} [options]
 */
export async function post(path, body, options) {
	return (await request('POST', path, { body, ...options })).data;
}

/**
 * @param {string} path
 * @param {any} body
 * @param {Options} [options]
 */
export async function put(path, body, options) {
	return (await request('PUT', path, { body, ...options })).data;
}

/**
 * Saves changes of an object that a form was built from. A member that someone else
 * has changed since then is never overwritten: the save fails with the status 412.
 * Changes of other members, such as a lock or a deployment, are no obstacle.
 * @param {string} path of the object
 * @param {Record<string, any>} seen the object that the form was built from
 * @param {string} [source] where it is read, if that is another path
 * @returns {(body: Record<string, any>) => Promise<any>} sends members of the object
 */
export function saver(path, seen, source = path) {
	let base = seen;
	return async (body) => {
		const { data, etag } = await request('GET', source);
		if (Object.keys(body).some((name) => JSON.stringify(data[name]) !== JSON.stringify(base[name])))
			throw new Problem({ status: 412, code: 'precondition_failed', detail: t.changedMeanwhile });
		base = await putUnchanged(path, body, etag ?? undefined);
		return base;
	};
}

/**
 * @param {string} path
 * @param {any} body
 * @param {string | undefined} match the ETag that the object must still have
 */
async function putUnchanged(path, body, match) {
	try {
		return await put(path, body, { match });
	} catch (error) {
		if (error instanceof Problem && error.status === 412)
			error.detail = t.changedMeanwhile;
		throw error;
	}
}

/**
 * @param {string} path
 * @param {Options} [options]
 */
export async function remove(path, options) {
	await request('DELETE', path, options);
}

/**
 * All objects of a paged list.
 * @param {string} path
 * @returns {Promise<any[]>}
 */
export async function all(path) {
	const joint = path.includes('?') ? '&' : '?';
	const found = [];
	for (let page = 1; ; page++) {
		const { data, pagination } = await get(`${path}${joint}limit=100&page=${page}`);
		found.push(...data);
		if (page >= pagination.totalPages)
			return found;
	}
}

/** A new Idempotency-Key, so that a repeated request deploys once. */
export function newKey() {
	return crypto.randomUUID();
}
