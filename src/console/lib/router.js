// SPDX-License-Identifier: ISC
/** Addresses below /slipway/ and the pages that they name. */

/** @typedef {import('./page.js').Page} Page */
/** @typedef {{ page: Page, params: Record<string, string>, query: URLSearchParams }} Place */

const BASE = '/slipway';

/**
 * The address of a page: href('/projects/3').
 * @param {string} path
 */
export function href(path) {
	return BASE + path;
}

/**
 * @param {string} pattern for example /projects/:id, where :id is a number
 * @param {string} path
 * @returns {Record<string, string> | null} the parameters, if it matches
 */
function match(pattern, path) {
	const names = pattern.split('/');
	const parts = path.split('/');
	if (names.length !== parts.length)
		return null;
	/** @type {Record<string, string>} */
	const params = {};
	for (const [i, name] of names.entries()) {
		if (name.startsWith(':') && /^\d+$/.test(parts[i]))
			params[name.slice(1)] = parts[i];
		else if (name !== parts[i])
			return null;
	}
	return params;
}

/**
 * The place that the address bar names; null if there is none.
 * @param {Page[]} pages
 * @returns {Place | null}
 */
export function place(pages) {
	const path = location.pathname.slice(BASE.length);
	for (const page of pages) {
		const params = match(page.path, path);
		if (params !== null)
			return { page, params, query: new URLSearchParams(location.search) };
	}
	return null;
}

/**
 * The address of a page that the address bar or a link named; the board's if the
 * path leads out of the console.
 * @param {string} path
 */
export function hrefWithin(path) {
	const { pathname, search, hash } = new URL(href(path), location.origin);
	return pathname.startsWith(`${BASE}/`) ? pathname + search + hash : href('/');
}

/** The current place, to return to it after signing in. */
export function here() {
	return location.pathname.slice(BASE.length) + location.search + location.hash;
}

/** @type {() => void} */
let changed = () => {};

/**
 * Goes to a page.
 * @param {string} path
 */
export function go(path) {
	history.pushState(null, '', href(path));
	changed();
}

/**
 * Goes to a page that takes the place of the current one in the history.
 * @param {string} path
 */
export function replace(path) {
	history.replaceState(null, '', href(path));
	changed();
}

/** @param {MouseEvent} event */
function follow(event) {
	const link = event.target instanceof Element ? event.target.closest('a') : null;
	if (link === null || event.defaultPrevented || event.button !== 0 || link.target !== ''
	    || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
		return;
	const url = new URL(link.href);
	if (url.origin !== location.origin || !url.pathname.startsWith(`${BASE}/`))
		return;
	const same = url.pathname === location.pathname && url.search === location.search;
	if (same && url.hash !== '')
		return; // within the page
	event.preventDefault();
	go(url.pathname.slice(BASE.length) + url.search + url.hash);
}

/**
 * Calls `handler` whenever the address changes.
 * @param {() => void} handler
 */
export function start(handler) {
	changed = handler;
	addEventListener('popstate', handler);
	document.addEventListener('click', follow);
}
