/* SPDX-License-Identifier: ISC */
#include "job/seen.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "core/num.h"
#include "core/str.h"

#define GIT "./.git"
#define OBJECTS "./.git/objects"
#define INDEX "./.git/index"
#define TAGS "./.git/packed-refs"
#define LFS "./.git/lfs/objects"
#define MESSAGE_MAX ((size_t)4096)
#define STATE_MAX ((size_t)16 << 10)
#define SETTLE_TICK 50 /* milliseconds; a tick of the clock is at most 10 */
#define SETTLE_SECOND 1050
#define OPEN_MAX 16
#define NS INT64_C(1000000000)
/* FNV-1a, 64 bits */
#define PRINT_START UINT64_C(0xcbf29ce484222325)
#define PRINT_PRIME UINT64_C(0x100000001b3)

static struct {
	struct seen *out;
	const struct seen *since;
	uint64_t print;
	int64_t deadline;
	dev_t device;
	bool failed;
	bool git_failed; /* in .git */
} look;

static int64_t
changed_at(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * NS + st->st_ctim.tv_nsec;
}

static void
print_add(uint64_t value)
{
	look.print = (look.print ^ value) * PRINT_PRIME;
	look.print ^= look.print >> 29;
}

static void
print_entry(const char *path, const struct stat *st)
{
	for (; *path != '\0'; path++)
		look.print = (look.print ^ (unsigned char)*path) * PRINT_PRIME;
	print_add((uint64_t)st->st_ino);
	print_add((uint64_t)st->st_mode);
	print_add((uint64_t)st->st_size);
	print_add((uint64_t)changed_at(st));
}

static bool
is_below(const char *path, const char *dir)
{
	const size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

/* Gives the file a status change in another second than that of the earlier
 * look; false if that second is not over. */
static bool
later_change(const char *path)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_NOW },
		{ .tv_nsec = UTIME_OMIT } };
	struct stat st;

	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0 &&
	    lstat(path, &st) == 0 &&
	    changed_at(&st) / NS != look.since->latest / NS;
}

static int
entry_look(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct seen *out = look.out;
	const int64_t at = changed_at(st);

	if (look.deadline != 0 && time_mono_ms() > look.deadline) {
		look.failed = look.git_failed = true;
		return 1;
	}
	if (type == FTW_NS || type == FTW_DNR) {
		look.failed = true;
		if (is_below(path, GIT))
			look.git_failed = true;
	}
	/* the directory itself changes with every start of a job */
	if (ftw->level == 0 || type == FTW_NS)
		return 0;
	out->entries++;
	if (ftw->level == 1)
		out->top++;
	if (strcmp(path, GIT) == 0)
		out->git = 1;
	/* a sparse file can claim any size */
	if (type == FTW_F && st->st_dev == look.device)
		out->bytes = st->st_size > NUM_SAFE - out->bytes ?
		    NUM_SAFE :
		    out->bytes + st->st_size;
	if (at > out->latest)
		out->latest = at;
	if (look.since != NULL && !S_ISDIR(st->st_mode) &&
	    at > look.since->latest && at / NS == look.since->latest / NS &&
	    !later_change(path))
		out->doubtful = true;
	if (at > out->objects && is_below(path, OBJECTS))
		out->objects = at;
	if (at > out->lfs && is_below(path, LFS))
		out->lfs = at;
	if (S_ISREG(st->st_mode) && strcmp(path, INDEX) == 0)
		out->index = at;
	if (S_ISREG(st->st_mode) && strcmp(path, TAGS) == 0)
		out->tags = at;
	print_entry(path, st);
	return 0;
}

void
seen_take(const struct seen *since, int64_t deadline, struct seen *out)
{
	struct stat st;

	*out = (struct seen){ .objects = -1,
		.latest = -1,
		.index = -1,
		.tags = -1,
		.lfs = -1 };
	(void)memset(&look, 0, sizeof(look));
	look.out = out;
	look.since = since;
	look.print = PRINT_START;
	look.deadline = deadline;
	if (stat(".", &st) == -1)
		return;
	look.device = st.st_dev;
	if (nftw(".", entry_look, OPEN_MAX, FTW_PHYS) == -1)
		look.failed = look.git_failed = true;
	out->print = (int64_t)(look.print >> 1);
	if (look.failed)
		out->latest = -1;
	if (look.git_failed)
		out->objects = -1;
}

bool
seen_settle(const struct seen *seen)
{
	/* ext4 with small inodes, among others, stores no nanoseconds */
	const bool is_whole = seen->latest % NS == 0;
	const int64_t over = is_whole ? seen->latest + NS : seen->latest + 1;
	struct timespec now;
	int tries;

	for (tries = is_whole ? SETTLE_SECOND : SETTLE_TICK; tries > 0;
	     tries--) {
		if (clock_gettime(CLOCK_REALTIME_COARSE, &now) == -1)
			return false;
		if ((int64_t)now.tv_sec * NS + now.tv_nsec >= over)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return false;
}

bool
seen_same(const struct seen *a, const struct seen *b)
{
	return a->latest != -1 && a->latest == b->latest &&
	    a->objects == b->objects && a->index == b->index &&
	    a->entries == b->entries && a->print == b->print;
}

static const size_t numbers[] = {
	offsetof(struct seen, objects),
	offsetof(struct seen, latest),
	offsetof(struct seen, entries),
	offsetof(struct seen, print),
	offsetof(struct seen, index),
	offsetof(struct seen, bytes),
	offsetof(struct seen, top),
	offsetof(struct seen, git),
	offsetof(struct seen, tags),
	offsetof(struct seen, lfs),
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

void
seen_write(struct buf *out, const struct seen *seen)
{
	size_t i;

	for (i = 0; i < NUMBERS; i++)
		buf_printf(out, "%s%lld", i == 0 ? "" : " ",
		    (long long)*(
			const int64_t *)(const void *)((const char *)seen +
			numbers[i]));
}

bool
seen_read(const char *line, struct seen *out)
{
	char word[24];
	size_t i, len;

	for (i = 0; i < NUMBERS; i++) {
		/* a state of before this number */
		if (*line == '\0' &&
		    numbers[i] >= offsetof(struct seen, tags)) {
			*(int64_t *)(void *)((char *)out + numbers[i]) = -1;
			continue;
		}
		len = strcspn(line, " ");
		if (len >= sizeof(word))
			return false;
		(void)memcpy(word, line, len);
		word[len] = '\0';
		if (!num_parse(word, -1, INT64_MAX,
			(int64_t *)(void *)((char *)out + numbers[i])))
			return false;
		line += len;
		if (*line == ' ')
			line++;
	}
	return *line == '\0';
}

const char *
clone_state_write(struct arena *a, const struct clone_state *state)
{
	struct clone_state s = *state;
	struct buf text;
	const char *out;

	if (s.message == NULL || strlen(s.message) > MESSAGE_MAX) {
		s.flags &= ~(int64_t)CLONE_MESSAGE;
		s.message = "";
	}
	buf_init(&text, STATE_MAX);
	seen_write(&text, &s.seen);
	buf_printf(&text, "\n%lld %s%s%s\n%s\n%s", (long long)s.flags, s.commit,
	    s.ref[0] == '\0' ? "" : " ", s.ref, s.address, s.message);
	out = text.overflow ? "" : arena_strdup(a, text.data);
	buf_release(&text);
	return out;
}

void
clone_state_read(struct arena *a, const char *text, struct clone_state *out)
{
	char *rest, *seen, *line, *flags, *address, *commit;

	*out = (struct clone_state){ .seen = { .objects = -1, .latest = -1 },
		.commit = "",
		.ref = "",
		.address = "",
		.message = "" };
	if (text == NULL)
		return;
	rest = arena_strdup(a, text);
	seen = strsep(&rest, "\n");
	line = strsep(&rest, "\n");
	address = strsep(&rest, "\n");
	flags = strsep(&line, " ");
	if (rest == NULL || line == NULL || !seen_read(seen, &out->seen) ||
	    !num_parse(flags, 0, INT32_MAX, &out->flags)) {
		out->seen.objects = out->seen.latest = -1;
		out->flags = 0;
		return;
	}
	commit = strsep(&line, " ");
	out->commit = commit;
	out->ref = line == NULL ? "" : line;
	out->address = address;
	out->message = rest;
}
