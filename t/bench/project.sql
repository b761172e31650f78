-- SPDX-License-Identifier: ISC
SELECT p.id AS `{"id":`, p.name AS `,"name":`, p.description AS `,"description":`,
    p.repository AS `,"repository":`, p.project_dir AS `,"projectDir":`,
    p.default_branch AS `,"defaultBranch":`, p.env_presets AS `!,"envPresets":`,
    p.extra_env AS `,"extraEnv":`, p.triggers AS `!,"triggers":`,
    IF(p.badge, 'true', 'false') AS `!,"badge":`,
    p.valid AS `,"valid":`, p.created_at AS `,"createdAt":`,
    p.updated_at AS `,"updatedAt":`, p.created_by AS `,"createdBy":`, 'admin' AS `,"role":`,
    CONCAT('{"reason":', JSON_QUOTE(k.reason), ',"by":', JSON_QUOTE(u.username),
        ',"since":"', k.since, '","until":', COALESCE(CONCAT('"', k.`until`, '"'), 'null'), '}')
        AS `!,"lock":`,
    w.status AS `,"workspaceStatus":{"status":`, w.branch AS `,"branch":`,
    w.commit_hash AS `,"commitHash":`, w.commit_message AS `,"commitMessage":`,
    IF(w.dirty, 'true', 'false') AS `!,"dirty":`, w.size_bytes AS `,"sizeBytes":`,
    w.runner AS `,"runner":`, w.checked_at AS `,"checkedAt":`, '}' AS `!`
FROM project p LEFT JOIN workspace w ON w.project_id = p.id
    LEFT JOIN deploy_lock k ON k.place = CONCAT('project ', p.id, ' environment 0')
        AND (k.`until` IS NULL OR k.`until` > NOW(3))
    LEFT JOIN user u ON u.id = k.locked_by
WHERE p.id = ? AND p.valid = 1
