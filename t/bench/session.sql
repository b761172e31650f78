-- SPDX-License-Identifier: ISC
SELECT u.id, u.username, IF(t.role + 0 < u.role + 0, t.role, u.role), t.id,
    t.last_used_at, t.expires_at
FROM api_token t JOIN user u ON u.id = t.user_id
WHERE t.hash = ? AND t.valid = 1 AND u.valid = 1 AND u.status = 'active'
    AND (t.expires_at IS NULL OR t.expires_at > CURRENT_TIMESTAMP(3))
