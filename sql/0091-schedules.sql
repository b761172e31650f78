-- Schedules: deployments that start at certain times.  `variables` is an object
-- of strings.  `failures` counts the failed deployments in a row before the
-- last one.  `next_at` is due or in the future while the schedule is active;
-- the runner that sets it to the time after fires the schedule.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS schedule (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	project_id BIGINT NOT NULL,
	pipeline_id BIGINT NOT NULL,
	environment_id BIGINT,
	name VARCHAR(100) NOT NULL,
	cron VARCHAR(255) NOT NULL,
	timezone VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	branch VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	variables LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    CHECK (JSON_VALID(variables)),
	active TINYINT NOT NULL,
	next_at DATETIME(3),
	last_deployment_id BIGINT,
	failures BIGINT NOT NULL DEFAULT 0,
	last_error VARCHAR(500),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	live_name VARCHAR(100) AS (IF(valid = 1, name, NULL)) STORED,
	UNIQUE KEY schedule_name (project_id, live_name),
	KEY schedule_list (valid, project_id, name, id),
	KEY schedule_due (valid, active, next_at),
	CONSTRAINT schedule_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
