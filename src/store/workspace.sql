-- SPDX-License-Identifier: ISC

-- workspace_save(struct workspace_status)
REPLACE INTO workspace (
	project_id, status, branch, commit_hash, commit_message, dirty, size_bytes,
	runner, checked_at)
VALUES (
	:project_id, :status, :branch, :commit_hash, :commit_message, :dirty,
	:size_bytes, :runner, :checked_at);

-- workspace_by_project(struct workspace_status) -> struct workspace_status
SELECT project_id, status, branch, commit_hash, commit_message, dirty, size_bytes,
	runner, checked_at
FROM workspace
WHERE project_id = :project_id;
