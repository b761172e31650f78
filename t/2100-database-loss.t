#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB fails in every way it can, and recovers: one client that is never
# restarted gets clear errors in time meanwhile, and works again afterwards.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my $db = Slipway::DB->start;
$db->migrate;
Slipway::Probe->tables($db);
my $probe = Slipway::Probe->start($db->conf_file(timeout => 2));

# Tests that reads, writes and transactions succeed.
sub works {
	my ($name) = @_;
	my $answer;
	ok(poll(15, sub { $answer = $probe->ask('ping'); $answer =~ /^ok/ }), "$name: the client can read")
	    or diag($answer);
	like($probe->ask("write $name"), qr/^ok/, "$name: the client can write");
	like($probe->ask("add $name"), qr/^ok/, "$name: a transaction succeeds");
	is(Slipway::Probe->written($db, $name), 2, "$name: the write and the transaction happened once each");
	return;
}

# Tests that reads, writes and transactions fail in time.
sub fails {
	my ($name, $re) = @_;
	for my $what ('ping', "write no-$name", "add no-$name") {
		my $answer = $probe->ask($what);
		like($answer, qr/^err unavailable/, "$name: \"$what\" is unavailable");
		like($answer, $re, "$name: the error of \"$what\" says why") if $re;
		cmp_ok($probe->took, '<', deadline(20), "$name: \"$what\" fails in time");
	}
	return;
}

works('start');

# --- the server is stopped or killed, and started again
for my $how ('stop', 'kill9') {
	$db->$how;
	fails($how);
	my $took = best_of(1, sub {
		my $start = time;
		$probe->ask('ping') for 1 .. 100;
		return time - $start;
	});
	cmp_ok($took, '<', deadline(1),
	    sprintf '%s: a hundred calls fail within a second (%.2f s)', $how, $took);
	$db->resume;
	is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text LIKE 'no-$how%'"), 0,
	    "$how: failed calls wrote nothing");
	works($how);
}

# --- the connection is lost between two calls
for my $what ('ping', 'write quiet', 'add quiet', 'count') {
	$probe->ask($_) for 'ping', 'write warm', 'add warm'; # every statement is prepared
	$db->stop->resume;
	like($probe->ask($what), qr/^ok/, "\"$what\" succeeds after an unnoticed restart of the server");
}
for my $what ('ping', 'write killed', 'add killed', 'count') {
	$probe->ask($_) for 'ping', 'write warm', 'add warm';
	# an earlier connection may still be ending
	my $open = "SELECT id FROM information_schema.processlist WHERE user = 'slipway'";
	my @open = split /\n/, $db->sql($open);
	ok(scalar(grep { ($db->client("KILL CONNECTION $_"))[0] == 0 } @open), 'the connection is killed');
	like($probe->ask($what), qr/^ok/, "\"$what\" succeeds after the connection was killed");
}
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text IN ('quiet', 'killed')"), 4,
    'each write after a lost connection happened once');

# --- tables change under prepared statements
$db->sql('ALTER TABLE probe_log ADD COLUMN more BIGINT FIRST; FLUSH TABLES');
like($probe->ask('find quiet'), qr/^ok/, 'a prepared read succeeds after an ALTER TABLE');
like($probe->ask('write altered'), qr/^ok/, 'a prepared write succeeds after an ALTER TABLE');
$probe->ask("look warm");
$db->sql('ALTER TABLE counter ADD COLUMN less BIGINT FIRST; FLUSH TABLES');
like($probe->ask('look altered'), qr/^ok/, 'a transaction succeeds after an ALTER TABLE');
is(Slipway::Probe->written($db, 'altered'), 2, 'it happened once');
$db->sql('ALTER TABLE probe_log DROP COLUMN more; FLUSH TABLES');
like($probe->ask('find altered'), qr/^ok/, 'a prepared read succeeds after a second ALTER TABLE');

# --- the server is read-only, full, or has too many connections
$db->sql('SET GLOBAL read_only = 1', 'mysql');
like($probe->ask('ping'), qr/^ok/, 'a read-only server accepts reads');
like($probe->ask('write no-ro'), qr/^err unavailable 1290/, 'a write to a read-only server is unavailable');
like($probe->ask('add no-ro'), qr/^err unavailable 1290/,
    'a transaction on a read-only server is unavailable');
$db->sql('SET GLOBAL read_only = 0', 'mysql');
works('read-only');

SKIP: {
	skip 'MariaDB 11.8 ends with a signal when such a tablespace is full', 9
	    if $db->sql('SELECT VERSION()', 'mysql') !~ /^10\./;
	# The server requires the present size of its file, which may have grown.
	$db->stop;
	my $mib = (-s $db->{data} . '/ibdata1') / 2**20;
	$db->resume('--innodb-file-per-table=0', "--innodb-data-file-path=ibdata1:${mib}M");
	$db->sql('CREATE TABLE filler (a LONGBLOB) ENGINE = InnoDB; ALTER TABLE probe_log ENGINE = InnoDB');
	my ($rc, $full) = (0);
	($rc, undef, $full) = $db->client('INSERT INTO filler VALUES (REPEAT("x", 50000))') while $rc == 0;
	like($full, qr/ERROR 1114/, 'the tablespace is full');
	my ($answer, $writes) = ('ok', 0);
	$answer = $probe->ask('write full') while $answer =~ /^ok/ && $writes++ < 20000;
	like($answer, qr/^err unavailable 1114/, 'a write to a full server is unavailable');
	like($probe->ask('add no-full'), qr/^err unavailable 1114/,
	    'a transaction on a full server is unavailable');
	like($probe->ask('ping'), qr/^ok/, 'a full server accepts reads');
	is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'no-full'"), 0,
	    'a failed transaction on a full server leaves nothing');
	$db->restart('--innodb-data-file-path=ibdata1:12M:autoextend');
	works('full');
}

$db->sql("ALTER USER slipway\@localhost WITH MAX_USER_CONNECTIONS 1", 'mysql');
my ($first, $second) = map { Slipway::Probe->start($db->conf_file(timeout => 2)) } 1, 2;
like($first->ask('ping'), qr/^ok/, 'the last connection of the account works');
like($second->ask('ping'), qr/^err unavailable 1226/,
    'a connection over the limit of the account is unavailable');
$first->stop;
$db->sql("ALTER USER slipway\@localhost WITH MAX_USER_CONNECTIONS 0", 'mysql');
my @holders = map { start_process({ name => "holder$_" }, 'mariadb', '--no-defaults',
    '--socket=' . $db->socket,
	'--user=slipway_admin', '--password=schema-password', '-e', 'SELECT SLEEP(600)', 'slipway') } 1 .. 9;
my $sleepers = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
ok(poll(15, sub { $db->sql($sleepers) == 9 }),
    'other clients hold nine connections');
$db->sql('SET GLOBAL max_connections = 10');
ok(poll(15, sub { $second->ask('ping') =~ /^err unavailable 1040/ }),
    'a connection over the limit of the server is unavailable');
like($probe->ask('ping'), qr/^ok/, 'an open connection works while the server accepts no more');
$db->sql('SET GLOBAL max_connections = 40');
ok(poll(15, sub { $second->ask('ping') =~ /^ok/ }), 'a new connection succeeds once the limit is raised');
stop_process($_) for @holders;
is($second->stop, 0, 'the second client ends with status 0');

# --- the server ends a statement that takes too long
within(2, sub {
	like($probe->ask('slow'), qr/^err unavailable 1969/,
	    'a statement over the time limit is unavailable');
	cmp_ok($probe->took, '<', deadline(20), 'a statement over the time limit ends in time');
	like($probe->ask('ping'), qr/^ok/, 'the connection works after a statement over the time limit');
});

# --- more than the server accepts at once
$db->sql('SET GLOBAL max_allowed_packet = 1048576');
my $small = Slipway::Probe->start($db->conf_file);
like($small->ask('large 500000'), qr/^err not_found /, 'a statement below max_allowed_packet is executed');
for my $size (1_100_000, 3_000_000, 12_000_000) {
	for my $what ('large', 'largely') {
		like($small->ask("$what $size"),
		    qr/^err payload_too_large 1153 .* \| This is more than MariaDB .*max_allowed_packet/,
		    "$what: $size bytes are rejected with the name of the setting");
		like($small->ask('ping'), qr/^ok/, "$what: the next statement succeeds");
	}
}
is(Slipway::Probe->written($db, 'large'), 0,
    'a transaction with a statement that is too large writes nothing');
$small->stop;
$db->sql('SET GLOBAL max_allowed_packet = 16777216');

# --- a child leaves the connection of its parent alone
is($probe->ask('fork'), 'ok same', 'after a fork, parent and child have different connections');

# --- wrong account, wrong database
for my $wrong (['rows-password', 'nonsense', 1045], ['name = slipway', 'name = nowhere', 1044]) {
	my ($was, $is, $number) = @$wrong;
	my $conf = $db->conf;
	$conf =~ s/\Q$was\E/$is/;
	my $other = Slipway::Probe->start(spew(tempdir() . '/wrong.conf', $conf, 0600));
	my $answer = $other->ask('ping');
	like($answer, qr/^err config $number/,
	    "error $number is a fault of the configuration, not an outage");
	unlike($answer, qr/nonsense/, "error $number does not show the password");
	$other->stop;
}

# --- a server that accepts connections and stays silent
my $proxy = Slipway::Proxy->start($db->socket);
$proxy->plan('silent');
my $far = Slipway::Probe->start($db->conf_file(socket => $proxy->socket, timeout => 1));
within(1, sub {
	my @next;
	for my $what ('ping', 'write no-silence', 'add no-silence') {
		like($far->ask($what), qr/^err unavailable/, "a silent server: \"$what\" is unavailable");
		cmp_ok($far->took, '<', deadline(20), "a silent server: \"$what\" fails in time");
		$far->ask('ping');
		push @next, $far->took;
	}
	cmp_ok((sort { $a <=> $b } @next)[0], '<', 0.5,
	    'after a failure the next call fails at once: the client backs off');
});
$proxy->plan('pass');
ok(poll(15, sub { $far->ask('ping') =~ /^ok/ }), 'calls succeed once the server responds');

# --- the connection is cut during a call: reads are repeated, single writes are not
for my $how ('before', 'after', 'answer') {
	$proxy->plan("packet 1 $how");
	like($far->ask('count'), qr/^ok/, "a read that was cut ($how) is repeated");
	$far->ask('write warm'); # so that the packet to come is the execution
	$proxy->plan("packet 1 $how");
	like($far->ask("write cut-$how"),
	    qr/^err unavailable .* \| The connection to the database was lost: the change may or may not/,
	    "a write that was cut ($how) is not repeated");
	ok(poll(15, sub { $far->ask('ping') =~ /^ok/ }),
	    "the call after a write that was cut ($how) succeeds");
}
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-before'"), 0,
    'a write that did not reach the server did not happen');
cmp_ok($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-after'"), '<=', 1,
    'a write that may have reached the server happened at most once');
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-answer'"), 1,
    'a write whose response was lost happened once');
is($proxy->cuts, 6, 'the proxy made all six cuts');
$proxy->stop;
$far->stop;

is($probe->stop, 0, 'the client that survived it all ends with status 0');
done_testing();
