-- The tag that a deployment deploys instead of a branch.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS tag VARCHAR(255) CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin AFTER branch;
