/* SPDX-License-Identifier: ISC */
#include "deploy/presets.h"

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
				    "is the key of another preset already");
				break;
			}
out:
	arena_close(a);
	return e;
}
