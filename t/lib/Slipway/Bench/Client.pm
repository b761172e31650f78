# SPDX-License-Identifier: ISC
package Slipway::Bench::Client;

# Clients of the benchmark: wrk for load, and one connection with TLS that sends a
# request in one piece. (HTTP::Tiny sends head and body separately, which costs a
# delayed acknowledgment of 40 ms.)
#
#   my $client = Slipway::Bench::Client->new($api);
#   my $got = $client->request(GET => '/api/deployments/1');   # { status, headers, body }
#   my $round = $client->load('/api/projects/1', connections => 16, seconds => 4);
#   # { rate, p50, p99 } in requests a second and milliseconds

use strict;
use warnings;
use IO::Socket::SSL ();
use Slipway::Test;

# undef, or why load() cannot work.
sub missing {
	my $found = grep { -x "$_/wrk" } split /:/, $ENV{PATH};
	return $found ? undef : 'wrk is missing: apt-get install wrk';
}

sub new {
	my ($class, $api) = @_;
	return bless { api => $api, token => $api->token('admin') }, $class;
}

sub _connect {
	my ($self) = @_;
	my ($port) = $self->{api}->url =~ /:(\d+)$/;
	return IO::Socket::SSL->new(PeerAddr => "localhost:$port", SSL_ca_file => $self->{api}->cacert)
	    || die "connect: $IO::Socket::SSL::SSL_ERROR";
}

sub request {
	my ($self, $method, $path, $body) = @_;
	my $got;
	# nginx closes a connection after a thousand requests
	for my $is_new ($self->{socket} ? (0, 1) : 1) {
		$self->{socket} = $self->_connect if $is_new;
		last if $got = $self->_send($method, $path, $body);
		die "$method $path: the connection was closed" if $is_new;
	}
	return $got;
}

sub _send {
	my ($self, $method, $path, $body) = @_;
	local $SIG{PIPE} = 'IGNORE';
	my $socket = $self->{socket};
	my $more = defined $body
	    ? "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n" : '';
	print $socket "$method $path HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $self->{token}\r\n"
	    . "$more\r\n" . ($body // '') or return undef;
	my $line = <$socket>;
	return undef if !defined $line;
	my ($status) = $line =~ /^HTTP\S+ (\d+)/;
	my %headers;
	while (defined($line = <$socket>) && $line =~ /^([^:]+):\s*(.*?)\r\n/) { $headers{ lc $1 } = $2 }
	my $content = ($headers{'transfer-encoding'} || '') eq 'chunked' ? _chunks($socket)
	    : _bytes($socket, $headers{'content-length'} || 0);
	delete $self->{socket} if ($headers{connection} || '') eq 'close';
	return { status => $status, headers => \%headers, body => $content };
}

sub _bytes {
	my ($socket, $n) = @_;
	my $text = '';
	while (length $text < $n) {
		read $socket, $text, $n - length $text, length $text or die 'the response ends early';
	}
	return $text;
}

sub _chunks {
	my ($socket) = @_;
	my $text = '';
	while (my $n = hex((<$socket> // die 'the response ends early') =~ /^([0-9a-f]+)/i ? $1 : 0)) {
		$text .= _bytes($socket, $n);
		<$socket>;
	}
	<$socket>;
	return $text;
}

my %ms = (us => 0.001, ms => 1, s => 1000, m => 60_000);

# Loads a path: connections, seconds, body (then the requests are POSTs).
sub load {
	my ($self, $path, %opt) = @_;
	my @post = defined $opt{body} ? ('-s', srcdir() . '/t/bench/post.lua') : ();
	my ($status, $out, $err) = run_cmd({ env => { BENCH_BODY => $opt{body} } }, 'wrk', '-t1',
		"-c$opt{connections}", "-d$opt{seconds}s", '--latency', @post, '-H',
		"Authorization: Bearer $self->{token}", $self->{api}->url . $path);
	my ($rate) = $out =~ m{Requests/sec:\s+([\d.]+)};
	die "wrk: $out$err" if $status != 0 || !$rate;
	my ($bad) = $out =~ /Non-2xx or 3xx responses: (\d+)/;
	die "$path: $bad responses were errors\n" if $bad;
	my %p = map { my ($n, $unit) = $out =~ /^\s+$_%\s+([\d.]+)(us|ms|s|m)$/m; ("p$_" => $n * $ms{$unit}) }
	    50, 99;
	return { rate => $rate, %p };
}

1;
