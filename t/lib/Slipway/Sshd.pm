# SPDX-License-Identifier: ISC
package Slipway::Sshd;

# An sshd on the loopback interface, for the account of the test.
#
#   my $sshd = Slipway::Sshd->start or plan skip_all => '…';
#   $sshd->authorize($public_half);
#   my $repository = $sshd->url('/path/to/repo');
#   spew($known_hosts, $sshd->known);

use strict;
use warnings;
use IO::Socket::INET;
use Slipway::Test;

my $made = 0;

# Undef if the shell of the account permits no login.
sub start {
	my ($class) = @_;
	my ($me, $shell) = (getpwuid $>)[0, 8];
	return if $shell =~ m{/(?:nologin|false)$};
	my $self = bless { me => $me, port => free_port(), dir => tempdir() . '/sshd' . ++$made }, $class;
	my $dir = $self->{dir};
	mkdir $dir or die "$dir: $!";
	run_cmd('ssh-keygen', '-q', '-t', $_, '-N', '', '-f', "$dir/$_") for qw(ed25519 ecdsa);
	$self->authorize;
	mkdir '/run/sshd', 0755 if is_root();
	spew("$dir/config", <<"CONF");
Port $self->{port}
ListenAddress 127.0.0.1
HostKey $dir/ed25519
HostKey $dir/ecdsa
AuthorizedKeysFile $dir/authorized
PidFile $dir/pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
CONF
	start_process({ name => "sshd$made" }, '/usr/sbin/sshd', '-D', '-e', '-f', "$dir/config");
	poll(60, sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}") })
	    or die "sshd does not listen\n";
	return $self;
}

sub port { my ($self) = @_; return $self->{port} }

# Only these public halves open the account from now on.
sub authorize {
	my ($self, @public) = @_;
	spew("$self->{dir}/authorized", join('', map { "$_\n" } @public), 0644);
	return;
}

sub url {
	my ($self, $path) = @_;
	return "ssh://$self->{me}\@127.0.0.1:$self->{port}$path";
}

# The type and the base64 of a host key.
sub host_key {
	my ($self, $type) = @_;
	return (split ' ', slurp("$self->{dir}/$type.pub"))[0, 1];
}

sub fingerprint {
	my ($self, $type) = @_;
	return (split ' ', (run_cmd('ssh-keygen', '-l', '-f', "$self->{dir}/$type.pub"))[1])[1];
}

# Its line in a known_hosts file.
sub known {
	my ($self, $type) = @_;
	return join(' ', "[127.0.0.1]:$self->{port}", $self->host_key($type || 'ed25519')) . "\n";
}

1;
