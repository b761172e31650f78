/* SPDX-License-Identifier: ISC */
#include "dispatch/child.h"

#include <unistd.h>

#include "core/log.h"
#include "core/proc.h"
#include "dispatch/context.h"
#include "store/store.h"

pid_t
child_fork(int keep)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	proc_signals_default();
	if (keep != -1 && keep != STDERR_FILENO + 1 &&
	    dup2(keep, STDERR_FILENO + 1) == -1)
		_exit(1);
	closefrom(STDERR_FILENO + (keep == -1 ? 1 : 2));
	return 0;
}

const struct err *
child_open(const struct dispatch *d, struct access *out)
{
	struct keyring *keys = NULL;
	const struct err *e;

	*out = (struct access){ .settings = &d->settings.gitserver };
	if ((e = keyring_open(d->settings.secrets.key_file, &keys)) != NULL)
		log_debug("the tokens of users cannot be opened: %s", e->msg);
	out->keyring = keys;
	return db_open(&d->settings, 0, &out->db);
}

const struct err *
child_connect(const struct dispatch *d, struct access *out)
{
	const struct err *e;

	if ((e = child_open(d, out)) != NULL)
		return e;
	return forge_open(out->settings, &out->forge);
}
