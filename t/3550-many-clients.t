#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Many clients at once: they follow one log and listen for events, and all get
# everything, in order and once.  `make check-many` tries a thousand of each.

use strict;
use warnings;
use IO::Poll qw(POLLIN POLLHUP POLLERR);
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Stream;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $many = $ENV{SLIPWAY_CLIENTS} || 100;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx_connections => 8 * $many + 2048,
	conf => "[api]\nlive_user_clients = 4096\n");
my $live = $api->start_live;
$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
    . " (1, 'a', 'https://git.example/o/a', 'a');"
    . "INSERT INTO pipeline (id, project_id, name) VALUES (1, 1, 'l');"
    . "INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)"
    . " VALUES (1, 1, 1, 'manual', 'running', 1)");
my $text = '';
sub add {
	my ($more) = @_;
	$db->sql('INSERT INTO log_chunk (deployment_id, start, length, data)'
	    . " VALUES (1, @{[length $text]}, @{[length $more]}, '$more')");
	return $text .= $more;
}

# The 99th percentiles of the time of other requests, in ms: of a service without
# clients, and of this one.  The requests alternate, so that whatever else the machine
# does disturbs both.
my $alone = $ENV{SLIPWAY_CLIENTS} ? Slipway::API->start(db => $db, migrated => 1) : undef;
sub p99s {
	my @ms = ([], []);
	for my $round (1 .. 1600) {
		for my $i (0, 1) {
			my $began = time;
			($alone, $api)[$i]->get('/api/projects/1');
			push @{ $ms[$i] }, 1000 * (time - $began) if $round > 100; # the rest warms up
		}
	}
	return map { (sort { $a <=> $b } @$_)[0.99 * @$_] } @ms;
}

# Measures that in another process while the followers go on; with `grow`, a line is
# added to the log each second.
sub measure {
	my ($what, $grow) = @_;
	$_->token for $alone, $api; # it must not be created twice
	pipe my $in, my $out or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		eval { syswrite $out, join ' ', map { sprintf '%.2f', $_ } p99s() } or warn $@;
		POSIX::_exit(0);
	}
	my $next = time;
	while (waitpid($pid, POSIX::WNOHANG()) == 0) {
		if ($grow && time >= $next) {
			add('a line at ' . time . "\n");
			$next += 1;
		}
		follow();
		sleep 0.005;
	}
	sysread $in, my $ms, 100;
	my ($without, $beside) = split / /, $ms;
	diag(sprintf 'p99 of other requests: %s ms without clients, %s ms beside %d %s: %.2f times', $without,
		$beside, 2 * $many, $what, $beside / $without);
	return;
}

# --- the clients
my @listeners = map { Slipway::Stream->open($api, '/api/events') } 1 .. $many;
my @followers = map { { text => '', requests => 0, end => 0 } } 1 .. $many;
my ($followed, %at) = IO::Poll->new;
sub request {
	my ($f) = @_;
	my $path = '/api/deployments/1/log?wait=20&offset=' . length $f->{text};
	$f->{requests}++;
	return if $f->{stream} && $f->{stream}->again($path);
	$followed->remove($f->{stream}->handle) if $f->{stream};
	$f->{stream} = Slipway::Stream->open($api, $path);
	$followed->mask($f->{stream}->handle => POLLIN);
	$at{ $f->{stream}->handle } = $f;
	return;
}
# Takes the responses that have arrived, and asks for more; the number of followers that
# have the end of the log.
sub follow {
	$followed->poll(0);
	for my $f (map { $at{$_} } $followed->handles(POLLIN | POLLHUP | POLLERR)) {
		next if $f->{end};
		request($f) if $f->{stream}->is_lost;
		my $got = $f->{stream}->complete or next;
		return fail("a follower gets $got->{status}: $got->{body}") && @followers
		    if $got->{status} !~ /^(?:200|503)$/;
		$f->{text} .= $got->{body} if $got->{status} == 200;
		$f->{end} = ($got->{headers}{'x-log-complete'} // '') eq 'true';
		request($f) if !$f->{end};
	}
	return scalar grep { $_->{end} } @followers;
}
sub all_have { return !grep { $_->{text} ne $text } @followers }

request($_) for @followers;
ok((!grep { !$_->wait_for(qr/"id":1,"status":"running"/) } @listeners), "all of $many listeners begin");
for my $part (1 .. 4) {
	add("part $part, " . 'x' x (1000 * $part) . "\n");
	ok(poll(120, sub { follow(); return all_have() }), "all of $many followers get part $part");
}
is($api->get('/api/deployments/1')->{status}, 200, 'another request is served meanwhile');
if ($alone) {
	measure('that wait');
	measure('that get a line each second', 1);
}
my $kib = slurp("/proc/$live/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : 0;
cmp_ok($kib, '<', 32 * 1024, "slipway-live takes less than 32 MiB ($kib KiB)") if !sanitized();
$db->sql("UPDATE deployment SET status = 'success', finished_at = NOW(3), log_size = " . length($text)
    . ' WHERE id = 1');
ok(poll(120, sub { follow() == @followers }), "all of $many followers see the end");
is(scalar(grep { $_->{text} eq $text } @followers), $many, 'all have the whole log, and no byte twice');
my $end = qr/"id":1,"status":"success","version":\d+,"logSize":@{[length $text]}\}/;
ok((!grep { !$_->wait_for($end) } @listeners), "all of $many listeners get the last event");
my %events = map { join(' ', $_->text =~ /^data: (\S+)$/mg) => 1 } @listeners;
is(keys %events, 1, 'all listeners get the same events');
my %ids = map { join(' ', ($_->text =~ /^id: (\S+)$/mg)[-3 .. -1]) => 1 } @listeners;
is(keys %ids, 1, 'an event has the same id for all that listen when it happens');
my @sizes = (keys %events)[0] =~ /"id":1,"status":"running",[^ ]*"logSize":(\d+)/g;
is("@sizes", join(' ', sort { $a <=> $b } @sizes), 'the events come in order');

# --- slipway-live ends
my @waiting = map { Slipway::Stream->open($api, '/api/deployments?wait=20', 'If-None-Match' =>
	$api->get('/api/deployments')->{headers}{etag}) } 1 .. 5;
stop_process($live, 'KILL');
ok((!grep { !$_->has_ended } @listeners), 'all streams end if slipway-live is killed');
is(scalar(grep { $_->answer->{status} == 503 } @waiting), 5,
    'all requests that wait end if slipway-live is killed');

done_testing;
