# SPDX-License-Identifier: ISC
package Slipway::Galera;

# A Galera cluster of MariaDB servers, each a Slipway::DB with the schema.
#
#   my @nodes = galera_start(3);
#   db_kill($nodes[0]);
#   db_return($nodes[0]);            waits until it is in the cluster again
#
# The nodes begin with copies of one data directory and catch up by increments, so
# no node ever copies another one's data.  The last two also serve a single server.

use strict;
use warnings;
use Exporter 'import';
use Slipway::DB;
use Slipway::Test;

our @EXPORT = qw(db_kill db_return galera_start);

# How fast a lost node is noticed: in a second instead of six.
my $timing = join ';', 'evs.keepalive_period=PT0.2S', 'evs.inactive_check_period=PT0.1S',
    'evs.suspect_timeout=PT1S', 'evs.inactive_timeout=PT3S', 'evs.install_timeout=PT2S',
    'evs.join_retrans_period=PT0.2S', 'gmcast.peer_timeout=PT1S', 'gmcast.time_wait=PT1S';

sub _args {
	my ($i, @ports) = @_;
	my ($provider) = grep { -e } map { "$_/galera/libgalera_smm.so" } '/usr/lib', '/usr/lib64';
	die "galera-4 is missing\n" if !$provider;
	my $n = $i + 1;
	return [ '--wsrep-on=ON', "--wsrep-provider=$provider", '--wsrep-cluster-name=slipway',
		'--wsrep-cluster-address=gcomm://' . join(',', map { "127.0.0.1:$_->[0]" } @ports),
		"--wsrep-node-name=n$n", '--wsrep-node-address=127.0.0.1', '--wsrep-sst-method=increment',
		'--binlog-format=ROW', '--innodb-autoinc-lock-mode=2', "--server-id=$n",
		'--wsrep-auto-increment-control=OFF', '--auto-increment-increment=' . @ports,
		"--auto-increment-offset=$n", '--innodb-lock-wait-timeout=3',
		"--wsrep-provider-options=base_host=127.0.0.1;base_port=$ports[$i][0];"
		    . "gmcast.listen_addr=tcp://127.0.0.1:$ports[$i][0];"
		    . "ist.recv_addr=127.0.0.1:$ports[$i][1];gcache.size=64M;$timing" ];
}

sub _joined {
	my ($node) = @_;
	poll(120, sub { return ($node->client("SHOW STATUS LIKE 'wsrep_ready'", 'mysql'))[1] =~ /ON/ })
	    or die 'a node does not join: ' . $node->sql("SHOW STATUS LIKE 'wsrep_%'", 'mysql');
	return $node;
}

# A state transfer that only passes on where the increments begin.
my $increment = <<'SCRIPT';
#!/bin/bash
set -eu
bypass=
while [ $# -gt 0 ]; do
	case $1 in
	--role | --address | --datadir | --gtid) declare "${1#--}=$2" ;;
	--bypass) bypass=yes ;;
	esac
	shift
done
if [ "$role" = joiner ]; then
	from=${datadir%/}.position
	rm -f "$from"
	echo "ready 127.0.0.1:1$from"
	until [ -s "$from" ]; do sleep 0.1; done
	cat "$from"
elif [ "$bypass" ]; then
	echo "$gtid" >"/${address#*/}.new"
	mv "/${address#*/}.new" "/${address#*/}"
	echo "done $gtid"
else
	exit 1
fi
SCRIPT

sub galera_start {
	my ($n) = @_;
	my $bin = tempdir() . '/bin';
	-d $bin || mkdir $bin or die "$bin: $!";
	spew("$bin/wsrep_sst_increment", $increment, 0755);
	local $ENV{PATH} = "$bin:$ENV{PATH}";
	my @ports = map { [ free_port(), free_port() ] } 1 .. $n;
	my ($first, @others) = map { _args($_, @ports) } 0 .. $n - 1;
	my @alone = map { s{gcomm://.*}{gcomm://}r } @$first;
	my $node = _joined(Slipway::DB->start(args => \@alone));
	$node->stop;
	# the state of a cluster that was shut down, from which each node can begin
	my @nodes = ($node, map { Slipway::DB->start(data => $node->{data}, idle => 1, args => $_) } @others);
	$node->{args} = $first;
	_joined($node->resume('--wsrep-new-cluster'));
	_joined($_->resume) for @nodes[1 .. $#nodes];
	return @nodes;
}

sub db_kill {
	my ($node) = @_;
	return stop_process($node->pid, 'KILL');
}

# A node that was killed asks its own log where it stopped.
sub db_return {
	my ($node) = @_;
	local $ENV{PATH} = tempdir() . "/bin:$ENV{PATH}";
	return $node->resume if !grep { /^--wsrep-on/ } @{ $node->{args} || [] };
	my $log = "$node->{dir}/recovered.err";
	unlink $log;
	run_cmd($node->command('--wsrep-recover', "--log-error=$log"));
	my ($position) = (slurp($log) || '') =~ /.*WSREP: Recovered position:\s*(\S+)/s;
	return _joined($node->resume($position ? "--wsrep-start-position=$position" : ()));
}

1;
