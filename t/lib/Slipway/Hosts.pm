# SPDX-License-Identifier: ISC
package Slipway::Hosts;

# A site with several hosts, each with an API and a runner, which share keys,
# configuration and database.
#
#   my $site = Slipway::Hosts->start('name', servers => \@servers);   one host for each
#   $site->anywhere('GET', $path);       from a host at random that can serve it
#   $site->make('/api/projects', { … }); likewise; the object
#   my $id = $site->deploy(projectId => …);
#   $site->ended($id, …);                how many of them did not succeed
#   my @got = $site->at_once(sub { $_[0]{api}->post(…) }, sub { … });
#                                        responses of all hosts, and what happens meanwhile
#   $site->sent;                         the messages that notifiers have sent
#
# Options: live => 1 starts slipway-live, too.  A host has the members api, runner and
# db.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Exporter 'import';
use POSIX ();
use Slipway::API;
use Slipway::Certificate;
use Slipway::Runner;
use Slipway::Test;

our @EXPORT = qw(served);

my $json = Cpanel::JSON::XS->new;
my ($https, $received);

# One receiver of messages for all sites.
sub _receive {
	return if $https;
	my $dir = tempdir();
	make_front($dir);
	$https = free_port();
	$received = "$dir/received";
	start_process({ name => 'receivers' }, '/usr/bin/python3', srcdir() . '/t/receivers.py', free_port(),
	    $https, "$dir/cert.pem", "$dir/cert.key", $received);
	return;
}

sub start {
	my ($class, $name, %opt) = @_;
	_receive();
	my $dir = tempdir();
	my $keys = "$dir/keys-$name";
	mkdir $keys or die "$keys: $!";
	my @servers = @{ $opt{servers} };
	my $conf = "[secrets]\nkey_file = $keys/secret.key\n[gitserver]\nallow_local = yes\n"
	    . "[notify]\nprivate_networks = 127.0.0.1\ntls_ca = $dir/ca.pem\n"
	    . "[api]\nurl = https://slipway.example.org\n[runner]\npoll = 1\nlease = 300\n";
	make_keys(spew("$keys/slipway.conf", $servers[0]->conf . $conf, 0600), "$keys/secret.key");
	my @hosts = map {
		my $runner = Slipway::Runner->start(db => $_, conf => $conf);
		my $api = Slipway::API->start(db => $_, migrated => 1,
			conf => "${conf}[runner]\nwake_socket = " . $runner->wake_socket . "\n");
		$api->start_live if $opt{live};
		{ db => $_, api => $api, runner => $runner }
	} @servers;
	return bless { name => $name, hosts => \@hosts, keys => 0 }, $class;
}

sub hosts { my ($self) = @_; return @{ $self->{hosts} } }
sub stop {
	my ($self) = @_;
	for ($self->hosts) {
		$_->{runner}->stop;
		stop_process($_->{api}->live_pid) if $_->{api}->live_pid;
		$_->{api}->stop;
	}
	return;
}

# Repeats a request that a host cannot serve, as its server rejoins the cluster.
sub served {
	my ($request) = @_;
	my $got;
	poll(120, sub { return ($got = $request->())->{status} < 500 });
	return $got;
}

sub anywhere {
	my ($self, $method, $path, @more) = @_;
	my @hosts = $self->hosts;
	my $got = served(sub { $hosts[ rand @hosts ]{api}->request($method, $path, @more) });
	die "$method $path: no host serves it: $got->{status} $got->{body}\n" if $got->{status} >= 500;
	return $got;
}

sub make {
	my ($self, $path, @more) = @_;
	my $got = $self->anywhere('POST', $path, @more);
	die "POST $path: $got->{status} $got->{body}\n" if $got->{status} != 201;
	return $got->{json};
}

# A notifier for the messages of these events.
sub notifier {
	my ($self, %body) = @_;
	return $self->make('/api/notifiers',
	    { kind => 'webhook', target => "https://localhost:$https/$self->{name}", %body })->{id};
}

# The headers and the data of each message that has arrived.
sub sent {
	my ($self) = @_;
	return map { { id => $_->{headers}{'webhook-id'}, %{ $json->decode($_->{body}) } } }
	    grep { $_->{kind} eq 'post' && $_->{path} eq "/$self->{name}" } json_lines($received);
}

sub deploy {
	my ($self, %body) = @_;
	return $self->make('/api/deployments', \%body,
	    { 'Idempotency-Key' => "$self->{name}-" . ++$self->{keys} })->{id};
}
sub show { my ($self, $id) = @_; return $self->anywhere('GET', "/api/deployments/$id")->{json} }
sub ended {
	my ($self, @ids) = @_;
	my %left = map { $_ => 1 } @ids;
	return poll(300, sub {
		for my $id (keys %left) { delete $left{$id} if $self->show($id)->{status} eq 'success' }
		return !%left;
	}) ? 0 : scalar keys %left;
}

# The statuses of requests that all hosts get at the same time, in their order.
sub at_once {
	my ($self, $request, $meanwhile) = @_;
	pipe my $wait, my $go or die "pipe: $!";
	my @answers = map {
		my $host = $_;
		pipe my $from, my $to or die "pipe: $!";
		my $pid = fork // die "fork: $!";
		if (!$pid) {
			close $go;
			<$wait>;
			syswrite $to, $request->($host)->{status};
			POSIX::_exit(0);
		}
		[ $pid, $from ]
	} $self->hosts;
	close $go;
	$meanwhile->() if $meanwhile;
	return map { waitpid $_->[0], 0; sysread $_->[1], my $status, 9; $status } @answers;
}

1;
