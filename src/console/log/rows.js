// SPDX-License-Identifier: ISC
/** The elements of rows. Whatever a log contains becomes text, never markup. */
import { plain, spansOf } from './ansi.js';
import { css, indexed, readable } from './color.js';
import { el } from '../lib/dom.js';
import { icon } from '../lib/status.js';
import { duration, seconds } from '../lib/time.js';
import { t } from '../texts.js';

/**
 * @typedef {import('./ansi.js').Span} Span
 * @typedef {import('./ansi.js').Style} Style
 * @typedef {import('./outline.js').Step} Step
 * @typedef {{ from: number, to: number, kind: 'address' | 'hit' }} Mark part of a line
 */

const ADDRESS = /\bhttps?:\/\/[^\s<>"'`\x00-\x1f]+/g;

/**
 * The address without the punctuation of the sentence that it ends.
 * @param {string} found
 */
function withoutEnd(found) {
	const bare = found.replace(/[.,;:!?]+$/, '');
	return bare.endsWith(')') && !bare.includes('(') ? bare.slice(0, -1) : bare;
}

/**
 * @param {string} text
 * @returns {Mark[]}
 */
export function addresses(text) {
	return [...text.matchAll(ADDRESS)].map((match) =>
		({ from: match.index, to: match.index + withoutEnd(match[0]).length, kind: 'address' }));
}

/**
 * @param {string} text
 * @param {string} query in lower case; '' finds nothing
 * @returns {Mark[]}
 */
export function hits(text, query) {
	/** @type {Mark[]} */
	const marks = [];
	const lower = text.toLowerCase();
	for (let at = query === '' ? -1 : lower.indexOf(query); at >= 0; at = lower.indexOf(query, at + query.length))
		marks.push({ from: at, to: at + query.length, kind: 'hit' });
	return marks;
}

/**
 * The parts of the spans that lie between two columns.
 * @param {Span[]} spans
 * @param {number} from
 * @param {number} to
 * @returns {Span[]}
 */
function slice(spans, from, to) {
	const parts = [];
	let at = 0;
	for (const { text, style } of spans) {
		const part = text.slice(Math.max(0, from - at), Math.max(0, to - at));
		if (part !== '')
			parts.push({ text: part, style });
		at += text.length;
	}
	return parts;
}

/**
 * @param {HTMLElement} node
 * @param {'fg' | 'bg'} ground
 * @param {import('./ansi.js').Color} color
 * @param {boolean} asIs whether its contrast is left alone
 */
function paint(node, ground, color, asIs) {
	if (color === null)
		return;
	if (typeof color === 'number' && color < 16) {
		node.classList.add(`${ground}${color}`);
		return;
	}
	const rgb = typeof color === 'number' ? indexed(color) : color;
	node.style[ground === 'fg' ? 'color' : 'backgroundColor'] = css(asIs ? rgb : readable(rgb));
}

/** @param {Span} span */
function spanNode({ text, style }) {
	const names = /** @type {const} */ (['bold', 'faint', 'italic', 'underline', 'strike', 'inverse'])
		.filter((name) => style[name]);
	if (names.length === 0 && style.fg === null && style.bg === null)
		return document.createTextNode(text);
	const node = el('span', { class: names.join(' ') }, text);
	paint(node, 'fg', style.fg, style.bg !== null || style.inverse);
	paint(node, 'bg', style.bg, true);
	return node;
}

/**
 * @param {Span[]} spans
 * @param {Mark[]} marks
 * @param {number} from
 * @param {number} to
 * @returns {Node[]}
 */
function nodes(spans, marks, from, to) {
	const out = [];
	let at = from;
	for (const mark of marks.filter((one) => one.from >= from && one.to <= to)) {
		out.push(...slice(spans, at, mark.from).map(spanNode),
			el('mark', null, slice(spans, mark.from, mark.to).map(spanNode)));
		at = mark.to;
	}
	return [...out, ...slice(spans, at, to).map(spanNode)];
}

/**
 * @param {string} address
 * @param {Node[]} children
 */
function link(address, children) {
	return el('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, children);
}

/**
 * What a line shows: text in colors, addresses as links, hits marked.
 * @param {Span[]} spans
 * @param {string} query in lower case
 * @returns {Node[]}
 */
export function lineNodes(spans, query) {
	const text = plain(spans);
	const found = hits(text, query);
	const out = [];
	let at = 0;
	for (const { from, to } of addresses(text)) {
		out.push(...nodes(spans, found, at, from), link(text.slice(from, to), nodes(spans, found, from, to)));
		at = to;
	}
	return [...out, ...nodes(spans, found, at, text.length)];
}

/**
 * @typedef {object} LineView
 * @property {string} text
 * @property {Style} style
 * @property {{ start: number, end: number }} range
 * @property {string} query
 * @property {string} time '' shows none
 * @property {boolean} picked
 * @property {boolean} current whether the search is here
 */

/** @param {LineView} view */
export function lineRow({ text, style, range, query, time, picked, current }) {
	const { start, end } = range;
	return el('div', { class: `log-row${picked ? ' picked' : ''}${current ? ' current' : ''}` },
		el('a', { class: 'log-mark', href: `#L${start}-${end}`, 'data-start': start, 'data-end': end,
			tabindex: -1, 'aria-label': t.log.link }),
		time !== '' && el('span', { class: 'log-time', 'data-time': time }),
		el('span', { class: 'log-text' }, lineNodes(spansOf(text, style), query)));
}

/** @param {Step} step */
function stepTime({ startedAt, finishedAt }) {
	return startedAt === null ? '' : duration(seconds(startedAt, finishedAt));
}

/**
 * @param {Step} step
 * @param {boolean} open
 * @param {() => void} toggle
 */
export function headingRow(step, open, toggle) {
	return el('div', { class: 'log-row log-step' },
		el('button', { type: 'button', 'aria-expanded': String(open), onclick: toggle },
			el('span', { class: 'log-fold', 'aria-hidden': 'true' }), icon(step.status),
			el('span', { class: 'log-step-name' }, step.name),
			el('span', { class: `log-step-state ${step.status}` }, t.status[step.status] ?? step.status),
			el('span', { class: 'log-step-time' }, stepTime(step))));
}

/**
 * The heading of a step above its lines, for those who see the log: the row with the
 * heading is further up.
 * @param {Step} step
 * @param {() => void} fold
 */
export function stepBanner(step, fold) {
	return el('button', { type: 'button', class: 'log-step-banner', tabindex: -1, 'aria-hidden': 'true', onclick: fold },
		el('span', { class: 'log-fold' }), icon(step.status), el('span', { class: 'log-step-title' }, step.name));
}
