// SPDX-License-Identifier: ISC
/** Searches a whole log, which the service does; the browser gets the hits. */
import { get } from '../lib/api.js';

const MOST_HITS = 20000;
const PAGE = 1000;

/** @typedef {{ offset: number, length: number, line: number }} Hit */

/**
 * Yields hits in the order of the log; returns whether there are more.
 * @param {number} id of the deployment
 * @param {string} query
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Hit[], boolean>}
 */
export async function* search(id, query, signal) {
	let found = 0;
	let from = 0;
	while (from !== null && found < MOST_HITS && !signal.aborted) {
		const { data, pagination } = await get(
			`/deployments/${id}/log/matches?q=${encodeURIComponent(query)}&from=${from}&limit=${PAGE}`, { signal });
		found += data.length;
		from = pagination.next;
		yield data;
	}
	return from !== null;
}
