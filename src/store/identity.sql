-- SPDX-License-Identifier: ISC

-- identity_of(struct identity_args) -> struct identity
SELECT id AS user_id, forge, forge_id FROM user WHERE id = :user_id AND valid = 1;

-- identity_account(struct identity_args) -> struct account
SELECT id AS user_id, forge, role, status, valid FROM user WHERE id = :user_id;

-- identity_deleted(struct identity_args) -> struct identity_found
SELECT COUNT(*) AS n
FROM (
	SELECT 1
	FROM user
	WHERE forge = :forge AND forge_id = :forge_id AND valid = 0
	LIMIT 1) t;

-- identity_deleted_name(struct identity_args) -> struct identity_found
SELECT COUNT(*) AS n
FROM (SELECT 1 FROM user WHERE valid = 0 AND username = :login LIMIT 1) t;

-- identity_bind(struct identity_args)
UPDATE user
SET forge = :forge, forge_id = :forge_id
WHERE id = :user_id AND valid = 1 AND forge IS NULL;

-- identity_seen(struct identity_args)
UPDATE user SET last_login_at = NOW(3) WHERE id = :user_id;

-- identity_claim(struct identity_args)
INSERT IGNORE INTO admin_claim (forge, login, forge_id)
VALUES (:forge, :login, :forge_id);

-- principal_by_name(struct identity_args) -> struct principal
SELECT id AS user_id, username, role
FROM user
WHERE live_username = :login AND status = 'active';
