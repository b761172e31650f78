-- SPDX-License-Identifier: ISC

-- @columns
id, project_id, name, description, timeout_seconds, checkout, valid, created_at,
updated_at, created_by, version

-- pipeline_by_id(struct pipeline) -> struct pipeline
SELECT @columns FROM pipeline WHERE id = :id AND valid = 1;

-- pipeline_lock(struct pipeline) -> struct pipeline
SELECT @columns FROM pipeline WHERE id = :id AND valid = 1 FOR UPDATE;

-- pipeline_hold(struct pipeline) -> struct pipeline
SELECT project_id FROM pipeline WHERE id = :id AND valid = 1 FOR UPDATE;

-- pipeline_page(struct child_args) -> struct pipeline
SELECT @columns
FROM pipeline c
WHERE c.valid = 1
ORDER BY name, id LIMIT :limit OFFSET :offset;

-- pipeline_page_by(struct child_args) -> struct pipeline
SELECT @columns
FROM pipeline c
WHERE c.valid = 1 AND c.project_id IN @member_projects
ORDER BY name, id LIMIT :limit OFFSET :offset;

-- pipeline_page_of(struct child_args) -> struct pipeline
SELECT @columns
FROM pipeline c
WHERE c.valid = 1 AND c.project_id = :project_id
ORDER BY name, id LIMIT :limit OFFSET :offset;

-- pipeline_count() -> struct page_count
SELECT COUNT(*) AS n FROM pipeline WHERE valid = 1;

-- pipeline_count_by(struct child_args) -> struct page_count
SELECT COUNT(*) AS n FROM pipeline WHERE valid = 1 AND project_id IN @member_projects;

-- pipeline_count_of(struct child_args) -> struct page_count
SELECT COUNT(*) AS n FROM pipeline WHERE valid = 1 AND project_id = :project_id;

-- pipeline_same_name(struct child_args) -> struct page_count
@child_same_name(pipeline);

-- pipeline_delete_one(struct child_args)
UPDATE pipeline SET @deleted WHERE id = :id AND valid = 1;

-- pipeline_delete_of(struct child_args)
UPDATE pipeline SET @deleted WHERE project_id = :project_id AND valid = 1;

-- pipeline_insert(struct pipeline)
INSERT INTO pipeline (
	id, project_id, name, description, timeout_seconds, checkout, created_by)
VALUES (
	DEFAULT, :project_id, :name, :description, :timeout_seconds, :checkout,
	:created_by);

-- pipeline_update(struct pipeline)
UPDATE pipeline FORCE INDEX (PRIMARY)
SET version = version + 1, name = :name, description = :description,
	timeout_seconds = :timeout_seconds, checkout = :checkout,
	updated_at = CURRENT_TIMESTAMP(3)
WHERE id = :id AND valid = 1;

-- pipeline_delete_steps(struct pipeline)
UPDATE step SET @deleted WHERE pipeline_id = :id AND valid = 1;
