-- SPDX-License-Identifier: ISC
SELECT p.id AS `{"id":`, p.name AS `,"name":`, p.description AS `,"description":`,
    p.repository AS `,"repository":`, p.project_dir AS `,"projectDir":`,
    p.default_branch AS `,"defaultBranch":`, p.env_presets AS `!,"envPresets":`,
    p.extra_env AS `,"extraEnv":`, p.triggers AS `!,"triggers":`,
    p.valid AS `,"valid":`, p.created_at AS `,"createdAt":`,
    p.updated_at AS `,"updatedAt":`, p.created_by AS `,"createdBy":`,
    w.status AS `,"workspaceStatus":{"status":`, w.branch AS `,"branch":`,
    w.commit_hash AS `,"commitHash":`, w.commit_message AS `,"commitMessage":`,
    IF(w.dirty, 'true', 'false') AS `!,"dirty":`, w.size_bytes AS `,"sizeBytes":`,
    w.runner AS `,"runner":`, w.checked_at AS `,"checkedAt":`, '}' AS `!`
FROM project p LEFT JOIN workspace w ON w.project_id = p.id
WHERE p.id = ? AND p.valid = 1
