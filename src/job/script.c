/* SPDX-License-Identifier: ISC */
/* The file that a step runs. */
#include "job/script.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/tree.h"
#include "job/job.h"
#include "job/run.h"

#define SCRIPT_MS 60000

/* Writes the script to a new file in the private home, even if the previous
 * step changed the home's permissions. */
static const struct err *
script_write(void *arg)
{
	const struct job_step *step = *(const struct job_step **)arg;
	const struct err *e;
	int fd;

	if (fchmod(JOB_FD(WIRE_FD_HOME), S_IRWXU) == -1)
		return err_errno("chmod the home");
	if ((e = tree_remove(JOB_FD(WIRE_FD_HOME), JOB_SCRIPT)) != NULL)
		return e;
	fd = openat(JOB_FD(WIRE_FD_HOME), JOB_SCRIPT,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	if (fd == -1)
		return err_errno("create a step's script");
	e = file_store(fd, step->script, strlen(step->script));
	if (close(fd) == -1 && e == NULL)
		e = err_errno("write a step's script");
	return e;
}

/* The same without a child, which takes a millisecond; none of these calls can
 * block.  False if something is in the way. */
static bool
script_create(const struct job_step *step)
{
	const int home = JOB_FD(WIRE_FD_HOME);
	bool is_stored;
	int fd;

	if (unlinkat(home, JOB_SCRIPT, 0) == -1 && errno != ENOENT)
		return false;
	fd = openat(home, JOB_SCRIPT,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	if (fd == -1)
		return false;
	is_stored = file_store(fd, step->script, strlen(step->script)) == NULL;
	return close(fd) == 0 && is_stored;
}

const struct err *
job_script(struct job *job, size_t i)
{
	const struct job_step *step = job_step_at(job, i);
	const struct err *e;
	const char *ignored;

	if (script_create(step))
		return NULL;
	e = job_call_within(job, SCRIPT_MS, script_write, &step, &ignored);
	return e == NULL ? NULL :
			   err_wrap(e, "write the script of step %zu", i + 1);
}
