/* SPDX-License-Identifier: ISC */
/*
 * The spool as dispatchers share it.
 *
 * Beside the directories of deployments (run.h) lies `owner.NAME`, locked by
 * the dispatcher that has this random name, with the kernel's name of the boot
 * in it.  In this way any number of dispatchers can share a spool, and each can
 * detect that another one has died.
 */
#ifndef SLIPWAY_DISPATCH_SPOOL_H
#define SLIPWAY_DISPATCH_SPOOL_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/field.h"
#include "queue/queue.h"

#define SPOOL_BOOT 40 /* size of the kernel's name of a boot */

struct spool {
	int fd; /* the directory */
	int owner_fd;
	char owner[QUEUE_OWNER_SIZE]; /* this dispatcher's random name */
	char boot[SPOOL_BOOT];        /* "-" if unknown */
};

/* A dispatcher that died. */
struct dead_owner {
	const char *name;
	bool this_boot; /* it ran since the machine booted */
};

/* Opens the directory, which it creates if it does not exist, and the file of
 * this dispatcher. */
MUSTCHECK const struct err *spool_open(struct spool *, const char *path);
/* Removes the file of this dispatcher: it holds nothing any more. */
void spool_disown(struct spool *);
void spool_close(struct spool *);
/* Whether the text names the boot that this dispatcher runs in. */
bool spool_is_boot(const struct spool *, const char *text);
/* Whether a run could be made in it. */
MUSTCHECK const struct err *spool_probe(const struct spool *);
bool spool_owner_lives(const struct spool *, const char *owner);
/* Removes the files of owners that died too early to hold anything; whether
 * another has died. */
bool spool_sweep(const struct spool *);
/* Whether an entry is too old to be still in the making. */
bool spool_is_stale(const struct spool *, const char *name);
/* Dispatchers that died and are not yet forgotten: struct dead_owner. */
void spool_dead(const struct spool *, struct arena *, struct list *out);
void spool_forget(const struct spool *, const struct list *dead);
/* The names in the spool that start with `prefix`, until `each` returns
 * false.  Entries can be removed meanwhile. */
typedef bool spool_name(void *context, const char *name);
void spool_names(const struct spool *, const char *prefix, spool_name *each,
    void *context);

#endif
