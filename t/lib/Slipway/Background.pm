# SPDX-License-Identifier: ISC
package Slipway::Background;

# Code that runs in a child process while the test goes on.
#
#   my $run = background(sub { return $api->get('/api/health')->{status} });
#   $run->ended          whether the code has returned
#   $run->result         waits for the child; what the code returned, as text
#   delete $api->{http}  in the code: a connection must not have two owners

use strict;
use warnings;
use Exporter 'import';
use POSIX ();
use Slipway::Test;

our @EXPORT = qw(background);

my $started = 0;

# Starts the code; it must return one string.
sub background {
	my ($code) = @_;
	my $file = tempdir() . '/background' . ++$started;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		my $text = eval { $code->() };
		spew("$file.new", defined $text ? $text : "died: $@");
		rename "$file.new", $file;
		POSIX::_exit(0);
	}
	return bless { pid => $pid, file => $file }, __PACKAGE__;
}

sub pid { my ($self) = @_; return $self->{pid} }
sub ended { my ($self) = @_; return -e $self->{file} }

# The string; undef if the child was killed before it returned.
sub result {
	my ($self) = @_;
	waitpid $self->{pid}, 0;
	return slurp($self->{file});
}

1;
