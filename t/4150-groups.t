#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Control groups that are mounted once more, as in a chroot: when that copy
# goes, deployments start as before.  And those of two runners on one host.

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
# mounts of its own, where that may be
my @apart = ('unshare', '-m', 'sh', '-c', 'mount --rbind /sys/fs/cgroup "$0" && exec "$@"', $copy);
my $may = is_root() && (run_cmd(@apart, 'true'))[0] == 0;
note($may ? 'the groups are mounted twice' : 'this account may mount nothing: the groups as they are');
$runner->{pid} = start_process({ name => "slipway-runner-$runner->{n}" }, $may ? @apart : (), $runner->command);
is($runner->wait($runner->deploy($project, 'echo one')), 'success', 'a deployment runs');
my ($groups) = $runner->said =~ /(control groups: .*)/;
ok(defined $groups, 'the runner says what it found') and note($groups);
is($may ? (run_cmd('nsenter', '-t', $runner->pid, '-m', 'umount', '-R', $copy))[0] : 0, 0, 'the copy goes');
is($runner->wait($runner->deploy($project, 'echo two')), 'success', 'the next one runs as well');
unlike($runner->said, qr/refused/, 'none was refused');
ok($runner->is_clean, 'nothing is left');
is($runner->stop, 0, 'ends');

# --- two runners of two databases: file systems of their own give their
# workspaces one inode number, the databases their deployments one id
my $gate = tempdir() . '/gate';
my @places = map { tempdir() . "/place$_" } 1, 2;
make_path(@places);
my @mounted = grep { $mounts && system('mount', '-t', 'tmpfs', '-o', 'mode=0755', 'none', $_) == 0 } @places;
note(@mounted ? 'of one number' : 'nothing can be mounted here: of two numbers');
my @monitors = map { Slipway::Monitor->start(conf => "[runner]\nworkspaces = $_\n") } @places;
my @jobs = map { $monitors[$_]->job(deployment => 5, project => 10 + $_, dir => "shop$_", repository => $runner->{repo},
	steps => [$_ ? 'true' : "until test -e $gate; do sleep 0.1; done"]) } 0, 1;
ok($monitors[$_]->started($jobs[$_]), 'a job of each of two') for 0, 1;
is($monitors[1]->exited($jobs[1]), 0, 'one ends');
is(scalar job_end($jobs[1]), 'success -', 'well');
spew($gate, '');
is($monitors[0]->exited($jobs[0]), 0, 'the other goes on');
is(scalar job_end($jobs[0]), 'success -', 'to its own end');
is($_->stop, 0, 'ends') for @monitors;
system 'umount', '-l', $_ for @mounted;
done_testing;
