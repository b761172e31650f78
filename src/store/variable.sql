-- SPDX-License-Identifier: ISC

-- @select
SELECT v.id, v.`key`, v.value, v.secret, v.description, v.created_at, v.updated_at,
	v.created_by, v.version, COALESCE((
		SELECT JSON_ARRAYAGG(p.project_id ORDER BY p.project_id)
		FROM variable_project p
		WHERE p.variable_id = v.id), '[]') AS projects
FROM variable v

-- @links
SELECT p.variable_id, p.project_id, p.`key`, v.value, v.secret, p.sealed
FROM variable_project p
	JOIN variable v ON v.id = p.variable_id

-- variable_by_id(struct variable) -> struct variable
@select WHERE v.valid = 1 AND v.id = :id;

-- variable_lock(struct variable) -> struct variable
SELECT id FROM variable WHERE id = :id AND valid = 1 FOR UPDATE;

-- variable_page(struct variable_query) -> struct variable
@select WHERE v.valid = 1 ORDER BY v.`key`, v.id LIMIT :limit OFFSET :offset;

-- variable_count() -> struct page_count
SELECT COUNT(*) AS n FROM variable WHERE valid = 1;

-- variable_insert(struct variable)
INSERT INTO variable (id, `key`, value, secret, description, created_by)
VALUES (DEFAULT, :key, :value, :secret, :description, :created_by);

-- variable_update(struct variable)
UPDATE variable FORCE INDEX (PRIMARY)
SET version = version + 1, `key` = :key, value = :value, secret = :secret,
	description = :description, updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- variable_delete(struct variable)
UPDATE variable SET @deleted WHERE id = :id AND valid = 1;

-- variable_links_of(struct variable_link) -> struct variable_link
@links WHERE p.variable_id = :variable_id;

-- variable_links_of_project(struct variable_link) -> struct variable_link
@links WHERE p.project_id = :project_id ORDER BY p.`key`;

-- variable_link_taken(struct variable_link) -> struct page_count
SELECT COUNT(*) AS n
FROM variable_project
WHERE project_id = :project_id AND `key` = :key AND variable_id <> :variable_id;

-- variable_unlink(struct variable_link)
DELETE FROM variable_project WHERE variable_id = :variable_id;

-- variable_unlink_project(struct variable_link)
DELETE FROM variable_project WHERE project_id = :project_id;

-- variable_link(struct variable_link)
INSERT INTO variable_project (variable_id, project_id, `key`, sealed)
VALUES (:variable_id, :project_id, :key, :sealed);

-- variable_overfull(struct room) -> struct variable_link
SELECT p.project_id
FROM variable_project m
	JOIN variable_project p ON p.project_id = m.project_id
	JOIN variable v ON v.id = p.variable_id
WHERE m.variable_id = :variable_id
GROUP BY p.project_id
HAVING SUM(LENGTH(p.`key`) + 2 + COALESCE(LENGTH(v.value), LENGTH(p.sealed))) > :most;
