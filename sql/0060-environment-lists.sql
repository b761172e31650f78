-- Lists of an environment's deployments by status or by branch.  A list by both
-- reads the index that has fewer rows for it.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_environment_status
	    (environment_id, status, id),
	ADD KEY IF NOT EXISTS deployment_environment_branch
	    (environment_id, branch, id);
