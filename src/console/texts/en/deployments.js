// SPDX-License-Identifier: ISC
/** Deploying, and deployments with their logs. */
import { count } from './count.js';

export const deployments = {
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
		source: 'Deploy',
		sources: { branch: 'A branch', tag: 'A tag' },
		branch: 'Branch',
		branchHint: 'Choose one, or type a part of its name.',
		tag: 'Tag', tagHint: 'Choose one, or type a part of its name.',
		commit: 'Commit',
		commitHint: 'Empty: the newest of the branch. Choose one of the last hundred, or type a part of its '
			+ 'message or its hash.',
		more: 'More variables',
		moreHint: 'One NAME=value per line.',
		/** @param {string} names */
		leftOut: (names) => `No preset names ${names}, so you cannot set them. They get the values that apply now, if any.`,
		/** @param {number} id */
		started: (id) => `Deployment ${id} is queued`,
	},

	changes: {
		title: 'What changes',
		choose: 'Choose an environment to compare with what is live there.',
		chooseTag: 'Choose a tag to compare it with what is live.',
		live: 'Live:',
		/** @type {Record<'first' | 'same' | 'more' | 'fewer' | 'unknown', (n: number) => string>} */
		texts: {
			first: (n) => n === 0 ? 'Nothing is live yet.' : 'Nothing is live yet. The newest commits:',
			same: () => 'This is what is live.',
			more: (n) => `${count(n, 'commit')} more than what is live:`,
			fewer: (n) => `Older than what is live. ${count(n, 'commit is', 'commits are')} undone:`,
			unknown: () => 'What is live is not among the last hundred commits of this branch.',
		},
		/** @param {number} n */
		more: (n) => `And ${n} more.`,
		unlisted: 'The service cannot list the commits of this repository. Type a branch, a tag or a commit.',
	},

	deployments: {
		title: 'Deployments',
		empty: 'Nothing has been deployed yet.',
		noMatch: 'No deployment matches these filters.',
		showAll: 'Show all deployments',
		allProjects: 'All projects',
		allEnvironments: 'All environments',
		allStates: 'All states',
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
		cancelText: 'Its steps are stopped now. What is live is deployed again, ahead of everything else in the queue.',
		rollBack: 'Roll back to this',
		promote: 'Promote',
		promoteTitle: 'Promote to another environment',
		promoteHint: 'Deploys the same commit and steps with the variables of that environment. '
			+ 'Fill in only what differs from them and from the defaults.',
		environment: 'Environment',
		nowhere: 'The project has no other environment. Add one, then promote.',
		/** @param {number} id */
		denyTitle: (id) => `Deny deployment ${id}?`,
		denyHint: 'The user who started it sees this.',
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
		unconfirmed: 'The Git server has not confirmed that the branch or tag has this commit.',
		envVarsSent: 'Set by the request',
		rollbackReason: 'Reason',
		deleted: 'Deleted',
		took: 'Took',
		retryOf: 'Repeats',
		steps: 'Steps',
		/** @param {string[]} steps */
		stepsText: (steps) => `Durations of the steps. ${steps.join('; ')}`,
		/** @param {number} n how many are before it */
		place: (n) => n === 0 ? 'Next in the queue' : `${count(n, 'deployment')} before it in the queue`,
		notify: 'Notify me when it ends',
		noLog: 'The log appears here when the deployment starts.',
	},

	chart: {
		/** @param {number} n */
		title: (n) => `Last ${n} runs`,
		/** @param {number} rate @param {string} median @param {string} longest */
		facts: (rate, median, longest) => `${rate} % succeeded · typically ${median} · at most ${longest}`,
		/** @param {number} id @param {string} state @param {string} time */
		run: (id, state, time) => `Deployment ${id}: ${state} in ${time}`,
	},

	log: {
		title: 'Log',
		label: 'Lines of the log',
		search: 'Search the whole log',
		noHit: 'Nothing found',
		/** @param {number} at @param {number} n @param {boolean} busy @param {boolean} hasMore than these */
		hits: (at, n, busy, hasMore) => `${at} of ${hasMore ? `the first ${n}` : n}${busy ? '…' : ''}`,
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
