// SPDX-License-Identifier: ISC
/** Variables that several projects share, for admins. */
import { post, remove } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { projectName } from '../lib/names.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Variable} Variable */
/** @typedef {import('../lib/types.js').ProjectSummary} Project */
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
		el('td', { class: 'number' }, el('button', { class: 'plain', 'aria-label': t.deleteOf(one.key),
			onclick: () => drop(one, context) }, t.delete)));
}

/** @param {Project[]} projects */
function newForm(projects) {
	return form({ id: 'new-variable', label: t.variable.add, submit: t.variable.add, again: true,
		fields: [
			{ name: 'key', label: t.variable.key, required: true },
			{ name: 'value', label: t.variable.value, type: 'password', hint: t.variable.valueHint },
			{ name: 'secret', label: t.variable.isSecret, type: 'check', value: 'on' },
			{ name: 'description', label: t.project.description },
			{ name: 'projects', label: t.variable.projects, type: 'choices',
				options: projects.map(({ id, name }) => ({ value: String(id), label: name })) },
		],
		send: async ({ key, value, secret, description, projects: chosen }) => {
			await post('/variables', { key, value, secret: secret === 'on', description: description || null,
				projects: chosen === '' ? [] : chosen.split(',').map(Number) });
			refresh();
		} });
}

/** @param {Variable[]} list @param {Context} context */
function table(list, context) {
	const c = t.variable.columns;
	return el('div', { class: 'scroll' }, el('table', null,
		el('thead', null, el('tr', null, [c.key, c.value, c.description, c.projects].map((text) =>
			el('th', { scope: 'col' }, text)), el('td'))),
		el('tbody', null, list.map((one) => row(one, context)))));
}

/** @type {import('../lib/page.js').Page} */
export const variables = {
	path: '/variables',
	sources: () => ({ list: '/variables?limit=100', projects: '/projects?limit=100' }),
	title: () => t.variable.title,
	view: ({ list, projects }, context) => [
		el('h1', { tabindex: -1 }, t.variable.title),
		el('p', { class: 'lead' }, t.variable.lead),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.variable.empty) : table(list.data, context),
		el('section', { class: 'card' }, el('h2', null, t.variable.add),
			context.keep('new', () => newForm(projects.data))),
	],
};
