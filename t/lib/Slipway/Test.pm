# SPDX-License-Identifier: ISC
package Slipway::Test;

# What every test needs: a private directory that is removed if the test passes,
# processes that end with it, polling with a deadline, and enough diagnostics to
# understand a failure without its files.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Temp ();
use List::Util qw(max min);
use POSIX qw(:sys_wait_h);
use Socket qw(AF_UNIX SOCK_DGRAM pack_sockaddr_un);
use Test2::API ();
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(srcdir builddir program tempdir poll slurp spew run_cmd
    start_process stop_process is_root own_mounts deadline slowness free_port best_of stopwatch
    within
    cpu_time uids_from on_failure tail json_lines
    counts_until make_keys make_repo peak_memory sanitized slipway_admin system_cas
    waits_until);

my $source = abs_path(dirname(__FILE__) . '/../../..');
my $temp;
my %started;
my %tells;
my %ports;
my $owner = $$;
my $apart = delete $ENV{SLIPWAY_TEST_APART};

# The results of tests do not depend on the user's environment.
umask 022;
delete @ENV{ grep { /^(?:LC_|GIT_|GITSERVER_)/ } keys %ENV };
delete @ENV{qw(LANGUAGE TZ BASH_ENV ENV CDPATH MAKEFLAGS MFLAGS MAKELEVEL)};
$ENV{LANG} = 'C';

# Programs inherit ignored and blocked signals: a job in the background of a shell
# ignores INT and QUIT, nohup ignores HUP.  The test goes on doing so, but by handlers,
# which the programs that it executes do not inherit.
my @ignored = grep { ($SIG{$_} || '') eq 'IGNORE' } qw(HUP INT QUIT TERM);
$SIG{$_} = sub { } for @ignored;
$SIG{$_} = 'DEFAULT' for qw(CHLD PIPE);
POSIX::sigprocmask(POSIX::SIG_SETMASK(), POSIX::SigSet->new);
$ENV{$_} = join ',', grep { defined && length } $ENV{$_}, 'localhost', '127.0.0.1' for qw(no_proxy NO_PROXY);

sub srcdir { return $source }

# Where the programs were built: $SLIPWAY_BUILDDIR, else the source tree.
sub builddir { return $ENV{SLIPWAY_BUILDDIR} ? abs_path($ENV{SLIPWAY_BUILDDIR}) : $source }
sub program { my ($name) = @_; return builddir() . "/$name" }
sub is_root { return $> == 0 }

# Whether the programs were built with a sanitizer, which takes memory and time
# of its own.
sub sanitized {
	return (slurp(builddir() . '/Makefile') // '') =~ /^HARD_CFLAGS = .*sanitize/m;
}

# Runs the test again in a private mount namespace, so that its mounts end with it:
# true in there, false if that is not permitted. Call it before anything else;
# arguments are more options of unshare(1).
sub own_mounts {
	return 1 if $apart;
	return 0 if !is_root();
	# where the root directory is no mount point, as in a chroot, mounts cannot be made
	# private: a copy of it is one, below a mount of its own
	my $copy = 'mount --make-private /proc; mount --rbind / /proc/fs; mount --make-rprivate /proc/fs; '
	    . 'exec chroot /proc/fs sh -c \'cd "$0"; exec "$@"\' "$PWD" "$@"';
	for (['private', @_], ['unchanged', @_, 'sh', '-ec', $copy, 'sh']) {
		my @unshare = ('unshare', '--mount', '--propagation', @$_);
		my $why = `@{[map { quotemeta } @unshare]} true 2>&1`;
		if ($? != 0) {
			note("no private mounts: $why");
			next;
		}
		$ENV{SLIPWAY_TEST_APART} = 1;
		$SIG{$_} = 'IGNORE' for @ignored;
		exec @unshare, $^X, '-I' . srcdir() . '/t/lib', $0;
		die "unshare: $!";
	}
	return 0;
}

# The directory of this test; other accounts may enter it, as unprivileged children
# must.
sub tempdir {
	if (!defined $temp) {
		$temp = File::Temp::tempdir('slipway-t-XXXXXX', TMPDIR => 1);
		chmod 0755, $temp or die "chmod $temp: $!";
	}
	return $temp;
}

# How many times slower than a quiet machine this one is: SLIPWAY_TEST_SLOW, times
# the processes that share a processor, now or in the last minute.
sub slowness { return _slowness(slurp('/proc/loadavg') =~ m{^([\d.]+) \S+ \S+ (\d+)/}) }
sub _slowness { return ($ENV{SLIPWAY_TEST_SLOW} || 1) * max(1, map { $_ / processors() } @_) }
my $processors;
sub processors {
	return $processors ||= POSIX::sysconf(84) || 1; # _SC_NPROCESSORS_ONLN, which POSIX does not name
}

# This many seconds of a quiet machine.
sub deadline {
	my ($seconds) = @_;
	return $seconds * slowness();
}

# Calls the code until it returns a true value, and returns its last value; false
# if the deadline passes. The deadline is at least two minutes, as a shorter one would
# measure how busy the machine is; a second counts for less on a slow machine, and a
# time in which the test did not run hardly counts.
# The pauses grow with the wait, so that polling does not keep the machine busy.
sub poll {
	my ($deadline, $code) = @_;
	my $left = $deadline < 120 ? 120 : $deadline;
	my $began = time;
	my $at = $began;
	while (1) {
		my $called = time;
		my $got = $code->();
		return $got if $got;
		my $now = time;
		my $pause = max(0.02, 2 * ($now - $called), 0.1 * ($now - $began));
		$left -= min($now - $at, 0.5) / min(slowness(), 5);
		$at = $now;
		if ($left < 0) {
			my (undef, $file, $line) = caller;
			diag(sprintf 'waited for %.0f s in vain at %s line %s', $now - $began, $file, $line);
			return $got;
		}
		sleep($pause < 0.2 ? $pause : 0.2);
	}
}

# Runs the code until its result (in seconds, say) is below the limit, as deadline()
# will count it, at least three times and for some minutes; the smallest result.  A
# machine may be slow for that long.
sub best_of {
	my ($limit, $code) = @_;
	my ($best, $runs, $began) = (undef, 0, time);
	while (1) {
		my $got = $code->();
		$best = $got if !defined $best || $got < $best;
		my ($average) = slurp('/proc/loadavg') =~ /^([\d.]+)/; # changes slowly
		last if $best < $limit * _slowness(0.8 * $average) || ++$runs >= 3 && time - $began > 300;
	}
	return $best;
}

# Runs tests that hold only if the service exceeds none of its time limits, the
# shortest of which is this many seconds: if one fails after that time, the failure may
# be the machine's, and all are run again, for some minutes.  The code must be able to
# begin anew; what it returns in the end is returned.
sub within {
	my ($limit, $code) = @_;
	my $end = time + 600;
	while (1) {
		my ($began, $died, @got) = (time);
		my $is_late = sub { return time < $end && time - $began > $limit };
		my $events = Test2::API::intercept(sub {
			Test2::API::test2_stack()->top->listen(sub {
				my $facets = $_[1]->facet_data;
				die "$facets->{assert}{details} failed late\n" if $is_late->()
				    && $facets->{assert} && !$facets->{assert}{pass} && !$facets->{amnesty};
			});
			eval { @got = $code->(); 1 } or $died = $@;
		});
		if (defined $died && $is_late->()) {
			note("again: $died");
			next;
		}
		Test2::API::test2_stack()->top->send($_) for @$events;
		die $died if defined $died;
		return wantarray ? @got : $got[-1];
	}
}

# Starts a stopwatch: a function that returns the seconds since then, without times in
# which this machine stood still.  A child process counts them: it sleeps for a moment
# again and again, and a moment that lasts longer counts as a short one.
my ($counter, $counted);
sub stopwatch {
	if (!defined $counter) {
		$counted = tempdir() . '/moments';
		spew($counted, pack 'd', 0);
		$counter = fork;
		die "fork: $!" if !defined $counter;
		if ($counter == 0) { eval { _count() }; POSIX::_exit(0) }
	}
	my $began = _moments();
	return sub { return _moments() - $began };
}
sub _moments { return unpack 'd', slurp($counted) }
sub _count {
	_close_files();
	open my $fh, '+<:raw', $counted or return;
	my ($sum, $at) = (0, time);
	while (getppid == $owner) {
		sleep 0.05;
		my $now = time;
		$sum += min($now - $at, 0.1);
		$at = $now;
		sysseek $fh, 0, 0;
		syswrite $fh, pack 'd', $sum;
	}
	return;
}

# In a child process: redirects all but the standard descriptors to /dev/null, so that
# the test alone holds its pipes and connections.  They are not closed, because perl
# counts the handles on each descriptor.
sub _close_files {
	my $null = POSIX::open('/dev/null', POSIX::O_RDWR());
	POSIX::dup2($null, $_) for grep { $_ > 2 } map { m{(\d+)$} } glob '/proc/self/fd/*';
	return;
}

# The seconds of processor time that these processes have used.
sub cpu_time {
	my (@pids) = @_;
	my $ticks = 0;
	for my $pid (@pids) {
		my (undef, $rest) = split /\) /, slurp("/proc/$pid/stat") || '', 2;
		my @field = split ' ', defined $rest ? $rest : '';
		$ticks += $field[11] + $field[12] if @field > 12;
	}
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Scripts for steps that run until a file exists. They read from a pipe that stays empty:
# sleep(1) would be another process each time.
sub _until {
	my ($file, $seconds, $each) = @_;
	return "exec 9<> <(:); until test -e $file; do $each read -rt $seconds -u 9 || true; done";
}
sub waits_until { my ($file) = @_; return _until($file, 0.1, '') }
# Writes count-1, count-2 and so on, each after a pause (in seconds, by default 0.02).
sub counts_until {
	my ($file, $pause) = @_;
	return 'n=0; ' . _until($file, $pause || 0.02, 'n=$((n+1)); echo count-$n;');
}

# The most memory, in KiB, that any of these processes has ever held.
sub peak_memory {
	my (@pids) = @_;
	my $peak = 0;
	for my $pid (@pids) {
		my ($kib) = (slurp("/proc/$pid/status") // '') =~ /^VmHWM:\s+(\d+) kB/m;
		$peak = $kib if defined $kib && $kib > $peak;
	}
	return $peak;
}

# The values of a file of JSON lines; a last line without its end is still being written.
sub json_lines {
	my ($path) = @_;
	return map { decode_json($_) } (slurp($path) || '') =~ /^(.+)\n/mg;
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

# Runs slipway-admin with this configuration: (exit status, standard output,
# standard error).
sub slipway_admin {
	my ($conf, @args) = @_;
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $conf, @args);
	return ($status >> 8, $out, $err);
}

# Creates the key files of a configuration, or rotates them, and returns true;
# `key` is the path of its key_file.  As root, gives them to an API and a
# dispatcher that run as nobody; only the dispatcher can open variables.
sub make_keys {
	my ($conf, $key) = @_;
	my ($exit, $out, $err) = slipway_admin($conf, 'key');
	die "slipway-admin key: $out$err" if $exit != 0;
	return 1 if !is_root();
	my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
	chown 0, $gid, $key or die "$key: $!";
	chown $uid, 0, dirname($key) . '/deploy.key' or die "$key: $!";
	return 1;
}

# Creates a Git repository in this directory, with one commit on the branch main of
# what the shell script creates (default: a file "file" that says hello), and
# returns the directory; dies if git fails.
sub make_repo {
	my ($dir, $script) = @_;
	$script = 'echo hello >file' if !defined $script;
	my ($status, undef, $err) = run_cmd('sh', '-ec', 'git init -q --template= -b main "$0"; cd "$0";'
	    . ' printf "[user]\n\temail = a@example.org\n\tname = a\n" >>.git/config;'
	    . " $script; git add .; git commit -qm first", $dir);
	die "git: $err" if $status != 0;
	return $dir;
}

# Runs a command without a shell: (exit status as in $?, standard output, standard
# error). A leading hash holds env => {...}, stdin => text, cwd, umask, before => code
# that runs in the child, and merged => 1: standard error is a part of standard output.
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
		($opt->{merged} ? open STDERR, '>&', \*STDOUT : open STDERR, '>', $err) or POSIX::_exit(127);
		_child($opt, @cmd);
	}
	waitpid $pid, 0;
	my $status = $?;
	my @result = ($status, slurp($out), slurp($err) // '');
	unlink $out, $err, $in;
	return @result;
}

sub _child {
	my ($opt, @cmd) = @_;
	if (defined $opt->{cwd}) { chdir $opt->{cwd} or POSIX::_exit(127) }
	umask $opt->{umask} if defined $opt->{umask};
	if ($opt->{env}) {
		for my $name (keys %{ $opt->{env} }) {
			if (defined $opt->{env}{$name}) { $ENV{$name} = $opt->{env}{$name} }
			else { delete $ENV{$name} }
		}
	}
	eval { $opt->{before}->() if $opt->{before}; 1 } or do { warn $@; POSIX::_exit(127) };
	{ no warnings; exec { $cmd[0] } @cmd; }
	POSIX::_exit(127);
}

# A command that executes the rest where the system's CAs are those of a PEM file;
# empty if this machine or account permits no mount namespace.
sub system_cas {
	my ($pem) = @_;
	my $dir = tempdir() . '/system-cas';
	my @through = ('unshare', '-m', 'sh', '-ec', 'mount --bind "$0" /etc/ssl/certs; exec "$@"', $dir);
	if (!-d $dir) { mkdir $dir or die "$dir: $!" }
	chmod 0755, $dir;
	spew("$dir/$_", slurp($pem), 0644) for 'ca-certificates.crt', 'one.pem';
	my ($status) = run_cmd(@through, '/bin/true');
	return $status == 0 ? @through : ();
}

# Starts a process in the background, with its output in tempdir/NAME.log; its pid.
# The process ends with the test. A leading hash holds name => ..., env, cwd, before, and
# ends => the signal that ends it (default: TERM). Code instead of a command, with a
# name, runs in a copy of this process that has none of its open files.
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
		_child($opt, @cmd) if !ref $cmd[0];
		_close_files();
		ref $SIG{$_} and $SIG{$_} = 'DEFAULT' for keys %SIG;
		$0 = $name;
		POSIX::_exit(0) if eval { $cmd[0]->(); 1 };
		warn $@;
		POSIX::_exit(1);
	}
	$started{$pid} = $opt->{ends} || 'TERM';
	return $pid;
}

# Sends TERM (or the signal named), waits up to a minute, then KILL; the exit
# status as in $?.
sub stop_process {
	my ($pid, $signal) = @_;
	return undef if !delete $started{$pid};
	kill $signal || 'TERM', $pid;
	my $status;
	my $gone = poll(60, sub {
		my $rc = waitpid $pid, WNOHANG;
		$status = $? if $rc == $pid;
		return $rc != 0;
	});
	if (!$gone) {
		diag("process $pid does not end on SIG" . ($signal || 'TERM'));
		kill 'KILL', $pid;
		waitpid $pid, 0;
		$status = $?;
	}
	return $status;
}

# A TCP port of loopback for this test alone while it runs: an abstract socket
# reserves it among tests, and it is outside the range of ports for outgoing
# connections, so that a server can be restarted on it.
sub free_port {
	require IO::Socket::INET;
	my ($least) = (slurp('/proc/sys/net/ipv4/ip_local_port_range') || '') =~ /^(\d+)/;
	my $n = ($least || 0) > 20000 ? $least - 10000 : 50000;
	for (1 .. 1000) {
		my $port = 10000 + int rand $n;
		socket my $mine, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
		next if !bind $mine, pack_sockaddr_un("\0slipway-t-port-$port");
		my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
			Listen => 1, ReuseAddr => 1) or next;
		$ports{$port} = $mine;
		return $port;
	}
	die 'no free port';
}

# The first of 3000 uids that no other test has: a runner kills every process under
# its uids. There are four kinds of ranges.
sub uids_from {
	my ($kind) = @_;
	return 800_000_000 + ($kind * 100_000 + $$ % 100_000) * 3000;
}

# The last lines of a text.
sub tail {
	my ($text, $lines) = @_;
	my @all = split /\n/, defined $text ? $text : '';
	my $n = $lines || 30;
	return join '', map { "$_\n" } map { length > 400 ? substr($_, 0, 400) . '...' : $_ }
	    @all > $n ? @all[-$n .. -1] : @all;
}

# Adds a text to the diagnostics of each failure from now on: the code returns it,
# or nothing. A second call with the same name replaces the first.
sub on_failure {
	my ($name, $code) = @_;
	$tells{$name} = $code;
	return;
}

sub _tell {
	my (undef, $event) = @_;
	my $facets = $event->facet_data;
	return if $$ != $owner || !$facets->{assert} || $facets->{assert}{pass} || $facets->{amnesty};
	my ($status, $errno, $error) = ($?, $!, $@);
	for my $name (sort keys %tells) {
		my $text = eval { $tells{$name}->() };
		print {*STDERR} map { "# | $_\n" } split /\n/, "$name: $text"
		    if defined $text && length $text;
	}
	($?, $!, $@) = ($status, $errno, $error);
	return;
}
Test2::API::test2_stack()->top->listen(\&_tell, inherit => 1);

# Prints the ends of all logs.
sub _tell_logs {
	my $shown = 0;
	my @logs = grep { -f && -s } glob "$temp/*.log $temp/*/nginx.err $temp/*/*.log";
	for my $log (sort { -M $a <=> -M $b } @logs) {
		my $name = substr $log, 1 + length $temp;
		print {*STDERR} "# --- the last lines of $name:\n", map { "# $_\n" } split /\n/,
		    tail(slurp($log), 20);
		last if ++$shown >= 10;
	}
	return;
}

# A signal that ends the test also ends its processes.
for my $name (grep { my $signal = $_; !grep { $_ eq $signal } @ignored } qw(HUP INT TERM)) {
	$SIG{$name} = sub { $$ == $owner ? exit 1 : POSIX::_exit(1) };
}

END {
	if ($$ == $owner) {
		my $code = $?;
		my $passed = $code == 0 && Test::More->builder->is_passing;
		_tell_logs() if defined $temp && !$passed;
		stop_process($_, $started{$_}) for sort { $b <=> $a } keys %started;
		if (defined $temp) {
			if ($passed) { require File::Path; File::Path::remove_tree($temp) }
			else { diag("the logs are in $temp") }
		}
		$? = $code;
	}
}

1;
