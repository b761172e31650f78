# SPDX-License-Identifier: ISC
package Slipway::Bench::Idle;

# What an idle service costs: memory, writes to the database, wake-ups.

use strict;
use warnings;
use Slipway::Bench::Client;
use Slipway::Test;
use Time::HiRes qw(sleep);

# The proportional set size of processes in MiB: pages that several share count once.
# undef if one cannot be read: only root can read that of the service.
sub pss {
	my (@pids) = @_;
	my $kib = 0;
	for my $pid (@pids) {
		my ($pss) = (slurp("/proc/$pid/smaps_rollup") // '') =~ /^Pss:\s+(\d+)/m;
		return undef if !defined $pss && -e "/proc/$pid";
		$kib += $pss // 0;
	}
	return $kib / 1024;
}

# How often processes went to sleep, and so were woken.
sub wake_ups {
	my (@pids) = @_;
	my $n = 0;
	for my $status (map { glob "/proc/$_/task/*/status" } @pids) {
		$n += $1 if (slurp($status) // '') =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	}
	return $n;
}

# Statements that write.
sub writes {
	my ($ask) = @_;
	my $n = 0;
	$n += (split /\t/)[1] for split /\n/, $ask->('SHOW GLOBAL STATUS WHERE Variable_name IN'
	    . " ('Com_insert', 'Com_insert_select', 'Com_update', 'Com_update_multi', 'Com_delete',"
	    . " 'Com_delete_multi', 'Com_replace', 'Com_replace_select')");
	return $n;
}

# One round, after the service has run a deployment, and each worker has served requests.
sub measure {
	my ($site, $seconds) = @_;
	$site->start_runner;
	my $id = $site->deploy($site->pipeline('noop'));
	$site->wait($id);
	if (!defined Slipway::Bench::Client::missing()) {
		$site->client->load($_, connections => 16, seconds => 1)
		    for '/api/projects/' . $site->project, '/api/deployments', "/api/deployments/$id/log";
	}
	sleep 5; # what follows a deployment
	my @pids = $site->pids;
	my $ask = $site->db->session;
	my ($wakes, $writes) = (wake_ups(@pids), writes($ask));
	sleep $seconds;
	return { pss => pss(@pids), writes => (writes($ask) - $writes) * 60 / $seconds,
		wakes => (wake_ups(@pids) - $wakes) * 60 / $seconds };
}

1;
