-- SPDX-License-Identifier: ISC

-- deployment_by_id(struct deployment) -> struct deployment
SELECT @deployment_keys, d.commit_message, d.env_vars, d.env_vars_sent,
	@deployment_columns
FROM deployment d
WHERE d.id = :id;

-- deployment_steps(struct deployment) -> struct deployment_step
SELECT position, name, status, may_fail, exit_code, `signal`, started_at, finished_at,
	log_offset, log_length
FROM deployment_step
WHERE deployment_id = :id
ORDER BY position;

-- While a deployment runs, its log ends with the last chunk.  A subquery in the
-- statements of lists would cost each of them a fifth of its time.
-- deployment_log_sizes(struct log_ids) -> struct deployment
SELECT wanted AS id, COALESCE((
		SELECT c.start + c.length
		FROM log_chunk c FORCE INDEX (PRIMARY)
		WHERE c.deployment_id = wanted
		ORDER BY c.start DESC LIMIT 1), 0) AS log_size
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (wanted BIGINT PATH '$')) t;

-- deployment_unended(struct number) -> struct number
SELECT COUNT(*) AS n
FROM (
	SELECT 1
	FROM deployment
	WHERE project_id = :of AND status IN ('pending', 'running')
	LIMIT 1) t;

-- deployment_lock(struct deployment) -> struct deployment
SELECT status FROM deployment WHERE id = :id FOR UPDATE;

-- deployment_cancel_ask(struct deployment)
UPDATE deployment
SET cancel_at = NOW(3)
WHERE id = :id AND status = 'running' AND cancel_at IS NULL;
