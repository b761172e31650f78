#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that take long, such as searches in logs, leave workers for the others.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask request);
use Slipway::Test;
use IO::Select ();
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db,
	conf => "[database]\ntimeout = 300\n"
	    . "[api]\nworkers = 6\nslow_workers = 1\nrequest_timeout = 300\nio_timeout = 300\n");
my $project = $api->make('/api/projects', { name => 'p',
	repository => 'https://git.example.org/o/p.git' })->{id};
$api->make('/api/pipelines', { projectId => $project, name => 'l',
	steps => [ { name => 's', script => 'true' } ] });
my $run = $api->make('/api/deployments', { projectId => $project })->{id};

sub params {
	my ($user, $path) = @_;
	return (REQUEST_URI => $path, HTTP_AUTHORIZATION => 'Bearer ' . $api->token($user));
}
sub search { my ($user) = @_; return params($user, "/api/deployments/$run/log/matches?q=x") }
# The connections of searches by these users, which cannot read the log yet.
sub hold {
	my ($session, @users) = @_;
	$session->('LOCK TABLES log_chunk WRITE');
	my @held;
	for my $user (@users) {
		my $c = Slipway::FastCGI->connect($api->socket) or die 'no connection';
		$c->send(request(search($user)));
		push @held, $c;
	}
	ok(poll(60, sub { $db->sql('SELECT COUNT(*) FROM information_schema.processlist'
		. " WHERE state LIKE 'Waiting for table%'") == @users }),
	    scalar(@users) . ' searches take long');
	return @held;
}
$api->token($_) for qw(viewer deployer maintainer);
my $session = $db->session;

# --- the limits
my @held = hold($session, qw(viewer viewer));
my $got = ask($api->socket, search('viewer'));
is($got->{status}, 429, 'a user cannot run a third search');
like($got->{body}, qr/"code":"rate_limited"/, 'a search too many gets the code "rate_limited"');
like($got->{body}, qr/Too many searches are running\. Try again in a moment\./,
    'a search too many gets advice');
is($got->{headers}{'retry-after'}, 1, 'a search too many gets Retry-After');
$session->('UNLOCK TABLES');
is($_->answer->{status}, 200, 'a search ends when it can read the log') for @held;

@held = hold($session, qw(viewer viewer deployer));
is(ask($api->socket, search('maintainer'))->{status}, 429, 'searches occupy at most half of the workers');
is(ask($api->socket, params('viewer', '/api/projects'))->{status}, 200,
    'other requests are served while searches take long') for 1 .. 5;

# --- large responses that nobody reads
sub log_path { return "/api/deployments/$run/log" }
sub part { return ask($api->socket, params(shift, log_path()), HTTP_RANGE => 'bytes=0-99') }
# Connections on which a response has begun.
sub unread {
	return map {
		my $c = Slipway::FastCGI->connect($api->socket) or die 'no connection';
		$c->send(request(params($_, log_path())));
		ok(IO::Select->new($c->handle)->can_read(60), "the log is sent to the $_");
		$c;
	} @_;
}
$session->('UNLOCK TABLES');
is($_->answer->{status}, 200, 'a search that waited ends') for @held;
my $size = 6 << 20;
my $text = unpack 'H*', 'x' x 65_536;
$db->sql(join ';', map { "INSERT INTO log_chunk (deployment_id, start, length, data)"
	. " VALUES ($run, " . $_ * 65_536 . ", 65536, X'$text')" } 8 * $_ .. 8 * $_ + 7)
    for 0 .. $size / 524_288 - 1;
$db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = NOW(3) WHERE id = $run");
@held = unread('viewer', 'viewer');
$got = ask($api->socket, params('viewer', log_path()));
is($got->{status}, 429, 'a user cannot read a third large log');
like($got->{body}, qr/You are reading two large responses already\. Try again .* part of the log/,
    'a large log too many gets advice');
is($got->{headers}{'retry-after'}, 5, 'a large log too many gets Retry-After');
is(part('viewer')->{status}, 206, 'a part of a large log can be read beside two large ones');
is(ask($api->socket, params('viewer', log_path()), REQUEST_METHOD => 'HEAD')->{status}, 200,
    'the headers of a large log can be read beside two large ones');
push @held, unread('deployer');
$got = ask($api->socket, params('maintainer', log_path()));
is($got->{status}, 429, 'large logs occupy at most half of the workers');
like($got->{body}, qr/Too many large responses are being read\./, 'a large log of another user gets advice');
is(ask($api->socket, params('maintainer', '/api/projects'))->{status}, 200,
    'other requests are served while nobody reads large logs') for 1 .. 5;
pop @held; # closes the connection
ok(poll(60, sub { ask($api->socket, search('maintainer'))->{status} == 200 }),
    'a worker is free when the client has gone');
is(length $_->answer->{body}, $size, 'a large log is complete, however late it is read') for @held;
ok(poll(60, sub { ask($api->socket, params('viewer', log_path()))->{status} == 200 }),
    'a large log can be read when others have ended');
@held = hold($session, qw(viewer deployer));

# --- workers that die
my %before = map { $_ => 1 } $api->workers;
kill 'KILL', keys %before;
ok(poll(60, sub { my @now = $api->workers; @now == 7 && !grep { $before{$_} } @now }),
    'killed workers are replaced');
$session->('UNLOCK TABLES');
is(ask($api->socket, search('viewer'))->{status}, 200, 'a user can search after the workers were killed');

# --- a pool of one worker
ok(poll(60, sub { $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%log_chunk%'"
	. ' AND id <> CONNECTION_ID()') == 0 }), 'the sessions of the killed workers end');
$api->write_conf("[api]\nworkers = 1\nslow_workers = 1\n");
kill 'HUP', $api->pid;
ok(poll(60, sub { $api->workers == 2 }), 'a reload leaves one worker');
is(ask($api->socket, search('viewer'))->{status}, 200, 'the only worker serves a search');

done_testing;
