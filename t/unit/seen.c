/* SPDX-License-Identifier: ISC */
/* What a look at a workspace can tell apart. */
#include "job/seen.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define NS INT64_C(1000000000)

static int64_t
coarse_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

static bool
put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool good;

	if (fd == -1)
		return false;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	return close(fd) == 0 && good;
}

/* The file system of $TMPDIR decides how exact its times are. */
static void
changes(void)
{
	struct seen before, same, after;

	ok(put("file", "one"), "a file is written");
	seen_take(NULL, 0, &before);
	ok(seen_settle(&before), "a look settles");
	seen_take(NULL, 0, &same);
	ok(seen_same(&before, &same),
	    "a workspace without a change is the same");
	ok(put("file", "two"), "a step writes the file with the same size");
	seen_take(NULL, 0, &after);
	ok(!seen_same(&before, &after), "the change is noticed");
	ok(unlink("file") == 0, "the file is removed");
}

/* Some file systems store whole seconds only. */
static void
whole_seconds(void)
{
	struct seen seen = { .latest = coarse_now() / NS * NS };

	ok(seen_settle(&seen), "a look with whole seconds settles");
	ok(coarse_now() / NS * NS > seen.latest,
	    "it settles when the second is over");
}

int
main(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[4096];

	(void)snprintf(dir, sizeof(dir), "%s/slipway-seen-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	if (mkdtemp(dir) == NULL || chdir(dir) == -1) {
		ok(false, "a directory is created in %s", dir);
		return tap_done();
	}
	changes();
	whole_seconds();
	ok(rmdir(dir) == 0, "the directory is removed");
	return tap_done();
}
