/* SPDX-License-Identifier: ISC */
#include "core/num.h"

#include "tap.h"

struct row {
	const char *text;
	int64_t min, max;
	bool good;
	int64_t value;
};

static const struct row plain[] = {
	{ "0", 0, 9, true, 0 },
	{ "7", 0, 9, true, 7 },
	{ "-7", -9, 9, true, -7 },
	{ "9", 0, 9, true, 9 },
	{ "10", 0, 9, false, 0 },
	{ "-10", -9, 9, false, 0 },
	{ "9007199254740991", 0, NUM_SAFE, true, NUM_SAFE },
	{ "9007199254740992", 0, NUM_SAFE, false, 0 },
	{ "9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX },
	{ "-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN },
	{ "9223372036854775808", INT64_MIN, INT64_MAX, false, 0 },
	{ "99999999999999999999999", INT64_MIN, INT64_MAX, false, 0 },
	{ "", 0, 9, false, 0 },
	{ "-", -9, 9, false, 0 },
	{ "+1", 0, 9, false, 0 },
	{ " 1", 0, 9, false, 0 },
	{ "1 ", 0, 9, false, 0 },
	{ "01", 0, 9, false, 0 },
	{ "-0", -9, 9, false, 0 },
	{ "00", 0, 9, false, 0 },
	{ "1.0", 0, 9, false, 0 },
	{ "1e1", 0, 99, false, 0 },
	{ "0x1", 0, 9, false, 0 },
	{ "--1", -9, 9, false, 0 },
	{ "1,", 0, 9, false, 0 },
};

static const struct row sizes[] = {
	{ "0", 0, 9, true, 0 },
	{ "1k", 0, 4096, true, 1024 },
	{ "1K", 0, 4096, true, 1024 },
	{ "64m", 0, INT64_MAX, true, INT64_C(67108864) },
	{ "2g", 0, INT64_MAX, true, INT64_C(2147483648) },
	{ "17", 0, 99, true, 17 },
	{ "8388608k", 0, INT64_C(8589934592), true, INT64_C(8589934592) },
	{ "k", 0, 9, false, 0 },
	{ "", 0, 9, false, 0 },
	{ "1kk", 0, INT64_MAX, false, 0 },
	{ "1t", 0, INT64_MAX, false, 0 },
	{ "1 k", 0, INT64_MAX, false, 0 },
	{ "1.5m", 0, INT64_MAX, false, 0 },
	{ "5k", 0, 4096, false, 0 },
	{ "9223372036854775807g", 0, INT64_MAX, false, 0 },
	{ "8589934592g", 0, INT64_MAX, false, 0 },
	{ "111111111111111111111111111111", 0, INT64_MAX, false, 0 },
};

int
main(void)
{
	size_t i;
	int64_t value;
	bool good;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		const struct row *r = &plain[i];

		value = -1;
		good = num_parse(r->text, r->min, r->max, &value);
		ok(good == r->good && value == r->value, "number \"%s\"",
		    r->text);
	}
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct row *r = &sizes[i];

		value = -1;
		good = num_parse_size(r->text, r->min, r->max, &value);
		ok(good == r->good && value == r->value, "size \"%s\"",
		    r->text);
	}
	return tap_done();
}
