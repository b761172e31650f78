// SPDX-License-Identifier: ISC
/** The texts of the console in English. */

/** @param {number} n @param {string} one @param {string} [many] */
const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** @type {Record<string, string>} */
const TROUBLE = { not_found: 'Not found', forbidden: 'Not allowed', lost: 'No connection' };

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
	/** @param {string} name */
	removeOf: (name) => `Remove ${name}`,
	/** @param {string} name */
	editOf: (name) => `Edit ${name}`,
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

	nav: {
		label: 'Main',
		board: 'Board',
		projects: 'Projects',
		deployments: 'Deployments',
		users: 'Users',
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
		viewer: 'Viewer', deployer: 'Deployer', maintainer: 'Maintainer', admin: 'Admin',
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
		failed: 'Failed', canceled: 'Canceled', interrupted: 'Interrupted', skipped: 'Skipped',
		locked: 'Locked', none: 'Never deployed',
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
		decline: 'Don’t sign in by this link',
		/** @param {string} name */
		stay: (name) => `Stay signed in as ${name}`,
		invalid: 'This link does not work',
		go: 'Continue',
	},

	board: {
		title: 'Board',
		summary: 'Summary',
		deploy: 'Deploy',
		/** @param {string} name */
		deployProject: (name) => `Deploy ${name}`,
		nothingLive: 'Nothing is live yet',
		/** @param {number} n */
		running: (n) => `${n} running`,
		/** @param {number} n */
		waiting: (n) => `${n} waiting`,
		/** @param {number} n */
		moreWaiting: (n) => `+${n} waiting`,
		/** @param {number} n */
		failed: (n) => `${n} failed`,
		/** @param {number} id @param {string} state */
		deploymentState: (id, state) => `Deployment ${id}: ${state}`,
	},

	first: {
		title: 'Welcome to slipway',
		lead: 'Your first deployment takes three steps.',
		/** @type {[string, string][]} */
		steps: [
			['Add a project', 'Name a repository of your Git server. slipway clones it; nothing changes there.'],
			['Pick a pipeline template', 'Static site, PHP, Node, Docker… See every script first, and edit it later.'],
			['Deploy', 'Choose a branch, answer the questions of the template, and watch the log.'],
		],
		ask: 'Ask a maintainer to add a project.',
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

	projects: {
		title: 'Projects',
		add: 'Add a project',
		create: 'Add and choose a pipeline',
		search: 'Search by name',
		empty: 'There is no project yet. Add one to deploy it.',
		noMatch: 'No project has such a name.',
		pages: 'Pages of projects',
		previous: 'Previous',
		next: 'Next',
		/** @param {number} n @param {number} of */
		page: (n, of) => `Page ${n} of ${of}`,
		columns: { name: 'Name', description: 'Description', repository: 'Repository', branch: 'Branch' },
	},

	project: {
		pages: 'Pages of the project',
		overview: 'Overview',
		pipelines: 'Pipelines',
		environments: 'Environments',
		schedules: 'Schedules',
		settings: 'Settings',
		/** @param {string} name */
		settingsOf: (name) => `Settings of ${name}`,
		general: 'General',
		name: 'Name',
		description: 'Description',
		repository: 'Repository',
		repositoryHint: 'For example https://git.example.org/team/site.git',
		branch: 'Default branch',
		branchHint: 'Empty: the default branch of the repository.',
		presets: 'Presets of the deploy form',
		presetsHint: 'What the deploy form asks. The steps see each answer as an environment variable.',
		triggers: 'Triggers',
		triggersHint: 'What a push starts. The Git server needs a webhook for this project.',
		extraEnv: 'Who may set other variables',
		extraEnvs: { nobody: 'No one', maintainers: 'Maintainers', deployers: 'Deployers' },
		visit: 'Visit',
		needsPipeline: 'A pipeline says how this project is deployed. Start with a template.',
		neverDeployed: 'Everything is ready for the first deployment.',
		readOnly: 'Maintainers can change these settings.',
		danger: 'Lock or delete',
		lock: 'Lock deployments',
		delete: 'Delete the project',
		/** @param {string} name */
		deleteTitle: (name) => `Delete ${name}?`,
		deleteText: 'Waiting deployments of this project are canceled. What is deployed stays where it is.',
	},

	workspace: {
		title: 'Workspace',
		directory: 'Directory',
		state: 'State',
		size: 'Size',
		checked: 'Last seen',
		states: {
			not_created: 'Not created yet', empty: 'Empty', no_git: 'Not a Git repository',
			ready: 'Ready', error: 'Unreadable',
		},
	},

	environment: {
		/** @param {string} name */
		titleOf: (name) => `Environments of ${name}`,
		none: 'Environments are the places that a project is deployed to, such as staging and production. '
			+ 'Without any, a deployment names only a branch.',
		add: 'Add an environment',
		name: 'Name',
		nameHint: 'Letters, digits, dots, dashes: production, staging, customer-a.',
		url: 'Address',
		urlHint: 'Where the result can be seen.',
		branches: 'Branches',
		branchesHint: 'Patterns such as main release/*; empty: any branch.',
		anyBranch: 'Any',
		approvers: 'Approvers',
		tags: 'Tags', tagsHint: 'Patterns such as v*; empty: any tag.',
		runner: 'Runner',
		runnerHint: 'Name or label of the runners for it; empty: any runner.',
		approval: 'Approval',
		approvals: {
			none: 'Not needed',
			required: 'Someone other than the user who deploys has to approve',
		},
		rollBack: 'Roll back',
		/** @param {string} name */
		rollBackOf: (name) => `Roll back ${name}`,
		/** @param {string} name @param {number} id */
		rollBackTo: (name, id) => `Roll back ${name} to deployment ${id}`,
		rollBackToHint: 'The deployment is repeated, ahead of everything else.',
		rollBackReason: 'Reason',
		rollBackHint: 'What was deployed before the live deployment is deployed again, ahead of everything else.',
		variables: 'Variables',
		variablesHint: 'One NAME=value per line. Secret variables stay as they are.',
		/** @param {string} name */
		lock: (name) => `Lock ${name}`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the environment ${name}?`,
		deleteText: 'Its waiting deployments are canceled. What is deployed stays where it is.',
	},

	preset: {
		add: 'Add a preset',
		untitled: 'New preset',
		key: 'Variable',
		label: 'Label',
		type: 'Kind',
		types: { input: 'Free text', select: 'One of several options', multiselect: 'Any of several options' },
		options: 'Options',
		optionsHint: 'One value=Label per line.',
		default: 'Default',
		pattern: 'Pattern',
		patternHint: 'A regular expression that the whole value has to match.',
		description: 'Hint',
		required: 'Required',
		secret: 'Secret: encrypted, masked in logs',
	},

	trigger: {
		add: 'Add a trigger',
		untitled: 'New trigger',
		branch: 'Branch',
		branchHint: 'A name or a pattern such as release/*.',
		tag: 'Tag',
		tagHint: 'A name or a pattern such as v*, instead of a branch.',
		paths: 'Paths',
		pathsHint: 'One pattern per line, of which the push must change a file; empty: any.',
		supersede: 'A newer push cancels older waiting deployments',
	},

	schedule: {
		/** @param {string} name */
		titleOf: (name) => `Schedules of ${name}`,
		none: 'A schedule deploys at certain times: every night, on weekdays at noon, on the first of the month.',
		add: 'Add a schedule',
		name: 'Name',
		cron: 'When',
		cronHint: 'Minute, hour, day, month, weekday: “30 4 * * mon-fri” is 04:30 on weekdays. Or @hourly to @yearly.',
		crons: ['@hourly', '@daily', '@weekly', '@monthly', '0 4 * * *', '*/15 * * * *', '0 12 * * mon-fri'],
		timezone: 'Time zone',
		branchHint: 'Empty: the default branch of the project.',
		variables: 'Variables',
		next: 'Next run',
		never: 'Paused',
		last: 'Last run',
		pause: 'Pause',
		resume: 'Resume',
		paused: 'Paused',
		/** @param {number} n */
		failures: (n) => `The last ${n} deployments of this schedule failed.`,
		/** @param {string} name */
		pauseOf: (name) => `Pause ${name}`,
		/** @param {string} name */
		resumeOf: (name) => `Resume ${name}`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the schedule ${name}?`,
		deleteText: 'It starts no more deployments. Those that it has started stay.',
	},

	audit: {
		title: 'Audit',
		/** @param {string} name */
		titleOf: (name) => `Changes of ${name}`,
		link: 'Who changed what',
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

	runner: {
		title: 'Runners',
		lead: 'Runners fetch commits and run the steps. Each slot runs one deployment at a time.',
		empty: 'No runner has reported yet. Start slipway-runner; waiting deployments begin then.',
		lockAll: 'Lock all deployments',
		online: 'Online',
		offline: 'Offline',
		/** @param {number} n @param {number} of */
		load: (n, of) => `${n} of ${of} in use`,
		columns: { name: 'Name', state: 'State', load: 'Slots', version: 'Version', started: 'Started',
			seen: 'Last seen' },
	},

	pipelines: {
		/** @param {string} name */
		titleOf: (name) => `Pipelines of ${name}`,
		add: 'Add a pipeline',
		create: 'Create the pipeline',
		lead: 'Start from a template. Its steps become your own: you can change every line later.',
		blank: 'Empty pipeline',
		blankText: 'Without steps; you write them yourself.',
		name: 'Name of the pipeline',
		/** @param {number} n */
		stepsOf: (n) => count(n, 'step'),
		/** @param {number} n */
		presetsOf: (n) => `${count(n, 'preset')} for the deploy form`,
		columns: { name: 'Name', description: 'Description', changed: 'Changed' },
		settings: 'Settings of the pipeline',
		checkout: 'Before the first step',
		checkouts: {
			fresh: 'Check out the commit, nothing else',
			keep: 'Check out the commit, keep files that git ignores',
			none: 'Check out nothing',
		},
		deleteIt: 'Delete the pipeline',
		/** @param {string} name */
		deleteTitle: (name) => `Delete ${name}?`,
		deleteText: 'Its steps are deleted with it. Earlier deployments keep their copies.',
	},

	step: {
		none: 'This pipeline has no steps yet.',
		add: 'Add a step',
		name: 'Name',
		script: 'Script',
		scriptHint: 'Runs with bash -eo pipefail, or with its own #! line. Tab indents; Escape, then Tab moves on.',
		runWhen: 'Runs',
		when: { success: 'if all steps before it succeeded', failure: 'only after a failure', always: 'always' },
		timeout: 'Time limit in seconds',
		timeoutHint: 'Empty: the default.',
		saved: 'Step saved. Deployments that exist keep their copy.',
		/** @param {string} name @param {number} n */
		moved: (name, n) => `${name} is now step ${n}`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the step ${name}?`,
		deleteText: 'Its script is lost. Earlier deployments keep their copies.',
	},

	deploy: {
		title: 'Deploy',
		/** @param {string} name */
		titleOf: (name) => `Deploy ${name}`,
		/** @param {number} id */
		again: (id) => `Deploy ${id} again, with changes`,
		submit: 'Deploy',
		needsApproval: 'Someone else has to approve a deployment to this environment.',
		choose: 'Choose…',
		pipeline: 'Pipeline',
		environment: 'Environment',
		branch: 'Branch',
		branchHint: 'Type to search the branches of the Git server.',
		tag: 'Tag', tagHint: 'Deployed instead of a branch.',
		commit: 'Commit',
		commitHint: 'Empty: the newest of the branch. Type to search the last hundred.',
		more: 'More variables',
		moreHint: 'One NAME=value per line.',
		/** @param {number} id */
		started: (id) => `Deployment ${id} is on its way`,
	},

	changes: {
		title: 'What changes',
		choose: 'Choose an environment to compare with what is live there.',
		first: 'Nothing is live yet. The newest commits of the branch:',
		unknown: 'What is live is not among the last hundred commits of this branch.',
		/** @param {number} n */
		count: (n) => n === 0 ? 'This is what is live.' : `${count(n, 'commit')} more than what is live:`,
	},

	chart: {
		/** @param {number} n */
		title: (n) => `Last ${n} runs`,
		/** @param {number} rate @param {string} median @param {string} longest */
		facts: (rate, median, longest) => `${rate} % succeeded · typically ${median} · at most ${longest}`,
		/** @param {number} id @param {string} state @param {string} time */
		run: (id, state, time) => `Deployment ${id}: ${state} in ${time}`,
	},

	account: {
		/** @param {string} name @param {string} role */
		signedIn: (name, role) => `You are signed in as ${name}. Role: ${role}.`,
	},

	token: {
		title: 'API tokens',
		empty: 'You have no tokens. Create one for the command line or for a CI system.',
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

	variable: {
		title: 'Shared variables',
		lead: 'Values that several projects receive. A project’s environments and presets take precedence.',
		empty: 'There are no shared variables.',
		add: 'Add a variable',
		key: 'Name',
		value: 'Value',
		valueHint: 'Not shown while you type.',
		isSecret: 'Secret: store it encrypted and mask it in logs',
		secret: 'secret',
		projects: 'Projects that receive it',
		columns: { key: 'Name', value: 'Value', description: 'Description', projects: 'Projects' },
		/** @param {string} name */
		deleteTitle: (name) => `Delete the variable ${name}?`,
		deleteText: 'Later deployments do not receive it.',
	},

	deployments: {
		title: 'Deployments',
		empty: 'Nothing has been deployed yet.',
		pages: 'Pages of deployments',
		older: 'Older',
		newest: 'Newest',
		all: 'All deployments of this project',
		columns: { state: 'State', project: 'Project', what: 'Deployment', who: 'By', time: 'Took', when: 'When' },
	},

	deployment: {
		/** @param {number} id */
		title: (id) => `Deployment ${id}`,
		/** @param {string} state @param {string} project @param {number} id */
		pageTitle: (state, project, id) => `${state}: ${project} #${id}`,
		cancel: 'Cancel',
		retry: 'Retry',
		again: 'Deploy again with changes',
		cancelAndRollBack: 'Cancel and roll back',
		/** @param {number} id */
		cancelTitle: (id) => `Cancel deployment ${id} and roll back?`,
		cancelText: 'Its steps end at once. What is live is deployed again, ahead of everything else.',
		rollBack: 'Roll back to this',
		promote: 'Promote',
		promoteTitle: 'Promote to another environment',
		promoteHint: 'Deploys the same commit and steps with the variables of that environment. '
			+ 'Fill in only what differs from them and from the defaults.',
		environment: 'Environment',
		nowhere: 'The project has no other environment. Add one, then promote.',
		/** @param {number} id */
		denyTitle: (id) => `Deny deployment ${id}?`,
		denyHint: 'Whoever started it reads why.',
		comment: 'Comment',
		approve: 'Approve',
		deny: 'Deny',
		project: 'Project',
		revision: 'Revision',
		tag: 'Tag',
		by: 'Started by',
		/** @type {Record<string, string>} */
		triggers: { manual: 'by hand', retry: 'retry', rollback: 'rollback', promotion: 'promotion',
			webhook: 'Push', schedule: 'Schedule' },
		approval: 'Approval',
		/** @type {Record<string, string>} */
		approvals: { required: 'Needed', granted: 'Approved', denied: 'Denied' },
		/** @param {string} name */
		decidedBy: (name) => `by ${name}`,
		rollbackReason: 'Reason',
		deletedEnvironment: 'Deleted',
		took: 'Took',
		retryOf: 'Repeats',
		steps: 'Steps',
		/** @param {string[]} steps */
		stepsText: (steps) => `Durations of the steps. ${steps.join('; ')}`,
		/** @param {number} n how many are before it */
		place: (n) => n === 0 ? 'Next in the queue' : `${count(n, 'deployment')} before it in the queue`,
		noLog: 'The log appears here when the deployment starts.',
	},

	log: {
		title: 'Log',
		label: 'Lines of the log',
		search: 'Search the whole log',
		noHit: 'Nothing found',
		/** @param {number} at @param {number} n @param {boolean} busy */
		hits: (at, n, busy) => `${at} of ${n}${busy ? '…' : ''}`,
		previous: 'Previous hit',
		next: 'Next hit',
		times: 'Times',
		time: { off: 'off', elapsed: 'elapsed', clock: 'clock' },
		wrap: 'Wrap',
		raw: 'Raw',
		download: 'Download',
		keys: 'Keys',
		link: 'Link to this line',
		lost: 'The connection is lost. The log continues here when it is back.',
		empty: 'The log is empty.',
		/** @param {number} n */
		unseen: (n) => `${count(n, 'new line')} ↓`,
		keyList: [
			['j k', 'down, up'], ['g G', 'start, end'], ['/', 'search'], ['n N', 'next hit, previous hit'],
			['l', 'link to the first line in view'], ['?', 'these keys'],
		],
	},
};
