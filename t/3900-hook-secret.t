#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The webhook secret of a project: who may create it, and how it is returned and stored.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64);
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, no_nginx => 1);
my $key = $api->dir . '/secret.key';
$api->start_nginx;
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
my $path = "/api/projects/$project/hook-secret";

# --- without a key
my $got = $api->put($path);
is($got->{status}, 503, 'PUT without a key file returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'the error names slipway-admin key');
is($db->sql('SELECT COUNT(*) FROM hook_secret'), 0, 'no secret is stored unencrypted');

# --- with one
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'slipway-admin key succeeds') or diag($err);
if (is_root()) { chown 0, (getpwnam 'nobody')[3], $key }
sub restart { $api->stop_api; $api->write_conf(@_); $api->start_api; return }
restart();
$got = $api->put($path);
is($got->{status}, 200, 'PUT creates a secret') or diag($got->{body});
is_deeply([sort keys %{ $got->{json} }], [qw(secret url)],
    'the response has the secret and the URL of the webhook');
my $secret = $got->{json}{secret};
like($secret, qr{^whsec_[A-Za-z0-9+/]{43}=$}, 'the secret has the form of Standard Webhooks');
is(length decode_base64(substr $secret, 6), 32, 'the secret has a key of 32 bytes');
is($got->{json}{url}, undef, 'without api.url and redirect_uri the URL is null');
is($got->{headers}{'cache-control'}, 'no-store', 'the response must not be cached');
is($db->sql("SELECT COUNT(*) FROM hook_secret WHERE project_id = $project"), 1, 'the secret is one row');
my $stored = $db->sql('SELECT HEX(secret) FROM hook_secret');
unlike(pack('H*', $stored), qr/\Q$secret\E|whsec_/, 'the stored secret is encrypted');
my $log = $api->log;
unlike($log, qr/\Q$secret\E/, 'the secret is not in the log');
my $second = $api->put($path, {})->{json}{secret};
isnt($second, $secret, 'a second PUT creates another secret');
is($db->sql('SELECT COUNT(*) FROM hook_secret'), 1, 'the second secret replaces the first');
isnt($db->sql('SELECT HEX(secret) FROM hook_secret'), $stored, 'the first secret is deleted');
unlike($api->get("/api/projects/$project")->{body}, qr/whsec_/, 'the project does not show the secret');

# --- the URL
restart("[gitserver]\nredirect_uri = https://deploy.example.org:8443/a/callback?x=1\n");
is($api->put($path)->{json}{url}, "https://deploy.example.org:8443/api/hooks/$project",
    'without api.url the URL has the origin of redirect_uri');
restart("[api]\nurl = https://ci.example.org/base//\n[gitserver]\nredirect_uri = "
    . "https://deploy.example.org/\n");
is($api->put($path)->{json}{url}, "https://ci.example.org/base/api/hooks/$project",
    'api.url takes precedence over redirect_uri');

# --- errors
for (['none', 401], ['viewer', 403], ['deployer', 403], ['maintainer', 200]) {
	is($api->as($_->[0])->put($path)->{status}, $_->[1], "PUT with role $_->[0] returns $_->[1]");
}
is($api->put('/api/projects/999/hook-secret')->{status}, 404, 'PUT for an unknown project returns 404');
is($api->put($path, { secret => 'mine' })->{status}, 400, 'a client cannot choose the secret');
is($api->get($path)->{status}, 405, 'GET of the secret returns 405');
$api->delete("/api/projects/$project");
is($api->put($path)->{status}, 404, 'PUT for a deleted project returns 404');

done_testing;
