/* SPDX-License-Identifier: ISC */
#include "core/proc.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/unistd.h>

#include "core/log.h"
#include "core/num.h"

#define PROCS_MAX 65536 /* seen in one pass over /proc; another follows */
#define CHILDREN_SIZE 4096

const struct err *
proc_account_named(const char *name, struct proc_account *out)
{
	const struct passwd *pw;
	int n = PROC_GROUPS;

	(void)memset(out, 0, sizeof(*out));
	errno = 0;
	if ((pw = getpwnam(name)) == NULL)
		return err_new(ERR_NOTFOUND, "unknown account %s", name);
	out->uid = pw->pw_uid;
	out->gid = pw->pw_gid;
	if (getgrouplist(name, pw->pw_gid, out->groups, &n) == -1)
		return err_new(ERR_CONFIG, "%s is in more than %d groups", name,
		    PROC_GROUPS);
	out->ngroups = (size_t)n;
	return NULL;
}

void
proc_signals_default(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &action, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

const struct err *
proc_stdio_null(void)
{
	int fd, to;

	if ((fd = open("/dev/null", O_RDWR)) == -1)
		return err_errno("/dev/null");
	for (to = 0; to <= 2; to++)
		if (fd != to && dup2(fd, to) == -1)
			return err_errno("dup2");
	if (fd > 2)
		(void)close(fd);
	return NULL;
}

const struct err *
proc_fds_place(int *fds, size_t n)
{
	const int first = 3;
	int top = first + (int)n;
	size_t i;

	for (i = 0; i < n; i++) { /* move those in the way first */
		if (fds[i] >= top)
			continue;
		if ((fds[i] = fcntl(fds[i], F_DUPFD, top)) == -1)
			return err_errno("dup");
	}
	for (i = 0; i < n; i++)
		if (dup2(fds[i], first + (int)i) == -1)
			return err_errno("dup2");
	closefrom(top);
	return NULL;
}

/* Drops what an exec could restore.  Without the right to do so (a unit's
 * bounding set may lack it), no_new_privs alone must suffice. */
static const struct err *
drop_bounding(void)
{
	int cap;

	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == -1 &&
		    errno != EPERM)
			return err_errno("drop capability %d", cap);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1 &&
	    errno != EINVAL)
		return err_errno("clear ambient capabilities");
	return NULL;
}

static bool
groups_are(const struct proc_account *who)
{
	gid_t got[PROC_GROUPS + 1];
	int n = getgroups((int)PROC_GROUPS + 1, got);
	size_t i, k;

	if (n < 0 || (size_t)n != who->ngroups)
		return false;
	for (i = 0; i < who->ngroups; i++) {
		for (k = 0; k < who->ngroups; k++)
			if (got[i] == who->groups[k])
				break;
		if (k == who->ngroups)
			return false;
	}
	return true;
}

static const struct err *
drop_check(const struct proc_account *who, uid_t real)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct caps[2] = { { 0 }, { 0 } };
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (getresuid(&ruid, &euid, &suid) == -1 ||
	    getresgid(&rgid, &egid, &sgid) == -1)
		return err_errno("get the process's ids");
	if (ruid != real || euid != who->uid || suid != real ||
	    rgid != who->gid || egid != who->gid || sgid != who->gid ||
	    !groups_are(who))
		return err_new(ERR_INTERNAL,
		    "the ids are not the requested ones");
	if (setuid(0) != -1 || seteuid(0) != -1 ||
	    setresuid((uid_t)-1, 0, (uid_t)-1) != -1 ||
	    (who->gid != 0 && (setgid(0) != -1 || setegid(0) != -1)))
		return err_new(ERR_INTERNAL, "root's ids can be regained");
	if (syscall(SYS_capget, &head, caps) == -1)
		return err_errno("capget");
	if ((caps[0].effective | caps[0].permitted | caps[0].inheritable |
		caps[1].effective | caps[1].permitted | caps[1].inheritable) !=
	    0)
		return err_new(ERR_INTERNAL, "capabilities are left");
	return NULL;
}

static const struct err *
drop(const struct proc_account *who, uid_t real)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	const struct err *e;

	if (who->uid == 0 || who->uid == (uid_t)-1 || real == 0 ||
	    real == (uid_t)-1)
		return err_new(ERR_INTERNAL, "cannot drop to uid %u",
		    real == 0 || real == (uid_t)-1 ? real : who->uid);
	if ((e = drop_bounding()) != NULL)
		return e;
	if (setgroups(who->ngroups, who->groups) == -1)
		return err_errno("setgroups");
	if (setresgid(who->gid, who->gid, who->gid) == -1)
		return err_errno("setresgid to %u", who->gid);
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == -1)
		return err_errno("keepcaps");
	if (setresuid(real, who->uid, real) == -1)
		return err_errno("setresuid to %u", who->uid);
	if (syscall(SYS_capset, &head, none) == -1)
		return err_errno("capset");
	return drop_check(who, real);
}

const struct err *
proc_drop(const struct proc_account *who)
{
	return drop(who, who->uid);
}

const struct err *
proc_drop_behind(const struct proc_account *who, uid_t real)
{
	if (real == who->uid)
		return err_new(ERR_INTERNAL, "uid %u is not a different user",
		    real);
	return drop(who, real);
}

bool
proc_drop_rest(void)
{
	const uid_t uid = geteuid();

	return setresuid(uid, uid, uid) == 0;
}

const struct err *
proc_no_new_privs(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_errno("no_new_privs");
	return NULL;
}

const struct err *
proc_close_up(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return err_errno("dumpable");
	return NULL;
}

enum proc_where { PROC_UNKNOWN, PROC_BELOW, PROC_OTHER };

struct proc {
	pid_t pid;
	pid_t parent;
	enum proc_where where;
	bool dead;
};
static struct proc procs[PROCS_MAX];
static size_t nprocs;

/* Parses "pid (comm) S ppid …"; comm may contain anything. */
static bool
proc_read(const char *name, struct proc *out)
{
	char path[64], text[512], *p, *end;
	int64_t pid, parent;
	ssize_t got;
	int fd;

	if (!num_parse(name, 1, INT32_MAX, &pid))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%s/stat", name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	if ((p = strrchr(text, ')')) == NULL || strlen(p) < 5)
		return false;
	end = p + 4 + strcspn(p + 4, " ");
	*end = '\0';
	if (!num_parse(p + 4, 0, INT32_MAX, &parent))
		return false;
	*out = (struct proc){ .pid = (pid_t)pid,
		.parent = (pid_t)parent,
		.dead = p[2] == 'Z' || p[2] == 'X' };
	return true;
}

static int
proc_order(const void *a, const void *b)
{
	pid_t x = ((const struct proc *)a)->pid;
	pid_t y = ((const struct proc *)b)->pid;

	return x < y ? -1 : x > y;
}

static void
procs_look(void)
{
	const struct dirent *entry;
	DIR *dir;

	nprocs = 0;
	if ((dir = opendir("/proc")) == NULL)
		return;
	while (nprocs < PROCS_MAX && (entry = readdir(dir)) != NULL)
		if (proc_read(entry->d_name, &procs[nprocs]))
			nprocs++;
	(void)closedir(dir);
	qsort(procs, nprocs, sizeof(procs[0]), proc_order);
}

static struct proc *
procs_find(pid_t pid)
{
	const struct proc key = { .pid = pid };

	return bsearch(&key, procs, nprocs, sizeof(procs[0]), proc_order);
}

/* Walks up to a process whose place is known and assigns it to all on the way.
 * A chain that ends or forms a cycle (reading /proc is not atomic) belongs to
 * another tree. */
static void
procs_place(struct proc *start)
{
	struct proc *p, *next;
	size_t steps = 0;
	enum proc_where where = PROC_OTHER;

	for (p = start; p != NULL && steps <= nprocs; steps++) {
		if (p->where != PROC_UNKNOWN) {
			where = p->where;
			break;
		}
		p = procs_find(p->parent);
	}
	for (p = start; p != NULL && p->where == PROC_UNKNOWN; p = next) {
		next = procs_find(p->parent);
		p->where = where == PROC_BELOW ? PROC_BELOW : PROC_OTHER;
	}
}

static size_t
kill_below(pid_t root, const pid_t *spare, size_t nspare)
{
	struct proc *p;
	size_t i, n = 0;

	procs_look();
	for (i = 0; i < nspare; i++)
		if ((p = procs_find(spare[i])) != NULL)
			p->where = PROC_OTHER;
	if ((p = procs_find(root)) == NULL)
		return 0;
	p->where = PROC_BELOW;
	for (i = 0; i < nprocs; i++) {
		procs_place(&procs[i]);
		if (procs[i].where != PROC_BELOW || procs[i].pid == root ||
		    procs[i].dead)
			continue;
		n++;
		(void)kill(procs[i].pid, SIGKILL);
	}
	return n;
}

size_t
proc_kill_below(const pid_t *spare, size_t nspare)
{
	return kill_below(getpid(), spare, nspare);
}

static bool
is_spare(const pid_t *spare, size_t nspare, pid_t pid)
{
	size_t i;

	for (i = 0; i < nspare && spare[i] != pid; i++)
		;
	return i < nspare;
}

bool
proc_has_others(const pid_t *spare, size_t nspare)
{
	char path[64], text[CHILDREN_SIZE], *rest = text, *word;
	int64_t pid;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children",
	    (long)getpid());
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return true;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got < 0 || (size_t)got == sizeof(text) - 1)
		return true;
	text[got] = '\0';
	while ((word = strsep(&rest, " ")) != NULL)
		if (num_parse(word, 1, INT32_MAX, &pid) &&
		    !is_spare(spare, nspare, (pid_t)pid))
			return true;
	return false;
}

size_t
proc_kill_tree(pid_t root)
{
	return kill_below(root, NULL, 0);
}

/* Whether a living process has that user among its real, effective and saved
 * ids.  The owner of its /proc directory does not say so: it is root if the
 * process cannot be inspected. */
static bool
is_of_user(const char *name, uid_t uid)
{
	char path[64], text[2048], *line, *word;
	int64_t value;
	ssize_t got;
	int fd, i;

	if (!num_parse(name, 1, INT32_MAX, &value))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%lld/status",
	    (long long)value);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	if (strstr(text, "\nState:\tZ") != NULL ||
	    strstr(text, "\nState:\tX") != NULL ||
	    (line = strstr(text, "\nUid:\t")) == NULL)
		return false;
	line += strlen("\nUid:\t");
	line[strcspn(line, "\n")] = '\0';
	for (i = 0; i < 3 && (word = strsep(&line, "\t")) != NULL; i++)
		if (num_parse(word, 0, UINT32_MAX, &value) &&
		    (uid_t)value == uid)
			return true;
	return false;
}

bool
proc_account_lives(uid_t uid)
{
	const struct dirent *entry;
	DIR *dir;

	if ((dir = opendir("/proc")) == NULL)
		return true;
	while ((entry = readdir(dir)) != NULL)
		if (is_of_user(entry->d_name, uid))
			break;
	(void)closedir(dir);
	return entry != NULL;
}

/* Whether certainly no process, not even a zombie, has that real user.  The
 * kernel looks through its list for us. */
static bool
is_unused(uid_t uid)
{
	errno = 0;
	return getpriority(PRIO_USER, uid) == -1 && errno == ESRCH;
}

bool
proc_account_is_idle(uid_t uid)
{
	return is_unused(uid) || !proc_account_lives(uid);
}

bool
proc_kill_account(const struct proc_account *who)
{
	int status = 0;
	pid_t pid;

	if (who->uid == 0)
		return false;
	/* There is no check first: no fork escapes a signal to all. */
	if ((pid = fork()) == -1)
		return true;
	if (pid == 0) {
		if (setgroups(0, NULL) == -1 ||
		    setresgid(who->gid, who->gid, who->gid) == -1 ||
		    setresuid(who->uid, who->uid, who->uid) == -1)
			_exit(1);
		_exit(kill(-1, SIGKILL) == -1 ? 1 : 0);
	}
	/* The processes that it kills may stop it first. */
	while (waitpid(pid, &status, WUNTRACED) == -1 && errno == EINTR)
		continue;
	if (WIFSTOPPED(status)) {
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
			continue;
	}
	return !proc_account_is_idle(who->uid);
}

bool
proc_reap(void)
{
	pid_t pid = 0;
	int i;

	for (i = 0; i < PROC_REAP_MAX; i++)
		if ((pid = waitpid(-1, NULL, WNOHANG)) <= 0)
			break;
	return pid >= 0 || errno != ECHILD;
}

void
proc_notify(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    (len = strlen(path)) >= sizeof(to.sun_path))
		return;
	(void)memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
	    -1)
		log_warn("%s: %s", path, strerror(errno));
	(void)close(fd);
}
