#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A worker survives FastCGI peers that are silent, slow, truncated or invalid: it
# serves other peers, stores nothing of an incomplete request, and its memory
# stays small.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(record begin params body request ask);
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, no_nginx => 1,
	conf => "[api]\nworkers = 2\nslow_workers = 0\nio_timeout = 2\n");
my $sock = $api->socket;
my @auth = (HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
my @post = (REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', CONTENT_TYPE => 'application/json',
	@auth);
my $count = 0;

sub project {
	$count++;
	return Cpanel::JSON::XS->new->encode({ name => "P$count",
		repository => 'https://git.example.org/a/b' });
}
sub projects { my $n = $db->sql('SELECT COUNT(*) FROM project'); return $n + 0 }

my $got = ask($sock);
is($got->{status}, 200, 'a valid request returns 200');
ok($got->{ended}, 'the response ends with an end record');
is($got->{headers}{'content-length'}, length $got->{body}, 'Content-Length is the length of the body');
is(ask($sock, @post, BODY => project())->{status}, 201, 'POST /api/projects creates a project');
my $made = projects();
my @before = $api->workers;
is(scalar @before, 2, 'the service has two workers');

# --- bodies that differ from their length create no project
for my $case (
	['0', project(), 400, 'of 0 with a body'], ['5', '{}', 400, 'above that of the body'],
	['1', '{}', 400, 'below that of the body'], ['-1', '{}', 400, 'below 0'],
	['9223372036854775808', '{}', 413, 'of 2^63'], ['18446744073709551616', '{}', 400, 'of 2^64'],
	['5x', '{}', 400, 'with a letter'], [' 2', '{}', 400, 'with a blank'],
	['+2', '{}', 400, 'with a plus'],
	['02', '{}', 400, 'with a leading zero'], ['0x2', '{}', 400, 'in hexadecimal'],
	[1048577, '{}', 413, 'a byte over the limit'], [10_000_000_000, '{}', 413, 'of 10 GB'],
	[length(project()) + 1, project(), 400, 'a byte over that of a project'],
	[length(project()) - 1, project(), 400, 'a byte under that of a project'],
) {
	my ($length, $body, $status, $name) = @$case;
	$status = 400 if $length =~ /^\d{17,}$/;
	$got = ask($sock, @post, CONTENT_LENGTH => $length, BODY => $body);
	is($got->{status}, $status, "a Content-Length $name returns $status");
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
ok(!$got || $got->{status} == 400, 'a body without an end record is not served');
cmp_ok($took, '<', deadline(4), 'a worker waits for an end record no longer than io_timeout');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(@post, CONTENT_LENGTH => 2, CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'two Content-Lengths return 400');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(@post, REQUEST_URI => '/health', CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'two REQUEST_URIs return 400');
$c = Slipway::FastCGI->connect($sock);
$c->send(begin() . params(CONTENT_LENGTH => 2) . body('{}'));
is($c->answer->{status}, 400, 'a request without REQUEST_URI returns 400');
is(projects(), $made, 'incomplete and invalid requests create no project');
$text = '{"name":"Exact","repository":"https://git.example.org/a/b"}';
is(ask($sock, @post, BODY => $text . ' ' x (1048576 - length $text))->{status}, 201,
    'a body of exactly the limit is accepted');

# --- invalid streams
my %odd = (
	'nothing' => '',
	'a zero' => "\0",
	'eight zeros' => "\0" x 8,
	'HTTP' => "GET / HTTP/1.0\r\n\r\n",
	'ones' => "\xff" x 64,
	'half a record header' => substr(begin(), 0, 4),
	'only a begin record' => begin(),
	'another protocol version' => record(1, pack('nCx5', 1, 0), version => 2),
	'an unknown role' => begin(99) . params() . body(''),
	'the role of an authorizer' => begin(2) . params() . body(''),
	'role 0' => begin(0) . params() . body(''),
	'parameters before the begin record' => params(REQUEST_METHOD => 'GET'),
	'a body before the parameters' => begin() . body('x'),
	'a short begin record' => record(1, 'xx'),
	'an empty begin record' => record(1, ''),
	'two begin records' => begin() . begin() . params() . body(''),
	'another request id' => begin() . record(4, '', id => 2),
	'a name longer than its record' => begin() . record(4, "\x7f\x01x"),
	'a value longer than its record' => begin() . record(4, "\x01\x7fx"),
	'half a length' => begin() . record(4, "\xff\xff"),
	'a truncated record' => begin() . record(4, 'abc', length => 60000),
	'padding' => begin() . record(4, '', padding => 255) . body(''),
	'an output record' => record(6, 'Status: 200 OK'),
	'an end record' => begin() . record(3, "\0" x 8),
	'an abort record' => begin() . record(2, ''),
	'an unknown record type' => begin() . record(77, 'x'),
	'a request to keep the connection' => begin(1, 1) . params() . body(''),
	'a large request id' => record(1, pack('nCx5', 1, 0), id => 65535),
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
	ok($got && $got->{status} == 200, "another peer is served after $name");
	cmp_ok($took, '<', deadline(2), "another peer is served at once after $name");
}

# --- silent peers
# The seconds of a request beside four peers (twice as many as workers) that send
# this and then stay silent.
sub beside {
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
ok($got && $got->{status} == 200, 'a request is served beside peers that send one byte');
cmp_ok($took, '<', deadline(2), 'a request beside peers that send one byte takes less than 2 s');
$took = beside(begin());
ok($got && $got->{status} == 200, 'a request is served beside peers that stop after the begin record');
cmp_ok($took, '<', deadline(2),
    'a request beside peers that stop after the begin record takes less than 2 s');
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
cmp_ok($took, '<', deadline(4), 'a peer that sends five bytes a second is disconnected soon');

# --- peers that still send when the response is written
# This takes 1.5 s: the timer of the worker fires meanwhile, and the worker waits for a
# second after each piece.
within(2.5, sub {
	my $peer = Slipway::FastCGI->connect($sock);
	$peer->send(begin() . params(@post, CONTENT_LENGTH => 2 << 20));
	my $pieces = 0;
	for (1 .. 15) {
		$pieces += $peer->send(record(5, ' ' x 32768));
		sleep 0.1;
	}
	is($pieces, 15, 'a worker that rejects a body reads what its peer still sends');
	$got = $peer->answer(10);
	is($got->{status}, 413, 'a peer that sends a body above the limit slowly gets its response');
	ok($got->{ended}, 'the response to a body above the limit is complete');
});

# --- peers that do not read the response
for my $n (1 .. 4) {
	my $deaf = Slipway::FastCGI->connect($sock);
	$deaf->send(request(REQUEST_URI => '/api/projects?limit=100', @auth));
	close $deaf->handle;
}
is(ask($sock)->{status}, 200, 'requests are served after peers disconnect before their response');

# --- unusual parameters
is(ask($sock, REQUEST_URI => "/health\r\nX: y")->{status}, 400, 'a line break in the address returns 400');
is(ask($sock, @auth, HTTP_IF_RANGE => "\"a\r\nX: y\"")->{status}, 200,
    'a line break in an unused header is ignored');
$got = ask($sock, REQUEST_ID => "x\r\nInjected: 1");
is($got->{headers}{injected}, undef, 'a line break in the request id injects no header');
is($got->{status}, 200, 'a request id with a line break is replaced');
$got = ask($sock, REQUEST_ID => 'abc-123');
is($got->{headers}{'x-request-id'}, 'abc-123', 'a plain request id is kept');
is(ask($sock, map { ("X_$_" => 'y' x 1000) } 1 .. 100)->{status}, 200,
    'a hundred thousand bytes of parameters are accepted');
is(ask($sock, HTTP_PROXY => 'http://evil/')->{status}, 200, 'the header Proxy is ignored');

# --- memory: a megabyte of JSON
my @options = map { "{\"label\":\"l\",\"value\":\"$_\"}" } 1 .. 60;
my $options = join ',', @options;
my @presets = map { "{\"key\":\"K$_\",\"label\":\"l\",\"type\":\"select\",\"options\":[$options]}" } 1 .. 90;
my @nasty = (
	'[' x 1_000_000,
	'{"a":' x 200_000,
	'[' . '1,' x 500_000 . '1]',
	'{' . join(',', map { "\"k$_\":1" } 1 .. 90_000) . '}',
	'{"name":"' . 'x' x 1_000_000 . '"}',
	'{"name":"' . '\u0041' x 170_000 . '"}',
	'{"name":"' . "\xf0\x9f\x9a\x80" x 260_000 . '"}',
	'{"envPresets":[' . join(',', ('{"key":"A","label":"x","type":"input"}') x 25_000) . ']}',
	'{"envPresets":[' . join(',', ('{}') x 300_000) . ']}', '[' . join(',', ('{}') x 19_000) . ']',
	'{"envPresets":[{"options":[' . join(',', ('{"label":"","value":""}') x 6000) . ']}]}',
	'{"name":"a","repository":"https://git.example.org/a/b","envPresets":[' . join(',', @presets) . ']}',
	'1' x 1_000_000, '"' . '\\\\' x 500_000 . '"', ' ' x 1_000_000, "\0" x 1_000_000,
);
for my $i (0 .. $#nasty) {
	# the service waits two seconds for more of a body
	within(2, sub {
		for (1 .. 3) {
			$got = ask($sock, @post, BODY => substr($nasty[$i], 0, 1_048_576));
			last if !$got || $got->{status} !~ /^(?:201|400|409|422)$/;
		}
		ok($got && $got->{status} < 500, "a large JSON body causes no server error (body $i: "
		    . ($got ? $got->{status} : 'no response') . ')');
	});
}
is(ask($sock)->{status}, 200, 'requests are served after large JSON bodies');
my $peak = peak_memory($api->workers);
cmp_ok($peak, '<', 16 * 1024, "no worker takes more than 16 MiB of memory ($peak KiB)");
is_deeply([sort $api->workers], [sort @before], 'no worker died');

done_testing;
