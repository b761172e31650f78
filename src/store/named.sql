-- SPDX-License-Identifier: ISC

-- named_project(struct named) -> struct named
SELECT id FROM project WHERE live_name = :name;

-- named_user(struct named) -> struct named
SELECT id FROM user WHERE live_username = :name;

-- named_pipeline(struct named) -> struct named
SELECT id FROM pipeline WHERE project_id = :project_id AND live_name = :name;

-- named_environment(struct named) -> struct named
SELECT id FROM environment WHERE project_id = :project_id AND live_name = :name;

-- named_schedule(struct named) -> struct named
SELECT id FROM schedule WHERE project_id = :project_id AND live_name = :name;

-- named_notifier(struct notifier) -> struct named
SELECT id
FROM notifier
WHERE valid = 1
	AND project_id = :project_id
	AND kind = :kind
	AND target = :target
	AND environment_id <=> :environment_id
	AND id > :id
ORDER BY id LIMIT 1;
