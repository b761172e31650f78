-- The lists of the deployments of a user, and of those that were started in one
-- way, in the whole service or in one project.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_user (created_by, id),
	ADD KEY IF NOT EXISTS deployment_trigger (`trigger`, id),
	ADD KEY IF NOT EXISTS deployment_project_trigger
	    (project_id, `trigger`, id);
