#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Vulnerabilities of other services, each with the number of one incident: slipway
# does not have them.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hostile;
use Slipway::Test;
use Test::More;

# A setting that exempts this machine from proxies would hide their use.
delete @ENV{ grep { /proxy/i } keys %ENV };
my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitea');
$f->user('ann', { id => 7 });
$f->user('bot', { id => 8 });
my $repo = $f->repo('team/site', private => 1, users => [ 'ann', 'bot' ]);
$repo->commit('main', {}, 'first');
my $service = $f->token('bot');
my $api = Slipway::API->start(db => $db, keys => 1, nginx => \&Slipway::Visitor::unlimited,
    conf => $f->conf(token => $service));
$db->sql("INSERT INTO user (username, role) VALUES ('ann', 'deployer')");
my $project = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
my $branches = "/api/git/branches?projectId=$project";
my $other = Slipway::Hostile->start;
my $none = $api->as('none');
# The query parameters of a URL.
sub query {
	my ($url) = @_;
	my %query;
	for (split /&/, (split /\?/, $url, 2)[1]) {
		my ($name, $value) = split /=/, $_, 2;
		$query{$name} = $value =~ s/%(..)/chr hex $1/ger;
	}
	return %query;
}

# --- a header sets the proxy for requests to the Git server (CVE-2016-5385)
for my $name ('Proxy', 'proxy', 'Http-Proxy', 'Https-Proxy', 'All-Proxy') {
	is($api->get($branches, { $name => $other->url })->{status}, 200,
	    "branches are read with a header $name");
	my $b = Slipway::Visitor->new($api, $f);
	my $back = $b->go('ann');
	my %body = (code => $back->{code}, state => $back->{state});
	is($b->visit('POST', '/api/auth/login', \%body, $name => $other->url)->{status}, 200,
	    "a user signs in with a header $name");
}
is(scalar(my @requests = $other->requests), 0, 'no request goes to a proxy that a header names');

# --- the request sets the address that receives the code (CVE-2022-1058, CVE-2023-3515)
my $evil = 'https://evil.example/login';
for my $headers ({ Host => 'evil.example' }, { 'X-Forwarded-Host' => 'evil.example' },
    { Forwarded => 'host=evil.example' },
	{ Referer => $evil }, { Origin => 'https://evil.example' }, { 'X-Original-URL' => $evil }) {
	my ($name) = keys %$headers;
	my (undef, $text) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-H', "$name: $headers->{$name}",
	    $api->url . '/api/auth/url');
	my $got = eval { Cpanel::JSON::XS::decode_json($text) } || {};
	my %q = query($got->{url} || '?redirect_uri=none');
	ok($q{redirect_uri} eq $f->redirect_uri || $q{redirect_uri} eq 'none',
	    "a header $name does not change the redirect URI") or diag($text);
	unlike($text, qr/evil/, "the response does not repeat a header $name");
}
for my $with ('redirect_uri', 'redirect', 'return_to', 'next', 'client_id', 'scope') {
	my $got = $none->get("/api/auth/url?$with=$evil");
	unlike($got->{body}, qr/evil/, "a parameter $with does not change the URL");
	my $b = Slipway::Visitor->new($api, $f);
	$got = $b->login($b->go('ann'), $with => $evil);
	is($got->{status}, 422, "a login with a member $with is rejected");
	is($got->{json}{errors}[0]{pointer}, "/$with", "the error names the member $with");
	is($got->{headers}{location}, undef, "a login with a member $with does not redirect");
}

# --- guessable values (CVE-2022-31034), and excessive scopes
my (%state, %challenge, %browser);
for (1 .. 20) {
	my $b = Slipway::Visitor->new($api, $f);
	my $got = $b->visit('GET', '/api/auth/url')->{json};
	my %q = query($got->{url});
	like("$q{state} $q{code_challenge}", qr/^[A-Za-z0-9_-]{43} [A-Za-z0-9_-]{43}$/,
	    'state and challenge have 256 bits each') if !%state;
	$state{ $q{state} } = $challenge{ $q{code_challenge} } = $browser{ $b->cookies } = 1;
	is($q{scope}, 'read:user write:repository', 'the scope is no larger than necessary')
	    if keys %state == 1;
}
is(join(' ', map { scalar keys %$_ } \%state, \%challenge, \%browser), '20 20 20',
    'states, challenges and cookies of twenty sign-ins differ');

# --- a session used as a path or a statement (CVE-2018-18926)
for my $name ('../../../etc/passwd', '/etc/passwd', '..%2f..%2fetc%2fpasswd', 'sls_' . '../' x 14,
    "sls_' OR 1=1 -- ", 'sls_%', '*', 'x' x 3000, '', 'sls_' . 'A' x 42, 'sls_' . 'A' x 44) {
	my $short = length $name > 40 ? substr($name, 0, 12) . '…' : $name;
	is($none->get('/api/auth/info', { Cookie => "__Host-slipway=$name" })->{status}, 401,
	    "the session \"$short\" in a cookie returns 401");
	is($none->get('/api/auth/info', { Authorization => "Bearer $name" })->{status}, 401,
	    "the session \"$short\" as a token returns 401");
}

# --- text of the Git server is only text (CVE-2025-64494, CVE-2022-29947, CVE-2019-7313)
my $words = '<script>alert(1)</script>\u001b[2J\r\nX-Evil: 1\r\n\r\n\u0000\u009b31m';
my @bodies = (qq({"message":"$words"}), qq({"error":"invalid_grant","error_description":"$words"}));
push @bodies, map { s/\\u0000//r } @bodies;
my $sign_in = sub { my $b = Slipway::Visitor->new($api, $f); return $b->login($b->go('ann')) };
for my $case ([ 'repos/team/site/branches$', sub { $api->get($branches) } ],
    [ 'login/oauth/access_token$', $sign_in ]) {
	my ($path, $ask) = @$case;
	my $shown = 0;
	for my $body (@bodies) {
		$f->fault($path, kind => 'status', status => 400, body => $body);
		my $got = $ask->();
		$f->clear_faults;
		like($got->{status}, qr/^(?:400|502)$/, "$path: hostile text of the Git server is an error");
		$shown++ if $got->{body} =~ /alert\(1\)/;
		is($got->{headers}{'content-type'}, 'application/problem+json',
		    "$path: hostile text is returned as JSON");
		is($got->{headers}{'x-content-type-options'}, 'nosniff',
		    "$path: browsers do not guess the type of hostile text");
		is($got->{headers}{'x-evil'}, undef, "$path: hostile text creates no header");
		unlike($got->{body} =~ s/\n\z//r, qr/[\x00-\x1f]/,
		    "$path: hostile text is returned without control bytes");
	}
	cmp_ok($shown, '>=', 1, "$path: some hostile text is returned, so that these tests matter");
	$f->fault($path, kind => 'status', status => 302, headers => { Location => "/x\x1b[2J?<script>" });
	is($ask->()->{status}, 502, "$path: a hostile redirect is an error");
	$f->clear_faults;
}
unlike($api->log =~ s/\n//gr, qr/[\x00-\x08\x0b-\x1f]/, 'the log contains no control bytes');
unlike($api->log, qr/^X-Evil/m, 'hostile text creates no line in the log');
unlike($api->log, qr/\Q$service\E/, 'the log does not contain the token');
is($api->get($branches)->{status}, 200, 'branches are read after hostile text');

# --- the time of a comparison reveals a signature (CVE-2022-43411)
{
	my %source = map { $_ => slurp(srcdir() . "/src/$_") } 'api/signature.c', 'crypto/crypto.c';
	my ($equal) = $source{'crypto/crypto.c'} =~ /^(crypto_equal\(.*?^\})/ms;
	like($equal || '', qr/sodium_memcmp\(/, 'secrets are compared in constant time');
	unlike($source{'api/signature.c'}, qr/\b(?:strn?cmp|strcasecmp|memcmp|str_eq)\(/,
	    'signatures are compared by no other function');
	cmp_ok(scalar(() = $source{'api/signature.c'} =~ /\bcrypto_equal\(/g), '>=', 3,
	    'the signatures of all three types of Git server are compared in constant time');
}
done_testing;
