-- SPDX-License-Identifier: ISC

-- Checks first: on a cluster, even a DELETE without rows costs a round trip.
-- @old
created_at < NOW(3) - INTERVAL :days DAY

-- hook_secret_find(struct hook_secret) -> struct hook_secret
SELECT h.project_id, h.secret, h.made_by, u.id AS deployer, h.updated_at
FROM hook_secret h
	JOIN project p ON p.id = h.project_id
	LEFT JOIN user u ON u.id = h.made_by AND @member_deploys(h.project_id)
WHERE h.project_id = :project_id AND p.valid = 1;

-- hook_secret_put(struct hook_secret)
REPLACE INTO hook_secret (project_id, secret, made_by)
VALUES (:project_id, :secret, :made_by);

-- hook_delivery_find(struct hook_delivery) -> struct hook_delivery
SELECT project_id, delivery_hash, deployments, created_at
FROM hook_delivery
WHERE project_id = :project_id AND delivery_hash = :delivery_hash;

-- hook_delivery_insert(struct hook_delivery)
INSERT INTO hook_delivery (project_id, delivery_hash, deployments)
VALUES (:project_id, :delivery_hash, :deployments);

-- hook_old(struct hook_age) -> struct found
SELECT COUNT(*) AS n FROM (SELECT 1 FROM hook_delivery WHERE @old LIMIT 1) t;

-- hook_tidy(struct hook_age)
DELETE FROM hook_delivery WHERE @old ORDER BY created_at LIMIT 500;
