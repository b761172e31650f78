/* SPDX-License-Identifier: ISC */
/*
 * Replaces the dispatcher in tests of the monitor: reads commands from the FIFO
 * $SLIPWAY_STANDIN/cmd, one per line, and appends the monitor's messages to
 * $SLIPWAY_STANDIN/out.
 *
 *	start DEPLOYMENT EPOCH PROJECT DIR SPOOLDIR [LIMIT [CACHE]]
 *	kill DEPLOYMENT EPOCH
 *	send TYPE | raw HEX | exit STATUS | hold (reads nothing from now on)
 *	wipe PROJECT DIR
 *	odd KIND DEPLOYMENT SPOOLDIR (a start with another descriptor)
 *	flood SPOOLDIR (starts without end)
 */
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"
#include "spool/wire.h"

#define MONITOR 3
#define WORDS 8
#define FLOODERS 4

static int out_fd;
static bool holding;

static void
say(const char *text)
{
	if (write(out_fd, text, strlen(text)) == -1)
		err(1, "write");
}

static int64_t
number(const char *text)
{
	int64_t value = 0;

	if (!num_parse(text, INT64_MIN, INT64_MAX, &value))
		errx(1, "%s: no number", text);
	return value;
}

static void
files_open(const char *dir, int fds[WIRE_FD__REQUEST])
{
	static const struct {
		const char *name;
		int flags;
	} files[WIRE_FD__REQUEST] = {
		[WIRE_FD_JOB] = { "job", O_RDONLY },
		[WIRE_FD_LOG] = { "log", O_WRONLY | O_APPEND },
		[WIRE_FD_RESULT] = { "result", O_WRONLY | O_APPEND },
		[WIRE_FD_LOCK] = { "lock", O_RDWR },
		[WIRE_FD_CONTROL] = { "control", O_RDWR | O_NONBLOCK },
	};
	char path[4096];
	size_t i;

	for (i = 0; i < WIRE_FD__REQUEST; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i].name);
		if ((fds[i] = open(path, files[i].flags | O_CLOEXEC)) == -1)
			err(1, "%s", path);
	}
}

static void
start_send(struct wire *w, const int *fds)
{
	const struct err *e;
	size_t i;

	w->magic = WIRE_MAGIC;
	w->type = WIRE_START;
	if ((e = wire_send(MONITOR, w, fds, WIRE_FD__REQUEST)) != NULL)
		errx(1, "%s", e->msg);
	for (i = 0; i < WIRE_FD__REQUEST; i++)
		(void)close(fds[i]);
}

static void
start(char **word)
{
	struct wire w = { .deployment = number(word[1]) };
	int fds[WIRE_FD__REQUEST];

	w.epoch = number(word[2]);
	w.project = number(word[3]);
	w.limit = word[6] != NULL ? number(word[6]) : 0;
	w.status = word[7] != NULL ? (int32_t)number(word[7]) : 0;
	(void)memcpy(w.dir, word[4], strnlen(word[4], WIRE_DIR - 1));
	files_open(word[5], fds);
	start_send(&w, fds);
}

/* Descriptors that a dispatcher can open and send instead of the right one. */
static const struct odd {
	const char *kind;
	enum wire_fd at;
	const char *name; /* in the spool directory unless it starts with / */
	int flags;
} odds[] = {
	{ "device", WIRE_FD_JOB, "/dev/zero", O_RDONLY },
	{ "foreign", WIRE_FD_JOB, "/etc/passwd", O_RDONLY },
	{ "directory", WIRE_FD_JOB, ".", O_RDONLY | O_DIRECTORY },
	{ "path", WIRE_FD_JOB, "job", O_PATH },
	{ "overwrites", WIRE_FD_LOG, "log", O_WRONLY },
	{ "readable", WIRE_FD_LOG, "log", O_RDWR | O_APPEND },
	{ "fifo", WIRE_FD_RESULT, "control", O_RDWR | O_APPEND },
	{ "unlocked", WIRE_FD_LOCK, "lock", O_RDONLY },
	{ "file", WIRE_FD_CONTROL, "lock", O_RDWR },
	{ "ends", WIRE_FD_CONTROL, "control", O_RDONLY | O_NONBLOCK },
	{ "socket", WIRE_FD_CONTROL, NULL, 0 },
};

static void
odd(char **word)
{
	struct wire w = { .deployment = number(word[2]), .epoch = 1 };
	int fds[WIRE_FD__REQUEST], dir;
	const struct odd *o;
	size_t i;

	for (i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		if (strcmp(odds[i].kind, word[1]) == 0)
			break;
	if (i == sizeof(odds) / sizeof(odds[0]))
		errx(1, "odd %s", word[1]);
	o = &odds[i];
	w.project = 7;
	(void)memcpy(w.dir, "shop", sizeof("shop"));
	files_open(word[3], fds);
	(void)close(fds[o->at]);
	if ((dir = open(word[3], O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		err(1, "%s", word[3]);
	fds[o->at] = o->name == NULL ?
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) :
	    openat(dir, o->name, o->flags | O_CLOEXEC);
	if (fds[o->at] == -1)
		err(1, "%s", word[1]);
	(void)close(dir);
	start_send(&w, fds);
}

/* Enough processes that a message is always waiting, each of which costs the
 * monitor some work; and one that reads the responses. */
static _Noreturn void
flood(const char *dir)
{
	struct wire w = { .magic = WIRE_MAGIC, .type = WIRE_START };
	int fds[WIRE_FD__REQUEST], i;
	const struct err *e;
	pid_t pid = 1;

	w.deployment = w.epoch = w.project = 1; /* no directory: rejected */
	files_open(dir, fds);
	say("floods\n");
	for (i = 0; i < FLOODERS && pid != 0; i++)
		if ((pid = fork()) == -1)
			err(1, "fork");
	do
		e = pid == 0 ? wire_send(MONITOR, &w, fds, WIRE_FD__REQUEST) :
			       wire_recv(MONITOR, &w, NULL, 0);
	while (e == NULL);
	exit(1);
}

static void
send_type(uint32_t type, const char *deployment, const char *epoch)
{
	struct wire w = { .magic = WIRE_MAGIC, .type = type };
	const struct err *e;

	w.deployment = number(deployment);
	w.epoch = number(epoch);
	if ((e = wire_send(MONITOR, &w, NULL, 0)) != NULL)
		errx(1, "%s", e->msg);
}

static void
wipe(char **word)
{
	struct wire w = { .magic = WIRE_MAGIC, .type = WIRE_WIPE };
	const struct err *e;

	w.project = number(word[1]);
	(void)memcpy(w.dir, word[2], strnlen(word[2], WIRE_DIR - 1));
	if ((e = wire_send(MONITOR, &w, NULL, 0)) != NULL)
		errx(1, "%s", e->msg);
}

static void
send_raw(const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[2048];
	const char *high, *low;
	size_t n = 0;

	for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
		high = strchr(digits, hex[0]);
		low = strchr(digits, hex[1]);
		if (high == NULL || low == NULL || n == sizeof(bytes))
			errx(1, "not hexadecimal");
		bytes[n++] = (unsigned char)((high - digits) << 4 |
		    (low - digits));
	}
	if (write(MONITOR, bytes, n) == -1)
		warn("write");
}

static void
command(char *line)
{
	char *word[WORDS] = { NULL }, *p;
	size_t n = 0;

	while (n < WORDS && (p = strsep(&line, " ")) != NULL)
		word[n++] = p;
	if (strcmp(word[0], "start") == 0 && n >= 6)
		start(word);
	else if (strcmp(word[0], "kill") == 0 && n == 3)
		send_type(WIRE_KILL, word[1], word[2]);
	else if (strcmp(word[0], "send") == 0 && n == 2)
		send_type((uint32_t)number(word[1]), "1", "1");
	else if (strcmp(word[0], "raw") == 0 && n == 2)
		send_raw(word[1]);
	else if (strcmp(word[0], "exit") == 0 && n == 2)
		exit((int)number(word[1]));
	else if (strcmp(word[0], "wipe") == 0 && n == 3)
		wipe(word);
	else if (strcmp(word[0], "odd") == 0 && n == 4)
		odd(word);
	else if (strcmp(word[0], "flood") == 0 && n == 2)
		flood(word[1]);
	else if (strcmp(word[0], "hold") == 0)
		holding = true;
	else
		errx(1, "unknown command %s", word[0]);
}

static void
commands(int fd)
{
	static char text[8192];
	static size_t len;
	char *newline;
	ssize_t got;

	if ((got = read(fd, text + len, sizeof(text) - len)) <= 0)
		return;
	len += (size_t)got;
	while ((newline = memchr(text, '\n', len)) != NULL) {
		*newline = '\0';
		command(text);
		len -= (size_t)(newline + 1 - text);
		(void)memmove(text, newline + 1, len);
	}
}

static void
messages(void)
{
	static const char *const names[WIRE__MAX] = {
		[WIRE_STARTED] = "started",
		[WIRE_REFUSED] = "refused",
		[WIRE_EXITED] = "exited",
		[WIRE_PROBED] = "probed",
		[WIRE_WIPED] = "wiped",
		[WIRE_RELOAD] = "reload",
		[WIRE_STOP] = "stop",
	};
	const struct err *e;
	char line[256];
	struct wire w;

	if ((e = wire_recv(MONITOR, &w, NULL, 0)) != NULL)
		errx(1, "%s", e->msg);
	if (w.type == WIRE_WIPED)
		w.deployment = w.project;
	(void)snprintf(line, sizeof(line), "%s %lld %lld %lld %d %d\n",
	    names[w.type] == NULL ? "?" : names[w.type],
	    (long long)w.deployment, (long long)w.epoch, (long long)w.pid,
	    w.status, w.error);
	say(line);
	if (w.type == WIRE_STOP && getenv("SLIPWAY_STANDIN_STAYS") == NULL)
		exit(0);
}

int
main(int argc, char **argv)
{
	const char *dir = getenv("SLIPWAY_STANDIN");
	struct pollfd fds[2];
	char text[4096];
	int cmd, i;

	if (dir == NULL)
		errx(1, "no $SLIPWAY_STANDIN");
	(void)snprintf(text, sizeof(text), "%s/out", dir);
	out_fd = open(text, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	(void)snprintf(text, sizeof(text), "%s/cmd", dir);
	cmd = open(text, O_RDWR | O_CLOEXEC);
	if (out_fd == -1 || cmd == -1)
		err(1, "%s", dir);
	(void)snprintf(text, sizeof(text), "up %ld %u %u", (long)getpid(),
	    getuid(), getgid());
	say(text);
	for (i = 1; i < argc; i++) {
		say(" ");
		say(argv[i]);
	}
	say("\n");
	for (;;) {
		fds[0] = (struct pollfd){ .fd = cmd, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = holding ? -1 : MONITOR,
			.events = POLLIN };
		if (poll(fds, 2, -1) == -1 && errno != EINTR)
			err(1, "poll");
		if (fds[0].revents != 0)
			commands(cmd);
		if (fds[1].revents != 0)
			messages();
	}
}
