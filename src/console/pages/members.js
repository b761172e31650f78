// SPDX-License-Identifier: ISC
/** The users who have a role in one project. */
import { put, remove } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { peopleWith } from '../lib/names.js';
import { projectHead } from '../lib/project.js';
import { may } from '../lib/session.js';
import { table } from '../lib/table.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Member} Member */
/** @typedef {import('../lib/types.js').Project} Project */
/** @typedef {import('../lib/page.js').Context} Context */

/** The roles that a member can have. */
const ROLES = /** @type {const} */ (['viewer', 'deployer', 'maintainer']);

/** @param {number} projectId @param {number} userId */
function path(projectId, userId) {
	return `/projects/${projectId}/members/${userId}`;
}

/** @param {Member} member @param {number} projectId @param {Context} context */
async function drop({ userId, username }, projectId, context) {
	if (await confirmLoss(t.member.removeTitle(username), t.member.removeText, t.member.remove))
		context.run(() => remove(path(projectId, userId)));
}

/** @param {Member} member @param {number} projectId @param {Context} context */
function roleChoice({ userId, username, role: now }, projectId, context) {
	return el('select', { 'aria-label': t.member.roleOf(username), onchange: (/** @type {Event} */ event) => {
		const { value } = /** @type {HTMLSelectElement} */ (event.target);
		context.run(() => put(path(projectId, userId), { role: value }));
	} }, ROLES.map((role) => el('option', { value: role, selected: role === now }, t.roles[role])));
}

/** @param {Member} member @param {number} projectId @param {Context} context */
function row(member, projectId, context) {
	const editable = may(context.who, 'maintainer');
	return el('tr', { 'data-key': `${member.userId} ${member.role}` },
		el('td', { class: 'wide' }, el('strong', null, member.username)),
		el('td', null, editable ? roleChoice(member, projectId, context) : t.roles[member.role]),
		el('td', { class: 'when' }, ago(member.createdAt)),
		editable && el('td', { class: 'number' }, el('button', { class: 'plain', 'aria-label': t.removeOf(member.username),
			onclick: () => drop(member, projectId, context) }, t.member.remove)));
}

/** @param {number} projectId */
function newForm(projectId) {
	return form({ id: 'new-member', label: t.member.add, submit: t.member.add, again: true,
		fields: [
			{ name: 'userId', label: t.member.user, type: 'select', required: true,
				options: [{ value: '', label: t.deploy.choose }, ...peopleWith('guest', [])] },
			{ name: 'role', label: t.member.role, type: 'select', value: 'deployer',
				options: ROLES.map((role) => ({ value: role, label: t.roles[role] })) },
		],
		send: async ({ userId, role }) => {
			await put(path(projectId, Number(userId)), { role });
			refresh();
		} });
}

/** @type {import('../lib/page.js').Page} */
export const members = {
	path: '/projects/:id/members',
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`, list: `/projects/${id}/members?limit=100` }),
	title: ({ project }) => t.member.titleOf(project.name),
	view: ({ project, list }, context) => [
		projectHead(project, context),
		el('p', { class: 'lead' }, t.member.lead),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.member.none)
			: table([t.member.user, t.member.role, t.member.since, ...(may(context.who, 'maintainer') ? [''] : [])],
				list.data.map((/** @type {Member} */ member) => row(member, project.id, context)), { named: true }),
		may(context.who, 'maintainer') && el('section', { class: 'card' }, el('h2', null, t.member.add),
			context.keep('new', () => newForm(project.id))),
	],
};
