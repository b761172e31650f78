#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every route with every kind of credential: who gets in, who is asked to sign
# in (401), who may not (403).  A new route needs its line here.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

# The lowest role that may; open = all, whatever they send along.
my %needs = (
	open => [
		'GET /health', 'GET /api/health', 'GET /api/openapi.json', 'GET /api/metrics', 'GET /api/auth/url',
		'POST /api/auth/login',
	],
	signed => [ # by something else than a role
		'POST /api/hooks/{id}',
	],
	viewer => [
		'GET /projects', 'GET /api/projects', 'GET /api/projects/{id}', 'GET /api/pipelines', 'GET /api/pipelines/{id}',
		'GET /api/steps', 'GET /api/steps/{id}', 'GET /api/pipelines/templates',
		'GET /api/templates', 'GET /api/templates/{id}', 'GET /api/deployments',
		'GET /api/deployments/{id}', 'GET /api/deployments/{id}/log', 'GET /api/user/list', 'GET /api/user/search',
		'GET /api/user/detail/{id}', 'GET /api/auth/info', 'GET /api/auth/logout', 'POST /api/auth/logout',
		'GET /api/auth/tokens', 'POST /api/auth/tokens', 'GET /api/auth/tokens/{id}', 'DELETE /api/auth/tokens/{id}',
		'GET /api/git/branches', 'GET /api/git/commits',
	],
	deployer => [
		'POST /api/deployments', 'POST /api/deployments/{id}/retry', 'POST /api/deployments/{id}/cancel',
	],
	maintainer => [
		'POST /api/projects', 'PUT /api/projects/{id}', 'DELETE /api/projects/{id}', 'POST /api/pipelines',
		'PUT /api/pipelines/{id}', 'DELETE /api/pipelines/{id}', 'POST /api/pipelines/from-template', 'POST /api/steps',
		'PUT /api/steps/{id}', 'DELETE /api/steps/{id}', 'PUT /api/projects/{id}/hook-secret',
	],
	admin => ['POST /api/user', 'PUT /api/user/{id}', 'DELETE /api/user/{id}'],
);
my @roles = qw(viewer deployer maintainer admin);
my %rank = (map({ $roles[$_] => $_ } 0 .. $#roles), open => -2, signed => -2);
my %need = map { my $role = $_; map { $_ => $role } @{ $needs{$role} } } keys %needs;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx => sub { $_[1] =~ s/rate=\d+r\/m/rate=60000r\/m/gr });
my $none = $api->as('none');
my $document = $none->get('/api/openapi.json')->{json};
my @routes;
for my $path (sort keys %{ $document->{paths} }) {
	push @routes, map { "\U$_\E $path" } grep { /^(?:get|post|put|delete)$/ } sort keys %{ $document->{paths}{$path} };
}
is_deeply([grep { !$need{$_} } @routes], [], 'the role of every route is known');
cmp_ok(scalar @routes, '>', 45, scalar(@routes) . ' routes');

# --- credentials: what they count as; none = not at all
my $n = 0;
sub user {
	my ($role, %more) = @_;
	my $name = 'u' . ++$n;
	my %row = (username => $name, role => $role, %more);
	$db->sql('INSERT INTO user (' . join(', ', sort keys %row) . ") VALUES ('" . join("', '", map { $row{$_} } sort keys %row) . "')");
	return $db->sql("SELECT id FROM user WHERE username = '$name'");
}
sub token {
	my ($user, $role, $ends) = @_;
	my $token = 'slw_' . substr sha256_hex('token' . ++$n), 0, 43;
	$ends ||= 'NULL';
	$db->sql("INSERT INTO api_token (user_id, name, role, hash, expires_at) VALUES ($user, 'x', '$role', '" . sha256_hex($token) . "', $ends)");
	return $token;
}
sub session {
	my ($user, $ends) = @_;
	my $token = 'sls_' . substr sha256_hex('session' . ++$n), 0, 43;
	$ends ||= 'NOW(3) + INTERVAL 1 DAY';
	$db->sql("INSERT INTO session (user_id, hash, expires_at) VALUES ($user, '" . sha256_hex($token) . "', $ends)");
	return $token;
}
sub bearer { return { Authorization => "Bearer $_[0]" } }
sub cookie { return { Cookie => "__Host-slipway=$_[0]" } }
my %own = ('Sec-Fetch-Site' => 'same-origin');

# name => [role, sub that gives the headers, made anew after signing out, which
# ends sessions]
my %credential = (
	'nothing' => ['none', sub { +{} }],
	'a token that is none' => ['none', sub { bearer('slw_' . 'x' x 43) }],
	'a session that is none' => ['none', sub { bearer('sls_' . 'x' x 43) }],
	'an empty token' => ['none', sub { bearer('') }],
	'a password' => ['none', sub { +{ Authorization => 'Basic YWRtaW46YWRtaW4=' } }],
	'a name in headers' => ['none', sub { +{ 'Remote-User' => 'u1', 'X-Remote-User' => 'u1', 'X-Forwarded-User' => 'u1' } }],
	'the hash of a token' => ['none', sub { bearer(sha256_hex(token(user('admin'), 'admin'))) }],
	'a token that ended' => ['none', sub { bearer(token(user('admin'), 'admin', 'NOW(3) - INTERVAL 1 SECOND')) }],
	'a session that ended' => ['none', sub { bearer(session(user('admin'), 'NOW(3) - INTERVAL 1 SECOND')) }],
	'a token of an inactive admin' => ['none', sub { bearer(token(user('admin', status => 'inactive'), 'admin')) }],
	'a session of an inactive admin' => ['none', sub { bearer(session(user('admin', status => 'inactive'))) }],
	'a cookie of an inactive admin' => ['none', sub { +{ %{ cookie(session(user('admin', status => 'inactive'))) }, %own } }],
	'a token of a deleted admin' => ['none', sub { bearer(token(user('admin', valid => 0), 'admin')) }],
	'a session of a deleted admin' => ['none', sub { bearer(session(user('admin', valid => 0))) }],
	'a viewer\'s token of an admin' => ['viewer', sub { bearer(token(user('admin'), 'viewer')) }],
	'an admin\'s token of a viewer' => ['viewer', sub { bearer(token(user('viewer'), 'admin')) }],
);
for my $role (@roles) {
	my $user = user($role);
	my $token = token($user, $role);
	$credential{"$role by token"} = [$role, sub { bearer($token) }];
	$credential{"$role by session"} = [$role, sub { bearer(session($user)) }];
	$credential{"$role by cookie"} = [$role, sub { +{ %{ cookie(session($user)) }, %own } }];
}

# --- the table
my %query = ('GET /api/git/branches' => '?projectId=999999', 'GET /api/git/commits' => '?projectId=999999');
my @table;
sub outcome {
	my ($route, $headers) = @_;
	my ($method, $path) = split / /, $route;
	$path =~ s/\{[^}]*\}/999999/g;
	my $got = $none->request($method, $path . ($query{$route} || ''), $method =~ /^P/ ? '{}' : undef, $headers);
	push @table, [$route, $got] if $got->{status} >= 500 && $got->{status} != 503;
	return $got->{status} =~ /^40([13])$/ ? "40$1" : 'in';
}
my $asked = 0;
for my $name (sort keys %credential) {
	my ($role, $make) = @{ $credential{$name} };
	my ($headers, @wrong);
	for my $route (@routes) {
		next if $need{$route} eq 'signed';
		my $want = $rank{ $need{$route} } < 0 ? 'in' : $role eq 'none' ? '401' : $rank{$role} < $rank{ $need{$route} } ? '403' : 'in';
		my $is = outcome($route, $headers ||= $make->());
		undef $headers if $route =~ /logout/;
		push @wrong, "$route: $is, not $want" if $is ne $want;
		$asked++;
	}
	is_deeply(\@wrong, [], "$name: every route");
}
is_deeply([map { "$_->[0]: $_->[1]{status}" } @table], [], 'nothing failed');
diag "$asked requests" if $asked < 1000;

# --- the cookie and writes: what a page of another site can send
my $admin = user('admin');
for my $case (['from nowhere', {}], ['from another site', { 'Sec-Fetch-Site' => 'cross-site' }],
    ['from a neighbour', { 'Sec-Fetch-Site' => 'same-site' }], ['by another origin', { Origin => 'https://evil.example' }],
    ['by no origin', { Origin => 'null' }]) {
	my ($name, $headers) = @$case;
	my $session = session($admin);
	my (@writes, @reads);
	for my $route (@routes) {
		next if $rank{ $need{$route} } < 0;
		my $is = outcome($route, { %{ cookie($session) }, %$headers });
		my $writes = $route !~ /^GET/ || $route eq 'GET /api/auth/logout';
		push @{ $writes ? \@writes : \@reads }, "$route: $is" if $is ne ($writes ? '403' : 'in');
	}
	is_deeply(\@writes, [], "a cookie $name changes nothing");
	is_deeply(\@reads, [], 'reading is no change');
}

# --- whatever way the path is written
for my $path ('/api//projects', '/api/projects/', '/API/projects', '/api/projects;.js', '/api/./projects', '/api/%70rojects',
    '/api/projects%2f', '/api/projects%00', '/api/health/../projects', '/api/auth/url/../../projects', '/health/../api/projects',
    '/api/projects?x=/health', '//api/projects', '/api/health;/../projects', '/api/openapi.json/../user/list') {
	my (undef, $out) = run_cmd('curl', '-s', '--path-as-is', '--cacert', $api->cacert, '-o', '/dev/null', '-w', '%{http_code}', $api->url . $path);
	like($out, qr/^(?:40[014])$/, "nobody gets in by $path");
}

done_testing;
