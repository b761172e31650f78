/* SPDX-License-Identifier: ISC */
/* A job description that the dispatcher writes: records, then their values. */
#include <sys/mman.h>

#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "spool/description.h"
#include "spool/spool.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open((size_t)64 << 20);
	const struct err *e = NULL;
	struct job_description job, same;
	const struct job_step *step;
	struct record r;
	struct buf again;
	size_t at = 0, last, i;
	bool found = true;
	int fd = memfd_create("job", MFD_CLOEXEC);

	MUST(fd != -1 && write(fd, data, len) == (ssize_t)len);
	buf_init(&again, (size_t)1 << 24);
	while (e == NULL && found) {
		last = at;
		e = record_read(a, (const char *)data, len, &at, &r, &found);
		MUST(at <= len && (found ? at > last : at == last));
		if (!found)
			break;
		MUST(strlen(r.value) == r.len && r.len <= SPOOL_RECORD);
		record_write(&again, r.name, r.value, r.len);
	}
	MUST(buf_check(&again) == NULL && again.len == at &&
	    (at == 0 || memcmp(again.data, data, at) == 0));
	e = job_description_read(a, fd, &job);
	if (e == NULL) {
		MUST(job.deployment > 0 && job.path != NULL);
		step = job.steps.items;
		for (i = 0; i < job.steps.n; i++)
			MUST(step[i].script != NULL);
		buf_clear(&again);
		job_description_write(&again, &job);
		job_description_end(&again);
		MUST(buf_check(&again) == NULL && ftruncate(fd, 0) == 0 &&
		    pwrite(fd, again.data, again.len, 0) ==
			(ssize_t)again.len &&
		    job_description_read(a, fd, &same) == NULL);
		MUST(same.deployment == job.deployment &&
		    same.steps.n == job.steps.n && same.env.n == job.env.n &&
		    same.secret.n == job.secret.n &&
		    same.checkout == job.checkout);
	}
	buf_release(&again);
	(void)close(fd);
	arena_close(a);
	return 0;
}
