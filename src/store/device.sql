-- SPDX-License-Identifier: ISC

-- @device_seconds
900

-- @device_interval
5

-- @live
expires_at > NOW(3)

-- One host of IPv6 has a whole network of addresses.
-- device_count_here(struct device_from) -> struct device_found
SELECT COUNT(*) AS n
FROM device
WHERE (address = :address
	OR LEFT(INET6_ATON(address), 8) = LEFT(INET6_ATON(:network), 8))
	AND @live;

-- device_count_all() -> struct device_found
SELECT COUNT(*) AS n FROM device WHERE @live;

-- device_insert(struct device)
INSERT INTO device (hash, user_code, name, address, expires_at, poll_seconds)
VALUES (:hash, :user_code, :name, :address, NOW(3) + INTERVAL @device_seconds SECOND,
	@device_interval);

-- device_pending(struct device) -> struct device
SELECT id, user_code, name, address, created_at, expires_at
FROM device
WHERE user_code = :user_code AND status = 'pending' AND @live;

-- device_decide(struct device)
UPDATE device
SET status = :status, user_id = :user_id, token_id = :token_id, role = :role,
	token_expires_at = :token_expires_at
WHERE id = :id AND status = 'pending' AND @live;

-- device_find(struct device) -> struct device_poll
SELECT d.id, d.status, d.name,
	COALESCE(d.polled_at > NOW(3) - INTERVAL d.poll_seconds SECOND, 0) AS is_early,
	COALESCE(u.id, 0) AS user_id, u.username,
	u.git_refused_at IS NOT NULL AS is_refused,
	d.token_id IS NOT NULL AND t.id IS NULL AS is_revoked, d.role,
	d.token_expires_at
FROM device d
	LEFT JOIN user u ON u.id = d.user_id AND u.valid = 1 AND u.status = 'active'
	LEFT JOIN api_token t
		ON t.id = d.token_id
			AND t.valid = 1
			AND (t.expires_at IS NULL OR t.expires_at > NOW(3))
WHERE d.hash = :hash AND d.expires_at > NOW(3);

-- device_polled(struct device_poll)
UPDATE device
SET polled_at = NOW(3), poll_seconds = poll_seconds + :is_early * @device_interval
WHERE id = :id AND status = 'pending';

-- device_take(struct device_poll)
DELETE FROM device WHERE id = :id AND status = 'approved' AND @live;

-- device_expired() -> struct device_found
SELECT COUNT(*) AS n FROM (SELECT 1 FROM device WHERE expires_at <= NOW(3) LIMIT 1) t;

-- device_tidy()
DELETE d
FROM (
		SELECT id
		FROM device FORCE INDEX (device_end)
		WHERE expires_at <= NOW(3)
		ORDER BY expires_at LIMIT 5000) o
	STRAIGHT_JOIN device d FORCE INDEX (PRIMARY) ON d.id = o.id;
