# SPDX-License-Identifier: ISC
package Slipway::FastCGI;

# A FastCGI client that can also do what nginx never does: send half a request,
# declare wrong lengths, go silent.
#
#   my $c = Slipway::FastCGI->connect($socket_path);
#   $c->send(request(REQUEST_METHOD => 'GET', REQUEST_URI => '/health'));
#   my $got = $c->answer(5);      { status, headers, body, ended } or undef

use strict;
use warnings;
use Errno ();
use Exporter 'import';
use IO::Select ();
use IO::Socket::UNIX ();
use Slipway::Test;
use Slipway::Test qw(deadline);
use Time::HiRes qw(time);

our @EXPORT_OK = qw(record begin params body request ask);

use constant { BEGIN_REQUEST => 1, END_REQUEST => 3, PARAMS => 4, STDIN_ => 5, STDOUT_ => 6 };

sub record {
	my ($type, $content, %o) = @_;
	my $len = exists $o{length} ? $o{length} : length $content;
	return pack('CCnnCC', exists $o{version} ? $o{version} : 1, $type,
	    exists $o{id} ? $o{id} : 1, $len, $o{padding} || 0, 0) . $content . "\0" x ($o{padding} || 0);
}

sub begin {
	my ($role, $flags) = @_;
	return record(BEGIN_REQUEST, pack('nCx5', defined $role ? $role : 1, $flags || 0));
}

sub _size { my ($n) = @_; return $n < 128 ? pack('C', $n) : pack('N', $n | 0x80000000) }

# Name and value pairs, in records of at most 32 KiB, and the empty one.
sub params {
	my (@pairs) = @_;
	my ($text, $out) = ('', '');
	while (my ($name, $value) = splice @pairs, 0, 2) {
		$text .= _size(length $name) . _size(length $value) . $name . $value;
	}
	$out .= record(PARAMS, substr $text, 0, 32768, '') while length $text;
	return $out . record(PARAMS, '');
}

sub body {
	my ($text) = @_;
	my $out = '';
	$out .= record(STDIN_, substr $text, 0, 32768, '') while length $text;
	return $out . record(STDIN_, '');
}

# A whole request; BODY is its body, CONTENT_LENGTH follows from it.
sub request {
	my %p = (REQUEST_METHOD => 'GET', REQUEST_URI => '/health', @_);
	my $text = delete $p{BODY};
	$p{CONTENT_LENGTH} = length $text if defined $text && !exists $p{CONTENT_LENGTH};
	return begin() . params(map { $_ => $p{$_} } sort keys %p) . body(defined $text ? $text : '');
}

sub connect {
	my ($class, $path) = @_;
	my $s = IO::Socket::UNIX->new(Peer => $path) or return undef;
	return bless { s => $s }, $class;
}

sub handle { my ($self) = @_; return $self->{s} }

sub send {
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes) {
		my $n = syswrite $self->{s}, $bytes;
		return 0 if !defined $n;
		substr $bytes, 0, $n, '';
	}
	return 1;
}

sub _read {
	my ($self, $len, $end) = @_;
	my $got = '';
	while (length $got < $len) {
		my $left = $end - time;
		return undef if $left <= 0;
		next if !IO::Select->new($self->{s})->can_read($left); # a signal or the deadline
		my $n = sysread $self->{s}, $got, $len - length $got, length $got;
		next if !defined $n && $!{EINTR};
		return undef if !$n;
	}
	return $got;
}

# The response; undef if the connection ends or the time expires before its first
# byte. `ended` is true if the response was complete.
sub answer {
	my ($self, $seconds) = @_;
	my $end = time + ($seconds ? deadline($seconds) : 600);
	my ($out, $ended) = ('', 0);
	while (1) {
		my $head = $self->_read(8, $end);
		last if !defined $head;
		my (undef, $type, undef, $len, $pad) = unpack 'CCnnC', $head;
		my $content = $self->_read($len + $pad, $end);
		last if !defined $content;
		$out .= substr $content, 0, $len if $type == STDOUT_;
		if ($type == END_REQUEST) { $ended = 1; last }
	}
	return undef if !$ended && $out eq '';
	my ($head, $text) = split /\r\n\r\n/, $out, 2;
	my %h = map { my ($k, $v) = split /: /, $_, 2; lc $k => $v } split /\r\n/, defined $head ? $head : '';
	my ($status) = ($h{status} || '') =~ /^(\d+)/;
	return { status => $status || 0, headers => \%h, body => defined $text ? $text : '',
		ended => $ended };
}

# Sends one request and returns its response.
sub ask {
	my ($path, %p) = @_;
	my $seconds = delete $p{SECONDS};
	my $c = __PACKAGE__->connect($path) or return undef;
	$c->send(request(%p)) or return undef;
	my $got = $c->answer($seconds);
	on_failure('the last answer' => sub {
		return ($p{REQUEST_URI} || '') . ': '
		    . ($got ? "$got->{status} " . substr $got->{body}, 0, 600 : 'none');
	});
	return $got;
}

1;
