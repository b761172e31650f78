#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A spool that is not writable or full: nothing is lost, nothing hangs, and the
# runner continues when there is space.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $mounts = own_mounts();
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
ok(poll(20, sub { -S $runner->wake_socket }), 'a runner starts');
my $project = $runner->project;
is($runner->wait($runner->deploy($project, 'true')), 'success', 'a deployment succeeds');

# --- a spool that is not writable
ok($runner->is_clean, 'the deployment leaves nothing behind');
my $mode = (stat $runner->{spool})[2] & 07777;
chmod 0500, $runner->{spool} or die;
my $id = $runner->deploy($project, 'echo hello');
sleep 2;
is($runner->column($id, "CONCAT(status = 'pending' OR status = 'running', ' ', IFNULL(reason, ''))"), '1 ',
    'a deployment waits if the spool is not writable');
chmod $mode, $runner->{spool} or die;
is($runner->wait($id), 'success', 'the deployment succeeds when the spool is writable');
ok($runner->is_clean, 'the deployment leaves nothing behind');

# --- a log above its limit
my $log = Slipway::Runner->start(db => $db, name => 'log', conf => "[runner]\nlog_max = 200k\n");
$runner->stop;
ok(poll(20, sub { -S $log->wake_socket }), 'a runner with a small log_max starts');
$id = $log->deploy($project, 'head -c 20000000 /dev/zero | tr "\\0" x; echo last', 'exit 5');
is($log->wait($id), 'failed', 'a deployment with 20 MB of output fails by its step');
is($log->column($id, 'reason'), 'step_failed', 'the size of the log does not change the reason');
my $text = $log->log($id);
cmp_ok(length $text, '<=', 200 * 1024 + 512, 'the log ends at its limit');
is($log->column($id, 'log_size'), length $text, 'log_size is the size of the log');
ok(poll(30, sub { $db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id AND packed = 0") == 0 }),
    'the log is compressed');
my $rss = 0;
$rss = $1 if defined $log->dispatcher && slurp('/proc/' . $log->dispatcher . '/status') =~ /^VmHWM:\s+(\d+)/m;
cmp_ok($rss, '<', 32 * 1024, "the dispatcher uses $rss KiB");
$log->stop;

# --- a large log, compressed in the background
my $large = Slipway::Runner->start(db => $db, name => 'large');
ok(poll(20, sub { -S $large->wake_socket }), 'a runner with the default log_max starts');
$id = $large->deploy($project, 'seq 1 1500000');
is($large->wait($id, undef, 60), 'success', 'a deployment with 10 MB of output succeeds');
ok(poll(30, sub { $db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id AND packed = 0") == 0 }),
    'a large log is compressed');
$text = $large->log($id);
is($large->column($id, 'log_size'), length $text, 'log_size is the size of the large log');
my $want = join '', map { "$_\n" } 1 .. 1500000;
ok(index($text, $want) >= 0, 'the large log is complete');
$rss = $1 if slurp('/proc/' . $large->dispatcher . '/status') =~ /^VmHWM:\s+(\d+)/m;
cmp_ok($rss, '<', 32 * 1024, "the dispatcher uses $rss KiB for the large log");
$large->stop;

# --- a full disk
my $dir = tempdir() . "/small";
SKIP: {
	skip 'no file system can be mounted here', 7 if !$mounts;
	mkdir $dir or die;
	my ($status, undef, $err) = run_cmd('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', $dir);
	skip "no tmpfs here: $err", 10 if $status != 0;
	mkdir "$dir/spool", 0700 or die;
	chown((getpwnam 'nobody')[2, 3], "$dir/spool") or die;
	my $small = Slipway::Runner->start(db => $db, name => 'small', spool => "$dir/spool");
	ok(poll(20, sub { -S $small->wake_socket }), 'a runner with a small spool starts');
	run_cmd('dd', 'if=/dev/zero', "of=$dir/fill", 'bs=4k');
	$id = $small->deploy($project, 'echo hello');
	sleep 2;
	is($small->column($id, 'reason IS NULL'), 1, 'a deployment waits if the disk is full');
	unlink "$dir/fill" or die;
	is($small->wait($id), 'success', 'the deployment succeeds when there is space');
	$id = $small->deploy($project, 'head -c 5000000 /dev/zero | tr "\\0" x; echo last', 'exit 6');
	my $got = $small->wait($id, undef, 60);
	is($got, 'failed', 'a log that fills the disk does not stop the steps');
	is($small->steps($id), 'success failed', 'the steps on a full disk have their own status');
	$id = $small->deploy($project, 'head -c 5000000 /dev/zero | tr "\0" x', ('true') x 79);
	is($small->wait($id, undef, 90), 'failed', 'a deployment whose log is incomplete fails');
	is($small->steps($id), join(' ', ('success') x 80),
	    'the steps of a deployment whose log is incomplete succeed');
	is($small->column($id, 'reason'), 'log_lost',
	    'a deployment whose log is incomplete has the reason log_lost');
	ok($small->is_clean, 'deployments on a full disk leave nothing behind');
	$id = $small->deploy($project, 'echo hello');
	is($small->wait($id), 'success', 'a deployment succeeds after a full disk');
	$small->stop;
}
END {
	if (defined $dir && -d $dir) {
		my $code = $?;
		run_cmd('umount', '-l', $dir);
		$? = $code;
	}
}
done_testing;
