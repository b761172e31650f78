-- Approval of deployments, and their turn while they are pending: 0 = a rollback,
-- which comes first in its project, 1 = any other, 2 = it waits for approval.
--
-- Each statement can be run again after an interruption.

ALTER TABLE environment
	ADD COLUMN IF NOT EXISTS approval ENUM('none', 'required')
	    NOT NULL DEFAULT 'none' AFTER variables,
	ADD COLUMN IF NOT EXISTS approvers LONGTEXT CHARACTER SET utf8mb4
	    COLLATE utf8mb4_bin NOT NULL DEFAULT '[]'
	    CHECK (JSON_VALID(approvers)) AFTER approval;

ALTER TABLE deployment
	MODIFY COLUMN `trigger` ENUM('manual', 'retry', 'webhook', 'schedule',
	    'rollback', 'promotion') NOT NULL,
	ADD COLUMN IF NOT EXISTS approval ENUM('required', 'granted', 'denied'),
	ADD COLUMN IF NOT EXISTS approval_by BIGINT,
	ADD COLUMN IF NOT EXISTS approval_at DATETIME(3),
	ADD COLUMN IF NOT EXISTS approval_comment VARCHAR(500),
	ADD COLUMN IF NOT EXISTS turn TINYINT NOT NULL DEFAULT 1,
	ADD KEY IF NOT EXISTS deployment_turn (status, turn, project_id, id);
