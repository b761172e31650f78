-- Two indexes of deployment that others make superfluous.  deployment_queue
-- (status, project_id, id) finds the rows of deployment_project_status, whose
-- columns it has in another order.  Few deployments run at a time, so the ones
-- of an owner are found among them by deployment_status.
--
-- Each statement can be run again after an interruption.

ALTER TABLE deployment
	DROP KEY IF EXISTS deployment_project_status,
	DROP KEY IF EXISTS deployment_lease;
