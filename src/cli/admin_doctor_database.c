/* SPDX-License-Identifier: ISC */
/* Checks the database: the schema, and what the server allows. */
#include <sys/statvfs.h>

#include <inttypes.h>

#include "cli/admin_doctor.h"
#include "store/writable.h"

#define WHAT "database"
#define PACKET_MIN (INT64_C(4) << 20) /* a large body, as SQL */
#define OTHERS 10 /* of slipway-live, runners and administrators */
#define LOGS_MANY (INT64_C(1) << 30)
#define ROOM_MIB 256

static void
flush_try(struct doctor *d)
{
	if (d->capacity.flush_log == 1)
		return;
	doctor_say(d, VERDICT_NOTE, WHAT,
	    "innodb_flush_log_at_trx_commit is %" PRId64 ": a power failure "
	    "can lose deployments of the last second that were accepted; set "
	    "it to 1 in [mariadbd] of the server's configuration",
	    d->capacity.flush_log);
}

static void
packet_try(struct doctor *d)
{
	if (d->capacity.max_packet >= PACKET_MIN)
		return;
	doctor_say(d, VERDICT_FAULT, WHAT,
	    "max_allowed_packet is %" PRId64 " bytes, so large requests and "
	    "parts of logs are rejected: set it to 16M in [mariadbd] of the "
	    "server's configuration",
	    d->capacity.max_packet);
}

static void
connections_try(struct doctor *d)
{
	const struct settings_api *api = &d->admin->set.api;
	const int64_t need = api->workers + api->slow_workers + OTHERS;

	if (d->capacity.max_connections >= need)
		return;
	doctor_say(d, VERDICT_FAULT, WHAT,
	    "max_connections is %" PRId64 ", but this host alone needs up to "
	    "%" PRId64 ", so requests can fail: raise it in [mariadbd] of the "
	    "server's configuration, or lower workers in [api]",
	    d->capacity.max_connections, need);
}

static void
rights_try(struct doctor *d)
{
	if (d->capacity.rights == 0)
		return;
	doctor_say(d, VERDICT_NOTE, WHAT,
	    "the account %s may do more than read and write rows: grant it "
	    "only SELECT, INSERT, UPDATE and DELETE, and name the account "
	    "that changes the schema in database.migrate_user",
	    d->admin->set.database.user);
}

/* A server that is reached by a socket has its data on this host, unless it is in
 * a container. */
static void
room_try(struct doctor *d)
{
	const char *path = d->capacity.datadir;
	struct statvfs fs;
	int64_t mib;

	if (d->admin->set.database.host != NULL || statvfs(path, &fs) == -1)
		return;
	mib = (int64_t)(fs.f_bavail * fs.f_frsize >> 20);
	if (mib < ROOM_MIB)
		doctor_say(d, VERDICT_FAULT, WHAT,
		    "only %" PRId64 " MiB are free where it stores its data "
		    "(%s), and writes are rejected when none is: delete other "
		    "files there, lower log_total_max or log_days in [runner], "
		    "or make the file system larger",
		    mib, path);
}

/* The setting that permits this is meant for an upgrade. */
static void
plain_try(struct doctor *d)
{
	const struct settings_database *s = &d->admin->set.database;

	if (s->host == NULL || !s->allow_plain || settings_database_tls(s))
		return;
	doctor_say(d, VERDICT_NOTE, WHAT,
	    "allow_plain = yes: the connection to %s may be unencrypted, and "
	    "others on the network could read and change what is stored: give "
	    "the server a certificate, then remove the line from [database]",
	    s->host);
}

static void
logs_try(struct doctor *d)
{
	if (d->capacity.log_bytes < LOGS_MANY)
		return;
	doctor_say(d, VERDICT_NOTE, WHAT,
	    "logs take %" PRId64 " MiB, in every dump as well: lower "
	    "log_total_max in [runner], or leave them out with mariadb-dump "
	    "--ignore-table-data=%s.log_chunk",
	    d->capacity.log_bytes >> 20, d->admin->set.database.name);
}

/* Prints why the database cannot be used, and what to do, by the number of the
 * error. */
static void
fault_say(struct doctor *d, const struct err *e)
{
	static const struct {
		int from, to;
		const char *advice;
	} rows[] = {
		{ 1040, 1040,
		    "raise max_connections in [mariadbd] of the server's "
		    "configuration" },
		{ 1044, 1045,
		    "slipway-admin setup creates the account and its rights; "
		    "otherwise correct user and password in [database]" },
		{ 1049, 1049,
		    "slipway-admin setup creates the database; otherwise "
		    "correct name in [database]" },
		{ 1698, 1698,
		    "the server accepts this account only from the system "
		    "account of that name: run the command as root or with "
		    "runuser -u slipway-api, or correct user in [database]" },
		{ 2002, 2004,
		    "start MariaDB (systemctl start mariadb), or correct "
		    "socket, or host and port, in [database]" },
		{ 2005, 2005,
		    "correct host in [database], or make the name resolve "
		    "here: getent hosts NAME" },
		{ 2026, 2026,
		    "set tls_ca in [database] to the CA of the server's "
		    "certificate; if the server has no TLS, set ssl_cert and "
		    "ssl_key there" },
	};
	size_t i = 0;

	while (i < sizeof(rows) / sizeof(rows[0]) &&
	    (e->sys < rows[i].from || e->sys > rows[i].to))
		i++;
	if (i == sizeof(rows) / sizeof(rows[0]))
		doctor_say(d, VERDICT_FAULT, WHAT, "%s", doctor_words(e));
	else
		doctor_say(d, VERDICT_FAULT, WHAT,
		    "%s; without the database slipway rejects every request "
		    "and starts no deployment: %s",
		    doctor_words(e), rows[i].advice);
}

static void
writes_try(struct doctor *d)
{
	const struct err *e = writable_try(d->admin->db);

	if (e == NULL)
		return;
	doctor_say(d, VERDICT_FAULT, WHAT,
	    "%s; it accepts no writes, so every change is rejected and no "
	    "deployment starts: if the server is read-only, SET GLOBAL "
	    "read_only = OFF or use the primary server; if its disk is full, "
	    "free some space",
	    doctor_words(e));
}

void
doctor_database(struct doctor *d)
{
	static void (*const tries[])(struct doctor *) = { flush_try, packet_try,
		connections_try, rights_try, logs_try, room_try };
	const struct err *e;
	size_t i;

	plain_try(d);
	if ((e = db_check_schema(d->admin->db)) == NULL)
		e = capacity_read(d->admin->db, d->admin->a, &d->capacity);
	if (e != NULL) {
		fault_say(d, e);
		return;
	}
	d->schema = true;
	writes_try(d);
	doctor_say(d, VERDICT_OK, WHAT,
	    "it responds, and the schema has this version");
	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		tries[i](d);
}
