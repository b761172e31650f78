/* SPDX-License-Identifier: ISC */
/* Lists of structs as text: a table on a terminal, else lines with tabs. */
#ifndef SLIPWAY_CLI_TABLE_H
#define SLIPWAY_CLI_TABLE_H

#include "cli/client.h"

enum column_flag {
	COLUMN_STATUS = 1 << 0, /* in the color of the status */
	COLUMN_CUT = 1 << 1,    /* shortened to the width of the terminal */
	COLUMN_SHORT = 1 << 2,  /* a hash; a table shows its beginning */
	COLUMN_LINE = 1 << 3,   /* the first line */
};

struct column {
	const char *name; /* NULL ends the table */
	size_t offset;
	enum field_type type; /* F_STR, F_INT, F_BOOL, F_WHEN */
	unsigned flags;
};
/* COLUMN(struct, member, "NAME", flags) */
/* clang-format off */
#define COLUMN(T, m, n, fl) {						\
	.name = (n), .offset = offsetof(T, m),				\
	.type = FIELD_TYPE(T, m), .flags = (fl) }
#define COLUMN_END { .name = NULL }
/* clang-format on */

/* Prints items of `size` bytes.  A table has headings, and times as "3 m ago";
 * lines have neither, and no value is shortened. */
MUSTCHECK const struct err *table_print(const struct client *,
    const struct column *, size_t size, const struct list *);
/* Prints one item, a member per line, without those that are empty. */
void table_print_item(const struct client *, const struct column *,
    const void *item);

#endif
