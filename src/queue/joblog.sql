-- SPDX-License-Identifier: ISC

-- joblog_state(struct log_args) -> struct joblog_state
SELECT IF(d.finished_at IS NOT NULL, d.log_size, COALESCE((
			SELECT c.start + c.length
			FROM log_chunk c
			WHERE c.deployment_id = d.id
			ORDER BY c.start DESC LIMIT 1), 0)) AS size,
	d.finished_at IS NOT NULL AS complete, d.log_pruned AND d.log_size > 0 AS pruned
FROM deployment d
WHERE d.id = :id;

-- Where the first gap begins, or the end. A chunk is behind a gap if all
-- before it end earlier.
-- joblog_stored(struct log_args) -> struct log_args
SELECT COALESCE((
		SELECT MIN(t.reached)
		FROM (
			SELECT c.start, COALESCE(MAX(c.start + c.length) OVER (
					ORDER BY c.start
					ROWS BETWEEN UNBOUNDED PRECEDING
						AND 1 PRECEDING), 0) AS reached
			FROM log_chunk c
			WHERE c.deployment_id = :id) t
		WHERE t.start > t.reached), (
		SELECT MAX(c.start + c.length)
		FROM log_chunk c
		WHERE c.deployment_id = :id), 0) AS length;

-- A chunk that contains a position, and the chunks after that chunk. Chunks
-- can overlap, so the last one before the position need not be it.
-- joblog_chunk_at(struct log_args) -> struct chunk
SELECT start, length, packed, data
FROM log_chunk
WHERE deployment_id = :id AND start > :start AND start <= :end AND start + length > :end
ORDER BY start DESC LIMIT 1;

-- joblog_chunks_after(struct log_args) -> struct chunk
SELECT start, length, packed, data
FROM log_chunk
WHERE deployment_id = :id AND start > :start AND start < :end
ORDER BY start LIMIT 256;

-- Small chunks of a finished log, to be compressed.
-- joblog_plain_from(struct log_args) -> struct chunk
SELECT start, length, written_at
FROM log_chunk
WHERE deployment_id = :id AND start >= :start AND packed = 0
ORDER BY start LIMIT 1000;

-- A stored chunk stays unless the new one is longer: the same bytes may come
-- again with more after them. The lock is exclusive, because the end of the
-- deployment often follows in the same transaction.
-- joblog_append(struct log_args)
INSERT INTO log_chunk (deployment_id, start, length, packed, data, breaks, written_at)
SELECT d.id, :start, :length, 0, :data, :breaks, NOW(3)
FROM deployment d
WHERE d.id = :id AND d.epoch = :epoch AND d.status = 'running'
FOR UPDATE
ON DUPLICATE KEY UPDATE
	data = IF(VALUES(length) > log_chunk.length, VALUES(data), log_chunk.data),
	breaks = IF(VALUES(length) > log_chunk.length, VALUES(breaks), log_chunk.breaks),
	length = GREATEST(VALUES(length), log_chunk.length);

-- No row if the log was pruned meanwhile.
-- joblog_hold(struct log_args) -> struct log_args
SELECT id FROM deployment WHERE id = :id AND log_pruned = 0 LOCK IN SHARE MODE;

-- joblog_drop_span(struct log_args)
DELETE FROM log_chunk WHERE deployment_id = :id AND start >= :start AND start < :end;

-- joblog_insert_packed(struct log_args)
INSERT INTO log_chunk (deployment_id, start, length, packed, data, breaks, written_at)
VALUES (:id, :start, :length, 1, :data, :breaks, :written_at);

-- joblog_oldest(struct log_args) -> struct old_log
SELECT id, log_size, :days > 0 AND finished_at < NOW(3) - INTERVAL :days DAY AS is_old
FROM deployment FORCE INDEX (deployment_log)
WHERE log_pruned = 0 AND finished_at IS NOT NULL
ORDER BY finished_at, log_size, id LIMIT 100;

-- joblog_total() -> struct total
SELECT CAST(COALESCE(SUM(log_size), 0) AS SIGNED) AS n
FROM deployment FORCE INDEX (deployment_log)
WHERE log_pruned = 0 AND finished_at IS NOT NULL;

-- joblog_drop_all(struct log_args)
DELETE FROM log_chunk WHERE deployment_id = :id;

-- joblog_mark_pruned(struct log_args)
UPDATE deployment SET log_pruned = 1 WHERE id = :id AND finished_at IS NOT NULL;
