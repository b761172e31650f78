-- SPDX-License-Identifier: ISC
SELECT d.id AS `{"id":`, d.project_id AS `,"projectId":`, d.pipeline_id AS `,"pipelineId":`,
    d.environment_id AS `,"environmentId":`, d.branch AS `,"branch":`, d.tag AS `,"tag":`,
    d.commit_hash AS `,"commitHash":`,
    d.commit_message AS `,"commitMessage":`, d.env_vars AS `!,"envVars":`,
    d.status AS `,"status":`, d.reason AS `,"reason":`, d.detail AS `,"detail":`,
    d.`trigger` AS `,"trigger":`, d.retry_of AS `,"retryOf":`,
    d.created_by AS `,"createdBy":`, d.approval AS `,"approval":`,
    d.approval_by AS `,"approvalBy":`, d.approval_at AS `,"approvalAt":`,
    d.approval_comment AS `,"approvalComment":`,
    d.rollback_reason AS `,"rollbackReason":`, d.runner AS `,"runner":`,
    d.created_at AS `,"createdAt":`, d.started_at AS `,"startedAt":`,
    d.finished_at AS `,"finishedAt":`, d.log_size AS `,"logSize":`
FROM deployment d WHERE d.id < ? ORDER BY d.id DESC LIMIT 20
