-- A deployment that waits for its Git server: since when the server has not
-- responded, and the time before which no runner claims the deployment.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS git_since DATETIME(3),
	ADD COLUMN IF NOT EXISTS not_before DATETIME(3);
