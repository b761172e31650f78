// SPDX-License-Identifier: ISC
/**
 * A link that signs a visitor in: #sign-in=ID.TOKEN, where the token is meant for
 * one sign-in. Any site can contain such a link, so the visitor decides.
 */
import { Problem } from './api.js';
import { draw, el } from './dom.js';
import { signInOnce, userOf } from './session.js';
import { mark } from './status.js';
import { t } from '../texts.js';

/** @typedef {{ id: string, token: string }} Link */

/**
 * Removes the token from the address bar and the history.
 * @returns {Link | null} null if the address has none
 */
export function takeLink() {
	const [, id, token] = /^#sign-in=(\d+)\.(.+)$/.exec(location.hash) ?? [];
	if (token === undefined)
		return null;
	history.replaceState(null, '', location.pathname + location.search);
	return { id, token };
}

/** @param {unknown} error */
function reason(error) {
	if (error instanceof Problem && error.status === 401)
		return t.signIn.used;
	return error instanceof Error ? error.message : String(error);
}

/**
 * @param {string} title
 * @param {...import('./dom.js').Child} children
 */
function view(title, ...children) {
	return el('section', { class: 'sign-in' }, mark(), el('h1', { tabindex: -1 }, title), children);
}

/** @param {any} user */
function fullName({ name, username }) {
	return name === null || name === username ? username : `${name} (${username})`;
}

/**
 * @param {Link} link
 * @param {any} current the user who is signed in; null: none
 * @param {any} offered the user of the link
 * @param {() => void} stay
 */
function question({ id, token }, current, offered, stay) {
	const fault = el('p', { class: 'fault', role: 'alert' });
	const agree = el('button', { class: 'primary wide', onclick: async () => {
		agree.disabled = true;
		try {
			await signInOnce(id, token, current !== null);
			location.reload();
		} catch (error) {
			fault.textContent = reason(error);
		}
	} }, t.link.agree(offered.username));
	return view(t.link.title(offered.username),
		el('p', { class: 'lead' }, t.link.offer(fullName(offered), t.roles[offered.role])),
		current !== null && el('p', { class: 'notice pending' }, t.link.replaces(fullName(current))),
		el('p', { class: 'faint' }, t.link.warning),
		el('div', { class: 'ways' }, fault, agree, el('button', { class: 'wide', onclick: stay },
			current === null ? t.link.decline : t.link.stay(current.username))));
}

/**
 * Asks whether to sign in as the link says. A visitor who is that user already
 * is not asked.
 * @param {Element} main
 * @param {Link} link
 * @param {any} current the user who is signed in; null: none
 * @param {() => void} stay called if the visitor declines
 */
export async function ask(main, link, current, stay) {
	document.title = t.title(t.signIn.title);
	draw(main, el('p', { class: 'loading', role: 'status' }, t.loading));
	try {
		const offered = await userOf(link.token);
		if (offered.id === current?.id)
			stay();
		else
			draw(main, question(link, current, offered, stay));
	} catch (error) {
		draw(main, view(t.link.invalid, el('p', { class: 'lead' }, reason(error)),
			el('div', { class: 'ways' }, el('button', { class: 'primary wide', onclick: stay }, t.link.go))));
	}
	main.querySelector('h1')?.focus();
}
