-- Steps that may fail: the deployment succeeds all the same, with warnings.
--
-- Each statement can be run again after an interruption.

ALTER TABLE step
	ADD COLUMN IF NOT EXISTS may_fail TINYINT(1) NOT NULL DEFAULT 0
	    AFTER run_when;

ALTER TABLE deployment_step
	ADD COLUMN IF NOT EXISTS may_fail TINYINT(1) NOT NULL DEFAULT 0
	    AFTER run_when;

-- How many there were; `detail` names them.
ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS warnings INT NOT NULL DEFAULT 0;
