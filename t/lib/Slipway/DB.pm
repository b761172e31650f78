# SPDX-License-Identifier: ISC
package Slipway::DB;

# A private MariaDB server: unix socket only, small, ended with the test.
# Initializing a data directory and applying the schema take seconds, so both are
# done once per user, server version and schema; each test copies the result.
#
#   my $db = Slipway::DB->start;      the schema in `slipway`, two accounts
#   my $db = Slipway::DB->start(empty => 1);      no tables: migrate creates them
#   my $db = Slipway::DB->start(port => 1, args => ['--max-connections=4']);
#   my $db = Slipway::DB->start(data => $directory, idle => 1);   a copy; resume starts it
#   my $db = Slipway::DB->start(in => $directory);      its data below this one
#   $db->conf                         a [database] section for slipway.conf
#
# SLIPWAY_MARIADBD is the path of another server, beside its mariadb-install-db:
# `make check-mariadb` runs tests on that of another Debian.

use strict;
use warnings;
use DBI ();
use Digest::SHA ();
use Fcntl qw(:flock F_SETFD FD_CLOEXEC);
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use Slipway::Test;
{ package main; require 'syscall.ph'; } # defines its functions in the package that loads it first

my $made = 0;

# The accounts and their rights: rows, or rows and tables.
my @accounts = (
	['slipway', 'rows-password', 'SELECT, INSERT, UPDATE, DELETE'],
	['slipway_admin', 'schema-password',
	    'SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES'],
);

sub _server {
	return $ENV{SLIPWAY_MARIADBD} if $ENV{SLIPWAY_MARIADBD};
	for my $path (qw(/usr/sbin/mariadbd /usr/libexec/mariadbd /usr/sbin/mysqld)) {
		return $path if -x $path;
	}
	die "mariadbd is missing: install mariadb-server\n";
}

# A data directory that is created once: the name identifies its content, and the
# code fills it.
sub _template {
	my ($name, $fill) = @_;
	my $base = ($ENV{TMPDIR} || '/tmp') . "/slipway-t-template-$>";
	mkdir $base, 0700;
	my @st = lstat $base;
	die "$base belongs to another account\n" if !-d _ || $st[4] != $> || ($st[2] & 022);
	my $dir = "$base/$name";
	return $dir if utime undef, undef, "$dir.done";
	open my $lock, '>', "$base/lock" or die "$base/lock: $!";
	flock $lock, LOCK_EX or die "$base/lock: $!";
	return $dir if -e "$dir.done";
	# those of other builds, which no test has used for two days
	for my $old (grep { -M > 2 } glob "$base/*.done") {
		unlink $old;
		remove_tree($old =~ s/\.done$//r);
	}
	remove_tree($dir);
	$fill->($dir);
	spew("$dir.done", '');
	return $dir;
}

# A name for what this server creates from these files.
sub _name {
	my (@files) = @_;
	my ($size, $modified) = (stat _server())[7, 9];
	my $digest = Digest::SHA->new(256)->add(_server(), "$size $modified",
	    map { $_, slurp($_) } __FILE__, @files);
	return substr $digest->hexdigest, 0, 16;
}

# The result of mariadb-install-db, with our accounts and an empty database.
sub _bare {
	my $fill = sub {
		my ($dir) = @_;
		my $tmp = tempdir() . '/install';
		mkdir $tmp or die "$tmp: $!";
		my $program = 'mariadb-install-db';
		$program = dirname(_server()) . "/$program" if $ENV{SLIPWAY_MARIADBD};
		my ($status, $out, $err) = run_cmd($program, '--no-defaults',
		    "--tmpdir=$tmp",
		    "--datadir=$dir", '--auth-root-authentication-method=socket',
		    '--auth-root-socket-user=' . getpwuid($>),
		    '--skip-test-db', '--force', '--innodb-log-file-size=8M', _as_root());
		die "mariadb-install-db: $out$err" if $status != 0;
		my $db = __PACKAGE__->_on($dir);
		# a hundred files that each test would copy
		$db->sql('DROP DATABASE IF EXISTS sys', 'mysql');
		$db->sql('CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
		for my $account (@accounts) {
			my ($name, $password, $rights) = @$account;
			$db->sql("CREATE USER '$name'\@'$_' IDENTIFIED BY '$password';"
			    . "GRANT $rights ON slipway.* TO '$name'\@'$_'",
			    'mysql') for 'localhost', '127.0.0.1';
		}
		$db->stop;
	};
	return _template('bare-' . _name(), $fill);
}

# The same with the schema that slipway-admin applies.
sub _migrated {
	my $bare = _bare();
	my $fill = sub {
		my ($dir) = @_;
		my ($status, undef, $err) = run_cmd('cp', '-a', $bare, $dir);
		die "cp: $err" if $status != 0;
		__PACKAGE__->_on($dir)->migrate->stop;
	};
	return _template('schema-' . _name(sort glob srcdir() . '/sql/[0-9]*.sql'), $fill);
}

# A server on an existing data directory.
sub _on {
	my ($class, $data, %opt) = @_;
	my $self = bless { dir => tempdir() . '/db' . ++$made, data => $data, %opt }, $class;
	mkdir $_, 0755 or die "$_: $!" for $self->{dir}, "$self->{dir}/tmp";
	return $self->{idle} ? $self : $self->resume;
}

sub _as_root { return is_root() ? '--user=root' : () }

sub start {
	my ($class, %opt) = @_;
	my $template = delete $opt{data} || ($opt{empty} ? _bare() : _migrated());
	my $data = (delete $opt{in} || tempdir()) . '/data' . ($made + 1);
	my ($status, undef, $err) = run_cmd('cp', '-a', $template, $data);
	die "cp: $err" if $status != 0;
	$opt{port} = free_port() if $opt{port};
	return $class->_on($data, %opt);
}

# The command line of the server.
sub command {
	my ($self, @more) = @_;
	my $dir = $self->{dir};
	my @net = $self->{port}
	    ? ('--bind-address=127.0.0.1', "--port=$self->{port}")
	    : ('--skip-networking');
	return (_server(),
	    '--no-defaults', "--datadir=$self->{data}", '--socket=' . $self->socket,
	    # not /tmp: a starting server removes the temporary tables of others
	    "--tmpdir=$dir/tmp",
	    "--pid-file=$dir/pid", @net, '--skip-log-bin',
	    '--performance-schema=OFF', '--innodb-buffer-pool-size=32M',
	    # the machine does not crash, only the server
	    '--innodb-flush-method=nosync', '--debug-no-sync',
	    # the kernel limits asynchronous requests per account
	    '--skip-innodb-use-native-aio',
	    '--innodb-log-file-size=8M', '--innodb-temp-data-file-path=ibtmp1:1M:autoextend',
	    '--key-buffer-size=1M',
	    '--innodb-autoextend-increment=1',
	    '--innodb-buffer-pool-dump-at-shutdown=OFF',
	    '--innodb-buffer-pool-load-at-startup=OFF',
	    '--max-connections=40', '--skip-name-resolve',
	    @{ $self->{args} || [] }, @more, _as_root());
}

# Starts the server on its data, and waits until it responds.
sub resume {
	my ($self, @more) = @_;
	$self->{pid} = start_process({ name => "mariadbd-$made", ends => 'KILL' },
	    $self->command(@more));
	my $up = poll(180, sub {
		die "mariadbd ended:\n" . tail(slurp(tempdir() . "/mariadbd-$made.log"))
		    if waitpid($self->{pid}, POSIX::WNOHANG()) != 0;
		my ($status) = $self->client('SELECT 1', 'mysql');
		return $status == 0;
	});
	die "mariadbd does not answer:\n" . tail(slurp(tempdir() . "/mariadbd-$made.log")) if !$up;
	return $self;
}

sub socket { my ($self) = @_; return "$self->{dir}/sock" }
sub port { my ($self) = @_; return $self->{port} }
sub pid { my ($self) = @_; return $self->{pid} }

# A session as the administrator. The test's children never end it.
sub _connect {
	my ($self, $base) = @_;
	return DBI->connect('dbi:MariaDB:database=' . (defined $base ? $base : 'slipway')
	    . ';mariadb_socket=' . $self->socket . ';mariadb_multi_statements=1',
	    scalar getpwuid($>), undef, { PrintError => 0, RaiseError => 1, AutoInactiveDestroy => 1 });
}

# A value as the command line client prints it in a batch: as bytes, and special
# characters escaped.
my %escape = ("\n" => '\\n', "\t" => '\\t', "\0" => '\\0', '\\' => '\\\\');
sub _value {
	my ($value) = @_;
	return 'NULL' if !defined $value;
	utf8::encode($value) if utf8::is_utf8($value);
	return $value =~ s/([\n\t\0\\])/$escape{$1}/gr;
}

# The rows of all statements in the text, a line each.
sub _run {
	my ($session, $text) = @_;
	utf8::decode($text) || die "this SQL is not UTF-8: load() takes any bytes\n" if !utf8::is_utf8($text);
	my $statement = $session->prepare($text);
	$statement->execute;
	my $out = '';
	do {
		while ($statement->{NUM_OF_FIELDS} && (my $row = $statement->fetchrow_arrayref)) {
			$out .= join("\t", map { _value($_) } @$row) . "\n";
		}
	} while ($statement->more_results);
	return $out;
}

# Statements that change their session, or need one that ends with them.
my $of_session = qr/(?:\A|;)\s*(?:SET(?!\ GLOBAL)|USE|BEGIN|START|XA|LOCK|FLUSH|PREPARE
    |DROP\ DATABASE)\b|TEMPORARY|GET_LOCK|@/xi;

# The session for the next statement.  One is kept while it is alive, because each new one
# costs twenty times as much as a short statement.  A process that the test has forked has
# its own, and a program that it executes does not inherit it: DBD::MariaDB offers only
# the number of its descriptor, hence the system call.
sub _session {
	my ($self, $text, $base) = @_;
	return $self->_connect($base) if defined $base || $text =~ $of_session;
	my $kept = $self->{kept};
	return $kept->{session} if $kept && $kept->{process} == $$ && $kept->{session}->ping;
	my $session = $self->_connect;
	syscall(&main::SYS_fcntl, $session->{mariadb_sockfd}, F_SETFD, FD_CLOEXEC) == 0 or die "fcntl: $!";
	$self->{kept} = { process => $$, session => $session };
	return $session;
}

# Runs SQL as the administrator: (0 or the error's number, rows, error).
sub client {
	my ($self, $text, $base) = @_;
	my $out = eval { _run($self->_session($text, $base), $text) };
	return (0, $out, '') if defined $out;
	delete $self->{kept};
	return ($DBI::err || 1, '', $DBI::err ? "ERROR $DBI::err: $DBI::errstr" : $@);
}

# Runs SQL as the administrator: the rows, columns apart by tabs.  A node of a cluster
# that stood still runs nothing (1047, 1180) until it has joined again.
sub sql {
	my ($self, $text, $base) = @_;
	my ($status, $out, $err);
	# a single statement that is rolled back, for a deadlock, can run again
	my $again = $text =~ /;\s*\S/ ? qr/^(?:1047|1180)$/ : qr/^(?:1047|1180|1213)$/;
	poll(120, sub { ($status, $out, $err) = $self->client($text, $base); return $status !~ $again });
	die "sql: $err" if $status != 0;
	chomp $out;
	return $out;
}

# Inserts a project with this id and name, and a pipeline with the same id.
sub add_project {
	my ($self, $id, $name) = @_;
	return $self->sql('INSERT INTO project (id, name, repository, project_dir)'
	    . " VALUES ($id, '$name', 'https://git.example/o/$name', '$name');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'l')");
}

# Inserts a deployment with this id and status into such a project; its id.
sub add_deployment {
	my ($self, $id, $project, $status) = @_;
	$self->sql('INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)'
	    . " VALUES ($id, $project, $project, 'manual', '$status', 1)");
	return $id;
}

# The outbox's row of a deployment's commit status: "WANTED TOLD OPEN", or these columns.
sub commit_status {
	my ($self, $id, $columns) = @_;
	$columns ||= "CONCAT_WS(' ', wanted, COALESCE(told, '-'), COALESCE(open, 0))";
	return $self->sql("SELECT $columns FROM commit_status WHERE deployment_id = $id");
}

# A [database] section; with tcp => 1 by host and port.
sub conf {
	my ($self, %opt) = @_;
	my $where = $opt{tcp} || $opt{port}
	    ? "host = 127.0.0.1\nport = " . ($opt{port} || $self->{port}) . "\n"
	    : 'socket = ' . ($opt{socket} || $self->socket) . "\n";
	my $timeout = $opt{timeout} || 20;
	return "[database]\n${where}name = slipway\n"
	    . "user = $accounts[0][0]\npassword = $accounts[0][1]\n"
	    . "migrate_user = $accounts[1][0]\n"
	    . "migrate_password = $accounts[1][1]\ntimeout = $timeout\n";
}

# The file of that section alone.
sub conf_file {
	my ($self, %opt) = @_;
	my $n = ++$self->{confs}; # a program may still read the last one
	return spew("$self->{dir}/slipway$n.conf", $self->conf(%opt), 0600);
}

# Loads a dump, which may contain any bytes, with the command line client.
sub load {
	my ($self, $dump) = @_;
	my ($status, undef, $err) = run_cmd({ stdin => $dump }, 'mariadb', '--no-defaults',
	    '--socket=' . $self->socket, '--user=' . getpwuid($>), 'slipway');
	die "load: $err" if $status != 0;
	return;
}

# Another session that has done this in a transaction, which it leaves open
# until let_go(); returns what that needs.
sub hold {
	my ($self, $text) = @_;
	my $session = $self->_connect;
	_run($session, "BEGIN; $text");
	return $session;
}
sub let_go {
	my ($self, $session) = @_;
	$session->disconnect;
	return;
}

# Makes inserts into a table (those that meet the condition) wait while a session
# holds the row of the table `gate`.
sub add_gate {
	my ($self, $table, $condition) = @_;
	$condition ||= '1';
	$self->sql('CREATE TABLE gate (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO gate VALUES (1);'
	    . "CREATE TRIGGER wait_at_gate BEFORE INSERT ON $table FOR EACH ROW BEGIN DECLARE n INT;"
	    . " IF $condition THEN SELECT id INTO n FROM gate FOR UPDATE; END IF; END");
	return $self;
}

# A persistent session: a sub that runs SQL in it and returns the rows.
sub session {
	my ($self) = @_;
	my $session = $self->_connect;
	return sub { my $out = _run($session, $_[0]); chomp $out; return $out };
}

# The number of sessions that wait for a row lock, and of all that have waited.  The
# server refreshes information_schema only when it is not read often.
sub waiting { my ($self) = @_; return $self->_status('Innodb_row_lock_current_waits') }
sub waited { my ($self) = @_; return $self->_status('Innodb_row_lock_waits') }
sub _status {
	my ($self, $name) = @_;
	my ($value) = $self->sql("SHOW GLOBAL STATUS LIKE '$name'") =~ /(\d+)$/;
	return $value;
}

# Applies the schema unless it is applied.
sub migrate {
	my ($self) = @_;
	return $self
	    if $self->sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'slipway' LIMIT 1",
	    'mysql');
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c',
	    $self->conf_file, 'migrate');
	die "slipway-admin migrate: $out$err" if $status != 0;
	return $self;
}

sub stop {
	my ($self) = @_;
	delete $self->{kept};
	stop_process($self->{pid}) if defined $self->{pid};
	delete $self->{pid};
	return $self;
}

sub kill9 {
	my ($self) = @_;
	stop_process($self->{pid}, 'KILL') if defined $self->{pid};
	delete $self->{pid};
	return $self;
}

sub restart {
	my ($self, @more) = @_;
	return $self->stop->resume(@more);
}

1;
