#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The stand-in for a Git server that other tests run against: what it answers,
# what it refuses, that git itself can clone from it and push to it.

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_hex sha256);
use JSON::PP ();
use MIME::Base64 qw(encode_base64 encode_base64url);
use Test::More;
use Slipway::Forge;
use Slipway::Test;

my $json = JSON::PP->new->canonical->allow_nonref;
my %forges;

# GET or POST of JSON as an adapter would send it; status, headers, body.
sub ask {
	my ($f, $method, $path, $token, $body, %more) = @_;
	my %headers = ('User-Agent' => 'test', Accept => $f->type eq 'github' ? 'application/vnd.github+json' : 'application/json',
		defined $token ? (Authorization => "Bearer $token") : (),
		$f->type eq 'github' ? ('X-GitHub-Api-Version' => '2022-11-28') : (),
		defined $body ? ('Content-Type' => 'application/json') : (), %{ $more{headers} || {} });
	delete $headers{$_} for grep { !defined $headers{$_} } keys %headers;
	my $url = $path =~ /^https:/ ? $path : $f->api . $path;
	my $got = $f->http->request($method, $url, { headers => \%headers, defined $body ? (content => $json->encode($body)) : () });
	$got->{json} = eval { $json->decode($got->{content}) };
	return $got;
}

sub form {
	my ($f, $path, %form) = @_;
	return ask($f, 'POST', $f->url . $path, undef, undef, headers => { Accept => 'application/json' }) if !%form;
	my $got = $f->http->post_form($f->url . $path, \%form, { headers => { Accept => 'application/json', 'User-Agent' => 'test' } });
	$got->{json} = eval { $json->decode($got->{content}) };
	return $got;
}

sub next_link { my ($got) = @_; return ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/ ? $1 : undef }

for my $type (qw(gitea gitlab github)) {
	my $f = $forges{$type} = Slipway::Forge->start(type => $type, $type eq 'gitea' ? (prefix => '/git') : (), max_items => 2);
	$f->user(ann => { id => 7 });
	$f->user('eve');
	my $repo = $f->repo('team/site', private => 1, users => ['ann']);
	my ($ann, $eve) = map { scalar $f->token($_) } qw(ann eve);
	my $at = $type eq 'gitlab' ? '/projects/team%2Fsite' : '/repos/team/site';
	my $in = $type eq 'gitlab' ? "$at/repository" : $at;
	my $name = $type eq 'gitlab' ? 'username' : 'login';

	# --- who asks
	is(ask($f, 'GET', '/user')->{status}, 401, "$type: who asks without a token");
	is(ask($f, 'GET', '/user', 'nonsense')->{status}, 401, 'or with one that is none');
	is(ask($f, 'GET', '/user', $ann)->{json}{$name}, 'ann', 'or with his own');
	$f->rename_user(ann => 'anna');
	is(ask($f, 'GET', '/user', $ann)->{json}{$name}, 'anna', 'who was renamed');
	is(ask($f, 'GET', '/user', $ann)->{json}{id}, 7, 'keeps the number');
	$f->rename_user(anna => 'ann');
	is(ask($f, 'GET', '/user', scalar $f->token('ann', expires => -5))->{status}, 401, 'an expired token');

	# --- an empty one, and one that is not for all
	is(ask($f, 'GET', $at)->{status}, 404, 'a private repository without a token');
	is(ask($f, 'GET', $at, $eve)->{status}, 404, 'or with that of somebody else');
	is(ask($f, 'GET', $at, $ann)->{status}, 200, 'or with one of its own');
	is($json->encode(ask($f, 'GET', "$in/branches", $ann)->{json}), $type eq 'gitea' ? 'null' : '[]', 'it has no branches');
	is(ask($f, 'GET', "$in/commits", $ann)->{status}, $type eq 'gitlab' ? 200 : 409, 'and no commits');

	# --- lists
	my $first = $repo->commit('main', { file => "one\n" }, "first\n\nwith more");
	my @hashes = ($first, map { $repo->commit('main', { file => "$_\n" }, "change $_") } 2 .. 5);
	$repo->branch('release/1.0+#%');
	$repo->branch('zebra');
	my @got;
	for (my $url = "$in/branches"; defined $url;) {
		my $got = ask($f, 'GET', $url, $ann);
		cmp_ok(scalar @{ $got->{json} }, '<=', 2, 'no more on a page than it gives');
		push @got, @{ $got->{json} };
		$url = next_link($got);
	}
	is_deeply([map { $_->{name} } @got], ['main', 'release/1.0+#%', 'zebra'], 'all branches by Link');
	is($got[0]{commit}{ $type eq 'github' ? 'sha' : 'id' }, $hashes[-1], 'with their commits');
	my $by = ($type eq 'gitlab' ? 'ref_name' : 'sha') . '=' . 'release%2F1.0%2B%23%25';
	@got = ();
	for (my $url = "$in/commits?$by"; defined $url;) {
		my $got = ask($f, 'GET', $url, $ann);
		push @got, map { $_->{ $type eq 'gitlab' ? 'id' : 'sha' } } @{ $got->{json} };
		$url = next_link($got);
	}
	is_deeply(\@got, [reverse @hashes], 'all commits of a branch by Link');
	is(ask($f, 'GET', "$in/commits?" . ($by =~ s/=.*/=nope/r), $ann)->{status}, $type eq 'gitlab' ? 200 : 404,
	    'a branch that is not there');

	# --- statuses
	my $put = $type eq 'gitlab' ? "$at/statuses/$first" : "$at/statuses/$first";
	is(ask($f, 'POST', $put, $ann, { state => 'pending', context => 'ci' })->{status}, 201, 'a status');
	my $again = ask($f, 'POST', $put, $ann, { state => 'pending', context => 'ci' });
	is($again->{status}, $type eq 'gitlab' ? 400 : 201, 'the same again');
	like($again->{content}, qr/Cannot transition status via :enqueue from :pending/, 'as GitLab says it') if $type eq 'gitlab';
	is(ask($f, 'POST', $put, $ann, { state => 'success', context => 'ci' })->{status}, 201, 'and then success');
	like(ask($f, 'POST', $put, $eve, { state => 'success', context => 'ci' })->{status}, qr/^404$/, 'not by somebody else');
	is(($f->statuses($first))[-1]{state}, 'success', 'the test sees it');
	like(ask($f, 'POST', $put =~ s/\w+$/'1' x 40/er, $ann, { state => 'success' })->{status}, qr/^(?:404|422|500)$/, 'a commit that is not there');
	is_deeply([$f->complaints], [], 'no complaint so far');

	# --- what it does not take
	for my $bad ([GET => "$in/branches?per=3"], [GET => "$in/branches?page=0"],
		[POST => $put, { state => 'success', colour => 'red' }], [POST => $put, { context => 'ci' }],
		[POST => $put, { state => 'ended' }], [POST => $put, { state => 'success' }, { 'Content-Type' => 'text/plain' }],
		[GET => $at, undef, { Accept => 'text/html' }],
		$type eq 'github' ? ([GET => $at, undef, { 'X-GitHub-Api-Version' => undef }]) : ()) {
		my $got = ask($f, $bad->[0], $bad->[1], $ann, $bad->[2], headers => $bad->[3] || {});
		cmp_ok($got->{status}, '>=', 400, "refused: @{[$f->complaints ? ($f->complaints)[-1] : 'without a complaint']}");
		cmp_ok(scalar(my @all = $f->complaints), '>=', 1, 'and noted');
		$f->forget_complaints;
	}

	# --- names that changed
	$repo->rename('team/page');
	my $moved = ask($f, 'GET', $at, $ann);
	is($moved->{status}, { gitea => 307, gitlab => 302, github => 301 }->{$type}, 'a renamed repository');
	my $to = $moved->{headers}{location};
	$to = $f->server . $to if $to =~ m{^/};
	is(ask($f, 'GET', $to, $ann)->{json}{id}, $repo->id, 'is where it sends us');
	is(ask($f, 'GET', ($type eq 'gitlab' ? '/projects/' : '/repositories/') . $repo->id, $ann)->{json}{id}, $repo->id, 'and under its number');

	# --- git
	my $hook = $f->hook($repo, $f->url . '/nowhere', 'secret', ca => $f->ca);
	$repo->commit_here('main', { big => join '', map { sha256($_) } 1 .. 40_000 }, 'large');
	my ($status, $said) = $repo->push($eve, 'main');
	isnt($status, 0, 'somebody else cannot push');
	($status, $said) = $repo->push($ann, 'main');
	is($status, 0, 'its own users can') or diag($said);
	my ($sent) = poll(10, sub { ($f->deliveries)[0] });
	is($json->decode($sent->{sent})->{after}, $repo->tip('main'), 'and an event is sent');
	my $clone = $f->dir . '/clone';
	my $url = $repo->clone_url;
	my %git = (env => { GIT_TERMINAL_PROMPT => 0, GIT_SSL_CAINFO => $f->ca });
	($status) = run_cmd(\%git, 'git', 'clone', '-q', $url, $clone);
	isnt($status, 0, 'no clone without a token');
	my $as = { gitea => "x:$ann", gitlab => "oauth2:$ann", github => "$ann:x-oauth-basic" }->{$type};
	($status, undef, my $err) = run_cmd(\%git, 'git', 'clone', '-q', $url =~ s{//}{//$as\@}r, $clone);
	is($status, 0, 'with one there is') or diag($err);
	is(-s "$clone/big", 40_000 * 32, 'with its files');

	# --- faults
	$f->fault(qr{/user$}, kind => 'status', status => 429, body => 'Retry later', type => 'text/plain',
		headers => { 'Retry-After' => 7 }, times => 1);
	my $got = ask($f, 'GET', '/user', $ann);
	is("$got->{status} $got->{headers}{'retry-after'} $got->{content}", '429 7 Retry later', 'a fault');
	is(ask($f, 'GET', '/user', $ann)->{status}, 200, 'once');
	$f->fault('/user', kind => 'cut', body => '[');
	is(ask($f, 'GET', '/user', $ann)->{status}, 599, 'an answer that is cut short');
	$f->clear_faults;
	$repo->remove;
	is(ask($f, 'GET', $at, $ann)->{status}, 404, 'a repository that is gone');
	cmp_ok(scalar(my @seen = $f->requests(qr{/user$})), '>=', 9, 'all requests are there to be seen');
	is_deeply([$f->complaints], [], 'no complaint');
}

# --- OAuth
for my $case ([gitea => '/login/oauth/authorize', '/login/oauth/access_token'], [gitlab => '/oauth/authorize', '/oauth/token'],
	[github => '/login/oauth/authorize', '/login/oauth/access_token']) {
	my ($type, $authorize, $token) = @$case;
	my $f = $forges{$type};
	my $verifier = 'v' x 50;
	my %ask = (client_id => $f->client_id, redirect_uri => $f->redirect_uri, response_type => 'code', state => 'abc',
		scope => 'user', code_challenge => encode_base64url(sha256($verifier)), code_challenge_method => 'S256');
	my $url = sub { my %q = (%ask, @_); $f->url . "$authorize?" . HTTP::Tiny->new->www_form_urlencode(\%q) };
	my %get = (grant_type => 'authorization_code', client_id => $f->client_id, redirect_uri => $f->redirect_uri,
		code_verifier => $verifier, $f->client_secret ? (client_secret => $f->client_secret) : ());
	my $no = sub { my ($what, @more) = @_; my $got = form($f, $token, %get, @more); return "$got->{status} " . ($got->{json}{error} || 'none') };
	my $code = $f->authorize($url->(), 'ann');
	is("$code->{status} $code->{state}", '303 abc', "$type: sent back with a code");
	is($no->('another verifier', code => $code->{code}, code_verifier => 'w' x 50),
		{ gitea => '400 unauthorized_client', gitlab => '400 invalid_grant', github => '200 bad_verification_code' }->{$type}, 'wrong verifier');
	my $got = form($f, $token, %get, code => $code->{code});
	is(ask($f, 'GET', '/user', $got->{json}{access_token})->{json}{id}, 7, 'the token of who said yes');
	like($no->('again', code => $code->{code}), qr/^(?:400 invalid_grant|200 bad_verification_code)$/, 'a code twice');
	is($f->authorize($url->(), 'ann', deny => 1)->{error}, 'access_denied', 'somebody says no');
	is($f->authorize($url->(), undef)->{status}, 200, 'nobody is signed in');
	is($f->authorize($url->(client_id => 'other'), 'ann')->{status}, 400, 'a client that is not known');
	is($f->authorize($url->(redirect_uri => 'https://evil.example/'), 'ann')->{status}, 400, 'another address to go back to');
	is_deeply([$f->complaints], [], 'no complaint');
	$f->authorize($url->(code_challenge => ''), 'ann');
	isnt(scalar(my @c = $f->complaints), 0, 'no challenge is one');
	$f->forget_complaints;
	my ($access, $refresh) = $f->token('ann', refresh => 1, expires => 100);
	my %again = (%get, grant_type => 'refresh_token', refresh_token => $refresh);
	delete $again{code_verifier};
	$got = form($f, $token, %again);
	is(ask($f, 'GET', '/user', $got->{json}{access_token})->{status}, 200, 'a refreshed token');
	is(ask($f, 'GET', '/user', $access)->{status}, $type eq 'gitea' ? 200 : 401, 'the former one');
	$got = form($f, $token, %again);
	is($got->{json}{error} ? 'no' : 'yes', $type eq 'gitea' ? 'yes' : 'no', 'the refresh token again');
	if ($type eq 'gitlab') {
		$access = $f->token('ann');
		is(form($f, '/oauth/revoke', client_id => $f->client_id, token => $access)->{status}, 200, 'a token is given back');
		is(ask($f, 'GET', '/user', $access)->{status}, 401, 'and worth nothing');
	} elsif ($type eq 'github') {
		$access = $f->token('ann');
		my $basic = encode_base64($f->client_id . ':' . $f->client_secret, '');
		is(ask($f, 'DELETE', '/applications/' . $f->client_id . '/token', undef, { access_token => $access },
			headers => { Authorization => "Basic $basic" })->{status}, 204, 'a token is given back');
		is(ask($f, 'GET', '/user', $access)->{status}, 401, 'and worth nothing');
	}
	is_deeply([$f->complaints], [], 'no complaint');
}

# --- events
for my $type (qw(gitea gitlab github)) {
	my $f = $forges{$type};
	my $repo = $f->repo('team/events', users => ['ann']);
	my @hashes = map { $repo->commit('main', { file => $_ }, "change $_") } 1 .. 8;
	my $of = { url => 'https://localhost/', secret => 's3cret' };
	my $event = $f->push_event($repo, of => $of, branch => 'main', before => $hashes[0]);
	my $body = $json->decode($event->{body});
	is("$body->{ref} $body->{after}", "refs/heads/main $hashes[-1]", "$type: an event of a push");
	is(scalar @{ $body->{commits} }, $type eq 'gitea' ? 5 : 7, 'with as many commits as it sends');
	my $hex = hmac_sha256_hex($event->{body}, 's3cret');
	my ($name, $value) = @{ { gitea => ['X-Gitea-Signature', $hex], github => ['X-Hub-Signature-256', "sha256=$hex"],
		gitlab => ['X-Gitlab-Token', 's3cret'] }->{$type} };
	is($event->{headers}{$name}, $value, 'signed');
	$body = $json->decode($f->push_event($repo, of => $of, deleted => 1)->{body});
	like($body->{after}, qr/^0{40}$/, 'of a branch that is gone');
	$repo->tag('v1');
	is($json->decode($f->push_event($repo, of => $of, tag => 'v1')->{body})->{ref}, 'refs/tags/v1', 'of a tag');
	$event = $f->push_event($repo, of => $of, kind => 'ping');
	is($event->{headers}{'X-GitHub-Event'}, 'ping', 'a ping') if $type eq 'github';
}

done_testing;
