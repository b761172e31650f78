/* SPDX-License-Identifier: ISC */
#include "core/num.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
num_parse(const char *s, int64_t min, int64_t max, int64_t *out)
{
	const char *digits = s + (*s == '-' ? 1 : 0);
	long long value;

	*out = 0;
	if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits))
		return false;
	if (digits[0] == '0' && (digits[1] != '\0' || digits != s))
		return false;
	errno = 0;
	value = strtoll(s, NULL, 10);
	if (errno != 0 || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool
num_parse_size(const char *s, int64_t min, int64_t max, int64_t *out)
{
	static const struct {
		char unit;
		int64_t factor;
	} units[] = {
		{ 'k', INT64_C(1) << 10 },
		{ 'm', INT64_C(1) << 20 },
		{ 'g', INT64_C(1) << 30 },
	};
	char head[24];
	size_t len = strlen(s), i;
	int64_t factor = 1, value;

	*out = 0;
	if (len == 0 || len >= sizeof(head))
		return false;
	(void)memcpy(head, s, len + 1);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if ((head[len - 1] | 0x20) == units[i].unit) {
			factor = units[i].factor;
			head[len - 1] = '\0';
			break;
		}
	if (!num_parse(head, INT64_MIN / factor, INT64_MAX / factor, &value))
		return false;
	value *= factor;
	if (value < min || value > max)
		return false;
	*out = value;
	return true;
}
