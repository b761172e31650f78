-- SPDX-License-Identifier: ISC

-- @logline_batch
1000

-- logline_chunks(struct line_args) -> struct line_chunk
SELECT start, length, breaks, written_at
FROM log_chunk
WHERE deployment_id = :id AND start > :after
ORDER BY start LIMIT @logline_batch;

-- logline_steps(struct line_args) -> struct line_step
SELECT position, log_offset, started_at
FROM deployment_step
WHERE deployment_id = :id AND log_offset IS NOT NULL
ORDER BY log_offset, position;
