-- Runners: what each reported about itself, at most once a minute.  `labels` is
-- a JSON array of strings.  A runner that was stopped is offline at once, one
-- that was lost after some missed reports.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS runner (
	name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    PRIMARY KEY,
	labels LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    CHECK (JSON_VALID(labels)),
	version VARCHAR(50) NOT NULL,
	slots BIGINT NOT NULL,
	started_at DATETIME(3) NOT NULL,
	seen_at DATETIME(3) NOT NULL,
	stopped TINYINT NOT NULL DEFAULT 0
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
