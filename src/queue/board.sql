-- SPDX-License-Identifier: ISC

-- @running
COALESCE((SELECT d.id FROM deployment d WHERE d.running_project = p.id), 0)

-- The newest deployment of a place, found at the end of an index.
-- @newest(index, where)
COALESCE((
	SELECT d.id
	FROM deployment d FORCE INDEX (@index)
	WHERE @where
	ORDER BY d.id DESC LIMIT 1), 0)

-- @successful
@newest(deployment_queue, d.project_id = p.id AND d.status = 'success')

-- @select(hint)
SELECT p.id, p.name, reader.role, @running AS running_id, @successful AS live_id,
	@newest(deployment_project, d.project_id = p.id) AS latest_id,
	@lock_part(lock_row)
FROM project p @hint
	@member_join
	@lock_join(p.id, 0)

-- @ids
JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) j

-- board_count() -> struct page_count
SELECT COUNT(*) AS n FROM project WHERE valid = 1;

-- board_count_by(struct board_args) -> struct page_count
SELECT COUNT(*) AS n FROM project WHERE valid = 1 AND id IN @member_projects;

-- board_projects(struct board_args) -> struct board_project
@select(FORCE INDEX (project_list))
WHERE p.valid = 1
ORDER BY p.name, p.id LIMIT :limit OFFSET :offset;

-- board_projects_by(struct board_args) -> struct board_project
@select()
WHERE p.valid = 1 AND p.id IN @member_projects
ORDER BY p.name, p.id LIMIT :limit OFFSET :offset;

-- board_environments(struct board_args) -> struct board_environment
SELECT e.id, e.project_id, e.name, e.url, COALESCE(e.live_deployment, 0) AS live_id,
	@newest(deployment_environment, d.environment_id = e.id) AS latest_id,
	@lock_part(lock_row)
FROM @ids
	STRAIGHT_JOIN environment e ON e.project_id = j.id AND e.valid = 1
	@lock_join(e.project_id, e.id)
ORDER BY e.project_id, e.position, e.id;

-- board_waiting(struct board_args) -> struct board_waiting
SELECT d.project_id, COALESCE(d.environment_id, 0) AS environment_id, COUNT(*) AS n,
	COUNT(IF(d.approval = 'required', 1, NULL)) AS approvals
FROM @ids
	STRAIGHT_JOIN deployment d FORCE INDEX (deployment_queue)
		ON d.project_id = j.id AND d.status = 'pending'
GROUP BY d.project_id, d.environment_id;

-- board_deployments(struct board_args) -> struct board_deployment
SELECT d.id, d.status, d.reason, d.approval, d.branch, d.tag, d.commit_hash,
	d.environment_id, d.created_by, d.created_at, d.started_at, d.finished_at,
	d.warnings,
	LEFT(SUBSTRING_INDEX(d.commit_message, '\n', 1), 200) AS commit_message
FROM @ids
	STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY) ON d.id = j.id
ORDER BY d.id;
