// SPDX-License-Identifier: ISC
/** The icon of the tab, which shows the state of the deployment on the page. */

const COLORS = /** @type {Record<string, string>} */ ({ pending: '#b98300', running: '#1673d1',
	success: '#1d8a4e', failed: '#cc342b', interrupted: '#cc342b', canceled: '#6b7886' });
const SHAPES = /** @type {Record<string, string>} */ ({
	pending: '<circle cx="16" cy="16" r="11" fill="none" stroke="C" stroke-width="5"/>',
	running: '<path d="M8 4l20 12L8 28z" fill="C"/>',
	success: '<path d="M4 17l8 8L28 7" fill="none" stroke="C" stroke-width="6"/>',
	failed: '<path d="M6 6l20 20M26 6L6 26" fill="none" stroke="C" stroke-width="6"/>',
	interrupted: '<path d="M16 3v17M16 25v5" fill="none" stroke="C" stroke-width="6"/>',
	canceled: '<path d="M4 16h24" fill="none" stroke="C" stroke-width="6"/>',
});

const link = /** @type {HTMLLinkElement} */ (document.querySelector('link[rel="icon"]'));
const usual = link.href;
let shown = '';

/**
 * Shows a state until the signal aborts.
 * @param {string} state
 * @param {AbortSignal} signal
 */
export function showState(state, signal) {
	if (shown === state)
		return;
	if (shown === '')
		signal.addEventListener('abort', () => {
			link.href = usual;
			shown = '';
		}, { once: true });
	shown = state;
	const shape = (SHAPES[state] ?? SHAPES.canceled).replace('C', COLORS[state] ?? COLORS.canceled);
	link.href = `data:image/svg+xml,${encodeURIComponent(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${shape}</svg>`)}`;
}
