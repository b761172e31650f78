#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Two and three hosts, each with API and runner, on one MariaDB and on a Galera cluster
# of three: claims, leases, locks, approvals, schedules and notifiers stay correct
# while servers and runners are killed.  `make check-hosts` runs it.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use POSIX ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Front;
use Slipway::Galera;
use Slipway::Runner;
use Slipway::Test;

my $dir = tempdir();
front_certificate($dir);
my $https = free_port();
my $received = "$dir/received";
start_process({ name => 'receivers' }, '/usr/bin/python3', srcdir() . '/t/receivers.py', free_port(), $https,
    "$dir/cert.pem", "$dir/cert.key", $received);

# One API and one runner for each server in the list, with the same keys.
sub hosts {
	my ($name, @servers) = @_;
	my $keys = "$dir/keys-$name";
	mkdir $keys or die "$keys: $!";
	my $conf = "[secrets]\nkey_file = $keys/secret.key\n[gitserver]\nallow_local = yes\n"
	    . "[notify]\nprivate_networks = 127.0.0.1\ntls_ca = $dir/ca.pem\n"
	    . "[api]\nurl = https://slipway.example.org\n[runner]\npoll = 1\nlease = 60\n";
	make_keys(spew("$keys/slipway.conf", $servers[0]->conf . $conf, 0600), "$keys/secret.key");
	return map {
		my $runner = Slipway::Runner->start(db => $_, conf => $conf);
		my $api = Slipway::API->start(db => $_, migrated => 1,
			conf => "${conf}[runner]\nwake_socket = " . $runner->wake_socket . "\n");
		{ db => $_, api => $api, runner => $runner }
	} @servers;
}

# Sends a request to a host at random, and to another one until one serves it.
sub anywhere {
	my ($hosts, $method, $path, $body, $headers) = @_;
	my $got;
	poll(120, sub {
		$got = $hosts->[ rand @$hosts ]{api}->request($method, $path, $body, $headers);
		return $got->{status} < 500;
	}) or die "$method $path: no host serves it: $got->{status} $got->{body}\n";
	return $got;
}
sub make {
	my ($hosts, $path, $body, $headers) = @_;
	my $got = anywhere($hosts, 'POST', $path, $body, $headers);
	die "POST $path: $got->{status} $got->{body}\n" if $got->{status} != 201;
	return $got->{json};
}

# Repeats a request that a host cannot serve, as its server rejoins the cluster.
sub served {
	my ($request) = @_;
	my $got;
	poll(120, sub { return ($got = $request->())->{status} < 500 });
	return $got;
}

# The statuses of requests that all hosts get at the same time.
sub at_once {
	my ($hosts, $request) = @_;
	pipe my $wait, my $go or die "pipe: $!";
	my @answers = map {
		my $host = $_;
		pipe my $from, my $to or die "pipe: $!";
		my $pid = fork // die "fork: $!";
		if (!$pid) {
			close $go;
			<$wait>;
			syswrite $to, served(sub { $request->($host) })->{status};
			POSIX::_exit(0);
		}
		[ $pid, $from ]
	} @$hosts;
	close $go;
	return sort map { waitpid $_->[0], 0; sysread $_->[1], my $status, 9; $status } @answers;
}

my $keys = 0;
sub deploy {
	my ($hosts, %body) = @_;
	my $key = 'many-hosts-' . ++$keys;
	return make($hosts, '/api/deployments', \%body, { 'Idempotency-Key' => $key })->{id};
}
sub show { my ($hosts, $id) = @_; return anywhere($hosts, 'GET', "/api/deployments/$id")->{json} }
sub ended {
	my ($hosts, @ids) = @_;
	my %left = map { $_ => 1 } @ids;
	return poll(300, sub {
		for my $id (keys %left) { delete $left{$id} if show($hosts, $id)->{status} eq 'success' }
		return !%left;
	}) ? 0 : scalar keys %left;
}

sub run_all {
	my ($name, $servers, @hosts) = @_;
	my $hosts = \@hosts;
	my $marks = spew("$dir/marks-$name", '', 0666);
	my $api = $hosts[0]{api};
	my $repository = $hosts[0]{runner}->repo;
	my @project = map {
		make($hosts, '/api/projects', { name => "p$_", repository => $repository,
			defaultBranch => 'main' })->{id}
	} 1 .. 6;
	my $script = "echo \$SLIPWAY_DEPLOYMENT_ID >>$marks; sleep 0.2";
	my %pipeline = map { $_ => make($hosts, '/api/pipelines', { projectId => $_, name => 'run',
		checkout => 'none', steps => [ { name => 'a', script => $script } ] })->{id} } @project;
	make($hosts, '/api/notifiers', { kind => 'webhook', projectId => $project[1],
		target => "https://localhost:$https/$name", events => ['succeeded'] });
	my (@ids, $killed);

	# --- claims and leases: a server is lost, returns, and then a runner is lost
	my $some = sub { push @ids, map { deploy($hosts, projectId => $_, pipelineId => $pipeline{$_}) }
		(@project) x shift };
	$some->(1);
	for my $server ((@$servers) x 2) {
		db_kill($server);
		$killed++;
		$some->(2) if @$servers > 1; # the other servers accept them
		db_return($server);
		$some->(1);
	}
	for my $host (@hosts) {
		$host->{runner}->kill9;
		$killed++;
		$some->(1);
		$host->{runner}->resume;
	}
	my $lost = ended($hosts, @ids);

	# --- a lock that all hosts set at once
	my $lock = "/api/projects/$project[0]/lock";
	my @status = at_once($hosts, sub {
		return $_[0]{api}->put($lock, { reason => 'incident' }, { 'If-None-Match' => '*' });
	});
	is_deeply(\@status, [ 200, (412) x (@hosts - 1) ], "$name: one host sets a lock, the others see it");
	my %first = (projectId => $project[0], pipelineId => $pipeline{ $project[0] });
	my $tried = sub { my ($on) = @_; return served(sub { $on->{api}->post('/api/deployments',
	    \%first) }) };
	is(join(' ', map { $tried->($_)->{json}{code} } @hosts),
	    join(' ', ('locked') x @hosts), "$name: every host respects the lock");
	is(anywhere($hosts, 'DELETE', $lock)->{status}, 204, "$name: any host removes it");

	# --- an approval that all hosts get at once
	my $environment = make($hosts, '/api/environments', { projectId => $project[0], name => 'live',
		approval => 'required' })->{id};
	my $waits = deploy($hosts, %first, environmentId => $environment, branch => 'main',
		commitHash => 'a' x 40);
	my $maintainer = $api->token('maintainer');
	@status = at_once($hosts, sub {
		return $_[0]{api}->post("/api/deployments/$waits/approve", {},
			{ Authorization => "Bearer $maintainer" });
	});
	is_deeply(\@status, [ 200, (409) x (@hosts - 1) ], "$name: one host accepts an approval");
	push @ids, $waits;
	$lost += ended($hosts, $waits);

	# --- a schedule that is due for all runners at once
	my $schedule = make($hosts, '/api/schedules', { projectId => $project[2], name => 'hourly',
		pipelineId => $pipeline{ $project[2] }, cron => '@yearly' })->{id};
	for my $round (1 .. 4) {
		my $last = sub {
			my $got = anywhere($hosts, 'GET', "/api/schedules/$schedule");
			return $got->{json}{lastDeploymentId} || 0;
		};
		my $before = $last->();
		$servers->[0]->sql("UPDATE schedule SET next_at = NOW(3) WHERE id = $schedule");
		$_->{runner}->ring for @hosts;
		my $fired;
		poll(60, sub { return ($fired = $last->()) != $before });
		isnt($fired, $before, "$name: a schedule fires, round $round");
		push @ids, $fired;
		$lost += ended($hosts, $fired);
	}
	is($servers->[0]->sql("SELECT COUNT(*) FROM deployment WHERE `trigger` = 'schedule'"), 4,
	    "$name: a schedule fires once for all runners");

	# --- what was sent, and what ran
	my $wanted = grep { $_ == $project[1] } map { show($hosts, $_)->{projectId} } @ids;
	my @sent;
	poll(120, sub {
		@sent = map { decode_json($_->{body})->{data}{deployment}{id} // $_->{body} }
		    grep { $_->{kind} eq 'post' && $_->{path} eq "/$name" }
		    json_lines($received);
		my %distinct = map { $_ => 1 } @sent;
		return keys %distinct >= $wanted;
	});
	my %sent;
	$sent{$_}++ for @sent;
	is(scalar keys %sent, $wanted, "$name: each success is sent");
	my %ran;
	$ran{$_}++ for split ' ', slurp($marks);
	my $twice = grep { $_ > 1 } values %ran;
	my $claims = $servers->[0]->sql('SELECT SUM(epoch) FROM deployment');
	is($lost, 0, "$name: no deployment is lost");
	is($twice, 0, "$name: no deployment runs twice");
	is_deeply([ sort { $a <=> $b } keys %ran ], [ sort { $a <=> $b } @ids ], "$name: each one has run");
	my $again = grep { $_ > 1 } values %sent;
	diag("$name: " . @hosts . ' hosts, ' . @ids . " deployments, claims tried $claims, killed $killed, "
	    . "lost $lost, twice $twice; messages sent twice $again");
	for (@hosts) { $_->{runner}->stop; $_->{api}->stop }
	return;
}

for my $n (2, 3) {
	my $server = Slipway::DB->start;
	run_all("one-server-$n", [ $server ], hosts("one-server-$n", ($server) x $n));
	$server->stop;
}
for my $n (2, 3) {
	my @servers = galera_start(3);
	run_all("cluster-$n", \@servers, hosts("cluster-$n", @servers[0 .. $n - 1]));
	$_->stop for reverse @servers;
}
done_testing();
