-- What a deployment replaced in its environment when it succeeded, and why a
-- rollback was started.
--
-- The statement can be run again after an interruption.

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS replaced BIGINT,
	ADD COLUMN IF NOT EXISTS rollback_reason VARCHAR(500);
