/* SPDX-License-Identifier: ISC */
#include "core/fault.h"

#include "tap.h"

static void
taken_of_a_copy(struct arena *a)
{
	struct arena *own = arena_open(1 << 20);
	struct faults f, copy;
	int i;

	faults_init(&f, a);
	faults_add(&f, "/a", "one");
	copy = f;
	copy.a = own;
	faults_take(&f, &copy);
	is_int((long long)f.n, 1, "a copy with nothing new adds nothing");
	faults_conflict(&copy, "/b", "two");
	for (i = 0; i < FAULTS_MAX; i++)
		faults_add(&copy, "/c", "more");
	faults_take(&f, &copy);
	arena_close(own);
	is_int((long long)f.n, FAULTS_MAX + 2, "what is new is counted");
	is_int((long long)f.conflicts, 1, "conflicts are, too");
	is_str(f.item[0].detail, "one", "what was there stays");
	is_str(f.item[1].pointer, "/b", "the new ones outlive their arena");
	is_str(f.item[FAULTS_MAX - 1].detail, "more", "up to a hundred");
}

int
main(void)
{
	struct arena *a = arena_open(1 << 20);
	struct faults f;
	const struct err *e;
	char name[] = "env";
	int i;

	faults_init(&f, a);
	ok(faults_check(&f) == NULL, "no fault is no error");
	is_str(fault_pointer(&f, "", "a"), "/a", "a pointer from the root");
	is_str(fault_pointer(&f, "/a", "b"), "/a/b", "one further down");
	is_str(fault_pointer(&f, "", "a/b~c"), "/a~1b~0c",
	    "slash and tilde are escaped");
	is_str(fault_pointer(&f, "", ""), "/", "an empty name is a name");
	is_str(fault_index(&f, "/steps", 12), "/steps/12", "an index");

	faults_add(&f, name, "must be %d", 3);
	name[0] = 'X';
	is_str(f.item[0].pointer, "env", "the pointer is copied");
	is_str(f.item[0].detail, "must be 3", "the text is formatted");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_INVALID, "one fault is an error");
	is_str(e == NULL ? NULL : e->msg, "1 faults, first: env: must be 3",
	    "that names it");
	ok(faults_has(&f, "env") && !faults_has(&f, "en") &&
		!faults_has(&f, "envs") && !faults_has(&f, "env/a"),
	    "a place has a fault or has none");
	faults_add(&f, "/a/0/b", "x");
	ok(faults_at(&f, "/a/0/b") && !faults_at(&f, "/a/0") &&
		!faults_at(&f, "/a/0/b/c"),
	    "a fault is at its own place");
	ok(faults_has(&f, "/a") && faults_has(&f, "/a/0") &&
		!faults_has(&f, "/a/1"),
	    "so has what is above it");
	faults_init(&f, a);
	faults_conflict(&f, "/name", "%s has it: choose another", "b");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_CONFLICT, "a conflict alone is one");
	is_str(e == NULL ? NULL : e->detail, "name: b has it: choose another.",
	    "that is told");
	faults_add(&f, "/x", "more");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_INVALID, "beside a fault it is a fault");
	faults_init(&f, a);
	for (i = 0; i <= 3 * FAULTS_MAX; i++)
		faults_add(&f, "/x", "more");
	is_int((long long)f.n, 3 * FAULTS_MAX + 1, "all faults are counted");
	is_str(f.item[FAULTS_MAX - 1].detail, "more", "a hundred are kept");
	taken_of_a_copy(a);
	arena_close(a);
	return tap_done();
}
