-- SPDX-License-Identifier: ISC

-- Reads backwards from the newest deployment.
-- @last(index, which)
(
	SELECT d.status
	FROM deployment d FORCE INDEX (@index)
	WHERE @which AND d.status IN ('success', 'failed', 'interrupted')
	ORDER BY d.id DESC LIMIT 1) AS status

-- @shown
p.id = :project_id AND p.valid = 1 AND p.badge = 1

-- badge_any(struct badge) -> struct badge
SELECT p.id AS project_id, @last(deployment_project, d.project_id = p.id)
FROM project p
WHERE @shown;

-- badge_environment(struct badge) -> struct badge
SELECT p.id AS project_id, e.name AS environment,
	@last(deployment_environment, d.environment_id = e.id)
FROM project p
	JOIN environment e ON e.project_id = p.id
WHERE @shown AND e.live_name = :environment;
