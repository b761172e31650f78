/* SPDX-License-Identifier: ISC */
#include "core/settings.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/address.h"
#include "core/git.h"
#include "core/network.h"
#include "core/str.h"

#define DAY (INT64_C(24) * 3600)
#define GIB (INT64_C(1) << 30)

static const char *const signup_values[] = { "closed", "guest", "viewer",
	"deployer", NULL };
static const char *const type_values[] = { "gitea", "gitlab", "github", "git",
	NULL };

static const char *const security_values[] = { "starttls", "tls", "none",
	NULL };

#define LABEL "[A-Za-z0-9._-]{1,50}"

static const char *
labels_fault(const char *labels)
{
	return str_matches(labels, "[, \t]*(" LABEL "([, \t]+|$))*") ?
	    NULL :
	    "must be labels of up to 50 letters, digits and . _ -";
}

static const char *
mail_server_fault(const char *server)
{
	struct address ad;

	return address_read_host(server, strlen(server), &ad) &&
		ad.user_len == 0 ?
	    NULL :
	    "must be a host like mail.example.org or mail.example.org:587";
}

static const char *
mail_from_fault(const char *from)
{
	return str_matches(from, ADDRESS_MAIL_ERE) ?
	    NULL :
	    "must be an address like slipway@example.org";
}

/* clang-format off */
#define KEY(sec, key, t, fl, ...) {					\
	.section = #sec, .name = #key, .type = (t), .flags = (fl),	\
	.offset = offsetof(struct settings, sec.key), __VA_ARGS__ }
#define GONE(sec, key) { .section = #sec, .name = #key, .type = C_GONE }
/* clang-format on */

const struct conf_key settings_keys[] = {
	KEY(database, socket, C_STR, CONF_PATH,
	    .fallback = "/run/mysqld/mysqld.sock",
	    .doc = "Unix-domain socket of MariaDB."),
	KEY(database, host, C_STR, 0,
	    .doc = "Host of MariaDB; set it to connect over TCP."),
	KEY(database, port, C_INT, 0, .min = 1, .max = 65535,
	    .fallback = "3306", .doc = "TCP port on that host."),
	KEY(database, name, C_STR, 0, .fallback = "slipway",
	    .doc = "Name of the database."),
	KEY(database, user, C_STR, 0, .fallback = "slipway",
	    .doc = "Database account that reads and writes rows."),
	KEY(database, password, C_STR, CONF_SECRET,
	    .doc = "Password of user; none for unix_socket authentication."),
	KEY(database, api_user, C_STR, 0,
	    .doc = "Database account of the API; default: user."),
	KEY(database, tls_ca, C_STR, CONF_PATH,
	    .doc = "CA file for host, instead of the system's."),
	KEY(database, tls_cert, C_STR, CONF_PATH,
	    .doc = "Certificate that this host presents to MariaDB."),
	KEY(database, tls_key, C_STR, CONF_PATH,
	    .doc = "Private key of tls_cert."),
	KEY(database, allow_plain, C_BOOL, 0, .fallback = "no",
	    .doc = "Whether to connect to another host without TLS."),
	KEY(database, migrate_user, C_STR, 0,
	    .doc = "Database account that changes the schema; default: user."),
	KEY(database, migrate_password, C_STR, CONF_SECRET,
	    .doc = "Password of migrate_user."),
	KEY(database, timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "5",
	    .doc = "Limit for connecting, reading and writing."),

	KEY(api, socket, C_STR, CONF_PATH, .fallback = "/run/slipway/api.sock",
	    .doc = "FastCGI socket for requests that no other pool serves."),
	KEY(api, workers, C_INT, CONF_RELOAD, .min = 1, .max = 256,
	    .fallback = "4",
	    .doc = "Number of workers that serve this socket."),
	KEY(api, slow_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway/slow.sock",
	    .doc =
		"FastCGI socket for requests that query the Git server, and for "
		"exports and imports of projects."),
	KEY(api, slow_workers, C_INT, CONF_RELOAD, .min = 0, .max = 256,
	    .fallback = "2",
	    .doc =
		"Number of workers that serve slow_socket; 0 = no such pool."),
	GONE(api, log_socket),
	GONE(api, log_workers),
	KEY(api, live_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway/live.sock",
	    .doc = "Socket for streams of events and requests that wait."),
	KEY(api, live_user_clients, C_INT, 0, .min = 1, .max = 4096,
	    .fallback = "256",
	    .doc = "How many streams and requests that wait slipway-live holds "
		   "for one user."),
	KEY(api, live_wake_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway/live-wake.sock",
	    .doc = "Socket on which the API and the dispatcher announce "
		   "changes to slipway-live."),
	KEY(api, socket_mode, C_MODE, 0, .min = 0, .max = 0777,
	    .fallback = "0660", .doc = "Mode of the sockets."),
	KEY(api, socket_group, C_STR, 0,
	    .doc = "Group of the sockets: the one that nginx runs as."),
	KEY(api, user, C_STR, 0,
	    .doc = "Account to run as when started as root."),
	KEY(api, templates, C_LIST, CONF_RELOAD,
	    .fallback = SLIPWAY_TEMPLATES " /etc/slipway/templates",
	    .doc = "Directories of templates; later ones take precedence."),
	KEY(api, io_timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "10",
	    .doc = "How long nginx may send or accept no data."),
	KEY(api, request_timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "25",
	    .doc = "How long a request may wait for a worker, and then run."),
	KEY(api, metrics, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether /api/metrics is served."),
	KEY(api, url, C_STR, CONF_RELOAD,
	    .doc =
		"Public address of this service, for links; default: that of "
		"gitserver.redirect_uri."),

	KEY(auth, admins, C_LIST, CONF_RELOAD,
	    .doc = "Logins at the Git server whose users become admins."),
	KEY(auth, signup, C_STR, CONF_RELOAD, .values = signup_values,
	    .fallback = "closed",
	    .doc = "Role of users that no admin created, or closed."),
	KEY(auth, session_idle, C_SECONDS, CONF_RELOAD, .min = 60,
	    .max = 30 * DAY, .fallback = "28800",
	    .doc = "A session expires when unused for this long."),
	KEY(auth, session_max, C_SECONDS, CONF_RELOAD, .min = 60,
	    .max = 365 * DAY, .fallback = "604800",
	    .doc = "A session expires at this age."),
	KEY(auth, recheck, C_SECONDS, CONF_RELOAD, .min = 60, .max = DAY,
	    .fallback = "3600",
	    .doc =
		"How often the account of a user with a session or an API token is "
		"checked at the Git server."),
	KEY(auth, remote_user, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether nginx authenticates users and sets REMOTE_USER."),

	KEY(gitserver, url, C_STR, CONF_RELOAD, .alias = "GITSERVER_URL",
	    .doc = "Address of the Git server."),
	KEY(gitserver, type, C_STR, CONF_RELOAD, .values = type_values,
	    .fallback = "gitea", .alias = "GITSERVER_TYPE",
	    .doc = "Type of the Git server; gitea includes Forgejo."),
	KEY(gitserver, client_id, C_STR, CONF_RELOAD,
	    .alias = "GITSERVER_CLIENT_ID",
	    .doc = "Client id of the OAuth 2.0 application."),
	KEY(gitserver, client_secret, C_STR, CONF_RELOAD | CONF_SECRET,
	    .alias = "GITSERVER_CLIENT_SECRET",
	    .doc = "Client secret, if the Git server requires one."),
	KEY(gitserver, redirect_uri, C_STR, CONF_RELOAD,
	    .alias = "GITSERVER_REDIRECT_URI",
	    .doc = "Address to which the Git server sends the browser back."),
	KEY(gitserver, token, C_STR, CONF_RELOAD | CONF_SECRET,
	    .alias = "GITSERVER_TOKEN",
	    .doc = "Access token of the service itself at the Git server."),
	KEY(gitserver, name, C_STR, CONF_RELOAD,
	    .doc =
		"Name of the server on the button to sign in; default: that of the type."),
	KEY(gitserver, token_user, C_STR, CONF_RELOAD,
	    .doc = "User name that git sends with a token over https; default: "
		   "the one that the type needs."),
	KEY(gitserver, api_url, C_STR, CONF_RELOAD,
	    .doc =
		"Address of the server's REST API; default: derived from url and type."),
	KEY(gitserver, scopes, C_LIST, CONF_RELOAD,
	    .doc =
		"OAuth 2.0 scopes to request; default: those that the type needs."),
	KEY(gitserver, report, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether to report commit statuses to the Git server."),
	KEY(gitserver, report_url, C_STR, CONF_RELOAD,
	    .doc =
		"Link in a commit status, with {id} for the deployment's id; "
		"default: the console's page of the deployment."),
	KEY(gitserver, tls_ca, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "CA file for https, instead of the system's."),
	KEY(gitserver, ssh_key_file, C_STR, CONF_RELOAD | CONF_PATH,
	    .check = git_ssh_key_fault,
	    .doc = "Private key for repositories over SSH, of projects without "
		   "a deploy key of their own."),
	KEY(gitserver, ssh_known_hosts, C_STR, CONF_RELOAD | CONF_PATH,
	    .check = git_known_hosts_fault,
	    .doc = "Host keys for SSH, in addition to the system's."),
	KEY(gitserver, allowed_hosts, C_LIST, CONF_RELOAD,
	    .doc =
		"Hosts of repositories in addition to the Git server's own."),
	KEY(gitserver, allow_local, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether a repository may be a path on the runner."),
	KEY(gitserver, allow_http, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether to connect to the Git server without TLS."),
	KEY(gitserver, timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 20,
	    .fallback = "9",
	    .doc = "How long a request may wait for the Git server."),

	KEY(secrets, key_file, C_STR, CONF_PATH,
	    .fallback = "/etc/slipway/secret.key",
	    .doc = "Key file for values that the API encrypts and decrypts."),
	KEY(secrets, deploy_key_file, C_STR, CONF_PATH,
	    .doc = "Private keys that decrypt secret variables; default: "
		   "deploy.key beside key_file."),
	KEY(secrets, deploy_public_file, C_STR, CONF_PATH,
	    .doc = "Public key that encrypts secret variables; default: "
		   "deploy.pub beside key_file."),

	KEY(runner, name, C_STR, 0,
	    .doc = "Name of this runner; default: the host name."),
	KEY(runner, labels, C_LIST, CONF_RELOAD, .check = labels_fault,
	    .doc = "Labels to which environments can be bound."),
	KEY(runner, slots, C_INT, CONF_RELOAD, .min = 0, .max = 256,
	    .fallback = "4", .doc = "Number of deployments that run at once."),
	KEY(runner, poll, C_SECONDS, CONF_RELOAD, .min = 1, .max = 3600,
	    .fallback = "1",
	    .doc = "How often the dispatcher polls the queue."),
	KEY(runner, lease, C_SECONDS, 0, .min = 3, .max = 3600,
	    .fallback = "30",
	    .doc = "How long a claim lasts unless the dispatcher renews it."),
	KEY(runner, wake_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway-runner/wake.sock",
	    .doc = "Socket on which the API announces deployments."),
	KEY(runner, wake_group, C_STR, 0,
	    .doc = "Group that may write to wake_socket."),
	KEY(runner, spool, C_STR, CONF_PATH, .fallback = "/var/spool/slipway",
	    .doc = "The spool: logs and results until they are in MariaDB."),
	KEY(runner, workspaces, C_STR, CONF_PATH,
	    .fallback = "/var/lib/slipway/workspaces",
	    .doc = "Directory that contains the workspaces."),
	KEY(runner, user, C_STR, 0, .fallback = "slipway",
	    .doc = "Account of the dispatcher."),
	KEY(runner, privilege_drop, C_BOOL, 0, .fallback = "yes",
	    .doc = "Whether steps run under accounts of their own."),
	KEY(runner, job_user, C_STR, CONF_RELOAD,
	    .doc = "One account for all projects instead of the range."),
	KEY(runner, uid_first, C_INT, CONF_RELOAD, .min = 1,
	    .max = INT64_C(4294967293), .fallback = "2100000000",
	    .doc = "First of the user ids that projects run under."),
	KEY(runner, uid_count, C_INT, CONF_RELOAD, .min = 1, .max = 1000000,
	    .fallback = "65536", .doc = "Number of user ids in the range."),
	KEY(runner, watch_uid_first, C_INT, CONF_RELOAD, .min = 0,
	    .max = INT64_C(4294967038), .fallback = "0",
	    .doc = "First of 256 user ids for slipway-job itself."),
	KEY(runner, private_tmp, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether each deployment has its own /tmp."),
	KEY(runner, path, C_STR, CONF_RELOAD,
	    .fallback = "/usr/local/bin:/usr/bin:/bin:"
			"/usr/local/sbin:/usr/sbin:/sbin",
	    .doc = "PATH of the steps."),
	KEY(runner, grace, C_SECONDS, CONF_RELOAD, .min = 0, .max = 3600,
	    .fallback = "10", .doc = "Time from SIGTERM to SIGKILL."),
	KEY(runner, cancel_grace, C_SECONDS, CONF_RELOAD, .min = 0, .max = 3600,
	    .fallback = "30",
	    .doc =
		"Time limit for the cleanup steps of a canceled deployment."),
	KEY(runner, checkout_timeout, C_SECONDS, CONF_RELOAD, .min = 1,
	    .max = DAY, .fallback = "600",
	    .doc = "Time limit for the checkout."),
	KEY(runner, git_patience, C_SECONDS, CONF_RELOAD, .min = 0, .max = DAY,
	    .fallback = "600",
	    .doc = "How long a deployment waits for a Git server that does "
		   "not respond, from the first failure on; 0 = it fails at "
		   "once."),
	KEY(runner, step_timeout, C_SECONDS, CONF_RELOAD, .min = 0,
	    .max = 30 * DAY, .fallback = "0",
	    .doc = "Time limit for steps that set none; 0 = no limit."),
	KEY(runner, pipeline_timeout, C_SECONDS, CONF_RELOAD, .min = 0,
	    .max = 30 * DAY, .fallback = "3600",
	    .doc = "Time limit for pipelines that set none; 0 = no limit."),
	KEY(runner, log_max, C_SIZE, CONF_RELOAD, .min = 1024, .max = 64 * GIB,
	    .fallback = "64m", .doc = "Maximum size of a deployment's log."),
	KEY(runner, memory_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 1024 * GIB, .fallback = "0",
	    .doc = "Maximum memory of a deployment; 0 = no limit."),
	KEY(runner, pids_max, C_INT, CONF_RELOAD, .min = 0, .max = 4194304,
	    .fallback = "4096",
	    .doc =
		"Maximum number of processes of a deployment; 0 = no limit."),
	KEY(runner, open_files_max, C_INT, CONF_RELOAD, .min = 64,
	    .max = 1048576, .fallback = "4096",
	    .doc = "Maximum number of open files of a process."),
	KEY(runner, file_size_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 1024 * GIB, .fallback = "0",
	    .doc = "Maximum size of a file that a step writes; 0 = no limit."),
	KEY(runner, cache_max, C_SIZE, CONF_RELOAD, .min = 0, .max = 1024 * GIB,
	    .fallback = "1g",
	    .doc = "Maximum size of a project's cache; 0 = no caches."),
	KEY(runner, submodules, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether to check out submodules of projects "
		   "that do not say it."),
	KEY(runner, user_namespaces, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether steps may create user namespaces."),
	KEY(runner, catch_up, C_SECONDS, CONF_RELOAD, .min = 0, .max = DAY,
	    .fallback = "900",
	    .doc = "How often to look for pushes whose events were not "
		   "delivered; 0 = never."),
	KEY(runner, log_days, C_INT, CONF_RELOAD, .min = 0, .max = 36500,
	    .fallback = "90",
	    .doc = "Age in days at which logs are deleted; 0 = never."),
	KEY(runner, deployment_days, C_INT, CONF_RELOAD, .min = 0, .max = 36500,
	    .fallback = "0",
	    .doc = "Age in days at which deployments are deleted; 0 = never."),
	KEY(runner, workspace_days, C_INT, CONF_RELOAD, .min = 0, .max = 36500,
	    .fallback = "1",
	    .doc = "Days after which the workspace and cache of a deleted "
		   "project are deleted; 0 = never."),
	KEY(runner, delivery_days, C_INT, CONF_RELOAD, .min = 1, .max = 36500,
	    .fallback = "90",
	    .doc = "Age in days at which the records of push events and of "
		   "delivered messages are deleted."),
	KEY(runner, audit_days, C_INT, CONF_RELOAD, .min = 0, .max = 36500,
	    .fallback = "365",
	    .doc = "Age in days at which entries of the audit log are deleted; "
		   "0 = never."),
	KEY(runner, log_total_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 65536 * GIB, .fallback = "10g",
	    .doc = "Maximum size of all logs together; 0 = no limit."),

	KEY(mail, server, C_STR, CONF_RELOAD, .check = mail_server_fault,
	    .doc = "Mail server as host:port; default: no mail is sent."),
	KEY(mail, security, C_STR, CONF_RELOAD, .values = security_values,
	    .doc = "How to secure the connection: starttls, tls or none; "
		   "default: none to this host, else starttls."),
	KEY(mail, from, C_STR, CONF_RELOAD, .check = mail_from_fault,
	    .doc = "Sender address; default: slipway at this host."),
	KEY(mail, user, C_STR, CONF_RELOAD,
	    .doc = "User name, if the mail server requires one."),
	KEY(mail, password, C_STR, CONF_RELOAD | CONF_SECRET,
	    .doc = "Password of user."),
	KEY(mail, tls_ca, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "CA file for the mail server, instead of the system's."),

	KEY(notify, private_networks, C_LIST, CONF_RELOAD,
	    .check = network_fault,
	    .doc = "Private addresses and networks to which notifiers may "
		   "send."),
	KEY(notify, tls_ca, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "CA file for notifiers, instead of the system's."),

	KEY(log, syslog, C_BOOL, 0, .fallback = "no",
	    .doc = "Whether to log to syslog(3) instead of standard error."),
	KEY(log, debug, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether to log debugging messages."),

	{ .section = "run_as",
	    .type = C_MAP,
	    .flags = CONF_RELOAD,
	    .offset = offsetof(struct settings, run_as),
	    .doc = "Named accounts for some projects." },
	{ .section = NULL },
};

bool
settings_plain(const struct settings_gitserver *s, const char *url)
{
	struct address ad;

	return address_read(url, &ad) && ad.scheme == ADDRESS_HTTP &&
	    (s->allow_http || address_is_loopback(&ad));
}

const char *
settings_url(const struct settings *s, struct arena *a)
{
	const char *base = s->api.url;
	struct address ad;
	size_t len;

	if (base == NULL && s->gitserver.redirect_uri != NULL &&
	    address_read(s->gitserver.redirect_uri, &ad) && address_is_web(&ad))
		base = address_origin(a, &ad);
	if (base == NULL)
		return NULL;
	len = strlen(base);
	while (len > 0 && base[len - 1] == '/')
		len--;
	return arena_strndup(a, base, len);
}

const char *
settings_mail_security(const struct settings_mail *s)
{
	struct address ad;

	if (s->security != NULL)
		return s->security;
	return address_read_host(s->server, strlen(s->server), &ad) &&
		address_is_loopback(&ad) ?
	    SETTINGS_MAIL_NONE :
	    SETTINGS_MAIL_STARTTLS;
}

static const char *
beside(struct arena *a, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');

	return arena_printf(a, "%.*s/%s",
	    slash == NULL ? 0 : (int)(slash - file), file, name);
}

bool
settings_database_tls(const struct settings_database *s)
{
	struct address ad;

	if (s->host == NULL)
		return false;
	if (s->tls_ca != NULL || s->tls_cert != NULL)
		return true;
	return !s->allow_plain && strcmp(s->host, "::1") != 0 &&
	    !(address_read_host(s->host, strlen(s->host), &ad) &&
		address_is_loopback(&ad));
}

const char *
settings_deploy_key(struct arena *a, const struct settings_secrets *s)
{
	return s->deploy_key_file != NULL ?
	    s->deploy_key_file :
	    beside(a, s->key_file, "deploy.key");
}

const char *
settings_deploy_public(struct arena *a, const struct settings_secrets *s)
{
	return s->deploy_public_file != NULL ?
	    s->deploy_public_file :
	    beside(a, s->key_file, "deploy.pub");
}
