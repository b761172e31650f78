/* SPDX-License-Identifier: ISC */
#include "core/branch.h"

#include <string.h>

#include "core/str.h"
#include "core/utf8.h"

const char *
branch_fault(const char *name)
{
	static const char *const never[] = { "..", "//", "@{", "/.", ".lock/",
		NULL };
	size_t i;

	if (*name == '\0' || *name == '-' || *name == '/' || *name == '.')
		return "must not be empty or start with -, / or .";
	if (!utf8_valid(name, strlen(name)) || str_chars(name) > BRANCH_MAX)
		return "must be UTF-8 of at most 255 characters";
	for (i = 0; never[i] != NULL; i++)
		if (strstr(name, never[i]) != NULL)
			return "is not a valid name: it contains .., //, "
			       "@{, /. or .lock/";
	if (str_has_control(name) || strpbrk(name, " ~^:?*[\\") != NULL)
		return "must not contain blanks, control characters or any of "
		       "~^:?*[\\";
	if (str_ends(name, "/") || str_ends(name, ".") ||
	    str_ends(name, ".lock") || strcmp(name, "@") == 0)
		return "must not end in /, . or .lock";
	return NULL;
}
