-- Devices that wait for a user to sign them in (RFC 8628).  The token is created
-- when the device fetches it, which deletes the row, so it is stored nowhere.
--
-- The statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS device (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	user_code CHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	name VARCHAR(100) NOT NULL,
	address VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	status ENUM('pending', 'approved', 'denied') NOT NULL DEFAULT 'pending',
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	expires_at DATETIME(3) NOT NULL,
	poll_seconds INT NOT NULL,
	polled_at DATETIME(3),
	user_id BIGINT,
	token_id BIGINT,
	role ENUM('viewer', 'deployer', 'maintainer', 'admin'),
	token_expires_at DATETIME(3),
	UNIQUE KEY device_hash (hash),
	UNIQUE KEY device_user_code (user_code),
	KEY device_address (address, expires_at),
	KEY device_end (expires_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;
