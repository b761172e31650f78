-- Finds the deployments that repeat one, which therefore stays.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_retry (retry_of);
