// SPDX-License-Identifier: ISC
/** Who changed what, newest first: everywhere, or in one project. */
import { el } from '../lib/dom.js';
import { projectName } from '../lib/names.js';
import { href } from '../lib/router.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').AuditEntry} Entry */
/** @typedef {Entry['changes'][number]} Change */

/** @param {Entry} entry */
function who({ username, via, tokenName, address }) {
	return [el('strong', null, username), el('br'), el('span', { class: 'faint' },
		t.audit.via[via] ?? via, tokenName !== null && [' ', el('q', null, tokenName)], address !== null && ` · ${address}`)];
}

/** @param {Entry} entry */
function what({ action, objectType, objectId, projectId }) {
	return [t.audit.action(action), el('br'), el('span', { class: 'faint' },
		objectType, objectId !== null && ` ${objectId}`, projectId !== null && [' · ',
			el('a', { href: href(`/projects/${projectId}`) }, projectName(projectId))])];
}

/** @param {any} value */
function shown(value) {
	return el('code', { class: 'variable isolate' }, typeof value === 'string' ? value : JSON.stringify(value));
}

/** @param {Change} change */
function change({ name, from, to }) {
	if (from === null && to === null)
		return el('li', null, name);
	return el('li', null, name, ': ', from !== null && [shown(from), ' → '], to === null ? t.none : shown(to));
}

/** @param {Entry} entry */
function row(entry) {
	return el('tr', { 'data-key': entry.id },
		el('td', { class: 'when' }, ago(entry.at)),
		el('td', null, who(entry)),
		el('td', null, what(entry)),
		el('td', { class: 'wide' }, el('ul', { class: 'audit-changes' }, entry.changes.map(change))));
}

/** @param {Entry[]} list */
function table(list) {
	return el('div', { class: 'scroll' }, el('table', null,
		el('thead', null, el('tr', null, Object.values(t.audit.columns).map((text) =>
			el('th', { scope: 'col' }, text)))),
		el('tbody', null, list.map(row))));
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

/** @type {import('../lib/page.js').Page} */
export const audit = {
	path: '/audit',
	sources: ({ query }) => ({ list: listPath(query) }),
	title: () => t.audit.title,
	view: ({ list }, { query }) => [
		el('h1', { tabindex: -1 }, query.has('projectId')
			? t.audit.titleOf(projectName(Number(query.get('projectId')))) : t.audit.title),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.audit.empty) : table(list.data),
		pager(list.pagination.next, query),
	],
};
