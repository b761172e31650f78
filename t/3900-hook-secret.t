#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The secret of a project's push events: who makes it, how it is shown and kept.

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
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
my $path = "/api/projects/$project/hook-secret";

# --- without a key
my $got = $api->put($path);
is($got->{status}, 503, 'no key file: 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'it says what to do');
is($db->sql('SELECT COUNT(*) FROM hook_secret'), 0, 'nothing is kept in the open');

# --- with one
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'slipway-admin key') or diag($err);
if (is_root()) { chown 0, (getpwnam 'nobody')[3], $key }
sub restart { $api->stop_api; $api->write_conf(@_); $api->start_api; return }
restart();
$got = $api->put($path);
is($got->{status}, 200, 'a secret is made') or diag($got->{body});
is_deeply([sort keys %{ $got->{json} }], [qw(secret url)], 'it is told with an address');
my $secret = $got->{json}{secret};
like($secret, qr{^whsec_[A-Za-z0-9+/]{43}=$}, 'in the form of Standard Webhooks');
is(length decode_base64(substr $secret, 6), 32, 'with a key of 32 bytes');
is($got->{json}{url}, undef, 'nothing says how the service is reached');
is($got->{headers}{'cache-control'}, 'no-store', 'no cache keeps it');
is($db->sql("SELECT COUNT(*) FROM hook_secret WHERE project_id = $project"), 1, 'one row');
my $stored = $db->sql('SELECT HEX(secret) FROM hook_secret');
unlike(pack('H*', $stored), qr/\Q$secret\E|whsec_/, 'which is sealed');
my $log = $api->log;
unlike($log, qr/\Q$secret\E/, 'the log does not have it');
my $second = $api->put($path, {})->{json}{secret};
isnt($second, $secret, 'another time, another one');
is($db->sql('SELECT COUNT(*) FROM hook_secret'), 1, 'in the place of the first');
isnt($db->sql('SELECT HEX(secret) FROM hook_secret'), $stored, 'which is gone');
unlike($api->get("/api/projects/$project")->{body}, qr/whsec_/, 'the project does not show it');

# --- the address
restart("[gitserver]\nredirect_uri = https://deploy.example.org:8443/a/callback?x=1\n");
is($api->put($path)->{json}{url}, "https://deploy.example.org:8443/api/hooks/$project", "of the sign-in's return address");
restart("[api]\nurl = https://ci.example.org/base//\n[gitserver]\nredirect_uri = https://deploy.example.org/\n");
is($api->put($path)->{json}{url}, "https://ci.example.org/base/api/hooks/$project", 'of api.url, which goes first');

# --- refused
for (['none', 401], ['viewer', 403], ['deployer', 403], ['maintainer', 200]) {
	is($api->as($_->[0])->put($path)->{status}, $_->[1], "$_->[0]: $_->[1]");
}
is($api->put('/api/projects/999/hook-secret')->{status}, 404, 'no such project');
is($api->put($path, { secret => 'mine' })->{status}, 400, 'nobody chooses it');
is($api->get($path)->{status}, 405, 'it cannot be read');
$api->delete("/api/projects/$project");
is($api->put($path)->{status}, 404, 'a deleted project');

done_testing;
