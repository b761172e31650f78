#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Whatever a step leaves in its home and workspace, FIFOs above all, the job
# continues after it and ends.

use strict;
use warnings;
use POSIX qw(mkfifo);
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $repo = make_repo(tempdir() . '/repo');
my $outside = tempdir() . '/outside';
mkdir $outside or die;
mkdir "$outside/inside" or die;
spew("$outside/marker", "outside\n", 0644);
chmod 0755, tempdir(), $outside, "$outside/inside";

# Every name that the service and git use there.
my @homes = qw(slipway-gitconfig slipway-ca slipway-ssh-key slipway-known-hosts
    slipway-step .gitconfig .passwd .config/git/config .config/git/ignore .config/git/attributes);
my $fifos = 'cd; mkdir -p .config/git; for f in ' . join(' ', @homes) . '; do rm -rf $f; mkfifo $f; done';
my $dirs = 'cd; for f in ' . join(' ', grep { !m{/} } @homes) . '; do rm -rf $f; mkdir -p $f/a/b; done';
my $links = 'cd; for f in ' . join(' ', grep { !m{/} } @homes)
    . '; do rm -rf $f; ln -s "$SLIPWAY_WORKSPACE/victim" $f; done; echo mine >"$SLIPWAY_WORKSPACE/victim"';

my @tries = (
	['FIFOs in the home', $fifos],
	['directories in the home', $dirs],
	['links in the home', $links],
	['an inaccessible home', 'chmod 0 "$HOME"'],
	['an inaccessible workspace', 'chmod 0 .'],
	['a FIFO instead of .git', 'rm -rf .git; mkfifo .git'],
	['a FIFO instead of the index', 'rm -f .git/index; mkfifo .git/index'],
	['a FIFO instead of HEAD', 'rm -f .git/HEAD; mkfifo .git/HEAD'],
	['a FIFO instead of the configuration of git', 'rm -f .git/config; mkfifo .git/config'],
	['a configuration of git that includes a FIFO', 'mkfifo fifo; git config include.path "$PWD/fifo"'],
	['a FIFO instead of alternates', 'mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates'],
	['a FIFO instead of packed refs', 'rm -f .git/packed-refs; mkfifo .git/packed-refs'],
	['a FIFO instead of the tip', 'rm -f .git/refs/slipway/tip; mkfifo .git/refs/slipway/tip'],
	['a FIFO instead of .gitattributes', 'mkfifo .gitattributes; touch file'],
	['a FIFO instead of a file of the repository', 'rm file; mkfifo file'],
	['a filter that never ends',
	    'git config filter.x.clean "sleep 7001"; echo "* filter=x" >.git/info/attributes 2>/dev/null || '
	    . '{ mkdir -p .git/info; echo "* filter=x" >.git/info/attributes; }; echo more >>file'],
	['an fsmonitor that never ends',
	    'printf "#!/bin/sh\nsleep 7001\n" >.git/mon; chmod +x .git/mon; git config core.fsmonitor '
	    . '"$PWD/.git/mon"'],
	['huge sparse files',
	    'for i in 1 2 3; do truncate -s 4T big$i || truncate -s 1G big$i; done'],
);
for (@tries) {
	my ($what, $script) = @$_;
	my $t = stopwatch();
	my $job = job_start(repository => $repo, grace => 1, steps => ["set +e; $script; true",
	    'echo next-step', { script => 'echo cleanup', when => 'always' }]);
	ok(defined job_wait($job, 60), "$what: the job ends");
	cmp_ok($t->(), '<', deadline(45), "$what: the job ends soon");
	is(scalar job_end($job), 'success -', "$what: the job succeeds");
	like(job_log($job), qr/^next-step\n(?:.*\n)*cleanup\n/m, "$what: all steps run");
	my ($workspace) = grep { $_->[0] eq 'workspace' } job_result($job);
	like($workspace ? $workspace->[1] : 'nothing', qr/^(?:empty|no_git|ready|error) [01-] \d{1,16}$/,
	    "$what: the job reports the state of the workspace");
	is(slurp("$job->{workspace}/victim"), "mine\n", "$what: the job does not write through the links")
	    if $script eq $links;
	{
		my $again = job_start(repository => $repo, grace => 1, uid => $job->{uid},
		    workspace => $job->{workspace}, steps => ['cat file']);
		ok(defined job_wait($again, 60), "$what: the next deployment ends");
		is(scalar job_end($again), 'success -', "$what: the next deployment succeeds");
		like(job_log($again), qr/^hello$/m, "$what: the next deployment has the files of the commit");
	}
}

# --- the directory of a step
my $prepare = 'mkdir -p web/app "a b/-x/..." shut closed/app loops; echo here >web/app/marker; '
    . 'ln -s "$OUTSIDE" out; ln -s "$OUTSIDE" web/out; ln -s .. web/up; ln -s loop loop; ln -s "$HOME" home; '
    . 'mkfifo fifo; chmod 0 shut closed; cd /';
my $long = 'x' x 256;
my %why = (
	'none' => 'none does not exist', 'none/app' => 'none does not exist',
	'web/none' => 'web/none does not exist', 'out' => 'out is a symbolic link',
	'out/inside' => 'out is a symbolic link', 'web/out' => 'web/out is a symbolic link',
	'web/up/web' => 'web/up is a symbolic link', 'loop' => 'loop is a symbolic link',
	'home' => 'home is a symbolic link', 'file' => 'file is not a directory',
	'file/app' => 'file is not a directory', 'fifo' => 'fifo is not a directory',
	'fifo/app' => 'fifo is not a directory', 'shut' => 'shut: Permission denied',
	'closed/app' => 'closed/app: Permission denied', $long => "$long: File name too long",
	map { $_ => "$_ is not below it" } '..', '.', '../outside', '/etc', 'web/', 'web/../..', '',
);
my @bad = sort keys %why;
my @good = ('web/app', 'web', 'a b/-x/...');
my $mixed = job_run(repository => $repo, env => ["OUTSIDE=$outside"], steps => [$prepare,
	(map { { script => 'pwd; cat marker || :', directory => $_ } } @good),
	(map { { script => 'echo "ran $PWD"', directory => $_, when => 'always' } } @bad),
	{ script => 'pwd', when => 'always' }]);
my $n = 0;
is(job_steps($mixed), join(' ', (map { $n++ . ':success:0:-' } 'prepare', @good),
    (map { $n++ . ':failed:-:-' } @bad), "$n:success:0:-"),
    'a step whose directory is missing or not in the workspace fails, and no other');
my $log = job_log($mixed);
like($log, qr{: step 2\n\Q$mixed->{workspace}\E/web/app\nhere\n}, 'a step runs in its directory');
like($log, qr{: step 4\n\Q$mixed->{workspace}/$good[2]\E\n}, 'a directory can have an unusual name');
like($log, qr{\n\Q$mixed->{workspace}\E$}, 'a step without a directory runs in the workspace');
unlike($log, qr/^ran /m, 'no step runs elsewhere');
for (@bad) {
	like($log, qr/^==> step \d+ cannot run in the directory \Q$_\E of the workspace: \Q$why{$_}\E$/m,
	    'the log says why no step can run in "' . substr($_, 0, 20) . '"');
}
is((job_end($mixed))[1], "Step 5 (step 5) cannot run in its directory: $why{$bad[0]}.",
    'the reason of the deployment names the first one');

# --- more files than a checkout can remove in its time: it ends at its time limit
my $tree = job_run(repository => $repo,
    steps => ['perl -e \'for my $d (1 .. 60) { mkdir qq(.git/objects/x$d); for (1 .. 1000) { open my $f, '
    . 'q(>), qq(.git/objects/x$d/$_) } }\'']);
is(scalar job_end($tree), 'success -', 'a step creates 60,000 files');
my $t = stopwatch();
my $slow = job_start(repository => $repo, uid => $tree->{uid}, workspace => $tree->{workspace},
    timeout => 1, steps => ['true']);
ok(defined job_wait($slow, 60), 'the deployment after 60,000 files ends');
like(scalar job_end($slow), qr/^(?:success -|failed timeout)$/,
    'the deployment after 60,000 files succeeds or times out');
cmp_ok($t->(), '<', deadline(30), 'the deployment after 60,000 files ends soon');
my $canceled = job_start(repository => $repo, uid => $tree->{uid}, workspace => $tree->{workspace},
    steps => ['true']);
job_cancel($canceled);
ok(defined job_wait($canceled, 60), 'a canceled deployment after 60,000 files ends');
like(scalar job_end($canceled), qr/^(?:success|canceled)/,
    'a canceled deployment after 60,000 files succeeds or is canceled');

done_testing;
