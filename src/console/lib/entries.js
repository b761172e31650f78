// SPDX-License-Identifier: ISC
/**
 * A field of a form that edits a list of objects: one entry for each, to which the
 * user adds, which the user moves and removes. The form sees the list as JSON in a
 * hidden input, so drafts and faults work as with any other field.
 */
import { draw, el } from './dom.js';
import { t } from '../texts.js';

/** @typedef {Record<string, any>} Entry */
/**
 * @typedef {object} Column a member of an entry
 * @property {string} name of the member
 * @property {string} label
 * @property {'text' | 'password' | 'code' | 'select' | 'check'} [type]
 * @property {string} [hint]
 * @property {{ value: string, label: string }[]} [options]
 * @property {(entry: Entry) => boolean} [fits] whether entries like this have the member
 * @property {(value: any) => string} [show] the text of a value
 * @property {(text: string, old: any) => any} [read] the value of a text
 *
 * @typedef {object} Spec
 * @property {string} name of the field
 * @property {Column[]} columns
 * @property {Entry[]} entries
 * @property {Entry} blank a new entry
 * @property {(entry: Entry) => string} title
 * @property {string} add the label of the button that adds an entry
 */

/** @param {any} value */
const asText = (value) => value === null || value === undefined ? '' : String(value);

/**
 * What the user entered, as a value of the member.
 * @param {Column} column
 * @param {any} control
 * @param {any} old
 */
function valueOf({ type, read }, control, old) {
	if (type === 'check')
		return control.checked;
	return read === undefined ? control.value || null : read(control.value, old);
}

/**
 * @param {Column} column
 * @param {Entry} entry
 * @param {string} id
 * @param {(event: Event) => void} changed
 */
function control({ name, type, options, show = asText }, entry, id, changed) {
	const text = show(entry[name]);
	if (type === 'check')
		return el('input', { type: 'checkbox', id, checked: entry[name] === true, onchange: changed });
	if (type === 'select')
		return el('select', { id, onchange: changed }, (options ?? []).map(({ value, label }) =>
			el('option', { value, selected: value === text }, label)));
	if (type === 'code')
		return el('textarea', { id, class: 'code', rows: 3, spellcheck: 'false', 'aria-describedby': `${id}-hint`,
			oninput: changed }, text);
	return el('input', { id, type: type ?? 'text', value: text,
		autocomplete: type === 'password' ? 'new-password' : 'off', 'aria-describedby': `${id}-hint`, oninput: changed });
}

class Editor {
	/**
	 * @param {Spec} spec
	 * @param {string} id
	 * @param {string} describedBy
	 */
	constructor(spec, id, describedBy) {
		this.spec = spec;
		this.id = id;
		this.next = 0;
		this.entries = spec.entries.map((entry) => this.#keyed(entry));
		// A draft contains no secret.
		this.input = el('input', { type: 'hidden', name: spec.name,
			'data-private': spec.columns.some(({ type }) => type === 'password'),
			value: JSON.stringify(spec.entries), onchange: () => this.#restore() });
		this.list = el('ol', { class: 'entries' });
		this.node = el('div', { id, class: 'entries-field', role: 'group', 'aria-labelledby': `${id}-label`,
			'aria-describedby': describedBy }, this.input, this.list,
		el('button', { type: 'button', onclick: () => this.#add() }, spec.add));
		this.#draw();
	}

	/** @param {Entry} entry */
	#keyed(entry) {
		return { key: this.next++, entry: { ...entry } };
	}

	/** A draft was put into the hidden input. */
	#restore() {
		this.entries = JSON.parse(this.input.value).map((/** @type {Entry} */ entry) => this.#keyed(entry));
		this.#draw();
	}

	/** Stores the list where the form and its draft find it. */
	#store() {
		this.input.value = JSON.stringify(this.entries.map(({ entry }) => entry));
		this.input.dispatchEvent(new Event('input', { bubbles: true }));
		this.#draw();
	}

	#add() {
		const added = this.#keyed(this.spec.blank);
		this.entries.push(added);
		this.#store();
		/** @type {HTMLInputElement | null} */ (this.list.querySelector(`[data-key="${added.key}"] input`))?.select();
	}

	/**
	 * @param {number} at
	 * @param {number} to outside of the list: removes it
	 */
	#move(at, to) {
		const [moved] = this.entries.splice(at, 1);
		if (to >= 0)
			this.entries.splice(to, 0, moved);
		this.#store();
	}

	/**
	 * @param {Column} column
	 * @param {{ key: number, entry: Entry }} one
	 * @param {number} at
	 */
	#field(column, { key, entry }, at) {
		const id = `${this.id}-${key}-${column.name}`;
		const changed = (/** @type {Event} */ event) => {
			event.stopPropagation();
			entry[column.name] = valueOf(column, event.target, entry[column.name]);
			this.#store();
		};
		return el('div', { class: `field field-${column.type ?? 'text'}`, 'data-key': column.name,
			'data-pointer': `/${this.spec.name}/${at}/${column.name}` },
		el('label', { for: id }, column.label), control(column, entry, id, changed),
		el('p', { class: 'hint', id: `${id}-hint` }, column.hint), el('p', { class: 'fault', 'data-kept': 'fault' }));
	}

	/**
	 * @param {{ key: number, entry: Entry }} one
	 * @param {number} at
	 */
	#entry(one, at) {
		const title = this.spec.title(one.entry);
		const tool = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {number} */ to,
			/** @type {boolean} */ disabled) => el('button', { type: 'button', class: 'plain', disabled,
			'aria-label': label, onclick: () => this.#move(at, to) }, sign);
		return el('li', { class: 'entry', 'data-key': one.key },
			el('div', { class: 'head' }, el('strong', null, title), el('div', { class: 'actions' },
				tool('↑', t.moveUp(title), at - 1, at === 0),
				tool('↓', t.moveDown(title), at + 1, at === this.entries.length - 1),
				tool('×', t.removeOf(title), -1, false))),
			el('div', { class: 'columns' }, this.spec.columns.filter(({ fits }) => fits?.(one.entry) ?? true)
				.map((column) => this.#field(column, one, at))));
	}

	#draw() {
		draw(this.list, this.entries.map((one, at) => this.#entry(one, at)));
	}
}

/**
 * The control of a custom field.
 * @param {Spec} spec
 */
export function entriesControl(spec) {
	return (/** @type {string} */ id, /** @type {string} */ describedBy) => new Editor(spec, id, describedBy).node;
}
