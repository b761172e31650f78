#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The tarball contains every file of the tree, and `make check` runs every test.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my $top = srcdir();
my $makefile = slurp("$top/Makefile.am");

# Each word of the makefile's lists, with its line continuations undone.
my %listed = map { $_ => 1 } map { split ' ' }
    map { s/^[^=]*=//r } grep { /^\w+ \+?=/ }
    split /\n/, $makefile =~ s/\\\n/ /gr;

my @tests = map { substr $_, length "$top/" } glob "$top/t/*.t";
cmp_ok(scalar @tests, '>', 1, 'the test finds the tests');
is_deeply([grep { !$listed{$_} } @tests], [], 'Makefile.am names every test');
is_deeply([grep { !-e "$top/$_" } grep { m{^t/\d.*\.t$} } sort keys %listed],
    [], 'every test that Makefile.am names exists');

my ($status, $out) = run_cmd({ cwd => $top }, qw(git -c safe.directory=* ls-files));
my @files = split /\n/, $out;
if (-d "$top/.git" || -f "$top/.git") {
	is($status, 0, 'git lists the files of the tree');
} else {
	note('not a git tree: only the tests on disk are compared');
	@files = @tests;
}
# automake adds these on its own, and NAME.c of a program NAME without a list of
# sources.
my %alone = map { $_ => 1 } qw(Makefile.am configure.ac README .gitignore);
# A folder in a list stands for every file in it.
my ($folders) = map { qr{^(?:$_)/} } join '|',
    map { quotemeta } grep { -d "$top/$_" } sort keys %listed;
is_deeply([grep { !$listed{$_} && !$listed{s/\.in$//r} && !$listed{s/\.c$//r} && !$alone{$_}
	&& $_ !~ $folders } @files], [],
    'the tarball contains every file of the tree');

done_testing();
