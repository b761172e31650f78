-- SPDX-License-Identifier: ISC

-- @retention_kept
10

-- @before
< NOW(3) - INTERVAL :days DAY

-- @repeated
EXISTS (
	SELECT 1
	FROM deployment r FORCE INDEX (deployment_retry)
	WHERE r.retry_of = d.id)

-- The deployment that the live one of an environment repeats, the one that it
-- replaced, and the one that this repeats.
-- @content(d)
IF(@d.`trigger` = 'rollback', @d.retry_of, @d.id)

-- @live
EXISTS (
	SELECT 1
	FROM environment e
		JOIN deployment l FORCE INDEX (PRIMARY) ON l.id = e.live_deployment
		LEFT JOIN deployment o FORCE INDEX (PRIMARY) ON o.id = @content(l)
		LEFT JOIN deployment b FORCE INDEX (PRIMARY) ON b.id = o.replaced
	WHERE e.project_id = d.project_id
		AND e.valid = 1
		AND d.id IN (l.id, o.id, b.id, @content(b)))

-- @since(index, where)
d.id > COALESCE((
	SELECT s.id
	FROM deployment s FORCE INDEX (@index)
	WHERE @where AND s.status = 'success'
	ORDER BY s.id DESC LIMIT 1 OFFSET @retention_kept), 0)

-- The one at OFFSET is the newest that is deleted.
-- @recent
(d.status = 'success'
	AND IF(d.environment_id IS NULL,
		@since(deployment_queue, s.project_id = d.project_id),
		v.valid = 1 AND @since(deployment_environment_status,
			s.environment_id = d.environment_id)))

-- @scheduled
EXISTS (
	SELECT 1
	FROM schedule c
	WHERE c.valid = 1
		AND c.project_id = d.project_id
		AND d.id IN (c.last_deployment_id, c.running_deployment_id))

-- @head
EXISTS (
	SELECT 1
	FROM push_head h
	WHERE h.project_id = d.project_id
		AND h.branch = d.branch
		AND h.commit_hash = d.commit_hash)

-- @stays
(@repeated OR (p.valid = 1 AND (@live OR @recent OR @scheduled OR @head)))

-- @expired
COALESCE(d.finished_at @before, 0) AND NOT @stays

-- @joins
JOIN project p ON p.id = d.project_id
	LEFT JOIN environment v ON v.id = d.environment_id

-- retention_sweep(struct retention_args) -> struct candidate
SELECT d.id, d.created_at @before AS old, @expired AS expired
FROM (
	SELECT id
	FROM deployment FORCE INDEX (PRIMARY)
	WHERE id > :id
	ORDER BY id LIMIT :limit) t
	STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY) ON d.id = t.id
	@joins
ORDER BY d.id;

-- A new deployment of the project holds its row, too.
-- retention_hold(struct retention_args) -> struct retention_args
SELECT p.id
FROM project p
WHERE p.id = (SELECT d.project_id FROM deployment d WHERE d.id = :id)
FOR UPDATE;

-- retention_again(struct retention_args) -> struct candidate
SELECT d.id, d.created_at @before AS old, @expired AS expired
FROM deployment d
	@joins
WHERE d.id = :id;

-- retention_log_chunk(struct retention_args)
DELETE FROM log_chunk WHERE deployment_id = :id;

-- retention_deployment_step(struct retention_args)
DELETE FROM deployment_step WHERE deployment_id = :id;

-- retention_deployment_wait(struct retention_args)
DELETE FROM deployment_wait WHERE deployment_id = :id;

-- retention_deployment_return(struct retention_args)
DELETE FROM deployment_return WHERE deployment_id = :id;

-- retention_commit_status(struct retention_args)
DELETE FROM commit_status WHERE deployment_id = :id;

-- retention_push_caught(struct retention_args)
DELETE FROM push_caught WHERE deployment_id = :id;

-- retention_deployment(struct retention_args)
DELETE FROM deployment WHERE id = :id;
