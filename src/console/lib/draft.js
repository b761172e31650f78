// SPDX-License-Identifier: ISC
/**
 * Keeps what was typed into a form in this tab until the form has been sent, so
 * that neither a sign-in nor a reload loses it. Passwords are not stored.
 */

/** @param {string} id */
function keyOf(id) {
	return `slipway-draft ${location.pathname} ${id}`;
}

/** @param {HTMLFormElement} form */
function controls(form) {
	return [...form.elements].filter((one) =>
		(one instanceof HTMLInputElement && one.type !== 'password')
		|| one instanceof HTMLSelectElement || one instanceof HTMLTextAreaElement)
		.map((one) => /** @type {HTMLInputElement} */ (one)).filter((one) => one.name !== '');
}

/** @param {HTMLInputElement} one */
function isSwitch(one) {
	return one.type === 'checkbox' || one.type === 'radio';
}

/**
 * @param {HTMLFormElement} form
 * @param {string} key
 */
function save(form, key) {
	const values = controls(form).map((one) =>
		isSwitch(one) ? [one.name, one.value, one.checked] : [one.name, one.value]);
	sessionStorage.setItem(key, JSON.stringify(values));
}

/**
 * @param {HTMLFormElement} form
 * @param {string} key
 */
function restore(form, key) {
	for (const [name, value, checked] of JSON.parse(sessionStorage.getItem(key) ?? '[]'))
		for (const one of controls(form).filter((control) => control.name === name))
			if (!isSwitch(one))
				one.value = value;
			else if (one.value === value)
				one.checked = checked;
}

/**
 * @param {HTMLFormElement} form
 * @param {string} id
 */
export function attach(form, id) {
	const key = keyOf(id);
	restore(form, key);
	form.addEventListener('input', () => save(form, key));
}

/** @param {string} id */
export function forget(id) {
	sessionStorage.removeItem(keyOf(id));
}
