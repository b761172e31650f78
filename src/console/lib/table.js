// SPDX-License-Identifier: ISC
/** Tables, which a narrow window shows as one block for each row. */
import { el } from './dom.js';

/**
 * @param {string[]} heads of the columns; an empty one is that of the buttons
 * @param {HTMLTableRowElement[]} rows at least one
 * @param {object} [options]
 * @param {boolean} [options.links] whether a whole row is a link
 * @param {boolean} [options.named] whether the cells of a block name their columns
 */
export function table(heads, rows, { links = false, named = false } = {}) {
	if (named)
		for (const { cells } of rows)
			// the first one says what the block is about
			heads.forEach((text, i) => i > 0 && text !== '' && cells[i].setAttribute('data-label', text));
	const isNumber = (/** @type {number} */ i) => rows[0].cells[i].classList.contains('number');
	return el('div', { class: 'scroll' }, el('table', { class: links ? 'rows' : null },
		el('thead', null, el('tr', null, heads.map((text, i) => text === '' ? el('td')
			: el('th', { scope: 'col', class: isNumber(i) ? 'number' : null }, text)))),
		el('tbody', null, rows)));
}
