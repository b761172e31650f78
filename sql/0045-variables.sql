-- Variables that an administrator passes to several projects.  The value of a
-- secret one is encrypted separately for each project: `sealed` is an object of
-- that one value, by its name.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS variable (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	`key` VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	value MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	secret TINYINT NOT NULL DEFAULT 0,
	description VARCHAR(500),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	KEY variable_list (valid, `key`, id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

CREATE TABLE IF NOT EXISTS variable_project (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	variable_id BIGINT NOT NULL,
	project_id BIGINT NOT NULL,
	`key` VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	sealed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    CHECK (JSON_VALID(sealed)),
	UNIQUE KEY variable_project_key (project_id, `key`),
	UNIQUE KEY variable_project_of (variable_id, project_id),
	CONSTRAINT variable_project_from FOREIGN KEY (variable_id)
	    REFERENCES variable (id),
	CONSTRAINT variable_project_to FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
