-- SPDX-License-Identifier: ISC

-- @select
SELECT id, project_id, environment_id, kind, target, events, active, last_error,
	last_delivered_at, valid, created_at, updated_at, created_by, version
FROM notifier

-- notifier_by_id(struct notifier) -> struct notifier
@select WHERE valid = 1 AND id = :id;

-- notifier_lock(struct notifier) -> struct notifier
@select WHERE valid = 1 AND id = :id FOR UPDATE;

-- notifier_hold(struct notifier) -> struct notifier
SELECT id FROM notifier WHERE id = :id FOR UPDATE;

-- notifier_page(struct notifier_query) -> struct notifier
@select WHERE valid = 1 ORDER BY id LIMIT :limit OFFSET :offset;

-- notifier_count() -> struct page_count
SELECT COUNT(*) AS n FROM notifier WHERE valid = 1;

-- notifier_page_of(struct notifier_query) -> struct notifier
@select
WHERE valid = 1 AND project_id = :project_id
ORDER BY id LIMIT :limit OFFSET :offset;

-- notifier_count_of(struct notifier_query) -> struct page_count
SELECT COUNT(*) AS n FROM notifier WHERE valid = 1 AND project_id = :project_id;

-- notifier_insert(struct notifier)
INSERT INTO notifier (
	id, project_id, environment_id, kind, target, events, active, created_by)
VALUES (
	DEFAULT, :project_id, :environment_id, :kind, :target, :events, :active,
	:created_by);

-- notifier_update(struct notifier)
UPDATE notifier FORCE INDEX (PRIMARY)
SET version = version + 1, environment_id = :environment_id, target = :target,
	events = :events, active = :active, updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- notifier_delete(struct notifier)
UPDATE notifier SET @deleted WHERE id = :id AND valid = 1;

-- notifier_drop_notices(struct notifier)
DELETE FROM notice WHERE notifier_id = :id;

-- notifier_with_project_drop_notices(struct notifier)
DELETE m
FROM notice m
	JOIN notifier n ON n.id = m.notifier_id
WHERE n.valid = 1 AND n.project_id = :project_id;

-- notifier_with_project_delete(struct notifier)
UPDATE notifier SET @deleted WHERE project_id = :project_id AND valid = 1;

-- notifier_with_environment_drop_notices(struct notifier)
DELETE m
FROM notice m
	JOIN notifier n ON n.id = m.notifier_id
WHERE n.valid = 1 AND n.environment_id = :environment_id;

-- notifier_with_environment_delete(struct notifier)
UPDATE notifier SET @deleted WHERE environment_id = :environment_id AND valid = 1;

-- notifier_secret_put(struct sealing)
UPDATE notifier
SET old_secret = secret, rotated_at = IF(secret IS NULL, NULL, NOW(3)), secret = :secret
WHERE id = :id;

-- notifier_result(struct notifier)
UPDATE notifier
SET last_delivered_at = IF(:last_error IS NULL, NOW(3), last_delivered_at),
	last_error = :last_error
WHERE id = :id AND valid = 1;

-- notifier_disable(struct notifier)
UPDATE notifier
SET active = 0, last_error = :last_error, version = version + 1,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;
