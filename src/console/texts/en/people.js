// SPDX-License-Identifier: ISC
/** Signing in, the own account, and users. */

export const people = {
	signIn: {
		title: 'Sign in',
		lead: 'Continuous deployment from your own Git server.',
		/** @param {string} name '' if it is not known */
		git: (name) => `Sign in with ${name === '' ? 'the Git server' : name}`,
		or: 'or',
		token: 'API token',
		tokenHint: 'Created under “Your account”, or with slipway-admin token add USER.',
		submit: 'Sign in',
		completing: 'Signing in…',
		denied: 'The Git server did not sign you in.',
		used: 'This sign-in link is invalid, has expired or has been used. Sign in another way.',
		again: 'Your session has ended',
		againText: 'Sign in again to continue. What you typed is still here.',
		/** @param {string} id */
		tokenName: (id) => `Console (from token ${id})`,
	},

	link: {
		/** @param {string} name */
		title: (name) => `Sign in as ${name}?`,
		/** @param {string} name @param {string} role */
		offer: (name, role) => `The link that you opened signs this browser in as ${name}. Role: ${role}.`,
		/** @param {string} name */
		replaces: (name) => `You are signed in as ${name}. That session ends.`,
		warning: 'Continue only if you expected this link. What you do next happens in that user’s name.',
		/** @param {string} name */
		agree: (name) => `Sign in as ${name}`,
		decline: 'Don’t sign in with this link',
		/** @param {string} name */
		stay: (name) => `Stay signed in as ${name}`,
		invalid: 'This link does not work',
		go: 'Continue',
	},

	device: {
		title: 'Sign in a device',
		lead: 'Enter the code that the command line, or another program without a browser, shows.',
		code: 'Code',
		codeHint: 'For example WDJB-MJHT. Case and the hyphen do not matter.',
		next: 'Continue',
		question: 'Sign in this device?',
		/** @param {string} name */
		offer: (name) => `It asks for an API token that acts as ${name}.`,
		name: 'Device',
		address: 'Address',
		asked: 'Asked',
		warning: 'Approve only if you have just started this yourself and your device shows the same code. '
			+ 'Someone who sends you a code wants to use your account.',
		roleHint: 'What the device can do at most.',
		approve: 'Approve',
		deny: 'Deny',
		ended: {
			approved: { title: 'Device approved',
				text: 'It is signed in within a few seconds. You can close this page.' },
			denied: { title: 'Device denied', text: 'It gets no token. You can close this page.' },
		},
		tokens: 'Your API tokens',
	},

	account: {
		/** @param {string} name @param {string} role */
		signedIn: (name, role) => `You are signed in as ${name}. Role: ${role}.`,
	},

	token: {
		title: 'API tokens',
		empty: 'You have no tokens. Create one for a CI system. For the command line, “slipway auth login” creates one.',
		add: 'Create a token',
		name: 'Name',
		nameHint: 'What uses it, for example “laptop” or “ci”.',
		role: 'Role',
		expires: 'Expires',
		expiresHint: 'Empty: never.',
		never: 'Never',
		unused: 'Never used',
		once: 'Copy the token now. It is not shown again.',
		columns: { name: 'Name', role: 'Role', used: 'Last used', expires: 'Expires' },
		/** @param {string} name */
		deleteTitle: (name) => `Delete the token ${name}?`,
		deleteText: 'Programs that use it can no longer sign in.',
	},

	user: {
		title: 'Users',
		add: 'Add a user',
		username: 'User name',
		usernameHint: 'The name at the Git server.',
		columns: { username: 'User', email: 'Mail', role: 'Role', status: 'Status', login: 'Last sign-in' },
		statuses: { active: 'Active', inactive: 'Inactive' },
		/** @param {string} member @param {string} name */
		memberOf: (member, name) => `${member} of ${name}`,
	},
};
