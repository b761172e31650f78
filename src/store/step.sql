-- SPDX-License-Identifier: ISC

-- @columns
id, pipeline_id, name, script, directory, position, timeout_seconds, run_when, may_fail,
valid, created_at, updated_at, version

-- @by
pipeline_id IN (SELECT l.id FROM pipeline l WHERE l.project_id IN @member_projects)

-- @between
pipeline_id = :pipeline_id AND valid = 1 AND position BETWEEN :first AND :last

-- step_by_id(struct step) -> struct step
SELECT @columns FROM step WHERE id = :id AND valid = 1;

-- step_page(struct step_query) -> struct step
SELECT @columns
FROM step
WHERE valid = 1
ORDER BY pipeline_id, position, id LIMIT :limit OFFSET :offset;

-- step_page_by(struct step_query) -> struct step
SELECT @columns
FROM step
WHERE valid = 1 AND @by
ORDER BY pipeline_id, position, id LIMIT :limit OFFSET :offset;

-- step_page_of(struct step_query) -> struct step
SELECT @columns
FROM step
WHERE pipeline_id = :pipeline_id AND valid = 1
ORDER BY position, id LIMIT :limit OFFSET :offset;

-- step_of_pipelines(struct step_query) -> struct step
SELECT @columns
FROM JSON_TABLE(:ids, '$[*]' COLUMNS (wanted BIGINT PATH '$')) t
	STRAIGHT_JOIN step FORCE INDEX (step_list) ON pipeline_id = wanted AND valid = 1
ORDER BY pipeline_id, position, id;

-- step_count() -> struct page_count
SELECT COUNT(*) AS n FROM step WHERE valid = 1;

-- step_count_by(struct step_query) -> struct page_count
SELECT COUNT(*) AS n FROM step WHERE valid = 1 AND @by;

-- step_count_of(struct step_query) -> struct page_count
SELECT COUNT(*) AS n FROM step WHERE pipeline_id = :pipeline_id AND valid = 1;

-- Size of the other scripts: a pipeline must fit into one response. No row if
-- the pipeline does not exist.
-- step_sum_others(struct step) -> struct step_sum
SELECT COUNT(s.id) AS n, CAST(COALESCE(SUM(OCTET_LENGTH(s.script)), 0) AS INT) AS bytes
FROM pipeline p
	LEFT JOIN step s ON s.pipeline_id = p.id AND s.valid = 1 AND s.id <> :id
WHERE p.id = :pipeline_id AND p.valid = 1
GROUP BY p.id;

-- step_insert(struct step)
INSERT INTO step (
	id, pipeline_id, name, script, directory, position, timeout_seconds, run_when,
	may_fail)
VALUES (
	DEFAULT, :pipeline_id, :name, :script, :directory, :position, :timeout_seconds,
	:run_when, :may_fail);

-- step_update(struct step)
UPDATE step FORCE INDEX (PRIMARY)
SET version = version + 1, name = :name, script = :script, directory = :directory,
	position = :position, timeout_seconds = :timeout_seconds, run_when = :run_when,
	may_fail = :may_fail, updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- step_delete(struct step)
UPDATE step FORCE INDEX (PRIMARY) SET @deleted WHERE id = :id AND valid = 1;

-- step_move_up(struct step_move)
UPDATE step
SET position = position + 1, version = version + 1, updated_at = CURRENT_TIMESTAMP(3)
WHERE @between;

-- step_move_down(struct step_move)
UPDATE step
SET position = position - 1, version = version + 1, updated_at = CURRENT_TIMESTAMP(3)
WHERE @between;

-- step_touch_pipeline(struct step_query)
UPDATE pipeline
SET version = version + 1, updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :pipeline_id;

-- step_delete_of(struct step_of)
UPDATE step s
	JOIN pipeline p ON p.id = s.pipeline_id
SET s.valid = 0, s.version = s.version + 1, s.updated_at = CURRENT_TIMESTAMP(3)
WHERE p.project_id = :project_id AND s.valid = 1;
