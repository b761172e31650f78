/* SPDX-License-Identifier: ISC */
#include "core/field.h"

#include <string.h>

const struct field *
field_find(const struct field *f, const char *name)
{
	for (; f->name != NULL; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}
