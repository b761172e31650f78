-- The SSH key with which runners read the repository of a project.  The private
-- half is sealed for the runners; a new key replaces the row.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS deploy_key (
	project_id BIGINT NOT NULL PRIMARY KEY,
	public_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	fingerprint VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	sealed TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	created_by BIGINT,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	CONSTRAINT deploy_key_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
