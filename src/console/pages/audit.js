// SPDX-License-Identifier: ISC
/** Who changed what, newest first: everywhere, or in one project. */
import { el } from '../lib/dom.js';
import { changedMembers } from '../lib/difference.js';
import { projectChoices, projectName } from '../lib/names.js';
import { go, href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { table } from '../lib/table.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').AuditEntry} Entry */

/** @param {Entry} entry */
function who({ username, via, tokenName, address }) {
	return [el('strong', null, username), el('br'), el('span', { class: 'faint' },
		t.audit.via[via] ?? via, tokenName !== null && [' ', el('q', null, tokenName)], address !== null && ` · ${address}`)];
}

/**
 * The pages of objects, by type; of those that a project's page shows, with its id.
 * @type {Record<string, (id: number, projectId: number | null) => string | null>}
 */
const PAGES = {
	deployment: (id) => `/deployments/${id}`,
	environment: (_, projectId) => `/projects/${projectId}/environments`,
	notifier: (_, projectId) => projectId === null ? '/notifiers' : `/projects/${projectId}/notifiers`,
	pipeline: (id) => `/pipelines/${id}`,
	project: (id) => `/projects/${id}`,
	schedule: (_, projectId) => `/projects/${projectId}/schedules`,
	user: () => '/users',
	variable: () => '/variables',
};

/** @param {Entry} entry */
function object({ action, objectType, objectId, projectId }) {
	const text = objectId === null ? objectType : `${objectType} ${objectId}`;
	const page = objectId === null || action.startsWith('delete') ? null : PAGES[objectType]?.(objectId, projectId);
	return page == null ? text : el('a', { href: href(page) }, text);
}

/** @param {Entry} entry */
function what(entry) {
	const { action, objectType, projectId } = entry;
	return [t.audit.action(action), el('br'), el('span', { class: 'faint' }, object(entry),
		projectId !== null && objectType !== 'project' && [' · ', el('a', { href: href(`/projects/${projectId}`) }, projectName(projectId))])];
}

/** @param {Entry} entry */
function row(entry) {
	return el('tr', { 'data-key': entry.id },
		el('td', { class: 'when' }, ago(entry.at)),
		el('td', null, who(entry)),
		el('td', null, what(entry)),
		el('td', { class: 'wide' }, changedMembers(entry.changes)));
}

/** @param {URLSearchParams} query */
function listPath(query) {
	const search = new URLSearchParams({ limit: '50' });
	for (const name of ['cursor', 'projectId'])
		if (query.get(name))
			search.set(name, query.get(name) ?? '');
	return `/audit?${search}`;
}

/**
 * @param {string | null} next
 * @param {URLSearchParams} query
 */
function pager(next, query) {
	const at = (/** @type {string | null} */ cursor) => {
		const search = new URLSearchParams(query);
		search.delete('cursor');
		if (cursor !== null)
			search.set('cursor', cursor);
		return href(`/audit?${search}`);
	};
	return el('nav', { class: 'pager', 'aria-label': t.audit.pages },
		query.has('cursor') && el('a', { href: at(null) }, t.deployments.newest),
		next !== null && el('a', { href: at(next) }, t.deployments.older));
}

/**
 * Narrows the list to a project.
 * @param {URLSearchParams} query
 * @param {any} user
 */
function filter(query, user) {
	const chosen = query.get('projectId') ?? '';
	const all = may(user, 'admin') ? [{ value: '', label: t.audit.allProjects }] : [];
	return el('select', { class: 'filter', 'aria-label': t.deployment.project, onchange: (/** @type {Event} */ event) => {
		const { value } = /** @type {HTMLSelectElement} */ (event.target);
		go(value === '' ? '/audit' : `/audit?projectId=${value}`);
	} }, [...all, ...projectChoices('maintainer')].map(({ value, label }) =>
		el('option', { value, selected: value === chosen }, label)));
}

/** @type {import('../lib/page.js').Page} */
export const audit = {
	path: '/audit',
	sources: ({ query }) => ({ list: listPath(query) }),
	title: () => t.audit.title,
	view: ({ list }, { query, user }) => [
		el('div', { class: 'head' }, el('h1', { tabindex: -1 }, query.has('projectId')
			? t.audit.titleOf(projectName(Number(query.get('projectId')))) : t.audit.title), filter(query, user)),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.audit.empty) : table(Object.values(t.audit.columns), list.data.map(row)),
		pager(list.pagination.next, query),
	],
};
