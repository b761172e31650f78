-- SPDX-License-Identifier: ISC

-- Those that wait for approval have a turn of their own.
-- @unread
deployment d FORCE INDEX (deployment_turn)
WHERE d.status = 'pending' AND d.turn = 2 AND d.approval = 'required'
	AND d.commit_read = 0 AND CHAR_LENGTH(d.commit_hash) IN (40, 64)

-- fact_due() -> struct page_count
SELECT GREATEST(0, COALESCE(MIN(TIMESTAMPDIFF(MICROSECOND, NOW(3),
		COALESCE(d.commit_look_at, NOW(3)))) DIV 1000, 86400000)) AS n
FROM @unread;

-- fact_candidate() -> struct page_count
SELECT d.id AS n
FROM @unread AND COALESCE(d.commit_look_at, NOW(3)) <= NOW(3)
ORDER BY d.project_id, d.id LIMIT 1;

-- It is due again later, the older it is.
-- fact_take(struct page_count)
UPDATE deployment
SET commit_look_at = NOW(3) + INTERVAL LEAST(3600,
		GREATEST(15, TIMESTAMPDIFF(SECOND, created_at, NOW(3)) DIV 4)) SECOND
WHERE id = :n AND status = 'pending' AND commit_read = 0
	AND COALESCE(commit_look_at, NOW(3)) <= NOW(3);

-- fact_load(struct page_count) -> struct fact
SELECT d.id, d.project_id, p.repository, d.branch, d.tag, d.commit_hash,
	d.commit_message, COALESCE(d.read_by, d.created_by) AS read_by,
	d.read_by IS NOT NULL AND NOT EXISTS (
		SELECT 1
		FROM user u
		WHERE u.id = d.read_by AND @member_deploys(d.project_id)) AS has_left
FROM deployment d
	JOIN project p ON p.id = d.project_id
WHERE d.id = :n;

-- fact_save(struct fact)
UPDATE deployment
SET commit_message = :commit_message, commit_read = 1
WHERE id = :id AND commit_hash = :commit_hash AND commit_read = 0
	AND status = 'pending';
