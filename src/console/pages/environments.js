// SPDX-License-Identifier: ISC
/** A project's environments: where it is deployed, and with which variables. */
import { post, remove, saver } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { askLock, lockNotice, unlock } from '../lib/lock.js';
import { userName } from '../lib/names.js';
import { lineValues } from '../lib/presets.js';
import { projectHead } from '../lib/project.js';
import { may } from '../lib/session.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {Environment['variables'][number]} Variable */

/** @param {string} text */
function words(text) {
	return text.split(/[\s,]+/).filter(Boolean);
}

/** @param {Variable[]} variables that are not secret */
function lines(variables) {
	return variables.filter((one) => !one.secret).map((one) => `${one.key}=${one.value}`).join('\n');
}

/**
 * The variables of the form; secret ones stay, as null keeps their value.
 * @param {string} text
 * @param {Variable[]} old
 */
function variablesOf(text, old) {
	const plain = Object.entries(lineValues(text)).map(([key, value]) => ({ key, value, secret: false }));
	return [...plain, ...old.filter((one) => one.secret)];
}

/**
 * @param {Partial<Environment>} e
 * @returns {import('../lib/form.js').Field[]}
 */
function fields(e) {
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
		{ name: 'variables', label: t.environment.variables, type: 'code', value: lines(e.variables ?? []),
			hint: t.environment.variablesHint, props: { rows: 4, placeholder: 'NAME=value' } },
	];
}

/**
 * @param {Record<string, string>} values
 * @param {Variable[]} old
 */
function bodyOf(values, old) {
	return { name: values.name, url: values.url || null, branches: words(values.branches),
		tags: words(values.tags), runner: values.runner || null,
		approval: values.approval, variables: variablesOf(values.variables, old) };
}

/** @param {Environment} e @param {Context} context */
function editForm(e, context) {
	const save = saver(`/environments/${e.id}`, e);
	return form({ id: `environment-${e.id}`, label: e.name, submit: t.save, fields: fields(e),
		cancel: () => context.set({ open: null }),
		send: async (values) => {
			await save(bodyOf(values, e.variables));
			toast(t.saved);
			context.set({ open: null });
			refresh();
		} });
}

/** @param {number} projectId @param {Context} context */
function newForm(projectId, context) {
	return form({ id: 'new-environment', label: t.environment.add, submit: t.environment.add, fields: fields({}),
		cancel: () => context.set({ open: null }),
		send: async (values) => {
			await post('/environments', { projectId, ...bodyOf(values, []) });
			context.set({ open: null });
			refresh();
		} });
}

/** @param {Environment} e @param {Context} context */
async function drop(e, context) {
	if (await confirmLoss(t.environment.deleteTitle(e.name), t.environment.deleteText, t.delete))
		context.run(() => remove(`/environments/${e.id}`));
}

/** @param {Environment} e @param {Context} context */
function tools(e, context) {
	return el('div', { class: 'actions' },
		e.lock === null && el('button', { 'aria-label': t.environment.lock(e.name),
			onclick: () => askLock(`/environments/${e.id}/lock`, refresh) }, t.lock.lock),
		el('button', { onclick: () => context.set({ open: e.id }), 'aria-label': t.editOf(e.name) }, t.edit),
		el('button', { class: 'plain', onclick: () => drop(e, context),
			'aria-label': t.deleteOf(e.name) }, t.delete));
}

/** @param {Environment} e */
function facts(e) {
	const one = (/** @type {string} */ label, /** @type {import('../lib/dom.js').Child} */ value) =>
		[el('dt', null, label), el('dd', null, value)];
	return el('dl', { class: 'facts' },
		e.url !== null && one(t.environment.url, el('a', { href: e.url, rel: 'noopener' }, e.url)),
		one(t.environment.branches, e.branches.length === 0 ? t.environment.anyBranch
			: e.branches.map((branch) => el('span', { class: 'ref' }, branch))),
		e.tags.length > 0 && one(t.environment.tags, e.tags.map((tag) => el('span', { class: 'ref' }, tag))),
		e.runner !== null && one(t.environment.runner, e.runner),
		e.approvers.length > 0 && one(t.environment.approvers, e.approvers.map(userName).join(', ')),
		e.approval === 'required' && one(t.environment.approval, t.environment.approvals.required),
		e.variables.length > 0 && one(t.environment.variables, e.variables.map((v) =>
			el('code', { class: 'variable' }, `${v.key}=${v.secret ? '••••••' : v.value}`))));
}

/** @param {Environment} e @param {Context} context */
function item(e, context) {
	const editable = may(context.user, 'maintainer');
	const open = context.state.open === e.id;
	return el('li', { class: 'card', 'data-key': e.id },
		el('div', { class: 'head' }, el('h2', null, e.name), editable && !open && tools(e, context)),
		lockNotice(e.lock, editable ? () => context.run(() => unlock(`/environments/${e.id}/lock`)) : undefined),
		open ? context.keep(`environment-${e.id}`, () => editForm(e, context)) : facts(e));
}

/** @type {import('../lib/page.js').Page} */
export const environments = {
	path: '/projects/:id/environments',
	state: { open: null },
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`,
		list: `/environments?projectId=${id}&limit=100` }),
	title: (data) => t.environment.titleOf(data.project.name),
	view: ({ project, list }, context) => [
		projectHead(project, context),
		list.data.length === 0 && context.state.open !== 'new' && el('p', { class: 'empty' }, t.environment.none),
		el('ul', { class: 'stack' }, list.data.map((/** @type {Environment} */ e) => item(e, context))),
		may(context.user, 'maintainer') && (context.state.open === 'new'
			? el('div', { class: 'card' }, context.keep('new-environment', () => newForm(project.id, context)))
			: el('div', { class: 'actions' },
				el('button', { onclick: () => context.set({ open: 'new' }) }, t.environment.add))),
	],
};
