-- SPDX-License-Identifier: ISC
--
-- What the statements of several files share.  src/db/statements.awk describes
-- the form.

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

-- --- runners: the row `w` of runner, the row `e` of environment

-- Whether the runner is online.  It may miss one report.
-- @runner_online
(w.stopped = 0 AND w.seen_at > NOW(3) - INTERVAL 150 SECOND)

-- Whether the runner can start deployments, as far as is known.
-- @runner_well
(w.sick_since IS NULL)

-- Whether a runner with that name and those labels may run deployments to the
-- environment, which may be that of no row.
-- @runner_fits(name, labels)
(e.runner IS NULL OR e.runner = @name OR JSON_CONTAINS(@labels, JSON_QUOTE(e.runner)))

-- --- who sees and deploys a project

-- The projects of a member.
-- @member_projects
(SELECT m.project_id FROM member m WHERE m.user_id = :member)

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

-- --- deployments: the row `d` of deployment

-- Whether the directories of two projects, `p` and `q`, overlap.
-- @projectdir_overlap
q.id <> p.id
	AND 1 IN (
		LOCATE(CONCAT(p.project_dir, '/'), CONCAT(q.project_dir, '/')),
		LOCATE(CONCAT(q.project_dir, '/'), CONCAT(p.project_dir, '/')))
