// SPDX-License-Identifier: ISC
/** A project's envPresets as fields of a form, and the form's values as envVars. */
import { t } from '../texts.js';

/** @typedef {import('./types.js').EnvPreset} EnvPreset */
/** @typedef {import('./form.js').Field} Field */
/** @typedef {import('./types.js').Environment} Environment */

const PREFIX = 'env.';

/** @param {EnvPreset} preset */
function typeOf(preset) {
	if (preset.type === 'input')
		return preset.secret ? 'password' : 'text';
	return preset.type === 'select' ? 'select' : 'choices';
}

/**
 * @param {EnvPreset} preset
 * @param {string | null | undefined} value
 * @returns {Field}
 */
function field(preset, value) {
	const none = preset.required || preset.type !== 'select' ? [] : [{ value: '', label: t.none }];
	return { name: PREFIX + preset.key, label: preset.label, type: typeOf(preset),
		required: preset.required, hint: preset.description ?? '',
		options: [...none, ...preset.options],
		value: value ?? preset.default ?? '', pointer: `/envVars/${preset.key}`,
		props: { title: preset.key } };
}

/**
 * @param {EnvPreset[]} presets
 * @param {Record<string, string | null>} values of an earlier deployment; may be empty
 * @returns {Field[]}
 */
export function presetFields(presets, values) {
	return presets.map((preset) => field(preset, values[preset.key]));
}

/**
 * What an environment sets for a preset; a secret has no value here.
 * @param {EnvPreset} preset
 * @param {Environment | undefined} environment
 */
function ownVariable({ key }, environment) {
	return environment?.variables.find((one) => one.key === key);
}

/**
 * The presets as they are in an environment: what it sets is the default, and a secret
 * that it sets need not be entered.
 * @param {EnvPreset[]} presets
 * @param {Environment | undefined} environment
 * @returns {EnvPreset[]}
 */
export function presetsIn(presets, environment) {
	return presets.map((preset) => {
		const own = ownVariable(preset, environment);
		return own === undefined ? preset
			: { ...preset, default: own.value ?? '', required: preset.required && !own.secret };
	});
}

/**
 * Shows the presets of another environment where the user has left the defaults.
 * @param {HTMLFormElement} form
 * @param {EnvPreset[]} before
 * @param {EnvPreset[]} after the same presets in the other environment
 */
export function changePresets(form, before, after) {
	for (const [i, preset] of after.entries()) {
		const name = PREFIX + preset.key;
		const wanted = preset.default ?? '';
		const isUntouched = new FormData(form).getAll(name).join() === (before[i].default ?? '');
		for (const one of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll(`[name="${CSS.escape(name)}"]`))) {
			one.required = preset.required && one.type !== 'checkbox';
			if (isUntouched && one.type === 'checkbox')
				one.checked = wanted.split(',').includes(one.value);
			else if (isUntouched)
				one.value = wanted;
		}
	}
	form.dispatchEvent(new Event('input')); // stores the draft
}

/**
 * The variables of the presets; empty ones are left to their defaults.
 * @param {Record<string, string>} values of the form
 */
export function presetValues(values) {
	return Object.fromEntries(Object.entries(values)
		.filter(([name, value]) => name.startsWith(PREFIX) && value !== '')
		.map(([name, value]) => [name.slice(PREFIX.length), value]));
}

/**
 * Lines of NAME=VALUE.
 * @param {string} text
 */
export function lineValues(text) {
	return Object.fromEntries(text.split('\n').map((line) => line.trim()).filter((line) => line.includes('='))
		.map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1)]));
}

/**
 * The variables that no preset names, as lines.
 * @param {EnvPreset[]} presets
 * @param {Record<string, string | null>} values
 */
export function otherLines(presets, values) {
	const known = new Set(presets.map((preset) => preset.key));
	return Object.entries(values).filter(([key, value]) => !known.has(key) && value !== null)
		.map(([key, value]) => `${key}=${value}`).join('\n');
}
