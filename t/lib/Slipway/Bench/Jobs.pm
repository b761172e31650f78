# SPDX-License-Identifier: ISC
package Slipway::Bench::Jobs;

# Measures deployments: the time from POST to the first byte of a script, and how fast
# a filled queue empties; and the same git commands by hand.
#
# Each function returns one round: { ms => [milliseconds, …] } or { rate => jobs/s }.

use strict;
use warnings;
use Slipway::Test;
use Time::HiRes qw(sleep time);

my $projects = 20;

# checkout => 0: pipelines without one.
sub _pipeline {
	my ($site, $script, $checkout, $project) = @_;
	return $site->pipeline($script, project => $project, more => $checkout ? {} : { checkout => 'none' });
}

# --- one deployment after the other

sub warm {
	my ($site, $checkout) = @_;
	$site->start_runner;
	$site->wait($site->deploy(_pipeline($site, 'stamp', $checkout))) for 1 .. 3;
	return;
}

# From just before POST to the time that the script prints first.
sub latencies {
	my ($site, $checkout, $n) = @_;
	my $pipeline = _pipeline($site, 'stamp', $checkout);
	$site->start_runner;
	$site->wait($site->deploy($pipeline)); # a runner that has just started is not ready yet
	my @ms;
	for (1 .. $n) {
		my ($id, $posted) = $site->deploy($pipeline);
		my ($log, $is_over) = ('', 0);
		while (!$is_over) {
			my $got = $site->client->request(GET =>
			    "/api/deployments/$id/log?wait=20&offset=" . length $log);
			$log .= $got->{body};
			$is_over = ($got->{headers}{'x-log-complete'} || 'true') eq 'true';
		}
		die "deployment $id printed no time: $log" if $log !~ /^(\d{10}\.\d{6})$/m;
		push @ms, 1000 * ($1 - $posted);
	}
	return { ms => \@ms };
}

# A clone for each project, as the runner has one.
sub clone {
	my ($site) = @_;
	my $dir = tempdir() . '/hand';
	return $dir if -d $dir;
	mkdir $dir or die "$dir: $!";
	for (1 .. $projects) {
		my ($status, undef, $err) = run_cmd('git', 'clone', '-q', $site->repository, "$dir/$_");
		die "git clone: $err" if $status != 0;
	}
	return $dir;
}

my $by_hand = 'git -C "$d" fetch -q origin main && git -C "$d" checkout -qf FETCH_HEAD'
    . ' && git -C "$d" clean -qfd || exit 1';

# The three commands of a checkout without changes, by a shell that prints the time
# between them.
sub git_by_hand {
	my ($site, $n) = @_;
	my $dir = clone($site);
	my ($status, $out, $err) = run_cmd('bash', '-c', "d=$dir/1; for ((i = 0; i < $n; i++)); do"
	    . " a=\$EPOCHREALTIME; $by_hand; echo \$a \$EPOCHREALTIME; done");
	die "git: $err" if $status != 0;
	return { ms => [ map { my ($a, $b) = split; 1000 * ($b - $a) } split /\n/, $out ] };
}

# --- a filled queue

sub projects {
	my ($site) = @_;
	return @{ $site->{many} ||= [ map { $site->add_project("project $_") } 1 .. $projects ] };
}

# A deployment in each project, so that every directory exists.
sub warm_all {
	my ($site, $checkout) = @_;
	drain($site, $checkout, $projects);
	return;
}

# Fills the queue while no runner is active, then counts from the first start to the
# last end.
sub drain {
	my ($site, $checkout, $n) = @_;
	my @of = projects($site);
	$site->stop_runner;
	my $first;
	for my $i (0 .. $n - 1) {
		my $project = $of[$i % @of];
		my $id = $site->deploy(_pipeline($site, 'noop', $checkout, $project), $project);
		$first //= $id;
	}
	$site->start_runner;
	return { rate => rate($site, $first, $n) };
}

# Waits until the queue is empty; how many jobs a second ran from the first start to the
# last end of n deployments.
sub rate {
	my ($site, $first, $n) = @_;
	my $ask = $site->db->session;
	my $end = time + deadline(120);
	while ($ask->("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')")) {
		die 'the queue does not empty' if time > $end;
		sleep 0.1;
	}
	my ($ok, $seconds) = split /\t/, $ask->("SELECT SUM(status = 'success'),"
	    . ' TIMESTAMPDIFF(MICROSECOND, MIN(started_at), MAX(finished_at)) / 1000000'
	    . " FROM deployment WHERE id BETWEEN $first AND $first + $n - 1");
	die "$ok of $n deployments succeeded" if $ok != $n;
	return $n / $seconds;
}

# The three commands in two loops at the same time.
sub git_two_at_a_time {
	my ($site, $n) = @_;
	my $dir = clone($site);
	my $half = int $n / 2;
	my ($status, $out, $err) = run_cmd('bash', '-c', 'run() { for ((i = 0; i < ' . $half . '; i++)); do'
	    . " d=$dir/\$(($projects / 2 * \$1 + i % ($projects / 2) + 1)); $by_hand; done; }"
	    . '; a=$EPOCHREALTIME; run 0 & one=$!; run 1 & two=$!; wait $one && wait $two || exit 1;'
	    . ' echo $a $EPOCHREALTIME');
	die "git: $err" if $status != 0;
	my ($a, $b) = split ' ', $out;
	return { rate => 2 * $half / ($b - $a) };
}

1;
