#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The stand-in for a Git server that other tests run against: its responses, the
# requests that it rejects, and that git can clone from it and push to it.

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_hex sha256);
use Cpanel::JSON::XS ();
use MIME::Base64 qw(encode_base64 encode_base64url);
use Test::More;
use Slipway::Forge;
use Slipway::Test;

my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;
my %forges;

# Sends a request as an adapter of the service would; { status, headers, content,
# json }.
sub ask {
	my ($f, $method, $path, $token, $body, %more) = @_;
	my $accept = $f->type eq 'github' ? 'application/vnd.github+json' : 'application/json';
	my %headers = ('User-Agent' => 'test', Accept => $accept,
		defined $token ? (Authorization => "Bearer $token") : (),
		$f->type eq 'github' ? ('X-GitHub-Api-Version' => '2022-11-28') : (),
		defined $body ? ('Content-Type' => 'application/json') : (), %{ $more{headers} || {} });
	delete $headers{$_} for grep { !defined $headers{$_} } keys %headers;
	my $url = $path =~ /^https:/ ? $path : $f->api . $path;
	my %content = defined $body ? (content => $json->encode($body)) : ();
	my $got = $f->http->request($method, $url, { headers => \%headers, %content });
	$got->{json} = length $got->{content} ? eval { $json->decode($got->{content}) } : undef;
	return $got;
}

sub form {
	my ($f, $path, %form) = @_;
	return ask($f, 'POST', $f->url . $path, undef, undef, headers => { Accept => 'application/json' })
	    if !%form;
	my %headers = (Accept => 'application/json', 'User-Agent' => 'test');
	my $got = $f->http->post_form($f->url . $path, \%form, { headers => \%headers });
	$got->{json} = length $got->{content} ? eval { $json->decode($got->{content}) } : undef;
	return $got;
}

# The address of the next page; undef on the last.
sub next_link {
	my ($got) = @_;
	return ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/ ? $1 : undef;
}

for my $type (qw(gitea gitlab github)) {
	my $f = $forges{$type} = Slipway::Forge->start(type => $type, max_items => 2,
	    $type eq 'gitea' ? (prefix => '/git') : ());
	$f->user(ann => { id => 7 });
	$f->user('eve');
	my $repo = $f->repo('team/site', private => 1, users => ['ann']);
	my ($ann, $eve) = map { scalar $f->token($_) } qw(ann eve);
	my $at = $type eq 'gitlab' ? '/projects/team%2Fsite' : '/repos/team/site';
	my $in = $type eq 'gitlab' ? "$at/repository" : $at;
	my $name = $type eq 'gitlab' ? 'username' : 'login';

	# --- tokens
	is(ask($f, 'GET', '/user')->{status}, 401, "$type: a request without a token returns 401");
	is(ask($f, 'GET', '/user', 'nonsense')->{status}, 401, 'a request with an unknown token returns 401');
	is(ask($f, 'GET', '/user', $ann)->{json}{$name}, 'ann', 'a token identifies its user');
	$f->rename_user(ann => 'anna');
	is(ask($f, 'GET', '/user', $ann)->{json}{$name}, 'anna',
	    'the token of a renamed user shows the new name');
	is(ask($f, 'GET', '/user', $ann)->{json}{id}, 7, 'a renamed user keeps the id');
	$f->rename_user(anna => 'ann');
	my $expired = $f->token('ann', expires => -5);
	is(ask($f, 'GET', '/user', $expired)->{status}, 401, 'a request with an expired token returns 401');

	# --- an empty private repository
	is(ask($f, 'GET', $at)->{status}, 404, 'a private repository returns 404 without a token');
	is(ask($f, 'GET', $at, $eve)->{status}, 404, 'a private repository returns 404 to a stranger');
	is(ask($f, 'GET', $at, $ann)->{status}, 200, 'a private repository returns 200 to its user');
	is($json->encode(ask($f, 'GET', "$in/branches", $ann)->{json}), $type eq 'gitea' ? 'null' : '[]',
	    'an empty repository has no branches');
	is(ask($f, 'GET', "$in/commits", $ann)->{status}, $type eq 'gitlab' ? 200 : 409,
	    'an empty repository has no commits');

	# --- lists
	my $first = $repo->commit('main', { file => "one\n" }, "first\n\nwith more");
	my @hashes = ($first, map { $repo->commit('main', { file => "$_\n" }, "change $_") } 2 .. 5);
	$repo->branch('release/1.0+#%');
	$repo->branch('zebra');
	my @got;
	for (my $url = "$in/branches"; defined $url;) {
		my $got = ask($f, 'GET', $url, $ann);
		cmp_ok(scalar @{ $got->{json} }, '<=', 2, 'a page holds at most max_items items');
		push @got, @{ $got->{json} };
		$url = next_link($got);
	}
	is_deeply([map { $_->{name} } @got], ['main', 'release/1.0+#%', 'zebra'],
	    'the Link header leads to every branch');
	is($got[0]{commit}{ $type eq 'github' ? 'sha' : 'id' }, $hashes[-1],
	    'a branch has its newest commit');
	my $by = ($type eq 'gitlab' ? 'ref_name' : 'sha') . '=' . 'release%2F1.0%2B%23%25';
	@got = ();
	for (my $url = "$in/commits?$by"; defined $url;) {
		my $got = ask($f, 'GET', $url, $ann);
		push @got, map { $_->{ $type eq 'gitlab' ? 'id' : 'sha' } } @{ $got->{json} };
		$url = next_link($got);
	}
	is_deeply(\@got, [reverse @hashes], 'the Link header leads to every commit of a branch');
	is(ask($f, 'GET', "$in/commits?" . ($by =~ s/=.*/=nope/r), $ann)->{status},
	    $type eq 'gitlab' ? 200 : 404,
	    'commits of an unknown branch return the status that the server uses');

	# --- statuses
	my $put = "$at/statuses/$first";
	my %pending = (state => 'pending', context => 'ci');
	my %success = (state => 'success', context => 'ci');
	is(ask($f, 'POST', $put, $ann, \%pending)->{status}, 201,
	    'a user of a repository creates a commit status');
	my $again = ask($f, 'POST', $put, $ann, \%pending);
	is($again->{status}, $type eq 'gitlab' ? 400 : 201,
	    'only GitLab rejects the same status a second time');
	like($again->{content}, qr/Cannot transition status via :enqueue from :pending/,
	    'GitLab gives its reason for a rejected status') if $type eq 'gitlab';
	is(ask($f, 'POST', $put, $ann, \%success)->{status}, 201, 'a pending status becomes success');
	like(ask($f, 'POST', $put, $eve, \%success)->{status}, qr/^404$/,
	    'a stranger cannot create a commit status');
	is(($f->statuses($first))[-1]{state}, 'success', 'statuses() returns the status of a commit');
	my $unknown = $put =~ s/\w+$/'1' x 40/er;
	like(ask($f, 'POST', $unknown, $ann, { state => 'success' })->{status}, qr/^(?:404|422|500)$/,
	    'a status of an unknown commit is rejected');
	is_deeply([$f->complaints], [], 'well-formed requests cause no complaint');

	# --- requests that the real server would not accept
	for my $bad ([GET => "$in/branches?per=3"], [GET => "$in/branches?page=0"],
		[POST => $put, { state => 'success', color => 'red' }], [POST => $put, { context => 'ci' }],
		[POST => $put, { state => 'ended' }],
		[POST => $put, { state => 'success' }, { 'Content-Type' => 'text/plain' }],
		[GET => $at, undef, { Accept => 'text/html' }],
		$type eq 'github' ? ([GET => $at, undef, { 'X-GitHub-Api-Version' => undef }]) : ()) {
		my $got = ask($f, $bad->[0], $bad->[1], $ann, $bad->[2], headers => $bad->[3] || {});
		my @complaints = $f->complaints;
		my $why = @complaints ? $complaints[-1] : "$bad->[0] $bad->[1]";
		cmp_ok($got->{status}, '>=', 400, "a malformed request is rejected: $why");
		cmp_ok(scalar @complaints, '>=', 1, "a malformed request is recorded as a complaint: $why");
		$f->forget_complaints;
	}

	# --- renamed repositories
	$repo->rename('team/page');
	my $moved = ask($f, 'GET', $at, $ann);
	is($moved->{status}, { gitea => 307, gitlab => 302, github => 301 }->{$type},
	    'the old path of a renamed repository redirects');
	my $to = $moved->{headers}{location};
	$to = $f->server . $to if $to =~ m{^/};
	is(ask($f, 'GET', $to, $ann)->{json}{id}, $repo->id, 'the redirect leads to the renamed repository');
	my $by_id = ($type eq 'gitlab' ? '/projects/' : '/repositories/') . $repo->id;
	is(ask($f, 'GET', $by_id, $ann)->{json}{id}, $repo->id, 'a renamed repository is found by its id');

	# --- git
	my $hook = $f->hook($repo, $f->url . '/nowhere', 'secret', ca => $f->ca);
	$repo->commit_here('main', { big => join '', map { sha256($_) } 1 .. 40_000 }, 'large');
	my ($status, $said) = $repo->push($eve, 'main');
	isnt($status, 0, 'a stranger cannot push');
	($status, $said) = $repo->push($ann, 'main');
	is($status, 0, 'a user of a repository can push') or diag($said);
	my ($sent) = poll(10, sub { ($f->deliveries)[0] });
	is($json->decode($sent->{sent})->{after}, $repo->tip('main'),
	    'a push sends an event with the new commit');
	my $clone = $f->dir . '/clone';
	my $url = $repo->clone_url;
	my %git = (env => { GIT_TERMINAL_PROMPT => 0, GIT_SSL_CAINFO => $f->ca });
	($status) = run_cmd(\%git, 'git', 'clone', '-q', $url, $clone);
	isnt($status, 0, 'git cannot clone a private repository without a token');
	my $as = { gitea => "x:$ann", gitlab => "oauth2:$ann", github => "$ann:x-oauth-basic" }->{$type};
	($status, undef, my $err) = run_cmd(\%git, 'git', 'clone', '-q', $url =~ s{//}{//$as\@}r, $clone);
	is($status, 0, 'git clones a private repository with a token') or diag($err);
	is(-s "$clone/big", 40_000 * 32, 'a clone contains the files of the repository');

	# --- faults
	$f->fault(qr{/user$}, kind => 'status', status => 429, body => 'Retry later', type => 'text/plain',
		headers => { 'Retry-After' => 7 }, times => 1);
	my $got = ask($f, 'GET', '/user', $ann);
	is("$got->{status} $got->{headers}{'retry-after'} $got->{content}", '429 7 Retry later',
	    'an injected fault replaces the response');
	is(ask($f, 'GET', '/user', $ann)->{status}, 200, 'an injected fault occurs as often as requested');
	$f->fault('/user', kind => 'cut', body => '[');
	is(ask($f, 'GET', '/user', $ann)->{status}, 599, 'a response can be truncated');
	$f->clear_faults;
	$repo->remove;
	is(ask($f, 'GET', $at, $ann)->{status}, 404, 'a deleted repository returns 404');
	cmp_ok(scalar(my @seen = $f->requests(qr{/user$})), '>=', 9,
	    'requests() returns the requests to a path');
	is_deeply([$f->complaints], [], 'well-formed requests to a faulty server cause no complaint');
}

# --- OAuth
for my $case ([gitea => '/login/oauth/authorize', '/login/oauth/access_token'],
	[gitlab => '/oauth/authorize', '/oauth/token'],
	[github => '/login/oauth/authorize', '/login/oauth/access_token']) {
	my ($type, $authorize, $token) = @$case;
	my $f = $forges{$type};
	my $verifier = 'v' x 50;
	my %ask = (client_id => $f->client_id, redirect_uri => $f->redirect_uri, response_type => 'code',
	    state => 'abc',
		scope => 'user', code_challenge => encode_base64url(sha256($verifier)),
		code_challenge_method => 'S256');
	my $url = sub { my %q = (%ask, @_);
		$f->url . "$authorize?" . HTTP::Tiny->new->www_form_urlencode(\%q) };
	my %get = (grant_type => 'authorization_code', client_id => $f->client_id,
	    redirect_uri => $f->redirect_uri,
		code_verifier => $verifier, $f->client_secret ? (client_secret => $f->client_secret) : ());
	# Exchanges a code; the status and the error.
	my $exchange = sub {
		my (@more) = @_;
		my $got = form($f, $token, %get, @more);
		return "$got->{status} " . ($got->{json}{error} || 'none');
	};
	my $code = $f->authorize($url->(), 'ann');
	is("$code->{status} $code->{state}", '303 abc',
	    "$type: authorization redirects back with a code and the state");
	my %mismatch = (gitea => '400 unauthorized_client', gitlab => '400 invalid_grant',
		github => '200 bad_verification_code');
	is($exchange->(code => $code->{code}, code_verifier => 'w' x 50), $mismatch{$type},
	    'a code with another verifier is rejected');
	my $got = form($f, $token, %get, code => $code->{code});
	is(ask($f, 'GET', '/user', $got->{json}{access_token})->{json}{id}, 7,
	    'a code yields a token of the user who authorized it');
	like($exchange->(code => $code->{code}), qr/^(?:400 invalid_grant|200 bad_verification_code)$/,
	    'a used code is rejected');
	is($f->authorize($url->(), 'ann', deny => 1)->{error}, 'access_denied',
	    'a user who denies access is sent back with access_denied');
	is($f->authorize($url->(), undef)->{status}, 200, 'without a signed-in user the server shows a page');
	is($f->authorize($url->(client_id => 'other'), 'ann')->{status}, 400,
	    'an unknown client is rejected');
	is($f->authorize($url->(redirect_uri => 'https://evil.example/'), 'ann')->{status}, 400,
	    'an unregistered redirect URI is rejected');
	is_deeply([$f->complaints], [], 'well-formed OAuth requests cause no complaint');
	$f->authorize($url->(code_challenge => ''), 'ann');
	isnt(scalar(my @c = $f->complaints), 0, 'authorization without a challenge causes a complaint');
	$f->forget_complaints;
	my ($access, $refresh) = $f->token('ann', refresh => 1, expires => 100);
	my %again = (%get, grant_type => 'refresh_token', refresh_token => $refresh);
	delete $again{code_verifier};
	$got = form($f, $token, %again);
	is(ask($f, 'GET', '/user', $got->{json}{access_token})->{status}, 200,
	    'a refreshed access token works');
	is(ask($f, 'GET', '/user', $access)->{status}, $type eq 'gitea' ? 200 : 401,
	    'only Gitea accepts the old access token after a refresh');
	$got = form($f, $token, %again);
	is($got->{json}{error} ? 'no' : 'yes', $type eq 'gitea' ? 'yes' : 'no',
	    'only Gitea accepts a refresh token twice');
	if ($type eq 'gitlab') {
		$access = $f->token('ann');
		is(form($f, '/oauth/revoke', client_id => $f->client_id, token => $access)->{status}, 200,
		    'GitLab revokes a token');
		is(ask($f, 'GET', '/user', $access)->{status}, 401, 'GitLab rejects a revoked token');
	} elsif ($type eq 'github') {
		$access = $f->token('ann');
		my $basic = encode_base64($f->client_id . ':' . $f->client_secret, '');
		my $path = '/applications/' . $f->client_id . '/token';
		$got = ask($f, 'DELETE', $path, undef, { access_token => $access },
		    headers => { Authorization => "Basic $basic" });
		is($got->{status}, 204, 'GitHub revokes a token');
		is(ask($f, 'GET', '/user', $access)->{status}, 401, 'GitHub rejects a revoked token');
	}
	is_deeply([$f->complaints], [], 'refreshing and revoking cause no complaint');
}

# --- events
for my $type (qw(gitea gitlab github)) {
	my $f = $forges{$type};
	my $repo = $f->repo('team/events', users => ['ann']);
	my @hashes = map { $repo->commit('main', { file => $_ }, "change $_") } 1 .. 8;
	my $of = { url => 'https://localhost/', secret => 's3cret' };
	my $event = $f->push_event($repo, of => $of, branch => 'main', before => $hashes[0]);
	my $body = $json->decode($event->{body});
	is("$body->{ref} $body->{after}", "refs/heads/main $hashes[-1]",
	    "$type: the event of a push names the branch and its new commit");
	is(scalar @{ $body->{commits} }, $type eq 'gitea' ? 5 : 7,
	    'the event of a push lists as many commits as the server sends');
	my $hex = hmac_sha256_hex($event->{body}, 's3cret');
	my ($name, $value) = @{ { gitea => ['X-Gitea-Signature', $hex],
		github => ['X-Hub-Signature-256', "sha256=$hex"],
		gitlab => ['X-Gitlab-Token', 's3cret'] }->{$type} };
	is($event->{headers}{$name}, $value, 'the event carries its signature or secret');
	$body = $json->decode($f->push_event($repo, of => $of, deleted => 1)->{body});
	like($body->{after}, qr/^0{40}$/, 'the event of a deleted branch has a hash of zeros');
	$repo->tag('v1');
	is($json->decode($f->push_event($repo, of => $of, tag => 'v1')->{body})->{ref}, 'refs/tags/v1',
	    'the event of a tag names the tag');
	$event = $f->push_event($repo, of => $of, kind => 'ping');
	is($event->{headers}{'X-GitHub-Event'}, 'ping', 'GitHub sends ping events') if $type eq 'github';
}

done_testing;
