# SPDX-License-Identifier: ISC
package Slipway::Bench::Rows;

# The rows of the benchmark, in the order in which they are measured.
#
#   key        names the row in BENCH_ROWS and in the JSON file
#   figures    what is printed of it, see Slipway::Bench::Figures
#   missing    returns why the row cannot be measured, or undef
#   prepare    runs once, unmeasured
#   measure    one round of slipway; yardstick_measure: one of the yardstick
#   yardstick_missing   returns why there is no yardstick, or undef
#   rounds     how often both alternate, unless it is the usual number

use strict;
use warnings;
use Slipway::Bench::Bare;
use Slipway::Bench::Client;
use Slipway::Bench::Figures qw(percentile);
use Slipway::Bench::Idle;
use Slipway::Bench::Jobs;
use Slipway::Bench::Laminar;
use Slipway::Bench::Log;
use Slipway::Test;

sub _rate { my (@goal) = @_; return { name => 'rate', unit => 'requests/s', @goal ? (goal => \@goal) : () } }
# Processor time of nginx, MariaDB and the workers: less noisy than the rate.
my $cpu = { name => 'cpu', unit => 'us/request' };
sub _p99 { my (@goal) = @_; return { name => 'p99', unit => 'ms', @goal ? (goal => \@goal) : () } }
sub _jobs { my (@goal) = @_; return { name => 'rate', unit => 'jobs/s', goal => \@goal } }
sub _samples {
	my ($percent, @goal) = @_;
	return { name => "p$percent", unit => 'ms', of => 'ms', at => $percent / 100,
		@goal ? (goal => \@goal) : () };
}

# One round of load, with the processor time for a request.
sub _round {
	my ($site, $run, $path, %opt) = @_;
	my @pids = $site->server_pids;
	my $before = cpu_time(@pids);
	my $round = $site->client->load($path, seconds => $run->{seconds}, %opt);
	my $used = cpu_time(@pids) - $before;
	return { %$round, cpu => 1e6 * $used / ($round->{rate} * $run->{seconds}) };
}

# A path of the service beside one of the bare loop, under load.
sub _load {
	my ($key, $name, $path, $bare, $connections, @figures) = @_;
	my $side = sub {
		my ($of) = @_;
		return sub {
			my ($site, $run) = @_;
			return _round($site, $run, $of->($site), connections => $connections);
		};
	};
	return { key => $key, name => $name, yardstick => 'bare libfcgi loop',
		figures => [ @figures, $cpu ],
		missing => \&Slipway::Bench::Client::missing,
		prepare => sub { my ($site) = @_; return $site->difference($path->($site), $bare) },
		measure => $side->($path), yardstick_measure => $side->(sub { $bare }) };
}

sub _deploy_body {
	my ($site) = @_;
	return "{\"projectId\":@{[$site->project]},\"pipelineId\":@{[$site->pipeline('noop')]}}";
}

# POSTs on one connection while no runner takes them.
sub _posts {
	my ($path) = @_;
	return sub {
		my ($site, $run) = @_;
		my $round = _round($site, $run, $path, connections => 1, body => _deploy_body($site));
		$site->clear_queue;
		return $round;
	};
}

sub _bare_inserts {
	my ($site, $run) = @_;
	my @ms = $site->bare_inserts($run->{seconds});
	$site->clear_queue;
	my $total = 0;
	$total += $_ for @ms;
	return { rate => 1000 * @ms / $total, p50 => percentile(0.5, @ms),
		p99 => percentile(0.99, @ms) };
}

sub _first_byte {
	my ($key, $name, $checkout, @goals) = @_;
	return { key => $key, name => $name,
		figures => [ map { _samples(@$_) } @goals ],
		missing => sub { my ($site) = @_; return $checkout ? undef : $site->no_checkout_missing },
		prepare => sub { Slipway::Bench::Jobs::warm($_[0], $checkout); return undef },
		measure => sub { return Slipway::Bench::Jobs::latencies($_[0], $checkout, $_[1]{posts}) },
		yardstick => $checkout ? 'git fetch, checkout -f, clean by hand'
		    : 'bare loop and bare runner',
		yardstick_measure => sub {
			my ($site, $run) = @_;
			return $checkout ? Slipway::Bench::Jobs::git_by_hand($site, $run->{posts})
			    : Slipway::Bench::Bare::latencies($site, $run->{posts});
		} };
}

# A checkout takes much longer than the job.
sub _jobs_of { my ($checkout, $run) = @_; return $checkout ? int(($run->{jobs} + 3) / 4) * 2 : $run->{jobs} }

sub _queue {
	my ($key, $name, $checkout, @rest) = @_;
	return { key => $key, name => $name, @rest,
		missing => sub { my ($site) = @_; return $checkout ? undef : $site->no_checkout_missing },
		prepare => sub { Slipway::Bench::Jobs::warm_all($_[0], $checkout); return undef },
		measure => sub {
			my ($site, $run) = @_;
			return Slipway::Bench::Jobs::drain($site, $checkout, _jobs_of($checkout, $run));
		} };
}

my $project = sub { my ($site) = @_; return '/api/projects/' . $site->project };

our @rows = (
	{ key => 'idle', name => 'idle service', rounds => 1, yardstick => 'Laminar',
		figures => [
			{ name => 'pss', unit => 'MiB', goal => [at_most => 15] },
			{ name => 'writes', unit => 'writes/min', goal => [at_most => 1], alone => 1 },
			{ name => 'wakes', unit => 'wakes/min', alone => 1 } ],
		measure => sub { return Slipway::Bench::Idle::measure($_[0], $_[1]{idle}) },
		yardstick_missing => \&Slipway::Bench::Laminar::missing,
		yardstick_measure => \&Slipway::Bench::Laminar::idle },
	_load('read16', 'project read, 16 connections', $project, '/bare/project', 16,
		_rate(ratio_at_least => 1), _p99(ratio_at_most => 1)),
	_load('read1', 'project read, one connection', $project, '/bare/project', 1,
		_rate(ratio_at_least => 1), { name => 'p50', unit => 'ms' }, _p99()),
	_load('list', 'list of 20 deployments, 16 connections', sub { '/api/deployments?limit=20' },
		'/bare/deployments?limit=20', 16, _rate(ratio_at_least => 0.9), _p99()),
	{ key => 'post', name => 'POST deployment, one connection',
		yardstick => 'bare transaction of two inserts',
		figures => [ _rate(ratio_at_least => 0.7), { name => 'p50', unit => 'ms' }, _p99() ],
		missing => \&Slipway::Bench::Client::missing,
		prepare => sub { $_[0]->stop_runner; return undef },
		measure => _posts('/api/deployments'), yardstick_measure => \&_bare_inserts },
	{ key => 'postloop', name => 'POST deployment, one connection',
		yardstick => 'bare loop with the same transaction',
		figures => [ _rate(), _p99(), $cpu ],
		missing => \&Slipway::Bench::Client::missing,
		prepare => sub { $_[0]->stop_runner; return undef },
		measure => _posts('/api/deployments'), yardstick_measure => _posts('/bare/deployments') },
	_first_byte('checkout', 'POST to first script byte, fetch, checkout', 1,
		[50, over => 8], [99, over => 20]),
	_first_byte('nocheckout', 'POST to first script byte, no checkout', 0, [50, at_most => 5],
		[99, at_most => 15]),
	_queue('queue', 'no-op jobs, 20 projects, no checkout', 0, figures => [_jobs(at_least => 500)],
		yardstick => 'Laminar', yardstick_missing => \&Slipway::Bench::Laminar::missing,
		yardstick_measure => sub { return Slipway::Bench::Laminar::drain($_[1]{jobs}) }),
	_queue('queuebare', 'no-op jobs, 20 projects, no checkout', 0,
		figures => [_jobs(ratio_at_least => 0.5)], yardstick => 'bare runner',
		yardstick_measure => sub { return Slipway::Bench::Bare::drain($_[0], $_[1]{jobs}) }),
	_queue('queuegit', 'no-op jobs, 20 projects, checkout', 1, figures => [_jobs(ratio_at_least => 0.8)],
		yardstick => 'the three git commands, two at a time',
		yardstick_measure => sub {
			my ($site, $run) = @_;
			return Slipway::Bench::Jobs::git_two_at_a_time($site, _jobs_of(1, $run));
		}),
	{ key => 'follow', name => 'log: from a write to a waiting reader', rounds => 1,
		figures => [ _samples(50), _samples(99, at_most => 250) ],
		measure => sub { return Slipway::Bench::Log::latencies($_[0], $_[1]{lines}) } },
	{ key => 'log', name => 'log: a step that writes without a pause', rounds => 1,
		figures => [ { name => 'rate', unit => 'MiB/s' }, { name => 'rss', unit => 'MiB' } ],
		measure => sub { return Slipway::Bench::Log::volume($_[0], $_[1]{log}) } },
	{ key => 'memory', name => 'the service after this run', rounds => 1,
		figures => [ { name => 'pss', unit => 'MiB' } ],
		measure => sub {
			my ($site) = @_;
			$site->start_runner;
			return { pss => Slipway::Bench::Idle::pss($site->pids) };
		} },
);

1;
