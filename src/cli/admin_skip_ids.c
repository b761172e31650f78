/* SPDX-License-Identifier: ISC */
/* After a restore, ids that were given after the backup would be given again. */
#include <stdio.h>

#include "cli/admin.h"
#include "core/str.h"
#include "store/sequence.h"

#define DEPLOYMENTS INT64_C(100000)
/* Each project takes one of the accounts of uid_count. */
#define PLACES INT64_C(100)

const struct err *
admin_skip_ids(void *context, struct command_call *call)
{
	struct admin *admin = context;
	const struct admin_skip *options = call->options;
	const int64_t deployments = options->deployments == 0 ?
	    DEPLOYMENTS :
	    options->deployments;
	const int64_t places = options->projects == 0 ? PLACES :
							options->projects;
	struct sequence *s;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = sequence_list(admin->db, admin->a, &list)) != NULL)
		return e;
	s = list.items;
	for (i = 0; i < list.n; i++) {
		s[i].next += str_eq(s[i].name, "deployment") ? deployments :
							       places;
		if (!options->dry_run &&
		    (e = sequence_raise(admin->db, admin->a, &s[i])) != NULL)
			return e;
		(void)printf("the next %s %s %lld\n", s[i].name,
		    options->dry_run ? "would have the id" : "has the id",
		    (long long)s[i].next);
	}
	return NULL;
}
