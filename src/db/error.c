/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <time.h>

#include <mariadb/errmsg.h>
#include <mariadb/mysqld_error.h>

#include "db/conn.h"

static const struct {
	unsigned number;
	enum db_what what;
} numbers[] = {
	{ ER_DUP_ENTRY, DB_TWICE },
	{ ER_DUP_ENTRY_WITH_KEY_NAME, DB_TWICE },

	{ ER_LOCK_DEADLOCK, DB_AGAIN },
	{ ER_LOCK_WAIT_TIMEOUT, DB_AGAIN },
	{ ER_CHECKREAD, DB_AGAIN },
	{ ER_TABLE_DEF_CHANGED, DB_AGAIN }, /* after a snapshot */

	{ ER_UNKNOWN_STMT_HANDLER, DB_STALE },
	{ ER_NEED_REPREPARE, DB_STALE },
	{ CR_NEW_STMT_METADATA, DB_STALE },

	{ CR_SERVER_GONE_ERROR, DB_LOST },
	{ CR_SERVER_LOST, DB_LOST },
	{ CR_SERVER_LOST_EXTENDED, DB_LOST },
	{ CR_COMMANDS_OUT_OF_SYNC, DB_LOST },
	{ CR_MALFORMED_PACKET, DB_LOST },
	{ ER_CONNECTION_KILLED, DB_LOST },
	{ ER_SERVER_SHUTDOWN, DB_LOST },
	{ ER_NEW_ABORTING_CONNECTION, DB_LOST },
	{ ER_ABORTING_CONNECTION, DB_LOST },
	{ ER_NET_READ_ERROR, DB_LOST },
	{ ER_NET_READ_INTERRUPTED, DB_LOST },
	{ ER_NET_ERROR_ON_WRITE, DB_LOST },
	{ ER_NET_WRITE_INTERRUPTED, DB_LOST },
	{ ER_NET_PACKETS_OUT_OF_ORDER, DB_LOST },

	{ ER_QUERY_INTERRUPTED, DB_CUT },
	{ ER_STATEMENT_TIMEOUT, DB_CUT },

	{ CR_CONNECTION_ERROR, DB_AWAY },
	{ CR_CONN_HOST_ERROR, DB_AWAY },
	{ CR_UNKNOWN_HOST, DB_AWAY },
	{ CR_IPSOCK_ERROR, DB_AWAY },
	{ CR_SOCKET_CREATE_ERROR, DB_AWAY },
	{ CR_SERVER_HANDSHAKE_ERR, DB_AWAY },
	{ CR_SSL_CONNECTION_ERROR, DB_AWAY },
	{ ER_UNKNOWN_COM_ERROR, DB_AWAY }, /* no quorum: "not yet prepared" */
	{ ER_CON_COUNT_ERROR, DB_AWAY },
	{ ER_TOO_MANY_USER_CONNECTIONS, DB_AWAY },
	{ ER_USER_LIMIT_REACHED, DB_AWAY },
	{ ER_HOST_IS_BLOCKED, DB_AWAY },
	{ ER_HANDSHAKE_ERROR, DB_AWAY },
	{ ER_OUT_OF_RESOURCES, DB_AWAY },
	{ ER_CANT_CREATE_THREAD, DB_AWAY },
	{ ER_MAX_PREPARED_STMT_COUNT_REACHED, DB_AWAY },
	{ ER_OPTION_PREVENTS_STATEMENT, DB_AWAY }, /* read_only */
	{ ER_READ_ONLY_MODE, DB_AWAY },
	{ ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, DB_AWAY },

	{ ER_DISK_FULL, DB_FULL },
	{ ER_RECORD_FILE_FULL, DB_FULL },
	{ ER_OUTOFMEMORY, DB_FULL },
	{ ER_ERROR_DURING_COMMIT, DB_CUT },

	{ ER_NET_PACKET_TOO_LARGE, DB_LARGE },
	{ CR_NET_PACKET_TOO_LARGE, DB_LARGE },

	{ ER_DBACCESS_DENIED_ERROR, DB_DENIED },
	{ ER_ACCESS_DENIED_ERROR, DB_DENIED },
	{ ER_ACCESS_DENIED_NO_PASSWORD_ERROR, DB_DENIED },
	{ ER_BAD_DB_ERROR, DB_DENIED },
	{ ER_NOT_SUPPORTED_AUTH_MODE, DB_DENIED },
	{ ER_HOST_NOT_PRIVILEGED, DB_DENIED },
	{ ER_ACCOUNT_HAS_BEEN_LOCKED, DB_DENIED },
	{ ER_MUST_CHANGE_PASSWORD, DB_DENIED },
	{ ER_MUST_CHANGE_PASSWORD_LOGIN, DB_DENIED },
	{ ER_TABLEACCESS_DENIED_ERROR, DB_DENIED },
	{ ER_COLUMNACCESS_DENIED_ERROR, DB_DENIED },
	{ CR_AUTH_PLUGIN_CANNOT_LOAD, DB_DENIED },
};

static const enum err_code codes[] = {
	[DB_BUG] = ERR_INTERNAL,
	[DB_TWICE] = ERR_CONFLICT,
	[DB_AGAIN] = ERR_UNAVAILABLE,
	[DB_STALE] = ERR_INTERNAL,
	[DB_LOST] = ERR_UNAVAILABLE,
	[DB_CUT] = ERR_UNAVAILABLE,
	[DB_AWAY] = ERR_UNAVAILABLE,
	[DB_FULL] = ERR_UNAVAILABLE,
	[DB_LARGE] = ERR_TOO_LARGE,
	[DB_DENIED] = ERR_CONFIG,
};

bool
db_rejects_writes(const struct err *e)
{
	return e->sys == ER_OPTION_PREVENTS_STATEMENT ||
	    e->sys == ER_READ_ONLY_MODE || db_is_full(e);
}

bool
db_is_full(const struct err *e)
{
	return e->sys == ER_DISK_FULL || e->sys == ER_RECORD_FILE_FULL ||
	    e->sys == ER_ERROR_ON_WRITE;
}

enum db_what
db_what(unsigned number)
{
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].number == number)
			return numbers[i].what;
	return DB_BUG;
}

const struct err *
db_error(const char *who, unsigned number, const char *text)
{
	const enum err_code code = codes[db_what(number)];
	const struct err *e;

	e = err_number(code, (int)number, "%s: %u %s", who, number, text);
	if (code != ERR_TOO_LARGE)
		return e;
	return err_explain(e, code,
	    "This is more than MariaDB accepts at once. Send less, or let an "
	    "administrator raise max_allowed_packet in [mariadbd] of its "
	    "configuration, at least to 16M.");
}

const struct err *
db_unknown(const struct err *cause)
{
	cause = err_as(cause, ERR_UNAVAILABLE, DB_UNKNOWN);
	return err_explain(cause, ERR_UNAVAILABLE,
	    "The connection to the database was lost: the change may or may "
	    "not have been made. Check before you repeat the request.");
}

void
db_sleep(int64_t ms)
{
	uint32_t half = (uint32_t)(ms / 2 + 1);
	uint32_t wait = half + arc4random_uniform(half);
	struct timespec left = {
		.tv_sec = wait / 1000,
		.tv_nsec = (long)(wait % 1000) * 1000000,
	};

	(void)nanosleep(&left, NULL);
}
