#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Requests that waited for a worker until nobody waited for them any more.

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
my $conf = "[api]\nworkers = 1\nslow_workers = 1\nlog_workers = 1\nio_timeout = 120\n";
my $api = Slipway::API->start(db => $db, no_nginx => 1, conf => $conf);
make_keys($api->conf_file, $api->dir . '/secret.key');
my $old = join ' ', $api->workers;
kill 'HUP', $api->pid;
poll(60, sub { my @now = $api->workers; my %old = map { $_ => 1 } split ' ', $old; @now == 3 && !grep { $old{$_} } @now }) or die 'no reload';

my @who = (HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
my @json = (@who, CONTENT_TYPE => 'application/json');
sub create { my ($name) = @_; return (REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @json,
	BODY => qq({"name":"$name","repository":"https://git.example.org/owner/$name"})) }
sub made { my ($name) = @_; return $db->sql("SELECT COUNT(*) FROM project WHERE name = '$name'") }
sub ago { my ($seconds) = @_; return (REQUEST_MSEC => sprintf '%.3f', time - $seconds) }
sub number { my ($got) = @_; return $got->{body} =~ /"id":(\d+)/ ? $1 : undef }

# --- by the clock of nginx
my $got = ask($api->socket, create('late'), ago(40));
is($got->{status}, 503, 'a write that waited for too long is refused');
ok($got->{headers}{'retry-after'}, 'with Retry-After');
like($got->{body}, qr/"detail":"The request waited \d+ seconds for a free worker and was not started\. Send it again\."/, 'and with the reason');
is(made('late'), 0, 'it is not begun');
is(ask($api->socket, create('early'), ago(5))->{status}, 201, 'one that waited for a while is served');
is(ask($api->socket, create('ahead'), ago(-3600))->{status}, 201, 'one from a clock that is ahead too');
is(ask($api->socket, create('unknown'), REQUEST_MSEC => 'soon')->{status}, 201, 'and one without a time');
is(ask($api->socket('slow'), REQUEST_URI => '/api/git/branches?projectId=1', @who, ago(40))->{status}, 503, 'reads of the Git server are refused likewise');
is(ask($api->socket('log'), REQUEST_URI => '/api/deployments/1/log', @who, ago(40))->{status}, 503, 'so are reads of logs');

# --- push events
my $project = number(ask($api->socket, create('hooked')));
my $pipeline = number(ask($api->socket, REQUEST_METHOD => 'POST', REQUEST_URI => '/api/pipelines', @json,
	BODY => qq({"projectId":$project,"name":"l","steps":[{"name":"s","script":"true"}]})));
is(ask($api->socket, REQUEST_METHOD => 'PUT', REQUEST_URI => "/api/projects/$project", @json,
	BODY => qq({"triggers":[{"branch":"main","pipelineId":$pipeline,"envVars":{}}]}))->{status}, 200, 'a project with a trigger');
my ($secret) = ask($api->socket, REQUEST_METHOD => 'PUT', REQUEST_URI => "/api/projects/$project/hook-secret", @json)->{body} =~ /"secret":"([^"]+)"/;
ok($secret, 'and a secret');
sub event {
	my ($commit) = @_;
	my ($headers, $body) = push_event(gitea => $secret, path => 'owner/hooked', commit => $commit x 40);
	return (REQUEST_METHOD => 'POST', REQUEST_URI => "/api/hooks/$project", CONTENT_TYPE => 'application/json', BODY => $body,
		map { ('HTTP_' . uc($_ =~ tr/-/_/r) => $headers->{$_}) } keys %$headers);
}
sub deployed { return $db->sql("SELECT COUNT(*) FROM deployment WHERE project_id = $project") }
is(ask($api->socket, event('a'), ago(40))->{status}, 202, 'a push event that waited for too long is served');
is(deployed(), 1, 'so that it is not lost');

# --- clients that have gone, as nginx closes the connection when they do and
# when it has given up itself
my $first = Slipway::FastCGI->connect($api->socket);
$first->send(begin() . params(REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @json, CONTENT_LENGTH => 3));
for my $gone ([ create('gone') ], [ event('b') ]) {
	my $c = Slipway::FastCGI->connect($api->socket);
	$c->send(request(@$gone));
	close $c->handle;
}
my $half = Slipway::FastCGI->connect($api->socket);
$half->send(request(create('half')));
shutdown $half->handle, 1;
$first->send(record(5, 'xyz') . record(5, ''));
is($first->answer->{status}, 400, 'the only worker is busy, then free');
is($half->answer->{status}, 201, 'a client that has only finished sending is served');
is(made('half'), 1, 'as it should be');
is(made('gone'), 0, 'a write whose client has gone is not begun');
like($api->log, qr/The client closed the connection|POST \/api\/projects 503/, 'the log says so');
is(deployed(), 2, 'a push event whose sender has gone is served');

done_testing;
