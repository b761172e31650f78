// SPDX-License-Identifier: ISC
/** What surrounds every page: navigation, the state of the connection, messages. */
import { draw, el } from './dom.js';
import { onConnection, refresh, watch } from './live.js';
import { lockNotice, unlock } from './lock.js';
import { href } from './router.js';
import { may, signOut } from './session.js';
import { mark } from './status.js';
import { inOrder } from './text.js';
import { toasts } from './toast.js';
import { t } from '../texts.js';

/** @typedef {import('./session.js').Role} Role */

/** @type {{ path: string, label: string, role: Role }[]} */
const LINKS = [
	{ path: '/', label: t.nav.board, role: 'guest' },
	{ path: '/projects', label: t.nav.projects, role: 'guest' },
	{ path: '/deployments', label: t.nav.deployments, role: 'guest' },
	{ path: '/runners', label: t.nav.runners, role: 'guest' },
	{ path: '/notifiers', label: t.nav.notifiers, role: 'maintainer' },
	{ path: '/variables', label: t.nav.variables, role: 'admin' },
	{ path: '/users', label: t.nav.users, role: 'admin' },
	{ path: '/audit', label: t.nav.audit, role: 'admin' },
];

/** @param {string} path of a link */
function isCurrent(path) {
	const now = location.pathname.slice('/slipway'.length).replace(/^\/pipelines\//, '/projects/');
	return path === '/' ? now === '/' : now === path || now.startsWith(`${path}/`);
}

/** @param {{ path: string, label: string }} link */
function navLink({ path, label }) {
	return el('a', { href: href(path), 'aria-current': isCurrent(path) ? 'page' : null }, label);
}

async function leave() {
	await signOut();
	location.assign(href('/sign-in'));
}

/**
 * Closes the menu; the focus goes back to what opened it if it was inside.
 * @param {HTMLDetailsElement | null} menu
 */
function closeMenu(menu) {
	if (menu === null || !menu.open)
		return;
	menu.open = false;
	if (menu.contains(document.activeElement))
		menu.querySelector('summary')?.focus();
}

/** Closes the menu as soon as the user turns to something else. */
function watchMenu() {
	const menu = () => /** @type {HTMLDetailsElement | null} */ (app.querySelector('.menu'));
	document.addEventListener('keydown', ({ key }) => key === 'Escape' && closeMenu(menu()));
	for (const turn of ['pointerdown', 'focusin'])
		document.addEventListener(turn, ({ target }) =>
			!(target instanceof Node && menu()?.contains(target)) && closeMenu(menu()));
}

/** @param {any} user */
function userMenu(user) {
	const name = inOrder(user.name ?? user.username);
	return el('details', { class: 'menu' },
		el('summary', null, el('span', { class: 'hidden' }, t.nav.menuOf(name)),
			el('span', { class: 'avatar', 'aria-hidden': 'true' }, name.slice(0, 2))),
		el('div', { class: 'menu-items' },
			el('p', null, el('strong', null, name), ' ', el('span', { class: 'faint' }, t.roles[user.role])),
			el('a', { href: href('/account') }, t.nav.account),
			el('button', { class: 'plain', onclick: leave }, t.nav.signOut)));
}

/** @param {any} user */
function header(user) {
	return el('header', { class: 'top' },
		el('a', { class: 'brand', href: href('/') }, mark(), t.name),
		el('nav', { 'aria-label': t.nav.label },
			LINKS.filter(({ role }) => may(user, role)).map(navLink)),
		userMenu(user));
}

const app = /** @type {Element} */ (document.getElementById('app'));
const banner = el('p', { class: 'banner', role: 'status' });

/** The lock of the whole service. */
const serviceLock = el('div', { class: 'service-lock' });

/**
 * Shows on every page whether the whole service is locked; called once.
 * @param {any} user
 */
export function watchService(user) {
	const remove = may(user, 'admin') ? () => unlock('/lock').then(refresh) : undefined;
	watch('/lock', (lock) => draw(serviceLock, lockNotice(lock, remove, t.lock.service)),
	    () => draw(serviceLock), new AbortController().signal);
}

watchMenu();
onConnection((lost) => {
	banner.textContent = lost ? t.lost.banner : '';
});

/**
 * Draws the frame of a page.
 * @param {any} user null: without navigation
 * @returns {Element} where the page goes
 */
export function frame(user) {
	const main = el('main', { id: 'main', class: user === null ? 'bare' : '' });
	app.querySelector('.menu[open]')?.removeAttribute('open');
	draw(app, user !== null && el('a', { class: 'skip', href: '#main' }, t.skip),
		user !== null && header(user));
	app.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	app.append(banner, user === null ? '' : serviceLock, main, toasts());
	return main;
}
