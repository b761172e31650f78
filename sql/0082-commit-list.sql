-- The list of the deployments of a commit.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_commit (commit_hash, id);
