-- Notifiers: receivers of messages about deployments and locks.  `events` is a
-- JSON array of strings.  `secret` signs the messages of a webhook; for a day
-- after a rotation, at `rotated_at`, `old_secret` does too.
--
-- A notice is a message to a notifier, written in the transaction that causes
-- the event: the outbox.  `next_at` is the time of the next attempt, null once
-- the message is delivered or given up.  `message_id` stays the same across
-- attempts.  The key notice_once prevents a second message about the same event
-- of a deployment.  Notifier 0 is the mail to a user that needs no notifier.  Of
-- a lock, `text` is the reason.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS notifier (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	project_id BIGINT,
	environment_id BIGINT,
	kind ENUM('mail', 'text', 'webhook') NOT NULL,
	target VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	events LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    CHECK (JSON_VALID(events)),
	active TINYINT NOT NULL,
	secret VARBINARY(500),
	old_secret VARBINARY(500),
	rotated_at DATETIME(3),
	last_error VARCHAR(500),
	last_delivered_at DATETIME(3),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	KEY notifier_list (valid, project_id, id),
	CONSTRAINT notifier_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

CREATE TABLE IF NOT EXISTS notice (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	message_id CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT (REPLACE(UUID(), '-', '')),
	notifier_id BIGINT NOT NULL,
	event VARCHAR(30) NOT NULL,
	project_id BIGINT,
	environment_id BIGINT,
	deployment_id BIGINT,
	user_id BIGINT,
	text VARCHAR(500),
	attempts BIGINT NOT NULL DEFAULT 0,
	next_at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),
	held_until DATETIME(3),
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	UNIQUE KEY notice_once (deployment_id, notifier_id, event),
	KEY notice_due (next_at, created_at),
	KEY notice_held (notifier_id, held_until)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
