#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What every route has in common: errors, headers, conditions, paging.

use strict;
use warnings;
use Encode ();
use JSON::PP ();
use IO::Socket::SSL ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $none = $api->as('none');
my ($got, $p);

# Every problem has the members of the contract and says the same as the head.
sub problem {
	my ($got, $status, $code, $name) = @_;
	my $j = $got->{json} || {};
	is($got->{status}, $status, "$name: $status") or diag $got->{body};
	is($got->{headers}{'content-type'}, 'application/problem+json', "$name: the type");
	is_deeply([@$j{qw(status code)}], [$status, $code], "$name: status and code");
	is_deeply([grep { !defined $j->{$_} || $j->{$_} eq '' } qw(type title detail requestId)], [],
	    "$name: nothing is missing");
	is($got->{headers}{'x-request-id'}, $j->{requestId}, "$name: the same request id");
	like($got->{body}, qr/[^\n]\}\n\z/, "$name: a line");
	is($got->{headers}{'strict-transport-security'}, 'max-age=31536000', "$name: TLS from now on");
	unlike($got->{body}, qr/SELECT|INSERT|mysql|maria|sock|\/tmp|\/work|errno/i, "$name: nothing from inside");
	return $j;
}

# As bytes, over TLS: the answer's first line and all of it.
sub raw {
	my ($text) = @_;
	my ($port) = $api->url =~ /(\d+)$/;
	my $s = IO::Socket::SSL->new(PeerAddr => "127.0.0.1:$port", SSL_ca_file => $api->cacert,
		SSL_verifycn_name => 'localhost', SSL_hostname => 'localhost', Timeout => 10) or die $@ || $!;
	print {$s} $text;
	my $all = '';
	while (sysread $s, my $part, 65536) { $all .= $part }
	return $all;
}

my %project = (name => 'One', repository => 'https://git.example.org/a/one');
$p = $api->post('/api/projects', \%project)->{json};
my $path = "/api/projects/$p->{id}";

# --- one error of each kind
problem($api->post('/api/projects', '{'), 400, 'bad_request', 'half a body');
problem($none->get($path), 401, 'unauthenticated', 'no token');
problem($api->as('viewer')->post('/api/projects', \%project), 403, 'forbidden', 'a role too low');
problem($api->get('/api/projects/999999999'), 404, 'not_found', 'what is not there');
problem($api->get('/api/nothing'), 404, 'not_found', 'an unknown path');
problem($api->request('PATCH', $path, '{}'), 405, 'method_not_allowed', 'an unknown method');
problem($api->post('/api/projects', { %project, projectDir => 'b' }), 409, 'conflict', 'a taken name');
problem($api->put($path, {}, { 'If-Match' => '"9-0123456789abcdef"' }), 412, 'precondition_failed', 'an old version');
problem($api->post('/api/projects', '"' . 'x' x 1_100_000 . '"'), 413, 'payload_too_large', 'a large body');
problem($api->post('/api/projects', 'a=b', { 'Content-Type' => 'application/x-www-form-urlencoded' }),
	415, 'unsupported_media_type', 'a form');
my $j = problem($api->post('/api/projects', { name => '', foo => 1 }), 422, 'validation_failed', 'a wrong body');
is_deeply([sort map { $_->{pointer} } @{ $j->{errors} }], ['/foo', '/name', '/repository'],
    'all faults are told at once');
problem($none->get('/api/auth/url'), 503, 'unavailable', 'a Git server that is not set');

# --- who is let in
$got = $none->get($path);
is($got->{headers}{'www-authenticate'}, 'Bearer realm="slipway"', '401 says how to sign in');
for my $header ('Bearer slw_wrong', 'Bearer ', 'Bearer', 'Basic YTpi', 'bearer ' . 'x' x 5000, 'slw_x',
	'Bearer ' . substr($api->token, 0, -1), 'Bearer ' . $api->token . 'x', 'Bearer ' . uc $api->token) {
	is($none->get($path, { Authorization => $header })->{status}, 401, 'refused: ' . substr $header, 0, 20);
}
is($none->get($path, { Authorization => 'bearer ' . $api->token })->{status}, 200, 'the scheme is caseless');
like($none->get($path, { Authorization => 'Bearer x' })->{headers}{'www-authenticate'},
    qr/error="invalid_token"/, 'a wrong token is told from none');
is($none->get('/health', { Authorization => 'Bearer x' })->{status}, 200, 'open routes look at none');
my @cookie = (Cookie => '__Host-slipway=' . $api->token);
is($none->put($path, {}, { @cookie })->{status}, 403, 'a write by cookie from nowhere');
is($none->put($path, {}, { @cookie, Origin => 'https://evil.example' })->{status}, 403, 'from elsewhere');
is($none->put($path, {}, { @cookie, Origin => 'null' })->{status}, 403, 'from a sandbox');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'cross-site' })->{status}, 403, 'from another site');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'same-site' })->{status}, 403, 'from a neighbour');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'cross-site', Origin => $api->url })->{status}, 403,
    'from another site with our origin');
is($none->get('/api/auth/logout', { @cookie })->{status}, 403, 'to sign out too');
is($none->put($path, {}, { @cookie, Origin => $api->url })->{status}, 200, 'from our own page');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'same-origin' })->{status}, 200, 'or as the browser says');
is($none->get($path, { Cookie => 'x=1; __Host-slipwayx=2; __Host-slipway=wrong' })->{status}, 401, 'a wrong cookie');

# --- who may do what: each role at each kind of route
my %may = (
	'GET /api/projects' => 1, 'POST /api/projects' => 3, "PUT $path" => 3, "DELETE /api/projects/7777" => 3,
	'GET /api/pipelines' => 1, 'POST /api/pipelines' => 3, 'PUT /api/pipelines/7777' => 3, 'DELETE /api/pipelines/7777' => 3,
	'GET /api/steps' => 1, 'POST /api/steps' => 3, 'PUT /api/steps/7777' => 3, 'DELETE /api/steps/7777' => 3,
	'GET /api/user/list' => 1, 'GET /api/user/search' => 1, 'GET /api/user/detail/1' => 1, 'POST /api/user' => 4,
	'PUT /api/user/7777' => 4, 'DELETE /api/user/7777' => 4, 'GET /api/auth/info' => 1, 'GET /api/auth/tokens' => 1,
	'GET /api/git/branches' => 1, 'GET /api/git/commits' => 1, 'GET /projects' => 1,
	'GET /health' => 0, 'GET /api/health' => 0, 'GET /api/auth/url' => 0, 'POST /api/auth/login' => 0,
);
my @roles = qw(none viewer deployer maintainer admin);
for my $what (sort keys %may) {
	my ($method, $where) = split ' ', $what;
	my @let;
	for my $rank (0 .. 4) {
		my $status = $api->as($roles[$rank])->request($method, $where,
		    $method =~ /^P/ ? '[]' : undef)->{status};
		push @let, $status != 401 && $status != 403 ? 1 : 0;
	}
	is("@let", join(' ', map { $_ >= $may{$what} ? 1 : 0 } 0 .. 4), "$what: none, viewer, deployer, maintainer, admin");
}

# --- headers of every answer
for my $where ($path, '/api/projects', '/api/nothing', '/health') {
	my $h = $api->get($where)->{headers};
	is($h->{'cache-control'}, 'no-store', "$where: not kept");
	is($h->{'x-content-type-options'}, 'nosniff', "$where: not guessed");
	like($h->{'content-security-policy'}, qr/default-src 'none'/, "$where: not run");
	like($h->{'x-request-id'}, qr/^[0-9a-f]{32}$/, "$where: numbered by nginx");
	like($h->{'strict-transport-security'}, qr/max-age=\d{8}/, "$where: TLS from now on");
	ok(!exists $h->{'access-control-allow-origin'}, "$where: for no other origin");
}
$got = $api->get($path);
ok(poll(5, sub { $api->log =~ /\Q$got->{headers}{'x-request-id'}\E GET \Q$path\E 200 \d+ ms t-admin/ }),
    'the log has it');
unlike($api->log, qr/slw_/, 'but no token');

for my $where ($path, '/api/projects', '/projects', '/api/deployments', '/api/openapi.json', '/health', '/api/auth/info') {
	my $whole = $api->get($where);
	like($whole->{body}, qr/[^\n][\]}]\n\z/, "$where: ends in a newline");
	is($whole->{headers}{'content-length'}, length $whole->{body}, "$where: which is counted");
	is($api->head($where)->{headers}{'content-length'}, length $whole->{body}, "$where: also by HEAD");
}

# --- conditions
my $etag = $got->{headers}{etag};
is($api->get($path, { 'If-None-Match' => $etag })->{status}, 304, 'known already');
is($api->get($path, { 'If-None-Match' => $etag })->{body}, '', 'so nothing is sent');
is($api->get($path, { 'If-None-Match' => $etag })->{headers}{etag}, $etag, 'but the tag');
is($api->get($path, { 'If-None-Match' => "\"x\", W/$etag" })->{status}, 304, 'one of several, weak');
is($api->get($path, { 'If-None-Match' => '*' })->{status}, 304, 'any');
is($api->get($path, { 'If-None-Match' => '"x"' })->{status}, 200, 'another');
is($api->get($path, { 'If-None-Match' => 'x' })->{status}, 200, 'no tag at all');
is($api->head($path, { 'If-None-Match' => $etag })->{status}, 304, 'HEAD too');
is($api->put($path, {}, { 'If-Match' => "W/$etag" })->{status}, 412, 'weak tags guard nothing');
is($api->put($path, {}, { 'If-Match' => '"x", "y"' })->{status}, 412, 'none of them');
is($api->put($path, {}, { 'If-Match' => 'x' })->{status}, 400, 'no list of tags');
is($api->put($path, {}, { 'If-Match' => '' })->{status}, 412, 'a list of none, as of a script that has lost the tag');
is($api->put($path, {}, { 'If-Match' => '"x' })->{status}, 400, 'half a tag');
is($api->put($path, { description => 'first' }, { 'If-Match' => "\"x\", $etag" })->{status}, 200, 'one of them');
is($api->put($path, {}, { 'If-Match' => $etag })->{status}, 412, 'used up by that');
is($api->put($path, { description => 'second' }, { 'If-Match' => '*' })->{status}, 200, 'any there is');
$etag = $api->get($path)->{headers}{etag};
for my $case (['*', 412, 'where there is none'], [$etag, 412, 'unless it is this'], ["\"x\", W/$etag", 412, 'or that, weak'],
	['"x"', 200, 'unless it is another'], ['x', 200, 'unless it is no tag'], [$etag, 200, 'unless it is as before']) {
	my ($header, $status, $name) = @$case;
	is($api->put($path, { description => $name }, { 'If-None-Match' => $header })->{status}, $status, "a change, $name");
}
is($api->put($path, {}, { 'If-Match' => '*', 'If-None-Match' => '*' })->{status}, 412, 'both must hold');
is($api->delete($path, { 'If-None-Match' => '*' })->{status}, 412, 'to delete what is not there');
is($api->put('/api/projects/77777', {}, { 'If-Match' => '*' })->{status}, 404, 'there is none');

# --- methods
$got = $api->head($path);
is($got->{status}, 200, 'HEAD');
is($got->{body}, '', 'has no body');
is($got->{headers}{'content-length'}, length $api->get($path)->{body}, 'but its length');
is($api->head('/api/projects/77777')->{status}, 404, 'HEAD of nothing');
for my $case (['/api/projects', 'GET, HEAD, POST, OPTIONS'], [$path, 'GET, HEAD, PUT, DELETE, OPTIONS'],
	['/api/user', 'POST, OPTIONS'], ['/health', 'GET, HEAD, OPTIONS'], ['/api/auth/logout', 'GET, HEAD, POST, OPTIONS']) {
	my ($where, $allow) = @$case;
	$got = $none->request('OPTIONS', $where);
	is("$got->{status} $got->{headers}{allow}", "204 $allow", "OPTIONS $where");
	$got = $none->request('PROPFIND', $where);
	is("$got->{status} $got->{headers}{allow}", "405 $allow", "PROPFIND $where");
}
is($api->request('DELETE', '/api/projects')->{status}, 405, 'a list cannot be deleted');
is($none->request('OPTIONS', '/api/nothing')->{status}, 404, 'OPTIONS of nothing');

# --- bodies
is($api->post('/api/projects')->{status}, 415, 'no body, no type');
for my $case (['', 400], ['null', 422], ['[]', 422], ['"x"', 422], ['{"name":"a","name":"b"}', 422], ["{\"name\":\"\xff\"}", 400],
	['{"name":"\u0000"}', 422], ['{"name":"\ud800"}', 400], ["\xef\xbb\xbf{}", 400], ['{}x', 400], ['{"a":01}', 400],
	['{"a":1e400}', 400], ['{a:1}', 400], ["{'a':1}", 400], ['{"a":1,}', 400], ['[' x 100_000, 422], ['{}', 422]) {
	my ($text, $status) = @$case;
	$got = $api->request('POST', '/api/projects', $text, { 'Content-Type' => 'application/json' });
	is($got->{status}, $status, 'body: ' . substr($text, 0, 30) =~ s/[^ -~]/?/gr);
}
for my $case (['application/json', 422], ['application/json; charset=utf-8', 422], ['Application/JSON;charset="UTF-8"', 422],
	['application/json;', 422], ["application/json\t;\t; charset=utf-8 ;", 422], ['application/json; profile="a"; odata=x', 422],
	['application/json; profile=x; charset=utf-16', 415], ['application/json; charset=utf-8x', 415], ['application/json; charset=', 415],
	['application/json; charset=latin1', 415], ['text/json', 415], ['application/jsonp', 415],
	['multipart/form-data', 415], ['text/plain', 415], ['application/json, text/plain', 415]) {
	my ($type, $status) = @$case;
	is($api->post('/api/projects', '{}', { 'Content-Type' => $type })->{status}, $status, "type: $type");
}
for my $case ([gzip => 415], ['gzip, identity' => 415], [identity => 422], [Identity => 422]) {
	my ($coding, $status) = @$case;
	$got = $api->post('/api/projects', '{}', { 'Content-Type' => 'application/json', 'Content-Encoding' => $coding });
	is($got->{status}, $status, "coding: $coding");
}
is($api->request('GET', $path, 'x')->{status}, 400, 'GET takes no body');
is($api->request('DELETE', '/api/projects/7777', '{"a":1}')->{status}, 400, 'DELETE takes none either');

# --- queries
for my $case (['page=0', 400], ['page=-1', 400], ['page=x', 400], ['page=', 400], ['page', 400], ['page=1.0', 400],
	['page=%201', 400], ['page=1+', 400], ['page=01', 400], ['page=99999999999999999999', 400], ['limit=0', 400],
	['limit=101', 400], ['limit=abc', 400], ['foo=1', 400], ['page=1&page=1', 400], ['Page=1', 400], ['page=1&foo=', 400],
	['name=%', 400], ['name=%zz', 400], ['name=%00', 400], ['name=%ff', 400], ['name=' . 'x' x 101, 400],
	['name=%0a', 400], ['', 200], ['&', 200], ['page=1', 200], ['limit=100', 200], ['limit=1&page=1000000000', 200],
	['name=%E2%82%AC', 200], ['name=a+b', 200], ['name=a=b', 200]) {
	my ($query, $status) = @$case;
	is($api->get("/api/projects?$query")->{status}, $status, 'query: ' . substr $query, 0, 40);
}
like($api->get('/api/projects?foo=1')->{json}{detail}, qr/"foo"/, 'an unknown parameter is named');
is($api->get("$path?page=1")->{status}, 400, 'a route without parameters takes none');

# --- paths
for my $case (['/api//projects', 400], ['/api/./projects', 400], ['/api/x/../projects', 400], ['/api/projects;a=b', 400],
	['/api/projects%2f1', 400], ['/api%2Fprojects', 400], ['/api/projects/%2e%2e', 400], ['/api/projects/%00', 400],
	['/api/projects/1%0a', 400], ['/api/projects/%ff', 400], ['/api/projects/%', 400], ['/api/projects\\1', 400],
	['/api/projects/%c0%ae', 400], ['/api/projects/', 404], ['/API/projects', 404], ['/api/Projects', 404],
	['/api/projects/0', 404], ['/api/projects/01', 404], ['/api/projects/-1', 404], ['/api/projects/1x', 404],
	['/api/projects/+1', 404], ['/api/projects/9007199254740992', 404], ['/api/projects/99999999999999999999', 404],
	["$path/", 404], ["$path/x", 404], ['/api/projects.json', 404], ['/api', 404], ['/api/', 404], ['/%61pi/projects', 200],
	['/api/user/list', 200], ['/api/user/detail', 404]) {
	my ($where, $status) = @$case;
	my ($line) = raw("GET $where HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "
	    . $api->token . "\r\n\r\n") =~ /^HTTP\/1\.1 (\d+)/;
	is($line, $status, "path: $where");
}

# --- what nginx itself refuses has the same shape
for my $case (
	["GET /api/x HTTP/1.1\r\nHost: localhost\r\nX: " . ('y' x 9000) . "\r\n\r\n", 400, 'bad_request', 'a long header'],
	['GET /api/' . ('y' x 9000) . " HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, 'bad_request', 'a long address'],
	["GET /api/x HTTP/1.1\r\n\r\n", 400, 'bad_request', 'no host'],
	["GET /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 400, 'bad_request', 'a coding that is not known'],
	["GET /api/x HTTP/3.0\r\nHost: localhost\r\n\r\n", 400, 'bad_request', 'a version that is not known'],
	["TRACE /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, 'method_not_allowed', 'TRACE'],
	["POST /api/projects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n",
		413, 'payload_too_large', 'a body of 100 GB'],
	["POST /api/projects HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, 'bad_request', 'a negative length'],
	["POST /api/projects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5x\r\n\r\n", 400, 'bad_request', 'a length with a tail'],
	["POST /api/projects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, 'bad_request', 'two lengths'],
) {
	my ($text, $status, $code, $name) = @$case;
	my $answer = raw($text);
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;
	like($head, qr/^HTTP\/1\.1 $status /, "$name: $status");
	like($head, qr/content-type: application\/problem\+json/i, "$name: the type");
	my $json = eval { JSON::PP->new->decode($body) } || {};
	is($json->{code}, $code, "$name: $code");
	ok($json->{requestId}, "$name: numbered");
}
my $chunked = raw("POST /api/projects HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "
    . $api->token . "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    . join('', map { sprintf "%x\r\n%s\r\n", length, $_ } '{"name":"Chunked",', '"repository":"https://git.example.org/c/c"}')
    . "0\r\n\r\n");
like($chunked, qr/^HTTP\/1\.1 201 /, 'a chunked body is read whole');
my $two = raw("GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-None-Match: \"a\"\r\nIf-None-Match: $etag\r\nAuthorization: Bearer "
    . $api->token . "\r\n\r\n");
like($two, qr/^HTTP\/1\.1 400 /, 'a field given twice is refused');

# --- pages
$api->post('/api/projects', { name => "P$_", repository => 'https://git.example.org/a/b' }) for 10 .. 13;
my $all = $api->get('/api/projects?limit=100')->{json};
is($all->{pagination}{total}, 6, 'six projects');
my @seen;
my $next = '/api/projects?limit=4';
while ($next) {
	$got = $api->get($next);
	push @seen, map { $_->{id} } @{ $got->{json}{data} };
	is($got->{headers}{'x-total-count'}, 6, 'X-Total-Count');
	($next) = $got->{headers}{link} =~ /<([^>]+)>; rel="next"/;
}
is_deeply(\@seen, [map { $_->{id} } @{ $all->{data} }], 'following next gives all, in order');
is_deeply($got->{json}{pagination}, { page => 2, limit => 4, total => 6, totalPages => 2 }, 'the last page');
is($got->{headers}{link}, '</api/projects?page=1&limit=4>; rel="first", </api/projects?page=1&limit=4>; rel="prev", '
    . '</api/projects?page=2&limit=4>; rel="last"', 'its links');
$got = $api->get('/api/projects?page=9&limit=4');
is_deeply($got->{json}{data}, [], 'past the end');
like($got->{headers}{link}, qr/page=2&limit=4>; rel="prev"/, 'leads back');
$got = $api->get('/api/projects?name=P1&limit=1');
like($got->{headers}{link}, qr/<\/api\/projects\?name=P1&page=2&limit=1>; rel="next"/, 'links keep the filter');
my $wide = "\x{1f680}" x 99;
my $filter = join '', map { sprintf '%%%02X', $_ } unpack 'C*', Encode::encode('UTF-8', $wide);
$api->post('/api/projects', { %project, name => "$wide$_" }) for 1 .. 3;
$got = $api->get("/api/projects?name=$filter&page=2&limit=1");
is("$got->{status} $got->{json}{pagination}{total}", '200 3', 'by the longest filter');
is(join(' ', ($got->{headers}{link} || '') =~ /rel="(\w+)"/g), 'first prev next last', 'all pages around are named');
my ($on) = ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/;
is($api->get($on)->{json}{data}[0]{name}, "${wide}3", 'and can be had') if ok($on, 'the next one');
$filter = join '', map { sprintf '%%%02X', $_ } unpack 'C*', Encode::encode('UTF-8', "\x{1f680}" x 255);
my $own = $api->post('/api/pipelines', { projectId => $p->{id}, name => 'wide', steps => [{ name => 's', script => 'true' }] })->{json}{id};
is($api->post('/api/deployments', { projectId => $p->{id}, branch => "\x{1f680}" x 255 })->{status}, 201, 'a long branch') for 1, 2;
$got = $api->get("/api/deployments?branch=$filter&limit=1");
is(join(' ', ($got->{headers}{link} || '') =~ /rel="(\w+)"/g), 'first next', 'its pages are named');
$got = $api->get('/api/projects?name=a%26b%22%3e');
is($got->{status}, 200, 'an odd filter');
ok(!exists $got->{headers}{link} || $got->{headers}{link} !~ /["&]b["&>]/, 'breaks no link');
is_deeply($got->{json}, { data => [], pagination => { page => 1, limit => 20, total => 0, totalPages => 0 } }, 'nothing found');

# --- what is not there yet says what is missing
$got = $none->get('/api/auth/url');
like($got->{json}{detail}, qr/GITSERVER_URL, GITSERVER_CLIENT_ID, GITSERVER_REDIRECT_URI/, 'the settings are named');
ok($got->{headers}{'retry-after'}, 'Retry-After');
is($none->post('/api/auth/login', {})->{status}, 422, 'login: checked before');
is($none->post('/api/auth/login', { code => 'c', state => 's' })->{status}, 503, 'login: not yet');
is($api->get('/api/git/branches')->{status}, 400, 'branches: of which project?');
is($api->get("/api/git/branches?projectId=$p->{id}")->{status}, 503, 'branches: not yet');
is($api->get("/api/git/commits?projectId=$p->{id}&branch=main")->{status}, 503, 'commits: not yet');

# --- filters that are sent without a value
my $every = $api->get('/api/projects')->{json}{pagination}{total};
for my $case (['/api/projects?name=', $every], ['/api/projects?name=&limit=1', $every],
	['/api/user/search?keyword=&status=&role=', $api->get('/api/user/list')->{json}{pagination}{total}],
	['/api/user/search?keyword=&role=viewer', 1], ['/api/deployments?status=&branch=', undef]) {
	my ($where, $total) = @$case;
	$got = $api->get($where);
	is($got->{status}, 200, "$where: no filter");
	is($got->{json}{pagination}{total}, $total, "$where: $total") if defined $total;
}
for my $where ('/api/projects?page=', '/api/projects?limit=', '/api/pipelines?projectId=', '/api/steps?pipelineId=',
	'/api/deployments?cursor=', '/api/git/branches?projectId=', '/api/projects?=', '/api/projects?nonsense=') {
	is($api->get($where)->{status}, 400, "$where: no number, or unknown");
}

# --- the service
$got = $none->get('/api/health');
is_deeply([@{ $got->{json} }{qw(status version)}], ['ok', '0.1.0'], 'health');
$got = $none->get('/api/metrics');
like($got->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4}, 'metrics are Prometheus text');
like($got->{body}, qr/^slipway_requests_total\{class="2xx"\} [1-9]\d*$/m, 'with counters');
is(scalar(() = $got->{body} =~ /^# TYPE (\S+)/mg), scalar(() = $got->{body} =~ /^# HELP (\S+)/mg), 'each explained');
my $limited = 0;
for (1 .. 40) {
	$got = $none->post('/api/auth/login', {});
	last if $limited = $got->{status} == 429;
}
ok($limited, 'signing in is limited');
problem($got, 429, 'rate_limited', 'too many');
ok($got->{headers}{'retry-after'}, 'and says when to try again');
is($api->get('/api/auth/tokens')->{status}, 200, 'reading is not');
{ # push events, many on one connection
	my $s = IO::Socket::SSL->new(PeerAddr => $api->url =~ s{^https://}{}r, SSL_ca_file => $api->cacert,
		SSL_verifycn_name => 'localhost') or die "connect: $!";
	my $one = "POST /api/hooks/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n";
	print $s "$one\r\n{}" x 399, "${one}Connection: close\r\n\r\n{}";
	my $all = do { local $/; <$s> };
	my %count;
	$count{$_}++ for $all =~ m{^HTTP/1\.1 (\d+)}mg;
	cmp_ok($count{400} || 0, '>=', 200, 'push events may come in crowds');
	cmp_ok($count{429} || 0, '>', 0, 'but there is a limit') or diag(explain(\%count));
}

# --- a database server that takes no more statements
my $most = $db->sql('SELECT @@global.max_prepared_stmt_count');
$db->sql('SET GLOBAL max_prepared_stmt_count = 0');
$db->sql($_) for split /\n/, $db->sql("SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE user = 'slipway'");
$got = $api->get($path);
problem($got, 503, 'unavailable', 'no statement can be prepared');
ok($got->{headers}{'retry-after'}, 'and says when to try again');
$db->sql("SET GLOBAL max_prepared_stmt_count = $most");
ok(poll(15, sub { $api->get($path)->{status} == 200 }), 'when it can be, all is well');

done_testing;
