-- Locks that keep new deployments from starting: of a project, of an
-- environment, or of the whole service.  `place` is the key, so each has at
-- most one lock.  A lock counts until it expires.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS deploy_lock (
	place VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    PRIMARY KEY,
	project_id BIGINT,
	environment_id BIGINT,
	reason VARCHAR(500) NOT NULL,
	locked_by BIGINT NOT NULL,
	since DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	`until` DATETIME(3)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
