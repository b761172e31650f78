// SPDX-License-Identifier: ISC
/** One deployment. */
import { el } from '../lib/dom.js';
import { status } from '../lib/status.js';
import { t } from '../texts.js';

/** @type {import('../lib/page.js').Page} */
export const deployment = {
	path: '/deployments/:id',
	sources: ({ params }) => ({ deployment: `/deployments/${params.id}` }),
	title: (data) => t.deployment.title(data.deployment.id),
	view: ({ deployment: d }) => [
		el('h1', { tabindex: -1 }, t.deployment.title(d.id)),
		status(d.status),
	],
};
