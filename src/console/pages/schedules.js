// SPDX-License-Identifier: ISC
/** A project's schedules: what is deployed at which times. */
import { el } from '../lib/dom.js';
import { cards, editor, fact, pauseButton, tools } from '../lib/items.js';
import { environmentOf } from '../lib/names.js';
import { lineValues } from '../lib/presets.js';
import { needsPipeline, projectHead } from '../lib/project.js';
import { href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { icon } from '../lib/status.js';
import { exact } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Schedule} Schedule */
/** @typedef {import('../lib/types.js').Pipeline} Pipeline */
/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {{ list: { data: Schedule[] }, pipelines: { data: Pipeline[] },
 *   environments: { data: Environment[] }, project: import('../lib/types.js').Project }} Data */

/** @type {import('../lib/items.js').Kind} */
const KIND = { id: 'schedule', path: '/schedules', add: t.schedule.add, none: t.schedule.none,
	name: ({ name }) => name, deleteTitle: t.schedule.deleteTitle, deleteText: t.schedule.deleteText };
const LATE = 3; // failures in a row that deserve a warning

/** @param {{ id: number, name: string }} one */
function choice({ id, name }) {
	return { value: String(id), label: name };
}

/** @param {Record<string, string | null>} vars */
function lines(vars) {
	return Object.entries(vars).filter(([, value]) => value !== null)
		.map(([key, value]) => `${key}=${value}`).join('\n');
}

/**
 * An input with suggestions.
 * @param {string} name
 * @param {string} value
 * @param {readonly string[]} suggestions
 */
function suggest(name, value, suggestions) {
	return (/** @type {string} */ id, /** @type {string} */ describedBy) => el('div', null,
		el('input', { id, name, value, list: `${id}-list`, required: true, autocomplete: 'off', spellcheck: 'false',
			'aria-describedby': describedBy }),
		el('datalist', { id: `${id}-list` }, suggestions.map((one) => el('option', { value: one }))));
}

/**
 * @param {Partial<Schedule>} s
 * @param {Data} data
 * @returns {import('../lib/form.js').Field[]}
 */
function fields(s, { pipelines, environments }) {
	const zone = s.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
	/** @type {(import('../lib/form.js').Field | false)[]} */
	const all = [
		{ name: 'name', label: t.schedule.name, required: true, value: s.name, props: { maxlength: 100 } },
		{ name: 'cron', label: t.schedule.cron, type: 'custom', required: true, hint: t.schedule.cronHint,
			control: suggest('cron', s.cron ?? '', t.schedule.crons) },
		{ name: 'timezone', label: t.schedule.timezone, type: 'custom', required: true,
			control: suggest('timezone', zone, ['UTC', ...Intl.supportedValuesOf('timeZone')]) },
		{ name: 'pipelineId', label: t.deploy.pipeline, type: 'select', required: true,
			value: String(s.pipelineId ?? ''), options: pipelines.data.map(choice) },
		environments.data.length > 0 && { name: 'environmentId', label: t.deploy.environment, type: 'select',
			required: true, value: String(s.environmentId ?? ''), options: environments.data.map(choice) },
		{ name: 'branch', label: t.deploy.branch, value: s.branch ?? '', hint: t.schedule.branchHint },
		{ name: 'envVars', label: t.schedule.variables, type: 'code', hint: t.deploy.moreHint,
			value: lines(s.envVars ?? {}), props: { rows: 2, placeholder: 'NAME=value' } },
	];
	return all.filter((field) => field !== false);
}

/** @param {Record<string, string>} values */
function bodyOf({ name, cron, timezone, pipelineId, environmentId, branch, envVars }) {
	return { name, cron, timezone, pipelineId: Number(pipelineId), branch: branch || null,
		environmentId: environmentId ? Number(environmentId) : null, envVars: lineValues(envVars) };
}

/** @param {Schedule} s @param {Data} data */
function facts(s, { pipelines }) {
	return el('dl', { class: 'facts' },
		fact(t.schedule.next, s.nextAt === null ? t.schedule.never : exact(s.nextAt)),
		fact(t.schedule.cron, [el('code', null, s.cron), ' ', el('span', { class: 'faint' }, s.timezone)]),
		fact(t.deploy.pipeline, pipelines.data.find(({ id }) => id === s.pipelineId)?.name ?? t.none),
		s.environmentId !== null && fact(t.deploy.environment, environmentOf(s.environmentId)?.name ?? t.none),
		s.branch !== null && fact(t.deploy.branch, el('span', { class: 'ref' }, s.branch)),
		s.lastDeploymentId !== null && fact(t.schedule.last, el('a',
			{ href: href(`/deployments/${s.lastDeploymentId}`) }, t.deployment.title(s.lastDeploymentId))));
}

/** @param {Schedule} s */
function trouble({ lastError, failures }) {
	const text = lastError ?? (failures >= LATE ? t.schedule.failures(failures) : null);
	return text !== null && el('div', { class: 'notice failed' }, icon('failed'), el('p', null, text));
}

/**
 * @param {Schedule} s
 * @param {boolean} isOpen
 * @param {Data} data
 * @param {Context} context
 */
function card(s, isOpen, data, context) {
	return [
		el('div', { class: 'head' },
			el('h2', null, s.name, !s.active && [' ', el('span', { class: 'badge' }, t.paused)]),
			may(context.who, 'maintainer') && !isOpen && tools(KIND, s, context, pauseButton(KIND, s, context))),
		trouble(s),
		!isOpen && facts(s, data)];
}

/** @param {Data} data @param {Context} context */
function list(data, context) {
	const add = (/** @type {any} */ body) => ({ projectId: data.project.id, ...body });
	return cards(KIND, data.list.data, { context,
		card: (s, isOpen) => card(s, isOpen, data, context),
		edit: (s) => editor(KIND, s, { context, fields: fields(s ?? {}, data),
			body: (values) => s === null ? add(bodyOf(values)) : bodyOf(values) }) });
}

/** @type {import('../lib/page.js').Page} */
export const schedules = {
	path: '/projects/:id/schedules',
	state: { open: null },
	sources: ({ params: { id } }) => ({
		project: `/projects/${id}`,
		list: `/schedules?projectId=${id}&limit=100`,
		pipelines: `/pipelines?projectId=${id}&limit=100`,
		environments: `/environments?projectId=${id}&limit=100`,
	}),
	title: (data) => t.schedule.titleOf(data.project.name),
	view: (data, context) => [
		projectHead(data.project, context),
		data.pipelines.data.length === 0 ? needsPipeline(data.project) : list(data, context),
	],
};
