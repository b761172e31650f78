// SPDX-License-Identifier: ISC
/**
 * Forms from lists of fields. A form keeps what was typed (secrets excepted) until
 * it has been sent, and shows each fault that the service reports at its field.
 */
import { Problem } from './api.js';
import { el } from './dom.js';
import * as drafts from './draft.js';
import { t } from '../texts.js';

/**
 * @typedef {{ value: string, label: string }} Choice
 * @typedef {import('./api.js').Fault} Fault
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {'text' | 'password' | 'textarea' | 'code' | 'select' | 'choices' | 'radio' | 'check'
 *   | 'number' | 'datetime-local' | 'custom'} [type]
 * @property {string} [hint]
 * @property {string} [value] checked, for a check: "on"
 * @property {boolean} [required]
 * @property {string} [pattern]
 * @property {Choice[]} [options]
 * @property {string} [pointer] of the member in the body; default /NAME
 * @property {boolean} [titled] whether a heading above the form shows the label
 * @property {Record<string, any>} [props] more attributes of the control
 * @property {(id: string, describedBy: string) => HTMLElement} [control] of a custom field
 *
 * @typedef {object} Spec
 * @property {string} id of the form, unique in the page
 * @property {Field[]} fields
 * @property {string} submit the label of the button
 * @property {(values: Record<string, string>) => Promise<void>} send
 * @property {() => any} [cancel] called when the user discards what was typed; returns or
 *   resolves to false if it is kept
 * @property {string} [cancelLabel] the label of that button
 * @property {string} [label] the name of the form, for screen readers
 * @property {string} [tone] class of the button
 * @property {boolean} [again] whether it is empty after sending, for the next one
 */

/** @param {Field} field */
function options(field) {
	return (field.options ?? []).map(({ value, label }) =>
		el('option', { value, selected: value === (field.value ?? '') }, label));
}

/**
 * Boxes of which the user checks any, or exactly one.
 * @param {Field} field
 * @param {string} id
 * @param {string} describedBy
 */
function choices(field, id, describedBy) {
	const [type, role] = field.type === 'radio' ? ['radio', 'radiogroup'] : ['checkbox', 'group'];
	const chosen = (field.value ?? '').split(',');
	return el('div', { class: 'choices', role, 'aria-labelledby': `${id}-label`, 'aria-describedby': describedBy },
		(field.options ?? []).map(({ value, label }) => el('label', { class: 'choice' },
			el('input', { type, name: field.name, value, checked: chosen.includes(value) }), label)));
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {HTMLElement}
 */
function control(field, id) {
	const describedBy = `${id}-hint ${id}-fault`;
	const props = { id, name: field.name, required: field.required ?? false,
		'aria-describedby': describedBy, ...field.props };
	switch (field.type) {
	case 'custom':
		return /** @type {NonNullable<Field['control']>} */ (field.control)(id, describedBy);
	case 'select':
		return el('select', props, options(field));
	case 'choices':
	case 'radio':
		return choices(field, id, describedBy);
	case 'textarea':
		return el('textarea', { rows: 3, ...props }, field.value ?? '');
	case 'code':
		return el('textarea', { rows: 8, class: 'code', spellcheck: 'false', autocapitalize: 'off',
			...props }, field.value ?? '');
	case 'check':
		return el('input', { type: 'checkbox', ...props, checked: field.value === 'on' });
	default:
		return el('input', { type: field.type ?? 'text', value: field.value ?? '',
			pattern: field.pattern, autocomplete: 'off', ...props });
	}
}

/**
 * @param {Field} field
 * @param {string} id
 */
function row(field, id) {
	const label = field.type === 'choices' || field.type === 'radio' ? 'span' : 'label';
	return el('div', { class: `field field-${field.type ?? 'text'}`, 'data-field': field.name },
		el(label, { id: `${id}-label`, for: label === 'label' ? id : null, class: field.titled ? 'hidden' : null }, field.label,
			field.required && el('span', { class: 'must', 'aria-hidden': 'true' }, ' *')),
		control(field, id),
		el('p', { class: 'hint', id: `${id}-hint` }, field.hint),
		el('p', { class: 'fault', id: `${id}-fault`, 'aria-live': 'polite' }));
}

/**
 * What the form contains; several checked choices are joined by commas.
 * @param {HTMLFormElement} form
 * @param {Field[]} fields
 */
function valuesOf(form, fields) {
	const data = new FormData(form);
	return Object.fromEntries(fields.map(({ name }) => [name, data.getAll(name).join(',')]));
}

/**
 * Shows a fault at a field; an empty text removes it.
 * @param {Element} row
 * @param {string} text
 */
function mark(row, text) {
	const fault = /** @type {Element} */ (row.querySelector('.fault'));
	fault.textContent = text;
	for (const input of row.querySelectorAll('input, select, textarea'))
		if (text === '')
			input.removeAttribute('aria-invalid');
		else
			input.setAttribute('aria-invalid', 'true');
}

/**
 * @param {Field} field
 * @param {string} pointer
 */
function concerns(field, pointer) {
	const own = field.pointer ?? `/${field.name}`;
	return pointer === own || pointer.startsWith(`${own}/`);
}

/**
 * A fault of a field; one of a member that has a name, such as a variable, names it.
 * @param {Field} field
 * @param {Fault} fault
 */
function memberText(field, { pointer, detail }) {
	const member = pointer.slice((field.pointer ?? `/${field.name}`).length + 1);
	return /^[A-Za-z_]/.test(member) ? `${member} ${detail}` : detail;
}

/**
 * Marks the part of a field that has a pointer of its own.
 * @param {HTMLFormElement} form
 * @param {Fault} fault
 * @returns {boolean} whether there is such a part
 */
function markWithin(form, { pointer, detail }) {
	const part = [...form.querySelectorAll('[data-pointer]')].find((one) => {
		const own = one.getAttribute('data-pointer');
		return own === pointer || pointer.startsWith(`${own}/`);
	});
	if (part !== undefined)
		mark(part, detail);
	return part !== undefined;
}

/**
 * The field that a fault belongs to: of those that it concerns, the one whose member
 * is the innermost.
 * @param {Field[]} fields
 * @param {Fault} fault
 */
function fieldOf(fields, { pointer }) {
	const own = (/** @type {Field} */ field) => field.pointer ?? `/${field.name}`;
	return fields.filter((field) => concerns(field, pointer)).sort((a, b) => own(b).length - own(a).length)[0];
}

/**
 * Shows what the service reported: each fault at its field, the rest on top.
 * @param {HTMLFormElement} form
 * @param {Field[]} fields
 * @param {Problem} problem
 */
function showProblem(form, fields, problem) {
	const rest = problem.errors.filter((fault) => fieldOf(fields, fault) === undefined);
	const summary = /** @type {Element} */ (form.querySelector('.summary'));
	summary.textContent = [problem.errors.length === 0 || rest.length > 0 ? problem.detail : '',
		...rest.map((fault) => `${fault.pointer} ${fault.detail}`)].filter(Boolean).join(' · ');
	const within = problem.errors.filter((fault) => markWithin(form, fault));
	for (const field of fields) {
		const texts = problem.errors.filter((fault) => fieldOf(fields, fault) === field && !within.includes(fault))
			.map((fault) => memberText(field, fault));
		const row = form.querySelector(`[data-field="${CSS.escape(field.name)}"]`);
		if (row !== null && texts.length > 0)
			mark(row, texts.join('; '));
	}
	const first = form.querySelector('[aria-invalid]');
	if (first instanceof HTMLElement)
		first.focus();
}

/** @param {HTMLFormElement} form */
function clearProblem(form) {
	form.querySelectorAll('[data-field], [data-pointer]').forEach((row) => mark(row, ''));
	/** @type {Element} */ (form.querySelector('.summary')).textContent = '';
}

/**
 * Sends the form once at a time.
 * @param {HTMLFormElement} form
 * @param {Spec} spec
 * @param {() => void} sent
 */
async function submit(form, spec, sent) {
	if (form.getAttribute('aria-busy') === 'true')
		return;
	form.setAttribute('aria-busy', 'true');
	clearProblem(form);
	try {
		await spec.send(valuesOf(form, spec.fields));
		sent();
		if (spec.again)
			form.reset();
	} catch (error) {
		showProblem(form, spec.fields,
			error instanceof Problem ? error : new Problem({ status: 1, detail: String(error) }));
	} finally {
		form.removeAttribute('aria-busy');
	}
}

/**
 * @param {Spec} spec
 * @returns {HTMLFormElement}
 */
export function form(spec) {
	const node = el('form', { class: 'form', id: spec.id, 'aria-label': spec.label,
		onsubmit: (/** @type {Event} */ event) => {
			event.preventDefault();
			submit(node, spec, forget);
		} },
		el('p', { class: 'summary', role: 'alert' }),
		spec.fields.map((field) => row(field, `${spec.id}-${field.name}`)),
		el('div', { class: 'actions' },
			el('button', { class: spec.tone ?? 'primary' }, spec.submit),
			spec.cancel && el('button', { type: 'button', onclick: async () => {
				if (await spec.cancel?.() !== false)
					forget();
			} }, spec.cancelLabel ?? t.cancel)));
	const forget = drafts.attach(node, spec.id);
	return node;
}
