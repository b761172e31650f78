# SPDX-License-Identifier: ISC
package Slipway::Monitor;

# slipway-runner with a stand-in for its dispatcher.

use strict;
use warnings;
use File::Path qw(make_path);
use POSIX qw(mkfifo);
use Slipway::Spool;
use Slipway::Test;

my $count = 0;

# Options: conf (text of more settings), env, args, user, workspaces, wrap (a
# command that starts it), dir (of an earlier one, to go on with it).
sub start {
	my ($class, %o) = @_;
	my $dir = $o{dir} || tempdir() . '/monitor' . ++$count;
	my $self = bless { dir => $dir, user => $o{user} || 'nobody',
		spool => "$dir/spool", workspaces => "$dir/workspaces",
		uid_first => uids_from(1), env => $o{env} || {},
		args => $o{args} || [], wrap => $o{wrap} || [], seen => 0 }, $class;
	$self->{workspaces} = $o{workspaces} if defined $o{workspaces};
	if (!-d $dir) {
		make_path("$dir/standin", "$dir/spool");
		mkfifo("$dir/standin/cmd", 0600) or die "mkfifo: $!";
		if (is_root()) {
			my @pw = getpwnam $self->{user};
			chown $pw[2], $pw[3], "$dir/standin", "$dir/standin/cmd",
			    $self->{spool} or die "chown: $!";
		}
	}
	$self->{seen} = length(slurp("$dir/standin/out") || '');
	spew("$dir/slipway.conf", $self->conf . ($o{conf} || ''), 0644);
	$self->run;
	return $self;
}

sub conf {
	my ($self) = @_;
	return "[runner]\nspool = $self->{spool}\nworkspaces = $self->{workspaces}\n"
	    . (is_root() ? "user = $self->{user}\nuid_first = $self->{uid_first}\nuid_count = 50\n"
		. 'watch_uid_first = ' . (uids_from(3) + 2560) . "\n"
		: "privilege_drop = no\n");
}

sub run {
	my ($self) = @_;
	$self->{pid} = start_process({ name => ($self->{dir} =~ m{([^/]+)$})[0],
		env => { SLIPWAY_STANDIN => "$self->{dir}/standin", %{ $self->{env} } } },
		@{ $self->{wrap} }, program('slipway-runner'), '-c', "$self->{dir}/slipway.conf",
		'-d', program('t/unit/standin'), '-j', program('slipway-job'),
		@{ $self->{args} });
	return $self->await(qr/^up (\d+) (\d+) (\d+)(.*)$/m);
}

sub out { my ($self) = @_; return substr slurp("$self->{dir}/standin/out") || '', $self->{seen} }
sub log { my ($self) = @_; return slurp("$self->{dir}.log") }

# Waits for a line of the stand-in; what the pattern captures, or nothing.
sub await {
	my ($self, $re, $deadline) = @_;
	my @got;
	on_failure('the dispatcher' => sub { return tail($self->out, 10) . tail($self->log, 10) });
	poll($deadline || 60, sub { return @got = $self->out =~ $re });
	return @got;
}

sub command {
	my ($self, $line) = @_;
	open my $fh, '>', "$self->{dir}/standin/cmd" or die "cmd: $!";
	syswrite $fh, "$line\n";
	close $fh;
	return;
}

# Creates a spool directory that the stand-in can open, and requests the job. Options
# as for spool_make, and project, dir, limit, cache (the generation).
sub job {
	my ($self, %o) = @_;
	my $dir = delete $o{dir} || 'shop';
	my $project = $o{project} || 7;
	my $limit = delete $o{limit} || 0;
	my $cache = delete $o{cache} || 0;
	my $spool = spool_make(root => $self->{spool}, %o);
	if (is_root()) {
		my @pw = getpwnam $self->{user};
		chown $pw[2], $pw[3], $spool->{dir}, glob("$spool->{dir}/*");
	}
	$self->command("start $spool->{id} $spool->{epoch} $project $dir $spool->{dir} $limit $cache");
	return $spool;
}

# The pid of the job if it is started, else nothing.
sub started {
	my ($self, $job) = @_;
	my ($what, $pid) = $self->await(qr/^(started|refused) $job->{id} $job->{epoch} (\d+)/m);
	return $what && $what eq 'started' ? $pid : undef;
}

# "WHY ERRNO" of a rejected job.
sub refused {
	my ($self, $job) = @_;
	my ($why, $errno) = $self->await(qr/^refused $job->{id} $job->{epoch} 0 (\d+) (\d+)$/m);
	return defined $why ? "$why $errno" : undef;
}

# The wait status that is reported when the job ends.
sub exited {
	my ($self, $job, $deadline) = @_;
	my ($status) = $self->await(qr/^exited $job->{id} $job->{epoch} 0 (\d+) 0$/m, $deadline);
	return $status;
}

sub stop { my ($self, $signal) = @_; return stop_process($self->{pid}, $signal) }

1;
