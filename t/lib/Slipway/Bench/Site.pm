# SPDX-License-Identifier: ISC
package Slipway::Bench::Site;

# What the benchmark measures: MariaDB with durable commits, the API, slipway-live and
# the runner with their default settings, nginx with TLS and a process for each
# processor, and the bare loop (t/bench/bare.c) at /bare of the same nginx and database.
#
#   my $site = Slipway::Bench::Site->start;
#   $site->project, $site->pipeline('noop'), $site->api, $site->db, $site->runner
#   my $id = $site->deploy($site->pipeline('noop'));
#   $site->wait($id);

use strict;
use warnings;
use Slipway::API;
use Slipway::Bench::Bare;
use Slipway::Bench::Client;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Time::HiRes qw(sleep time);

my $workers = 4; # the default of api.workers

# Options: history: how many ended deployments there are before; db: more arguments
# of mariadbd.
sub start {
	my ($class, %opt) = @_;
	my $self = bless { pipelines => {} }, $class;
	# the servers of the tests do not sync
	$self->{db} = Slipway::DB->start(args => [
		'--innodb-flush-method=fsync', '--debug-no-sync=0', '--innodb-buffer-pool-size=256M',
		'--innodb-log-file-size=256M', '--max-connections=100', @{ $opt{db} || [] } ]);
	$self->{db}->migrate;
	my $run = tempdir() . '/live';
	mkdir $run or die "$run: $!";
	chmod 0777, $run or die "$run: $!";
	my $both = "[api]\nlive_wake_socket = $run/wake.sock\n[log]\ndebug = no\n";
	# the runner first, as the API wakes it at its socket
	$self->{runner} = Slipway::Runner->start(db => $self->{db}, conf => $both);
	my $bare = tempdir() . '/bare.sock';
	$self->{api} = Slipway::API->start(db => $self->{db}, migrated => 1,
		conf => "[api]\nworkers = $workers\nslow_workers = 2\n"
		. "[gitserver]\nallow_local = yes\n[runner]\nwake_socket = " . $self->{runner}->wake_socket
		. "\n$both",
		nginx_processes => processors(),
		nginx => sub {
			my ($name, $text) = @_;
			return $text if $name ne 'slipway-site.conf';
			my ($dir) = $text =~ m{include (\S+)/slipway-locations\.conf};
			my $location = "\tlocation ^~ /bare {\n\t\tinclude $dir/slipway-fastcgi.conf;\n"
			    . "\t\tfastcgi_read_timeout 60s;\n\t\tfastcgi_pass unix:$bare;\n\t}\n";
			return $text =~ s{^(?=\tinclude \S+/slipway-locations\.conf)}{$location}mr;
		});
	$self->{live} = $self->{api}->start_live;
	$self->{client} = Slipway::Bench::Client->new($self->{api});
	$self->_first_project;
	$self->_seed($opt{history}) if $opt{history};
	$self->_start_bare($bare);
	return $self;
}

sub processors { return POSIX::sysconf(84) || 1 } # _SC_NPROCESSORS_ONLN

for my $name (qw(api db runner client project repository)) {
	no strict 'refs';
	*$name = sub { my ($self) = @_; return $self->{$name} };
}
sub workers { return $workers }

# --- the bare loop

# The arguments that tell it where the database and its statements are.
sub database {
	my ($self) = @_;
	my ($user, $password) = map { $self->{db}->conf =~ /^$_ = (.*)/m } qw(user password);
	return ($self->{db}->socket, $user, $password, srcdir() . '/t/bench');
}

sub _start_bare {
	my ($self, $socket) = @_;
	my %env = (BARE_WAKE => Slipway::Bench::Bare::wake_socket());
	$self->{bare} = start_process({ name => 'bare', env => \%env }, program('t/bench/bare'), 'serve',
		$socket, $workers, $self->{project}, $self->database);
	poll(15, sub { -S $socket }) or die 'the bare loop has no socket';
	chmod 0666, $socket or die "$socket: $!";
	return;
}

# Runs the two inserts of a deployment for some seconds on one connection; the
# milliseconds that each transaction took.
sub bare_inserts {
	my ($self, $seconds) = @_;
	my ($status, $out, $err) = run_cmd(program('t/bench/bare'), 'insert', $seconds, $self->{project},
		$self->database);
	die "bare insert: $err" if $status != 0;
	return map { $_ / 1000 } split /\n/, $out;
}

# Whether the bare loop returns the same as the service: undef, or how they differ.
sub difference {
	my ($self, $path, $bare_path) = @_;
	my ($service, $bare) = map { $self->{client}->request(GET => $_)->{body} } $path, $bare_path;
	s/"cursor=\d+"|\s+$//g for $service, $bare;
	return $service eq $bare ? undef
	    : sprintf "%s and the bare loop return different bodies (%d and %d bytes)", $path,
		length $service, length $bare;
}

# --- projects, pipelines, deployments

# The bare loop inserts deployments of pipeline 1.
sub _first_project {
	my ($self) = @_;
	$self->{repository} = $self->{runner}->repo({ map { ("file$_" => "text $_\n" x 100) } 1 .. 100 });
	$self->{project} = $self->add_project('bench');
	my $noop = $self->pipeline('noop');
	die "the first pipeline has the id $noop" if $noop != 1;
	$self->wait($self->deploy($noop)); # clones
	return;
}

sub add_project {
	my ($self, $name) = @_;
	return $self->{api}->make('/api/projects', { name => $name, repository => $self->{repository},
		defaultBranch => 'main' })->{id};
}

# Whether pipelines can do without a checkout; undef, or why not.
sub no_checkout_missing {
	my ($self) = @_;
	return $self->{no_checkout} if exists $self->{no_checkout};
	my $got = $self->{api}->post('/api/pipelines', { projectId => $self->{project},
		name => 'without a checkout', checkout => 'none', steps => [] });
	return $self->{no_checkout} = $got->{status} == 201 ? undef
	    : 'pipelines have no member "checkout"';
}

my %scripts = (
	noop => ":\n",
	# bash prints the time itself; a program would have to be started first
	stamp => "#!/bin/bash\nprintf '%s\\n' \"\$EPOCHREALTIME\"\n",
);

sub script { my ($self, $name) = @_; return $scripts{$name} }

# The id of a project's pipeline whose step is one of these scripts or another one. It
# is created once. more: members of the pipeline.
sub pipeline {
	my ($self, $script, %opt) = @_;
	my $project = $opt{project} || $self->{project};
	my %more = $opt{more} ? %{ $opt{more} } : ();
	my $key = join ' ', $project, $script, map { "$_ $more{$_}" } sort keys %more;
	return $self->{pipelines}{$key} ||= $self->{api}->make('/api/pipelines', {
		projectId => $project, name => 'pipeline ' . keys(%{ $self->{pipelines} }), %more,
		steps => [ { name => 'step', script => $scripts{$script} || $script } ] })->{id};
}

# Posts a deployment: its id, and in a list also the time just before.
sub deploy {
	my ($self, $pipeline, $project) = @_;
	$project ||= $self->{project};
	my $posted = time;
	my $got = $self->{client}->request(POST => '/api/deployments',
		"{\"projectId\":$project,\"pipelineId\":$pipeline}");
	die "POST: $got->{status} $got->{body}" if $got->{status} != 201;
	my ($id) = $got->{body} =~ /"id":(\d+)/;
	return wantarray ? ($id, $posted) : $id;
}

sub status {
	my ($self, $id) = @_;
	my $body = $self->{client}->request(GET => "/api/deployments/$id")->{body};
	my ($status) = $body =~ /"status":"(\w+)"/ or die "deployment $id: $body";
	return wantarray ? ($status, $body) : $status;
}

# Waits for the end of a deployment, which must be a success.
sub wait {
	my ($self, $id, $deadline) = @_;
	my $end = time + deadline($deadline || 60);
	while (1) {
		my ($status, $body) = $self->status($id);
		return $body if $status eq 'success';
		die "deployment $id: $body" if $status !~ /^(?:pending|running)$/;
		die "deployment $id is still $status" if time > $end;
		sleep 0.01;
	}
}

sub stop_runner { my ($self) = @_; $self->{runner}->stop if $self->{runner}->pid; return }
sub start_runner { my ($self) = @_; $self->{runner}->resume if !$self->{runner}->pid; return }

# Empties the queue, while no runner is active.
sub clear_queue {
	my ($self) = @_;
	$self->{db}->sql("UPDATE deployment SET status = 'canceled', reason = 'canceled_by_user',"
	    . " finished_at = NOW(3) WHERE status = 'pending'");
	return;
}

# Ended deployments of the first project.
sub _seed {
	my ($self, $n) = @_;
	$self->{db}->sql(<<"SQL");
SET SESSION unique_checks = 0, foreign_key_checks = 0;
INSERT INTO deployment (project_id, pipeline_id, branch, commit_hash, commit_message, status, `trigger`,
    created_by, runner, created_at, started_at, finished_at, log_size)
    SELECT $self->{project}, 1, 'main', SHA1(seq), CONCAT('commit ', seq), 'success', 'manual',
    1, 'runner-1', NOW(3), NOW(3), NOW(3), 100 FROM seq_1_to_$n;
ANALYZE TABLE deployment
SQL
	return;
}

# --- processes

# The pids of the service: the API, slipway-live and the runner with all that they
# started.
sub pids {
	my ($self) = @_;
	return map { _with_children($_) } grep { defined } $self->{api}->pid, $self->{live},
	    $self->{runner}->pid;
}
# The pids of all that serves requests, of slipway and of the bare loop.
sub server_pids {
	my ($self) = @_;
	return map { _with_children($_) } $self->{api}->pid, $self->{bare}, $self->{api}->nginx_pid,
	    $self->{db}->pid;
}
sub _with_children {
	my ($pid) = @_;
	my @children = map { split ' ', slurp($_) // '' } glob "/proc/$pid/task/*/children";
	return ($pid, map { _with_children($_) } @children);
}

1;
