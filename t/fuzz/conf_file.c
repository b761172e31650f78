/* SPDX-License-Identifier: ISC */
/* A configuration file. */
#include <sys/mman.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/settings.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open(16 << 20);
	struct settings s;
	const struct conf_key *k;
	const struct err *e;
	char path[64];
	int fd = memfd_create("conf", MFD_CLOEXEC);

	MUST(fd != -1 && write(fd, data, len) == (ssize_t)len);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)memset(&s, 0, sizeof(s));
	e = conf_read(a, settings_keys, path, CONF_NO_ENV | CONF_NO_SECRETS,
	    &s);
	MUST(e == NULL || (e->code == ERR_CONFIG && e->detail[0] != '\0'));
	for (k = settings_keys; k->section != NULL; k++)
		MUST(conf_text(a, k, &s) != NULL);
	MUST(e != NULL || (s.api.workers >= 1 && s.api.workers <= 256));
	(void)close(fd);
	arena_close(a);
	return 0;
}
