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
for my $path (map({ "/.slipway/$_" } 400, 401, 403, 404, 405, 413, 429, 500, 502, 503, 504), '/.slipway/',
    '/.slipway/x') {
	problem(curl($_, $api->url . $path), 404, 'not_found', "$path over $_") for '--http1.1', '--http2';
}
problem(curl('-X', 'POST', $api->url . '/.slipway/429'), 404, 'not_found', 'a POST to a page of errors');

# No path of the service redirects.
my $got = curl('--http1.1', '-X', 'POST', $api->url . '/api/hooks');
problem($got, 404, 'not_found', '/api/hooks without a project');
for my $path (qw(/api /api/hooks /api/git /api/deployments /api/projects /api/user /api/auth /.slipway)) {
	unlike(curl($api->url . $path)->{status}, qr/^3/, "$path does not redirect");
}

# The port without TLS redirects to TLS.
my ($status, $out) = run_cmd('curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}',
    '--unix-socket', "$dir/plain.sock", '-H', 'Expect:', @announced, 'http://localhost/api/projects');
is($out, '308 https://localhost/api/projects',
    'a request with a large body without TLS is redirected to TLS');

done_testing;
