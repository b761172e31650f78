// SPDX-License-Identifier: ISC
/**
 * Keeps what was typed into a form in this tab until the form has been sent, so
 * that neither a sign-in nor a reload loses it. Passwords are not stored.
 */

let owner = 0;

/**
 * Names the user whose drafts they are: another user of the tab does not see them.
 * @param {number} id
 */
export function keepFor(id) {
	owner = id;
}

/** @param {string} id of the form */
function keyOf(id) {
	return `slipway-draft ${owner} ${location.pathname}${location.search} ${id}`;
}

/** @param {HTMLFormElement} form */
function controls(form) {
	return [...form.elements].filter((one) =>
		(one instanceof HTMLInputElement && one.type !== 'password')
		|| one instanceof HTMLSelectElement || one instanceof HTMLTextAreaElement)
		.map((one) => /** @type {HTMLInputElement} */ (one)).filter((one) => one.name !== '' && !('private' in one.dataset));
}

/** @param {HTMLInputElement} one */
function isSwitch(one) {
	return one.type === 'checkbox' || one.type === 'radio';
}

/** @param {HTMLFormElement} form */
function valuesOf(form) {
	return controls(form).map((one) =>
		isSwitch(one) ? [one.name, one.value, one.checked] : [one.name, one.value]);
}

/**
 * @param {HTMLInputElement} one
 * @param {string} value
 * @param {boolean} checked
 * @returns {boolean} whether that changes the control
 */
function fill(one, value, checked) {
	const before = isSwitch(one) ? one.checked : one.value;
	if (!isSwitch(one))
		one.value = value;
	else if (one.value === value)
		one.checked = checked;
	return before !== (isSwitch(one) ? one.checked : one.value);
}

/**
 * Fills the form, unless it begins with other values than the form of the draft: the
 * draft would undo what someone else has changed meanwhile.
 * @param {HTMLFormElement} form
 * @param {string} key
 * @param {string} base the values that the form begins with
 */
function restore(form, key, base) {
	const draft = JSON.parse(sessionStorage.getItem(key) ?? 'null');
	if (draft === null || draft.base !== base)
		return;
	const changed = draft.values.flatMap(
		(/** @type {[string, string, boolean]} */ [name, value, checked]) => controls(form)
			.filter((one) => one.name === name && fill(one, value, checked)));
	// The page, which is being drawn, follows the form as if the user had typed.
	queueMicrotask(() => {
		form.toggleAttribute('data-restoring', true);
		changed.forEach((/** @type {HTMLInputElement} */ one) => one.dispatchEvent(new Event('change', { bubbles: true })));
		form.removeAttribute('data-restoring');
	});
}

/**
 * @param {HTMLFormElement} form
 * @param {string} id
 * @returns {() => void} forgets what was typed, even if the address is now another
 */
export function attach(form, id) {
	const key = keyOf(id);
	const base = JSON.stringify(valuesOf(form));
	restore(form, key, base);
	form.addEventListener('input', () =>
		sessionStorage.setItem(key, JSON.stringify({ base, values: valuesOf(form) })));
	return () => sessionStorage.removeItem(key);
}
