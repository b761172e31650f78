/* SPDX-License-Identifier: ISC */
/*
 * Whether jobs can be started here: their directories can be created and
 * written, and the program can be run.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "monitor/monitor.h"

#define PROBE ".probe"
#define PROBE_BYTES 65536
#define PROBE_OTHER 255 /* exit status: errno is not known */

/* Leftovers of a probe that was interrupted are reused. */
static const struct err *
probe_write(int at)
{
	static const char zeros[PROBE_BYTES];
	const struct err *e;
	int fd;

	fd = openat(at, PROBE,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_errno("create");
	e = file_store(fd, zeros, sizeof(zeros));
	if (e == NULL && fsync(fd) == -1)
		e = err_errno("sync");
	(void)close(fd);
	if (unlinkat(at, PROBE, 0) == -1 && e == NULL)
		e = err_errno("remove");
	return e;
}

static const struct err *
probe_place(int at)
{
	const struct err *e;
	int error, fd;

	if ((error = file_room(at)) != 0) {
		errno = error;
		return err_errno("room");
	}
	if ((e = monitor_dir_step(at, PROBE, 0700, &fd)) != NULL)
		return e;
	e = probe_write(fd);
	(void)close(fd);
	if (unlinkat(at, PROBE, AT_REMOVEDIR) == -1 && e == NULL)
		e = err_errno("remove");
	return e;
}

static const struct err *
start_probe(const struct monitor *m)
{
	const struct err *e;

	if ((e = probe_place(m->workspaces)) != NULL ||
	    (e = probe_place(m->homes)) != NULL)
		return e;
	return access(m->job_path, X_OK) == -1 ? err_errno("%s", m->job_path) :
						 NULL;
}

static void
probe_reply(struct monitor *m, int error)
{
	const struct wire reply = { .magic = WIRE_MAGIC,
		.type = WIRE_PROBED,
		.error = error };

	monitor_send(m, &reply);
}

/* A child does it, because a file system may hang. */
void
monitor_probe(struct monitor *m)
{
	const struct err *e;

	if (m->prober != 0)
		return; /* its end is the answer */
	if ((m->prober = fork()) == -1) {
		m->prober = 0;
		probe_reply(m, errno);
		return;
	}
	if (m->prober != 0)
		return;
	proc_signals_default();
	if ((e = start_probe(m)) == NULL)
		_exit(0);
	log_warn("probe: %s", e->msg);
	_exit(e->sys > 0 && e->sys < PROBE_OTHER ? e->sys : PROBE_OTHER);
}

bool
monitor_probe_reaped(struct monitor *m, pid_t pid, int status)
{
	int error = EIO;

	if (pid != m->prober)
		return false;
	m->prober = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) != PROBE_OTHER)
		error = WEXITSTATUS(status);
	probe_reply(m, error);
	return true;
}
