/* SPDX-License-Identifier: ISC */
#include "store/deploy_key.h"

#include "store/store.h"

#define K(m, ...) FIELD(struct deploy_key, m, __VA_ARGS__)

static const struct field key_fields[] = {
	K(public_key, FIELD_OUT,
	    .doc = "Public half, to be added to the repository at the Git "
		   "server."),
	K(fingerprint, FIELD_OUT,
	    .doc = "Fingerprint of the public half, as ssh-keygen prints "
		   "it."),
	K(created_at, FIELD_OUT, .doc = "Time of creation."),
	K(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	FIELD_END,
};
const struct shape deploy_key_shape = {
	.name = "DeployKey",
	.fields = key_fields,
	.size = sizeof(struct deploy_key),
	.doc = "The public half of a project's SSH key.",
};

#include "store/deploy_key.sql.h"

const struct store deploy_key_store = {
	.stmts = deploy_key_stmts,
	.with_project = deploy_key_remove,
};

const struct err *
deploy_key_find(struct db *db, struct arena *a, int64_t project_id,
    struct deploy_key *out)
{
	const struct deploy_key args = { .project_id = project_id };

	return db_row(db, a, &sql_deploy_key_find, &args, out);
}

const struct err *
deploy_key_put(struct db *db, const struct deploy_key *key)
{
	return db_exec(db, &sql_deploy_key_put, key, NULL);
}

const struct err *
deploy_key_remove(struct db *db, int64_t project_id)
{
	const struct deploy_key args = { .project_id = project_id };

	return db_exec(db, &sql_deploy_key_remove, &args, NULL);
}
