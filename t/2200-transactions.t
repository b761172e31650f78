#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A transaction happens exactly once or not at all: with real deadlocks, lock
# timeouts and rejections, and with the connection cut at any packet.

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

sub written { return Slipway::Probe->written($db, @_) }
sub counter {
	my ($id) = @_;
	return $db->sql("SELECT n FROM counter WHERE id = $id");
}

# --- commit and rollback
is($probe[0]->ask('add plain'), 'ok 1', 'a transaction succeeds at the first try');
is(written('plain'), 1, 'a transaction is committed once');
is($db->sql('SELECT COUNT(*) FROM commit_token'), 1, 'a transaction leaves its commit token');
is($probe[0]->ask('look first'), 'ok 1', 'a transaction whose first statement reads succeeds');
is(written('first'), 1, 'a transaction whose first statement reads is committed once');
is($db->sql('SELECT COUNT(*) FROM commit_token'), 2, 'it leaves its commit token, too');
is($probe[0]->ask('both plain'), 'ok 2 1 plain', 'a statement returns a row and a list');
is($probe[0]->ask('both nothing'), 'ok 2 0 -', 'its list may be empty');
like($probe[0]->ask('refuse plain'), qr/^err conflict 0 \| Not today\. \| Not today\./,
    'an error in a transaction reaches the caller unchanged');
is(written('plain'), 1, 'a failed transaction writes no row');
is($db->sql('SELECT COUNT(*) FROM commit_token'), 2, 'a failed transaction leaves no commit token');
is(counter(1), 2, 'a failed transaction changes no counter');

# --- results that are not read to the end
sub connections {
	return $db->sql("SELECT id FROM information_schema.processlist WHERE user = 'slipway' ORDER BY id");
}
my $first = connections();
like($probe[0]->ask('half plain'), qr/^err config .*returns too many results/,
    'a second result is not ignored');
is($probe[0]->ask('write after-half'), 'ok after-half', 'the next write succeeds');
is(written('after-half'), 1, 'it happened once');
is($probe[0]->ask('careless half'), 'ok 1', 'a transaction that ignores such an error succeeds');
is(written('half'), 1, 'it happened once, too');
is(connections(), $first, 'the connection is still the same');

# --- a connection that is lost in the second of two results
is($probe[0]->ask('lasting'), 'ok 8', 'a statement whose second result takes long succeeds');
$probe[0]->send('lasting');
my $running = "SELECT id FROM information_schema.processlist WHERE user = 'slipway' AND time_ms > 250"
    . " AND info LIKE '%SLEEP(0.1)%'";
my $killed = poll(20, sub { $db->sql($running) });
$db->client("KILL CONNECTION $killed");
# it is not repeated if it has taken a second, as on a busy machine
like($probe[0]->receive, qr/^(?:ok 8|err unavailable )/, 'it is read again from the start, or not at all');

# --- snapshots
# Runs SQL while a snapshot is in its pause; its answer.
sub during_snapshot {
	my ($sql) = @_;
	$probe[0]->send('snapshot read');
	poll(20, sub { $db->sql("SELECT COUNT(*) FROM information_schema.processlist"
		    . " WHERE info LIKE 'SELECT SLEEP(0.3)%'") });
	$db->sql($sql);
	return $probe[0]->receive;
}
sub transactions { return $db->sql('SELECT COUNT(*) FROM information_schema.innodb_trx') }
is(during_snapshot("INSERT INTO probe_log (text) VALUES ('meanwhile')"), 'ok 1 same',
    'the statements of a snapshot see the same rows');
like(during_snapshot('ALTER TABLE counter FORCE'), qr/^ok [12] same/,
    'a snapshot is taken again if a table is rebuilt');
is(transactions(), 0, 'a snapshot leaves no transaction open');
like($probe[0]->ask('snapshot write'), qr/^err unavailable 1792/, 'a write in a snapshot is rejected');
is(written('write'), 0, 'it writes no row');
is($probe[0]->ask('write after-snapshot'), 'ok after-snapshot', 'the next write succeeds');
is(transactions(), 0, 'a snapshot that fails leaves no transaction open');

# --- a token that is rejected, and a transaction that ignores it
$db->sql("CREATE TRIGGER no_token BEFORE INSERT ON commit_token FOR EACH ROW"
	. " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no token'");
my $was = counter(1);
like($probe[0]->ask("$_ tokenless"), qr/^err internal 1644/, "$_: a transaction without its token fails")
    for qw(add look reckless);
is(written('tokenless'), 0, 'it writes no row');
is(counter(1), $was, 'it changes no counter');
$db->sql('DROP TRIGGER no_token');
is($probe[0]->ask('reckless token'), 'ok 0', 'the next transaction succeeds');
is(transactions(), 0, 'no transaction is left open');

# --- deadlocks
my $deadlocks = $db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'");
$probe[0]->send('cross forth');
$probe[1]->send('cross back');
my @answer = map { $_->receive } @probe;
like($answer[$_], qr/^ok \d$/, 'both transactions of a deadlock succeed') for 0, 1;
is((join ' ', sort map { /(\d)/ } @answer), '1 2',
    'one transaction of a deadlock succeeds at the second try');
isnt($db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'"), $deadlocks, 'the server counted a deadlock');
is(written('forth'), 1, 'the first transaction of a deadlock happened once');
is(written('back'), 1, 'the second transaction of a deadlock happened once');
is(counter(2), 2, 'each transaction of a deadlock counted once');
# A body that ignores errors goes on after its transaction was rolled back; what
# it does then must not be committed on its own.
$probe[0]->send('deaf forth');
$probe[1]->send('deaf back');
@answer = map { $_->receive } @probe;
like($answer[$_], qr/^ok \d$/, 'both transactions succeed although they ignore errors') for 0, 1;
is(written('forth'), 2, 'the first transaction that ignores errors happened once');
is(written('back'), 2, 'the second transaction that ignores errors happened once');
is(counter(2), 4, 'each transaction that ignores errors counted once');

# --- a lock that another session holds
sub hold { return $db->hold('UPDATE counter SET n = n WHERE id = 1') }
my $impatient = Slipway::Probe->start($db->conf_file(timeout => 2));
my $holder = hold();
my $waited = $db->waited;
$impatient->send('add held');
ok(poll(60, sub { $db->waited >= $waited + 2 }), 'after a lock timeout the transaction is tried again');
$db->let_go($holder);
my $answer = $impatient->receive;
like($answer, qr/^ok [2-5]$/, 'a transaction succeeds once the lock is released');
is(written('held'), 1, 'a lock timeout rolls back the whole first try, not only its last statement');
$holder = hold();
$answer = $impatient->ask('add stuck');
like($answer, qr/^err unavailable 1205/, 'a transaction that never gets its lock is unavailable');
cmp_ok($impatient->took, '<', deadline(30), 'a transaction that never gets its lock fails in time');
like($impatient->ask('touch'), qr/^err unavailable 1205/,
    'a statement that never gets its lock is unavailable');
cmp_ok($impatient->took, '<', deadline(30), 'a statement that never gets its lock fails in time');
$db->let_go($holder);
is(written('stuck'), 0, 'a transaction that never got its lock writes nothing');
is($impatient->ask('add free'), 'ok 1', 'the next transaction succeeds at the first try');
$impatient->stop;

# --- rights of the account of the service
like($probe[0]->ask('alter'), qr/^err config 1142/, 'the account of the service cannot alter tables');
for my $sql ('CREATE TABLE x (a INT)', 'DROP TABLE counter', 'CREATE INDEX x ON counter (n)',
    'TRUNCATE counter',
	'GRANT SELECT ON slipway.* TO slipway', 'SELECT * FROM mysql.user') {
	my ($status, undef, $err) = run_cmd('mariadb', '--no-defaults', '--socket=' . $db->socket,
	    '--user=slipway',
	    '--password=rows-password', '-e', $sql, 'slipway');
	isnt($status, 0, "the account of the service cannot run \"$sql\"");
	like($err, qr/ERROR 1(?:142|044|410)/, "\"$sql\" fails for lack of rights");
}

# --- the response to COMMIT is lost
my $proxy = Slipway::Proxy->start($db->socket);
my $far = Slipway::Probe->start($db->conf_file(socket => $proxy->socket));
my %runs = ('before' => 2, 'answer' => 1);
for my $what ('add', 'look') {
	for my $how ('before', 'answer', 'after') {
		my $name = "$what: a transaction whose COMMIT was cut ($how)";
		$proxy->plan("commit $how");
		$answer = $far->ask("$what $what-$how");
		like($answer, qr/^ok \d$/, "$name succeeds");
		is($answer, "ok $runs{$how}", "$name runs again only if it did not happen") if $runs{$how};
		is(written("$what-$how"), 1, "$name happened once");
	}
}
is($proxy->cuts, 6, 'the proxy made all six cuts');

# --- the connection is cut at random packets
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
	$answer = $far->ask(($i % 2 ? 'add' : 'look') . " $text");
	my $found = written($text);
	$rows += $found;
	if ($answer =~ /^ok/) {
		$settled++;
		push @wrong, "$text: ok, $found rows" if $found != 1;
	} elsif ($answer =~ /may or may not/) {
		$n++;
		push @wrong, "$text: unknown, $found rows" if $found > 1;
	} else {
		$unavailable++;
		push @wrong, "$text: $answer, $found rows" if $answer !~ /^err unavailable/ || $found != 0;
	}
	$proxy->plan('pass');
	poll(10, sub { $far->ask('ping') =~ /^ok/ });
}
note("100 transactions: $settled done, $unavailable unavailable, $n unknown; " . $proxy->cuts . ' cuts');
is_deeply(\@wrong, [], 'the result of each transaction tells whether it happened');
is($n, 0, 'no result is unknown while the server runs');
cmp_ok($proxy->cuts, '>=', 60, 'most transactions were cut');
cmp_ok($settled, '>=', 90, 'most transactions succeed nevertheless');
is(counter(1) - $before, $rows, 'the changes of each transaction were committed together');

# --- the server is killed during COMMIT
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
		note(sprintf 'the server took %.1f s to restart, which is too long: again', $away);
		cmp_ok(written("dead-$i"), '<=', 1,
		    'a transaction with an unknown result happened at most once');
		poll(60, sub { $far->ask('ping') =~ /^ok/ });
		redo if $db->sql("DELETE FROM probe_log WHERE text = 'dead-$i'") eq '';
	}
	like($answer, qr/^ok/, sprintf 'a transaction succeeds after the server restarted in %.1f s', $away);
	is(written("dead-$i"), 1, 'a transaction happened once although the server was killed during COMMIT');
}
$proxy->plan('commit answer');
$far->send('add gone');
poll(10, sub { slurp($proxy->{plan}) eq 'pass' });
$db->kill9;
like($far->receive, qr/^err unavailable .*may or may not have been made/,
    'the result is unknown if the server stays down');
cmp_ok($far->took, '<', deadline(50), 'a transaction fails in time if the server stays down');
$db->resume;
ok(poll(15, sub { $far->ask('add again') =~ /^ok/ }), 'transactions succeed once the server is back');
$proxy->stop; # it holds connections that were open when it was created
is($_->stop, 0, 'the clients end with status 0') for $far, @probe;
done_testing();
