// SPDX-License-Identifier: ISC
/** Dialogs over the page: a form, or a question before something is lost. */
import { el } from './dom.js';
import { form } from './form.js';
import { t } from '../texts.js';

/**
 * @param {string} title
 * @param {...import('./dom.js').Child} children
 */
function open(title, ...children) {
	const dialog = el('dialog', { 'aria-labelledby': 'dialog-title', onclose: () => dialog.remove() },
		el('h2', { id: 'dialog-title' }, title), children);
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/**
 * @param {string} title
 * @param {(close: () => void) => import('./form.js').Spec} describe
 */
export function openDialog(title, describe) {
	const dialog = open(title, form(describe(() => dialog.close())));
}

/**
 * Asks before something is deleted; resolves to whether the user agrees.
 * @param {string} title the question
 * @param {string} text what will be lost
 * @param {string} label of the button that agrees
 * @returns {Promise<boolean>}
 */
export function confirmLoss(title, text, label) {
	return new Promise((resolve) => {
		let agreed = false;
		const close = (/** @type {boolean} */ answer) => {
			agreed = answer;
			dialog.close();
		};
		const dialog = open(title, el('p', null, text), el('div', { class: 'actions' },
			el('button', { class: 'danger', onclick: () => close(true) }, label),
			el('button', { onclick: () => close(false) }, t.cancel)));
		dialog.addEventListener('close', () => resolve(agreed));
	});
}
