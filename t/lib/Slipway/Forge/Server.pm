# SPDX-License-Identifier: ISC
package Slipway::Forge::Server;

# A small stand-in for a Git server (Gitea, GitLab, GitHub) on a Unix socket, behind
# nginx with TLS, which sends a request when it has all of it.  Its whole state is in
# files in a directory.

use strict;
use warnings;
use IO::Socket::UNIX ();
use Cpanel::JSON::XS ();
use POSIX qw(strftime);
use Slipway::Bomb;
use Slipway::Forge::Event ();
use Slipway::Forge::Git ();
use Slipway::Forge::LFS ();
use Slipway::Forge::OAuth ();
use Slipway::Forge::Rest ();
use Slipway::Forge::State ();
use Time::HiRes qw(sleep);

my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;
my ($store, $listen);

sub read_body {
	my ($peer, $h) = @_;
	my $body = '';
	if (($h->{'transfer-encoding'} || '') =~ /chunked/i) {
		while (defined(my $line = <$peer>)) {
			my $size = hex(($line =~ /^([0-9A-Fa-f]+)/)[0] || 0);
			read($peer, $body, $size, length $body) == $size or last if $size;
			<$peer>;
			last if !$size;
		}
	} elsif ($h->{'content-length'}) {
		read $peer, $body, $h->{'content-length'};
	}
	return $body;
}

# Reads a request; returns undef if the peer sends none.
sub read_request {
	my ($peer) = @_;
	my $line = <$peer>;
	my ($method, $target) = ($line || '') =~ m{^(\S+) (\S+) HTTP/1} or return undef;
	my (%h, %query, @twice);
	while (defined(my $header = <$peer>)) {
		last if $header =~ /^\r?\n$/;
		$h{lc $1} = $2 if $header =~ /^([^:]+):\s*(.*?)\r?\n/;
	}
	my ($full, $string) = split /\?/, $target, 2;
	for my $pair (split /&/, defined $string ? $string : '') {
		my ($name, $value) = map { Slipway::Forge::OAuth::unescape($_) } split /=/, $pair, 2;
		push @twice, $name if exists $query{$name};
		$query{$name} = defined $value ? $value : '';
	}
	return { method => $method, full_path => $full, query => \%query, twice => \@twice,
		query_string => defined $string ? $string : '', headers => \%h,
		body => read_body($peer, \%h) };
}

sub write_answer {
	my ($peer, $answer) = @_;
	my ($status, $headers, $body) = @$answer;
	my %head = (Connection => 'close', Date => strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime), %$headers);
	if (ref $body || !defined $body) {
		$head{'Content-Type'} ||= 'application/json; charset=utf-8';
		$body = $json->encode($body) . "\n";
	}
	$head{'Content-Length'} = length $body if $status != 204;
	print {$peer} "HTTP/1.1 $status Answer\r\n", (map { "$_: $head{$_}\r\n" } sort keys %head), "\r\n",
	    $body;
	return;
}

# Returns the first fault that matches the request, and counts its use.
sub fault_for {
	my ($req) = @_;
	my $find = sub {
		my ($state) = @_;
		for my $fault (@{ $state->{faults} }) {
			next if $req->{path} !~ /$fault->{path}/
			    || ($fault->{method} || $req->{method}) ne $req->{method};
			next if defined $fault->{times} && $fault->{times} <= 0;
			$fault->{times}-- if defined $fault->{times};
			return { %$fault };
		}
		return undef;
	};
	return $find->($store->get) && $store->change($find);
}

sub wait_for_peer {
	my ($peer, $seconds) = @_;
	my $bits = '';
	vec($bits, fileno $peer, 1) = 1;
	select $bits, undef, undef, $seconds;
	return;
}

# Requests that take time, or whose client may leave the response unread, have a process
# of their own: those of git, and those that meet such a fault.
my %takes_time = map { $_ => 1 } qw(silent slow big gzip delay);
my $at_once = 65536; # bytes that fit into the buffers of the connection
my $git = qr{/(?:info/refs|git-upload-pack|git-receive-pack)$};
my %faults = (
	silent => sub { wait_for_peer($_[0], 120) },
	drop => sub { },
	status => sub {
		my ($peer, $fault) = @_;
		my %headers = ('Content-Type' => $fault->{type} || 'application/json',
		    %{ $fault->{headers} || {} });
		write_answer($peer, [$fault->{status} || 500, \%headers, $fault->{body}]);
	},
	slow => sub {
		my ($peer, $fault) = @_;
		my $body = $fault->{body};
		print {$peer} "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ",
		    length $body, "\r\n\r\n";
		for my $byte (split //, $body) {
			sleep($fault->{pause} || 1);
			print {$peer} $byte or return;
		}
	},
	cut => sub {
		my ($peer, $fault) = @_;
		print {$peer} "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ",
		    10 + length $fault->{body}, "\r\n\r\n", $fault->{body};
	},
	big => sub {
		my ($peer, $fault) = @_;
		my $left = $fault->{size};
		print {$peer} "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
		    . "$left\r\n\r\n";
		my $piece = '[' x 65536;
		while ($left > 0) {
			print {$peer} $left < 65536 ? substr $piece, 0, $left : $piece or return;
			$left -= 65536;
		}
	},
	gzip => sub {
		my ($peer, $fault) = @_;
		my $packed = defined $fault->{size} ? bomb('[', ' ', $fault->{size}, ']')
		    : bomb($fault->{body}, ' ', 0, '');
		write_answer($peer,
		    [200, { 'Content-Type' => 'application/json', 'Content-Encoding' => 'gzip' }, $packed]);
	},
);

# Serves one request; returns the response, or undef if it was written.
sub serve {
	my ($req, $peer) = @_;
	if ($req->{path} =~ $git) {
		return Slipway::Forge::Git::serve_git($store, $req, $peer, \&pushed);
	}
	return Slipway::Forge::LFS::answer($store, $req) || Slipway::Forge::OAuth::answer($store, $req)
	    || Slipway::Forge::Rest::answer($store, $req)
	    || [404, { 'Content-Type' => 'text/html' }, "<h1>Not found</h1>\n"];
}

# Sends the events of a push; git push does not wait for them.
sub pushed {
	my ($repo, $ref, $before, $after, $user) = @_;
	for my $hook (grep { $_->{repo} eq $repo->{id} } @{ $store->get->{hooks} }) {
		next if fork;
		Slipway::Forge::Event::deliver($store,
		    Slipway::Forge::Event::make($store, $hook, kind => 'push',
			ref => $ref, before => $before, after => $after, user => $user));
		POSIX::_exit(0);
	}
	return;
}

# Serves the request of a connection; in a child process if that takes time.
sub talk {
	my ($peer) = @_;
	my $req = read_request($peer) or return;
	my $prefix = $store->get->{prefix};
	my $in = $req->{full_path} =~ s{^\Q$prefix\E(?=/)}{}r;
	my $out = $req->{full_path} !~ m{^\Q$prefix\E/};
	$req->{raw_path} = $in;
	$req->{path} = Slipway::Forge::Rest::unescape($in);
	$store->note('requests', { %$req, at => Time::HiRes::time() });
	return write_answer($peer, [404, {}, { message => 'not installed here' }]) if $out;
	my $fault = fault_for($req);
	my $is_child = $req->{path} =~ $git
	    || $fault && ($takes_time{ $fault->{kind} } || length $fault->{body} > $at_once);
	if ($is_child) {
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		return if $pid != 0;
		close $listen;
	}
	eval { answer($peer, $req, $fault); 1 } or failed($@);
	POSIX::_exit(0) if $is_child;
	return;
}

sub answer {
	my ($peer, $req, $fault) = @_;
	return $faults{ $fault->{kind} }->($peer, $fault) if $fault && $faults{ $fault->{kind} };
	sleep $fault->{seconds} if $fault && $fault->{kind} eq 'delay';
	my $answer = serve($req, $peer) or return;
	return if $fault && $fault->{kind} eq 'lost';
	if ($fault && $fault->{kind} eq 'headers') {
		$answer->[1]{$_} = $fault->{headers}{$_} for keys %{ $fault->{headers} };
	}
	write_answer($peer, $answer);
	return;
}

sub failed {
	my ($why) = @_;
	$store->note('complaints', "the stand-in failed: $why");
	warn $why;
	return;
}

# Serves a directory until its parent has ended.
sub run {
	my ($dir) = @_;
	my $parent = getppid;
	$store = Slipway::Forge::State->open($dir);
	unlink "$dir/forge.sock";
	$listen = IO::Socket::UNIX->new(Local => "$dir/forge.sock", Listen => 128)
	    or die "$dir/forge.sock: $!";
	chmod 0777, "$dir/forge.sock" or die "$dir/forge.sock: $!";
	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	while (getppid == $parent) {
		my $peer = $listen->accept or next;
		binmode $peer;
		$peer->autoflush(1);
		eval { talk($peer); 1 } or failed($@);
		close $peer;
		1 while waitpid(-1, POSIX::WNOHANG()) > 0; # those that ended while CHLD was not ignored
	}
	return;
}

1;
