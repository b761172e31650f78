// SPDX-License-Identifier: ISC
/** Times and sizes as people read them. */
import { el } from './dom.js';
import { t } from '../texts.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const full = new Intl.DateTimeFormat(t.locale, { dateStyle: 'medium', timeStyle: 'medium' });
const short = new Intl.DateTimeFormat(t.locale, { dateStyle: 'medium' });

/**
 * Seconds between two times; the second one defaults to now.
 * @param {string} from
 * @param {string | null} [to]
 */
export function seconds(from, to = null) {
	const end = to === null ? Date.now() : Date.parse(to);
	return Math.max(0, (end - Date.parse(from)) / 1000);
}

/**
 * A duration: 850 ms, 4.2 s, 1 min 05 s, 2 h 07 min.
 * @param {number} s
 */
export function duration(s) {
	if (s < 1)
		return t.time.ms(Math.round(s * 1000));
	if (s < 10)
		return t.time.seconds(s.toFixed(1));
	if (s < MINUTE)
		return t.time.seconds(String(Math.round(s)));
	if (s < HOUR)
		return t.time.minutes(Math.floor(s / MINUTE), Math.floor(s % MINUTE));
	return t.time.hours(Math.floor(s / HOUR), Math.floor(s % HOUR / MINUTE));
}

/** @param {number} s how long ago */
function distance(s) {
	if (s < MINUTE)
		return t.time.now;
	if (s < HOUR)
		return t.time.minutesAgo(Math.floor(s / MINUTE));
	if (s < DAY)
		return t.time.hoursAgo(Math.floor(s / HOUR));
	return t.time.daysAgo(Math.floor(s / DAY));
}

/**
 * "5 min ago", with the exact time as its title; after a month, the date.
 * @param {string} at
 */
export function ago(at) {
	const s = seconds(at);
	return el('time', { datetime: at, title: full.format(Date.parse(at)) },
		s < 30 * DAY ? distance(s) : short.format(Date.parse(at)));
}

/**
 * A date and time.
 * @param {string} at
 */
export function exact(at) {
	return el('time', { datetime: at }, full.format(Date.parse(at)));
}

/**
 * @param {number} bytes
 */
export function size(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB'];
	let n = bytes;
	let i = 0;
	for (; n >= 1024 && i < units.length - 1; i++)
		n /= 1024;
	return `${i === 0 || n >= 10 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}
