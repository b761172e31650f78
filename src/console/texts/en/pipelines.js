// SPDX-License-Identifier: ISC
/** Pipelines and their steps. */
import { count } from './count.js';

export const pipelines = {
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
		directory: 'Directory',
		directoryHint: 'In the workspace, such as web/app. Empty: its root.',
		runWhen: 'Runs',
		when: { success: 'if all steps before it succeeded', failure: 'only after a failure', always: 'always' },
		mayFail: 'May fail',
		mayFailHint: 'A failure is a warning, and the deployment succeeds. For cleaning up after the switch.',
		timeout: 'Time limit in seconds',
		timeoutHint: 'Empty: the default.',
		saved: 'Step saved. Deployments that exist keep their copy.',
		/** @param {string} name @param {number} n */
		moved: (name, n) => `${name} is now step ${n}`,
		/** @param {string} name */
		deleteTitle: (name) => `Delete the step ${name}?`,
		discardTitle: 'Discard the changed script?',
		discardText: 'What you typed is lost.',
		discard: 'Discard',
		deleteText: 'Its script is lost. Earlier deployments keep their copies.',
	},
};
