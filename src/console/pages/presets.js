// SPDX-License-Identifier: ISC
/** The editors of a project's presets and triggers. */
import { saver } from '../lib/api.js';
import { entriesControl } from '../lib/entries.js';
import { form } from '../lib/form.js';
import { refresh } from '../lib/live.js';
import { lineValues } from '../lib/presets.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').Project} Project */
/** @typedef {import('../lib/entries.js').Entry} Entry */
/** @typedef {import('../lib/entries.js').Column} Column */
/** @typedef {{ id: number, name: string }} Named */

/**
 * Lines of VALUE=LABEL; a line without a label has the value as its label.
 * @param {{ value: string, label: string }[]} options
 */
function optionLines(options) {
	return (options ?? []).map(({ value, label }) => value === label ? value : `${value}=${label}`).join('\n');
}

/** @param {string} text */
function readOptions(text) {
	return text.split('\n').filter((line) => line.trim() !== '').map((line) => {
		const [, value, label] = /^([^=]*)=(.*)$/.exec(line) ?? ['', line, line];
		return { value: value.trim(), label: label.trim() };
	});
}

/** @param {Entry} entry */
const isInput = ({ type }) => type === 'input';

/** @type {Column[]} */
const PRESET = [
	{ name: 'key', label: t.preset.key, read: (text) => text },
	{ name: 'label', label: t.preset.label, read: (text) => text },
	{ name: 'type', label: t.preset.type, type: 'select',
		options: Object.entries(t.preset.types).map(([value, label]) => ({ value, label })) },
	{ name: 'options', label: t.preset.options, type: 'code', hint: t.preset.optionsHint,
		fits: (entry) => !isInput(entry), show: optionLines, read: readOptions },
	{ name: 'default', label: t.preset.default, fits: ({ secret }) => secret !== true },
	{ name: 'pattern', label: t.preset.pattern, hint: t.preset.patternHint, fits: isInput },
	{ name: 'description', label: t.preset.description },
	{ name: 'required', label: t.preset.required, type: 'check' },
	{ name: 'secret', label: t.preset.secret, type: 'check', fits: isInput },
];

/** @param {Entry} entry */
function presetBody({ options, ...rest }) {
	return rest.type === 'input' ? { ...rest, options: [] } : { ...rest, options, pattern: null, secret: false };
}

/** @param {Project} project */
export function presetsForm(project) {
	const save = saver(`/projects/${project.id}`, project);
	return form({ id: 'presets', label: t.project.presets, submit: t.save,
		fields: [{ name: 'envPresets', label: t.project.presets, type: 'custom', hint: t.project.presetsHint, titled: true,
			control: entriesControl({ name: 'envPresets', columns: PRESET, entries: project.envPresets,
				blank: { key: '', label: '', type: 'input', options: [], required: false, default: null,
					description: null, pattern: null, secret: false },
				title: ({ key, label }) => label || key || t.preset.untitled, add: t.preset.add }) }],
		send: async ({ envPresets }) => {
			await save({ envPresets: JSON.parse(envPresets).map(presetBody) });
			toast(t.saved);
			refresh();
		} });
}

/** @param {Named[]} list */
function choices(list) {
	return list.map(({ id, name }) => ({ value: String(id), label: name }));
}

/** @param {Record<string, string | null>} vars */
function varLines(vars) {
	return Object.entries(vars ?? {}).filter(([, value]) => value !== null)
		.map(([key, value]) => `${key}=${value}`).join('\n');
}

/**
 * Secret values are unknown here; as null they stay.
 * @param {string} text
 * @param {Record<string, string | null>} old
 */
function readVars(text, old) {
	const secret = Object.entries(old ?? {}).filter(([, value]) => value === null);
	return { ...Object.fromEntries(secret), ...lineValues(text) };
}

const toId = (/** @type {string} */ text) => text === '' ? null : Number(text);

/**
 * @param {Named[]} pipelines
 * @param {Named[]} environments
 * @returns {Column[]}
 */
function triggerColumns(pipelines, environments) {
	return [
		{ name: 'branch', label: t.trigger.branch, hint: t.trigger.branchHint },
		{ name: 'tag', label: t.trigger.tag, hint: t.trigger.tagHint },
		{ name: 'pipelineId', label: t.deploy.pipeline, type: 'select', options: choices(pipelines), read: toId },
		{ name: 'environmentId', label: t.deploy.environment, type: 'select', read: toId,
			options: [{ value: '', label: t.none }, ...choices(environments)], fits: () => environments.length > 0 },
		{ name: 'envVars', label: t.schedule.variables, type: 'code', hint: t.deploy.moreHint,
			show: varLines, read: readVars },
		{ name: 'paths', label: t.trigger.paths, type: 'code', hint: t.trigger.pathsHint,
			show: (paths) => (paths ?? []).join('\n'),
			read: (text) => text.split('\n').map((line) => line.trim()).filter(Boolean) },
		{ name: 'supersede', label: t.trigger.supersede, type: 'check' },
	];
}

/**
 * @param {Project} project
 * @param {Named[]} pipelines
 * @param {Named[]} environments
 */
export function triggersForm(project, pipelines, environments) {
	const save = saver(`/projects/${project.id}`, project);
	return form({ id: 'triggers', label: t.project.triggers, submit: t.save,
		fields: [{ name: 'triggers', label: t.project.triggers, type: 'custom', hint: t.project.triggersHint, titled: true,
			control: entriesControl({ name: 'triggers', columns: triggerColumns(pipelines, environments),
				entries: project.triggers, title: ({ branch, tag }) => branch || tag || t.trigger.untitled, add: t.trigger.add,
				blank: { branch: project.defaultBranch ?? 'main', pipelineId: pipelines[0]?.id ?? null,
					environmentId: environments[0]?.id ?? null, envVars: {},
					tag: null, paths: [], supersede: true } }) }],
		send: async ({ triggers }) => {
			await save({ triggers: JSON.parse(triggers) });
			toast(t.saved);
			refresh();
		} });
}
