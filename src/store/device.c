/* SPDX-License-Identifier: ISC */
#include "store/device.h"

#include "core/str.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)
#define TEXT(number) #number
#define NUMBER(macro) TEXT(macro)

#define D(m, fl) FIELD(struct device, m, fl)
#define P(m, fl) FIELD(struct device_poll, m, fl)
#define LIVE "expires_at > NOW(3)"

#define MAPPED "::ffff:" /* before an address of IPv4 */

struct device_found {
	int64_t n;
};
struct device_from {
	const char *address;
	const char *network; /* an address in it; "" = none */
};

static const struct field found_row[] = {
	FIELD(struct device_found, n, 0),
	FIELD_END,
};
static const struct field from_args[] = {
	FIELD(struct device_from, address, 0),
	FIELD(struct device_from, network, 0),
	FIELD_END,
};
/* One host of IPv6 has a whole network of addresses. */
static const struct stmt count_here = {
	.name = "device_count_here",
	.sql =
	    "SELECT COUNT(*) AS n FROM device WHERE (address = ? OR"
	    " LEFT(INET6_ATON(address), 8) = LEFT(INET6_ATON(?), 8)) AND " LIVE,
	.args = from_args,
	.row = found_row,
	.rowsize = sizeof(struct device_found),
};
static const struct stmt count_all = {
	.name = "device_count_all",
	.sql = "SELECT COUNT(*) AS n FROM device WHERE " LIVE,
	.row = found_row,
	.rowsize = sizeof(struct device_found),
};
static const struct field insert_args[] = { D(hash, 0), D(user_code, 0),
	D(name, 0), D(address, 0), FIELD_END };
static const struct stmt insert = {
	.name = "device_insert",
	.sql = "INSERT INTO device (hash, user_code, name, address, expires_at,"
	       " poll_seconds) VALUES (?, ?, ?, ?, NOW(3) + INTERVAL " NUMBER(
		   DEVICE_SECONDS) " SECOND, " NUMBER(DEVICE_INTERVAL) ")",
	.args = insert_args,
};

static const struct field code_args[] = { D(user_code, 0), FIELD_END };
static const struct field pending_row[] = { D(id, 0), D(user_code, 0),
	D(name, 0), D(address, 0), D(created_at, 0), D(expires_at, 0),
	FIELD_END };
static const struct stmt pending = {
	.name = "device_pending",
	.sql = "SELECT id, user_code, name, address, created_at, expires_at"
	       " FROM device WHERE user_code = ? AND status = 'pending'"
	       " AND " LIVE,
	.args = code_args,
	.row = pending_row,
	.rowsize = sizeof(struct device),
};
static const struct field decide_args[] = { D(status, 0), D(user_id, 0),
	D(token_id, FIELD_NULL), D(role, FIELD_NULL),
	D(token_expires_at, FIELD_NULL), D(id, 0), FIELD_END };
static const struct stmt decide = {
	.name = "device_decide",
	.sql = "UPDATE device SET status = ?, user_id = ?, token_id = ?,"
	       " role = ?, token_expires_at = ?"
	       " WHERE id = ? AND status = 'pending' AND " LIVE,
	.args = decide_args,
};

static const struct field hash_args[] = { D(hash, 0), FIELD_END };
static const struct field poll_row[] = { P(id, 0), P(status, 0), P(name, 0),
	P(is_early, 0), P(user_id, 0), P(username, FIELD_NULL),
	P(is_refused, 0), P(is_revoked, 0), P(role, FIELD_NULL),
	P(token_expires_at, FIELD_NULL), FIELD_END };
static const struct stmt find = {
	.name = "device_find",
	.sql = "SELECT d.id, d.status, d.name,"
	       " COALESCE(d.polled_at"
	       " > NOW(3) - INTERVAL d.poll_seconds SECOND, 0) AS is_early,"
	       " COALESCE(u.id, 0) AS user_id, u.username,"
	       " u.git_refused_at IS NOT NULL AS is_refused,"
	       " d.token_id IS NOT NULL AND t.id IS NULL AS is_revoked,"
	       " d.role, d.token_expires_at FROM device d"
	       " LEFT JOIN user u ON u.id = d.user_id AND u.valid = 1"
	       " AND u.status = 'active'"
	       " LEFT JOIN api_token t ON t.id = d.token_id AND t.valid = 1"
	       " AND (t.expires_at IS NULL OR t.expires_at > NOW(3))"
	       " WHERE d.hash = ? AND d." LIVE,
	.args = hash_args,
	.row = poll_row,
	.rowsize = sizeof(struct device_poll),
};
static const struct field polled_args[] = { P(is_early, 0), P(id, 0),
	FIELD_END };
static const struct stmt polled = {
	.name = "device_polled",
	.sql = "UPDATE device SET polled_at = NOW(3), poll_seconds ="
	       " poll_seconds + ? * " NUMBER(
		   DEVICE_INTERVAL) " WHERE id = ? AND status = 'pending'",
	.args = polled_args,
};
static const struct field id_args[] = { P(id, 0), FIELD_END };
static const struct stmt take = {
	.name = "device_take",
	.sql = "DELETE FROM device WHERE id = ? AND status = 'approved'"
	       " AND " LIVE,
	.args = id_args,
};

static const struct stmt expired = {
	.name = "device_expired",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM device"
	       " WHERE expires_at <= NOW(3) LIMIT 1) t",
	.row = found_row,
	.rowsize = sizeof(struct device_found),
};
static const struct stmt tidy = {
	.name = "device_tidy",
	.sql = "DELETE FROM device WHERE expires_at <= NOW(3)"
	       " ORDER BY expires_at LIMIT 5000",
};

static const struct stmt *const device_stmts[] = {
	&count_here,
	&count_all,
	&insert,
	&pending,
	&decide,
	&find,
	&polled,
	&take,
	&expired,
	&tidy,
	NULL,
};

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
	if ((e = db_row(db, a, &count_here, &args, &found)) != NULL)
		return e;
	*here = found.n;
	if ((e = db_row(db, a, &count_all, NULL, &found)) != NULL)
		return e;
	*all = found.n;
	return NULL;
}

const struct err *
device_insert(struct db *db, const struct device *d)
{
	return db_exec(db, &insert, d, NULL);
}

const struct err *
device_pending(struct db *db, struct arena *a, const char *user_code,
    struct device *out)
{
	const struct device args = { .user_code = user_code };

	return db_row(db, a, &pending, &args, out);
}

/* Runs a statement that must change the row. */
static const struct err *
change(struct db *db, const struct stmt *stmt, const void *args, int64_t id)
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
	return change(db, &decide, d, d->id);
}

const struct err *
device_find(struct db *db, struct arena *a, const char *hash,
    struct device_poll *out)
{
	const struct device args = { .hash = hash };

	return db_row(db, a, &find, &args, out);
}

const struct err *
device_polled(struct db *db, const struct device_poll *p)
{
	return db_exec(db, &polled, p, NULL);
}

const struct err *
device_take(struct db *db, const struct device_poll *p)
{
	return change(db, &take, p, p->id);
}

const struct err *
device_tidy(struct db *db)
{
	struct arena *a = arena_open(SMALL_ARENA);
	struct device_found found;
	const struct err *e;

	if ((e = db_row(db, a, &expired, NULL, &found)) == NULL && found.n != 0)
		e = db_exec(db, &tidy, NULL, NULL);
	arena_close(a);
	return e;
}
