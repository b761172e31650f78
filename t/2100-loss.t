#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB goes away in every way it can, and comes back: one client that is
# never restarted gets clear answers meanwhile, soon, and works again after.

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

sub works {
	my ($name) = @_;
	my $answer;
	ok(poll(15, sub { $answer = $probe->ask('ping'); $answer =~ /^ok/ }), "$name: reads")
	    or diag($answer);
	like($probe->ask("write $name"), qr/^ok/, "$name: writes");
	like($probe->ask("add $name"), qr/^ok/, "$name: transactions");
	is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = '$name'"), 2, "$name: all of it once");
	return;
}

sub refuses {
	my ($name, $re) = @_;
	for my $what ('ping', "write no-$name", "add no-$name") {
		my $answer = $probe->ask($what);
		like($answer, qr/^err unavailable/, "$name: $what is unavailable");
		like($answer, $re, 'and says why') if $re;
		cmp_ok($probe->took, '<', deadline(20), 'in time');
	}
	return;
}

works('start');

# --- stopped, killed, and started again
for my $how ('stop', 'kill9') {
	$db->$how;
	refuses($how);
	my $took = best_of(1, sub {
		my $start = time;
		$probe->ask('ping') for 1 .. 100;
		return time - $start;
	});
	cmp_ok($took, '<', deadline(1), sprintf 'a dead server costs its clients no time: a hundred answers in %.2f s', $took);
	$db->resume;
	is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text LIKE 'no-$how%'"), 0, 'nothing was written meanwhile');
	works($how);
}

# --- away and back between two uses: nobody notices
for my $what ('ping', 'write quiet', 'add quiet', 'count') {
	$probe->ask($_) for 'ping', 'write warm', 'add warm'; # all is prepared
	$db->stop->resume;
	like($probe->ask($what), qr/^ok/, "$what after a restart that nobody saw");
}
for my $what ('ping', 'write killed', 'add killed', 'count') {
	$probe->ask($_) for 'ping', 'write warm', 'add warm';
	$db->sql("KILL CONNECTION " . $db->sql("SELECT id FROM information_schema.processlist WHERE user = 'slipway'"));
	like($probe->ask($what), qr/^ok/, "$what after the connection was killed");
}
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text IN ('quiet', 'killed')"), 4, 'each wrote once');

# --- the tables are changed under prepared statements
$db->sql('ALTER TABLE probe_log ADD COLUMN more BIGINT FIRST; FLUSH TABLES');
like($probe->ask('find quiet'), qr/^ok/, 'reads go on after an ALTER');
like($probe->ask('write altered'), qr/^ok/, 'and writes');
$db->sql('ALTER TABLE probe_log DROP COLUMN more; FLUSH TABLES');
like($probe->ask('find altered'), qr/^ok/, 'and after another');

# --- full, read only, too many connections
$db->sql('SET GLOBAL read_only = 1', 'mysql');
like($probe->ask('ping'), qr/^ok/, 'a read-only server can be read');
like($probe->ask('write no-ro'), qr/^err unavailable 1290/, 'but not written');
like($probe->ask('add no-ro'), qr/^err unavailable 1290/, 'nor in a transaction');
$db->sql('SET GLOBAL read_only = 0', 'mysql');
works('read-only');

# it has grown by now, or not; the server wants to be told its size
$db->stop;
$db->resume('--innodb-file-per-table=0', '--innodb-data-file-path=ibdata1:' . (-s $db->{data} . '/ibdata1') / 2**20 . 'M');
$db->sql('CREATE TABLE filler (a LONGBLOB) ENGINE = InnoDB; ALTER TABLE probe_log ENGINE = InnoDB');
my ($rc, $full) = (0);
($rc, undef, $full) = $db->client('INSERT INTO filler VALUES (REPEAT("x", 50000))') while $rc == 0;
like($full, qr/ERROR 1114/, 'the disk is full');
my ($answer, $writes) = ('ok', 0);
$answer = $probe->ask('write full') while $answer =~ /^ok/ && $writes++ < 20000;
like($answer, qr/^err unavailable 1114/, 'a full server cannot be written');
like($probe->ask('add no-full'), qr/^err unavailable 1114/, 'nor in a transaction');
like($probe->ask('ping'), qr/^ok/, 'but read');
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'no-full'"), 0, 'nothing half is left');
$db->restart('--innodb-data-file-path=ibdata1:12M:autoextend');
works('full');

$db->sql("ALTER USER slipway\@localhost WITH MAX_USER_CONNECTIONS 1", 'mysql');
my ($first, $second) = map { Slipway::Probe->start($db->conf_file(timeout => 2)) } 1, 2;
like($first->ask('ping'), qr/^ok/, 'the account has all its connections');
like($second->ask('ping'), qr/^err unavailable 1226/, 'the account has one connection too many');
$first->stop;
$db->sql("ALTER USER slipway\@localhost WITH MAX_USER_CONNECTIONS 0", 'mysql');
my @holders = map { start_process({ name => "holder$_" }, 'mariadb', '--no-defaults', '--socket=' . $db->socket,
	'--user=slipway_admin', '--password=schema-password', '-e', 'SELECT SLEEP(600)', 'slipway') } 1 .. 9;
ok(poll(15, sub { $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'") == 9 }),
    'other connections');
$db->sql('SET GLOBAL max_connections = 10', 'mysql');
ok(poll(15, sub { $second->ask('ping') =~ /^err unavailable 1040/ }), 'the server has one connection too many');
like($probe->ask('ping'), qr/^ok/, 'who is in stays in');
ok(poll(15, sub { eval { $db->sql('SET GLOBAL max_connections = 40', 'mysql'); 1 } }), 'more are allowed');
ok(poll(15, sub { $second->ask('ping') =~ /^ok/ }), 'room again');
stop_process($_) for @holders;
is($second->stop, 0, 'it ended as it should');

# --- a statement that takes too long is ended by the server
like($probe->ask('slow'), qr/^err unavailable 1969/, 'a long statement is ended');
cmp_ok($probe->took, '<', deadline(20), 'soon');
like($probe->ask('ping'), qr/^ok/, 'and the connection goes on');

# --- a child leaves the connection of its parent alone
is($probe->ask('fork'), 'ok same', 'after a fork each has a connection of its own');

# --- wrong account, wrong database
for my $wrong (['rows-password', 'nonsense', 1045], ['name = slipway', 'name = nowhere', 1044]) {
	my ($was, $is, $number) = @$wrong;
	my $conf = $db->conf;
	$conf =~ s/\Q$was\E/$is/;
	my $other = Slipway::Probe->start(spew(tempdir() . '/wrong.conf', $conf, 0600));
	my $answer = $other->ask('ping');
	like($answer, qr/^err internal $number/, "$number is a fault of the configuration");
	unlike($answer, qr/nonsense/, 'no secret is told');
	$other->stop;
}

# --- a server that takes connections and says nothing
my $proxy = Slipway::Proxy->start($db->socket);
$proxy->plan('silent');
my $far = Slipway::Probe->start($db->conf_file(socket => $proxy->socket, timeout => 1));
my @next;
for my $what ('ping', 'write no-silence', 'add no-silence') {
	like($far->ask($what), qr/^err unavailable/, "silence: $what is unavailable");
	cmp_ok($far->took, '<', deadline(20), 'in time');
	$far->ask('ping');
	push @next, $far->took;
}
cmp_ok((sort { $a <=> $b } @next)[0], '<', 0.5, 'the next at once: it is not tried again so soon');
$proxy->plan('pass');
ok(poll(15, sub { $far->ask('ping') =~ /^ok/ }), 'when it speaks, all is well');

# --- cut in the middle: reads are made again, writes outside a transaction not
for my $how ('before', 'after', 'answer') {
	$proxy->plan("packet 1 $how");
	like($far->ask('count'), qr/^ok/, "a read that was cut ($how) is made again");
	$far->ask('write warm'); # so that the packet to come is the execution
	$proxy->plan("packet 1 $how");
	like($far->ask("write cut-$how"),
	    qr/^err unavailable .* \| The database went away before it answered: the change may or may not/,
	    "a write that was cut ($how) is not");
	ok(poll(15, sub { $far->ask('ping') =~ /^ok/ }), 'and the next works');
}
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-before'"), 0, 'what did not get through was not made');
cmp_ok($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-after'"), '<=', 1, 'what may have was made at most once');
is($db->sql("SELECT COUNT(*) FROM probe_log WHERE text = 'cut-answer'"), 1, 'what was answered was made once');
is($proxy->cuts, 6, 'all cuts were made');
$proxy->stop;
$far->stop;

is($probe->stop, 0, 'the first client is still the same');
done_testing();
