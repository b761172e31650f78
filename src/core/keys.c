/* SPDX-License-Identifier: ISC */
#include "core/keys.h"

#include <sys/syscall.h>

#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/file.h"
#include "core/num.h"

#define USERS "/proc/key-users"
#define USERS_MAX ((size_t)64 * 1024) /* longer ones cost more than they save */

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

/* Whether the user may have more keys than that. */
static bool
has_more(int64_t own)
{
	int64_t uid, keys;
	char *rest, *line;
	struct buf text;
	bool has = true;

	buf_init(&text, USERS_MAX);
	if (file_load(USERS, &text) != NULL || text.len == 0)
		goto out;
	has = false;
	rest = text.data;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (user_parse(line, &uid, &keys) && (uid_t)uid == geteuid())
			has = keys > own;
out:
	buf_release(&text);
	return has;
}

/* A look at a user's keyrings creates them, and the kernel searches all keys
 * for unused ones whenever it destroys one. */
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
