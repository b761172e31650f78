/* SPDX-License-Identifier: ISC */
/*
 * The complete configuration of all programs: one struct, one table.
 * slipway.conf(5) documents the same keys; a test compares both.
 */
#ifndef SLIPWAY_CORE_SETTINGS_H
#define SLIPWAY_CORE_SETTINGS_H

#include "core/conf.h"

struct settings_database {
	const char *socket;
	const char *host; /* NULL = use the socket */
	int64_t port;
	const char *name;
	const char *user;
	const char *password;
	const char *tls_ca; /* NULL = the system's */
	const char *tls_cert;
	const char *tls_key;
	bool allow_plain;
	const char *api_user;     /* NULL = user */
	const char *migrate_user; /* NULL = user */
	const char *migrate_password;
	int64_t timeout; /* seconds: connect, read, write */
};

struct settings_api {
	const char *socket; /* of the pool for all other requests */
	int64_t workers;
	const char *slow_socket; /* of the pool for slow requests */
	int64_t slow_workers;
	const char *live_socket;      /* of slipway-live */
	int64_t live_user_clients;    /* that it holds for one user */
	const char *live_wake_socket; /* on which changes are announced */
	int64_t socket_mode;
	const char *socket_group;
	const char *user;        /* to run as, if started as root */
	const char *templates;   /* folders; a later one overrides */
	int64_t io_timeout;      /* seconds that a peer may be silent */
	int64_t request_timeout; /* limit in seconds, once for waiting and once
				  * for running */
	bool metrics;
	const char *url; /* of this service, as others reach it */
};

struct settings_auth {
	const char *admins;
	const char *signup;
	int64_t session_idle;
	int64_t session_max;
	int64_t recheck;  /* seconds */
	bool remote_user; /* trust the user name from nginx */
};

struct settings_gitserver {
	const char *url;
	const char *type;
	const char *client_id;
	const char *client_secret;
	const char *redirect_uri;
	const char *token;
	const char *name;       /* for people; NULL = the type's */
	const char *token_user; /* NULL = the type's */
	const char *api_url;    /* NULL = derived from the type */
	const char *scopes;     /* requested at sign-in; NULL = the type's
				 * default */
	bool report;            /* send commit statuses */
	const char *report_url; /* link of a status; {id} is the deployment's */
	const char *tls_ca;     /* for https repositories */
	const char *ssh_key_file;
	const char *ssh_key; /* text of a key in its place; no setting */
	const char *ssh_known_hosts;
	const char *allowed_hosts;
	bool allow_local;
	bool allow_http;
	int64_t timeout; /* seconds */
};

struct settings_secrets {
	const char *key_file;
	const char *deploy_key_file;    /* NULL = in the folder of key_file */
	const char *deploy_public_file; /* the same */
};

struct settings_runner {
	const char *name;   /* NULL = the host's */
	const char *labels; /* environments can be bound to one */
	int64_t slots;
	int64_t poll;  /* seconds */
	int64_t lease; /* seconds */
	const char *wake_socket;
	const char *wake_group; /* group that may write to it */
	const char *spool;
	const char *workspaces;
	const char *user; /* of the dispatcher */
	bool privilege_drop;
	const char *job_user; /* one account for all; NULL = the range */
	int64_t uid_first;
	int64_t uid_count;
	int64_t watch_uid_first; /* 0 = after the range */
	bool private_tmp;
	const char *path;     /* PATH of the steps */
	int64_t grace;        /* seconds from TERM to KILL */
	int64_t cancel_grace; /* seconds for cleanup steps after a cancel */
	int64_t checkout_timeout;
	int64_t git_patience; /* seconds that a deployment waits for its Git
			       * server; 0 = it fails at once */
	int64_t step_timeout; /* 0 = none */
	int64_t pipeline_timeout;
	int64_t log_max;    /* bytes of one deployment's log */
	int64_t memory_max; /* bytes, 0 = none */
	int64_t pids_max;
	int64_t open_files_max;
	int64_t file_size_max;
	int64_t cache_max; /* bytes of a project's cache, 0 = no caches */
	bool submodules;
	bool user_namespaces;
	int64_t catch_up;        /* seconds, 0 = never */
	int64_t log_days;        /* logs are deleted after; 0 = never */
	int64_t deployment_days; /* the same for deployments */
	int64_t workspace_days;  /* the same for what deleted projects leave
				* on the host */
	int64_t delivery_days;   /* the same for events of Git servers and
				* messages of notifiers; at least 1 */
	int64_t audit_days;      /* the same for entries of the audit log */
	int64_t log_total_max;   /* bytes of all logs, oldest deleted first; 0 =
			        * no limit */
};

struct settings_mail {
	const char *server; /* host[:port]; NULL = no mail */
	const char *security;
	const char *from; /* NULL = slipway@ this host */
	const char *user;
	const char *password;
	const char *tls_ca;
};

struct settings_notify {
	const char *private_networks; /* NULL = none */
	const char *tls_ca;
};

struct settings_log {
	bool syslog;
	bool debug;
};

struct settings {
	struct settings_database database;
	struct settings_api api;
	struct settings_auth auth;
	struct settings_gitserver gitserver;
	struct settings_secrets secrets;
	struct settings_runner runner;
	struct settings_mail mail;
	struct settings_notify notify;
	struct settings_log log;
	struct conf_map run_as; /* project directory = account */
};

#define SETTINGS_MAIL_STARTTLS "starttls"
#define SETTINGS_MAIL_TLS "tls"
#define SETTINGS_MAIL_NONE "none"

extern const struct conf_key settings_keys[];

/* Whether the address may be requested without TLS: the settings allow it, or
 * the address is on this host, so that nothing can intercept the connection. */
bool settings_plain(const struct settings_gitserver *, const char *url);
/* Whether connections to the database require TLS and a valid certificate: all
 * that leave this host, unless the settings allow plain ones, and all with a CA
 * or a certificate of their own. */
bool settings_database_tls(const struct settings_database *);
/* The public address of this service, without a slash at its end, in the arena;
 * NULL if neither api.url nor gitserver.redirect_uri is set. */
const char *settings_url(const struct settings *, struct arena *);
/* How connections to the mail server are secured: one of SETTINGS_MAIL_*. */
const char *settings_mail_security(const struct settings_mail *);
/* The files of the key pair for secret variables, with the defaults applied. */
const char *settings_deploy_key(struct arena *,
    const struct settings_secrets *);
const char *settings_deploy_public(struct arena *,
    const struct settings_secrets *);

#endif
