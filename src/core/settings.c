/* SPDX-License-Identifier: ISC */
#include "core/settings.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/str.h"

#define DAY (INT64_C(24) * 3600)
#define GIB (INT64_C(1) << 30)
#define OWN_HOST "(localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\])"

static const char *const signup_values[] = { "closed", "viewer", "deployer",
	NULL };
static const char *const type_values[] = { "gitea", "gitlab", "github", "git",
	NULL };

/* clang-format off */
#define KEY(sec, key, t, fl, ...) {					\
	.section = #sec, .name = #key, .type = (t), .flags = (fl),	\
	.offset = offsetof(struct settings, sec.key), __VA_ARGS__ }
/* clang-format on */

const struct conf_key settings_keys[] = {
	KEY(database, socket, C_STR, CONF_PATH,
	    .fallback = "/run/mysqld/mysqld.sock",
	    .doc = "Unix socket of MariaDB."),
	KEY(database, host, C_STR, 0,
	    .doc = "Host of MariaDB; takes the place of the socket."),
	KEY(database, port, C_INT, 0, .min = 1, .max = 65535,
	    .fallback = "3306", .doc = "Port, with host."),
	KEY(database, name, C_STR, 0, .fallback = "slipway",
	    .doc = "Name of the database."),
	KEY(database, user, C_STR, 0, .fallback = "slipway",
	    .doc = "Account that reads and writes rows."),
	KEY(database, password, C_STR, CONF_SECRET,
	    .doc = "Its password; none for unix_socket authentication."),
	KEY(database, api_user, C_STR, 0,
	    .doc = "The API's account instead; its password is the same."),
	KEY(database, tls_ca, C_STR, CONF_PATH,
	    .doc = "CA file; with host, TLS is demanded and verified."),
	KEY(database, migrate_user, C_STR, 0,
	    .doc = "Account that changes the schema; default: user."),
	KEY(database, migrate_password, C_STR, CONF_SECRET,
	    .doc = "Its password."),
	KEY(database, timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "5", .doc = "For connecting, reading and writing."),

	KEY(api, socket, C_STR, CONF_PATH, .fallback = "/run/slipway/api.sock",
	    .doc = "FastCGI socket for everything not named below."),
	KEY(api, workers, C_INT, CONF_RELOAD, .min = 1, .max = 256,
	    .fallback = "4", .doc = "Processes behind it."),
	KEY(api, slow_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway/slow.sock",
	    .doc = "For requests that ask the Git server."),
	KEY(api, slow_workers, C_INT, CONF_RELOAD, .min = 0, .max = 256,
	    .fallback = "2", .doc = "Processes behind it; 0 = no such pool."),
	KEY(api, log_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway/log.sock",
	    .doc = "For logs that are waited for."),
	KEY(api, log_workers, C_INT, CONF_RELOAD, .min = 0, .max = 256,
	    .fallback = "8", .doc = "Processes behind it; 0 = no such pool."),
	KEY(api, socket_mode, C_MODE, 0, .min = 0, .max = 0777,
	    .fallback = "0660", .doc = "Mode of the sockets."),
	KEY(api, socket_group, C_STR, 0,
	    .doc = "Group of the sockets: the one that nginx runs as."),
	KEY(api, user, C_STR, 0,
	    .doc = "Account to run as, when started as root."),
	KEY(api, templates, C_LIST, CONF_RELOAD,
	    .fallback = SLIPWAY_TEMPLATES " /etc/slipway/templates",
	    .doc = "Folders of pipeline templates; a later one wins."),
	KEY(api, io_timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "10", .doc = "How long nginx may be silent."),
	KEY(api, request_timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 300,
	    .fallback = "25", .doc = "How long a request may wait, and run."),
	KEY(api, metrics, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether /api/metrics is served."),
	KEY(api, url, C_STR, CONF_RELOAD,
	    .doc = "Address of this service for links; default: that of "
		   "gitserver.redirect_uri."),

	KEY(auth, admins, C_LIST, CONF_RELOAD,
	    .doc = "Logins at the Git server that become admins."),
	KEY(auth, signup, C_STR, CONF_RELOAD, .values = signup_values,
	    .fallback = "closed",
	    .doc = "Role of users that no admin made, or closed."),
	KEY(auth, session_idle, C_SECONDS, CONF_RELOAD, .min = 60,
	    .max = 30 * DAY, .fallback = "28800",
	    .doc = "A session ends when unused for so long."),
	KEY(auth, session_max, C_SECONDS, CONF_RELOAD, .min = 60,
	    .max = 365 * DAY, .fallback = "604800",
	    .doc = "A session ends after so long."),
	KEY(auth, recheck, C_SECONDS, CONF_RELOAD, .min = 60, .max = DAY,
	    .fallback = "3600",
	    .doc = "How often the Git server is asked for a session's "
		   "account."),
	KEY(auth, remote_user, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether nginx says who it is, by REMOTE_USER."),

	KEY(gitserver, url, C_STR, CONF_RELOAD, .alias = "GITSERVER_URL",
	    .doc = "Address of the Git server."),
	KEY(gitserver, type, C_STR, CONF_RELOAD, .values = type_values,
	    .fallback = "gitea", .alias = "GITSERVER_TYPE",
	    .doc = "Kind of the Git server; gitea also means Forgejo."),
	KEY(gitserver, client_id, C_STR, CONF_RELOAD,
	    .alias = "GITSERVER_CLIENT_ID", .doc = "OAuth 2.0 client."),
	KEY(gitserver, client_secret, C_STR, CONF_RELOAD | CONF_SECRET,
	    .alias = "GITSERVER_CLIENT_SECRET",
	    .doc = "Its secret, where the Git server wants one."),
	KEY(gitserver, redirect_uri, C_STR, CONF_RELOAD,
	    .alias = "GITSERVER_REDIRECT_URI",
	    .doc = "Where the Git server sends the browser back to."),
	KEY(gitserver, token, C_STR, CONF_RELOAD | CONF_SECRET,
	    .alias = "GITSERVER_TOKEN",
	    .doc = "Token of the service itself at the Git server."),
	KEY(gitserver, api_url, C_STR, CONF_RELOAD,
	    .doc = "Address of its REST interface; default: as the type has "
		   "it."),
	KEY(gitserver, scopes, C_LIST, CONF_RELOAD,
	    .doc = "OAuth 2.0 scopes to ask for; default: as the type needs."),
	KEY(gitserver, report, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether commits get a status on the Git server."),
	KEY(gitserver, report_url, C_STR, CONF_RELOAD,
	    .doc = "Its link, with {id} for the deployment's number; default: "
		   "the log."),
	KEY(gitserver, tls_ca, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "CA file for https, in place of the system's."),
	KEY(gitserver, ssh_key_file, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "Private key for repositories over ssh."),
	KEY(gitserver, ssh_known_hosts, C_STR, CONF_RELOAD | CONF_PATH,
	    .doc = "Host keys for ssh, beside the system's."),
	KEY(gitserver, allowed_hosts, C_LIST, CONF_RELOAD,
	    .doc = "Hosts of repositories beside the Git server's own."),
	KEY(gitserver, allow_local, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether a repository may be a path on the runner."),
	KEY(gitserver, allow_http, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether the Git server may be asked without TLS."),
	KEY(gitserver, timeout, C_SECONDS, CONF_RELOAD, .min = 1, .max = 20,
	    .fallback = "9",
	    .doc = "How long a request may wait for the Git server."),

	KEY(secrets, key_file, C_STR, CONF_PATH,
	    .fallback = "/etc/slipway/secret.key",
	    .doc = "Key that seals what the database must not know."),
	KEY(secrets, deploy_key_file, C_STR, CONF_PATH,
	    .doc = "Private key that opens secret variables; default: "
		   "deploy.key where key_file lies."),
	KEY(secrets, deploy_public_file, C_STR, CONF_PATH,
	    .doc = "Public key that seals them; default: deploy.pub where "
		   "key_file lies."),

	KEY(runner, name, C_STR, 0,
	    .doc = "Name of this runner; default: the host's."),
	KEY(runner, slots, C_INT, CONF_RELOAD, .min = 1, .max = 256,
	    .fallback = "4", .doc = "Deployments that run at once."),
	KEY(runner, poll, C_SECONDS, CONF_RELOAD, .min = 1, .max = 3600,
	    .fallback = "1", .doc = "How often the queue is looked at."),
	KEY(runner, lease, C_SECONDS, 0, .min = 3, .max = 3600,
	    .fallback = "30",
	    .doc = "A silent runner's deployments are given up after."),
	KEY(runner, wake_socket, C_STR, CONF_PATH,
	    .fallback = "/run/slipway-runner/wake.sock",
	    .doc = "Where the API says that there is work."),
	KEY(runner, wake_group, C_STR, 0, .doc = "Group that may write to it."),
	KEY(runner, spool, C_STR, CONF_PATH, .fallback = "/var/spool/slipway",
	    .doc = "Logs and results until MariaDB has them."),
	KEY(runner, workspaces, C_STR, CONF_PATH,
	    .fallback = "/var/lib/slipway/workspaces",
	    .doc = "Root of the projects' checkouts."),
	KEY(runner, user, C_STR, 0, .fallback = "slipway",
	    .doc = "Account of the dispatcher."),
	KEY(runner, privilege_drop, C_BOOL, 0, .fallback = "yes",
	    .doc = "Whether steps run under accounts of their own."),
	KEY(runner, job_user, C_STR, CONF_RELOAD,
	    .doc = "One account for all projects instead of the range."),
	KEY(runner, uid_first, C_INT, CONF_RELOAD, .min = 1,
	    .max = INT64_C(4294967293), .fallback = "300000",
	    .doc = "First of the user ids that projects run under."),
	KEY(runner, uid_count, C_INT, CONF_RELOAD, .min = 1, .max = 1000000,
	    .fallback = "65536", .doc = "How many there are."),
	KEY(runner, watch_uid_first, C_INT, CONF_RELOAD, .min = 0,
	    .max = INT64_C(4294967038), .fallback = "0",
	    .doc = "First of 256 user ids that watch over steps."),
	KEY(runner, private_tmp, C_BOOL, CONF_RELOAD, .fallback = "yes",
	    .doc = "Whether each deployment has a /tmp of its own."),
	KEY(runner, path, C_STR, CONF_RELOAD,
	    .fallback = "/usr/local/bin:/usr/bin:/bin:"
			"/usr/local/sbin:/usr/sbin:/sbin",
	    .doc = "PATH of the steps."),
	KEY(runner, grace, C_SECONDS, CONF_RELOAD, .min = 0, .max = 3600,
	    .fallback = "10", .doc = "From the signal TERM to KILL."),
	KEY(runner, cancel_grace, C_SECONDS, CONF_RELOAD, .min = 0, .max = 3600,
	    .fallback = "30",
	    .doc = "For the cleanup steps of a canceled deployment."),
	KEY(runner, checkout_timeout, C_SECONDS, CONF_RELOAD, .min = 1,
	    .max = DAY, .fallback = "600", .doc = "For the checkout."),
	KEY(runner, step_timeout, C_SECONDS, CONF_RELOAD, .min = 0,
	    .max = 30 * DAY, .fallback = "0",
	    .doc = "For steps that name none; 0 = no limit."),
	KEY(runner, pipeline_timeout, C_SECONDS, CONF_RELOAD, .min = 0,
	    .max = 30 * DAY, .fallback = "3600",
	    .doc = "For pipelines that name none; 0 = no limit."),
	KEY(runner, log_max, C_SIZE, CONF_RELOAD, .min = 1024, .max = 64 * GIB,
	    .fallback = "64m", .doc = "Size of one deployment's log."),
	KEY(runner, memory_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 1024 * GIB, .fallback = "0",
	    .doc = "Memory of one deployment; 0 = no limit."),
	KEY(runner, pids_max, C_INT, CONF_RELOAD, .min = 0, .max = 4194304,
	    .fallback = "4096", .doc = "Processes of one; 0 = no limit."),
	KEY(runner, open_files_max, C_INT, CONF_RELOAD, .min = 64,
	    .max = 1048576, .fallback = "4096",
	    .doc = "Open files of one process."),
	KEY(runner, file_size_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 1024 * GIB, .fallback = "0",
	    .doc = "Size of one file; 0 = no limit."),
	KEY(runner, submodules, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether submodules are checked out."),
	KEY(runner, user_namespaces, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Whether steps may create user namespaces."),
	KEY(runner, log_days, C_INT, CONF_RELOAD, .min = 0, .max = 36500,
	    .fallback = "90", .doc = "Logs go after so many days; 0 = never."),
	KEY(runner, log_total_max, C_SIZE, CONF_RELOAD, .min = 0,
	    .max = 65536 * GIB, .fallback = "10g",
	    .doc = "Size of all logs together, oldest go first; 0 = any."),

	KEY(log, syslog, C_BOOL, 0, .fallback = "no",
	    .doc = "syslog(3) instead of standard error."),
	KEY(log, debug, C_BOOL, CONF_RELOAD, .fallback = "no",
	    .doc = "Say more."),

	{ .section = "run_as",
	    .type = C_MAP,
	    .flags = CONF_RELOAD,
	    .offset = offsetof(struct settings, run_as),
	    .doc = "Accounts of their own for named projects." },
	{ .section = NULL },
};

int64_t
settings_watch_first(const struct settings_runner *r)
{
	return r->watch_uid_first != 0 ? r->watch_uid_first :
					 r->uid_first + r->uid_count;
}

bool
settings_plain(const struct settings_gitserver *s, const char *url)
{
	static const char scheme[] = "http://";
	const size_t len = sizeof(scheme) - 1;

	return strncasecmp(url, scheme, len) == 0 &&
	    (s->allow_http ||
		str_matches(url + len, OWN_HOST "(:[0-9]+)?(/.*)?"));
}

static const char *
beside(struct arena *a, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');

	return arena_printf(a, "%.*s/%s",
	    slash == NULL ? 0 : (int)(slash - file), file, name);
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
