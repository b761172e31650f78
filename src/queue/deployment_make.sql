-- SPDX-License-Identifier: ISC

-- Locks the project before its pipeline.  The subqueries lock nothing, and read the
-- steps after the lock on their pipeline was obtained.
-- @source(which)
SELECT p.id AS project_id, p.default_branch, p.env_presets, p.extra_env,
	l.id AS pipeline_id, l.timeout_seconds, l.checkout,
	EXISTS (SELECT 1 FROM step s WHERE s.pipeline_id = l.id AND s.valid = 1) AS steps,
	EXISTS (SELECT 1 FROM environment e WHERE e.valid = 1 AND e.project_id = p.id)
		AS environments,
	EXISTS (SELECT 1 FROM variable_project v WHERE v.project_id = p.id) AS variables
FROM project p
	LEFT JOIN pipeline l ON l.project_id = p.id AND l.valid = 1 @which
WHERE p.id = :project_id AND p.valid = 1

-- @made_rest
env_vars, env_vars_sent, secret_vars, env_role, environment_id, pipeline_id

-- @made_of
project_id, timeout_seconds, checkout, branch, tag, commit_hash, commit_message,
@made_rest

-- @made
RETURNING id, project_id, pipeline_id, environment_id, branch, tag, commit_hash,
	commit_message, env_vars, env_vars_sent, status, reason, detail, `trigger`,
	retry_of, created_by, approval, approval_by, approval_at, approval_comment,
	rollback_reason, runner, created_at, started_at, finished_at, log_size, warnings,
	commit_read, env_role, checkout

-- @step_of
position, name, script, directory, timeout_seconds, run_when, may_fail

-- @steps_made
ORDER BY position
RETURNING position, name, status, may_fail, exit_code, `signal`, started_at, finished_at,
	log_offset, log_length

-- The columns that a retry copies; an approver is shown no text that was not read
-- from the repository.
-- @message_copied
IF(:approval = 'required' AND NOT commit_read
	AND NOT (status = 'success' AND checkout <> 'none'), NULL, commit_message)

-- An exclusive lock. With a shared one, a deployment could be committed before
-- another of its project with a smaller id, and overtake it in the queue.
-- deployment_hold_project(struct number) -> struct number
SELECT id AS n FROM project WHERE id = :of AND valid = 1 FOR UPDATE;

-- deployment_hold_project_of(struct number) -> struct number
SELECT id AS n
FROM project
WHERE id = (SELECT project_id FROM deployment WHERE id = :of) AND valid = 1
FOR UPDATE;

-- A locking read: it also sees what was committed since the transaction began.
-- deployment_homeless(struct number) -> struct number
SELECT e.id AS n
FROM deployment d
	JOIN environment e ON e.id = d.environment_id
WHERE d.id = :of AND e.valid = 0
LOCK IN SHARE MODE;

-- deployment_share_pipeline(struct number) -> struct number
SELECT id AS n
FROM pipeline
WHERE project_id = :of AND id = :n AND valid = 1
LOCK IN SHARE MODE;

-- deployment_source(struct deployment_source) -> struct deployment_source
@source(AND l.id = :pipeline_id) FOR UPDATE;

-- deployment_any_source(struct deployment_source) -> struct deployment_source
@source() LIMIT 2 FOR UPDATE;

-- The rows as deployment_by_id() would read them.
-- deployment_insert(struct deployment) -> struct deployment, struct deployment_step
BEGIN NOT ATOMIC
	INSERT INTO deployment (
		@made_of, `trigger`, created_by, read_by, commit_read, approval, turn,
		trigger_key, when_moved)
	VALUES (
		:project_id, :timeout_seconds, :checkout, :branch, :tag, :commit_hash,
		:commit_message, :env_vars, :env_vars_sent, :secret_vars, :env_role,
		:environment_id, :pipeline_id, :trigger, :created_by, :read_by,
		:commit_read, :approval, :turn, :trigger_key,
		COALESCE(:when_moved, 'cancel'))
	@made;
	INSERT INTO deployment_step (deployment_id, @step_of)
	SELECT LAST_INSERT_ID(), @step_of
	FROM step
	WHERE pipeline_id = :pipeline_id AND valid = 1
	@steps_made;
END;

-- deployment_repeat(struct deployment) -> struct deployment
INSERT INTO deployment (
	@made_of, `trigger`, created_by, approval, rollback_reason, turn, commit_read,
	retry_of)
SELECT project_id, timeout_seconds, checkout, branch, tag, commit_hash, @message_copied,
	@made_rest, :trigger, :created_by, :approval, :rollback_reason, :turn,
	commit_read, id
FROM deployment
WHERE id = :retry_of
@made;

-- deployment_repeat_with(struct deployment) -> struct deployment
INSERT INTO deployment (
	@made_of, `trigger`, created_by, approval, rollback_reason, turn, commit_read,
	retry_of)
SELECT project_id, timeout_seconds, checkout, branch, tag, commit_hash, @message_copied,
	:env_vars, :env_vars_sent, :secret_vars, :env_role, :environment_id,
	pipeline_id, :trigger, :created_by, :approval, :rollback_reason, :turn,
	commit_read, id
FROM deployment
WHERE id = :retry_of
@made;

-- deployment_secrets(struct deployment) -> struct deployment
SELECT secret_vars FROM deployment WHERE id = :id;

-- deployment_repeat_steps(struct number) -> struct deployment_step
INSERT INTO deployment_step (deployment_id, @step_of)
SELECT :n, @step_of
FROM deployment_step
WHERE deployment_id = :of
@steps_made;
