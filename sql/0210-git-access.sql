-- With whose access to the Git server a repository is read.
--
-- The statements can be run again after an interruption.

-- Who set the repository; NULL: an earlier version did not record it.
ALTER TABLE project
	ADD COLUMN IF NOT EXISTS repository_by BIGINT AFTER repository;

-- The user with whose access the number was confirmed.  The credentials of the
-- service read only what the user who set the repository could read.
ALTER TABLE git_repo
	ADD COLUMN IF NOT EXISTS confirmed_by BIGINT;

-- The user on whose behalf the repository is read: who deploys, who made the
-- schedule, or who made the secret of the push.
ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS read_by BIGINT AFTER created_by;
