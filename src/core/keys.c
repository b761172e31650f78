/* SPDX-License-Identifier: ISC */
#include "core/keys.h"

#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"

#define USERS "/proc/key-users"
#define USERS_SIZE 4096
#define USERS_LINE 128 /* no line is longer */

const struct err *
keys_session(void)
{
	/* A kernel without keys, or a filter that hides them, hides them from
	 * steps as well. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) == -1 &&
	    errno != ENOSYS && errno != EPERM)
		return err_errno("join a session keyring");
	return NULL;
}

/* Parses "uid: usage keys/…" (proc_key-users(5)). */
static bool
user_parse(char *line, int64_t *uid, int64_t *keys)
{
	const char *word;

	line += strspn(line, " ");
	word = strsep(&line, ":");
	if (line == NULL || !num_parse(word, 0, UINT32_MAX, uid))
		return false;
	line += strspn(line, " ");
	(void)strsep(&line, " ");
	if (line == NULL)
		return false;
	word = strsep(&line, "/");
	return num_parse(word, 0, INT32_MAX, keys);
}

/* Reads the table of users at once, as a line can be missing between two reads;
 * false if it may be longer. */
static bool
users_read(char text[USERS_SIZE])
{
	const int fd = open(USERS, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd == -1)
		return false;
	got = read(fd, text, USERS_SIZE - 1);
	(void)close(fd);
	if (got <= 0 || got >= USERS_SIZE - USERS_LINE)
		return false;
	text[got] = '\0';
	return true;
}

/* Whether the user may have more keys than that. */
static bool
has_more(int64_t own)
{
	char text[USERS_SIZE], *rest = text, *line;
	int64_t uid, keys;

	if (!users_read(text))
		return true;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (user_parse(line, &uid, &keys) && (uid_t)uid == geteuid())
			return keys > own;
	return false;
}

/* Naming a keyring of the user creates it, if it does not exist. Every key costs
 * time whenever one is destroyed, because the kernel then looks at all. */
void
keys_clear(int64_t own)
{
	long all[] = { KEY_SPEC_USER_KEYRING, KEY_SPEC_USER_SESSION_KEYRING,
		-1 };
	size_t i;

	if (!has_more(own))
		return;
	all[2] = syscall(SYS_keyctl, KEYCTL_GET_PERSISTENT, -1,
	    KEY_SPEC_PROCESS_KEYRING);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] != -1 &&
		    syscall(SYS_keyctl, KEYCTL_CLEAR, all[i]) == -1)
			continue; /* the kernel has no keys */
}
