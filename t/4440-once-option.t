#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# --once empties the queue and exits; an idle runner writes nothing to the database.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, idle => 1, conf => "[runner]\nslots = 3\n");
my @projects = map { $runner->project } 1 .. 4;
sub left { return $db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") }

# --- an empty queue
my $before = stopwatch();
is($runner->once, 0, '--once exits if the queue is empty');
cmp_ok($before->(), '<', deadline(30), '--once exits soon if the queue is empty');

# --- a queue
my @ids = $runner->deploy_many(map { [$projects[$_ % 4], "echo number-$_"] } 1 .. 12);
is($runner->once, 0, '--once exits after 12 deployments');
is(left(), 0, '--once runs all deployments');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND epoch = 1"), 12,
    'each deployment runs once');
like($runner->log($ids[0]), qr/^number-1$/m, 'a deployment has its log');
ok($runner->is_clean, 'deployments leave nothing behind');
ok(!-e $runner->wake_socket, '--once does not listen on the socket');
is_deeply([glob "$runner->{spool}/owner.*"], [], '--once leaves no file of its own in the spool');

# --- beside a daemon with the same spool
$runner->resume;
ok(poll(20, sub { -S $runner->wake_socket }), 'a daemon runs');
my $gate = tempdir() . '/gate';
my $long = $runner->deploy($projects[0], "while ! test -e $gate; do sleep 0.1; done; echo through");
is($runner->wait($long, qr/running/), 'running', 'the daemon has a deployment');
@ids = $runner->deploy_many(map { [$projects[$_ % 3 + 1], "sleep 0.2; echo number-$_"] } 1 .. 12);
is($runner->once, 0, '--once beside a daemon exits');
is($runner->status($long), 'running', '--once does not touch the deployment of the daemon');
$runner->wait($_) for @ids;
is($db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND epoch = 1 AND id >= $ids[0]"), 12,
    'each deployment runs once, by either dispatcher');
spew($gate, '');
is($runner->wait($long), 'success', 'the deployment of the daemon succeeds');
like($runner->log($long), qr/^through$/m, 'the deployment of the daemon has its whole log');

# --- deployments that a daemon left
$long = $runner->deploy($projects[0], 'echo up; sleep 600');
$runner->wait_log($long, qr/^up$/m);
$runner->kill_all;
is($runner->once, 0, '--once exits after everything was killed');
is($runner->status($long), 'interrupted', '--once settles the deployment of a killed daemon');
$gate .= '2';
$runner->resume;
$long = $runner->deploy($projects[0], "echo up; while ! test -e $gate; do sleep 0.1; done; echo through");
$runner->wait_log($long, qr/^up$/m);
is($runner->stop, 0, 'a daemon is stopped while a job runs');
my $behind = $runner->deploy($projects[0], 'echo behind');
my $child = fork;
if ($child == 0) { sleep 1; spew($gate, ''); POSIX::_exit(0) }
is($runner->once, 0, '--once adopts the job and waits for it');
waitpid $child, 0;
is($runner->status($long), 'success', 'the adopted deployment succeeds');
like($runner->log($long), qr/^through$/m, 'the adopted deployment has its whole log');
is($runner->status($behind), 'success', 'the next deployment succeeds');

# --- no database
$db->stop;
my ($status, $said) = $runner->once;
isnt($status, 0, '--once without a database fails');
like($said, qr/database/, 'the error of --once without a database names the database');
$db->resume;

# --- invalid arguments
for my $bad (['--twice'], ['-x'], ['more']) {
	my ($code, undef, $err) = run_cmd({ cwd => tempdir() }, program('slipway-dispatch'), @$bad);
	is($code >> 8, 64, "slipway-dispatch rejects @$bad");
	like($err, qr/usage/, "slipway-dispatch @$bad prints its usage");
}
my ($code, undef, $err) = run_cmd(program('slipway-dispatch'), '-c', $runner->conf_file);
is($code >> 8, 64, 'slipway-dispatch rejects a start without a monitor');
like($err, qr/slipway-runner/, 'the error names slipway-runner');

# --- missing programs
($code, undef, $err) = run_cmd($runner->command('--once', '-d', '/nonexistent/dispatch'));
is($code >> 8, 71, "--once without the dispatcher's executable fails");
like($err, qr{/nonexistent/dispatch: No such file}, 'the error names the executable');
{
	my $pid = start_process({ name => 'alone' }, $runner->command('-d', '/nonexistent/dispatch'));
	my $said = sub { return slurp(tempdir() . '/alone.log') || '' };
	ok(poll(60, sub { $said->() =~ /restarting it in 400 ms/ }),
	    'the monitor retries with growing pauses');
	my $ended = qr/ended with status 71; restarting it in 100 ms/;
	like($said->(), qr{/nonexistent/dispatch: No such file.*$ended.* 200 ms}s, 'the log gives the cause');
	is(stop_process($pid), 0, 'the monitor stops on TERM');
}
my $unstarted = $runner->deploy($runner->project, 'echo it-runs');
is(scalar $runner->once('-j', '/nonexistent/job'), 0, "--once without the job's executable exits");
is($runner->status($unstarted), 'pending', "without the job's executable a deployment stays on the queue");
is(scalar $runner->once, 0, '--once exits with the executable again');
is($runner->status($unstarted), 'success', 'a run that finds the runner well again starts the deployment');
ok($runner->is_clean, 'failed deployments leave nothing behind');

# --- idle
sub counters {
	my %c = map { split /\t/ } split /\n/,
	    $db->sql('SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS'
	    . " WHERE VARIABLE_NAME IN ('COM_INSERT', 'COM_INSERT_SELECT', 'COM_UPDATE', 'COM_UPDATE_MULTI', "
	        . "'COM_DELETE',"
	    . " 'COM_REPLACE', 'COM_BEGIN', 'COM_COMMIT', 'INNODB_ROWS_INSERTED', 'INNODB_ROWS_UPDATED', "
	        . "'INNODB_ROWS_DELETED',"
	    . " 'COM_SELECT', 'COM_STMT_EXECUTE', 'CONNECTIONS')");
	return \%c;
}
my $slow = Slipway::Runner->start(db => $db, conf => "[runner]\nlease = 3\npoll = 1\n");
ok(poll(20, sub { $slow->said =~ /runner runner-2/ }), 'an idle runner starts');
# Work that is done once, after the start, may be delayed.
my (%more, @wrote, $seconds);
for (1 .. 20) {
	sleep 1;
	my ($was, $from) = (counters(), time);
	sleep 6;
	my $is;
	poll(300, sub { $is = counters(); $is->{COM_STMT_EXECUTE} >= $was->{COM_STMT_EXECUTE} + 4 });
	$seconds = time - $from;
	%more = map { $_ => $is->{$_} - $was->{$_} } keys %$is;
	@wrote = grep { $more{$_} > 0 && !/^(?:COM_SELECT|COM_STMT_EXECUTE|CONNECTIONS)$/ } sort keys %more;
	last if !@wrote;
}
is_deeply(\@wrote, [], 'an idle runner writes nothing in six seconds or more');
cmp_ok($more{COM_STMT_EXECUTE}, '>=', 4, 'an idle runner reads from the queue');
cmp_ok($more{COM_STMT_EXECUTE}, '<=', 5 * $seconds, 'an idle runner reads no more than five times a second');
diag(sprintf("idle for %.0f seconds",
    $seconds) . " with a lease of three: $more{COM_STMT_EXECUTE} reads, 0 writes");
is($slow->stop, 0, 'the runner stops');
done_testing;
