# SPDX-License-Identifier: ISC
package Slipway::Runner;

# slipway-runner with a private spool and workspaces. As root with separate
# accounts: the dispatcher as `nobody`, jobs under uids that no other test has;
# otherwise all under the account of the test.
#
#   my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nslots = 2\n");
#   my $project = $runner->project(repo => $runner->repo({ file => "text\n" }));
#   my $id = $runner->deploy($project, 'echo hello', { script => 'exit 3' });
#   $runner->wait($id) eq 'failed';
#   $runner->log($id);

use strict;
use warnings;
use Compress::Zlib ();
use File::Path qw(make_path);
use Socket qw(AF_UNIX SOCK_DGRAM pack_sockaddr_un);
use Slipway::Test;
use Test::More ();
use Time::HiRes qw(sleep time);

my $made = 0;
my $next_project = 0;
my $next_repo = 0;
my $uids = 0;

# Options: db; conf: sections that come last and win; name; spool, workspaces, wake
# of another runner to share; idle => 1: does not start it.
sub start {
	my ($class, %opt) = @_;
	my $n = ++$made;
	my $dir = tempdir() . "/runner$n";
	make_path($dir);
	my $self = bless { dir => $dir, n => $n, name => "runner-$n",
		spool => "$dir/spool", workspaces => "$dir/workspaces",
		wake => "$dir/run/wake.sock", conf => '', %opt }, $class;
	make_path("$dir/run");
	if (is_root()) {
		my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
		chown $uid, $gid, "$dir/run" or die "$dir/run: $!";
	}
	$self->{uid_first} = uids_from(2) + 300 * ($uids % 10);
	$self->{watch_uid_first} = uids_from(3) + 256 * ($uids++ % 10);
	$self->write_conf;
	Test::More::note(is_root() ? "jobs run under uids from $self->{uid_first}"
	    : 'jobs run under the account of the test (privilege_drop = no)');
	$self->resume if !$opt{idle};
	return $self;
}

sub write_conf {
	my ($self, $extra) = @_;
	$self->{conf} = $extra if defined $extra;
	my $drop = is_root()
	    ? "user = nobody\nuid_first = $self->{uid_first}\nuid_count = 300\n"
		. "watch_uid_first = $self->{watch_uid_first}\n"
	    : 'user = ' . getpwuid($>) . "\nprivilege_drop = no\n";
	spew($self->conf_file, $self->{db}->conf . <<"CONF", 0640);
[runner]
name = $self->{name}
spool = $self->{spool}
workspaces = $self->{workspaces}
wake_socket = $self->{wake}
grace = 3
cancel_grace = 10
git_patience = 0
$drop\[gitserver]
allow_local = yes
[secrets]
key_file = $self->{dir}/secret.key
[log]
debug = yes
$self->{conf}
CONF
	if (is_root()) { chown 0, (getpwnam 'nobody')[3], $self->conf_file }
	return $self;
}

sub conf_file { my ($self) = @_; return "$self->{dir}/slipway.conf" }
sub dir { my ($self) = @_; return $self->{dir} }
sub wake_socket { my ($self) = @_; return $self->{wake} }
sub pid { my ($self) = @_; return $self->{pid} }
sub said {
	my ($self) = @_;
	my $said = slurp(tempdir() . "/slipway-runner-$self->{n}.log");
	return defined $said ? $said : '';
}
sub command {
	my ($self, @more) = @_;
	return (program('slipway-runner'), '-c', $self->conf_file,
	    '-d', program('slipway-dispatch'), '-j', program('slipway-job'), @more);
}

# Starts the runner, also again.
sub resume {
	my ($self, @more) = @_;
	$self->{pid} = start_process({ name => "slipway-runner-$self->{n}" },
	    $self->command(@more));
	return $self;
}

# Runs --once: exit status as in $?, and in a list also the output.
sub once {
	my ($self, @more) = @_;
	my ($status, $out, $err) = run_cmd($self->command('--once', @more));
	return wantarray ? ($status, $err) : $status;
}

sub stop { my ($self, $signal) = @_; return stop_process(delete $self->{pid}, $signal) }
sub restart { my ($self) = @_; $self->stop; return $self->resume }

# --- processes
sub _children {
	my ($pid) = @_;
	my $text = slurp("/proc/$pid/task/$pid/children");
	return split ' ', defined $text ? $text : '';
}
sub _name {
	my ($pid) = @_;
	my $n = slurp("/proc/$pid/comm");
	chomp $n if defined $n;
	return defined $n ? $n : '';
}

sub dispatcher {
	my ($self) = @_;
	my ($pid) = grep { _name($_) eq 'slipway-dispatc' } _children($self->{pid});
	return $pid;
}

# The pids of the jobs with workspaces in a directory, whatever their parent; their
# command lines can be read without root.
sub _jobs_in {
	my ($dir) = @_;
	my @jobs;
	for my $path (glob '/proc/[0-9]*') {
		my ($pid) = $path =~ m{(\d+)$};
		push @jobs, $pid
		    if _name($pid) eq 'slipway-job' && (slurp("$path/cmdline") || '') =~ m{\0-W\0\Q$dir\E/};
	}
	return @jobs;
}
sub jobs { my ($self) = @_; return _jobs_in($self->{workspaces}) }

# Kills only the monitor, and waits for it.
sub kill9 { my ($self) = @_; return stop_process(delete $self->{pid}, 'KILL') }

# Kills every process at once, as a crash of the machine does.
sub kill_all {
	my ($self) = @_;
	my @all = ($self->{pid}, grep { defined } $self->dispatcher);
	kill 'STOP', @all;
	my @below = map { _below($_) } @all, $self->jobs;
	kill 'KILL', @all, @below, $self->jobs;
	$self->kill9;
	return $self;
}
sub _below { my ($pid) = @_; return map { ($_, _below($_)) } _children($pid) }

# --- projects and deployments

# A local repository with these files in one commit.
sub repo {
	my ($self, $files) = @_;
	my $dir = tempdir() . '/repo' . ++$next_repo;
	make_path($dir);
	my %files = %{ $files || { 'README' => "a project\n" } };
	for my $name (keys %files) {
		my ($sub) = "$dir/$name" =~ m{^(.*)/};
		make_path($sub);
		spew("$dir/$name", $files{$name});
	}
	my %env = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null',
		GIT_AUTHOR_NAME => 'A', GIT_AUTHOR_EMAIL => 'a@example.org',
		GIT_COMMITTER_NAME => 'A', GIT_COMMITTER_EMAIL => 'a@example.org');
	for (['init', '-q', '-b', 'main'], ['add', '-A'], ['commit', '-q', '-m', "first\n\nof $dir"]) {
		my ($status, $out, $err) = run_cmd({ env => \%env, cwd => $dir }, 'git', @$_);
		die "git @$_: $out$err" if $status != 0;
	}
	return $dir;
}

# A project with one pipeline; its id, which is also that of the pipeline.
sub project {
	my ($self, %opt) = @_;
	my $id = ++$next_project;
	my $repo = $opt{repo} || ($self->{repo} ||= $self->repo);
	my $dir = $opt{dir} || "project$id";
	$self->{db}->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
	    . " ($id, 'Project $id', '$repo', '$dir');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'Pipeline $id')");
	return $id;
}

# A pending deployment of these steps: scripts, or { name, script, when, timeout };
# a leading { env, by } holds variables and the id of the user. Its id.
sub deploy {
	my ($self, $project, @steps) = @_;
	return ($self->deploy_many([$project, @steps]))[0];
}

# Several deployments in one transaction; their ids.
sub deploy_many {
	my ($self, @wanted) = @_;
	my $sql = "START TRANSACTION;\n";
	for (@wanted) {
		my ($project, @steps) = @$_;
		my %o = @steps && ref $steps[0] && !exists $steps[0]{script}
		    ? %{ shift @steps } : ();
		my $env = defined $o{env} ? $o{env} : '{}';
		my $by = defined $o{by} ? $o{by} : 'NULL';
		$sql .= 'INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, env_vars,'
		    . " created_by) VALUES ($project, $project, 'main', 'manual', '$env', $by);\n"
		    . "SET \@id = LAST_INSERT_ID();\n";
		my $n = 0;
		for (@steps) {
			my %s = ref $_ ? %$_ : (script => $_);
			my $name = $s{name} || "step $n";
			my $when = $s{when} || 'success';
			my $timeout = $s{timeout} || 'NULL';
			my $script = unpack 'H*', $s{script};
			$sql .= 'INSERT INTO deployment_step'
			    . ' (deployment_id, position, name, script, run_when, may_fail, timeout_seconds)'
			    . " VALUES (\@id, $n, '$name', CONVERT(UNHEX('$script') USING utf8mb4),"
			    . " '$when', " . ($s{may_fail} ? 1 : 0) . ", $timeout);\n";
			$n++;
		}
		$sql .= "SELECT \@id;\n";
	}
	my $ids = $self->{db}->sql("${sql}COMMIT;\n");
	$self->ring;
	return split /\n/, $ids;
}

# Wakes the dispatcher, as the API does after its commit.
sub ring {
	my ($self) = @_;
	socket my $s, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!";
	send $s, '', 0, pack_sockaddr_un($self->{wake});
	close $s;
	return;
}

sub cancel {
	my ($self, $id) = @_;
	$self->{db}->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $id AND status = 'running';"
	    . "UPDATE deployment SET status = 'canceled', reason = 'canceled_by_user', finished_at = NOW(3)"
	    . " WHERE id = $id AND status = 'pending'");
	$self->ring;
	return;
}

# --- results
sub column {
	my ($self, $id, $what) = @_;
	return $self->{db}->sql("SELECT $what FROM deployment WHERE id = $id");
}
sub status { my ($self, $id) = @_; return $self->column($id, 'status') }

# Waits for one of these states (default: any final one); the last state.
sub wait {
	my ($self, $id, $want, $deadline) = @_;
	$want ||= qr/^(?:success|failed|canceled|interrupted)$/;
	my $status;
	on_failure('the last deployment' => sub { $self->tell($id) });
	poll($deadline || 120, sub { $status = $self->status($id); return $status =~ $want });
	return $status;
}

# A deployment in a few lines, for diagnostics.
sub tell {
	my ($self, $id) = @_;
	return "$id " . $self->column($id, 'CONCAT_WS(" ", status, reason, detail, epoch, runner)') . ': '
	    . $self->steps($id)
	    . "\n" . tail($self->log($id), 15);
}

# "success failed skipped"
sub steps {
	my ($self, $id) = @_;
	return join ' ', split /\n/,
	    $self->{db}->sql("SELECT status FROM deployment_step WHERE deployment_id = $id"
	    . " ORDER BY position");
}

# The log in the database; dies if it has a gap.
sub log {
	my ($self, $id) = @_;
	my $text = '';
	for (split /\n/, $self->{db}->sql("SELECT start, length, packed, HEX(data) FROM log_chunk"
	    . " WHERE deployment_id = $id ORDER BY start")) {
		my ($start, $length, $packed, $hex) = split /\t/;
		my $data = pack 'H*', defined $hex ? $hex : '';
		$data = Compress::Zlib::uncompress($data) if $packed;
		die "log of $id: a hole before $start" if $start > length $text;
		substr($text, $start, $length) = $data;
	}
	return $text;
}

# Waits for a pattern in the log; the whole log.
sub wait_log {
	my ($self, $id, $re, $deadline) = @_;
	my $text;
	poll($deadline || 60, sub { $text = $self->log($id); return $text =~ $re });
	return $text;
}

# Whether the jobs leave no process and no directory in the spool.
sub is_clean {
	my ($self) = @_;
	my (@left, @jobs);
	return 1 if poll(60, sub {
		@left = grep { m{/\d+\.\d+$|/(?:new|old)\.} } glob "$self->{spool}/*";
		@jobs = $self->jobs;
		return !@left && !@jobs;
	});
	Test::More::diag("left: @left; jobs @jobs");
	return 0;
}

END {
	# jobs outlive their monitor; a failed test may leave some
	kill 'KILL', _below($_), $_ for _jobs_in(tempdir());
}

1;
