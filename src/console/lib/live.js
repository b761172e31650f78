// SPDX-License-Identifier: ISC
/**
 * Keeps what is displayed current. Pages watch paths of the API; a hint that
 * something may have changed makes every tab fetch its own paths again.
 */
import { Problem, request } from './api.js';
import * as hints from './hints.js';

/**
 * @typedef {object} Watch
 * @property {string} path
 * @property {string | undefined} etag
 * @property {string | undefined} text the last body, for lists, which have no ETag
 * @property {(data: any) => void} changed
 * @property {(problem: Problem) => void} failed
 * @property {AbortSignal} signal
 */

/** @type {Set<Watch>} */
const watches = new Set();
/** @type {Set<(lost: boolean) => void>} */
const listeners = new Set();
let lost = false;
let failures = 0; // rounds in a row

/** @param {boolean} now */
function setLost(now) {
	if (lost === now)
		return;
	lost = now;
	listeners.forEach((listener) => listener(lost));
}

/**
 * Calls `listener` when the service can no longer be reached, and when it can again.
 * @param {(lost: boolean) => void} listener
 */
export function onConnection(listener) {
	listeners.add(listener);
	listener(lost);
}

/**
 * @param {Watch} watch
 * @param {unknown} error
 */
function fail(watch, error) {
	if (watch.signal.aborted)
		return;
	const problem = error instanceof Problem ? error : new Problem({ status: 1, detail: String(error) });
	setLost(problem.passing);
	// What is displayed stays while the service is out of reach or order.
	if (problem.passing && watch.text !== undefined)
		return;
	watch.etag = watch.text = undefined; // the same answer has to be drawn again
	watch.failed(problem);
}

/** @param {Watch} watch */
async function look(watch) {
	try {
		const answer = await request('GET', watch.path, { known: watch.etag, signal: watch.signal });
		setLost(false);
		if (answer.status === 304 || answer.text === watch.text)
			return;
		watch.etag = answer.etag ?? undefined;
		watch.text = answer.text;
		watch.changed(answer.data);
	} catch (error) {
		fail(watch, error);
	}
}

/** Fetches all watched paths again, in this tab and the others. */
export function refresh() {
	return hints.hint();
}

/** @returns how many attempts in a row have failed */
async function lookAll() {
	await Promise.all([...watches].map(look));
	failures = lost ? failures + 1 : 0;
	return failures;
}

/**
 * Calls `changed` with what the path returns, now and after each change, until
 * the signal aborts; and `failed` when it cannot be read.
 * @param {string} path
 * @param {(data: any) => void} changed
 * @param {(problem: Problem) => void} failed
 * @param {AbortSignal} signal
 */
export function watch(path, changed, failed, signal) {
	const one = { path, changed, failed, signal, etag: undefined, text: undefined };
	watches.add(one);
	signal.addEventListener('abort', () => watches.delete(one));
	look(one);
}

/** Starts to follow changes; called once. */
export function start() {
	hints.start(lookAll);
}
