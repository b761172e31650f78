// SPDX-License-Identifier: ISC
/**
 * Pages that list objects as cards, each of which is edited in place: state.open is
 * the id of the object that is being edited, or 'new'.
 */
import { post, put, remove, saver } from './api.js';
import { confirmLoss } from './dialog.js';
import { el } from './dom.js';
import { form } from './form.js';
import { refresh } from './live.js';
import { may } from './session.js';
import { toast } from './toast.js';
import { t } from '../texts.js';

/**
 * @typedef {import('./page.js').Context} Context
 * @typedef {{ id: number }} Item
 *
 * @typedef {object} Kind what is the same for all objects of a page
 * @property {string} id of the kind, for the ids of forms: schedule
 * @property {string} path in the API: /schedules
 * @property {string} add the label that adds one
 * @property {string} none what a page without any says
 * @property {(item: any) => string} name
 * @property {(name: string) => string} deleteTitle
 * @property {string} deleteText
 */

/**
 * A line of a card.
 * @param {string} label
 * @param {import('./dom.js').Child} value
 */
export function fact(label, value) {
	return [el('dt', null, label), el('dd', null, value)];
}

/**
 * The form that adds or changes an object.
 * @param {Kind} kind
 * @param {Item | null} item null: a new one
 * @param {object} spec
 * @param {import('./form.js').Field[]} spec.fields
 * @param {(values: Record<string, string>) => any} spec.body
 * @param {Context} spec.context
 * @param {(saved: any) => void} [spec.saved] gets what the service returned
 */
export function editor(kind, item, { fields, body, context, saved }) {
	const save = item === null ? (/** @type {any} */ sent) => post(kind.path, sent) : saver(`${kind.path}/${item.id}`, item);
	return form({ id: item === null ? `new-${kind.id}` : `${kind.id}-${item.id}`,
		label: item === null ? kind.add : kind.name(item), submit: item === null ? kind.add : t.save, fields,
		cancel: () => context.set({ open: null }),
		send: async (values) => {
			const answer = await save(body(values));
			toast(t.saved);
			context.set({ open: null });
			saved?.(answer);
			refresh();
		} });
}

/**
 * The button that pauses or resumes an object.
 * @param {Kind} kind
 * @param {Item & { active: boolean }} item
 * @param {Context} context
 */
export function pauseButton(kind, item, context) {
	const name = kind.name(item);
	return el('button', { 'aria-label': item.active ? t.pauseOf(name) : t.resumeOf(name),
		onclick: () => context.run(() => put(`${kind.path}/${item.id}`, { active: !item.active })) },
	item.active ? t.pause : t.resume);
}

/**
 * @param {Kind} kind
 * @param {Item} item
 * @param {Context} context
 */
async function drop(kind, item, context) {
	if (await confirmLoss(kind.deleteTitle(kind.name(item)), kind.deleteText, t.delete))
		context.run(() => remove(`${kind.path}/${item.id}`));
}

/**
 * The buttons of a card.
 * @param {Kind} kind
 * @param {Item} item
 * @param {Context} context
 * @param {...import('./dom.js').Child} more before those that every kind has
 */
export function tools(kind, item, context, ...more) {
	const name = kind.name(item);
	return el('div', { class: 'actions' }, more,
		el('button', { onclick: () => context.set({ open: item.id }), 'aria-label': t.editOf(name) }, t.edit),
		el('button', { class: 'plain', onclick: () => drop(kind, item, context), 'aria-label': t.deleteOf(name) },
			t.delete));
}

/**
 * The cards, and below them what adds one.
 * @template {Item} T
 * @param {Kind} kind
 * @param {T[]} list
 * @param {object} spec
 * @param {Context} spec.context
 * @param {(item: T, isOpen: boolean) => import('./dom.js').Child} spec.card
 * @param {(item: T | null) => HTMLElement} spec.edit makes the form of one
 */
export function cards(kind, list, { context, card, edit }) {
	const { open } = context.state;
	const kept = (/** @type {T} */ item) => context.keep(`${kind.id}-${item.id}`, () => edit(item));
	const add = may(context.who, 'maintainer') && el('button', { class: list.length === 0 ? 'primary' : '',
		'data-key': 'add', onclick: () => context.set({ open: 'new' }) }, kind.add);
	if (open !== 'new' && list.length === 0)
		return el('div', { class: 'empty' }, el('p', null, kind.none), add);
	return [
		list.length > 0 && el('ul', { class: 'stack' }, list.map((item) => el('li', { class: 'card', 'data-key': item.id },
			card(item, open === item.id), open === item.id && kept(item)))),
		add && (open === 'new'
			? el('div', { class: 'card' }, el('h2', null, kind.add), context.keep(`new-${kind.id}`, () => edit(null)))
			: el('div', { class: 'actions' }, add)),
	];
}
