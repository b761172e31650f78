-- The deployment of a schedule that still ran when the schedule fired again, so
-- that `failures` does not count it yet.
--
-- The statement can be run again after an interruption.

ALTER TABLE schedule
	ADD COLUMN IF NOT EXISTS running_deployment_id BIGINT
	    AFTER last_deployment_id;
