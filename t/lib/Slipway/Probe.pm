# SPDX-License-Identifier: ISC
package Slipway::Probe;

# A program of t/unit that runs the command of each line it reads and prints a
# line about it.
#
#   my $probe = Slipway::Probe->start($conf_file);     t/unit/db_probe
#   my $probe = Slipway::Probe->start($conf_file, 'queue_probe');
#   my $answer = $probe->ask('add one');    "ok 1", or "err unavailable 2013 | …"
#   my $forge = Slipway::Probe->start(undef, 'forge_probe');
#   my ($status, $out) = $forge->run($conf_file, 'whoami', $token);

use strict;
use warnings;
use IO::Select;
use IPC::Open2;
use Slipway::Test;
use Time::HiRes qw(time);

our $deadline = 600;

# Creates the tables that db_probe writes to.
sub tables {
	my ($class, $db) = @_;
	$db->sql(<<'SQL');
CREATE TABLE probe_log (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    text VARCHAR(40) NOT NULL, KEY (text)) CHARACTER SET utf8mb4;
CREATE TABLE counter (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL);
INSERT INTO counter VALUES (1, 0), (2, 0);
SQL
	return;
}

# How many rows db_probe has written under this text.
sub written {
	my ($class, $db, $text) = @_;
	return $db->sql("SELECT COUNT(*) FROM probe_log WHERE text = '$text'");
}

sub start {
	my ($class, $conf, $name) = @_;
	my $self = bless {}, $class;
	my $program = program('t/unit/' . ($name || 'db_probe'));
	$self->{pid} = open2($self->{out}, $self->{in}, $program, $conf // ());
	$self->{buffer} = '';
	return $self;
}

sub send {
	my ($self, $line) = @_;
	print { $self->{in} } "$line\n";
	$self->{in}->flush;
	$self->{sent} = stopwatch();
	return $self;
}

# The next line; "" if the program prints none in time.
sub receive {
	my ($self) = @_;
	my $end = time + deadline($deadline);
	my $ready = IO::Select->new($self->{out});
	my $at;
	while (($at = index $self->{buffer}, "\n") < 0) {
		my $left = $end - time;
		return '' if $left <= 0 || !$ready->can_read($left);
		return '' if !sysread $self->{out}, $self->{buffer}, 4096, length $self->{buffer};
	}
	my $line = substr $self->{buffer}, 0, $at + 1, '';
	chomp $line;
	$self->{took} = $self->{sent}->();
	return $line;
}

# Sends a line and returns the answer.
sub ask {
	my ($self, $line) = @_;
	return $self->send($line)->receive;
}

# Has forge_probe run a command; its exit status and output.
sub run {
	my ($self, @words) = @_;
	print { $self->{in} } map { "$_\0" } scalar @words, @words;
	$self->{in}->flush;
	while (1) {
		return ($2, $1) if $self->{buffer} =~ s/\A(.*?)\0(\d+)\n//s;
		sysread $self->{out}, $self->{buffer}, 65536, length $self->{buffer}
		    or die 'forge_probe has ended';
	}
}

# How many seconds the last line took.
sub took { my ($self) = @_; return $self->{took} }
sub pid { my ($self) = @_; return $self->{pid} }

# Ends the program; its exit status, as in $?.
sub stop {
	my ($self) = @_;
	close $self->{in};
	waitpid $self->{pid}, 0;
	return $?;
}

1;
