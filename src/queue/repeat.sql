-- SPDX-License-Identifier: ISC

-- @content(d)
IF(@d.`trigger` = 'rollback', @d.retry_of, @d.id)

-- A rollback of the environment in that state; 0 = none.
-- @rollback(status)
COALESCE((
	SELECT MIN(r.id)
	FROM deployment r
	WHERE r.status = @status
		AND r.turn = 0
		AND r.project_id = e.project_id
		AND r.environment_id = e.id), 0)

-- repeat_targets(struct place) -> struct repeat_targets
SELECT COALESCE(@content(l), 0) AS live, COALESCE(@content(b), 0) AS `before`,
	@rollback('pending') AS pending, @rollback('running') AS running
FROM environment e
	LEFT JOIN deployment l ON l.id = e.live_deployment
	LEFT JOIN deployment o ON o.id = @content(l)
	LEFT JOIN deployment b ON b.id = o.replaced
WHERE e.id = :id AND e.valid = 1;
