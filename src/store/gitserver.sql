-- SPDX-License-Identifier: ISC

-- gitserver_bound() -> struct gitserver_users
SELECT forge AS server, COUNT(*) AS n
FROM user
WHERE forge IS NOT NULL AND valid = 1
GROUP BY forge
ORDER BY forge;

-- gitserver_twins(struct gitserver_args) -> struct gitserver_twins
SELECT a.username AS `before`, b.username AS after, a.forge_id
FROM user a
	JOIN user b ON b.forge_id = a.forge_id
WHERE a.forge = :before AND b.forge = :after AND a.valid = 1 AND b.valid = 1
ORDER BY a.username;

-- gitserver_projects() -> struct gitserver_project
SELECT id, name, repository, valid FROM project ORDER BY id;

-- gitserver_repos(struct gitserver_args) -> struct gitserver_repo
SELECT r.repo_id, r.path
FROM git_repo r
	JOIN project p ON p.id = r.project_id
WHERE r.server = :before AND p.valid = 1
ORDER BY r.project_id DESC LIMIT 20;

-- gitserver_move_users(struct gitserver_args)
UPDATE user SET forge = :after WHERE forge = :before;

-- gitserver_move_tokens(struct gitserver_args)
UPDATE git_token SET server = :after WHERE server = :before;

-- gitserver_move_repos(struct gitserver_args)
UPDATE git_repo SET server = :after WHERE server = :before;

-- gitserver_move_submodules(struct gitserver_args)
UPDATE git_submodule SET server = :after WHERE server = :before;

-- A login becomes administrator only once: the older claim wins.
-- gitserver_drop_claims(struct gitserver_args)
DELETE n
FROM admin_claim n
	JOIN admin_claim o ON o.login = n.login
WHERE n.forge = :after AND o.forge = :before;

-- gitserver_move_claims(struct gitserver_args)
UPDATE admin_claim SET forge = :after WHERE forge = :before;

-- gitserver_move_project(struct gitserver_args)
UPDATE project
SET repository = :after, version = version + 1, updated_at = NOW(3)
WHERE id = :id AND repository = :before;

-- gitserver_move_known(struct gitserver_args)
UPDATE git_repo SET repository = :after WHERE project_id = :id AND repository = :before;
