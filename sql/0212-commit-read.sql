-- Whether branch, commit and message of a deployment were read from the repository.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS commit_read TINYINT(1) NOT NULL DEFAULT 0
	    AFTER commit_message;
