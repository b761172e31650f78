-- Projects are found by the number of their repository.
--
-- The statement can be run again after an interruption.

ALTER TABLE git_repo
	ADD KEY IF NOT EXISTS git_repo_number (repo_id, server);
