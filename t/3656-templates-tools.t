# SPDX-License-Identifier: ISC
# Templates that need tools which a host may lack: MariaDB, PHP, Hugo, SSH, Docker,
# systemd. With the tool they run; without it they name its package.
use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Sshd;
use Slipway::Template;
use Slipway::Test;

my $got;
# Whether the steps of templates find a program.
sub have {
	my ($status) = run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v \"\$1\"", 'sh', $_[0]);
	note("$_[0] is ", $status == 0 ? 'installed' : 'not installed');
	return $status == 0;
}

# --- database migration
my $db = Slipway::DB->start(empty => 1);
$db->sql("CREATE USER deploy\@localhost IDENTIFIED BY 'pass word';"
    . ' GRANT ALL ON slipway.* TO deploy@localhost');
$db->sql('CREATE TABLE guest (name VARCHAR(20)); INSERT INTO guest VALUES (\'Ada\')');
my %files = ('migrations/001-a.sql' => "ALTER TABLE guest ADD age INT;\n",
	'migrations/002-b.sql' => "UPDATE guest SET age = 36;\n");
my $migration = Slipway::Template->new('database-migration', %files);
my $dumps = Slipway::Template::room('dumps');
my %env = (DB => 'slipway', BACKUP_DIR => $dumps, DB_USER => 'deploy',
	DB_PASSWORD => 'pass word', DB_SOCKET => $db->socket);
$got = $migration->deploy(%env);
ok($got->{ok}, 'migration: a deployment without CONFIRM succeeds') or diag($got->{log});
like($got->{log}, qr/pending: 001-a\.sql\npending: 002-b\.sql/,
    'migration: without CONFIRM the log lists the pending files');
is($db->sql("SHOW COLUMNS FROM guest LIKE 'age'"), '', 'migration: without CONFIRM no file is applied');
is_deeply([glob "$dumps/*"], [], 'migration: without CONFIRM nothing is dumped');
$got = $migration->deploy(%env, CONFIRM => 'other');
ok(!$got->{ok} && $got->{log} =~ /CONFIRM is not slipway/, 'migration: a wrong CONFIRM is rejected');
$got = $migration->deploy(%env, CONFIRM => 'slipway');
ok($got->{ok}, 'migration: a deployment with CONFIRM succeeds') or diag($got->{log});
is($db->sql('SELECT age FROM guest'), '36', 'migration: the files are applied in order');
is($db->sql('SELECT GROUP_CONCAT(name ORDER BY name) FROM schema_migration'), '001-a.sql,002-b.sql',
    'migration: applied files are recorded');
my ($dump) = glob "$dumps/*";
is((stat $dump)[2] & 0777, 0600, 'migration: only its owner can read the dump');
my ($restore) = $got->{log} =~ /^\t(zcat .*)$/m;
unlike($got->{log}, qr/pass word/, 'migration: the log does not show the password');
$got = $migration->deploy(%env, CONFIRM => 'slipway');
like($got->{log}, qr/nothing is pending/, 'migration: a second deployment finds nothing pending');
my ($status, $out, $err) = run_cmd({ env => { MYSQL_PWD => 'pass word' } }, 'bash', '-c', $restore);
is($status, 0, 'migration: the printed command restores the dump') or diag($err);
is($db->sql("SHOW COLUMNS FROM guest LIKE 'age'"), '',
    'migration: the dump has the state before the migration');
$db->sql('DROP TABLE IF EXISTS schema_migration');
$migration->checkout('migrations/003-c.sql' => "ALTER TABLE nothing ADD x INT;\n");
$got = $migration->deploy(%env, CONFIRM => 'slipway');
is($got->{failed}, 'Apply', 'migration: the step Apply fails if a file fails');
like($got->{log}, qr/to restore the database as it was before:\n\tzcat/,
    'migration: the log of a failed file shows how to restore the dump');
is($db->sql('SELECT COUNT(*) FROM schema_migration'), '0', 'migration: a failed file is not recorded');
$migration->checkout('migrations/004-d.sql' => "SELECT 1;\n");
$migration->deploy(%env, CONFIRM => 'slipway');
$migration->checkout('migrations/004-d.sql' => "SELECT 2;\n");
$got = $migration->deploy(%env);
ok(!$got->{ok} && $got->{log} =~ /was changed after it was applied/,
    'migration: a file that changed after it was applied is rejected');
for my $case (
	['no database', { DB => undef }, qr/choose a database/],
	['a database with a quote', { DB => 'a`b' }, qr/must be the name/],
	['a missing directory', { MIGRATIONS_DIR => 'sql' }, qr/no directory sql/],
	['a directory outside the checkout', { MIGRATIONS_DIR => '/etc' }, qr/of the checkout/],
	['a wrong password', { DB_PASSWORD => 'x' }, qr/Access denied/],
) {
	my ($name, $change, $want) = @$case;
	$got = $migration->deploy(%env, %$change, CONFIRM => 'slipway');
	ok(!$got->{ok}, "migration: $name is rejected");
	like($got->{log}, $want, "migration: the error for $name says why");
}
$db->sql('DROP TABLE IF EXISTS schema_migration');
$migration->checkout('migrations/10_last.sql' => "SELECT 1;\n", 'migrations/2_first.sql' => "SELECT 2;\n");
my $victim = spew(tempdir() . '/victim', "keep\n", 0666);
chmod 0755, tempdir();
symlink $victim, $migration->work . '/.pending' or die "link: $!";
$got = $migration->deploy(%env, CONFIRM => 'slipway');
like($got->{log}, qr/applying 2_first\.sql\n.*applying 10_last\.sql/s,
    'migration: files are ordered by number');
is(slurp($victim), "keep\n", 'migration: nothing is written through a link of the repository');
$migration->checkout('migrations/a\';b.sql' => "SELECT 1;\n");
like($migration->deploy(%env)->{log}, qr/are allowed in a name/,
    'migration: a file name with a quote is rejected');
$db->stop;

# --- PHP
my $root = Slipway::Template::room('php');
my %php = ('composer.json' => '{"name":"a/b","description":"sample","license":"ISC","require":{}}',
	'index.php' => "<?php echo 'one';\n", 'storage/seed' => "seed\n");
my $php = Slipway::Template->new('php-composer-release', %php);
my $tools = have('php') && have('composer');
$got = $php->deploy(DEPLOY_ROOT => $root, RELOAD_TRIGGER => "$root/reload");
if ($tools) {
	ok($got->{ok}, 'php: a deployment succeeds') or diag($got->{log});
	ok(-e "$root/current/vendor/autoload.php", 'php: a release has its packages');
	is(readlink("$root/current/storage"), "$root/shared/storage",
	    'php: a release links the shared directory');
	is(slurp("$root/shared/storage/seed"), "seed\n",
	    'php: the shared directory starts with the files of the repository');
	my $good = readlink "$root/current";
	spew("$root/shared/storage/seed", "used\n");
	$got = $php->deploy(DEPLOY_ROOT => $root);
	is(slurp("$root/current/storage/seed"), "used\n",
	    'php: the next release has the present files of the shared directory') or diag($got->{log});
	$good = readlink "$root/current";
	$php->checkout(%php, 'index.php' => "<?php echo 'one'\n}");
	$got = $php->deploy(DEPLOY_ROOT => $root);
	is($got->{failed}, 'Parse', 'php: the step Parse fails if a file does not parse');
	is(readlink("$root/current"), $good, 'php: a file that does not parse keeps the current release');
	$php->checkout(%php, 'composer.json' => '{"name":');
	ok(!$php->deploy(DEPLOY_ROOT => $root)->{ok}, 'php: an invalid composer.json is rejected');
	$php->checkout(%php);
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => '/etc');
	like($got->{log}, qr/must be relative/, 'php: a shared path outside the release is rejected');
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => '.env');
	like($got->{log}, qr/\.env is missing: put it there first/, 'php: a missing shared file is rejected');

	{
		my $stub = Slipway::Template::room('cp-stub');
		spew("$stub/cp", "#!/bin/sh\nfor last; do :; done\nmkdir -p \"\$last\"\nexit 1\n", 0755);
		local $Slipway::Template::path = "$stub:$Slipway::Template::path";
		my %more = (SHARED => 'storage,uploads');
		$php->checkout(%php, 'uploads/seed' => "seed\n");
		$got = $php->deploy(DEPLOY_ROOT => $root, %more);
		is($got->{failed}, 'Release', 'php: a failed copy of a shared directory fails Release');
		is(join(' ', map { s{.*/}{}r } glob "$root/shared/{,.}[a-z]*"), 'storage',
		    'php: nothing is left of the copy');
		$Slipway::Template::path =~ s/^[^:]+://;
		ok($php->deploy(DEPLOY_ROOT => $root, %more)->{ok}, 'php: the next deployment copies it');
		is(slurp("$root/shared/uploads/seed"), "seed\n", 'php: the copy is whole');
		$php->checkout(%php);
	}
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => " storage ,\tuploads");
	ok($got->{ok}, 'php: blanks around a comma do not count') or diag($got->{log});
	is_deeply([ map { readlink("$root/current/$_") } qw(storage uploads) ],
	    [ map { "$root/shared/$_" } qw(storage uploads) ], 'php: both are shared by their names');
	spew("$root/shared/storage/upload", "mine\n");
	for my $list ('storage, ,uploads', 'storage, storage/app',
	    'storage,storage/app', 'storage/app,storage', 'storage,storage', 'storage/',
	    './storage') {
		$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => $list);
		is($got->{failed}, 'Release', "php: SHARED=$list is rejected");
		like($got->{log},
		    qr/list only one of them|must be relative/, "php: the error for $list says why");
		is(slurp("$root/shared/storage/upload"), "mine\n", "php: SHARED=$list deletes nothing");
	}
	my %linked = %php;
	delete $linked{'storage/seed'};
	$php->checkout(%linked);
	mkdir "$root/shared/storage/app" or die "app: $!";
	spew("$root/shared/storage/app/upload", "mine\n");
	Slipway::Template::own("$root/shared/storage/app", "$root/shared/storage/app/upload");
	symlink "$root/shared/storage", $php->work . '/storage' or die "link: $!";
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => 'storage/app');
	is($got->{failed}, 'Release', 'php: a shared path behind a link of the repository is rejected');
	like($got->{log}, qr/storage is a symbolic link/, 'php: the error says why');
	is(slurp("$root/shared/storage/app/upload"), "mine\n", 'php: nothing behind the link is deleted');
	ok($php->deploy(DEPLOY_ROOT => $root)->{ok},
	    'php: a link in place of the shared path itself is replaced');
	$php->checkout(%php);
	rename "$root/shared/storage", "$root/elsewhere" or die "elsewhere: $!";
	symlink "$root/elsewhere", "$root/shared/storage" or die "link: $!";
	$got = $php->deploy(DEPLOY_ROOT => $root, SHARED => 'storage/new');
	like($got->{log}, qr/shared\/storage is a symbolic link/,
	    'php: nothing is created behind a link in shared');
	ok(!-e "$root/elsewhere/new", 'php: the directory behind it stays as it was');
	ok($php->deploy(DEPLOY_ROOT => $root)->{ok}, 'php: the shared path itself may be a link');

	# what composer installs
	$php->checkout(%php, 'composer.json' => '{"name":"a/b","require":{},"version":"1.0.0",'
	    . '"scripts":{"post-autoload-dump":"env >env"}}');
	$got = $php->deploy(DEPLOY_ROOT => $root, SLIPWAY_BRANCH => 'main');
	ok($got->{ok}, 'php: what composer validate --strict rejects is installed') or diag($got->{log});
	like(slurp("$root/current/env"), qr/^COMPOSER_ROOT_VERSION=dev-main$/m,
	    'php: composer knows the version of the application');

	my $stub = Slipway::Template::room('php-stub');
	my $runs = "$stub/runs";
	my ($real) = (run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v php"))[1] =~ /(\S+)/;
	spew("$stub/php", "#!/bin/sh\necho run >>$runs\nexec $real \"\$@\"\n", 0755);
	Slipway::Template::own(spew($runs, ''));
	local $Slipway::Template::path = "$stub:$Slipway::Template::path";
	$php->checkout(%php, map { ("src/f$_.php" => "<?php function f$_() { return $_; }\n") } 1 .. 60);
	$got = $php->deploy(DEPLOY_ROOT => $root);
	ok($got->{ok}, 'php: a release with many files is parsed') or diag($got->{log});
	cmp_ok(scalar(() = slurp($runs) =~ /run/g), '<', 30, 'php: not by a process for each file');
	$php->checkout(%php, 'src/ok.php' => "<?php\n", 'src/bad.php' => "<?php\nfunction ( {\n");
	$got = $php->deploy(DEPLOY_ROOT => $root);
	is($got->{failed}, 'Parse', 'php: one bad file among others is found');
	like($got->{log}, qr{src/bad\.php(?: on line|:)}, 'php: its name is shown');
	$php->checkout(%php, 'src/bad.php' => "<?php class A { function f() {} function f() {} }\n");
	is($php->deploy(DEPLOY_ROOT => $root)->{failed}, 'Parse',
	    'php: a file that parses but does not compile is found');
	$php->checkout(%php, map { ("src/$_.php" => "<?php function f() {}\n") } qw(a b));
	$got = $php->deploy(DEPLOY_ROOT => $root);
	ok($got->{ok}, 'php: two files may declare the same function') or diag($got->{log});
} else {
	ok(!$got->{ok}, 'php: a deployment without its tools fails');
	like($got->{log}, qr/is not installed on the runner: apt-get install (?:php-cli|composer)/,
	    'php: the error without its tools names their packages');
}
for my $slug (qw(laravel symfony)) {
	$got = Slipway::Template->new($slug, %php)->deploy(DEPLOY_ROOT => $root, SHARED => 'storage');
	ok(!$got->{ok}, "$slug: another kind of project is rejected");
	like($got->{log}, $tools ? qr/checkout has no (?:artisan|bin\/console)/ : qr/is not installed/,
	    "$slug: the error for another kind of project says why");
}

if ($tools) {
	# composer's scripts see the environment of the steps
	$root = Slipway::Template::room('symfony-env');
	my $sym = Slipway::Template->new('symfony', 'bin/console' => "<?php\n", 'composer.json' =>
	    '{"name":"a/b","require":{},"scripts":{"post-autoload-dump":"env >env"}}');
	$got = $sym->deploy(DEPLOY_ROOT => $root, SHARED => 'var/log');
	ok($got->{ok}, 'symfony: an application with scripts is deployed') or diag($got->{log});
	like(slurp("$root/current/env"),
	    qr/^APP_ENV=prod$/m, "symfony: composer's scripts have APP_ENV=prod");

	# An application whose console only logs its arguments.
	my $console = "<?php file_put_contents(__DIR__ . '/calls',"
	    . " implode(' ', array_slice(\$argv, 1)) . PHP_EOL, FILE_APPEND);\n";
	my $calls = sub { return join ' ', map { (split ' ', $_)[0] } split /\n/, slurp($_[0]) };
	$root = Slipway::Template::room('laravel');
	my $laravel = Slipway::Template->new('laravel', %php, artisan => $console);
	$got = $laravel->deploy(DEPLOY_ROOT => $root);
	like($got->{log}, qr/shared\/\.env is missing: put it there first/,
	    'laravel: a missing .env is rejected');
	spew("$root/shared/.env", "APP_ENV=production\n");
	Slipway::Template::own("$root/shared/.env");
	$got = $laravel->deploy(DEPLOY_ROOT => $root, RUN_MIGRATIONS => 'yes');
	ok($got->{ok}, 'laravel: a deployment succeeds') or diag($got->{log});
	is($calls->("$root/current/calls"), 'storage:link optimize migrate:status migrate queue:restart',
	    'laravel: the commands of its console run in order');
	is(slurp("$root/current/.env"), "APP_ENV=production\n", 'laravel: a release has its .env');
	ok(-d "$root/shared/storage/framework/views", 'laravel: the shared storage has every directory');
	my $first = $got->{id};
	$got = $laravel->deploy(DEPLOY_ROOT => $root);
	unlike($calls->("$root/current/calls"), qr/migrate(?!:)/,
	    'laravel: migrations run only with RUN_MIGRATIONS');
	unlink "$root/releases/$first/calls" or die "calls: $!";
	$laravel->checkout;
	$got = $laravel->deploy(DEPLOY_ROOT => $root, RUN_MIGRATIONS => 'yes', SLIPWAY_ROLLBACK_TO => $first);
	ok($got->{ok}, 'laravel: a rollback needs no packages') or diag($got->{log});
	is($calls->("$root/releases/$first/calls"), 'queue:restart',
	    'laravel: a rollback prepares and migrates nothing, and restarts the workers');
	$root = Slipway::Template::room('symfony');
	my $symfony = Slipway::Template->new('symfony', %php, 'bin/console' => $console);
	$got = $symfony->deploy(DEPLOY_ROOT => $root, SHARED => undef);
	like($got->{log}, qr/shared\/\.env\.local is missing: put it there first/,
	    'symfony: without SHARED, its usual files are shared');
	$got = $symfony->deploy(DEPLOY_ROOT => $root, SHARED => 'var/log', RUN_MIGRATIONS => 'yes');
	ok($got->{ok}, 'symfony: a deployment succeeds') or diag($got->{log});
	is($calls->("$root/current/bin/calls"),
	    'cache:clear doctrine:migrations:status doctrine:migrations:migrate',
	    'symfony: the commands of its console run in order');
	ok(-l "$root/current/var/log", 'symfony: a release links the shared directory');
}

# --- Hugo
$root = Slipway::Template::room('hugo');
my $hugo = Slipway::Template->new('static-generator',
	'config.toml' => "title = \"Sample\"\ndisableKinds = [\"taxonomy\", \"term\"]\n",
	'layouts/index.html' => "<p>{{ .Site.Title }} {{ .Site.BaseURL }}</p>\n");
$got = $hugo->deploy(DEPLOY_ROOT => $root, GENERATOR => 'hugo', BASE_URL => 'https://www.example.org/');
if (have('hugo')) {
	ok($got->{ok}, 'hugo: a deployment succeeds') or diag($got->{log});
	like(slurp("$root/current/index.html"), qr{Sample https://www\.example\.org/},
	    'hugo: the site is built for BASE_URL');
} else {
	like($got->{log}, qr/hugo is not installed on the runner: apt-get install hugo/,
	    'hugo: the error without hugo names its package');
}
for my $case (['no generator', {}, qr/choose hugo/],
    ['an unknown generator', { GENERATOR => 'x' }, qr/must be hugo/],
	['an invalid address', { GENERATOR => 'hugo', BASE_URL => 'javascript:1' },
		qr/must start with http/]) {
	my ($name, $change, $want) = @$case;
	$got = $hugo->deploy(DEPLOY_ROOT => $root, %$change);
	ok(!$got->{ok} && $got->{log} =~ $want, "static generator: $name is rejected") or diag($got->{log});
}

# --- SSH, to a private server under the account of this test
SKIP: {
	local $Slipway::Template::as_self = 1;
	my $ssh = Slipway::Template->new('ssh-deploy', 'index.html' => "one\n",
	    'after.sh' => "echo after >after.txt\n");
	my $far = tempdir() . '/far/site';
	my $me = getpwuid $>;
	my %senv = (HOSTS => "$me\@127.0.0.1", REMOTE_DIR => $far, SSH_KEY_FILE => tempdir() . '/key',
		KNOWN_HOSTS => tempdir() . '/known', REMOTE_SCRIPT => 'after.sh');
	my $shell = (getpwuid $>)[8];
	if (!-x '/usr/sbin/sshd' || !have('ssh') || $shell =~ m{/(?:nologin|false)$}) {
		$got = $ssh->deploy(%senv);
		ok(!$got->{ok}, 'ssh: a deployment without a key or ssh fails');
		like($got->{log}, qr/cannot be read|is not installed on the runner/,
		    'ssh: the error without a key or ssh says why');
		last SKIP;
	}
	my $dir = tempdir();
	my $port = free_port();
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/$_") for qw(key hostkey);
	my $host = slurp("$dir/hostkey.pub");
	spew("$dir/known", "[127.0.0.1]:$port $host");
	sshd_start($dir, $port, "$dir/key.pub", "$dir/hostkey");
	$senv{SSH_PORT} = $port;
	$got = $ssh->deploy(%senv, DRY_RUN => 'yes');
	ok($got->{ok} && !-e $far, 'ssh: a dry run changes nothing')
	    or diag($got->{log}, slurp("$dir/sshd.log"));
	$got = $ssh->deploy(%senv);
	ok($got->{ok}, 'ssh: a deployment succeeds') or diag($got->{log}, slurp("$dir/sshd.log"));
	is(slurp("$far/current/index.html"), "one\n", 'ssh: the release becomes current on the host');
	is(slurp("$far/current/after.txt"), "after\n", 'ssh: the script runs on the host');
	my $good = readlink "$far/current";
	$ssh->checkout('index.html' => "two\n", 'after.sh' => "exit 3\n");
	$got = $ssh->deploy(%senv);
	is($got->{failed}, 'Switch', 'ssh: the step Switch fails if the script fails');
	ok(!-e "$far/previous" && readlink("$far/current") eq $good,
	    'ssh: a failing script restores the former release') or diag($got->{log});
	ok(!-e "$far/releases/$got->{id}", 'ssh: a failing script removes the release');
	for my $case (
		['no host', { HOSTS => undef }, qr/choose at least one host/],
		['an option as a host', { HOSTS => '-oProxyCommand=x' }, qr/is not a valid host/],
		['a directory with a quote', { REMOTE_DIR => "/a/b'c" }, qr/absolute path/],
		['an unknown host key', { KNOWN_HOSTS => '/dev/null' }, qr/unknown/],
		['a missing key', { SSH_KEY_FILE => "$dir/nokey" }, qr/cannot be read/],
		['a script outside the release', { REMOTE_SCRIPT => '../x.sh' }, qr/file of the release/],
	) {
		my ($name, $change, $want) = @$case;
		$got = $ssh->deploy(%senv, %$change);
		ok(!$got->{ok}, "ssh: $name is rejected");
		like($got->{log}, $want, "ssh: the error for $name says why");
		is(readlink("$far/current"), $good, "ssh: $name keeps the current release");
	}

	# back to an earlier release
	my $return = Slipway::Template->new('ssh-rollback');
	my $release = sub { return join ' ', map { readlink("$far/$_") || 'none' } qw(current previous) };
	delete $senv{REMOTE_SCRIPT};
	$got = $return->deploy(%senv);
	like($got->{log}, qr/has no previous release: set RELEASE/,
	    'ssh rollback: there is no previous release');
	$ssh->checkout('index.html' => "two\n", 'after.sh' => "exit 3\n",
	    'note.sh' => "echo ran >>note.txt\n");
	my $two = $ssh->deploy(%senv);
	ok($two->{ok}, 'ssh rollback: a second release is deployed') or diag($two->{log});
	my $both = "releases/$two->{id} $good";
	is($ssh->deploy(%senv, REMOTE_SCRIPT => 'after.sh')->{broken}, 'Switch',
	    'ssh: undoing a third release succeeds');
	is($release->(), $both, 'ssh: it does not use up the previous release');
	# a restored database gives the ids of releases again
	my $next = $two->{id} + 2;
	mkdir "$far/releases/$next" or die "release: $!";
	spew("$far/releases/$next/index.html", "live\n");
	unlink "$far/current" or die "current: $!";
	symlink "releases/$next", "$far/current" or die "current: $!";
	$got = $ssh->deploy(%senv);
	is_deeply([@$got{qw(id failed broken)}], [$next, 'Copy', 'Copy'],
	    'ssh: a deployment whose id was given before fails before the switch') or diag($got->{log});
	is($release->(), "releases/$next $good", 'ssh: and changes no link');
	is_deeply([map { slurp($_) } glob "$far/releases/$next/*"], ["live\n"], 'ssh: nor what is live');
	unlink "$far/current" or die "current: $!";
	symlink "releases/$two->{id}", "$far/current" or die "current: $!";

	# a rollback of an environment, with a release that is still there or not
	my ($one) = $good =~ /(\d+)$/;
	$got = $ssh->deploy(%senv, SLIPWAY_ROLLBACK_TO => $one);
	ok($got->{ok}, 'ssh: a rollback of an environment succeeds') or diag($got->{log});
	is(readlink("$far/releases/$got->{id}"), $one, 'ssh: it copies nothing to a host with the release');
	is(slurp("$far/current/index.html"), "one\n", 'ssh: it switches the host to the files of then');
	is(readlink("$far/previous"), "releases/$two->{id}", 'ssh: the release before is the previous one');
	my $same = $ssh->deploy(%senv, SLIPWAY_ROLLBACK_TO => $one);
	ok($same->{ok}, 'ssh: a rollback to the current release succeeds') or diag($same->{log});
	is($release->(), "releases/$got->{id} releases/$two->{id}", 'ssh: it keeps both links');
	$got = $ssh->deploy(%senv, SLIPWAY_ROLLBACK_TO => 77777);
	ok($got->{ok} && !-l "$far/releases/$got->{id}", 'ssh: a host without the release gets a copy')
	    or diag($got->{log});
	$got = $return->deploy(%senv, RELEASE => $one);
	$got = $return->deploy(%senv, RELEASE => $two->{id});
	is($release->(), $both, 'ssh rollback: releases are chosen by number');
	$got = $return->deploy(%senv, DRY_RUN => 'yes');
	ok($got->{ok} && $release->() eq $both, 'ssh rollback: a dry run changes nothing')
	    or diag($got->{log});
	unlink "$far/$good/after.txt";
	$got = $return->deploy(%senv, REMOTE_SCRIPT => 'after.sh');
	ok($got->{ok}, 'ssh rollback: a rollback to the previous release succeeds') or diag($got->{log});
	is($release->(), "$good releases/$two->{id}", 'ssh rollback: it switches both links');
	is(slurp("$far/current/index.html"), "one\n", 'ssh rollback: the host has the earlier files');
	is(slurp("$far/current/after.txt"), "after\n", 'ssh rollback: the script runs on the host');
	ok(!-e "$far/.rollback", 'ssh rollback: no temporary file is left');
	$got = $return->deploy(%senv, RELEASE => $two->{id}, REMOTE_SCRIPT => 'after.sh');
	is($got->{failed}, 'Switch', 'ssh rollback: the step Switch fails if the script fails');
	ok(!$got->{broken} || $got->{broken} ne 'Return', 'ssh rollback: the step Return succeeds')
	    or diag($got->{log});
	is($release->(), "$good releases/$two->{id}", 'ssh rollback: a failure restores both links');
	$got = $return->deploy(%senv, RELEASE => $two->{id}, REMOTE_SCRIPT => 'note.sh',
		CHECK_URL => "http://127.0.0.1:" . free_port() . '/', CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'ssh rollback: the step Check fails if the page does');
	is($release->(), "$good releases/$two->{id}", 'ssh rollback: the host returns');
	$got = $return->deploy(%senv, RELEASE => $two->{id}, REMOTE_SCRIPT => 'note.sh');
	ok($got->{ok}, 'ssh rollback: a rollback to a release by number succeeds') or diag($got->{log});
	is($release->(), $both, 'ssh rollback: it switches both links');
	for my $case (
		['the current release', { RELEASE => $two->{id} }, qr/is already the current release/],
		['an unknown release', { RELEASE => '99999' }, qr/does not exist/],
		['a path', { RELEASE => '../releases' }, qr/RELEASE must be a number/],
		['a script outside the release', { REMOTE_SCRIPT => '../x.sh' }, qr/file of the release/],
		['no directory', { REMOTE_DIR => tempdir() . '/far/none' }, qr/without a release/],
	) {
		my ($name, $change, $want) = @$case;
		$got = $return->deploy(%senv, %$change);
		ok(!$got->{ok}, "ssh rollback: $name is rejected");
		like($got->{log}, $want, "ssh rollback: the error for $name says why");
		is($release->(), $both, "ssh rollback: $name switches nothing");
	}
}

# --- Docker and systemd: errors if they are missing or know no such service
my $docker = Slipway::Template->new('docker-compose', 'compose.yaml' => "services: {}\n");
$got = $docker->deploy(COMPOSE_PROJECT => 'sample');
ok(!$got->{ok}, 'docker compose: a deployment without services fails');
like($got->{log}, qr/apt-get install docker\.io|has no compose|service|daemon/,
    'docker compose: the error says why');
my $systemd = Slipway::Template->new('systemd-restart');
for my $case (['no service', {}, qr/choose at least one service|not installed on the runner/],
	['an option', { SERVICES => '--root=/' },
		qr/is not a valid service name|not installed on the runner/],
	['an unknown service', { SERVICES => 'slipway-no-such.service' },
		qr/not-found|not installed on the runner|not been booted|Failed to|bus/]) {
	my ($name, $change, $want) = @$case;
	$got = $systemd->deploy(%$change);
	is($got->{failed}, 'Before', "systemd: $name is rejected");
	like($got->{log}, $want, "systemd: the error for $name says why");
}

# A stand-in for systemctl logs its arguments; the real one would restart services
# of this host.
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
	$got = $systemd->deploy(SERVICES => 'good.service,bad.service', ACTION => 'restart',
	    CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'systemd: the step Check fails if a service does not start');
	is(slurp("$stand/asked"), join('', map { "--no-ask-password restart -- $_.service\n" } qw(good bad)),
	    'systemd: the services are restarted in order');
	like($got->{log}, qr/journal of good\.service\njournal of bad\.service/,
	    'systemd: the log shows the journals of the services');
	ok($systemd->deploy(SERVICES => 'good.service')->{ok},
	    'systemd: a deployment with a running service succeeds');
	like(slurp("$stand/asked"), qr/ reload -- good\.service\n\z/,
	    'systemd: the default action is reload');
	$got = $systemd->deploy(SERVICES => 'good.service', ACTION => 'stop');
	like($got->{log}, qr/ACTION must be/, 'systemd: an unknown action is rejected');
	unlink "$stand/asked";
	my $app = Slipway::Template::room('app');
	my $release = Slipway::Template->new('static-site-rsync', 'public/index.html' => "x\n");
	my $rollback = Slipway::Template->new('rollback');
	$release->deploy(DEPLOY_ROOT => $app) for 1 .. 2;
	my $now = readlink "$app/current";
	$got = $rollback->deploy(DEPLOY_ROOT => $app, SERVICE => 'bad.service', CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'rollback: the step Check fails if the service does not start');
	is(readlink("$app/current"), $now, 'rollback: a service that does not start undoes the rollback');
	is(slurp("$stand/asked"), "--no-ask-password reload-or-restart -- bad.service\n" x 2,
	    'rollback: the service is restarted each way');
}

done_testing;
