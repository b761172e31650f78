// SPDX-License-Identifier: ISC
/** Variables that several projects share, for admins. */
import { post, remove, saver } from '../lib/api.js';
import { confirmLoss, openDialog } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { projectChoices, projectName } from '../lib/names.js';
import { pager } from '../lib/pager.js';
import { table } from '../lib/table.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Variable} Variable */
/** @typedef {import('../lib/page.js').Context} Context */

/** @param {Variable} one @param {Context} context */
async function drop(one, context) {
	if (await confirmLoss(t.variable.deleteTitle(one.key), t.variable.deleteText, t.delete))
		context.run(() => remove(`/variables/${one.id}`));
}

/** @param {Variable} one @param {Context} context */
function row(one, context) {
	return el('tr', { 'data-key': one.id },
		el('td', null, el('code', null, one.key)),
		el('td', null, one.secret ? el('span', { class: 'faint' }, t.variable.secret) : el('code', null, one.value)),
		el('td', { class: 'wide' }, one.description ?? ''),
		el('td', null, one.projects.map(projectName).join(', ') || t.none),
		el('td', { class: 'tools' },
			el('button', { 'aria-label': t.editOf(one.key), onclick: () => edit(one) }, t.edit),
			el('button', { class: 'plain', 'aria-label': t.deleteOf(one.key), onclick: () => drop(one, context) },
				t.delete)));
}

/**
 * @param {Variable | null} one null: a new one
 * @returns {import('../lib/form.js').Field[]}
 */
function fields(one) {
	const isShown = one !== null && !one.secret;
	return [
		{ name: 'key', label: t.variable.key, required: true, value: one?.key },
		{ name: 'value', label: t.variable.value, type: isShown ? 'text' : 'password',
			value: isShown ? one.value ?? '' : '',
			hint: one === null ? t.variable.valueHint : one.secret ? t.variable.keptHint : '' },
		{ name: 'secret', label: t.variable.isSecret, type: 'check', value: one?.secret === false ? '' : 'on' },
		{ name: 'description', label: t.project.description, value: one?.description ?? '' },
		{ name: 'projects', label: t.variable.projects, type: 'choices', value: (one?.projects ?? []).join(),
			options: projectChoices('guest') },
	];
}

/** @param {Record<string, string>} values */
function bodyOf({ key, value, secret, description, projects }) {
	return { key, value, secret: secret === 'on', description: description || null,
		projects: projects === '' ? [] : projects.split(',').map(Number) };
}

/**
 * Changes a variable; a secret without a new value keeps the one it has.
 * @param {Variable} one
 */
function edit(one) {
	const save = saver(`/variables/${one.id}`, one);
	openDialog(t.editOf(one.key), (close) => ({ id: `variable-${one.id}`, submit: t.save, cancel: close,
		fields: fields(one),
		send: async (values) => {
			const { value, ...rest } = bodyOf(values);
			await save(one.secret && rest.secret && value === '' ? rest : { value, ...rest });
			close();
			toast(t.saved);
			refresh();
		} }));
}

function newForm() {
	return form({ id: 'new-variable', label: t.variable.add, submit: t.variable.add, again: true, fields: fields(null),
		send: async (values) => {
			await post('/variables', bodyOf(values));
			toast(t.saved);
			refresh();
		} });
}

/** @type {import('../lib/page.js').Page} */
export const variables = {
	path: '/variables',
	role: 'admin',
	sources: ({ query }) => ({ list: `/variables?limit=100&page=${query.get('page') ?? 1}` }),
	title: () => t.variable.title,
	view: ({ list }, context) => [
		el('h1', { tabindex: -1 }, t.variable.title),
		el('p', { class: 'lead' }, t.variable.lead),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.variable.empty)
			: table([...Object.values(t.variable.columns), ''],
				list.data.map((/** @type {Variable} */ one) => row(one, context)), { named: true }),
		pager(list.pagination, '/variables'),
		el('section', { class: 'card' }, el('h2', null, t.variable.add),
			context.keep('new', newForm)),
	],
};
