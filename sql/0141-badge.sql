-- Whether anyone can read the result of a project's last deployment, as an image.
--
-- The statement can be run again after an interruption.

ALTER TABLE project
	ADD COLUMN IF NOT EXISTS badge TINYINT NOT NULL DEFAULT 0 AFTER triggers;
