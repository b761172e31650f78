// SPDX-License-Identifier: ISC
/** What several pages say: words, states, times, problems. */
import { count } from './count.js';

/** @type {Record<string, string>} */
const TROUBLE = { not_found: 'Not found', forbidden: 'Not allowed', lost: 'No connection' };

export const common = {
	locale: 'en-GB',
	/** @param {string} page */
	title: (page) => `${page} · slipway`,
	name: 'slipway',
	skip: 'Skip to the content',
	loading: 'Loading…',
	close: 'Close',
	cancel: 'Cancel',
	save: 'Save',
	delete: 'Delete',
	edit: 'Edit',
	pause: 'Pause',
	resume: 'Resume',
	paused: 'Paused',
	/** @param {string} name */
	removeOf: (name) => `Remove ${name}`,
	/** @param {string} name */
	editOf: (name) => `Edit ${name}`,
	/** @param {string} name */
	pauseOf: (name) => `Pause ${name}`,
	/** @param {string} name */
	resumeOf: (name) => `Resume ${name}`,
	/** @param {string} name */
	deleteOf: (name) => `Delete ${name}`,
	/** @param {string} name */
	moveUp: (name) => `Move ${name} up`,
	/** @param {string} name */
	moveDown: (name) => `Move ${name} down`,
	saved: 'Saved',
	changedMeanwhile: 'Someone changed this since you opened the page. Reload it, then repeat your change.',
	copy: 'Copy',
	required: 'required',
	none: '–',

	suggestions: {
		none: 'Nothing matches.',
		more: 'There are more: type to narrow the list.',
	},

	nav: {
		label: 'Main',
		board: 'Board',
		projects: 'Projects',
		deployments: 'Deployments',
		users: 'Users',
		notifiers: 'Notifiers',
		runners: 'Runners',
		audit: 'Audit',
		variables: 'Variables',
		account: 'Your account',
		signOut: 'Sign out',
		/** @param {string} name */
		menuOf: (name) => `Account of ${name}`,
	},

	/** @type {Record<string, string>} */
	roles: {
		guest: 'Guest', viewer: 'Viewer', deployer: 'Deployer', maintainer: 'Maintainer', admin: 'Admin',
	},

	names: {
		/** @param {number} id */
		project: (id) => `Project ${id}`,
		/** @param {number} id */
		user: (id) => `User ${id}`,
		service: 'slipway',
	},

	lost: {
		banner: 'No connection to the service, or it does not work properly. What you see may be out of date; trying again…',
		detail: 'The service cannot be reached. Check your connection, then try again.',
		/** @param {number} status */
		status: (status) => `The service returned the status ${status} without a reason.`,
	},

	trouble: {
		title: 'Problem',
		/** @param {string} code */
		titleOf: (code) => TROUBLE[code] ?? 'Something is wrong',
		/** @param {string} id */
		request: (id) => `Request ${id}`,
		noPage: 'There is no page at this address.',
		notAllowed: 'Your role does not include this page. An admin can change your role.',
		home: 'Go to the board',
	},

	time: {
		/** @param {number} n */
		ms: (n) => `${n} ms`,
		/** @param {string} n */
		seconds: (n) => `${n} s`,
		/** @param {number} m @param {number} s */
		minutes: (m, s) => `${m} min ${String(s).padStart(2, '0')} s`,
		/** @param {number} h @param {number} m */
		hours: (h, m) => `${h} h ${String(m).padStart(2, '0')} min`,
		now: 'just now',
		/** @param {number} n */
		minutesAgo: (n) => `${n} min ago`,
		/** @param {number} n */
		hoursAgo: (n) => `${n} h ago`,
		/** @param {number} n */
		daysAgo: (n) => `${count(n, 'day')} ago`,
	},

	/** @type {Record<string, string>} */
	status: {
		pending: 'Waiting', approval: 'Needs approval', running: 'Running', success: 'Succeeded',
		warned: 'Succeeded with warnings',
		failed: 'Failed', canceled: 'Canceled', interrupted: 'Interrupted', skipped: 'Skipped',
		locked: 'Locked', none: 'Never deployed',
	},

	lock: {
		title: 'Locked:',
		service: 'All deployments are locked:',
		/** @param {string} name */
		by: (name) => `by ${name},`,
		/** @param {string} name @param {string} reason */
		full: (name, reason) => `${reason} (${name})`,
		until: ', until ',
		ask: 'Lock deployments',
		lock: 'Lock',
		unlock: 'Unlock',
		reason: 'Reason',
		reasonHint: 'Everyone sees it next to the lock.',
		untilLabel: 'Until',
		untilHint: 'Empty: until someone unlocks.',
	},
};
