-- slipway's tables.  Times are UTC.  A record that was deleted keeps its row
-- with valid = 0; its unique name is free again, because the generated columns
-- that carry the uniqueness are then NULL.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS user (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	username VARCHAR(100) NOT NULL,
	name VARCHAR(200),
	email VARCHAR(254),
	avatar_url VARCHAR(1000),
	role ENUM('viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	status ENUM('active', 'inactive') NOT NULL DEFAULT 'active',
	forge VARCHAR(255),
	forge_id VARCHAR(64),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	last_login_at DATETIME(3),
	live_username VARCHAR(100) AS (IF(valid = 1, username, NULL)) STORED,
	live_forge_id VARCHAR(320)
	    AS (IF(valid = 1, CONCAT(forge, ' ', forge_id), NULL)) STORED,
	UNIQUE KEY user_name (live_username),
	UNIQUE KEY user_forge (live_forge_id),
	KEY user_list (valid, username, id),
	KEY user_role (role, status, valid)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

CREATE TABLE IF NOT EXISTS api_token (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	user_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	role ENUM('viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	valid TINYINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	last_used_at DATETIME(3),
	expires_at DATETIME(3),
	UNIQUE KEY api_token_hash (hash),
	KEY api_token_user (user_id, valid, id),
	CONSTRAINT api_token_of FOREIGN KEY (user_id) REFERENCES user (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

CREATE TABLE IF NOT EXISTS project (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name VARCHAR(100) NOT NULL,
	description VARCHAR(500),
	repository VARCHAR(1000) NOT NULL,
	project_dir VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	default_branch VARCHAR(255),
	env_presets LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(env_presets)),
	strict_env TINYINT NOT NULL DEFAULT 0,
	triggers LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(triggers)),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	live_name VARCHAR(100) AS (IF(valid = 1, name, NULL)) STORED,
	live_dir VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    AS (IF(valid = 1, project_dir, NULL)) STORED,
	UNIQUE KEY project_name (live_name),
	UNIQUE KEY project_dir (live_dir),
	KEY project_list (valid, name, id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- What the runner last saw in the project's directory.
CREATE TABLE IF NOT EXISTS workspace (
	project_id BIGINT NOT NULL PRIMARY KEY,
	status ENUM('not_created', 'empty', 'no_git', 'ready', 'error')
	    NOT NULL,
	branch VARCHAR(255),
	commit_hash VARCHAR(64),
	commit_message TEXT,
	dirty TINYINT NOT NULL DEFAULT 0,
	size_bytes BIGINT,
	runner VARCHAR(255),
	checked_at DATETIME(3),
	CONSTRAINT workspace_of FOREIGN KEY (project_id) REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

CREATE TABLE IF NOT EXISTS pipeline (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	project_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	description VARCHAR(500),
	timeout_seconds BIGINT,
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	live_name VARCHAR(100) AS (IF(valid = 1, name, NULL)) STORED,
	UNIQUE KEY pipeline_name (project_id, live_name),
	KEY pipeline_list (valid, name, id),
	KEY pipeline_project (project_id, valid, name, id),
	CONSTRAINT pipeline_of FOREIGN KEY (project_id) REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- Positions of live steps are 0, 1, 2 … without gaps; whoever changes them
-- holds the pipeline's row.
CREATE TABLE IF NOT EXISTS step (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	pipeline_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	script MEDIUMTEXT NOT NULL,
	position BIGINT NOT NULL,
	timeout_seconds BIGINT,
	run_when ENUM('success', 'failure', 'always') NOT NULL
	    DEFAULT 'success',
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	KEY step_list (pipeline_id, valid, position, id),
	KEY step_all (valid, pipeline_id, position, id),
	CONSTRAINT step_of FOREIGN KEY (pipeline_id) REFERENCES pipeline (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- A deployment is its own task on the queue.  running_project is the rule
-- that a project runs one deployment at a time: the database itself holds it.
CREATE TABLE IF NOT EXISTS deployment (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	project_id BIGINT NOT NULL,
	pipeline_id BIGINT NOT NULL,
	branch VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	commit_hash VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	commit_message TEXT,
	env_vars LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '{}' CHECK (JSON_VALID(env_vars)),
	secret_vars LONGBLOB,
	status ENUM('pending', 'running', 'success', 'failed', 'canceled',
	    'interrupted') NOT NULL DEFAULT 'pending',
	reason VARCHAR(40),
	detail VARCHAR(500),
	`trigger` ENUM('manual', 'retry', 'webhook', 'schedule') NOT NULL,
	retry_of BIGINT,
	created_by BIGINT,
	runner VARCHAR(255),
	timeout_seconds BIGINT,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	started_at DATETIME(3),
	finished_at DATETIME(3),
	log_size BIGINT NOT NULL DEFAULT 0,
	log_pruned TINYINT NOT NULL DEFAULT 0,
	cancel_at DATETIME(3),
	epoch BIGINT NOT NULL DEFAULT 0,
	owner CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	lease_until DATETIME(3),
	running_project BIGINT
	    AS (IF(status = 'running', project_id, NULL)) STORED,
	UNIQUE KEY deployment_running (running_project),
	KEY deployment_queue (status, project_id, id),
	KEY deployment_status (status, id),
	KEY deployment_project (project_id, id),
	KEY deployment_project_status (project_id, status, id),
	KEY deployment_project_branch (project_id, branch, id),
	KEY deployment_pipeline (pipeline_id, id),
	KEY deployment_pipeline_status (pipeline_id, status, id),
	KEY deployment_pipeline_branch (pipeline_id, branch, id),
	KEY deployment_branch (branch, id),
	KEY deployment_branch_status (branch, status, id),
	KEY deployment_log (log_pruned, finished_at, log_size),
	KEY deployment_lease (owner, status),
	CONSTRAINT deployment_of FOREIGN KEY (project_id)
	    REFERENCES project (id),
	CONSTRAINT deployment_by FOREIGN KEY (pipeline_id)
	    REFERENCES pipeline (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- The copy of the pipeline's steps that a deployment runs, and how each ended.
CREATE TABLE IF NOT EXISTS deployment_step (
	deployment_id BIGINT NOT NULL,
	position BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	script MEDIUMTEXT NOT NULL,
	timeout_seconds BIGINT,
	run_when ENUM('success', 'failure', 'always') NOT NULL,
	status ENUM('pending', 'running', 'success', 'failed', 'skipped',
	    'canceled', 'interrupted') NOT NULL DEFAULT 'pending',
	exit_code BIGINT,
	`signal` BIGINT,
	started_at DATETIME(3),
	finished_at DATETIME(3),
	log_offset BIGINT,
	log_length BIGINT,
	PRIMARY KEY (deployment_id, position),
	CONSTRAINT deployment_step_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- Keyed by where the bytes stand in the log, so that writing them again after
-- a lost answer changes nothing.  `packed` chunks are deflated (RFC 1950).
CREATE TABLE IF NOT EXISTS log_chunk (
	deployment_id BIGINT NOT NULL,
	start BIGINT NOT NULL,
	length BIGINT NOT NULL,
	packed TINYINT NOT NULL DEFAULT 0,
	data LONGBLOB NOT NULL,
	PRIMARY KEY (deployment_id, start),
	CONSTRAINT log_chunk_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- First answers to requests with an Idempotency-Key, kept for a day.
CREATE TABLE IF NOT EXISTS idempotency (
	user_id BIGINT NOT NULL,
	idempotency_key VARCHAR(255) CHARACTER SET utf8mb4
	    COLLATE utf8mb4_nopad_bin NOT NULL,
	request_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	deployment_id BIGINT NOT NULL,
	answer LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	PRIMARY KEY (user_id, idempotency_key),
	KEY idempotency_age (created_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

-- One row per transaction, written with it: tells whether a COMMIT whose
-- answer was lost has happened.
CREATE TABLE IF NOT EXISTS commit_token (
	token CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    PRIMARY KEY,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	KEY commit_token_age (created_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
