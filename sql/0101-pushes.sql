-- What started the deployment of a push: `trigger_key` names the project's
-- trigger, and `when_moved` says what becomes of the deployment if its branch
-- has moved when it starts: it is canceled, follows the branch, or ignores that.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS trigger_key VARCHAR(64) CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin,
	ADD COLUMN IF NOT EXISTS when_moved ENUM('cancel', 'follow', 'ignore')
	    NOT NULL DEFAULT 'cancel';
