-- The deployments that a runner made of a push whose event was not delivered. If the
-- event arrives after all, its triggers do not start them again.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS push_caught (
	deployment_id BIGINT NOT NULL PRIMARY KEY,
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	commit_hash VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	KEY push_caught_commit (project_id, commit_hash),
	CONSTRAINT push_caught_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
