#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The HTTP client against servers that reject, stay silent, send invalid or
# endless responses, redirect elsewhere or have another server's certificate.

use strict;
use warnings;
use IO::Socket::INET;
use IPC::Open2;
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(time);
use Slipway::Hostile;
use Slipway::Test;

$ENV{$_} = '' for qw(http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY);
# Don't wait long for a silent name server.
$ENV{RES_OPTIONS} = 'timeout:1 attempts:1';
my $MAX = 1 << 20;
my $SOME = 600000; # ms, where the time does not matter

my $dir = tempdir();
my ($from, $to);
my $pid = open2($from, $to, program('t/unit/http_probe'));
sub say_to {
	print $to join("\t", @_), "\n";
	my $line = <$from>;
	die 'the probe ended' if !defined $line;
	chomp $line;
	return $line;
}
# Replaces the client by a new one, which remembers no failed servers.
sub fresh { return say_to('open', $_[0] // '', $_[1] // 'http') }
sub get {
	my ($url, %o) = @_;
	return answer(say_to('get', $url, $o{ms} || $SOME, $o{max} || $MAX, @{ $o{headers} || [] }));
}
sub answer {
	my ($line) = @_;
	my @w = split /\t/, $line, -1;
	return { code => $w[0], ms => $w[1], text => $w[2], log => $w[3] } if $w[0] ne 'ok';
	my %r = (code => 'ok');
	@r{qw(ms status len type retry next url body)} = @w[1 .. 8];
	return \%r;
}
sub failed {
	my ($got, $code, $text, $name) = @_;
	my $ok = is($got->{code}, $code, $name);
	like($got->{text}, $text, "$name: the error text says why") or $ok = 0;
	diag(explain($got)) if !$ok;
	return;
}

my $bad = Slipway::Hostile->start;
my $other = Slipway::Hostile->start;
my $url = $bad->url;
my $at = '127\.0\.0\.1:' . $bad->port;
is(fresh(), 'ok', 'a client starts');

# --- a well-behaved server
{
	my $got = get("$url/ok");
	is($got->{code}, 'ok', 'a GET succeeds');
	is("@$got{qw(status len type retry next url body)}",
	    qq(200 11 application/json -1 - $url/ok {"ok":true}),
	    'a GET returns status, length, type, URL and body of the response');
	is(get("$url/empty")->{status}, 204, 'a response without a body is accepted');
	is(get("$url/status/$_")->{status}, $_, "a response with status $_ is returned to the caller")
	    for 304, 400, 401, 403, 404, 500, 502, 504;
	$bad->forget;
	get("$url/echo?a=1%2F2", headers => ['Authorization', 'Bearer geheim', 'X-Empty', '']);
	my ($sent) = $bad->requests;
	like($sent, qr{^GET /echo\?a=1%2F2 HTTP/1\.1\r\n}, 'the request target is sent unchanged');
	like($sent, qr{^User-Agent: slipway-test/1\r$}m, 'User-Agent names the client');
	like($sent, qr{^Authorization: Bearer geheim\r$}m, 'a header of the caller is sent');
	like($sent, qr{^X-Empty:\r$}m, 'an empty header of the caller is sent');
	unlike($sent, qr{^(?:Content-Type|Expect|Cookie|Content-Length)}mi,
	    'no other request header is sent');
	$bad->forget;
	my $post = answer(say_to('post', "$url/echo", $SOME, $MAX, 'application/x-www-form-urlencoded',
	    'a=b&c=d'));
	is($post->{status}, 200, 'a POST succeeds');
	my $form = qr{Content-Type: application/x-www-form-urlencoded\r\n};
	like(($bad->requests)[0], qr{^POST /echo HTTP/1\.1\r\n.*$form.*\r\n\r\na=b&c=d\z}s,
	    'a POST sends its type and body');
	$bad->forget;
	is(answer(say_to('delete', "$url/ok", $SOME, $MAX))->{status}, 200, 'a DELETE succeeds');
	like(($bad->requests)[0], qr{^DELETE /ok HTTP/1\.1\r\n}, 'a DELETE is sent as DELETE');
	is(get("$url/zipped")->{len}, 1000, 'a compressed body is decompressed');
}

# --- invalid requests of the caller
for my $case (
	['with a blank', "$url/a b"],
	['of a file', 'file:///etc/passwd'],
	['with another protocol', 'gopher://127.0.0.1/'],
	['with a user', 'http://user@127.0.0.1/'],
	['with a user and a password', 'http://u:p@127.0.0.1/'],
	['without a host', 'http:///x'],
	['without a scheme', '127.0.0.1/x'],
	['that is empty', ''],
	['with a backslash in the host', "http://127.0.0.1\\\@example.org/"],
	['with a DEL', "$url/\x7f"],
) {
	my $before = $bad->requests;
	is(get($case->[1])->{code}, 'internal', "a URL $case->[0] is rejected");
	is($bad->requests, $before, "a URL $case->[0] causes no request");
}
for my $case (["a carriage return", 'X-A', "b\rX-C: d"], ['an escape', 'X-A', "\e[0m"],
    ['a name with a colon', 'X:A', 'b'],
	['no name', '', 'b'], ['a name with a blank', 'X A', 'b'], ['16 KiB', 'X-A', 'x' x 16384]) {
	$bad->forget;
	is(get("$url/ok", headers => [@$case[1, 2]])->{code}, 'internal',
	    "a header with $case->[0] is rejected");
	is(scalar $bad->requests, 0, "a header with $case->[0] is not sent");
}
fresh('', 'https');
is(get("$url/ok")->{code}, 'config', 'http:// is rejected unless it is allowed');
like(get("$url/ok")->{text}, qr/without TLS/, 'the error says that TLS is required');
fresh();

# --- servers that are absent or silent
{
	my $port = free_port();
	failed(get("http://127.0.0.1:$port/token"), 'upstream_failed',
	    qr/^127\.0\.0\.1:$port cannot be reached$/,
	    'a refused connection is an upstream failure');
	failed(get('http://no-such-host.invalid/token'), 'upstream_failed',
	    qr/^no-such-host\.invalid has an unknown host name$/,
	    'an unknown host name is an upstream failure');
	my ($silent, $silent_url) = Slipway::Hostile->silent;
	my ($full, $full_url) = Slipway::Hostile->full;
	for my $case (['a server that accepts connections only', $silent_url],
		['a server that accepts no connection', $full_url],
		['a server that is silent after the request', "$url/silent"],
		['a server that sends a byte of the header each second', "$url/drip"],
		['a server that sends a byte of the body each second', "$url/drip-body"],
		['a server that never begins TLS', $silent_url =~ s/http/https/r]) {
		my $got;
		my $ms = best_of(2500,
		    sub { fresh(); $got = get($case->[1], ms => 1200); return $got->{ms} });
		failed($got, 'upstream_timeout', qr/ did not respond in time$/,
		    "$case->[0] is an upstream timeout");
		cmp_ok($ms, '<', deadline(2500), "$case->[0] takes no longer than the deadline ($ms ms)");
		cmp_ok($got->{ms}, '>=', 1000, "$case->[0] gets the time of the deadline");
	}
	my $got;
	# half of that of the request
	my $ms = best_of(20000, sub { fresh(); $got = get($full_url, ms => 20000); return $got->{ms} });
	failed($got, 'upstream_timeout', qr/in time/, 'a host that drops packets is an upstream timeout');
	cmp_ok($ms, '<', 20000, "a connection has a shorter deadline of its own ($ms ms)");
}

# --- invalid responses
fresh();
failed(get("$url/close"), 'upstream_failed', qr/^$at closed the connection without a response$/,
    'a closed connection is an upstream failure');
failed(get("$url/truncated"), 'upstream_failed', qr/^$at cut the response short$/,
    'a truncated body is an upstream failure');
failed(get("$url/chunk-cut"), 'upstream_failed', qr/cut the response short$/,
    'a truncated chunk is an upstream failure');
fresh();
failed(get("$url/garbage"), 'upstream_failed', qr/does not respond with HTTP$/,
    'a response other than HTTP is an upstream failure');
failed(get("$url/bad-length"), 'upstream_failed', qr/does not respond with HTTP$|too large/,
    'a negative Content-Length is an upstream failure');
is(get("$url/short-length")->{body}, 'true', 'bytes beyond Content-Length are ignored');
is(get("$url/ok")->{body}, '{"ok":true}', 'bytes beyond Content-Length do not become the next response');
failed(get("$url/unzippable"), 'upstream_failed', qr/cannot be decompressed$/,
    'a body that cannot be decompressed is an upstream failure');
failed(get('https://127.0.0.1:' . $bad->port . '/ok'), 'upstream_failed',
    qr/failed the TLS handshake$/, 'a server without TLS is an upstream failure');

# --- certificates
SKIP: {
	my ($none, $nginx) = run_cmd('sh', '-c', 'PATH=$PATH:/usr/sbin command -v nginx');
	chomp $nginx;
	skip 'nginx is not installed', 1 if $nginx eq '';
	my $openssl = sub {
		my ($status, undef, $err) = run_cmd('openssl', @_);
		die "openssl: $err" if $status != 0;
	};
	my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes');
	$openssl->('req', '-x509', @key, '-days', 2, '-subj', "/CN=$_",
	    '-keyout', "$dir/$_.key", '-out', "$dir/$_.crt") for 'ca', 'stranger';
	# Signed by, name, days
	my %site = (good => ['ca', 'IP:127.0.0.1', 2], expired => ['ca', 'IP:127.0.0.1', -1],
		unknown => ['stranger', 'IP:127.0.0.1', 2], elsewhere => ['ca', 'DNS:git.example.org', 2]);
	my %port;
	my $servers = '';
	for my $name (sort keys %site) {
		my ($ca, $san, $days) = @{ $site{$name} };
		spew("$dir/$name.ext", "subjectAltName = $san\n");
		$openssl->('req', @key, '-subj', "/CN=$name", '-keyout', "$dir/$name.key", '-out',
		    "$dir/$name.csr");
		$openssl->('x509', '-req', '-days', $days, '-in', "$dir/$name.csr",
		    '-CA', "$dir/$ca.crt", '-CAkey', "$dir/$ca.key", '-CAcreateserial', '-extfile',
		    "$dir/$name.ext", '-out', "$dir/$name.crt");
		$port{$name} = free_port();
		$servers .= "server { listen 127.0.0.1:$port{$name} ssl;"
		    . " ssl_certificate $dir/$name.crt; ssl_certificate_key $dir/$name.key;"
		    . " return 200 '$name got \$http_authorization'; }\n";
	}
	mkdir "$dir/nginx";
	my @temporary = map { "${_}_temp_path $dir/nginx;\n" } qw(client_body proxy fastcgi uwsgi scgi);
	spew("$dir/nginx.conf", "daemon off; master_process off; pid $dir/nginx.pid;"
	    . " error_log $dir/nginx.log; events { }\n"
	    . "http { access_log $dir/access.log;\n@temporary$servers}\n");
	start_process($nginx, '-c', "$dir/nginx.conf", '-p', $dir, '-e', "$dir/nginx.log");
	poll(10, sub { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port{good}) })
	    or die 'nginx does not listen';
	my %tls = map { $_ => "https://127.0.0.1:$port{$_}/x" } keys %port;
	my @bearer = (headers => ['Authorization', 'Bearer geheim']);
	fresh("$dir/ca.crt", 'https');
	is(get($tls{good}, @bearer)->{body}, 'good got Bearer geheim',
	    'a server with a certificate of the configured CA gets the request');
	failed(get($tls{expired}, @bearer), 'upstream_failed',
	    qr/has an invalid TLS certificate: .*expired/, 'an expired certificate is rejected');
	failed(get($tls{unknown}, @bearer), 'upstream_failed',
	    qr/invalid TLS certificate: .*(?:unable to get|self-signed)/,
	    'a certificate of an unknown CA is rejected');
	failed(get($tls{elsewhere}, @bearer), 'upstream_failed',
	    qr/invalid TLS certificate: .*(?:does not match|no alternative)/,
	    'a certificate of another host is rejected');
	is(get($tls{good} =~ s/127\.0\.0\.1/localhost/r)->{code}, 'upstream_failed',
	    'a certificate without the name in the URL is rejected');
	fresh('', 'https');
	failed(get($tls{good}, @bearer), 'upstream_failed', qr/invalid TLS certificate/,
	    "without a configured CA the system's CAs apply");
	fresh("$dir/stranger.crt", 'https');
	failed(get($tls{good}, @bearer), 'upstream_failed', qr/invalid TLS certificate/,
	    'a certificate of a CA other than the configured one is rejected');
	is(get($tls{unknown})->{status}, 200, 'the configured CA replaces the CAs of the system');
	fresh("$dir/none.crt", 'https');
	is(get($tls{good}, @bearer)->{code}, 'config',
	    'a missing file of CA certificates is a fault of the configuration');
	my @asked = split /\n/, slurp("$dir/access.log");
	is(scalar @asked, 2, 'no request goes to a server that is not verified') or diag(explain(\@asked));
}

# --- oversized responses: the client holds little of them in memory
fresh();
my ($before) = say_to('rss') =~ /(\d+)/;
for my $what (qw(endless endless-chunks five-gigabytes bomb bomb-twice headers long-header interim)) {
	my $got = get("$url/$what");
	failed($got, 'upstream_failed', qr/sent (?:a response that is|responses that are) too large/,
	    "an oversized response is an upstream failure ($what)");
	note("$what: $got->{ms} ms");
}
my ($grown) = say_to('rss') =~ /(\d+)/;
$grown -= $before;
cmp_ok($grown, '>', 0, 'the probe measures its peak memory');
SKIP: {
	skip 'a build with sanitizers', 1 if sanitized();
	cmp_ok($grown, '<', 12 << 10, "oversized responses take less than 12 MiB of memory ($grown KiB)");
}
failed(get("$url/ok", max => 10), 'upstream_failed', qr/sent a response that is too large$/,
    'a body one byte over the limit is an upstream failure');
is(get("$url/ok", max => 11)->{len}, 11, 'a body of exactly the limit is accepted');

# --- redirects: never to another server
fresh();
my @secret = (headers => ['Authorization', 'Bearer geheim-4711', 'PRIVATE-TOKEN', 'geheim-4712']);
my $alias = 'http://localhost:' . $bad->port;
for my $case (['another port', $other->url . '/ok'],
	['another name of the same host', "$alias/ok"],
	['another scheme', 'https://127.0.0.1:' . $bad->port . '/ok'],
	['another host without a scheme', '//localhost:' . $other->port . '/ok']) {
	$bad->forget;
	$other->forget;
	failed(get("$url/to?$case->[1]", @secret), 'upstream_failed',
	    qr/^$at redirects to another server, https?:\/\/[\w.:]+, which is not followed$/,
	    "a redirect to $case->[0] is not followed");
	is(scalar $other->requests, 0, "a redirect to $case->[0] causes no request there");
	is(scalar $bad->requests, 1, "a redirect to $case->[0] causes no second request to the first server");
}
for my $there ('file:///etc/passwd', 'ftp://127.0.0.1/', 'gopher://127.0.0.1:' . $other->port . '/',
    'http://',
	'http://user:pw@127.0.0.1:' . $bad->port . '/ok', 'javascript:x') {
	failed(get("$url/to?$there", @secret), 'upstream_failed',
	    qr/^$at redirects to an invalid HTTP address$|which is not followed$/,
	    "a redirect to $there is not followed");
}
is(scalar $other->requests, 0, 'the other server receives no request');
is(get("$url/to?/ok")->{url}, "$url/ok", 'a redirect to a path of the same server is followed');
is(get("$url/to?$url/ok%23frag")->{url}, "$url/ok", 'a redirect to a URL of the same server is followed');
$bad->forget;
get("$url/to?/ok", @secret);
is(scalar(grep { /geheim-4711/ && /geheim-4712/ } $bad->requests), 2,
    'the request headers are sent again after a redirect');
is(get("$url/chain/3")->{body}, 'end', 'three redirects are followed');
failed(get("$url/chain/4"), 'upstream_failed', qr/^$at redirects too many times$/,
    'a fourth redirect is an upstream failure');
failed(get("$url/loop"), 'upstream_failed', qr/too many times$/, 'a redirect loop is an upstream failure');
is(get("$url/status/302")->{status}, 302, 'a redirect without a location is returned to the caller');
is(answer(say_to('post', "$url/to?/ok", $SOME, $MAX, 'text/plain', 'x'))->{status}, 302,
    'a redirect of a POST is not followed');
is(answer(say_to('delete', "$url/to?/ok", $SOME, $MAX))->{status}, 302,
    'a redirect of a DELETE is not followed');
is(get("$url/header/Retry-After%3A%20120")->{retry}, 120, 'Retry-After in seconds is returned');
is(get("$url/header/Retry-After%3A%20soon")->{retry}, -1, 'an invalid Retry-After is ignored');
my $date = strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime(time + 60)) =~ s/ /%20/gr;
cmp_ok(get("$url/header/Retry-After%3A%20$date")->{retry}, '>', 50,
    'Retry-After as a date is returned in seconds');
is(get("$url/header/Link%3A%20%3C%2Fx%3Fpage=2%3E%3B%20rel=next")->{next}, "$url/x?page=2",
    'the next page of a Link header is returned');
like(get("$url/header/Link%3A%20%3C" . $other->url . "%2Fx%3Fpage=2%3E%3B%20rel=next")->{next},
    qr{^\Q$url\E/header/\S+\?page=2$},
    'the next page of a Link header is always at the same server');
is(get("$url/header/Retry-After%3A%201%01")->{retry}, -1, 'a header with control bytes is ignored');

# --- configuration files of curl
{
	spew("$dir/.netrc", "machine 127.0.0.1 login u password geheim-netrc\n", 0600);
	spew("$dir/.curlrc", "header = \"X-Rc: yes\"\n");
	local $ENV{HOME} = $dir;
	my $p = open2(my $out, my $in, program('t/unit/http_probe'));
	$bad->forget;
	print $in "open\t\thttp\nget\t$url/ok\t$SOME\t1000\n";
	close $in;
	my @said = <$out>;
	waitpid $p, 0;
	like($said[1], qr/^ok\t/, 'a request with a .netrc in HOME succeeds');
	unlike(($bad->requests)[0], qr/Authorization|X-Rc/i, '.netrc and .curlrc are not read');
}

# --- a silent name server
SKIP: {
	skip 'only root can replace resolv.conf for a process', 4 if !is_root();
	my $dns = IO::Socket::INET->new(LocalAddr => '127.77.77.77', LocalPort => 53, Proto => 'udp');
	skip 'port 53 is in use', 4 if !$dns;
	spew("$dir/resolv.conf", "nameserver 127.77.77.77\noptions timeout:5 attempts:2\n");
	local $ENV{RES_OPTIONS};
	my @isolated = ('unshare', '-m', 'sh', '-ec', 'mount --bind "$1" /etc/resolv.conf; exec "$2"',
		'sh', "$dir/resolv.conf");
	my ($status) = run_cmd(@isolated, '/bin/true');
	skip 'unshare cannot create a mount namespace', 4 if $status != 0;
	within(4, sub {
		my $p = open2(my $out, my $in, @isolated, program('t/unit/http_probe'));
		print $in "open\t\thttp\nget\thttp://git.example.org/\t1500\t1000\n",
		    "get\t$url/ok\t$SOME\t1000\n";
		my ($opened, $got, $next) = (scalar <$out>, answer(scalar <$out>), answer(scalar <$out>));
		close $in;
		waitpid $p, 0;
		failed($got, 'upstream_timeout', qr/^git\.example\.org did not respond in time/,
		    'a silent name server is an upstream timeout');
		cmp_ok($got->{ms}, '<', deadline(4500),
		    "a silent name server takes no longer than the deadline ($got->{ms} ms)");
		is($next->{status}, 200, 'the next request after a silent name server succeeds');
	});
}

# --- connections
fresh();
$bad->forget;
is(get("$url/leaves")->{body}, 'bye', 'a response before an unannounced close is accepted');
is(get("$url/ok")->{body}, '{"ok":true}', 'a request after an unannounced close succeeds') for 1 .. 5;
is(answer(say_to('post', "$url/leaves", $SOME, $MAX, 'text/plain', 'x'))->{status}, 200,
    'a POST before an unannounced close succeeds');
is(answer(say_to('post', "$url/ok", $SOME, $MAX, 'text/plain', 'x'))->{status}, 200,
    'a POST after an unannounced close succeeds');
# How many connections the server saw; its log files are named by connection and
# request.
sub connections {
	my %c = map { m{/(\d+)\d{3}$} ? ($1 => 1) : () } glob "$bad->{log}/*";
	return scalar keys %c;
}
$bad->forget;
get("$url/ok") for 1 .. 10;
is(connections(), 1, 'ten GETs share a connection');
$bad->forget;
say_to('post', "$url/ok", $SOME, $MAX, 'text/plain', 'x') for 1 .. 3;
is(connections(), 3, 'each POST has its own connection, so that it is never sent twice');
$bad->forget;
get("$url/ok");
print $to join("\t", 'fork', 'get', "$url/ok", $SOME, $MAX), "\n";
is(answer(scalar <$from>)->{status}, 200, 'a request of a child process succeeds');
is(connections(), 2, 'a child process opens its own connection');
is(get("$url/ok")->{status}, 200, 'a request of the parent after the child succeeds');
is(connections(), 2, 'the parent keeps its connection');

# --- backing off from a server that does not respond
{
	fresh();
	my $port = free_port();
	my $gone = "http://127.0.0.1:$port/x";
	failed(get($gone), 'upstream_failed', qr/cannot be reached$/, "failure $_ is reported") for 1 .. 4;
	my $from_now = time;
	failed(get($gone), 'upstream_failed', qr/cannot be reached$/, 'failure 5 is reported');
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 5,
		ReuseAddr => 1) or die "listen: $!";
	my $wait = qr/the next request is sent in (?:[1-9]|10) seconds/;
	failed(get($gone), 'upstream_failed', qr/^127\.0\.0\.1:$port failed to respond several times; $wait$/,
	    'after five failures the client backs off');
	$listen->blocking(0);
	ok(!$listen->accept, 'a client that backs off opens no connection');
	is(get("$url/ok")->{status}, 200, 'backing off from one server does not affect another');
	close $listen;
	my $got = poll(15, sub { my $g = get($gone); $g->{text} =~ /several times/ ? undef : $g });
	failed($got, 'upstream_failed', qr/cannot be reached$/,
	    'after a while the client tries the server again');
	cmp_ok(time - $from_now, '>=', 9, 'the client backs off for ten seconds');
	failed(get($gone), 'upstream_failed', qr/the next request is sent in/,
	    'one more failure makes the client back off again');
	my $back = Slipway::Hostile->start;
	fresh();
	get($back->url . '/close') for 1 .. 4;
	is(get($back->url . '/ok')->{status}, 200, 'a response after four failures is accepted');
	get($back->url . '/close') for 1 .. 4;
	is(get($back->url . '/status/500')->{status}, 500,
	    'an error response also resets the count of failures');
	get($back->url . '/close') for 1 .. 5;
	failed(get($back->url . '/ok'), 'upstream_failed', qr/the next request is sent in/,
	    'five failures after a response make the client back off');
	$got = poll(15, sub { my $g = get($back->url . '/ok'); $g->{code} eq 'ok' ? $g : undef });
	is($got->{status}, 200, 'a server that responds again is used again');
	is(get($back->url . '/ok')->{status}, 200, 'a server that responds again stays in use');
	get($back->url . '/bomb-twice') for 1 .. 6;
	is(get($back->url . '/ok')->{status}, 200, 'a response that is rejected does not count as a failure');
	$back->stop;
}

close $to;
waitpid $pid, 0;
is($?, 0, 'the probe ends with status 0');
done_testing();
