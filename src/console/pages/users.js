// SPDX-License-Identifier: ISC
/** All users, for admins. */
import { post, saver } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { pager } from '../lib/pager.js';
import { ROLES } from '../lib/session.js';
import { table } from '../lib/table.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').User} User */
/** @typedef {import('../lib/page.js').Context} Context */

/**
 * A select that saves at once.
 * @param {User} user
 * @param {'role' | 'status'} member
 * @param {[string, string][]} options
 * @param {Context} context
 */
function choice(user, member, options, context) {
	return el('select', { 'aria-label': t.user.memberOf(t.user.columns[member], user.username),
		onchange: (/** @type {Event} */ event) => context.run(() => saver(`/user/${user.id}`, user,
			`/user/detail/${user.id}`)(
			{ [member]: /** @type {HTMLSelectElement} */ (event.target).value })) },
	options.map(([value, label]) => el('option', { value, selected: value === user[member] }, label)));
}

/** @param {User} user @param {Context} context */
function row(user, context) {
	return el('tr', { 'data-key': `${user.id} ${user.role} ${user.status}` },
		el('td', { class: 'wide' }, el('strong', null, user.username), ' ',
			el('span', { class: 'faint' }, user.name ?? '')),
		el('td', null, user.email ?? ''),
		el('td', null, choice(user, 'role', ROLES.map((role) => [role, t.roles[role]]), context)),
		el('td', null, choice(user, 'status', Object.entries(t.user.statuses), context)),
		el('td', { class: 'when' }, user.lastLoginAt === null ? t.none : ago(user.lastLoginAt)));
}

function newForm() {
	return form({ id: 'new-user', label: t.user.add, submit: t.user.add, again: true,
		fields: [
			{ name: 'username', label: t.user.username, required: true, hint: t.user.usernameHint },
			{ name: 'role', label: t.user.columns.role, type: 'select', value: 'deployer',
				options: ROLES.map((value) => ({ value, label: t.roles[value] })) },
		],
		send: async (values) => {
			await post('/user', values);
			refresh();
		} });
}

/** @type {import('../lib/page.js').Page} */
export const users = {
	path: '/users',
	role: 'admin',
	sources: ({ query }) => ({ list: `/user/list?limit=100&page=${query.get('page') ?? 1}` }),
	title: () => t.user.title,
	view: ({ list }, context) => [
		el('h1', { tabindex: -1 }, t.user.title),
		table(Object.values(t.user.columns), list.data.map((/** @type {User} */ user) => row(user, context)),
			{ named: true }),
		pager(list.pagination, '/users'),
		el('section', { class: 'card' }, el('h2', null, t.user.add), context.keep('new', newForm)),
	],
};
