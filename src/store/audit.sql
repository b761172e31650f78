-- SPDX-License-Identifier: ISC

-- @columns
id, at, user_id, username, via, token_name, address, action, object_type, object_id,
project_id, changes

-- @is_old
at < NOW(3) - INTERVAL :days DAY

-- audit_insert(struct audit)
INSERT INTO audit (
	user_id, username, via, token_name, address, action, object_type, object_id,
	project_id, changes)
VALUES (
	:user_id, :username, :via, (SELECT name FROM api_token WHERE id = :token_id),
	:address, :action, :object_type, :object_id, :project_id,
	COALESCE(:changes, '[]'));

-- audit_page(struct audit_query) -> struct audit
SELECT @columns FROM audit WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- audit_page_of(struct audit_query) -> struct audit
SELECT @columns
FROM audit FORCE INDEX (audit_project)
WHERE project_id = :project_id AND id < :before
ORDER BY id DESC LIMIT :limit;

-- audit_oldest(struct audit_query) -> struct oldest
SELECT id, @is_old AS expired FROM audit ORDER BY id LIMIT 1;

-- audit_tidy(struct audit_query)
DELETE a
FROM (
		SELECT id
		FROM audit FORCE INDEX (PRIMARY)
		WHERE id < :before + 5000 AND @is_old) o
	STRAIGHT_JOIN audit a FORCE INDEX (PRIMARY) ON a.id = o.id;
