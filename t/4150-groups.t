#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Control groups that are mounted once more, as in a chroot: when that copy
# goes, deployments start as before.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

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
done_testing;
