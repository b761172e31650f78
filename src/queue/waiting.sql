-- SPDX-License-Identifier: ISC

-- @ahead
COUNT(*) AS n, COALESCE(MIN(IF(turn = 0, id, NULL)), MIN(id), 0) AS first,
COALESCE((SELECT id FROM deployment WHERE running_project = :project_id), 0) AS running

-- waiting_ahead(struct place) -> struct waiting_queue
SELECT @ahead
FROM deployment FORCE INDEX (deployment_turn)
WHERE status = 'pending'
	AND ((turn = 0 AND project_id = :project_id AND id < :rollbacks)
		OR (turn = 1 AND project_id = :project_id AND id < :others));

-- waiting_queue(struct deployment) -> struct waiting_queue
SELECT @ahead, EXISTS (SELECT 1 FROM deploy_lock) AS locks
FROM deployment FORCE INDEX (deployment_turn)
WHERE status = 'pending' AND turn IN (0, :turn) AND project_id = :project_id;

-- Once the pause for its Git server is over, a deployment waits for a runner.
-- waiting_seen(struct deployment) -> struct waiting
SELECT w.reason, w.detail
FROM deployment_wait w
	JOIN deployment d ON d.id = w.deployment_id
WHERE w.deployment_id = :id
	AND IF(w.reason = 'git_server', d.not_before > NOW(3) - INTERVAL 5 SECOND,
		w.seen_at > NOW(3) - INTERVAL 1 MINUTE);

-- waiting_crowd(struct deployment) -> struct crowd
SELECT TIMESTAMPDIFF(SECOND, d.created_at, NOW(3)) AS age,
	(SELECT COUNT(*) FROM deployment r WHERE r.status = 'running') AS running,
	(SELECT COUNT(*)
		FROM runner w
		WHERE @runner_online AND @runner_fits(w.name, w.labels)) AS runners,
	(SELECT COUNT(*)
		FROM runner w
		WHERE @runner_online
			AND @runner_well
			AND @runner_fits(w.name, w.labels)) AS well,
	(SELECT CONCAT(w.name, ': ', w.sick_reason)
		FROM runner w
		WHERE @runner_online
			AND NOT @runner_well
			AND @runner_fits(w.name, w.labels)
		ORDER BY w.name LIMIT 1) AS sick,
	e.runner, e.name AS environment
FROM deployment d
	LEFT JOIN environment e ON e.id = d.environment_id
WHERE d.id = :id;

-- waiting_record(struct waiting_note)
INSERT INTO deployment_wait (deployment_id, reason, detail, runner, seen_at)
VALUES (:deployment_id, :reason, :detail, :runner, NOW(3))
ON DUPLICATE KEY UPDATE reason = VALUES(reason), detail = VALUES(detail),
	runner = VALUES(runner), seen_at = VALUES(seen_at);

-- waiting_old() -> struct found
SELECT COUNT(*) AS n
FROM (SELECT 1 FROM deployment_wait WHERE seen_at < NOW(3) - INTERVAL 1 HOUR LIMIT 1) t;

-- waiting_tidy()
DELETE FROM deployment_wait
WHERE seen_at < NOW(3) - INTERVAL 1 HOUR
ORDER BY seen_at LIMIT 1000;
