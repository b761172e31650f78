#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a worker does with FastCGI peers that are silent, slow, cut short or
# wrong: it stays up, answers others, writes nothing of a request it did not
# get whole, and stays small.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(record begin params body request ask);
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, no_nginx => 1,
	conf => "[api]\nworkers = 2\nslow_workers = 0\nlog_workers = 0\nio_timeout = 2\n");
my $sock = $api->socket;
my @auth = (HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
my @post = (REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', CONTENT_TYPE => 'application/json', @auth);
my $count = 0;

sub project {
	$count++;
	return JSON::PP->new->encode({ name => "P$count", repository => 'https://git.example.org/a/b' });
}
sub projects { my $n = $db->sql('SELECT COUNT(*) FROM project'); return $n + 0 }

my $got = ask($sock);
is($got->{status}, 200, 'a plain request is answered');
ok($got->{ended}, 'and finished');
is($got->{headers}{'content-length'}, length $got->{body}, 'with its length');
is(ask($sock, @post, BODY => project())->{status}, 201, 'a project is made');
my $made = projects();
my @before = $api->workers;
is(scalar @before, 2, 'two workers');

# --- bodies that are not what they say: no project comes of any of them
for my $case (
	['0', project(), 400, 'length 0 with a body'], ['5', '{}', 400, 'a longer length'],
	['1', '{}', 400, 'a shorter length'], ['-1', '{}', 400, 'a negative length'],
	['9223372036854775808', '{}', 413, '2^63'], ['18446744073709551616', '{}', 400, '2^64'],
	['5x', '{}', 400, 'a tail'], [' 2', '{}', 400, 'a blank'], ['+2', '{}', 400, 'a plus'],
	['02', '{}', 400, 'a zero in front'], ['0x2', '{}', 400, 'hexadecimal'],
	[1048577, '{}', 413, 'a byte above the limit'], [10_000_000_000, '{}', 413, '10 GB'],
	[length(project()) + 1, project(), 400, 'a byte missing'], [length(project()) - 1, project(), 400, 'a byte too many'],
) {
	my ($length, $body, $status, $name) = @$case;
	$status = 400 if $length =~ /^\d{17,}$/;
	$got = ask($sock, @post, CONTENT_LENGTH => $length, BODY => $body);
	is($got->{status}, $status, "$name: $status");
}
my $c = Slipway::FastCGI->connect($sock);
my $text = project();
$c->send(begin() . params(@post, CONTENT_LENGTH => length $text) . record(5, substr $text, 0, 20));
close $c->handle;
my $took = best_of(4, sub {
	$c = Slipway::FastCGI->connect($sock);
	$c->send(begin() . params(@post, CONTENT_LENGTH => length $text) . record(5, $text));
	my $t = time;
	$got = $c->answer;
	return time - $t;
});
ok(!$got || $got->{status} == 400, 'a body without its end is not served');
cmp_ok($took, '<', deadline(4), 'and waited for no longer than io_timeout');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(@post, CONTENT_LENGTH => 2, CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'a length given twice');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(@post, REQUEST_URI => '/health', CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'an address given twice');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'no address at all');
is(projects(), $made, 'nothing of all that was written');
$text = '{"name":"Exact","repository":"https://git.example.org/a/b"}';
is(ask($sock, @post, BODY => $text . ' ' x (1048576 - length $text))->{status}, 201, 'a body of exactly the limit');

# --- streams that are none
my %odd = (
	'nothing' => '', 'a zero' => "\0", 'eight zeros' => "\0" x 8, 'text' => "GET / HTTP/1.0\r\n\r\n", 'ones' => "\xff" x 64,
	'half a header' => substr(begin(), 0, 4), 'only a beginning' => begin(), 'another version' => record(1, pack('nCx5', 1, 0), version => 2),
	'an unknown role' => begin(99) . params() . body(''), 'an authorizer' => begin(2) . params() . body(''), 'role 0' => begin(0) . params() . body(''),
	'params before the beginning' => params(REQUEST_METHOD => 'GET'), 'a body before the params' => begin() . body('x'),
	'a short beginning' => record(1, 'xx'), 'a beginning of nothing' => record(1, ''), 'two beginnings' => begin() . begin() . params() . body(''),
	'another request id' => begin() . record(4, '', id => 2), 'a name longer than its record' => begin() . record(4, "\x7f\x01x"),
	'a value longer than its record' => begin() . record(4, "\x01\x7fx"), 'half a length' => begin() . record(4, "\xff\xff"),
	'a record cut short' => begin() . record(4, 'abc', length => 60000), 'padding' => begin() . record(4, '', padding => 255) . body(''),
	'an answer' => record(6, 'Status: 200 OK'), 'an end' => begin() . record(3, "\0" x 8), 'an abort' => begin() . record(2, ''),
	'an unknown type' => begin() . record(77, 'x'), 'a keeper' => begin(1, 1) . params() . body(''), 'a large id' => record(1, pack('nCx5', 1, 0), id => 65535),
);
for my $name (sort keys %odd) {
	$took = best_of(2, sub {
		my $peer = Slipway::FastCGI->connect($sock);
		$peer->send($odd{$name});
		shutdown $peer->handle, 1;
		$peer->answer(3);
		my $t = time;
		$got = ask($sock);
		return time - $t;
	});
	ok($got && $got->{status} == 200, "after $name: others are answered");
	cmp_ok($took, '<', deadline(2), "after $name: at once");
}

# --- silence: twice as many peers as workers, each with one byte
sub beside { # four peers of which each has said so much
	my ($said) = @_;
	return best_of(2, sub {
		my @silent = map { Slipway::FastCGI->connect($sock) } 1 .. 4;
		$_->send($said) for @silent;
		sleep 0.1;
		my $t = time;
		$got = ask($sock);
		return time - $t;
	});
}
$took = beside("\1");
ok($got && $got->{status} == 200, 'silent peers do not stop the service');
cmp_ok($took, '<', deadline(2), 'nor hold it up for 2 s');
$took = beside(begin());
ok($got && $got->{status} == 200, 'nor peers that stop after the beginning');
cmp_ok($took, '<', deadline(2), 'in time');
my $bytes = request(REQUEST_METHOD => 'GET', REQUEST_URI => '/health');
$took = best_of(4, sub {
	my $slow = Slipway::FastCGI->connect($sock);
	my $t = time;
	for my $byte (split //, $bytes) {
		last if !$slow->send($byte) || time - $t > 6;
		sleep 0.2;
	}
	return time - $t;
});
cmp_ok($took, '<', deadline(4), 'a peer of five bytes a second is left soon');

# --- peers that do not read
for my $n (1 .. 4) {
	my $deaf = Slipway::FastCGI->connect($sock);
	$deaf->send(request(REQUEST_URI => '/api/projects?limit=100', @auth));
	close $deaf->handle;
}
is(ask($sock)->{status}, 200, 'peers that went away before the answer do no harm');

# --- names and values that are odd, but no more than that
is(ask($sock, REQUEST_URI => "/health\r\nX: y")->{status}, 400, 'a line break in the address');
is(ask($sock, @auth, HTTP_IF_RANGE => "\"a\r\nX: y\"")->{status}, 200, 'a line break in a field that is not looked at');
$got = ask($sock, REQUEST_ID => "x\r\nInjected: 1");
is($got->{headers}{injected}, undef, 'a request id cannot break a line');
is($got->{status}, 200, 'it is replaced');
$got = ask($sock, REQUEST_ID => 'abc-123');
is($got->{headers}{'x-request-id'}, 'abc-123', 'a plain one is kept');
is(ask($sock, map { ("X_$_" => 'y' x 1000) } 1 .. 100)->{status}, 200, 'a hundred thousand bytes of parameters');
is(ask($sock, HTTP_PROXY => 'http://evil/')->{status}, 200, 'a proxy that nobody uses');

# --- memory: what a megabyte of JSON can do
my @nasty = (
	'[' x 1_000_000, '{"a":' x 200_000, '[' . '1,' x 500_000 . '1]', '{' . join(',', map { "\"k$_\":1" } 1 .. 90_000) . '}',
	'{"name":"' . 'x' x 1_000_000 . '"}', '{"name":"' . '\u0041' x 170_000 . '"}', '{"name":"' . "\xf0\x9f\x9a\x80" x 260_000 . '"}',
	'{"envPresets":[' . join(',', ('{"key":"A","label":"x","type":"input"}') x 25_000) . ']}',
	'{"envPresets":[' . join(',', ('{}') x 300_000) . ']}', '[' . join(',', ('{}') x 19_000) . ']',
	'{"envPresets":[{"options":[' . join(',', ('{"label":"","value":""}') x 6000) . ']}]}',
	'{"name":"a","repository":"https://git.example.org/a/b","envPresets":[' . join(',', map { "{\"key\":\"K$_\",\"label\":\"l\",\"type\":\"select\",\"options\":["
		. join(',', map { "{\"label\":\"l\",\"value\":\"$_\"}" } 1 .. 60) . ']}' } 1 .. 90) . ']}',
	'1' x 1_000_000, '"' . '\\\\' x 500_000 . '"', ' ' x 1_000_000, "\0" x 1_000_000,
);
for my $i (0 .. $#nasty) {
	for (1 .. 3) {
		$got = ask($sock, @post, BODY => substr($nasty[$i], 0, 1_048_576), SECONDS => 60);
		last if !$got || ($got->{status} != 400 && $got->{status} != 422 && $got->{status} != 409 && $got->{status} != 201);
	}
	ok($got && $got->{status} < 500, "nasty body $i: " . ($got ? $got->{status} : 'no answer'));
}
is(ask($sock)->{status}, 200, 'still there');
my $peak = 0;
for my $pid ($api->workers) {
	my ($rss) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	$peak = $rss if $rss > $peak;
}
cmp_ok($peak, '<', 16 * 1024, "no worker was ever larger than 16 MiB (at most $peak KiB)");
is_deeply([sort $api->workers], [sort @before], 'and all are the ones that began');

done_testing;
