/* SPDX-License-Identifier: ISC */
/* A job description that the dispatcher writes: records, then their values. */
#include <sys/mman.h>

#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "job/job.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct arena *a = arena_open((size_t)64 << 20);
	const struct err *e = NULL;
	struct job_spec spec;
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
	e = job_spec_read(a, fd, &spec);
	if (e == NULL) {
		MUST(spec.deployment > 0 && spec.path != NULL);
		for (i = 0; i < spec.nsteps; i++)
			MUST(spec.steps[i].script != NULL);
		for (i = 0; i < spec.env.n; i++)
			MUST(strchr(spec.env.items[i], '=') != NULL);
	}
	buf_release(&again);
	(void)close(fd);
	arena_close(a);
	return 0;
}
