-- SPDX-License-Identifier: ISC

-- @sum(column)
CAST(SUM(@column) AS SIGNED) AS @column

-- total_ended_all(struct total_args)
@total_into COUNT(*), SUM(t.took_ms), SUM(t.waited_ms), SUM(t.log_size)
FROM @total_ended(deployment_queue,
	project_id = :id AND status = :status AND reason = :reason)
GROUP BY t.status, t.reason, took, waited
@total_add;

-- total_notice(struct total_args)
INSERT INTO notice_total (kind, result, shard, n)
VALUES (:kind, :result, :shard, 1)
ON DUPLICATE KEY UPDATE n = n + 1;

-- total_deployments() -> struct deployment_total
SELECT status, reason, took, waited, @sum(n), @sum(took_ms), @sum(waited_ms),
	@sum(log_bytes)
FROM deployment_total
GROUP BY status, reason, took, waited;

-- total_notices() -> struct notice_total
SELECT kind, result, @sum(n) FROM notice_total GROUP BY kind, result;
