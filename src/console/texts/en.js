// SPDX-License-Identifier: ISC
/** The texts of the console in English. */

/** @param {number} n @param {string} one @param {string} [many] */
const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

export const texts = {
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
	none: '–',

	nav: {
		label: 'Main',
		board: 'Board',
		projects: 'Projects',
		deployments: 'Deployments',
		users: 'Users',
		variables: 'Variables',
		account: 'Your account',
		signOut: 'Sign out',
		/** @param {string} name */
		menuOf: (name) => `Account of ${name}`,
	},

	/** @type {Record<string, string>} */
	roles: {
		viewer: 'Viewer',
		deployer: 'Deployer',
		maintainer: 'Maintainer',
		admin: 'Admin',
	},

	names: {
		/** @param {number} id */
		project: (id) => `Project ${id}`,
		/** @param {number} id */
		user: (id) => `User ${id}`,
		service: 'slipway',
	},

	lost: {
		banner: 'No connection to the service. What you see may be out of date; trying again…',
		detail: 'The service cannot be reached. Check your connection, then try again.',
		/** @param {number} status */
		status: (status) => `The service returned the status ${status} without a reason.`,
	},

	trouble: {
		title: 'Problem',
		/** @param {string} code */
		titleOf: (code) => ({ not_found: 'Not found', forbidden: 'Not allowed', lost: 'No connection' })[code]
			?? 'Something is wrong',
		/** @param {string} id */
		request: (id) => `Request ${id}`,
		noPage: 'There is no page at this address.',
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
		pending: 'Waiting',
		running: 'Running',
		success: 'Succeeded',
		failed: 'Failed',
		canceled: 'Canceled',
		interrupted: 'Interrupted',
		skipped: 'Skipped',
		locked: 'Locked',
		none: 'Never deployed',
	},

	signIn: {
		title: 'Sign in',
		lead: 'Deploy with confidence from your own Git server.',
		git: 'Continue with the Git server',
		or: 'or',
		token: 'API token',
		tokenHint: 'Created under “Your account”, or with slipway-admin token add USER.',
		submit: 'Sign in',
		completing: 'Signing in…',
		denied: 'The Git server did not sign you in.',
		/** @param {string} name */
		welcome: (name) => `Signed in as ${name}`,
		again: 'Your session has ended',
		againText: 'Sign in again to continue. What you typed is still here.',
		/** @param {string} id */
		tokenName: (id) => `Console (from token ${id})`,
	},

	board: {
		title: 'Board',
	},

	deployments: {
		title: 'Deployments',
		empty: 'Nothing has been deployed yet.',
		older: 'Older',
		newest: 'Newest',
		columns: {
			state: 'State',
			project: 'Project',
			what: 'Deployment',
			who: 'By',
			time: 'Took',
			when: 'When',
		},
	},

	deployment: {
		/** @param {number} id */
		title: (id) => `Deployment ${id}`,
	},
};
