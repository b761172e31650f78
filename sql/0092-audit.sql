-- The audit log: who changed what, written in the transaction of the change.
-- The names of users and tokens are copied, because both can be deleted.
--
-- Retention deletes from the lowest id, so `at` needs no index.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS audit (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	user_id BIGINT,
	username VARCHAR(255),
	via ENUM('session', 'token', 'hook', 'cli', 'runner') NOT NULL,
	token_name VARCHAR(100),
	address VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	action VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	object_type VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	object_id BIGINT,
	project_id BIGINT,
	changes LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    CHECK (JSON_VALID(changes)),
	KEY audit_project (project_id, id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
