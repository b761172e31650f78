// SPDX-License-Identifier: ISC
/** The pipeline editor: its steps in order, each a shell script. */
import { post, put, remove, saver } from '../lib/api.js';
import { runChart } from '../lib/chart.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { projectHead } from '../lib/project.js';
import { go } from '../lib/router.js';
import { may } from '../lib/session.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').PipelineStep} Step */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {import('../lib/form.js').Field} Field */

/** @param {string} text */
function toSeconds(text) {
	return text === '' ? null : Number(text);
}

/**
 * @param {Partial<Step>} step
 * @returns {Field[]}
 */
function stepFields(step) {
	return [
		{ name: 'name', label: t.step.name, required: true, value: step.name, props: { maxlength: 100 } },
		{ name: 'script', label: t.step.script, type: 'code', required: true, value: step.script,
			hint: t.step.scriptHint, props: { rows: Math.min(24, (step.script ?? '').split('\n').length + 2) } },
		{ name: 'directory', label: t.step.directory, hint: t.step.directoryHint,
			value: step.directory ?? '', props: { maxlength: 255 } },
		{ name: 'runWhen', label: t.step.runWhen, type: 'select', value: step.runWhen ?? 'success',
			options: Object.entries(t.step.when).map(([value, label]) => ({ value, label })) },
		{ name: 'mayFail', label: t.step.mayFail, type: 'check', hint: t.step.mayFailHint,
			value: step.mayFail ? 'on' : '' },
		{ name: 'timeoutSeconds', label: t.step.timeout, type: 'number', hint: t.step.timeoutHint,
			value: step.timeoutSeconds === null ? '' : String(step.timeoutSeconds ?? ''), props: { min: 1 } },
	];
}

/** @param {Record<string, string>} values */
function stepBody({ name, script, directory, runWhen, mayFail, timeoutSeconds }) {
	return { name, script, directory: directory || null, runWhen, mayFail: mayFail === 'on',
		timeoutSeconds: toSeconds(timeoutSeconds) };
}

/**
 * Tab indents in a script; Escape, then Tab leaves it.
 * @param {KeyboardEvent} event
 */
export function indent(event) {
	const area = event.target;
	if (!(area instanceof HTMLTextAreaElement))
		return;
	if (event.key === 'Escape')
		area.dataset.leave = 'yes';
	if (event.key !== 'Tab' || event.shiftKey || area.dataset.leave === 'yes')
		return;
	event.preventDefault();
	area.setRangeText('\t', area.selectionStart, area.selectionEnd, 'end');
	area.dispatchEvent(new Event('input', { bubbles: true }));
}

/**
 * Closes the form of a step; a script that was changed is not lost by one click.
 * @param {HTMLFormElement} node
 * @param {Context} context
 */
async function leave(node, context) {
	const area = node.querySelector('textarea');
	if (area !== null && area.value !== area.defaultValue
	    && !await confirmLoss(t.step.discardTitle, t.step.discardText, t.step.discard))
		return false;
	context.set({ open: null });
	return true;
}

/**
 * @param {Step} step
 * @param {Context} context
 */
function editForm(step, context) {
	const save = saver(`/steps/${step.id}`, step);
	/** @type {HTMLFormElement} */
	const node = form({ id: `step-${step.id}`, label: step.name, submit: t.save, fields: stepFields(step),
		cancel: () => leave(node, context),
		send: async (values) => {
			await save(stepBody(values));
			toast(t.step.saved);
			context.set({ open: null });
			refresh();
		} });
	node.addEventListener('keydown', indent);
	return node;
}

/**
 * @param {number} pipelineId
 * @param {Context} context
 */
function newForm(pipelineId, context) {
	/** @type {HTMLFormElement} */
	const node = form({ id: 'new-step', label: t.step.add, submit: t.step.add, fields: stepFields({}),
		cancel: () => leave(node, context),
		send: async (values) => {
			await post('/steps', { pipelineId, ...stepBody(values) });
			context.set({ open: null });
			refresh();
		} });
	node.addEventListener('keydown', indent);
	return node;
}

/**
 * @param {Step} step
 * @param {number} position
 * @param {Context} context
 */
async function move(step, position, context) {
	if (position === step.position)
		return;
	if (await context.run(() => put(`/steps/${step.id}`, { position })))
		toast(t.step.moved(step.name, position + 1));
}

/**
 * @param {Step} step
 * @param {Context} context
 */
async function drop(step, context) {
	if (await confirmLoss(t.step.deleteTitle(step.name), t.step.deleteText, t.delete))
		context.run(() => remove(`/steps/${step.id}`));
}

/**
 * Marks the step onto which another one would be dropped.
 * @param {DragEvent} event
 * @param {boolean} isOver
 */
function markTarget({ currentTarget }, isOver) {
	if (currentTarget instanceof Element)
		currentTarget.classList.toggle('over', isOver);
}

/**
 * The handlers that move a step by dragging its heading onto another step. The script
 * is not dragged, so that its text can be selected.
 * @param {Step} step
 * @param {Step[]} steps
 * @param {Context} context
 */
function dragging(step, steps, context) {
	return {
		ondragstart: (/** @type {DragEvent} */ event) => {
			event.dataTransfer?.setData('text/plain', String(step.id));
			if (event.currentTarget instanceof Element)
				event.dataTransfer?.setDragImage(event.currentTarget, 0, 0);
		},
		ondragover: (/** @type {DragEvent} */ event) => {
			event.preventDefault();
			markTarget(event, true);
		},
		ondragleave: (/** @type {DragEvent} */ event) => markTarget(event, false),
		ondrop: (/** @type {DragEvent} */ event) => {
			event.preventDefault();
			markTarget(event, false);
			const moved = steps.find((one) => String(one.id) === event.dataTransfer?.getData('text/plain'));
			if (moved !== undefined)
				move(moved, step.position, context);
		},
	};
}

/**
 * @param {Step} step
 * @param {Step[]} steps
 * @param {Context} context
 */
function stepTools(step, steps, context) {
	return el('div', { class: 'actions' },
		el('button', { class: 'plain', disabled: step.position === 0, 'aria-label': t.moveUp(step.name),
			onclick: () => move(step, step.position - 1, context) }, '↑'),
		el('button', { class: 'plain', disabled: step.position === steps.length - 1,
			'aria-label': t.moveDown(step.name), onclick: () => move(step, step.position + 1, context) }, '↓'),
		el('button', { onclick: () => context.set({ open: step.id }),
			'aria-label': t.editOf(step.name) }, t.edit),
		el('button', { class: 'plain', onclick: () => drop(step, context),
			'aria-label': t.deleteOf(step.name) }, t.delete));
}

/**
 * @param {Step} step
 * @param {Step[]} steps
 * @param {Context} context
 */
function stepItem(step, steps, context) {
	const editable = may(context.who, 'maintainer');
	const open = context.state.open === step.id;
	const movable = editable && !open && steps.length > 1;
	return el('li', { class: 'card step', 'data-key': step.id, ...(movable ? dragging(step, steps, context) : {}) },
	el('div', { class: 'head', draggable: movable ? 'true' : null },
		el('h2', null, movable && el('span', { class: 'grip', 'aria-hidden': 'true' }, '⠿'), el('span', { class: 'faint' }, `${step.position + 1}. `), step.name,
			step.directory !== null && [' ', el('code', null, step.directory)],
			step.runWhen !== 'success' && [' ', el('span', { class: 'badge' }, t.step.when[step.runWhen])],
			step.mayFail && [' ', el('span', { class: 'badge' }, t.step.mayFail)]),
		editable && !open && stepTools(step, steps, context)),
	open ? context.keep(`step-${step.id}`, () => editForm(step, context))
		: el('pre', { tabindex: 0, 'aria-label': t.step.script }, step.script));
}

/** @param {any} pipeline @param {Context} context */
async function dropPipeline(pipeline, context) {
	if (await confirmLoss(t.pipelines.deleteTitle(pipeline.name), t.pipelines.deleteText, t.delete)
	    && await context.run(() => remove(`/pipelines/${pipeline.id}`)))
		go(`/projects/${pipeline.projectId}/pipelines`);
}

/** @param {any} pipeline @param {Context} context */
function settings(pipeline, context) {
	const save = saver(`/pipelines/${pipeline.id}`, pipeline);
	return el('details', { class: 'card' }, el('summary', null, t.pipelines.settings),
		context.keep('settings', () => form({ id: 'pipeline', label: t.pipelines.settings, submit: t.save,
			fields: [
				{ name: 'name', label: t.pipelines.name, required: true, value: pipeline.name },
				{ name: 'description', label: t.project.description, type: 'textarea',
					value: pipeline.description ?? '' },
				{ name: 'checkout', label: t.pipelines.checkout, type: 'select', value: pipeline.checkout,
					options: Object.entries(t.pipelines.checkouts).map(([value, label]) => ({ value, label })) },
				{ name: 'timeoutSeconds', label: t.step.timeout, type: 'number', hint: t.step.timeoutHint,
					value: pipeline.timeoutSeconds === null ? '' : String(pipeline.timeoutSeconds) },
			],
			send: async (values) => {
				await save({ ...values, description: values.description || null,
					timeoutSeconds: toSeconds(values.timeoutSeconds) });
				toast(t.saved);
				refresh();
			} })),
		el('div', { class: 'actions' }, el('button', { class: 'danger',
			onclick: () => dropPipeline(pipeline, context) }, t.pipelines.deleteIt)));
}

/** @param {any} pipeline @param {Context} context */
function adder(pipeline, context) {
	return context.state.open === 'new'
		? el('div', { class: 'card' }, context.keep('new-step',
			() => newForm(pipeline.id, context)))
		: el('div', { class: 'actions' }, el('button', {
			onclick: () => context.set({ open: 'new' }) }, t.step.add));
}

/** @type {import('../lib/page.js').Page} */
export const pipeline = {
	path: '/pipelines/:id',
	state: { open: null },
	sources: ({ params: { id } }) => ({ pipeline: `/pipelines/${id}`,
		runs: `/deployments?pipelineId=${id}&limit=50` }),
	more: ({ pipeline: p }) => ({ project: `/projects/${p.projectId}` }),
	title: (data) => data.pipeline.name,
	view: ({ pipeline: p, runs, project }, context) => [
		projectHead(project, context, p.name),
		p.description !== null && el('p', { class: 'lead' }, p.description),
		p.steps.length === 0 && el('p', { class: 'empty' }, t.step.none),
		el('ol', { class: 'steps' }, p.steps.map((/** @type {Step} */ step) => stepItem(step, p.steps, context))),
		may(context.who, 'maintainer') && adder(p, context),
		runChart(runs.data),
		may(context.who, 'maintainer') && settings(p, context),
	],
};
