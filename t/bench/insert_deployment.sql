-- SPDX-License-Identifier: ISC
INSERT INTO deployment (project_id, pipeline_id, branch, env_vars, `trigger`, created_by)
VALUES (?, 1, 'main', '{}', 'manual', 1)
