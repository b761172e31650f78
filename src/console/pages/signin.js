// SPDX-License-Identifier: ISC
/**
 * Sign-in by API token or by the Git server, whose redirect address is this page.
 */
import { Problem } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { hrefWithin, replace } from '../lib/router.js';
import { completeSignIn, gitServerName, signInByGitServer, signInByToken } from '../lib/session.js';
import { mark } from '../lib/status.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/page.js').Context} Context */

/**
 * The ways to sign in.
 * @param {() => void} done called after signing in
 * @param {string} next the page to return to from the Git server
 */
export function ways(done, next) {
	const go = el('button', { class: 'primary wide', type: 'button', onclick: () =>
		signInByGitServer(next).catch((error) => toast(error.message, 'bad')) });
	const git = el('div', { class: 'ways', hidden: true }, go,
		el('p', { class: 'or' }, t.signIn.or));
	const token = form({ id: 'sign-in', label: t.signIn.token, submit: t.signIn.submit, tone: 'wide',
		fields: [{ name: 'token', label: t.signIn.token, type: 'password', required: true,
			hint: t.signIn.tokenHint, props: { autocomplete: 'current-password' } }],
		send: async (values) => {
			await signInByToken(values.token.trim());
			done();
		} });
	gitServerName().then((name) => {
		git.hidden = name === null;
		go.textContent = t.signIn.git(name ?? '');
		// The only way is the main one.
		token.querySelector('button')?.classList.toggle('primary', name === null);
	});
	return el('div', { class: 'ways' }, git, token);
}

/** @param {Context} context */
async function complete(context) {
	try {
		const next = await completeSignIn(context.query);
		location.replace(hrefWithin(next));
	} catch (error) {
		replace('/sign-in');
		toast(error instanceof Problem ? error.detail : String(error), 'bad');
	}
}

/** @param {Context} context */
function start(context) {
	const next = context.query.get('next') ?? '/';
	if (context.query.has('code')) {
		complete(context);
		return el('p', { role: 'status' }, t.signIn.completing);
	}
	if (context.query.has('error'))
		toast(context.query.get('error_description') ?? t.signIn.denied, 'bad');
	return ways(() => location.replace(hrefWithin(next)), next);
}

/** @type {import('../lib/page.js').Page} */
export const signIn = {
	path: '/sign-in',
	bare: true,
	title: () => t.signIn.title,
	view: (_, context) => el('section', { class: 'sign-in' },
		mark(),
		el('h1', { tabindex: -1 }, t.signIn.title),
		el('p', { class: 'lead' }, t.signIn.lead),
		context.keep('ways', () => start(context))),
};
