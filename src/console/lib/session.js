// SPDX-License-Identifier: ISC
/** The signed-in user, and how a browser gets a session. */
import { Problem, get, post, remove, request } from './api.js';
import { t } from '../texts.js';

/** @typedef {'guest' | 'viewer' | 'deployer' | 'maintainer' | 'admin'} Role */

/** @type {Role[]} */
export const ROLES = ['guest', 'viewer', 'deployer', 'maintainer', 'admin'];
const NEXT = 'slipway-next';
const tabs = new BroadcastChannel('slipway-session');

/**
 * Whether a user's role includes the rights of another.
 * @param {{ role: string }} user
 * @param {Role} role
 */
export function may(user, role) {
	return ROLES.findIndex((one) => one === user.role) >= ROLES.indexOf(role);
}

/**
 * The signed-in user; null if there is no session.
 * @returns {Promise<any>}
 */
export async function currentUser() {
	try {
		return await get('/auth/info', { quiet: true });
	} catch (error) {
		if (error instanceof Problem && error.status === 401)
			return null;
		throw error;
	}
}

/**
 * The user of an API token.
 * @param {string} token
 */
export function userOf(token) {
	return get('/auth/info', { token });
}

/**
 * Exchanges an API token for a session, which the token outlives.
 * @param {string} token
 */
export async function signInByToken(token) {
	await post('/auth/session', {}, { token });
	tabs.postMessage('began');
}

/**
 * Calls `handler` when a session has begun in another tab.
 * @param {() => void} handler
 */
export function onSignIn(handler) {
	tabs.addEventListener('message', handler);
	return () => tabs.removeEventListener('message', handler);
}

/**
 * The name of the Git server by which a user can sign in; '' if it is not known, null
 * if a user cannot.
 */
export async function gitServerName() {
	try {
		const { headers } = await request('HEAD', '/auth/url', { quiet: true });
		return headers.get('X-Git-Server') ?? '';
	} catch (error) {
		// When too many sign-ins begin, one of the next can.
		return error instanceof Problem && error.status === 429 ? '' : null;
	}
}

/**
 * Signs in by a token that is meant for one sign-in: another token with the same
 * expiry, which only this function knows, takes its place.
 * @param {string} id
 * @param {string} token
 * @param {boolean} replaces whether the browser has a session, which ends
 */
export async function signInOnce(id, token, replaces) {
	const own = await post('/auth/tokens', { name: t.signIn.tokenName(id) }, { token });
	if (replaces)
		await signOut();
	await signInByToken(own.token);
	await remove(`/auth/tokens/${id}`, { token: own.token });
}

/**
 * Goes to the Git server, which sends the browser back to the sign-in page.
 * @param {string} next the page to show after signing in
 */
export async function signInByGitServer(next) {
	const { url } = await get('/auth/url', { quiet: true });
	sessionStorage.setItem(NEXT, next);
	location.assign(url);
}

/**
 * Completes a sign-in by the Git server.
 * @param {URLSearchParams} query what the Git server appended to the address
 * @returns {Promise<string>} the page to show next
 */
export async function completeSignIn(query) {
	const iss = query.get('iss');
	await post('/auth/login', { code: query.get('code'), state: query.get('state'),
		...(iss === null ? {} : { iss }) }, { quiet: true });
	tabs.postMessage('began');
	const next = sessionStorage.getItem(NEXT) ?? '/';
	sessionStorage.removeItem(NEXT);
	return next;
}

/** Ends the session. */
export async function signOut() {
	await post('/auth/logout', undefined, { quiet: true });
}
