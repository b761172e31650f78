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

static const struct field project_args[] = { K(project_id, 0), FIELD_END };
static const struct field key_row[] = { K(project_id, 0), K(public_key, 0),
	K(fingerprint, 0), K(sealed, 0), K(created_by, FIELD_NULL),
	K(created_at, 0), FIELD_END };
static const struct stmt find = {
	.name = "deploy_key_find",
	.sql = "SELECT k.project_id, k.public_key, k.fingerprint, k.sealed,"
	       " k.created_by, k.created_at FROM deploy_key k"
	       " JOIN project p ON p.id = k.project_id"
	       " WHERE k.project_id = ? AND p.valid = 1",
	.args = project_args,
	.row = key_row,
	.rowsize = sizeof(struct deploy_key),
};
static const struct field put_args[] = { K(project_id, 0), K(public_key, 0),
	K(fingerprint, 0), K(sealed, 0), K(created_by, 0), FIELD_END };
static const struct stmt put = {
	.name = "deploy_key_put",
	.sql = "REPLACE INTO deploy_key (project_id, public_key, fingerprint,"
	       " sealed, created_by) VALUES (?, ?, ?, ?, ?)",
	.args = put_args,
};
static const struct stmt delete_key = {
	.name = "deploy_key_remove",
	.sql = "DELETE FROM deploy_key WHERE project_id = ?",
	.args = project_args,
};

static const struct stmt *const deploy_key_stmts[] = { &find, &put, &delete_key,
	NULL };

const struct store deploy_key_store = {
	.stmts = deploy_key_stmts,
	.with_project = deploy_key_remove,
};

const struct err *
deploy_key_find(struct db *db, struct arena *a, int64_t project_id,
    struct deploy_key *out)
{
	const struct deploy_key args = { .project_id = project_id };

	return db_row(db, a, &find, &args, out);
}

const struct err *
deploy_key_put(struct db *db, const struct deploy_key *key)
{
	return db_exec(db, &put, key, NULL);
}

const struct err *
deploy_key_remove(struct db *db, int64_t project_id)
{
	const struct deploy_key args = { .project_id = project_id };

	return db_exec(db, &delete_key, &args, NULL);
}
