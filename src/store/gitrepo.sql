-- SPDX-License-Identifier: ISC

-- gitrepo_find(struct git_repo) -> struct git_repo
SELECT project_id, server, repository, repo_id, path
FROM git_repo
WHERE project_id = :project_id AND server = :server AND repository = :repository;

-- gitrepo_put(struct git_repo)
INSERT INTO git_repo (project_id, server, repository, repo_id, path)
VALUES (:project_id, :server, :repository, :repo_id, :path)
ON DUPLICATE KEY UPDATE
	confirmed_by = IF(server = VALUES(server) AND repository = VALUES(repository),
		confirmed_by, NULL),
	path = IF(server = VALUES(server) AND repository = VALUES(repository)
		AND repo_id <> VALUES(repo_id), path, VALUES(path)),
	repo_id = IF(server = VALUES(server) AND repository = VALUES(repository),
		repo_id, VALUES(repo_id)),
	server = VALUES(server), repository = VALUES(repository);

-- gitrepo_setter(struct git_repo) -> struct git_setter
SELECT p.repository_by AS set_by, g.repo_id, g.path, g.confirmed_by
FROM project p
	LEFT JOIN git_repo g
		ON g.project_id = p.id
			AND g.server = :server
			AND g.repository = :repository
WHERE p.id = :project_id;

-- gitrepo_confirm(struct user_repo)
UPDATE git_repo
SET confirmed_by = :user_id
WHERE project_id = :project_id
	AND server = :server
	AND repository = :repository
	AND repo_id = :repo_id;

-- gitrepo_set_by(struct user_repo)
UPDATE project SET repository_by = :user_id WHERE id = :project_id;

-- commits_find(struct branch_commits) -> struct branch_commits
SELECT project_id, branch, commits, checked_at
FROM branch_commits
WHERE project_id = :project_id AND branch = :branch;

-- commits_put(struct branch_commits)
INSERT INTO branch_commits (project_id, branch, commits, checked_at)
VALUES (:project_id, :branch, :commits, NOW(3))
ON DUPLICATE KEY UPDATE commits = VALUES(commits), checked_at = NOW(3);

-- commits_forget(struct branch_commits)
DELETE FROM branch_commits WHERE project_id = :project_id;

-- gitrepo_forget(struct git_repo)
DELETE FROM git_repo WHERE project_id = :project_id;

-- gitrepo_follow(struct moved)
UPDATE project p
	JOIN git_repo g
		ON g.project_id = p.id
			AND g.server = :server
			AND g.repository = p.repository
			AND g.repo_id = :repo_id
SET p.repository = :address, g.repository = :address, p.version = p.version + 1,
	p.updated_at = NOW(3)
WHERE p.id = :project_id AND p.repository = :repository AND p.valid = 1;

-- gitrepo_follow_note(struct moved)
INSERT INTO audit (
	user_id, username, via, token_name, address, action, object_type, object_id,
	project_id, changes)
VALUES (
	:by.user_id, :by.username, :by.via,
	(SELECT name FROM api_token WHERE id = :by.token_id), :by.address,
	'followRepository', 'project', :project_id, :project_id,
	JSON_ARRAY(
		JSON_OBJECT('name', 'repository', 'from', :repository, 'to', :address)));
