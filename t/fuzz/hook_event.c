/* SPDX-License-Identifier: ISC */
/* A push event: a line for each header ("NUMBER value"), an empty line, the
 * body. */
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "core/utf8.h"
#include "forge/hook.h"
#include "fuzz.h"

#define BRANCH 255
#define HASHES "0123456789abcdef"

/* Parses "3 value"; false if it is invalid. */
static bool
header_take(char *line, const char *header[HOOK__MAX])
{
	char *blank = strchr(line, ' ');
	int64_t n;

	if (blank == NULL)
		return false;
	*blank = '\0';
	if (!num_parse(line, 0, HOOK__MAX - 1, &n))
		return false;
	header[n] = blank + 1;
	return true;
}

static void
envelope_check(const struct hook_envelope *env)
{
	MUST(env->kind != NULL && env->event != NULL && *env->event != '\0');
	MUST(env->delivery == NULL || *env->delivery != '\0');
	MUST(env->signing != HOOK_STANDARD ||
	    (env->signature != NULL && env->signed_id != NULL &&
		env->signed_at > 0));
}

static void
push_check(const struct hook_push *p)
{
	MUST(p->deleted == (p->commit_hash == NULL));
	if (p->commit_hash != NULL)
		MUST((strlen(p->commit_hash) == 40 ||
			 strlen(p->commit_hash) == 64) &&
		    p->commit_hash[strspn(p->commit_hash, HASHES)] == '\0');
	MUST(p->repo_path != NULL && !str_has_control(p->repo_path) &&
	    utf8_valid(p->repo_path, strlen(p->repo_path)));
	MUST(p->repo_id == NULL ||
	    p->repo_id[strspn(p->repo_id, "0123456789")] == '\0');
	MUST(p->branch == NULL ||
	    (*p->branch != '\0' && str_chars(p->branch) <= BRANCH &&
		!str_has_control(p->branch)));
	MUST(p->pusher == NULL || !str_has_control(p->pusher));
	MUST(p->commit_message == NULL ||
	    utf8_valid(p->commit_message, strlen(p->commit_message)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *header[HOOK__MAX] = { NULL };
	struct hook_envelope env;
	struct hook_push push;
	const struct err *e;
	struct arena *a;
	char *text, *line;
	size_t n = 0;

	if (len > (1 << 20))
		return 0;
	a = arena_open((size_t)6 << 20);
	text = arena_strndup(a, (const char *)data, len);
	while (n < len) {
		line = text + n;
		n += strcspn(line, "\n");
		if (n < len)
			text[n++] = '\0';
		if (!header_take(line, header))
			break;
	}
	if ((e = hook_open(a, header, &env)) != NULL) {
		MUST(e->code == ERR_BAD_REQUEST && e->detail[0] != '\0');
		goto out;
	}
	envelope_check(&env);
	e = hook_push_read(a, &env, (const char *)data + n, len - n, &push);
	if (e == NULL)
		push_check(&push);
	else
		MUST(e->code == ERR_BAD_REQUEST && e->detail[0] != '\0');
out:
	arena_close(a);
	return 0;
}
