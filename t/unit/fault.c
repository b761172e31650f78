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
	is_int((long long)f.n, 1, "merging an unchanged copy adds nothing");
	faults_conflict(&copy, "/b", "two");
	for (i = 0; i < FAULTS_MAX; i++)
		faults_add(&copy, "/c", "more");
	faults_take(&f, &copy);
	arena_close(own);
	is_int((long long)f.n, FAULTS_MAX + 2, "merging counts all new faults");
	is_int((long long)f.conflicts, 1, "merging counts conflicts");
	is_str(f.item[0].detail, "one", "merging keeps the existing faults");
	is_str(f.item[1].pointer, "/b", "merged faults outlive their arena");
	is_str(f.item[FAULTS_MAX - 1].detail, "more",
	    "merging stores up to a hundred faults");
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
	is_str(fault_pointer(&f, "", "a"), "/a", "a pointer below the root");
	is_str(fault_pointer(&f, "/a", "b"), "/a/b", "a pointer below another");
	is_str(fault_pointer(&f, "", "a/b~c"), "/a~1b~0c",
	    "a pointer escapes slash and tilde");
	is_str(fault_pointer(&f, "", ""), "/", "a pointer with an empty name");
	is_str(fault_index(&f, "/steps", 12), "/steps/12",
	    "a pointer with an index");

	faults_add(&f, name, "must be %d", 3);
	name[0] = 'X';
	is_str(f.item[0].pointer, "env", "faults_add copies the pointer");
	is_str(f.item[0].detail, "must be 3", "faults_add formats the text");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_INVALID, "one fault is an error");
	is_str(e == NULL ? NULL : e->msg, "1 faults, first: env: must be 3",
	    "the error names the first fault");
	ok(faults_has(&f, "env") && !faults_has(&f, "en") &&
		!faults_has(&f, "envs") && !faults_has(&f, "env/a"),
	    "faults_has compares whole parts of a pointer");
	faults_add(&f, "/a/0/b", "x");
	ok(faults_at(&f, "/a/0/b") && !faults_at(&f, "/a/0") &&
		!faults_at(&f, "/a/0/b/c"),
	    "faults_at finds the faults of a pointer alone");
	ok(faults_has(&f, "/a") && faults_has(&f, "/a/0") &&
		!faults_has(&f, "/a/1"),
	    "faults_has finds the faults below a pointer");
	faults_init(&f, a);
	faults_conflict(&f, "/name", "%s has it: choose another", "b");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_CONFLICT,
	    "a conflict alone is a conflict error");
	is_str(e == NULL ? NULL : e->detail, "name: b has it: choose another.",
	    "a conflict error has a text for the client");
	faults_add(&f, "/x", "more");
	e = faults_check(&f);
	ok(e != NULL && e->code == ERR_INVALID,
	    "a conflict beside a fault is a validation error");
	faults_init(&f, a);
	for (i = 0; i <= 3 * FAULTS_MAX; i++)
		faults_add(&f, "/x", "more");
	is_int((long long)f.n, 3 * FAULTS_MAX + 1, "all faults are counted");
	is_str(f.item[FAULTS_MAX - 1].detail, "more",
	    "a hundred faults are stored");
	taken_of_a_copy(a);
	arena_close(a);
	return tap_done();
}
