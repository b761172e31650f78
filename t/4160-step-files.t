#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Whatever a step leaves in its home and in the workspace, FIFOs above all, the
# job goes on after it and ends.

use strict;
use warnings;
use POSIX qw(mkfifo);
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $repo = tempdir() . '/repo';
run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');

# Every name that the service ever uses there, and git's own.
my @homes = qw(slipway-gitconfig slipway-ca slipway-ssh-key slipway-known-hosts
    slipway-step .gitconfig .passwd .config/git/config .config/git/ignore .config/git/attributes);
my $fifos = 'cd; mkdir -p .config/git; for f in ' . join(' ', @homes) . '; do rm -rf $f; mkfifo $f; done';
my $dirs = 'cd; for f in ' . join(' ', grep { !m{/} } @homes) . '; do rm -rf $f; mkdir -p $f/a/b; done';
my $links = 'cd; for f in ' . join(' ', grep { !m{/} } @homes) . '; do rm -rf $f; ln -s "$SLIPWAY_WORKSPACE/victim" $f; done; echo mine >"$SLIPWAY_WORKSPACE/victim"';

my @tries = (
	['FIFOs in its home', $fifos],
	['directories in its home', $dirs],
	['links in its home', $links],
	['a home that is closed', 'chmod 0 "$HOME"'],
	['a workspace that is closed', 'chmod 0 .'],
	['a .git that is a FIFO', 'rm -rf .git; mkfifo .git'],
	['an index that is a FIFO', 'rm -f .git/index; mkfifo .git/index'],
	['a HEAD that is a FIFO', 'rm -f .git/HEAD; mkfifo .git/HEAD'],
	['a configuration of git that is a FIFO', 'rm -f .git/config; mkfifo .git/config'],
	['one that includes a FIFO', 'mkfifo fifo; git config include.path "$PWD/fifo"'],
	['alternates that are a FIFO', 'mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates'],
	['packed refs that are a FIFO', 'rm -f .git/packed-refs; mkfifo .git/packed-refs'],
	['the tip that is a FIFO', 'rm -f .git/refs/slipway/tip; mkfifo .git/refs/slipway/tip'],
	['a file of attributes that is a FIFO', 'mkfifo .gitattributes; touch file'],
	['a file of the repository that is a FIFO', 'rm file; mkfifo file'],
	['a filter that never ends', 'git config filter.x.clean "sleep 7001"; echo "* filter=x" >.git/info/attributes 2>/dev/null || { mkdir -p .git/info; echo "* filter=x" >.git/info/attributes; }; echo more >>file'],
	['a monitor of files that never ends', 'printf "#!/bin/sh\nsleep 7001\n" >.git/mon; chmod +x .git/mon; git config core.fsmonitor "$PWD/.git/mon"'],
	['files that claim to be huge', 'for i in 1 2 3; do truncate -s 4T big$i || truncate -s 1G big$i; done'],
);
for (@tries) {
	my ($what, $script) = @$_;
	my $t = time;
	my $job = job_start(repository => $repo, grace => 1, steps => ["set +e; $script; true", 'echo next-step', { script => 'echo cleanup', when => 'always' }]);
	ok(defined job_wait($job, 60), "$what: the job ends");
	cmp_ok(time - $t, '<', deadline(45), '  soon');
	is(scalar job_end($job), 'success -', '  with success');
	like(job_log($job), qr/^next-step\n(?:.*\n)*cleanup\n/m, '  after all of its steps');
	my ($workspace) = grep { $_->[0] eq 'workspace' } job_result($job);
	like($workspace ? $workspace->[1] : 'nothing', qr/^(?:empty|no_git|ready|error) [01-] \d{1,16}$/, '  and says how the workspace is');
	is(slurp("$job->{workspace}/victim"), "mine\n", '  writing through none of the links') if $script eq $links;
	{
		my $again = job_start(repository => $repo, grace => 1, uid => $job->{uid}, workspace => $job->{workspace}, steps => ['cat file']);
		ok(defined job_wait($again, 60), '  the next deployment into it ends, too');
		is(scalar job_end($again), 'success -', '  with success');
		like(job_log($again), qr/^hello$/m, '  and has the files of the commit');
	}
}

# --- more than can be removed in the time of a checkout: it ends at its deadline
my $tree = job_run(repository => $repo, steps => ['perl -e \'for my $d (1 .. 60) { mkdir qq(.git/objects/x$d); for (1 .. 1000) { open my $f, q(>), qq(.git/objects/x$d/$_) } }\'']);
is(scalar job_end($tree), 'success -', 'a step that makes sixty thousand files');
my $t = time;
my $slow = job_start(repository => $repo, uid => $tree->{uid}, workspace => $tree->{workspace}, timeout => 1, steps => ['true']);
ok(defined job_wait($slow, 60), 'the next deployment ends');
like(scalar job_end($slow), qr/^(?:success -|failed timeout)$/, 'by success or by its time limit');
cmp_ok(time - $t, '<', deadline(30), 'soon');
my $canceled = job_start(repository => $repo, uid => $tree->{uid}, workspace => $tree->{workspace}, steps => ['true']);
job_cancel($canceled);
ok(defined job_wait($canceled, 60), 'so does one that is canceled');
like(scalar job_end($canceled), qr/^(?:success|canceled)/, 'whatever it was at');

done_testing;
