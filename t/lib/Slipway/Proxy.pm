# SPDX-License-Identifier: ISC
package Slipway::Proxy;

# A proxy between a client and MariaDB on a unix socket, which passes packets on and
# cuts connections by plan.
#
#   my $proxy = Slipway::Proxy->start($db->socket);
#   $proxy->plan('commit before');   the next COMMIT does not reach the server
#   $proxy->plan('commit after');    it does, and the connection is cut at once
#   $proxy->plan('commit answer');   it does, and the response is dropped
#   $proxy->plan('packet 7 after');  the client's 7th packet from now on
#   $proxy->plan('packet 7 after kill');  the same, and the client is killed
#   $proxy->plan('fetch 2 1969');    the response to the 2nd fetch from the next
#                                    prepared statement's result is this error;
#                                    0 = to the last one
#   $proxy->plan('fetch 2 1969 1');  the same of the result after the next
#   $proxy->plan('silent');          accepts connections and stays silent
#   $proxy->plan('pass');
#
# A cut or an error happens once; then the plan is `pass`.

use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Slipway::Test;
use Socket ();

my $made = 0;

sub start {
	my ($class, $to) = @_;
	my $dir = tempdir();
	my $self = bless { socket => "$dir/proxy" . ++$made, to => $to,
		plan => "$dir/proxy$made.plan", cuts => "$dir/proxy$made.cuts" }, $class;
	$self->plan('pass');
	my $listen = IO::Socket::UNIX->new(Local => $self->{socket}, Listen => 16)
	    or die "$self->{socket}: $!";
	my $parent = $$;
	$self->{pid} = fork;
	die "fork: $!" if !defined $self->{pid};
	if ($self->{pid} == 0) {
		local $SIG{PIPE} = 'IGNORE';
		eval { $self->_serve($listen, $parent) };
		POSIX::_exit(0);
	}
	close $listen;
	return $self;
}

sub socket { my ($self) = @_; return $self->{socket} }

sub plan {
	my ($self, $plan) = @_;
	spew("$self->{plan}.$$", $plan); # both the test and the proxy write it
	rename "$self->{plan}.$$", $self->{plan} or die "$self->{plan}: $!";
	return $self;
}

# How many connections were cut.
sub cuts {
	my ($self) = @_;
	my $text = slurp($self->{cuts});
	return defined $text ? ($text =~ tr/\n//) : 0;
}

sub stop {
	my ($self) = @_;
	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	return;
}

sub _serve {
	my ($self, $listen, $parent) = @_;
	$self->{select} = IO::Select->new($listen);
	while (getppid == $parent) {
		for my $fh ($self->{select}->can_read(0.2)) {
			if ($fh == $listen) { $self->_accept($listen) }
			elsif ($self->{pair}{$fh}) { $self->_pump($fh) }
		}
	}
	return;
}

sub _accept {
	my ($self, $listen) = @_;
	my $client = $listen->accept or return;
	my $plan = slurp($self->{plan});
	if ($plan eq 'silent') { push @{ $self->{mute} }, $client; return }
	my $server = IO::Socket::UNIX->new(Peer => $self->{to}) or return;
	my $pair = { client => $client, server => $server, buffer => '' };
	$self->{pair}{$_} = $pair for $client, $server;
	$self->{select}->add($client, $server);
	return;
}

sub _drop {
	my ($self, $pair) = @_;
	for my $fh (@$pair{qw(client server)}) {
		$self->{select}->remove($fh);
		delete $self->{pair}{$fh};
		close $fh;
	}
	return;
}

sub _cut {
	my ($self, $pair, $what) = @_;
	spew($self->{cuts}, (slurp($self->{cuts}) || '') . "$what\n");
	if ($what =~ / kill$/) {
		my $pid = unpack 'i', getsockopt $pair->{client}, Socket::SOL_SOCKET, Socket::SO_PEERCRED;
		kill 'KILL', $pid;
	}
	$self->_drop($pair);
	return;
}

sub _write {
	my ($fh, $data) = @_;
	my $at = 0;
	while ($at < length $data) {
		my $n = syswrite $fh, $data, length($data) - $at, $at;
		return if !$n;
		$at += $n;
	}
	return;
}

sub _pump {
	my ($self, $fh) = @_;
	my $pair = $self->{pair}{$fh};
	my $n = sysread $fh, my $data, 65536;
	if (!$n) { $self->_drop($pair); return }
	if ($fh == $pair->{server}) {
		if ($pair->{doomed}) { $self->_cut($pair, 'answer'); return }
		_write($pair->{client}, $pair->{result} ? $self->_result($pair, $data) : $data);
		return;
	}
	$pair->{buffer} .= $data;
	while (length $pair->{buffer} >= 4) {
		my $len = 4 + unpack 'V', substr($pair->{buffer}, 0, 3) . "\0";
		last if length $pair->{buffer} < $len;
		return if !$self->_packet($pair, substr $pair->{buffer}, 0, $len, '');
	}
	return;
}

# Passes one packet of the client on; false if that cut the connection.
sub _packet {
	my ($self, $pair, $packet) = @_;
	my $how = $self->_due(substr $packet, 4);
	if ($how =~ /^before/) { $self->_cut($pair, $how); return 0 }
	_write($pair->{server}, $packet);
	if ($how =~ /^after/) { $self->_cut($pair, $how); return 0 }
	$pair->{doomed} = 1 if $how eq 'answer';
	$pair->{result} = { buffer => '', state => 'head', seen => 0, at => $1, error => $2 }
	    if $how =~ /^fetch (\d+) (\d+)$/;
	return 1;
}

# What the client gets of these bytes of a result in which one fetch fails.
sub _result {
	my ($self, $pair, $data) = @_;
	my $r = $pair->{result};
	my $out = '';
	$r->{buffer} .= $data;
	while (length $r->{buffer} >= 4) {
		my $len = 4 + unpack 'V', substr($r->{buffer}, 0, 3) . "\0";
		last if length $r->{buffer} < $len;
		my $packet = substr $r->{buffer}, 0, $len, '';
		my $fails = _fetched($r, substr $packet, 4);
		if ($fails && !$r->{failed}) {
			my $error = "\xff" . pack('v', $r->{error}) . '#HY000injected';
			$out .= substr(pack('V', length $error), 0, 3) . substr($packet, 3, 1) . $error;
			$r->{failed} = 1;
			spew($self->{cuts}, (slurp($self->{cuts}) || '') . "fetch\n");
		} elsif (!$r->{failed}) {
			$out .= $packet;
		}
		if ($r->{state} eq 'end') {
			delete $pair->{result};
			return $out . $r->{buffer};
		}
	}
	return $out;
}

# Advances by a packet; whether it is the one to replace.
sub _fetched {
	my ($r, $payload) = @_;
	my $type = ord $payload;
	my $is_eof = $type == 0xfe && length $payload < 9;
	my $more;
	if ($type == 0xff) {
		$r->{state} = 'end';
		return 0;
	}
	if ($r->{state} eq 'head' && $type == 0) { # affected rows and insert id of one byte each
		$more = 8 & unpack 'v', substr $payload, 3, 2;
	} elsif ($r->{state} eq 'head') {
		$r->{state} = 'columns';
		return 0;
	} elsif ($is_eof && $r->{state} eq 'columns') {
		$r->{state} = 'rows';
		return 0;
	} elsif ($r->{state} eq 'columns') {
		return 0;
	} elsif ($is_eof) {
		$more = 8 & unpack 'v', substr $payload, 3, 2;
	}
	$r->{state} = $more ? 'head' : 'end' if defined $more;
	return defined $more && !$more if $r->{at} == 0;
	return ++$r->{seen} == $r->{at};
}

# How to cut at this packet; "" if not.
sub _due {
	my ($self, $payload) = @_;
	my $plan = slurp($self->{plan});
	my $how = '';
	if ($plan =~ /^commit (\w+)$/ && $payload eq "\x03COMMIT") {
		$how = $1;
	} elsif ($plan =~ /^packet (\d+) (\w+(?: kill)?)$/) {
		$how = $2 if $1 <= 1;
		$self->plan('packet ' . ($1 - 1) . " $2") if $1 > 1;
	} elsif ($payload =~ /^\x17/ && $plan =~ /^fetch (\d+) (\d+)(?: (\d+))?$/) {
		$how = "fetch $1 $2" if !$3;
		$self->plan("fetch $1 $2 " . ($3 - 1)) if $3;
	}
	$self->plan('pass') if $how ne '';
	return $how;
}

1;
