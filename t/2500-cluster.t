#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB as a node of a Galera cluster (of one): the schema fits, transactions
# happen once, and a node that rejects queries makes the database unavailable.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my ($provider) = grep { -e } map { "$_/galera/libgalera_smm.so" } '/usr/lib', '/usr/lib64';
ok(defined $provider, 'galera-4 is installed, as mariadb-server requires') or die 'install galera-4';
my $port = free_port();
my $db = Slipway::DB->start(args => ['--wsrep-on=ON', "--wsrep-provider=$provider",
	'--wsrep-cluster-address=gcomm://', '--binlog-format=ROW', '--innodb-autoinc-lock-mode=2',
	'--wsrep-node-address=127.0.0.1',
	"--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:$port;ist.recv_addr=127.0.0.1:"
	    . free_port()
	    . ';gcache.size=8M']);
is($db->sql("SHOW STATUS LIKE 'wsrep_cluster_status'"), "wsrep_cluster_status\tPrimary",
    'the server is the primary node of a cluster');
$db->migrate;
Slipway::Probe->tables($db);
is($db->sql(<<'SQL'), '', 'every table is InnoDB with a primary key, as a cluster requires');
SELECT t.table_name FROM information_schema.tables t
WHERE t.table_schema = 'slipway' AND (t.engine <> 'InnoDB'
OR NOT EXISTS (SELECT 1 FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema
AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'))
SQL
my $proxy = Slipway::Proxy->start($db->socket);
my $probe = Slipway::Probe->start($db->conf_file(socket => $proxy->socket, timeout => 2));
sub written { return Slipway::Probe->written($db, @_) }

like($probe->ask('ping'), qr/^ok/, 'the client can read from a node');
like($probe->ask('write one'), qr/^ok/, 'the client can write to a node');
is($probe->ask('add one'), 'ok 1', 'a transaction on a node succeeds');
is(written('one'), 2, 'the write and the transaction happened once each');
for my $how ('before', 'answer', 'after') {
	$proxy->plan("commit $how");
	like($probe->ask("add commit-$how"), qr/^ok \d$/,
	    "a transaction whose COMMIT was cut ($how) succeeds");
	is(written("commit-$how"), 1, "a transaction whose COMMIT was cut ($how) happened once");
}

# --- a node that lost its cluster answers error 1047 to every statement with a table
$db->sql('SET GLOBAL wsrep_reject_queries = ALL', 'mysql');
for my $what ('ping', 'write no', 'add no') {
	like($probe->ask($what), qr/^err unavailable/,
	    "\"$what\" is unavailable on a node that rejects queries");
	cmp_ok($probe->took, '<', deadline(20), "\"$what\" fails in time on a node that rejects queries");
}
like($probe->ask('ping'), qr/^err unavailable/,
    'the database stays unavailable while the node rejects queries');
my $other = Slipway::Probe->start($db->conf_file);
like($other->ask('ping'), qr/^err unavailable 1047/, 'a new connection gets error 1047');
$other->stop;
$db->sql('SET GLOBAL wsrep_reject_queries = NONE', 'mysql');
ok(poll(15, sub { $probe->ask('ping') =~ /^ok/ }), 'the client can read once the node accepts queries');
is($probe->ask('add back'), 'ok 1', 'a transaction succeeds once the node accepts queries');
is(written('no'), 0, 'failed calls wrote nothing');
$proxy->stop;
is($probe->stop, 0, 'the client that survived it ends with status 0');
done_testing();
