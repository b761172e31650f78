/* SPDX-License-Identifier: ISC */
/*
 * Included before every source of a build for coverage: what a process ran
 * counts, too, where it ends without the handlers of exit(3), or becomes
 * another program.
 */
#include <unistd.h>

extern void __gcov_dump(void);
extern void __gcov_reset(void);

static inline int
cover_execve(const char *path, char *const argv[], char *const envp[])
{
	__gcov_dump();
	__gcov_reset();
	return execve(path, argv, envp);
}

#define execve cover_execve
#define _exit(status) (__gcov_dump(), _exit(status))
