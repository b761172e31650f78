// SPDX-License-Identifier: ISC
/**
 * What a terminal shows for one line: text with styles, after carriage returns
 * and erased parts. Other control sequences leave no trace.
 */

/**
 * A color is an index into the 256 of a terminal, or [red, green, blue].
 * @typedef {number | [number, number, number] | null} Color
 * @typedef {{ fg: Color, bg: Color, bold: boolean, faint: boolean, italic: boolean,
 *   underline: boolean, strike: boolean, inverse: boolean }} Style
 * @typedef {{ text: string, style: Style }} Span
 */

/** @type {Style} */
export const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, faint: false, italic: false,
	underline: false, strike: false, inverse: false });

/* CSI sequences, command strings (OSC, DCS, SOS, PM, APC), other escapes, and control
 * characters, of which some move; each with ESC or as a C1 character. */
const CONTROL = /(?:\x1b\[|\x9b)([0-9;:?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** @type {Record<number, Partial<Style>>} */
const SWITCHES = {
	1: { bold: true }, 2: { faint: true }, 3: { italic: true }, 4: { underline: true },
	7: { inverse: true }, 9: { strike: true }, 22: { bold: false, faint: false },
	23: { italic: false }, 24: { underline: false }, 27: { inverse: false }, 29: { strike: false },
	39: { fg: null }, 49: { bg: null },
};

/**
 * The color after 38 or 48, and how many parameters it takes.
 * @param {number[]} rest
 * @returns {[Color, number]}
 */
function extendedColor([kind, a, b, c]) {
	if (kind === 5)
		return [a & 255, 2];
	if (kind === 2)
		return [[a & 255, b & 255, c & 255], 4];
	return [null, 1];
}

/**
 * The color of a parameter for one of the first 16 colors; undefined for others.
 * @param {number} code
 * @returns {Partial<Style> | undefined}
 */
function simpleColor(code) {
	const tens = Math.floor(code / 10);
	const index = code % 10;
	if (index > 7)
		return undefined;
	if (tens === 3 || tens === 9)
		return { fg: index + (tens === 9 ? 8 : 0) };
	if (tens === 4 || tens === 10)
		return { bg: index + (tens === 10 ? 8 : 0) };
	return undefined;
}

/**
 * The style after a sequence "ESC [ params m".
 * @param {Style} style
 * @param {string} params
 * @returns {Style}
 */
function applySgr(style, params) {
	const codes = params.split(/[;:]/).map(Number);
	let next = style;
	for (let i = 0; i < codes.length; i++) {
		const code = codes[i];
		if (code === 0) {
			next = PLAIN;
		} else if (code === 38 || code === 48) {
			const [color, taken] = extendedColor(codes.slice(i + 1));
			next = { ...next, [code === 38 ? 'fg' : 'bg']: color };
			i += taken;
		} else {
			next = { ...next, ...(SWITCHES[code] ?? simpleColor(code)) };
		}
	}
	return next;
}

/**
 * The style that is in force after a text.
 * @param {string} text
 * @param {Style} style before it
 */
export function styleAfter(text, style) {
	let now = style;
	for (const [, params, final] of text.matchAll(CONTROL))
		if (final === 'm')
			now = applySgr(now, params);
	return now;
}

/** Columns of a line: as many as a piece of it has bytes, so only a cursor reaches the last. */
const COLUMNS = 8192;

/** A line of a terminal: characters with styles, and a cursor. */
class TerminalLine {
	/** @param {Style} style */
	constructor(style) {
		/** @type {{ char: string, style: Style }[]} */
		this.cells = [];
		this.column = 0;
		this.style = style;
	}

	/** @param {string} text */
	write(text) {
		for (const char of text) {
			while (this.cells.length < this.column)
				this.cells.push({ char: ' ', style: PLAIN });
			this.cells[this.column++] = { char, style: this.style };
		}
	}

	/** @param {string} mode 0: from the cursor, 1: up to the cursor, 2: all */
	erase(mode) {
		if (mode === '' || mode === '0')
			this.cells.length = Math.min(this.cells.length, this.column);
		else if (mode === '2')
			this.cells.length = 0;
		else
			this.cells.fill({ char: ' ', style: PLAIN }, 0, this.column + 1);
	}

	/**
	 * @param {string} params
	 * @param {string} final
	 */
	sequence(params, final) {
		const n = Math.min(Number(params) || 1, 1000);
		if (final === 'm')
			this.style = applySgr(this.style, params);
		else if (final === 'K')
			this.erase(params);
		else if (final === 'G')
			this.column = n - 1;
		else if (final === 'C')
			this.column = Math.min(this.column + n, COLUMNS);
		else if (final === 'D')
			this.column = Math.max(0, this.column - n);
	}

	/** @param {string} char */
	control(char) {
		if (char === '\r')
			this.column = 0;
		else if (char === '\b')
			this.column = Math.max(0, this.column - 1);
	}

	/** @returns {Span[]} */
	spans() {
		/** @type {Span[]} */
		const spans = [];
		for (const { char, style } of this.cells) {
			const last = spans[spans.length - 1];
			if (last?.style === style)
				last.text += char;
			else
				spans.push({ text: char, style });
		}
		return spans;
	}
}

/**
 * @param {string} text one line, without its end
 * @param {Style} [style] in force at its beginning
 * @returns {Span[]}
 */
export function spansOf(text, style = PLAIN) {
	if (text.search(CONTROL) < 0)
		return text === '' ? [] : [{ text, style }];
	const line = new TerminalLine(style);
	let from = 0;
	for (const match of text.matchAll(CONTROL)) {
		line.write(text.slice(from, match.index));
		from = match.index + match[0].length;
		if (match[2] !== undefined)
			line.sequence(match[1], match[2]);
		else
			line.control(match[0]);
	}
	line.write(text.slice(from));
	return line.spans();
}

/**
 * The text that is shown.
 * @param {Span[]} spans
 */
export function plain(spans) {
	return spans.map((span) => span.text).join('');
}
