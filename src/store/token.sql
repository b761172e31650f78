-- SPDX-License-Identifier: ISC

-- @columns
id, name, role, created_at, last_used_at, expires_at

-- token_page(struct token_query) -> struct api_token
SELECT @columns
FROM api_token
WHERE user_id = :user_id AND valid = 1
ORDER BY id LIMIT :limit OFFSET :offset;

-- token_count(struct token_query) -> struct page_count
SELECT COUNT(*) AS n FROM api_token WHERE user_id = :user_id AND valid = 1;

-- token_insert(struct api_token)
INSERT INTO api_token (id, user_id, name, role, hash, expires_at)
VALUES (DEFAULT, :user_id, :name, :role, :hash, :expires_at);

-- token_delete(struct api_token)
UPDATE api_token SET valid = 0 WHERE user_id = :user_id AND id = :id AND valid = 1;

-- token_by_id(struct api_token) -> struct api_token
SELECT @columns FROM api_token WHERE user_id = :user_id AND id = :id AND valid = 1;

-- principal_by_token(struct api_token) -> struct principal
SELECT u.id AS user_id, u.username, IF(t.role + 0 < u.role + 0, t.role, u.role) AS role,
	t.role AS cap, t.id AS token_id, t.last_used_at, t.expires_at,
	u.git_refused_at IS NOT NULL AS is_refused
FROM api_token t
	JOIN user u ON u.id = t.user_id
WHERE t.hash = :hash
	AND t.valid = 1
	AND u.valid = 1
	AND u.status = 'active'
	AND (t.expires_at IS NULL OR t.expires_at > CURRENT_TIMESTAMP(3));

-- token_touch(struct principal)
UPDATE api_token
SET last_used_at = CURRENT_TIMESTAMP(3)
WHERE id = :token_id
	AND (last_used_at IS NULL
		OR last_used_at < CURRENT_TIMESTAMP(3) - INTERVAL 5 MINUTE);
