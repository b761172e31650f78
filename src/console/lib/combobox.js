// SPDX-License-Identifier: ISC
/**
 * An input with a list of suggestions that are searched while the user types. Until
 * then the list has all of them, whatever the input contains. What is typed counts, so
 * the user can enter what no suggestion offers. The keys are those of the pattern
 * "combobox" (WAI-ARIA): down, up, Enter, Escape.
 */
import { Problem } from './api.js';
import { draw, el } from './dom.js';
import { t } from '../texts.js';

/**
 * @typedef {{ value: string, label: string, detail?: import('./dom.js').Child }} Suggestion
 * @typedef {object} Spec
 * @property {string} name of the input
 * @property {string} [value]
 * @property {boolean} [required]
 * @property {boolean} [picks] whether a click opens the list, not the focus alone
 * @property {(text: string) => boolean} [searches] whether this text is searched
 * @property {(text: string, signal: AbortSignal) => Promise<{ list: Suggestion[], more: boolean }>} search
 * @property {(chosen: Suggestion) => void} [chosen]
 * @property {(value: string) => void} [changed] called when the user has typed or chosen
 */

const PAUSE_MS = 250; // after the last key

class Combobox {
	/**
	 * @param {Spec} spec
	 * @param {string} id
	 * @param {string} describedBy
	 */
	constructor(spec, id, describedBy) {
		this.spec = spec;
		this.id = id;
		/** @type {Suggestion[]} */
		this.list = [];
		this.active = -1;
		this.asked = new AbortController();
		/** Whether the input contains what the user searches. */
		this.typed = false;
		/** Whether the service can suggest anything. */
		this.works = true;
		this.timer = 0;
		this.input = el('input', { id, name: spec.name, value: spec.value ?? '', required: spec.required ?? false,
			role: 'combobox', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
			'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': `${id}-list`,
			'aria-describedby': describedBy, oninput: () => this.#later(),
			onfocus: () => !spec.picks && this.#ask(), onclick: () => spec.picks && this.popup.hidden && this.#ask(),
			onblur: () => this.#close(), onchange: () => spec.changed?.(this.input.value.trim()),
			onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) });
		this.popup = el('ul', { id: `${id}-list`, class: 'suggestions', role: 'listbox',
			'aria-labelledby': `${id}-label`, hidden: true });
		this.state = el('p', { class: 'hint', role: 'status' });
		this.node = el('div', { class: 'combobox' }, this.input,
			spec.picks && el('span', { class: 'caret', 'aria-hidden': 'true' }, '▾'), this.popup, this.state);
	}

	#later() {
		this.typed = true;
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.#ask(), PAUSE_MS);
	}

	/** Asks for suggestions; only the last question counts. */
	async #ask() {
		clearTimeout(this.timer);
		this.asked.abort();
		const text = this.typed ? this.input.value.trim() : '';
		if (!this.works || this.spec.searches?.(text) === false) {
			this.#show([], '');
			return;
		}
		const { signal } = this.asked = new AbortController();
		try {
			const { list, more } = await this.spec.search(text, signal);
			if (!signal.aborted)
				this.#show(list, list.length === 0 ? t.suggestions.none : more ? t.suggestions.more : '');
		} catch (error) {
			if (!signal.aborted)
				this.#fail(error);
		}
	}

	/** @param {unknown} error */
	#fail(error) {
		// Without a Git server that lists anything, this is an input like any other.
		this.works = !(error instanceof Problem && error.status === 503);
		this.#show([], this.works && error instanceof Error ? error.message : '');
	}

	/**
	 * @param {Suggestion[]} list
	 * @param {string} state
	 */
	#show(list, state) {
		const active = this.list[this.active]?.value;
		// The only suggestion is no help when it is what the input contains.
		this.list = this.typed && list.length === 1 && list[0].value === this.input.value.trim() ? [] : list;
		this.active = this.list.findIndex(({ value }) => value === active);
		this.state.textContent = state;
		this.popup.hidden = this.list.length === 0 || document.activeElement !== this.input;
		this.#draw();
	}

	#close() {
		this.asked.abort();
		clearTimeout(this.timer);
		this.typed = false;
		this.#show([], '');
	}

	#draw() {
		const id = (/** @type {number} */ i) => `${this.id}-option-${i}`;
		draw(this.popup, this.list.map(({ label, detail }, i) => el('li', { id: id(i), role: 'option',
			class: 'isolate', 'aria-selected': String(i === this.active),
			// the input keeps the focus
			onmousedown: (/** @type {Event} */ event) => event.preventDefault(),
			onclick: () => this.#choose(i) }, label,
		detail !== undefined && el('span', { class: 'faint' }, detail))));
		this.input.setAttribute('aria-expanded', String(!this.popup.hidden));
		if (this.active < 0) {
			this.input.removeAttribute('aria-activedescendant');
			return;
		}
		this.input.setAttribute('aria-activedescendant', id(this.active));
		this.popup.children[this.active].scrollIntoView({ block: 'nearest' });
	}

	/** @param {number} i */
	#choose(i) {
		const chosen = this.list[i];
		this.input.value = chosen.value;
		this.#close();
		this.input.dispatchEvent(new Event('change', { bubbles: true }));
		this.spec.chosen?.(chosen);
		// stores the draft
		this.input.form?.dispatchEvent(new Event('input'));
	}

	/** @param {number} by */
	#move(by) {
		if (this.popup.hidden) {
			this.#ask();
			return;
		}
		const n = this.list.length;
		this.active = this.active < 0 && by < 0 ? n - 1 : (this.active + by + n) % n;
		this.#draw();
	}

	/** @param {KeyboardEvent} event */
	#key(event) {
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp')
			this.#move(event.key === 'ArrowDown' ? 1 : -1);
		else if (event.key === 'Enter' && this.active >= 0)
			this.#choose(this.active);
		else if (event.key === 'Escape' && !this.popup.hidden)
			this.#close();
		else
			return;
		event.preventDefault();
	}
}

/**
 * The control of a custom field.
 * @param {Spec} spec
 */
export function combobox(spec) {
	return (/** @type {string} */ id, /** @type {string} */ describedBy) => new Combobox(spec, id, describedBy).node;
}
