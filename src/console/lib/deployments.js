// SPDX-License-Identifier: ISC
/** Deployments in a table. */
import { el } from './dom.js';
import { environmentOf, projectName, userName } from './names.js';
import { href } from './router.js';
import { deploymentStatus } from './status.js';
import { table } from './table.js';
import { inOrder } from './text.js';
import { ago, duration, seconds } from './time.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').DeploymentSummary} Deployment */

/**
 * The first line of a commit message.
 * @param {string | null} message
 */
export function subject(message) {
	return message === null ? '' : inOrder(message.split('\n', 1)[0]);
}

/**
 * The branch or the tag that a deployment names.
 * @param {{ branch: string | null, tag: string | null }} names
 */
export function ref({ branch, tag }) {
	return tag !== null ? [el('span', { class: 'faint' }, t.deployment.tag), ' ', el('span', { class: 'ref' }, inOrder(tag))]
		: branch !== null && el('span', { class: 'ref' }, inOrder(branch));
}

/**
 * A commit as a short hash and its subject.
 * @param {string | null} hash
 * @param {string | null} message
 */
export function commit(hash, message) {
	return el('span', { class: 'commit' },
		hash !== null && [el('code', { title: hash }, hash.slice(0, 8)), ' '],
		el('span', { class: 'subject' }, subject(message)));
}

/**
 * How long it ran, or has been running.
 * @param {{ startedAt: string | null, finishedAt: string | null }} run
 */
export function runTime({ startedAt, finishedAt }) {
	return startedAt === null ? t.none : duration(seconds(startedAt, finishedAt));
}

/**
 * Who or what started it: a user, and how if not by the form; or a push, a schedule.
 * @param {Pick<Deployment, 'trigger' | 'createdBy'>} d
 */
export function origin({ trigger, createdBy }) {
	const how = t.deployment.triggers[trigger] ?? trigger;
	if (createdBy === null || trigger === 'webhook' || trigger === 'schedule')
		return how;
	return trigger === 'manual' ? userName(createdBy) : [userName(createdBy), el('span', { class: 'faint' }, `, ${how}`)];
}

/**
 * What it deploys and where: environment, branch and commit.
 * @param {Deployment} d
 */
function target(d) {
	const environment = environmentOf(d.environmentId);
	return [environment !== undefined && [' ', el('span', { class: 'place-name' }, environment.name)],
		' ', ref(d), ' ', commit(d.commitHash, d.commitMessage)];
}

/**
 * @param {Deployment} d
 * @param {boolean} withProject
 */
function row(d, withProject) {
	return el('tr', { 'data-key': d.id },
		el('td', { class: 'state' }, deploymentStatus(d)),
		el('td', { class: 'what' },
			el('a', { class: 'cover', href: href(`/deployments/${d.id}`) },
				withProject ? [projectName(d.projectId), ' ', el('span', { class: 'faint' }, `#${d.id}`)]
					: t.deployment.title(d.id)),
			target(d)),
		el('td', { class: 'who' }, origin(d)),
		el('td', { class: 'number' }, runTime(d)),
		el('td', { class: 'when' }, ago(d.createdAt)));
}

/**
 * @param {Deployment[]} list
 * @param {{ withProject?: boolean }} [options]
 */
export function deploymentTable(list, { withProject = true } = {}) {
	const c = t.deployments.columns;
	return table([c.state, withProject ? c.project : c.what, c.who, c.time, c.when],
		list.map((d) => row(d, withProject)), { links: true });
}
