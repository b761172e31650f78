#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin setup creates the parts of an installation that do not exist:
# with the default configuration on a host of its own (a mount namespace with private
# copies of the directories that it changes), and with MariaDB on another host.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use Test::More;
use Slipway::Certificate;
use Slipway::DB;
use Slipway::Test;

plan skip_all => 'needs root and a mount namespace' if !own_mounts();

sub must {
	my ($status, $out, $err) = run_cmd(@_);
	die "@_: $out$err" if $status != 0;
	return $out;
}
my $dir = tempdir();
must('cp', '-a', '/etc', "$dir/etc");
must('mount', '--bind', "$dir/etc", '/etc');
must('sh', '-c', 'sed -i "/^slipway/d" /etc/passwd /etc/group /etc/shadow /etc/gshadow');
must('mount', '-t', 'tmpfs', '-o', 'mode=755', 'none', $_)
    for qw(/run /var/lib /var/spool /usr/local/share);
must('mkdir', '-p', '/run/mysqld');
must('rm', '-rf', '/etc/slipway');
my $early = (slipway_admin('/etc/slipway/slipway.conf', 'setup', '--dry-run'))[2];
like($early, qr{neither /etc/slipway/slipway.conf nor its example \S+ exists: install slipway first \(make},
    'before the installation, setup says to install slipway first');
# another prefix may be a directory that does not exist yet, as in distcheck
my ($example) = $early =~ /nor its example (\S+) exists/;
my @made = make_path(dirname($example));
END { remove_tree($made[0]) if @made }
must('cp', srcdir() . '/src/core/slipway.conf', $example);

# --- the default configuration, which does not exist yet
my $db = Slipway::DB->start(empty => 1);
$db->sql("DROP DATABASE slipway; DROP USER slipway\@localhost, slipway\@127.0.0.1", 'mysql');
symlink $db->socket, '/run/mysqld/mysqld.sock' or die;
my $conf = '/etc/slipway/slipway.conf';

sub setup {
	my ($status, $out, $err) = slipway_admin($conf, 'setup', @_);
	return ($status, $out, $err);
}
my @parts = ('system account slipway', 'system account slipway-api',
	'membership of slipway-api in the group slipway', 'directory /etc/slipway',
	"configuration $conf", 'directory /var/lib/slipway', 'directory /var/lib/slipway/workspaces',
	'directory /var/spool/slipway', 'directory /run/slipway', 'directory /run/slipway-runner',
	'keys /etc/slipway/secret.key', 'database slipway', 'database account slipway',
	'database account slipway-api', qr/schema of version \S+/, 'administrator admin',
	'API token of admin');
sub reports {
	my ($verdict, $out, $name) = @_;
	my @lines = grep { /^(?:created|missing|exists) / && !/ access to / } split /\n/, $out;
	my $all = join '\n', map { "$verdict +" . (ref $_ ? $_ : quotemeta) } @parts;
	return like(join("\n", @lines), qr/\A$all\z/, $name);
}
my ($status, $out, $err) = setup('--dry-run');
is($status, 0, '--dry-run succeeds') or diag($err);
reports('missing', $out, '--dry-run reports everything as missing');
ok(!-e '/etc/slipway' && !getpwnam 'slipway', '--dry-run creates nothing on the host');
is($db->sql("SHOW DATABASES LIKE 'slipway'", 'mysql'), '', '--dry-run creates no database');

($status, $out, $err) = setup();
is($status, 0, 'setup succeeds') or diag($out, $err);
reports('created', $out, 'setup reports all that it creates');
like($out, qr/^applying 0001-schema$/m, 'setup applies the migrations');
my ($token) = $out =~ /^(slw_[\w-]{43})$/m;
ok($token, 'setup prints the token');
my %mode = ("$conf" => '640 root:slipway', '/etc/slipway' => '755 root:root',
	'/etc/slipway/secret.key' => '640 root:slipway', '/etc/slipway/deploy.key' => '400 slipway:root',
	'/var/spool/slipway' => '700 slipway:slipway', '/run/slipway' => '755 slipway-api:slipway-api',
	'/run/slipway-runner' => '755 slipway:slipway', '/var/lib/slipway/workspaces' => '755 root:root');
is(must('stat', '-c', '%a %U:%G', $_), "$mode{$_}\n", "owner and mode of $_") for sort keys %mode;
for my $account ('slipway', 'slipway-api') {
	my @as = ('setpriv', "--reuid=$account", "--regid=$account", '--init-groups');
	($status, $out, $err) = run_cmd(@as, program('slipway-admin'), '-c', $conf, 'check');
	is($status, 0, "$account can read the configuration, the keys and the database") or diag($out, $err);
	($status, undef, $err) = run_cmd(@as, 'mariadb', '--no-defaults', '-S', $db->socket, 'slipway',
	    '-e', 'CREATE TABLE extra (id INT)');
	like($err, qr/denied/, "$account cannot change the schema");
}

my $before = must('sh', '-c', 'cat /etc/passwd /etc/group; ls -laR --time-style=full-iso /etc/slipway');
($status, $out, $err) = setup();
is($status, 0, 'setup succeeds again') or diag($err);
reports('exists', $out, 'setup reports all that exists');
unlike($out, qr/slw_/, 'setup creates no second token');
is(must('sh', '-c', 'cat /etc/passwd /etc/group; ls -laR --time-style=full-iso /etc/slipway'), $before,
    'setup changes nothing that exists');

# --- a database whose name is a pattern in GRANT
my $pattern = spew('/etc/slipway/pattern.conf', slurp($conf) . "[database]\nname = slip_way%\n", 0640);
($status, $out, $err) = slipway_admin($pattern, 'setup');
is($status, 0, 'setup creates a database with _ and % in its name') or diag($err);
like($out, qr/^created  database account slipway$/m,
    'setup grants rights in a database with _ and % in its name');
is($db->sql("SELECT GROUP_CONCAT(DISTINCT Db ORDER BY Db) FROM mysql.db WHERE User = 'slipway'", 'mysql'),
    'slip\\\\_way\\\\%,slipway', 'the rights are for this name alone');
$out = (slipway_admin($pattern, 'setup'))[1];
unlike($out, qr/^created/m, 'setup finds these rights');
$db->sql("UPDATE mysql.db SET Db = 'slip_way%' WHERE Db LIKE 'slip%way%' AND Db != 'slipway';"
    . ' FLUSH PRIVILEGES', 'mysql');
unlike((slipway_admin($pattern, 'setup', '--dry-run'))[1], qr/^missing/m, 'rights by a pattern suffice');

# --- parts that are missing
$db->sql("REVOKE DELETE ON slipway.* FROM slipway\@localhost", 'mysql');
must('rm', '-r', '/run/slipway-runner');
($status, $out) = setup('--dry-run');
is(join("\n", $out =~ /^missing +(.*)$/mg), "directory /run/slipway-runner\ndatabase account slipway",
    '--dry-run finds a missing directory and a missing right');
($status, $out) = setup();
is(join("\n", $out =~ /^created +(.*)$/mg), "directory /run/slipway-runner\ndatabase account slipway",
    'setup creates these alone');
($status, $out) = setup('--admin', 'ada');
like($out, qr/^created  administrator ada\nslw_\S+\ncreated  API token of ada$/m,
    'setup creates the administrator that --admin names');
$db->sql("UPDATE user SET role = 'viewer' WHERE username = 'ada'");
($status, $out, $err) = setup('--admin', 'ada');
is($status, 78, 'setup rejects a viewer as administrator');
like($err, qr/role viewer .*slipway-admin user set ada --role admin/, 'the error names "user set"');
unlike($out, qr/slw_/, 'a viewer gets no token');
$db->sql("UPDATE user SET role = 'admin', status = 'inactive' WHERE username = 'ada'");
is((setup('--admin', 'ada'))[0], 78, 'setup rejects an inactive administrator');
$db->sql("INSERT INTO user (username, role) VALUES ('bob', 'admin')");
($status, $out) = setup('--admin', 'bob');
like($out, qr/^exists   administrator bob$/m, 'setup finds an administrator that exists');
unlike($out, qr/slw_|token of bob/, 'an administrator that exists gets no token');
is((setup('--admin', ''))[0], 64, 'an empty --admin is rejected');
must('mv', '/etc/slipway/deploy.key', "$dir/deploy.key");
($status, undef, $err) = setup();
is($status, 78, 'setup rejects key files of which one is missing');
like($err, qr{keys \S+: \S+ exists, but /etc/slipway/deploy.key does not: restore it},
    'the error names the file and says what to do');
must('mv', "$dir/deploy.key", '/etc/slipway/deploy.key');
$db->sql("UPDATE schema_migration SET checksum = SHA2('other', 256) WHERE name LIKE '0001%'");
($status, undef, $err) = setup();
is($status, 78, 'setup rejects a schema of another release');
like($err, qr/schema of version \S+: .*0001-schema was applied with a text that differs/,
    'the error names the migration');

# --- MariaDB on another host, with client certificates
make_ca($dir, 'ca');
make_certificate($dir, 'ca', 'server', 'DNS:127.1');
make_certificate($dir, 'ca', 'client', 'DNS:client');
my $far = Slipway::DB->start(empty => 1, port => 1, args => [ "--ssl-cert=$dir/server.crt",
	"--ssl-key=$dir/server.key", "--ssl-ca=$dir/ca.crt" ]);
$far->sql('DROP DATABASE slipway; DROP USER slipway@127.0.0.1, slipway_admin@127.0.0.1;'
    . " CREATE USER boss\@127.0.0.1 IDENTIFIED BY 'boss-password' REQUIRE X509;"
    . ' GRANT ALL ON *.* TO boss@127.0.0.1 WITH GRANT OPTION', 'mysql');
my $port = $far->port;
$conf = spew('/etc/slipway/far.conf', <<"CONF", 0640);
[database]
host = 127.1
port = $port
user = slipway
password = rows-password
migrate_user = slipway_admin
migrate_password = tables-password
tls_ca = $dir/ca.crt
tls_cert = $dir/client.crt
tls_key = $dir/client.key
CONF
my $password = spew("$dir/boss", "boss-password\n", 0600);
($status, $out, $err) = setup();
like($out, qr/^created  access to \Q$conf\E$/m, 'setup lets the services read the configuration');
is($status, 78, 'a TLS key that the services cannot read is rejected');
like($err, qr/access to \Q$dir\E\/client.key: .*chgrp slipway /, 'the error says what to run');
must('groupadd', 'sslshared');
must('usermod', '-aG', 'sslshared', $_) for qw(slipway slipway-api);
must('chgrp', 'sslshared', "$dir/client.key");
must('chmod', '640', "$dir/client.key");
($status, $out, $err) = setup();
like($out, qr/^exists   access to \Q$dir\E\/client.key$/m, 'setup accepts a key of a supplementary group');
is(must('stat', '-c', '%a %G', "$dir/client.key"), "640 sslshared\n", 'setup changes no TLS key');
is($status, 78, 'an account that may not create databases is rejected');
like($err, qr/database slipway: .*the account slipway_admin .*--db-user/, 'the error names --db-user');
my @boss = ('--db-user', 'boss', '--db-password-file', $password);
($status, $out, $err) = setup(@boss);
is($status, 0, 'setup with --db-user succeeds') or diag($out, $err);
like($out, qr/^created  $_$/m, "setup creates: $_")
    for 'database slipway', map({ "database account $_" } qw(slipway slipway_admin)), 'administrator admin';
unlike($out . $err, qr/password/, 'the output contains no password');
is($far->sql("SELECT CONCAT(user, '\@', host, ' ', ssl_type) FROM mysql.user WHERE user LIKE 'slipway%'"
    . " AND host != 'localhost' ORDER BY user", 'mysql'),
    "slipway\@127.0.0.1 X509\nslipway_admin\@127.0.0.1 X509",
    'the accounts are for this host and require its certificate');
($status, $out, $err) = run_cmd('setpriv', '--reuid=slipway', '--regid=slipway', '--init-groups',
	program('slipway-admin'), '-c', $conf, 'check');
is($status, 0, 'the service can use the database there') or diag($out, $err);
($status, $out, $err) = setup();
is($status, 0, 'without --db-user, setup succeeds where all exists') or diag($out, $err);
unlike($out, qr/^created/m, 'setup creates nothing where all exists');
spew($conf, slurp($conf) =~ s/^password = .*\n//mr, 0640);
($status, undef, $err) = setup(@boss);
like($err, qr/database account slipway: .*over TCP cannot identify .*set its password in \[database\]/,
    'an account without a password is rejected');
spew($conf, slurp($conf) =~ s/^tls_ca = .*\n//mr, 0640);
($status, undef, $err) = setup(@boss);
is($status, 75, 'a server with an untrusted certificate is rejected') or diag($err);
done_testing();
