// SPDX-License-Identifier: ISC
/** All deployments, newest first. */
import { el } from '../lib/dom.js';
import { deploymentTable } from '../lib/deployments.js';
import { environmentsOf, projectChoices } from '../lib/names.js';
import { go, href } from '../lib/router.js';
import { t } from '../texts.js';

const STATES = ['pending', 'running', 'success', 'failed', 'canceled', 'interrupted'];

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

/**
 * A choice that narrows the list; the address names it.
 * @param {URLSearchParams} query
 * @param {{ name: string, label: string, all: string, options: { value: string, label: string }[] }} spec
 */
function filter(query, { name, label, all, options }) {
	const chosen = query.get(name) ?? '';
	return el('select', { class: 'filter', 'data-key': name, 'aria-label': label, onchange: (/** @type {Event} */ event) => {
		const { value } = /** @type {HTMLSelectElement} */ (event.target);
		const search = new URLSearchParams(query);
		for (const gone of [name, 'cursor', ...(name === 'projectId' ? ['environmentId'] : [])])
			search.delete(gone);
		if (value !== '')
			search.set(name, value);
		go(`/deployments?${search}`);
	} }, [{ value: '', label: all }, ...options].map(({ value, label: text }) =>
		el('option', { value, selected: value === chosen }, text)));
}

/** @param {URLSearchParams} query */
function filters(query) {
	const environments = environmentsOf(Number(query.get('projectId')));
	return el('div', { class: 'actions' },
		filter(query, { name: 'projectId', label: t.deployment.project, all: t.deployments.allProjects,
			options: projectChoices('guest') }),
		environments.length > 0 && filter(query, { name: 'environmentId', label: t.deployment.environment,
			all: t.deployments.allEnvironments, options: environments }),
		filter(query, { name: 'status', label: t.deployments.columns.state, all: t.deployments.allStates,
			options: STATES.map((value) => ({ value, label: t.status[value] })) }));
}

/** @param {URLSearchParams} query */
function empty(query) {
	const isNarrowed = ['projectId', 'status', 'environmentId'].some((name) => query.has(name));
	return el('div', { class: 'empty' }, el('p', null, isNarrowed ? t.deployments.noMatch : t.deployments.empty),
		isNarrowed ? el('a', { class: 'button', href: href('/deployments') }, t.deployments.showAll)
			: el('a', { class: 'button', href: href('/') }, t.trouble.home));
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
		el('div', { class: 'head' }, el('h1', { tabindex: -1 }, t.deployments.title), filters(query)),
		list.data.length === 0 ? empty(query) : deploymentTable(list.data),
		pager(list.pagination.next, query),
	],
};
