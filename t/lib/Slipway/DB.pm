# SPDX-License-Identifier: ISC
package Slipway::DB;

# A MariaDB server of the test's own: unix socket only, small, ended with the
# test.  A server's empty data directory takes seconds to make, so one is kept
# per user and copied.
#
#   my $db = Slipway::DB->start;      an empty database `slipway`, two accounts
#   my $db = Slipway::DB->start(port => 1, args => ['--max-connections=4']);
#   $db->migrate;                     the schema
#   $db->conf                         a [database] section for slipway.conf

use strict;
use warnings;
use Fcntl qw(:flock);
use File::Path qw(remove_tree);
use IO::Handle;
use IPC::Open2;
use Slipway::Test;
use Time::HiRes qw(sleep);

my $made = 0;

# What the accounts may do: rows, or rows and tables.
my @accounts = (
	['slipway', 'rows-password', 'SELECT, INSERT, UPDATE, DELETE'],
	['slipway_admin', 'schema-password',
	    'SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES'],
);

sub _server {
	for my $path (qw(/usr/sbin/mariadbd /usr/libexec/mariadbd /usr/sbin/mysqld)) {
		return $path if -x $path;
	}
	die "mariadbd is missing: install mariadb-server\n";
}

# An initialised data directory, made once per user and server version.
sub _template {
	my $base = ($ENV{TMPDIR} || '/tmp') . "/slipway-t-template-$>";
	mkdir $base, 0700;
	my @st = lstat $base;
	die "$base is not mine\n" if !-d _ || $st[4] != $> || ($st[2] & 022);
	open my $lock, '>', "$base/lock" or die "$base/lock: $!";
	flock $lock, LOCK_EX or die "$base/lock: $!";
	my (undef, $version) = run_cmd(_server(), '--version');
	$version =~ s/[^\w.+-]+/_/g;
	my $dir = "$base/$version";
	return $dir if -e "$dir.done";
	remove_tree($dir, "$dir.tmp");
	mkdir "$dir.tmp" or die "$dir.tmp: $!";
	my ($status, $out, $err) = run_cmd('mariadb-install-db', '--no-defaults',
	    "--tmpdir=$dir.tmp",
	    "--datadir=$dir", '--auth-root-authentication-method=socket',
	    '--auth-root-socket-user=' . getpwuid($>),
	    '--skip-test-db', '--force', '--innodb-log-file-size=8M', _as_root());
	die "mariadb-install-db: $out$err" if $status != 0;
	spew("$dir.done", '');
	return $dir;
}

sub _as_root { return is_root() ? '--user=root' : () }

sub start {
	my ($class, %opt) = @_;
	my $dir = tempdir() . '/db' . ++$made;
	my $self = bless { dir => $dir, %opt }, $class;
	mkdir $_, 0755 or die "$_: $!" for $dir, "$dir/tmp";
	my ($status, undef, $err) = run_cmd('cp', '-a', _template(), "$dir/data");
	die "cp: $err" if $status != 0;
	$self->{port} = free_port() if $opt{port};
	$self->resume;
	$self->sql('CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
	for my $account (@accounts) {
		my ($name, $password, $rights) = @$account;
		for my $host ('localhost', '127.0.0.1') {
			$self->sql("CREATE USER '$name'\@'$host' IDENTIFIED BY '$password';"
			    . "GRANT $rights ON slipway.* TO '$name'\@'$host'", 'mysql');
		}
	}
	return $self;
}

# Starts the server on the data that there is, and waits until it answers.
sub resume {
	my ($self, @more) = @_;
	my $dir = $self->{dir};
	my @net = $self->{port}
	    ? ('--bind-address=127.0.0.1', "--port=$self->{port}")
	    : ('--skip-networking');
	$self->{pid} = start_process({ name => "mariadbd-$made" }, _server(),
	    '--no-defaults', "--datadir=$dir/data", '--socket=' . $self->socket,
	    # not /tmp: a server that starts removes the temporary tables of others
	    "--tmpdir=$dir/tmp",
	    "--pid-file=$dir/pid", @net, '--skip-log-bin',
	    '--performance-schema=OFF', '--innodb-buffer-pool-size=32M',
	    # the machine does not crash, only the server
	    '--innodb-flush-method=nosync', '--debug-no-sync',
	    # of what the kernel lends to it the account has only so much
	    '--skip-innodb-use-native-aio',
	    '--innodb-log-file-size=8M', '--key-buffer-size=1M',
	    '--innodb-autoextend-increment=1',
	    '--innodb-buffer-pool-dump-at-shutdown=OFF',
	    '--innodb-buffer-pool-load-at-startup=OFF',
	    '--max-connections=40', '--skip-name-resolve',
	    @{ $self->{args} || [] }, @more, _as_root());
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

# The command line client as the administrator: ($?, output, error).
sub client {
	my ($self, $text, $base) = @_;
	return run_cmd({ stdin => $text }, 'mariadb', '--no-defaults',
	    '--socket=' . $self->socket, '--batch', '--skip-column-names',
	    '--default-character-set=utf8mb4', '--user=' . getpwuid($>),
	    defined $base ? $base : 'slipway');
}

# Runs SQL as the administrator: the rows, columns apart by tabs.
sub sql {
	my ($self, $text, $base) = @_;
	my ($status, $out, $err) = $self->client($text, $base);
	die "sql: $err" if $status != 0;
	chomp $out;
	return $out;
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

# Another session that has done this in a transaction, which it leaves open
# until let_go(); returns what that needs.
sub hold {
	my ($self, $text) = @_;
	my $pid = start_process({ name => 'holder' }, 'mariadb', '--no-defaults', '--socket=' . $self->socket,
	    '--user=' . getpwuid($>), '--execute', "BEGIN; $text; DO SLEEP(600)", 'slipway');
	poll(60, sub { $self->_sleeper }) or die "nothing is held: $text";
	return $pid;
}
sub _sleeper {
	my ($self) = @_;
	return $self->sql("SELECT id FROM information_schema.processlist WHERE info LIKE 'DO SLEEP(600)%'");
}
sub let_go {
	my ($self, $pid) = @_;
	$self->sql('KILL ' . $self->_sleeper);
	stop_process($pid);
	return;
}

# A session that is kept: what it is given runs there, and is done when the
# call returns; the rows.
sub session {
	my ($self) = @_;
	my $pid = open2(my $out, my $in, 'mariadb', '--no-defaults', '--socket=' . $self->socket,
	    '--batch', '--skip-column-names', '--unbuffered', '--user=' . getpwuid($>), 'slipway');
	$in->autoflush(1);
	return sub {
		my ($text) = @_;
		print {$in} "$text;\nSELECT 'done';\n";
		my @rows;
		while (defined(my $row = <$out>)) {
			chomp $row;
			return join "\n", @rows if $row eq 'done';
			push @rows, $row;
		}
		waitpid $pid, 0;
		die "session: $text";
	};
}

# How many sessions wait for a lock of a row, and how many ever did.  What
# information_schema tells of it is not made anew while it is asked often.
sub waiting { my ($self) = @_; return $self->_status('Innodb_row_lock_current_waits') }
sub waited { my ($self) = @_; return $self->_status('Innodb_row_lock_waits') }
sub _status {
	my ($self, $name) = @_;
	my ($value) = $self->sql("SHOW GLOBAL STATUS LIKE '$name'") =~ /(\d+)$/;
	return $value;
}

sub migrate {
	my ($self) = @_;
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c',
	    $self->conf_file, 'migrate');
	die "slipway-admin migrate: $out$err" if $status != 0;
	return $self;
}

sub stop {
	my ($self) = @_;
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
