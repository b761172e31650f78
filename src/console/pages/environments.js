// SPDX-License-Identifier: ISC
/** A project's environments: where it is deployed, and with which variables. */
import { all } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { entriesControl } from '../lib/entries.js';
import { cards, editor, fact, tools } from '../lib/items.js';
import { refresh } from '../lib/live.js';
import { askLock, lockNotice, unlock } from '../lib/lock.js';
import { peopleWith, userName } from '../lib/names.js';
import { projectHead } from '../lib/project.js';
import { may } from '../lib/session.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/types.js').Member} Member */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {Environment['variables'][number]} Variable */

/** @type {import('../lib/items.js').Kind} */
const KIND = { id: 'environment', path: '/environments', add: t.environment.add, none: t.environment.none,
	name: ({ name }) => name, deleteTitle: t.environment.deleteTitle, deleteText: t.environment.deleteText };

/** @param {string} text */
function words(text) {
	return text.split(/[\s,]+/).filter(Boolean);
}

const asIs = (/** @type {string} */ text) => text;

/** @type {import('../lib/entries.js').Column[]} */
const VARIABLE = [
	{ name: 'key', label: t.variable.key, read: asIs },
	{ name: 'value', label: t.variable.value, read: asIs, fits: ({ secret }) => !secret },
	{ name: 'value', label: t.variable.value, type: 'password', hint: t.variable.keptHint,
		read: (text) => text === '' ? null : text, fits: ({ secret }) => secret },
	{ name: 'secret', label: t.preset.secret, type: 'check' },
];

/**
 * The editor of the variables. A secret value is unknown here; null keeps it.
 * @param {Variable[]} variables
 */
function variablesControl(variables) {
	return entriesControl({ name: 'variables', columns: VARIABLE, entries: variables,
		blank: { key: '', value: '', secret: false }, title: ({ key }) => key || t.environment.newVariable,
		add: t.variable.add });
}

/**
 * @param {Partial<Environment>} e
 * @param {Member[]} members of the project
 * @returns {import('../lib/form.js').Field[]}
 */
function fields(e, members) {
	return [
		{ name: 'name', label: t.environment.name, required: true, value: e.name, hint: t.environment.nameHint },
		{ name: 'url', label: t.environment.url, value: e.url ?? '', hint: t.environment.urlHint,
			props: { type: 'url' } },
		{ name: 'branches', label: t.environment.branches, value: (e.branches ?? []).join(' '),
			hint: t.environment.branchesHint },
		{ name: 'tags', label: t.environment.tags, value: (e.tags ?? []).join(' '), hint: t.environment.tagsHint },
		{ name: 'runner', label: t.environment.runner, value: e.runner ?? '', hint: t.environment.runnerHint },
		{ name: 'approval', label: t.environment.approval, type: 'select', value: e.approval ?? 'none',
			options: Object.entries(t.environment.approvals).map(([value, label]) => ({ value, label })) },
		{ name: 'approvers', label: t.environment.approvers, type: 'choices', hint: t.environment.approversHint,
			value: (e.approvers ?? []).join(), options: peopleWith('deployer', e.approvers ?? [], members) },
		{ name: 'variables', label: t.environment.variables, type: 'custom', hint: t.environment.variablesHint,
			control: variablesControl(e.variables ?? []) },
	];
}

/** @param {Record<string, string>} values */
function bodyOf(values) {
	return { name: values.name, url: values.url || null, branches: words(values.branches),
		tags: words(values.tags), runner: values.runner || null,
		approval: values.approval, approvers: values.approvers.split(',').filter(Boolean).map(Number),
		variables: JSON.parse(values.variables) };
}

/** @param {Environment} e */
function facts(e) {
	return el('dl', { class: 'facts' },
		e.url !== null && fact(t.environment.url, el('a', { href: e.url, rel: 'noopener' }, e.url)),
		fact(t.environment.branches, e.branches.length === 0 ? t.environment.anyBranch
			: e.branches.map((branch) => el('span', { class: 'ref' }, branch))),
		e.tags.length > 0 && fact(t.environment.tags, e.tags.map((tag) => el('span', { class: 'ref' }, tag))),
		e.runner !== null && fact(t.environment.runner, e.runner),
		e.approvers.length > 0 && fact(t.environment.approvers, e.approvers.map(userName).join(', ')),
		e.approval === 'required' && fact(t.environment.approval, t.environment.approvals.required),
		e.variables.length > 0 && fact(t.environment.variables, e.variables.map((v) =>
			el('code', { class: 'variable' }, `${v.key}=${v.secret ? '••••••' : v.value}`))));
}

/** @param {Environment} e */
function lockButton({ id, name, lock }) {
	return lock === null && el('button', { 'aria-label': t.environment.lock(name),
		onclick: () => askLock(`/environments/${id}/lock`, refresh) }, t.lock.lock);
}

/** @param {Environment} e @param {boolean} isOpen @param {Context} context */
function card(e, isOpen, context) {
	const editable = may(context.who, 'maintainer');
	return [
		el('div', { class: 'head' }, el('h2', null, e.name),
			editable && !isOpen && tools(KIND, e, context, lockButton(e))),
		lockNotice(e.lock, editable ? () => context.run(() => unlock(`/environments/${e.id}/lock`)) : undefined),
		!isOpen && facts(e)];
}

/**
 * Reads the members, who can be approvers, before a form is opened.
 * @param {Context} context
 */
async function loadMembers(context) {
	context.state.loading = true;
	const members = await all(`/projects/${context.params.id}/members`).catch(() => []);
	context.set({ members });
}

/**
 * @param {any} data
 * @param {Context} context
 */
function content({ project, list }, context) {
	const { open, members, loading } = context.state;
	if (open !== null && members === null) {
		if (!loading)
			loadMembers(context);
		return el('p', { class: 'loading', role: 'status' }, t.loading);
	}
	return cards(KIND, /** @type {Environment[]} */ (list.data), { context,
		card: (e, isOpen) => card(e, isOpen, context),
		edit: (e) => editor(KIND, e, { context, fields: fields(e ?? {}, members),
			body: (values) => e === null ? { projectId: project.id, ...bodyOf(values) } : bodyOf(values) }) });
}

/** @type {import('../lib/page.js').Page} */
export const environments = {
	path: '/projects/:id/environments',
	state: { open: null, members: null, loading: false },
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`,
		list: `/environments?projectId=${id}&limit=100` }),
	title: (data) => t.environment.titleOf(data.project.name),
	view: (data, context) => [projectHead(data.project, context), content(data, context)],
};
