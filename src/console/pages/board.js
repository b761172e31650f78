// SPDX-License-Identifier: ISC
/** What is live where, what runs, and what waits: every project on one page. */
import { el } from '../lib/dom.js';
import { commit, ref, runTime } from '../lib/deployments.js';
import { lockLine } from '../lib/lock.js';
import { userName } from '../lib/names.js';
import { pager } from '../lib/pager.js';
import { href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { deploymentStatus, icon, needsApproval, stateText, status } from '../lib/status.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').BoardProject} Project */
/** @typedef {import('../lib/types.js').BoardEnvironment} Environment */
/** @typedef {import('../lib/types.js').BoardDeployment} Deployment */
/** @typedef {import('../lib/page.js').Context} Context */
/**
 * A row of a project: an environment, or the project itself if it has none.
 * @typedef {Pick<Environment, 'lock' | 'live' | 'latest' | 'waiting' | 'approvals'>
 *   & { id: number | null, name: string, url: string | null }} Place
 */

/** @param {Project} project @returns {Place[]} */
function places(project) {
	return project.environments.length > 0 ? project.environments
		: [{ ...project, id: null, name: '', url: null }];
}

/**
 * The deployment that says how a place is doing: the one that runs there, or the newest.
 * @param {Project} project
 * @param {Place} place
 */
function current(project, place) {
	const running = project.running;
	return running !== null && running.environmentId === place.id ? running : place.latest;
}

/** @param {Deployment} live */
function liveText(live) {
	return [live.tag !== null && [ref(live), ' '], commit(live.commitHash, live.commitMessage),
		el('span', { class: 'faint' }, ' ', userName(live.createdBy), ', ',
			live.finishedAt !== null && ago(live.finishedAt))];
}

/**
 * What runs, waits or has failed beside what is live.
 * @param {Deployment} now
 */
function next(now) {
	return el('p', { class: 'next faint' }, el('span', { 'aria-hidden': 'true' }, '→ '),
		el('span', { class: 'hidden' }, stateText(now), ': '), ref(now), ' ', commit(now.commitHash, now.commitMessage),
		' ', userName(now.createdBy));
}

/**
 * How many wait beside the deployment that is shown; those that wait for approval are
 * the ones that somebody can do something about.
 * @param {Project} project
 * @param {Place} place
 * @param {Deployment | null} now
 */
function waiting({ id }, place, now) {
	const shown = now?.status === 'pending' ? 1 : 0;
	const approvals = place.approvals - (now !== null && needsApproval(now) ? 1 : 0);
	const others = place.waiting - shown - approvals;
	const list = href(`/deployments?projectId=${id}&status=pending${place.id === null ? '' : `&environmentId=${place.id}`}`);
	const badge = (/** @type {string} */ text) => el('a', { class: 'badge pending', href: list }, icon('pending'), text);
	return [approvals > 0 && badge(t.board.needApproval(approvals)), others > 0 && badge(t.board.moreWaiting(others))];
}

/**
 * How long it has been running, or when it ended. When it became live is shown beside
 * what is live.
 * @param {Deployment} now
 */
function since(now) {
	if (now.status === 'success' || now.status === 'pending')
		return null;
	return el('span', { class: 'faint' }, now.finishedAt === null ? runTime(now) : ago(now.finishedAt));
}

/** @param {Deployment} now */
function state(now) {
	return el('a', { class: 'state', href: href(`/deployments/${now.id}`) },
		el('span', { class: 'hidden' }, t.board.deploymentOf(now.id)),
		deploymentStatus(now), since(now));
}

/**
 * @param {Project} project
 * @param {Place} place
 */
function placeRow(project, place) {
	const now = current(project, place);
	return el('li', { class: 'place', 'data-key': place.id ?? 0 },
		el('div', { class: 'name' },
			place.url === null ? place.name : el('a', { href: place.url, rel: 'noopener' }, place.name)),
		el('div', { class: 'live' },
			el('p', null, place.live === null ? el('span', { class: 'faint' }, t.board.nothingLive) : liveText(place.live)),
			now !== null && now.id !== place.live?.id && next(now)),
		el('div', { class: 'now' }, waiting(project, place, now),
			now === null ? status('none') : state(now)),
		place.id !== null && lockLine(place.lock));
}

/**
 * @param {Project} project
 */
function card(project) {
	return el('li', { class: `card project ${project.running === null ? '' : 'busy'}`, 'data-key': project.id },
		el('div', { class: 'head' },
			el('h2', null, el('a', { href: href(`/projects/${project.id}`) }, project.name)),
			may(project, 'deployer') && el('a', { class: 'button', href: href(`/projects/${project.id}/deploy`),
				'aria-label': t.board.deployProject(project.name) }, t.board.deploy)),
		lockLine(project.lock),
		el('ul', { class: 'places' }, places(project).map((place) => placeRow(project, place))));
}

/** @param {Project[]} projects */
function counts(projects) {
	const places = projects.flatMap((project) =>
		project.environments.length > 0 ? project.environments.map((e) => e.latest) : [project.latest]);
	return {
		running: projects.filter((project) => project.running !== null).length,
		waiting: projects.reduce((sum, project) => sum + project.waiting - project.approvals, 0),
		approvals: projects.reduce((sum, project) => sum + project.approvals, 0),
		failed: places.filter((latest) => latest?.status === 'failed').length,
	};
}

/** @param {Project[]} projects */
function summary(projects) {
	const { running, waiting: pending, approvals, failed } = counts(projects);
	const one = (/** @type {string} */ kind, /** @type {number} */ n, /** @type {string} */ text) =>
		el('li', { class: n > 0 ? kind : 'zero' }, el('a', { href: href(`/deployments?status=${kind}`) }, icon(kind), text));
	return el('ul', { class: 'summary-line', 'aria-label': t.board.summary },
		one('running', running, t.board.running(running)),
		one('pending', pending, t.board.waiting(pending)),
		approvals > 0 && one('pending', approvals, t.board.needApproval(approvals)),
		one('failed', failed, t.board.failed(failed)));
}

/** @param {Context} context */
function firstRun({ user }) {
	return el('section', { class: 'first' },
		el('h2', null, t.first.title),
		el('p', null, t.first.lead),
		el('ol', null, t.first.steps.map(([title, text]) =>
			el('li', null, el('strong', null, title), el('p', { class: 'faint' }, text)))),
		may(user, 'maintainer')
			? el('a', { class: 'button primary', href: href('/projects/new') }, t.projects.add)
			: el('p', null, t.first.ask));
}

/** @type {import('../lib/page.js').Page} */
export const board = {
	path: '/',
	sources: ({ query }) => ({ board: `/board?page=${query.get('page') ?? 1}` }),
	title: () => t.board.title,
	ticks: ({ board: { data: projects } }) => projects.some((/** @type {Project} */ { running }) => running !== null),
	view: ({ board: { data: projects, pagination } }, context) => [
		el('div', { class: 'head' }, el('h1', { tabindex: -1 }, t.board.title),
			projects.length > 0 && summary(projects)),
		projects.length === 0 ? firstRun(context)
			: el('ul', { class: 'board' }, projects.map((/** @type {Project} */ project) => card(project))),
		pager(pagination, '/'),
	],
};
