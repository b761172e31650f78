-- SPDX-License-Identifier: ISC

-- @change_max
4000

-- The version counts the transitions of the deployment and of its steps.
-- @select
SELECT d.id, d.project_id, d.status,
	COALESCE(d.approval + 0, 0) + (d.started_at IS NOT NULL) +
		(d.cancel_at IS NOT NULL) + (d.finished_at IS NOT NULL) +
		IF(d.started_at IS NULL, 0, (
			SELECT COUNT(s.started_at) + COUNT(s.finished_at)
			FROM deployment_step s
			WHERE s.deployment_id = d.id)) AS version,
	IF(d.status <> 'running', d.log_size, COALESCE((
			SELECT c.start + c.length
			FROM log_chunk c FORCE INDEX (PRIMARY)
			WHERE c.deployment_id = d.id
			ORDER BY c.start DESC LIMIT 1), 0)) AS log_size,
	d.status NOT IN ('pending', 'running') AS ended

-- change_newest() -> struct change
SELECT id
FROM deployment FORCE INDEX (PRIMARY)
WHERE id > (SELECT COALESCE(MAX(id), 0) - 500 FROM deployment)
ORDER BY id;

-- change_open() -> struct change
@select
FROM (
	SELECT id
	FROM deployment FORCE INDEX (deployment_status)
	WHERE status IN ('pending', 'running')
	ORDER BY id DESC LIMIT @change_max) w
	STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY) ON d.id = w.id
ORDER BY d.id;

-- change_read(struct change_args) -> struct change
@select
FROM (
	SELECT j.id
	FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) j
	UNION
	SELECT n.id
	FROM (
		SELECT id
		FROM deployment FORCE INDEX (PRIMARY)
		WHERE id > :newest
		ORDER BY id LIMIT 1000) n) w
	STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY) ON d.id = w.id
ORDER BY d.id;

-- change_watchers(struct change_args) -> struct change_watcher
SELECT j.kind, j.id, j.project_id,
	IF(u.role = 'guest', COALESCE((
			SELECT CONCAT(',',
				GROUP_CONCAT(g.project_id ORDER BY g.project_id), ',')
			FROM member g FORCE INDEX (PRIMARY)
			WHERE g.user_id = u.id), ','),
		NULL) AS projects
FROM JSON_TABLE(
	:ids, '$[*]' COLUMNS (
		kind VARCHAR(1) PATH '$[0]', id BIGINT PATH '$[1]',
		project_id BIGINT PATH '$[2]')) j
	LEFT JOIN session s FORCE INDEX (PRIMARY) ON j.kind = 's' AND s.id = j.id
	LEFT JOIN api_token t FORCE INDEX (PRIMARY)
		ON t.id = IF(j.kind = 't', j.id, s.token_id)
	LEFT JOIN user u FORCE INDEX (PRIMARY)
		ON u.id = COALESCE(IF(j.kind = 'u', j.id, NULL), s.user_id, t.user_id)
	LEFT JOIN member m FORCE INDEX (PRIMARY)
		ON m.user_id = u.id AND m.project_id = j.project_id
WHERE u.valid = 1
	AND u.status = 'active'
	AND (u.role <> 'guest' OR j.project_id = 0 OR m.role <> 'guest')
	AND (t.id IS NULL
		OR (t.role <> 'guest'
			AND t.valid = 1
			AND (t.expires_at IS NULL OR t.expires_at > NOW(3))
			AND (:remote_user OR u.git_refused_at IS NULL)))
	AND (j.kind <> 's'
		OR (s.expires_at > NOW(3)
			AND s.last_used_at > NOW(3) - INTERVAL :idle SECOND
			AND s.created_at > NOW(3) - INTERVAL :max SECOND));
