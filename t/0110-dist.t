#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What is in the tree is in the tarball, and every test is run.

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
cmp_ok(scalar @tests, '>', 1, 'tests are found');
is_deeply([grep { !$listed{$_} } @tests], [], 'every test is named in Makefile.am');
is_deeply([grep { !-e "$top/$_" } grep { m{^t/\d.*\.t$} } sort keys %listed],
    [], 'and every test named there exists');

my ($status, $out) = run_cmd({ cwd => $top }, qw(git -c safe.directory=* ls-files));
my @files = split /\n/, $out;
if (-d "$top/.git" || -f "$top/.git") {
	is($status, 0, 'git says what is in the tree');
} else {
	note('not a git tree: the files on disk stand for it');
	@files = @tests;
}
# automake takes along on its own: itself, configure's source, README, and
# NAME.c of a program NAME without a list of sources.
my %alone = map { $_ => 1 } qw(Makefile.am configure.ac README .gitignore);
# A folder that is named takes along all that is in it.
my ($folders) = map { qr{^(?:$_)/} } join '|',
    map { quotemeta } grep { -d "$top/$_" } sort keys %listed;
is_deeply([grep { !$listed{$_} && !$listed{s/\.in$//r} && !$listed{s/\.c$//r} && !$alone{$_}
	&& $_ !~ $folders } @files], [],
    'every file of the tree goes into the tarball');

done_testing();
