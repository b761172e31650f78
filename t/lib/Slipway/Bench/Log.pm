# SPDX-License-Identifier: ISC
package Slipway::Bench::Log;

# Measures logs: how long a line takes from a script to a reader that waits, and how
# fast a step can write, with the memory that this takes.

use strict;
use warnings;
use Slipway::Bench::Idle;
use Slipway::Test;
use Time::HiRes qw(sleep time);

# A script prints the time n times, 30 ms apart; one round of { ms => [milliseconds] }.
sub latencies {
	my ($site, $n) = @_;
	$site->start_runner;
	my $pipeline = $site->pipeline("#!/bin/bash\nfor ((i = 0; i < $n; i++)); do"
	    . " printf '%s\\n' \"\$EPOCHREALTIME\"; sleep 0.03; done\n");
	my $id = $site->deploy($pipeline);
	my ($text, $offset, @ms) = ('', 0);
	while (1) {
		my $got = $site->client->request(GET => "/api/deployments/$id/log?offset=$offset&wait=10");
		my $now = time;
		die "the log of $id: $got->{status} $got->{body}" if $got->{status} !~ /^20/;
		$offset += length $got->{body};
		$text .= $got->{body};
		push @ms, 1000 * ($now - $1) while $text =~ s/^(?:.*?\n)??(\d{10}\.\d{6})\n//s;
		last if ($got->{headers}{'x-log-complete'} || '') eq 'true';
	}
	die scalar(@ms) . " of $n lines" if @ms != $n;
	return { ms => \@ms };
}

# The largest resident set of a process, now and before, in MiB.
sub _peak {
	my (@pids) = @_;
	my $most = 0;
	for my $pid (@pids) {
		my ($kib) = (slurp("/proc/$pid/status") // '') =~ /^VmHWM:\s+(\d+)/m;
		$most = $kib if defined $kib && $kib > $most;
	}
	return $most / 1024;
}

# A step that writes so many MiB, or for 20 seconds: { rate => MiB/s, rss => MiB }.
sub volume {
	my ($site, $mib) = @_;
	$site->start_runner;
	my $line = 'a line of a log, as a compiler or a package manager prints it';
	my $written = spew(tempdir() . '/written', '', 0666);
	my $id = $site->deploy($site->pipeline("#!/bin/bash\n"
	    . "for ((i = 0; i < $mib && SECONDS < 20; i += 16)); do"
	    . " yes '$line' | head -c 16M; done\necho \$i >$written\n"));
	my ($peak, $body, $status) = (0);
	my $end = time + deadline(60);
	do {
		die "a log of $mib MiB takes too long" if time > $end;
		sleep 0.2;
		my $now = _peak($site->pids, $site->runner->jobs);
		$peak = $now if $now > $peak;
		$body = $site->client->request(GET => "/api/deployments/$id")->{body};
		($status) = $body =~ /"status":"(\w+)"/;
	} while $status =~ /^(?:pending|running)$/;
	die "deployment $id: $body" if $status ne 'success';
	my $seconds = $site->db->sql('SELECT TIMESTAMPDIFF(MICROSECOND, started_at, finished_at) / 1000000'
	    . " FROM deployment_step WHERE deployment_id = $id");
	return { rate => slurp($written) / $seconds, rss => $peak };
}

1;
