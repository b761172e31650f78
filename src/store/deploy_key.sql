-- SPDX-License-Identifier: ISC

-- deploy_key_find(struct deploy_key) -> struct deploy_key
SELECT k.project_id, k.public_key, k.fingerprint, k.sealed, k.created_by, k.created_at
FROM deploy_key k
	JOIN project p ON p.id = k.project_id
WHERE k.project_id = :project_id AND p.valid = 1;

-- deploy_key_put(struct deploy_key)
REPLACE INTO deploy_key (project_id, public_key, fingerprint, sealed, created_by)
VALUES (:project_id, :public_key, :fingerprint, :sealed, :created_by);

-- deploy_key_remove(struct deploy_key)
DELETE FROM deploy_key WHERE project_id = :project_id;
