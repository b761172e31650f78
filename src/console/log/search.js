// SPDX-License-Identifier: ISC
/** Searches a whole log, which the service does; the browser gets the hits. */
import { get } from '../lib/api.js';

const MOST_HITS = 20000;
const PAGE = 1000;

/** @typedef {{ offset: number, length: number, line: number }} Hit */

/**
 * Yields hits in the order of the log.
 * @param {number} id of the deployment
 * @param {string} query
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Hit[]>}
 */
export async function* search(id, query, signal) {
	let found = 0;
	for (let from = 0; from !== null && found < MOST_HITS && !signal.aborted;) {
		const { data, pagination } = await get(
			`/deployments/${id}/log/matches?q=${encodeURIComponent(query)}&from=${from}&limit=${PAGE}`, { signal });
		found += data.length;
		from = pagination.next;
		yield data;
	}
}
