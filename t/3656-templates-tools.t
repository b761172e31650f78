# SPDX-License-Identifier: ISC
# Templates around tools that a host may lack: MariaDB, PHP, Hugo, SSH, Docker,
# systemd.  With the tool they run; without it they say how to get it.
use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Template;
use Slipway::Test;

my $got;
sub have {
	my ($status) = run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v \"\$1\"", 'sh', $_[0]);
	note("$_[0] is ", $status == 0 ? 'here' : 'not here');
	return $status == 0;
}

# --- database migration
my $db = Slipway::DB->start(empty => 1);
$db->sql("CREATE USER deploy\@localhost IDENTIFIED BY 'pass word'; GRANT ALL ON slipway.* TO deploy\@localhost");
$db->sql('CREATE TABLE guest (name VARCHAR(20)); INSERT INTO guest VALUES (\'Ada\')');
my %files = ('migrations/001-a.sql' => "ALTER TABLE guest ADD age INT;\n",
	'migrations/002-b.sql' => "UPDATE guest SET age = 36;\n");
my $migration = Slipway::Template->new('database-migration', %files);
my $dumps = Slipway::Template::room('dumps');
my %env = (DB => 'slipway', BACKUP_DIR => $dumps, DB_USER => 'deploy',
	DB_PASSWORD => 'pass word', DB_SOCKET => $db->socket);
$got = $migration->deploy(%env);
ok($got->{ok}, 'migration: without CONFIRM it succeeds') or diag($got->{log});
like($got->{log}, qr/pending: 001-a\.sql\npending: 002-b\.sql/, 'shows what is pending');
is($db->sql("SHOW COLUMNS FROM guest LIKE 'age'"), '', 'and applies nothing');
is_deeply([glob "$dumps/*"], [], 'and dumps nothing');
$got = $migration->deploy(%env, CONFIRM => 'other');
ok(!$got->{ok} && $got->{log} =~ /CONFIRM is not slipway/, 'a wrong CONFIRM is refused');
$got = $migration->deploy(%env, CONFIRM => 'slipway');
ok($got->{ok}, 'migration: applied') or diag($got->{log});
is($db->sql('SELECT age FROM guest'), '36', 'in order');
is($db->sql('SELECT GROUP_CONCAT(name ORDER BY name) FROM schema_migration'), '001-a.sql,002-b.sql', 'and recorded');
my ($dump) = glob "$dumps/*";
is((stat $dump)[2] & 0777, 0600, 'the dump is private');
my ($restore) = $got->{log} =~ /^\t(zcat .*)$/m;
unlike($got->{log}, qr/pass word/, 'the password is not shown');
$got = $migration->deploy(%env, CONFIRM => 'slipway');
like($got->{log}, qr/nothing is pending/, 'a second run finds nothing to do');
my ($status, $out, $err) = run_cmd({ env => { MYSQL_PWD => 'pass word' } }, 'bash', '-c', $restore);
is($status, 0, 'the command that it printed restores') or diag($err);
is($db->sql("SHOW COLUMNS FROM guest LIKE 'age'"), '', 'what was before');
$db->sql('DROP TABLE IF EXISTS schema_migration');
$migration->checkout('migrations/003-c.sql' => "ALTER TABLE nothing ADD x INT;\n");
$got = $migration->deploy(%env, CONFIRM => 'slipway');
is($got->{failed}, 'Apply', 'a failing file fails the deployment');
like($got->{log}, qr/to restore the database as it was before:\n\tzcat/, 'and the way back is shown');
is($db->sql('SELECT COUNT(*) FROM schema_migration'), '0', 'and is not recorded');
$migration->checkout('migrations/004-d.sql' => "SELECT 1;\n");
$migration->deploy(%env, CONFIRM => 'slipway');
$migration->checkout('migrations/004-d.sql' => "SELECT 2;\n");
$got = $migration->deploy(%env);
ok(!$got->{ok} && $got->{log} =~ /was changed after it was applied/, 'a changed file is refused');
for my $case (
	['no database', { DB => undef }, qr/choose a database/],
	['a database with a quote', { DB => 'a`b' }, qr/must be the name/],
	['a directory that is not there', { MIGRATIONS_DIR => 'sql' }, qr/no directory sql/],
	['a directory outside', { MIGRATIONS_DIR => '/etc' }, qr/of the checkout/],
	['a wrong password', { DB_PASSWORD => 'x' }, qr/Access denied/],
) {
	my ($name, $change, $want) = @$case;
	$got = $migration->deploy(%env, %$change, CONFIRM => 'slipway');
	ok(!$got->{ok}, "migration: refuses $name");
	like($got->{log}, $want, '- saying why');
}
$migration->checkout('migrations/a\';b.sql' => "SELECT 1;\n");
like($migration->deploy(%env)->{log}, qr/are allowed in a name/, 'migration: refuses a file name that quotes');
$db->stop;

# --- PHP
my $root = Slipway::Template::room('php');
my %php = ('composer.json' => '{"name":"a/b","description":"sample","license":"ISC","require":{}}',
	'index.php' => "<?php echo 'one';\n", 'storage/seed' => "seed\n");
my $php = Slipway::Template->new('php-composer-release', %php);
my $tools = have('php') && have('composer');
$got = $php->deploy(DEPLOY_ROOT => $root, RELOAD_TRIGGER => "$root/reload");
if ($tools) {
	ok($got->{ok}, 'php: released') or diag($got->{log});
	ok(-e "$root/current/vendor/autoload.php", 'with its packages');
	is(readlink("$root/current/storage"), "$root/shared/storage", 'with what is shared');
	is(slurp("$root/shared/storage/seed"), "seed\n", 'as the repository had it first');
	my $good = readlink "$root/current";
	spew("$root/shared/storage/seed", "used\n");
	$got = $php->deploy(DEPLOY_ROOT => $root);
	is(slurp("$root/current/storage/seed"), "used\n", 'and as it is now after the next') or diag($got->{log});
	$good = readlink "$root/current";
	$php->checkout(%php, 'index.php' => "<?php echo 'one'\n}");
	$got = $php->deploy(DEPLOY_ROOT => $root);
	is($got->{failed}, 'Release', 'php: a file that does not parse is refused');
	is(readlink("$root/current"), $good, 'before the switch');
	$php->checkout(%php, 'composer.json' => '{"name":');
	ok(!$php->deploy(DEPLOY_ROOT => $root)->{ok}, 'php: a broken composer.json is refused');
	$php->checkout(%php);
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => '/etc');
	like($got->{log}, qr/must be relative/, 'php: refuses to share what lies outside');
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => '.env');
	like($got->{log}, qr/\.env is missing: put it there first/, 'php: asks for a file that must be shared');
} else {
	ok(!$got->{ok}, 'php: without its tools it fails');
	like($got->{log}, qr/is not installed on the runner: apt-get install (?:php-cli|composer)/, 'and says how to get them');
}
for my $slug (qw(laravel symfony)) {
	$got = Slipway::Template->new($slug, %php)->deploy(DEPLOY_ROOT => $root, SHARED => 'storage');
	ok(!$got->{ok}, "$slug: refuses another kind of project");
	like($got->{log}, $tools ? qr/checkout has no (?:artisan|bin\/console)/ : qr/is not installed/, '- saying why');
}

if ($tools) {
	# An application whose console only writes down what it was told.
	my $console = "<?php file_put_contents(__DIR__ . '/calls', implode(' ', array_slice(\$argv, 1)) . PHP_EOL, FILE_APPEND);\n";
	my $calls = sub { return join ' ', map { (split ' ', $_)[0] } split /\n/, slurp($_[0]) };
	$root = Slipway::Template::room('laravel');
	my $laravel = Slipway::Template->new('laravel', %php, artisan => $console);
	$got = $laravel->deploy(DEPLOY_ROOT => $root);
	like($got->{log}, qr/shared\/\.env is missing: put it there first/, 'laravel: asks for its .env');
	spew("$root/shared/.env", "APP_ENV=production\n");
	Slipway::Template::own("$root/shared/.env");
	$got = $laravel->deploy(DEPLOY_ROOT => $root, RUN_MIGRATIONS => 'yes');
	ok($got->{ok}, 'laravel: released') or diag($got->{log});
	is($calls->("$root/current/calls"), 'storage:link optimize migrate:status migrate queue:restart',
		'with the calls of its console in order');
	is(slurp("$root/current/.env"), "APP_ENV=production\n", 'and its .env');
	ok(-d "$root/shared/storage/framework/views", 'and a storage that is whole');
	$got = $laravel->deploy(DEPLOY_ROOT => $root);
	unlike($calls->("$root/current/calls"), qr/migrate(?!:)/, 'laravel: no migration unless asked');
	$root = Slipway::Template::room('symfony');
	my $symfony = Slipway::Template->new('symfony', %php, 'bin/console' => $console);
	$got = $symfony->deploy(DEPLOY_ROOT => $root, SHARED => 'var/log', RUN_MIGRATIONS => 'yes');
	ok($got->{ok}, 'symfony: released') or diag($got->{log});
	is($calls->("$root/current/bin/calls"),
		'cache:clear doctrine:migrations:status doctrine:migrations:migrate', 'with the calls of its console in order');
	ok(-l "$root/current/var/log", 'and what is shared');
}

# --- Hugo
$root = Slipway::Template::room('hugo');
my $hugo = Slipway::Template->new('static-generator', 'config.toml' => "title = \"Sample\"\ndisableKinds = [\"taxonomy\", \"term\"]\n",
	'layouts/index.html' => "<p>{{ .Site.Title }} {{ .Site.BaseURL }}</p>\n");
$got = $hugo->deploy(DEPLOY_ROOT => $root, GENERATOR => 'hugo', BASE_URL => 'https://www.example.org/');
if (have('hugo')) {
	ok($got->{ok}, 'hugo: built and released') or diag($got->{log});
	like(slurp("$root/current/index.html"), qr{Sample https://www\.example\.org/}, 'for its address');
} else {
	like($got->{log}, qr/hugo is not installed on the runner: apt-get install hugo/, 'hugo: says how to get it');
}
for my $case (['no generator', {}, qr/choose hugo/], ['an unknown one', { GENERATOR => 'x' }, qr/must be hugo/],
	['an address that is none', { GENERATOR => 'hugo', BASE_URL => 'javascript:1' }, qr/must start with http/]) {
	my ($name, $change, $want) = @$case;
	$got = $hugo->deploy(DEPLOY_ROOT => $root, %$change);
	ok(!$got->{ok} && $got->{log} =~ $want, "static generator: refuses $name") or diag($got->{log});
}

# --- SSH, to a server of its own under this test's account
SKIP: {
	local $Slipway::Template::as_self = 1;
	my $ssh = Slipway::Template->new('ssh-deploy', 'index.html' => "one\n", 'after.sh' => "echo after >after.txt\n");
	my $far = tempdir() . '/far/site';
	my $me = getpwuid $>;
	my %senv = (HOSTS => "$me\@127.0.0.1", REMOTE_DIR => $far, SSH_KEY_FILE => tempdir() . '/key',
		KNOWN_HOSTS => tempdir() . '/known', REMOTE_SCRIPT => 'after.sh');
	my $shell = (getpwuid $>)[8];
	if (!-x '/usr/sbin/sshd' || !have('ssh') || $shell =~ m{/(?:nologin|false)$}) {
		$got = $ssh->deploy(%senv);
		ok(!$got->{ok}, 'ssh: without a key or ssh it fails');
		like($got->{log}, qr/cannot be read|is not installed on the runner/, 'and says why');
		last SKIP;
	}
	my $dir = tempdir();
	my $port = free_port();
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/$_") for qw(key hostkey);
	my $host = slurp("$dir/hostkey.pub");
	spew("$dir/known", "[127.0.0.1]:$port $host");
	mkdir '/run/sshd', 0755 if is_root();
	spew("$dir/sshd_config", <<"CONF");
Port $port
ListenAddress 127.0.0.1
HostKey $dir/hostkey
AuthorizedKeysFile $dir/key.pub
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
CONF
	start_process({ name => 'sshd' }, '/usr/sbin/sshd', '-D', '-e', '-f', "$dir/sshd_config");
	$senv{SSH_PORT} = $port;
	poll(10, sub { (run_cmd('ssh-keyscan', '-p', $port, '127.0.0.1'))[1] });
	$got = $ssh->deploy(%senv, DRY_RUN => 'yes');
	ok($got->{ok} && !-e $far, 'ssh: a dry run changes nothing') or diag($got->{log}, slurp("$dir/sshd.log"));
	$got = $ssh->deploy(%senv);
	ok($got->{ok}, 'ssh: deployed') or diag($got->{log}, slurp("$dir/sshd.log"));
	is(slurp("$far/current/index.html"), "one\n", 'and current');
	is(slurp("$far/current/after.txt"), "after\n", 'and its script has run there');
	my $good = readlink "$far/current";
	$ssh->checkout('index.html' => "two\n", 'after.sh' => "exit 3\n");
	$got = $ssh->deploy(%senv);
	is($got->{failed}, 'Switch', 'ssh: a failing script fails it');
	ok(!-e "$far/previous" && readlink("$far/current") eq $good, 'and the host goes back') or diag($got->{log});
	ok(!-e "$far/releases/$got->{id}", 'without the bad release');
	for my $case (
		['no host', { HOSTS => undef }, qr/choose at least one host/],
		['an option as host', { HOSTS => '-oProxyCommand=x' }, qr/is not a valid host/],
		['a directory that quotes', { REMOTE_DIR => "/a/b'c" }, qr/absolute path/],
		['an unknown host key', { KNOWN_HOSTS => '/dev/null' }, qr/unknown/],
		['a key that is not there', { SSH_KEY_FILE => "$dir/nokey" }, qr/cannot be read/],
		['a script outside', { REMOTE_SCRIPT => '../x.sh' }, qr/file of the release/],
	) {
		my ($name, $change, $want) = @$case;
		$got = $ssh->deploy(%senv, %$change);
		ok(!$got->{ok}, "ssh: refuses $name");
		like($got->{log}, $want, '- saying why');
		is(readlink("$far/current"), $good, '- and the host stays as it was');
	}
}

# --- Docker and systemd: what they say where these are not, or know nothing
$got = Slipway::Template->new('docker-compose', 'compose.yaml' => "services: {}\n")->deploy(COMPOSE_PROJECT => 'sample');
ok(!$got->{ok}, 'docker compose: fails without services');
like($got->{log}, qr/apt-get install docker\.io|has no compose|service|daemon/, 'and says why');
my $systemd = Slipway::Template->new('systemd-restart');
for my $case (['no service', {}, qr/choose at least one service|not installed on the runner/],
	['an option', { SERVICES => '--root=/' }, qr/is not a valid service name|not installed on the runner/],
	['one that is not there', { SERVICES => 'slipway-no-such.service' },
		qr/not-found|not on the runner|not been booted|Failed to|bus/]) {
	my ($name, $change, $want) = @$case;
	$got = $systemd->deploy(%$change);
	is($got->{failed}, 'Before', "systemd: refuses $name");
	like($got->{log}, $want, '- saying why');
}

# Where no systemd runs, a stand-in writes down what it was asked; the real one
# would restart services of this host.
my $stand = Slipway::Template::room('stand-in');
spew("$stand/systemctl", <<'SH', 0755);
#!/bin/sh
here=${0%/*}
for unit; do :; done
case "$*" in
*LoadState*) [ -e "$here/$unit" ] && echo loaded || echo not-found ;;
*is-active*) [ "$(cat "$here/$unit")" = good ] || { echo failed; exit 3; }
	echo active ;;
status*) echo "journal of $unit" ;;
*) echo "$*" >>"$here/asked" ;;
esac
SH
spew("$stand/good.service", "good\n");
spew("$stand/bad.service", "bad\n");
{
	local $Slipway::Template::path = "$stand:$Slipway::Template::path";
	$got = $systemd->deploy(SERVICES => 'good.service', ACTION => 'restart', DRY_RUN => 'yes');
	ok($got->{ok} && !-e "$stand/asked", 'systemd: a dry run restarts nothing') or diag($got->{log});
	$got = $systemd->deploy(SERVICES => 'good.service,bad.service', ACTION => 'restart', CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'systemd: a service that does not come up fails it');
	is(slurp("$stand/asked"), "--no-ask-password restart -- good.service\n--no-ask-password restart -- bad.service\n",
		'after both were restarted, in order');
	like($got->{log}, qr/journal of good\.service\njournal of bad\.service/, 'and their journals are shown');
	ok($systemd->deploy(SERVICES => 'good.service')->{ok}, 'systemd: one that is up succeeds');
	like(slurp("$stand/asked"), qr/ reload -- good\.service\n\z/, 'reloaded, if nothing else is said');
	$got = $systemd->deploy(SERVICES => 'good.service', ACTION => 'stop');
	like($got->{log}, qr/ACTION must be/, 'systemd: refuses another action');
	unlink "$stand/asked";
	my $app = Slipway::Template::room('app');
	my $release = Slipway::Template->new('static-site-rsync', 'public/index.html' => "x\n");
	my $rollback = Slipway::Template->new('rollback');
	$release->deploy(DEPLOY_ROOT => $app) for 1 .. 2;
	my $now = readlink "$app/current";
	$got = $rollback->deploy(DEPLOY_ROOT => $app, SERVICE => 'bad.service', CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'a service that stays down fails a release');
	is(readlink("$app/current"), $now, 'which is taken back');
	is(slurp("$stand/asked"), "--no-ask-password reload-or-restart -- bad.service\n" x 2, 'with a restart each way');
}

done_testing;
