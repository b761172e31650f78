/* SPDX-License-Identifier: ISC */
/*
 * Messages between monitor (root) and dispatcher (unprivileged): fixed-size
 * datagrams on a SOCK_SEQPACKET socketpair, accompanied by descriptors.
 *
 * Both ends come from the same build.  A request contains only numbers and a
 * project directory, which the monitor checks again by its own rules; the
 * monitor alone decides which account a job runs under.
 */
#ifndef SLIPWAY_SPOOL_WIRE_H
#define SLIPWAY_SPOOL_WIRE_H

#include <stdint.h>

#include "core/err.h"

#define WIRE_MAGIC UINT32_C(0x736c7732)
#define WIRE_DIR 256

enum wire_type {
	/* dispatcher to monitor */
	WIRE_START = 1, /* with the descriptors of enum wire_fd; status = the
			 * project's cache_generation */
	WIRE_KILL,      /* end all processes of that job now */
	WIRE_WIPE,      /* remove the directory of a deleted project; status =
			 * enum wire_wipe */
	WIRE_PROBE,     /* try whether a job could be started now */
	/* monitor to dispatcher */
	WIRE_STARTED, /* pid */
	WIRE_REFUSED, /* status = enum wire_why */
	WIRE_EXITED,  /* nothing of the job is left; status = wait status */
	WIRE_PROBED,  /* error = why no job could be started, 0 = one could */
	WIRE_WIPED,   /* status 0 = the project no longer has a directory */
	WIRE_RELOAD,  /* reread the configuration */
	WIRE_STOP,    /* claim no more deployments; end */
	WIRE__MAX
};

enum wire_why {
	WIRE_WHY_NONE,
	WIRE_WHY_BUSY,      /* its account has a running job */
	WIRE_WHY_ACCOUNT,   /* unknown account, or root */
	WIRE_WHY_WORKSPACE, /* the directory cannot be created */
	WIRE_WHY_PROCESS,   /* fork, exec or limits failed */
	WIRE_WHY_FOREIGN,   /* its account has processes that are not of a job
			     * of this runner */
};

/* Whether the steps get the files of the workspace. */
enum wire_files {
	WIRE_FILES_SHOWN,
	WIRE_FILES_HIDDEN,
};

enum wire_wipe {
	WIRE_WIPE_NOW,
	WIRE_WIPE_KEEP, /* for workspace_days, moved out of the way of another project */
};

/* The exit status of a job that has no process left, has removed its own files
 * from its home, and the keys of an account that only projects use, and shared
 * nothing with the host that it was not meant to share. */
#define JOB_TIDY 0

/* Descriptors of a job; after exec they are 3 and up, in this order. */
enum wire_fd {
	WIRE_FD_JOB,      /* read */
	WIRE_FD_LOG,      /* append */
	WIRE_FD_RESULT,   /* append */
	WIRE_FD_LOCK,     /* read and write */
	WIRE_FD_CONTROL,  /* read and write, so that it never reads EOF */
	WIRE_FD__REQUEST, /* the dispatcher sends those above */
	WIRE_FD_WORKSPACE = WIRE_FD__REQUEST, /* the monitor adds these */
	WIRE_FD_HOME,
	WIRE_FD__MAX
};

struct wire {
	uint32_t magic;
	uint32_t type;
	int64_t deployment;
	int64_t epoch;
	int64_t project;
	int64_t pid;
	int64_t limit; /* maximum seconds of a job, 0 = unlimited */
	int32_t status;
	int32_t error;      /* errno with WIRE_REFUSED and WIRE_PROBED, enum
			     * wire_files with WIRE_START */
	char dir[WIRE_DIR]; /* NUL-terminated, the rest zero */
};

/* Duplicates the descriptors to the other side; nfds may be 0. */
MUSTCHECK const struct err *wire_send(int fd, const struct wire *,
    const int *fds, size_t nfds);
/* ERR_NOTFOUND at the end of the stream.  ERR_BAD_REQUEST if the message is
 * malformed (size, magic, type, padding, number of descriptors); then its
 * descriptors are closed. */
MUSTCHECK const struct err *wire_recv(int fd, struct wire *out, int *fds,
    size_t nfds);

#endif
