// SPDX-License-Identifier: ISC
/** All projects, and the form that adds one. */
import { get, post } from '../lib/api.js';
import { combobox } from '../lib/combobox.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { lockLine } from '../lib/lock.js';
import * as names from '../lib/names.js';
import { pager } from '../lib/pager.js';
import { go, href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { table } from '../lib/table.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').ProjectSummary} Project */
/** @typedef {import('../lib/types.js').GitRepository} Repository */

/**
 * The address of a repository without what most have in common.
 * @param {string} address
 */
function shortAddress(address) {
	return address.replace(/^[a-z]+:\/\//, '').replace(/^[^/@]*@/, '').replace(/\.git$/, '');
}

/** @param {Project} project */
function row(project) {
	return el('tr', { 'data-key': project.id },
		el('td', null, el('a', { class: 'cover', href: href(`/projects/${project.id}`) }, project.name)),
		el('td', { class: 'wide' }, project.description ?? '', lockLine(project.lock)),
		el('td', null, el('code', { title: project.repository }, shortAddress(project.repository))),
		el('td', null, project.defaultBranch !== null && el('span', { class: 'ref' }, project.defaultBranch)));
}

/** @param {URLSearchParams} query */
function listPath(query) {
	const search = new URLSearchParams({ limit: '50', page: query.get('page') ?? '1' });
	if (query.get('name'))
		search.set('name', query.get('name') ?? '');
	return `/projects?${search}`;
}

/** @param {URLSearchParams} query */
function searchBox(query) {
	return el('form', { role: 'search', class: 'search', onsubmit: (/** @type {SubmitEvent} */ event) => {
		event.preventDefault();
		const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
		go(`/projects?name=${encodeURIComponent(String(data.get('name')))}`);
	} }, el('input', { type: 'search', name: 'name', value: query.get('name') ?? '',
		placeholder: t.projects.search, 'aria-label': t.projects.search }));
}

/** @type {import('../lib/page.js').Page} */
export const projects = {
	path: '/projects',
	sources: ({ query }) => ({ list: listPath(query) }),
	title: () => t.projects.title,
	view: ({ list }, { query, user }) => [
		el('div', { class: 'head' }, el('h1', { tabindex: -1 }, t.projects.title),
			el('div', { class: 'actions' }, searchBox(query), may(user, 'maintainer') && [
				el('a', { class: 'button', href: href('/projects/import') }, t.transfer.importTitle),
				el('a', { class: 'button primary', href: href('/projects/new') }, t.projects.add)])),
		list.data.length === 0
			? el('p', { class: 'empty' }, query.get('name') ? t.projects.noMatch : t.projects.empty)
			: table(Object.values(t.projects.columns), list.data.map(row), { links: true }),
		pager(list.pagination, '/projects', query),
	],
};

/** @param {Record<string, string>} values */
async function create({ name, repository, defaultBranch, description }) {
	const project = await post('/projects', { name, repository,
		defaultBranch: defaultBranch || null, description: description || null });
	await names.load();
	go(`/projects/${project.id}/pipelines/new`);
}

/**
 * @param {string} text
 * @param {AbortSignal} signal
 */
async function searchRepositories(text, signal) {
	const { data, pagination } = await get(`/git/repositories?limit=20&search=${encodeURIComponent(text)}`, { signal });
	return { more: pagination.hasMore, list: data.map((/** @type {Repository} */ { path, repository }) =>
		({ value: repository, label: path })) };
}

/**
 * The new project has the name of its repository, unless the user has typed another.
 * @param {import('../lib/combobox.js').Suggestion} repository
 */
function fillName({ label }) {
	const name = /** @type {HTMLInputElement} */ (document.querySelector('#new-project-name'));
	if (name.value === '')
		name.value = label.slice(label.lastIndexOf('/') + 1);
}

/** @returns {import('../lib/form.js').Field} */
function repositoryField() {
	return { name: 'repository', label: t.project.repository, required: true, type: 'custom',
		hint: t.project.repositoryHint,
		control: combobox({ name: 'repository', required: true, search: searchRepositories,
			searches: (text) => text.length <= 100 && !/[:@]/.test(text), chosen: fillName }) };
}

/** @type {import('../lib/page.js').Page} */
export const newProject = {
	path: '/projects/new',
	title: () => t.projects.add,
	view: (_, context) => [
		el('h1', { tabindex: -1 }, t.projects.add),
		el('div', { class: 'card' }, context.keep('form', () => form({
			id: 'new-project', label: t.projects.add, submit: t.projects.create, send: create,
			fields: [
				repositoryField(),
				{ name: 'name', label: t.project.name, required: true, props: { maxlength: 100 } },
				{ name: 'defaultBranch', label: t.project.branch, hint: t.project.branchHint },
				{ name: 'description', label: t.project.description, type: 'textarea', props: { maxlength: 500 } },
			] }))),
	],
};
