#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The generator that turns NAME.sql of src/store and src/queue into constant statements: what it
# makes of a file, and which mistakes it rejects, under each awk that is installed.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my $top = srcdir();
my $dir = tempdir();
my @awks = grep { (run_cmd('sh', '-c', "command -v \${0%% *}", $_))[0] == 0 }
    qw(awk mawk gawk original-awk), 'busybox awk';

my $shared = <<'SQL';
-- SPDX-License-Identifier: ISC

-- A lock that applies.
-- @active
(k.`until` IS NULL OR k.`until` > NOW(3))

-- @place(project, environment)
CONCAT('a:@b', @project, ',)?', @environment)

-- @unused
1
SQL

# Status, header and messages for the text of things.sql.
sub generated {
	my ($awk, $text, $fragments) = @_;
	spew("$dir/fragments.sql", $fragments // $shared);
	spew("$dir/things.sql", $text);
	return run_cmd('sh', '-c', 'cd "$1" && LC_ALL=C exec $2 -f "$3" fragments.sql things.sql', 'sh',
	    $dir, $awk, "$top/src/db/statements.awk");
}

my $good = <<'SQL';
-- SPDX-License-Identifier: ISC

-- @columns(t)
@t.id, @t.name

-- @most
100

-- Why it is as it is.
-- thing_by_id(struct thing_key) -> struct thing
SELECT STRAIGHT_JOIN @columns(p), p.`by`, COALESCE(k.id, 0) AS `part.id`,
	EXISTS (SELECT 1 FROM k WHERE k.id = p.id) AS has_key
FROM thing p
	LEFT JOIN k ON @active AND k.place = @place(p.id, COALESCE(:place[1], 0))
WHERE p.id IN (
		:id, :of.id
	)
LIMIT @most;

-- thing_insert(struct thing) -> struct thing
INSERT INTO thing (name) VALUES (:name) RETURNING id, name AS again;

-- thing_both(struct thing_key) -> struct thing, struct part; reads
BEGIN NOT ATOMIC
	DECLARE n INT;
	SELECT COUNT(*) INTO n FROM thing;
	IF n = 0 THEN
		SELECT 0 AS id;
	ELSE
		SELECT id FROM thing WHERE id = :id;
	END IF;
	SELECT x.id FROM part x WHERE x.text = '\n';
END;

-- thing_make(struct thing) -> struct thing, struct part
BEGIN NOT ATOMIC
	INSERT INTO thing (name) VALUES (:name) RETURNING id, name;
	INSERT INTO part (id) SELECT 1 RETURNING id;
END;

-- thing_part(struct thing) -> struct thing
SELECT :part.id AS `part.id` UNION SELECT k.id FROM k WHERE @active AND @active;

-- thing_else() -> struct part
BEGIN NOT ATOMIC
	IF 1 THEN
		DELETE FROM thing;
	ELSE
		SELECT 1 AS id;
	END IF;
END;

-- thing_clear()
DELETE FROM thing;
SQL

# The compiler's view of a header: statements with their tables.
my $c = <<'C';
#include <stdio.h>
#include "db/db.h"
struct part { int64_t id; };
struct thing { int64_t id; const char *name, *again, *by; bool has_key; struct part part; };
struct thing_key { int64_t id; int64_t place[2]; struct part of; };
#include "things.sql.h"
static void
table(const char *name, const struct field *f)
{
	(void)printf("%s:", name);
	for (; f != NULL && f->name != NULL; f++)
		(void)printf(" %s@%zu%s", f->name, f->offset, f->flags & FIELD_NULL ? "?" : "");
	(void)printf("\n");
}
int
main(void)
{
	const struct stmt *const *s;

	for (s = things_stmts; *s != NULL; s++) {
		(void)printf("%s%s %zu %zu\n%s\n", (*s)->name, (*s)->reads ? " reads" : "",
		    (*s)->rowsize, (*s)->moresize, (*s)->sql);
		table("args", (*s)->args);
		table("row", (*s)->row);
		table("more", (*s)->more);
	}
	return SQL_MOST == 100 && sql_thing_clear.sql != NULL ? 0 : 1;
}
C
my $expected = <<'TEXT';
thing_by_id 48 0
SELECT STRAIGHT_JOIN p.id, p.name, p.`by`, COALESCE(k.id, 0) AS `part.id`,\
 EXISTS (SELECT 1 FROM k WHERE k.id = p.id) AS has_key FROM thing p LEFT JOIN k\
 ON (k.`until` IS NULL OR k.`until` > NOW(3)) AND k.place = CONCAT('a:@b', p.id, ',)?', COALESCE(?, 0))\
 WHERE p.id IN (?, ?) LIMIT 100
args: place[1]@16 id@0 of.id@24
row: id@0 name@8 by@24 part.id@40? has_key@32
more:
thing_insert 48 0
INSERT INTO thing (name) VALUES (?) RETURNING id, name AS again
args: name@8
row: id@0 again@16
more:
thing_both reads 48 8
BEGIN NOT ATOMIC DECLARE n INT; SELECT COUNT(*) INTO n FROM thing; IF n = 0 THEN\
 SELECT 0 AS id; ELSE SELECT id FROM thing WHERE id = ?; END IF;\
 SELECT x.id FROM part x WHERE x.text = '\n'; END
args: id@0
row: id@0
more: id@0
thing_make 48 8
BEGIN NOT ATOMIC INSERT INTO thing (name) VALUES (?) RETURNING id, name;\
 INSERT INTO part (id) SELECT 1 RETURNING id; END
args: name@8
row: id@0 name@8
more: id@0
thing_part 48 0
SELECT ? AS `part.id` UNION SELECT k.id FROM k WHERE\
 (k.`until` IS NULL OR k.`until` > NOW(3)) AND (k.`until` IS NULL OR k.`until` > NOW(3))
args: part.id@40
row: part.id@40?
more:
thing_else 8 0
BEGIN NOT ATOMIC IF 1 THEN DELETE FROM thing; ELSE SELECT 1 AS id; END IF; END
args:
row: id@0
more:
thing_clear 0 0
DELETE FROM thing
args:
row:
more:
TEXT
$expected =~ s/\\\n//g;

sub compiled {
	my ($text, $header) = @_;
	spew("$dir/things.sql.h", $header);
	spew("$dir/things.c", $text);
	return run_cmd('cc', '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-D_GNU_SOURCE',
	    "-I$top/src", "-I$dir", '-o', "$dir/things", "$dir/things.c");
}

# text => the message.  A change of the good text is [pattern, replacement].
my @bad = (
	['text without a head', "SELECT 1 AS id;\n", 'things.sql:1: text without a head'],
	['a head that is none', "-- Why it is.\nSELECT 1 AS id;\n", 'things.sql:1: malformed head'],
	['a head without its parentheses', "-- thing -> struct thing\nSELECT 1 AS id;\n",
	    'things.sql:1: malformed head'],
	['a type that is no struct', "-- thing(int id)\nDELETE FROM t WHERE id = :id;\n",
	    'things.sql:1: malformed head'],
	['a name in capitals', "-- Thing()\nDELETE FROM t;\n", 'things.sql:1: malformed head'],
	['a head without a text', "-- thing_a()\n\n-- thing_b()\nDELETE FROM t;\n",
	    'things.sql:1: a head without text'],
	['a head at the end', "-- thing_b()\nDELETE FROM t;\n\n-- thing_a()\n",
	    'things.sql:4: a head without text'],
	['two statements of a name', "-- thing()\nDELETE FROM t;\n\n-- thing()\nDELETE FROM t;\n",
	    'things.sql:4: duplicate statement thing'],
	['two fragments of a name', "-- \@active\n1 = 1\n", 'things.sql:1: duplicate fragment @active'],
	['a fragment that does not exist', "-- thing()\nDELETE FROM t\nWHERE \@none;\n",
	    'things.sql:3: unknown fragment @none'],
	['a fragment that contains itself', "-- \@a\n\@b\n\n-- \@b\n\@a\n\n"
	    . "-- thing()\nDELETE FROM t WHERE \@a;\n",
	    'things.sql:5: @a contains itself'],
	['a fragment that nobody uses', "-- thing()\nDELETE FROM t;\n\n-- \@a\n1\n",
	    'things.sql:4: no statement uses @a'],
	['a fragment without its arguments', "-- thing()\nDELETE FROM t WHERE \@place;\n",
	    'things.sql:2: @place needs arguments'],
	['too few arguments of a fragment', "-- thing()\nDELETE FROM t WHERE \@place(IF(1, 2, 3));\n",
	    'things.sql:2: @place needs 2 arguments, not 1'],
	['too many arguments of a fragment', "-- thing()\nDELETE FROM t WHERE \@place(1, 2, 3);\n",
	    'things.sql:2: @place needs 2 arguments, not 3'],
	['arguments of a fragment that do not end', "-- thing()\nDELETE FROM t WHERE \@place(1, 2;\n",
	    'things.sql:2: the arguments of @place do not end'],
	['no ; at the end', "-- thing_a()\nDELETE FROM t\n\n-- thing_b()\nDELETE FROM t;\n",
	    'things.sql:2: the statement does not end with ;'],
	['a ?', "-- thing()\nDELETE FROM t WHERE id = ?;\n",
	    'things.sql:2: a parameter is written :member, not ?'],
	['a : without a member', "-- thing()\nDELETE FROM t WHERE id = : id;\n",
	    'things.sql:2: expected :member'],
	['a @ without a fragment', "-- thing()\nDELETE FROM t WHERE id = \@ id;\n",
	    'things.sql:2: expected @fragment'],
	['a string in double quotes', "-- thing()\nDELETE FROM t WHERE a = \"x\";\n",
	    q{things.sql:2: a string is written 'string'}],
	['a string over two lines', "-- thing()\nDELETE FROM t WHERE a = 'x\ny';\n",
	    'things.sql:2: the string does not end on its line'],
	['a comment in a statement', "-- thing()\nDELETE FROM t # all\nWHERE id = 1;\n",
	    'things.sql:2: a comment belongs above the head'],
	['a parameter without a struct', "-- thing()\nDELETE FROM t WHERE id = :id;\n",
	    'things.sql:1: thing has parameters, but no struct of them: id'],
	['a struct without a parameter', "-- thing(struct thing_key)\nDELETE FROM t;\n",
	    'things.sql:1: thing has no parameter of struct thing_key'],
	['rows without a struct', "-- thing()\nSELECT id FROM t;\n",
	    'things.sql:1: thing has 1 results, not as many as its head'],
	['a struct without rows', "-- thing() -> struct thing\nDELETE FROM t;\n",
	    'things.sql:1: thing has 0 results, not as many as its head'],
	['branches with different columns', "-- thing() -> struct thing\nBEGIN NOT ATOMIC\n"
	    . "\tIF 1 THEN\n\t\tSELECT id FROM t;\n\tELSE\n\t\tSELECT name FROM t;\n\tEND IF;\nEND;\n",
	    'things.sql:1: thing: the branches have different columns'],
	['more results than two', "-- thing() -> struct thing, struct thing\nBEGIN NOT ATOMIC\n"
	    . "\tSELECT 1 AS id;\n\tSELECT 2 AS id;\n\tSELECT 3 AS id;\nEND;\n",
	    'things.sql:1: thing has 3 results, not as many as its head'],
	['a column without a name', "-- thing() -> struct thing\nSELECT id, COUNT(*) FROM t;\n",
	    'things.sql:1: thing: a column has no name: COUNT(*)'],
	['a column whose name is no member', "-- thing() -> struct thing\nSELECT id AS `1d` FROM t;\n",
	    'things.sql:1: thing: 1d is not a member'],
	['a statement among the fragments', "-- thing()\nDELETE FROM t;\n",
	    'fragments.sql:1: a statement among the shared fragments', "-- thing_a()\nDELETE FROM t;\n"],
	['no ; at the end of the shared fragments', "-- thing()\nDELETE FROM t WHERE \@a;\n",
	    'fragments.sql:2: expected :member', "-- \@a\n1 = : 1\n"],
);

for my $awk (@awks) {
	my ($status, $header, $err) = generated($awk, $good);
	is("$status$err", '0', "$awk: the generator takes a good file");
	my ($cc, undef, $why) = compiled($c, $header);
	is("$cc$why", '0', "$awk: the header compiles without warnings");
	is((run_cmd("$dir/things"))[1], $expected, "$awk: the statements and tables are those of the file");
	my @wrong;
	for (@bad) {
		my ($what, $text, $message, $fragments) = @$_;
		my ($rc, undef, $got) = generated($awk, $text, $fragments);
		push @wrong, "$what: $rc $got" if $rc == 0 || $got ne "$message\n";
	}
	is_deeply(\@wrong, [], "$awk: the generator rejects each mistake by file and line");
}

# --- what only the compiler can see
for (
	['a parameter that is no member', [':of.id', ':of.ids'], qr/things\.sql:16:.*\bids\b/],
	['a parameter of a fragment', ['-- thing_clear\(\)\nDELETE FROM thing', "-- \@f\nid = :nope\n\n"
		. "-- thing_clear(struct thing_key)\nDELETE FROM thing WHERE \@f"],
	    qr/\bnope\b.*\bthings\.sql:54:/s],
	['a column that is no member', ['AS has_key', 'AS has_no_key'],
	    qr/\bhas_no_key\b.*\bthings\.sql:10:/s],
	['a struct that does not exist', ['thing_by_id\(struct thing_key', 'thing_by_id(struct no_key'],
	    qr/\bstruct no_key\b.*\bthings\.sql:14:/s],
) {
	my ($what, $change, $message) = @$_;
	my $text = $good =~ s/$change->[0]/$change->[1]/r;
	isnt($text, $good, "$what: the text is changed");
	my (undef, $header) = generated('awk', $text);
	my ($status, undef, $err) = compiled($c, $header);
	isnt($status, 0, "$what does not compile");
	like($err, $message, "$what: the compiler names the file and the line");
}

# --- the fragments that several files share, and names
my %used;
my %file = map { m{(\w+)\.sql$} ? ($1 => slurp($_)) : () } glob "$top/src/store/*.sql $top/src/queue/*.sql";
cmp_ok(scalar keys %file, '>', 30, 'the test finds the files');
my $fragments = delete $file{fragments};
for my $name ($fragments =~ /^-- \@(\w+)/mg) {
	my $within = () = $fragments =~ /(?<!-- )\@$name\b/g;
	$used{$name} = $within + grep { /\@$name\b/ } values %file;
}
is_deeply([sort grep { !$used{$_} } keys %used], [], 'every shared fragment is used');
# Values that C and SQL share.
my @bounds = slurp("$top/src/queue/total.h") =~ /^\tX\((\d+), /mg;
my ($longer) = slurp("$top/src/queue/total.h") =~ /^#define TOTAL_LONGER (\d+)/m;
is(join(' ', $fragments =~ /^\tWHEN \@ms <= (\d+) THEN \1$/mg, $fragments =~ /^\tELSE (\d+)\nEND$/mg),
    "@bounds $longer", 'the ranges of times are those of total.h');
my %env = slurp("$top/src/store/env.h") =~ /^#define (ENV_DRY_RUN\w*) "(\w+)"/mg;
like($fragments, qr/'\$\.$env{ENV_DRY_RUN}'\), ''\) <> '$env{ENV_DRY_RUN_YES}'/,
    'a dry run is recognized as in env.h');
my %named;
$named{$_}++ for map { /^-- (\w+)\(.*\).*\n(?!--)./mg } values %file;
is_deeply([sort grep { $named{$_} > 1 } keys %named], [], 'every statement has a name of its own');

done_testing();
