-- Whether a pipeline checks out the repository, and what stays from earlier
-- runs.  A deployment has the pipeline's value of the time when it was created.
--
-- Each statement can be run again after an interruption.

ALTER TABLE pipeline
	ADD COLUMN IF NOT EXISTS checkout ENUM('fresh', 'keep', 'none')
	    NOT NULL DEFAULT 'fresh' AFTER timeout_seconds;

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS checkout ENUM('fresh', 'keep', 'none')
	    NOT NULL DEFAULT 'fresh' AFTER timeout_seconds;
