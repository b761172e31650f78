-- SPDX-License-Identifier: ISC

-- @gone
seen_at < NOW(3) - INTERVAL 7 DAY

-- runner_page(struct runner_query) -> struct runner
SELECT w.name, w.labels, w.version, w.slots,
	(SELECT COUNT(*)
		FROM deployment d
		WHERE d.status = 'running' AND d.runner = w.name) AS running,
	w.started_at, w.seen_at, @runner_online AS online,
	w.sick_since IS NOT NULL AS sick, w.sick_since, w.sick_reason
FROM runner w
ORDER BY w.name LIMIT :limit OFFSET :offset;

-- Counts only the deployments of the member's projects.
-- runner_page_by(struct runner_query) -> struct runner
SELECT w.name, w.labels, w.version, w.slots,
	(SELECT COUNT(*)
		FROM deployment d
		WHERE d.status = 'running'
			AND d.runner = w.name
			AND d.project_id IN @member_projects) AS running,
	w.started_at, w.seen_at, @runner_online AS online,
	w.sick_since IS NOT NULL AS sick, w.sick_since, w.sick_reason
FROM runner w
ORDER BY w.name LIMIT :limit OFFSET :offset;

-- runner_all() -> struct page_count
SELECT COUNT(*) AS n FROM runner;

-- runner_count() -> struct runner_count
SELECT COUNT(IF(@runner_online, 1, NULL)) AS online, COUNT(*) AS total,
	COUNT(IF(@runner_online AND NOT @runner_well, 1, NULL)) AS sick
FROM runner w;

-- runner_report(struct runner)
INSERT INTO runner (
	name, labels, version, slots, started_at, seen_at, sick_since, sick_reason)
VALUES (
	:name, :labels, :version, :slots, :started_at, NOW(3),
	IF(:sick_reason IS NULL, NULL, NOW(3)), :sick_reason)
ON DUPLICATE KEY UPDATE labels = VALUES(labels), version = VALUES(version),
	slots = VALUES(slots), started_at = VALUES(started_at),
	seen_at = VALUES(seen_at), stopped = 0,
	sick_since = IF(VALUES(sick_since) IS NULL, NULL,
		COALESCE(sick_since, VALUES(sick_since))),
	sick_reason = VALUES(sick_reason);

-- runner_recall(struct runner) -> struct runner_past
SELECT NOW(3) AS now,
	(SELECT w.sick_reason FROM runner w WHERE w.name = :name) AS sick_reason;

-- runner_withdraw(struct runner)
UPDATE runner SET stopped = 1 WHERE name = :name AND started_at = :started_at;

-- runner_old() -> struct page_count
SELECT COUNT(*) AS n FROM runner WHERE @gone;

-- runner_tidy()
DELETE FROM runner WHERE @gone;
