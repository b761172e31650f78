-- SPDX-License-Identifier: ISC

-- @claim_page
64

-- @queue
FORCE INDEX (deployment_turn)

-- @repository
IF((d.checkout = 'none' AND NOT @claim_head_only) OR d.turn = 0, '', p.repository)
	AS repository

-- A deployment that waits for its Git server keeps its place in the project.
-- @is_due
(d.not_before IS NULL OR d.not_before <= NOW(3))

-- Of the rows `q` (project_id, id), those that can start here, and those that are
-- stuck, because others of their projects may pass them.  The order of the joins
-- and the index of the queue are fixed here: with some statistics the optimizer
-- reads the queue once for each project.
-- @candidates
SELECT STRAIGHT_JOIN d.id, d.epoch, @repository, d.project_id,
	NOT @runner_fits(:runner, :labels) AS is_stuck

-- @of_candidates
JOIN deployment d ON d.id = q.id
	JOIN project p ON p.id = q.project_id
	LEFT JOIN deployment r ON r.running_project = q.project_id
	LEFT JOIN environment e ON e.id = d.environment_id
WHERE r.id IS NULL
	AND d.id > :id
	AND @is_due
	AND (d.turn = 0
		OR (NOT @lock_applies
			AND NOT EXISTS (
				SELECT 1
				FROM deployment b @queue
					LEFT JOIN environment e ON e.id = b.environment_id
				WHERE b.status = 'pending'
					AND b.turn = 0
					AND b.project_id = d.project_id
					AND NOT @runner_missing)))
	AND (@runner_fits(:runner, :labels) OR @runner_missing)
ORDER BY d.id LIMIT @claim_page

-- The oldest deployment of each project of the queue.  The query skips through the
-- index from project to project, however long the queue is; without the status in
-- its GROUP BY, the optimizer prefers to read the whole queue.
-- @oldest
SELECT project_id, MIN(id) AS id
FROM deployment @queue
WHERE status = 'pending' AND turn < 2
GROUP BY status, turn, project_id

-- The oldest deployment of each idle project, or its oldest rollback.
-- claim_candidates(struct claim_args) -> struct claim_candidate
@candidates
FROM (
	@oldest
	UNION
	@lock_passers) q
	@of_candidates;

-- Of projects whose oldest deployment is stuck, the oldest that is not: it is for
-- another environment.
-- claim_passers(struct claim_args) -> struct claim_candidate
@candidates
FROM (
	SELECT STRAIGHT_JOIN d.project_id, MIN(d.id) AS id
	FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) j
		JOIN deployment d FORCE INDEX (deployment_queue)
			ON d.project_id = j.id AND d.status = 'pending' AND d.turn < 2
		LEFT JOIN environment e ON e.id = d.environment_id
	WHERE (d.turn = 0 OR NOT @lock_applies) AND NOT @runner_missing
	GROUP BY d.turn, d.project_id) q
	@of_candidates;

-- Without locks and rollbacks, as most of the time: where nothing is bound to
-- a runner, these are the same, for a quarter of the time. If there are any,
-- it returns one that seems to be stuck. A query in the condition of an IF
-- would lock what it reads.
-- claim_plain(struct claim_args) -> struct claim_candidate; reads
BEGIN NOT ATOMIC
	DECLARE is_odd INT;
	SELECT EXISTS (
			SELECT 1
			FROM deployment @queue
			WHERE status = 'pending' AND turn = 0)
		OR (EXISTS (SELECT 1 FROM deploy_lock)
			AND EXISTS (
				SELECT 1
				FROM deployment @queue
				WHERE status = 'pending' AND turn = 1))
	INTO is_odd;
	IF is_odd THEN
		SELECT 0 AS id, 0 AS epoch, '' AS repository, 0 AS project_id,
			1 AS is_stuck;
	ELSE
		SELECT STRAIGHT_JOIN d.id, d.epoch, @repository, d.project_id,
			e.runner IS NOT NULL AS is_stuck
		FROM (@oldest) q
			JOIN deployment d ON d.id = q.id
			JOIN project p ON p.id = q.project_id
			LEFT JOIN deployment r ON r.running_project = q.project_id
			LEFT JOIN environment e ON e.id = d.environment_id
		WHERE r.id IS NULL AND d.id > :id AND @is_due
		ORDER BY d.id LIMIT @claim_page;
	END IF;
END;

-- claim_mine(struct claim_args) -> struct page_count
SELECT COUNT(*) AS n
FROM deployment
WHERE id = :id AND epoch = :epoch AND owner = :owner AND status = 'running';

-- claim_load(struct claim_args) -> struct claim, struct deployment_step; reads
BEGIN NOT ATOMIC
	SELECT d.id, d.epoch, d.project_id, p.name AS project_name, p.project_dir,
		p.repository, l.name AS pipeline_name, e.name AS environment_name,
		d.branch, d.tag, d.commit_hash, d.env_vars, d.secret_vars,
		d.timeout_seconds, d.checkout, d.created_by,
		COALESCE(d.read_by, d.created_by) AS read_by,
		d.`trigger` IN ('webhook', 'schedule') AS is_automatic,
		d.read_by IS NOT NULL AND NOT EXISTS (
			SELECT 1
			FROM user u
			WHERE u.id = d.read_by
				AND @member_deploys(d.project_id)) AS has_left,
		p.repository_by AS set_by,
		IF(d.`trigger` = 'rollback', d.retry_of, NULL) AS rollback_to,
		IF(@claim_head_only, IF(d.when_moved = 'follow', 2, 1), 0) AS head_only,
		d.`trigger` <> 'rollback' AND (d.approval IS NOT NULL
			OR COALESCE(JSON_LENGTH(e.branches) + JSON_LENGTH(e.tags), 0) > 0)
			AS on_branch,
		d.cancel_at IS NOT NULL AS cancel,
		EXISTS (
			SELECT 1
			FROM project q
			WHERE q.valid = 0 AND @projectdir_overlap) AS over_deleted,
		k.sealed AS deploy_key, k.fingerprint AS deploy_key_print, p.submodules,
		p.lfs, p.submodule_repositories, p.submodules_by, p.cache_generation,
		@notice_any(d.id) AS notices,
		TIMESTAMPDIFF(SECOND, d.git_since, NOW(3)) AS git_waited,
		COALESCE((
			SELECT MAX(c.start + c.length)
			FROM log_chunk c
			WHERE c.deployment_id = d.id), 0) AS log_size
	FROM deployment d
		JOIN project p ON p.id = d.project_id
		JOIN pipeline l ON l.id = d.pipeline_id
		LEFT JOIN environment e ON e.id = d.environment_id
		LEFT JOIN deploy_key k ON k.project_id = d.project_id
	WHERE d.id = :id AND d.owner = :owner AND d.status = 'running';
	SELECT position, name, script, directory, timeout_seconds, run_when, may_fail
	FROM deployment_step
	WHERE deployment_id = :id
	ORDER BY position;
END;
