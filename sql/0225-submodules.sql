-- What the checkout of a project fetches besides its repository.
--
-- The statement can be run again after an interruption.

ALTER TABLE project
	ADD COLUMN IF NOT EXISTS submodules TINYINT(1) NULL AFTER badge,
	ADD COLUMN IF NOT EXISTS lfs TINYINT(1) NOT NULL DEFAULT 1
	    AFTER submodules;
