// SPDX-License-Identifier: ISC
/**
 * Signs in a program on a device that shows a code, such as the command line. Any
 * site can link to this page with a code, so the user compares and decides.
 */
import { get, post } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { highestRole } from '../lib/names.js';
import { href } from '../lib/router.js';
import { ROLES, may } from '../lib/session.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').DeviceRequest} DeviceRequest */
/** @typedef {import('../lib/page.js').Context} Context */

/** The code of the last address that had one: the link to the content replaces it. */
let code = '';

function readCode() {
	code = /^#([a-z]{4}-?[a-z]{4})$/i.exec(location.hash)?.[1].toUpperCase() ?? code;
	return code;
}

/**
 * Shows the next view, whose heading a screen reader reads.
 * @param {Context} context
 * @param {Record<string, any>} changes
 */
function turn(context, changes) {
	context.set(changes);
	context.main.querySelector('h1')?.focus();
}

/**
 * @param {Context} context
 * @param {'approved' | 'denied'} outcome
 */
function end(context, outcome) {
	code = '';
	history.replaceState(null, '', location.pathname);
	turn(context, { outcome });
}

/** @param {Context} context */
function codeForm(context) {
	const known = readCode();
	const node = form({ id: `device-${known}`, label: t.device.title, submit: t.device.next,
		fields: [{ name: 'userCode', label: t.device.code, required: true, hint: t.device.codeHint, value: known,
			props: { maxlength: 50, autocapitalize: 'characters', spellcheck: 'false' } }],
		send: async ({ userCode }) => {
			const asked = await get(`/auth/device/request?userCode=${encodeURIComponent(userCode)}`);
			code = asked.userCode;
			turn(context, { asked });
		} });
	if (known !== '')
		queueMicrotask(() => node.requestSubmit());
	return node;
}

/**
 * @param {DeviceRequest} asked
 * @param {Context} context
 */
function decisionForm({ userCode }, context) {
	// The tokens of a guest are for the projects of which the guest is a member.
	const own = may(context.user, 'viewer') ? context.user.role : 'viewer';
	const most = highestRole({ role: own });
	return form({ id: `device-decision-${userCode}`, label: t.device.title, submit: t.device.approve,
		fields: [
			{ name: 'role', label: t.token.role, type: 'select', value: own, hint: t.device.roleHint,
				options: ROLES.slice(1).filter((role) => may({ role: most }, role))
					.map((value) => ({ value, label: t.roles[value] })) },
			{ name: 'expiresAt', label: t.token.expires, type: 'datetime-local', hint: t.token.expiresHint },
		],
		send: async ({ role, expiresAt }) => {
			await post('/auth/device/approve', { userCode, role,
				...(expiresAt === '' ? {} : { expiresAt: new Date(expiresAt).toISOString() }) });
			end(context, 'approved');
		},
		cancel: async () => {
			if (await context.run(() => post('/auth/device/deny', { userCode })))
				end(context, 'denied');
		},
		cancelLabel: t.device.deny });
}

/** @param {string} name @param {import('../lib/dom.js').Child} value */
function fact(name, value) {
	return [el('dt', null, name), el('dd', null, value)];
}

/**
 * @param {DeviceRequest} asked
 * @param {Context} context
 */
function question(asked, context) {
	return [
		el('h1', { tabindex: -1 }, t.device.question),
		el('p', { class: 'lead' }, t.device.offer(context.user.username)),
		el('section', { class: 'card device' },
			el('dl', { class: 'facts' },
				fact(t.device.code, el('code', { class: 'user-code' }, asked.userCode)),
				fact(t.device.name, el('span', null, asked.name)),
				fact(t.device.address, el('span', null, asked.address)),
				fact(t.device.asked, ago(asked.createdAt))),
			el('div', { class: 'notice pending' }, el('p', null, t.device.warning)),
			context.keep(`decision-${asked.userCode}`, () => decisionForm(asked, context))),
	];
}

/** @param {'approved' | 'denied'} outcome */
function ending(outcome) {
	return [
		el('h1', { tabindex: -1 }, t.device.ended[outcome].title),
		el('p', { class: 'lead', role: 'status' }, t.device.ended[outcome].text),
		el('p', null, el('a', { href: href('/account') }, t.device.tokens)),
	];
}

/** @type {import('../lib/page.js').Page} */
export const device = {
	path: '/device',
	state: { asked: null, outcome: null },
	title: () => t.device.title,
	ticks: () => true,
	view: (_, context) => {
		const { asked, outcome } = context.state;
		if (outcome !== null)
			return ending(outcome);
		if (asked !== null)
			return question(asked, context);
		return [
			el('h1', { tabindex: -1 }, t.device.title),
			el('p', { class: 'lead' }, t.device.lead),
			el('section', { class: 'card device' }, context.keep('code', () => codeForm(context))),
		];
	},
};
