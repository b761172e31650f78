#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# FIFOs that a step leaves among the files of its workspace, where git looks for
# a file, do not stop the next checkout.

use strict;
use warnings;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'mkdir dir; echo hello >file; echo there >dir/file; git add .; git commit -qm first');

for (
	['in the place of attributes', 'mkfifo .gitattributes; touch file'],
	['in the place of modules and of files to ignore', 'mkfifo .gitmodules .gitignore; touch file'],
	['in a directory', 'mkfifo dir/.gitattributes; touch dir/file'],
	['in a directory that cannot be listed', 'mkfifo dir/.gitattributes; rm dir/file; chmod 0111 dir'],
	['in a directory that cannot be written', 'mkfifo dir/.gitattributes; touch dir/file; chmod 0555 dir'],
	['in the place of a file', 'rm file; mkfifo file other'],
) {
	my ($what, $attack) = @$_;
	my $first = job_run(repository => $repo, steps => [$attack]);
	is(scalar job_end($first), 'success -', "a step leaves FIFOs $what");
	my $objects = (map { $_->[1] } grep { $_->[0] eq 'objects' } job_result($first))[0];
	my $next = job_start(repository => $repo, uid => $first->{uid}, workspace => $first->{workspace},
		defined $objects ? (objects => $objects) : (), timeout => int(deadline(20)), steps => ['cat file dir/file; find . -type p']);
	ok(defined job_wait($next, 90), '  the next job ends');
	is(scalar job_end($next), 'success -', '  well');
	like(job_log($next), qr/^hello\nthere\n\z/m, '  with the files of the commit and without FIFOs');
}

done_testing;
