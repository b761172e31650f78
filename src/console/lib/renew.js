// SPDX-License-Identifier: ISC
/** Signs a user in again over the page when the session has ended. */
import { el } from './dom.js';
import { here } from './router.js';
import { currentUser, onSignIn } from './session.js';
import { ways } from '../pages/signin.js';
import { t } from '../texts.js';

/** @type {Promise<boolean> | null} */
let pending = null;

/**
 * @param {number} id of the user whose session has ended
 * @param {(again: boolean) => void} resolve
 */
function ask(id, resolve) {
	const dialog = el('dialog', { class: 'renew', 'aria-labelledby': 'renew-title',
		onclose: () => dialog.showModal() },
	el('h2', { id: 'renew-title' }, t.signIn.again), el('p', null, t.signIn.againText), ways(done, here()));
	const ignore = onSignIn(done);
	async function done() {
		const user = await currentUser();
		if (user?.id !== id)
			location.reload();
		ignore();
		dialog.onclose = null;
		dialog.close();
		dialog.remove();
		resolve(true);
	}
	document.body.append(dialog);
	dialog.showModal();
}

/**
 * Resolves to true when the same user has signed in again.
 * @param {number} id
 */
export function renew(id) {
	pending ??= new Promise((resolve) => ask(id, resolve));
	return pending.finally(() => {
		pending = null;
	});
}
