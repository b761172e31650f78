-- SPDX-License-Identifier: ISC

-- signin_insert(struct signin)
INSERT INTO signin (state_hash, browser_hash, verifier)
VALUES (:state_hash, :browser_hash, :verifier);

-- signin_find(struct session_args) -> struct signin
SELECT verifier
FROM signin
WHERE state_hash = :state_hash
	AND browser_hash = :browser_hash
	AND created_at > NOW(3) - INTERVAL :seconds SECOND;

-- Only one of several concurrent requests deletes it.
-- signin_take(struct session_args)
DELETE FROM signin
WHERE state_hash = :state_hash
	AND browser_hash = :browser_hash
	AND created_at > NOW(3) - INTERVAL :seconds SECOND;

-- session_insert(struct session_args)
INSERT INTO session (user_id, hash, expires_at)
VALUES (:user_id, :hash, NOW(3) + INTERVAL :max SECOND);

-- session_insert_by_token(struct session_args)
INSERT INTO session (user_id, token_id, hash, expires_at)
SELECT t.user_id, t.id, :hash, LEAST(
		NOW(3) + INTERVAL :max SECOND,
		COALESCE(t.expires_at, NOW(3) + INTERVAL :max SECOND))
FROM api_token t
WHERE t.id = :token_id AND t.valid = 1;

-- session_end_of(struct session_args) -> struct session
SELECT expires_at FROM session WHERE id = :id;

-- session_delete(struct session_args)
DELETE FROM session WHERE hash = :hash;

-- session_delete_of(struct session_args)
DELETE FROM session WHERE user_id = :user_id;

-- The maximum lifetime is checked again: the setting may have been reduced.
-- principal_by_session(struct session_args) -> struct principal
SELECT u.id AS user_id, u.username, IF(t.role + 0 < u.role + 0, t.role, u.role) AS role,
	t.role AS cap, s.id AS session_id, s.last_used_at,
	COALESCE(s.token_id, 0) AS token_id, t.expires_at
FROM session s
	JOIN user u ON u.id = s.user_id
	LEFT JOIN api_token t ON t.id = s.token_id
WHERE s.hash = :hash
	AND u.valid = 1
	AND u.status = 'active'
	AND (s.token_id IS NULL OR (t.valid = 1 AND u.git_refused_at IS NULL))
	AND (t.expires_at IS NULL OR t.expires_at > NOW(3))
	AND s.expires_at > NOW(3)
	AND s.last_used_at > NOW(3) - INTERVAL :idle SECOND
	AND s.created_at > NOW(3) - INTERVAL :max SECOND;

-- session_touch(struct session_args)
UPDATE session
SET last_used_at = NOW(3)
WHERE id = :id AND last_used_at <= NOW(3) - INTERVAL :touch SECOND;

-- session_old_signins(struct session_args) -> struct session_found
SELECT COUNT(*) AS n
FROM (
	SELECT 1
	FROM signin
	WHERE created_at <= NOW(3) - INTERVAL :seconds SECOND
	LIMIT 1) t;

-- Anyone can start sign-ins, so more of them are deleted at once.
-- session_tidy_signins(struct session_args)
DELETE s
FROM (
		SELECT state_hash
		FROM signin FORCE INDEX (signin_age)
		WHERE created_at <= NOW(3) - INTERVAL :seconds SECOND
		ORDER BY created_at LIMIT 5000) o
	STRAIGHT_JOIN signin s FORCE INDEX (PRIMARY) ON s.state_hash = o.state_hash;

-- session_ended() -> struct session_found
SELECT COUNT(*) AS n FROM (SELECT 1 FROM session WHERE expires_at <= NOW(3) LIMIT 1) t;

-- session_tidy_ended()
DELETE FROM session WHERE expires_at <= NOW(3) ORDER BY expires_at LIMIT 500;

-- session_unused(struct session_args) -> struct session_found
SELECT COUNT(*) AS n
FROM (
	SELECT 1
	FROM session
	WHERE last_used_at <= NOW(3) - INTERVAL :idle SECOND
	LIMIT 1) t;

-- session_tidy_unused(struct session_args)
DELETE FROM session
WHERE last_used_at <= NOW(3) - INTERVAL :idle SECOND
ORDER BY last_used_at LIMIT 500;
