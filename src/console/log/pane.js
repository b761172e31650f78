// SPDX-License-Identifier: ISC
/**
 * A scrolled pane over rows that are far too many for a document. It holds the
 * rows in view and some beyond; the browser scrolls those. The height of the pane
 * is proportional to the bytes of the log up to a limit, since browsers clamp the
 * height of elements: rows keep their place while the user scrolls, and the
 * difference is settled when the pane rests.
 */
import { el } from '../lib/dom.js';

/** @typedef {import('./outline.js').Row} Row */
/** @typedef {import('./outline.js').Outline} Outline */
/** @typedef {{ row: Row, key: string, node: HTMLElement }} Shown */

const ROW_PX = 20;
const BEYOND = 40;
const MOST_PX = 8e6;
const PX_PER_BYTE = 0.25;
const REST_MS = 150;
const NEAR_END_PX = 4;
/** A view that follows leaves the end if it moves further: what comes and goes above it moves it, too. */
const AWAY_PX = 100;
const SPARE_PX = 16; // for a scroll bar below the rows

/** Keys by which the browser scrolls up. */
const UPWARD = new Set(['ArrowUp', 'PageUp', 'Home']);

/** @param {Row} row */
function keyOf({ start, heading }) {
	return `${heading ? 'h' : 'l'}${start}`;
}

export class Pane {
	/**
	 * @param {() => Outline} outline the rows as they are now
	 * @param {(row: Row) => HTMLElement} draw
	 * @param {() => void} moved called when the user has scrolled
	 */
	constructor(outline, draw, moved) {
		this.outline = outline;
		this.drawRow = draw;
		this.moved = moved;
		/** Whether the pane stays at the end as the log grows. */
		this.follows = true;
		/** @type {Shown[]} */
		this.shown = [];
		this.atStart = false;
		this.atEnd = false;
		/** Where the first row shown is. */
		this.top = 0;
		/** @type {{ offset: number, part: number } | null} a place to go to when its bytes are here */
		this.goal = null;
		this.rest = 0;
		/** Where the view was at its last move. */
		this.before = 0;
		this.list = el('div', { class: 'log-list' });
		this.space = el('div', { class: 'log-space' }, this.list);
		/** What stays at the top of the view. */
		this.banner = el('div', { class: 'log-banner' });
		this.element = el('div', { class: 'log-pane', tabindex: 0, role: 'region' }, this.banner, this.space);
		this.element.addEventListener('scroll', () => this.#scrolled(), { passive: true });
		this.element.addEventListener('wheel', ({ deltaY }) => deltaY < 0 && this.#leaveEnd(), { passive: true });
		this.element.addEventListener('keydown', ({ key }) => UPWARD.has(key) && this.#leaveEnd());
		let finger = 0;
		this.element.addEventListener('touchstart', ({ touches }) => {
			finger = touches[0].clientY;
		}, { passive: true });
		this.element.addEventListener('touchmove', ({ touches }) =>
			touches[0].clientY > finger && this.#leaveEnd(), { passive: true });
		/** The height that the rows were laid out for. */
		this.height = 0;
		this.resizes = new ResizeObserver(() => {
			this.height = this.element.clientHeight;
			this.update();
		});
		this.resizes.observe(this.element);
	}

	close() {
		this.resizes.disconnect();
		clearTimeout(this.rest);
	}

	// --- where things are

	/** The height that the whole log has, as far as bytes tell. */
	get #height() {
		return Math.min(MOST_PX, this.outline().length * PX_PER_BYTE);
	}

	/** @param {Shown} shown */
	#topOf({ node }) {
		return this.top + node.offsetTop;
	}

	/** The first row that the user sees. */
	get first() {
		return this.firstBelow(0);
	}

	/**
	 * The first row of which something is below a line of the view.
	 * @param {number} px how far the line is below the top of the view
	 */
	firstBelow(px) {
		const edge = this.element.scrollTop + px;
		return this.shown.find((one) => this.#topOf(one) + one.node.offsetHeight > edge) ?? null;
	}

	/** How far the view is from the end of the log, as far as that is laid out. */
	get #gap() {
		const { scrollTop, clientHeight, scrollHeight } = this.element;
		return this.atEnd ? scrollHeight - scrollTop - clientHeight : Infinity;
	}

	/** Whether enough rows lie beyond both edges of the view. */
	get #isCovered() {
		const { scrollTop, clientHeight } = this.element;
		const spare = BEYOND * ROW_PX / 2;
		return (this.atStart || this.top <= scrollTop - spare)
			&& (this.atEnd || this.top + this.list.offsetHeight >= scrollTop + clientHeight + spare);
	}

	// --- which rows are shown

	/**
	 * Rows from one to others in a direction, as far as their bytes are here.
	 * @param {Row} row not included
	 * @param {'next' | 'previous'} direction
	 * @param {number} most
	 * @returns {{ rows: Row[], ended: boolean }}
	 */
	#walk(row, direction, most) {
		const outline = this.outline();
		const rows = [];
		/** @type {Row | null | undefined} */
		let at = outline[direction](row);
		while (at && rows.length < most) {
			rows.push(at);
			at = outline[direction](at);
		}
		return { rows, ended: at === undefined };
	}

	/** @param {Row} anchor */
	#rowsAround(anchor) {
		const most = Math.ceil(this.element.clientHeight / ROW_PX) + BEYOND;
		const above = this.#walk(anchor, 'previous', most);
		const below = this.#walk(anchor, 'next', most);
		this.atStart = above.ended;
		this.atEnd = below.ended;
		return [...above.rows.reverse(), anchor, ...below.rows];
	}

	/**
	 * @param {Row[]} rows
	 * @param {boolean} again whether rows that are shown are drawn again
	 */
	#show(rows, again) {
		const focused = this.#focused();
		const old = new Map(again ? [] : this.shown.map((one) => [one.key, one.node]));
		this.shown = rows.map((row) => {
			const key = keyOf(row);
			return { row, key, node: old.get(key) ?? this.drawRow(row) };
		});
		const kept = new Set(this.shown.map(({ node }) => node));
		for (const node of [...this.list.children])
			if (!kept.has(/** @type {HTMLElement} */ (node)))
				node.remove();
		this.shown.forEach(({ node }, i) => {
			if (this.list.children[i] !== node)
				this.list.insertBefore(node, this.list.children[i] ?? null);
		});
		// What has the focus keeps it when its row is drawn again.
		if (focused !== null && focused.node !== document.activeElement)
			this.#controls(focused.key)[focused.at]?.focus({ preventScroll: true });
	}

	/** @param {string} key */
	#controls(key) {
		const row = this.shown.find((one) => one.key === key);
		return row === undefined ? [] :
			/** @type {HTMLElement[]} */ ([...row.node.querySelectorAll('a, button')]);
	}

	/** What has the focus: its row, and which of the row's controls it is. */
	#focused() {
		const node = document.activeElement;
		const row = this.shown.find((one) => one.node.contains(node));
		return row === undefined || node === null ? null :
			{ node, key: row.key, at: this.#controls(row.key).findIndex((one) => one === node) };
	}

	/**
	 * Shows the rows around one whose top is at `y` of the whole pane.
	 * @param {Row} anchor
	 * @param {number} y
	 * @param {boolean} again
	 */
	#layOut(anchor, y, again) {
		this.goal = null;
		this.#show(this.#rowsAround(anchor), again);
		const shown = this.shown.find(({ key }) => key === keyOf(anchor));
		this.#place(y - (shown?.node.offsetTop ?? 0));
	}

	/**
	 * Puts the rows at `y`, or where they must be at the start of the log.
	 * @param {number} y
	 */
	#place(y) {
		const top = this.atStart ? 0 : y < 0 ? this.#ideal(this.shown[0].row) : y;
		this.#moveTo(top);
		this.element.scrollTop += top - y;
	}

	/** @param {number} top */
	#moveTo(top) {
		const bottom = top + this.list.offsetHeight;
		const total = this.atEnd ? bottom : Math.max(this.#height, bottom + this.element.clientHeight);
		this.top = top;
		// A log that is shorter than the window needs no more height than its rows.
		this.element.style.setProperty('--content', this.atStart && this.atEnd ? `${total + SPARE_PX}px` : '100vh');
		this.space.style.height = `${total}px`;
		this.list.style.transform = `translateY(${top}px)`;
	}

	/**
	 * Where a row belongs in a pane that is proportional to the log.
	 * @param {Row} row
	 */
	#ideal(row) {
		const outline = this.outline();
		return outline.positionOf(row.start) / Math.max(1, outline.length) * this.#height;
	}

	// --- what moves

	/** The user scrolls up: before the view has moved, more of the log could pull it back. */
	#leaveEnd() {
		if (this.element.scrollTop > 0)
			this.follows = false;
	}

	#scrolled() {
		const { scrollTop, clientHeight } = this.element;
		const isUpward = scrollTop < this.before;
		this.before = scrollTop;
		// What is shown above the pane can make it smaller: then the user has not moved.
		if (clientHeight === this.height)
			this.follows = this.follows ? this.#gap <= AWAY_PX : !isUpward && this.#gap <= NEAR_END_PX;
		if (!this.#isCovered)
			this.#cover();
		clearTimeout(this.rest);
		this.rest = setTimeout(() => this.#settle(), REST_MS);
		this.moved();
	}

	/** Shows the rows that the user has scrolled to. */
	#cover() {
		const { scrollTop, clientHeight, scrollHeight } = this.element;
		const first = this.first;
		if (first !== null && this.#topOf(first) < scrollTop + clientHeight) {
			this.#layOut(first.row, this.#topOf(first), false);
			return;
		}
		const outline = this.outline();
		this.show(outline.offsetOf(scrollTop / scrollHeight * outline.length), 0);
	}

	/** Moves the rows and the view together to where they belong. */
	#settle() {
		if (this.atStart || this.atEnd || this.shown.length === 0)
			return;
		const move = this.#ideal(this.shown[0].row) - this.top;
		if (Math.abs(move) < this.element.clientHeight)
			return;
		this.#moveTo(this.top + move);
		this.element.scrollTop += move;
	}

	/**
	 * Shows the row of an offset at a share of the height of the view.
	 * @param {number} offset
	 * @param {number} part 0: at the top, 1: at the bottom
	 */
	show(offset, part) {
		const row = this.outline().rowAt(offset);
		this.follows = false;
		if (!row) {
			this.goal = { offset, part };
			return;
		}
		this.#layOut(row, this.#ideal(row), false);
		const shown = this.shown.find(({ key }) => key === keyOf(row));
		if (shown !== undefined)
			this.element.scrollTop = this.#topOf(shown) - part * (this.element.clientHeight - ROW_PX);
	}

	toStart() {
		this.show(0, 0);
	}

	toEnd() {
		const row = this.outline().last();
		this.follows = true;
		if (!row)
			return;
		this.#layOut(row, Math.max(this.#height, ROW_PX) - ROW_PX, true);
		this.element.scrollTop = this.element.scrollHeight;
	}

	/** @param {number} px */
	scrollBy(px) {
		if (px < 0)
			this.#leaveEnd();
		this.element.scrollTop += px;
	}

	/** Draws again after a change of the log or of how it is shown. */
	update() {
		if (this.follows) {
			this.toEnd();
			return;
		}
		if (this.goal !== null) {
			this.show(this.goal.offset, this.goal.part);
			return;
		}
		const first = this.first;
		const row = first && this.outline().again(first.row);
		if (first && row)
			this.#layOut(row, this.#topOf(first), true);
	}
}
