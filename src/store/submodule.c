/* SPDX-License-Identifier: ISC */
#include "store/submodule.h"

#include "store/store.h"

static const struct field path_fields[] = {
	FIELD(struct submodule_path, path, FIELD_OUT | FIELD_IN, .min = 3,
	    .max = 255, .pattern = SUBMODULE_PATH_ERE,
	    .doc = "Path of a repository at the Git server, such as "
		   "team/theme."),
	FIELD_END,
};
const struct shape submodule_path_shape = {
	.name = "SubmoduleRepository",
	.fields = path_fields,
	.size = sizeof(struct submodule_path),
	.bare = true,
};

/* A number, and who found it. */
struct found {
	struct submodule is;
	int64_t user_id;
};

#include "store/submodule.sql.h"

const struct store submodule_store = {
	.stmts = submodule_stmts,
};

const struct err *
submodule_set_by(struct db *db, int64_t project_id, int64_t user_id)
{
	const struct found args = { .is.project_id = project_id,
		.user_id = user_id };
	const struct err *e;

	if ((e = db_exec(db, &sql_submodule_set_by, &args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_submodule_forget, &args, NULL);
}

const struct err *
submodule_find(struct db *db, struct arena *a, const struct submodule *key,
    struct submodule *out)
{
	return db_row(db, a, &sql_submodule_find, key, out);
}

const struct err *
submodule_confirm(struct db *db, const struct submodule *submodule,
    int64_t user_id)
{
	const struct found args = { .is = *submodule, .user_id = user_id };

	return db_exec(db, &sql_submodule_confirm, &args, NULL);
}
