// SPDX-License-Identifier: ISC
/** Short messages at the edge of the page, which screen readers announce. */
import { el } from './dom.js';
import { t } from '../texts.js';

const SHOWN_MS = 8000;
const list = el('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' });

/**
 * @param {string} text
 * @param {'good' | 'bad'} [kind]
 */
export function toast(text, kind = 'good') {
	const one = el('div', { class: `toast ${kind}` }, el('p', null, text),
		el('button', { class: 'plain', 'aria-label': t.close, onclick: () => one.remove() }, '×'));
	list.append(one);
	// An error stays until the user has read it.
	if (kind === 'good')
		setTimeout(() => one.remove(), SHOWN_MS);
}

/** The element that holds the messages. */
export function toasts() {
	return list;
}
