-- SPDX-License-Identifier: ISC

-- @columns
id, username, name, email, avatar_url, role, status, created_at, last_login_at, version

-- @found
valid = 1
	AND (username LIKE :like ESCAPE '!'
		OR name LIKE :like ESCAPE '!'
		OR email LIKE :like ESCAPE '!')
	AND status IN (:status[0], :status[1])
	AND role IN (:role[0], :role[1], :role[2], :role[3], :role[4])

-- The members of a member's projects.
-- @companions
(SELECT DISTINCT o.user_id FROM member o WHERE o.project_id IN @member_projects) w
	STRAIGHT_JOIN user ON id = w.user_id

-- user_page(struct user_query) -> struct user
SELECT @columns FROM user WHERE @found ORDER BY username, id LIMIT :limit OFFSET :offset;

-- user_count(struct user_query) -> struct page_count
SELECT COUNT(*) AS n FROM user WHERE @found;

-- user_page_by(struct user_query) -> struct user
SELECT @columns
FROM @companions
WHERE @found
ORDER BY username, id LIMIT :limit OFFSET :offset;

-- user_count_by(struct user_query) -> struct page_count
SELECT COUNT(*) AS n FROM @companions WHERE @found;

-- user_by_id(struct user) -> struct user
SELECT @columns FROM user WHERE id = :id AND valid = 1;

-- user_name_of(struct user) -> struct user
SELECT username FROM user WHERE id = :id;

-- user_lock(struct user) -> struct user
SELECT @columns FROM user WHERE id = :id AND valid = 1 FOR UPDATE;

-- user_by_name(struct user) -> struct user
SELECT @columns FROM user WHERE live_username = :username;

-- user_by_account(struct user_account) -> struct user
SELECT @columns
FROM user
WHERE forge = :forge AND forge_id = :forge_id AND valid = 1
FOR UPDATE;

-- user_insert(struct user)
INSERT INTO user (id, username, name, email, avatar_url, role, status)
VALUES (DEFAULT, :username, :name, :email, :avatar_url, :role, :status);

-- user_update(struct user)
UPDATE user FORCE INDEX (PRIMARY)
SET version = version + 1, username = :username, name = :name, email = :email,
	avatar_url = :avatar_url, role = :role, status = :status,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- user_delete(struct user)
UPDATE user SET @deleted WHERE id = :id AND valid = 1;

-- user_delete_tokens(struct user)
UPDATE api_token SET valid = 0 WHERE user_id = :id;

-- Locked, so that two admins cannot demote each other concurrently.
-- user_admins() -> struct user
SELECT @columns
FROM user
WHERE valid = 1 AND role = 'admin' AND status = 'active'
FOR UPDATE;
