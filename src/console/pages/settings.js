// SPDX-License-Identifier: ISC
/** A project's settings, edited in place. */
import { put, remove, saver } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { askLock } from '../lib/lock.js';
import * as names from '../lib/names.js';
import { projectHead } from '../lib/project.js';
import { go, href } from '../lib/router.js';
import { secretNotice } from '../lib/secret.js';
import { may } from '../lib/session.js';
import { ago, size } from '../lib/time.js';
import { toast } from '../lib/toast.js';
import { deployKeyCard } from './deploykey.js';
import { presetsForm, triggersForm } from './presets.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Project} Project */
/** @typedef {import('../lib/page.js').Context} Context */

/** @param {Project} project */
function generalForm(project) {
	const save = saver(`/projects/${project.id}`, project);
	return form({ id: 'general', label: t.project.settings, submit: t.save,
		fields: [
			{ name: 'name', label: t.project.name, required: true, value: project.name },
			{ name: 'description', label: t.project.description, type: 'textarea', value: project.description ?? '' },
			{ name: 'repository', label: t.project.repository, required: true, value: project.repository },
			{ name: 'defaultBranch', label: t.project.branch, value: project.defaultBranch ?? '',
				hint: t.project.branchHint },
			{ name: 'extraEnv', label: t.project.extraEnv, type: 'select', value: project.extraEnv,
				options: Object.entries(t.project.extraEnvs).map(([value, label]) => ({ value, label })) },
			{ name: 'badge', label: t.project.badge, type: 'check', value: project.badge ? 'on' : '',
				hint: t.project.badgeHint(`${location.origin}/api/projects/${project.id}/badge.svg`) },
			{ name: 'submodules', label: t.project.submodules, type: 'select',
				value: String(project.submodules ?? ''),
				options: Object.entries(t.project.submodulesAs).map(([value, label]) => ({ value, label })) },
			{ name: 'submoduleRepositories', label: t.project.submoduleRepositories,
				value: project.submoduleRepositories.join(' '), hint: t.project.submoduleRepositoriesHint },
			{ name: 'lfs', label: t.project.lfs, type: 'check', value: project.lfs ? 'on' : '',
				hint: t.project.lfsHint },
		],
		send: async (values) => {
			await save({ ...values, badge: values.badge === 'on', lfs: values.lfs === 'on',
				submodules: values.submodules === '' ? null : values.submodules === 'true',
				submoduleRepositories: values.submoduleRepositories.split(/\s+/).filter(Boolean),
				description: values.description || null,
				defaultBranch: values.defaultBranch || null });
			await names.load();
			toast(t.saved);
			refresh();
		} });
}

/** @param {Project} project @param {Context} context */
async function emptyCache(project, context) {
	if (await context.run(() => remove(`/projects/${project.id}/cache`)))
		toast(t.workspace.emptied);
}

/** @param {Project} project @param {Context} context */
function workspace(project, context) {
	const { workspaceStatus: w, projectDir } = project;
	const one = (/** @type {string} */ label, /** @type {import('../lib/dom.js').Child} */ value) =>
		[el('dt', null, label), el('dd', null, value)];
	return el('section', { class: 'card' }, el('h2', null, t.workspace.title),
		el('dl', { class: 'facts' }, one(t.workspace.directory, el('code', null, projectDir)),
			one(t.workspace.state, t.workspace.states[w.status]),
			w.branch !== null && one(t.deploy.branch, el('span', { class: 'ref' }, w.branch)),
			w.sizeBytes !== null && one(t.workspace.size, size(w.sizeBytes)),
			w.checkedAt !== null && one(t.workspace.checked, [w.runner, ', ', ago(w.checkedAt)])),
		may(context.who, 'deployer') && el('div', { class: 'actions' },
			el('button', { 'data-key': 'cache', onclick: () => emptyCache(project, context) },
				t.workspace.emptyCache)));
}

/** @param {Project} project @param {Context} context */
async function renewHook(project, context) {
	if (await confirmLoss(t.hook.renewTitle, t.hook.renewText, t.hook.renew))
		await context.run(async () =>
			context.set({ hook: await put(`/projects/${project.id}/hook-secret`, undefined) }));
}

/** @param {string | null} url */
function hookUrl(url) {
	return url === null ? [el('br'), t.hook.noUrl] : [el('br'), t.hook.url, ' ', el('code', { class: 'secret' }, url)];
}

/**
 * How the Git server reports pushes.
 * @param {Project} project
 * @param {Context} context
 */
function hook(project, context) {
	const shown = context.state.hook;
	return el('section', { class: 'card' }, el('h2', null, t.hook.title), el('p', { class: 'faint' }, t.hook.lead),
		shown !== null && secretNotice(t.hook.once, shown.secret, hookUrl(shown.url)),
		el('div', { class: 'actions' }, el('button', { 'data-key': 'hook', onclick: () => renewHook(project, context) },
			t.hook.renew)));
}

/** @param {Project} project */
function exported({ id, name }) {
	return el('section', { class: 'card' }, el('h2', null, t.transfer.exportTitle),
		el('p', { class: 'faint' }, t.transfer.exportLead),
		el('div', { class: 'actions' }, el('a', { class: 'button', href: `/api/projects/${id}/export`,
			download: `${name}.json` }, t.transfer.export)));
}

/** @param {Project} project @param {Context} context */
async function drop(project, context) {
	if (await confirmLoss(t.project.deleteTitle(project.name), t.project.deleteText, t.delete)
	    && await context.run(() => remove(`/projects/${project.id}`)))
		go('/projects');
}

/** @param {Project} project @param {Context} context */
function danger(project, context) {
	return el('section', { class: 'card' }, el('h2', null, t.project.danger),
		el('div', { class: 'actions' },
			project.lock === null && el('button', {
				onclick: () => askLock(`/projects/${project.id}/lock`, refresh) }, t.project.lock),
			el('a', { class: 'button', href: href(`/audit?projectId=${project.id}`) }, t.audit.link),
			el('button', { class: 'danger', onclick: () => drop(project, context) }, t.project.delete)));
}

/** @type {import('../lib/page.js').Page} */
export const settings = {
	path: '/projects/:id/settings',
	state: { hook: null },
	sources: ({ params: { id } }) => ({
		project: `/projects/${id}`,
		pipelines: `/pipelines?projectId=${id}&limit=100`,
		environments: `/environments?projectId=${id}&limit=100`,
	}),
	title: (data) => t.project.settingsOf(data.project.name),
	view: ({ project, pipelines, environments }, context) => [
		projectHead(project, context),
		!may(context.who, 'maintainer') ? el('p', { class: 'faint' }, t.project.readOnly) : [
			el('section', { class: 'card' }, el('h2', null, t.project.general),
				context.keep('general', () => generalForm(project))),
			el('section', { class: 'card' }, el('h2', null, t.project.presets),
				context.keep('presets', () => presetsForm(project))),
			el('section', { class: 'card' }, el('h2', null, t.project.triggers), context.keep('triggers', () =>
				triggersForm(project, pipelines.data, environments.data))),
			hook(project, context), deployKeyCard(project, context), exported(project)],
		workspace(project, context),
		may(context.who, 'maintainer') && danger(project, context),
	],
};
