// SPDX-License-Identifier: ISC
/** When parts of a log were written. */
import { get } from '../lib/api.js';
import { t } from '../texts.js';

/** @typedef {{ offset: number, at: string | null }} Place whose time is known, if its log has times */

const clockFormat = new Intl.DateTimeFormat(t.locale, { hour: '2-digit', minute: '2-digit', second: '2-digit',
	hour12: false });

/**
 * The places of a log with their times.
 * @param {number} id of the deployment
 * @param {AbortSignal} signal
 * @returns {Promise<Place[]>}
 */
export async function places(id, signal) {
	return (await get(`/deployments/${id}/log/index`, { signal })).data;
}

/**
 * The time of the last place before an offset; null if there is none.
 * @param {Place[]} all
 * @param {number} offset
 */
export function timeAt(all, offset) {
	return all.findLast((place) => place.at !== null && place.offset <= offset)?.at ?? null;
}

/** @param {string} at */
export function clock(at) {
	return clockFormat.format(Date.parse(at));
}

/**
 * @param {string} at
 * @param {string} from
 */
export function elapsed(at, from) {
	const s = Math.max(0, Math.round((Date.parse(at) - Date.parse(from)) / 1000));
	return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}
