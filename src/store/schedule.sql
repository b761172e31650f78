-- SPDX-License-Identifier: ISC

-- @schedule_checked
100

-- @with(id, failures)
CASE (SELECT d.status FROM deployment d WHERE d.id = @id)
	WHEN 'success' THEN 0
	WHEN 'failed' THEN @failures + 1
	WHEN 'interrupted' THEN @failures + 1
	ELSE @failures
END

-- Failed deployments in a row, with the last one, and with the one that ran
-- when that was created.
-- @failures
@with(c.last_deployment_id, (@with(c.running_deployment_id, c.failures)))

-- @select
SELECT c.id, c.project_id, c.pipeline_id, c.environment_id, c.name, c.cron, c.timezone,
	c.branch, c.variables, c.active, c.next_at, c.last_deployment_id, c.last_error,
	c.valid, c.created_at, c.updated_at, c.created_by, c.version,
	@failures AS failures, NOW(3) AS now
FROM schedule c

-- schedule_by_id(struct schedule) -> struct schedule
@select WHERE c.id = :id AND c.valid = 1;

-- schedule_lock(struct schedule) -> struct schedule
SELECT id FROM schedule WHERE id = :id AND valid = 1 FOR UPDATE;

-- schedule_page(struct child_args) -> struct schedule
@select WHERE c.valid = 1 ORDER BY c.name, c.id LIMIT :limit OFFSET :offset;

-- schedule_page_by(struct child_args) -> struct schedule
@select
WHERE c.valid = 1 AND c.project_id IN @member_projects
ORDER BY c.name, c.id LIMIT :limit OFFSET :offset;

-- schedule_page_of(struct child_args) -> struct schedule
@select
WHERE c.valid = 1 AND c.project_id = :project_id
ORDER BY c.name, c.id LIMIT :limit OFFSET :offset;

-- schedule_count() -> struct page_count
SELECT COUNT(*) AS n FROM schedule WHERE valid = 1;

-- schedule_count_by(struct child_args) -> struct page_count
SELECT COUNT(*) AS n FROM schedule WHERE valid = 1 AND project_id IN @member_projects;

-- schedule_count_of(struct child_args) -> struct page_count
SELECT COUNT(*) AS n FROM schedule WHERE valid = 1 AND project_id = :project_id;

-- schedule_same_name(struct child_args) -> struct page_count
@child_same_name(schedule);

-- schedule_delete_one(struct child_args)
UPDATE schedule SET @deleted WHERE id = :id AND valid = 1;

-- schedule_delete_of(struct child_args)
UPDATE schedule SET @deleted WHERE project_id = :project_id AND valid = 1;

-- schedule_insert(struct schedule)
INSERT INTO schedule (
	id, project_id, pipeline_id, environment_id, name, cron, timezone, branch,
	variables, active, next_at, created_by)
VALUES (
	DEFAULT, :project_id, :pipeline_id, :environment_id, :name, :cron, :timezone,
	:branch, :variables, :active, :next_at, :created_by);

-- schedule_update(struct schedule)
UPDATE schedule FORCE INDEX (PRIMARY)
SET version = version + 1, pipeline_id = :pipeline_id, environment_id = :environment_id,
	name = :name, cron = :cron, timezone = :timezone, branch = :branch,
	variables = :variables, active = :active, next_at = :next_at,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- schedule_left() -> struct left
SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), MIN(next_at)) DIV 1000 AS ms
FROM schedule
WHERE valid = 1 AND active = 1;

-- schedule_due(struct schedule) -> struct schedule
@select
WHERE c.valid = 1 AND c.active = 1 AND c.next_at <= NOW(3) AND c.id > :id
ORDER BY c.id LIMIT 1;

-- schedule_later(struct schedule) -> struct schedule
@select
WHERE c.valid = 1 AND c.active = 1 AND c.next_at > NOW(3) AND c.id > :id
ORDER BY c.id LIMIT @schedule_checked;

-- schedule_clock() -> struct schedule
SELECT NOW(3) AS now;

-- schedule_take(struct taking)
UPDATE schedule
SET next_at = :next
WHERE id = :id
	AND version = :version
	AND next_at = :next_at
	AND active = 1
	AND valid = 1;

-- schedule_unfired(struct schedule)
UPDATE schedule
SET last_error = :last_error
WHERE id = :id AND version = :version AND next_at = :next_at;

-- schedule_rejected(struct schedule)
UPDATE schedule SET last_error = :last_error WHERE id = :id;

-- In this order: each expression reads what those before it have set.
-- schedule_fired(struct schedule)
UPDATE schedule c
SET c.failures = @failures,
	c.running_deployment_id = (
		SELECT MAX(d.id)
		FROM deployment d
		WHERE d.status = 'running'
			AND d.id IN (c.running_deployment_id, c.last_deployment_id)),
	c.last_deployment_id = :last_deployment_id, c.last_error = NULL
WHERE c.id = :id;
