// SPDX-License-Identifier: ISC
/** What a user can do with a deployment. */
import { all, get, post } from './api.js';
import { confirmLoss, openDialog } from './dialog.js';
import { el } from './dom.js';
import { refresh } from './live.js';
import { environmentOf, projectRole } from './names.js';
import { askRollback } from './rollback.js';
import { presetFields, presetValues } from './presets.js';
import { go, href } from './router.js';
import { may } from './session.js';
import { needsApproval } from './status.js';
import { toast } from './toast.js';
import { t } from '../texts.js';

/**
 * @typedef {import('./page.js').Context} Context
 * @typedef {import('./types.js').Deployment} Deployment
 * @typedef {import('./types.js').Environment} Environment
 *
 * @typedef {{ id: number, role: string }} User with the role in the project
 *
 * @typedef {object} Action
 * @property {string} label
 * @property {string} [tone] class of the button
 * @property {(d: Deployment, user: User, isLive: boolean) => boolean} fits whether the user can do it now
 * @property {(d: Deployment) => Promise<any>} run
 */

/** @param {{ id: number }} made */
function show({ id }) {
	go(`/deployments/${id}`);
}

/**
 * Asks for another environment, and deploys there.
 * @param {Deployment} d
 */
async function promote(d) {
	/** @type {Environment[]} */
	const environments = await all(`/environments?projectId=${d.projectId}`);
	/** @type {import('./types.js').Project} */
	const { envPresets } = await get(`/projects/${d.projectId}`);
	const others = environments.filter(({ id }) => id !== d.environmentId);
	if (others.length === 0) {
		toast(t.deployment.nowhere, 'bad');
		return;
	}
	openDialog(t.deployment.promoteTitle, (close) => ({
		id: 'promote', submit: t.deployment.promote, cancel: close,
		fields: [{ name: 'environmentId', label: t.deployment.environment, type: 'select',
			hint: t.deployment.promoteHint,
			options: others.map(({ id, name }) => ({ value: String(id), label: name })) },
		// Empty ones are not sent, so that the variables of the environment apply.
		...presetFields(envPresets.map((one) => ({ ...one, required: false, default: null })), {})],
		send: async ({ environmentId, ...values }) => {
			const made = await post(`/deployments/${d.id}/promote`,
				{ environmentId: Number(environmentId), envVars: presetValues(values) });
			close();
			show(made);
		},
	}));
}

/**
 * Asks why, and denies.
 * @param {Deployment} d
 */
async function deny(d) {
	openDialog(t.deployment.denyTitle(d.id), (close) => ({
		id: 'deny', submit: t.deployment.deny, tone: 'danger', cancel: close,
		fields: [{ name: 'comment', label: t.deployment.comment, hint: t.deployment.denyHint }],
		send: async ({ comment }) => {
			await post(`/deployments/${d.id}/deny`, { comment: comment || null });
			close();
			refresh();
		},
	}));
}

/**
 * Whether a user can approve or deny it: an approver of the environment who did not
 * start it. A hook or a schedule starts it in no one's name.
 * @param {Deployment} d
 * @param {User} user
 */
function canDecide(d, user) {
	const approvers = environmentOf(d.environmentId)?.approvers ?? [];
	const own = d.createdBy === user.id && d.trigger !== 'webhook' && d.trigger !== 'schedule';
	return needsApproval(d) && !own
		&& (approvers.length === 0 ? may(user, 'maintainer') : approvers.includes(user.id));
}

/** @param {Deployment} d */
async function cancelAndRollBack({ id }) {
	if (await confirmLoss(t.deployment.cancelTitle(id), t.deployment.cancelText, t.deployment.cancelAndRollBack))
		await post(`/deployments/${id}/cancel`, { then: 'rollback' });
}

/** @param {Deployment} d */
async function rollBackTo({ id, environmentId }) {
	const environment = environmentOf(environmentId);
	if (environment !== undefined)
		askRollback(environment, id);
}

/** @type {Action[]} */
const ACTIONS = [
	{ label: t.deployment.approve, tone: 'primary', fits: canDecide,
		run: (d) => post(`/deployments/${d.id}/approve`, {}) },
	{ label: t.deployment.deny, fits: canDecide, run: deny },
	{ label: t.deployment.cancel, tone: 'danger', fits: (d) => d.finishedAt === null,
		run: (d) => post(`/deployments/${d.id}/cancel`) },
	{ label: t.deployment.cancelAndRollBack, tone: 'danger',
		fits: (d) => d.status === 'running' && d.environmentId !== null,
		run: cancelAndRollBack },
	{ label: t.deployment.retry, fits: (d) => d.finishedAt !== null,
		run: async (d) => show(await post(`/deployments/${d.id}/retry`, {})) },
	{ label: t.deployment.promote, fits: (d) => d.status === 'success', run: promote },
	{ label: t.deployment.rollBack, run: rollBackTo,
		fits: (d, _, isLive) => d.status === 'success' && !isLive && environmentOf(d.environmentId) !== undefined },
];

/**
 * The buttons for what the user can do.
 * @param {Deployment} d
 * @param {boolean} isLive whether it is what is live in its environment
 * @param {Context} context
 */
export function actions(d, isLive, context) {
	const user = { id: context.user.id, role: projectRole(d.projectId) };
	if (!may(user, 'deployer'))
		return null;
	return el('div', { class: 'actions' },
		ACTIONS.filter(({ fits }) => fits(d, user, isLive)).map(({ label, tone, run }) =>
			el('button', { type: 'button', class: tone, 'data-key': label, disabled: context.state.busy === true,
				onclick: () => context.run(() => run(d)) }, label)),
		el('a', { class: 'button', 'data-key': 'again', href: href(`/projects/${d.projectId}/deploy?from=${d.id}`) },
			t.deployment.again));
}
