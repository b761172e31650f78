-- Whether the account at the Git server behind a session is still there.
--
-- Each statement can be run again after an interruption.

-- `checked_at`: the server confirmed the account.  `check_after`: no runner
-- asks before, as one is asking, or the server was away.
ALTER TABLE session
	ADD COLUMN IF NOT EXISTS checked_at DATETIME(3) NOT NULL
	    DEFAULT CURRENT_TIMESTAMP(3),
	ADD COLUMN IF NOT EXISTS check_after DATETIME(3),
	ADD KEY IF NOT EXISTS session_check (checked_at);

-- How often this epoch was sent to be refreshed.  A refusal of the first time
-- is about the account or its grant; a later one may be due to an answer that
-- was lost.
ALTER TABLE git_token
	ADD COLUMN IF NOT EXISTS attempts BIGINT NOT NULL DEFAULT 0
	    AFTER epoch;
