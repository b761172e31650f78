// SPDX-License-Identifier: ISC
/** One deployment: its state and why, its steps, its log, and what can be done with it. */
import { actions } from '../lib/actions.js';
import { get } from '../lib/api.js';
import { changes } from '../lib/changes.js';
import { commit, origin, ref, runTime } from '../lib/deployments.js';
import { el, svg } from '../lib/dom.js';
import { showState } from '../lib/favicon.js';
import { ask, canAsk, notifyEnd } from '../lib/notify.js';
import { environmentOf, projectName, userName } from '../lib/names.js';
import { href } from '../lib/router.js';
import { deploymentStatus, icon, look, needsApproval, stateText } from '../lib/status.js';
import { ago, duration, seconds } from '../lib/time.js';
import { LogViewer } from '../log/viewer.js';
import { t } from '../texts.js';

/**
 * @typedef {import('../lib/page.js').Context} Context
 * @typedef {import('../lib/types.js').Deployment} Deployment
 * @typedef {import('../lib/types.js').DeploymentStep} Step
 * @typedef {import('../lib/types.js').Environment} Environment
 * @typedef {import('../lib/types.js').Pipeline} Pipeline
 */

const BAR_HEIGHT = 14;
const LEAST_SHARE = 0.008;

/** The viewer of each page, which lives as long as the page does.
 * @type {WeakMap<Context, LogViewer>} */
const viewers = new WeakMap();

/** @param {Deployment} d */
function isOver(d) {
	return d.finishedAt !== null;
}

// --- why it is in its state

/** @param {Deployment} d */
function waiting(d) {
	return el('ul', { class: 'waiting' },
		d.waitingFor.map(({ detail }) => el('li', null, icon('pending'), detail)),
		d.queuePosition != null && el('li', null, icon('pending'), t.deployment.place(d.queuePosition)));
}

/** @param {Deployment} d */
function reason(d) {
	if (d.status === 'pending')
		return waiting(d);
	return d.detail !== null && el('p', { class: `reason ${look(d)}` }, icon(look(d)), d.detail);
}

// --- steps over time

/** @param {Step} step */
function stepSeconds({ startedAt, finishedAt }) {
	return startedAt === null ? 0 : seconds(startedAt, finishedAt);
}

/** @param {Step} step */
function stepText(step) {
	const time = step.startedAt === null ? '' : `, ${duration(stepSeconds(step))}`;
	return `${step.name}: ${t.status[step.status] ?? step.status}${time}`;
}

/**
 * The durations of the steps as parts of one bar.
 * @param {Step[]} steps
 */
function bar(steps) {
	const total = steps.reduce((sum, step) => sum + stepSeconds(step), 0);
	let x = 0;
	const parts = steps.filter(({ startedAt }) => startedAt !== null).map((step) => {
		const width = Math.max(LEAST_SHARE, total === 0 ? 1 : stepSeconds(step) / total);
		const part = svg('rect', { class: step.status, x: x * 1000, y: 0, width: width * 1000 - 3,
			height: BAR_HEIGHT, rx: 2 }, svg('title', null, stepText(step)));
		x += width;
		return part;
	});
	return svg('svg', { class: 'steps-bar', viewBox: `0 0 ${Math.max(1000, x * 1000)} ${BAR_HEIGHT}`,
		preserveAspectRatio: 'none', role: 'img', 'aria-label': t.deployment.stepsText(steps.map(stepText)) },
	parts);
}

/**
 * The name of a step, which leads to its output.
 * @param {Step} step
 */
function stepName({ name, logOffset, logLength, status }) {
	const hash = `#L${logOffset}`;
	if (logOffset === null || (status !== 'running' && !logLength))
		return el('span', { class: 'step-name' }, name);
	return el('a', { class: 'step-name', href: hash, onclick: () => {
		// The address can name it already.
		if (location.hash === hash)
			dispatchEvent(new HashChangeEvent('hashchange'));
	} }, name);
}

/** @param {Step} step */
function stepLook({ status, mayFail }) {
	if (status === 'failed' && mayFail)
		return 'warned';
	return status === 'pending' ? 'none' : status;
}

/** @param {Step[]} steps */
function stepList(steps) {
	return el('section', { class: 'steps', 'aria-label': t.deployment.steps },
		steps.some(({ startedAt }) => startedAt !== null) && bar(steps),
		el('ol', null, steps.map((step) => el('li', { 'data-key': step.position },
			icon(stepLook(step)), stepName(step),
			el('span', { class: 'hidden' }, t.status[step.status] ?? step.status),
			step.mayFail && step.status === 'failed' && el('span', { class: 'faint' }, t.step.mayFail),
			el('span', { class: 'faint number' }, step.startedAt === null ? '' : duration(stepSeconds(step)))))));
}

// --- the page

/**
 * Whether it was approved or denied, by whom and why.
 * @param {Deployment} d
 */
function approval(d) {
	if (d.approval === null || d.approvalBy === null || d.approvalAt === null)
		return d.approval === 'required' ? t.deployment.approvals.required : null;
	return [t.deployment.approvals[d.approval], ' ', t.deployment.decidedBy(userName(d.approvalBy)), ', ',
		ago(d.approvalAt), d.approvalComment !== null && [' ', el('q', { class: 'isolate' }, d.approvalComment)]];
}

/** @param {Deployment} d */
function place({ environmentId }) {
	const environment = environmentOf(environmentId);
	if (environment === undefined)
		return environmentId === null ? null : t.deployment.deleted;
	return environment.url === null ? environment.name
		: el('a', { href: environment.url, rel: 'noopener' }, environment.name);
}

/**
 * Fetches the pipeline, which can have been deleted.
 * @param {Deployment} d
 * @param {Context} context
 */
async function loadPipeline({ pipelineId }, context) {
	context.state.pipeline = null;
	context.set({ pipeline: await get(`/pipelines/${pipelineId}`, { signal: context.signal }).catch(() => 'deleted') });
}

/**
 * @param {Deployment} d
 * @param {Context} context
 */
function pipelineLink(d, context) {
	if (context.state.pipeline === undefined)
		loadPipeline(d, context);
	/** @type {Pipeline | 'deleted' | null} */
	const pipeline = context.state.pipeline;
	if (pipeline === null)
		return t.none;
	return pipeline === 'deleted' ? t.deployment.deleted
		: el('a', { href: href(`/pipelines/${pipeline.id}`) }, pipeline.name);
}

/**
 * The variables that the steps get; those that are secret have no value here.
 * @param {Deployment} d
 */
function variables({ envVars }) {
	const list = Object.entries(envVars).map(([key, value]) => `${key}=${value ?? '••••••'}`);
	return list.length > 0 && list.map((text) => [el('code', { class: 'variable', title: text }, text), ' ']);
}

/**
 * The variables that the request itself set: what it overrides, also where the value is secret.
 * @param {Deployment} d
 */
function variablesSent({ envVarsSent }) {
	return envVarsSent !== null && envVarsSent.length > 0
		&& envVarsSent.map((key) => [el('code', { class: 'variable', title: key }, key), ' ']);
}

/**
 * The button that asks for a notification, while there is something to wait for.
 * @param {Deployment} d
 * @param {Context} context
 */
function notifyButton(d, context) {
	return !isOver(d) && canAsk() && el('button', { type: 'button', class: 'plain', 'data-key': 'notify',
		onclick: () => ask().then(() => context.draw()) }, t.deployment.notify);
}

/**
 * What an approver must know of a branch and a commit that only the request or the event names.
 * @param {Deployment} d
 */
function unconfirmed({ status, approval: needs, commitHash, commitRead }) {
	return status === 'pending' && needs === 'required' && commitHash !== null && !commitRead
		&& el('div', { class: 'hint' }, t.deployment.unconfirmed);
}

/**
 * @param {Deployment} d
 * @param {Context} context
 */
function facts(d, context) {
	/** @type {[string, import('../lib/dom.js').Child][]} */
	const rows = [
		[t.deployment.project, el('a', { href: href(`/projects/${d.projectId}`) }, projectName(d.projectId))],
		[t.deployment.environment, place(d)],
		[t.deploy.pipeline, pipelineLink(d, context)],
		[t.deployment.revision, [ref(d), ' ', commit(d.commitHash, d.commitMessage), unconfirmed(d)]],
		[t.deployment.by, [origin(d), ', ', ago(d.createdAt)]],
		[t.deployment.took, d.startedAt !== null && runTime(d)],
		[t.environment.runner, d.runner],
		[t.environment.variables, variables(d)],
		[t.deployment.envVarsSent, variablesSent(d)],
		[t.deployment.approval, approval(d)],
		[t.deployment.rollbackReason, d.rollbackReason !== null && el('span', { class: 'isolate' }, d.rollbackReason)],
		[t.deployment.retryOf, d.retryOf !== null
			&& el('a', { href: href(`/deployments/${d.retryOf}`) }, t.deployment.title(d.retryOf))],
	];
	return el('dl', { class: 'facts' },
		rows.filter(([, value]) => value !== null && value !== false).map(([name, value]) => el('div', null, el('dt', null, name), el('dd', null, value))));
}

/**
 * Fetches the commits of the branch; without them, nothing is compared.
 * @param {Deployment} d
 * @param {Context} context
 */
async function loadCommits({ projectId, branch }, context) {
	context.state.commits = null;
	const search = new URLSearchParams({ projectId: String(projectId), limit: '100', ...(branch === null ? {} : { branch }) });
	const commits = await get(`/git/commits?${search}`, { signal: context.signal }).then(({ data }) => data, () => []);
	context.set({ commits });
}

/**
 * What an approver decides about: the commits between what is live and this.
 * @param {Deployment} d
 * @param {Environment | undefined} environment
 * @param {Context} context
 */
function whatChanges(d, environment, context) {
	if (!needsApproval(d) || environment === undefined || (d.tag !== null && d.commitHash === null))
		return null;
	if (context.state.commits === undefined)
		loadCommits(d, context);
	const { commits } = context.state;
	return commits?.length !== 0 && el('section', { class: 'card what-changes', 'aria-live': 'polite' },
		el('h2', null, t.changes.title), changes(commits, d.commitHash ?? '', environment.live));
}

/**
 * @param {Deployment} d
 * @param {Context} context
 */
function log(d, context) {
	viewers.get(context)?.update(d);
	return context.keep('log', () => {
		const viewer = new LogViewer(d, context.signal);
		viewers.set(context, viewer);
		return viewer.element;
	});
}

/** @type {import('../lib/page.js').Page} */
export const deployment = {
	path: '/deployments/:id',
	state: { commits: undefined, pipeline: undefined },
	sources: ({ params }) => ({ deployment: `/deployments/${params.id}` }),
	more: ({ deployment: d }) => ({ environments: `/environments?projectId=${d.projectId}&limit=100` }),
	title: ({ deployment: d }) => t.deployment.pageTitle(stateText(d), projectName(d.projectId), d.id),
	ticks: ({ deployment: d }) => d.status === 'running',
	view: ({ deployment: d, environments }, context) => {
		/** @type {Environment | undefined} */
		const environment = environments.data.find((/** @type {Environment} */ one) => one.id === d.environmentId);
		showState(d.status, context.signal);
		notifyEnd(d.status, isOver(d), t.deployment.pageTitle(stateText(d), projectName(d.projectId), d.id), context.signal);
		return [
			el('div', { class: 'head' },
				el('h1', { tabindex: -1 }, t.deployment.title(d.id), ' ', deploymentStatus(d)), actions(d, environment?.live?.deploymentId === d.id, context)),
			reason(d),
			el('div', { class: 'overview' }, facts(d, context), notifyButton(d, context)),
			whatChanges(d, environment, context),
			stepList(d.steps),
			d.startedAt === null && !isOver(d) ? el('p', { class: 'empty' }, t.deployment.noLog) : log(d, context),
		];
	},
};
