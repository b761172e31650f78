-- SPDX-License-Identifier: ISC
--
-- What the statements of several files share.  src/db/statements.awk describes
-- the form.

-- --- rows that may be deleted: they stay, and are not valid

-- @deleted
valid = 0, version = version + 1, updated_at = CURRENT_TIMESTAMP(3)

-- --- children of projects: pipelines, environments, schedules

-- Others of the project with that name.  A project that does not exist has no row.
-- @child_same_name(table)
SELECT COUNT(c.id) AS n
FROM project p
	LEFT JOIN @table c ON c.project_id = p.id AND c.live_name = :name AND c.id <> :id
WHERE p.id = :project_id AND p.valid = 1
GROUP BY p.id

-- --- locks: the row `k` of deploy_lock

-- @lock_active
(k.`until` IS NULL OR k.`until` > NOW(3))

-- The key of a place; 0 = all projects, or all environments of the project.
-- @lock_place(project, environment)
CONCAT('project ', @project, ' environment ', @environment)

-- @lock_join_user
LEFT JOIN user u ON u.id = k.locked_by

-- The lock of a place, if it has one; its columns are those of a part.
-- @lock_join(project, environment)
LEFT JOIN deploy_lock k ON @lock_active AND k.place = @lock_place(@project, @environment)
	@lock_join_user

-- @lock_part(part)
k.reason AS `@part.reason`, COALESCE(u.username, 'a user') AS `@part.by`,
k.since AS `@part.since`, k.`until` AS `@part.until`

-- Whether a lock keeps the deployment `d` from starting.
-- @lock_applies
EXISTS (
	SELECT 1
	FROM deploy_lock k
	WHERE @lock_active
		AND (k.project_id IS NULL
			OR (k.project_id = d.project_id
				AND (k.environment_id IS NULL
					OR k.environment_id = d.environment_id))))

-- The deployments that pass those which wait for the lock of an environment.
-- @lock_passers
SELECT STRAIGHT_JOIN d.project_id, MIN(d.id)
FROM deploy_lock g
	JOIN deployment d FORCE INDEX (deployment_turn)
		ON d.project_id = g.project_id AND d.status = 'pending' AND d.turn = 1
WHERE g.environment_id IS NOT NULL AND NOT @lock_applies
GROUP BY d.project_id

-- --- runners: the row `w` of runner, the row `e` of environment

-- @runner_seconds
150

-- Whether the runner is online.  It may miss one report.
-- @runner_online
(w.stopped = 0 AND w.seen_at > NOW(3) - INTERVAL @runner_seconds SECOND)

-- Whether the runner can start deployments, as far as is known.
-- @runner_well
(w.sick_since IS NULL)

-- Whether a runner with that name and those labels may run deployments to the
-- environment, which may be that of no row.
-- @runner_fits(name, labels)
(e.runner IS NULL OR e.runner = @name OR JSON_CONTAINS(@labels, JSON_QUOTE(e.runner)))

-- The environment is bound to runners, and none of them is online.
-- @runner_missing
(e.runner IS NOT NULL
	AND NOT EXISTS (
		SELECT 1
		FROM runner w
		WHERE @runner_online AND @runner_fits(w.name, w.labels)))

-- --- who sees and deploys a project

-- The projects of a member.
-- @member_projects
(SELECT m.project_id FROM member m WHERE m.user_id = :member)

-- The role of the reader in the project `p` is reader.role; NULL if the reader is
-- no member.  By itself, the optimizer reads all memberships of the reader for each
-- project.
-- @member_join
LEFT JOIN member reader FORCE INDEX (PRIMARY)
	ON reader.project_id = p.id AND reader.user_id = :reader

-- Whether the user `u` may deploy the project.
-- @member_deploys(project)
(u.valid = 1
	AND u.status = 'active'
	AND (u.role NOT IN ('guest', 'viewer')
		OR EXISTS (
			SELECT 1
			FROM member m
			WHERE m.project_id = @project
				AND m.user_id = u.id
				AND m.role <> 'viewer')))

-- A guest who is no longer a member of the project gets no mail about it.
-- @sees(user, project)
(@user.role <> 'guest'
	OR EXISTS (
		SELECT 1
		FROM member s
		WHERE s.project_id = @project AND s.user_id = @user.id))

-- --- deployments: the row `d` of deployment

-- The columns of a row, without three that may be large, which a statement selects
-- between these: commit_message, env_vars and env_vars_sent.
-- @deployment_keys
d.id, d.project_id, d.pipeline_id, d.environment_id, d.branch, d.tag, d.commit_hash

-- @deployment_columns
d.status, d.reason, d.detail, d.`trigger`, d.retry_of, d.created_by, d.approval,
d.approval_by, d.approval_at, d.approval_comment, d.rollback_reason, d.runner,
d.created_at, d.started_at, d.finished_at, d.log_size, d.warnings, d.commit_read,
d.env_role, d.checkout

-- Nothing but the head of the deployment's branch may run.
-- @claim_head_only
(d.`trigger` = 'webhook' AND d.approval IS NULL AND d.when_moved <> 'ignore')

-- Whether notifiers hear of it.
-- @notice_any(id)
EXISTS (
	SELECT 1
	FROM deployment nd
		JOIN notifier n ON n.project_id IS NULL OR n.project_id = nd.project_id
	WHERE nd.id = @id AND n.valid = 1 AND n.active = 1)

-- It is now live in its environment, if it has one and is no dry run, and records
-- the deployment that it replaced: in the transaction in which it succeeds.
-- @environment_live_set
UPDATE deployment d
	JOIN environment e ON e.id = d.environment_id
SET d.replaced = e.live_deployment
WHERE d.id = :id AND COALESCE(JSON_VALUE(d.env_vars, '$.DRY_RUN'), '') <> 'yes';
IF ROW_COUNT() > 0 THEN
	UPDATE environment e
		JOIN deployment d ON d.environment_id = e.id
	SET e.live_deployment = d.id
	WHERE d.id = :id;
END IF

-- The entry of a deployment that a runner has ended.
-- @audit_end
INSERT INTO audit (username, via, action, object_type, object_id, project_id, changes)
SELECT d.runner, 'runner', 'endDeployment', 'deployment', d.id, d.project_id, :changes
FROM deployment d
WHERE d.id = :id

-- Whether the directories of two projects, `p` and `q`, overlap.
-- @projectdir_overlap
q.id <> p.id
	AND 1 IN (
		LOCATE(CONCAT(p.project_dir, '/'), CONCAT(q.project_dir, '/')),
		LOCATE(CONCAT(q.project_dir, '/'), CONCAT(p.project_dir, '/')))

-- --- totals of deployments that have ended: the row `t`

-- The upper bounds of the ranges of times are those of TOTAL_BOUNDS in total.h.
-- @total_range(ms)
CASE WHEN t.started_at IS NULL THEN 0
	WHEN @ms <= 100 THEN 100
	WHEN @ms <= 500 THEN 500
	WHEN @ms <= 1000 THEN 1000
	WHEN @ms <= 5000 THEN 5000
	WHEN @ms <= 10000 THEN 10000
	WHEN @ms <= 30000 THEN 30000
	WHEN @ms <= 60000 THEN 60000
	WHEN @ms <= 300000 THEN 300000
	WHEN @ms <= 600000 THEN 600000
	WHEN @ms <= 1800000 THEN 1800000
	WHEN @ms <= 3600000 THEN 3600000
	ELSE 2147483647
END

-- @total_ms(from, to)
COALESCE(GREATEST(TIMESTAMPDIFF(MICROSECOND, @from, @to), 0) DIV 1000, 0)

-- What the condition selects, with its times.
-- @total_ended(index, condition)
(
	SELECT status, COALESCE(reason, '') AS reason, started_at, log_size,
		@total_ms(started_at, finished_at) AS took_ms,
		@total_ms(COALESCE(approval_at, created_at), started_at) AS waited_ms
	FROM deployment FORCE INDEX (@index)
	WHERE @condition) t

-- @total_into
INSERT INTO deployment_total (
	status, reason, took, waited, shard, n, took_ms, waited_ms, log_bytes)
SELECT t.status, t.reason, @total_range(t.took_ms) AS took,
	@total_range(t.waited_ms) AS waited, :shard,

-- @total_add
ON DUPLICATE KEY UPDATE n = n + VALUES(n),
	took_ms = deployment_total.took_ms + VALUES(took_ms),
	waited_ms = deployment_total.waited_ms + VALUES(waited_ms),
	log_bytes = log_bytes + VALUES(log_bytes)

-- Counts one deployment.  It needs no temporary table, as several do.
-- @total_one
@total_into 1, t.took_ms, t.waited_ms, t.log_size
FROM @total_ended(PRIMARY, id = :id)
@total_add
