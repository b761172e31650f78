#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every fault of a Git server, in every request that a client's call causes: for
# branches, for commits, for the token of a sign-in and for the account that signs
# in.  Each time all four calls get a clear error within ten seconds from the same
# workers, while others are served; no token or code goes to another server or into
# a response; and the next call works.

use strict;
use warnings;
use IO::Socket::INET;
use Cpanel::JSON::XS ();
use POSIX qw(strftime WNOHANG);
use Slipway::API;
use Slipway::Visitor;
use Slipway::Certificate;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hostile;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my @calls = ('branches', 'commits', 'the token of a sign-in', 'the account of a sign-in');
# The paths at which each call fails.
my %paths = (gitea => [ 'repos/team/site/branches$', 'repos/team/site/commits$', 'login/oauth/access_token$',
    'api/v1/user$' ],
	gitlab => [ 'repository/branches$', 'repository/commits$', 'oauth/token$', 'api/v4/user$' ],
	github => [ 'repos/team/site/branches$', 'repos/team/site/commits$', 'login/oauth/access_token$',
	    'api/v3/user$' ]);
my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $db = Slipway::DB->start;
my $other = Slipway::Hostile->start;
my $key = tempdir() . '/secret.key';
my ($f, $api, $project, $service, $n);

sub slipway {
	my ($conf) = @_;
	$api = Slipway::API->start(db => $db, migrated => $n++, nginx => \&Slipway::Visitor::unlimited,
		conf => "[api]\nslow_workers = 4\n$conf\[secrets]\nkey_file = $key\n");
	ok($api->create_keys($key), 'slipway-admin key creates the keys for secrets') if !-e $key;
	return;
}
sub with_project {
	my ($url) = @_;
	my $got = $api->post('/api/projects', { name => "p$n", repository => "$url/team/site.git" });
	is($got->{status}, 201, 'a project is created') or diag($got->{body});
	$project = $got->{json}{id};
	return;
}
sub git_server {
	my ($type) = @_;
	$f = Slipway::Forge->start(type => $type);
	$f->user('ann', { id => 7 });
	$f->user('bot', { id => 8 });
	my $repo = $f->repo('team/site', private => 1, users => [ 'ann', 'bot' ]);
	$repo->commit('main', {}, "c$_") for 1 .. 3;
	$service = $f->token('bot');
	slipway($f->conf(token => $service));
	$db->sql("UPDATE user SET valid = 0 WHERE username = 'ann'; DELETE FROM session; INSERT INTO user "
	    . "(username, role) VALUES ('ann', 'deployer')");
	with_project($f->url);
	return;
}

# Returns the four calls as functions.  Sign-ins begin before the fault.
sub ready {
	my @go = map { my $b = Slipway::Visitor->new($api, $f); [ $b, $b->go('ann') ] } 1 .. 2;
	my $viewer = $api->as('viewer');
	$viewer->token('viewer');
	return (sub { $viewer->get("/api/git/branches?projectId=$project") },
	    sub { $viewer->get("/api/git/commits?projectId=$project&branch=main") },
		map { my ($b, $back) =
		    @$_; sub { return { %{ $b->login($back) }, code => $back->{code} } } } @go);
}
# Makes all calls concurrently, each in a process; serves others meanwhile.
sub at_once {
	my (@make) = @_;
	stopwatch(); # for the children
	my @runs = map {
		my ($make, $file) = ($make[$_], tempdir() . "/call$_");
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if (!$pid) {
			delete $api->{http};
			my $watch = stopwatch();
			my $got = $make->();
			spew($file,
			    $json->encode({ status => $got->{status}, body => $got->{body},
			    type => $got->{headers}{'content-type'},
				wait => $got->{headers}{'retry-after'}, code => $got->{code},
				took => $watch->() }));
			POSIX::_exit(0);
		}
		[ $pid, $file ];
	} 0 .. $#make;
	my $served = 0;
	my %left = map { $_->[0] => 1 } @runs;
	while (%left) {
		waitpid($_, WNOHANG) != 0 && delete $left{$_} for keys %left;
		$served++ if %left && $api->get('/api/projects')->{status} == 200;
		sleep 0.03;
	}
	return ($served, map { $json->decode(slurp($_->[1])) } @runs);
}
# Checks the four responses, in order, against one status for each or one for all.
sub rejected {
	my ($name, $want, $meanwhile, @got) = @_;
	my @want = ref $want ? @$want : ($want) x 4;
	for my $i (0 .. 3) {
		my $got = $got[$i];
		my $what = "$name: $calls[$i]";
		is($got->{status}, $want[$i], "$what returns $want[$i]") or diag($got->{body});
		is($got->{type}, 'application/problem+json', "$what returns problem details") or next;
		my $problem = $json->decode($got->{body});
		is($problem->{code},
		    { 400 => 'bad_request', 404 => 'not_found', 429 => 'rate_limited',
		    502 => 'upstream_failed', 504 => 'upstream_timeout' }->{ $want[$i] },
		    "$what returns the right code");
		like($problem->{detail}, qr/\w+ \w+ \w+/, "$what: the detail gives the cause");
		unlike($got->{body}, qr/\Q$service\E/, "$what: the response does not contain the token");
		unlike($got->{body}, qr/\Q$got->{code}\E/, "$what: the response does not contain the code")
		    if $got->{code};
	}
	return;
}
# Repeats the calls if a busy machine made one late.
sub faulty {
	my ($name, $want, $do, $undo) = @_;
	my ($meanwhile, @got, $late);
	my $end = time + 600;
	while (1) {
		my @make = ready();
		my @before = sort $api->workers;
		$do->();
		($meanwhile, @got) = at_once(@make);
		$undo->();
		is(join(' ', sort $api->workers), join(' ', @before), "$name: no worker died");
		($late) = sort { $b <=> $a } map { $_->{took} } @got;
		my $as_wanted = join(' ', map { $_->{status} } @got) eq join ' ',
		    ref $want ? @$want : ($want) x 4;
		last if time > $end || $late < ($as_wanted ? Slipway::Forge::answer_within() : 3)
		    && ($late <= 5 || $meanwhile > 10);
		$api->restart_api;
	}
	rejected($name, $want, $meanwhile, @got);
	cmp_ok($late, '<', Slipway::Forge::answer_within(), sprintf '%s: the slowest response took %.1f s',
	    $name, $late);
	cmp_ok($meanwhile, '>', 10, "$name: $meanwhile other requests were served meanwhile") if $late > 5;
	return @got;
}
sub well {
	my ($name) = @_;
	my ($meanwhile, @got) = at_once(ready());
	is(join(' ', map { $_->{status} } @got), '200 200 200 200', "after $name all four calls work")
	    or diag(explain(\@got));
	return;
}
sub fault {
	my ($name, $want, %fault) = @_;
	return faulty($name, $want, sub { $f->fault($_, %fault) for @{ $paths{ $f->type } } },
	    sub { $f->clear_faults });
}

my @status = (kind => 'status', status => 200);
# Responses that each kind of server has its own code for.
sub answers_of_its_own {
	fault("status $_", 502, kind => 'status', status => $_, body => '{"message":"no"}') for 401, 403;
	fault('status 404', [ 404, 404, 502, 502 ], kind => 'status', status => 404,
	    body => '{"message":"no"}');
	my @got = fault('429 with Retry-After in seconds', 429, kind => 'status', status => 429,
	    headers => { 'Retry-After' => 30 });
	is(join(' ', map { $_->{wait} || 0 } @got), '30 30 30 30',
	    'all four calls pass on Retry-After in seconds');
	fault('an HTML page', 502, @status, type => 'text/html', body => '<p>Sign in</p>');
	fault('truncated JSON', 502, @status, body => '[{"name":"ma');
	fault('JSON of another shape', 502, @status, body => '[{"message":{"a":[]}}]');
	well('faulty responses');
	return;
}
sub answers_of_any {
	fault("status $_", 502, kind => 'status', status => $_, body => '', type => 'text/html')
	    for 500 .. 504;
	my @got = fault('429 with Retry-After as a date', 429, kind => 'status', status => 429,
	    headers => { 'Retry-After' => strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime(time + 900)) });
	is(scalar(grep { ($_->{wait} || 0) > 60 } @got), 4, 'all four calls convert Retry-After from a date');
	@got = fault('429 with an invalid Retry-After', 429, kind => 'status', status => 429,
	    headers => { 'Retry-After' => 'soon' });
	is(scalar(grep { defined $_->{wait} } @got), 0, 'no call passes on an invalid Retry-After');
	fault('text instead of JSON', 502, @status, type => 'text/plain', body => 'all is well');
	fault('an empty response', 502, @status, body => '');
	fault('deeply nested JSON', 502, @status, body => '[' x 5000);
	well('more faulty responses');
	fault('a closed connection', 502, kind => 'drop');
	well('a closed connection');
	$api->restart_api;
	fault('a truncated response', 502, kind => 'cut', body => '[{"name":"ma');
	well('a truncated response');
	$api->restart_api;
	return;
}
sub elsewhere {
	my $port = $f->port;
	fault("a redirect to $_->[0] with $_->[1]", 502, kind => 'status', status => $_->[1],
	    headers => { Location => $_->[2] }) for [ 'another host', 301, "https://127.0.0.1:$port/x" ],
	    [ 'another port', 307, $other->url('localhost') . '/ok' ],
	    [ 'another port with TLS', 308, 'https://localhost:' . $other->port . '/ok' ],
	    [ 'plain HTTP', 302, "http://localhost:$port/x" ], [ 'a file', 302, 'file:///etc/passwd' ];
	is(scalar(my @asked = $other->requests), 0, 'no redirect was followed to another server');
	well('redirects');
	return;
}

git_server($_), answers_of_its_own(), $api->stop, $f->stop for qw(gitlab github);
git_server('gitea');
answers_of_its_own();
answers_of_any();
elsewhere();
# Each URL redirects to itself.
faulty('a redirect loop', 502, sub {
	my @at = ('/api/v1/repos/team/site/branches', '/api/v1/repos/team/site/commits',
	    '/login/oauth/access_token', '/api/v1/user');
	$f->fault($paths{gitea}[$_], kind => 'status', status => 301, headers => { Location => $at[$_] })
	    for 0 .. 3;
}, sub { $f->clear_faults });
well('a redirect loop');
faulty('pages that link to themselves', [ 502, 502, 502, 502 ], sub {
	$f->fault($paths{gitea}[$_], @status, body => '[]',
	    headers => { Link => '<' . $f->url . '/api/v1/repos/team/site/'
	    . ('branches', 'commits', '', '')[$_] . '?page=1&limit=20>; rel="next"' }) for 0 .. 3;
}, sub { $f->clear_faults });
well('pages that link to themselves');
fault('a response of 5 GiB', 502, kind => 'big', size => 5 << 30);
fault('a gzip bomb', 502, kind => 'gzip', size => 20 << 20);
well('large responses');
SKIP: {
	skip 'a build with sanitizers', 1 if sanitized();
	my $most = peak_memory($api->workers);
	cmp_ok($most, '<', 16_000, "the worker used $most KiB at most");
}
for my $slow ([ 'silence', kind => 'silent' ],
    [ 'one byte per second', kind => 'slow', body => '[' . ' ' x 100 . ']' ]) {
	$api->restart_api;
	fault($slow->[0], 504, @$slow[1 .. $#$slow]);
	well($slow->[0]);
}

# --- the server is down or impersonated: it receives no token
my $dir = $f->dir;
for my $case ([ 'expired', 'DNS:localhost', -1 ], [ 'for another host', 'DNS:git.example.org', 2 ]) {
	my ($name, $san, $days) = @$case;
	make_wrong($dir, 'bad', $san, $days);
	$api->restart_api;
	faulty("a certificate that is $name", 502, sub {
		$f->stop_nginx;
		$f->forget_requests;
		$f->start_nginx("ssl_certificate $dir/bad.pem;\n\t\tssl_certificate_key $dir/bad.key;");
	}, sub {
		is(scalar(my @heard = $f->requests), 0,
		    "a certificate that is $name: the server receives no request");
		$f->stop_nginx;
		$f->start_nginx;
	});
	well("a certificate that is $name");
}
$api->restart_api;
faulty('connection refused', 502, sub { $f->stop_nginx }, sub { $f->start_nginx });
well('connection refused');
# In its place: a server that accepts connections and is silent, and one without TLS.
for my $case ([ 'accepted, then silent', 504, '' ], [ 'no TLS', 502, "220 mail.example.org ESMTP\r\n" ]) {
	my ($name, $status, $says) = @$case;
	my ($socket, $pid);
	$api->restart_api;
	faulty($name, $status, sub {
		$f->stop_nginx;
		$socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $f->port, Listen => 20,
		    ReuseAddr => 1) or die "listen: $!";
		my $test = $$;
		defined($pid = fork) or die "fork: $!";
		return if $pid;
		alarm 1200;
		$SIG{PIPE} = 'IGNORE';
		my @held;
		while (getppid == $test && (my $peer = $socket->accept)) {
			syswrite $peer, $says;
			push @held, $peer if $says eq '';
		}
		POSIX::_exit(0);
	}, sub {
		kill 'KILL', $pid;
		waitpid $pid, 0;
		close $socket;
		$f->start_nginx;
	});
	well($name);
}
unlike($api->log, qr/\Q$service\E/, 'no token is in the log');
$api->stop;

# --- an unknown name, and an address that drops packets: no account ever signed in
# there, so any code will do.
my ($full, $hole) = Slipway::Hostile->full;
for my $case ([ 'an unknown name', 'http://no-such-host.invalid' ],
    [ 'an address that drops packets', $hole ]) {
	my ($name, $url) = @$case;
	slipway("[gitserver]\nurl = $url\ntype = gitea\nallow_http = yes\nclient_id = c\nredirect_uri = "
	    . "https://slipway.example.org/login\ntoken = $service\n");
	with_project($url);
	my $viewer = $api->as('viewer');
	$viewer->token('viewer');
	my $b = Slipway::Visitor->new($api, $f);
	my $state = $b->visit('GET', '/api/auth/url')->{json}{state};
	is(length($state || ''), 43, "$name: a sign-in begins") or diag($api->log);
	my ($meanwhile, @got) = at_once(sub { $viewer->get("/api/git/branches?projectId=$project") },
	    sub { $viewer->get("/api/git/commits?projectId=$project&branch=main") },
		sub { $b->login({ code => 'x' x 40, state => $state }) });
	for my $i (0 .. 2) {
		like($got[$i]{status}, qr/^50[24]$/, "$name: $calls[$i] return 502 or 504")
		    or diag($got[$i]{body});
		is($got[$i]{type}, 'application/problem+json', "$name: $calls[$i] return problem details");
	}
	is($api->get('/api/projects')->{status}, 200, "$name: other requests work");
	$api->stop;
}
done_testing;
