# SPDX-License-Identifier: ISC
package Slipway::Probe;

# A client of the database that does what it is told: t/unit/db_probe.
#
#   my $probe = Slipway::Probe->start($conf_file);
#   my $answer = $probe->ask('add one');    "ok 1", or "err unavailable 2013 | …"

use strict;
use warnings;
use IO::Select;
use IPC::Open2;
use Slipway::Test;
use Time::HiRes qw(time);

our $deadline = 60;

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

sub start {
	my ($class, $conf) = @_;
	my $self = bless {}, $class;
	$self->{pid} = open2($self->{out}, $self->{in}, program('t/unit/db_probe'), $conf);
	$self->{buffer} = '';
	return $self;
}

sub send {
	my ($self, $line) = @_;
	print { $self->{in} } "$line\n";
	$self->{in}->flush;
	$self->{sent} = time;
	return $self;
}

# One line; "" if none came in time.
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
	$self->{took} = time - $self->{sent};
	return $line;
}

sub ask {
	my ($self, $line) = @_;
	return $self->send($line)->receive;
}

# Seconds that the last answer took.
sub took { my ($self) = @_; return $self->{took} }
sub pid { my ($self) = @_; return $self->{pid} }

# Its exit status, as in $?.
sub stop {
	my ($self) = @_;
	close $self->{in};
	waitpid $self->{pid}, 0;
	return $?;
}

1;
