/* SPDX-License-Identifier: ISC */
/*
 * The yardstick of the runner: what MariaDB, the kernel and bash need to run
 * the deployments of a queue.
 *
 *   bare_runner WAKE DIRECTORY UID DATABASE USER PASSWORD
 *
 * Each pending deployment of an idle project is claimed by a conditional
 * update, and runs DIRECTORY/script in a process with its own mounts and IPC,
 * as UID (0 = the current user), with DIRECTORY/ID.log as its output. Then a
 * second update stores its end. No more than four run at a time. WAKE is the
 * socket at which a datagram says that something was queued.
 *
 * It has no leases, logs in the database, results of steps, limits or cleaning
 * up.
 */
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mariadb/mysql.h>

#include "core/num.h"
#include "core/wake.h"

#define SLOTS 4
#define CANDIDATES "64"
#define SQL 512

struct slot {
	int64_t id; /* 0 = free */
	int64_t project;
	pid_t pid;
	int pidfd;
};

static MYSQL *db;
static struct slot slots[SLOTS];
static const char *dir;
static uid_t account;

static void
query(const char *sql)
{
	if (mysql_query(db, sql) != 0)
		errx(1, "%s: %s", sql, mysql_error(db));
}

static _Noreturn void
child(int64_t id)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	char script[PATH_MAX], log[PATH_MAX];
	const char *const argv[] = { "/bin/bash", "-eo", "pipefail", script,
		NULL };
	int out, in;

	(void)snprintf(script, sizeof(script), "%s/script", dir);
	(void)snprintf(log, sizeof(log), "%s/%lld.log", dir, (long long)id);
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (in == -1 || out == -1 || dup2(in, 0) == -1 || dup2(out, 1) == -1 ||
	    dup2(out, 2) == -1 || setsid() == -1 ||
	    (account != 0 && setresuid(account, account, account) == -1) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		_exit(126);
	(void)execve(argv[0], (char *const *)(uintptr_t)argv,
	    (char *const *)(uintptr_t)env);
	_exit(127);
}

static void
start(struct slot *s, int epoll)
{
	struct clone_args args = { .flags = CLONE_PIDFD |
		    (account != 0 ? CLONE_NEWNS | CLONE_NEWIPC : 0),
		.pidfd = (uintptr_t)&s->pidfd,
		.exit_signal = SIGCHLD };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };

	s->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (s->pid == -1)
		err(1, "clone3");
	if (s->pid == 0)
		child(s->id);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, s->pidfd, &event) == -1)
		err(1, "epoll_ctl");
}

static struct slot *
slot_free(int64_t project)
{
	struct slot *found = NULL;
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		if (slots[i].id == 0)
			found = &slots[i];
		else if (slots[i].project == project)
			return NULL;
	}
	return found;
}

static int64_t
number(const char *text)
{
	int64_t n;

	if (text == NULL || !num_parse(text, 0, NUM_SAFE, &n))
		errx(64, "%s: not a number", text == NULL ? "NULL" : text);
	return n;
}

/* Starts the oldest deployments of idle projects while slots are free. */
static void
claim(int epoll)
{
	struct slot *s;
	MYSQL_RES *rows;
	char sql[SQL];
	MYSQL_ROW row;
	int64_t id, project;

	query("SELECT id, project_id FROM deployment WHERE status = 'pending'"
	      " ORDER BY id LIMIT " CANDIDATES);
	if ((rows = mysql_store_result(db)) == NULL)
		errx(1, "%s", mysql_error(db));
	while ((row = mysql_fetch_row(rows)) != NULL) {
		id = number(row[0]);
		project = number(row[1]);
		if ((s = slot_free(project)) == NULL)
			continue;
		(void)snprintf(sql, sizeof(sql),
		    "UPDATE deployment SET status = 'running',"
		    " epoch = epoch + 1, started_at = NOW(3)"
		    " WHERE id = %lld AND status = 'pending'",
		    (long long)id);
		query(sql);
		if (mysql_affected_rows(db) != 1)
			continue;
		*s = (struct slot){ .id = id, .project = project };
		start(s, epoll);
	}
	mysql_free_result(rows);
}

/* A child that has not yet started bash has a copy of the descriptor, so closing it
 * does not end its events. */
static void
end(struct slot *s, int epoll)
{
	char sql[SQL];
	int status = 0;

	if (waitpid(s->pid, &status, 0) == -1)
		err(1, "waitpid");
	if (epoll_ctl(epoll, EPOLL_CTL_DEL, s->pidfd, NULL) == -1)
		err(1, "epoll_ctl");
	(void)close(s->pidfd);
	(void)snprintf(sql, sizeof(sql),
	    "UPDATE deployment SET status = '%s', finished_at = NOW(3)"
	    " WHERE id = %lld",
	    status == 0 ? "success" : "failed", (long long)s->id);
	query(sql);
	s->id = 0;
}

static _Noreturn void
loop(int wake)
{
	struct epoll_event event = { .events = EPOLLIN }, got[SLOTS + 1];
	int epoll = epoll_create1(EPOLL_CLOEXEC), n, i;

	if (epoll == -1 || epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) == -1)
		err(1, "epoll");
	for (;;) {
		claim(epoll);
		if ((n = epoll_wait(epoll, got, SLOTS + 1, -1)) == -1)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (got[i].data.ptr != NULL)
				end(got[i].data.ptr, epoll);
			else
				(void)wake_drain(wake);
		}
	}
}

int
main(int argc, char **argv)
{
	const struct err *e;
	int wake;

	if (argc != 7)
		errx(64,
		    "usage: bare_runner WAKE DIRECTORY UID DATABASE USER "
		    "PASSWORD");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		err(1, "prctl");
	dir = argv[2];
	account = (uid_t)number(argv[3]);
	if ((e = wake_open(argv[1], 0666, NULL, &wake)) != NULL)
		errx(1, "%s", e->msg);
	if ((db = mysql_init(NULL)) == NULL ||
	    mysql_real_connect(db, NULL, argv[5], argv[6], "slipway", 0,
		argv[4], 0) == NULL)
		errx(1, "%s: %s", argv[4], db == NULL ? "" : mysql_error(db));
	query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	loop(wake);
}
