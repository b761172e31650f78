// SPDX-License-Identifier: ISC
/** The toolbar of a log: search, times, wrapping, the raw text, keys. */
import { el } from '../lib/dom.js';
import { t } from '../texts.js';

/**
 * @typedef {object} Bar
 * @property {string} address of the log
 * @property {number} id of the deployment
 * @property {boolean} wrap
 * @property {'off' | 'elapsed' | 'clock'} times
 * @property {boolean} help
 * @property {boolean} lost
 * @property {import('./finder.js').Finder} finder
 * @property {(changes: any) => void} change
 */

/** @param {import('./finder.js').Finder} finder */
function count({ query, hits, index, busy, hasMore }) {
	if (query === '')
		return '';
	return hits.length === 0 && !busy ? t.log.noHit : t.log.hits(index + 1, hits.length, busy, hasMore);
}

/** @param {import('./finder.js').Finder} finder */
function searchBox(finder) {
	const input = el('input', { type: 'search', class: 'log-search', 'aria-label': t.log.search,
		placeholder: t.log.search, 'data-key': 'search', autocomplete: 'off', spellcheck: 'false',
		oninput: (/** @type {any} */ event) => finder.type(event.target.value),
		onkeydown: (/** @type {KeyboardEvent} */ event) => {
			if (event.key === 'Enter')
				finder.step(event.shiftKey ? -1 : 1);
		} });
	return el('div', { class: 'log-find', role: 'search' }, input,
		el('span', { class: 'log-count', role: 'status' }, count(finder)),
		finder.query !== '' && [
			el('button', { type: 'button', class: 'plain', 'aria-label': t.log.previous,
				onclick: () => finder.step(-1) }, '↑'),
			el('button', { type: 'button', class: 'plain', 'aria-label': t.log.next,
				onclick: () => finder.step(1) }, '↓')]);
}

/** @param {Bar} bar */
function choices({ address, id, wrap, times, help, change }) {
	return el('div', { class: 'log-choices' },
		el('label', null, el('span', null, t.log.times), el('select', { onchange:
			(/** @type {any} */ event) => change({ times: event.target.value }) },
		/** @type {const} */ (['off', 'elapsed', 'clock']).map((value) =>
			el('option', { value, selected: value === times }, t.log.time[value])))),
		el('button', { type: 'button', class: 'plain', 'aria-pressed': String(wrap),
			onclick: () => change({ wrap: !wrap }) }, t.log.wrap),
		el('a', { class: 'button plain', href: address, target: '_blank', rel: 'noopener' }, t.log.raw),
		el('a', { class: 'button plain', href: address, download: `deployment-${id}.log` }, t.log.download),
		el('button', { type: 'button', class: 'plain', 'aria-expanded': String(help), 'aria-label': t.log.keys,
			onclick: () => change({ help: !help }) }, '?'));
}

/** @param {Bar} bar */
export function toolbar(bar) {
	return [
		searchBox(bar.finder),
		choices(bar),
		bar.lost && el('p', { class: 'log-lost', role: 'status' }, t.log.lost),
		bar.help && el('dl', { class: 'log-keys' }, t.log.keyList.map(([keys, what]) =>
			el('div', null, el('dt', null, keys.split(' ').map((key) => el('kbd', null, key))),
				el('dd', null, what)))),
	];
}
