// SPDX-License-Identifier: ISC
/**
 * The lines of a block of the log. Where a line begins depends on the block, the
 * byte before it and the first bytes after it, so that any part of a log of any
 * size can be read alone and always has the same lines.
 */
import { PLAIN, styleAfter } from './ansi.js';

export const BLOCK = 65536;
/** How far beyond its block a line is followed before it is cut there. */
export const REACH = 8192;
/** A longer line is shown in pieces. */
const PIECE = 8192;

const NEWLINE = 10;
const ESCAPE = 27;
const decoder = new TextDecoder();

/**
 * @typedef {import('./ansi.js').Style} Style
 * @typedef {{ start: number, end: number }} Range of bytes of the log
 */

/**
 * The bytes that decide about the lines of a block.
 * @param {number} index
 * @param {number} size of the log
 * @returns {Range}
 */
export function extent(index, size) {
	return { start: Math.max(0, index * BLOCK - 1), end: Math.min(size, (index + 1) * BLOCK + REACH) };
}

export class Block {
	/**
	 * @param {number} index
	 * @param {Uint8Array} bytes of its extent
	 */
	constructor(index, bytes) {
		this.index = index;
		this.bytes = bytes;
		this.from = extent(index, Infinity).start;
		this.start = index * BLOCK;
		this.end = Math.min(this.start + BLOCK, this.from + bytes.length);
		/** Where each line or piece begins; the last entry is the end of the last one. */
		this.starts = this.#findStarts();
		/** @type {Style[] | null} */
		this.styles = bytes.includes(ESCAPE) ? this.#findStyles() : null;
	}

	/** Whether the log can grow without a change to this block. */
	get isFinal() {
		return this.from + this.bytes.length >= this.start + BLOCK + REACH;
	}

	/**
	 * The offset behind the next newline; -1 if there is none before `limit`.
	 * @param {number} offset
	 * @param {number} limit
	 */
	#afterNewline(offset, limit) {
		const at = this.bytes.indexOf(NEWLINE, offset - this.from);
		return at < 0 || at + this.from >= limit ? -1 : at + this.from + 1;
	}

	#firstStart() {
		if (this.start === 0 || this.bytes[this.start - 1 - this.from] === NEWLINE)
			return this.start;
		const after = this.#afterNewline(this.start, this.start + REACH);
		return after < 0 ? this.start : after;
	}

	/** @param {number} start of a line */
	#lineEnd(start) {
		const after = this.#afterNewline(start, this.end + REACH);
		return after < 0 ? this.end : after;
	}

	#findStarts() {
		const starts = [];
		let at = this.#firstStart();
		while (at < this.end) {
			const end = this.#lineEnd(at);
			for (; at < end; at = Math.min(at + PIECE, end))
				starts.push(at);
		}
		starts.push(at);
		return starts;
	}

	#findStyles() {
		let style = PLAIN;
		return this.starts.slice(0, -1).map((start, i) => {
			const before = style;
			style = styleAfter(this.text(start, this.starts[i + 1]), style);
			return before;
		});
	}

	/**
	 * The index of the line that contains an offset; -1 if it began earlier.
	 * @param {number} offset
	 */
	lineAt(offset) {
		let low = 0;
		let high = this.starts.length - 1;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.starts[middle] <= offset)
				low = middle + 1;
			else
				high = middle;
		}
		return low - 1;
	}

	/** @param {number} i of a line */
	styleOf(i) {
		return this.styles?.[i] ?? PLAIN;
	}

	/**
	 * The text of some bytes, without the end of the line.
	 * @param {number} start
	 * @param {number} end
	 */
	text(start, end) {
		const text = decoder.decode(this.bytes.subarray(start - this.from, end - this.from));
		return text.replace(/\r?\n$/, '');
	}
}

/**
 * How many lines end in these bytes.
 * @param {Uint8Array} bytes
 */
export function countLines(bytes) {
	let n = 0;
	for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1))
		n++;
	return n;
}
