#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Control groups mounted a second time, as in a chroot: when that mount is removed,
# deployments start as before.  And the control groups of two runners on one host.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Monitor;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $mounts = own_mounts();

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, idle => 1);
my $project = $runner->project;
my $copy = tempdir() . '/copy';
make_path($copy);
# private mounts, where permitted
my @apart = ('unshare', '-m', 'sh', '-c', 'mount --rbind /sys/fs/cgroup "$0" && exec "$@"', $copy);
my $may = is_root() && (run_cmd(@apart, 'true'))[0] == 0;
note($may ? 'the control groups are mounted twice' : 'this account cannot mount: control groups as they are');
$runner->{pid} = start_process({ name => "slipway-runner-$runner->{n}" }, $may ? @apart : (),
    $runner->command);
is($runner->wait($runner->deploy($project, 'echo one')), 'success',
    'a deployment runs with the second mount');
my ($groups) = $runner->said =~ /(control groups: .*)/;
ok(defined $groups, 'the runner logs its control groups') and note($groups);
is($may ? (run_cmd('nsenter', '-t', $runner->pid, '-m', 'umount', '-R', $copy))[0] : 0, 0,
    'the second mount is removed');
is($runner->wait($runner->deploy($project, 'echo two')), 'success',
    'a deployment runs without the second mount');
unlike($runner->said, qr/refused/, 'no deployment was rejected');
ok($runner->is_clean, 'the runner leaves nothing behind');
is($runner->stop, 0, 'the runner stops');

# --- groups that the kernel did not remove when their jobs ended
my $monitor = Slipway::Monitor->start;
my $open = tempdir() . '/open';
my $long = $monitor->job(repository => $runner->{repo}, steps => ["until test -e $open; do sleep 0.1; done"]);
my $pid = $monitor->started($long);
ok($pid, 'a job starts');
# The directories of its groups in all hierarchies.
my @of_job = grep { /-$long->{id}\.1$/ && -d } map {
	my ($names, $path) = (split /:/, $_, 3)[1, 2];
	map { "/sys/fs/cgroup$_$path" } $names eq '' ? ('', '/unified') : map { "/$_" } split /,/, $names
} split /\n/, slurp("/proc/$pid/cgroup");
note(@of_job ? "the groups of the job: @of_job" : 'jobs have no groups here');
my @old = map { s/$long->{id}\.1$/999.1/r } @of_job;
my @foreign = map { s{/slipway-[^/]*$}{/slipway-0.0-999.1}r } @of_job;
mkdir $_ or die "$_: $!" for @old, @foreign;
$monitor->stop('KILL');
$monitor->run;
ok(poll(20, sub { !grep { -d } @old }), 'a monitor that starts removes groups whose job is gone');
is(scalar(grep { -d } @of_job), @of_job, 'it keeps those of a job that runs');
is(scalar(grep { -d } @foreign), @foreign, 'it keeps those of another runner');
rmdir for @foreign;
spew($open, '');
is($monitor->exited($long), 0, 'the job that ran meanwhile ends');
is(scalar job_end($long), 'success -', 'the job that ran meanwhile succeeds');
ok(poll(20, sub { !grep { -d } @of_job }), 'its groups are removed');
is($monitor->stop, 0, 'the monitor stops');

# --- two runners with two databases: separate file systems give their workspaces
# the same inode number, and the databases give their deployments the same id
my $gate = tempdir() . '/gate';
my @places = map { tempdir() . "/place$_" } 1, 2;
make_path(@places);
my @mounted = grep { $mounts && system('mount', '-t', 'tmpfs', '-o', 'mode=0755', 'none', $_) == 0 } @places;
note(@mounted ? 'the workspaces have the same inode number'
    : 'nothing can be mounted here: the workspaces have different inode numbers');
my @monitors = map { Slipway::Monitor->start(conf => "[runner]\nworkspaces = $_\n") } @places;
my @jobs = map { $monitors[$_]->job(deployment => 5, project => 10 + $_, dir => "shop$_",
    repository => $runner->{repo},
	steps => [$_ ? 'true' : "until test -e $gate; do sleep 0.1; done"]) } 0, 1;
ok($monitors[$_]->started($jobs[$_]), "runner $_ starts a job") for 0, 1;
is($monitors[1]->exited($jobs[1]), 0, 'the job of the second runner ends');
is(scalar job_end($jobs[1]), 'success -', 'the job of the second runner succeeds');
spew($gate, '');
is($monitors[0]->exited($jobs[0]), 0, 'the job of the first runner goes on and ends');
is(scalar job_end($jobs[0]), 'success -', 'the job of the first runner succeeds');
is($_->stop, 0, 'a monitor stops') for @monitors;
system 'umount', '-l', $_ for @mounted;
done_testing;
