-- The deployments of a commit: they share a commit status if they change the same
-- place.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_commit (commit_hash, id);
