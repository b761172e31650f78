#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A spool that cannot be written to, or is full: nothing is lost, nothing
# hangs, and all goes on when there is room.

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
ok(poll(20, sub { -S $runner->wake_socket }), 'a runner');
my $project = $runner->project;
is($runner->wait($runner->deploy($project, 'true')), 'success', 'works');

# --- no right to write
ok($runner->is_clean, 'and leaves nothing');
my $mode = (stat $runner->{spool})[2] & 07777;
chmod 0500, $runner->{spool} or die;
my $id = $runner->deploy($project, 'echo hello');
sleep 2;
is($runner->column($id, "CONCAT(status = 'pending' OR status = 'running', ' ', IFNULL(reason, ''))"), '1 ', 'a spool that cannot be written: it waits');
chmod $mode, $runner->{spool} or die;
is($runner->wait($id), 'success', 'and runs when that is mended');
ok($runner->is_clean, 'nothing is left');

# --- a log that is larger than anything
my $log = Slipway::Runner->start(db => $db, name => 'log', conf => "[runner]\nlog_max = 200k\n");
$runner->stop;
ok(poll(20, sub { -S $log->wake_socket }), 'a runner with a small limit');
$id = $log->deploy($project, 'head -c 20000000 /dev/zero | tr "\\0" x; echo last', 'exit 5');
is($log->wait($id), 'failed', 'twenty megabytes of output');
is($log->column($id, 'reason'), 'step_failed', 'do not change the result');
my $text = $log->log($id);
cmp_ok(length $text, '<=', 200 * 1024 + 512, 'the log is as long as it may be');
is($log->column($id, 'log_size'), length $text, 'and says how long');
is($db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id AND packed = 0"), 0, 'it was packed');
my $rss = 0;
$rss = $1 if defined $log->dispatcher && slurp('/proc/' . $log->dispatcher . '/status') =~ /^VmHWM:\s+(\d+)/m;
cmp_ok($rss, '<', 32 * 1024, "the dispatcher needed $rss KiB");
$log->stop;

# --- a large one, packed apart
my $large = Slipway::Runner->start(db => $db, name => 'large');
ok(poll(20, sub { -S $large->wake_socket }), 'a runner with the usual limit');
$id = $large->deploy($project, 'seq 1 1500000');
is($large->wait($id, undef, 60), 'success', 'ten megabytes of output');
ok(poll(30, sub { $db->sql("SELECT COUNT(*) FROM log_chunk WHERE deployment_id = $id AND packed = 0") == 0 }), 'are packed');
$text = $large->log($id);
is($large->column($id, 'log_size'), length $text, 'as long as it says');
my $want = join '', map { "$_\n" } 1 .. 1500000;
ok(index($text, $want) >= 0, 'every byte is there');
$rss = $1 if slurp('/proc/' . $large->dispatcher . '/status') =~ /^VmHWM:\s+(\d+)/m;
cmp_ok($rss, '<', 32 * 1024, "the dispatcher needed $rss KiB");
$large->stop;

# --- a disk that is full
my $dir = tempdir() . "/small";
SKIP: {
	skip 'a small disk cannot be mounted here', 7 if !$mounts;
	mkdir $dir or die;
	my ($status, undef, $err) = run_cmd('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', $dir);
	skip "no tmpfs here: $err", 10 if $status != 0;
	mkdir "$dir/spool", 0700 or die;
	chown((getpwnam 'nobody')[2, 3], "$dir/spool") or die;
	my $small = Slipway::Runner->start(db => $db, name => 'small', spool => "$dir/spool");
	ok(poll(20, sub { -S $small->wake_socket }), 'a runner with a small spool');
	run_cmd('dd', 'if=/dev/zero', "of=$dir/fill", 'bs=4k');
	$id = $small->deploy($project, 'echo hello');
	sleep 2;
	is($small->column($id, 'reason IS NULL'), 1, 'a full disk: it waits');
	unlink "$dir/fill" or die;
	is($small->wait($id), 'success', 'and runs when there is room');
	$id = $small->deploy($project, 'head -c 5000000 /dev/zero | tr "\\0" x; echo last', 'exit 6');
	my $got = $small->wait($id, undef, 60);
	is($got, 'failed', 'a log that fills the disk does not stop the step');
	is($small->steps($id), 'success failed', 'its steps ended as they did');
	$id = $small->deploy($project, 'head -c 5000000 /dev/zero | tr "\0" x', ('true') x 79);
	is($small->wait($id, undef, 90), 'failed', 'a deployment whose log is not complete is no success');
	is($small->steps($id), join(' ', ('success') x 80), 'but each of its steps is seen to succeed');
	is($small->column($id, 'reason'), 'log_lost', 'and the reason is the log');
	ok($small->is_clean, 'nothing is left');
	$id = $small->deploy($project, 'echo hello');
	is($small->wait($id), 'success', 'and all goes on');
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
