// SPDX-License-Identifier: ISC
/** Charts as inline SVG, with their content in words. */
import { el, svg } from './dom.js';
import { href } from './router.js';
import { duration, seconds } from './time.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').DeploymentSummary} Deployment */

const HEIGHT = 64;
const STEP = 20;
const BAR = 15;
const MOST = 50;
const FEWEST = 5;

/** @param {Deployment} d */
function took(d) {
	return d.startedAt === null || d.finishedAt === null ? 0 : seconds(d.startedAt, d.finishedAt);
}

/**
 * @param {Deployment} d
 * @param {number} i
 * @param {number} longest
 */
function bar(d, i, longest) {
	const height = Math.max(3, took(d) / longest * HEIGHT);
	const label = t.chart.run(d.id, t.status[d.status], duration(took(d)));
	return svg('a', { href: href(`/deployments/${d.id}`), 'aria-label': label },
		svg('title', null, label),
		svg('rect', { class: 'hit', x: i * STEP, y: 0, width: STEP, height: HEIGHT }),
		svg('rect', { class: d.status, x: i * STEP, y: HEIGHT - height, width: BAR, height, rx: 1.5 }));
}

/**
 * The places of runs that are still to come, so that all charts have one scale.
 * @param {number} n how many runs there are
 */
function blanks(n) {
	return Array.from({ length: MOST - n }, (_, i) =>
		svg('rect', { class: 'blank', x: (n + i) * STEP, y: HEIGHT - 3, width: BAR, height: 3, rx: 1.5 }));
}

/** @param {Deployment[]} runs */
function facts(runs) {
	const times = runs.map(took).sort((a, b) => a - b);
	const good = runs.filter((d) => d.status === 'success').length;
	return { rate: Math.round(good / runs.length * 100), median: times[Math.floor(times.length / 2)] };
}

/**
 * How long the last runs took, and how many succeeded.
 * @param {Deployment[]} list newest first
 */
export function runChart(list) {
	const runs = list.filter((d) => took(d) > 0).slice(0, MOST).reverse();
	if (runs.length < FEWEST)
		return null;
	const { rate, median } = facts(runs);
	const longest = Math.max(...runs.map(took));
	return el('figure', { class: 'card chart' },
		el('figcaption', null, el('strong', null, t.chart.title(runs.length)),
			el('span', { class: 'faint' }, t.chart.facts(rate, duration(median), duration(longest)))),
		svg('svg', { viewBox: `0 0 ${MOST * STEP} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'group',
			'aria-label': t.chart.facts(rate, duration(median), duration(longest)) },
		runs.map((d, i) => bar(d, i, longest)), blanks(runs.length)));
}
