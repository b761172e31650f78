-- SPDX-License-Identifier: ISC

-- Nothing is done in the name of a disabled user.
-- gittoken_by_user(struct token_args) -> struct git_token
SELECT t.user_id, t.server, t.access, t.refresh, t.expires_at, t.epoch
FROM git_token t
	JOIN user u ON u.id = t.user_id
WHERE t.user_id = :user_id AND u.valid = 1 AND u.status = 'active';

-- gittoken_put(struct git_token)
INSERT INTO git_token (user_id, server, access, refresh, expires_at)
VALUES (:user_id, :server, :access, :refresh, :expires_at)
ON DUPLICATE KEY UPDATE server = VALUES(server), access = VALUES(access),
	refresh = VALUES(refresh), expires_at = VALUES(expires_at), epoch = epoch + 1,
	attempts = 0, refresh_by = NULL, refresh_until = NULL, updated_at = NOW(3);

-- gittoken_delete(struct token_args)
DELETE FROM git_token WHERE user_id = :user_id;

-- gittoken_drop(struct token_args)
DELETE FROM git_token WHERE user_id = :user_id AND epoch = :epoch;

-- Locks the user first, as a sign-in does.
-- gittoken_tries(struct token_args) -> struct token_tries
SELECT STRAIGHT_JOIN t.attempts
FROM user u
	JOIN git_token t ON t.user_id = u.id
WHERE u.id = :user_id AND t.epoch = :epoch
FOR UPDATE;

-- gittoken_refresh_begin(struct token_args)
UPDATE git_token
SET refresh_by = :holder, refresh_until = NOW(3) + INTERVAL :seconds SECOND,
	attempts = attempts + 1
WHERE user_id = :user_id
	AND epoch = :epoch
	AND (refresh_until IS NULL OR refresh_until <= NOW(3) OR refresh_by = :again);

-- gittoken_state(struct token_args) -> struct token_state
SELECT epoch, refresh_by FROM git_token WHERE user_id = :user_id;

-- Stores a refreshed token even if another process holds the right now: only
-- the newest token works.
-- gittoken_refresh_end(struct token_args)
UPDATE git_token
SET server = :server, access = :access, refresh = :refresh, expires_at = :expires_at,
	refresh_by = :holder, refresh_until = NULL, epoch = epoch + 1, attempts = 0,
	updated_at = NOW(3)
WHERE user_id = :user_id AND epoch = :epoch;

-- gittoken_refresh_cancel(struct token_args)
UPDATE git_token
SET refresh_until = NULL
WHERE user_id = :user_id AND refresh_by = :holder;
