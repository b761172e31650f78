-- SPDX-License-Identifier: ISC

-- submodule_set_by(struct found)
UPDATE project SET submodules_by = :user_id WHERE id = :is.project_id;

-- submodule_forget(struct found)
DELETE FROM git_submodule WHERE project_id = :is.project_id;

-- submodule_find(struct submodule) -> struct submodule
SELECT project_id, server, path, repo_id
FROM git_submodule
WHERE project_id = :project_id AND path = :path AND server = :server;

-- submodule_confirm(struct found)
INSERT INTO git_submodule (project_id, server, path, repo_id)
SELECT id, :is.server, :is.path, :is.repo_id
FROM project
WHERE id = :is.project_id AND submodules_by = :user_id
ON DUPLICATE KEY UPDATE server = VALUES(server), repo_id = VALUES(repo_id);
