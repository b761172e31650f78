/* SPDX-License-Identifier: ISC */
#include "api/presets.h"

#include "core/str.h"
#include "json/json.h"
#include "store/preset.h"

const struct err *
presets_check(struct arena *a, struct json_text text, struct faults *f)
{
	const struct preset *p;
	const struct err *e;
	struct list list;
	size_t i, k;

	if ((e = json_items_sent(a, &preset_shape, text.s, &list)) != NULL)
		return e;
	p = list.items;
	for (i = 0; i < list.n; i++)
		for (k = 0; k < i; k++)
			if (p[i].key != NULL && str_eq(p[i].key, p[k].key)) {
				faults_add(f,
				    arena_printf(a, "/envPresets/%zu/key", i),
				    "is the key of another preset already");
				break;
			}
	return NULL;
}
