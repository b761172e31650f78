// SPDX-License-Identifier: ISC
/** Locks: their notice, and the forms that set and remove them. */
import { put, remove } from './api.js';
import { openDialog } from './dialog.js';
import { el } from './dom.js';
import { icon } from './status.js';
import { inOrder } from './text.js';
import { ago, exact } from './time.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').Lock} Lock */

/**
 * Why it is locked, by whom, and since when.
 * @param {Lock} lock
 * @param {string} title
 */
function lockText({ reason, by, since, until }, title) {
	return el('p', null, el('strong', null, title), ' ', el('span', { class: 'isolate' }, inOrder(reason)), ' ',
		el('span', { class: 'faint' }, t.lock.by(by), ' ', ago(since), until !== null && [t.lock.until, exact(until)]));
}

/**
 * A lock in a list of objects.
 * @param {Lock | null} lock
 */
export function lockLine(lock) {
	return lock !== null && el('div', { class: 'lock-line locked' }, icon('locked'), lockText(lock, t.lock.title));
}

/**
 * A lock, with a button for those who may unlock it.
 * @param {Lock | null} lock
 * @param {() => void} [unlock]
 * @param {string} [title] what is locked
 */
export function lockNotice(lock, unlock, title = t.lock.title) {
	return lock !== null && el('div', { class: 'notice locked' }, icon('locked'), lockText(lock, title),
		unlock && el('button', { type: 'button', onclick: unlock }, t.lock.unlock));
}

/** @param {string} local of an input, in the browser's time zone */
function toTime(local) {
	return local === '' ? null : new Date(local).toISOString();
}

/**
 * Asks why, and locks.
 * @param {string} path of the lock, for example /projects/3/lock
 * @param {() => void} done
 */
export function askLock(path, done) {
	openDialog(t.lock.ask, (close) => ({
		id: `lock${path.replaceAll('/', '-')}`, submit: t.lock.lock, tone: 'primary', cancel: close,
		fields: [
			{ name: 'reason', label: t.lock.reason, required: true, hint: t.lock.reasonHint },
			{ name: 'until', label: t.lock.untilLabel, type: 'datetime-local', hint: t.lock.untilHint },
		],
		send: async ({ reason, until }) => {
			await put(path, { reason, until: toTime(until) });
			close();
			done();
		},
	}));
}

/** @param {string} path */
export function unlock(path) {
	return remove(path);
}
