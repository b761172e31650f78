#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A change that is made during a request is kept, and the request is judged by it:
# each request is stopped after it has read and before it writes.

use strict;
use warnings;
use Slipway::API;
use Slipway::Background;
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $forge = Slipway::Forge->start(type => 'gitea');
my $api = Slipway::API->start(db => $db, keys => 1, nginx => \&Slipway::Visitor::unlimited,
    conf => "[api]\nworkers = 3\nslow_workers = 2\n" . $forge->conf . "allowed_hosts = git.example.org\n");

# Sends a request in the background; "status body" of its response.
sub send_later {
	my ($send) = @_;
	return background(sub {
		delete $api->{http};
		my $got = $send->();
		return "$got->{status} $got->{body}";
	});
}
# Sends a request, which waits for the rows that $held selects, changes something and
# lets the request go on: "status body" of its response.
sub change_during {
	my ($name, $held, $send, $change) = @_;
	my $other = $db->session;
	$other->("START TRANSACTION; $held FOR UPDATE");
	my $run = send_later($send);
	ok(poll(60, sub { $db->waiting == 1 || $run->ended }), "$name: the request begins");
	ok(!$run->ended, "$name: the request waits");
	$other->("$change; COMMIT");
	return $run->result;
}

# --- the first sign-in of a user that an administrator created
sub user {
	my ($name, $what) = @_;
	return $db->sql("SELECT $what FROM user WHERE username = '$name' AND valid = 1");
}
for my $case (['kim', "status = 'inactive'", qr/^403 /, 'deployer inactive'],
    ['lee', "role = 'viewer'", qr/^200 /, 'viewer active'],
    ['joe', 'valid = 0', qr/^403 /, undef]) {
	my ($login, $change, $answer, $is) = @$case;
	$forge->user($login, { name => "The real $login" });
	is($api->post('/api/user', { username => $login, role => 'deployer' })->{status}, 201,
	    "an administrator creates $login");
	my $browser = Slipway::Visitor->new($api, $forge);
	my $back = $browser->go($login);
	my $name = "a sign-in while an administrator sets $change";
	my $got = change_during($name, "SELECT id FROM user WHERE username = '$login'",
	    sub { return $browser->login($back) }, "UPDATE user SET $change WHERE username = '$login'");
	like($got, $answer, "$name is judged by the change");
	is(user($login, "CONCAT_WS(' ', role, status)"), defined $is ? $is : '',
	    "$name does not undo the change");
}

# --- a user is deleted on the command line while signing in
is($api->post('/api/user', { username => 'max', role => 'viewer' })->{status}, 201,
    'an administrator creates max');
my $max = user('max', 'id');
my $said = change_during('deleting a user', "SELECT id FROM user WHERE id = $max", sub {
	my ($status, $out, $err) = slipway_admin($api->conf_file, 'user', 'delete', 'max');
	return { status => $status, body => "$out$err" };
}, "INSERT INTO session (user_id, hash, expires_at) VALUES ($max, REPEAT('a', 64), NOW(3) + INTERVAL 1 DAY);"
    . " INSERT INTO git_token (user_id, server, access) VALUES ($max, 's', 'a')");
like($said, qr/^0 user max was deleted/, 'a user who is signing in can be deleted');
is($db->sql("SELECT (SELECT COUNT(*) FROM session WHERE user_id = $max)"
    . " + (SELECT COUNT(*) FROM git_token WHERE user_id = $max)"), 0,
    'deleting a user who is signing in deletes the session and the token');

# --- the secret of a webhook is replaced during a push
my $project = $api->make('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/name.git' })->{id};
sub pipeline {
	my ($name, $step) = @_;
	return $api->make('/api/pipelines', { projectId => $project, name => $name,
		steps => [ { name => $step, script => 'true' } ] })->{id};
}
my @triggers = ({ branch => '*', pipelineId => pipeline('one', 's'), envVars => {} });
is($api->put("/api/projects/$project", { triggers => \@triggers })->{status}, 200,
    'a project gets a trigger');
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$db->sql('CREATE TABLE first_secret AS SELECT * FROM hook_secret');
my $next = $api->as('maintainer')->put("/api/projects/$project/hook-secret")->{json}{secret};
$db->sql('CREATE TABLE next_secret AS SELECT * FROM hook_secret;'
    . ' REPLACE INTO hook_secret SELECT * FROM first_secret');
sub push_it {
	my ($with, $commit) = @_;
	my ($headers, $body) = push_event('gitlab', $with, commit => $commit x 40, branch => 'main',
	    path => 'o/name');
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
my $got = change_during('a push while its secret is replaced', "SELECT id FROM project WHERE id = $project",
    sub { return push_it($secret, '1') }, 'REPLACE INTO hook_secret SELECT * FROM next_secret');
like($got, qr/^401 /, 'a push with a secret that was replaced meanwhile returns 401');
is($db->sql('SELECT COUNT(*) FROM deployment'), 0,
    'a push with a secret that was replaced meanwhile creates no deployment');
is(push_it($next, '2')->{status}, 202, 'a push with the new secret is accepted');
is($db->sql('SELECT u.username FROM deployment d JOIN user u ON u.id = d.created_by'), 't-maintainer',
    'a push deploys in the name of the user who created the secret');

# --- a pipeline is deleted between two identical requests
my $doomed = pipeline('doomed', 'gate');
$db->add_gate('deployment_step', "NEW.name = 'gate'");
my $gate = $db->session;
$gate->('START TRANSACTION; SELECT id FROM gate FOR UPDATE');
sub deploy {
	my ($key) = @_;
	return sub {
		return $api->post('/api/deployments', { projectId => $project, pipelineId => $doomed },
		    { 'Idempotency-Key' => $key });
	};
}
my %run;
for (['the first deployment', deploy('once')],
    ['the deletion of the pipeline', sub { return $api->delete("/api/pipelines/$doomed") }],
    ['the repeated deployment', deploy('once')]) {
	my ($name, $send) = @$_;
	$run{$name} = send_later($send);
	my $n = keys %run;
	ok(poll(60, sub { $db->waiting == $n || $run{$name}->ended }), "$name waits");
}
$gate->('COMMIT');
my %said = map { $_ => $run{$_}->result } keys %run;
like($said{'the first deployment'}, qr/^201 /, 'the first deployment is created');
like($said{'the deletion of the pipeline'}, qr/^204 /, 'the pipeline is deleted');
is($said{'the repeated deployment'}, $said{'the first deployment'},
    'the repeated request returns the first response although the pipeline is deleted');
like(join(' ', @{ deploy('twice')->() }{qw(status body)}), qr/^422 .*pipelineId/,
    'a new deployment of the deleted pipeline is rejected');
done_testing;
