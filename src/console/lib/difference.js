// SPDX-License-Identifier: ISC
/** The members of an object that a change concerns, with what they were and are. */
import { el } from './dom.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').AuditEntry['changes'][number]} Change */

/** @param {any} value */
function shown(value) {
	return el('code', { class: 'variable isolate' }, typeof value === 'string' ? value : JSON.stringify(value));
}

/** @param {Change} change */
function row({ name, from, to }) {
	if (from === null && to === null)
		return el('li', null, name);
	return el('li', null, name, ': ', from !== null && [shown(from), ' → '], to === null ? t.none : shown(to));
}

/** @param {Change[]} changes */
export function changedMembers(changes) {
	return el('ul', { class: 'audit-changes' }, changes.map(row));
}
