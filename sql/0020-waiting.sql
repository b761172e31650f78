-- What runners say of deployments that they cannot start now.  A row counts for
-- a minute; it is written again while the reason lasts.

CREATE TABLE IF NOT EXISTS deployment_wait (
	deployment_id BIGINT NOT NULL PRIMARY KEY,
	reason VARCHAR(40) NOT NULL,
	detail VARCHAR(500) NOT NULL,
	runner VARCHAR(255) NOT NULL,
	seen_at DATETIME(3) NOT NULL,
	KEY deployment_wait_age (seen_at),
	CONSTRAINT deployment_wait_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
