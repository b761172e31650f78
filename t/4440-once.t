#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# --once drains the queue and ends; an idle runner writes nothing.

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
my $before = time;
is($runner->once, 0, 'with nothing to do it ends');
cmp_ok(time - $before, '<', deadline(30), 'soon');

# --- a queue
my @ids = $runner->deploy_many(map { [$projects[$_ % 4], "echo number-$_"] } 1 .. 12);
is($runner->once, 0, 'with something to do it ends, too');
is(left(), 0, 'after that');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND epoch = 1"), 12, 'each ran once');
like($runner->log($ids[0]), qr/^number-1$/m, 'with its log');
ok($runner->is_clean, 'nothing is left');
ok(!-e $runner->wake_socket, 'it takes no calls');
is_deeply([glob "$runner->{spool}/owner.*"], [], 'and leaves no file of its own');

# --- beside a daemon, sharing its spool
$runner->resume;
ok(poll(20, sub { -S $runner->wake_socket }), 'a daemon runs');
my $gate = tempdir() . '/gate';
my $long = $runner->deploy($projects[0], "while ! test -e $gate; do sleep 0.1; done; echo through");
is($runner->wait($long, qr/running/), 'running', 'and has work');
@ids = $runner->deploy_many(map { [$projects[$_ % 3 + 1], "sleep 0.2; echo number-$_"] } 1 .. 12);
is($runner->once, 0, 'one more for once ends');
is($runner->status($long), 'running', 'it leaves what the daemon runs alone');
$runner->wait($_) for @ids;
is($db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'success' AND epoch = 1 AND id >= $ids[0]"), 12, 'each ran once, here or there');
spew($gate, '');
is($runner->wait($long), 'success', 'the daemon goes on');
like($runner->log($long), qr/^through$/m, 'to the end');

# --- what a daemon left
$long = $runner->deploy($projects[0], 'echo up; sleep 600');
$runner->wait_log($long, qr/^up$/m);
$runner->kill_all;
is($runner->once, 0, 'once, after all was killed');
is($runner->status($long), 'interrupted', 'settles what was left');
$gate .= '2';
$runner->resume;
$long = $runner->deploy($projects[0], "echo up; while ! test -e $gate; do sleep 0.1; done; echo through");
$runner->wait_log($long, qr/^up$/m);
is($runner->stop, 0, 'a daemon is stopped while a job runs');
my $behind = $runner->deploy($projects[0], 'echo behind');
my $child = fork;
if ($child == 0) { sleep 1; spew($gate, ''); POSIX::_exit(0) }
is($runner->once, 0, 'once takes the job over, and waits for it');
waitpid $child, 0;
is($runner->status($long), 'success', 'it has ended');
like($runner->log($long), qr/^through$/m, 'with its whole log');
is($runner->status($behind), 'success', 'so has the one behind it');

# --- no database
$db->stop;
my ($status, $said) = $runner->once;
isnt($status, 0, 'without a database it gives up');
like($said, qr/database/, 'and says why');
$db->resume;

# --- refusals
for my $bad (['--twice'], ['-x'], ['more']) {
	my ($code, undef, $err) = run_cmd({ cwd => tempdir() }, program('slipway-dispatch'), @$bad);
	is($code >> 8, 64, "slipway-dispatch @$bad is refused");
	like($err, qr/usage/, 'with its usage');
}
my ($code, undef, $err) = run_cmd(program('slipway-dispatch'), '-c', $runner->conf_file);
is($code >> 8, 64, 'without a monitor it does not start');
like($err, qr/slipway-runner/, 'and names it');

# --- a program that is not there
($code, undef, $err) = run_cmd($runner->command('--once', '-d', '/nonexistent/dispatch'));
is($code >> 8, 71, 'without a dispatcher --once fails');
like($err, qr{/nonexistent/dispatch: No such file}, 'and names it');
{
	my $pid = start_process({ name => 'alone' }, $runner->command('-d', '/nonexistent/dispatch'));
	my $said = sub { return slurp(tempdir() . '/alone.log') || '' };
	ok(poll(60, sub { $said->() =~ /it is started again in 400 ms/ }), 'a service tries again, ever later');
	like($said->(), qr{/nonexistent/dispatch: No such file.*ended with status 71; it is started again in 100 ms.* 200 ms}s, 'and says why');
	is(stop_process($pid), 0, 'it ends when told to');
}
my $unstarted = $runner->deploy($runner->project, 'echo it-runs');
is(scalar $runner->once('-j', '/nonexistent/job'), 0, 'without a program for jobs the queue is worked off');
is(join(' ', map { $runner->column($unstarted, $_) } qw(status reason detail)),
    'failed workspace_error The runner could not start a process for it.', 'each deployment fails, and says so');
is(scalar $runner->once, 0, 'with it again');
ok($runner->is_clean, 'nothing is left');

# --- idle
sub counters {
	my %c = map { split /\t/ } split /\n/, $db->sql('SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS'
	    . " WHERE VARIABLE_NAME IN ('COM_INSERT', 'COM_INSERT_SELECT', 'COM_UPDATE', 'COM_UPDATE_MULTI', 'COM_DELETE',"
	    . " 'COM_REPLACE', 'COM_BEGIN', 'COM_COMMIT', 'INNODB_ROWS_INSERTED', 'INNODB_ROWS_UPDATED', 'INNODB_ROWS_DELETED',"
	    . " 'COM_SELECT', 'COM_STMT_EXECUTE', 'CONNECTIONS')");
	return \%c;
}
my $slow = Slipway::Runner->start(db => $db, conf => "[runner]\nlease = 3\npoll = 1\n");
ok(poll(20, sub { $slow->said =~ /runner runner-2/ }), 'an idle runner');
# What is done once, after the start, may come late.
my (%more, @wrote);
for (1 .. 3) {
	sleep 1;
	my $was = counters();
	sleep 6;
	my $is = counters();
	%more = map { $_ => $is->{$_} - $was->{$_} } keys %$is;
	@wrote = grep { $more{$_} > 0 && !/^(?:COM_SELECT|COM_STMT_EXECUTE|CONNECTIONS)$/ } sort keys %more;
	last if !@wrote;
}
is_deeply(\@wrote, [], 'writes nothing in six seconds');
cmp_ok($more{COM_STMT_EXECUTE}, '>=', 4, 'but looks');
cmp_ok($more{COM_STMT_EXECUTE}, '<=', 30, 'some times');
diag("idle for six seconds with a lease of three: $more{COM_STMT_EXECUTE} reads, 0 writes");
is($slow->stop, 0, 'ends');
done_testing;
