# SPDX-License-Identifier: ISC
package Slipway::Spool;

# Deployments without a dispatcher: creates the spool directory of one, starts
# slipway-job on it with the descriptors that the monitor would pass, reads log and
# result.

use strict;
use warnings;
use Exporter 'import';
use Fcntl;
use File::Path qw(make_path);
use IO::Handle;
use POSIX qw(:sys_wait_h mkfifo);
use Slipway::Test;

our @EXPORT = qw(record records spool_make spool_open job_start job_wait
    job_run job_cancel job_result job_log job_end job_steps uid_for);

sub record { my ($name, $value) = @_; return "$name " . length($value) . "\n$value\n" }

# The complete records in a text: [name, value]…
sub records {
	my ($text) = @_;
	my @all;
	while ($text =~ /\G([a-z-]+) (\d+)\n/gc) {
		my ($name, $len) = ($1, $2);
		last if length($text) < pos($text) + $len + 1;
		push @all, [$name, substr($text, pos($text), $len)];
		pos($text) += $len + 1;
	}
	return @all;
}

my $next = 0;

# Creates a spool directory. Options are records by name with _ for -; `steps` is a
# list of scripts or of {name, script, directory, timeout, when}; `env` and `secret` are lists of
# NAME=value. Omitted options have defaults.
sub spool_make {
	my (%o) = @_;
	my $id = delete $o{deployment} || 1000 + ++$next;
	my $epoch = delete $o{epoch} || 1;
	my $root = delete $o{root} || tempdir() . '/spool';
	my $dir = "$root/$id.$epoch";
	make_path($dir);
	my %spec = (project => 7, project_name => 'Shop', pipeline_name => 'deploy',
		timeout => 0, checkout_timeout => 3600, grace => 1, cancel_grace => 5,
		log_max => 1 << 20, path => '/usr/local/bin:/usr/bin:/bin',
		allow_http => 0, allow_local => 1, submodules => 0, lfs => 0, %o);
	my $steps = delete $spec{steps} || [];
	my $text = record('deployment', $id) . record('epoch', $epoch);
	for my $name (qw(project project_name pipeline_name rollback_to repository branch tag commit on_branch
	    offline checkout
	    credential note git_known git_patience tls_ca ssh_key known_hosts objects commits env secret)) {
		next if !defined $spec{$name};
		(my $key = $name) =~ tr/_/-/;
		$text .= record($key, $_)
		    for ref $spec{$name} ? @{ $spec{$name} } : $spec{$name};
	}
	my $n = 0;
	for my $step (@$steps) {
		my %s = ref $step ? %$step : (script => $step);
		$n++;
		$text .= record('step-name', defined $s{name} ? $s{name} : "step $n")
		    . record('step-script', $s{script})
		    . (defined $s{directory} ? record('step-directory', $s{directory}) : '')
		    . record('step-timeout', $s{timeout} || 0)
		    . record('step-when', $s{when} || 'success')
		    . ($s{may_fail} ? record('step-may-fail', 1) : '');
	}
	for my $name (qw(timeout checkout_timeout grace cancel_grace log_max path
	    allow_http allow_local submodules lent refused lfs)) {
		next if !defined $spec{$name};
		(my $key = $name) =~ tr/_/-/;
		$text .= record($key, $spec{$name});
	}
	$text .= record('end', '');
	spew("$dir/job", defined $o{raw} ? $o{raw} : $text, 0600);
	spew("$dir/$_", '', 0600) for qw(log result lock);
	mkfifo("$dir/control", 0600) or die "mkfifo: $!";
	return { dir => $dir, id => $id, epoch => $epoch };
}

# The five descriptors of enum wire_fd that a request carries.
sub spool_open {
	my ($spool) = @_;
	my @fh;
	for (['job', O_RDONLY], ['log', O_WRONLY | O_APPEND],
	    ['result', O_WRONLY | O_APPEND], ['lock', O_RDWR],
	    ['control', O_RDWR | O_NONBLOCK]) {
		my ($name, $mode) = @$_;
		sysopen my $fh, "$spool->{dir}/$name", $mode
		    or die "$spool->{dir}/$name: $!";
		push @fh, $fh;
	}
	return @fh;
}

# An account of its own for each call, as root; else nothing.
my $uid = uids_from(0);
my $watch = uids_from(4);
sub uid_for { return is_root() ? $uid++ : undef }

# Starts slipway-job. Options: those of spool_make, spool, uid, workspace, home,
# limits (list of arguments), through (list: a command that executes the rest).
sub job_start {
	my (%o) = @_;
	my ($user, $limits, $workspace, $through) = delete @o{qw(uid limits workspace through)};
	my $home = delete $o{home};
	my $spool = delete $o{spool} || spool_make(%o);
	$user = uid_for() if !defined $user;
	$workspace ||= "$spool->{dir}-workspace";
	$home ||= "$spool->{dir}-home";
	for my $dir ($workspace, $home) {
		if (!-d $dir) { mkdir $dir, 0700 or die "$dir: $!" }
		chown $user, $user, $dir or die "$dir: $!" if defined $user && (stat $dir)[4] != $user;
	}
	my @fh = spool_open($spool);
	for ($workspace, $home) {
		sysopen my $fh, $_, O_RDONLY | O_DIRECTORY or die "$_: $!";
		push @fh, $fh;
	}
	my @cmd = (@{ $through || [] }, program('slipway-job'), '-i', "$spool->{id}.$spool->{epoch}",
		'-H', $home, '-W', $workspace, @{ $limits || [] });
	push @cmd, '-u', $user, '-g', $user, '-G', $user, '-S', $watch + $user % 3000
	    if defined $user;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		my @high = map { POSIX::dup2(fileno($fh[$_]), 50 + $_) } 0 .. $#fh;
		POSIX::dup2(50 + $_, 3 + $_) for 0 .. $#fh;
		POSIX::close(50 + $_) for 0 .. $#fh;
		{ no warnings; exec { $cmd[0] } @cmd; }
		POSIX::_exit(127);
	}
	return { %$spool, pid => $pid, uid => $user, workspace => $workspace,
		home => $home, control => $fh[4] };
}

# Waits for the end; the exit status as in $?, undef after the deadline.
sub job_wait {
	my ($job, $deadline) = @_;
	my $status;
	on_failure('the last job' => sub {
		return "$job->{id} " . join("\n", job_end($job), job_steps($job)) . "\n"
		    . tail(job_log($job), 15);
	});
	poll($deadline || 120, sub {
		my $rc = waitpid $job->{pid}, WNOHANG;
		$status = $? if $rc == $job->{pid};
		return $rc != 0;
	});
	return $status;
}

sub job_run {
	my (%o) = @_;
	my $job = job_start(%o);
	$job->{status} = job_wait($job);
	return $job;
}

sub job_cancel { my ($job) = @_; syswrite $job->{control}, "cancel\n" }
# Reading /dev/full never ends.
sub job_log { my ($job) = @_; return -f "$job->{dir}/log" ? slurp("$job->{dir}/log") : '' }
sub job_result { my ($job) = @_; return records(slurp("$job->{dir}/result")) }

# "STATUS REASON" and detail of the end, or nothing.
sub job_end {
	my ($job) = @_;
	my ($end) = grep { $_->[0] eq 'end' } job_result($job);
	return if !$end;
	my ($head, $detail) = split /\n/, $end->[1], 2;
	my ($status, $reason) = split / /, $head;
	return wantarray ? ("$status $reason", $detail) : "$status $reason";
}

# How the steps ended, in a line: "0:success:0:- 1:skipped".
sub job_steps {
	my ($job) = @_;
	my @all;
	for (job_result($job)) {
		my ($name, $value) = @$_;
		my @word = split / /, $value;
		push @all, "$word[0]:skipped" if $name eq 'step-skipped';
		push @all, join ':', @word[0 .. 3] if $name eq 'step-ended';
	}
	return join ' ', @all;
}

1;
