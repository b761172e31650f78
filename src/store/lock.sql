-- SPDX-License-Identifier: ISC

-- @select
SELECT COALESCE(k.project_id, 0) AS project_id,
	COALESCE(k.environment_id, 0) AS environment_id,
	k.reason, COALESCE(u.username, 'a user') AS `by`, k.since, k.`until`
FROM deploy_lock k
	@lock_join_user

-- @place
@lock_place(COALESCE(:project_id, 0), COALESCE(:environment_id, 0))

-- @expired
k.`until` <= NOW(3)

-- lock_at(struct deploy_lock) -> struct deploy_lock
@select WHERE @lock_active AND k.place = @place;

-- The widest first.
-- lock_over(struct deploy_lock) -> struct deploy_lock
@select
WHERE @lock_active
	AND (k.project_id IS NULL
		OR (k.project_id = :project_id
			AND (k.environment_id IS NULL
				OR k.environment_id = :environment_id)))
ORDER BY k.project_id, k.environment_id LIMIT 1;

-- Changes of the lock of the service lock this row first; those of other locks
-- lock the project.
-- lock_queue_up()
INSERT INTO commit_token (token)
VALUES ('service lock')
ON DUPLICATE KEY UPDATE created_at = CURRENT_TIMESTAMP(3);

-- lock_put(struct deploy_lock)
REPLACE INTO deploy_lock (place, project_id, environment_id, reason, locked_by, `until`)
VALUES (
	@place, NULLIF(:project_id, 0), NULLIF(:environment_id, 0), :reason, :locked_by,
	:until);

-- lock_remove(struct deploy_lock)
DELETE k FROM deploy_lock k WHERE k.place = @place AND @lock_active;

-- lock_expired() -> struct deploy_lock
SELECT COALESCE(k.project_id, 0) AS project_id,
	COALESCE(k.environment_id, 0) AS environment_id
FROM deploy_lock k
WHERE @expired
LIMIT 100;

-- lock_expire(struct deploy_lock)
DELETE k FROM deploy_lock k WHERE k.place = @place AND @expired;

-- lock_remove_of(struct deploy_lock)
DELETE FROM deploy_lock WHERE project_id = :project_id;
