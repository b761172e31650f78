#!/usr/bin/perl
# SPDX-License-Identifier: ISC
#
# Measures slipway on this machine and, in the same run, a bare libfcgi loop
# behind the same nginx and socket.  Prints numbers and ratios; has no
# assertions.  Needs wrk(1).
#
#   make bench

use strict;
use warnings;
use FindBin;
use IO::Socket::SSL ();
use lib "$FindBin::Bin/../lib";
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Time::HiRes qw(time sleep);

$| = 1;
my $rounds = $ENV{BENCH_ROUNDS} || 3;
my $seconds = $ENV{BENCH_SECONDS} || 4;
my $posts = $ENV{BENCH_POSTS} || 200;
my $workers = 8;
my $idle = $ENV{BENCH_IDLE} || 30;

sub median { my @s = sort { $a <=> $b } @_; return $s[@s / 2] }
sub quantile { my ($q, @s) = @_; @s = sort { $a <=> $b } @s; return $s[int($q * $#s + 0.5)] }
sub say_row { printf "%-44s %s\n", @_ }

# Returns resident and proportional memory of a process in KiB.
sub memory {
	my ($pid) = @_;
	my $text = slurp("/proc/$pid/smaps_rollup") || '';
	my ($rss) = $text =~ /^Rss:\s+(\d+)/m;
	my ($pss) = $text =~ /^Pss:\s+(\d+)/m;
	return ($rss || 0, $pss || 0);
}

sub descendants {
	my ($pid) = @_;
	my @found = ($pid);
	for my $file (glob "/proc/$pid/task/*/children") {
		push @found, map { descendants($_) } split ' ', slurp($file) || '';
	}
	return @found;
}

sub print_memory {
	my ($when, @roots) = @_;
	for my $pid (map { descendants($_) } @roots) {
		my $comm = slurp("/proc/$pid/comm") or next;
		chomp $comm;
		my ($rss, $pss) = memory($pid);
		say_row("memory $when: $comm ($pid)", sprintf 'RSS %.1f MiB, PSS %.1f MiB', $rss / 1024,
		    $pss / 1024);
	}
}

# Returns requests per second to a URL.
sub load {
	my ($api, $path) = @_;
	my ($status, $out) = run_cmd('wrk', '-t1', '-c16', "-d${seconds}s", '--latency',
		'-H', 'Authorization: Bearer ' . $api->token('admin'), $api->url . $path);
	my ($rate) = $out =~ m{Requests/sec:\s+([\d.]+)};
	my ($bad) = $out =~ /Non-2xx or 3xx responses: (\d+)/;
	die "wrk: $out" if $status != 0 || !$rate;
	warn "$path: $bad answers were errors\n" if $bad;
	return $rate;
}

# The runner is configured first, as the API wakes it at its socket; both log to files.
my $db = Slipway::DB->start;
$db->migrate;
my $quiet = "[log]\ndebug = no\n";
my $runner = Slipway::Runner->start(db => $db, conf => $quiet);
my $api = Slipway::API->start(db => $db, migrated => 1,
	conf => "[api]\nworkers = $workers\n[gitserver]\nallow_local = yes\n"
	. "[runner]\nwake_socket = " . $runner->wake_socket . "\n" . $quiet);

sub make {
	my ($path, $body) = @_;
	my $got = $api->post($path, $body);
	die "$path: $got->{status} $got->{body}" if $got->{status} != 201;
	return $got->{json};
}
my $repository = $runner->repo({ map { ("file$_" => "text $_\n" x 100) } 1 .. 100 });
my $project = make('/api/projects', { name => 'bench', repository => $repository });
my $noop = make('/api/pipelines', { projectId => $project->{id}, name => 'noop',
	steps => [{ name => 'noop', script => ":\n" }] });
my $stamp = make('/api/pipelines', { projectId => $project->{id}, name => 'stamp',
	steps => [{ name => 'stamp', script => "#!/bin/bash\nprintf '%s\\n' \"\$EPOCHREALTIME\"\n" }] });
make('/api/projects', { name => "project $_", repository => $repository }) for 1 .. 19;

# HTTP::Tiny sends head and body separately, which costs a delayed acknowledgement
# (40 ms); other clients send them at once, as this does.
my $socket;
sub post_at_once {
	my ($pipeline) = @_;
	my $body = "{\"projectId\":$project->{id},\"pipelineId\":$pipeline->{id}}";
	my ($port) = $api->url =~ /:(\d+)$/;
	$socket ||= IO::Socket::SSL->new(PeerAddr => "localhost:$port", SSL_ca_file => $api->cacert)
	    or die "connect: $IO::Socket::SSL::SSL_ERROR";
	my $posted = time;
	print $socket "POST /api/deployments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
	    . $api->token('admin') . "\r\nContent-Type: application/json\r\nContent-Length: "
	    . length($body) . "\r\n\r\n$body";
	my ($status, $length) = (scalar <$socket>, 0);
	while (defined(my $line = <$socket>)) {
		$length = $1 if $line =~ /^content-length: (\d+)/i;
		last if $line =~ /^\r?\n$/;
	}
	read $socket, my ($answer), $length;
	die "POST: $status$answer" if $status !~ / 201 /;
	my ($id) = $answer =~ /"id":(\d+)/;
	return ($posted, $id);
}

sub deploy {
	my ($pipeline) = @_;
	my ($posted, $id) = post_at_once($pipeline);
	my $done = poll(30, sub {
		my $now = $api->get("/api/deployments/$id")->{json};
		$now->{finishedAt} ? $now : undef;
	}) or die "deployment $id did not end";
	die "deployment $id: $done->{status} $done->{detail}" if $done->{status} ne 'success';
	return ($posted, $done);
}

sub stamp_of {
	my ($t) = @_;
	my ($h, $m, $s) = $t =~ /T(\d+):(\d+):([\d.]+)Z/;
	return $h * 3600 + $m * 60 + $s;
}

print "slipway beside a bare libfcgi loop, $rounds rounds of $seconds s, wrk -t1 -c16, $workers workers, "
    . "TLS\n";
deploy($noop);
my (@first, @noop);
for (1 .. $posts) {
	my ($posted, $done) = deploy($stamp);
	my $log = $api->get("/api/deployments/$done->{id}/log")->{body};
	push @first, 1000 * ($1 - $posted) if $log =~ /^(\d{10}\.\d{6})/m;
	(undef, $done) = deploy($noop);
	push @noop, 1000 * (stamp_of($done->{finishedAt}) - stamp_of($done->{createdAt}));
}
say_row('POST to first script byte, with checkout', sprintf 'median %.1f ms, p99 %.1f ms (n = %d)',
	median(@first), quantile(0.99, @first), scalar @first);
say_row('no-op pipeline, created to finished', sprintf 'median %.1f ms, p99 %.1f ms (n = %d)',
	median(@noop), quantile(0.99, @noop), scalar @noop);

my %rate;
for my $round (1 .. $rounds) {
	push @{ $rate{read} }, load($api, "/api/projects/$project->{id}");
	push @{ $rate{list} }, load($api, '/api/projects');
	print_memory('under load', $api->pid, $runner->pid) if $round == 1;
	$api->stop_api;
	unlink $api->socket;
	my $bare = start_process(program('t/bench/bare'), $api->socket, $workers);
	poll(5, sub { -S $api->socket }) or die 'the bare loop has no socket';
	chmod 0666, $api->socket;
	push @{ $rate{bare} }, load($api, "/api/projects/$project->{id}");
	kill 'KILL', descendants($bare);
	stop_process($bare);
	unlink $api->socket;
	$api->start_api;
}
for my $what (qw(read list)) {
	my @ratio = map { $rate{$what}[$_] / $rate{bare}[$_] } 0 .. $rounds - 1;
	say_row("requests/s: project $what", sprintf 'median %.0f, bare loop %.0f, ratio %.2f (%.2f to %.2f)',
		median(@{ $rate{$what} }), median(@{ $rate{bare} }), median(@ratio),
		(sort { $a <=> $b } @ratio)[0, -1]);
}

print_memory('idle', $api->pid, $runner->pid);
sub writes {
	my %n = map { split /\s+/ } split /\n/,
	    $db->sql("SHOW GLOBAL STATUS WHERE Variable_name IN "
	        . "('Com_insert','Com_update','Com_delete','Com_replace','Handler_commit')");
	return ($n{Com_insert} || 0) + ($n{Com_update} || 0) + ($n{Com_delete} || 0) + ($n{Com_replace} || 0);
}
my $before = writes();
sleep $idle;
say_row('database writes per minute, idle', sprintf '%.1f (over %d s)', (writes() - $before) * 60 / $idle,
    $idle);
