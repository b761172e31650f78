// SPDX-License-Identifier: ISC
/** What runs now, and what was deployed last. */
import { el } from '../lib/dom.js';
import { deploymentTable } from '../lib/deployments.js';
import { t } from '../texts.js';

/** @type {import('../lib/page.js').Page} */
export const board = {
	path: '/',
	sources: () => ({ recent: '/deployments?limit=20' }),
	title: () => t.board.title,
	view: ({ recent }) => [
		el('h1', { tabindex: -1 }, t.board.title),
		recent.data.length === 0
			? el('p', { class: 'empty' }, t.deployments.empty)
			: deploymentTable(recent.data),
	],
};
