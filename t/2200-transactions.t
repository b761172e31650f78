#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A transaction happens exactly once or not at all: with real deadlocks, lock
# timeouts and refusals, and with the connection cut at any packet.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my $db = Slipway::DB->start(args => ['--innodb-deadlock-detect=ON']);
$db->migrate;
Slipway::Probe->tables($db);
my @probe = map { Slipway::Probe->start($db->conf_file) } 1 .. 2;

sub written {
	my ($text) = @_;
	return $db->sql("SELECT COUNT(*) FROM probe_log WHERE text = '$text'");
}
sub counter {
	my ($id) = @_;
	return $db->sql("SELECT n FROM counter WHERE id = $id");
}

# --- done, refused
is($probe[0]->ask('add plain'), 'ok 1', 'a transaction runs once');
is(written('plain'), 1, 'and is committed');
is($db->sql('SELECT COUNT(*) FROM commit_token'), 1, 'with its token');
like($probe[0]->ask('refuse plain'), qr/^err conflict 0 \| Not today\. \| Not today\./, 'a refusal comes out as it is');
is(written('plain'), 1, 'and nothing of it stays');
is($db->sql('SELECT COUNT(*) FROM commit_token'), 1, 'nor its token');
is(counter(1), 1, 'nor what it counted');

# --- deadlocks, for real
my $deadlocks = $db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'");
$probe[0]->send('cross forth');
$probe[1]->send('cross back');
my @answer = map { $_->receive } @probe;
like($answer[$_], qr/^ok \d$/, 'both get through') for 0, 1;
is((join ' ', sort map { /(\d)/ } @answer), '1 2', 'one of them at the second try');
isnt($db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"), $deadlocks, 'it was a deadlock');
is(written('forth'), 1, 'the first is there once');
is(written('back'), 1, 'the second is there once');
is(counter(2), 2, 'each counted once');
# A body that does not listen goes on after its transaction is gone: what it
# does then must not be committed by itself.
$probe[0]->send('deaf forth');
$probe[1]->send('deaf back');
@answer = map { $_->receive } @probe;
like($answer[$_], qr/^ok \d$/, 'both get through, deaf') for 0, 1;
is(written('forth'), 2, 'once more, not twice');
is(written('back'), 2, 'the other too');
is(counter(2), 4, 'and counted once each');

# --- a lock that another session holds
sub hold { return $db->hold('UPDATE counter SET n = n WHERE id = 1') }
my $impatient = Slipway::Probe->start($db->conf_file(timeout => 2));
my $holder = hold();
my $waited = $db->waited;
$impatient->send('add held');
ok(poll(60, sub { $db->waited >= $waited + 2 }), 'the first try is given up, the second waits');
$db->let_go($holder);
my $answer = $impatient->receive;
like($answer, qr/^ok [2-5]$/, 'a lock timeout runs the whole again');
is(written('held'), 1, 'and writes once: the first try was rolled back, not only its last statement');
$holder = hold();
$answer = $impatient->ask('add stuck');
like($answer, qr/^err unavailable 1205/, 'some times, then it is given up');
cmp_ok($impatient->took, '<', deadline(30), 'in bounded time');
like($impatient->ask('touch'), qr/^err unavailable 1205/, 'so is a single statement');
cmp_ok($impatient->took, '<', deadline(30), 'in bounded time');
$db->let_go($holder);
is(written('stuck'), 0, 'nothing of it stays');
is($impatient->ask('add free'), 'ok 1', 'the next goes through');
$impatient->stop;

# --- the account of the service may not change tables
like($probe[0]->ask('alter'), qr/^err internal 1142/, 'ALTER is refused');
for my $sql ('CREATE TABLE x (a INT)', 'DROP TABLE counter', 'CREATE INDEX x ON counter (n)', 'TRUNCATE counter',
	'GRANT SELECT ON slipway.* TO slipway', 'SELECT * FROM mysql.user') {
	my ($status, undef, $err) = run_cmd('mariadb', '--no-defaults', '--socket=' . $db->socket, '--user=slipway',
	    '--password=rows-password', '-e', $sql, 'slipway');
	isnt($status, 0, "refused: $sql");
	like($err, qr/ERROR 1(?:142|044|410)/, 'for want of rights');
}

# --- the answer to COMMIT is lost
my $proxy = Slipway::Proxy->start($db->socket);
my $far = Slipway::Probe->start($db->conf_file(socket => $proxy->socket));
my %runs = ('before' => 2, 'answer' => 1);
for my $how ('before', 'answer', 'after') {
	$proxy->plan("commit $how");
	$answer = $far->ask("add commit-$how");
	like($answer, qr/^ok \d$/, "COMMIT cut ($how) is settled");
	is($answer, "ok $runs{$how}", 'by running it again only if it was not done') if $runs{$how};
	is(written("commit-$how"), 1, 'and has happened once');
}
is($proxy->cuts, 3, 'three cuts');

# --- cut anywhere
my ($n, $settled, $unavailable, @wrong) = (0, 0, 0);
my $seed = $ENV{SLIPWAY_SEED} || int rand 1e9;
srand $seed;
note("SLIPWAY_SEED=$seed");
my $before = counter(1);
my $rows = 0;
for my $i (1 .. 100) {
	my $how = (qw(before after answer))[rand 3];
	$proxy->plan($i % 3 == 0 ? "commit $how" : 'packet ' . (1 + int rand 9) . " $how");
	my $text = "cut-$i";
	$answer = $far->ask("add $text");
	my $found = written($text);
	$rows += $found;
	if ($answer =~ /^ok/) { $settled++; push @wrong, "$text: ok, $found rows" if $found != 1 }
	elsif ($answer =~ /may or may not/) { $n++; push @wrong, "$text: unknown, $found rows" if $found > 1 }
	else { $unavailable++; push @wrong, "$text: $answer, $found rows" if $answer !~ /^err unavailable/ || $found != 0 }
	$proxy->plan('pass');
	poll(10, sub { $far->ask('ping') =~ /^ok/ });
}
note("100 transactions: $settled done, $unavailable refused, $n unknown; " . $proxy->cuts . ' cuts');
is_deeply(\@wrong, [], 'each answer is true');
is($n, 0, 'and none is "unknown" while the server is there');
cmp_ok($proxy->cuts, '>=', 60, 'most were cut');
cmp_ok($settled, '>=', 90, 'most were done nevertheless');
is(counter(1) - $before, $rows, 'what belongs together was committed together');

# --- the server dies in COMMIT and comes back, or does not
my $late = 0;
for my $i (1 .. 5) {
	$proxy->plan('commit answer');
	$far->send("add dead-$i");
	poll(10, sub { $proxy->cuts >= 1 && slurp($proxy->{plan}) eq 'pass' });
	my $gone = time;
	$db->kill9->resume;
	my $away = time - $gone;
	$answer = $far->receive;
	if ($away > 6 && $answer =~ /may or may not/ && ++$late < 10) {
		note(sprintf 'the server needed %.1f s to come back, which is too long: again', $away);
		cmp_ok(written("dead-$i"), '<=', 1, 'at most once');
		poll(60, sub { $far->ask('ping') =~ /^ok/ });
		redo if $db->sql("DELETE FROM probe_log WHERE text = 'dead-$i'") eq '';
	}
	like($answer, qr/^ok/, sprintf 'settled after the server came back in %.1f s', $away);
	is(written("dead-$i"), 1, 'once');
}
$proxy->plan('commit answer');
$far->send('add gone');
poll(10, sub { slurp($proxy->{plan}) eq 'pass' });
$db->kill9;
like($far->receive, qr/^err unavailable .*may or may not have been made/, 'unknown if it stays away');
cmp_ok($far->took, '<', deadline(50), 'in bounded time');
$db->resume;
ok(poll(15, sub { $far->ask('add again') =~ /^ok/ }), 'and then all is well');
$proxy->stop; # it holds what was open when it was made
is($_->stop, 0, 'the clients ended as they should') for $far, @probe;
done_testing();
