// SPDX-License-Identifier: ISC
/** The user's own account, and the API tokens that programs use in the user's name. */
import { post, remove } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { highestRole } from '../lib/names.js';
import { secretNotice } from '../lib/secret.js';
import { ROLES, may } from '../lib/session.js';
import { table } from '../lib/table.js';
import { ago, exact } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').ApiToken} Token */
/** @typedef {import('../lib/page.js').Context} Context */

/** @param {Token} token @param {Context} context */
async function drop(token, context) {
	if (await confirmLoss(t.token.deleteTitle(token.name), t.token.deleteText, t.delete))
		context.run(() => remove(`/auth/tokens/${token.id}`));
}

/** @param {Token} token @param {Context} context */
function row(token, context) {
	return el('tr', { 'data-key': token.id }, el('td', { class: 'wide' }, token.name),
		el('td', null, t.roles[token.role]),
		el('td', { class: 'when' }, token.lastUsedAt === null ? t.token.unused : ago(token.lastUsedAt)),
		el('td', { class: 'when' }, token.expiresAt === null ? t.token.never : exact(token.expiresAt)),
		el('td', { class: 'number' }, el('button', { class: 'plain', 'aria-label': t.deleteOf(token.name),
			onclick: () => drop(token, context) }, t.delete)));
}

/** @param {Context} context */
function newForm(context) {
	// The tokens of a guest are for the projects of which the guest is a member.
	const own = may(context.user, 'viewer') ? context.user.role : 'viewer';
	const most = highestRole({ role: own });
	return form({ id: 'new-token', label: t.token.add, submit: t.token.add, again: true,
		fields: [
			{ name: 'name', label: t.token.name, required: true, hint: t.token.nameHint, props: { maxlength: 100 } },
			{ name: 'role', label: t.token.role, type: 'select', value: own,
				options: ROLES.slice(1).filter((role) => may({ role: most }, role))
					.map((value) => ({ value, label: t.roles[value] })) },
			{ name: 'expiresAt', label: t.token.expires, type: 'datetime-local', hint: t.token.expiresHint },
		],
		send: async ({ name, role, expiresAt }) => {
			const made = await post('/auth/tokens', { name, role,
				expiresAt: expiresAt === '' ? null : new Date(expiresAt).toISOString() });
			context.set({ shown: made.token });
			refresh();
		} });
}

/** @type {import('../lib/page.js').Page} */
export const account = {
	path: '/account',
	state: { shown: '' },
	sources: () => ({ tokens: '/auth/tokens?limit=100' }),
	title: () => t.nav.account,
	view: ({ tokens }, context) => [
		el('h1', { tabindex: -1 }, t.nav.account),
		el('p', { class: 'lead' }, t.account.signedIn(context.user.username, t.roles[context.user.role])),
		el('h2', null, t.token.title),
		context.state.shown !== '' && secretNotice(t.token.once, context.state.shown),
		tokens.data.length === 0 ? el('p', { class: 'empty' }, t.token.empty)
			: table([...Object.values(t.token.columns), ''],
				tokens.data.map((/** @type {Token} */ token) => row(token, context)), { named: true }),
		el('section', { class: 'card' }, el('h2', null, t.token.add), context.keep('new', () => newForm(context))),
	],
};
