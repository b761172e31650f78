# SPDX-License-Identifier: ISC
package Slipway::Test;

# What every test needs: a directory of its own that goes when the test has
# passed and stays when it failed, processes that end with it, polling with a
# deadline.

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Temp ();
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(srcdir builddir program tempdir poll slurp spew run_cmd
    start_process stop_process is_root free_port);

my $source = abs_path(dirname(__FILE__) . '/../../..');
my $temp;
my %started;
my $owner = $$;

sub srcdir { return $source }

# Where the programs were built: $SLIPWAY_BUILDDIR, else the source tree.
sub builddir { return $ENV{SLIPWAY_BUILDDIR} ? abs_path($ENV{SLIPWAY_BUILDDIR}) : $source }
sub program { my ($name) = @_; return builddir() . "/$name" }
sub is_root { return $> == 0 }

# A directory for this test; others may enter it (dropped children need to).
sub tempdir {
	if (!defined $temp) {
		$temp = File::Temp::tempdir('slipway-t-XXXXXX', TMPDIR => 1);
		chmod 0755, $temp or die "chmod $temp: $!";
	}
	return $temp;
}

# Calls the code until it returns something true; its last value, or false
# when the deadline (seconds) has passed.
sub poll {
	my ($deadline, $code) = @_;
	my $end = time + $deadline;
	while (1) {
		my $got = $code->();
		return $got if $got;
		return $got if time > $end;
		sleep 0.02;
	}
}

sub slurp {
	my ($path) = @_;
	open my $fh, '<:raw', $path or return undef;
	local $/;
	my $text = <$fh>;
	close $fh;
	return defined $text ? $text : '';
}

sub spew {
	my ($path, $text, $mode) = @_;
	open my $fh, '>:raw', $path or die "$path: $!";
	print {$fh} $text or die "$path: $!";
	close $fh or die "$path: $!";
	chmod $mode, $path or die "$path: $!" if defined $mode;
	return $path;
}

# Runs a command to its end: (exit status as in $?, standard output, standard
# error). No shell. A leading hash holds env => {...}, stdin => text, cwd.
sub run_cmd {
	my $opt = ref $_[0] eq 'HASH' ? shift : {};
	my @cmd = @_;
	my $dir = tempdir();
	my ($out, $err, $in) = map { "$dir/cmd.$_.$$" } qw(out err in);
	spew($in, defined $opt->{stdin} ? $opt->{stdin} : '');
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		open STDIN, '<', $in or POSIX::_exit(127);
		open STDOUT, '>', $out or POSIX::_exit(127);
		open STDERR, '>', $err or POSIX::_exit(127);
		_child($opt, @cmd);
	}
	waitpid $pid, 0;
	my $status = $?;
	my @result = ($status, slurp($out), slurp($err));
	unlink $out, $err, $in;
	return @result;
}

sub _child {
	my ($opt, @cmd) = @_;
	# a test in the background of a shell was told to ignore these
	$SIG{$_} = 'DEFAULT' for qw(INT QUIT);
	if (defined $opt->{cwd}) { chdir $opt->{cwd} or POSIX::_exit(127) }
	if ($opt->{env}) {
		for my $name (keys %{ $opt->{env} }) {
			if (defined $opt->{env}{$name}) { $ENV{$name} = $opt->{env}{$name} }
			else { delete $ENV{$name} }
		}
	}
	{ no warnings; exec { $cmd[0] } @cmd; }
	POSIX::_exit(127);
}

# Starts a process in the background, its output in tempdir/NAME.log; its pid.
# It is ended with the test. A leading hash holds name => ..., env, cwd.
sub start_process {
	my $opt = ref $_[0] eq 'HASH' ? shift : {};
	my @cmd = @_;
	my $name = $opt->{name} || (split m{/}, $cmd[0])[-1];
	my $log = tempdir() . "/$name.log";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		open STDIN, '<', '/dev/null' or POSIX::_exit(127);
		open STDOUT, '>>', $log or POSIX::_exit(127);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(127);
		_child($opt, @cmd);
	}
	$started{$pid} = $name;
	return $pid;
}

# Sends TERM (or the signal named), waits up to 15 s, then KILL; the exit
# status as in $?.
sub stop_process {
	my ($pid, $signal) = @_;
	return undef if !delete $started{$pid};
	kill $signal || 'TERM', $pid;
	my $status;
	my $gone = poll(15, sub {
		my $rc = waitpid $pid, WNOHANG;
		$status = $? if $rc == $pid;
		return $rc != 0;
	});
	if (!$gone) {
		kill 'KILL', $pid;
		waitpid $pid, 0;
		$status = $?;
	}
	return $status;
}

# A TCP port of loopback that was free a moment ago.
sub free_port {
	require IO::Socket::INET;
	my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0,
		Listen => 1) or die "no free port: $!";
	return $s->sockport;
}

END {
	if ($$ == $owner) {
		my $code = $?;
		stop_process($_) for sort { $b <=> $a } keys %started;
		if (defined $temp) {
			my $passed = $code == 0 && Test::More->builder->is_passing;
			if ($passed) { require File::Path; File::Path::remove_tree($temp) }
			else { diag("logs are kept in $temp") }
		}
		$? = $code;
	}
}

1;
