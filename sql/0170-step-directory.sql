-- The directory of the workspace that a step runs in; NULL = its root.
--
-- Each statement can be run again after an interruption.

ALTER TABLE step
	ADD COLUMN IF NOT EXISTS directory VARCHAR(255)
	    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin AFTER script;

ALTER TABLE deployment_step
	ADD COLUMN IF NOT EXISTS directory VARCHAR(255)
	    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin AFTER script;
