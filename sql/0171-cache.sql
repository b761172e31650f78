-- Which cache the jobs of a project use: another number is another, empty one.
--
-- Each statement can be run again after an interruption.

ALTER TABLE project
	ADD COLUMN IF NOT EXISTS cache_generation INT NOT NULL DEFAULT 0;
