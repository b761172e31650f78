// SPDX-License-Identifier: ISC
/** The service itself: runners, shared variables, changes. */

export const service = {
	runner: {
		title: 'Runners',
		lead: 'Runners fetch commits and run the steps. Each slot runs one deployment at a time.',
		empty: 'No runner has reported yet. Start slipway-runner; waiting deployments begin then.',
		lockAll: 'Lock all deployments',
		online: 'Online',
		offline: 'Offline',
		/** @param {string} why */
		sick: (why) => `Sick: ${why}`,
		/** @param {number} n @param {number} of */
		load: (n, of) => `${n} of ${of} in use`,
		columns: { name: 'Name', state: 'State', load: 'Slots', version: 'Version', started: 'Started',
			seen: 'Last seen' },
	},

	notifier: {
		title: 'Notifiers',
		/** @param {string} name */
		titleOf: (name) => `Notifiers of ${name}`,
		lead: 'A notifier that is added here is told about all projects. Add one for a single project on the page of '
			+ 'that project.',
		none: 'A notifier sends mail, a chat message or a signed webhook: when a deployment fails, recovers or '
			+ 'waits for approval. Without any, the user who started a failed deployment gets mail.',
		add: 'Add a notifier',
		kind: 'Kind',
		kinds: { mail: 'Mail', text: 'Chat', webhook: 'Webhook' },
		target: 'Receiver',
		targetHint: 'Mail: addresses, separated by commas. Chat or webhook: an https address.',
		events: 'Events',
		event: {
			started: 'Started', succeeded: 'Succeeded', failed: 'Failed', recovered: 'Recovered',
			waiting_for_approval: 'Waits for approval', locked: 'Locked',
		},
		environment: 'Environment',
		anyEnvironment: 'All',
		allProjects: 'All projects',
		delivered: 'Last delivered',
		test: 'Send a test',
		/** @param {string} name */
		testOf: (name) => `Send a test to ${name}`,
		tested: 'A test message is being sent.',
		renew: 'New secret',
		/** @param {string} name */
		renewOf: (name) => `New secret of ${name}`,
		once: 'Copy the secret of the webhook now. It is not shown again; the old secret works for another day.',
		/** @param {string} name */
		deleteTitle: (name) => `Delete the notifier ${name}?`,
		deleteText: 'Messages that it has not delivered are deleted, too.',
	},

	variable: {
		title: 'Shared variables',
		lead: 'Values that several projects receive. They replace the defaults of presets. Variables of an environment and values sent with a deployment replace them.',
		empty: 'There are no shared variables.',
		add: 'Add a variable',
		key: 'Name',
		value: 'Value',
		valueHint: 'Not shown while you type.',
		keptHint: 'Empty: the secret stays as it is.',
		isSecret: 'Secret: store it encrypted and mask it in logs',
		secret: 'secret',
		projects: 'Projects that receive it',
		columns: { key: 'Name', value: 'Value', description: 'Description', projects: 'Projects' },
		/** @param {string} name */
		deleteTitle: (name) => `Delete the variable ${name}?`,
		deleteText: 'Later deployments do not receive it.',
	},

	audit: {
		title: 'Audit',
		/** @param {string} name */
		titleOf: (name) => `Changes of ${name}`,
		link: 'Who changed what',
		allProjects: 'All projects',
		empty: 'No change has been recorded.',
		pages: 'Pages of changes',
		columns: { at: 'When', who: 'Who', what: 'What', changes: 'Changes' },
		/** @type {Record<string, string>} */
		via: { session: 'in a browser', token: 'with the token', hook: 'webhook', cli: 'slipway-admin',
			runner: 'runner' },
		/** @param {string} name of the operation: updateProject */
		action: (name) => {
			const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
			return words.charAt(0).toUpperCase() + words.slice(1);
		},
	},
};
