-- The tables as the migrations make them, for readers.  `make schema` writes this file;
-- slipway-admin migrate applies sql/NNNN-what.sql.
--
-- Times are UTC.  A record that was deleted keeps its row with valid = 0; its unique name
-- is free again, because the generated columns that carry the uniqueness are then NULL.
-- All tables are InnoDB and in utf8mb4.  They compare text by utf8mb4_unicode_520_nopad_ci
-- unless the table or a column says otherwise.

-- Whom a login of auth.admins meant at first: a name that changes hands makes
-- nobody else an administrator.
CREATE TABLE admin_claim (
	forge VARCHAR(255) NOT NULL,
	login VARCHAR(100) NOT NULL,
	forge_id VARCHAR(64) NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (forge, login)
) COLLATE utf8mb4_bin;

CREATE TABLE api_token (
	id BIGINT NOT NULL AUTO_INCREMENT,
	user_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	role ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	hash CHAR(64) COLLATE utf8mb4_bin NOT NULL,
	valid TINYINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	last_used_at DATETIME(3),
	expires_at DATETIME(3),
	PRIMARY KEY (id),
	UNIQUE KEY api_token_hash (hash),
	KEY api_token_user (user_id, valid, id),
	CONSTRAINT api_token_of FOREIGN KEY (user_id) REFERENCES user (id)
);

CREATE TABLE audit (
	id BIGINT NOT NULL AUTO_INCREMENT,
	at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	user_id BIGINT,
	username VARCHAR(255),
	via ENUM('session', 'token', 'hook', 'cli', 'runner') NOT NULL,
	token_name VARCHAR(100),
	address VARCHAR(64) COLLATE utf8mb4_bin,
	action VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	object_type VARCHAR(32) COLLATE utf8mb4_bin NOT NULL,
	object_id BIGINT,
	project_id BIGINT,
	changes LONGTEXT COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(changes)),
	PRIMARY KEY (id),
	KEY audit_project (project_id, id)
);

-- The last commits of a branch as the runner's clone has them, as JSON: for
-- servers that have no interface to ask.
CREATE TABLE branch_commits (
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) NOT NULL,
	commits LONGTEXT NOT NULL CHECK (json_valid(commits)),
	checked_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (project_id, branch),
	CONSTRAINT branch_commits_of FOREIGN KEY (project_id) REFERENCES project (id)
) COLLATE utf8mb4_bin;

-- What the Git server is to be told of a deployment's commit.  Open while
-- `told` is not `wanted` and nobody has given up; `next_at` moves on with each
-- try, and who tries has it alone until `held_until`.
CREATE TABLE commit_status (
	deployment_id BIGINT NOT NULL,
	wanted ENUM('pending', 'running', 'success', 'failed', 'error', 'canceled') NOT NULL,
	told ENUM('pending', 'running', 'success', 'failed', 'error', 'canceled'),
	dropped TINYINT NOT NULL DEFAULT 0,
	attempts BIGINT NOT NULL DEFAULT 0,
	next_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	held_until DATETIME(3),
	fault VARCHAR(500),
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	open TINYINT GENERATED ALWAYS AS (if(told = wanted or dropped = 1, NULL, 1)) STORED,
	PRIMARY KEY (deployment_id),
	KEY commit_status_due (open, next_at),
	CONSTRAINT commit_status_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
) COLLATE utf8mb4_bin;

-- One row per transaction, written with it: tells whether a COMMIT whose
-- answer was lost has happened.
CREATE TABLE commit_token (
	token CHAR(32) NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (token),
	KEY commit_token_age (created_at)
) COLLATE utf8mb4_bin;

CREATE TABLE deploy_key (
	project_id BIGINT NOT NULL,
	public_key VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	fingerprint VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	sealed TEXT COLLATE utf8mb4_bin NOT NULL,
	created_by BIGINT,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (project_id),
	CONSTRAINT deploy_key_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE deploy_lock (
	place VARCHAR(40) COLLATE utf8mb4_bin NOT NULL,
	project_id BIGINT,
	environment_id BIGINT,
	reason VARCHAR(500) NOT NULL,
	locked_by BIGINT NOT NULL,
	since DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	`until` DATETIME(3),
	PRIMARY KEY (place)
);

-- A deployment is its own task on the queue.  running_project is the rule
-- that a project runs one deployment at a time: the database itself holds it.
CREATE TABLE deployment (
	id BIGINT NOT NULL AUTO_INCREMENT,
	project_id BIGINT NOT NULL,
	pipeline_id BIGINT NOT NULL,
	branch VARCHAR(255) COLLATE utf8mb4_bin,
	tag VARCHAR(255) COLLATE utf8mb4_bin,
	commit_hash VARCHAR(64) COLLATE utf8mb4_bin,
	commit_message TEXT,
	commit_read TINYINT NOT NULL DEFAULT 0,
	env_vars LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '{}' CHECK (json_valid(env_vars)),
	env_vars_sent LONGTEXT COLLATE utf8mb4_bin,
	secret_vars LONGTEXT COLLATE utf8mb4_bin CHECK (json_valid(secret_vars)),
	env_role ENUM('deployer', 'maintainer'),
	status ENUM('pending', 'running', 'success', 'failed', 'canceled', 'interrupted') NOT NULL DEFAULT 'pending',
	reason VARCHAR(40),
	detail VARCHAR(500),
	`trigger` ENUM('manual', 'retry', 'webhook', 'schedule', 'rollback', 'promotion') NOT NULL,
	retry_of BIGINT,
	created_by BIGINT,
	read_by BIGINT,
	runner VARCHAR(255),
	timeout_seconds BIGINT,
	checkout ENUM('fresh', 'keep', 'none') NOT NULL DEFAULT 'fresh',
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	started_at DATETIME(3),
	finished_at DATETIME(3),
	log_size BIGINT NOT NULL DEFAULT 0,
	log_pruned TINYINT NOT NULL DEFAULT 0,
	cancel_at DATETIME(3),
	epoch BIGINT NOT NULL DEFAULT 0,
	owner CHAR(32) COLLATE utf8mb4_bin,
	lease_until DATETIME(3),
	running_project BIGINT GENERATED ALWAYS AS (if(status = 'running', project_id, NULL)) STORED,
	environment_id BIGINT,
	approval ENUM('required', 'granted', 'denied'),
	approval_by BIGINT,
	approval_at DATETIME(3),
	approval_comment VARCHAR(500),
	turn TINYINT NOT NULL DEFAULT 1,
	replaced BIGINT,
	rollback_reason VARCHAR(500),
	trigger_key VARCHAR(64) COLLATE utf8mb4_bin,
	when_moved ENUM('cancel', 'follow', 'ignore') NOT NULL DEFAULT 'cancel',
	warnings INT(11) NOT NULL DEFAULT 0,
	git_since DATETIME(3),
	not_before DATETIME(3),
	commit_look_at DATETIME(3),
	PRIMARY KEY (id),
	UNIQUE KEY deployment_running (running_project),
	KEY deployment_queue (status, project_id, id),
	KEY deployment_status (status, id),
	KEY deployment_project (project_id, id),
	KEY deployment_project_branch (project_id, branch, id),
	KEY deployment_pipeline (pipeline_id, id),
	KEY deployment_pipeline_status (pipeline_id, status, id),
	KEY deployment_pipeline_branch (pipeline_id, branch, id),
	KEY deployment_branch (branch, id),
	KEY deployment_branch_status (branch, status, id),
	KEY deployment_log (log_pruned, finished_at, log_size),
	KEY deployment_project_both (project_id, branch, status, id),
	KEY deployment_pipeline_both (pipeline_id, branch, status, id),
	KEY deployment_environment (environment_id, id),
	KEY deployment_environment_status (environment_id, status, id),
	KEY deployment_environment_branch (environment_id, branch, id),
	KEY deployment_turn (status, turn, project_id, id),
	KEY deployment_commit (commit_hash, id),
	KEY deployment_user (created_by, id),
	KEY deployment_trigger (`trigger`, id),
	KEY deployment_project_trigger (project_id, `trigger`, id),
	KEY deployment_retry (retry_of),
	KEY deployment_tag (tag, id),
	KEY deployment_project_tag (project_id, tag, id),
	CONSTRAINT deployment_by FOREIGN KEY (pipeline_id) REFERENCES pipeline (id),
	CONSTRAINT deployment_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE deployment_return (
	deployment_id BIGINT NOT NULL,
	n BIGINT NOT NULL,
	runner VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	returned_at DATETIME(3) NOT NULL,
	PRIMARY KEY (deployment_id),
	KEY deployment_return_age (returned_at),
	CONSTRAINT deployment_return_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
);

-- The copy of the pipeline's steps that a deployment runs, and how each ended.
CREATE TABLE deployment_step (
	deployment_id BIGINT NOT NULL,
	`position` BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	script MEDIUMTEXT NOT NULL,
	directory VARCHAR(255) COLLATE utf8mb4_bin,
	timeout_seconds BIGINT,
	run_when ENUM('success', 'failure', 'always') NOT NULL,
	may_fail TINYINT NOT NULL DEFAULT 0,
	status ENUM('pending', 'running', 'success', 'failed', 'skipped', 'canceled', 'interrupted') NOT NULL DEFAULT 'pending',
	exit_code BIGINT,
	signal BIGINT,
	started_at DATETIME(3),
	finished_at DATETIME(3),
	log_offset BIGINT,
	log_length BIGINT,
	PRIMARY KEY (deployment_id, `position`),
	CONSTRAINT deployment_step_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
);

CREATE TABLE deployment_total (
	status VARCHAR(20) NOT NULL,
	reason VARCHAR(40) NOT NULL,
	took BIGINT NOT NULL,
	waited BIGINT NOT NULL,
	shard BIGINT NOT NULL,
	n BIGINT NOT NULL,
	took_ms BIGINT NOT NULL,
	waited_ms BIGINT NOT NULL,
	log_bytes BIGINT NOT NULL,
	PRIMARY KEY (status, reason, took, waited, shard)
) COLLATE utf8mb4_bin;

CREATE TABLE deployment_wait (
	deployment_id BIGINT NOT NULL,
	reason VARCHAR(40) NOT NULL,
	detail VARCHAR(500) NOT NULL,
	runner VARCHAR(255) NOT NULL,
	seen_at DATETIME(3) NOT NULL,
	PRIMARY KEY (deployment_id),
	KEY deployment_wait_age (seen_at),
	CONSTRAINT deployment_wait_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
);

CREATE TABLE device (
	id BIGINT NOT NULL AUTO_INCREMENT,
	hash CHAR(64) COLLATE utf8mb4_bin NOT NULL,
	user_code CHAR(8) COLLATE utf8mb4_bin NOT NULL,
	name VARCHAR(100) NOT NULL,
	address VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	status ENUM('pending', 'approved', 'denied') NOT NULL DEFAULT 'pending',
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	expires_at DATETIME(3) NOT NULL,
	poll_seconds INT(11) NOT NULL,
	polled_at DATETIME(3),
	user_id BIGINT,
	token_id BIGINT,
	role ENUM('viewer', 'deployer', 'maintainer', 'admin'),
	token_expires_at DATETIME(3),
	PRIMARY KEY (id),
	UNIQUE KEY device_hash (hash),
	UNIQUE KEY device_user_code (user_code),
	KEY device_address (address, expires_at),
	KEY device_end (expires_at)
);

CREATE TABLE environment (
	id BIGINT NOT NULL AUTO_INCREMENT,
	project_id BIGINT NOT NULL,
	name VARCHAR(50) NOT NULL,
	url VARCHAR(1000),
	`position` BIGINT NOT NULL,
	branches LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(branches)),
	tags LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
	variables LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(variables)),
	approval ENUM('none', 'required') NOT NULL DEFAULT 'none',
	approvers LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(approvers)),
	secret_values LONGTEXT COLLATE utf8mb4_bin,
	runner VARCHAR(255) COLLATE utf8mb4_bin,
	live_deployment BIGINT,
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	live_name VARCHAR(50) GENERATED ALWAYS AS (if(valid = 1, name, NULL)) STORED,
	PRIMARY KEY (id),
	UNIQUE KEY environment_name (project_id, live_name),
	KEY environment_list (valid, project_id, `position`, id),
	CONSTRAINT environment_of FOREIGN KEY (project_id) REFERENCES project (id)
);

-- The Git server's number of a project's repository, while its address is the
-- one given here: it stays when the repository is renamed.
CREATE TABLE git_repo (
	project_id BIGINT NOT NULL,
	server VARCHAR(255) NOT NULL,
	repository VARCHAR(1000) NOT NULL,
	repo_id VARCHAR(64) NOT NULL,
	path VARCHAR(1000) NOT NULL,
	confirmed_by BIGINT,
	PRIMARY KEY (project_id),
	KEY git_repo_number (repo_id, server),
	CONSTRAINT git_repo_of FOREIGN KEY (project_id) REFERENCES project (id)
) COLLATE utf8mb4_bin;

-- The numbers of those that the user who set the list could read.
CREATE TABLE git_submodule (
	project_id BIGINT NOT NULL,
	path VARCHAR(255) NOT NULL,
	server VARCHAR(255) NOT NULL,
	repo_id VARCHAR(64) NOT NULL,
	PRIMARY KEY (project_id, path),
	CONSTRAINT git_submodule_of FOREIGN KEY (project_id) REFERENCES project (id)
) COLLATE utf8mb4_bin;

-- A user's tokens at the Git server, sealed.  `epoch` counts what was stored;
-- who refreshes holds `refresh_by` until `refresh_until`.
CREATE TABLE git_token (
	user_id BIGINT NOT NULL,
	server VARCHAR(255) NOT NULL,
	access LONGBLOB NOT NULL,
	refresh LONGBLOB,
	expires_at DATETIME(3),
	epoch BIGINT NOT NULL DEFAULT 1,
	attempts BIGINT NOT NULL DEFAULT 0,
	refresh_by CHAR(32),
	refresh_until DATETIME(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (user_id),
	CONSTRAINT git_token_of FOREIGN KEY (user_id) REFERENCES user (id)
) COLLATE utf8mb4_bin;

-- Deliveries that were taken, with the answer they got: the same one again
-- makes nothing new.
CREATE TABLE hook_delivery (
	project_id BIGINT NOT NULL,
	delivery_hash CHAR(64) NOT NULL,
	deployments LONGTEXT NOT NULL DEFAULT '[]' CHECK (json_valid(deployments)),
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (project_id, delivery_hash),
	KEY hook_delivery_age (created_at),
	CONSTRAINT hook_delivery_of FOREIGN KEY (project_id) REFERENCES project (id)
) COLLATE utf8mb4_bin;

-- The secret that a project's push events are signed with, sealed; they deploy
-- in the name of who made it.
CREATE TABLE hook_secret (
	project_id BIGINT NOT NULL,
	secret LONGBLOB NOT NULL,
	made_by BIGINT,
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (project_id),
	CONSTRAINT hook_secret_of FOREIGN KEY (project_id) REFERENCES project (id)
) COLLATE utf8mb4_bin;

-- First answers to requests with an Idempotency-Key, kept for a day.
CREATE TABLE idempotency (
	user_id BIGINT NOT NULL,
	idempotency_key VARCHAR(255) COLLATE utf8mb4_nopad_bin NOT NULL,
	request_hash CHAR(64) COLLATE utf8mb4_bin NOT NULL,
	deployment_id BIGINT NOT NULL,
	answer LONGTEXT COLLATE utf8mb4_bin NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (user_id, idempotency_key),
	KEY idempotency_age (created_at)
);

-- Keyed by where the bytes stand in the log, so that writing them again after
-- a lost answer changes nothing.  `packed` chunks are deflated (RFC 1950).
CREATE TABLE log_chunk (
	deployment_id BIGINT NOT NULL,
	start BIGINT NOT NULL,
	length BIGINT NOT NULL,
	packed TINYINT NOT NULL DEFAULT 0,
	data LONGBLOB NOT NULL,
	breaks BIGINT,
	written_at DATETIME(3),
	PRIMARY KEY (deployment_id, start),
	CONSTRAINT log_chunk_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
) COLLATE utf8mb4_bin;

CREATE TABLE member (
	project_id BIGINT NOT NULL,
	user_id BIGINT NOT NULL,
	role ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (user_id, project_id),
	KEY member_list (project_id, user_id),
	KEY member_role (user_id, role),
	CONSTRAINT member_project FOREIGN KEY (project_id) REFERENCES project (id),
	CONSTRAINT member_user FOREIGN KEY (user_id) REFERENCES user (id)
);

CREATE TABLE notice (
	id BIGINT NOT NULL AUTO_INCREMENT,
	message_id CHAR(32) COLLATE utf8mb4_bin NOT NULL DEFAULT replace(uuid(), '-', ''),
	notifier_id BIGINT NOT NULL,
	event VARCHAR(30) NOT NULL,
	project_id BIGINT,
	environment_id BIGINT,
	deployment_id BIGINT,
	user_id BIGINT,
	text VARCHAR(500),
	attempts BIGINT NOT NULL DEFAULT 0,
	next_at DATETIME(3) DEFAULT current_timestamp(3),
	held_until DATETIME(3),
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (id),
	UNIQUE KEY notice_once (deployment_id, notifier_id, event),
	KEY notice_due (next_at, created_at),
	KEY notice_held (notifier_id, held_until)
);

CREATE TABLE notice_total (
	kind VARCHAR(20) NOT NULL,
	result VARCHAR(20) NOT NULL,
	shard BIGINT NOT NULL,
	n BIGINT NOT NULL,
	PRIMARY KEY (kind, result, shard)
) COLLATE utf8mb4_bin;

CREATE TABLE notifier (
	id BIGINT NOT NULL AUTO_INCREMENT,
	project_id BIGINT,
	environment_id BIGINT,
	kind ENUM('mail', 'text', 'webhook') NOT NULL,
	target VARCHAR(2000) COLLATE utf8mb4_bin NOT NULL,
	events LONGTEXT COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(events)),
	active TINYINT NOT NULL,
	secret VARBINARY(500),
	old_secret VARBINARY(500),
	rotated_at DATETIME(3),
	last_error VARCHAR(500),
	last_delivered_at DATETIME(3),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	PRIMARY KEY (id),
	KEY notifier_list (valid, project_id, id),
	KEY notifier_of (project_id),
	KEY notifier_environment (environment_id, valid),
	CONSTRAINT notifier_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE pipeline (
	id BIGINT NOT NULL AUTO_INCREMENT,
	project_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	description VARCHAR(500),
	timeout_seconds BIGINT,
	checkout ENUM('fresh', 'keep', 'none') NOT NULL DEFAULT 'fresh',
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	live_name VARCHAR(100) GENERATED ALWAYS AS (if(valid = 1, name, NULL)) STORED,
	PRIMARY KEY (id),
	UNIQUE KEY pipeline_name (project_id, live_name),
	KEY pipeline_list (valid, name, id),
	KEY pipeline_project (project_id, valid, name, id),
	CONSTRAINT pipeline_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE project (
	id BIGINT NOT NULL AUTO_INCREMENT,
	name VARCHAR(100) NOT NULL,
	description VARCHAR(500),
	repository VARCHAR(1000) NOT NULL,
	repository_by BIGINT,
	project_dir VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	default_branch VARCHAR(255),
	env_presets LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(env_presets)),
	secret_defaults LONGTEXT COLLATE utf8mb4_bin CHECK (json_valid(secret_defaults)),
	extra_env ENUM('nobody', 'maintainers', 'deployers') NOT NULL DEFAULT 'maintainers',
	triggers LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(triggers)),
	badge TINYINT NOT NULL DEFAULT 0,
	submodules TINYINT,
	submodule_repositories LONGTEXT COLLATE utf8mb4_bin NOT NULL DEFAULT '[]' CHECK (json_valid(submodule_repositories)),
	submodules_by BIGINT,
	lfs TINYINT NOT NULL DEFAULT 1,
	trigger_secrets LONGTEXT COLLATE utf8mb4_bin CHECK (json_valid(trigger_secrets)),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	live_name VARCHAR(100) GENERATED ALWAYS AS (if(valid = 1, name, NULL)) STORED,
	live_dir VARCHAR(255) COLLATE utf8mb4_bin GENERATED ALWAYS AS (if(valid = 1, project_dir, NULL)) STORED,
	cache_generation INT(11) NOT NULL DEFAULT 0,
	PRIMARY KEY (id),
	UNIQUE KEY project_name (live_name),
	UNIQUE KEY project_dir (live_dir),
	KEY project_list (valid, name, id)
);

CREATE TABLE push_caught (
	deployment_id BIGINT NOT NULL,
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	commit_hash VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	PRIMARY KEY (deployment_id),
	KEY push_caught_commit (project_id, commit_hash),
	CONSTRAINT push_caught_of FOREIGN KEY (deployment_id) REFERENCES deployment (id)
);

CREATE TABLE push_head (
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	commit_hash VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	caught_up TINYINT NOT NULL,
	PRIMARY KEY (project_id, branch),
	CONSTRAINT push_head_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE runner (
	name VARCHAR(255) COLLATE utf8mb4_bin NOT NULL,
	labels LONGTEXT COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(labels)),
	version VARCHAR(50) NOT NULL,
	slots BIGINT NOT NULL,
	started_at DATETIME(3) NOT NULL,
	seen_at DATETIME(3) NOT NULL,
	stopped TINYINT NOT NULL DEFAULT 0,
	sick_since DATETIME(3),
	sick_reason VARCHAR(500),
	PRIMARY KEY (name)
);

CREATE TABLE schedule (
	id BIGINT NOT NULL AUTO_INCREMENT,
	project_id BIGINT NOT NULL,
	pipeline_id BIGINT NOT NULL,
	environment_id BIGINT,
	name VARCHAR(100) NOT NULL,
	cron VARCHAR(255) NOT NULL,
	timezone VARCHAR(64) COLLATE utf8mb4_bin NOT NULL,
	branch VARCHAR(255) COLLATE utf8mb4_bin,
	variables LONGTEXT COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(variables)),
	active TINYINT NOT NULL,
	next_at DATETIME(3),
	last_deployment_id BIGINT,
	running_deployment_id BIGINT,
	failures BIGINT NOT NULL DEFAULT 0,
	last_error VARCHAR(500),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	live_name VARCHAR(100) GENERATED ALWAYS AS (if(valid = 1, name, NULL)) STORED,
	PRIMARY KEY (id),
	UNIQUE KEY schedule_name (project_id, live_name),
	KEY schedule_list (valid, project_id, name, id),
	KEY schedule_due (valid, active, next_at),
	CONSTRAINT schedule_of FOREIGN KEY (project_id) REFERENCES project (id)
);

CREATE TABLE schema_migration (
	name VARCHAR(100) NOT NULL,
	checksum CHAR(64) NOT NULL,
	state ENUM('started', 'applied') NOT NULL DEFAULT 'started',
	started_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	finished_at DATETIME(3),
	PRIMARY KEY (name)
) COLLATE utf8mb4_bin;

CREATE TABLE session (
	id BIGINT NOT NULL AUTO_INCREMENT,
	user_id BIGINT NOT NULL,
	token_id BIGINT,
	hash CHAR(64) NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	last_used_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	expires_at DATETIME(3) NOT NULL,
	checked_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	check_after DATETIME(3),
	PRIMARY KEY (id),
	UNIQUE KEY session_hash (hash),
	KEY session_user (user_id),
	KEY session_age (expires_at),
	KEY session_idle (last_used_at),
	KEY session_check (checked_at),
	CONSTRAINT session_of FOREIGN KEY (user_id) REFERENCES user (id)
) COLLATE utf8mb4_bin;

-- A sign-in that was begun: one use, ten minutes, bound to a browser.
CREATE TABLE signin (
	state_hash CHAR(64) NOT NULL,
	browser_hash CHAR(64) NOT NULL,
	verifier LONGBLOB NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (state_hash),
	KEY signin_age (created_at)
) COLLATE utf8mb4_bin;

-- Positions of live steps are 0, 1, 2 … without gaps; whoever changes them
-- holds the pipeline's row.
CREATE TABLE step (
	id BIGINT NOT NULL AUTO_INCREMENT,
	pipeline_id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL,
	script MEDIUMTEXT NOT NULL,
	directory VARCHAR(255) COLLATE utf8mb4_bin,
	`position` BIGINT NOT NULL,
	timeout_seconds BIGINT,
	run_when ENUM('success', 'failure', 'always') NOT NULL DEFAULT 'success',
	may_fail TINYINT NOT NULL DEFAULT 0,
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	PRIMARY KEY (id),
	KEY step_list (pipeline_id, valid, `position`, id),
	KEY step_all (valid, pipeline_id, `position`, id),
	CONSTRAINT step_of FOREIGN KEY (pipeline_id) REFERENCES pipeline (id)
);

CREATE TABLE user (
	id BIGINT NOT NULL AUTO_INCREMENT,
	username VARCHAR(100) NOT NULL,
	name VARCHAR(200),
	email VARCHAR(254),
	avatar_url VARCHAR(1000),
	role ENUM('guest', 'viewer', 'deployer', 'maintainer', 'admin') NOT NULL,
	status ENUM('active', 'inactive') NOT NULL DEFAULT 'active',
	forge VARCHAR(255),
	forge_id VARCHAR(64),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	last_login_at DATETIME(3),
	live_username VARCHAR(100) GENERATED ALWAYS AS (if(valid = 1, username, NULL)) STORED,
	live_forge_id VARCHAR(320) GENERATED ALWAYS AS (if(valid = 1, concat(forge, ' ', forge_id), NULL)) STORED,
	git_checked_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	git_check_after DATETIME(3),
	git_refused_at DATETIME(3),
	PRIMARY KEY (id),
	UNIQUE KEY user_name (live_username),
	UNIQUE KEY user_forge (live_forge_id),
	KEY user_list (valid, username, id),
	KEY user_role (role, status, valid),
	KEY user_identity (forge, forge_id)
);

CREATE TABLE variable (
	id BIGINT NOT NULL AUTO_INCREMENT,
	`key` VARCHAR(128) COLLATE utf8mb4_bin NOT NULL,
	value MEDIUMTEXT COLLATE utf8mb4_bin,
	secret TINYINT NOT NULL DEFAULT 0,
	description VARCHAR(500),
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	updated_at DATETIME(3) NOT NULL DEFAULT current_timestamp(3),
	created_by BIGINT,
	PRIMARY KEY (id),
	KEY variable_list (valid, `key`, id)
);

CREATE TABLE variable_project (
	id BIGINT NOT NULL AUTO_INCREMENT,
	variable_id BIGINT NOT NULL,
	project_id BIGINT NOT NULL,
	`key` VARCHAR(128) COLLATE utf8mb4_bin NOT NULL,
	sealed LONGTEXT COLLATE utf8mb4_bin CHECK (json_valid(sealed)),
	PRIMARY KEY (id),
	UNIQUE KEY variable_project_key (project_id, `key`),
	UNIQUE KEY variable_project_of (variable_id, project_id),
	CONSTRAINT variable_project_from FOREIGN KEY (variable_id) REFERENCES variable (id),
	CONSTRAINT variable_project_to FOREIGN KEY (project_id) REFERENCES project (id)
);

-- What the runner last saw in the project's directory.
CREATE TABLE workspace (
	project_id BIGINT NOT NULL,
	status ENUM('not_created', 'empty', 'no_git', 'ready', 'error') NOT NULL,
	branch VARCHAR(255),
	commit_hash VARCHAR(64),
	commit_message TEXT,
	dirty TINYINT NOT NULL DEFAULT 0,
	size_bytes BIGINT,
	runner VARCHAR(255),
	checked_at DATETIME(3),
	PRIMARY KEY (project_id),
	CONSTRAINT workspace_of FOREIGN KEY (project_id) REFERENCES project (id)
);
