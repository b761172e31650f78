/* SPDX-License-Identifier: ISC */
/*
 * The baseline of the benchmark: a pool of libfcgi loops that respond with a
 * constant JSON document of the size of a project.
 *
 *   bare SOCKET WORKERS
 */
#include <sys/wait.h>

#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include <fcgiapp.h>

#include "core/num.h"

#define BACKLOG 1024

static const char answer[] =
    "Status: 200\r\nContent-Type: application/json\r\n\r\n"
    "{\"id\":1,\"name\":\"shop\",\"description\":\"The shop of the company\","
    "\"repository\":\"https://git.example.org/company/shop.git\","
    "\"projectDir\":\"shop\",\"defaultBranch\":\"main\",\"envPresets\":[],"
    "\"extraEnv\":\"maintainers\",\"triggers\":[],\"valid\":1,"
    "\"createdAt\":\"2026-11-21T01:02:03.456Z\","
    "\"updatedAt\":\"2026-11-21T01:02:03.456Z\",\"createdBy\":1}";

static void
serve(int fd)
{
	FCGX_Request rq;

	if (FCGX_Init() != 0 || FCGX_InitRequest(&rq, fd, 0) != 0)
		errx(1, "libfcgi cannot start");
	while (FCGX_Accept_r(&rq) == 0) {
		(void)FCGX_PutStr(answer, (int)sizeof(answer) - 1, rq.out);
		FCGX_Finish_r(&rq);
	}
	_exit(0);
}

int
main(int argc, char **argv)
{
	int64_t workers, i;
	int fd;

	if (argc != 3 || !num_parse(argv[2], 1, 64, &workers))
		errx(64, "usage: bare SOCKET WORKERS");
	if ((fd = FCGX_OpenSocket(argv[1], BACKLOG)) == -1)
		errx(1, "%s: cannot listen", argv[1]);
	for (i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid == -1)
			err(1, "fork");
		if (pid == 0)
			serve(fd);
	}
	while (wait(NULL) > 0)
		continue;
	return 0;
}
