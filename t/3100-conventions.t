#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The conventions of all routes: errors, headers, conditions, pages.

use strict;
use warnings;
use Encode ();
use Cpanel::JSON::XS ();
use IO::Socket::SSL ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $none = $api->as('none');
my ($got, $p);

# Tests that a problem has the members of the contract, and agrees with the header.
sub problem {
	my ($got, $status, $code, $name) = @_;
	my $j = $got->{json} || {};
	is($got->{status}, $status, "$name returns $status") or diag $got->{body};
	is($got->{headers}{'content-type'}, 'application/problem+json', "$name returns a problem");
	is_deeply([@$j{qw(status code)}], [$status, $code], "$name: the problem has status and code");
	is_deeply([grep { !defined $j->{$_} || $j->{$_} eq '' } qw(type title detail requestId)], [],
	    "$name: the problem has type, title, detail and request id");
	is($got->{headers}{'x-request-id'}, $j->{requestId},
	    "$name: problem and header have the same request id");
	like($got->{body}, qr/[^\n]\}\n\z/, "$name: the problem ends with a newline");
	is($got->{headers}{'strict-transport-security'}, 'max-age=31536000',
	    "$name: the response has Strict-Transport-Security");
	unlike($got->{body}, qr/SELECT|INSERT|mysql|maria|sock|\/tmp|\/work|errno/i,
	    "$name: the problem shows no internals");
	return $j;
}

# Sends bytes over TLS; the whole response.
sub raw {
	my ($text) = @_;
	my ($port) = $api->url =~ /(\d+)$/;
	my $s = IO::Socket::SSL->new(PeerAddr => "127.0.0.1:$port", SSL_ca_file => $api->cacert,
		SSL_verifycn_name => 'localhost', SSL_hostname => 'localhost') or die $@ || $!;
	print {$s} $text;
	my $all = '';
	while (sysread $s, my $part, 65536) { $all .= $part }
	return $all;
}

my %project = (name => 'One', repository => 'https://git.example.org/a/one');
$p = $api->post('/api/projects', \%project)->{json};
my $path = "/api/projects/$p->{id}";
my $host = "Host: localhost\r\n";
my $post = "POST /api/projects HTTP/1.1\r\n$host";
# The headers of a request that closes its connection.
my $close = "Host: localhost\r\nConnection: close\r\nAuthorization: Bearer " . $api->token;

# --- one error of each code
problem($api->post('/api/projects', '{'), 400, 'bad_request', 'a truncated body');
problem($none->get($path), 401, 'unauthenticated', 'a request without a token');
problem($api->as('viewer')->post('/api/projects', \%project), 403, 'forbidden', 'a role that is too low');
problem($api->get('/api/projects/999999999'), 404, 'not_found', 'an unknown project');
problem($api->get('/api/nothing'), 404, 'not_found', 'an unknown path');
problem($api->request('PATCH', $path, '{}'), 405, 'method_not_allowed', 'an unknown method');
problem($api->post('/api/projects', { %project, projectDir => 'b' }), 409, 'conflict', 'a name in use');
problem($api->put($path, {}, { 'If-Match' => '"9-0123456789abcdef"' }), 412, 'precondition_failed',
    'an outdated entity tag');
problem($api->post('/api/projects', '"' . 'x' x 1_100_000 . '"'), 413, 'payload_too_large', 'a large body');
problem($api->post('/api/projects', 'a=b', { 'Content-Type' => 'application/x-www-form-urlencoded' }),
	415, 'unsupported_media_type', 'a form');
my $j = problem($api->post('/api/projects', { name => '', foo => 1 }), 422, 'validation_failed',
    'an invalid body');
is_deeply([sort map { $_->{pointer} } @{ $j->{errors} }], ['/foo', '/name', '/repository'],
    'a problem lists every error of the body');
problem($none->get('/api/auth/url'), 503, 'unavailable', 'a sign-in without a configured Git server');

# --- authentication
$got = $none->get($path);
is($got->{headers}{'www-authenticate'}, 'Bearer realm="slipway"', '401 names the authentication scheme');
for my $header ('Bearer slw_wrong', 'Bearer ', 'Bearer', 'Basic YTpi', 'bearer ' . 'x' x 5000, 'slw_x',
	'Bearer ' . substr($api->token, 0, -1), 'Bearer ' . $api->token . 'x', 'Bearer ' . uc $api->token) {
	is($none->get($path, { Authorization => $header })->{status}, 401,
	    'a request with the header "' . substr($header, 0, 20) . '" returns 401');
}
is($none->get($path, { Authorization => 'bearer ' . $api->token })->{status}, 200,
    'the case of the authentication scheme does not matter');
like($none->get($path, { Authorization => 'Bearer x' })->{headers}{'www-authenticate'},
    qr/error="invalid_token"/, '401 for an invalid token says so');
is($none->get('/health', { Authorization => 'Bearer x' })->{status}, 200, 'public routes ignore tokens');
my @cookie = (Cookie => '__Host-slipway=' . $api->token);
is($none->put($path, {}, { @cookie })->{status}, 403, 'a write by cookie without an origin returns 403');
is($none->put($path, {}, { @cookie, Origin => 'https://evil.example' })->{status}, 403,
    'a write by cookie from another origin returns 403');
is($none->put($path, {}, { @cookie, Origin => 'null' })->{status}, 403,
    'a write by cookie from a sandbox returns 403');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'cross-site' })->{status}, 403,
    'a write by cookie from another site returns 403');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'same-site' })->{status}, 403,
    'a write by cookie from a subdomain returns 403');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'cross-site', Origin => $api->url })->{status}, 403,
    'a write by cookie from another site with our origin returns 403');
is($none->get('/api/auth/logout', { @cookie })->{status}, 403,
    'a sign-out by cookie without an origin returns 403');
is($none->put($path, {}, { @cookie, Origin => $api->url })->{status}, 200,
    'a write by cookie from our origin succeeds');
is($none->put($path, {}, { @cookie, 'Sec-Fetch-Site' => 'same-origin' })->{status}, 200,
    'a write by cookie that the browser marks as same-origin succeeds');
is($none->get($path, { Cookie => 'x=1; __Host-slipwayx=2; __Host-slipway=wrong' })->{status}, 401,
    'an invalid cookie returns 401');

# --- authorization: each role at each kind of route
my %may = (
	'GET /api/projects' => 1, 'POST /api/projects' => 3, "PUT $path" => 3,
	"DELETE /api/projects/7777" => 3,
	'GET /api/pipelines' => 1, 'POST /api/pipelines' => 3, 'PUT /api/pipelines/7777' => 3,
	'DELETE /api/pipelines/7777' => 3,
	'GET /api/steps' => 1, 'POST /api/steps' => 3, 'PUT /api/steps/7777' => 3,
	'DELETE /api/steps/7777' => 3,
	'GET /api/user/list' => 1, 'GET /api/user/search' => 1, 'GET /api/user/detail/1' => 1,
	'POST /api/user' => 4,
	'PUT /api/user/7777' => 4, 'DELETE /api/user/7777' => 4, 'GET /api/auth/info' => 1,
	'GET /api/auth/tokens' => 1,
	'GET /api/git/branches' => 1, 'GET /api/git/commits' => 1,
	'GET /api/git/tags' => 1, 'GET /api/git/repositories' => 3, 'GET /projects' => 1,
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
	is("@let", join(' ', map { $_ >= $may{$what} ? 1 : 0 } 0 .. 4),
	    "$what accepts exactly the roles that it should (none, viewer, deployer, maintainer, admin)");
}

# --- headers of every response
for my $where ($path, '/api/projects', '/api/nothing', '/health') {
	my $h = $api->get($where)->{headers};
	is($h->{'cache-control'}, 'no-store', "$where: the response is not cached");
	is($h->{'x-content-type-options'}, 'nosniff', "$where: browsers do not guess the type");
	like($h->{'content-security-policy'}, qr/default-src 'none'/,
	    "$where: browsers load nothing for the response");
	like($h->{'x-request-id'}, qr/^[0-9a-f]{32}$/, "$where: the response has a request id of nginx");
	like($h->{'strict-transport-security'}, qr/max-age=\d{8}/,
	    "$where: the response has Strict-Transport-Security");
	ok(!exists $h->{'access-control-allow-origin'}, "$where: no other origin can read the response");
}
$got = $api->get($path);
ok(poll(5, sub { $api->log =~ /\Q$got->{headers}{'x-request-id'}\E GET \Q$path\E 200 \d+ ms t-admin/ }),
    'the log has a line for each request');
unlike($api->log, qr/slw_/, 'the log contains no token');

for my $where ($path, '/api/projects', '/projects', '/api/deployments', '/api/openapi.json', '/health',
    '/api/auth/info') {
	my $whole = $api->get($where);
	like($whole->{body}, qr/[^\n][\]}]\n\z/, "$where: the body ends with a newline");
	is($whole->{headers}{'content-length'}, length $whole->{body},
	    "$where: Content-Length counts the newline");
	is($api->head($where)->{headers}{'content-length'}, length $whole->{body},
	    "$where: HEAD has the Content-Length of GET");
}

# --- conditions
my $etag = $got->{headers}{etag};
is($api->get($path, { 'If-None-Match' => $etag })->{status}, 304,
    'a read with If-None-Match of the present tag returns 304');
is($api->get($path, { 'If-None-Match' => $etag })->{body}, '', '304 has no body');
is($api->get($path, { 'If-None-Match' => $etag })->{headers}{etag}, $etag, '304 has the entity tag');
is($api->get($path, { 'If-None-Match' => "\"x\", W/$etag" })->{status}, 304,
    'a read with If-None-Match of a weak tag among others returns 304');
is($api->get($path, { 'If-None-Match' => '*' })->{status}, 304, 'a read with If-None-Match: * returns 304');
is($api->get($path, { 'If-None-Match' => '"x"' })->{status}, 200,
    'a read with If-None-Match of another tag returns 200');
is($api->get($path, { 'If-None-Match' => 'x' })->{status}, 200,
    'a read with an invalid If-None-Match returns 200');
is($api->head($path, { 'If-None-Match' => $etag })->{status}, 304,
    'HEAD with If-None-Match of the present tag returns 304');
is($api->put($path, {}, { 'If-Match' => "W/$etag" })->{status}, 412,
    'a write with If-Match of a weak tag returns 412');
is($api->put($path, {}, { 'If-Match' => '"x", "y"' })->{status}, 412,
    'a write with If-Match of other tags returns 412');
is($api->put($path, {}, { 'If-Match' => 'x' })->{status}, 400,
    'a write with an invalid If-Match returns 400');
is($api->put($path, {}, { 'If-Match' => '' })->{status}, 412,
    'a write with an empty If-Match, as of a script that lost the tag, returns 412');
is($api->put($path, {}, { 'If-Match' => '"x' })->{status}, 400,
    'a write with half a tag in If-Match returns 400');
is($api->put($path, { description => 'first' }, { 'If-Match' => "\"x\", $etag" })->{status}, 200,
    'a write with If-Match of the present tag among others succeeds');
is($api->put($path, {}, { 'If-Match' => $etag })->{status}, 412,
    'a write with If-Match of the tag before that change returns 412');
is($api->put($path, { description => 'second' }, { 'If-Match' => '*' })->{status}, 200,
    'a write with If-Match: * succeeds');
$etag = $api->get($path)->{headers}{etag};
for my $case (['*', 412, '*'], [$etag, 412, 'the present tag'],
    ["\"x\", W/$etag", 412, 'the present tag, weak'],
	['"x"', 200, 'another tag'], ['x', 200, 'no valid tag'], [$etag, 200, 'the previous tag']) {
	my ($header, $status, $name) = @$case;
	is($api->put($path, { description => $name }, { 'If-None-Match' => $header })->{status}, $status,
	    "a write with If-None-Match of $name returns $status");
}
is($api->put($path, {}, { 'If-Match' => '*', 'If-None-Match' => '*' })->{status}, 412,
    'a write must meet both If-Match and If-None-Match');
is($api->delete($path, { 'If-None-Match' => '*' })->{status}, 412,
    'a deletion with If-None-Match: * returns 412');
is($api->put('/api/projects/77777', {}, { 'If-Match' => '*' })->{status}, 404,
    'a write with If-Match: * to an unknown project returns 404');

# --- methods
$got = $api->head($path);
is($got->{status}, 200, 'HEAD succeeds');
is($got->{body}, '', 'HEAD returns no body');
is($got->{headers}{'content-length'}, length $api->get($path)->{body}, 'HEAD returns the length of the body');
is($api->head('/api/projects/77777')->{status}, 404, 'HEAD of an unknown project returns 404');
for my $case (['/api/projects', 'GET, HEAD, POST, OPTIONS'], [$path, 'GET, HEAD, PUT, DELETE, OPTIONS'],
	['/api/user', 'POST, OPTIONS'], ['/health', 'GET, HEAD, OPTIONS'],
	['/api/auth/logout', 'GET, HEAD, POST, OPTIONS']) {
	my ($where, $allow) = @$case;
	$got = $none->request('OPTIONS', $where);
	is("$got->{status} $got->{headers}{allow}", "204 $allow", "OPTIONS $where lists the methods");
	$got = $none->request('PROPFIND', $where);
	is("$got->{status} $got->{headers}{allow}", "405 $allow",
	    "PROPFIND $where returns 405 and the methods");
}
is($api->request('DELETE', '/api/projects')->{status}, 405, 'a list cannot be deleted');
is($none->request('OPTIONS', '/api/nothing')->{status}, 404, 'OPTIONS of an unknown path returns 404');

# --- bodies
is($api->post('/api/projects')->{status}, 415, 'a POST without body and type returns 415');
for my $case (['', 400], ['null', 422], ['[]', 422], ['"x"', 422], ['{"name":"a","name":"b"}', 422],
    ["{\"name\":\"\xff\"}", 400],
	['{"name":"\u0000"}', 422], ['{"name":"\ud800"}', 400], ["\xef\xbb\xbf{}", 400], ['{}x', 400],
	['{"a":01}', 400],
	['{"a":1e400}', 400], ['{a:1}', 400], ["{'a':1}", 400], ['{"a":1,}', 400], ['[' x 100_000, 422],
	['{}', 422]) {
	my ($text, $status) = @$case;
	$got = $api->request('POST', '/api/projects', $text, { 'Content-Type' => 'application/json' });
	my $shown = substr($text, 0, 30) =~ s/[^ -~]/?/gr;
	is($got->{status}, $status, "the body '$shown' returns $status");
}
for my $case (['application/json', 422], ['application/json; charset=utf-8', 422],
	['Application/JSON;charset="UTF-8"', 422], ['application/json;', 422],
	["application/json\t;\t; charset=utf-8 ;", 422], ['application/json; profile="a"; odata=x', 422],
	['application/json; profile=x; charset=utf-16', 415], ['application/json; charset=utf-8x', 415],
	['application/json; charset=', 415], ['application/json; charset=latin1', 415], ['text/json', 415],
	['application/jsonp', 415],
	['multipart/form-data', 415], ['text/plain', 415], ['application/json, text/plain', 415]) {
	my ($type, $status) = @$case;
	is($api->post('/api/projects', '{}', { 'Content-Type' => $type })->{status}, $status,
	    "the Content-Type $type returns $status");
}
for my $case ([gzip => 415], ['gzip, identity' => 415], [identity => 422], [Identity => 422]) {
	my ($coding, $status) = @$case;
	$got = $api->post('/api/projects', '{}',
	    { 'Content-Type' => 'application/json', 'Content-Encoding' => $coding });
	is($got->{status}, $status, "the Content-Encoding $coding returns $status");
}
is($api->request('GET', $path, 'x')->{status}, 400, 'a GET with a body returns 400');
is($api->request('DELETE', '/api/projects/7777', '{"a":1}')->{status}, 400,
    'a DELETE with a body returns 400');

# --- queries
for my $case (['page=0', 400], ['page=-1', 400], ['page=x', 400], ['page=', 400], ['page', 400],
    ['page=1.0', 400],
	['page=%201', 400], ['page=1+', 400], ['page=01', 400], ['page=99999999999999999999', 400],
	['limit=0', 400],
	['limit=101', 400], ['limit=abc', 400], ['foo=1', 400], ['page=1&page=1', 400], ['Page=1', 400],
	['page=1&foo=', 400],
	['name=%', 400], ['name=%zz', 400], ['name=%00', 400], ['name=%ff', 400], ['name=' . 'x' x 101, 400],
	['name=%0a', 400], ['', 200], ['&', 200], ['page=1', 200], ['limit=100', 200],
	['limit=1&page=1000000000', 200],
	['name=%E2%82%AC', 200], ['name=a+b', 200], ['name=a=b', 200]) {
	my ($query, $status) = @$case;
	is($api->get("/api/projects?$query")->{status}, $status,
	    'the query "' . substr($query, 0, 40) . "\" returns $status");
}
like($api->get('/api/projects?foo=1')->{json}{detail}, qr/"foo"/, 'the error names the unknown parameter');
is($api->get("$path?page=1")->{status}, 400, 'a parameter of a route without parameters returns 400');

# --- paths
for my $case (['/api//projects', 400], ['/api/./projects', 400], ['/api/x/../projects', 400],
    ['/api/projects;a=b', 400],
	['/api/projects%2f1', 400], ['/api%2Fprojects', 400], ['/api/projects/%2e%2e', 400],
	['/api/projects/%00', 400],
	['/api/projects/1%0a', 400], ['/api/projects/%ff', 400], ['/api/projects/%', 400],
	['/api/projects\\1', 400],
	['/api/projects/%c0%ae', 400], ['/api/projects/', 404], ['/API/projects', 404],
	['/api/Projects', 404],
	['/api/projects/0', 404], ['/api/projects/01', 404], ['/api/projects/-1', 404],
	['/api/projects/1x', 404],
	['/api/projects/+1', 404], ['/api/projects/9007199254740992', 404],
	['/api/projects/99999999999999999999', 404],
	["$path/", 404], ["$path/x", 404], ['/api/projects.json', 404], ['/api', 404], ['/api/', 404],
	['/%61pi/projects', 200],
	['/api/user/list', 200], ['/api/user/detail', 404]) {
	my ($where, $status) = @$case;
	my ($got_status) = raw("GET $where HTTP/1.1\r\n$close\r\n\r\n") =~ /^HTTP\/1\.1 (\d+)/;
	is($got_status, $status, "the path $where returns $status");
}

# --- the errors of nginx have the same form
for my $case (
	["GET /api/x HTTP/1.1\r\n${host}X: " . ('y' x 9000) . "\r\n\r\n", 400, 'bad_request',
		'a long header'],
	['GET /api/' . ('y' x 9000) . " HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, 'bad_request',
		'a long address'],
	["GET /api/x HTTP/1.1\r\n\r\n", 400, 'bad_request', 'a request without Host'],
	["GET /api/x HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n", 400, 'bad_request',
		'an unknown transfer coding'],
	["GET /api/x HTTP/3.0\r\nHost: localhost\r\n\r\n", 400, 'bad_request', 'an unknown HTTP version'],
	["TRACE /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, 'method_not_allowed', 'TRACE'],
	["${post}Content-Length: 99999999999\r\nConnection: close\r\n\r\n", 413, 'payload_too_large',
		'a body of 100 GB'],
	["${post}Content-Length: -1\r\n\r\n", 400, 'bad_request', 'a negative Content-Length'],
	["${post}Content-Length: 5x\r\n\r\n", 400, 'bad_request', 'a Content-Length with a letter'],
	["${post}Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, 'bad_request', 'two Content-Lengths'],
) {
	my ($text, $status, $code, $name) = @$case;
	my $answer = raw($text);
	my ($head, $body) = split /\r\n\r\n/, $answer, 2;
	like($head, qr/^HTTP\/1\.1 $status /, "$name returns $status");
	like($head, qr/content-type: application\/problem\+json/i, "$name returns a problem");
	my $json = eval { Cpanel::JSON::XS->new->decode($body) } || {};
	is($json->{code}, $code, "$name has the code \"$code\"");
	ok($json->{requestId}, "$name has a request id");
}
my @chunks = ('{"name":"Chunked",', '"repository":"https://git.example.org/c/c"}');
my $chunked = raw("POST /api/projects HTTP/1.1\r\n$close\r\n"
    . "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    . join('', map { sprintf "%x\r\n%s\r\n", length, $_ } @chunks) . "0\r\n\r\n");
like($chunked, qr/^HTTP\/1\.1 201 /, 'a chunked body is read whole');
my $two = raw("GET $path HTTP/1.1\r\n$close\r\nIf-None-Match: \"a\"\r\nIf-None-Match: $etag\r\n\r\n");
like($two, qr/^HTTP\/1\.1 400 /, 'a header that is sent twice returns 400');

# --- pages
$api->post('/api/projects', { name => "P$_", repository => 'https://git.example.org/a/b' }) for 10 .. 13;
my $all = $api->get('/api/projects?limit=100')->{json};
is($all->{pagination}{total}, 6, 'the list counts all projects');
my @seen;
my $next = '/api/projects?limit=4';
while ($next) {
	$got = $api->get($next);
	push @seen, map { $_->{id} } @{ $got->{json}{data} };
	is($got->{headers}{'x-total-count'}, 6, 'X-Total-Count is the number of all items');
	($next) = $got->{headers}{link} =~ /<([^>]+)>; rel="next"/;
}
is_deeply(\@seen, [map { $_->{id} } @{ $all->{data} }], 'following rel="next" yields all items in order');
is_deeply($got->{json}{pagination}, { page => 2, limit => 4, total => 6, totalPages => 2 },
    'the last page describes itself');
is($got->{headers}{link},
    '</api/projects?page=1&limit=4>; rel="first", </api/projects?page=1&limit=4>; rel="prev", '
    . '</api/projects?page=2&limit=4>; rel="last"',
    'the last page links to the first, the previous and itself');
$got = $api->get('/api/projects?page=9&limit=4');
is_deeply($got->{json}{data}, [], 'a page past the end is empty');
like($got->{headers}{link}, qr/page=2&limit=4>; rel="prev"/, 'a page past the end links to the last');
$got = $api->get('/api/projects?name=P1&limit=1');
like($got->{headers}{link}, qr/<\/api\/projects\?name=P1&page=2&limit=1>; rel="next"/,
    'links keep the filter');
my $wide = "\x{1f680}" x 99;
my $filter = join '', map { sprintf '%%%02X', $_ } unpack 'C*', Encode::encode('UTF-8', $wide);
$api->post('/api/projects', { %project, name => "$wide$_" }) for 1 .. 3;
$got = $api->get("/api/projects?name=$filter&page=2&limit=1");
is("$got->{status} $got->{json}{pagination}{total}", '200 3', 'the longest filter is accepted');
is(join(' ', ($got->{headers}{link} || '') =~ /rel="(\w+)"/g), 'first prev next last',
    'a page with the longest filter links to its neighbours');
my ($on) = ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/;
is($api->get($on)->{json}{data}[0]{name}, "${wide}3",
    'the next page with the longest filter has the next item')
    if ok($on, 'a page with the longest filter links to the next');
$filter = join '', map { sprintf '%%%02X', $_ } unpack 'C*', Encode::encode('UTF-8', "\x{1f680}" x 255);
my $own = $api->post('/api/pipelines',
    { projectId => $p->{id}, name => 'wide', steps => [{ name => 's', script => 'true' }] })->{json}{id};
is($api->post('/api/deployments', { projectId => $p->{id}, branch => "\x{1f680}" x 255 })->{status}, 201,
    'a deployment of the longest branch is created') for 1, 2;
$got = $api->get("/api/deployments?branch=$filter&limit=1");
is(join(' ', ($got->{headers}{link} || '') =~ /rel="(\w+)"/g), 'first next',
    'a page filtered by the longest branch links to the next');
$got = $api->get('/api/projects?name=a%26b%22%3e');
is($got->{status}, 200, 'a filter with special characters is accepted');
ok(!exists $got->{headers}{link} || $got->{headers}{link} !~ /["&]b["&>]/,
    'a filter with special characters does not break the Link header');
is_deeply($got->{json}, { data => [], pagination => { page => 1, limit => 20, total => 0, totalPages => 0 } },
    'a filter that matches nothing returns an empty page');

# --- routes that need a Git server
$got = $none->get('/api/auth/url');
like($got->{json}{detail}, qr/GITSERVER_URL, GITSERVER_CLIENT_ID, GITSERVER_REDIRECT_URI/,
    'the error names the settings of the Git server');
ok($got->{headers}{'retry-after'}, 'a sign-in without a configured Git server has Retry-After');
is($none->post('/api/auth/login', {})->{status}, 422, 'a login without a Git server checks the body first');
is($none->post('/api/auth/login', { code => 'c', state => 's' })->{status}, 503,
    'a login without a Git server returns 503');
is($api->get('/api/git/branches')->{status}, 400, 'branches without a project return 400');
is($api->get("/api/git/branches?projectId=$p->{id}")->{status}, 503,
    'branches without a Git server return 503');
is($api->get("/api/git/commits?projectId=$p->{id}&branch=main")->{status}, 503,
    'commits without a Git server return 503');

# --- filters without a value
my $every = $api->get('/api/projects')->{json}{pagination}{total};
for my $case (['/api/projects?name=', $every], ['/api/projects?name=&limit=1', $every],
	['/api/user/search?keyword=&status=&role=', $api->get('/api/user/list')->{json}{pagination}{total}],
	['/api/user/search?keyword=&role=viewer', 1], ['/api/deployments?status=&branch=', undef]) {
	my ($where, $total) = @$case;
	$got = $api->get($where);
	is($got->{status}, 200, "$where is accepted");
	is($got->{json}{pagination}{total}, $total, "$where returns all $total items") if defined $total;
}
for my $where ('/api/projects?page=', '/api/projects?limit=', '/api/pipelines?projectId=',
    '/api/steps?pipelineId=',
	'/api/deployments?cursor=', '/api/git/branches?projectId=', '/api/projects?=',
	'/api/projects?nonsense=') {
	is($api->get($where)->{status}, 400, "$where returns 400");
}

# --- the service
$got = $none->get('/api/health');
my ($version) = slurp(srcdir() . '/configure.ac') =~ /AC_INIT\(\[slipway\], \[([^\]]+)\]/;
is_deeply([@{ $got->{json} }{qw(status version)}], ['degraded', $version],
    '/api/health returns status and version');
$got = $none->get('/api/metrics');
like($got->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4}, 'metrics are Prometheus text');
like($got->{body}, qr/^slipway_requests_total\{class="2xx"\} [1-9]\d*$/m, 'metrics count the requests');
is(scalar(() = $got->{body} =~ /^# TYPE (\S+)/mg), scalar(() = $got->{body} =~ /^# HELP (\S+)/mg),
    'every metric has a description');
my $limited = 0;
for (1 .. 40) {
	$got = $none->post('/api/auth/login', {});
	last if $limited = $got->{status} == 429;
}
ok($limited, 'the rate of sign-ins is limited');
problem($got, 429, 'rate_limited', 'a sign-in over the rate limit');
ok($got->{headers}{'retry-after'}, 'a sign-in over the rate limit has Retry-After');
is($api->get('/api/auth/tokens')->{status}, 200, 'the rate of reads is not limited by sign-ins');
{ # push events, many on one connection
	my $s = IO::Socket::SSL->new(PeerAddr => $api->url =~ s{^https://}{}r, SSL_ca_file => $api->cacert,
		SSL_verifycn_name => 'localhost') or die "connect: $!";
	my $one = "POST /api/hooks/1 HTTP/1.1\r\n$host"
	    . "Content-Type: application/json\r\nContent-Length: 2\r\n";
	print $s "$one\r\n{}" x 399, "${one}Connection: close\r\n\r\n{}";
	my $all = do { local $/; <$s> };
	my %count;
	$count{$_}++ for $all =~ m{^HTTP/1\.1 (\d+)}mg;
	cmp_ok($count{400} || 0, '>=', 200, 'a burst of push events is accepted');
	cmp_ok($count{429} || 0, '>', 0, 'the rate of push events is limited') or diag(explain(\%count));
}

# --- a database server that prepares no more statements
my $most = $db->sql('SELECT @@global.max_prepared_stmt_count');
$db->sql('SET GLOBAL max_prepared_stmt_count = 0');
my $connections = "SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE user = 'slipway'";
$db->sql($_) for split /\n/, $db->sql($connections);
$got = $api->get($path);
problem($got, 503, 'unavailable', 'a read without prepared statements');
ok($got->{headers}{'retry-after'}, 'a read without prepared statements has Retry-After');
$db->sql("SET GLOBAL max_prepared_stmt_count = $most");
ok(poll(15, sub { $api->get($path)->{status} == 200 }), 'a read succeeds once statements can be prepared');

done_testing;
