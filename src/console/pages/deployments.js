// SPDX-License-Identifier: ISC
/** All deployments, newest first. */
import { el } from '../lib/dom.js';
import { deploymentTable } from '../lib/deployments.js';
import { href } from '../lib/router.js';
import { t } from '../texts.js';

/**
 * @param {URLSearchParams} query
 * @param {string | null} cursor
 */
function pageAt(query, cursor) {
	const search = new URLSearchParams(query);
	search.delete('cursor');
	if (cursor !== null)
		search.set('cursor', cursor);
	return href(`/deployments?${search}`);
}

/**
 * @param {string | null} next the cursor of the next page
 * @param {URLSearchParams} query
 */
function pager(next, query) {
	return el('nav', { class: 'pager', 'aria-label': t.deployments.pages },
		query.has('cursor') && el('a', { href: pageAt(query, null) }, t.deployments.newest),
		next !== null && el('a', { href: pageAt(query, next) }, t.deployments.older));
}

/** @param {URLSearchParams} query */
function listPath(query) {
	const search = new URLSearchParams({ limit: '50' });
	for (const name of ['cursor', 'projectId', 'status', 'environmentId'])
		if (query.get(name))
			search.set(name, query.get(name) ?? '');
	return `/deployments?${search}`;
}

/** @type {import('../lib/page.js').Page} */
export const deployments = {
	path: '/deployments',
	sources: ({ query }) => ({ list: listPath(query) }),
	title: () => t.deployments.title,
	view: ({ list }, { query }) => [
		el('h1', { tabindex: -1 }, t.deployments.title),
		list.data.length === 0 ? el('div', { class: 'empty' }, el('p', null, t.deployments.empty),
			el('a', { class: 'button', href: href('/') }, t.trouble.home)) : deploymentTable(list.data),
		pager(list.pagination.next, query),
	],
};
