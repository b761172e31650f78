#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What let strangers in elsewhere, or sent secrets and people to them: each with
# the number of one such incident.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hostile;
use Slipway::Test;
use Test::More;

# what exempts this machine from proxies would hide that one is asked
delete @ENV{ grep { /proxy/i } keys %ENV };
my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitea');
$f->user('ann', { id => 7 });
$f->user('bot', { id => 8 });
my $repo = $f->repo('team/site', private => 1, users => [ 'ann', 'bot' ]);
$repo->commit('main', {}, 'first');
my $service = $f->token('bot');
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Browser::unlimited, conf => $f->conf(token => $service));
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'a key') or diag("$out$err");
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
$api->stop_api;
$api->start_api;
$db->sql("INSERT INTO user (username, role) VALUES ('ann', 'deployer')");
my $project = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
my $branches = "/api/git/branches?projectId=$project";
my $other = Slipway::Hostile->start;
my $none = $api->as('none');
sub query { my ($url) = @_; return map { my ($k, $v) = split /=/, $_, 2; ($k => $v =~ s/%(..)/chr hex $1/ger) } split /&/, (split /\?/, $url, 2)[1] }

# --- a header names the proxy by which the Git server is asked (CVE-2016-5385)
for my $name ('Proxy', 'proxy', 'Http-Proxy', 'Https-Proxy', 'All-Proxy') {
	is($api->get($branches, { $name => $other->url })->{status}, 200, "a header $name: branches are read");
	my $b = Slipway::Browser->new($api, $f);
	my $back = $b->go('ann');
	is($b->visit('POST', '/api/auth/login', { code => $back->{code}, state => $back->{state} }, $name => $other->url)->{status}, 200, '... and who signs in does');
}
is(scalar(my @asked = $other->requests), 0, 'nobody was asked there');

# --- whoever asks says where the code is sent to (CVE-2022-1058, CVE-2023-3515)
my $evil = 'https://evil.example/login';
for my $headers ({ Host => 'evil.example' }, { 'X-Forwarded-Host' => 'evil.example' }, { Forwarded => 'host=evil.example' },
	{ Referer => $evil }, { Origin => 'https://evil.example' }, { 'X-Original-URL' => $evil }) {
	my ($name) = keys %$headers;
	my (undef, $text) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-H', "$name: $headers->{$name}", $api->url . '/api/auth/url');
	my $got = eval { JSON::PP::decode_json($text) } || {};
	my %q = query($got->{url} || '?redirect_uri=none');
	ok($q{redirect_uri} eq $f->redirect_uri || $q{redirect_uri} eq 'none', "a header $name changes no redirect") or diag($text);
	unlike($text, qr/evil/, '... and stands nowhere');
}
for my $with ('redirect_uri', 'redirect', 'return_to', 'next', 'client_id', 'scope') {
	my $got = $none->get("/api/auth/url?$with=$evil");
	unlike($got->{body}, qr/evil/, "a parameter $with changes nothing");
	my $b = Slipway::Browser->new($api, $f);
	$got = $b->login($b->go('ann'), $with => $evil);
	is($got->{status}, 422, "... nor a member of the login: it is refused by name");
	is($got->{json}{errors}[0]{pointer}, "/$with", '... as that');
	is($got->{headers}{location}, undef, '... and nobody is sent anywhere');
}

# --- what can be guessed (CVE-2022-31034), and what is asked for too much
my (%state, %challenge, %browser);
for (1 .. 20) {
	my $b = Slipway::Browser->new($api, $f);
	my $got = $b->visit('GET', '/api/auth/url')->{json};
	my %q = query($got->{url});
	like("$q{state} $q{code_challenge}", qr/^[A-Za-z0-9_-]{43} [A-Za-z0-9_-]{43}$/, '256 bits each') if !%state;
	$state{ $q{state} } = $challenge{ $q{code_challenge} } = $browser{ $b->cookies } = 1;
	is($q{scope}, 'read:user write:repository', 'no more is asked for than is needed') if keys %state == 1;
}
is(join(' ', map { scalar keys %$_ } \%state, \%challenge, \%browser), '20 20 20', 'no two of twenty are alike');

# --- a session's name is no path and no statement (CVE-2018-18926)
for my $name ('../../../etc/passwd', '/etc/passwd', '..%2f..%2fetc%2fpasswd', 'sls_' . '../' x 14, "sls_' OR 1=1 -- ", 'sls_%', '*', 'x' x 3000, '', 'sls_' . 'A' x 42, 'sls_' . 'A' x 44) {
	my $short = length $name > 40 ? substr($name, 0, 12) . '…' : $name;
	is($none->get('/api/auth/info', { Cookie => "__Host-slipway=$name" })->{status}, 401, "the session \"$short\" is nobody's");
	is($none->get('/api/auth/info', { Authorization => "Bearer $name" })->{status}, 401, '... nor by that header');
}

# --- words of the Git server reach the reader as words (CVE-2025-64494, CVE-2022-29947, CVE-2019-7313)
my $words = '<script>alert(1)</script>\u001b[2J\r\nX-Evil: 1\r\n\r\n\u0000\u009b31m';
for my $case ([ 'repos/team/site/branches$', sub { $api->get($branches) } ], [ 'login/oauth/access_token$', sub { my $b = Slipway::Browser->new($api, $f); $b->login($b->go('ann')) } ]) {
	my ($path, $ask) = @$case;
	my $told = 0;
	for my $body (qq({"message":"$words"}), qq({"error":"invalid_grant","error_description":"$words"}), map { s/\\u0000//r } qq({"message":"$words"}), qq({"error":"invalid_grant","error_description":"$words"})) {
		$f->fault($path, kind => 'status', status => 400, body => $body);
		my $got = $ask->();
		$f->clear_faults;
		like($got->{status}, qr/^(?:400|502)$/, "$path: hostile words");
		$told++ if $got->{body} =~ /alert\(1\)/;
		is($got->{headers}{'content-type'}, 'application/problem+json', '... are told as JSON');
		is($got->{headers}{'x-content-type-options'}, 'nosniff', '... which no browser takes for a page');
		is($got->{headers}{'x-evil'}, undef, '... and make no header');
		unlike($got->{body} =~ s/\n\z//r, qr/[\x00-\x1f]/, '... nor a control byte');
	}
	cmp_ok($told, '>=', 1, "$path: some of them are told, so that it matters");
	$f->fault($path, kind => 'status', status => 302, headers => { Location => "/x\x1b[2J?<script>" });
	is($ask->()->{status}, 502, "$path: a hostile redirect");
	$f->clear_faults;
}
unlike($api->log =~ s/\n//gr, qr/[\x00-\x08\x0b-\x1f]/, 'nor does the log have any');
unlike($api->log, qr/^X-Evil/m, 'nor a line of theirs');
unlike($api->log, qr/\Q$service\E/, 'nor the token');
is($api->get($branches)->{status}, 200, 'afterwards all is well');

# --- how long a comparison takes tells how much of a signature is right (CVE-2022-43411)
{
	my %source = map { $_ => slurp(srcdir() . "/src/$_") } 'api/signature.c', 'crypto/crypto.c';
	my ($equal) = $source{'crypto/crypto.c'} =~ /^(crypto_equal\(.*?^\})/ms;
	like($equal || '', qr/sodium_memcmp\(/, 'what compares secrets takes as long for any');
	unlike($source{'api/signature.c'}, qr/\b(?:strn?cmp|strcasecmp|memcmp|str_eq)\(/, 'and nothing else compares signatures');
	cmp_ok(scalar(() = $source{'api/signature.c'} =~ /\bcrypto_equal\(/g), '>=', 3, '... of any of the three forms');
}
done_testing;
