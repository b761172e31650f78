-- SPDX-License-Identifier: ISC

-- Only whether it differs from that of the last job matters, so it can start
-- again from 0.
-- cache_empty(struct cache_args)
UPDATE project
SET cache_generation = IF(cache_generation < 2147483647, cache_generation + 1, 0)
WHERE id = :project_id;
