/* SPDX-License-Identifier: ISC */
/* Runs a fuzz target over each file of the directories in T_CORPUS. */
#include <dirent.h>
#include <stdlib.h>

#include "core/arena.h"
#include "fuzz.h"
#include "tap.h"

#define FILE_SIZE ((size_t)2 << 20)

static void
file_run(const char *folder, const char *name)
{
	char path[1024];
	uint8_t *text = mem_alloc(FILE_SIZE, 1);
	size_t len;
	FILE *in;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((in = fopen(path, "r")) == NULL) {
		ok(false, "%s can be read", path);
	} else {
		len = fread(text, 1, FILE_SIZE, in);
		(void)fclose(in);
		text = mem_grow(text, len + (len == 0), 1);
		ok(LLVMFuzzerTestOneInput(text, len) == 0, "%s", name);
	}
	mem_free(text);
}

int
main(void)
{
	static const char *const folders[] = { T_CORPUS };
	struct dirent **names;
	size_t f;
	int i, n;

	for (f = 0; f < sizeof(folders) / sizeof(folders[0]); f++) {
		n = scandir(folders[f], &names, NULL, alphasort);
		ok(n > 2, "%s has files", folders[f]);
		for (i = 0; i < n; i++) {
			if (names[i]->d_name[0] != '.')
				file_run(folders[f], names[i]->d_name);
			free(names[i]);
		}
		if (n >= 0)
			free(names);
	}
	return tap_done();
}
