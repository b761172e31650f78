-- SPDX-License-Identifier: ISC

-- @is_mail
(m.notifier_id = 0 OR COALESCE(n.kind = 'mail', 0))

-- What became of the last message of the notifier: enum rank in notice_claim.c.
-- @rank_failed
2

-- @rank
IF(n.last_error IS NOT NULL, @rank_failed, n.last_delivered_at IS NULL)

-- @with_notifier
FROM notice m
	LEFT JOIN notifier n ON n.id = m.notifier_id

-- While a notice of the same notifier is on its way, others wait.
-- @free
NOT EXISTS (
	SELECT 1
	FROM notice h
	WHERE h.notifier_id = m.notifier_id AND h.held_until > NOW(3))

-- @candidates(of)
SELECT MIN(m.id) AS id, m.notifier_id, MAX(@rank) AS `rank`
@with_notifier
WHERE m.next_at <= NOW(3) AND @of AND @free
GROUP BY m.notifier_id
ORDER BY `rank`, MIN(m.next_at), id

-- The place of a notice among those of its project or host, from either end.
-- @near_in(column)
LEAST(
	ROW_NUMBER() OVER (PARTITION BY f.`rank`, @column ORDER BY f.due, f.id),
	ROW_NUMBER() OVER (PARTITION BY f.`rank`, @column ORDER BY f.due DESC, f.id DESC))

-- @distance
d.in_project * d.in_host * d.in_time

-- @due(of)
SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), m.next_at) DIV 1000 AS n
@with_notifier
WHERE m.next_at IS NOT NULL AND @of AND @free
ORDER BY m.next_at LIMIT 1

-- @ids
JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) j

-- @if_ended(column)
IF(m.event IN ('started', 'waiting_for_approval'), NULL, @column)

-- One of each notifier: however many one has, the others come first.
-- notice_mails() -> struct candidate
@candidates(@is_mail) LIMIT 4;

-- notice_others() -> struct candidate
@candidates(NOT @is_mail) LIMIT 1024;

-- The first few of each rank: those that stand apart from the others by their project,
-- by their host, or by both and their time.  In each, they count from both ends, so
-- that a receiver is not behind thousands that are alike.
-- notice_spread() -> struct candidate
SELECT s.id, s.notifier_id, s.`rank`
FROM (
	SELECT d.id, d.notifier_id, d.`rank`,
		LEAST(
			ROW_NUMBER() OVER (
				PARTITION BY d.`rank`
				ORDER BY d.in_project, @distance, d.id DESC),
			ROW_NUMBER() OVER (
				PARTITION BY d.`rank`
				ORDER BY d.in_host, @distance, d.id DESC),
			ROW_NUMBER() OVER (
				PARTITION BY d.`rank`
				ORDER BY @distance, d.id DESC)) AS place
	FROM (
		SELECT f.id, f.notifier_id, f.`rank`,
			@near_in(f.project_id) AS in_project, @near_in(f.host) AS in_host,
			LEAST(
				ROW_NUMBER() OVER (
					PARTITION BY f.`rank`
					ORDER BY f.due, f.id),
				ROW_NUMBER() OVER (
					PARTITION BY f.`rank`
					ORDER BY f.due DESC, f.id DESC)) AS in_time
		FROM (
			SELECT MIN(m.id) AS id, m.notifier_id, MAX(@rank) AS `rank`,
				MIN(m.next_at) AS due, MAX(m.project_id) AS project_id,
				MAX(CRC32(SUBSTRING_INDEX(n.target, '/', 3))) AS host
			@with_notifier
			WHERE m.next_at <= NOW(3) AND NOT @is_mail AND @free
			GROUP BY m.notifier_id) f) d) s
WHERE s.`rank` < @rank_failed OR s.place = 1
ORDER BY s.place, s.`rank`, s.id DESC LIMIT 12;

-- notice_due_mail() -> struct number
@due(@is_mail);

-- notice_due_other() -> struct number
@due(NOT @is_mail);

-- notice_take(struct claim_args)
UPDATE notice m
SET attempts = attempts + 1, next_at = NOW(3) + INTERVAL :seconds SECOND,
	held_until = NOW(3) + INTERVAL :seconds SECOND
WHERE id = :id AND next_at <= NOW(3) AND @free;

-- In the order of their ids, so that two senders do not wait for each other.
-- notice_hold_some(struct claim_args) -> struct candidate
SELECT n.id AS notifier_id
FROM notifier n
WHERE n.id IN (SELECT j.id FROM @ids)
ORDER BY n.id FOR UPDATE;

-- notice_free_some(struct claim_args) -> struct candidate
SELECT m.id, m.notifier_id, @rank AS `rank`
FROM @ids
	JOIN notice m ON m.id = j.id
	LEFT JOIN notifier n ON n.id = m.notifier_id
WHERE m.next_at <= NOW(3) AND @free
ORDER BY `rank`, m.id;

-- notice_take_some(struct claim_args)
UPDATE @ids
	JOIN notice m ON m.id = j.id
SET m.attempts = m.attempts + 1, m.next_at = NOW(3) + INTERVAL :seconds SECOND,
	m.held_until = NOW(3) + INTERVAL :seconds SECOND;

-- A message that is late tells the state at the time of its event.
-- notice_load(struct claim_args) -> struct notice
SELECT m.id, m.message_id, m.notifier_id, m.event, m.text, m.attempts,
	TIMESTAMPDIFF(SECOND, m.created_at, NOW(3)) AS age, m.created_at, m.held_until,
	IF(m.notifier_id = 0, 'mail', n.kind) AS kind, n.target,
	n.project_id AS notifier_project_id, n.secret,
	IF(n.rotated_at > NOW(3) - INTERVAL 1 DAY, n.old_secret, NULL) AS old_secret,
	n.last_error, r.email, m.project_id, p.name AS project, m.environment_id,
	e.name AS environment, e.url AS environment_url, m.deployment_id, d.pipeline_id,
	l.name AS pipeline, d.branch, d.tag, d.commit_hash, d.commit_message,
	d.env_vars_sent,
	CASE m.event
		WHEN 'started' THEN 'running'
		WHEN 'waiting_for_approval' THEN 'pending'
		ELSE d.status
	END AS status,
	@if_ended(d.reason) AS reason, @if_ended(d.detail) AS detail, d.warnings,
	d.`trigger`, u.username AS user
FROM JSON_TABLE(
		:ids,
		'$[*]' COLUMNS (place FOR ORDINALITY, id BIGINT PATH '$')) j
	STRAIGHT_JOIN notice m FORCE INDEX (PRIMARY) ON m.id = j.id
	LEFT JOIN notifier n ON n.id = m.notifier_id AND n.valid = 1 AND n.active = 1
	LEFT JOIN deployment d ON d.id = m.deployment_id
	LEFT JOIN project p ON p.id = m.project_id
	LEFT JOIN environment e ON e.id = m.environment_id
	LEFT JOIN pipeline l ON l.id = d.pipeline_id
	LEFT JOIN user r
		ON m.notifier_id = 0
			AND r.id = m.user_id
			AND r.valid = 1
			AND r.status = 'active'
			AND @sees(r, m.project_id)
	LEFT JOIN user u ON u.id = IF(d.id IS NULL, m.user_id, d.created_by)
ORDER BY j.place;
