// SPDX-License-Identifier: ISC
/** States as a shape, a word and a color. */
import { el, svg } from './dom.js';
import { t } from '../texts.js';

/**
 * The shape of each state, on a grid of 16 by 16. `ring` turns while it runs.
 * @type {Record<string, { fill?: string, line?: string, ring?: true }>}
 */
const SHAPES = {
	pending: { line: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 4.8V8l2.2 1.5' },
	running: { ring: true },
	success: { fill: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1', line: 'm4.8 8.2 2.2 2.2 4.2-4.6' },
	failed: { fill: 'M5.2 1h5.6L15 5.2v5.6L10.8 15H5.2L1 10.8V5.2z', line: 'm5.5 5.5 5 5m0-5-5 5' },
	canceled: { line: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M3.7 12.3l8.6-8.6' },
	interrupted: { fill: 'M8 1.2 15.3 14H.7z', line: 'M8 5.8v4M8 12v.2' },
	warned: { fill: 'M8 1.2 15.3 14H.7z', line: 'M8 5.8v4M8 12v.2' },
	skipped: { line: 'M2 8h12' },
	locked: { fill: 'M3 7h10v7.5H3z', line: 'M5 7V4.5a3 3 0 0 1 6 0V7' },
	none: { line: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8' },
};

/**
 * @param {string} state
 * @param {Record<string, any>} [props]
 */
export function icon(state, props = { 'aria-hidden': 'true' }) {
	const shape = SHAPES[state] ?? SHAPES.none;
	return svg('svg', { class: `icon ${state}`, viewBox: '0 0 16 16', ...props },
		shape.fill && svg('path', { class: 'fill', d: shape.fill }),
		shape.line && svg('path', { class: shape.fill ? 'line over' : 'line', d: shape.line }),
		shape.ring && svg('circle', { class: 'track', cx: 8, cy: 8, r: 6.2 }),
		shape.ring && svg('path', { class: 'line ring', d: 'M8 1.8A6.2 6.2 0 0 1 14.2 8' }));
}

/**
 * The state of a deployment or step.
 * @param {string} state
 */
export function status(state) {
	return el('span', { class: `status ${state}` }, icon(state), t.status[state] ?? state);
}

/** @typedef {{ status: string, approval: string | null, warnings?: number }} Deployment */

/**
 * Whether a deployment waits for approval.
 * @param {Deployment} deployment
 */
export function needsApproval({ status: state, approval }) {
	return state === 'pending' && approval === 'required';
}

/**
 * What the state of a deployment looks like: a success with warnings is `warned`.
 * @param {{ status: string, warnings?: number }} deployment
 */
export function look({ status: state, warnings = 0 }) {
	return state === 'success' && warnings > 0 ? 'warned' : state;
}

/**
 * The state of a deployment as a word.
 * @param {Deployment} deployment
 */
export function stateText(deployment) {
	return needsApproval(deployment) ? t.status.approval : t.status[look(deployment)] ?? deployment.status;
}

/**
 * The state of a deployment, which may wait for approval.
 * @param {Deployment} deployment
 */
export function deploymentStatus(deployment) {
	const state = look(deployment);
	return el('span', { class: `status ${state}` }, icon(state), stateText(deployment));
}

/** The mark of the console. */
export function mark() {
	return svg('svg', { class: 'mark', viewBox: '0 0 32 32', 'aria-hidden': 'true' },
		svg('rect', { width: 32, height: 32, rx: 8 }),
		svg('path', { class: 'hull', d: 'M6 15h20l-4.2 7.2a2 2 0 0 1-1.7 1H11.9a2 2 0 0 1-1.7-1z' }),
		svg('path', { class: 'sail', d: 'M15.5 5.5v7.5H9.2z' }),
		svg('path', { class: 'hull', d: 'M17.5 7.5 22.5 13h-5z' }),
		svg('path', { class: 'water', d: 'M4 27.5h24' }));
}
