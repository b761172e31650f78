#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A Git server that is slow, silent, faulty, impersonated or dead costs the caller
# who lists branches at most ten seconds, returns a clear error and delays no other
# request.

use strict;
use warnings;
use IO::Socket::INET;
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(time);
use Slipway::API;
use Slipway::Certificate;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hostile;
use Slipway::Test;

my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitea');
$f->user('bot');
$f->user('ann');
$f->user('eve');
my $repo = $f->repo('team/site', private => 1, users => ['bot', 'ann']);
$repo->commit('main', {}, "c$_") for 1 .. 3;
my $secret = $f->token('bot');
my $api = Slipway::API->start(db => $db, conf => $f->conf(token => $secret));
my $viewer = $api->as('viewer');
my $p = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
my $branches = "/api/git/branches?projectId=$p";
my $list = 'repos/team/site/branches$';

# Makes a request and measures its time, also without standstills.
sub timed {
	my ($path, $as) = @_;
	my ($watch, $from) = (stopwatch(), time);
	my $got = ($as || $viewer)->get($path);
	@$got{qw(took lasted)} = ($watch->(), time - $from);
	return $got;
}
sub rejected {
	my ($got, $status, $detail, $name) = @_;
	is($got->{status}, $status, $name) or diag($got->{body});
	like($got->{json}{detail} || '', $detail, "$name: the detail gives the cause");
	cmp_ok($got->{took}, '<', Slipway::Forge::answer_within(), sprintf '%s: the response takes %.1f s',
	    $name, $got->{took});
	unlike($got->{body}, qr/\Q$secret\E/, "$name: the response does not contain the token");
	return;
}
# On a busy machine any attempt may be late: returns the first whose responses, and
# those of others meanwhile, came in time, or the last after some minutes.
sub in_time {
	my ($code) = @_;
	my @got;
	my $end = time + 600;
	while (1) {
		@got = $code->();
		last if time > $end || !grep { $_->{took} >= Slipway::Forge::answer_within()
		    || ($_->{slowest} || 0) >= 1 || ($_->{others} || 21) < 21 } @got;
		$f->clear_faults;
		$viewer->get($branches);
	}
	return @got;
}
# Checks that requests work again after a fault.
sub well {
	my ($name) = @_;
	$f->clear_faults;
	is($viewer->get_in_time($branches)->{status}, 200, "after $name branches are read again");
	return;
}
well('the start');

# --- faulty responses
sub fault {
	my ($name, $status, $detail, %fault) = @_;
	my $got;
	within(3, sub {
		$f->fault($list, %fault);
		$got = timed($branches);
		rejected($got, $status, $detail, $name);
		well($name);
	});
	return $got;
}
fault('status 401', 502, qr/rejects the service.s token, or requires one/, kind => 'status', status => 401,
    body => '{"message":"no"}');
fault('status 403', 502, qr/403.*not yours/, kind => 'status', status => 403,
    body => '{"message":"not yours"}');
fault('status 404 for the list alone', 404, qr/404/, kind => 'status', status => 404, body => '{}');
fault("status $_", 502, qr/returned $_/, kind => 'status', status => $_, body => '') for 500, 502, 503, 504;
fault('an error page', 502, qr/returned 500/, kind => 'status', status => 500, type => 'text/html',
    body => '<h1>Oops</h1>');
my $got = fault('429 with Retry-After in seconds', 429, qr/rate limit is exceeded/, kind => 'status',
    status => 429,
    headers => { 'Retry-After' => 30 });
is($got->{headers}{'retry-after'}, 30, 'Retry-After in seconds is passed on');
$got = fault('429 with Retry-After as a date', 429, qr/rate limit is exceeded/, kind => 'status',
    status => 429,
    headers => { 'Retry-After' => strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime(time + 90)) });
cmp_ok($got->{headers}{'retry-after'}, '>', 60, 'Retry-After as a date is converted to seconds');
$got = fault('429 with an invalid Retry-After', 429, qr/rate limit is exceeded/, kind => 'status',
    status => 429,
    headers => { 'Retry-After' => 'later' });
is($got->{headers}{'retry-after'}, undef, 'an invalid Retry-After is left out');
for my $body ('<html>', '', '{', '[{"name":"x"', '"text"', '{"a":1}', '[null]', '[1]', '[[]]',
    '[{"commit":{"id":"x"}}]', "[{\"name\":\"\xff\"}]",
	'[' x 5000, '[{"name":{},"commit":{"id":1}}]', 'NaN') {
	fault('the body ' . (length $body > 40 ? substr($body, 0, 8) . '…' : $body) =~ s/\xff/\\xff/r, 502,
	    qr/\w/, kind => 'status', status => 200, body => $body);
}
fault('HTML with status 200', 502, qr/\w/, kind => 'status', status => 200, type => 'text/html',
    body => '<p>Sign in</p>');
fault('a page that links to itself', 502, qr/form a loop|does not end/, kind => 'status',
    status => 200, body => '[]',
    headers => { Link => '<' . $f->url . '/api/v1/repos/team/site/branches?page=1&limit=20>; rel="next"' });
$f->fault($list, kind => 'status', status => 200, body => 'null');
is_deeply($viewer->get_in_time($branches)->{json}{data}, [], 'null instead of a list is an empty list');
well('null');
fault('a closed connection', 502, qr/closed|cut|returned 502/, kind => 'drop');
fault('a truncated response', 502, qr/cut the response short/, kind => 'cut', body => '[{"name":"ma');
fault('5 MiB of brackets', 502, qr/\w/, kind => 'big', size => 5 << 20);
fault('a response of 5 GiB', 502, qr/response that is too large/, kind => 'big', size => 5 << 30);
fault('a gzip bomb', 502, qr/response that is too large/, kind => 'gzip', size => 100 << 20);
$f->fault($list, kind => 'gzip', size => 1000 << 10);
is($viewer->get_in_time($branches)->{status}, 200, 'a large body below the limit is accepted');
well('a large body');
fault('too many values', 502, qr/\w/, kind => 'gzip', body => '[' . join(',', (1) x 90_000) . ']');
SKIP: {
	skip 'a build with sanitizers', 1 if sanitized();
	cmp_ok(peak_memory($api->workers), '<', 64 << 10,
	    'the worker used ' . peak_memory($api->workers) . ' KiB at most');
}

# --- the same faults for commits
{
	my $commits = "/api/git/commits?projectId=$p&branch=main";
	is(scalar @{ $viewer->get_in_time($commits)->{json}{data} }, 3, 'commits are read');
	my @json = (kind => 'status', status => 200, body => '');
	for my $case (['status 401', 502, kind => 'status', status => 401, body => '{"message":"no"}'],
		['status 500', 502, kind => 'status', status => 500, body => ''],
		['HTML', 502, @json, type => 'text/html', body => '<p>Sign in</p>'],
		['an object instead of a list', 502, @json, body => '{"a":1}'],
		['a list of null', 502, @json, body => '[null]'],
		['a commit without its hash', 502, @json, body => '[{"commit":{"message":"x"}}]'],
		['a redirect', 502, kind => 'status', status => 301,
		    headers => { Location => 'https://127.0.0.1:1/x' }],
		['a truncated response', 502, kind => 'cut', body => '[{"sha":"a'],
		['a gzip bomb', 502, kind => 'gzip', size => 100 << 20],
		['429', 429, kind => 'status', status => 429, headers => { 'Retry-After' => 30 }],
		['silence', 504, kind => 'silent']) {
		my ($name, $status, %fault) = @$case;
		within(3, sub {
			$f->fault('repos/team/site/commits$', %fault);
			rejected(timed($commits), $status, qr/\w/, "commits: $name");
			$f->clear_faults;
			is($viewer->get_in_time($commits)->{status}, 200,
			    "after $name commits are read again");
		});
	}
}

# --- redirects
my $other = Slipway::Hostile->start;
for my $to ($other->url . '/ok', 'https://127.0.0.1:' . $other->port . '/ok',
    'https://localhost:' . $other->port . '/ok',
	'//127.0.0.1:' . $f->port . '/x', 'file:///etc/passwd',
	'http://localhost:' . $f->port . '/api/v1/repos') {
	fault("a redirect to $to", 502, qr/redirects/, kind => 'status', status => 301,
	    headers => { Location => $to });
}
is(scalar $other->requests, 0, 'no redirect was followed to another server');
fault('a redirect to itself', 502, qr/too many times/, kind => 'status', status => 302,
    headers => { Location => '/api/v1/repos/team/site/branches' });

# --- no response in time; other requests are served meanwhile
# Requests branches in another process, which writes the result to a file.
sub asks {
	my ($file) = @_;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	return $pid if $pid != 0;
	delete $api->{http};
	my $late = timed($branches);
	spew($file, sprintf "%d %.2f %.2f %s", @$late{qw(status took lasted)}, $late->{json}{detail});
	POSIX::_exit(0);
}
sub answer {
	my ($file) = @_;
	my ($status, $took, $lasted, $detail) = split / /, slurp($file), 4;
	return { status => $status, took => $took, lasted => $lasted, body => $detail,
	    json => { detail => $detail } };
}
sub meanwhile {
	$f->fault($list, @_);
	my $pid = asks(tempdir() . '/late');
	my ($others, $slowest, $end) = (0, 0, time + 3);
	while (time < $end || $others < 21) {
		last if waitpid($pid, POSIX::WNOHANG()) != 0;
		my $quick = timed('/api/projects');
		$others++ if $quick->{status} == 200;
		$slowest = $quick->{took} if $quick->{took} > $slowest;
	}
	waitpid $pid, 0;
	return { %{ answer(tempdir() . '/late') }, others => $others, slowest => $slowest };
}
for my $case (['silence', kind => 'silent'],
    ['one byte per second', kind => 'slow', body => '[' . ' ' x 100 . ']'],
	['headers, then one byte every 4 seconds', kind => 'slow', body => '[' . ' ' x 100 . ']', pause => 4],
	['a delay', kind => 'delay', seconds => 30]) {
	my ($name, %fault) = @$case;
	my ($late) = in_time(sub { meanwhile(%fault) });
	rejected($late, 504, qr/did not respond in time/, $name);
	cmp_ok($late->{lasted}, '>', 8, "$name: the server gets its time to respond");
	cmp_ok($late->{others}, '>', 20, "$name: $late->{others} other requests were served meanwhile");
	cmp_ok($late->{slowest}, '<', deadline(1), sprintf "$name: the slowest other request took %.0f ms",
	    1000 * $late->{slowest});
	well($name);
}

# Five concurrent requests on one worker do not add up their time limits.
{
	my @late = in_time(sub {
		$f->fault('/api/v1/', kind => 'silent');
		my @files = map { tempdir() . "/late.$_" } 1 .. 5;
		waitpid $_, 0 for map { asks($_) } @files;
		return map { answer($_) } @files;
	});
	rejected($late[$_ - 1], 504, qr/in time|still busy/, "concurrent request $_ to a silent server")
	    for 1 .. 5;
	well('five concurrent requests');
}

# Each step is slow but within its limit; their sum is not.
my ($sum) = in_time(sub { $f->fault('/api/v1/', kind => 'delay',
    seconds => 0.55 * $f->patience); timed("$branches&limit=1") });
rejected($sum, 504, qr/in time/, 'five seconds for each step');
well('slow steps');

# --- the wrong server, or none
my $dir = $f->dir;
make_self_signed("$dir/own.pem", "$dir/own.key");
make_wrong($dir, 'expired', 'DNS:localhost', -1);
make_wrong($dir, 'elsewhere', 'DNS:git.example.org', 2);
for my $name (qw(expired elsewhere own)) {
	$f->stop_nginx;
	$f->forget_requests;
	$f->start_nginx("ssl_certificate $dir/$name.pem;\n\t\tssl_certificate_key $dir/$name.key;");
	within(3, sub { rejected(timed($branches), 502, qr/invalid TLS certificate/,
	    "a certificate: $name") });
	is(scalar $f->requests, 0, "a certificate: $name: the server receives no request");
}
$f->stop_nginx;
$f->start_nginx;
well('the right certificate');
$f->stop_nginx;
within(3, sub {
	$api->restart_api; # new workers remember no failure
	rejected(timed($branches), 502, qr/cannot be reached/, "connection refused, attempt $_") for 1 .. 5;
	my $rest = timed($branches);
	rejected($rest, 502, qr/failed to respond several times; the next request is sent in \d+ seconds/,
	    'after five failures the server is not contacted');
	cmp_ok($rest->{took}, '<', deadline(1), 'an error for a server that is not contacted comes at once');
});
is($viewer->get('/api/projects')->{status}, 200, 'other requests work while the Git server is down');
$f->start_nginx;
ok(poll(15, sub { $viewer->get($branches)->{status} == 200 }),
    'the server is contacted again later, and branches are read');
$f->stop_server;
within(3, sub { rejected(timed($branches), 502, qr/returned 502/, 'a proxy without its server') });
$f->start_server;
well('the server');
$api->stop;

# --- addresses that lead nowhere
for my $case (['https://no-such-host.invalid', qr/has an unknown host name|did not respond/],
    ['https://192.0.2.1', qr/cannot be reached|did not respond/]) {
	my ($url, $detail) = @$case;
	my $lost = Slipway::API->start(db => $db, conf => "[gitserver]\nurl = $url\n");
	my $q = $lost->post('/api/projects', { name => "at $url", repository => "$url/a/b.git" })->{json}{id};
	my $answer = timed("/api/git/branches?projectId=$q", $lost->as('viewer'));
	rejected($answer, $answer->{status} == 504 ? 504 : 502, $detail, $url);
	$lost->stop;
}
done_testing();
