-- SPDX-License-Identifier: ISC

-- @role_of_owner(table)
SELECT m.role
FROM @table o
	JOIN member m ON m.project_id = o.project_id AND m.user_id = :user_id
WHERE o.id = :id

-- member_role_project(struct role_query) -> struct role_query
SELECT m.role FROM member m WHERE m.user_id = :user_id AND m.project_id = :id;

-- member_role_pipeline(struct role_query) -> struct role_query
@role_of_owner(pipeline);

-- member_role_step(struct role_query) -> struct role_query
SELECT m.role
FROM step s
	JOIN pipeline o ON o.id = s.pipeline_id
	JOIN member m ON m.project_id = o.project_id AND m.user_id = :user_id
WHERE s.id = :id;

-- member_role_environment(struct role_query) -> struct role_query
@role_of_owner(environment);

-- member_role_schedule(struct role_query) -> struct role_query
@role_of_owner(schedule);

-- member_role_notifier(struct role_query) -> struct role_query
@role_of_owner(notifier);

-- member_role_deployment(struct role_query) -> struct role_query
@role_of_owner(deployment);

-- member_role_user(struct role_query) -> struct role_query
SELECT 'viewer' AS role
FROM user s
	JOIN user u
WHERE s.id = :user_id
	AND u.id = :id
	AND (u.id = s.id
		OR EXISTS (
			SELECT 1
			FROM member m
				JOIN member o ON o.project_id = m.project_id
			WHERE m.user_id = s.id AND o.user_id = u.id));

-- @columns
m.user_id, u.username, m.role, m.created_at, m.version

-- @members
member m
	JOIN user u ON u.id = m.user_id AND u.valid = 1

-- member_projects(struct member) -> struct member
SELECT project_id FROM member WHERE user_id = :user_id;

-- member_highest(struct member) -> struct member
SELECT role FROM member WHERE user_id = :user_id ORDER BY role DESC LIMIT 1;

-- member_page(struct member_query) -> struct member
SELECT @columns
FROM @members
WHERE m.project_id = :project_id
ORDER BY u.username, u.id LIMIT :limit OFFSET :offset;

-- member_count(struct member_query) -> struct page_count
SELECT COUNT(*) AS n FROM @members WHERE m.project_id = :project_id;

-- member_find(struct member) -> struct member
SELECT @columns FROM @members WHERE m.project_id = :project_id AND m.user_id = :user_id;

-- member_put(struct member)
INSERT INTO member (project_id, user_id, role)
VALUES (:project_id, :user_id, :role)
ON DUPLICATE KEY UPDATE role = VALUES(role), version = version + 1;

-- member_remove(struct member)
DELETE FROM member WHERE project_id = :project_id AND user_id = :user_id;

-- member_remove_user(struct member)
DELETE FROM member WHERE user_id = :user_id;

-- member_remove_of(struct member_query)
DELETE FROM member WHERE project_id = :project_id;
