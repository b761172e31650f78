# SPDX-License-Identifier: ISC
package Slipway::Hostile;

# An HTTP server that misbehaves; the path of the request selects how (%does).
# It stores each request, unchanged, in a separate file.
#   my $bad = Slipway::Hostile->start;  $bad->url . '/drip'
#   $bad->requests    texts, oldest first
# Listening sockets without a server:
#   Slipway::Hostile->silent   accepts connections, and never responds
#   Slipway::Hostile->full     accepts none: its queue is full

use strict;
use warnings;
use IO::Compress::Gzip qw(gzip);
use IO::Socket::INET;
use Slipway::Bomb;
use Slipway::Test;
use Socket qw(MSG_PEEK);
use Time::HiRes qw(sleep);

my $made = 0;

sub start {
	my ($class) = @_;
	my $self = bless { port => free_port(), log => tempdir() . '/hostile.' . ++$made }, $class;
	mkdir $self->{log} or die "$self->{log}: $!";
	$self->{pid} = start_process({ name => "hostile.$made.out" }, $^X, '-I' . srcdir() . '/t/lib',
	    '-MSlipway::Hostile',
	    '-e', 'Slipway::Hostile::serve(@ARGV)', $self->{port}, $self->{log});
	poll(10, sub { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) })
	    or die 'the hostile server does not listen';
	return $self;
}

sub stop { my ($self) = @_; stop_process($self->{pid}); return }
sub port { my ($self) = @_; return $self->{port} }
sub url { my ($self, $host) = @_; return 'http://' . ($host || '127.0.0.1') . ":$self->{port}" }
sub requests {
	my ($self) = @_;
	return map { slurp($_) } sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } glob "$self->{log}/*";
}
sub forget { my ($self) = @_; unlink glob "$self->{log}/*"; return }

sub silent {
	my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100) or die "listen: $!";
	return ($s, 'http://127.0.0.1:' . $s->sockport);
}

# The kernel drops connections while the queue is full.
sub full {
	my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
	my @waiting = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->sockport,
	    Blocking => 0) } 1 .. 8;
	return ([$s, @waiting], 'http://127.0.0.1:' . $s->sockport);
}

# --- the server's process

sub head { my ($status, @h) = @_; return join("\r\n", "HTTP/1.1 $status", @h) . "\r\n\r\n" }
sub full_answer {
	my ($status, $body, @h) = @_;
	return head($status, 'Content-Length: ' . length $body, @h) . $body;
}
sub endless {
	my ($to, $piece) = @_;
	while (defined syswrite $to, $piece) { }
	return;
}
sub zipped {
	my ($data) = @_;
	gzip(\$data => \my $less, -Level => 9);
	return $less;
}

# Path => a function of (socket, rest of the path, request); the connection stays
# open if it returns true.
my %does = (
	ok => sub { print { $_[0] } full_answer('200 OK', '{"ok":true}',
	    'Content-Type: Application/JSON; charset=utf-8'); 1 },
	empty => sub { print { $_[0] } head('204 No Content'); 1 },
	echo => sub { print { $_[0] } full_answer('200 OK', $_[2], 'Content-Type: text/plain'); 1 },
	# Announces a persistent connection, and closes it.
	leaves => sub { print { $_[0] } full_answer('200 OK', 'bye'); 0 },
	status => sub { print { $_[0] } full_answer("$_[1] As Asked", 'words'); 1 },
	header => sub { print { $_[0] } full_answer('429 Too Many', '', unescape($_[1])); 1 },
	to => sub { print { $_[0] } full_answer('302 Found', 'there', 'Location: ' . unescape($_[1])); 1 },
	301 => sub { print { $_[0] } full_answer('301 Moved', '', 'Location: ' . unescape($_[1])); 1 },
	chain => sub { print { $_[0] } $_[1]
		? full_answer('307 On', '', 'Location: ' . ($_[1] - 1)) : full_answer('200 OK', 'end'); 1 },
	loop => sub { print { $_[0] } full_answer('301 Moved', '', 'Location: /loop'); 1 },
	silent => sub { sysread $_[0], my $x, 1; 0 },
	close => sub { 0 },
	garbage => sub { print { $_[0] } "\x16\x03\x01 what is this\0\r\n\r\n"; 0 },
	interim => sub { endless($_[0], "HTTP/1.1 103 Early\r\nX: " . 'x' x 900 . "\r\n\r\n"); 0 },
	drip => sub {
		for my $c (split //, full_answer('200 OK', 'x' x 1000)) {
			last if !defined syswrite $_[0], $c;
			sleep 1;
		}
		0;
	},
	'drip-body' => sub {
		syswrite $_[0], head('200 OK', 'Content-Length: 1000');
		while (defined syswrite $_[0], 'x') { sleep 1 }
		0;
	},
	truncated => sub { print { $_[0] } head('200 OK', 'Content-Length: 1000') . '{"half":'; 0 },
	'chunk-cut' => sub { print { $_[0] } head('200 OK', 'Transfer-Encoding: chunked')
		. "100\r\n{\"half\":"; 0 },
	'short-length' => sub { print { $_[0] } head('200 OK', 'Content-Length: 4') . 'trueHTTP/1.1 200 OK';
		0 },
	'bad-length' => sub { print { $_[0] } head('200 OK', 'Content-Length: -5') . 'true'; 0 },
	endless => sub { syswrite $_[0], head('200 OK'); endless($_[0], 'x' x 65536); 0 },
	'endless-chunks' => sub {
		syswrite $_[0], head('200 OK', 'Transfer-Encoding: chunked');
		endless($_[0], "8000\r\n" . 'x' x 0x8000 . "\r\n");
		0;
	},
	'five-gigabytes' => sub { syswrite $_[0], head('200 OK', 'Content-Length: 5368709120');
		endless($_[0], 'x' x 65536); 0 },
	bomb => sub {
		my $bomb = bomb('', "\0", 200 << 20, '');
		print { $_[0] } full_answer('200 OK', $bomb, 'Content-Encoding: gzip');
		1;
	},
	'bomb-twice' => sub {
		my $bomb = bomb('', "\0", 200 << 20, '');
		print { $_[0] } full_answer('200 OK', zipped($bomb), 'Content-Encoding: gzip, gzip');
		1;
	},
	zipped => sub {
		print { $_[0] } full_answer('200 OK', zipped("\0" x 1000), 'Content-Encoding: gzip');
		1;
	},
	unzippable => sub { print { $_[0] } full_answer('200 OK', 'plain after all',
	    'Content-Encoding: gzip'); 1 },
	headers => sub { syswrite $_[0], "HTTP/1.1 200 OK\r\n";
		endless($_[0], "X-Flood: " . 'x' x 100 . "\r\n"); 0 },
	'long-header' => sub { syswrite $_[0], "HTTP/1.1 200 OK\r\nX-Long: "; endless($_[0], 'x' x 4096); 0 },
);

sub unescape { my ($t) = @_; $t =~ s/%([0-9a-fA-F]{2})/chr hex $1/ge; return $t }

sub serve {
	my ($port, $log) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 100,
	    ReuseAddr => 1)
	    or die "listen: $!";
	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	my $n = 0;
	while (my $peer = $listen->accept) {
		$n++;
		next if fork;
		close $listen;
		# A child that outlives the test ends by itself.
		alarm 1800;
		$peer->autoflush(1);
		my $at = 0;
		1 while answer($peer, sprintf '%s/%d%03d', $log, $n, ++$at);
		# Closing with unread input would reset the connection and lose the output.
		shutdown $peer, 1;
		POSIX::_exit(0);
	}
	return;
}

sub answer {
	my ($peer, $note) = @_;
	my $text = '';
	# A TLS client gets a response in plain text.
	recv $peer, my $first, 1, MSG_PEEK;
	if ($first eq "\x16") {
		print $peer full_answer('400 No TLS', 'no TLS');
		return 0;
	}
	while ($text !~ /\r\n\r\n/) {
		defined(my $line = <$peer>) or return 0;
		$text .= $line;
	}
	if ($text =~ /^Content-Length: *(\d+)/mi && $1 > 0) {
		read $peer, my ($body), $1;
		$text .= $body;
	}
	spew("$note.part", $text);
	rename "$note.part", $note;
	my ($path) = $text =~ m{^\S+ (\S+) };
	$path =~ s{^http://[^/]*}{};
	my ($what, $rest) = $path =~ m{^/([^/?]+)(?:[/?](.*))?$};
	my $do = $does{$what || ''};
	return $do->($peer, $rest, $text) if $do;
	print $peer full_answer('404 Not Found', 'no');
	return 1;
}

1;
