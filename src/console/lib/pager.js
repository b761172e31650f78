// SPDX-License-Identifier: ISC
/** Links to the other pages of a list that has numbered pages. */
import { el } from './dom.js';
import { href } from './router.js';
import { t } from '../texts.js';

/**
 * @param {{ page: number, totalPages: number }} pagination
 * @param {string} path of the list
 * @param {URLSearchParams} [query] what else the address contains
 */
export function pager({ page, totalPages }, path, query = new URLSearchParams()) {
	const at = (/** @type {number} */ n) => {
		const search = new URLSearchParams(query);
		search.set('page', String(n));
		return href(`${path}?${search}`);
	};
	return totalPages > 1 && el('nav', { class: 'pager', 'aria-label': t.projects.pages },
		page > 1 && el('a', { href: at(page - 1) }, t.projects.previous),
		el('span', null, t.projects.page(page, totalPages)),
		page < totalPages && el('a', { href: at(page + 1) }, t.projects.next));
}
