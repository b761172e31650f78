#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Git server responses and push events that are made to use memory: a worker
# accepts or rejects each, is not restarted and never uses 16 MB.  The connections
# use TLS with as many CAs as a system has, because they use memory as well.

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
use Slipway::Certificate;
use Slipway::DB;
use Slipway::Test;
use Slipway::Visitor;

use constant MIB => 1 << 20;
use constant MOST => 16_000; # KiB

# A minimal Git server with TLS: the response to a path is the content, headers
# and body, of the file named after its last part.
my $dir = tempdir();
make_front($dir);
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my $url = 'https://localhost:' . $listen->sockport;
my $ca = spew("$dir/all-ca.pem", (slurp('/etc/ssl/certs/ca-certificates.crt') || '') . slurp("$dir/ca.pem"),
    0644);
sub respond {
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
respond(api => 200, '{"max_response_items":50}');
respond($_ => 200, '{"id":1,"full_name":"team/site","default_branch":"main"}')
    for 'site', 1; # by path and by number
respond(branches => 200, '[]');
my $test = $$;
defined(my $server = fork) or die "fork: $!";
if (!$server) {
	$SIG{PIPE} = 'IGNORE';
	$SIG{CHLD} = 'IGNORE';
	my $calls = IO::Select->new($listen);
	while (getppid == $test) {
		my $peer = $calls->can_read(0.5) && $listen->accept or next;
		next if fork;
		alarm 1800; # an orphan ends by itself
		my $tls = IO::Socket::SSL->start_SSL($peer, SSL_server => 1, SSL_cert_file => "$dir/cert.pem",
		    SSL_key_file => "$dir/cert.key");
		serve($tls) if $tls;
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[gitserver]\ntype = gitea\nurl = $url\ntls_ca = $ca\n"
    . "token = t\nclient_id = c\nredirect_uri = https://slipway.example.org/login\n[api]\nworkers = 2\n",
    nginx => \&Slipway::Visitor::unlimited);
my $project = $api->post('/api/projects', { name => 'p', repository => "$url/team/site" })->{json}{id};
is($api->get("/api/git/branches?projectId=$project")->{status}, 200,
    'the service reads branches from the Git server');
my @workers = sort $api->workers;
note('a build with sanitizers: memory is not measured') if sanitized();

sub is_small {
	my ($what) = @_;
	my $most = peak_memory($api->workers);
	note("$most KiB");
	return sanitized() || cmp_ok($most, '<', MOST, "$what: no worker uses 16 MB");
}
note(peak_memory($api->workers) . ' KiB before');

my $hash = 'a' x 40;
sub list { my ($n, $one) = @_; return '[' . join(',', map { $one =~ s/%d/$_/r } 1 .. $n) . ']' }
my $branch = qq({"name":"%s","commit":{"id":"$hash"}});
my $commit = qq({"sha":"$hash","commit":{"message":"%s","author":{"name":"n","email":"e"},)
    . qq("committer":{"date":"2024-01-01T00:00:00Z"}}});
sub named { my ($n, $form, $text) = @_; return list($n, $form =~ s/%s/$text/r) }

my @cases = (
	[ '50 branches with long names', 200, 'branches', named(50, $branch, 'n' x 20_000) ],
	[ '50 branches with escaped names', 200, 'branches', named(50, $branch, '\u0001' x 3300) ],
	[ '50 commits with long messages', 200, 'commits', named(50, $commit, 'm' x 20_000) ],
	[ '50 commits with messages of quotes', 200, 'commits', named(50, $commit, '\"' x 10_000) ],
	[ '50 commits with escaped messages', 200, 'commits', named(50, $commit, '\u0001' x 3_000) ],
	[ '10,000 branches', 200, 'branches', named(10_000, $branch, 'b') ],
	[ '5,000 commits', 200, 'commits', named(5_000, $commit, 'c') ],
	[ 'a branch with many members', 200, 'branches',
		'[{"name":"b","commit":{"id":"' . $hash . '"},' . join(',', map { qq("$_":0) } 1 .. 90_000)
		    . '}]' ],
	[ 'too many values', 502, 'branches', '[' . join(',', ('0') x 100_000) . ']' ],
	[ 'empty objects', 502, 'branches', '[' . join(',', ('{}') x 99_000) . ']' ],
	[ 'empty lists', 502, 'branches', '[' . join(',', ('[]') x 99_000) . ']' ],
	[ 'a branch name of 1 MiB', 200, 'branches', named(1, $branch, 'n' x (MIB - 100)) ],
	[ 'a commit message of 1 MiB', 200, 'commits', named(1, $commit, 'm' x (MIB - 300)) ],
	[ 'a commit message of 1 MiB of escapes', 200, 'commits',
	    named(1, $commit, '\u0001' x (MIB / 6 - 100)) ],
	[ 'a response one byte above 1 MiB', 502, 'branches', '[' . ' ' x (MIB - 1) . ']' ],
	[ 'a response of 1 MiB of spaces', 200, 'branches', '[' . ' ' x (MIB - 2) . ']' ],
	[ '1 MiB of brackets', 502, 'branches', '[' x MIB ],
	[ 'a long truncated string', 502, 'branches', '"' . 'x' x (MIB - 10) ],
	[ 'numbers of many digits', 502, 'branches', '[' . join(',', ('1' x 20) x 49_000) . ']' ],
	[ 'a response of 50 MiB', 502, 'branches', '[' . ' ' x (50 * MIB) . ']' ],
);
sub git_get {
	my ($what) = @_;
	return $api->get_in_time("/api/git/$what?projectId=$project&limit=100&"
	    . ($what eq 'commits' ? 'branch=main' : ''));
}
for my $case (@cases) {
	my ($name, $status, $what, $body) = @$case;
	respond($what => 200, $body);
	my $got = git_get($what);
	is($got->{status}, $status, "$name from the Git server: $status")
	    or diag(substr $got->{body}, 0, 300);
	is_small($name);
}
respond(branches => 500, '{"message":"' . 'w' x (MIB - 20) . '"}');
is(git_get('branches')->{status}, 502, 'an error message of 1 MiB from the Git server: 502');
is_small('an error message of 1 MiB');
# Page after page, each of the maximum size.
for my $case ([ 4, 260_000, 502 ], [ 50, 20_000, 502 ], [ 50, 12_000, 200 ], [ 10, 12_000, 200 ],
    [ 5, 150_000, 502 ], [ 1, 10, 200 ]) {
	my ($n, $len, $status) = @$case;
	respond(branches => 200, named($n, $branch, 'n' x $len),
	    qq(Link: <$url/api/v1/repos/team/site/branches?page=NEXT>; rel="next"));
	is(git_get('branches')->{status}, $status, "pages of $n names of $len bytes: $status");
	is_small("pages of $n names of $len bytes");
}
# Large headers beside a body.
for my $case ([ 60, 200 ], [ 70, 502 ]) {
	my ($n, $status) = @$case;
	respond(branches => 200, named(50, $branch, 'n' x 20_000), 'X-Long: ' . 'x' x ($n << 10));
	is(git_get('branches')->{status}, $status, "a header of $n KiB from the Git server: $status");
	is_small("a header of $n KiB");
	respond(branches => 200, named(50, $branch, 'n' x 20_000), map { "X-$_: x" } 1 .. 90 * $n);
	is(git_get('branches')->{status}, $status, "$n KiB of small headers from the Git server: $status");
	is_small("$n KiB of small headers");
}
IO::Compress::Gzip::gzip(\('[' . ' ' x (50 * MIB) . ']') => \my $bomb);
respond(branches => 200, $bomb, 'Content-Encoding: gzip');
is(git_get('branches')->{status}, 502, 'a gzip body that expands to 50 MiB: 502');
is_small('a gzip body that expands to 50 MiB');
respond($_ => 200, '{"id":1,"full_name":"' . 'p' x (MIB - 100) . '"}') for 'site', 1;
respond(branches => 200, '[]');
is(git_get('branches')->{status}, 502, 'a repository with a path of 1 MiB: 502');
is_small('a repository with a path of 1 MiB');

# --- push events
my $open = $api->as('none');
is_deeply([sort $api->workers], \@workers, 'no worker died of a response from the Git server');
ok($api->create_keys, 'slipway-admin key creates the keys for secrets');
@workers = sort $api->workers;
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my $start = qq("ref":"refs/heads/main","after":"$hash");
my $ours = qq("repository":{"id":1,"full_name":"team/site"});
my $theirs = qq("project":{"id":1,"path_with_namespace":"team/site"});
my %event = (
	'16,000 commits' => [ 'gitlab', 204,
	    "{$start,$theirs,\"commits\":" . list(16_000, '{"id":"x","message":"y%d"}') . '}' ],
	'2,000 commits with long messages' => [ 'gitlab', 204, "{$start,$theirs,\"commits\":"
	    . list(2_000, '{"id":"x","message":"' . 'y' x 480 . '%d"}') . '}' ],
	'99,000 empty commits' => [ 'gitlab', 204,
	    "{$start,$theirs,\"commits\":" . list(99_000, '{}') . '}' ],
	'more values than other bodies may have' => [ 'gitlab', 204,
	    "{$start,$theirs,\"commits\":" . list(100_000, '{}') . '}' ],
	'a message of 1 MiB' => [ 'gitea', 204,
	    "{$start,$ours,\"head_commit\":{\"id\":\"$hash\",\"message\":\"" . 'm' x (MIB - 400) . '"}}' ],
	'a message of 1 MiB of escapes' => [ 'gitea', 204,
	    "{$start,$ours,\"head_commit\":{\"id\":\"$hash\",\"message\":\"" . '\u0001' x 170_000 . '"}}' ],
	'a branch of 1 MiB' => [ 'gitea', 400,
	    '{"ref":"refs/heads/' . 'b' x (MIB - 400) . "\",\"after\":\"$hash\",$ours}" ],
	'a repository path of 1 MiB' => [ 'gitea', 400,
	    "{$start,\"repository\":{\"id\":1,\"full_name\":\"" . 'p' x (MIB - 400) . '"}}' ],
	'many members' => [ 'gitea', 204,
	    "{$start,$ours," . join(',', map { qq("$_":0) } 1 .. 90_000) . '}' ],
	'1 MiB of spaces' => [ 'gitea', 400, ' ' x MIB ],
);
for my $name (sort keys %event) {
	my ($kind, $want, $body) = @{ $event{$name} };
	my %headers = $kind eq 'gitlab' ? ('X-Gitlab-Event' => 'Push Hook', 'X-Gitlab-Token' => $secret)
	    : ('X-Gitea-Event' => 'push', 'X-Gitea-Signature' => hmac_sha256_hex($body, $secret));
	my $answer = $open->post("/api/hooks/$project", $body,
	    { %headers, 'Content-Type' => 'application/json' });
	is($answer->{status}, $want, "a push event with $name: $want")
	    or diag(substr $answer->{body}, 0, 300);
	is_small("a push event with $name");
}
# --- signing in
sub sign_in {
	my ($token, $user) = @_;
	respond(access_token => 200, $token);
	respond(user => 200, $user);
	my $begun = $open->get('/api/auth/url');
	my ($cookie) = $begun->{headers}{'set-cookie'} =~ /^([^;]+)/;
	return $open->post('/api/auth/login', { code => 'x', state => $begun->{json}{state} },
	    { Cookie => $cookie });
}
my $grant = '{"access_token":"t","token_type":"bearer","scope":"%s"}';
my $account = '{"id":7,"login":"ann","full_name":"%s"}';
sub filled { my ($form, $text) = @_; return $form =~ s/%s/$text/r }
for my $case ([ 'a scope of 1 MiB',
	filled($grant, 'read:user write:repository ' . 's' x (MIB - 300)), filled($account, 'Ann') ],
	[ 'a name of 1 MiB', filled($grant, 'read:user write:repository'),
	    filled($account, 'n' x (MIB - 300)) ],
	[ 'an escaped name', filled($grant, 'read:user write:repository'),
	    filled($account, '\u0001' x 170_000) ],
	[ 'a token of 1 MiB', '{"access_token":"' . 't' x (MIB - 100) . '","token_type":"bearer"}',
	    filled($account, 'Ann') ],
	[ 'many members',
	    '{"access_token":"t","token_type":"bearer",' . join(',', map { qq("$_":0) } 1 .. 90_000) . '}',
		'{"id":7,"login":"ann",' . join(',', map { qq("$_":0) } 1 .. 90_000) . '}' ]) {
	my ($name, @answers) = @$case;
	my $got = sign_in(@answers);
	ok($got->{status} == 403 || $got->{status} == 502 || $got->{status} == 400,
	    "a sign-in with $name is rejected: $got->{status}") or diag(substr $got->{body}, 0, 300);
	is_small("a sign-in with $name");
}
is_deeply([sort $api->workers], \@workers, 'no worker died of a push event or a sign-in');

kill 'TERM', $server;
waitpid $server, 0;
$api->stop;

# --- git's own protocol: as many branches as are accepted, and more
my $git = "$dir/many.git";
sub branches_of {
	my ($n) = @_;
	my $tip = qx(git -C \Q$git\E rev-parse main);
	chomp $tip;
	return spew("$git/packed-refs", "# pack-refs with: peeled fully-peeled sorted \n"
	    . join '', map { sprintf "%s refs/heads/b%06d\n", $tip, $_ } 1 .. $n);
}
is((run_cmd('git', 'init', '-q', '--bare', '-b', 'main', $git))[0], 0, 'git creates a repository');
my ($tree) = (run_cmd('git', '-C', $git, 'hash-object', '-t', 'tree', '-w', '/dev/null'))[1] =~ /(\w+)/;
my ($tip) = (run_cmd('git', '-C', $git, '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit-tree',
    '-m', 'm', $tree))[1] =~ /(\w+)/;
is((run_cmd('git', '-C', $git, 'update-ref', 'refs/heads/main', $tip))[0], 0, 'git creates a branch');
run_cmd('chmod', '-R', 'a+rX', $dir);
$api = Slipway::API->start(db => $db,
    conf => "[gitserver]\ntype = git\nallow_local = yes\n[api]\nworkers = 2\n");
$project = $api->post('/api/projects', { name => 'q', repository => $git })->{json}{id};
@workers = sort $api->workers;
for my $case ([ 34_000, 200 ], [ 60_000, 502 ]) {
	my ($n, $status) = @$case;
	branches_of($n);
	is(git_get($_)->{status}, $status, "$_ of a repository with $n branches: $status")
	    or diag(git_get($_)->{body})
	    for qw(branches commits);
	is_small("a repository with $n branches");
}
is_deeply([sort $api->workers], \@workers, 'no worker died of a large repository');
$api->stop;
$db->stop;
done_testing();
