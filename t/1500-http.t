#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The HTTP client before servers that refuse, keep silent, lie, never end, send
# it elsewhere or prove to be somebody else.

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
# A name server that keeps silent here shall not be waited for long.
$ENV{RES_OPTIONS} = 'timeout:1 attempts:1';
my $MAX = 1 << 20;
my $SOME = 60000; # ms, where time is not the matter

my $dir = tempdir();
my ($from, $to);
my $pid = open2($from, $to, program('t/unit/http_probe'));
sub say_to {
	print $to join("\t", @_), "\n";
	my $line = <$from>;
	die 'the probe has gone' if !defined $line;
	chomp $line;
	return $line;
}
# A new client without a memory of who did not answer.
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
	like($got->{text}, $text, "$name: in words") or $ok = 0;
	diag(explain($got)) if !$ok;
	return;
}

my $bad = Slipway::Hostile->start;
my $other = Slipway::Hostile->start;
my $url = $bad->url;
my $at = '127\.0\.0\.1:' . $bad->port;
is(fresh(), 'ok', 'a client');

# --- a server as it should be
{
	my $got = get("$url/ok");
	is($got->{code}, 'ok', 'an answer');
	is("@$got{qw(status len type retry next url body)}",
	    qq(200 11 application/json -1 - $url/ok {"ok":true}), 'with its parts');
	is(get("$url/empty")->{status}, 204, 'one without a body');
	is(get("$url/status/$_")->{status}, $_, "status $_ is an answer") for 304, 400, 401, 403, 404, 500, 502, 504;
	$bad->forget;
	get("$url/echo?a=1%2F2", headers => ['Authorization', 'Bearer geheim', 'X-Empty', '']);
	my ($sent) = $bad->requests;
	like($sent, qr{^GET /echo\?a=1%2F2 HTTP/1\.1\r\n}, 'the target goes out as it was given');
	like($sent, qr{^User-Agent: slipway-test/1\r$}m, 'who asks');
	like($sent, qr{^Authorization: Bearer geheim\r$}m, 'a header');
	like($sent, qr{^X-Empty:\r$}m, 'an empty one');
	unlike($sent, qr{^(?:Content-Type|Expect|Cookie|Content-Length)}mi, 'and none that nobody asked for');
	$bad->forget;
	my $post = answer(say_to('post', "$url/echo", $SOME, $MAX, 'application/x-www-form-urlencoded', 'a=b&c=d'));
	is($post->{status}, 200, 'a POST');
	like(($bad->requests)[0], qr{^POST /echo HTTP/1\.1\r\n.*Content-Type: application/x-www-form-urlencoded\r\n.*\r\n\r\na=b&c=d\z}s,
	    'with its body');
	$bad->forget;
	is(answer(say_to('delete', "$url/ok", $SOME, $MAX))->{status}, 200, 'a DELETE');
	like(($bad->requests)[0], qr{^DELETE /ok HTTP/1\.1\r\n}, 'as such');
	is(get("$url/zipped")->{len}, 1000, 'a compressed body is unpacked');
}

# --- what no caller may ask
for my $case (
	['a blank in the address', "$url/a b"], ['a file', 'file:///etc/passwd'], ['another protocol', 'gopher://127.0.0.1/'],
	['a user', 'http://user@127.0.0.1/'], ['a user and a password', 'http://u:p@127.0.0.1/'], ['no host', 'http:///x'],
	['no scheme', '127.0.0.1/x'], ['nothing', ''], ['a letter of no host', "http://127.0.0.1\\\@example.org/"],
	["a DEL", "$url/\x7f"],
) {
	my $before = $bad->requests;
	is(get($case->[1])->{code}, 'internal', "$case->[0] is refused");
	is($bad->requests, $before, "$case->[0]: nothing is sent");
}
for my $case (["a carriage return", 'X-A', "b\rX-C: d"], ['an escape', 'X-A', "\e[0m"], ['a name with a colon', 'X:A', 'b'],
	['no name', '', 'b'], ['a name with a blank', 'X A', 'b'], ['16 KiB', 'X-A', 'x' x 16384]) {
	$bad->forget;
	is(get("$url/ok", headers => [@$case[1, 2]])->{code}, 'internal', "a header with $case->[0] is refused");
	is(scalar $bad->requests, 0, "a header with $case->[0] is not sent");
}
fresh('', 'https');
is(get("$url/ok")->{code}, 'internal', 'http:// where it is not allowed');
like(get("$url/ok")->{text}, qr/without TLS/, 'and that is said');
fresh();

# --- nobody there, nobody who speaks
{
	my $port = free_port();
	failed(get("http://127.0.0.1:$port/token"), 'upstream_failed', qr/^127\.0\.0\.1:$port cannot be reached$/, 'refused');
	failed(get('http://no-such-host.invalid/token'), 'upstream_failed', qr/^no-such-host\.invalid:80 is not known by that name$/,
	    'an unknown name');
	my ($silent, $silent_url) = Slipway::Hostile->silent;
	my ($full, $full_url) = Slipway::Hostile->full;
	for my $case (['a server that takes connections only', $silent_url], ['one that does not take them', $full_url],
		['one that takes a request and is silent', "$url/silent"], ['one byte a second', "$url/drip"],
		['one byte of the body a second', "$url/drip-body"], ['TLS that never begins', $silent_url =~ s/http/https/r]) {
		my $got;
		my $ms = best_of(2500, sub { fresh(); $got = get($case->[1], ms => 1200); return $got->{ms} });
		failed($got, 'upstream_timeout', qr/ did not answer in time$/, $case->[0]);
		cmp_ok($ms, '<', deadline(2500), "$case->[0]: the deadline holds ($ms ms)");
		cmp_ok($got->{ms}, '>=', 1000, "$case->[0]: and not before");
	}
	fresh();
	my $got = get($full_url);
	failed($got, 'upstream_timeout', qr/in time/, 'a host that drops what comes');
	cmp_ok($got->{ms}, '<', deadline(30000), "a connection has a shorter deadline of its own ($got->{ms} ms)");
}

# --- answers that are none
fresh();
failed(get("$url/close"), 'upstream_failed', qr/^$at closed the connection without an answer$/, 'closed at once');
failed(get("$url/truncated"), 'upstream_failed', qr/^$at cut its answer short$/, 'a truncated body');
failed(get("$url/chunk-cut"), 'upstream_failed', qr/cut its answer short$/, 'a truncated chunk');
fresh();
failed(get("$url/garbage"), 'upstream_failed', qr/does not answer by HTTP$/, 'no HTTP');
failed(get("$url/bad-length"), 'upstream_failed', qr/does not answer by HTTP$|larger/, 'a length below 0');
is(get("$url/short-length")->{body}, 'true', 'more than its length says is not taken');
is(get("$url/ok")->{body}, '{"ok":true}', 'and does not become the next answer');
failed(get("$url/unzippable"), 'upstream_failed', qr/cannot be unpacked$/, 'no compression as it says');
failed(get('https://127.0.0.1:' . $bad->port . '/ok'), 'upstream_failed', qr/does not speak TLS as it should$/, 'no TLS');

# --- servers that prove to be somebody else, or nobody
SKIP: {
	my ($none, $nginx) = run_cmd('sh', '-c', 'PATH=$PATH:/usr/sbin command -v nginx');
	chomp $nginx;
	skip 'nginx is not installed', 1 if $nginx eq '';
	my $openssl = sub {
		my ($status, undef, $err) = run_cmd('openssl', @_);
		die "openssl: $err" if $status != 0;
	};
	my @key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes');
	$openssl->('req', '-x509', @key, '-days', 2, '-subj', "/CN=$_", '-keyout', "$dir/$_.key", '-out', "$dir/$_.crt") for 'ca', 'stranger';
	# Signed by, name, days
	my %site = (good => ['ca', 'IP:127.0.0.1', 2], expired => ['ca', 'IP:127.0.0.1', -1], unknown => ['stranger', 'IP:127.0.0.1', 2],
		elsewhere => ['ca', 'DNS:git.example.org', 2]);
	my %port;
	my $servers = '';
	for my $name (sort keys %site) {
		my ($ca, $san, $days) = @{ $site{$name} };
		spew("$dir/$name.ext", "subjectAltName = $san\n");
		$openssl->('req', @key, '-subj', "/CN=$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
		$openssl->('x509', '-req', '-days', $days, '-in', "$dir/$name.csr", '-CA', "$dir/$ca.crt", '-CAkey', "$dir/$ca.key",
		    '-CAcreateserial', '-extfile', "$dir/$name.ext", '-out', "$dir/$name.crt");
		$port{$name} = free_port();
		$servers .= "server { listen 127.0.0.1:$port{$name} ssl; ssl_certificate $dir/$name.crt; ssl_certificate_key $dir/$name.key;"
		    . " return 200 '$name got \$http_authorization'; }\n";
	}
	mkdir "$dir/nginx";
	spew("$dir/nginx.conf", "daemon off; master_process off; pid $dir/nginx.pid; error_log $dir/nginx.log; events { }\nhttp { access_log $dir/access.log;\n"
		. join('', map { "${_}_temp_path $dir/nginx;\n" } qw(client_body proxy fastcgi uwsgi scgi)) . "$servers}\n");
	start_process($nginx, '-c', "$dir/nginx.conf", '-p', $dir, '-e', "$dir/nginx.log");
	poll(10, sub { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port{good}) }) or die 'nginx does not listen';
	my %tls = map { $_ => "https://127.0.0.1:$port{$_}/x" } keys %port;
	my @bearer = (headers => ['Authorization', 'Bearer geheim']);
	fresh("$dir/ca.crt", 'https');
	is(get($tls{good}, @bearer)->{body}, 'good got Bearer geheim', 'a certificate of the CA that is trusted');
	failed(get($tls{expired}, @bearer), 'upstream_failed', qr/has a TLS certificate that is not accepted: .*expired/, 'an expired one');
	failed(get($tls{unknown}, @bearer), 'upstream_failed', qr/certificate that is not accepted: .*(?:unable to get|self-signed)/, 'one of an unknown CA');
	failed(get($tls{elsewhere}, @bearer), 'upstream_failed', qr/certificate that is not accepted: .*(?:does not match|no alternative)/,
	    'one of another host');
	is(get($tls{good} =~ s/127\.0\.0\.1/localhost/r)->{code}, 'upstream_failed', 'the same server by a name that is not its own');
	fresh('', 'https');
	failed(get($tls{good}, @bearer), 'upstream_failed', qr/certificate that is not accepted/, "the system's CAs do not know it");
	fresh("$dir/stranger.crt", 'https');
	failed(get($tls{good}, @bearer), 'upstream_failed', qr/certificate that is not accepted/, 'nor does another');
	is(get($tls{unknown})->{status}, 200, 'which knows its own');
	fresh("$dir/none.crt", 'https');
	is(get($tls{good}, @bearer)->{code}, 'internal', 'no file of CA certificates');
	my @asked = split /\n/, slurp("$dir/access.log");
	is(scalar @asked, 2, 'nothing was asked of those that are not verified') or diag(explain(\@asked));
}

# --- answers without end: what is kept of them stays small
fresh();
my ($before) = say_to('rss') =~ /(\d+)/;
for my $what (qw(endless endless-chunks five-gigabytes bomb bomb-twice headers long-header interim)) {
	my $got = get("$url/$what");
	failed($got, 'upstream_failed', qr/sent (?:a )?larger answer/, $what);
	note("$what: $got->{ms} ms");
}
my ($grown) = say_to('rss') =~ /(\d+)/;
$grown -= $before;
cmp_ok($grown, '>', 0, 'the peak is measured');
my $sanitized = (slurp(builddir() . '/Makefile') || '') =~ /^HARD_CFLAGS = .*sanitize/m;
SKIP: {
	skip 'a build with sanitizers', 1 if $sanitized;
	cmp_ok($grown, '<', 12 << 10, "they took $grown KiB at the peak");
}
failed(get("$url/ok", max => 10), 'upstream_failed', qr/sent a larger answer than is taken$/, 'one byte too many');
is(get("$url/ok", max => 11)->{len}, 11, 'and exactly as many');

# --- elsewhere: never, and nothing is sent there
fresh();
my @secret = (headers => ['Authorization', 'Bearer geheim-4711', 'PRIVATE-TOKEN', 'geheim-4712']);
my $alias = 'http://localhost:' . $bad->port;
for my $case (['another port', $other->url . '/ok'], ['another name of the same host', "$alias/ok"],
	['another scheme', 'https://127.0.0.1:' . $bad->port . '/ok'], ['no scheme, another host', '//localhost:' . $other->port . '/ok']) {
	$bad->forget;
	$other->forget;
	failed(get("$url/to?$case->[1]", @secret), 'upstream_failed',
	    qr/^$at redirects to another server, https?:\/\/[\w.:]+, which is not followed$/, "to $case->[0]");
	is(scalar $other->requests, 0, "to $case->[0]: the other has got nothing");
	is(scalar $bad->requests, 1, "to $case->[0]: nor this one again");
}
for my $there ('file:///etc/passwd', 'ftp://127.0.0.1/', 'gopher://127.0.0.1:' . $other->port . '/', 'http://',
	'http://user:pw@127.0.0.1:' . $bad->port . '/ok', 'javascript:x') {
	failed(get("$url/to?$there", @secret), 'upstream_failed', qr/^$at redirects to what is no address of HTTP$|which is not followed$/,
	    "to $there");
}
is(scalar $other->requests, 0, 'the other has got nothing');
is(get("$url/to?/ok")->{url}, "$url/ok", 'within the server it is followed');
is(get("$url/to?$url/ok%23frag")->{url}, "$url/ok", 'also as a whole address');
$bad->forget;
get("$url/to?/ok", @secret);
is(scalar(grep { /geheim-4711/ && /geheim-4712/ } $bad->requests), 2, 'with what it was asked with');
is(get("$url/chain/3")->{body}, 'end', 'three times');
failed(get("$url/chain/4"), 'upstream_failed', qr/^$at redirects again and again$/, 'four times');
failed(get("$url/loop"), 'upstream_failed', qr/again and again$/, 'to itself');
is(get("$url/status/302")->{status}, 302, 'a redirect to nowhere is an answer');
is(answer(say_to('post', "$url/to?/ok", $SOME, $MAX, 'text/plain', 'x'))->{status}, 302, 'a POST is not sent on');
is(answer(say_to('delete', "$url/to?/ok", $SOME, $MAX))->{status}, 302, 'nor a DELETE');
is(get("$url/header/Retry-After%3A%20120")->{retry}, 120, 'how long to wait');
is(get("$url/header/Retry-After%3A%20soon")->{retry}, -1, 'or nothing of it');
my $date = strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime(time + 60)) =~ s/ /%20/gr;
cmp_ok(get("$url/header/Retry-After%3A%20$date")->{retry}, '>', 50, 'or by a date');
is(get("$url/header/Link%3A%20%3C%2Fx%3Fpage=2%3E%3B%20rel=next")->{next}, "$url/x?page=2", 'where it goes on');
like(get("$url/header/Link%3A%20%3C" . $other->url . "%2Fx%3Fpage=2%3E%3B%20rel=next")->{next}, qr{^\Q$url\E/header/\S+\?page=2$},
    'at this server, by whatever name');
is(get("$url/header/Retry-After%3A%201%01")->{retry}, -1, 'a header with control bytes is none');

# --- proxies and files of the user's
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
	like($said[1], qr/^ok\t/, 'with a .netrc in HOME');
	unlike(($bad->requests)[0], qr/Authorization|X-Rc/i, 'nobody reads it');
}

# --- a name server that keeps silent
SKIP: {
	skip 'only root can give a process another resolv.conf', 4 if !is_root();
	my $dns = IO::Socket::INET->new(LocalAddr => '127.77.77.77', LocalPort => 53, Proto => 'udp');
	skip 'no port 53', 4 if !$dns;
	spew("$dir/resolv.conf", "nameserver 127.77.77.77\noptions timeout:5 attempts:2\n");
	local $ENV{RES_OPTIONS};
	my @isolated = ('unshare', '-m', 'sh', '-ec', 'mount --bind "$1" /etc/resolv.conf; exec "$2"', 'sh', "$dir/resolv.conf");
	my ($status) = run_cmd(@isolated, '/bin/true');
	skip 'no mounts of its own', 4 if $status != 0;
	my $p = open2(my $out, my $in, @isolated, program('t/unit/http_probe'));
	print $in "open\t\thttp\nget\thttp://git.example.org/\t1500\t1000\nget\t$url/ok\t$SOME\t1000\n";
	my ($opened, $got, $next) = (scalar <$out>, answer(scalar <$out>), answer(scalar <$out>));
	close $in;
	waitpid $p, 0;
	failed($got, 'upstream_timeout', qr/^git\.example\.org:80 did not answer in time/, 'names that nobody answers');
	cmp_ok($got->{ms}, '<', deadline(4500), "the deadline holds ($got->{ms} ms)");
	is($next->{status}, 200, 'and nothing is left of it');
}

# --- connections
fresh();
$bad->forget;
is(get("$url/leaves")->{body}, 'bye', 'a server that closes after it promised to stay');
is(get("$url/ok")->{body}, '{"ok":true}', 'is asked again all the same') for 1 .. 5;
is(answer(say_to('post', "$url/leaves", $SOME, $MAX, 'text/plain', 'x'))->{status}, 200, 'likewise by POST');
is(answer(say_to('post', "$url/ok", $SOME, $MAX, 'text/plain', 'x'))->{status}, 200, 'and again');
# The server names notes by connection and number.
sub connections { my %c = map { m{/(\d+)\d{3}$} ? ($1 => 1) : () } glob "$bad->{log}/*"; return scalar keys %c }
$bad->forget;
get("$url/ok") for 1 .. 10;
is(connections(), 1, 'ten requests, one connection');
$bad->forget;
say_to('post', "$url/ok", $SOME, $MAX, 'text/plain', 'x') for 1 .. 3;
is(connections(), 3, 'but one of its own for each that must not be sent twice');
$bad->forget;
get("$url/ok");
print $to join("\t", 'fork', 'get', "$url/ok", $SOME, $MAX), "\n";
is(answer(scalar <$from>)->{status}, 200, 'a child asks too');
is(connections(), 2, 'by a connection of its own');
is(get("$url/ok")->{status}, 200, 'and the parent goes on');
is(connections(), 2, 'with that which it had');

# --- a server that does not answer rests
{
	fresh();
	my $port = free_port();
	my $gone = "http://127.0.0.1:$port/x";
	failed(get($gone), 'upstream_failed', qr/cannot be reached$/, "failure $_") for 1 .. 4;
	my $from_now = time;
	failed(get($gone), 'upstream_failed', qr/cannot be reached$/, 'failure 5');
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 5, ReuseAddr => 1) or die "listen: $!";
	failed(get($gone), 'upstream_failed', qr/^127\.0\.0\.1:$port did not answer several times; it is asked again in (?:[1-9]|10) seconds$/,
	    'then it is not asked');
	$listen->blocking(0);
	ok(!$listen->accept, 'not even by a connection');
	is(get("$url/ok")->{status}, 200, 'another server is');
	close $listen;
	my $got = poll(15, sub { my $g = get($gone); $g->{text} =~ /several times/ ? undef : $g });
	failed($got, 'upstream_failed', qr/cannot be reached$/, 'after a while it is tried');
	cmp_ok(time - $from_now, '>=', 9, 'which is ten seconds');
	failed(get($gone), 'upstream_failed', qr/asked again in/, 'once');
	my $back = Slipway::Hostile->start;
	fresh();
	get($back->url . '/close') for 1 .. 4;
	is(get($back->url . '/ok')->{status}, 200, 'an answer counts for all before');
	get($back->url . '/close') for 1 .. 4;
	is(get($back->url . '/status/500')->{status}, 500, 'whatever it says');
	get($back->url . '/close') for 1 .. 5;
	failed(get($back->url . '/ok'), 'upstream_failed', qr/asked again in/, 'it rests');
	$got = poll(15, sub { my $g = get($back->url . '/ok'); $g->{code} eq 'ok' ? $g : undef });
	is($got->{status}, 200, 'and is back');
	is(get($back->url . '/ok')->{status}, 200, 'for good');
	get($back->url . '/bomb-twice') for 1 .. 6;
	is(get($back->url . '/ok')->{status}, 200, 'an answer that is not taken is an answer');
	$back->stop;
}

close $to;
waitpid $pid, 0;
is($?, 0, 'the probe ends well');
done_testing();
