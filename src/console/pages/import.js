// SPDX-License-Identifier: ISC
/** A project from a document that an export returned, after a look at what changes. */
import { Problem, post } from '../lib/api.js';
import { changedMembers } from '../lib/difference.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import * as names from '../lib/names.js';
import { go } from '../lib/router.js';
import { icon } from '../lib/status.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').ImportResult} Result */
/** @typedef {import('../lib/page.js').Context} Context */

/** @param {string} text */
function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		throw new Problem({ status: 422, detail: '', errors: [{ pointer: '/document', detail: t.transfer.notJson }] });
	}
}

/**
 * A button that reads a file into the text of the document.
 * @param {HTMLFormElement} node
 */
function fileChooser(node) {
	const area = /** @type {HTMLTextAreaElement} */ (node.querySelector('textarea'));
	return el('div', { class: 'field' }, el('label', { for: 'import-file' }, t.transfer.file), el('input', {
		id: 'import-file', type: 'file', accept: '.json,application/json',
		onchange: async (/** @type {Event} */ event) => {
			const [file] = /** @type {HTMLInputElement} */ (event.target).files ?? [];
			if (file === undefined)
				return;
			area.value = await file.text();
			area.dispatchEvent(new Event('input', { bubbles: true }));
		} }));
}

/** @param {Context} context */
function documentForm(context) {
	const node = form({ id: 'import', label: t.transfer.importTitle, submit: t.transfer.look,
		fields: [{ name: 'document', label: t.transfer.document, type: 'code', required: true,
			hint: t.transfer.documentHint, props: { rows: 12 } }],
		send: async (values) => {
			const document = parsed(values.document);
			context.set({ document, result: await post('/projects/import', { document, dryRun: true }) });
		} });
	node.prepend(fileChooser(node));
	// What is shown is what would be applied.
	node.addEventListener('input', () => context.state.result !== null && context.set({ result: null }));
	return node;
}

/** @param {Result['items'][number]} item */
function row({ type, name, action, changes }) {
	return el('li', { 'data-key': `${type} ${name}` },
		el('span', { class: 'badge' }, t.transfer.actions[action]), ' ',
		el('strong', null, t.transfer.types[type] ?? type), ' ', el('span', { class: 'isolate' }, name),
		action === 'changed' && changedMembers(changes));
}

/** @param {Context} context */
async function apply(context) {
	const { document } = context.state;
	let id = 0;
	if (!await context.run(async () => ({ projectId: id } = await post('/projects/import', { document }))))
		return;
	await names.load();
	toast(t.transfer.done);
	go(`/projects/${id}`);
}

/** @param {Result} result @param {Context} context */
function difference({ items, missing }, context) {
	const changed = items.filter(({ action }) => action !== 'unchanged');
	return el('section', { class: 'card', 'aria-live': 'polite' }, el('h2', null, t.transfer.difference),
		el('p', { class: 'faint' }, t.transfer.count(changed.length, items.length - changed.length)),
		el('ul', { class: 'stack differences' }, changed.map(row)),
		missing.length > 0 && el('div', { class: 'notice pending' }, icon('pending'),
			el('p', null, t.transfer.missing, missing.map((pointer) => [' ', el('code', null, pointer)]))),
		changed.length > 0 && el('div', { class: 'actions' }, el('button', { class: 'primary', 'data-key': 'apply',
			disabled: context.state.busy === true, onclick: () => apply(context) }, t.transfer.apply)));
}

/** @type {import('../lib/page.js').Page} */
export const importProject = {
	path: '/projects/import',
	state: { document: null, result: null },
	title: () => t.transfer.importTitle,
	view: (_, context) => [
		el('h1', { tabindex: -1 }, t.transfer.importTitle),
		el('p', { class: 'lead' }, t.transfer.lead),
		el('div', { class: 'card' }, context.keep('form', () => documentForm(context))),
		context.state.result !== null && difference(context.state.result, context),
	],
};
