# SPDX-License-Identifier: ISC
# Templates that replace something in place: a binary, a directory, an nginx site,
# WordPress themes; and the plain pipeline.
use strict;
use warnings;
use Test::More;
use Slipway::Template;
use Slipway::Test;

my $got;
my $room = Slipway::Template::room('room');

# --- binary
my $make = "all:\n\tcp app.in app\n\tchmod 755 app\ncheck:\n\t./app\n";
my $bin = Slipway::Template->new('binary-systemd', Makefile => $make,
	'app.in' => "#!/bin/sh\necho version 1\n");
my $dest = Slipway::Template::room('dest/bin');
my %env = (TARGET => "$dest/app", BINARY => 'app', VERSION_OPTION => '--version',
	RELOAD_TRIGGER => "$room/restart", CHECK_SECONDS => 2);
$got = $bin->deploy(%env, DRY_RUN => 'yes');
ok($got->{ok} && !-e "$dest/app", 'binary: a dry run installs nothing') or diag($got->{log});
$got = $bin->deploy(%env);
ok($got->{ok}, 'binary: a deployment succeeds') or diag($got->{log});
like(scalar run_out("$dest/app"), qr/version 1/, 'binary: the installed file runs');
is(slurp("$room/restart"), "$got->{id}\n", 'binary: the trigger file names the deployment');
$bin->checkout(Makefile => $make, 'app.in' => "#!/bin/sh\necho version 2\n");
$got = $bin->deploy(%env, CHECK_URL => 'http://127.0.0.1:' . free_port() . '/');
ok(!$got->{ok}, 'binary: a deployment whose page fails is undone');
is($got->{broken}, 'Check', 'binary: undoing a deployment succeeds') or diag($got->{log});
like(scalar run_out("$dest/app"), qr/version 1/, 'binary: undoing a deployment restores the former file');
ok(!-e "$dest/app.new", 'binary: undoing a deployment leaves no temporary file');
is(slurp("$room/restart"), "$got->{id}\n", 'binary: undoing a deployment triggers a restart');
ok($bin->deploy(%env)->{ok}, 'binary: the next deployment succeeds');
like(scalar run_out("$dest/app"), qr/version 2/, 'binary: the next deployment installs its file');
mkdir "$dest/app.new" or die "app.new: $!";
$got = $bin->deploy(%env);
is($got->{failed}, 'Install', 'binary: the step Install fails if it cannot write');
like(scalar run_out("$dest/app.previous"), qr/version 1/,
    'binary: a file that cannot be written keeps the previous one');
rmdir "$dest/app.new" or die "app.new: $!";
$bin->checkout(Makefile => $make, 'app.in' => "#!/bin/sh\nexit 1\n");
$got = $bin->deploy(%env);
is($got->{failed}, 'Build', 'binary: the step Build fails if a test fails');
is($got->{broken}, 'Build', 'binary: a failing test restores nothing') or diag($got->{log});
like(scalar run_out("$dest/app"), qr/version 2/, 'binary: a failing test keeps the installed file');
$bin->checkout(Makefile => $make, 'app.in' => "#!/bin/sh\necho 3\n");
for my $case (
	['no target', { TARGET => undef }, qr/set TARGET/],
	['a relative target', { TARGET => 'bin/app' }, qr/absolute path/],
	['a target with ..', { TARGET => "$dest/../app" }, qr/absolute path/],
	['a directory as the target', { TARGET => $dest }, qr/is a directory/],
	['a target in a missing directory', { TARGET => "$room/no/app" }, qr/does not exist/],
	['a binary outside the checkout', { BINARY => '/bin/sh' }, qr/file of the checkout/],
	['a binary that was not built', { BINARY => 'b' }, qr/was not built/],
	['an unknown build', { BUILD => 'x' }, qr/BUILD must be/],
) {
	my ($name, $change, $want) = @$case;
	$got = $bin->deploy(%env, %$change);
	ok(!$got->{ok}, "binary: $name is rejected");
	like($got->{log}, $want, "binary: the error for $name says why");
}
like(scalar run_out("$dest/app"), qr/version 2/, 'binary: rejected deployments keep the installed file');

sub run_out { my (undef, $out) = run_cmd(@_); return $out }

# --- simple deploy
my $target = Slipway::Template::room('simple') . '/site';
my $simple = Slipway::Template->new('simple-deploy-pipeline', 'index.html' => "one\n",
	'old.html' => "old\n", 'a b/c d' => "blank\n");
ok(($got = $simple->deploy(DEPLOY_DIR => $target, DRY_RUN => 'yes'))->{ok}, 'simple: a dry run succeeds')
    or diag($got->{log});
ok(!-e $target, 'simple: a dry run writes nothing');
ok(($got = $simple->deploy(DEPLOY_DIR => $target))->{ok}, 'simple: a deployment succeeds')
    or diag($got->{log});
is(slurp("$target/a b/c d"), "blank\n", 'simple: files with blanks in their names are copied');
$simple->checkout('index.html' => "two\n");
$simple->deploy(DEPLOY_DIR => $target);
ok(-e "$target/old.html" && slurp("$target/index.html") eq "two\n",
    'simple: files that are no longer in the repository are kept');
$simple->deploy(DEPLOY_DIR => $target, DELETE => 'yes');
ok(!-e "$target/old.html", 'simple: with DELETE files that are no longer in the repository are deleted');
for my $case (
	['no directory', { DEPLOY_DIR => undef }, qr/set DEPLOY_DIR/],
	['a top directory', { DEPLOY_DIR => '/usr' }, qr/absolute path/],
	['the checkout itself', { DEPLOY_DIR => $simple->work }, qr/must not be in the checkout/],
	['an option', { DEPLOY_DIR => '--delete' }, qr/absolute path/],
	['a directory with ..', { DEPLOY_DIR => "$target/../../x" }, qr/absolute path/],
	['a source outside the checkout', { SOURCE_DIR => '/etc' }, qr/of the checkout/],
	['a missing source', { SOURCE_DIR => 'dist' }, qr/no directory dist/],
) {
	my ($name, $change, $want) = @$case;
	$got = $simple->deploy(DEPLOY_DIR => $target, %$change);
	ok(!$got->{ok}, "simple: $name is rejected");
	like($got->{log}, $want, "simple: the error for $name says why");
}

# --- git clone
my $plain = Slipway::Template->new('git-clone-pipeline',
	Makefile => "all:\n\ttouch built\ntest:\n\techo tested >tested\n");
run_cmd({ $plain->as_job, cwd => $plain->work }, 'sh', '-c', 'HOME=/nonexistent; export HOME;'
    . ' git init -q . && git add . && git -c user.name=a -c user.email=a@example.org commit -qm first');
$got = $plain->deploy;
ok($got->{ok}, 'git clone: a deployment succeeds') or diag($got->{log});
ok(-e $plain->work . '/built' && -e $plain->work . '/tested', 'git clone: a deployment runs tests and build');
like($got->{log}, qr/first$/m, 'git clone: the log names the commit');
spew($plain->work . '/Makefile', "all:\n\ntest:\n\tfalse\n");
is($plain->deploy->{failed}, 'Test', 'git clone: the step Test fails if a test fails');
{
	# with npm replaced: a project of several kinds
	my $stub = Slipway::Template::room('npm');
	spew("$stub/npm", "#!/bin/sh\necho \"npm \$1\" >>calls\n", 0755);
	local $Slipway::Template::path = "$stub:$Slipway::Template::path";
	my $mixed = Slipway::Template->new('git-clone-pipeline', 'package.json' => '{}',
	    Makefile => "all:\n\techo make >>calls\ntest:\n\techo make test >>calls\n",
	    'build.sh' => "echo build.sh >>calls\n",
	    'vendor/bin/phpunit' => "#!/bin/sh\necho phpunit >>calls\n",
	    'tests/AppTest.php' => "<?php\n", '.venv/bin/python' => "#!/bin/sh\nexit 5\n");
	run_cmd({ $mixed->as_job, cwd => $mixed->work }, 'sh', '-c', 'HOME=/nonexistent; export HOME;'
	    . ' git init -q . && git add .'
	    . ' && git -c user.name=a -c user.email=a@example.org commit -qm first');
	$got = $mixed->deploy;
	ok($got->{ok}, 'git clone: a project of several kinds is built') or diag($got->{log});
	is(slurp($mixed->work . '/calls') =~ s/\n/,/gr,
	    'npm install,npm test,make test,phpunit,npm run,make,build.sh,',
	    'git clone: all tests and builds that apply run, and Python looks for none in those of PHP');
}

# --- wordpress
my @sites = map { Slipway::Template::room("wp/$_") } qw(a b);
for my $site (@sites) {
	run_cmd('mkdir', '-p', "$site/wp-includes", "$site/wp-content/themes/other",
	    "$site/wp-content/themes/mine", "$site/wp-content/uploads");
	spew("$site/wp-includes/version.php", '<?php');
	spew("$site/wp-content/themes/mine/style.css", "old\n");
	spew("$site/wp-content/themes/mine/gone.php", "old\n");
	run_cmd('chown', '-R', "$Slipway::Template::uid:$Slipway::Template::uid", $site) if is_root();
}
my $wp = Slipway::Template->new('wordpress', 'wp-content/themes/mine/style.css' => "new\n",
	'wp-content/plugins/calendar/c.php' => "new\n");
my $both = join ',', @sites;
$got = $wp->deploy(SITES => $both, DRY_RUN => 'yes');
ok($got->{ok} && slurp("$sites[0]/wp-content/themes/mine/style.css") eq "old\n",
	'wordpress: a dry run changes nothing') or diag($got->{log});
$got = $wp->deploy(SITES => $both, CHECK_URL => 'http://127.0.0.1:' . free_port() . '/', CHECK_SECONDS => 1);
is($got->{failed}, 'Check', 'wordpress: a deployment whose page fails is undone');
is($got->{broken}, 'Check', 'wordpress: undoing a deployment succeeds') or diag($got->{log});
is(slurp("$_/wp-content/themes/mine/style.css"), "old\n",
    'wordpress: undoing a deployment restores the old theme') for @sites;
$got = $wp->deploy(SITES => $both);
ok($got->{ok}, 'wordpress: a deployment to both sites succeeds') or diag($got->{log});
for my $site (@sites) {
	is(slurp("$site/wp-content/themes/mine/style.css"), "new\n", 'wordpress: a site has the new theme');
	ok(!-e "$site/wp-content/themes/mine/gone.php",
	    'wordpress: a site lacks files that were removed from the theme');
	ok(-e "$site/wp-content/plugins/calendar/c.php", 'wordpress: a site has the plugin');
	ok(-d "$site/wp-content/themes/other" && -d "$site/wp-content/uploads",
	    'wordpress: other themes and uploads are kept');
	ok(!-e "$site/wp-content/.slipway", 'wordpress: no temporary file is left');
}
{
	# single files: plugins, must-use plugins and drop-ins, which are active at once
	my $site = $sites[0];
	spew("$site/wp-content/object-cache.php", "old\n");
	spew("$site/wp-content/index.php", "silence\n");
	Slipway::Template::own("$site/wp-content/object-cache.php");
	my $single = Slipway::Template->new('wordpress', 'wp-content/plugins/hello.php' => "new\n",
	    'wp-content/mu-plugins/must.php' => "new\n", 'wp-content/object-cache.php' => "new\n",
	    'wp-content/index.php' => "mine\n");
	my @files = map { "$site/wp-content/$_.php" } qw(plugins/hello mu-plugins/must object-cache index);
	my $texts = sub { return join ' ', map { -e ? slurp($_) =~ s/\n//r : '-' } @files };
	$got = $single->deploy(SITES => $site, CHECK_URL => 'http://127.0.0.1:' . free_port() . '/',
	    CHECK_SECONDS => 1);
	is($got->{broken}, 'Check', 'wordpress: undoing a deployment of single files succeeds')
	    or diag($got->{log});
	is($texts->(), '- - old silence', 'wordpress: undoing removes new files and restores old ones');
	$got = $single->deploy(SITES => $site);
	ok($got->{ok}, 'wordpress: single files are deployed') or diag($got->{log});
	is($texts->(), 'new new new silence',
	    'wordpress: plugins, must-use plugins and drop-ins are replaced');
	ok(!-e "$site/wp-content/.slipway", 'wordpress: no old file is left');

	$single->checkout('wp-content/plugins/hello.php' => "new\n");
	mkdir $single->work . '/wp-content/themes' or die "themes: $!";
	mkdir $single->work . '/wp-content/themes/mine' or die "mine: $!";
	like($single->deploy(SITES => $site)->{log}, qr/themes\/mine is empty: if it is a submodule/,
	    'wordpress: an empty theme is rejected');
	rmdir $single->work . '/wp-content/themes/mine';
	symlink '/etc', $single->work . '/wp-content/themes/mine' or die "mine: $!";
	like($single->deploy(SITES => $site)->{log}, qr/themes\/mine is a symbolic link/,
	    'wordpress: a link in the repository is rejected');
	unlink $single->work . '/wp-content/themes/mine';
	my $away = Slipway::Template::room('away');
	rename "$site/wp-content/plugins", "$away/plugins" or die "plugins: $!";
	symlink "$away/plugins", "$site/wp-content/plugins" or die "plugins: $!";
	like($single->deploy(SITES => $site)->{log}, qr/plugins is a symbolic link/,
	    'wordpress: nothing is replaced behind a link');
	is(slurp("$away/plugins/hello.php"), "new\n", 'wordpress: what is behind it stays');
	unlink "$site/wp-content/plugins";
	rename "$away/plugins", "$site/wp-content/plugins" or die "plugins: $!";
}
for my $case (
	['no site', { SITES => undef }, qr/choose at least one site/],
	['a relative site', { SITES => 'www/a' }, qr/absolute path/],
	['a directory without WordPress', { SITES => "$sites[0],$room" }, qr/does not contain WordPress/],
) {
	my ($name, $change, $want) = @$case;
	$got = $wp->deploy(SITES => $both, %$change);
	ok(!$got->{ok}, "wordpress: $name is rejected");
	like($got->{log}, $want, "wordpress: the error for $name says why");
}

# --- a private nginx
my $prefix = Slipway::Template::room('nginx');
my $vhosts = Slipway::Template::room('nginx/vhosts');
my $port = free_port();
spew("$prefix/nginx.conf", <<"CONF");
pid $prefix/nginx.pid;
error_log $prefix/error.log;
events { }
http {
	access_log off;
	client_body_temp_path $prefix/t1;
	proxy_temp_path $prefix/t2;
	fastcgi_temp_path $prefix/t3;
	uwsgi_temp_path $prefix/t4;
	scgi_temp_path $prefix/t5;
	include $vhosts/*.conf;
}
CONF
sub vhost { return "server { listen 127.0.0.1:$port; location / { return 200 '$_[0]'; } }\n" }
my $nginx = Slipway::Template->new('nginx-vhost', 'nginx/site.conf' => vhost('one'));
spew("$vhosts/site.conf", vhost('zero'));
Slipway::Template::own("$vhosts/site.conf");
my %nenv = (VHOST => 'site.conf', VHOST_DIR => $vhosts, NGINX_CONF => "$prefix/nginx.conf",
	RELOAD_TRIGGER => '', CHECK_URL => "http://127.0.0.1:$port/", CHECK_SECONDS => 5);
SKIP: {
	my ($no) = run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v nginx");
	if ($no) {
		$got = $nginx->deploy(%nenv);
		ok(!$got->{ok}, 'nginx: a deployment without nginx fails');
		last SKIP;
	}
	start_process({ $nginx->as_job, name => 'nginx', env => { PATH => $Slipway::Template::path } },
	    'nginx', '-e', "$prefix/start.log", '-c', "$prefix/nginx.conf", '-g', 'daemon off;');
	my $page = sub { return scalar run_out('curl', '-s', "http://127.0.0.1:$port/") };
	ok(poll(10, sub { $page->() eq 'zero' }), 'nginx: a private nginx serves the first site')
	    or diag(slurp("$prefix/start.log"));
	$got = $nginx->deploy(%nenv, DRY_RUN => 'yes');
	ok($got->{ok}, 'nginx: a dry run succeeds') or diag($got->{log});
	like($got->{log}, qr/^\+server .*one/m, 'nginx: a dry run shows the difference');
	is(slurp("$vhosts/site.conf"), vhost('zero'), 'nginx: a dry run changes nothing');
	$got = $nginx->deploy(%nenv);
	ok($got->{ok}, 'nginx: a deployment succeeds') or diag($got->{log});
	ok(poll(10, sub { $page->() eq 'one' }), 'nginx: the new site is served');
	$nginx->checkout('nginx/site.conf' => "server { listen nowhere_at_all; }\n");
	$got = $nginx->deploy(%nenv);
	is($got->{failed}, 'Install', 'nginx: an invalid site is rejected');
	is($got->{broken}, 'Install', 'nginx: restoring the former site succeeds') or diag($got->{log});
	is(slurp("$vhosts/site.conf"), vhost('one'), 'nginx: an invalid site is replaced by the former');
	$nginx->checkout('nginx/site.conf' => vhost('x') =~ s/return 200/return 500/r);
	$got = $nginx->deploy(%nenv, CHECK_SECONDS => 1);
	is($got->{failed}, 'Check', 'nginx: a deployment whose page fails is undone');
	is($got->{broken}, 'Check', 'nginx: undoing a deployment succeeds') or diag($got->{log});
	ok(poll(10, sub { $page->() eq 'one' }), 'nginx: undoing a deployment serves the former site');
	$nginx->checkout('nginx/new.conf' => "faulty\n", 'nginx/site.conf' => vhost('one'));
	$got = $nginx->deploy(%nenv, VHOST => 'new.conf');
	ok(!$got->{ok} && !-e "$vhosts/new.conf", 'nginx: an invalid new site is removed');
	for my $case (
		['no file', { VHOST => undef }, qr/choose a file/],
		['a path', { VHOST => '../nginx.conf' }, qr/must be a file name/],
		['a missing file', { VHOST => 'b.conf' }, qr/no file/],
		['a relative directory', { VHOST_DIR => 'vhosts' }, qr/absolute path/],
		['no way to reload', { NGINX_CONF => undef }, qr/set NGINX_CONF or RELOAD_TRIGGER/],
	) {
		my ($name, $change, $want) = @$case;
		$got = $nginx->deploy(%nenv, %$change);
		ok(!$got->{ok}, "nginx: $name is rejected");
		like($got->{log}, $want, "nginx: the error for $name says why");
	}
	# A loop in place of the path unit: it tests, reloads and reports.
	my $answer = tempdir() . '/answer';
	mkdir $answer or die "$answer: $!";
	Slipway::Template::own($answer);
	spew("$room/reload", "none\n");
	Slipway::Template::own("$room/reload");
	my $unit = <<'UNIT';
last=none
while sleep 0.1; do
	id=$(head -c 40 "$1" | tr -dc 0-9a-z-)
	[ "$id" != "$last" ] || continue
	last=$id
	cd "$2"
	if nginx -t -c "$3" 2>log && nginx -s reload -c "$3"; then result=ok; else result=failed; fi
	echo "$id $result" >new
	mv new result
done
UNIT
	start_process({ $nginx->as_job, name => 'unit', env => { PATH => $Slipway::Template::path } },
	    'sh', '-c', $unit, 'unit', "$room/reload", $answer, "$prefix/nginx.conf");
	my %tenv = (%nenv, NGINX_CONF => undef, RELOAD_TRIGGER => "$room/reload",
		RELOAD_RESULT => "$answer/result");
	$nginx->checkout('nginx/site.conf' => vhost('two'));
	$got = $nginx->deploy(%tenv);
	ok($got->{ok}, 'nginx: a deployment with a trigger file succeeds') or diag($got->{log});
	ok(poll(10, sub { $page->() eq 'two' }), 'nginx: a trigger file reloads the new site');
	$nginx->checkout('nginx/site.conf' => "faulty\n");
	$got = $nginx->deploy(%tenv);
	is($got->{failed}, 'Install', 'nginx: an invalid site is rejected with a trigger file');
	is($got->{broken}, 'Install', 'nginx: restoring the former site with a trigger file succeeds')
	    or diag($got->{log});
	like($got->{log}, qr/unexpected end of file|unknown directive/,
	    'nginx: the log quotes the error of nginx');
	is(slurp("$vhosts/site.conf"), vhost('two'),
	    'nginx: an invalid site is replaced by the former with a trigger file');
}

done_testing;
