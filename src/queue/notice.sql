-- SPDX-License-Identifier: ISC

-- Events of the deployment `d`, each once.
-- @want(notifier, event, user)
INSERT INTO notice (
	notifier_id, event, project_id, environment_id, deployment_id, user_id)
SELECT @notifier, @event, d.project_id, d.environment_id, d.id, @user

-- @subscribes(event)
JSON_CONTAINS(n.events, JSON_QUOTE(@event))

-- The deployment to the same place that ended before.
-- @before
(
	SELECT b.id
	FROM deployment b
	WHERE b.pipeline_id = d.pipeline_id
		AND b.id < d.id
		AND b.environment_id <=> d.environment_id
		AND b.status IN ('success', 'failed', 'interrupted')
	ORDER BY b.id DESC LIMIT 1)

-- @failed_before
EXISTS (SELECT 1 FROM deployment o WHERE o.id = @before AND o.status <> 'success')

-- @once
ON DUPLICATE KEY UPDATE notice.id = notice.id

-- The user `u`, unless notifiers send messages about the project.
-- @to_user
AND u.valid = 1
	AND u.status = 'active'
	AND u.email LIKE '%@%'
	AND @sees(u, d.project_id)
WHERE d.id = :id
	AND NOT EXISTS (
		SELECT 1
		FROM notifier n
		WHERE n.valid = 1
			AND (n.project_id IS NULL OR n.project_id = d.project_id))
@once

-- @old
next_at IS NULL AND created_at < NOW(3) - INTERVAL :days DAY

-- Usually there is none, and the next statement costs ten times as much.
-- notice_any(struct notice_args) -> struct number
SELECT @notice_any(:id) AS n;

-- notice_want(struct notice_args)
@want(n.id, v.event, NULL)
FROM JSON_TABLE(:events, '$[*]' COLUMNS (event VARCHAR(30) PATH '$')) v
	JOIN deployment d ON d.id = :id
	JOIN notifier n
		ON n.valid = 1
			AND n.active = 1
			AND (n.project_id IS NULL OR n.project_id = d.project_id)
			AND (n.environment_id IS NULL
				OR n.environment_id = d.environment_id)
WHERE @subscribes(v.event)
	AND CASE v.event
		WHEN 'recovered' THEN @failed_before
		WHEN 'succeeded' THEN NOT (@subscribes('recovered') AND @failed_before)
		ELSE 1
	END
ORDER BY v.event = 'started' DESC
@once;

-- notice_mail_failure(struct notice_args)
@want(0, 'failed', u.id)
FROM deployment d
	JOIN user u ON u.id = d.created_by @to_user;

-- notice_mail_recovery(struct notice_args)
@want(0, 'recovered', u.id)
FROM deployment d
	JOIN deployment o ON o.id = @before AND o.status <> 'success'
	JOIN user u ON u.id = o.created_by @to_user;

-- notice_want_lock(struct notice_args)
INSERT INTO notice (notifier_id, event, project_id, environment_id, user_id, text)
SELECT n.id, 'locked', NULLIF(:project_id, 0), NULLIF(:environment_id, 0), :user_id,
	:text
FROM notifier n
WHERE n.valid = 1
	AND n.active = 1
	AND (:project_id = 0 OR n.project_id IS NULL OR n.project_id = :project_id)
	AND (:environment_id = 0
		OR n.environment_id IS NULL
		OR n.environment_id = :environment_id)
	AND @subscribes('locked');

-- notice_want_test(struct notice_args)
INSERT INTO notice (notifier_id, event, project_id, environment_id, user_id)
SELECT n.id, 'test', n.project_id, n.environment_id, :user_id
FROM notifier n
WHERE n.id = :notifier_id;

-- A delivered notice stays for a while, so that its event is not sent again.
-- notice_close(struct notice_args)
UPDATE notice SET next_at = NULL, held_until = NULL WHERE id = :id;

-- notice_later(struct notice_args)
UPDATE notice
SET held_until = NULL, next_at = NOW(3) + INTERVAL :seconds SECOND
WHERE id = :id AND held_until <=> :held_until;

-- notice_postpone(struct notice_args)
UPDATE notice
SET held_until = NULL, next_at = NOW(3) + INTERVAL :seconds SECOND
WHERE notifier_id = :notifier_id
	AND ((id = :id AND held_until <=> :held_until)
		OR (COALESCE(held_until <= NOW(3), 1)
			AND next_at < NOW(3) + INTERVAL :seconds SECOND));

-- notice_old(struct notice_args) -> struct number
SELECT COUNT(*) AS n FROM (SELECT 1 FROM notice WHERE @old LIMIT 1) t;

-- notice_tidy(struct notice_args)
DELETE FROM notice WHERE @old ORDER BY created_at LIMIT 500;
