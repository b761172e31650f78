// SPDX-License-Identifier: ISC
/** The dialog that rolls an environment back. */
import { post } from './api.js';
import { openDialog } from './dialog.js';
import { go } from './router.js';
import { t } from '../texts.js';

/**
 * Asks why, and deploys again what was deployed before.
 * @param {{ id: number, name: string }} environment
 * @param {number} [deploymentId] to which one; default: the one before the live one
 */
export function askRollback({ id, name }, deploymentId) {
	const e = t.environment;
	openDialog(deploymentId === undefined ? e.rollBackOf(name) : e.rollBackTo(name, deploymentId), (close) => ({
		id: `rollback-${id}-${deploymentId ?? ''}`, submit: e.rollBack, tone: 'danger', cancel: close,
		fields: [{ name: 'reason', label: e.rollBackReason,
			hint: deploymentId === undefined ? e.rollBackHint : e.rollBackToHint }],
		send: async ({ reason }) => {
			const made = await post(`/environments/${id}/rollback`,
				{ reason: reason || null, ...(deploymentId === undefined ? {} : { deploymentId }) });
			close();
			go(`/deployments/${made.id}`);
		},
	}));
}
