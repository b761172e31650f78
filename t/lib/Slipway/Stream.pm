# SPDX-License-Identifier: ISC
package Slipway::Stream;

# Requests whose responses come later, or bit by bit, many at the same time.
#
#   my $stream = Slipway::Stream->open($api, '/api/events');
#   $stream->wait_for(qr/"status":"running"/), $stream->text
#   $stream->has_ended, $stream->events
#   my $reader = Slipway::Stream->open($api, "/api/deployments/1/log?wait=20");
#   $reader->is_open; $reader->answer->{status}, $reader->answer->{headers}, …{body}

use strict;
use warnings;
use IO::Socket::SSL ();
use Slipway::Test;

# Sends a request, with the token of an admin unless a header says otherwise.
sub open {
	my ($class, $api, $path, %headers) = @_;
	my ($port) = $api->url =~ /(\d+)$/;
	my $s = IO::Socket::SSL->new(PeerAddr => '127.0.0.1', PeerPort => $port, SSL_hostname => 'localhost',
	    SSL_ca_file => $api->cacert) or die "no connection: $IO::Socket::SSL::SSL_ERROR\n";
	$headers{Authorization} = 'Bearer ' . $api->token if !exists $headers{Authorization};
	$s->blocking(0);
	my $self = bless { s => $s }, $class;
	$headers{Host} = "localhost:$port";
	$self->{head} = join '', map { "$_: $headers{$_}\r\n" } sort keys %headers;
	$self->again($path);
	return $self;
}

# Sends a request with the same headers on the same connection, after the response to
# the one before; whether the connection is still open.
sub again {
	my ($self, $path) = @_;
	return 0 if $self->{ended};
	@{$self}{qw(text ended)} = ('', 0);
	local $SIG{PIPE} = 'IGNORE';
	return print { $self->{s} } "GET $path HTTP/1.1\r\n$self->{head}\r\n";
}

# All that has arrived, with the head.
sub text {
	my ($self) = @_;
	while (!$self->{ended}) {
		my $n = sysread $self->{s}, my $piece, 65536;
		last if !defined $n && $IO::Socket::SSL::SSL_ERROR == IO::Socket::SSL::SSL_WANT_READ();
		$self->{ended} = 1 if !$n;
		$self->{text} .= $piece if $n;
	}
	return $self->{text};
}

sub wait_for { my ($self, $pattern) = @_; return poll(60, sub { $self->text =~ $pattern }) }
# Whether the stream ends: its connection, or its last chunk.
sub has_ended { my ($self) = @_; return poll(60, sub { $self->text =~ /^0\r$/m || $self->{ended} }) }
sub events { my ($self) = @_; return $self->text =~ /^data: (\{.*\})$/mg }
# The ids of the deployments that events were about.
sub ids { my ($self) = @_; my %n; return grep { !$n{$_}++ } map { /"id":(\d+)/ } $self->events }
sub handle { my ($self) = @_; return $self->{s} }
sub close { my ($self) = @_; CORE::close $self->{s}; return }

# Whether the connection was closed before a response.
sub is_lost { my ($self) = @_; return $self->text eq '' && $self->{ended} }
# Whether no response has arrived.
sub is_open { my ($self) = @_; return $self->text eq '' && !$self->{ended} }

# The response when it is complete; its status is 0 if it does not come.
sub answer {
	my ($self) = @_;
	poll(60, sub { $self->complete });
	return $self->complete || { status => 0, headers => {}, body => '' };
}

# The response if it is complete by now, else undef.
sub complete {
	my ($self) = @_;
	my ($head, $body) = split /\r\n\r\n/, $self->text, 2;
	return undef if !defined $body;
	my %headers = map { /^([^:]+): (.*)/ ? (lc $1 => $2) : () } split /\r\n/, $head;
	return undef if length $body < ($headers{'content-length'} // 0) && !$self->{ended};
	my ($status) = $head =~ /\AHTTP\S+ (\d+)/;
	return { status => $status, headers => \%headers, body => $body };
}

1;
