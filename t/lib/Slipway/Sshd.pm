# SPDX-License-Identifier: ISC
package Slipway::Sshd;

# An sshd on the loopback interface, for the account of the test.
#
#   my $sshd = Slipway::Sshd->start or plan skip_all => '…';
#   $sshd->authorize($public_half);
#   my $repository = $sshd->url('/path/to/repo');
#   spew($known_hosts, $sshd->known);
#   my $pid = sshd_start($dir, $port, $authorized_keys, $host_key);   # without the rest

use strict;
use warnings;
use Exporter 'import';
use IO::Socket::INET;
use Slipway::Test;

our @EXPORT = qw(sshd_start);

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
	sshd_start($dir, $self->{port}, "$dir/authorized", "$dir/ed25519", "$dir/ecdsa");
	return $self;
}

# Starts sshd on this port of loopback, with a list of public keys and its own keys, and
# waits until it listens; its pid.  The key exchange that both sides prefer takes ten
# times as long as this one.  SHLVL makes bash take itself for an inner shell, which does
# not read ~/.bashrc.
sub sshd_start {
	my ($dir, $port, $authorized, @keys) = @_;
	mkdir '/run/sshd', 0755 if is_root();
	spew("$dir/sshd_config", <<"CONF" . join '', map { "HostKey $_\n" } @keys);
Port $port
ListenAddress 127.0.0.1
AuthorizedKeysFile $authorized
PidFile $dir/sshd.pid
KexAlgorithms curve25519-sha256
SetEnv SHLVL=1
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
CONF
	my $pid = start_process({ name => 'sshd' }, '/usr/sbin/sshd', '-D', '-e', '-f',
	    "$dir/sshd_config");
	poll(60, sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") })
	    or die "sshd does not listen\n";
	return $pid;
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
