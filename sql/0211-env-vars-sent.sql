-- Which variables the request for a deployment set itself; NULL: an earlier version
-- did not record it.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS env_vars_sent LONGTEXT COLLATE utf8mb4_bin
	    AFTER env_vars;
