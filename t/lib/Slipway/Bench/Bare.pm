# SPDX-License-Identifier: ISC
package Slipway::Bench::Bare;

# The bare runner (t/bench/bare_runner.c) with the same database and the same scripts.
#
# Each function returns one round: { ms => [milliseconds, …] } or { rate => jobs/s }.

use strict;
use warnings;
use Slipway::Bench::Jobs;
use Slipway::Test;
use Time::HiRes qw(sleep time);

my $nobody = 65534;

# The directory of its scripts, logs and socket.
sub dir {
	my $dir = tempdir() . '/bare';
	if (!-d $dir) {
		mkdir $dir or die "$dir: $!";
		chmod 0777, $dir or die "$dir: $!";
	}
	return $dir;
}
sub wake_socket { return dir() . '/wake.sock' }

# Runs a function while the bare runner runs this script for each deployment.
sub _beside {
	my ($site, $script, $do) = @_;
	$site->stop_runner;
	spew(dir() . '/script', $site->script($script), 0644);
	my $pid = start_process({ name => 'bare_runner' }, program('t/bench/bare_runner'), wake_socket(),
		dir(), $> == 0 ? $nobody : 0, ($site->database)[0 .. 2]);
	my @result = eval { $do->() };
	my $error = $@;
	stop_process($pid);
	die $error if $error;
	return @result;
}

# From just before a POST to the bare loop to the time that the script prints first.
sub latencies {
	my ($site, $n) = @_;
	return { ms => [ _beside($site, 'stamp', sub {
		my @ms;
		poll(15, sub { -S wake_socket() }) or die 'the bare runner has no socket';
		for (1 .. $n) {
			my $posted = time;
			my ($id) = $site->client->request(POST => '/bare/deployments')->{body} =~ /(\d+)/;
			my $log = dir() . "/$id.log";
			poll(15, sub { -s $log }) or die "deployment $id printed no time";
			push @ms, 1000 * (slurp($log) - $posted);
			# it ends before the next one of its project begins
			poll(15, sub { $site->status($id) eq 'success' }) or die "deployment $id did not end";
		}
		return @ms;
	}) ] };
}

# Fills the queue with a deployment of each project in turn, then empties it.
sub drain {
	my ($site, $n) = @_;
	my @of = Slipway::Bench::Jobs::projects($site);
	$site->stop_runner;
	my $first = 1 + $site->db->sql('SELECT MAX(id) FROM deployment');
	my $case = join ' ', map { "WHEN $_ THEN $of[$_]" } 0 .. $#of;
	$site->db->sql('INSERT INTO deployment (project_id, pipeline_id, branch, env_vars, `trigger`,'
		. " created_by) SELECT CASE seq % @{[ scalar @of ]} $case END, 1, 'main', '{}', 'manual', 1"
		. " FROM seq_1_to_$n");
	my ($rate) = _beside($site, 'noop', sub { return Slipway::Bench::Jobs::rate($site, $first, $n) });
	return { rate => $rate };
}

1;
