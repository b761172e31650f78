#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin doctor finds what is wrong with the host and with the database server,
# why it matters and which line to change.

use strict;
use warnings;
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use POSIX ();
use Test::More;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start(port => 1, args => [ '--innodb-flush-log-at-trx-commit=2',
	'--max-allowed-packet=1M', '--max-connections=12' ]);
$db->migrate;
my $confs = 0;
my $key = tempdir() . '/secret.key';
my ($spool, $workspaces) = map { my $d = tempdir() . "/$_"; mkdir $d, 0755; $d } qw(spool workspaces);

sub conf {
	my (%with) = @_;
	my $runner = join '', map { "$_ = $with{runner}{$_}\n" } sort keys %{ $with{runner} || {} };
	$runner .= "spool = $spool\n" if $runner !~ /^spool/m;
	$runner .= "workspaces = $workspaces\n" if $runner !~ /^workspaces/m;
	return spew(tempdir() . '/host-' . ++$confs . '.conf', $db->conf . "[secrets]\nkey_file = $key\n"
	    . "[auth]\nadmins = ann\n[runner]\n$runner" . ($with{more} || ''), 0600);
}
sub doctor {
	my (%with) = @_;
	my ($status, $out, $err) =
	    run_cmd(@{ $with{through} || [] }, program('slipway-admin'), '-c', conf(%with), 'doctor');
	return ($status >> 8, $out . $err);
}
# Each case: a name, the mistake, and the line that the doctor prints.
sub finds {
	my ($name, $verdict, $like, %with) = @_;
	my ($status, $said) = doctor(%with);
	my ($line) = grep { /^\Q$verdict\E +$like/ } split /\n/, $said;
	ok($line, "$name is a $verdict") or diag($said);
	return;
}
run_cmd(program('slipway-admin'), '-c', conf(), 'key');

# --- the database server
finds('a server that flushes once a second', 'note',
    qr/database: innodb_flush_log_at_trx_commit is 2: .*can lose deployments.*set it to 1/);
finds('a server that takes small statements only', 'FAULT',
    qr/database: max_allowed_packet is 1048576 bytes, so .*set it to 16M/);
finds('a server with few connections', 'FAULT',
    qr/database: max_connections is 12, but .*raise it in \[mariadbd\]/);
$db->sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1; SET GLOBAL max_allowed_packet = 16777216;"
    . ' SET GLOBAL max_connections = 100');
finds('an account that may alter tables', 'note',
    qr/database: the account slipway_admin may do more .*grant it only SELECT/,
    more => "[database]\nuser = slipway_admin\npassword = schema-password\n");
$db->sql("INSERT INTO project (id, name, repository, project_dir)"
    . " VALUES (7, 'p', 'https://git.example/o/r', 'p')");

# --- a sound host
my ($status, $said) = doctor();
is($status, 0, 'a sound host passes') or diag($said);
like($said, qr/^ok     $_/m, "the doctor checks: $_")
    for 'user ids: those of the projects have no other use', 'spool: .* has free space',
    'workspaces: .* has free space',
    'programs: git is installed';
unlike($said, qr/^(?:note|FAULT) +database/m, 'a sound database server gets no note');

# --- the configuration
my $err = (run_cmd(program('slipway-admin'), '-c', tempdir() . '/none.conf', 'doctor'))[2];
like($err, qr/none\.conf does not exist: name the configuration with -c; slipway-admin setup creates one$/m,
    'a configuration that does not exist is named');
my $secret = spew('/tmp/' . (tempdir() =~ s{.*/}{}r) . '.conf', $db->conf, 0600);
$err = (run_cmd('setpriv', '--reuid=daemon', '--regid=daemon', '--clear-groups', program('slipway-admin'),
	'-c', $secret, 'doctor'))[2];
like($err, qr/cannot read the configuration: run the command as root, or/,
    'an account that cannot read the configuration gets advice');
unlink $secret;

# --- the database
my $cas = '/etc/ssl/certs/ca-certificates.crt';
$db->sql('CREATE USER elsewhere@localhost IDENTIFIED VIA unix_socket', 'mysql');
for (['no server at the socket', "socket = $spool/none.sock",
		qr/2002 .*rejects every request.*systemctl start mariadb.*socket/],
	['an unknown host', 'host = db.invalid', qr/2005 .*correct host in \[database\]/],
	['a wrong password', 'password = guessed', qr/1045 .*correct user and password in \[database\]/],
	['a server without TLS', "host = 127.0.0.1\nport = @{[$db->port]}\ntls_ca = $cas",
		qr/2026 .*set ssl_cert and ssl_key there/],
	['the account of another system account', 'user = elsewhere',
		qr/1698 .*runuser -u slipway-api, or correct/],
	['an unknown database', 'name = nothing', qr/10(?:44|49) .*slipway-admin setup creates/]) {
	my ($name, $line, $like) = @$_;
	finds($name, 'FAULT', qr/database: .*$like/, more => "[database]\n$line\n");
}

finds('a connection that may be unencrypted', 'note',
    qr/database: allow_plain = yes: .*others on the network .*remove the line from \[database\]/,
    more => "[database]\nhost = db.invalid\nallow_plain = yes\n");
unlike((doctor(more => "[database]\nallow_plain = yes\n"))[1], qr/allow_plain/,
    'a connection over the socket needs no TLS');

# --- slipway-live
my $live = "$spool/live.sock";
my $listening = IO::Socket::UNIX->new(Local => $live, Listen => 1) or die "$live: $!";
my $api = "[api]\nlive_socket = $live\n";
like((doctor(more => $api))[1], qr/^ok     slipway-live: it listens on \Q$live\E$/m,
    'slipway-live that listens passes');
close $listening;
finds('slipway-live that has stopped', 'FAULT',
    qr/slipway-live: it has stopped: .*systemctl restart slipway-live/, more => $api);
unlink $live;
finds('slipway-live that never started', 'note',
    qr/slipway-live: \S+ does not exist, .*systemctl enable --now/, more => $api);

# --- user ids and accounts
my $nobody = getpwnam 'nobody';
finds('an account within the range', 'FAULT',
    qr/user ids: the account nobody has the id $nobody, .*set uid_first in \[runner\]/,
    runner => { uid_first => $nobody - 10, uid_count => 100 });
finds('an account within the range of the watchers', 'FAULT',
    qr/user ids: the account nobody .*watch_uid_first/,
    runner => { watch_uid_first => $nobody - 10 });
finds('a range that has ended', 'FAULT',
    qr/user ids: the newest project has the id 7, and runner\.uid_count is 7, .*raise uid_count/,
    runner => { uid_count => 7 });
finds('a runner without privilege drop', 'note',
    qr/user ids: runner\.privilege_drop = no: .*remove that line/,
    runner => { privilege_drop => 'no' });
finds('an unknown job_user', 'FAULT', qr/accounts: runner\.job_user: .*no-such-user.*create the account/,
    runner => { job_user => 'no-such-user' });
finds('an unknown account of a project', 'FAULT', qr/accounts: \[run_as\] shop: .*no-such-user/,
    more => "[run_as]\nshop = no-such-user\n");
finds('root as the account of a project', 'FAULT', qr/accounts: \[run_as\] shop: root is root, /,
    more => "[run_as]\nshop = root\n");

# --- directories and programs
finds('a missing spool', 'note', qr/spool: \S+ does not exist: .*systemd-tmpfiles/,
    runner => { spool => tempdir() . '/none' });
finds('a spool that is a file', 'FAULT', qr/spool: \S+ is not a directory/, runner => { spool => conf() });
chmod 0777, $workspaces;
finds('a directory that everyone can write', 'FAULT',
    qr/workspaces: \S+ can be written by every .*chmod o-w/);
chmod 0755, $workspaces;
finds('a PATH without git', 'FAULT', qr/programs: git is not in runner\.path, .*correct path in \[runner\]/,
    runner => { path => '/nonexistent' });
finds('a PATH without ssh', 'note', qr/programs: ssh is not in runner\.path/,
    runner => { path => '/nonexistent' });
finds('a PATH without git-lfs', 'note',
    qr/programs: git-lfs is not in runner\.path, .* files of Git LFS cannot be fetched: install it/,
    runner => { path => '/nonexistent' });

# --- repositories and people
finds('neither a Git server nor other hosts', 'note',
    qr/repositories: every repository is rejected: .*allowed_hosts/);
unlike((doctor(more => "[gitserver]\nallowed_hosts = github.com\n"))[1], qr/every repository/,
    'allowed hosts are enough');
finds('an open sign-up', 'note', qr/people: auth\.signup = viewer: .*set signup = closed or guest in /,
    more => "[auth]\nsignup = viewer\n[gitserver]\nurl = https://git.example.org\ntype = git\n");
my $guests = "[auth]\nsignup = guest\n[gitserver]\nurl = https://git.example.org\ntype = git\n";
unlike((doctor(more => $guests))[1], qr/auth\.signup/, 'a sign-up of guests is no finding');

my $asks = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die;
my $pid = fork;
if (!$pid) {
	while (my $client = $asks->accept) {
		while (defined(my $line = <$client>)) { last if $line !~ /\S/ }
		print {$client} "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"staff\"\r\n"
		    . "Content-Length: 0\r\nConnection: close\r\n\r\n";
	}
	POSIX::_exit(0);
}
finds('a server that asks for passwords everywhere', 'FAULT',
    qr/redirect address: \S+ asks for a password, .*\$slipway_realm/,
    more => "[gitserver]\nurl = https://git.invalid\ntype = git\nredirect_uri = http://127.0.0.1:"
        . $asks->sockport . "/login\n");
kill 'KILL', $pid;
waitpid $pid, 0;

# --- mistakes that require a mount
SKIP: {
	my @in = ('unshare', '-m', 'sh', '-ec');
	my ($cannot) = run_cmd(@in, 'mount -t tmpfs none /mnt');
	diag('mounts: ' . ($cannot ? 'not tested, no mount namespace' : 'tested in a namespace'));
	skip 'unshare cannot create a mount namespace', 6 if $cannot;
	my $subuid = spew(tempdir() . '/ids', "# ids\nann:100000:65536\nbob:2100000100:65536\n", 0644);
	my @cases = (
		[ 'a range in /etc/subuid', 'FAULT',
		    qr{user ids: /etc/subuid gives 2100000100 to .*bob, and .*uid_first},
		    "mount --bind $subuid /etc/subuid" ],
		[ 'a full file system', 'FAULT', qr/spool: \S+: only 0 MiB are free/,
		    "mount -t tmpfs -o mode=755,size=64k none $spool" ],
		[ 'a file system without inodes', 'FAULT', qr/spool: \S+: only \d+ inodes are free/,
		    "mount -t tmpfs -o mode=755,size=4g,nr_inodes=100 none $spool" ],
		[ 'a read-only file system', 'FAULT', qr/spool: \S+ is on a file system .*read-only/,
		    "mount -t tmpfs -o mode=755,size=4g none $spool; mount -o remount,ro $spool" ],
		[ 'a noexec mount', 'FAULT', qr/workspaces: \S+ is mounted noexec, .*mount it with exec/,
		    "mount -t tmpfs -o mode=755,size=4g,noexec none $workspaces" ],
		[ 'a host without the unified hierarchy', 'note', qr/control groups: \S+ does not exist/,
		    'mount -t tmpfs none /sys/fs/cgroup' ],
	);
	for my $case (@cases) {
		my ($name, $verdict, $like, $mount) = @$case;
		finds($name, $verdict, $like, through => [ @in, "$mount; exec \"\$@\"", 'sh' ]);
	}
}
# --- no configuration at the default place
SKIP: {
	skip 'unshare cannot create a mount namespace', 1 if (run_cmd('unshare', '-m', 'true'))[0];
	my ($etc) = (run_cmd(program('slipway-admin'), 'help'))[1] =~ m{default (\S+)/slipway/slipway\.conf};
	# before the installation there may be no such directory, as in distcheck
	my @without = !-d $etc ? () :
	    ('unshare', '-m', 'sh', '-ec', "mount -t tmpfs none $etc; exec \"\$@\"", 'sh');
	my $out = (run_cmd(@without, program('slipway-admin'), 'doctor'))[1];
	like($out, qr/\Anote   configuration: \S+ does not exist, so every .*setup creates the file/,
	    'a host without a configuration gets a note');
}
# --- many logs: the server reads its statistics of a table when it starts
$db->sql("UPDATE mysql.innodb_table_stats SET clustered_index_size = 131072 WHERE table_name = 'log_chunk'");
$db->restart;
finds('two gigabytes of logs', 'note',
    qr/database: logs take 2048 MiB, .*--ignore-table-data=slipway\.log_chunk/);
done_testing();
