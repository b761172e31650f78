// SPDX-License-Identifier: ISC
/** One project: where it is deployed, how the last runs went, and all of them. */
import { el } from '../lib/dom.js';
import { runChart } from '../lib/chart.js';
import { commit, deploymentTable, ref } from '../lib/deployments.js';
import { lockLine } from '../lib/lock.js';
import { userName } from '../lib/names.js';
import { needsPipeline, projectHead } from '../lib/project.js';
import { askRollback } from '../lib/rollback.js';
import { href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { status } from '../lib/status.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/page.js').Context} Context */

/**
 * @param {Environment} environment
 * @param {Context} context
 */
function environmentCard(environment, { who }) {
	const { live, lock } = environment;
	return el('li', { class: 'card environment', 'data-key': environment.id },
		el('div', { class: 'head' }, el('h2', null, environment.name)), lockLine(lock),
		live === null ? status('none') : el('p', null, live.tag !== null && [ref(live), ' '],
			el('a', { href: href(`/deployments/${live.deploymentId}`) },
			commit(live.commitHash, live.commitMessage))),
		live !== null && el('p', { class: 'faint' }, userName(live.createdBy), ', ',
			live.finishedAt !== null && ago(live.finishedAt)),
		el('div', { class: 'actions' },
			may(who, 'deployer') && el('a', { class: 'button', href:
				href(`/projects/${environment.projectId}/deploy?environment=${environment.id}`),
			'aria-label': t.environment.deployTo(environment.name) }, t.board.deploy),
			live !== null && may(who, 'deployer') && el('button', { class: 'plain',
				'aria-label': t.environment.rollBackOf(environment.name),
				onclick: () => askRollback(environment) }, t.environment.rollBack),
			environment.url !== null && el('a', { href: environment.url, rel: 'noopener',
				'aria-label': t.environment.visit(environment.name) }, t.project.visit)));
}

/**
 * What to do next in a project that cannot be deployed yet.
 * @param {any} data
 */
function nextStep({ project, pipelines }) {
	if (pipelines.data.length === 0)
		return needsPipeline(project);
	return el('div', { class: 'empty' }, el('p', null, t.project.neverDeployed), may(project, 'deployer')
		&& el('a', { class: 'button primary', href: href(`/projects/${project.id}/deploy`) }, t.board.deploy));
}

/** @type {import('../lib/page.js').Page} */
export const project = {
	path: '/projects/:id',
	sources: ({ params: { id } }) => ({
		project: `/projects/${id}`,
		environments: `/environments?projectId=${id}&limit=100`,
		pipelines: `/pipelines?projectId=${id}&limit=1`,
		deployments: `/deployments?projectId=${id}&limit=50`,
	}),
	title: (data) => data.project.name,
	view: (data, context) => [
		projectHead(data.project, context),
		data.project.description !== null && el('p', { class: 'lead' }, data.project.description),
		data.environments.data.length > 0 && el('ul', { class: 'grid' },
			data.environments.data.map((/** @type {Environment} */ one) => environmentCard(one, context))),
		runChart(data.deployments.data),
		el('h2', null, t.deployments.title),
		data.deployments.data.length === 0 ? nextStep(data)
			: deploymentTable(data.deployments.data, { withProject: false }),
		data.deployments.pagination.next !== null && el('p', null,
			el('a', { href: href(`/deployments?projectId=${data.project.id}`) }, t.deployments.all)),
	],
};
