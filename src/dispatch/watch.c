/* SPDX-License-Identifier: ISC */
#include "dispatch/watch.h"

#include <sys/inotify.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"

#define GAP_MS 5 /* between reads */
#define EVENTS_SIZE 8192
#define PATH_SIZE (RUN_NAME + 64)

void
watch_open(struct watch *w)
{
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd == -1)
		log_err(err_errno("inotify"),
		    "the files of jobs are checked at intervals");
}

void
watch_close(struct watch *w)
{
	if (w->fd != -1)
		(void)close(w->fd);
	w->fd = -1;
}

void
watch_task(const struct watch *w, const struct spool *s, struct task *t)
{
	char path[PATH_SIZE];

	if (w->fd == -1)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", s->fd,
	    t->run.name);
	/* a job that ends closes its files */
	t->watch = inotify_add_watch(w->fd, path,
	    IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR);
	if (t->watch == -1)
		log_debug("%s: inotify: %s", t->run.name, strerror(errno));
	t->is_changed = true;
}

static void
tasks_mark(const struct tasks *tasks, const struct inotify_event *event)
{
	size_t i;

	for (i = 0; i < tasks->n; i++)
		if ((event->mask & IN_Q_OVERFLOW) != 0 ||
		    tasks->items[i]->watch == event->wd)
			tasks->items[i]->is_changed = true;
}

void
watch_read(struct watch *w, struct tasks *tasks)
{
	char events[EVENTS_SIZE]
	    __attribute__((aligned(__alignof__(struct inotify_event))));
	struct inotify_event event;
	ssize_t got, at;

	w->at = time_mono_ms() + GAP_MS;
	while ((got = read(w->fd, events, sizeof(events))) > 0)
		for (at = 0; at < got;
		     at += (ssize_t)(sizeof(event) + event.len)) {
			(void)memcpy(&event, events + at, sizeof(event));
			tasks_mark(tasks, &event);
		}
}

int
watch_wait(const struct watch *w, int64_t now, int64_t *due)
{
	if (now >= w->at)
		return w->fd;
	if (*due > w->at)
		*due = w->at;
	return -1;
}
