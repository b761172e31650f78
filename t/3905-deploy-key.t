#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The deploy key of a project: who may create, see and delete it, how it is stored,
# and that OpenSSH reads it.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $dir = tempdir();
sub project {
	my ($name) = @_;
	return $api->make('/api/projects', { name => $name,
		repository => "ssh://git\@git.example.org/team/$name" })->{id};
}
my $project = project('shop');
my $path = "/api/projects/$project/deploy-key";

# --- without a key file
my $got = $api->put($path);
is($got->{status}, 503, 'PUT without a key file returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'the error names slipway-admin key');
is($db->sql('SELECT COUNT(*) FROM deploy_key'), 0, 'no key is stored unencrypted');
make_keys($api->conf_file, $api->dir . '/secret.key');
$api->stop_api;
$api->start_api;

# --- the public half
is($api->get($path)->{status}, 404, 'GET returns 404 while there is no key');
is($api->delete($path)->{status}, 404, 'DELETE returns 404 while there is no key');
$got = $api->put($path);
is($got->{status}, 200, 'PUT creates a key') or diag($got->{body});
my $key = $got->{json};
is_deeply([ sort keys %$key ], [qw(createdAt createdBy fingerprint publicKey)],
    'the response describes the public half');
like($key->{publicKey}, qr{^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43} slipway-project-$project$},
    'the public half is an ed25519 key named after the project');
spew("$dir/public", "$key->{publicKey}\n");
my ($status, $out, $err) = run_cmd('ssh-keygen', '-l', '-f', "$dir/public");
is($out, "256 $key->{fingerprint} slipway-project-$project (ED25519)\n",
    'ssh-keygen prints the same fingerprint') or diag($err);
is_deeply($api->get($path)->{json}, $key, 'GET returns the same');

# --- the private half, as the dispatcher decrypts it
sub stored { my ($id) = @_; return $db->sql("SELECT sealed FROM deploy_key WHERE project_id = $id") }
sub private_half {
	my ($id) = @_;
	my ($rc, $text, $why) = run_cmd(
	    { stdin => "deploy key of project $id\t" . stored($id) . "\n" },
	    program('t/unit/sealer'), 'private-unseal', $api->dir . '/deploy.key');
	is($rc, 0, 'the private half can be decrypted for its project') or diag($why);
	return $text;
}
my $private = private_half($project);
like($private, qr/^-----BEGIN OPENSSH PRIVATE KEY-----\n(?:[\w+\/=]{1,70}\n)+-----END/,
    'the private half has the format of OpenSSH');
spew("$dir/private", $private =~ s/\n*\z/\n/r, 0600);
($status, $out, $err) = run_cmd('ssh-keygen', '-y', '-f', "$dir/private");
is($out, "$key->{publicKey}\n", 'OpenSSH derives the public half from the private half') or diag($err);
spew("$dir/text", "text\n");
($status, $out, $err) = run_cmd('ssh-keygen', '-Y', 'sign', '-n', 'test', '-f', "$dir/private", "$dir/text");
is($status, 0, 'OpenSSH signs with the private half') or diag($err);
my ($rc, $signer) = run_cmd({ stdin => "text\n" }, 'ssh-keygen', '-Y', 'check-novalidate', '-n', 'test', '-s',
    "$dir/text.sig");
like($signer, qr/Good .*\Q$key->{fingerprint}\E/, 'the signature is that of the public half');

# --- a new key replaces it
my $second = $api->put($path, {})->{json};
isnt($second->{publicKey}, $key->{publicKey}, 'a second PUT creates another key');
is($api->get($path)->{json}{fingerprint}, $second->{fingerprint}, 'the second key replaces the first');
is($db->sql('SELECT COUNT(*) FROM deploy_key'), 1, 'the first key is deleted');
is($api->put($path, { publicKey => 'ssh-ed25519 AAAA' })->{status}, 400, 'a client cannot choose the key');
my $tag = $api->get($path)->{headers}{etag};
is($api->put($path, undef, { 'If-Match' => '"1-1"' })->{status}, 412, 'PUT respects If-Match');
is($api->delete($path, { 'If-Match' => '"1-1"' })->{status}, 412, 'DELETE respects If-Match');
is($api->put($path, undef, { 'If-Match' => $tag })->{status}, 200, 'PUT succeeds with the ETag of the key');

# --- roles
for my $case (['none', 401], ['viewer', 403], ['deployer', 403], ['maintainer', 200]) {
	my ($role, $want) = @$case;
	is($api->as($role)->put($path)->{status}, $want, "PUT with role $role returns $want");
	is($api->as($role)->get($path)->{status}, $want, "GET with role $role returns $want");
	my $gone = $want == 200 ? 204 : $want;
	is($api->as($role)->delete($path)->{status}, $gone, "DELETE with role $role returns $gone");
}
is($api->get($path)->{status}, 404, 'a deleted key is not found');
is($db->sql('SELECT COUNT(*) FROM deploy_key'), 0, 'a deleted key is not in the database');
is($api->put('/api/projects/999/deploy-key')->{status}, 404, 'PUT for an unknown project returns 404');

# --- the user in the audit log
my $third = $api->put($path)->{json}{fingerprint};
my $fourth = $api->put($path)->{json}{fingerprint};
my @private = (split /\n/, private_half($project))[ 1 .. 5 ];
$api->delete($path);
my @entries =
    map { [ @$_{qw(action objectType objectId)}, map { @$_{qw(name from to)} } @{ $_->{changes} } ] }
    @{ $api->get("/api/audit?projectId=$project&limit=3")->{json}{data} };
my @of = ('project', $project, 'fingerprint');
is_deeply(\@entries, [ [ 'deleteDeployKey', @of, $fourth, undef ],
	[ 'createDeployKey', @of, $third, $fourth ], [ 'createDeployKey', @of, undef, $third ] ],
    'the audit log has an entry with the fingerprints for each change') or diag(explain(\@entries));

# --- it leaves the service in no other way
$api->put($path);
my $export = $api->get("/api/projects/$project/export")->{body};
unlike($export, qr/ssh-ed25519|SHA256|deployKey/, 'the export has no key');
push @private, (split /\n/, private_half($project))[ 1 .. 5 ];
my $all = $export . $api->log . $db->sql('SELECT * FROM audit') . $db->sql('SELECT * FROM deploy_key');
is(scalar(grep { index($all, $_) >= 0 } @private), 0,
    'neither export, log, audit log nor database has a private half in the clear');
my $other = project('other');
$api->put("/api/projects/$other/deploy-key");
$api->delete("/api/projects/$project");
is($db->sql('SELECT GROUP_CONCAT(project_id) FROM deploy_key'), $other,
    'the key is deleted with its project, and no other');
is($api->put($path)->{status}, 404, 'PUT for a deleted project returns 404');
is($api->get($path)->{status}, 404, 'GET for a deleted project returns 404');

# --- branches, which only runners can read
$db->sql("UPDATE project SET repository = 'ssh://git\@127.0.0.1:1/team/other' WHERE id = $other");
$api->write_conf("[gitserver]\ntype = git\nallowed_hosts = 127.0.0.1:1\n");
$api->stop_api;
$api->start_api;
$got = $api->get("/api/git/branches?projectId=$other");
is($got->{status}, 502, 'branches that only the deploy key opens are not listed');
like($got->{json}{detail}, qr/deploy key, which only runners can use.*deploy a branch/,
    'the error says why, and what to do');
$api->delete("/api/projects/$other/deploy-key");
unlike($api->get("/api/git/branches?projectId=$other")->{json}{detail}, qr/deploy key/,
    'without a deploy key the error does not mention one');
done_testing;
