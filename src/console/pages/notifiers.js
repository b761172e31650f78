// SPDX-License-Identifier: ISC
/** Who is notified of which events: in one project, or everywhere. */
import { post, put } from '../lib/api.js';
import { el } from '../lib/dom.js';
import { cards, editor, fact, pauseButton, tools } from '../lib/items.js';
import { refresh } from '../lib/live.js';
import { environmentOf, projectName } from '../lib/names.js';
import { projectHead } from '../lib/project.js';
import { href } from '../lib/router.js';
import { secretNotice } from '../lib/secret.js';
import { icon } from '../lib/status.js';
import { ago } from '../lib/time.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Notifier} Notifier */
/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {import('../lib/form.js').Field} Field */

/** When the result of a test may be there, which no event announces. */
const RESULT_MS = [1000, 2000, 4000];

/**
 * The mail addresses, or the host of the address, whose path can be a secret.
 * @param {Notifier} n
 */
function nameOf({ kind, target }) {
	if (kind === 'mail')
		return target.split(',').map((one) => one.trim()).join(', ');
	return URL.canParse(target) ? new URL(target).host : target;
}

/** @type {import('../lib/items.js').Kind} */
const KIND = { id: 'notifier', path: '/notifiers', add: t.notifier.add, none: t.notifier.none, name: nameOf,
	deleteTitle: t.notifier.deleteTitle, deleteText: t.notifier.deleteText };

/**
 * @param {Notifier | null} n
 * @param {Environment[]} environments to choose from
 * @returns {Field[]}
 */
function fields(n, environments) {
	const labels = (/** @type {Record<string, string>} */ texts) =>
		Object.entries(texts).map(([value, label]) => ({ value, label }));
	/** @type {(Field | false)[]} */
	const all = [
		n === null && { name: 'kind', label: t.notifier.kind, type: 'select', options: labels(t.notifier.kinds) },
		{ name: 'target', label: t.notifier.target, required: true, value: n?.target, hint: t.notifier.targetHint },
		{ name: 'events', label: t.notifier.events, type: 'choices', options: labels(t.notifier.event),
			value: (n?.events ?? ['failed', 'recovered']).join() },
		environments.length > 0 && { name: 'environmentId', label: t.notifier.environment, type: 'select',
			value: String(n?.environmentId ?? ''), options: [{ value: '', label: t.notifier.anyEnvironment },
				...environments.map(({ id, name }) => ({ value: String(id), label: name }))] },
	];
	return all.filter((field) => field !== false);
}

/** @param {Record<string, string>} values */
function bodyOf({ target, events, environmentId }) {
	return { target: target.trim(), events: events.split(',').filter(Boolean),
		...(environmentId === undefined ? {} : { environmentId: environmentId ? Number(environmentId) : null }) };
}

/** @param {Notifier} n @param {Context} context */
function test(n, context) {
	return context.run(async () => {
		await post(`/notifiers/${n.id}/test`);
		toast(t.notifier.tested);
		RESULT_MS.forEach((ms) => setTimeout(refresh, ms));
	});
}

/** @param {Notifier} n @param {Context} context */
async function renew(n, context) {
	const { secret } = await put(`/notifiers/${n.id}/secret`, undefined);
	context.set({ secret });
}

/** @param {Notifier} n @param {Context} context */
function notifierTools(n, context) {
	const name = nameOf(n);
	return tools(KIND, n, context,
		n.active && el('button', { 'aria-label': t.notifier.testOf(name), onclick: () => test(n, context) },
			t.notifier.test),
		n.kind === 'webhook' && el('button', { 'aria-label': t.notifier.renewOf(name),
			onclick: () => context.run(() => renew(n, context)) }, t.notifier.renew),
		pauseButton(KIND, n, context));
}

/** @param {Notifier} n @param {boolean} withProject */
function facts(n, withProject) {
	return el('dl', { class: 'facts' },
		withProject && fact(t.deployment.project, n.projectId === null ? t.notifier.allProjects
			: el('a', { href: href(`/projects/${n.projectId}/notifiers`) }, projectName(n.projectId))),
		n.kind !== 'mail' && fact(t.notifier.target, el('span', { class: 'isolate' }, n.target)),
		fact(t.notifier.events, n.events.map((event) => el('span', { class: 'badge' }, t.notifier.event[event]))),
		n.environmentId !== null && fact(t.notifier.environment, environmentOf(n.environmentId)?.name ?? t.none),
		fact(t.notifier.delivered, n.lastDeliveredAt === null ? t.none : ago(n.lastDeliveredAt)));
}

/**
 * @param {Notifier} n
 * @param {boolean} isOpen
 * @param {boolean} withProject
 * @param {Context} context
 */
function card(n, isOpen, withProject, context) {
	return [
		el('div', { class: 'head' },
			el('h2', null, t.notifier.kinds[n.kind], ' ', el('span', { class: 'faint isolate' }, nameOf(n)),
				!n.active && [' ', el('span', { class: 'badge' }, t.paused)]),
			!isOpen && notifierTools(n, context)),
		n.lastError !== null && el('div', { class: 'notice failed' }, icon('failed'), el('p', null, n.lastError)),
		!isOpen && facts(n, withProject)];
}

/**
 * @param {Notifier[]} list
 * @param {number | null} projectId of those that are added; null: they hear of all projects
 * @param {Environment[]} environments
 * @param {Context} context
 */
function content(list, projectId, environments, context) {
	const { secret } = context.state;
	return [
		secret !== '' && secretNotice(t.notifier.once, secret),
		cards(KIND, list, { context,
			card: (n, isOpen) => card(n, isOpen, projectId === null, context),
			edit: (n) => editor(KIND, n, { context, fields: fields(n, environments),
				body: (values) => n === null ? { projectId, kind: values.kind, ...bodyOf(values) } : bodyOf(values),
				saved: (/** @type {Notifier} */ saved) => context.set({ secret: saved.secret ?? '' }) }) }),
	];
}

/** @type {import('../lib/page.js').Page} */
export const projectNotifiers = {
	path: '/projects/:id/notifiers',
	state: { open: null, secret: '' },
	sources: ({ params: { id } }) => ({ project: `/projects/${id}`, list: `/notifiers?projectId=${id}&limit=100`,
		environments: `/environments?projectId=${id}&limit=100` }),
	title: ({ project }) => t.notifier.titleOf(project.name),
	view: ({ project, list, environments }, context) => [
		projectHead(project, context),
		content(list.data, project.id, environments.data, context),
	],
};

/** @type {import('../lib/page.js').Page} */
export const notifiers = {
	path: '/notifiers',
	role: 'maintainer',
	state: { open: null, secret: '' },
	sources: () => ({ list: '/notifiers?limit=100' }),
	title: () => t.notifier.title,
	view: ({ list }, context) => [
		el('h1', { tabindex: -1 }, t.notifier.title),
		el('p', { class: 'lead' }, t.notifier.lead),
		content(list.data, null, [], context),
	],
};
