#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that waited for a worker so long that their client gave up.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(ask begin params record request);
use Slipway::Hook;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $db = Slipway::DB->start;
my $conf = "[api]\nworkers = 1\nslow_workers = 1\nio_timeout = 120\n";
my $api = Slipway::API->start(db => $db, no_nginx => 1, conf => $conf);
make_keys($api->conf_file, $api->dir . '/secret.key');
$api->reload or die 'the workers were not replaced';

my @who = (HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
my @json = (@who, CONTENT_TYPE => 'application/json');
sub create {
	my ($name) = @_;
	return (REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @json,
		BODY => qq({"name":"$name","repository":"https://git.example.org/owner/$name"}));
}
sub made { my ($name) = @_; return $db->sql("SELECT COUNT(*) FROM project WHERE name = '$name'") }
sub ago { my ($seconds) = @_; return (REQUEST_MSEC => sprintf '%.3f', time - $seconds) }
sub number { my ($got) = @_; return $got->{body} =~ /"id":(\d+)/ ? $1 : undef }

# --- the time of arrival, as nginx reports it
my $got = ask($api->socket, create('late'), ago(40));
is($got->{status}, 503, 'a write that waited too long returns 503');
ok($got->{headers}{'retry-after'}, 'a write that waited too long has Retry-After');
like($got->{body},
    qr/"detail":"The request waited \d+ seconds for a free worker and was not started\. Send it again\."/,
    'a write that waited too long says why it is rejected');
is(made('late'), 0, 'a write that waited too long changes nothing');
is(ask($api->socket, create('early'), ago(5))->{status}, 201, 'a write that waited five seconds is served');
is(ask($api->socket, create('ahead'), ago(-3600))->{status}, 201,
    'a write from a clock that is ahead is served');
is(ask($api->socket, create('unknown'), REQUEST_MSEC => 'soon')->{status}, 201,
    'a write with an invalid time is served');
is(ask($api->socket('slow'), REQUEST_URI => '/api/git/branches?projectId=1', @who, ago(40))->{status}, 503,
    'a read of the Git server that waited too long returns 503');
is(ask($api->socket, REQUEST_URI => '/api/deployments/1/log', @who, ago(40))->{status}, 503,
    'a read of a log that waited too long returns 503');

# --- push events
my $project = number(ask($api->socket, create('hooked')));
my $pipeline = number(ask($api->socket, REQUEST_METHOD => 'POST', REQUEST_URI => '/api/pipelines', @json,
	BODY => qq({"projectId":$project,"name":"l","steps":[{"name":"s","script":"true"}]})));
my @put = (REQUEST_METHOD => 'PUT', @json);
is(ask($api->socket, @put, REQUEST_URI => "/api/projects/$project",
	BODY => qq({"triggers":[{"branch":"main","pipelineId":$pipeline,"envVars":{}}]}))->{status},
    200, 'a project gets a trigger');
my ($secret) = ask($api->socket, @put, REQUEST_URI => "/api/projects/$project/hook-secret")->{body}
    =~ /"secret":"([^"]+)"/;
ok($secret, 'a project gets a webhook secret');
sub event {
	my ($commit) = @_;
	my ($headers, $body) = push_event(gitea => $secret, path => 'owner/hooked', commit => $commit x 40);
	return (REQUEST_METHOD => 'POST', REQUEST_URI => "/api/hooks/$project", BODY => $body,
		CONTENT_TYPE => 'application/json',
		map { ('HTTP_' . uc($_ =~ tr/-/_/r) => $headers->{$_}) } keys %$headers);
}
sub deployed { return $db->sql("SELECT COUNT(*) FROM deployment WHERE project_id = $project") }
is(ask($api->socket, event('a'), ago(40))->{status}, 202, 'a push event that waited too long is served');
is(deployed(), 1, 'a push event that waited too long creates a deployment');

# --- clients that disconnect: nginx closes the connection when a client does, and
# when it gives up itself
my $first = Slipway::FastCGI->connect($api->socket);
$first->send(begin()
    . params(REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @json, CONTENT_LENGTH => 3));
for my $gone ([ create('gone') ], [ event('b') ]) {
	my $c = Slipway::FastCGI->connect($api->socket);
	$c->send(request(@$gone));
	close $c->handle;
}
my $half = Slipway::FastCGI->connect($api->socket);
$half->send(request(create('half')));
shutdown $half->handle, 1;
$first->send(record(5, 'xyz') . record(5, ''));
is($first->answer->{status}, 400, 'the request that occupied the only worker ends');
is($half->answer->{status}, 201, 'a client that only closed its sending side is served');
is(made('half'), 1, 'a client that only closed its sending side creates its project');
is(made('gone'), 0, 'a write whose client disconnected changes nothing');
like($api->log, qr/The client closed the connection|POST \/api\/projects 503/,
    'the log reports a client that disconnected');
is(deployed(), 2, 'a push event whose sender disconnected creates a deployment');

done_testing;
