// SPDX-License-Identifier: ISC
/** A secret that the service shows once. */
import { el } from './dom.js';
import { t } from '../texts.js';

/**
 * @param {string} text what to do with it
 * @param {string} secret
 * @param {...import('./dom.js').Child} more
 */
export function secretNotice(text, secret, ...more) {
	return el('div', { class: 'notice success', role: 'status' },
		el('p', null, el('strong', null, text), el('br'), el('code', { class: 'secret' }, secret), more),
		el('button', { type: 'button', onclick: () => navigator.clipboard.writeText(secret) }, t.copy));
}
