// SPDX-License-Identifier: ISC
/** The board, and what belongs to a project. */
import { count } from './count.js';

export const projects = {
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
		needApproval: (n) => n === 1 ? '1 needs approval' : `${n} need approval`,
		/** @param {number} n */
		moreWaiting: (n) => `+${n} waiting`,
		/** @param {number} n */
		failed: (n) => `${n} failed`,
		/** @param {number} id */
		deploymentOf: (id) => `Deployment ${id}: `,
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

	projects: {
		title: 'Projects',
		add: 'Add a project',
		create: 'Add and choose a pipeline',
		search: 'Search by name',
		empty: 'There is no project yet. Add one to deploy it.',
		noMatch: 'No project has this text in its name.',
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
		notifiers: 'Notifiers',
		members: 'Members',
		settings: 'Settings',
		/** @param {string} name */
		settingsOf: (name) => `Settings of ${name}`,
		general: 'General',
		name: 'Name',
		description: 'Description',
		repository: 'Repository',
		repositoryHint: 'Type a part of its name at the Git server, or an address such as '
			+ 'https://git.example.org/team/site.git.',
		branch: 'Default branch',
		branchHint: 'Empty: the default branch of the repository.',
		presets: 'Presets of the deploy form',
		presetsHint: 'The questions of the deploy form. The steps see each answer as an environment variable.',
		triggers: 'Triggers',
		triggersHint: 'The deployments that a push starts. The Git server needs a webhook for this project.',
		badge: 'Public badge',
		/** @param {string} address */
		badgeHint: (address) => `Anyone can read the result of the last deployment at ${address}`,
		submodules: 'Submodules',
		submodulesAs: { '': 'As the runner is set up', true: 'Fetch them', false: 'Leave their directories empty' },
		submoduleRepositories: 'Repositories of submodules',
		submoduleRepositoriesHint: 'Those at the Git server that are not public, such as team/theme. '
			+ 'You must be able to read them there.',
		lfs: 'Files of Git LFS',
		lfsHint: 'The checkout has their content; the runner needs git-lfs. Without this, it has pointers.',
		extraEnv: 'Who may set variables that no preset names',
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

	transfer: {
		exportTitle: 'Export',
		exportLead: 'The whole project as a file, without its secrets: pipelines, environments, schedules, triggers, '
			+ 'notifiers.',
		export: 'Save as a file',
		importTitle: 'Import a project',
		lead: 'An exported document creates the project of that name, or makes it match the document. '
			+ 'You see what will change before anything does.',
		file: 'Choose a file',
		document: 'Document',
		documentHint: 'The text of an exported file.',
		notJson: 'is not a JSON document',
		look: 'Show what changes',
		difference: 'What changes',
		/** @param {number} n @param {number} rest */
		count: (n, rest) => n === 0 ? 'Nothing to change: the project matches the document.'
			: `${count(n, 'part')} of ${n + rest} differ${n === 1 ? 's' : ''}.`,
		missing: 'These secrets have to be set afterwards:',
		actions: { created: 'New', changed: 'Changed', unchanged: 'Unchanged' },
		/** @type {Record<string, string>} */
		types: { project: 'Project', pipeline: 'Pipeline', environment: 'Environment', schedule: 'Schedule',
			notifier: 'Notifier' },
		apply: 'Apply',
		done: 'Imported',
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
		emptyCache: 'Empty the cache',
		emptied: 'The next deployment begins with an empty cache',
	},

	member: {
		/** @param {string} name */
		titleOf: (name) => `Members of ${name}`,
		lead: 'Members have a role in this project. If it is higher than their role in the whole service, it applies here.',
		none: 'There are no members yet. All users have their role in the whole service here; guests cannot see '
			+ 'the project.',
		add: 'Add a member',
		user: 'User',
		role: 'Role',
		since: 'Since',
		/** @param {string} name */
		roleOf: (name) => `Role of ${name}`,
		/** @param {string} name */
		removeTitle: (name) => `Remove ${name} from the project?`,
		removeText: 'The role in the whole service applies again.',
		remove: 'Remove',
	},

	hook: {
		title: 'Webhook of the Git server',
		lead: 'A push starts the triggers if the Git server sends it here, signed with a secret.',
		renew: 'New secret',
		renewTitle: 'Create a new secret?',
		renewText: 'Pushes that are signed with the old secret are rejected from now on.',
		once: 'Copy the secret to the Git server now. It is not shown again.',
		url: 'Address for the Git server:',
		noUrl: 'The service does not know its own address: set api.url.',
	},

	deployKey: {
		title: 'Deploy key',
		lead: 'Runners read the repository over SSH with this key. Add its public half to the repository at the Git '
			+ 'server; the right to read is enough.',
		none: 'The project has no deploy key, so runners use the key of the service, if it has one.',
		create: 'Create a key',
		publicKey: 'Public half',
		fingerprint: 'Fingerprint',
		created: 'Created',
		copied: 'Copied.',
		replace: 'Replace',
		replaceTitle: 'Replace the deploy key?',
		replaceText: 'Checkouts fail until the public half of the new key is added at the Git server.',
		deleteTitle: 'Delete the deploy key?',
		deleteText: 'Runners cannot read the repository with it any more.',
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
		pathsHint: 'One pattern per line. At least one changed file must match one of them. Empty: any file.',
		supersede: 'A newer push cancels older waiting deployments',
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
		approversHint: 'None: any maintainer. The user who deploys cannot approve.',
		tags: 'Tags', tagsHint: 'Patterns such as v*; empty: any tag.',
		runner: 'Runner',
		runnerHint: 'Name or label of the runners for it; empty: any runner.',
		approval: 'Approval',
		approvals: {
			none: 'Not needed',
			required: 'Someone other than the user who deploys has to approve',
		},
		/** @param {string} name */
		deployTo: (name) => `Deploy to ${name}`,
		/** @param {string} name */
		visit: (name) => `Visit ${name}`,
		rollBack: 'Roll back',
		/** @param {string} name */
		rollBackOf: (name) => `Roll back ${name}`,
		/** @param {string} name @param {number} id */
		rollBackTo: (name, id) => `Roll back ${name} to deployment ${id}`,
		rollBackToHint: 'Repeats this deployment, ahead of everything else in the queue.',
		rollBackReason: 'Reason',
		rollBackHint: 'Deploys again what was live before, ahead of everything else in the queue.',
		variables: 'Variables',
		variablesHint: 'The steps of each deployment to this environment see them.',
		newVariable: 'New variable',
		/** @param {string} name */
		lock: (name) => `Lock ${name}`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the environment ${name}?`,
		deleteText: 'Its waiting deployments are canceled. What is deployed stays where it is.',
	},

	schedule: {
		/** @param {string} name */
		titleOf: (name) => `Schedules of ${name}`,
		none: 'A schedule deploys at set times: every night, on weekdays at noon, on the first of the month.',
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
		/** @param {number} n */
		failures: (n) => `The last ${n} deployments of this schedule failed.`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the schedule ${name}?`,
		deleteText: 'It starts no more deployments. Those that it has started stay.',
	},
};
