-- The API token that started a session: the session ends with it and has no
-- higher role.
--
-- The statement can be run again after an interruption.

ALTER TABLE session
	ADD COLUMN IF NOT EXISTS token_id BIGINT AFTER user_id;
