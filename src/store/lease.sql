-- SPDX-License-Identifier: ISC

-- lease_left() -> struct left
SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), lease_until) DIV 1000 AS ms
FROM deployment
WHERE status = 'running' AND lease_until IS NOT NULL
ORDER BY lease_until LIMIT 1;

-- The write of a renewal, on no row.
-- lease_renew_none()
UPDATE deployment
SET owner = owner, lease_until = lease_until
WHERE id = 0 AND status = 'running';
