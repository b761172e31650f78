-- SPDX-License-Identifier: ISC

-- @end_steps
UPDATE deployment_step
SET finished_at = IF(status = 'running',
		GREATEST(COALESCE(:finished_at, NOW(3)), COALESCE(started_at, NOW(3))),
		NULL),
	status = IF(status = 'pending', 'skipped',
		IF(:status = 'canceled', 'canceled', 'interrupted'))
WHERE deployment_id = :id AND status IN ('pending', 'running')

-- What follows the write of a row that ends a deployment, in the same round trip:
-- it ends the deployment's steps, counts it, and does more.
-- @ended(more)
IF ROW_COUNT() = 0 THEN
	SELECT 0 AS n, 0 AS notices;
ELSE
	@end_steps;
	@total_one;
	@more
	SELECT 1 AS n, @notice_any(:id) AS notices;
END IF

-- @cancel
UPDATE deployment
SET status = :status, reason = :reason, detail = :detail,
	log_size = IF(git_since IS NULL, 0, COALESCE((
		SELECT MAX(c.start + c.length)
		FROM log_chunk c
		WHERE c.deployment_id = deployment.id), 0)),
	finished_at = NOW(3)

-- Since the runner chose the deployment, a lock may have been set, or the
-- environment bound to another runner.
-- move_take(struct move_args)
UPDATE deployment d
SET d.status = :status, d.epoch = d.epoch + 1, d.owner = :owner, d.runner = :runner,
	d.lease_until = NOW(3) + INTERVAL :lease SECOND, d.started_at = NOW(3)
WHERE d.id = :id
	AND d.epoch = :epoch
	AND d.status = :from
	AND (d.turn = 0 OR NOT @lock_applies)
	AND NOT EXISTS (
		SELECT 1
		FROM environment e
		WHERE e.id = d.environment_id AND NOT @runner_fits(:runner, :labels));

-- move_release(struct move_args)
UPDATE deployment
SET status = :status, epoch = epoch + 1, owner = NULL, runner = NULL,
	lease_until = NULL, started_at = NULL
WHERE id = :id AND epoch = :epoch AND status = :from AND cancel_at IS NULL;

-- @succeeded_and_noted
IF :status = 'success' THEN
	@environment_live_set;
END IF;
@audit_end;

-- move_end(struct move_args) -> struct ended
BEGIN NOT ATOMIC
	UPDATE deployment
	SET status = :status, reason = :reason, detail = :detail, warnings = :warnings,
		epoch = epoch + :expired, lease_until = NULL,
		log_size = COALESCE(:log_size, (
			SELECT MAX(c.start + c.length)
			FROM log_chunk c
			WHERE c.deployment_id = deployment.id), 0),
		finished_at = GREATEST(COALESCE(:finished_at, NOW(3)),
			COALESCE(started_at, NOW(3)))
	WHERE id = :id
		AND epoch = :epoch
		AND status = :from
		AND (:expired = 0 OR lease_until < NOW(3));
	@ended(@succeeded_and_noted);
END;

-- What ends before it runs is canceled by a request, which has an entry in the
-- audit log itself.
-- move_cancel(struct move_args) -> struct ended
BEGIN NOT ATOMIC
	@cancel
	WHERE id = :id AND status = :from;
	@ended();
END;

-- move_cancel_all(struct move_args)
@cancel
WHERE project_id = :project_id AND status = :from;

-- move_cancel_all_steps(struct move_args)
UPDATE deployment d FORCE INDEX (deployment_queue)
	STRAIGHT_JOIN deployment_step s FORCE INDEX (PRIMARY) ON s.deployment_id = d.id
SET s.status = 'skipped'
WHERE d.project_id = :project_id
	AND d.status = :status
	AND d.reason = :reason
	AND s.status = 'pending';

-- move_step(struct step_args)
UPDATE deployment_step s
	JOIN deployment d ON d.id = s.deployment_id
SET s.status = :status, s.exit_code = COALESCE(:exit_code, s.exit_code),
	s.`signal` = COALESCE(:signal, s.`signal`),
	s.started_at = COALESCE(:started_at, s.started_at),
	s.finished_at = COALESCE(:finished_at, s.finished_at),
	s.log_offset = COALESCE(:log_offset, s.log_offset),
	s.log_length = COALESCE(:log_length, s.log_length)
WHERE s.deployment_id = :deployment_id
	AND s.position = :position
	AND d.epoch = :epoch
	AND d.status = 'running'
	AND FIND_IN_SET(s.status, :from) > 0;

-- move_step_at(struct step_args) -> struct step_found
SELECT s.status
FROM deployment_step s
	JOIN deployment d ON d.id = s.deployment_id
WHERE s.deployment_id = :deployment_id
	AND s.position = :position
	AND d.epoch = :epoch
	AND d.status = 'running';

-- move_waiting_of_environment(struct move_id) -> struct move_id
SELECT id
FROM deployment FORCE INDEX (deployment_environment_status)
WHERE project_id = (SELECT project_id FROM environment WHERE id = :id)
	AND environment_id = :id
	AND status = 'pending'
ORDER BY id;

-- The order in which events arrive proves nothing, but each names the commit that it
-- replaced.  Several triggers may match one push, with the same place and different
-- variables: their deployments have the same commit.
-- move_replaced(struct replaced) -> struct move_id
SELECT o.id
FROM deployment d
	JOIN deployment o
		ON o.project_id = d.project_id
			AND o.status = 'pending'
			AND o.id < d.id
			AND o.`trigger` IN ('webhook', 'schedule')
			AND o.pipeline_id = d.pipeline_id
			AND o.branch <=> d.branch
			AND o.tag <=> d.tag
			AND o.environment_id <=> d.environment_id
			AND COALESCE(o.approval, '') <> 'granted'
			AND COALESCE(o.commit_hash <> d.commit_hash, 1)
			AND (d.commit_hash IS NULL OR o.commit_hash = :before)
WHERE d.id = :id
ORDER BY o.id;
