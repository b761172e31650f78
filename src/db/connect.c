/* SPDX-License-Identifier: ISC */
#include <sys/socket.h>

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"
#include "db/conn.h"

#define PAUSE_FIRST 50 /* milliseconds between attempts to connect */
#define PAUSE_LAST 1000
#define MIGRATE_TIMEOUT 86400 /* seconds: ALTER may copy a large table */

/* Number of forks between the first process and this one. A connection belongs
 * to the process that opened it. */
static unsigned forks;

static void
fork_note(void)
{
	forks++;
}

const struct err *
db_open(const struct settings *settings, unsigned flags, struct db **out)
{
	static bool counting;
	struct db *db;

	*out = NULL;
	if (!counting && pthread_atfork(NULL, NULL, fork_note) != 0)
		return err_new(ERR_UNAVAILABLE, "pthread_atfork");
	counting = true;
	if (settings->database.host == NULL &&
	    settings->database.socket == NULL)
		return err_new(ERR_CONFIG, "database: set host or socket");
	db = mem_alloc(1, sizeof(*db));
	db->settings = settings;
	db->flags = flags;
	*out = db;
	return NULL;
}

void
db_close(struct db *db)
{
	if (db == NULL)
		return;
	db_drop(db);
	mem_free(db->prepared);
	mem_free(db);
}

int64_t
db_connections(const struct db *db)
{
	return db->connections;
}

const struct settings *
db_settings(const struct db *db)
{
	return db->settings;
}

/* In a child the connection still belongs to the parent: nothing that the
 * library sends on closing may reach the server. */
static void
connection_disarm(MYSQL *my)
{
	int sock = (int)mysql_get_socket(my);
	int null;

	if (sock < 0 || (null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
		return;
	(void)dup3(null, sock, O_CLOEXEC);
	(void)close(null);
}

void
db_drop(struct db *db)
{
	if (db->my == NULL)
		return;
	if (db->forks != forks)
		connection_disarm(db->my);
	stmt_forget_all(db);
	mysql_close(db->my);
	db->my = NULL;
}

void
conn_judge(struct db *db, enum db_what what)
{
	if (what == DB_LOST || what == DB_AWAY || what == DB_LARGE)
		db_drop(db);
}

const struct err *
conn_query(struct db *db, const char *sql, size_t len, enum db_what *what)
{
	unsigned number;

	if (mysql_real_query(db->my, sql, len) == 0) {
		mysql_free_result(mysql_store_result(db->my));
		if (mysql_errno(db->my) == 0)
			return NULL;
	}
	number = mysql_errno(db->my);
	*what = db_what(number);
	return db_error("query", number, mysql_error(db->my));
}

static void
set_number(MYSQL *my, enum mysql_option option, int64_t value)
{
	unsigned number = (unsigned)value;

	(void)mysql_optionsv(my, option, &number);
}

static void
set_bool(MYSQL *my, enum mysql_option option, int value)
{
	my_bool flag = (my_bool)value;

	(void)mysql_optionsv(my, option, &flag);
}

static int64_t
wait_seconds(const struct db *db)
{
	return db->flags & DB_MIGRATE ? MIGRATE_TIMEOUT :
					db->settings->database.timeout;
}

static void
require_tls(MYSQL *my, const struct settings_database *set)
{
	set_bool(my, MYSQL_OPT_SSL_ENFORCE, 1);
	set_bool(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, 1);
	if (set->tls_ca != NULL)
		(void)mysql_optionsv(my, MYSQL_OPT_SSL_CA, set->tls_ca);
	if (set->tls_cert != NULL)
		(void)mysql_optionsv(my, MYSQL_OPT_SSL_CERT, set->tls_cert);
	if (set->tls_key != NULL)
		(void)mysql_optionsv(my, MYSQL_OPT_SSL_KEY, set->tls_key);
}

static MYSQL *
connection_make(const struct db *db)
{
	const struct settings_database *set = &db->settings->database;
	MYSQL *my = mysql_init(NULL);

	if (my == NULL)
		return NULL;
	set_number(my, MYSQL_OPT_CONNECT_TIMEOUT, set->timeout);
	set_number(my, MYSQL_OPT_READ_TIMEOUT, wait_seconds(db));
	set_number(my, MYSQL_OPT_WRITE_TIMEOUT, set->timeout);
	set_number(my, MYSQL_OPT_LOCAL_INFILE, 0);
	set_number(my, MYSQL_OPT_PROTOCOL,
	    set->host != NULL ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET);
	set_bool(my, MYSQL_OPT_RECONNECT, 0);
	(void)mysql_optionsv(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (settings_database_tls(set))
		require_tls(my, set);
	return my;
}

/* Makes the server give up on a lock or statement, with a clear error, before
 * the client times out.  A node of a cluster reads only after it has applied what
 * other nodes have committed: a client may send its next request to another host,
 * and a lock that was set there applies here.  A plain server ignores that. */
static const struct err *
session_set(struct db *db)
{
	int64_t timeout = db->settings->database.timeout;
	int64_t lock = timeout > 5 ? 5 : timeout > 1 ? timeout - 1 : 1;
	char sql[512];
	const struct err *e;
	enum db_what what;

	(void)snprintf(sql, sizeof(sql),
	    "SET SESSION autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES,"
	    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,"
	    "NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY', time_zone = '+00:00',"
	    " innodb_lock_wait_timeout = %lld, max_statement_time = %lld.5,"
	    " wsrep_sync_wait = 7",
	    (long long)lock, (long long)wait_seconds(db) - 1);
	if ((e = conn_query(db, sql, strlen(sql), &what)) != NULL)
		return e;
	(void)snprintf(sql, sizeof(sql), "%s",
	    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	return conn_query(db, sql, strlen(sql), &what);
}

/* A larger packet would end the connection, often without a reason. */
static const struct err *
packet_max_read(struct db *db)
{
	static const char sql[] = "SELECT @@max_allowed_packet";
	MYSQL_RES *result = NULL;
	MYSQL_ROW row;

	db->packet_max = INT64_MAX;
	if (mysql_real_query(db->my, sql, sizeof(sql) - 1) != 0 ||
	    (result = mysql_store_result(db->my)) == NULL)
		return db_error("query", mysql_errno(db->my),
		    mysql_error(db->my));
	if ((row = mysql_fetch_row(result)) != NULL && row[0] != NULL &&
	    !num_parse(row[0], 1, NUM_SAFE, &db->packet_max))
		db->packet_max = INT64_MAX;
	mysql_free_result(result);
	return NULL;
}

static const struct err *
server_dial(struct db *db)
{
	const struct settings_database *set = &db->settings->database;
	const char *user = set->user, *password = set->password;
	const struct err *e;

	if ((db->flags & DB_API) && set->api_user != NULL)
		user = set->api_user;
	if ((db->flags & DB_MIGRATE) && set->migrate_user != NULL) {
		user = set->migrate_user;
		password = set->migrate_password;
	}
	if ((db->my = connection_make(db)) == NULL)
		return err_new(ERR_UNAVAILABLE, "connect: out of memory");
	db->forks = forks;
	if (mysql_real_connect(db->my, set->host, user, password, set->name,
		set->host != NULL ? (unsigned)set->port : 0,
		set->host != NULL ? NULL : set->socket,
		CLIENT_FOUND_ROWS) == NULL) {
		e = db_error("connect", mysql_errno(db->my),
		    mysql_error(db->my));
		goto out;
	}
	if (settings_database_tls(set) &&
	    mysql_get_ssl_cipher(db->my) == NULL) {
		e = err_new(ERR_CONFIG,
		    "connect: %s offers no TLS: set ssl_cert and ssl_key in "
		    "[mariadbd] there, or allow_plain = yes in [database]",
		    set->host);
		goto out;
	}
	if ((e = session_set(db)) == NULL)
		e = packet_max_read(db);
	db->connections++;
out:
	if (e != NULL)
		db_drop(db);
	return e;
}

/* Between statements the server sends nothing, unless it has closed. */
static bool
is_closed(MYSQL *my)
{
	struct pollfd p = {
		.fd = (int)mysql_get_socket(my),
		.events = POLLIN | POLLRDHUP,
	};

	return poll(&p, 1, 0) != 0;
}

const struct err *
conn_ready(struct db *db, enum conn_care care, enum db_what *what)
{
	const struct err *e;

	if (db->my != NULL && db->forks != forks)
		db_drop(db);
	if (db->my != NULL && care == CONN_LOOK && is_closed(db->my))
		db_drop(db);
	if (db->my == NULL && db->state != DB_PLAIN) {
		*what = DB_LOST;
		return err_new(ERR_UNAVAILABLE,
		    "the server closed the connection");
	}
	if (db->my != NULL)
		return NULL;
	*what = DB_AWAY;
	if (time_mono_ms() < db->not_before)
		return err_new(ERR_UNAVAILABLE,
		    "the server did not respond a moment ago");
	if ((e = server_dial(db)) == NULL) {
		db->pause = 0;
		return NULL;
	}
	db->pause = db->pause == 0 ? PAUSE_FIRST : 2 * db->pause;
	if (db->pause > PAUSE_LAST)
		db->pause = PAUSE_LAST;
	db->not_before = time_mono_ms() + db->pause;
	return e;
}
