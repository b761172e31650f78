-- SPDX-License-Identifier: ISC

-- @held(which)
SELECT id, epoch, owner, cancel_at IS NOT NULL AS cancel
FROM deployment FORCE INDEX (deployment_status)
WHERE status = 'running' AND @which

-- queue_renew(struct queue_args)
UPDATE deployment
SET owner = :owner, lease_until = NOW(3) + INTERVAL :lease SECOND
WHERE id = :id AND epoch = :epoch AND status = 'running';

-- queue_held(struct queue_args) -> struct held
@held(owner = :owner);

-- queue_held_by_runner(struct queue_args) -> struct held
@held(runner = :runner AND lease_until >= NOW(3));

-- queue_commit(struct queue_args)
UPDATE deployment
SET branch = NULLIF(COALESCE(:branch, branch), ''), tag = IF(:branch = '', NULL, tag),
	commit_hash = :hash, commit_message = :message, commit_read = 1
WHERE id = :id AND epoch = :epoch AND status = 'running';

-- queue_ended(struct queue_args) -> struct page_count
SELECT COUNT(*) AS n
FROM deployment
WHERE id = :id AND epoch = :epoch AND status = :status;

-- queue_hold(struct queue_args) -> struct held
SELECT id, epoch
FROM deployment
WHERE id = :id AND epoch = :epoch AND status = 'running'
FOR UPDATE;

-- queue_expired() -> struct held
SELECT id, epoch
FROM deployment FORCE INDEX (deployment_status)
WHERE status = 'running' AND lease_until < NOW(3)
ORDER BY id LIMIT 16;

-- queue_old_tokens() -> struct page_count
SELECT COUNT(*) AS n
FROM (SELECT 1 FROM commit_token WHERE created_at < NOW(3) - INTERVAL 1 DAY LIMIT 1) t;

-- Every transaction leaves one, so more of them are deleted at once.
-- queue_tidy_tokens()
DELETE FROM commit_token
WHERE created_at < NOW(3) - INTERVAL 1 DAY
ORDER BY created_at LIMIT 5000;

-- queue_pause(struct queue_args)
UPDATE deployment d
SET d.git_since = COALESCE(d.git_since, d.started_at),
	d.not_before = NOW(3) + INTERVAL :pause * 1000 MICROSECOND
WHERE d.id = :id AND d.epoch = :epoch AND d.status = 'running';
