/* SPDX-License-Identifier: ISC */
/* mask_probe PIECE FILE...: masks its input in pieces of this size; each file
 * holds a secret. */
#include <sys/types.h>

#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "core/num.h"
#include "job/mask.h"

#define TEXT_MAX ((size_t)1 << 22)

static void
take(int fd, struct buf *out)
{
	char block[4096];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	if (n == -1 || out->overflow)
		errx(1, "the input cannot be read");
}

int
main(int argc, char **argv)
{
	struct mask *m = mask_open(arena_open((size_t)1 << 28));
	struct buf in, out;
	int64_t piece;
	size_t at, n;
	ssize_t done;
	int i, fd;

	if (argc < 2 || !num_parse(argv[1], 1, INT32_MAX, &piece))
		errx(1, "usage: mask_probe piece file ...");
	buf_init(&in, TEXT_MAX);
	buf_init(&out, 4 * TEXT_MAX);
	for (i = 2; i < argc; i++) {
		if ((fd = open(argv[i], O_RDONLY | O_CLOEXEC)) == -1)
			err(1, "%s", argv[i]);
		buf_clear(&in);
		take(fd, &in);
		(void)close(fd);
		mask_add(m, in.data, in.len);
	}
	buf_clear(&in);
	take(STDIN_FILENO, &in);
	for (at = 0; at < in.len; at += n) {
		n = in.len - at < (size_t)piece ? in.len - at : (size_t)piece;
		mask_feed(m, in.data + at, n, &out);
	}
	mask_finish(m, &out);
	for (at = 0; at < out.len; at += (size_t)done)
		if ((done = write(STDOUT_FILENO, out.data + at,
			 out.len - at)) == -1)
			err(1, "write");
	return 0;
}
