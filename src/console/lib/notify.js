// SPDX-License-Identifier: ISC
/** Notifications of the browser, for a user who looks at something else. */

/** Whether the user can still be asked for the permission. */
export function canAsk() {
	return 'Notification' in window && Notification.permission === 'default';
}

/** Asks for the permission. */
export function ask() {
	return Notification.requestPermission();
}

/** @type {WeakMap<AbortSignal, string>} what each page has shown last */
const shown = new WeakMap();

/**
 * Notifies the user that what a page shows has ended, unless the user sees it or
 * it had ended when the page was opened.
 * @param {string} state as it is now
 * @param {boolean} isOver
 * @param {string} title
 * @param {AbortSignal} page aborts when the page closes
 */
export function notifyEnd(state, isOver, title, page) {
	const before = shown.get(page);
	shown.set(page, state);
	if (isOver && before !== undefined && before !== state && document.visibilityState === 'hidden'
	    && 'Notification' in window && Notification.permission === 'granted')
		new Notification(title, { tag: title });
}
