// SPDX-License-Identifier: ISC
/**
 * Shows a page: fetches its sources, draws its view, and draws it again whenever
 * a source or the page's own state changes. Data flows one way: sources and
 * state -> view -> document.
 */
import { Problem } from './api.js';
import { draw, el } from './dom.js';
import { refresh, watch } from './live.js';
import { href } from './router.js';
import { toast } from './toast.js';
import { t } from '../texts.js';

/**
 * A page is one value of this type.
 * @typedef {object} Page
 * @property {string} path for example /projects/:id
 * @property {(context: Context) => Record<string, string>} [sources] paths of the
 *   API by name; the view gets what they return, kept current
 * @property {(data: any) => Record<string, string>} [more] further sources, whose paths
 *   depend on what the first ones return
 * @property {Record<string, any>} [state] the page's own state when it opens
 * @property {(data: any, context: Context) => string} title
 * @property {(data: any, context: Context) => import('./dom.js').Child} view
 * @property {(data: any) => boolean} [ticks] whether a time in it grows
 * @property {import('./session.js').Role} [role] that a user needs to see it
 * @property {boolean} [bare] shown without navigation, and without a session
 */

const TICK_MS = 1000;

/** What a page knows beside its data, and what it can do. */
export class Context {
	/**
	 * @param {import('./router.js').Place} place
	 * @param {Element} main
	 * @param {any} user the signed-in user
	 */
	constructor({ page, params, query }, main, user) {
		this.page = page;
		this.params = params;
		this.query = query;
		this.main = main;
		this.user = user;
		/** @type {Record<string, any>} */
		this.state = { ...page.state };
		/** @type {Record<string, any>} */
		this.data = {};
		/** @type {Problem | null} */
		this.problem = null;
		/** The names of the sources. @type {Set<string>} */
		this.names = new Set();
		/** Whether the page has been drawn with its data. */
		this.arrived = false;
		this.leaving = new AbortController();
		/** Aborts when the user leaves the page. */
		this.signal = this.leaving.signal;
	}

	/**
	 * Fetches the sources and draws.
	 * @param {{ announce: boolean }} options whether the heading gets the focus,
	 *   so that a screen reader reads it
	 */
	open({ announce }) {
		this.announced = !announce;
		this.#watch(this.page.sources?.(this) ?? {});
		const timer = setInterval(() => this.#tick(), TICK_MS);
		this.signal.addEventListener('abort', () => clearInterval(timer));
		this.draw();
	}

	/** @param {Record<string, string>} sources */
	#watch(sources) {
		for (const [name, path] of Object.entries(sources).filter(([name]) => !this.names.has(name))) {
			this.names.add(name);
			watch(path, (data) => this.#receive(name, data), (problem) => this.#fail(problem), this.signal);
		}
	}

	/**
	 * Whose role decides what the page offers: the role in its project, else the
	 * user's own.
	 * @returns {{ role: string }}
	 */
	get who() {
		return this.data.project ?? this.user;
	}

	/** Whether all sources have been read. */
	get isComplete() {
		return [...this.names].every((name) => name in this.data);
	}

	#tick() {
		if (document.visibilityState === 'visible' && this.isComplete && this.page.ticks?.(this.data))
			this.draw();
	}

	close() {
		this.leaving.abort();
	}

	/**
	 * @param {string} name
	 * @param {any} data
	 */
	#receive(name, data) {
		this.data = { ...this.data, [name]: data };
		this.problem = null;
		if (this.isComplete)
			this.#watch(this.page.more?.(this.data) ?? {});
		this.draw();
	}

	/** @param {Problem} problem */
	#fail(problem) {
		this.problem = problem;
		this.draw();
	}

	/**
	 * Changes the page's own state and draws.
	 * @param {Record<string, any>} changes
	 */
	set(changes) {
		this.state = { ...this.state, ...changes };
		this.draw();
	}

	draw() {
		if (this.signal.aborted)
			return;
		if (this.problem !== null) {
			draw(this.main, trouble(this.problem));
			document.title = t.title(t.trouble.title);
		} else if (this.isComplete) {
			draw(this.main, this.page.view(this.data, this));
			document.title = t.title(this.page.title(this.data, this));
			this.#announce();
		} else {
			draw(this.main, el('p', { class: 'loading', role: 'status' }, t.loading));
		}
	}

	#announce() {
		if (!this.arrived)
			this.main.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
		this.arrived = true;
		if (!this.announced)
			this.main.querySelector('h1')?.focus({ preventScroll: true });
		this.announced = true;
	}

	/**
	 * An element with a life of its own: made once, not drawn again while the view
	 * has it.
	 * @param {string} name
	 * @param {() => Node} make
	 */
	keep(name, make) {
		const frame = el('div', { 'data-kept': name, 'data-key': name });
		if (this.main.querySelector(`[data-kept="${CSS.escape(name)}"]`) === null)
			frame.append(make());
		return frame;
	}

	/**
	 * Runs a change; an error is shown, and afterwards all data are fetched again.
	 * @param {() => Promise<any>} change
	 * @returns {Promise<boolean>} whether it succeeded
	 */
	async run(change) {
		if (this.state.busy)
			return false;
		this.set({ busy: true });
		try {
			await change();
			return true;
		} catch (error) {
			toast(error instanceof Problem ? error.detail : String(error), 'bad');
			return false;
		} finally {
			this.set({ busy: false });
			refresh();
		}
	}
}

/**
 * A problem in place of a page.
 * @param {Problem} problem
 */
export function trouble(problem) {
	return el('section', { class: 'trouble' },
		el('h1', { tabindex: -1 }, t.trouble.titleOf(problem.code)),
		el('p', null, problem.detail),
		problem.requestId !== '' && el('p', { class: 'faint' }, t.trouble.request(problem.requestId)),
		el('p', null, el('a', { class: 'button', href: href('/') }, t.trouble.home)));
}
