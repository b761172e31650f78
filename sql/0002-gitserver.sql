-- Signing in by the Git server, its tokens, its events, and what it is told.
--
-- Each statement can be run again after an interruption.

-- A sign-in that was begun: one use, ten minutes, bound to a browser.
CREATE TABLE IF NOT EXISTS signin (
	state_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    PRIMARY KEY,
	browser_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	verifier LONGBLOB NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	KEY signin_age (created_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS session (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	user_id BIGINT NOT NULL,
	hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	last_used_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	expires_at DATETIME(3) NOT NULL,
	UNIQUE KEY session_hash (hash),
	KEY session_user (user_id),
	KEY session_age (expires_at),
	KEY session_idle (last_used_at),
	CONSTRAINT session_of FOREIGN KEY (user_id) REFERENCES user (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A user's tokens at the Git server, sealed.  `epoch` counts what was stored;
-- who refreshes holds `refresh_by` until `refresh_until`.
CREATE TABLE IF NOT EXISTS git_token (
	user_id BIGINT NOT NULL PRIMARY KEY,
	server VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	access LONGBLOB NOT NULL,
	refresh LONGBLOB,
	expires_at DATETIME(3),
	epoch BIGINT NOT NULL DEFAULT 1,
	refresh_by CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	refresh_until DATETIME(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	CONSTRAINT git_token_of FOREIGN KEY (user_id) REFERENCES user (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The Git server's number of a project's repository, while its address is the
-- one given here: it stays when the repository is renamed.
CREATE TABLE IF NOT EXISTS git_repo (
	project_id BIGINT NOT NULL PRIMARY KEY,
	server VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	repository VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	repo_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	path VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	CONSTRAINT git_repo_of FOREIGN KEY (project_id) REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The last commits of a branch as the runner's clone has them, as JSON: for
-- servers that have no interface to ask.
CREATE TABLE IF NOT EXISTS branch_commits (
	project_id BIGINT NOT NULL,
	branch VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	commits LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    CHECK (JSON_VALID(commits)),
	checked_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	PRIMARY KEY (project_id, branch),
	CONSTRAINT branch_commits_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What the Git server is to be told of a deployment's commit.  Open while
-- `told` is not `wanted` and nobody has given up; `next_at` moves on with each
-- try, and who tries has it alone until `held_until`.
CREATE TABLE IF NOT EXISTS commit_status (
	deployment_id BIGINT NOT NULL PRIMARY KEY,
	wanted ENUM('pending', 'running', 'success', 'failed', 'error',
	    'canceled') NOT NULL,
	told ENUM('pending', 'running', 'success', 'failed', 'error',
	    'canceled'),
	dropped TINYINT NOT NULL DEFAULT 0,
	attempts BIGINT NOT NULL DEFAULT 0,
	next_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	held_until DATETIME(3),
	fault VARCHAR(500),
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	open TINYINT AS (IF(told = wanted OR dropped = 1, NULL, 1)) STORED,
	KEY commit_status_due (open, next_at),
	CONSTRAINT commit_status_of FOREIGN KEY (deployment_id)
	    REFERENCES deployment (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The secret that a project's push events are signed with, sealed; they deploy
-- in the name of who made it.
CREATE TABLE IF NOT EXISTS hook_secret (
	project_id BIGINT NOT NULL PRIMARY KEY,
	secret LONGBLOB NOT NULL,
	made_by BIGINT,
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	CONSTRAINT hook_secret_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Deliveries that were taken, with the answer they got: the same one again
-- makes nothing new.
CREATE TABLE IF NOT EXISTS hook_delivery (
	project_id BIGINT NOT NULL,
	delivery_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	deployments LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(deployments)),
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	PRIMARY KEY (project_id, delivery_hash),
	KEY hook_delivery_age (created_at),
	CONSTRAINT hook_delivery_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Secret values of presets (defaults), of triggers and of deployments, each
-- sealed by itself for the dispatcher; the columns beside them hold null in
-- their place.
ALTER TABLE project
	ADD COLUMN IF NOT EXISTS secret_defaults LONGTEXT CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin CHECK (JSON_VALID(secret_defaults))
	    AFTER env_presets,
	ADD COLUMN IF NOT EXISTS trigger_secrets LONGTEXT CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin CHECK (JSON_VALID(trigger_secrets))
	    AFTER triggers;

ALTER TABLE deployment
	MODIFY COLUMN secret_vars LONGTEXT CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin CHECK (JSON_VALID(secret_vars));

-- Whom a login of auth.admins meant at first: a name that changes hands makes
-- nobody else an administrator.
CREATE TABLE IF NOT EXISTS admin_claim (
	forge VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	login VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	forge_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
	    NOT NULL,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	PRIMARY KEY (forge, login)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

ALTER TABLE user
	ADD KEY IF NOT EXISTS user_identity (forge, forge_id);

-- Lists by branch and status within a project or pipeline, where the status is
-- rare.
ALTER TABLE deployment
	ADD KEY IF NOT EXISTS deployment_project_both
	    (project_id, branch, status, id),
	ADD KEY IF NOT EXISTS deployment_pipeline_both
	    (pipeline_id, branch, status, id);
