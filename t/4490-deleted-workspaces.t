#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Workspaces of deleted projects: removed a day later under the account that owns
# them, without following links.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Monitor;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

note(is_root() ? 'as root: each project has an account' : 'without root: privilege_drop = no');
my $outside = tempdir() . '/outside';
make_path($outside);
spew("$outside/keep", "keep\n", 0666);
chmod 0777, $outside;

# --- requests of a dispatcher that may be compromised
my $repo = tempdir() . '/repo.git';
ok(-d make_repo($repo) . '/.git', 'git creates a repository');
my $m = Slipway::Monitor->start;
my $left = "$m->{workspaces}/.left";
sub wiped {
	my ($project, $dir) = @_;
	my $before = () = $m->out =~ /^wiped $project /mg;
	$m->command("wipe $project $dir");
	my @said;
	poll(10, sub { @said = $m->out =~ /^wiped $project 0 0 (\d+)/mg; @said > $before });
	return $said[-1];
}
my $mess = 'mkdir -p a/b/c; echo x >a/b/c/d; ln -s ' . $outside . ' a/out; ln -s ' . "$outside/keep"
    . ' a/keep;'
    . 'chmod 0 a/b/c; chmod 0500 a/b; chmod 0 .';
my $one = $m->job(repository => $repo, project => 7, dir => 'shop', steps => [$mess]);
is($m->exited($one), 0, 'a project leaves a mess in its workspace');
my $deep = $m->job(repository => $repo, project => 8, dir => 'deep/er', steps => ['true']);
is($m->exited($deep), 0, 'another project has a workspace in a subdirectory');
my $busy = $m->job(repository => $repo, project => 9, dir => 'busy', steps => ['echo up; sleep 600']);
ok($m->started($busy) && poll(20, sub { job_log($busy) =~ /^up$/m }), 'a third project has a running job');

for my $dir ('..', '.', '../outside', '/etc', '.left', '.home', '.cache', '.cache/7', 'shop/..', '-x') {
	is(wiped(7, $dir), 1, "a wipe of $dir is rejected");
}
is(wiped(0, 'shop'), 1, 'a wipe without a project is rejected');
if (is_root()) {
	is(wiped(8, 'shop'), 0, "a wipe of another project's workspace is ignored");
	ok(-d "$m->{workspaces}/shop", "another project's workspace stays");
	is(wiped(9, 'busy'), 1, 'a wipe is rejected while a job runs');
	mkdir "$m->{workspaces}/roots" or die;
	is(wiped(7, 'roots'), 0, 'a wipe of a directory of root is ignored');
	ok(-d "$m->{workspaces}/roots", 'a directory of root stays');
	is(wiped(8, 'deep'), 0, 'a wipe of a parent directory is ignored');
	ok(-d "$m->{workspaces}/deep/er", 'the workspace below it stays');
}
symlink $outside, "$m->{workspaces}/link" or die;
is(wiped(7, 'link'), 0, 'a wipe of a symbolic link is ignored');
is(wiped(7, 'link/keep'), 0, 'a wipe behind a symbolic link is ignored');
ok(-l "$m->{workspaces}/link" && -e "$outside/keep", 'the link and its target stay');
is(wiped(7, 'none/such'), 0, 'a wipe of a missing directory succeeds');
is(wiped(7, 'shop'), 0, "a wipe of a project's workspace succeeds");
ok(!-e "$m->{workspaces}/shop", 'a wiped workspace leaves its place at once');
is(wiped(8, 'deep/er'), 0, 'a wipe of a workspace in a subdirectory succeeds');
ok(poll(20, sub { !(() = glob "$left/*") }), 'wiped workspaces are removed soon')
    or diag(`ls -laR $left`, $m->log);
is(slurp("$outside/keep"), "keep\n", 'a wipe follows no link');
is((stat $left)[2] & 07777, 0700, 'workspaces to be removed are private to root');
if (is_root()) {
	# each project makes directories in those of the other
	my %open = (10 => 'umask 0; mkdir -p a/b; chmod 0777 .; head -c 1000 /dev/zero >c',
		11 => 'umask 0; mkdir ../ten/theirs ../ten/a/b/theirs; chmod 0777 ../ten/theirs',
		12 => 'mkdir -p ../ten/theirs/x/y; touch ../ten/theirs/x/y/z; chmod 0 ../ten/theirs/x');
	for ([ 10, 'ten' ], [ 11, 'eleven' ], [ 12, 'twelve' ]) {
		my ($project, $dir) = @$_;
		my $job = $m->job(repository => $repo, project => $project, dir => $dir,
		    steps => [ $open{$project} ]);
		is($m->exited($job), 0, "project $project has a job");
	}
	chmod 0700, "$m->{workspaces}/ten/theirs";
	ok(-d "$m->{workspaces}/ten/theirs/x/y" && -d "$m->{workspaces}/ten/a/b/theirs",
	    'a workspace has directories of other projects');
	is(wiped(10, 'ten'), 0, 'a wipe of it succeeds');
	ok(poll(20, sub { !(() = glob "$left/*") }), 'each is removed under its own account')
	    or diag(`ls -laR $left`, $m->log);
}
$m->command("kill $busy->{id} 1");
ok(defined $m->exited($busy), 'the job is killed');
is($m->stop, 0, 'the monitor stops');

# --- directories that exist at the start
my $uid = $m->{uid_first} + 20;
sub entry {
	my ($name, @own) = @_;
	make_path("$left/$name/x/y");
	spew("$left/$name/x/file", 'x');
	symlink $outside, "$left/$name/x/link";
	run_cmd('chown', '-Rh', $uid, "$left/$name") if is_root() && !@own;
	return "$left/$name";
}
my $now = int(1000 * time);
my $past = entry('1.' . ($now - 1000));
my $future = entry('2.' . ($now + 3_600_000));
my $else = entry('of-somebody');
my $roots = entry('3.1', 'root');
symlink $outside, "$left/4.1" or die;
$m = Slipway::Monitor->start(dir => $m->{dir});
ok(poll(20, sub { !-e $past }), 'a directory that is due is removed at the start');
if (is_root()) {
	ok(poll(10, sub { $m->log =~ m{4\.1: } }), 'a symbolic link is not opened');
	ok(-e "$roots/x/file", 'nothing is removed as root');
}
ok(-e "$future/x/file", 'a directory that is not due stays');
ok(-e "$else/x/file", 'a directory without a time stays');
is(slurp("$outside/keep"), "keep\n", 'the removal follows no link');
$m->stop;

# --- with the queue
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
my @projects = map { $runner->project(dir => "dir$_") } 0 .. 4;
for (@projects) {
	is($runner->wait($runner->deploy($_, 'echo mine >file')), 'success', "project $_ is deployed");
}
my $broken = $runner->project(repo => tempdir() . '/no/such', dir => 'dir5');
is($runner->wait($runner->deploy($broken, 'true')), 'failed', 'a checkout fails');
sub dirs { return join ' ', sort map { m{([^/]+)$} } glob "$runner->{workspaces}/dir*" }
is(dirs(), 'dir0 dir1 dir2 dir3 dir4 dir5', 'each project has a workspace');
sub marks { return join ' ', sort map { m{objects\.(\d+)$} } glob "$runner->{spool}/objects.*" }
is(marks(), join(' ', @projects, $broken), 'the spool has a record of each workspace');
# 0 exists; 1 was deleted an hour ago, 2 and the broken one two days ago; 3 too, with
# a successor that was never deployed; 4 as well, with a deployed successor
my ($live, $fresh, $old, $heir, $taken) = @projects;
sub gone {
	my ($id, $ago) = @_;
	$db->sql("UPDATE project SET valid = 0, updated_at = NOW(3) - INTERVAL $ago WHERE id = $id");
}
gone($fresh, '1 HOUR');
gone($_, '2 DAY') for $old, $heir, $taken, $broken;
# one with other workspaces inside, and one inside another
my ($outer, $inner) = map { $runner->project(dir => $_) } 'tree', 'wood/in';
for ($outer, $inner) {
	is($runner->wait($runner->deploy($_, 'true')), 'success', "project $_ is deployed");
	gone($_, '2 DAY');
}
my ($within, $around) = map { $runner->project(dir => $_) } 'tree/in', 'wood';
is($runner->wait($runner->deploy($within, 'echo mine >file')), 'success',
    'a project inside the workspace of a deleted one is deployed');
is($runner->wait($runner->deploy($around, 'mkdir in; echo mine >in/file')), 'success',
    'a project around the workspace of a deleted one is deployed');
$runner->project(dir => 'dir3');
my $next = $runner->project(dir => 'dir4');
is($runner->wait($runner->deploy($next, 'ls; echo next >file')), 'success',
    'a successor of a deleted project is deployed');
# a look ends when a project whose workspace is due was seen to
my $due = $runner->project(dir => 'due');
is($runner->wait($runner->deploy($due, 'true')), 'success', 'one more project is deployed');
for my $days (0, 3) {
	gone($due, '4 DAY') if $days;
	$runner->write_conf("[runner]\nworkspace_days = $days\n");
	$runner->restart;
	is($runner->wait($runner->deploy($live, 'echo mine >file')), 'success', 'the runner works');
	ok(poll(60, sub { !-e "$runner->{workspaces}/due" }), 'the workspace of four days is removed')
	    if $days;
	is(dirs(), 'dir0 dir1 dir2 dir3 dir4 dir5',
	    "with workspace_days = $days, workspaces of two days stay");
}
$runner->write_conf('');
$runner->restart;
ok(poll(30, sub { dirs() eq 'dir0 dir1 dir4' }),
    'workspaces of projects that were deleted a day ago are removed')
    or diag(dirs(), $runner->said);
ok(poll(10, sub { marks() eq join ' ', sort $live, $fresh, $next, $within, $around }),
    'the spool drops the records of removed workspaces') or diag(marks());
is(join(' ', sort map { m{(\d+)$} } glob "$runner->{workspaces}/.cache/*"),
    join(' ', sort $live, $fresh, $next, $within, $around), 'the caches of removed workspaces are removed');
my @kept;
ok(poll(10, sub { @kept = glob "$runner->{workspaces}/.left/*"; @kept == 3 }),
    'workspaces that were replaced by a successor are kept') or diag("@kept");
is(slurp("$runner->{workspaces}/dir4/file"), "next\n", 'the successor keeps its files');
if (is_root()) {
	for (@kept) {
		my ($due) = /\.(\d+)$/;
		cmp_ok(abs($due / 1000 - time - 86400), '<', 600, 'replaced workspaces are kept for a day');
	}
}
is(slurp("$runner->{workspaces}/$_"), "mine\n", "an existing project keeps its files: $_")
    for 'dir0/file', 'tree/in/file', 'wood/in/file';
$runner->stop;
done_testing();
