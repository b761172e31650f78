/* SPDX-License-Identifier: ISC */
/* slipway-job: started by the monitor, once for each deployment. */
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/apart.h"
#include "core/keys.h"
#include "core/log.h"
#include "core/num.h"
#include "core/passwd.h"
#include "core/str.h"
#include "job/git.h"
#include "job/job.h"
#include "job/log.h"
#include "job/mask.h"
#include "job/report.h"
#include "job/steps.h"
#include "spool/spool.h"

#define ARENA ((size_t)512 << 20)
#define RESULT_ROOM 16384

static _Noreturn void
usage(void)
{
	(void)fprintf(stderr,
	    "usage: slipway-job -i ID [-t DEADLINE] -H HOME -W WORKSPACE"
	    " [-u UID -g GID]\n"
	    "\t[-S UID] [-G GROUPS] [-INTU] [-n FILES] [-f SIZE]"
	    " [-p PROCESSES]\n"
	    "\t[-C CACHE -M SIZE]\n"
	    "Only slipway-runner starts it.\n");
	exit(EX_USAGE);
}

static int64_t
number_read(const char *text)
{
	int64_t value = 0;

	if (!num_parse(text, 0, INT64_C(1) << 50, &value))
		usage();
	return value;
}

static void
groups_read(struct proc_account *who, char *list)
{
	const char *word;

	while ((word = strsep(&list, ",")) != NULL) {
		if (who->ngroups == PROC_GROUPS)
			usage();
		who->groups[who->ngroups++] = (gid_t)number_read(word);
	}
}

static int64_t *
limit_of(struct job_place *place, int option)
{
	switch (option) {
	case 'n':
		return &place->open_files;
	case 'f':
		return &place->file_size;
	case 'p':
		return &place->processes;
	default:
		return &place->cache_max;
	}
}

static void
flag_read(struct job_place *out, int option)
{
	if (option == 'U') {
		out->user_namespaces = true;
		return;
	}
	out->apart |= APART_MOUNTS;
	if (option == 'E')
		out->hides = true;
	else if (option == 'N')
		out->nameless = true;
	else
		out->apart |= option == 'I' ? APART_IPC : APART_TMP;
}

static void
options_read(int argc, char **argv, struct job_place *out)
{
	int c;

	while (
	    (c = getopt(argc, argv, "i:t:H:W:u:g:S:G:EINTUn:f:p:C:M:")) != -1) {
		switch (c) {
		case 'i':
			out->id = optarg;
			break;
		case 't': /* for the monitor that adopts the job */
			(void)number_read(optarg);
			break;
		case 'H':
			out->home = optarg;
			break;
		case 'W':
			out->workspace = optarg;
			break;
		case 'u':
			out->who.uid = (uid_t)number_read(optarg);
			break;
		case 'g':
			out->who.gid = (gid_t)number_read(optarg);
			break;
		case 'S':
			out->watch = (uid_t)number_read(optarg);
			break;
		case 'G':
			groups_read(&out->who, optarg);
			break;
		case 'E':
		case 'N':
		case 'I':
		case 'T':
		case 'U':
			flag_read(out, c);
			break;
		case 'C':
			out->cache = optarg;
			break;
		case 'M':
		case 'n':
		case 'f':
		case 'p':
			*limit_of(out, c) = number_read(optarg);
			break;
		default:
			usage();
		}
	}
	if (optind != argc || out->id == NULL || out->home == NULL ||
	    out->workspace == NULL)
		usage();
}

/* Held as long as this process lives, so that others can detect it.  The first
 * holder makes the file longer: a job that finds it so must not begin, because
 * another one did, or because it was given up as never started. */
static const struct err *
lock_take(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const int fd = JOB_FD(WIRE_FD_LOCK);
	struct stat st;

	if (fcntl(fd, F_SETLK, &whole) == -1 || fstat(fd, &st) == -1)
		return err_errno("lock");
	if (st.st_size != 0)
		return err_new(ERR_CONFLICT,
		    "the job was already started or given up");
	if (ftruncate(fd, SPOOL_BEGUN) == -1)
		return err_errno("mark the lock");
	return NULL;
}

static const struct err *
descriptors_prepare(void)
{
	int which, flags;

	for (which = 0; which < WIRE_FD__MAX; which++)
		if (fcntl(JOB_FD(which), F_SETFD, FD_CLOEXEC) == -1)
			return err_errno("descriptor %d", JOB_FD(which));
	closefrom(JOB_FD(WIRE_FD__MAX));
	flags = fcntl(JOB_FD(WIRE_FD_CONTROL), F_GETFL);
	if (flags == -1 ||
	    fcntl(JOB_FD(WIRE_FD_CONTROL), F_SETFL, flags | O_NONBLOCK) == -1)
		return err_errno("control");
	return proc_stdio_null();
}

/* If the job shares something with the host, or its account has no name, it
 * runs anyway: the monitor tidies up after it, and most programs do not depend
 * on that. */
static const struct err *
isolation_enter(struct job *job)
{
	const struct job_place *place = &job->place;
	const struct err *e;

	job->shared = apart_enter(place->apart);
	/* without mounts of our own, this would change the host's file */
	job->unnamed = place->nameless ? job->shared : NULL;
	if ((e = passwd_enter(JOB_FD(WIRE_FD_HOME), place->home)) != NULL)
		return e;
	if (job->shared == NULL && (place->apart & APART_TMP) != 0)
		job->shared = apart_tmp(JOB_FD(WIRE_FD_HOME), place->who.uid,
		    place->who.gid);
	if (place->nameless && job->unnamed == NULL)
		job->unnamed = passwd_give(&place->who, place->home,
		    apart_scratch(job->shared == NULL ? place->apart : 0,
			place->home));
	e = passwd_enter(JOB_FD(WIRE_FD_WORKSPACE), place->workspace);
	if (e == NULL && job->shared == NULL && place->hides)
		job->shared = apart_hide(place->workspace);
	return e;
}

static const struct err *
privileges_drop(struct job *job)
{
	const struct err *e;

	if (geteuid() == 0 && job->place.who.uid == 0)
		return err_new(ERR_INTERNAL, "a job does not run as root");
	if (job->place.apart != 0 && (e = isolation_enter(job)) != NULL)
		return e;
	if (job->place.who.uid != 0) {
		e = job->place.watch == 0 ?
		    proc_drop(&job->place.who) :
		    proc_drop_behind(&job->place.who, job->place.watch);
		if (e != NULL)
			return e;
	}
	if ((e = proc_no_new_privs()) != NULL || (e = keys_session()) != NULL)
		return e;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1)
		return err_errno("prctl");
	return NULL;
}

static const struct err *
signals_open(struct job *job)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	proc_signals_default();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1 ||
	    sigaction(SIGPIPE, &ignore, NULL) == -1 ||
	    sigaction(SIGXFSZ, &ignore, NULL) == -1)
		return err_errno("signals");
	job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (job->signal_fd == -1)
		return err_errno("signalfd");
	return NULL;
}

static const struct err *
secrets_mask(struct job *job, struct mask *mask)
{
	const struct job_description *spec = &job->spec;
	const struct pair *p = spec->secret.items;
	const char *value;
	size_t i;

	for (i = 0; i < spec->secret.n; i++)
		mask_add(mask, p[i].value, strlen(p[i].value));
	if (spec->credential != NULL) {
		if ((value = strchr(spec->credential, '\n')) == NULL)
			return err_new(ERR_INTERNAL, "malformed credential");
		mask_add(mask, value + 1, strlen(value + 1));
	}
	if (spec->ssh_key != NULL)
		mask_add(mask, spec->ssh_key, strlen(spec->ssh_key));
	return NULL;
}

static const struct err *
job_prepare(struct job *job)
{
	struct mask *mask = mask_open(job->a);
	const struct err *e, *drop;

	(void)umask(077);
	if ((e = descriptors_prepare()) != NULL)
		return e;
	job->result_fd = JOB_FD(WIRE_FD_RESULT);
	/* so that a disk that is full later can be reported */
	(void)fallocate(job->result_fd, FALLOC_FL_KEEP_SIZE, 0, RESULT_ROOM);
	drop = privileges_drop(job);
	job_log_open(&job->log, JOB_FD(WIRE_FD_LOG), mask, INT64_MAX);
	if (drop != NULL)
		return drop;
	if (job->unnamed != NULL)
		job_log_say(&job->log, "==> without a user name: %s",
		    job->unnamed->msg);
	if (job->shared != NULL)
		job_log_say(&job->log, "==> not isolated from the host: %s",
		    job->shared->msg);
	if ((e = signals_open(job)) != NULL)
		return e;
	if ((e = job_description_read(job->a, JOB_FD(WIRE_FD_JOB),
		 &job->spec)) != NULL)
		return e;
	job->log.max = job->spec.log_max;
	return secrets_mask(job, mask);
}

/* Removes what would cost the monitor a process of its own to remove; returns
 * the exit status. */
static int
job_tidy(const struct job *job)
{
	job_steps_clear();
	/* what is left could signal this process, and add keys */
	if (proc_reap())
		return EX_OSERR;
	if (job->place.nameless) {
		if (!proc_drop_rest())
			return EX_OSERR;
		/* the session keyring belongs to the real user */
		keys_clear(job->place.watch == 0 ? 1 : 0);
	}
	return job->shared == NULL ? JOB_TIDY : EX_OSERR;
}

int
main(int argc, char **argv)
{
	const char *question = getenv("SLIPWAY_ASKPASS");
	struct job job = { .a = NULL };
	const struct err *e;

	if (question != NULL)
		return job_askpass(argc > 1 ? argv[1] : "", question);
	log_init("slipway-job", 0);
	job.place.program = argv[0];
	options_read(argc, argv, &job.place);
	if ((e = lock_take()) != NULL)
		errx(EX_TEMPFAIL, "%s", e->msg);
	job.a = arena_open(ARENA);
	if ((e = job_prepare(&job)) == NULL) {
		e = job_steps(&job);
		return e == NULL ? job_tidy(&job) : EX_SOFTWARE;
	}
	job_log_say(&job.log, "==> the runner failed: %s", e->msg);
	job_log_close(&job.log);
	if (job_report_end(&job, REASON_RUNNER,
		"The job could not be set up.") != NULL)
		return EX_IOERR;
	return EX_OSERR;
}
