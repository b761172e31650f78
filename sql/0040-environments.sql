-- Environments: the places that a project is deployed to.  `secret_values` has
-- the values of secret variables, each sealed separately; `variables` has null
-- in their places.  `live_deployment` is the last successful deployment.
--
-- Each statement can be run again after an interruption.

CREATE TABLE IF NOT EXISTS environment (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	project_id BIGINT NOT NULL,
	name VARCHAR(50) NOT NULL,
	url VARCHAR(1000),
	position BIGINT NOT NULL,
	branches LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(branches)),
	tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(tags)),
	variables LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
	    DEFAULT '[]' CHECK (JSON_VALID(variables)),
	secret_values LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	runner VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	live_deployment BIGINT,
	valid TINYINT NOT NULL DEFAULT 1,
	version BIGINT NOT NULL DEFAULT 1,
	created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	updated_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
	created_by BIGINT,
	live_name VARCHAR(50) AS (IF(valid = 1, name, NULL)) STORED,
	UNIQUE KEY environment_name (project_id, live_name),
	KEY environment_list (valid, project_id, position, id),
	CONSTRAINT environment_of FOREIGN KEY (project_id)
	    REFERENCES project (id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_nopad_ci;

ALTER TABLE deployment
	ADD COLUMN IF NOT EXISTS environment_id BIGINT,
	ADD KEY IF NOT EXISTS deployment_environment (environment_id, id);
