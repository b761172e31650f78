#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Two and three hosts, each with API and runner, on one MariaDB and on a Galera cluster
# of three: claims, leases, locks, approvals, schedules and notifiers stay correct
# while servers and runners are killed.  `make check-hosts` runs it.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Galera;
use Slipway::Hosts;
use Slipway::Test;

my $dir = tempdir();

sub run_all {
	my ($name, $servers, $n) = @_;
	my $site = Slipway::Hosts->start($name,
		servers => [ map { $servers->[ $_ % @$servers ] } 0 .. $n - 1 ]);
	my @hosts = $site->hosts;
	my $marks = spew("$dir/marks-$name", '', 0666);
	my $api = $hosts[0]{api};
	my $repository = $hosts[0]{runner}->repo;
	my @project = map {
		$site->make('/api/projects', { name => "p$_", repository => $repository,
			defaultBranch => 'main' })->{id}
	} 1 .. 6;
	my $script = "echo \$SLIPWAY_DEPLOYMENT_ID >>$marks; sleep 0.2";
	my %pipeline = map { $_ => $site->make('/api/pipelines', { projectId => $_, name => 'run',
		checkout => 'none', steps => [ { name => 'a', script => $script } ] })->{id} } @project;
	$site->notifier(projectId => $project[1], events => ['succeeded']);
	my $at_once = sub {
		my ($request) = @_;
		return sort { $a <=> $b } $site->at_once(sub {
			my ($on) = @_;
			return served(sub { $request->($on) });
		});
	};
	my (@ids, $killed);

	# --- claims and leases: a server is lost, returns, and then a runner is lost
	my $some = sub { push @ids, map { $site->deploy(projectId => $_, pipelineId => $pipeline{$_}) }
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
	my $lost = $site->ended(@ids);

	# --- a lock that all hosts set at once
	my $lock = "/api/projects/$project[0]/lock";
	my @status = $at_once->(sub {
		return $_[0]{api}->put($lock, { reason => 'incident' }, { 'If-None-Match' => '*' });
	});
	is_deeply(\@status, [ 200, (412) x (@hosts - 1) ], "$name: one host sets a lock, the others see it");
	my %first = (projectId => $project[0], pipelineId => $pipeline{ $project[0] });
	my $tried = sub { my ($on) = @_; return served(sub { $on->{api}->post('/api/deployments',
	    \%first) }) };
	is(join(' ', map { $tried->($_)->{json}{code} } @hosts),
	    join(' ', ('locked') x @hosts), "$name: every host respects the lock");
	is($site->anywhere('DELETE', $lock)->{status}, 204, "$name: any host removes it");

	# --- an approval that all hosts get at once
	my $environment = $site->make('/api/environments', { projectId => $project[0], name => 'live',
		approval => 'required' })->{id};
	my $waits = $site->deploy(%first, environmentId => $environment, branch => 'main',
		commitHash => 'a' x 40);
	my $maintainer = $api->token('maintainer');
	@status = $at_once->(sub {
		return $_[0]{api}->post("/api/deployments/$waits/approve", {},
			{ Authorization => "Bearer $maintainer" });
	});
	is_deeply(\@status, [ 200, (409) x (@hosts - 1) ], "$name: one host accepts an approval");
	push @ids, $waits;
	$lost += $site->ended($waits);

	# --- a schedule that is due for all runners at once
	my $schedule = $site->make('/api/schedules', { projectId => $project[2], name => 'hourly',
		pipelineId => $pipeline{ $project[2] }, cron => '@yearly' })->{id};
	for my $round (1 .. 4) {
		my $last = sub {
			my $got = $site->anywhere('GET', "/api/schedules/$schedule");
			return $got->{json}{lastDeploymentId} || 0;
		};
		my $before = $last->();
		$servers->[0]->sql("UPDATE schedule SET next_at = NOW(3) WHERE id = $schedule");
		$_->{runner}->ring for @hosts;
		my $fired;
		poll(60, sub { return ($fired = $last->()) != $before });
		isnt($fired, $before, "$name: a schedule fires, round $round");
		push @ids, $fired;
		$lost += $site->ended($fired);
	}
	is($servers->[0]->sql("SELECT COUNT(*) FROM deployment WHERE `trigger` = 'schedule'"), 4,
	    "$name: a schedule fires once for all runners");

	# --- what was sent, and what ran
	my $wanted = grep { $_ == $project[1] } map { $site->show($_)->{projectId} } @ids;
	my @sent;
	poll(120, sub {
		@sent = map { $_->{data}{deploymentId} } $site->sent;
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
	$site->stop;
	return;
}

for my $n (2, 3) {
	my $server = Slipway::DB->start;
	run_all("one-server-$n", [ $server ], $n);
	$server->stop;
}
for my $n (2, 3) {
	my @servers = galera_start(3);
	run_all("cluster-$n", \@servers, $n);
	$_->stop for reverse @servers;
}
done_testing();
