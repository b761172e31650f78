// SPDX-License-Identifier: ISC
/**
 * Keeps what is displayed current. Pages watch paths of the API; a hint that
 * something may have changed makes every tab fetch its own paths again. One
 * visible tab of the browser produces the hints for all.
 */
import { Problem, request } from './api.js';

/**
 * @typedef {object} Watch
 * @property {string} path
 * @property {string | undefined} etag
 * @property {string | undefined} text the last body, for lists, which have no ETag
 * @property {(data: any) => void} changed
 * @property {(problem: Problem) => void} failed
 * @property {AbortSignal} signal
 */

const EVERY_MS = 2500;
const SLOWEST_MS = 20000;

/** @type {Set<Watch>} */
const watches = new Set();
/** @type {Set<(lost: boolean) => void>} */
const listeners = new Set();
const channel = new BroadcastChannel('slipway');
let lost = false;
let failures = 0;

/** @param {boolean} now */
function setLost(now) {
	failures = now ? failures + 1 : 0;
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
	channel.postMessage('changed');
	return lookAll();
}

async function lookAll() {
	await Promise.all([...watches].map(look));
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

/**
 * Resolves after `ms`, or when the tab is hidden.
 * @param {number} ms
 */
function pause(ms) {
	return new Promise((resolve) => {
		const timer = setTimeout(done, ms);
		function done() {
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', done);
			removeEventListener('online', done);
			resolve(undefined);
		}
		document.addEventListener('visibilitychange', done);
		addEventListener('online', done);
	});
}

/** Produces hints while this tab is visible. */
async function lead() {
	while (document.visibilityState === 'visible') {
		await refresh();
		await pause(Math.min(EVERY_MS * 2 ** failures, SLOWEST_MS));
	}
}

function stand() {
	if (document.visibilityState === 'visible')
		navigator.locks.request('slipway-live', lead);
}

/** Starts the hints; called once. */
export function start() {
	channel.onmessage = lookAll;
	document.addEventListener('visibilitychange', stand);
	stand();
}
