// SPDX-License-Identifier: ISC
/** The form that deploys a project, generated from its presets. */
import { Problem, get, newKey, post } from '../lib/api.js';
import { changes } from '../lib/changes.js';
import { draw, el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { lockNotice } from '../lib/lock.js';
import { lineValues, otherLines, presetFields, presetValues } from '../lib/presets.js';
import { needsPipeline, projectHead } from '../lib/project.js';
import { go } from '../lib/router.js';
import { subject } from '../lib/deployments.js';
import { icon } from '../lib/status.js';
import { isolated } from '../lib/text.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {import('../lib/form.js').Field} Field */
/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/types.js').Pipeline} Pipeline */

/** The suggestions of the pickers; filled when the Git server has answered. */
const branchList = el('datalist', { id: 'branches' });
const tagList = el('datalist', { id: 'tags' });
const commitList = el('datalist', { id: 'commits' });

/**
 * @param {any} data
 * @param {Context} context
 */
function start(data, { query, state }) {
	const from = data.from;
	const environments = data.environments.data;
	return {
		pipeline: from?.pipelineId ?? data.pipelines.data[0]?.id,
		environment: query.get('environment') ?? from?.environmentId
			?? (environments.length === 1 ? environments[0].id : ''),
		source: from?.tag ? 'tag' : 'branch',
		tag: from?.tag ?? '',
		branch: from?.tag ? '' : from?.branch ?? data.project.defaultBranch ?? state.branch ?? '',
		commit: from?.commitHash ?? '',
		vars: from?.envVars ?? {},
	};
}

const MOST_PAGES = 10; // of branches or tags

/**
 * What the Git server reported. A service without one is no fault: the user types.
 * @param {unknown} error
 */
function gitProblem(error) {
	return error instanceof Problem && error.status !== 503 ? error.detail : t.changes.unlisted;
}

/**
 * @param {Context} context
 * @param {string} branch
 */
async function loadCommits(context, branch) {
	context.set({ branch, commits: null });
	try {
		const search = new URLSearchParams({ projectId: context.params.id, limit: '100' });
		if (branch !== '')
			search.set('branch', branch);
		const { data } = await get(`/git/commits?${search}`, { signal: context.signal });
		if (context.state.branch !== branch)
			return; // another has been chosen
		draw(commitList, data.map((/** @type {any} */ one) =>
			el('option', { value: one.hash },
				`${isolated(subject(one.message))} – ${isolated(one.authorName ?? '')}`)));
		context.set({ commits: data, gitProblem: '' });
	} catch (error) {
		context.set({ commits: [], gitProblem: gitProblem(error) });
	}
}

/**
 * Fills the suggestions of a picker with the names that the Git server knows; they
 * stay in the state, for their commits.
 * @param {'branches' | 'tags'} kind
 * @param {HTMLElement} list
 * @param {Context} context
 */
async function loadNames(kind, list, context) {
	try {
		/** @type {import('../lib/types.js').GitBranch[]} */
		const found = [];
		for (let page = 1, more = true; more && page <= MOST_PAGES; page++) {
			const { data, pagination } = await get(
				`/git/${kind}?projectId=${context.params.id}&limit=100&page=${page}`, { signal: context.signal });
			found.push(...data);
			more = pagination.hasMore;
			draw(list, found.map((one) => el('option', { value: one.name })));
			context.set({ [kind]: found });
		}
	} catch (error) {
		context.set({ gitProblem: gitProblem(error) });
	}
}

/**
 * An input with suggestions.
 * @param {{ name: string, value: string, list: string, changed: (value: string) => void }} spec
 */
function picker({ name, value, list, changed }) {
	return (/** @type {string} */ id, /** @type {string} */ describedBy) =>
		el('input', { id, name, value, list, autocomplete: 'off', spellcheck: 'false',
			'aria-describedby': describedBy, onchange: (/** @type {Event} */ event) =>
				changed(/** @type {HTMLInputElement} */ (event.target).value.trim()) });
}

/**
 * Where from: pipeline, environment, branch and commit.
 * @param {any} data
 * @param {ReturnType<typeof start>} values
 * @param {Context} context
 * @returns {Field[]}
 */
function sourceFields(data, values, context) {
	const pipelines = data.pipelines.data;
	const environments = data.environments.data;
	const named = (/** @type {any} */ one) => ({ value: String(one.id), label: one.name });
	/** @type {(Field | false)[]} */
	const fields = [
		pipelines.length > 1 && { name: 'pipelineId', label: t.deploy.pipeline, type: 'select',
			value: String(values.pipeline), options: pipelines.map(named) },
		environments.length > 0 && { name: 'environmentId', label: t.deploy.environment, type: 'select',
			required: true, value: String(values.environment),
			options: [{ value: '', label: t.deploy.choose }, ...environments.map(named)],
			props: { onchange: (/** @type {Event} */ event) => context.set({ environment:
				/** @type {HTMLSelectElement} */ (event.target).value }) } },
		{ name: 'source', label: t.deploy.source, type: 'select', value: values.source,
			options: Object.entries(t.deploy.sources).map(([value, label]) => ({ value, label })) },
		{ name: 'tag', label: t.deploy.tag, type: 'custom', hint: t.deploy.tagHint,
			control: picker({ name: 'tag', value: values.tag, list: 'tags',
				changed: (tag) => context.set({ tag }) }) },
		{ name: 'branch', label: t.deploy.branch, type: 'custom', hint: t.deploy.branchHint,
			control: picker({ name: 'branch', value: values.branch, list: 'branches',
				changed: (branch) => loadCommits(context, branch) }) },
		{ name: 'commitHash', label: t.deploy.commit, type: 'custom', hint: t.deploy.commitHint,
			control: picker({ name: 'commitHash', value: values.commit, list: 'commits',
				changed: (commit) => context.set({ commit }) }) },
	];
	return fields.filter((field) => field !== false);
}

/**
 * Shows the picker of what is deployed, in place of the other.
 * @param {HTMLFormElement} form
 * @param {string} source
 */
function choose(form, source) {
	for (const name of ['branch', 'tag']) {
		const row = /** @type {HTMLElement} */ (form.querySelector(`[data-field=${name}]`));
		row.hidden = name !== source;
		/** @type {HTMLInputElement} */ (row.querySelector('input')).disabled = row.hidden;
	}
}

/**
 * @param {Record<string, string>} values
 * @param {any} data
 */
function requestOf(values, data) {
	return {
		projectId: data.project.id,
		pipelineId: Number(values.pipelineId ?? data.pipelines.data[0].id),
		...(values.environmentId ? { environmentId: Number(values.environmentId) } : {}),
		...(values.tag ? { tag: values.tag.trim() } : {}),
		...(values.branch ? { branch: values.branch.trim() } : {}),
		...(values.commitHash ? { commitHash: values.commitHash.trim() } : {}),
		envVars: { ...presetValues(values), ...lineValues(values.more ?? '') },
	};
}

/**
 * @param {any} data
 * @param {Context} context
 */
function deployForm(data, context) {
	const values = start(data, context);
	const { envPresets } = data.project;
	context.state.environment = String(values.environment);
	Object.assign(context.state, { commit: values.commit, source: values.source, tag: values.tag });
	queueMicrotask(() => {
		loadNames('branches', branchList, context);
		loadNames('tags', tagList, context);
		loadCommits(context, values.branch);
	});
	const node = form({ id: 'deploy', label: t.deploy.title, submit: t.deploy.submit,
		fields: [...sourceFields(data, values, context), ...presetFields(envPresets, values.vars),
			{ name: 'more', label: t.deploy.more, type: 'code', hint: t.deploy.moreHint, pointer: '/envVars',
				value: otherLines(envPresets, values.vars), props: { rows: 2, placeholder: 'NAME=value' } }],
		send: async (answers) => {
			const once = newKey(); // a new sign-in repeats the request
			const made = await post('/deployments', requestOf(answers, data), { once });
			toast(t.deploy.started(made.id));
			go(`/deployments/${made.id}`);
		} });
	node.append(branchList, tagList, commitList);
	choose(node, values.source);
	node.addEventListener('change', ({ target }) => {
		if (target instanceof HTMLSelectElement && target.name === 'source') {
			choose(node, target.value);
			context.set({ source: target.value });
		}
	});
	return node;
}

/**
 * The environment that is chosen in the form.
 * @param {any} data
 * @param {Context} context
 * @returns {Environment | undefined}
 */
function chosen({ environments }, { state }) {
	return environments.data.find((/** @type {Environment} */ one) => String(one.id) === state.environment);
}

/**
 * @param {any} data
 * @param {Context} context
 */
function live(data, context) {
	return data.environments.data.length > 0 ? chosen(data, context)?.live ?? null
		: data.deployments.data[0] ?? null;
}

/**
 * What stands in the way of a deployment to the chosen environment.
 * @param {Environment | undefined} environment
 */
function obstacles(environment) {
	return environment !== undefined && [lockNotice(environment.lock),
		environment.approval === 'required' && el('div', { class: 'notice pending' }, icon('pending'),
			el('p', null, t.deploy.needsApproval))];
}

/**
 * The commit that the form names; empty: the newest of the branch.
 * @param {Context} context
 * @returns {string}
 */
function chosenCommit({ state: { source, tag, tags, commit } }) {
	const named = source === 'tag' ? tags.find((/** @type {any} */ one) => one.name === tag) : undefined;
	return named?.commitHash ?? commit;
}

/**
 * @param {any} data
 * @param {Context} context
 */
function whatChanges(data, context) {
	const { gitProblem: problem, environment, commits } = context.state;
	if (problem)
		return el('p', { class: problem === t.changes.unlisted ? 'faint' : 'notice pending' }, problem);
	if (data.environments.data.length > 0 && environment === '')
		return el('p', { class: 'faint' }, t.changes.choose);
	return changes(commits, chosenCommit(context), live(data, context));
}

/** @param {Context} context */
function sources({ params: { id }, query }) {
	const from = query.get('from');
	return {
		project: `/projects/${id}`,
		pipelines: `/pipelines?projectId=${id}&limit=100`,
		environments: `/environments?projectId=${id}&limit=100`,
		deployments: `/deployments?projectId=${id}&status=success&limit=1`,
		...(from === null ? {} : { from: `/deployments/${from}` }),
	};
}

/**
 * @param {any} data
 * @param {Context} context
 */
function content(data, context) {
	if (data.pipelines.data.length === 0)
		return needsPipeline(data.project);
	return el('div', { class: 'split' },
		el('div', { class: 'card' }, context.keep('form', () => deployForm(data, context))),
		el('aside', { class: 'card', 'aria-live': 'polite' }, el('h2', null, t.changes.title),
			obstacles(chosen(data, context)), whatChanges(data, context)));
}

/** @type {import('../lib/page.js').Page} */
export const deploy = {
	path: '/projects/:id/deploy',
	state: { commits: null, commit: '', environment: '', gitProblem: '', source: 'branch', tag: '', tags: [] },
	sources,
	title: (data) => t.deploy.titleOf(data.project.name),
	view: (data, context) => [
		projectHead(data.project, context, data.from ? t.deploy.again(data.from.id) : t.deploy.title),
		content(data, context),
	],
};
