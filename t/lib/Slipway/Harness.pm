# SPDX-License-Identifier: ISC
package Slipway::Harness;

# A plugin of prove(1) that starts a test in a copy of this process, which has loaded
# the modules that most tests use: loading them takes perl a tenth of a second.
# Otherwise, a test finds everything as in a perl of its own.
#
# A test that does not end in time (600 s times SLIPWAY_TEST_SLOW, or
# SLIPWAY_TEST_DEADLINE) fails, and whatever it started is ended, so that the run goes on.
#
#   PERL5LIB=$PWD/t/lib prove -PSlipway::Harness t/*.t

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Errno ();
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

# More than TAP::Parser::SourceHandler::Perl and Executable bid.
sub can_handle {
	my (undef, $source) = @_;
	my $file = $source->meta->{file};
	return $file && ($file->{lc_ext} eq '.t' || $file->{execute} && $file->{dir} =~ m{t/unit/?$}) ? 1 : 0;
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
	_supervise(${ $source->raw });
}

# Runs a test in a child process, and ends it when its time is up.
sub _supervise {
	my ($file) = @_;
	my $seconds = $ENV{SLIPWAY_TEST_DEADLINE} || 600 * ($ENV{SLIPWAY_TEST_SLOW} || 1);
	my $late = 0;
	$ENV{SLIPWAY_TEST_MARK} = my $mark = join '-', $$, time, int rand 1e9;
	my $test = fork;
	die "fork: $!" if !defined $test;
	if ($test == 0) {
		_become($file) if $file =~ /\.t$/;
		exec { $file } $file;
		die "$file: $!";
	}
	local $SIG{ALRM} = sub { $late = 1; _end($test, $mark) };
	alarm $seconds;
	my $status = 0;
	while (waitpid($test, 0) != $test) { last if !$!{EINTR} }
	$status = $?;
	alarm 0;
	if ($late) {
		syswrite STDOUT, "\nnot ok - $file ends within $seconds s\n";
		syswrite STDERR, "# $file did not end within $seconds s: it and what it started were ended\n";
		POSIX::_exit(1);
	}
	my $signal = $status & 127;
	$SIG{$_} = 'DEFAULT' for qw(HUP INT TERM PIPE);
	kill $signal, $$ if $signal != 0;
	POSIX::_exit($status >> 8 || ($signal != 0 ? 1 : 0));
}

# Asks a test to end, which stops its servers, then kills what is left of it.
sub _end {
	my ($test, $mark) = @_;
	my %all = map { $_ => _begun($_) } $test, _below($test);
	kill 'TERM', $test;
	for (1 .. 100) {
		last if _state($test) =~ /^[ZX]?$/;
		Time::HiRes::sleep(0.1);
	}
	for (1 .. 20) { # what is killed may have started more
		%all = (%all, map { $_ => _begun($_) } _marked($mark), map { _below($_) } keys %all);
		my @left = grep { _state($_) !~ /^[ZX]?$/ && _begun($_) eq $all{$_} } keys %all;
		last if !@left;
		kill 'KILL', @left;
		Time::HiRes::sleep(0.1);
	}
	return;
}

# The fields of /proc/PID/stat behind the name; none if the process is gone.
sub _stat {
	my ($pid) = @_;
	open my $fh, '<', "/proc/$pid/stat" or return;
	my $line = <$fh>;
	return if !defined $line;
	return split / /, $line =~ s/^.*\) //sr;
}
sub _state { return (_stat(@_))[0] // '' }
sub _begun { return (_stat(@_))[19] // '' }

# The processes below one of them.
sub _below {
	my ($top) = @_;
	my %children;
	push @{ $children{ (_stat($_))[1] // 0 } }, $_ for map { m{(\d+)$} } glob '/proc/[0-9]*';
	my @below = @{ $children{$top} || [] };
	for (my $i = 0; $i < @below; $i++) { push @below, @{ $children{ $below[$i] } || [] } }
	return @below;
}

# The processes that have the environment of a test, whoever their parent is now.
sub _marked {
	my ($mark) = @_;
	my @found;
	for (glob '/proc/[0-9]*') {
		open my $fh, '<', "$_/environ" or next;
		local $/;
		my $text = <$fh>;
		push @found, m{(\d+)$}
		    if defined $text && $text =~ /(?:^|\0)SLIPWAY_TEST_MARK=\Q$mark\E(?:\0|$)/;
	}
	return grep { $_ != $$ } @found;
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
