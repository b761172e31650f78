#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What others change while a request is being served stays changed, and is what
# the request is judged by: each is stopped where it has read, and not written
# yet.

use strict;
use warnings;
use POSIX ();
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $forge = Slipway::Forge->start(type => 'gitea');
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Browser::unlimited,
    conf => "[api]\nworkers = 3\nslow_workers = 2\n" . $forge->conf . "allowed_hosts = git.example.org\n");
my ($status, undef, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'a key is made') or diag($err);
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
$api->stop_api;
$api->start_api;

# Its status and body go into a file of that name.
sub in_background {
	my ($name, $does) = @_;
	unlink tempdir() . "/$name";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	return $pid if $pid != 0;
	delete $api->{http};
	my $got = $does->();
	spew(tempdir() . "/$name", "$got->{status} $got->{body}");
	POSIX::_exit(0);
}
sub ended { my ($name) = @_; return -s tempdir() . "/$name" }
sub answer { my ($name, $pid) = @_; waitpid $pid, 0; return slurp(tempdir() . "/$name") }
# Serves the request up to where it needs the rows that `held` has, changes
# something and lets it go on; its answer.
sub meanwhile {
	my ($held, $does, $change) = @_;
	my $other = $db->session;
	$other->("START TRANSACTION; $held FOR UPDATE");
	my $pid = in_background('request', $does);
	ok(poll(60, sub { $db->waiting == 1 || ended('request') }), '... it is half done');
	ok(!ended('request'), '... and waits');
	$other->("$change; COMMIT");
	return answer('request', $pid);
}

# --- somebody's first sign-in by the Git server, whom an administrator has made
sub user { my ($name, $what) = @_; return $db->sql("SELECT $what FROM user WHERE username = '$name' AND valid = 1") }
for my $case (['kim', "status = 'inactive'", qr/^403 /, 'deployer inactive'], ['lee', "role = 'viewer'", qr/^200 /, 'viewer active'],
    ['joe', 'valid = 0', qr/^403 /, undef]) {
	my ($login, $change, $answer, $is) = @$case;
	$forge->user($login, { name => "The real $login" });
	is($api->post('/api/user', { username => $login, role => 'deployer' })->{status}, 201, "$login is made");
	my $browser = Slipway::Browser->new($api, $forge);
	my $back = $browser->go($login);
	my $got = meanwhile("SELECT id FROM user WHERE username = '$login'", sub { return $browser->login($back) },
	    "UPDATE user SET $change WHERE username = '$login'");
	like($got, $answer, "who signs in while an administrator sets $change");
	is(user($login, "CONCAT_WS(' ', role, status)"), defined $is ? $is : '', '... does not undo that');
}

# --- a user is deleted on the command line while signing in: nothing of that is left
is($api->post('/api/user', { username => 'max', role => 'viewer' })->{status}, 201, 'max is made');
my $max = user('max', 'id');
my $said = meanwhile("SELECT id FROM user WHERE id = $max", sub {
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'user', 'delete', 'max');
	return { status => $status, body => "$out$err" };
}, "INSERT INTO session (user_id, hash, expires_at) VALUES ($max, REPEAT('a', 64), NOW(3) + INTERVAL 1 DAY);"
    . " INSERT INTO git_token (user_id, server, access) VALUES ($max, 's', 'a')");
like($said, qr/^0 user max was deleted/, 'a user is deleted who signs in just then');
is($db->sql("SELECT (SELECT COUNT(*) FROM session WHERE user_id = $max) + (SELECT COUNT(*) FROM git_token WHERE user_id = $max)"), 0, '... with the session and the token');

# --- a push, while the secret that it is signed with is replaced by somebody's
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/name.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'one', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
is($api->put("/api/projects/$project", { triggers => [ { branch => '*', pipelineId => $pipeline, envVars => {} } ] })->{status}, 200, 'a push deploys');
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$db->sql('CREATE TABLE first_secret AS SELECT * FROM hook_secret');
my $next = $api->as('maintainer')->put("/api/projects/$project/hook-secret")->{json}{secret};
$db->sql('CREATE TABLE next_secret AS SELECT * FROM hook_secret; REPLACE INTO hook_secret SELECT * FROM first_secret');
sub push_it {
	my ($with, $commit) = @_;
	my ($headers, $body) = push_event('gitlab', $with, commit => $commit x 40, branch => 'main', path => 'o/name');
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
my $got = meanwhile("SELECT id FROM project WHERE id = $project", sub { return push_it($secret, '1') },
    'REPLACE INTO hook_secret SELECT * FROM next_secret');
like($got, qr/^401 /, 'a push whose secret was replaced is refused');
is($db->sql('SELECT COUNT(*) FROM deployment'), 0, '... and deploys nothing in the name of who did that');
is(push_it($next, '2')->{status}, 202, 'one with the new secret');
is($db->sql('SELECT u.username FROM deployment d JOIN user u ON u.id = d.created_by'), 't-maintainer', '... is theirs');

# --- the same POST twice, and what it deploys is deleted between them
my $doomed = $api->post('/api/pipelines', { projectId => $project, name => 'doomed', steps => [ { name => 'gate', script => 'true' } ] })->{json}{id};
$db->sql("CREATE TABLE gate (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO gate VALUES (1);\n"
    . "CREATE TRIGGER wait_at_gate BEFORE INSERT ON deployment_step FOR EACH ROW\n"
    . "BEGIN DECLARE n INT; IF NEW.name = 'gate' THEN SELECT id INTO n FROM gate FOR UPDATE; END IF; END");
my $gate = $db->session;
$gate->('START TRANSACTION; SELECT id FROM gate FOR UPDATE');
sub deploy { my ($key) = @_; return sub { return $api->post('/api/deployments', { projectId => $project, pipelineId => $doomed }, { 'Idempotency-Key' => $key }) } }
my %pid;
for (['first', deploy('once')], ['deletes', sub { return $api->delete("/api/pipelines/$doomed") }], ['second', deploy('once')]) {
	my ($name, $does) = @$_;
	$pid{$name} = in_background($name, $does);
	my $n = keys %pid;
	ok(poll(60, sub { $db->waiting == $n || ended($name) }), "$name waits");
}
$gate->('COMMIT');
my %said = map { $_ => answer($_, $pid{$_}) } keys %pid;
like($said{first}, qr/^201 /, 'the first deploys');
like($said{deletes}, qr/^204 /, 'the pipeline goes');
is($said{second}, $said{first}, 'the second has the answer of the first');
like(join(' ', @{ deploy('twice')->() }{qw(status body)}), qr/^422 .*pipelineId/, 'another one is refused');
done_testing;
