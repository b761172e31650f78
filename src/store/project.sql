-- SPDX-License-Identifier: ISC

-- @project_refs
100

-- @columns(p)
@p.id, @p.name, @p.description, @p.repository, @p.project_dir, @p.default_branch,
@p.env_presets, @p.extra_env, @p.triggers, @p.badge, @p.submodules,
@p.submodule_repositories, @p.lfs, @p.valid, @p.created_at, @p.updated_at,
@p.created_by, @p.version

-- A project with its lock and the role of the reader.
-- @select_lock(hint)
SELECT @columns(p), reader.role, @lock_part(lock_row)
FROM project p @hint
	@member_join
	@lock_join(p.id, 0)

-- By name, in the order of the index: with some statistics the optimizer would
-- rather sort all projects.
-- @select_all
@select_lock(FORCE INDEX (project_list))

-- The projects of a member, who has few: one statement serves both lists.
-- @by
p.valid = 1
	AND p.id IN @member_projects
	AND (p.name LIKE :like ESCAPE '!' OR p.name = :name)

-- The unique key of live names has one column, so that MariaDB reads it from
-- the last name onwards. It may read all of project_list, which begins with
-- `valid`, for each piece.
-- @refs(also)
SELECT id, live_name AS name
FROM project
WHERE live_name >= :name AND (live_name > :name OR id > :id) @also
ORDER BY live_name LIMIT @project_refs

-- project_by_id(struct project) -> struct project
SELECT @columns(project) FROM project WHERE id = :id AND valid = 1;

-- A project with its lock and the status of its workspace.
-- project_with_workspace(struct project) -> struct project
SELECT @columns(p), @lock_part(lock_row),
	w.project_id AS `workspace_row.project_id`,
	w.status AS `workspace_row.status`,
	w.branch AS `workspace_row.branch`,
	w.commit_hash AS `workspace_row.commit_hash`,
	w.commit_message AS `workspace_row.commit_message`,
	w.dirty AS `workspace_row.dirty`,
	w.size_bytes AS `workspace_row.size_bytes`,
	w.runner AS `workspace_row.runner`,
	w.checked_at AS `workspace_row.checked_at`
FROM project p
	LEFT JOIN workspace w ON w.project_id = p.id
	@lock_join(p.id, 0)
WHERE p.id = :id AND p.valid = 1;

-- project_lock(struct project) -> struct project
SELECT @columns(project) FROM project WHERE id = :id AND valid = 1 FOR UPDATE;

-- project_share(struct project) -> struct project
SELECT id FROM project WHERE id = :id AND valid = 1 LOCK IN SHARE MODE;

-- project_page(struct project_query) -> struct project
@select_all WHERE p.valid = 1 ORDER BY p.name, p.id LIMIT :limit OFFSET :offset;

-- project_page_named(struct project_query) -> struct project
@select_all
WHERE p.valid = 1 AND (p.name LIKE :like ESCAPE '!' OR p.name = :name)
ORDER BY p.name, p.id LIMIT :limit OFFSET :offset;

-- project_page_by(struct project_query) -> struct project
@select_lock() WHERE @by ORDER BY p.name, p.id LIMIT :limit OFFSET :offset;

-- project_count_by(struct project_query) -> struct page_count
SELECT COUNT(*) AS n FROM project p WHERE @by;

-- project_count() -> struct page_count
SELECT COUNT(*) AS n FROM project WHERE valid = 1;

-- project_count_named(struct project_query) -> struct page_count
SELECT COUNT(*) AS n
FROM project
WHERE valid = 1 AND (name LIKE :like ESCAPE '!' OR name = :name);

-- project_of_repo(struct project_of_repo) -> struct project
SELECT @columns(p), reader.role, @lock_part(lock_row)
FROM git_repo g
	JOIN project p ON p.id = g.project_id AND p.repository = g.repository
	@member_join
	@lock_join(p.id, 0)
WHERE g.server = :server
	AND g.repo_id = :repo_id
	AND p.valid = 1
	AND (:member = 0 OR p.id IN @member_projects)
ORDER BY p.name, p.id LIMIT 100;

-- project_refs(struct project_ref) -> struct project_ref
@refs();

-- project_refs_by(struct project_ref) -> struct project_ref
@refs(AND id IN @member_projects);

-- Requests that create or rename a project lock this row first. Otherwise two
-- of them could find the same name or directory unused.
-- project_queue_up()
INSERT INTO commit_token (token)
VALUES ('project names')
ON DUPLICATE KEY UPDATE created_at = CURRENT_TIMESTAMP(3);

-- '0' is the byte after '/'.
-- project_clashes(struct project) -> struct clash
SELECT name, project_dir
FROM project
WHERE valid = 1
	AND id <> :id
	AND (live_dir = :project_dir
		OR (live_dir > CONCAT(:project_dir, '/')
			AND live_dir < CONCAT(:project_dir, '0'))
		OR LEFT(:project_dir, CHAR_LENGTH(live_dir) + 1) = CONCAT(live_dir, '/'))
LIMIT 10;

-- project_same_name(struct project) -> struct page_count
SELECT COUNT(*) AS n FROM project WHERE valid = 1 AND id <> :id AND live_name = :name;

-- project_insert(struct project)
INSERT INTO project (
	id, name, description, repository, project_dir, default_branch, env_presets,
	extra_env, triggers, badge, submodules, submodule_repositories, lfs, created_by)
VALUES (
	DEFAULT, :name, :description, :repository, :project_dir, :default_branch,
	:env_presets, :extra_env, :triggers, :badge, :submodules,
	:submodule_repositories, :lfs, :created_by);

-- project_update(struct project)
UPDATE project FORCE INDEX (PRIMARY)
SET version = version + 1, name = :name, description = :description,
	repository = :repository, default_branch = :default_branch,
	env_presets = :env_presets, extra_env = :extra_env, triggers = :triggers,
	badge = :badge, submodules = :submodules,
	submodule_repositories = :submodule_repositories, lfs = :lfs,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- project_secrets_find(struct project_secrets) -> struct project_secrets
SELECT id, secret_defaults, trigger_secrets FROM project WHERE id = :id AND valid = 1;

-- project_secrets_save(struct project_secrets)
UPDATE project
SET secret_defaults = :secret_defaults, trigger_secrets = :trigger_secrets
WHERE id = :id AND valid = 1;

-- project_delete(struct project)
UPDATE project SET @deleted WHERE id = :id AND valid = 1;
