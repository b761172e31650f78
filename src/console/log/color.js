// SPDX-License-Identifier: ISC
/** The colors of a terminal on the dark ground of the log. */

/** @typedef {[number, number, number]} Rgb */

const GROUND_LUMINANCE = 0.008;
const CONTRAST = 4.6;
const STEPS = [0, 95, 135, 175, 215, 255];

/**
 * The colors 16 to 255: a cube of 6 × 6 × 6, then 24 shades of gray.
 * @param {number} index
 * @returns {Rgb}
 */
export function indexed(index) {
	if (index >= 232) {
		const gray = 8 + 10 * (index - 232);
		return [gray, gray, gray];
	}
	const n = index - 16;
	return [STEPS[Math.floor(n / 36)], STEPS[Math.floor(n / 6) % 6], STEPS[n % 6]];
}

/** @param {number} channel 0 to 255 */
function linear(channel) {
	const c = channel / 255;
	return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

/** @param {Rgb} rgb */
function luminance([r, g, b]) {
	return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/**
 * The color, lightened until it can be read on the ground.
 * @param {Rgb} rgb
 * @returns {Rgb}
 */
export function readable(rgb) {
	const needed = CONTRAST * (GROUND_LUMINANCE + 0.05) - 0.05;
	let [r, g, b] = rgb;
	for (let i = 0; i < 20 && luminance([r, g, b]) < needed; i++)
		[r, g, b] = [r, g, b].map((c) => c + (255 - c) * 0.12);
	return [Math.round(r), Math.round(g), Math.round(b)];
}

/** @param {Rgb} rgb */
export function css([r, g, b]) {
	return `rgb(${r}, ${g}, ${b})`;
}
