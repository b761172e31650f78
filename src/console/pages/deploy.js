// SPDX-License-Identifier: ISC
/** The form that deploys a project, generated from its presets. */
import { Problem, get, newKey, post } from '../lib/api.js';
import { changes } from '../lib/changes.js';
import { combobox } from '../lib/combobox.js';
import { draw, el } from '../lib/dom.js';
import { form } from '../lib/form.js';
import { lockNotice } from '../lib/lock.js';
import { changePresets, lineValues, otherLines, presetFields, presetValues, presetsIn } from '../lib/presets.js';
import { needsPipeline, projectHead } from '../lib/project.js';
import { go } from '../lib/router.js';
import { subject } from '../lib/deployments.js';
import { may } from '../lib/session.js';
import { icon } from '../lib/status.js';
import { inOrder } from '../lib/text.js';
import { ago } from '../lib/time.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/page.js').Context} Context */
/** @typedef {import('../lib/form.js').Field} Field */
/** @typedef {import('../lib/types.js').Environment} Environment */
/** @typedef {import('../lib/types.js').GitCommit} Commit */
/** @typedef {import('../lib/types.js').GitBranch} Named a branch, or a tag */

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
const MOST_SHOWN = 50;

/**
 * What the Git server reported. A service without one is no fault: the user types.
 * @param {unknown} error
 */
function gitProblem(error) {
	return error instanceof Problem && error.status !== 503 ? error.detail : t.changes.unlisted;
}

/**
 * Fetches the commits of a branch, newest first, and shows what they change.
 * @param {Context} context
 * @param {string} branch
 * @returns {Promise<Commit[]>}
 */
async function loadCommits(context, branch) {
	context.set({ branch, commits: null });
	try {
		const search = new URLSearchParams({ projectId: context.params.id, limit: '100' });
		if (branch !== '')
			search.set('branch', branch);
		const { data } = await get(`/git/commits?${search}`, { signal: context.signal });
		// unless another has been chosen meanwhile
		if (context.state.branch === branch)
			context.set({ commits: data, gitProblem: '' });
		return data;
	} catch (error) {
		if (context.state.branch === branch)
			context.set({ commits: [], gitProblem: gitProblem(error) });
		throw error;
	}
}

/**
 * Fetches the names that the Git server knows; they stay in the state, for their commits.
 * @param {'branches' | 'tags'} kind
 * @param {Context} context
 * @returns {Promise<Named[]>}
 */
async function loadNames(kind, context) {
	try {
		/** @type {Named[]} */
		const found = [];
		for (let page = 1, more = true; more && page <= MOST_PAGES; page++) {
			const { data, pagination } = await get(
				`/git/${kind}?projectId=${context.params.id}&limit=100&page=${page}`, { signal: context.signal });
			found.push(...data);
			more = pagination.hasMore;
		}
		context.set({ [kind]: found });
		return found;
	} catch (error) {
		context.set({ gitProblem: gitProblem(error) });
		throw error;
	}
}

/**
 * Calls `load` once and shares what it returns; after an error, calls it again.
 * @template T
 * @param {() => Promise<T>} load
 */
function shared(load) {
	/** @type {Promise<T> | null} */
	let loading = null;
	return () => loading ??= load().catch((error) => {
		loading = null;
		throw error;
	});
}

/**
 * The objects that contain a text, as suggestions.
 * @template T
 * @param {T[]} all
 * @param {string} text
 * @param {(one: T) => string} words what is searched
 * @param {(one: T) => import('../lib/combobox.js').Suggestion} suggestion
 */
function matching(all, text, words, suggestion) {
	const lower = text.toLowerCase();
	const found = all.filter((one) => words(one).toLowerCase().includes(lower));
	return { list: found.slice(0, MOST_SHOWN).map(suggestion), more: found.length > MOST_SHOWN };
}

/**
 * The control that picks a branch or a tag.
 * @param {{ name: 'branch' | 'tag', value: string, load: () => Promise<Named[]>,
 *   changed: (value: string) => void }} spec
 */
function namePicker({ name, value, load, changed }) {
	return combobox({ name, value, picks: true, changed, search: async (text) =>
		matching(await load(), text, (one) => one.name, (one) => ({ value: one.name, label: inOrder(one.name) })) });
}

/**
 * The control that picks a commit of the branch.
 * @param {{ value: string, load: () => Promise<Commit[]>, changed: (value: string) => void }} spec
 */
function commitPicker({ value, load, changed }) {
	return combobox({ name: 'commitHash', value, picks: true, changed, search: async (text) =>
		matching(await load(), text, (one) => `${one.hash} ${one.message} ${one.authorName ?? ''}`, (one) =>
			({ value: one.hash, label: subject(one.message), detail: [el('code', null, one.hash.slice(0, 8)), ' ',
				el('bdi', null, inOrder(one.authorName ?? '')), one.committedAt !== null && [', ', ago(one.committedAt)]] })) });
}

/**
 * @param {ReturnType<typeof start>} values
 * @param {Context} context
 * @returns {Field[]}
 */
function revisionFields(values, context) {
	const branches = shared(() => loadNames('branches', context));
	const tags = shared(() => loadNames('tags', context));
	let commits = shared(() => loadCommits(context, values.branch));
	const changeBranch = (/** @type {string} */ branch) => {
		commits = shared(() => loadCommits(context, branch));
		return commits();
	};
	// The page, which is being drawn, shows the errors.
	queueMicrotask(() => [tags, branches, commits].forEach((load) => load().catch(() => {})));
	return [
		{ name: 'tag', label: t.deploy.tag, type: 'custom', hint: t.deploy.tagHint,
			control: namePicker({ name: 'tag', value: values.tag, load: tags,
				changed: (tag) => context.set({ tag }) }) },
		{ name: 'branch', label: t.deploy.branch, type: 'custom', hint: t.deploy.branchHint,
			control: namePicker({ name: 'branch', value: values.branch, load: branches,
				changed: (branch) => changeBranch(branch).catch(() => {}) }) },
		{ name: 'commitHash', label: t.deploy.commit, type: 'custom', hint: t.deploy.commitHint,
			control: commitPicker({ value: values.commit, load: () => commits(),
				changed: (commit) => context.set({ commit }) }) },
	];
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
		{ name: 'source', label: t.deploy.source, type: 'radio', value: values.source,
			options: Object.entries(t.deploy.sources).map(([value, label]) => ({ value, label })) },
		...revisionFields(values, context),
	];
	return fields.filter((field) => field !== false);
}

/** What the user picks of each source. */
const PICKED = /** @type {const} */ ({ branch: ['branch', 'commitHash'], tag: ['tag'] });

/**
 * Shows the pickers of what is deployed, in place of the others.
 * @param {HTMLFormElement} form
 * @param {string} source
 */
function choose(form, source) {
	for (const [kind, name] of Object.entries(PICKED).flatMap(([kind, names]) => names.map((one) => [kind, one]))) {
		const row = /** @type {HTMLElement} */ (form.querySelector(`[data-field=${name}]`));
		row.hidden = kind !== source;
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
 * @param {string | number} id
 * @returns {Environment | undefined}
 */
function environmentOf({ environments }, id) {
	return environments.data.find((/** @type {Environment} */ one) => String(one.id) === String(id));
}

/**
 * Whether the user may set variables that no preset names.
 * @param {import('../lib/types.js').Project} project
 */
function maySetOthers(project) {
	return project.extraEnv !== 'nobody' && may(project, project.extraEnv === 'deployers' ? 'deployer' : 'maintainer');
}

/**
 * The variables of an earlier deployment that the user cannot set again.
 * @param {any} data
 */
function leftOut({ from, project }) {
	const names = maySetOthers(project) ? [] : Object.keys(from?.envVars ?? {})
		.filter((name) => !project.envPresets.some((/** @type {any} */ { key }) => key === name));
	return names.length > 0 && el('p', { class: 'faint' }, t.deploy.leftOut(names.join(', ')));
}

/**
 * @param {any} data
 * @param {Context} context
 */
function deployForm(data, context) {
	const values = start(data, context);
	const { envPresets } = data.project;
	let presets = presetsIn(envPresets, environmentOf(data, values.environment));
	context.state.environment = String(values.environment);
	context.state.obstacles = el('div', { class: 'stack', 'aria-live': 'polite' });
	Object.assign(context.state, { commit: values.commit, source: values.source, tag: values.tag });
	const node = form({ id: 'deploy', label: t.deploy.title, submit: t.deploy.submit,
		fields: [...sourceFields(data, values, context), ...presetFields(presets, values.vars),
			...(!maySetOthers(data.project) ? [] : [/** @type {Field} */ ({ name: 'more', label: t.deploy.more, type: 'code', hint: t.deploy.moreHint, pointer: '/envVars',
				value: otherLines(envPresets, values.vars), props: { rows: 2, placeholder: 'NAME=value' } })])],
		send: async (answers) => {
			const once = newKey(); // a new sign-in repeats the request
			const made = await post('/deployments', requestOf(answers, data), { once });
			toast(t.deploy.started(made.id));
			go(`/deployments/${made.id}`);
		} });
	choose(node, values.source);
	node.querySelector('[data-field=environmentId]')?.after(context.state.obstacles);
	node.addEventListener('change', ({ target }) => {
		// A draft that is restored has its own values.
		if (target instanceof HTMLSelectElement && target.name === 'environmentId') {
			const before = presets;
			presets = presetsIn(envPresets, environmentOf(data, target.value));
			if (!node.hasAttribute('data-restoring'))
				changePresets(node, before, presets);
		}
		if (target instanceof HTMLInputElement && target.name === 'source' && target.checked) {
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
	return environmentOf({ environments }, state.environment);
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
 * The commit that the form names; empty: the newest of the branch; undefined: the form
 * does not name a known tag.
 * @param {Context} context
 * @returns {string | undefined}
 */
function chosenCommit({ state: { source, tag, tags, commit } }) {
	return source === 'tag' ? tags.find((/** @type {Named} */ one) => one.name === tag)?.commitHash : commit;
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
	const commit = chosenCommit(context);
	return commit === undefined ? el('p', { class: 'faint' }, t.changes.chooseTag)
		: changes(commits, commit, live(data, context));
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
	const kept = context.keep('form', () => deployForm(data, context));
	draw(context.state.obstacles, obstacles(chosen(data, context)));
	return el('div', { class: 'split' }, el('div', { class: 'card' }, kept),
		el('aside', { class: 'card', 'aria-live': 'polite' }, el('h2', null, t.changes.title),
			whatChanges(data, context), leftOut(data)));
}

/** @type {import('../lib/page.js').Page} */
export const deploy = {
	path: '/projects/:id/deploy',
	state: { obstacles: null, commits: null, commit: '', environment: '', gitProblem: '', source: 'branch', tag: '', tags: [] },
	sources,
	title: (data) => t.deploy.titleOf(data.project.name),
	view: (data, context) => [
		projectHead(data.project, context, data.from ? t.deploy.again(data.from.id) : t.deploy.title),
		content(data, context),
	],
};
