#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The requests that slipway sends to Gitea, Forgejo, GitLab and GitHub, and how it
# handles their responses, valid and invalid.

use strict;
use warnings;
use Digest::SHA qw(sha256);
use MIME::Base64 qw(encode_base64url);
use Test::More;
use Slipway::Forge;
use Slipway::Probe;
use Slipway::Test;

my $confs = 0;
our $probe = Slipway::Probe->start(undef, 'forge_probe');

sub conf_for {
	my ($f, %more) = @_;
	return spew(tempdir() . '/forge-' . ++$confs . '.conf', $f->conf(%more), 0600);
}

# Runs the probe; returns { ok, error, code, sys, lines => [[…]], name => value }.
sub ask_once {
	my ($conf, @args) = @_;
	my ($status, $out) = $probe->run($conf, @args);
	my %got = (ok => $status == 0, text => $out, lines => []);
	for my $line (split /\n/, $out) {
		my @part = split /\t/, $line, -1;
		push @{ $got{lines} }, \@part;
		$got{ $part[0] } = $part[1] if @part == 2;
	}
	@got{qw(code sys error)} = $out =~ /^error (\S+) (\d+) (.*)$/m if !$got{ok};
	return \%got;
}

# The same, and repeats a read that was late, as any is on a machine that stands still.
sub ask {
	my ($conf, @args) = @_;
	my $got;
	poll(300, sub {
		$got = ask_once($conf, @args);
		return ($got->{code} // '') ne 'upstream_timeout'
		    || $args[0] !~ /^(?:branches|commits|repo|ls|check|whoami)$/;
	});
	return $got;
}

# The names of the branches that the probe printed.
sub branches { return map { $_->[1] } grep { $_->[0] eq 'branch' } @{ $_[0]{lines} } }

# Runs the probe and expects an error; returns what the probe printed.
sub rejected {
	my ($name, $code, $like, @args) = @_;
	my $got = $code eq 'upstream_timeout' ? ask_once(@args) : ask(@args);
	is($got->{code}, $code, "$name: the error is $code") or diag($got->{text});
	like($got->{error} || '', $like, "$name: the message gives the cause");
	return $got;
}

my $verifier = 'v' x 50;
my $challenge = encode_base64url(sha256($verifier));

sub sign_in {
	my ($f, $conf) = @_;
	my $url = ask($conf, 'authorize', 'a state', $challenge)->{url};
	my $back = $f->authorize($url, 'ann');
	is($back->{state}, 'a state', 'the Git server returns the state unchanged');
	return ask($conf, 'get', $back->{code}, $verifier);
}

my @odd = ('feature/a', 'x%20y', 'a#b', "fix-\xc3\xbc", 'a&b=c', 'plus+x', 'deep/er/name');

for my $kind (['gitea', ''], ['forgejo', '/git'], ['gitlab', ''], ['gitlab', '/lab'], ['github', '']) {
	my ($type, $prefix) = @$kind;
	note("$type $prefix");
	my $f = Slipway::Forge->start(type => $type, prefix => $prefix,
	    max_items => $prefix || $type ne 'gitea' ? 100 : 7);
	my $conf = conf_for($f);
	my $ann = $f->user('ann', { name => 'Ann Author' });
	$f->user('bob');

	# --- signing in
	my $got = sign_in($f, $conf);
	ok($got->{ok}, 'a code is exchanged for a token') or diag($got->{text});
	my $token = $got->{access};
	my $who = ask($conf, 'whoami', $token);
	is("$who->{id} $who->{login} $who->{server}", "$ann->{id} ann " . $f->url,
	    'the token identifies the account');
	rejected('an unknown code', 'bad_request', qr/^The Git server rejected the request: /, $conf, 'get',
	    'nonsense', $verifier);
	rejected('another verifier', 'bad_request', qr/rejected/, $conf, 'get',
	    $f->authorize(ask($conf, 'authorize', 's', $challenge)->{url}, 'ann')->{code}, 'w' x 50);
	my (undef, $refresh) = $f->token('ann', refresh => 1, expires => 60);
	my $fresh = ask($conf, 'refresh', $refresh);
	ok($fresh->{ok} && $fresh->{access} ne $token, 'a refresh token returns a new token')
	    or diag($fresh->{text});
	rejected('an unknown refresh token', 'unauthenticated', qr/rejected/, $conf,
	    'refresh', 'nonsense');
	rejected('an unknown token', 'unauthenticated', qr/401/, $conf, 'whoami', 'nonsense');
	rejected('an unknown client', 'config', qr/rejected/, conf_for($f, client_id => 'other'),
	    'get', 'x', $verifier);

	# --- a repository
	my $repo = $f->repo('team/site', private => 1, users => ['ann']);
	my $at = $repo->clone_url;
	my $found = ask($conf, 'repo', $token, $at);
	is("$found->{path} $found->{id}", 'team/site ' . $repo->id, 'a token finds a private repository')
	    or diag($found->{text});
	rejected('a private repository with the token of another user', 'not_found', qr/404/, $conf, 'repo',
	    scalar $f->token('bob'), $at);
	rejected('a private repository without a token', 'not_found', qr/404/, $conf, 'repo', '-', $at);
	for my $list (['branches', $token, $at, 1, 20], ['commits', $token, $at, '-', 1, 20],
	    ['commits', $token, $at, 'main', 1, 20]) {
		my $empty = ask($conf, @$list);
		ok($empty->{ok} && !grep({ @$_ > 2 } @{ $empty->{lines} }),
		    "an empty repository has no $list->[0]")
		    or diag($empty->{text});
	}
	my @hashes = map { $repo->commit('main', { n => "$_\n" }, "number $_\n\nmore of it") } 1 .. 9;
	$repo->branch($_) for @odd, map { "b$_" } 10 .. 27;
	my $n = @odd + 19;

	$repo->branch('-x');
	my @listed = branches(ask($conf, 'branches', $token, $at, 1, 100));
	is_deeply([ scalar @listed, grep { /^-/ } @listed ], [$n],
	    'a branch with a leading dash is left out');
	$repo->drop_branch('-x');

	# --- lists, by every page of every size
	for my $limit (4, 7, 9, 20, 100) {
		my (@seen, $more);
		for my $page (1 .. 40) {
			my $part = ask($conf, 'branches', $token, $at, $page, $limit);
			ok($part->{ok}, "page $page of branches, $limit per page, is read")
			    or diag($part->{text}), last;
			my @names = branches($part);
			push @seen, @names;
			$more = $part->{more};
			last if !$more;
			is(scalar @names, $limit,
			    "page $page of branches is full if more follow, $limit per page");
		}
		my %once = map { $_ => 1 } @seen;
		is(scalar @seen . ' ' . keys %once, "$n $n", "pages of $limit list every branch once");
	}
	my ($main) = grep { $_->[1] eq 'main' } @{ ask($conf, 'branches', $token, $at, 1, 100)->{lines} };
	is_deeply([@$main[2, 4]], [$hashes[-1], 1], 'the default branch is marked');
	my $log = ask($conf, 'commits', $token, $at, 'main', 1, 100);
	is_deeply([map { $_->[1] } grep { $_->[0] eq 'commit' } @{ $log->{lines} }], [reverse @hashes],
	    'commits are listed newest first');
	my ($first) = @{ $log->{lines} };
	is_deeply([@$first[2 .. 4]], ['number 9', 'Ann Author', 'author@example.org'],
	    'a commit has its message and author');
	ok(abs($first->[5] / 1000 - time) < 3600, 'a commit has its time');

	# --- one commit, and whether a history contains it
	$repo->branch('aside', $hashes[4]);
	my $aside = $repo->commit('aside', { n => "aside\n" }, 'aside');
	for my $part ($hashes[0], substr($hashes[0], 0, 8), substr $hashes[0], 0, 7) {
		$got = ask($conf, 'commit', $token, $at, $part);
		is($got->{hash}, $hashes[0], length($part) . ' digits of a hash are enough')
		    or diag($got->{text});
		is($got->{message}, 'number 1', 'the commit has its message');
	}
	my $missing = $type eq 'github' ? 'upstream_failed' : 'not_found';
	rejected('no such commit', $missing, qr/./, $conf, 'commit', $token, $at, '0123456789');
	$repo->branch('abcdef0', $hashes[4]);
	rejected('a branch with such a name', 'not_found', qr/no such commit/, $conf, 'commit', $token, $at,
	    'abcdef0');
	$repo->drop_branch('abcdef0');
	for my $case ((map { [$_, 'inside'] } @hashes[0, 4, 8]), [$aside, 'outside']) {
		$got = ask($conf, 'contains', $token, $at, $hashes[8], $case->[0]);
		is($got->{commit}, $case->[1], "a commit is $case->[1] of the history of a branch")
		    or diag($got->{text});
	}
	ok(!ask($conf, 'contains', $token, $at, $hashes[8], '1' x 40)->{ok}, 'an unknown commit is an error');
	$repo->drop_branch('aside');
	for my $branch (@odd) {
		my $one = ask($conf, 'commits', $token, $at, $branch, 1, 1);
		is($one->{lines}[0][1], $hashes[-1], "commits of the branch $branch are read")
		    or diag($one->{text});
	}
	rejected("commits of an unknown branch: $_", 'not_found', qr/404/, $conf, 'commits', $token, $at,
	    $_, 1, 20) for 'nowhere', 'no/where', 'no%2fwhere', 'a#c';
	my $behind = ask($conf, 'commits', $token, $at, $odd[0], 9, 20);
	ok($behind->{ok} && $behind->{more} == 0 && !grep({ $_->[0] eq 'commit' } @{ $behind->{lines} }),
	    'a page past the last commit is empty')
	    or diag($behind->{text});

	# --- statuses
	my $long = "gr\xc3\xbc\xc3\x9fe " x 40;
	for my $state (0 .. 5) {
		my $put = ask($conf, 'status', $token, $at, $hashes[0], $state, 'main',
		    $state ? "state $state" : $long, 'https://x.example.org/1');
		ok($put->{ok}, "commit status $state is sent") or diag($put->{text});
	}
	my @status = $f->statuses($hashes[0]);
	is_deeply([map { $_->{state} } @status], $type eq 'gitlab'
	    ? [qw(pending running success failed failed canceled)]
	    : [qw(pending pending success failure error error)],
	    'commit statuses use the values of the server');
	is($status[0]{context}, 'slipway/Deploy', 'a commit status has the context slipway/Deploy');
	my $cut = $status[0]{description};
	like(length $cut, qr/^1(?:39|40)$/, 'a description is cut to 140 bytes');
	is($cut, substr($long, 0, length $cut), 'a description is cut between characters');
	ok(ask($conf, 'status', $token, $at, $hashes[0], 5, 'main', 'again', '-')->{ok},
	    'a commit status that exists already is no error');
	my $none = ask($conf, 'status', $token, $at, '1' x 40, 2, 'main', 'x', '-');
	like($none->{code} || '', qr/^(?:upstream_failed|not_found)$/,
	    'a commit status for an unknown commit fails')
	    or diag($none->{text});

	# --- renames
	$repo->rename('other/place');
	is(ask($conf, 'repo', $token, $at)->{path}, 'other/place',
	    'the old address finds a renamed repository');
	is(ask($conf, 'repo', $token, '#' . $repo->id)->{path}, 'other/place',
	    'the id finds a renamed repository');
	is(scalar(() = branches(ask($conf, 'branches', $token, $at, 1, 5))), 5,
	    'the old address lists the branches of a renamed repository');
	is_deeply([$f->complaints], [], 'the server received only valid requests');
	ok(!(grep { ($_->{query} || '') =~ /\Q$token\E/ || $_->{path} =~ /\Q$token\E/ } $f->requests),
	    'no token is part of a URL');
	$f->stop;
}

# --- faulty servers
my $f = Slipway::Forge->start(type => 'gitea', max_items => 50);
my $conf = conf_for($f);
$f->user('ann');
my $token = $f->token('ann');
my $repo = $f->repo('team/site', users => ['ann']);
$repo->commit('main', { a => "1\n" }, 'one');
my $at = $repo->clone_url;

sub faulty {
	my ($name, $code, $like, $path, $fault, @args) = @_;
	$f->clear_faults->fault($path, %$fault);
	my $before = stopwatch();
	my $got = rejected($name, $code, $like, $conf, @args);
	cmp_ok($before->(), '<', $f->patience + deadline(6),
	    "$name: the error comes when the time limit has passed");
	unlike($got->{text}, qr/\Q$token\E|verifier-secret|code-secret/,
	    "$name: the error contains no secret");
	$f->clear_faults;
	return $got;
}
my @list = ('branches', $token, $at, 1, 20);
my $api = qr{/branches$};
sub status_of {
	my ($status, $body, %more) = @_;
	return { kind => 'status', status => $status, body => $body, %more }
}
faulty('a server error', 'upstream_failed', qr/returned 503: tired/, $api,
    status_of(503, '{"message":"tired"}'), @list);
faulty('a server error with a long message and control characters', 'upstream_failed',
    qr/^The Git server returned 500: .{1,220}$/, $api,
    status_of(500, '{"message":"a\u0007b\u001b' . 'x' x 5000 . '"}'), @list);
faulty('a message that contains the token', 'upstream_failed', qr/^The Git server returned 500$/, $api,
    status_of(500, "{\"message\":\"no $token\"}"), @list);
for my $words (['an object', '{"message":{"state":["is wrong","x"],"b":["y"]}}', 'is wrong'],
    ['an array', '{"message":["is wrong","x"]}', 'is wrong'],
	['an array of arrays', '{"message":[["is wrong"]]}', 'is wrong'],
	['a member error', '{"error":"is wrong"}', 'is wrong'],
	['a member error_description', '{"error":"bad","error_description":"is wrong"}', 'is wrong'],
	['a list of errors',
	    '{"message":"Failed","errors":[{"message":"is wrong","code":"x"}],"status":"422"}',
	    'Failed: is wrong'],
	['an empty list of errors', '{"message":"Failed","errors":null}', 'Failed']) {
	faulty("a message in $words->[0]", 'upstream_failed', qr/returned 422: \Q$words->[2]\E$/, $api,
	    status_of(422, $words->[1]), @list);
}
faulty("a response without a message: $_", 'upstream_failed', qr/returned 422$/, $api, status_of(422, $_),
    @list)
    for '{"message":{}}', '{"message":[]}', '{"message":null}', '{"message":{"a":{"b":{}}}}', '[]', '"words"',
    '{', '';
faulty('a message that is not JSON', 'upstream_failed', qr/returned 422$/, $api,
    status_of(422, '{"message":"x"}', type => 'text/html'), @list);
faulty('HTML instead of JSON', 'upstream_failed',
    qr/returned an HTML page instead of data \(200\)$/, $api,
    status_of(200, '<html>', type => 'text/html'), @list);
faulty('an object instead of an array', 'upstream_failed', qr/not a JSON array/, $api,
    status_of(200, '{"a":1}'), @list);
faulty('an array of numbers', 'upstream_failed', qr/not a JSON object/, $api, status_of(200, '[1,2]'), @list);
faulty('a branch without a name', 'upstream_failed', qr/lacks the member "name"/, $api,
    status_of(200, '[{"commit":{"id":"a"}}]'), @list);
faulty('deeply nested JSON', 'upstream_failed', qr/nested too deeply/, $api, status_of(200, '[' x 10000),
    @list);
faulty('a response without end', 'upstream_failed', qr/larger|too large|too big|bytes/i, $api,
    { kind => 'big', size => 50_000_000 }, @list);
faulty('too many values', 'upstream_failed', qr/too many values/, $api,
    status_of(200, '[' . '0,' x 100_000 . '0]'), @list);
faulty('a gzip bomb', 'upstream_failed', qr/larger|too large|too big|bytes/i, $api,
    { kind => 'gzip', size => 50_000_000 }, @list);
faulty('a truncated response', 'upstream_failed', qr/./, $api, { kind => 'cut', body => '[' }, @list);
faulty('a dropped connection', 'upstream_failed', qr/./, $api, { kind => 'drop' }, @list);
faulty('a silent server', 'upstream_timeout', qr/in time/, $api, { kind => 'silent' }, @list);
is(faulty('rate limit with Retry-After', 'rate_limited', qr/rate limit is exceeded \(429\)/, $api,
    status_of(429, '{}', headers => { 'Retry-After' => 17 }), @list)->{sys}, 17,
    'Retry-After sets the time to wait');
is(faulty('rate limit without Retry-After', 'rate_limited', qr/429/, $api,
    status_of(429, 'Retry later', type => 'text/plain'), @list)->{sys}, 0,
    'without Retry-After there is no time to wait');
is(faulty('the rate limit of GitHub', 'rate_limited', qr/403/, $api,
    status_of(403, '{}', headers => { 'Retry-After' => 9, 'X-RateLimit-Remaining' => 0 }), @list)->{sys}, 9,
    'Retry-After sets the time to wait for GitHub');
faulty('forbidden', 'upstream_failed', qr/returned 403/, $api, status_of(403, '{"message":"no"}'), @list);
my $self = $f->api . '/repos/team/site/branches?page=1&limit=20';
faulty('a page that links to itself', 'upstream_failed', qr/form a loop|does not end/, $api,
    status_of(200, '[]', headers => { Link => "<$self>; rel=\"next\"" }), @list);
my $branches = $f->api . '/repos/team/site/branches';
faulty('a link with two next pages', 'upstream_failed', qr/form a loop|does not end/, $api,
    status_of(200, '[]',
	headers => { Link => "<$branches?page=2>; rel=\"next\", <$branches?page=3>; rel=\"next\"" }),
    'branches', $token, $at, 1, 20);
my $branch = '[{"name":"main","commit":{"id":"' . '1' x 40 . '"}}]';
my @turns = map { { times => 1, headers => { Link => "<$branches?page=$_&limit=20>; rel=\"next\"" } } } 2, 1;
$f->fault($api, %{ status_of(200, $branch, %$_) }) for (@turns) x 15;
rejected('pages that link to each other', 'upstream_failed', qr/form a loop/, $conf, @list);
$f->clear_faults;

# --- Gitea before 1.23 returns 500 for an unknown branch
my $broken = { kind => 'status', status => 500, body => '{"message":""}' };
for my $case (['nowhere', 'not_found', qr/no such branch/], ['main', 'upstream_failed', qr/returned 500/]) {
	$f->fault(qr{/commits$}, %$broken);
	rejected("status 500 for the branch $case->[0]", $case->[1], $case->[2], $conf, 'commits', $token,
	    $at,
	    $case->[0], 1, 20);
	$f->clear_faults;
}
$f->fault(qr{/(?:commits$|branches/)}, %$broken);
rejected('status 500 for everything', 'upstream_failed', qr/returned 500/, $conf, 'commits', $token, $at,
    'nowhere', 1, 20);
$f->clear_faults;

# --- X-RateLimit-Remaining and X-RateLimit-Reset
my $ends = time + 3000;
my $reset = faulty('no requests remain', 'rate_limited', qr/403/, $api,
    status_of(403, '{}', headers => { 'X-RateLimit-Remaining' => 0, 'X-RateLimit-Reset' => $ends }),
    @list)->{sys};
ok($reset >= $ends - time - 1 && $reset <= 3000, 'the time to wait ends at X-RateLimit-Reset')
    or diag($reset);
for my $odd (['in the past', 1, 0], ['in many years', 99_999_999_999, 3600],
    ['that is not a number', 'soon', 0]) {
	is(faulty("X-RateLimit-Reset $odd->[0]", 'rate_limited', qr/403/, $api,
	    status_of(403, '{}',
	    headers => { 'X-RateLimit-Remaining' => 0, 'X-RateLimit-Reset' => $odd->[1] }), @list)->{sys},
	    $odd->[2], "X-RateLimit-Reset $odd->[0]: wait $odd->[2] seconds");
}
faulty('403 while requests remain', 'upstream_failed', qr/returned 403/, $api,
    status_of(403, '{}', headers => { 'X-RateLimit-Remaining' => 7, 'X-RateLimit-Reset' => time + 40 }),
    @list);

# --- the page size of Gitea
my $says = qr{/settings/api$};
for my $status (403, 404) {
	$f->fault($says, %{ status_of($status, '{"message":"no"}') });
	ok(ask($conf, @list)->{ok}, "lists are read even if the settings return $status");
	$f->clear_faults;
}
faulty('a page size of 0', 'upstream_failed', qr/page size below 1/, $says,
    status_of(200, '{"max_response_items":0}'), @list);
faulty('no page size', 'upstream_failed', qr/max_response_items/, $says, status_of(200, '{}'), @list);
faulty('a rejected token', 'unauthenticated', qr/401/, $says, status_of(401, '{}'), @list);
{
	my $small = Slipway::Forge->start(type => 'gitea', max_items => 1);
	$small->user('ann');
	my $site = $small->repo('team/site', users => ['ann']);
	$site->commit('main', { a => "1\n" }, 'one');
	$site->branch("b$_") for 10 .. 40;
	my $got = ask(conf_for($small), 'branches', scalar $small->token('ann'), $site->clone_url, 1, 100);
	my %once = map { $_ => 1 } branches($got);
	is(keys %once, 32, 'a page size of 1 lists all branches') or diag($got->{text});
	$small->stop;
}

# --- whether the server can be reached
my $alive = qr{/version$};
my $asked = time;
my $check = ask($conf, 'check');
ok($check->{ok}, 'check succeeds') or diag($check->{text});
ok($check->{clock} / 1000 > $asked - 60 && $check->{clock} / 1000 < time + 60,
    "check returns the server's time");
for my $status (401, 403) {
	$f->fault($alive,
	    %{ status_of($status, '{"message":"Only signed in user is allowed to call APIs."}') });
	ok(ask($conf, 'check')->{ok}, "check accepts $status, the response to an unauthenticated request");
	$f->clear_faults;
}
faulty('another kind of server', 'config', qr/No API of type gitea/, $alive,
    status_of(200, '<html>', type => 'text/html'), 'check');
faulty('a proxy that rejects requests', 'config', qr/No API of type gitea at this URL \(403\)/,
    $alive,
    status_of(403, '<html>', type => 'text/html'), 'check');
faulty('an unknown path', 'config', qr/\(404\)/, $alive, status_of(404, '{}'), 'check');
my $other = Slipway::Forge->start(type => 'gitea');
faulty('a redirect to another server', 'upstream_failed', qr/redirect|another/i, $api,
    status_of(301, '', headers => { Location => $other->api . '/repos/team/site/branches' }), @list);
is(scalar($other->requests), 0, 'the other server receives no request');

# --- invalid tokens
my $tokens = qr{/access_token$};
my @get = ('get', 'code-secret', 'verifier-secret');
sub token_of { return status_of(200, shift) }
faulty('an error with status 200', 'bad_request', qr/bad_verification_code: gone/, $tokens,
    token_of('{"error":"bad_verification_code","error_description":"gone"}'), @get);
faulty('a server that is temporarily unavailable', 'upstream_failed', qr/temporarily_unavailable/, $tokens,
    status_of(400, '{"error":"temporarily_unavailable"}'), 'refresh', 'code-secret');
faulty('an error of the client', 'config', qr/redirect_uri_mismatch/, $tokens,
    token_of('{"error":"redirect_uri_mismatch"}'), @get);
faulty('HTML instead of a token', 'upstream_failed', qr/without JSON/, $tokens,
    status_of(200, '<html>', type => 'text/html'), @get);
faulty('an empty response', 'upstream_failed', qr/without JSON/, $tokens, token_of(''), @get);
faulty('a response without a token', 'upstream_failed', qr/no token/, $tokens,
    token_of('{"token_type":"bearer"}'), @get);
faulty('an empty token', 'upstream_failed', qr/no token/, $tokens, token_of('{"access_token":""}'), @get);
faulty('a token with a line break', 'upstream_failed', qr/no token/, $tokens,
    token_of('{"access_token":"a\r\nX: y"}'), @get);
faulty('an unknown token type', 'upstream_failed', qr/type/, $tokens,
    token_of('{"access_token":"a","token_type":"mac"}'), @get);
faulty('a scope that is too small', 'bad_request', qr/did not grant the scope write:repository/, $tokens,
    token_of('{"access_token":"a","token_type":"bearer","scope":"read:user"}'), @get);
faulty('a server error instead of a token', 'upstream_failed', qr/returned 502/, $tokens, status_of(502, ''),
    @get);
for my $good (['{"access_token":"a","token_type":"Bearer","expires_in":99999999999999}', 315_360_000],
	['{"access_token":"a","expires_in":-5}', 0], ['{"access_token":"a","expires_in":"soon"}', 0],
	['{"access_token":"a","expires_in":3600,"scope":"user,repository"}', 3600]) {
	$f->clear_faults->fault($tokens, %{ token_of($good->[0]) });
	my $got = ask($conf, @get);
	ok($got->{ok} && abs($got->{life} - $good->[1]) <= 2, "a token is accepted: $good->[0]")
	    or diag($got->{text});
}
$f->clear_faults;

# --- repository addresses, and which of them may receive a token
my $host = 'localhost:' . $f->port;
for my $case (["https://$host/a/b", 'a/b'], ["https://$host/a/b.git", 'a/b'],
    ["https://$host/a/b.git/", 'a/b'],
	["HTTPS://LOCALHOST:" . $f->port . '/a/b', 'a/b'], ['ssh://git@localhost/a/b.git', 'a/b'],
	['ssh://git@localhost:2222/a/b', 'a/b'], ['git@localhost:a/b.git', 'a/b'],
	['https://localhost/a/b', undef],
	["http://$host/a/b", 'a/b'], ['https://elsewhere.example.org/a/b', undef], ["https://$host/a", undef],
	["https://$host/a/b/c", undef],
	['git@elsewhere.example.org:a/b', undef], ['/srv/git/a/b', undef], ['file:///a/b', undef],
	["https://$host//a/b", undef],
	["https://$host.evil.example.org/a/b", undef], ["https://localhost\@evil.example.org/a/b", undef],
	['git@localhost:/a/b', 'a/b'], ["https://$host/a/..", undef], ["https://$host/../b", undef],
	["https://$host/./b", undef],
	["https://$host/a/b?x", undef], ["https://$host/a/b#x", undef], ["https://$host/a/b%2fc", undef],
	["https://$host/a b", undef],
	["https://$host", undef], ["https://$host/", undef], ["https://$host:/a/b", undef],
	['https://localhost:99999/a/b', undef],
	['https://localhost:-1/a/b', undef], ['https:///a/b', undef], ['localhost:a/b', undef],
	['@localhost:a/b', undef],
	["ftp://$host/a/b", undef]) {
	my $got = ask($conf, 'of', $case->[0]);
	is($got->{path}, $case->[1], "$case->[0] is " . ($case->[1] || 'not on the Git server'));
}
for my $case (["https://$host/a/b.git", "https://$host/c/d.git"], ["https://$host/a/b", "https://$host/c/d"],
    ["https://$host/a/b.git//", "https://$host/c/d.git"],
	["HTTPS://LOCALHOST:" . $f->port . '/a/b', 'HTTPS://LOCALHOST:' . $f->port . '/c/d'],
	['ssh://git@localhost:2222/a/b.git', 'ssh://git@localhost:2222/c/d.git'],
	['git@localhost:a/b.git', 'git@localhost:c/d.git'], ['git@localhost:/a/b', 'git@localhost:/c/d']) {
	is(ask($conf, 'at', $case->[0], 'c/d')->{address}, $case->[1], "$case->[0] with another path");
}
rejected("$_->[0] with the path $_->[1]", 'not_found', qr/is not on the Git server/, $conf, 'at', @$_)
    for ['https://elsewhere.example.org/a/b', 'c/d'],
    map({ ["https://$host/a/b", $_] } 'c', 'c/d/e', '../d', 'c/..', 'c/d?x', 'c/d#x', 'c d/e', 'c//d', '/c/d',
	'c/d.git', "c/d\nx", 'c/d%2f', ''),
    ['git@localhost:a/b', '/c/d'];
is(ask($conf, 'clone', $at, 'T')->{secret}, 'T', 'a token may be sent to its own server');
is(ask($conf, 'clone', $at, 'T')->{user}, 'slipway', 'with the user name of the type');
is(ask(conf_for($f, token_user => 'deploy'), 'clone', $at, 'T')->{user}, 'deploy',
    'or with that of token_user');
rejected("a token for $_", 'not_found', qr/is not on the Git server/, $conf, 'clone', $_, 'T')
    for "http://$host/a/b", 'https://localhost/a/b', 'git@localhost:a/b', 'https://elsewhere.example.org/a/b',
    'ssh://localhost/a/b',
    map { "https://evil.example.org$_\@$host/a/b" } '?', '#', '\\', '/', ' ', "\t", '%2f', '@',
    ':', ':1@evil.example.org';
my $six = conf_for($f, url => 'https://[2001:db8::1]:3000');
is(ask($six, 'clone', 'https://[2001:DB8::1]:3000/a/b', 'T')->{secret}, 'T',
    'a token may be sent to an IPv6 address');
is(ask($six, 'of', 'git@[2001:db8::1]:a/b')->{path}, 'a/b',
    'an ssh address with an IPv6 address is on the Git server');
rejected("a token for $_", 'not_found', qr/is not on the Git server/, $six, 'clone', $_, 'T')
    for map({ "https://$_/a/b" } '[2001:db8::2]:3000', '[2001:db8::1]', '[2001:db8::1', '[2001:db8::1]x:3000',
    '[', '[]:3000');
my $below = conf_for($f, url => $f->url . '/git');
is(ask($below, 'of', 'git@localhost:git/b')->{path}, 'git/b',
    'the path of the server is no part of an ssh address');
is(ask($below, 'at', "https://$host/git/a/b", 'c/d')->{address}, "https://$host/git/c/d",
    'an address below the path of the server gets another path');
ok(!ask($below, 'clone', "https://$host/git/../other/b", 'T')->{ok},
    '.. in a path does not lead out of the path of the server');
is(ask($below, 'of', "https://$host/git/a/b")->{path}, 'a/b',
    'an address below the path of the server is on it');
ok(!ask($below, 'of', "https://$host/gitx/a/b")->{ok},
    'an address beside the path of the server is not on it');
ok(!ask($below, 'clone', "https://$host/other/a/b", 'T')->{ok},
    'no token is sent to an address beside the path of the server');

# --- settings
for my $own (qw(http://localhost http://localhost:3000/git http://127.0.0.1:3000 http://127.1.2.3/
    http://[::1]:3000 HTTP://localhost:3000)) {
	my $got = ask(conf_for($f, url => $own), 'authorize', 's', 'c');
	ok($got->{ok}, "http is accepted for a server on this host: $own") or diag($got->{text});
}
rejected("http for $_", 'config', qr/https/, conf_for($f, url => $_), 'authorize', 's', 'c')
    for qw(http://localhost.example.org http://127.0.0.1.example.org http://127.example.org http://localhos
    http://10.0.0.1 http://[::2]);
{
	my $near = Slipway::Forge->start(plain => 1);
	$near->user('ann');
	my $token = $near->token('ann');
	local @ENV{qw(http_proxy no_proxy NO_PROXY)} = ('http://127.0.0.1:1', '', '');
	local $probe = Slipway::Probe->start(undef, 'forge_probe'); # started with these
	is(ask(conf_for($near), 'whoami', $token)->{login}, 'ann',
	    'a server on this host is reached without the proxy');
	rejected('with allow_http a request goes through the proxy', 'upstream_failed', qr/cannot be reached/,
	    conf_for($near, allow_http => 'yes'), 'whoami', $token);
	$near->stop;
}
my %bad = ('no url' => [url => undef, qr/gitserver\.url \(or GITSERVER_URL\) is not set/],
    'a url with http' => [url => 'http://git.example.org', qr/https/],
	'a url without a scheme' => [url => 'git.example.org', qr/URL/],
	'a url with non-ASCII letters' => [url => "https://g\xc3\xaft.example.org", qr/ASCII/],
	'an api_url with non-ASCII letters' => [api_url => "https://git.example.org/\xc3\xaf",
	    qr/api_url.*ASCII/],
	'a url with credentials' => [url => 'https://a:b@git.example.org', qr/URL/]);
for my $name (sort keys %bad) {
	my ($key, $value, $like) = @{ $bad{$name} };
	rejected($name, 'config', $like, conf_for($f, $key => $value), 'authorize', 's', 'c');
}
rejected('no client_id', 'config', qr/requires the settings GITSERVER_CLIENT_ID GITSERVER_REDIRECT_URI/,
    conf_for($f, client_id => undef, redirect_uri => undef), 'authorize', 's', 'c');
rejected('no client_secret for GitHub', 'config', qr/GITSERVER_CLIENT_SECRET/,
    conf_for($f, type => 'github', client_secret => undef), 'authorize', 's', 'c');
rejected('a sign-in with type git', 'config', qr/type git/, conf_for($f, type => 'git'), 'authorize',
    's', 'c');
rejected('an API request with type git', 'config', qr/type git/, conf_for($f, type => 'git'), 'whoami',
    'x');

# --- plain git
my $plain = conf_for($f, type => 'git', token => scalar $f->token('ann'));
my $secret = $f->repo('team/secret', private => 1, users => ['ann']);
my $tip = $secret->commit('main', { a => "1\n" }, 'one');
$secret->branch($_) for @odd, 'b1' .. 'b4';
my $ls = ask($plain, 'ls', $secret->clone_url, 1, 100);
is(scalar(() = branches($ls)), @odd + 5, "git-ls-remote lists all branches with the service's token")
    or diag($ls->{text});
is_deeply([(grep { $_->[1] eq 'main' } @{ $ls->{lines} })[0]], [['branch', 'main', $tip, 0, 1]],
    'git-ls-remote marks the default branch');
my @pages = map { [ branches(ask($plain, 'ls', $secret->clone_url, $_, 5)) ] } 1 .. 4;
is(scalar(map { @$_ } @pages), @odd + 5, 'git-ls-remote lists all branches page by page');
rejected('a private repository without a token', 'upstream_failed', qr/git cannot read/,
    conf_for($f, type => 'git'), 'ls',
    $secret->clone_url, 1, 5);
SKIP: {
	my @through = system_cas($f->ca);
	skip 'unshare cannot create a mount namespace', 2 if !@through;
	my @token = (type => 'git', token => scalar $f->token('ann'));
	my ($trusted, $own) = map {
		my ($status, $out) = run_cmd({ env => { GIT_SSL_CAINFO => undef } }, @through,
			program('t/unit/forge_probe'), $_, 'ls', $secret->clone_url, 1, 5);
		$out;
	} conf_for($f, @token, tls_ca => undef), conf_for($f, @token, tls_ca => $other->ca);
	like($trusted, qr/^branch\t/m, "without gitserver.tls_ca, git-ls-remote trusts the system's CAs");
	like($own, qr/^error upstream_failed .*git cannot read/m,
	    "with gitserver.tls_ca, git-ls-remote does not trust the system's CAs");
}
$f->fault(qr{/info/refs}, kind => 'silent');
my $before = stopwatch();
rejected('a silent server', 'upstream_timeout', qr/in time/, $plain, 'ls', $secret->clone_url, 1, 5);
cmp_ok($before->(), '<', $f->patience + deadline(6), 'git-ls-remote respects the time limit');
$f->clear_faults;
my $local = conf_for($f, type => 'git', allow_local => 'yes');
is(scalar(() = branches(ask($local, 'ls', $secret->dir, 1, 100))), @odd + 5,
    'allow_local allows a path');
my $touched = tempdir() . '/touched';
for my $evil ($secret->dir, 'file://' . $secret->dir, "--upload-pack=touch $touched",
    "ext::sh -c touch% $touched", '-u', 'http://localhost:1/a', 'fd::7') {
	my $got = ask($plain, 'ls', $evil, 1, 5);
	ok(!$got->{ok}, "git-ls-remote is not run with the address $evil") or diag($got->{text});
}
ok(!-e $touched, 'no hostile address ran a command');
is_deeply([$f->complaints], [], 'the server received only valid requests');
$f->stop;
$other->stop;
done_testing();
