-- SPDX-License-Identifier: ISC

-- An attempt in progress to send an older state is allowed to finish, so that
-- the server gets the states in order.
-- @want(which)
INSERT INTO commit_status (deployment_id, wanted)
SELECT d.id, :state
FROM deployment d
	JOIN project p ON p.id = d.project_id
WHERE @which
	AND CHAR_LENGTH(d.commit_hash) IN (40, 64)
	AND LOCATE(:host, p.repository) > 0
ON DUPLICATE KEY UPDATE wanted = VALUES(wanted), dropped = 0, attempts = 0,
	created_at = NOW(3), next_at = IF(held_until > NOW(3), next_at, NOW(3))

-- One status has the commit's deployments to one place: the environment, or,
-- without one, the pipeline.
-- @same_status
x.commit_hash = d.commit_hash
	AND x.project_id = d.project_id
	AND x.environment_id <=> d.environment_id
	AND (d.environment_id IS NOT NULL OR x.pipeline_id = d.pipeline_id)

-- report_want(struct report_args)
@want(d.id = :id);

-- report_want_ended(struct report_args)
@want(d.project_id = :id AND d.status = :status AND d.reason = :reason);

-- report_candidates() -> struct number
SELECT deployment_id AS n
FROM commit_status
WHERE open = 1 AND next_at <= NOW(3)
ORDER BY next_at LIMIT 4;

-- Another deployment reports with the same status. While that report may still
-- be on its way, this one would not stay the last that the server gets.
-- report_held_before(struct report_args) -> struct number
SELECT COUNT(*) AS n
FROM commit_status y
	JOIN deployment x ON x.id = y.deployment_id
	JOIN deployment d ON d.id = :id
WHERE y.open = 1
	AND y.next_at > NOW(3)
	AND y.held_until > NOW(3)
	AND x.id <> d.id
	AND @same_status;

-- report_defer(struct report_args)
UPDATE commit_status
SET next_at = NOW(3) + INTERVAL 1 SECOND
WHERE deployment_id = :id AND open = 1 AND next_at <= NOW(3);

-- report_take(struct report_args)
UPDATE commit_status
SET attempts = attempts + 1, next_at = NOW(3) + INTERVAL :seconds SECOND,
	held_until = next_at
WHERE deployment_id = :id AND open = 1 AND next_at <= NOW(3);

-- Of several projects with one repository, the first one that has a place of a
-- name gives its name to the status; the others add their own.
-- report_load(struct report_args) -> struct report
SELECT s.deployment_id, s.wanted, s.told, s.attempts,
	TIMESTAMPDIFF(SECOND, s.created_at, NOW(3)) AS age, s.fault, s.held_until,
	d.project_id, p.name AS project_name, p.repository, e.name AS environment_name,
	l.name AS pipeline_name, EXISTS (
		SELECT 1
		FROM project q
		WHERE q.repository = p.repository
			AND q.id < p.id
			AND q.valid = 1
			AND (EXISTS (
					SELECT 1
					FROM environment f
					WHERE f.project_id = q.id
						AND f.valid = 1
						AND f.name = COALESCE(e.name, l.name))
				OR EXISTS (
					SELECT 1
					FROM pipeline m
					WHERE m.project_id = q.id
						AND m.valid = 1
						AND m.name = COALESCE(e.name, l.name))))
		AS is_shared,
	d.branch, d.tag, d.commit_hash, d.created_by
FROM commit_status s
	JOIN deployment d ON d.id = s.deployment_id
	JOIN project p ON p.id = d.project_id
	JOIN pipeline l ON l.id = d.pipeline_id
	LEFT JOIN environment e ON e.id = d.environment_id
WHERE s.deployment_id = :id;

-- What the status shows: the newest of its deployments that was not skipped.
-- So one that never began leaves the commit as it was.
-- report_shown(struct report_args) -> struct report_shown
SELECT x.id AS deployment_id, y.wanted, x.reason,
	(y.wanted = 'canceled'
		AND NOT EXISTS (
			SELECT 1
			FROM deployment_step t
			WHERE t.deployment_id = x.id
				AND t.started_at IS NOT NULL)) AS is_skipped,
	(y.wanted = 'pending'
		AND COALESCE(x.approval, '') = 'required') AS needs_approval,
	x.warnings > 0 AS is_warned
FROM deployment d
	JOIN deployment x ON @same_status
	JOIN commit_status y ON y.deployment_id = x.id
WHERE d.id = :id
ORDER BY is_skipped, x.id DESC LIMIT 1;

-- report_again(struct report_args)
UPDATE commit_status
SET told = NULL, dropped = 0, attempts = 0, created_at = NOW(3),
	next_at = IF(held_until > NOW(3), next_at, NOW(3))
WHERE deployment_id = :id;

-- If a holder was silent for so long that another took over, both may have
-- sent a status, in unknown order. The last one sent is then unknown, so the
-- status is sent once more.
-- report_told(struct report_args)
UPDATE commit_status
SET told = IF(held_until <=> :held_until, :state, NULL),
	next_at = IF(held_until <=> :held_until, NOW(3), next_at), fault = NULL,
	held_until = NULL
WHERE deployment_id = :id;

-- report_later(struct report_args)
UPDATE commit_status
SET fault = :fault, held_until = NULL,
	next_at = NOW(3) + INTERVAL IF(wanted = :state, :seconds, 0) SECOND
WHERE deployment_id = :id AND held_until <=> :held_until;

-- report_drop(struct report_args)
UPDATE commit_status
SET fault = :fault, held_until = NULL, next_at = NOW(3),
	dropped = IF(wanted = :state, 1, 0)
WHERE deployment_id = :id AND held_until <=> :held_until;

-- report_due() -> struct number
SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, NOW(3), next_at) DIV 1000) AS n
FROM commit_status
WHERE open = 1
ORDER BY next_at LIMIT 1;
