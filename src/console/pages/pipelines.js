// SPDX-License-Identifier: ISC
/** A project's pipelines, and a new one from a template or from nothing. */
import { post } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { needsPipeline, projectHead } from '../lib/project.js';
import { go, href } from '../lib/router.js';
import { may } from '../lib/session.js';
import { table } from '../lib/table.js';
import { ago } from '../lib/time.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Pipeline} Pipeline */
/** @typedef {import('../lib/types.js').Template} Template */
/** @typedef {import('../lib/page.js').Context} Context */

/** @param {Pipeline} pipeline */
function row(pipeline) {
	return el('tr', { 'data-key': pipeline.id },
		el('td', null, el('a', { class: 'cover', href: href(`/pipelines/${pipeline.id}`) }, pipeline.name)),
		el('td', { class: 'wide' }, pipeline.description ?? ''),
		el('td', { class: 'when' }, ago(pipeline.updatedAt)));
}

/** @type {import('../lib/page.js').Page} */
export const pipelines = {
	path: '/projects/:id/pipelines',
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`,
		list: `/pipelines?projectId=${id}&limit=100` }),
	title: (data) => t.pipelines.titleOf(data.project.name),
	view: ({ project, list }, context) => [
		projectHead(project, context),
		list.data.length === 0 ? needsPipeline(project) : table(Object.values(t.pipelines.columns), list.data.map(row), { links: true }),
		list.data.length > 0 && may(context.who, 'maintainer') && el('div', { class: 'actions' },
			el('a', { class: 'button', href: href(`/projects/${project.id}/pipelines/new`) }, t.pipelines.add)),
	],
};

/** @param {Template[]} templates */
function byName(templates) {
	return [...templates].sort((a, b) => a.name.localeCompare(b.name, t.locale, { sensitivity: 'base' }));
}

/**
 * Shows what a template brings. In a narrow window that is below all templates.
 * @param {string} template
 * @param {Context} context
 */
function choose(template, context) {
	context.set({ template });
	context.main.querySelector('.split > .stack')?.scrollIntoView({ block: 'nearest' });
}

/**
 * @param {Template} template
 * @param {Context} context
 */
function choice(template, context) {
	const chosen = context.state.template === template.id;
	return el('li', { 'data-key': template.id }, el('button', { class: `template ${chosen ? 'chosen' : ''}`,
		'aria-pressed': String(chosen), onclick: () => choose(template.id, context) },
	el('strong', null, template.name), el('span', { class: 'faint' }, template.description)));
}

/**
 * What a template brings: its steps, and the presets that it adds to the project.
 * @param {Template} template
 */
function preview(template) {
	return el('div', { class: 'card' }, el('h2', null, template.name),
		el('p', { class: 'faint' }, template.description),
		el('h3', null, t.pipelines.stepsOf(template.steps.length)),
		template.steps.map((step, i) => el('details', { class: 'script', 'data-key': i },
			el('summary', null, `${i + 1}. ${step.name}`), el('pre', { tabindex: 0 }, step.script))),
		template.envPresets.length > 0 && [el('h3', null, t.pipelines.presetsOf(template.envPresets.length)),
			el('ul', { class: 'presets' }, template.envPresets.map((preset) =>
				el('li', null, el('code', null, preset.key), ' ', preset.label,
					preset.required && el('span', { class: 'faint' }, ` (${t.required})`))))]);
}

/**
 * @param {number} projectId
 * @param {Template | undefined} template
 * @param {Record<string, string>} values
 */
async function create(projectId, template, { name }) {
	const made = template === undefined
		? await post('/pipelines', { projectId, name })
		: await post('/pipelines/from-template', { projectId, templateId: template.id, name });
	go(`/pipelines/${made.id}`);
}

/**
 * @param {any} data
 * @param {Context} context
 */
function chosen({ project, templates }, context) {
	const template = templates.data.find((/** @type {Template} */ one) => one.id === context.state.template);
	return [
		template !== undefined && preview(template),
		el('div', { class: 'card' }, context.keep(`form-${context.state.template}`, () => form({
			id: 'new-pipeline', label: t.pipelines.add, submit: t.pipelines.create,
			fields: [{ name: 'name', label: t.pipelines.name, required: true,
				value: template?.name ?? '', props: { maxlength: 100 } }],
			send: (values) => create(project.id, template, values) }))),
	];
}

/** @type {import('../lib/page.js').Page} */
export const newPipeline = {
	path: '/projects/:id/pipelines/new',
	state: { template: '' },
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`, templates: '/templates?limit=100' }),
	title: (data) => t.pipelines.titleOf(data.project.name),
	view: (data, context) => [
		projectHead(data.project, context, t.pipelines.add),
		el('p', { class: 'lead' }, t.pipelines.lead),
		el('div', { class: 'split' },
			el('ul', { class: 'templates' },
				choice({ id: '', name: t.pipelines.blank, description: t.pipelines.blankText, envPresets: [],
					steps: [], checkout: 'fresh' }, context),
				byName(data.templates.data).map((one) => choice(one, context))),
			el('div', { class: 'stack', 'data-key': context.state.template }, chosen(data, context))),
	],
};
