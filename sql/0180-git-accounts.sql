-- Whether the Git server still accepts the accounts of users.
--
-- The statement can be run again after an interruption.

-- `git_checked_at`: the server confirmed the account.  `git_check_after`: no
-- runner asks before, as one is asking, or the server was away.
-- `git_refused_at`: the server does not accept the account; a sign-in clears
-- it.  They replace two columns of `session`, which only earlier programs use.
ALTER TABLE user
	ADD COLUMN IF NOT EXISTS git_checked_at DATETIME(3) NOT NULL
	    DEFAULT CURRENT_TIMESTAMP(3),
	ADD COLUMN IF NOT EXISTS git_check_after DATETIME(3),
	ADD COLUMN IF NOT EXISTS git_refused_at DATETIME(3);
