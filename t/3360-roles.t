#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every route with every kind of credential: accepted, unauthenticated (401) or
# forbidden (403). A new route needs a line here.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API qw(bearer session_cookie);
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Test;
use Test::More;

# Routes by the lowest role that may call them; open: all, with any credential.
my %needs = (
	open => [
		'GET /health', 'GET /api/health', 'GET /api/openapi.json', 'GET /api/metrics',
		'GET /api/projects/{id}/badge.svg',
		'GET /api/auth/url',
		'POST /api/auth/login', 'POST /api/auth/device', 'POST /api/auth/device/token',
	],
	signed => [ # authenticated by a signature
		'POST /api/hooks/{id}',
	],
	guest => [
		'GET /projects', 'GET /api/projects', 'GET /api/pipelines', 'GET /api/steps',
		'GET /api/pipelines/templates', 'GET /api/templates', 'GET /api/templates/{id}',
		'GET /api/deployments', 'GET /api/user/list', 'GET /api/user/search', 'GET /api/auth/info',
		'GET /api/auth/logout', 'POST /api/auth/logout', 'POST /api/auth/session',
		'GET /api/auth/tokens', 'POST /api/auth/tokens', 'GET /api/auth/tokens/{id}',
		'DELETE /api/auth/tokens/{id}', 'GET /api/environments', 'GET /api/lock',
		'GET /api/auth/device/request', 'POST /api/auth/device/approve', 'POST /api/auth/device/deny',
		'GET /api/runners', 'GET /api/board', 'GET /api/schedules', 'GET /api/events',
	],
	viewer => [
		'GET /api/projects/{id}', 'GET /api/pipelines/{id}', 'GET /api/steps/{id}',
		'GET /api/deployments/{id}', 'GET /api/deployments/{id}/log', 'GET /api/user/detail/{id}',
		'GET /api/git/branches', 'GET /api/git/commits', 'GET /api/git/tags',
		'GET /api/environments/{id}', 'GET /api/deployments/{id}/log/index',
		'GET /api/deployments/{id}/log/matches', 'GET /api/schedules/{id}',
		'GET /api/deployments/{id}/events', 'GET /api/projects/{id}/members',
	],
	deployer => [
		'POST /api/deployments', 'POST /api/deployments/{id}/retry',
		'POST /api/deployments/{id}/cancel', 'POST /api/deployments/{id}/approve',
		'POST /api/deployments/{id}/deny', 'POST /api/deployments/{id}/promote',
		'POST /api/environments/{id}/rollback', 'DELETE /api/projects/{id}/cache',
	],
	maintainer => [
		'POST /api/projects', 'PUT /api/projects/{id}', 'DELETE /api/projects/{id}',
		'GET /api/projects/{id}/export', 'POST /api/projects/import', 'POST /api/pipelines',
		'PUT /api/pipelines/{id}', 'DELETE /api/pipelines/{id}', 'POST /api/pipelines/from-template',
		'POST /api/steps',
		'PUT /api/steps/{id}', 'DELETE /api/steps/{id}', 'PUT /api/projects/{id}/hook-secret',
		'GET /api/projects/{id}/deploy-key', 'PUT /api/projects/{id}/deploy-key',
		'DELETE /api/projects/{id}/deploy-key',
		'PUT /api/projects/{id}/lock', 'DELETE /api/projects/{id}/lock',
		'PUT /api/environments/{id}/lock', 'DELETE /api/environments/{id}/lock',
		'POST /api/environments', 'PUT /api/environments/{id}', 'DELETE /api/environments/{id}',
		'GET /api/audit', 'GET /api/git/repositories',
		'POST /api/schedules', 'PUT /api/schedules/{id}', 'DELETE /api/schedules/{id}',
		'GET /api/notifiers', 'GET /api/notifiers/{id}', 'POST /api/notifiers',
		'PUT /api/notifiers/{id}', 'DELETE /api/notifiers/{id}', 'PUT /api/notifiers/{id}/secret',
		'POST /api/notifiers/{id}/test',
		'PUT /api/projects/{id}/members/{userId}', 'DELETE /api/projects/{id}/members/{userId}',
	],
	admin => [
		'POST /api/user', 'PUT /api/user/{id}', 'DELETE /api/user/{id}',
		'PUT /api/lock', 'DELETE /api/lock',
		'GET /api/variables', 'POST /api/variables', 'GET /api/variables/{id}',
		'PUT /api/variables/{id}', 'DELETE /api/variables/{id}',
	],
);
my @roles = qw(guest viewer deployer maintainer admin);
my %rank = (map({ $roles[$_] => $_ } 0 .. $#roles), open => -2, signed => -2);
my %need = map { my $role = $_; map { $_ => $role } @{ $needs{$role} } } keys %needs;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited);
my $none = $api->as('none');
my $document = $none->get('/api/openapi.json')->{json};
my (@routes, %of_project); # of a project: to a guest, its objects are unknown (t/3290)
for my $path (sort keys %{ $document->{paths} }) {
	my @methods = grep { /^(?:get|post|put|delete)$/ } sort keys %{ $document->{paths}{$path} };
	push @routes, map { "\U$_\E $path" } @methods;
	$of_project{"\U$_\E $path"} = $document->{paths}{$path}{$_}{description} =~ /as a member of/
	    || $path =~ m{^/api/user/detail/} for @methods;
}
is_deeply([grep { !$need{$_} } @routes], [], 'the test knows the role of every route');
cmp_ok(scalar @routes, '>', 45, 'the test finds the routes (' . @routes . ')');

# --- credentials: the role that they have; none: invalid
my $n = 0;
sub user {
	my ($role, %more) = @_;
	my $name = 'u' . ++$n;
	my %row = (username => $name, role => $role, %more);
	my @columns = sort keys %row;
	$db->sql('INSERT INTO user (' . join(', ', @columns) . ") VALUES ('" . join("', '", @row{@columns})
	    . "')");
	return $db->sql("SELECT id FROM user WHERE username = '$name'");
}
sub token {
	my ($user, $role, $ends) = @_;
	my $token = 'slw_' . substr sha256_hex('token' . ++$n), 0, 43;
	$ends ||= 'NULL';
	my $hash = sha256_hex($token);
	$db->sql('INSERT INTO api_token (user_id, name, role, hash, expires_at)'
	    . " VALUES ($user, 'x', '$role', '$hash', $ends)");
	return $token;
}
sub session {
	my ($user, $ends) = @_;
	my $token = 'sls_' . substr sha256_hex('session' . ++$n), 0, 43;
	$ends ||= 'NOW(3) + INTERVAL 1 DAY';
	my $hash = sha256_hex($token);
	$db->sql("INSERT INTO session (user_id, hash, expires_at) VALUES ($user, '$hash', $ends)");
	return $token;
}
my %own = ('Sec-Fetch-Site' => 'same-origin');

# name => [role, sub that returns the headers; it is called again after signing
# out, which ends sessions]
my $past = 'NOW(3) - INTERVAL 1 SECOND';
my @inactive = ('admin', status => 'inactive');
my @deleted = ('admin', valid => 0);
my %headers = map { $_ => 'u1' } qw(Remote-User X-Remote-User X-Forwarded-User);
my %credential = (
	'no credential' => ['none', sub { +{} }],
	'an unknown token' => ['none', sub { bearer('slw_' . 'x' x 43) }],
	'an unknown session' => ['none', sub { bearer('sls_' . 'x' x 43) }],
	'an empty token' => ['none', sub { bearer('') }],
	'a password' => ['none', sub { +{ Authorization => 'Basic YWRtaW46YWRtaW4=' } }],
	'a name in headers' => ['none', sub { +{ %headers } }],
	'the hash of a token' => ['none', sub { bearer(sha256_hex(token(user('admin'), 'admin'))) }],
	'an expired token' => ['none', sub { bearer(token(user('admin'), 'admin', $past)) }],
	'an expired session' => ['none', sub { bearer(session(user('admin'), $past)) }],
	'a token of an inactive admin' => ['none', sub { bearer(token(user(@inactive), 'admin')) }],
	'a session of an inactive admin' => ['none', sub { bearer(session(user(@inactive))) }],
	'a cookie of an inactive admin' => ['none', sub { session_cookie(session(user(@inactive)), %own) }],
	'a token of a deleted admin' => ['none', sub { bearer(token(user(@deleted), 'admin')) }],
	'a session of a deleted admin' => ['none', sub { bearer(session(user(@deleted))) }],
	'a viewer\'s token of an admin' => ['viewer', sub { bearer(token(user('admin'), 'viewer')) }],
	'an admin\'s token of a viewer' => ['viewer', sub { bearer(token(user('viewer'), 'admin')) }],
);
for my $role (@roles) {
	my $user = user($role);
	my $token = token($user, $role);
	$credential{"a token of a $role"} = [$role, sub { bearer($token) }];
	$credential{"a session of a $role"} = [$role, sub { bearer(session($user)) }];
	$credential{"a cookie of a $role"} = [$role, sub { session_cookie(session($user), %own) }];
}

# --- every credential at every route
my %query = ((map { ($_ => '?projectId=999999') } map({ "GET /api/git/$_" } qw(branches commits tags)),
	'GET /api/audit', 'GET /api/events'), 'GET /api/deployments/{id}/log/matches' => '?q=x');
my @table;
# 401, 403 or, for any other status, "in".
sub result {
	my ($route, $headers) = @_;
	my ($method, $path) = split / /, $route;
	$path =~ s/\{[^}]*\}/999999/g;
	my $got = $none->request($method, $path . ($query{$route} || ''), $method =~ /^P/ ? '{}' : undef,
	    $headers);
	push @table, [$route, $got] if $got->{status} >= 500 && $got->{status} != 503;
	return $got->{status} =~ /^40([13])$/ ? "40$1" : 'in';
}
my $asked = 0;
for my $name (sort keys %credential) {
	my ($role, $make) = @{ $credential{$name} };
	my ($headers, @wrong);
	for my $route (@routes) {
		next if $need{$route} eq 'signed' || $role eq 'guest' && $of_project{$route};
		my $least = $rank{ $need{$route} };
		my $want = $least < 0 ? 'in' : $role eq 'none' ? '401' : $rank{$role} < $least ? '403' : 'in';
		# only a token starts a session
		$want = '403' if $route eq 'POST /api/auth/session' && $name =~ /^a (?:session|cookie) of/
		    && $role ne 'none';
		my $is = result($route, $headers ||= $make->());
		undef $headers if $route =~ /logout/;
		push @wrong, "$route: $is, not $want" if $is ne $want;
		$asked++;
	}
	is_deeply(\@wrong, [], "$name is accepted by exactly the routes of its role ($role)");
}
is_deeply([map { "$_->[0]: $_->[1]{status}" } @table], [], 'no request causes a server error');
diag "$asked requests" if $asked < 1000;

# --- cookies in requests from pages of other sites
my $admin = user('admin');
for my $case (['without an origin', {}], ['from another site', { 'Sec-Fetch-Site' => 'cross-site' }],
    ['from a subdomain', { 'Sec-Fetch-Site' => 'same-site' }],
    ['from another origin', { Origin => 'https://evil.example' }],
    ['from the origin null', { Origin => 'null' }]) {
	my ($name, $headers) = @$case;
	my $session = session($admin);
	my (@writes, @reads);
	for my $route (@routes) {
		next if $rank{ $need{$route} } < 0;
		my $is = result($route, session_cookie($session, %$headers));
		my $writes = $route !~ /^GET/ || $route eq 'GET /api/auth/logout';
		push @{ $writes ? \@writes : \@reads }, "$route: $is" if $is ne ($writes ? '403' : 'in');
	}
	is_deeply(\@writes, [], "a write by cookie $name returns 403 at every route");
	is_deeply(\@reads, [], "a read by cookie $name succeeds at every route");
}

# --- unusual spellings of paths need authentication, too
for my $path ('/api//projects', '/api/projects/', '/API/projects', '/api/projects;.js', '/api/./projects',
    '/api/%70rojects',
    '/api/projects%2f', '/api/projects%00', '/api/health/../projects', '/api/auth/url/../../projects',
    '/health/../api/projects',
    '/api/projects?x=/health', '//api/projects', '/api/health;/../projects',
    '/api/openapi.json/../user/list') {
	my (undef, $out) = run_cmd('curl', '-s', '--path-as-is', '--cacert', $api->cacert, '-o', '/dev/null',
	    '-w', '%{http_code}', $api->url . $path);
	like($out, qr/^(?:40[014])$/, "$path without a credential is rejected");
}

done_testing;
