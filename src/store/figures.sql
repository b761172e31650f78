-- SPDX-License-Identifier: ISC

-- @open
FORCE INDEX (deployment_status)

-- Counts unfinished deployments only, which is cheap at any number.
-- figures_read() -> struct figures
SELECT (SELECT COUNT(*) FROM deployment @open WHERE status = 'pending') AS pending,
	(SELECT COUNT(*) FROM deployment @open WHERE status = 'running') AS running,
	COALESCE((
		SELECT GREATEST(
			TIMESTAMPDIFF(SECOND, created_at, CURRENT_TIMESTAMP(3)), 0)
		FROM deployment @open
		WHERE status = 'pending' AND turn <> 2
		ORDER BY id LIMIT 1), 0) AS oldest_seconds;
