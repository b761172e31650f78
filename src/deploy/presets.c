/* SPDX-License-Identifier: ISC */
#include "deploy/presets.h"

#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "json/json.h"
#include "store/preset.h"

#define PRESETS_MAX ((size_t)7 << 20) /* for an arena that holds them */

const struct err *
presets_check(struct json_text text, struct faults *f)
{
	struct arena *a = arena_open(PRESETS_MAX);
	const struct preset *p;
	const struct err *e;
	struct list list;
	size_t i, k;

	if ((e = json_items_sent(a, &preset_shape, text.s, &list)) != NULL)
		goto out;
	p = list.items;
	for (i = 0; i < list.n; i++)
		for (k = 0; k < i; k++)
			if (p[i].key != NULL && str_eq(p[i].key, p[k].key)) {
				faults_add(f,
				    arena_printf(a, "/envPresets/%zu/key", i),
				    "is the key of another preset");
				break;
			}
out:
	arena_close(a);
	return e;
}

static bool
has_key(const struct list *presets, const char *key)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; i < presets->n; i++)
		if (str_eq(p[i].key, key))
			return true;
	return false;
}

const struct err *
presets_join(struct arena *a, struct json_text own, struct json_text more,
    struct json_text *out, size_t *added)
{
	struct list have, offered, all;
	const struct preset *from;
	const struct err *e;
	struct preset *to;
	struct buf text;
	size_t i;

	*out = own;
	*added = 0;
	if ((e = json_items(a, &preset_shape, own.s, &have)) != NULL ||
	    (e = json_items(a, &preset_shape, more.s, &offered)) != NULL)
		return e;
	to = arena_alloc(a, have.n + offered.n, sizeof(*to));
	if (have.n > 0)
		(void)memcpy(to, have.items, have.n * sizeof(*to));
	from = offered.items;
	for (i = 0; i < offered.n; i++)
		if (!has_key(&have, from[i].key))
			to[have.n + (*added)++] = from[i];
	if (*added == 0)
		return NULL;
	all = (struct list){ .items = to, .n = have.n + *added };
	buf_init(&text, PRESETS_MAX);
	json_write_list(&text, &preset_shape, &all, 0);
	if ((e = buf_check(&text)) == NULL)
		out->s = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}
