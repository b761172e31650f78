// SPDX-License-Identifier: ISC
/** A project's schedules: what is deployed at which times. */
import { post, put, remove, saver } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { environmentOf } from '../lib/names.js';
import { lineValues } from '../lib/presets.js';
import { projectHead } from '../lib/project.js';
import { href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { icon } from '../lib/status.js';
import { exact } from '../lib/time.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Schedule} Schedule */
/** @typedef {import('../lib/types.js').Pipeline} Pipeline */
/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {{ list: { data: Schedule[] }, pipelines: { data: Pipeline[] },
 *   environments: { data: Environment[] }, project: import('../lib/types.js').Project }} Data */

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

/**
 * @param {Schedule | null} s null: a new one
 * @param {Data} data
 * @param {Context} context
 */
function editor(s, data, context) {
	const save = s === null
		? (/** @type {any} */ body) => post('/schedules', { projectId: data.project.id, ...body })
		: saver(`/schedules/${s.id}`, s);
	return form({ id: s === null ? 'new-schedule' : `schedule-${s.id}`, label: s?.name ?? t.schedule.add,
		submit: s === null ? t.schedule.add : t.save, fields: fields(s ?? {}, data),
		cancel: () => context.set({ open: null }),
		send: async (values) => {
			await save(bodyOf(values));
			toast(t.saved);
			context.set({ open: null });
			refresh();
		} });
}

/** @param {Schedule} s @param {Context} context */
async function drop(s, context) {
	if (await confirmLoss(t.schedule.deleteTitle(s.name), t.schedule.deleteText, t.delete))
		context.run(() => remove(`/schedules/${s.id}`));
}

/** @param {Schedule} s @param {Context} context */
function tools(s, context) {
	return el('div', { class: 'actions' },
		el('button', { 'aria-label': s.active ? t.schedule.pauseOf(s.name) : t.schedule.resumeOf(s.name),
			onclick: () => context.run(() => put(`/schedules/${s.id}`, { active: !s.active })) },
		s.active ? t.schedule.pause : t.schedule.resume),
		el('button', { onclick: () => context.set({ open: s.id }), 'aria-label': t.editOf(s.name) }, t.edit),
		el('button', { class: 'plain', onclick: () => drop(s, context),
			'aria-label': t.deleteOf(s.name) }, t.delete));
}

/** @param {Schedule} s @param {Data} data */
function facts(s, { pipelines }) {
	const one = (/** @type {string} */ label, /** @type {import('../lib/dom.js').Child} */ value) =>
		[el('dt', null, label), el('dd', null, value)];
	return el('dl', { class: 'facts' },
		one(t.schedule.next, s.nextAt === null ? t.schedule.never : exact(s.nextAt)),
		one(t.schedule.cron, [el('code', null, s.cron), ' ', el('span', { class: 'faint' }, s.timezone)]),
		one(t.deploy.pipeline, pipelines.data.find(({ id }) => id === s.pipelineId)?.name ?? t.none),
		s.environmentId !== null && one(t.deploy.environment, environmentOf(s.environmentId)?.name ?? t.none),
		s.branch !== null && one(t.deploy.branch, el('span', { class: 'ref' }, s.branch)),
		s.lastDeploymentId !== null && one(t.schedule.last, el('a',
			{ href: href(`/deployments/${s.lastDeploymentId}`) }, t.deployment.title(s.lastDeploymentId))));
}

/** @param {Schedule} s */
function trouble({ lastError, failures }) {
	const text = lastError ?? (failures >= LATE ? t.schedule.failures(failures) : null);
	return text !== null && el('div', { class: 'notice failed' }, icon('failed'), el('p', null, text));
}

/** @param {Schedule} s @param {Data} data @param {Context} context */
function item(s, data, context) {
	const editable = may(context.user, 'maintainer');
	const open = context.state.open === s.id;
	return el('li', { class: 'card', 'data-key': s.id },
		el('div', { class: 'head' },
			el('h2', null, s.name, !s.active && [' ', el('span', { class: 'badge' }, t.schedule.paused)]),
			editable && !open && tools(s, context)),
		trouble(s),
		open ? context.keep(`schedule-${s.id}`, () => editor(s, data, context)) : facts(s, data));
}

/** @param {Data} data @param {Context} context */
function adder(data, context) {
	if (data.pipelines.data.length === 0)
		return el('p', { class: 'faint' }, t.project.needsPipeline);
	return context.state.open === 'new'
		? el('div', { class: 'card' }, context.keep('new-schedule', () => editor(null, data, context)))
		: el('div', { class: 'actions' },
			el('button', { onclick: () => context.set({ open: 'new' }) }, t.schedule.add));
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
		data.list.data.length === 0 && context.state.open !== 'new' && el('p', { class: 'empty' }, t.schedule.none),
		el('ul', { class: 'stack' }, data.list.data.map((/** @type {Schedule} */ s) => item(s, data, context))),
		may(context.user, 'maintainer') && adder(data, context),
	],
};
