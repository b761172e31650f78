-- Which repositories of the Git server a deployment reads for submodules.
--
-- The statements can be run again after an interruption.

-- Their paths, a JSON array, and who set the list.
ALTER TABLE project
	ADD COLUMN IF NOT EXISTS submodule_repositories LONGTEXT
	    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '[]'
	    CHECK (JSON_VALID(submodule_repositories)) AFTER submodules,
	ADD COLUMN IF NOT EXISTS submodules_by BIGINT
	    AFTER submodule_repositories;

-- The numbers of those that the user who set the list could read.
CREATE TABLE IF NOT EXISTS git_submodule (
	project_id BIGINT NOT NULL,
	path VARCHAR(255) NOT NULL,
	server VARCHAR(255) NOT NULL,
	repo_id VARCHAR(64) NOT NULL,
	PRIMARY KEY (project_id, path),
	CONSTRAINT git_submodule_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
