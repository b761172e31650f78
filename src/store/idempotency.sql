-- SPDX-License-Identifier: ISC

-- idempotency_find(struct idempotency) -> struct idempotency
SELECT request_hash, deployment_id, answer
FROM idempotency
WHERE user_id = :user_id
	AND idempotency_key = :idempotency_key
	AND created_at > NOW(3) - INTERVAL 1 DAY;

-- An expired row that has not been deleted yet.
-- idempotency_expire(struct idempotency)
DELETE FROM idempotency
WHERE user_id = :user_id
	AND idempotency_key = :idempotency_key
	AND created_at <= NOW(3) - INTERVAL 1 DAY;

-- idempotency_save(struct idempotency)
INSERT INTO idempotency (user_id, idempotency_key, request_hash, deployment_id, answer)
VALUES (:user_id, :idempotency_key, :request_hash, :deployment_id, :answer);

-- idempotency_old() -> struct found
SELECT COUNT(*) AS n
FROM (SELECT 1 FROM idempotency WHERE created_at < NOW(3) - INTERVAL 1 DAY LIMIT 1) t;

-- idempotency_tidy()
DELETE FROM idempotency
WHERE created_at < NOW(3) - INTERVAL 1 DAY
ORDER BY created_at LIMIT 500;
