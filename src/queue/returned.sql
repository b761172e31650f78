-- SPDX-License-Identifier: ISC

-- @old
returned_at < NOW(3) - INTERVAL 7 DAY

-- returned_count(struct returned_args) -> struct returned
BEGIN NOT ATOMIC
	INSERT INTO deployment_return (deployment_id, n, runner, returned_at)
	VALUES (:deployment_id, 1, :runner, NOW(3))
	ON DUPLICATE KEY UPDATE n = n + 1, runner = VALUES(runner),
		returned_at = VALUES(returned_at);
	SELECT t.n, EXISTS (
			SELECT 1
			FROM runner w
			WHERE @runner_online
				AND @runner_well
				AND w.slots > 0
				AND w.name <> :runner
				AND @runner_fits(w.name, w.labels)) AS others
	FROM deployment_return t
		JOIN deployment d ON d.id = t.deployment_id
		LEFT JOIN environment e ON e.id = d.environment_id
	WHERE t.deployment_id = :deployment_id;
END;

-- returned_old() -> struct page_count
SELECT COUNT(*) AS n FROM (SELECT 1 FROM deployment_return WHERE @old LIMIT 1) t;

-- returned_tidy()
DELETE FROM deployment_return WHERE @old ORDER BY returned_at LIMIT 1000;
