// SPDX-License-Identifier: ISC
/** The viewer of a deployment's log: the pane, its toolbar, search and keys. */
import { PLAIN } from './ansi.js';
import { Finder } from './finder.js';
import { Outline, endOf, partsOf } from './outline.js';
import { Pane } from './pane.js';
import { headingRow, lineRow, stepBanner } from './rows.js';
import * as settings from './settings.js';
import { LogSource } from './source.js';
import { clock, elapsed, places, timeAt } from './times.js';
import { toolbar } from './toolbar.js';
import { draw, el } from '../lib/dom.js';
import { t } from '../texts.js';

/**
 * @typedef {import('./outline.js').Step} Step
 * @typedef {import('./outline.js').Row} Row
 * @typedef {object} Deployment
 * @property {number} id
 * @property {string} status
 * @property {string | null} startedAt
 * @property {Step[]} steps
 * @typedef {{ start: number, end: number }} Range
 */

const OPEN = new Set(['running', 'failed', 'interrupted', 'canceled']);
const LINE_PX = 20;

/** @returns {Range | null} the range that the address names */
function rangeOfAddress() {
	const match = /^#L(\d+)(?:-(\d+))?$/.exec(location.hash);
	return match && { start: Number(match[1]), end: Number(match[2] ?? Number(match[1]) + 1) };
}

/** @param {Step[]} steps */
function lastStarted(steps) {
	return steps.filter(({ startedAt }) => startedAt !== null).at(-1);
}

export class LogViewer {
	/**
	 * @param {Deployment} deployment
	 * @param {AbortSignal} signal ends it
	 */
	constructor(deployment, signal) {
		this.deployment = deployment;
		this.signal = signal;
		this.state = {
			...settings.load(),
			/** @type {Record<number, boolean>} the steps that the user opened or closed */
			open: {},
			/** @type {Range | null} */
			picked: rangeOfAddress(),
			/** New lines below the view. */
			unseen: 0,
			help: false,
		};
		/** @type {import('./times.js').Place[]} */
		this.places = [];
		this.address = `/api/deployments/${deployment.id}/log`;
		/** @type {LogSource} */
		this.source = new LogSource(this.address, signal, ({ lines }) => this.#grown(lines));
		/** @type {Pane} */
		this.pane = new Pane(() => this.outline, (row) => this.#row(row), () => this.#moved());
		/** @type {Finder} */
		this.finder = new Finder(deployment.id, signal, {
			changed: () => this.#drawAll(),
			found: (offset) => this.#showHit(offset),
			from: () => this.pane.first?.row.start ?? 0,
			input: () => this.bar.querySelector('input'),
		});
		this.bar = el('div', { class: 'log-bar' });
		this.more = el('div', { class: 'log-more' });
		this.pane.element.setAttribute('aria-label', t.log.label);
		this.element = el('section', { class: 'log', 'aria-label': t.log.title },
			this.bar, this.pane.element, this.more);
		this.outline = this.#newOutline();
		this.#listen();
		this.#open();
	}

	async #open() {
		await this.source.open();
		this.#land();
		this.#loadPlaces();
		await this.source.follow();
	}

	/** Fetches the times of the log, if they are shown; it has more when it grows. */
	async #loadPlaces() {
		if (this.state.times === 'off')
			return;
		try {
			this.places = await places(this.deployment.id, this.signal);
			this.#drawAll();
		} catch {
			// the log is shown without times, and the next change of the deployment tries again
		}
	}

	/** Shows first what the user looks for: the range of the address, or the failed step. */
	#land() {
		const failed = this.deployment.steps.find(({ status }) => status === 'failed');
		const { picked } = this.state;
		if (picked !== null)
			this.#reveal(picked.start, 0.3);
		else if (failed !== undefined && endOf(failed, this.source.size) > 0)
			this.#reveal(endOf(failed, this.source.size) - 1, 0.9);
		else
			this.pane.toEnd();
	}

	#listen() {
		const options = { signal: this.signal };
		addEventListener('hashchange', () => this.#followAddress(), options);
		document.addEventListener('keydown', (event) => this.#key(event), options);
		this.pane.element.addEventListener('click', (/** @type {MouseEvent} */ event) => this.#pick(event), options);
		this.signal.addEventListener('abort', () => this.pane.close());
	}

	// --- what is shown

	/** @param {Step} step */
	#isOpen(step) {
		return this.state.open[step.position]
			?? (OPEN.has(step.status) || step === lastStarted(this.deployment.steps));
	}

	#newOutline() {
		const parts = partsOf(this.deployment.steps, this.source.size, (step) => this.#isOpen(step));
		return new Outline(parts, (offset) => this.source.lineAt(offset));
	}

	/** @param {Row} row */
	#row(row) {
		const { step, open } = this.outline.parts[row.part];
		if (row.heading && step !== null)
			return headingRow(step, open, () => this.#toggle(step, !open));
		const line = this.source.lineAt(row.start);
		const { picked } = this.state;
		return lineRow({ text: line?.text(row.start, row.end) ?? '', style: line?.style ?? PLAIN,
			range: row, query: this.finder.query, time: this.#timeOf(row),
			picked: picked !== null && row.start < picked.end && row.end > picked.start,
			current: this.finder.isIn(row) });
	}

	/** @param {Row} row */
	#timeOf({ start }) {
		const at = this.state.times === 'off' ? null : timeAt(this.places, start);
		if (at === null)
			return '';
		return this.state.times === 'clock' ? clock(at) : elapsed(at, this.deployment.startedAt ?? at);
	}

	#drawAll() {
		this.outline = this.#newOutline();
		this.element.classList.toggle('wraps', this.state.wrap);
		this.pane.update();
		this.#drawBanner();
		this.#drawBar();
	}

	/** Names the step that the lines in view belong to when its heading is out of view. */
	#drawBanner() {
		const row = this.pane.first?.row;
		const step = row === undefined || row.heading ? null : this.outline.parts[row.part].step;
		draw(this.pane.banner, step !== null && stepBanner(step, () => this.#toggle(step, false)));
	}

	#drawBar() {
		draw(this.bar, toolbar({ ...this.state, address: this.address, id: this.deployment.id,
			lost: this.source.lost, finder: this.finder,
			change: (changes) => this.#change(changes) }));
		draw(this.more, this.#notice());
	}

	/** What is below the last row: a problem, or lines that came meanwhile. */
	#notice() {
		if (this.source.problem !== null)
			return el('p', { class: 'log-problem' }, this.source.problem.detail);
		if (this.source.complete && this.source.size === 0)
			return el('p', { class: 'log-problem' }, t.log.empty);
		return !this.pane.follows && this.state.unseen > 0
			&& el('button', { type: 'button', class: 'log-new', onclick: () => this.toEnd() },
				t.log.unseen(this.state.unseen));
	}

	// --- what changes

	/** @param {Partial<LogViewer['state']>} changes */
	#change(changes) {
		this.state = { ...this.state, ...changes };
		const { wrap, times } = this.state;
		settings.save({ wrap, times });
		if (changes.times !== undefined)
			this.#loadPlaces();
		this.#drawAll();
	}

	/** @param {Deployment} deployment as it is now */
	update(deployment) {
		if (deployment === this.deployment)
			return;
		this.deployment = deployment;
		this.#loadPlaces();
		this.#drawAll();
	}

	/** @param {number} lines */
	#grown(lines) {
		if (this.pane.follows)
			this.state.unseen = 0;
		else
			this.state.unseen += lines;
		this.#drawAll();
	}

	#moved() {
		this.#drawBanner();
		if (!this.pane.follows || this.state.unseen === 0)
			return;
		this.state.unseen = 0;
		this.#drawBar();
	}

	toEnd() {
		this.pane.toEnd();
		this.#moved();
	}

	/**
	 * @param {Step} step
	 * @param {boolean} open
	 */
	#toggle(step, open) {
		this.pane.follows = false;
		this.#change({ open: { ...this.state.open, [step.position]: open } });
	}

	/**
	 * Shows an offset, for which a closed step opens.
	 * @param {number} offset
	 * @param {number} share of the height of the view
	 */
	#reveal(offset, share) {
		const { step, open } = this.outline.parts[this.outline.partAt(offset)];
		this.pane.follows = false;
		if (step !== null && !open)
			this.state = { ...this.state, open: { ...this.state.open, [step.position]: true } };
		this.outline = this.#newOutline();
		this.pane.show(offset, share);
		this.#drawBar();
	}

	/** @param {number} offset */
	#showHit(offset) {
		this.#reveal(offset, 0.4);
		this.pane.update();
	}

	// --- links to lines

	#followAddress() {
		const picked = rangeOfAddress();
		this.#change({ picked });
		if (picked !== null)
			this.#reveal(picked.start, 0.3);
	}

	/** @param {MouseEvent} event */
	#pick(event) {
		const mark = event.target instanceof Element ? event.target.closest('.log-mark') : null;
		if (!(mark instanceof HTMLElement))
			return;
		event.preventDefault();
		const start = Number(mark.dataset.start);
		const end = Number(mark.dataset.end);
		const old = event.shiftKey ? this.state.picked : null;
		this.#setPicked({ start: Math.min(start, old?.start ?? start), end: Math.max(end, old?.end ?? end) });
	}

	/** @param {Range} picked */
	#setPicked(picked) {
		history.replaceState(history.state, '', `#L${picked.start}-${picked.end}`);
		this.#change({ picked });
	}

	/** Links to the first line in view. */
	#pickFirst() {
		const row = this.pane.firstBelow(this.pane.banner.scrollHeight)?.row;
		if (row !== undefined)
			this.#setPicked({ start: row.start, end: row.end });
	}

	// --- keys

	/** @param {KeyboardEvent} event */
	#key(event) {
		const isFind = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key === 'f';
		// A second Ctrl+F is the browser's own.
		if (isFind && !this.finder.hasFocus) {
			event.preventDefault();
			this.finder.focus();
			return;
		}
		if (event.ctrlKey || event.metaKey || event.altKey
		    || (event.target instanceof Element && event.target.matches('input, select, textarea')))
			return;
		const action = this.#actions()[event.key];
		if (action === undefined)
			return;
		event.preventDefault();
		action();
	}

	/** @returns {Record<string, () => void>} */
	#actions() {
		return {
			j: () => this.pane.scrollBy(3 * LINE_PX),
			k: () => this.pane.scrollBy(-3 * LINE_PX),
			g: () => this.pane.toStart(),
			G: () => this.toEnd(),
			n: () => this.finder.step(1),
			N: () => this.finder.step(-1),
			l: () => this.#pickFirst(),
			'/': () => this.finder.focus(),
			'?': () => this.#change({ help: !this.state.help }),
		};
	}
}
