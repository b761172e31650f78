#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB as a node of a Galera cluster (of one): the schema, transactions that
# happen once, and the time when the node will not serve.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my ($provider) = grep { -e } map { "$_/galera/libgalera_smm.so" } '/usr/lib', '/usr/lib64';
ok(defined $provider, 'galera-4 is there, as mariadb-server needs it') or die 'install galera-4';
my $port = free_port();
my $db = Slipway::DB->start(args => ['--wsrep-on=ON', "--wsrep-provider=$provider", '--wsrep-cluster-address=gcomm://',
	'--binlog-format=ROW', '--innodb-autoinc-lock-mode=2', '--wsrep-node-address=127.0.0.1',
	"--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:$port;ist.recv_addr=127.0.0.1:" . free_port()
	    . ';gcache.size=8M']);
is($db->sql("SHOW STATUS LIKE 'wsrep_cluster_status'"), "wsrep_cluster_status\tPrimary", 'a cluster of one');
$db->migrate;
Slipway::Probe->tables($db);
is($db->sql(<<'SQL'), '', 'nothing in the schema that a cluster cannot have');
SELECT t.table_name FROM information_schema.tables t WHERE t.table_schema = 'slipway' AND (t.engine <> 'InnoDB'
OR NOT EXISTS (SELECT 1 FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema
AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'))
SQL
my $proxy = Slipway::Proxy->start($db->socket);
my $probe = Slipway::Probe->start($db->conf_file(socket => $proxy->socket, timeout => 2));
sub written {
	my ($text) = @_;
	return $db->sql("SELECT COUNT(*) FROM probe_log WHERE text = '$text'");
}

like($probe->ask('ping'), qr/^ok/, 'it is read');
like($probe->ask('write one'), qr/^ok/, 'and written');
is($probe->ask('add one'), 'ok 1', 'transactions');
is(written('one'), 2, 'each once');
for my $how ('before', 'answer', 'after') {
	$proxy->plan("commit $how");
	like($probe->ask("add commit-$how"), qr/^ok \d$/, "COMMIT cut ($how) is settled");
	is(written("commit-$how"), 1, 'and has happened once');
}

# --- a node that has lost its cluster says 1047 to all that touches a table
$db->sql('SET GLOBAL wsrep_reject_queries = ALL', 'mysql');
for my $what ('ping', 'write no', 'add no') {
	like($probe->ask($what), qr/^err unavailable/, "$what: unavailable");
	cmp_ok($probe->took, '<', deadline(20), 'in time');
}
like($probe->ask('ping'), qr/^err unavailable/, 'still');
my $other = Slipway::Probe->start($db->conf_file);
like($other->ask('ping'), qr/^err unavailable 1047/, 'to a new connection as well');
$other->stop;
$db->sql('SET GLOBAL wsrep_reject_queries = NONE', 'mysql');
ok(poll(15, sub { $probe->ask('ping') =~ /^ok/ }), 'it serves again');
is($probe->ask('add back'), 'ok 1', 'all of it');
is(written('no'), 0, 'nothing was written meanwhile');
$proxy->stop;
is($probe->stop, 0, 'with the client that was there');
done_testing();
