-- SPDX-License-Identifier: ISC

-- An environment with its lock and the deployment that is live.
-- @select
SELECT c.id, c.project_id, c.name, c.url, c.position, c.branches, c.tags, c.variables,
	c.approval, c.approvers, c.runner, c.valid, c.created_at, c.updated_at,
	c.created_by, c.version,
	@lock_part(lock_row), l.id AS `live_row.deployment_id`,
	l.commit_hash AS `live_row.commit_hash`,
	l.commit_message AS `live_row.commit_message`,
	l.branch AS `live_row.branch`, l.tag AS `live_row.tag`,
	l.finished_at AS `live_row.finished_at`, l.created_by AS `live_row.created_by`
FROM environment c
	LEFT JOIN deployment l ON l.id = c.live_deployment
	@lock_join(c.project_id, c.id)

-- environment_by_id(struct environment) -> struct environment
@select WHERE c.id = :id AND c.valid = 1;

-- environment_lock(struct environment) -> struct environment
SELECT id FROM environment WHERE id = :id AND valid = 1 FOR UPDATE;

-- environment_page(struct child_args) -> struct environment
@select
WHERE c.valid = 1
ORDER BY c.project_id, c.position, c.id LIMIT :limit OFFSET :offset;

-- environment_page_by(struct child_args) -> struct environment
@select
WHERE c.valid = 1 AND c.project_id IN @member_projects
ORDER BY c.project_id, c.position, c.id LIMIT :limit OFFSET :offset;

-- environment_page_of(struct child_args) -> struct environment
@select
WHERE c.valid = 1 AND c.project_id = :project_id
ORDER BY c.position, c.id LIMIT :limit OFFSET :offset;

-- environment_count() -> struct page_count
SELECT COUNT(*) AS n FROM environment WHERE valid = 1;

-- environment_count_by(struct child_args) -> struct page_count
SELECT COUNT(*) AS n
FROM environment
WHERE valid = 1 AND project_id IN @member_projects;

-- environment_count_of(struct child_args) -> struct page_count
SELECT COUNT(*) AS n FROM environment WHERE valid = 1 AND project_id = :project_id;

-- environment_same_name(struct child_args) -> struct page_count
@child_same_name(environment);

-- environment_delete_one(struct child_args)
UPDATE environment SET @deleted WHERE id = :id AND valid = 1;

-- environment_delete_of(struct child_args)
UPDATE environment SET @deleted WHERE project_id = :project_id AND valid = 1;

-- environment_two(struct environment) -> struct environment
SELECT id FROM environment WHERE valid = 1 AND project_id = :project_id LIMIT 2;

-- environment_hold_project(struct environment) -> struct environment
SELECT id
FROM project
WHERE id = (SELECT project_id FROM environment WHERE id = :id AND valid = 1)
	AND valid = 1
FOR UPDATE;

-- environment_next(struct environment) -> struct page_count
SELECT COALESCE(MAX(position) + 1, 0) AS n
FROM environment
WHERE valid = 1 AND project_id = :project_id;

-- environment_insert(struct environment)
INSERT INTO environment (
	id, project_id, name, url, position, branches, tags, variables, approval,
	approvers, runner, created_by)
VALUES (
	DEFAULT, :project_id, :name, :url, :position, :branches, :tags, :variables,
	:approval, :approvers, :runner, :created_by);

-- environment_update(struct environment)
UPDATE environment FORCE INDEX (PRIMARY)
SET version = version + 1, name = :name, url = :url, position = :position,
	branches = :branches, tags = :tags, variables = :variables,
	approval = :approval, approvers = :approvers, runner = :runner,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- environment_secrets_find(struct environment_secrets) -> struct environment_secrets
SELECT id, secret_values FROM environment WHERE id = :id AND valid = 1;

-- environment_secrets_save(struct environment_secrets)
UPDATE environment SET secret_values = :secret_values WHERE id = :id AND valid = 1;
