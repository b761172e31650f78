-- SPDX-License-Identifier: ISC

-- @heads
SELECT project_id, branch, commit_hash, caught_up FROM push_head

-- @of_push(d)
@d.`trigger` = 'webhook' AND COALESCE(@d.reason, '') <> :reason

-- push_older(struct replaced) -> struct move_id
SELECT o.id
FROM deployment d
	JOIN deployment o
		ON o.project_id = d.project_id
			AND o.status = 'pending'
			AND o.id < d.id
			AND o.trigger_key = d.trigger_key
			AND o.`trigger` = 'webhook'
			AND COALESCE(o.approval, '') <> 'granted'
			AND (d.tag IS NOT NULL
				OR (o.branch = d.branch
					AND ((d.when_moved = 'follow'
							AND d.approval IS NULL)
						OR o.commit_hash = :before)))
WHERE d.id = :id
ORDER BY o.id;

-- push_head_put(struct push_head)
REPLACE INTO push_head (project_id, branch, commit_hash, caught_up)
VALUES (:project_id, :branch, :commit_hash, :caught_up);

-- push_head_find(struct push_head) -> struct push_head
@heads WHERE project_id = :project_id AND branch = :branch;

-- push_heads(struct push_head) -> struct push_head
@heads WHERE project_id = :project_id ORDER BY branch;

-- push_head_move(struct push_head)
UPDATE push_head
SET commit_hash = :commit_hash, caught_up = 0
WHERE project_id = :project_id AND branch = :branch;

-- push_forget(struct push_head)
DELETE FROM push_head WHERE project_id = :project_id;

-- push_caught_put(struct push_caught)
INSERT INTO push_caught (deployment_id, project_id, branch, commit_hash)
VALUES (:deployment_id, :project_id, :branch, :commit_hash);

-- push_caught_of(struct push_head) -> struct push_caught
SELECT c.deployment_id, d.trigger_key
FROM push_caught c
	JOIN deployment d ON d.id = c.deployment_id
WHERE c.project_id = :project_id AND c.commit_hash = :commit_hash AND c.branch = :branch;

-- push_current(struct current) -> struct page_count
SELECT COUNT(*) AS n
FROM deployment d
WHERE d.project_id = :project_id
	AND d.branch = :branch
	AND d.commit_hash = :commit_hash
	AND @of_push(d)
	AND NOT EXISTS (
		SELECT 1
		FROM deployment o
		WHERE o.project_id = d.project_id
			AND o.id > d.id
			AND o.branch = d.branch
			AND o.commit_hash <> d.commit_hash
			AND @of_push(o)
			AND o.started_at IS NOT NULL
			AND o.finished_at IS NOT NULL);

-- push_source_next(struct push_source) -> struct push_source
SELECT p.id AS project_id, p.repository, h.made_by, u.id AS deployer,
	k.sealed AS deploy_key
FROM push_head b
	JOIN project p ON p.id = b.project_id
	JOIN hook_secret h ON h.project_id = p.id
	LEFT JOIN user u ON u.id = h.made_by AND @member_deploys(h.project_id)
	LEFT JOIN deploy_key k ON k.project_id = p.id
WHERE b.project_id > :project_id AND p.valid = 1 AND p.triggers <> '[]'
ORDER BY b.project_id LIMIT 1;

-- push_before_mine(struct looker) -> struct page_count
SELECT COUNT(*) AS n FROM runner w WHERE w.name < :runner AND @runner_online;

-- Whether it has reported since the last multiple of that time.
-- push_looked(struct looker) -> struct page_count
SELECT COUNT(*) AS n
FROM runner w
WHERE w.name = :runner
	AND FLOOR(UNIX_TIMESTAMP(w.seen_at) / :seconds) =
		FLOOR(UNIX_TIMESTAMP(NOW(3)) / :seconds);
