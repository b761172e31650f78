// SPDX-License-Identifier: ISC
/** All deployments, newest first. */
import { el } from '../lib/dom.js';
import { deploymentTable } from '../lib/deployments.js';
import { href } from '../lib/router.js';
import { t } from '../texts.js';

/**
 * @param {string | null} next the cursor of the next page
 * @param {boolean} paged whether this is not the first page
 */
function pager(next, paged) {
	return el('nav', { class: 'pager', 'aria-label': t.deployments.title },
		paged && el('a', { href: href('/deployments') }, t.deployments.newest),
		next !== null && el('a', { href: href(`/deployments?cursor=${encodeURIComponent(next)}`) },
			t.deployments.older));
}

/** @type {import('../lib/page.js').Page} */
export const deployments = {
	path: '/deployments',
	sources: ({ query }) => ({
		list: `/deployments?limit=50${query.has('cursor') ? `&cursor=${encodeURIComponent(query.get('cursor') ?? '')}` : ''}`,
	}),
	title: () => t.deployments.title,
	view: ({ list }, { query }) => [
		el('h1', { tabindex: -1 }, t.deployments.title),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.deployments.empty) : deploymentTable(list.data),
		pager(list.pagination.next, query.has('cursor')),
	],
};
