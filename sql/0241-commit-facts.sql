-- When a runner next reads the commit of a deployment that waits for approval,
-- if it was not read from the repository when it was created; NULL: at once.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS commit_look_at DATETIME(3);
