// SPDX-License-Identifier: ISC
/** The processes that run deployments, and the lock of the whole service. */
import { el } from '../lib/dom.js';
import { refresh } from '../lib/live.js';
import { askLock } from '../lib/lock.js';
import { may } from '../lib/session.js';
import { icon } from '../lib/status.js';
import { table } from '../lib/table.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Runner} Runner */

/** @param {Runner} runner */
function state({ online, sick, sickReason }) {
	if (online && sick)
		return el('span', { class: 'status failed', title: sickReason ?? '' }, icon('failed'), t.runner.sick(sickReason ?? ''));
	return el('span', { class: `status ${online ? 'success' : 'failed'}` },
		icon(online ? 'success' : 'interrupted'), online ? t.runner.online : t.runner.offline);
}

/**
 * How many slots are in use, as a bar.
 * @param {Runner} runner
 */
function load({ running, slots }) {
	return [el('meter', { min: 0, max: slots, value: running, 'aria-label': t.runner.load(running, slots) }),
		' ', t.runner.load(running, slots)];
}

/** @param {Runner} runner */
function row(runner) {
	return el('tr', { 'data-key': runner.name },
		el('td', { class: 'wide' }, el('strong', null, runner.name), ' ',
			runner.labels.map((/** @type {any} */ label) => el('span', { class: 'badge' }, label.text ?? label))),
		el('td', { class: 'state' }, state(runner)),
		el('td', { class: 'nowrap' }, load(runner)),
		el('td', null, runner.version),
		el('td', { class: 'when' }, ago(runner.startedAt)),
		el('td', { class: 'when' }, ago(runner.seenAt)));
}

/** @type {import('../lib/page.js').Page} */
export const runners = {
	path: '/runners',
	sources: () => ({ list: '/runners?limit=100' }),
	title: () => t.runner.title,
	view: ({ list }, context) => [
		el('div', { class: 'head' }, el('h1', { tabindex: -1 }, t.runner.title),
			may(context.user, 'admin') && el('button', { onclick: () => askLock('/lock', refresh) }, t.runner.lockAll)),
		el('p', { class: 'lead' }, t.runner.lead),
		list.data.length === 0 ? el('p', { class: 'empty' }, t.runner.empty)
			: table(Object.values(t.runner.columns), list.data.map(row), { named: true }),
	],
};
