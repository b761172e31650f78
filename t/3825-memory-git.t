#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Answers of a Git server and push events that are made to take memory: a worker
# takes or refuses each, stays the same process and never holds 16 MB.  All of
# that by TLS, with as many CAs as a system has: they are in memory as well.

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_hex);
use IO::Compress::Gzip ();
use IO::Select ();
use IO::Socket::INET;
use IO::Socket::SSL ();
use POSIX ();
use Test::More;
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Front;
use Slipway::Test;

use constant MIB => 1 << 20;
use constant MOST => 16_000; # KiB

# A Git server of few words, by TLS: a path's answer is what stands in a file of
# its last part's name, headers and body.
my $dir = tempdir();
front_certificate($dir);
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my $url = 'https://localhost:' . $listen->sockport;
my $ca = spew("$dir/all-ca.pem", (slurp('/etc/ssl/certs/ca-certificates.crt') || '') . slurp("$dir/ca.pem"), 0644);
sub answer {
	my ($what, $status, $body, @headers) = @_;
	return spew("$dir/$what", join("\r\n", "HTTP/1.1 $status X", 'Content-Type: application/json',
		'Content-Length: ' . length $body, @headers) . "\r\n\r\n$body");
}
sub serve {
	my ($peer) = @_;
	my $request = '';
	while (sysread $peer, $request, 4096, length $request) {
		next if $request !~ /\r\n\r\n/;
		my ($what) = $request =~ m{^\S+ [^? ]*/(\w+)[? ]};
		my $text = slurp("$dir/" . ($what || ''));
		$text = "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n" if !defined $text;
		my ($page) = $request =~ m{[?&]page=(\d+)};
		$text =~ s/page=NEXT/'page=' . ($page + 1)/e;
		print {$peer} $text or last;
		$request = '';
	}
	return;
}
answer(api => 200, '{"max_response_items":50}');
answer($_ => 200, '{"id":1,"full_name":"team/site","default_branch":"main"}') for 'site', 1; # by path and by number
answer(branches => 200, '[]');
my $test = $$;
defined(my $server = fork) or die "fork: $!";
if (!$server) {
	$SIG{PIPE} = 'IGNORE';
	$SIG{CHLD} = 'IGNORE';
	my $calls = IO::Select->new($listen);
	while (getppid == $test) {
		my $peer = $calls->can_read(0.5) && $listen->accept or next;
		next if fork;
		alarm 600; # a child that is forgotten ends by itself
		my $tls = IO::Socket::SSL->start_SSL($peer, SSL_server => 1, SSL_cert_file => "$dir/cert.pem", SSL_key_file => "$dir/cert.key");
		serve($tls) if $tls;
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[gitserver]\ntype = gitea\nurl = $url\ntls_ca = $ca\n"
    . "token = t\nclient_id = c\nredirect_uri = https://slipway.example.org/login\n[api]\nworkers = 2\n", nginx => \&Slipway::Browser::unlimited);
my $project = $api->post('/api/projects', { name => 'p', repository => "$url/team/site" })->{json}{id};
is($api->get("/api/git/branches?projectId=$project")->{status}, 200, 'branches are read');
my @workers = sort $api->workers;
note('a build with sanitizers: its memory is not measured') if sanitized();

sub is_small {
	my $most = peak_memory($api->workers);
	note("$most KiB");
	return sanitized() || cmp_ok($most, '<', MOST, '  nobody holds 16 MB');
}
note(peak_memory($api->workers) . ' KiB before');

my $hash = 'a' x 40;
sub list { my ($n, $one) = @_; return '[' . join(',', map { $one =~ s/%d/$_/r } 1 .. $n) . ']' }
my $branch = qq({"name":"%s","commit":{"id":"$hash"}});
my $commit = qq({"sha":"$hash","commit":{"message":"%s","author":{"name":"n","email":"e"},"committer":{"date":"2024-01-01T00:00:00Z"}}});
sub named { my ($n, $form, $text) = @_; return list($n, $form =~ s/%s/$text/r) }

my @cases = (
	[ 'fifty branches of long names', 200, 'branches', named(50, $branch, 'n' x 20_000) ],
	[ 'of names in escapes', 200, 'branches', named(50, $branch, '\u0001' x 3300) ],
	[ 'fifty commits of long messages', 200, 'commits', named(50, $commit, 'm' x 20_000) ],
	[ 'of messages of quotes', 200, 'commits', named(50, $commit, '\"' x 10_000) ],
	[ 'of messages in escapes', 200, 'commits', named(50, $commit, '\u0001' x 3_000) ],
	[ 'ten thousand branches', 200, 'branches', named(10_000, $branch, 'b') ],
	[ 'five thousand commits', 200, 'commits', named(5_000, $commit, 'c') ],
	[ 'branches of many members', 200, 'branches',
		'[{"name":"b","commit":{"id":"' . $hash . '"},' . join(',', map { qq("$_":0) } 1 .. 90_000) . '}]' ],
	[ 'too many values', 502, 'branches', '[' . join(',', ('0') x 100_000) . ']' ],
	[ 'empty objects', 502, 'branches', '[' . join(',', ('{}') x 99_000) . ']' ],
	[ 'empty lists', 502, 'branches', '[' . join(',', ('[]') x 99_000) . ']' ],
	[ 'a name of a mebibyte', 200, 'branches', named(1, $branch, 'n' x (MIB - 100)) ],
	[ 'a message of as many', 200, 'commits', named(1, $commit, 'm' x (MIB - 300)) ],
	[ 'one of escapes', 200, 'commits', named(1, $commit, '\u0001' x (MIB / 6 - 100)) ],
	[ 'one byte too many', 502, 'branches', '[' . ' ' x (MIB - 1) . ']' ],
	[ 'as many blanks as may be', 200, 'branches', '[' . ' ' x (MIB - 2) . ']' ],
	[ 'brackets', 502, 'branches', '[' x MIB ],
	[ 'a long string that is no JSON', 502, 'branches', '"' . 'x' x (MIB - 10) ],
	[ 'numbers of many digits', 502, 'branches', '[' . join(',', ('1' x 20) x 49_000) . ']' ],
	[ 'fifty mebibytes', 502, 'branches', '[' . ' ' x (50 * MIB) . ']' ],
);
sub git_get {
	my ($what) = @_;
	my $got;
	for (1 .. 3) { # a busy machine may make it late
		$got = $api->get("/api/git/$what?projectId=$project&limit=100&" . ($what eq 'commits' ? 'branch=main' : ''));
		last if $got->{status} != 504;
	}
	return $got;
}
for my $case (@cases) {
	my ($name, $status, $what, $body) = @$case;
	answer($what => 200, $body);
	my $got = git_get($what);
	is($got->{status}, $status, "$name: $status") or diag(substr $got->{body}, 0, 300);
	is_small();
}
answer(branches => 500, '{"message":"' . 'w' x (MIB - 20) . '"}');
is(git_get('branches')->{status}, 502, 'an error of a mebibyte');
is_small();
# Page after page, each as large as it may be.
for my $case ([ 4, 260_000, 502 ], [ 50, 20_000, 502 ], [ 50, 12_000, 200 ], [ 10, 12_000, 200 ], [ 5, 150_000, 502 ], [ 1, 10, 200 ]) {
	my ($n, $len, $status) = @$case;
	answer(branches => 200, named($n, $branch, 'n' x $len),
	    qq(Link: <$url/api/v1/repos/team/site/branches?page=NEXT>; rel="next"));
	is(git_get('branches')->{status}, $status, "pages of $n times $len bytes: $status");
	is_small();
}
# Headers of any length beside a body of its own.
for my $case ([ 60, 200 ], [ 70, 502 ]) {
	my ($n, $status) = @$case;
	answer(branches => 200, named(50, $branch, 'n' x 20_000), 'X-Long: ' . 'x' x ($n << 10));
	is(git_get('branches')->{status}, $status, "$n KiB of one header: $status");
	is_small();
	answer(branches => 200, named(50, $branch, 'n' x 20_000), map { "X-$_: x" } 1 .. 90 * $n);
	is(git_get('branches')->{status}, $status, "as much of many: $status");
	is_small();
}
IO::Compress::Gzip::gzip(\('[' . ' ' x (50 * MIB) . ']') => \my $bomb);
answer(branches => 200, $bomb, 'Content-Encoding: gzip');
is(git_get('branches')->{status}, 502, 'what unpacks to fifty mebibytes');
is_small();
answer($_ => 200, '{"id":1,"full_name":"' . 'p' x (MIB - 100) . '"}') for 'site', 1;
answer(branches => 200, '[]');
is(git_get('branches')->{status}, 502, 'a repository with a path of a mebibyte');
is_small();

# --- push events
my $open = $api->as('none');
is_deeply([sort $api->workers], \@workers, 'no worker died of it');
ok($api->create_keys, 'slipway-admin key creates the keys for secrets');
@workers = sort $api->workers;
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my $start = qq("ref":"refs/heads/main","after":"$hash");
my $ours = qq("repository":{"id":1,"full_name":"team/site"});
my $theirs = qq("project":{"id":1,"path_with_namespace":"team/site"});
my %event = (
	'sixteen thousand commits' => [ 'gitlab', 204, "{$start,$theirs,\"commits\":" . list(16_000, '{"id":"x","message":"y%d"}') . '}' ],
	'two thousand long ones' => [ 'gitlab', 204, "{$start,$theirs,\"commits\":" . list(2_000, '{"id":"x","message":"' . 'y' x 480 . '%d"}') . '}' ],
	'commits that are empty' => [ 'gitlab', 204, "{$start,$theirs,\"commits\":" . list(99_000, '{}') . '}' ],
	'more of them than other bodies may have' => [ 'gitlab', 204, "{$start,$theirs,\"commits\":" . list(100_000, '{}') . '}' ],
	'a message of a mebibyte' => [ 'gitea', 204, "{$start,$ours,\"head_commit\":{\"id\":\"$hash\",\"message\":\"" . 'm' x (MIB - 400) . '"}}' ],
	'one in escapes' => [ 'gitea', 204, "{$start,$ours,\"head_commit\":{\"id\":\"$hash\",\"message\":\"" . '\u0001' x 170_000 . '"}}' ],
	'a branch of a mebibyte' => [ 'gitea', 400, '{"ref":"refs/heads/' . 'b' x (MIB - 400) . "\",\"after\":\"$hash\",$ours}" ],
	'a path of a mebibyte' => [ 'gitea', 400, "{$start,\"repository\":{\"id\":1,\"full_name\":\"" . 'p' x (MIB - 400) . '"}}' ],
	'many members' => [ 'gitea', 204, "{$start,$ours," . join(',', map { qq("$_":0) } 1 .. 90_000) . '}' ],
	'blanks' => [ 'gitea', 400, ' ' x MIB ],
);
for my $name (sort keys %event) {
	my ($kind, $want, $body) = @{ $event{$name} };
	my %headers = $kind eq 'gitlab' ? ('X-Gitlab-Event' => 'Push Hook', 'X-Gitlab-Token' => $secret)
	    : ('X-Gitea-Event' => 'push', 'X-Gitea-Signature' => hmac_sha256_hex($body, $secret));
	my $answer = $open->post("/api/hooks/$project", $body, { %headers, 'Content-Type' => 'application/json' });
	is($answer->{status}, $want, "an event with $name: $want") or diag(substr $answer->{body}, 0, 300);
	is_small();
}
# --- signing in
sub sign_in {
	my ($token, $user) = @_;
	answer(access_token => 200, $token);
	answer(user => 200, $user);
	my $begun = $open->get('/api/auth/url');
	my ($cookie) = $begun->{headers}{'set-cookie'} =~ /^([^;]+)/;
	return $open->post('/api/auth/login', { code => 'x', state => $begun->{json}{state} }, { Cookie => $cookie });
}
my $grant = '{"access_token":"t","token_type":"bearer","scope":"%s"}';
my $account = '{"id":7,"login":"ann","full_name":"%s"}';
sub filled { my ($form, $text) = @_; return $form =~ s/%s/$text/r }
for my $case ([ 'a scope of a mebibyte', filled($grant, 'read:user write:repository ' . 's' x (MIB - 300)), filled($account, 'Ann') ],
	[ 'a name of a mebibyte', filled($grant, 'read:user write:repository'), filled($account, 'n' x (MIB - 300)) ],
	[ 'a name in escapes', filled($grant, 'read:user write:repository'), filled($account, '\u0001' x 170_000) ],
	[ 'a token of a mebibyte', '{"access_token":"' . 't' x (MIB - 100) . '","token_type":"bearer"}', filled($account, 'Ann') ],
	[ 'many members', '{"access_token":"t","token_type":"bearer",' . join(',', map { qq("$_":0) } 1 .. 90_000) . '}',
		'{"id":7,"login":"ann",' . join(',', map { qq("$_":0) } 1 .. 90_000) . '}' ]) {
	my ($name, @answers) = @$case;
	my $got = sign_in(@answers);
	ok($got->{status} == 403 || $got->{status} == 502 || $got->{status} == 400, "a sign-in with $name: $got->{status}") or diag(substr $got->{body}, 0, 300);
	is_small();
}
is_deeply([sort $api->workers], \@workers, 'no worker died of it');

kill 'TERM', $server;
waitpid $server, 0;
$api->stop;

# --- git's own protocol: as many branches as are taken, and more
my $git = "$dir/many.git";
sub branches_of {
	my ($n) = @_;
	my $tip = qx(git -C \Q$git\E rev-parse main);
	chomp $tip;
	return spew("$git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n"
	    . join '', map { sprintf "%s refs/heads/b%06d\n", $tip, $_ } 1 .. $n);
}
is((run_cmd('git', 'init', '-q', '--bare', '-b', 'main', $git))[0], 0, 'a repository');
my ($tree) = (run_cmd('git', '-C', $git, 'hash-object', '-t', 'tree', '-w', '/dev/null'))[1] =~ /(\w+)/;
my ($tip) = (run_cmd('git', '-C', $git, '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit-tree', '-m', 'm', $tree))[1] =~ /(\w+)/;
is((run_cmd('git', '-C', $git, 'update-ref', 'refs/heads/main', $tip))[0], 0, 'with a commit');
run_cmd('chmod', '-R', 'a+rX', $dir);
$api = Slipway::API->start(db => $db, conf => "[gitserver]\ntype = git\nallow_local = yes\n[api]\nworkers = 2\n");
$project = $api->post('/api/projects', { name => 'q', repository => $git })->{json}{id};
@workers = sort $api->workers;
for my $case ([ 34_000, 200 ], [ 60_000, 502 ]) {
	my ($n, $status) = @$case;
	branches_of($n);
	is(git_get($_)->{status}, $status, "$_ of $n branches: $status") or diag(git_get($_)->{body}) for qw(branches commits);
	is_small();
}
is_deeply([sort $api->workers], \@workers, 'no worker died of it');
$api->stop;
$db->stop;
done_testing();
