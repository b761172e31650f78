# SPDX-License-Identifier: ISC
package Slipway::Whole;

# The whole of slipway: MariaDB, nginx with TLS, the API, slipway-live and the runner,
# with one key for secrets, used as a client does.
#
#   my $all = Slipway::Whole->start(runner => "[runner]\nslots = 2\n");
#   my $project = $all->project($repository);
#   my $pipeline = $all->pipeline($project, 'echo hello', { script => 'exit 3' });
#   my $id = $all->post(pipelineId => $pipeline, projectId => $project);
#   $all->wait($id)->{status} eq 'failed';
#   $all->log($id);

use strict;
use warnings;
use File::Path qw(make_path);
use IO::Socket::SSL ();
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Time::HiRes qw(time);

our $final = qr/^(?:success|failed|canceled|interrupted)$/;

my $names = 0;
my $made = 0;

# Options: api, runner: sections that come last and win; db: its database.
sub start {
	my ($class, %opt) = @_;
	my $self = bless { db => $opt{db} || Slipway::DB->start }, $class;
	$self->{db}->migrate;
	my $keys = tempdir() . '/keys' . ($made++ || '');
	make_path($keys, "$keys/run");
	chmod 0777, "$keys/run" or die "$keys/run: $!";
	my $both = "[api]\nlive_wake_socket = $keys/run/live-wake.sock\n"
	    . "[gitserver]\nallow_local = yes\n[secrets]\nkey_file = $keys/secret.key\n";
	my $conf = spew("$keys/slipway.conf", $self->{db}->conf . $both, 0600);
	make_keys($conf, "$keys/secret.key");
	$self->{runner} = Slipway::Runner->start(db => $self->{db},
		conf => $both . ($opt{runner} || ''));
	$self->{api} = Slipway::API->start(db => $self->{db}, migrated => 1,
		conf => $both . "[runner]\nwake_socket = " . $self->{runner}->wake_socket
		. "\n" . ($opt{api} || ''));
	$self->{api}->start_live;
	$self->{api}->token('admin');
	return $self;
}

sub db { my ($self) = @_; return $self->{db} }
sub api { my ($self) = @_; return $self->{api} }
sub runner { my ($self) = @_; return $self->{runner} }

# The object that a POST creates; dies if it creates none.
sub make { my ($self, @args) = @_; return $self->{api}->make(@args) }

sub project {
	my ($self, $repository, %more) = @_;
	return $self->make('/api/projects', { name => 'project ' . ++$names,
		repository => $repository, defaultBranch => 'main', %more })->{id};
}

# Steps are scripts, or members of a step; a leading { pipeline => {…} } holds
# members of the pipeline.
sub pipeline {
	my ($self, $project, @steps) = @_;
	my %more = ref $steps[0] && $steps[0]{pipeline} ? %{ (shift @steps)->{pipeline} } : ();
	my $n = 0;
	return $self->make('/api/pipelines', { projectId => $project,
		name => 'pipeline ' . ++$names, %more,
		steps => [map { { name => 'step ' . ++$n, ref $_ ? %$_ : (script => $_) } } @steps] })->{id};
}

sub post {
	my ($self, %body) = @_;
	return $self->make('/api/deployments', \%body)->{id};
}

sub show {
	my ($self, $id) = @_;
	my $got = $self->{api}->get("/api/deployments/$id");
	die "GET deployment $id: $got->{status} $got->{body}\n" if $got->{status} != 200;
	return $got->{json};
}

# Waits for one of these states (default: any final one); the deployment.
sub wait {
	my ($self, $id, $want, $deadline) = @_;
	$want ||= $final;
	my $now;
	on_failure('the last deployment' => sub { $self->{runner}->tell($id) });
	poll($deadline || 120, sub { $now = $self->show($id); return $now->{status} =~ $want });
	return $now;
}

# "success failed skipped"
sub steps {
	my ($self, $id) = @_;
	return join ' ', map { $_->{status} } @{ $self->show($id)->{steps} };
}

sub log {
	my ($self, $id) = @_;
	return $self->{api}->get("/api/deployments/$id/log")->{body};
}

# Waits for a pattern in the log; whether it appears.
sub saw {
	my ($self, $id, $re, $deadline) = @_;
	on_failure('the last deployment' => sub { $self->{runner}->tell($id) });
	return poll($deadline || 60, sub { $self->log($id) =~ $re });
}

# A file that steps can append to, whatever their account.
sub marks {
	my ($self, $name) = @_;
	return spew(tempdir() . "/$name", '', 0666);
}

# The pids of processes of jobs: those under the runner's uids; without root, those
# with this test's directory in their environment.
sub left {
	my ($self) = @_;
	my $first = $self->{runner}{uid_first};
	my $dir = tempdir();
	my @pids;
	for my $path (glob '/proc/[0-9]*') {
		my ($pid) = $path =~ m{(\d+)$};
		my $is_of_job;
		if (is_root()) {
			my $uid = (stat $path)[4];
			$is_of_job = defined $uid && $uid >= $first && $uid < $first + 300;
		} else {
			my $env = slurp("$path/environ");
			$is_of_job = defined $env && $env =~ /^(?:.*\0)?SLIPWAY_WORKSPACE=\Q$dir\E/s;
		}
		my $stat = slurp("$path/stat");
		push @pids, $pid if $is_of_job && defined $stat && $stat !~ /\) Z /;
	}
	return @pids;
}

# Whether the jobs leave neither process nor directory.
sub is_clean {
	my ($self, $deadline) = @_;
	my @left;
	if (!poll($deadline || 60, sub { !(@left = $self->left) })) {
		Test::More::diag(join "\n", 'left:',
		    map { "$_ " . ((slurp("/proc/$_/cmdline") || '') =~ tr/\0/ /r) } @left);
		return 0;
	}
	return $self->{runner}->is_clean;
}

1;
