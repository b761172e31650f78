#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# FIFOs that a step leaves in its workspace, where git expects a file, do not block
# the next checkout.

use strict;
use warnings;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $repo = make_repo(tempdir() . '/repo', 'mkdir dir; echo hello >file; echo there >dir/file');

for (
	['instead of .gitattributes', 'mkfifo .gitattributes; touch file'],
	['instead of .gitmodules and .gitignore', 'mkfifo .gitmodules .gitignore; touch file'],
	['in a directory', 'mkfifo dir/.gitattributes; touch dir/file'],
	['in a directory that cannot be listed', 'mkfifo dir/.gitattributes; rm dir/file; chmod 0111 dir'],
	['in a directory that cannot be written',
	    'mkfifo dir/.gitattributes; touch dir/file; chmod 0555 dir'],
	['instead of a file', 'rm file; mkfifo file other'],
) {
	my ($what, $attack) = @$_;
	my $first = job_run(repository => $repo, steps => [$attack]);
	is(scalar job_end($first), 'success -', "a step leaves FIFOs $what");
	my $objects = (map { $_->[1] } grep { $_->[0] eq 'objects' } job_result($first))[0];
	my $next = job_start(repository => $repo, uid => $first->{uid}, workspace => $first->{workspace},
		defined $objects ? (objects => $objects) : (), timeout => 600,
		steps => ['cat file dir/file; find . -type p']);
	ok(defined job_wait($next, 90), "FIFOs $what: the next job ends");
	is(scalar job_end($next), 'success -', "FIFOs $what: the next job succeeds");
	like(job_log($next), qr/^hello\nthere\n\z/m,
	    "FIFOs $what: the next job has the files of the commit and no FIFO");
}

done_testing;
