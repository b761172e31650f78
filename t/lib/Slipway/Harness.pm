# SPDX-License-Identifier: ISC
package Slipway::Harness;

# A plugin of prove(1) that starts a test in a copy of this process, which has loaded
# the modules that most tests use: loading them takes perl a tenth of a second.
# Otherwise, a test finds everything as in a perl of its own.
#
#   PERL5LIB=$PWD/t/lib prove -PSlipway::Harness t/*.t

use strict;
use warnings;
use Cpanel::JSON::XS ();
use DBI ();
use DBD::MariaDB ();
use Digest::SHA ();
use File::Temp ();
use HTTP::Tiny ();
use IO::Socket::INET ();
use IO::Socket::SSL ();
use IO::Socket::UNIX ();
use POSIX ();
use TAP::Parser::IteratorFactory ();
use Time::HiRes ();
BEGIN {
	require Test2::API;
	Test2::API::test2_start_preload();
	require Test::More;
	Test2::API::test2_stop_preload();
	package main;
	require 'syscall.ph';
}
use parent 'TAP::Parser::SourceHandler';

TAP::Parser::IteratorFactory->register_handler(__PACKAGE__);

my %taps; # the pipes from the tests that run

# More than TAP::Parser::SourceHandler::Perl bids.
sub can_handle {
	my (undef, $source) = @_;
	my $file = $source->meta->{file};
	return $file && $file->{lc_ext} eq '.t' ? 1 : 0;
}

sub make_iterator {
	my (undef, $source) = @_;
	my $pid = open my $tap, '-|';
	die "fork: $!" if !defined $pid;
	if ($pid != 0) {
		return Slipway::Harness::Iterator->new({ tap => $taps{$pid} = $tap,
			ended => sub { delete $taps{$pid} } });
	}
	close $_ for values %taps;
	_become(${ $source->raw });
}

# Runs a test, and ends this process as perl would.
sub _become {
	my ($file) = @_;
	@ARGV = ();
	$^T = time;
	srand;
	Test2::API::test2_post_preload_reset();
	Test2::API::test2_reset_io();
	delete $ENV{T2_IN_PRELOAD};
	$0 = $file =~ m{^\.{0,2}/} ? $file : "./$file";
	$! = $? = 0;
	do $0;
	my $status = $! || $? >> 8 || 255; # as die in perlfunc(1)
	exit 0 if $@ eq '';
	print {*STDERR} $@;
	exit $status;
}

package Slipway::Harness::Iterator;
use parent -norequire, 'TAP::Parser::Iterator';

sub _initialize {
	my ($self, $args) = @_;
	@$self{qw(tap ended)} = @$args{qw(tap ended)};
	return $self;
}

sub next_raw {
	my ($self) = @_;
	return if !$self->{tap};
	my $line = readline $self->{tap};
	if (defined $line) {
		chomp $line;
		return $line;
	}
	$self->{ended}->();
	close delete $self->{tap};
	$self->{wait} = $?;
	return;
}

sub get_select_handles { my ($self) = @_; return grep { defined } $self->{tap} }
sub wait { my ($self) = @_; return $self->{wait} }
sub exit { my ($self) = @_; return defined $self->{wait} ? $self->{wait} >> 8 : undef }

1;
