#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that take long, such as searches in logs, leave workers for the others.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask request);
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db,
	conf => "[database]\ntimeout = 300\n[api]\nworkers = 6\nslow_workers = 1\nrequest_timeout = 300\n");
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
