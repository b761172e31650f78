-- SPDX-License-Identifier: ISC

-- @columns
q.id, q.project_dir, q.valid,
IF(q.valid, 0, TIMESTAMPDIFF(SECOND, q.updated_at, NOW(3))) AS deleted_for

-- @around
SELECT @columns
FROM project p
	JOIN project q ON @projectdir_overlap

-- projectdir_find(struct projectdir) -> struct projectdir
SELECT @columns FROM project q WHERE q.id = :id;

-- projectdir_around(struct projectdir) -> struct projectdir
@around WHERE p.id = :id;

-- projectdir_deleted_around(struct projectdir) -> struct projectdir
@around WHERE p.id = :id AND q.valid = 0;

-- Directories in [slug, slug0): the slug itself, with a suffix, or with
-- subdirectories. '0' is the byte after '/'.
-- projectdir_alike(struct projectdir) -> struct projectdir
SELECT project_dir
FROM project
WHERE live_dir >= :project_dir AND live_dir < CONCAT(:project_dir, '0');
