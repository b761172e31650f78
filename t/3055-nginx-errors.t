#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The errors that nginx creates itself have the form of slipway's errors, for
# every protocol version and path.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $api = Slipway::API->start(db => Slipway::DB->start);
my $dir = $api->dir;
my ($port) = $api->url =~ /(\d+)$/;
spew("$dir/large", 'x' x (2 << 20));

# { version, status, type, body, json } of a response, as curl sees it.
sub curl {
	my @args = @_;
	my ($status, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-m', 30, '-o', "$dir/body",
	    '-w', '%{http_version} %{http_code} %{content_type}', @args);
	my ($version, $code, $type) = split ' ', $out, 3;
	my $body = slurp("$dir/body") // '';
	return { version => $version, status => $code, type => $type, body => $body,
		json => eval { Cpanel::JSON::XS->new->utf8->decode($body) } || {} };
}

# The value of a header field of a response.
sub header_of {
	my ($name, @args) = @_;
	my ($status, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-m', 30, '-o', '/dev/null',
	    '-D', '-', @args);
	return ($out =~ /^\Q$name\E: (.*?)\r$/mi)[0] // '';
}

sub problem {
	my ($got, $status, $code, $name) = @_;
	is("$got->{status} $got->{type}", "$status application/problem+json",
	    "$name is a problem with status $status")
	    or diag $got->{body};
	is_deeply([@{ $got->{json} }{qw(status code)}], [$status, $code],
	    "$name: the body has the same status and code");
}

my @token = ('-H', 'Authorization: Bearer ' . $api->token, '-H', 'Content-Type: application/json');
my @announced = ('--data-binary', "\@$dir/large");
my @open = ('-T', '-', '-X', 'POST'); # no Content-Length
for my $version ('1.1', '2') {
	my $v = $version eq '2' ? '--http2' : '--http1.1';
	for my $path ('/api/projects', '/api/hooks/1', '/api/git/branches', '/api/deployments',
	    '/api/auth/login',
	    '/api/auth/tokens', '/api/metrics', '/api', '/health', '/projects', '/elsewhere', '/',
	    '/.slipway/413') {
		my $got = curl($v, @token, @announced, '-X', 'POST', $api->url . $path);
		is($got->{version}, $version, "$path is served over HTTP/$version");
		my $none = $path =~ m{^/\.};
		problem($got, $none ? 404 : 413, $none ? 'not_found' : 'payload_too_large',
		    "HTTP/$version: a large body at $path");
	}
	my ($status, $out) = run_cmd('sh', '-c', "curl -s --cacert '@{[$api->cacert]}' -m 30 $v -T - -X POST "
	    . "-H 'Authorization: Bearer @{[$api->token]}' -H 'Expect:' -H 'Content-Type: application/json' "
	    . "-o $dir/body -w '%{http_code} %{content_type}' @{[$api->url]}/api/projects <$dir/large");
	is($out, '413 application/problem+json',
	    "HTTP/$version: a large body without Content-Length is a problem with status 413");
}

# Error pages cannot be requested, nor can their prefix.
my @pages = (400, 401, 403, 404, 405, '405/file', 412, 413, 429, 497, 500, 502, 503, 504, '', 'x', 'live',
	'now', 'wait', 'waiting', 'streaming');
for my $path (map { "/.slipway/$_" } @pages) {
	problem(curl($_, $api->url . $path), 404, 'not_found', "$path over $_") for '--http1.1', '--http2';
}
problem(curl('-X', 'POST', $api->url . '/.slipway/429'), 404, 'not_found', 'a POST to a page of errors');

# --- files of the console
my $version = (curl($api->url . '/slipway/')->{body} =~ m{/slipway/([^/"]+)/main\.js})[0];
ok($version, 'the page of the console names its modules');
my $module = $api->url . "/slipway/$version/main.js";
for my $v ('--http1.1', '--http2') {
	problem(curl($v, $api->url . "/slipway/$version/x.js"), 404, 'not_found', "an unknown module, $v");
	for my $path ($module, $api->url . '/slipway/', $api->url . '/slipway/projects/1') {
		problem(curl($v, '-X', $_, $path), 405, 'method_not_allowed', "$_ of a file over $v")
		    for qw(POST PUT DELETE PATCH);
	}
	problem(curl($v, '-H', 'If-Match: "x"', $module), 412, 'precondition_failed', "If-Match over $v");
	is(curl($v, '-r', '100000000-', $module)->{status}, 200, "a range of a module is ignored over $v");
}
like(header_of('Allow', '-X', 'DELETE', $module), qr/^GET, HEAD$/, 'Allow names the methods of a file');
is(curl($module)->{type}, 'text/javascript; charset=utf-8', 'a module has its type');
problem(curl($api->url . $_), 404, 'not_found', $_) for '/index.html', '/x.js', '/a/b.css';

# No path of the service redirects.
my $got = curl('--http1.1', '-X', 'POST', $api->url . '/api/hooks');
problem($got, 404, 'not_found', '/api/hooks without a project');
for my $path (qw(/api /api/hooks /api/git /api/deployments /api/projects /api/user /api/auth /.slipway)) {
	unlike(curl($api->url . $path)->{status}, qr/^3/, "$path does not redirect");
}

# The port with TLS says so to a client that sends none.
$got = curl("http://127.0.0.1:$port/api/health");
problem($got, 400, 'bad_request', 'a request without TLS on the port for TLS');
like($got->{body}, qr/This port requires https\./, 'the error says what to do');

# The port without TLS redirects to TLS.
my ($status, $out) = run_cmd('curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}',
    '--unix-socket', "$dir/plain.sock", '-H', 'Expect:', @announced, 'http://localhost/api/projects');
is($out, '308 https://localhost/api/projects',
    'a request with a large body without TLS is redirected to TLS');

done_testing;
