// SPDX-License-Identifier: ISC
/** How a user wants to see logs; the browser remembers it. */

/** @typedef {{ wrap: boolean, times: 'off' | 'elapsed' | 'clock' }} Settings */

const KEY = 'slipway-log';

/** @type {Settings} */
const DEFAULTS = { wrap: false, times: 'off' };

/** @returns {Settings} */
export function load() {
	try {
		return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? '{}') };
	} catch {
		return DEFAULTS; // a private window, or text of another version
	}
}

/** @param {Settings} settings */
export function save(settings) {
	try {
		localStorage.setItem(KEY, JSON.stringify(settings));
	} catch {
		// without storage they last as long as the page
	}
}
