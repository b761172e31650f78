// SPDX-License-Identifier: ISC
/** A project's envPresets as fields of a form, and the form's values as envVars. */
import { t } from '../texts.js';

/** @typedef {import('./types.js').EnvPreset} EnvPreset */
/** @typedef {import('./form.js').Field} Field */

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
