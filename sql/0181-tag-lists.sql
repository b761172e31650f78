-- The lists of the deployments of a tag, in the whole service or in one project.
-- Many projects may have a tag of the same name, and one that moves has many
-- deployments.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_tag (tag, id),
	ADD KEY IF NOT EXISTS deployment_project_tag (project_id, tag, id);
