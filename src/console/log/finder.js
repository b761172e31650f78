// SPDX-License-Identifier: ISC
/** Searching: the query, its hits, and which of them is shown. */
import { search } from './search.js';
import { Problem } from '../lib/api.js';
import { toast } from '../lib/toast.js';

const TYPING_MS = 200;

/**
 * @typedef {object} View what a search can ask of the viewer, and tell it
 * @property {() => void} changed
 * @property {(offset: number) => void} found called for the hit to show
 * @property {() => number} from the offset where the view begins
 * @property {() => HTMLInputElement | null} input where the user types the query
 */

export class Finder {
	/**
	 * @param {number} id of the deployment
	 * @param {AbortSignal} signal
	 * @param {View} view
	 */
	constructor(id, signal, view) {
		this.id = id;
		this.signal = signal;
		this.view = view;
		this.query = '';
		/** @type {import('./search.js').Hit[]} */
		this.hits = [];
		this.index = -1;
		this.busy = false;
		/** Whether there are more hits than were fetched. */
		this.hasMore = false;
		this.timer = 0;
		this.running = new AbortController();
	}

	/**
	 * Whether the hit that is shown is in a range of bytes.
	 * @param {{ start: number, end: number }} range
	 */
	isIn({ start, end }) {
		const hit = this.hits[this.index];
		return hit !== undefined && start <= hit.offset && hit.offset < end;
	}

	get hasFocus() {
		const input = this.view.input();
		return input !== null && document.activeElement === input;
	}

	focus() {
		const input = this.view.input();
		input?.focus();
		input?.select();
	}

	/** @param {string} text */
	type(text) {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.#search(text), TYPING_MS);
	}

	/** @param {string} text */
	async #search(text) {
		this.running.abort();
		this.running = new AbortController();
		this.query = text.toLowerCase();
		this.hits = [];
		this.index = -1;
		this.hasMore = false;
		this.busy = this.query !== '';
		this.view.changed();
		if (this.busy)
			await this.#collect(AbortSignal.any([this.signal, this.running.signal]));
	}

	/** @param {AbortSignal} signal */
	async #collect(signal) {
		const from = this.view.from();
		try {
			const found = search(this.id, this.query, signal);
			let next = await found.next();
			for (; !next.done; next = await found.next()) {
				this.hits.push(...next.value);
				this.#showFirst(from);
			}
			this.hasMore = next.value;
		} catch (error) {
			if (!signal.aborted)
				toast(error instanceof Problem ? error.detail : String(error), 'bad');
		}
		if (signal.aborted)
			return;
		this.busy = false;
		if (this.index < 0)
			this.step(1);
		this.view.changed();
	}

	/**
	 * Shows the first hit from where the user looks.
	 * @param {number} from
	 */
	#showFirst(from) {
		if (this.index >= 0) {
			this.view.changed();
			return;
		}
		this.#goTo(this.hits.findIndex(({ offset }) => offset >= from));
	}

	/** @param {number} index */
	#goTo(index) {
		const hit = this.hits[index];
		if (hit === undefined)
			return;
		this.index = index;
		this.view.found(hit.offset);
		this.view.changed();
	}

	/** @param {1 | -1} by */
	step(by) {
		const n = this.hits.length;
		if (n > 0)
			this.#goTo((Math.max(this.index, by < 0 ? 0 : -1) + by + n) % n);
	}
}
