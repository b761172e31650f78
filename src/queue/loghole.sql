-- SPDX-License-Identifier: ISC

-- The next chunk ends a hole, and so does the end of a finished log.
-- loghole_end(struct hole_args) -> struct hole_row
SELECT LEAST(COALESCE((
			SELECT c.start
			FROM log_chunk c
			WHERE c.deployment_id = d.id AND c.start > :at
			ORDER BY c.start LIMIT 1), d.log_size, 0),
		IF(d.finished_at IS NULL, 9223372036854775807, d.log_size)) AS n
FROM deployment d
WHERE d.id = :id AND d.log_pruned = 0;

-- loghole_start(struct hole_args) -> struct hole_row
SELECT COALESCE(MAX(start + length), 0) AS n
FROM log_chunk
WHERE deployment_id = :id AND start <= :at;

-- loghole_missing(struct hole_size) -> struct hole_row
SELECT CAST(COALESCE(SUM(GREATEST(t.start - t.reached, 0)), 0) +
		GREATEST(:size - COALESCE(MAX(t.start + t.length), 0), 0) AS SIGNED) AS n
FROM (
	SELECT c.start, c.length, COALESCE(MAX(c.start + c.length) OVER (
			ORDER BY c.start
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS reached
	FROM log_chunk c
	WHERE c.deployment_id = :id) t;
