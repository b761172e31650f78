-- SPDX-License-Identifier: ISC

-- Lists omit long texts; they are fetched if there is room.  The variables of such a
-- row are NULL, which no row of the table has.
-- @listed(index)
SELECT @deployment_keys,
	IF(OCTET_LENGTH(d.commit_message) > 4096, NULL, d.commit_message)
		AS commit_message,
	IF(OCTET_LENGTH(d.env_vars) > 4096 OR OCTET_LENGTH(d.commit_message) > 4096,
		NULL, d.env_vars) AS env_vars,
	IF(OCTET_LENGTH(d.env_vars) > 4096, NULL, d.env_vars_sent) AS env_vars_sent,
	@deployment_columns
FROM deployment d FORCE INDEX (@index)

-- @from_here
d.id < :before ORDER BY d.id DESC LIMIT :limit

-- A pipeline of another project matches nothing, at no cost.
-- @pipeline_of_project
d.pipeline_id = (
	SELECT l.id
	FROM pipeline l
	WHERE l.project_id = :project_id AND l.id = :pipeline_id)

-- The same for an environment.
-- @environment_of_project
d.environment_id = (
	SELECT e.id
	FROM environment e
	WHERE e.project_id = :project_id AND e.id = :environment_id)

-- Every combination of filters has a statement, whose number is the sum of their
-- numbers: 1 = project, 2 = pipeline, 4 = status, 8 = branch, 16 = environment.  Each
-- scans an index backwards: a page costs the same at any depth.  From 28 on, the
-- database chooses the index that has fewer rows.  A third index, of both, would make
-- every new deployment and every change of status dearer.

-- deployment_page_0(struct deployment_filter) -> struct deployment
@listed(PRIMARY) WHERE @from_here;

-- deployment_page_1(struct deployment_filter) -> struct deployment
@listed(deployment_project) WHERE d.project_id = :project_id AND @from_here;

-- deployment_page_2(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline) WHERE d.pipeline_id = :pipeline_id AND @from_here;

-- deployment_page_3(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline) WHERE @pipeline_of_project AND @from_here;

-- deployment_page_4(struct deployment_filter) -> struct deployment
@listed(deployment_status) WHERE d.status = :status AND @from_here;

-- deployment_page_5(struct deployment_filter) -> struct deployment
@listed(deployment_queue)
WHERE d.project_id = :project_id AND d.status = :status AND @from_here;

-- deployment_page_6(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_status)
WHERE d.pipeline_id = :pipeline_id AND d.status = :status AND @from_here;

-- deployment_page_7(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_status)
WHERE @pipeline_of_project AND d.status = :status AND @from_here;

-- deployment_page_8(struct deployment_filter) -> struct deployment
@listed(deployment_branch) WHERE d.branch = :branch AND @from_here;

-- deployment_page_9(struct deployment_filter) -> struct deployment
@listed(deployment_project_branch)
WHERE d.project_id = :project_id AND d.branch = :branch AND @from_here;

-- deployment_page_10(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_branch)
WHERE d.pipeline_id = :pipeline_id AND d.branch = :branch AND @from_here;

-- deployment_page_11(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_branch)
WHERE @pipeline_of_project AND d.branch = :branch AND @from_here;

-- deployment_page_12(struct deployment_filter) -> struct deployment
@listed(deployment_branch_status)
WHERE d.status = :status AND d.branch = :branch AND @from_here;

-- deployment_page_13(struct deployment_filter) -> struct deployment
@listed(deployment_project_both)
WHERE d.project_id = :project_id AND d.status = :status AND d.branch = :branch
	AND @from_here;

-- deployment_page_14(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_both)
WHERE d.pipeline_id = :pipeline_id AND d.status = :status AND d.branch = :branch
	AND @from_here;

-- deployment_page_15(struct deployment_filter) -> struct deployment
@listed(deployment_pipeline_both)
WHERE @pipeline_of_project AND d.status = :status AND d.branch = :branch AND @from_here;

-- deployment_page_16(struct deployment_filter) -> struct deployment
@listed(deployment_environment) WHERE d.environment_id = :environment_id AND @from_here;

-- deployment_page_17(struct deployment_filter) -> struct deployment
@listed(deployment_environment) WHERE @environment_of_project AND @from_here;

-- deployment_page_18(struct deployment_filter) -> struct deployment
@listed(deployment_environment)
WHERE d.environment_id = :environment_id AND d.pipeline_id = :pipeline_id
	AND @from_here;

-- deployment_page_19(struct deployment_filter) -> struct deployment
@listed(deployment_environment)
WHERE @environment_of_project AND d.pipeline_id = :pipeline_id AND @from_here;

-- deployment_page_20(struct deployment_filter) -> struct deployment
@listed(deployment_environment_status)
WHERE d.environment_id = :environment_id AND d.status = :status AND @from_here;

-- deployment_page_21(struct deployment_filter) -> struct deployment
@listed(deployment_environment_status)
WHERE @environment_of_project AND d.status = :status AND @from_here;

-- deployment_page_22(struct deployment_filter) -> struct deployment
@listed(deployment_environment_status)
WHERE d.environment_id = :environment_id AND d.pipeline_id = :pipeline_id
	AND d.status = :status AND @from_here;

-- deployment_page_23(struct deployment_filter) -> struct deployment
@listed(deployment_environment_status)
WHERE @environment_of_project AND d.pipeline_id = :pipeline_id AND d.status = :status
	AND @from_here;

-- deployment_page_24(struct deployment_filter) -> struct deployment
@listed(deployment_environment_branch)
WHERE d.environment_id = :environment_id AND d.branch = :branch AND @from_here;

-- deployment_page_25(struct deployment_filter) -> struct deployment
@listed(deployment_environment_branch)
WHERE @environment_of_project AND d.branch = :branch AND @from_here;

-- deployment_page_26(struct deployment_filter) -> struct deployment
@listed(deployment_environment_branch)
WHERE d.environment_id = :environment_id AND d.pipeline_id = :pipeline_id
	AND d.branch = :branch AND @from_here;

-- deployment_page_27(struct deployment_filter) -> struct deployment
@listed(deployment_environment_branch)
WHERE @environment_of_project AND d.pipeline_id = :pipeline_id AND d.branch = :branch
	AND @from_here;

-- @of_either
deployment_environment_status, deployment_environment_branch

-- deployment_page_28(struct deployment_filter) -> struct deployment
@listed(@of_either)
WHERE d.environment_id = :environment_id AND d.status = :status AND d.branch = :branch
	AND @from_here;

-- deployment_page_29(struct deployment_filter) -> struct deployment
@listed(@of_either)
WHERE @environment_of_project AND d.status = :status AND d.branch = :branch
	AND @from_here;

-- deployment_page_30(struct deployment_filter) -> struct deployment
@listed(@of_either)
WHERE d.environment_id = :environment_id AND d.pipeline_id = :pipeline_id
	AND d.status = :status AND d.branch = :branch AND @from_here;

-- deployment_page_31(struct deployment_filter) -> struct deployment
@listed(@of_either)
WHERE @environment_of_project AND d.pipeline_id = :pipeline_id
	AND d.status = :status AND d.branch = :branch AND @from_here;

-- The other filters, which need no index of their own: a commit is deployed a few
-- times, a user starts few deployments, and the deployments of one tag, or those of a
-- project that were started in one way, have few pipelines and environments.  Only a
-- whole hash is found in the order of the list.
-- @rest
(:project_id = 0 OR d.project_id = :project_id)
	AND (:pipeline_id = 0 OR d.pipeline_id = :pipeline_id)
	AND (:environment_id = 0 OR d.environment_id = :environment_id)
	AND (:status IS NULL OR d.status = :status)
	AND (:branch IS NULL OR d.branch = :branch)
	AND (:tag IS NULL OR d.tag = :tag)
	AND (:created_by = 0 OR d.created_by = :created_by)
	AND (:trigger IS NULL OR d.`trigger` = :trigger)
	AND @from_here

-- @project_of(table, id)
d.project_id = (SELECT o.project_id FROM @table o WHERE o.id = @id)

-- deployment_page_of_commit(struct deployment_filter) -> struct deployment
@listed(deployment_commit) WHERE d.commit_hash = :commit_hash AND @rest;

-- deployment_page_of_digits(struct deployment_filter) -> struct deployment
@listed(deployment_commit) WHERE d.commit_hash LIKE CONCAT(:commit_hash, '%') AND @rest;

-- deployment_page_of_tag(struct deployment_filter) -> struct deployment
@listed(deployment_tag) WHERE d.tag = :tag AND @rest;

-- deployment_page_of_tag_project(struct deployment_filter) -> struct deployment
@listed(deployment_project_tag)
WHERE d.tag = :tag AND d.project_id = :project_id AND @rest;

-- deployment_page_of_tag_pipeline(struct deployment_filter) -> struct deployment
@listed(deployment_project_tag)
WHERE d.tag = :tag AND @project_of(pipeline, :pipeline_id) AND @rest;

-- deployment_page_of_tag_environment(struct deployment_filter) -> struct deployment
@listed(deployment_project_tag)
WHERE d.tag = :tag AND @project_of(environment, :environment_id) AND @rest;

-- deployment_page_of_user(struct deployment_filter) -> struct deployment
@listed(deployment_user) WHERE d.created_by = :created_by AND @rest;

-- deployment_page_of_trigger(struct deployment_filter) -> struct deployment
@listed(deployment_trigger) WHERE d.`trigger` = :trigger AND @rest;

-- deployment_page_of_project(struct deployment_filter) -> struct deployment
@listed(deployment_project_trigger)
WHERE d.`trigger` = :trigger AND d.project_id = :project_id AND @rest;

-- deployment_page_of_pipeline(struct deployment_filter) -> struct deployment
@listed(deployment_project_trigger)
WHERE d.`trigger` = :trigger AND @project_of(pipeline, :pipeline_id) AND @rest;

-- deployment_page_of_environment(struct deployment_filter) -> struct deployment
@listed(deployment_project_trigger)
WHERE d.`trigger` = :trigger AND @project_of(environment, :environment_id) AND @rest;
