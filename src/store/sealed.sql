-- SPDX-License-Identifier: ISC

-- Each place where sealed values are stored has three statements: a page of its
-- rows, the value of one, and its replacement, if it has not changed.

-- @sealed_page
500

-- @sealed_size_max
4194304

-- @page(table, key, column)
SELECT @key AS id, OCTET_LENGTH(@column) AS size
FROM @table
WHERE @key > :id
ORDER BY @key LIMIT @sealed_page

-- @bytes(table, key, column)
SELECT @key AS id, @column AS value
FROM @table
WHERE @key = :id AND OCTET_LENGTH(@column) <= @sealed_size_max

-- @bytes_put(table, key, column)
UPDATE @table SET @column = :value WHERE @key = :id AND @column = :old_value

-- The owner is the project for which the values are sealed.
-- @object(table, key, owner, column)
SELECT @key AS id, @owner AS owner, @column AS object
FROM @table
WHERE @key = :id AND OCTET_LENGTH(@column) <= @sealed_size_max

-- @object_put(table, key, column)
UPDATE @table SET @column = :object WHERE @key = :id AND @column = :old_object

-- sealed_git_access_page(struct sealed_row) -> struct sealed_row
@page(git_token, user_id, access);

-- sealed_git_access_one(struct sealed_row) -> struct sealed_row
@bytes(git_token, user_id, access);

-- sealed_git_access_put(struct put)
@bytes_put(git_token, user_id, access);

-- sealed_git_refresh_page(struct sealed_row) -> struct sealed_row
@page(git_token, user_id, refresh);

-- sealed_git_refresh_one(struct sealed_row) -> struct sealed_row
@bytes(git_token, user_id, refresh);

-- sealed_git_refresh_put(struct put)
@bytes_put(git_token, user_id, refresh);

-- sealed_hook_page(struct sealed_row) -> struct sealed_row
@page(hook_secret, project_id, secret);

-- sealed_hook_one(struct sealed_row) -> struct sealed_row
@bytes(hook_secret, project_id, secret);

-- sealed_hook_put(struct put)
@bytes_put(hook_secret, project_id, secret);

-- sealed_notifiers_page(struct sealed_row) -> struct sealed_row
@page(notifier, id, secret);

-- sealed_notifiers_one(struct sealed_row) -> struct sealed_row
@bytes(notifier, id, secret);

-- sealed_notifiers_put(struct put)
@bytes_put(notifier, id, secret);

-- sealed_old_notifiers_page(struct sealed_row) -> struct sealed_row
@page(notifier, id, old_secret);

-- sealed_old_notifiers_one(struct sealed_row) -> struct sealed_row
@bytes(notifier, id, old_secret);

-- sealed_old_notifiers_put(struct put)
@bytes_put(notifier, id, old_secret);

-- sealed_signin_page(struct sealed_row) -> struct sealed_row
SELECT state_hash AS hash, OCTET_LENGTH(verifier) AS size
FROM signin
WHERE state_hash > :hash
ORDER BY state_hash LIMIT @sealed_page;

-- sealed_signin_one(struct sealed_row) -> struct sealed_row
SELECT state_hash AS hash, verifier AS value
FROM signin
WHERE state_hash = :hash AND OCTET_LENGTH(verifier) <= @sealed_size_max;

-- sealed_signin_put(struct put)
UPDATE signin SET verifier = :value WHERE state_hash = :hash AND verifier = :old_value;

-- sealed_deploy_keys_page(struct sealed_row) -> struct sealed_row
@page(deploy_key, project_id, sealed);

-- sealed_deploy_keys_one(struct sealed_row) -> struct sealed_row
@object(deploy_key, project_id, project_id, sealed);

-- sealed_deploy_keys_put(struct put)
@object_put(deploy_key, project_id, sealed);

-- sealed_defaults_page(struct sealed_row) -> struct sealed_row
@page(project, id, secret_defaults);

-- sealed_defaults_one(struct sealed_row) -> struct sealed_row
@object(project, id, id, secret_defaults);

-- sealed_defaults_put(struct put)
@object_put(project, id, secret_defaults);

-- sealed_triggers_page(struct sealed_row) -> struct sealed_row
@page(project, id, trigger_secrets);

-- sealed_triggers_one(struct sealed_row) -> struct sealed_row
@object(project, id, id, trigger_secrets);

-- sealed_triggers_put(struct put)
@object_put(project, id, trigger_secrets);

-- sealed_environments_page(struct sealed_row) -> struct sealed_row
@page(environment, id, secret_values);

-- sealed_environments_one(struct sealed_row) -> struct sealed_row
@object(environment, id, project_id, secret_values);

-- sealed_environments_put(struct put)
@object_put(environment, id, secret_values);

-- sealed_shared_page(struct sealed_row) -> struct sealed_row
@page(variable_project, id, sealed);

-- sealed_shared_one(struct sealed_row) -> struct sealed_row
@object(variable_project, id, project_id, sealed);

-- sealed_shared_put(struct put)
@object_put(variable_project, id, sealed);

-- sealed_variables_page(struct sealed_row) -> struct sealed_row
@page(deployment, id, secret_vars);

-- sealed_variables_one(struct sealed_row) -> struct sealed_row
@object(deployment, id, project_id, secret_vars);

-- sealed_variables_put(struct put)
@object_put(deployment, id, secret_vars);

-- How an administrator is told which row it is.
-- @project_name
'project ', p.id, ' (', p.name, IF(p.valid = 1, '', ', deleted'), ')'

-- sealed_user_label(struct sealed_row) -> struct label
SELECT CONCAT('Git token of user ', username) AS label FROM user WHERE id = :id;

-- sealed_hook_label(struct sealed_row) -> struct label
SELECT CONCAT('hook secret of ', @project_name) AS label
FROM project p
WHERE p.id = :id;

-- sealed_deploy_key_label(struct sealed_row) -> struct label
SELECT CONCAT('deploy key of ', @project_name) AS label FROM project p WHERE p.id = :id;

-- sealed_notifier_label(struct sealed_row) -> struct label
SELECT CONCAT('secret of notifier ', id) AS label FROM notifier WHERE id = :id;

-- sealed_signin_label(struct sealed_row) -> struct label
SELECT CONCAT('pending sign-in of ', created_at) AS label
FROM signin
WHERE state_hash = :hash;

-- sealed_project_label(struct sealed_row) -> struct label
SELECT CONCAT(@project_name) AS label FROM project p WHERE p.id = :id;

-- sealed_environment_label(struct sealed_row) -> struct label
SELECT CONCAT('environment ', e.name, ' of ', @project_name) AS label
FROM environment e
	JOIN project p ON p.id = e.project_id
WHERE e.id = :id;

-- sealed_shared_label(struct sealed_row) -> struct label
SELECT CONCAT('shared variable ', v.`key`, ' of ', @project_name) AS label
FROM variable_project v
	JOIN project p ON p.id = v.project_id
WHERE v.id = :id;

-- sealed_deployment_label(struct sealed_row) -> struct label
SELECT CONCAT('deployment ', d.id, ' of ', @project_name) AS label
FROM deployment d
	JOIN project p ON p.id = d.project_id
WHERE d.id = :id;

-- Transactions that create a deployment lock the project's row while they
-- copy.
-- sealed_settle(struct sealed_row) -> struct sealed_row
SELECT id FROM project WHERE id > :id ORDER BY id LIMIT 50 FOR UPDATE;
