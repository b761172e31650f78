// SPDX-License-Identifier: ISC
/**
 * The log as a sequence of rows: a heading for each step, and below it the lines of
 * the step if it is open. Positions count the bytes of open parts only, so that the
 * scroll bar is proportional to what is shown.
 */

/**
 * @typedef {object} Step
 * @property {number} position
 * @property {string} name
 * @property {string} status
 * @property {number | null} exitCode
 * @property {number | null} signal
 * @property {string | null} startedAt
 * @property {string | null} finishedAt
 * @property {number | null} logOffset
 * @property {number | null} logLength
 *
 * @typedef {object} Part of the log: of a step, or between steps
 * @property {Step | null} step
 * @property {number} start
 * @property {number} end
 * @property {boolean} open
 * @property {number} position of its first byte among those of open parts
 *
 * @typedef {{ part: number, start: number, end: number, heading: boolean }} Row
 * @typedef {{ start: number, end: number }} Line
 */

/**
 * Where a step's output ends: a running step owns the end of the log.
 * @param {Step} step
 * @param {number} size
 */
export function endOf({ status, logOffset, logLength }, size) {
	return status === 'running' ? size : Math.min((logOffset ?? 0) + (logLength ?? 0), size);
}

const encoder = new TextEncoder();

/**
 * How many bytes the line has that announces a step, in front of its output.
 * @param {Step} step
 */
function announcement({ position, name }) {
	return encoder.encode(`==> step ${position + 1}: ${name}\n`).length;
}

/**
 * Where the part of a step begins: with the line that announces it, which its heading
 * makes superfluous while it is closed.
 * @param {Step} step
 * @param {number} at where the part before it ends
 */
function startOf(step, at) {
	const output = Math.max(at, step.logOffset ?? 0);
	const start = output - announcement(step);
	return start >= at ? start : output;
}

/**
 * @param {Step[]} steps
 * @param {number} size of the log
 * @param {(step: Step) => boolean} isOpen
 * @returns {Part[]}
 */
export function partsOf(steps, size, isOpen) {
	/** @type {Part[]} */
	const parts = [];
	let at = 0;
	let position = 0;
	/** @param {Step | null} step @param {number} end @param {boolean} open */
	const add = (step, end, open) => {
		parts.push({ step, start: at, end, open, position });
		position += open ? end - at : 0;
		at = end;
	};
	for (const step of steps.filter((one) => one.startedAt !== null)) {
		const start = Math.min(startOf(step, at), size);
		if (start > at)
			add(null, start, true);
		add(step, Math.max(start, endOf(step, size)), isOpen(step));
	}
	if (at < size || parts.length === 0)
		add(null, size, true);
	return parts;
}

export class Outline {
	/**
	 * @param {Part[]} parts
	 * @param {(offset: number) => Line | null} lineAt null: its bytes are not here yet
	 */
	constructor(parts, lineAt) {
		this.parts = parts;
		this.lineAt = lineAt;
		const last = parts[parts.length - 1];
		/** Bytes of open parts. */
		this.length = last.position + (last.open ? last.end - last.start : 0);
	}

	/** @param {number} i @returns {Row} */
	#heading(i) {
		const { start } = this.parts[i];
		return { part: i, start, end: start, heading: true };
	}

	/**
	 * The line of a part that contains an offset.
	 * @param {number} i
	 * @param {number} offset
	 * @returns {Row | null}
	 */
	#line(i, offset) {
		const part = this.parts[i];
		const line = this.lineAt(offset);
		return line && { part: i, start: Math.max(line.start, part.start),
			end: Math.min(line.end, part.end), heading: false };
	}

	/** @param {number} i */
	#hasLines(i) {
		return this.parts[i].open && this.parts[i].end > this.parts[i].start;
	}

	/**
	 * The first row of a part or of those behind it.
	 * @param {number} i
	 * @returns {Row | null | undefined} undefined: there is none; null: not here yet
	 */
	#first(i) {
		for (; i < this.parts.length; i++) {
			if (this.parts[i].step !== null)
				return this.#heading(i);
			if (this.#hasLines(i))
				return this.#line(i, this.parts[i].start);
		}
		return undefined;
	}

	/**
	 * @param {number} i
	 * @returns {Row | null | undefined}
	 */
	#last(i) {
		for (; i >= 0; i--) {
			if (this.#hasLines(i))
				return this.#line(i, this.parts[i].end - 1);
			if (this.parts[i].step !== null)
				return this.#heading(i);
		}
		return undefined;
	}

	first() {
		return this.#first(0);
	}

	last() {
		return this.#last(this.parts.length - 1);
	}

	/** @param {Row} row */
	next({ part, end, heading }) {
		if (heading && this.#hasLines(part))
			return this.#line(part, this.parts[part].start);
		return !heading && end < this.parts[part].end ? this.#line(part, end) : this.#first(part + 1);
	}

	/** @param {Row} row */
	previous({ part, start, heading }) {
		if (!heading && start > this.parts[part].start)
			return this.#line(part, start - 1);
		return !heading && this.parts[part].step !== null ? this.#heading(part) : this.#last(part - 1);
	}

	/** @param {number} offset */
	partAt(offset) {
		const i = this.parts.findIndex((part) => offset < part.end);
		return i < 0 ? this.parts.length - 1 : i;
	}

	/**
	 * The row that shows an offset: its line, or the heading of its closed step.
	 * @param {number} offset
	 * @returns {Row | null | undefined}
	 */
	rowAt(offset) {
		const i = this.partAt(offset);
		const part = this.parts[i];
		if (!this.#hasLines(i))
			return part.step === null ? this.#first(i) : this.#heading(i);
		return this.#line(i, Math.min(Math.max(offset, part.start), part.end - 1));
	}

	/**
	 * The row that shows what another outline showed as `row`.
	 * @param {Row} row
	 */
	again({ start, heading }) {
		const i = heading ? this.parts.findIndex((part) => part.step !== null && part.start === start) : -1;
		return i < 0 ? this.rowAt(start) : this.#heading(i);
	}

	/** @param {number} offset */
	positionOf(offset) {
		const part = this.parts[this.partAt(offset)];
		return part.position + (part.open ? Math.min(offset, part.end) - part.start : 0);
	}

	/** @param {number} position */
	offsetOf(position) {
		const part = this.parts.find((one) => one.open
			&& position < one.position + one.end - one.start);
		return part === undefined ? this.parts[this.parts.length - 1].end
			: part.start + Math.max(0, position - part.position);
	}
}
