-- The commit of a branch according to the last push that was delivered, for
-- branches that a trigger names.  `caught_up` is 1 if no push was delivered, but a
-- runner found the commit and deployed it.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS push_head (
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	commit_hash VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	caught_up TINYINT NOT NULL,
	PRIMARY KEY (project_id, branch),
	CONSTRAINT push_head_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
