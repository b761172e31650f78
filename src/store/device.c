/* SPDX-License-Identifier: ISC */
#include "store/device.h"

#include "core/str.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)
#define MAPPED "::ffff:" /* before an address of IPv4 */

struct device_found {
	int64_t n;
};
struct device_from {
	const char *address;
	const char *network; /* an address in it; "" = none */
};

#include "store/device.sql.h"

_Static_assert(SQL_DEVICE_SECONDS == DEVICE_SECONDS, "see device.sql");
_Static_assert(SQL_DEVICE_INTERVAL == DEVICE_INTERVAL, "see device.sql");

const struct store device_store = {
	.stmts = device_stmts,
};

const struct err *
device_count(struct db *db, struct arena *a, const char *address, int64_t *here,
    int64_t *all)
{
	const struct device_from args = { address,
		str_starts(address, MAPPED) ? "" : address };
	struct device_found found;
	const struct err *e;

	*here = *all = 0;
	if ((e = db_row(db, a, &sql_device_count_here, &args, &found)) != NULL)
		return e;
	*here = found.n;
	if ((e = db_row(db, a, &sql_device_count_all, NULL, &found)) != NULL)
		return e;
	*all = found.n;
	return NULL;
}

const struct err *
device_insert(struct db *db, const struct device *d)
{
	return db_exec(db, &sql_device_insert, d, NULL);
}

const struct err *
device_pending(struct db *db, struct arena *a, const char *user_code,
    struct device *out)
{
	const struct device args = { .user_code = user_code };

	return db_row(db, a, &sql_device_pending, &args, out);
}

/* Runs a statement that must change the row. */
static const struct err *
row_change(struct db *db, const struct stmt *stmt, const void *args, int64_t id)
{
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, stmt, args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_NOTFOUND, "%s: device %lld", stmt->name,
		    (long long)id);
	return NULL;
}

const struct err *
device_decide(struct db *db, const struct device *d)
{
	return row_change(db, &sql_device_decide, d, d->id);
}

const struct err *
device_find(struct db *db, struct arena *a, const char *hash,
    struct device_poll *out)
{
	const struct device args = { .hash = hash };

	return db_row(db, a, &sql_device_find, &args, out);
}

const struct err *
device_polled(struct db *db, const struct device_poll *p)
{
	return db_exec(db, &sql_device_polled, p, NULL);
}

const struct err *
device_take(struct db *db, const struct device_poll *p)
{
	return row_change(db, &sql_device_take, p, p->id);
}

const struct err *
device_tidy(struct db *db)
{
	struct arena *a = arena_open(SMALL_ARENA);
	struct device_found found;
	const struct err *e;

	if ((e = db_row(db, a, &sql_device_expired, NULL, &found)) == NULL &&
	    found.n != 0)
		e = db_exec(db, &sql_device_tidy, NULL, NULL);
	arena_close(a);
	return e;
}
