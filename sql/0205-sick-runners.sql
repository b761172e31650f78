-- A runner that cannot start deployments says since when and why.  It reports
-- its recovery as well, so both columns are null while it is well.
--
-- Deployments that a runner claimed and could not start: how often, and which
-- runner was the last one.
--
-- Each statement can be run again after an interruption.

ALTER TABLE runner
	ADD COLUMN IF NOT EXISTS sick_since DATETIME(3),
	ADD COLUMN IF NOT EXISTS sick_reason VARCHAR(500);

CREATE TABLE IF NOT EXISTS deployment_return (
	deployment_id BIGINT NOT NULL PRIMARY KEY,
	n BIGINT NOT NULL,
	runner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	returned_at DATETIME(3) NOT NULL,
	KEY deployment_return_age (returned_at),
	CONSTRAINT deployment_return_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
