# SPDX-License-Identifier: ISC
# Templates that create releases: they are copied, switched in one step, checked,
# rolled back and pruned.
use strict;
use warnings;
use Test::More;
use Slipway::Template;
use Slipway::Test;

note(is_root() ? 'steps run under an account without a name' : 'steps run as this user');

# A web server for the check: serves DIR/current, and 503 once .sick is there.
sub serve {
	my ($root) = @_;
	my $port = free_port();
	my $site = room_file('serve.pl', <<'PERL');
use strict; use warnings; use IO::Socket::INET;
my ($port, $root) = @ARGV;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
    Listen => 5, ReuseAddr => 1) or die "listen: $!";
while (1) {
	my $c = $s->accept or next;
	my $request = <$c>;
	while (defined(my $line = <$c>)) { last if $line =~ /^\r?\n/ }
	my $ok = open(my $fh, '<', "$root/current/index.html") && !-e "$root/current/.sick";
	my $body = $ok ? do { local $/; <$fh> } : "sick\n";
	print {$c} 'HTTP/1.0 ', $ok ? '200 OK' : '503 Sick', "\r\nContent-Length: ",
	    length $body, "\r\n\r\n", $body;
	close $c;
}
PERL
	start_process({ name => "serve$port" }, $^X, $site, $port, $root);
	return "http://127.0.0.1:$port/";
}
sub room_file { my ($name, $text) = @_; return spew(tempdir() . "/$name", $text) }
sub current { my ($root) = @_; return readlink("$root/current") }

# --- static site
my $root = Slipway::Template::room('site');
my $url = serve($root);
my $site = Slipway::Template->new('static-site-rsync', 'public/index.html' => "one\n",
	'public/css/a.css' => "a\n", '.git/HEAD' => "x\n");
my %env = (DEPLOY_ROOT => $root, CHECK_URL => $url, CHECK_SECONDS => 100, KEEP_RELEASES => 2);

my $dry = $site->deploy(%env, DRY_RUN => 'yes');
ok($dry->{ok}, 'static site: a dry run of a first deployment succeeds') or diag($dry->{log});
is_deeply([glob "$root/*"], [], 'static site: a dry run writes nothing');

my $one = $site->deploy(%env);
ok($one->{ok}, 'static site: a first deployment succeeds') or diag($one->{log});
is(current($root), "releases/$one->{id}", 'static site: a deployment becomes the current release');
is(slurp("$root/current/css/a.css"), "a\n", 'static site: a release contains its files');
is((stat "$root/current/index.html")[2] & 0777, 0644,
    'static site: other users can read the files of a release');
ok(!-l "$root/previous", 'static site: the first release has no previous one');
like($one->{log}, qr/\Q$url\E responds/, 'static site: the check requests CHECK_URL');

$site->checkout('public/index.html' => "two\n");
$dry = $site->deploy(%env, DRY_RUN => 'yes');
ok($dry->{ok}, 'static site: a dry run of a second deployment succeeds');
like($dry->{log}, qr{deleting +css/}, 'static site: a dry run lists the files that it would delete');
is(current($root), "releases/$one->{id}", 'static site: a dry run keeps the current release');
my $two = $site->deploy(%env);
ok($two->{ok}, 'static site: a second deployment succeeds') or diag($two->{log});
is(slurp("$root/current/index.html"), "two\n", 'static site: the second release becomes current');
is(readlink("$root/previous"), "releases/$one->{id}",
    'static site: the first release becomes the previous one');

$site->checkout('public/index.html' => "three\n", 'public/.sick' => "x\n");
my $sick = $site->deploy(%env, CHECK_SECONDS => 1);
ok(!$sick->{ok}, 'static site: a release whose page fails is not deployed');
is($sick->{failed}, 'Check', 'static site: the step Check fails if the page fails');
is($sick->{broken}, 'Check', 'static site: the rollback of a failed check succeeds') or diag($sick->{log});
is_deeply($sick->{ran}, ['Build', 'Copy', 'Switch', 'Check', 'Roll back'],
    'static site: nothing is pruned after a failed check');
is(slurp("$root/current/index.html"), "two\n", 'static site: a failed check restores the current release');
ok(!-e "$root/releases/$sick->{id}", 'static site: a failed check removes the failed release');
is(readlink("$root/previous"), "releases/$one->{id}",
    'static site: a failed check keeps the release before as the previous one');
my $undone = Slipway::Template->new('rollback')->deploy(DEPLOY_ROOT => $root);
ok($undone->{ok}, 'static site: a rollback is possible after a failed check') or diag($undone->{log});
is(current($root), "releases/$one->{id}", 'static site: it goes to the release before');
ok(Slipway::Template->new('rollback')->deploy(DEPLOY_ROOT => $root)->{ok}, 'static site: and back');

$site->checkout('public/index.html' => "four\n");
my $four = $site->deploy(%env);
my $five = $site->deploy(%env);
ok($four->{ok} && $five->{ok}, 'static site: two more deployments succeed');
is_deeply([map { m{(\d+)$} } glob "$root/releases/*"], [$four->{id}, $five->{id}],
    'static site: KEEP_RELEASES limits the number of releases');

$site->checkout('build.sh' => "mkdir public; echo built >public/index.html\n");
ok($site->deploy(%env, BUILD => 'script')->{ok}, 'static site: a deployment with BUILD=script succeeds');
is(slurp("$root/current/index.html"), "built\n", 'static site: a deployment with BUILD=script runs build.sh');

# a rollback of an environment repeats a deployment, here without what it was built from
sub releases { return join ' ', map { m{([^/]+)$} } glob "$root/releases/*" }
my ($built) = current($root) =~ m{(\d+)$};
my %back = (%env, SLIPWAY_ROLLBACK_TO => $five->{id}, BUILD => 'script');
$site->checkout('public/index.html' => "new\n");
$dry = $site->deploy(%back, DRY_RUN => 'yes');
like($dry->{log}, qr/releases\/$five->{id} is still there/,
    'static site: a dry run says what a rollback uses');
is(releases(), "$five->{id} $built", 'static site: a dry run of a rollback changes nothing');
my $again = $site->deploy(%back);
ok($again->{ok}, 'static site: a rollback builds nothing') or diag($again->{log});
is(slurp("$root/current/index.html"), "four\n", 'static site: a rollback switches to the files of then');
is(readlink("$root/releases/$again->{id}"), $five->{id}, 'static site: a rollback makes no release');
is(readlink("$root/previous"), "releases/$built", 'static site: the release before is the previous one');
my $same = $site->deploy(%back);
ok($same->{ok}, 'static site: a rollback to the current release succeeds') or diag($same->{log});
is(current($root) . ' ' . readlink("$root/previous"), "releases/$again->{id} releases/$built",
    'static site: it keeps the links to the release and to the previous one');
spew("$root/releases/$five->{id}/.sick", '');
$sick = $site->deploy(%back, CHECK_SECONDS => 1);
is($sick->{failed}, 'Check', 'static site: a rollback to the current release whose page fails is undone');
is(current($root) . ' ' . readlink("$root/previous"), "releases/$again->{id} releases/$built",
    'static site: the links stay');
unlink "$root/releases/$five->{id}/.sick" or die "$root: $!";
ok($site->deploy(%env)->{ok}, 'static site: a deployment after a rollback succeeds');
is(slurp("$root/previous/index.html"), "four\n",
    'static site: what the previous link leads to is not pruned');
spew("$root/releases/$five->{id}/.sick", '');
$sick = $site->deploy(%back, CHECK_SECONDS => 1);
is($sick->{failed}, 'Check', 'static site: a rollback whose page fails is undone');
is(slurp("$root/current/index.html"), "new\n", 'static site: the release before is current again');
ok(-d "$root/releases/$five->{id}" && !-l "$root/releases/$sick->{id}",
    'static site: the release that a rollback used stays');
mkdir "$root/releases/1.old" or die "$root: $!";
Slipway::Template::own("$root/releases/1.old");
my ($six, $seven) = map { $site->deploy(%env)->{id} } 1 .. 2;
is(releases(), "$six $seven", 'static site: links to pruned releases are removed, and half of a removal');
my $rebuilt = $site->deploy(%back, BUILD => 'none');
ok($rebuilt->{ok} && !-l "$root/releases/$rebuilt->{id}",
    'static site: a rollback to a pruned release makes it again') or diag($rebuilt->{log});
is(slurp("$root/current/index.html"), "new\n", 'static site: from the checkout');

for my $case (
	['no directory', { DEPLOY_ROOT => undef }, qr/set DEPLOY_ROOT/],
	['a relative directory', { DEPLOY_ROOT => 'srv/www' }, qr/absolute path/],
	['a top directory', { DEPLOY_ROOT => '/srv' }, qr/absolute path/],
	['a directory that contains ..', { DEPLOY_ROOT => "$root/../x" }, qr/must not contain \.\./],
	['the checkout itself', { DEPLOY_ROOT => $site->work }, qr/must not be in the checkout/],
	['a directory of the checkout', { DEPLOY_ROOT => $site->work . '/out' },
		qr/must not be in the checkout/],
	['a source outside the checkout', { SOURCE_DIR => '/etc' }, qr/SOURCE_DIR must be/],
	['a source with ..', { SOURCE_DIR => '../site' }, qr/SOURCE_DIR must be/],
	['a missing source', { SOURCE_DIR => 'dist' }, qr/no directory dist/],
	['an unknown build', { BUILD => 'rm' }, qr/BUILD must be/],
	['an expression for CHECK_SECONDS', { CHECK_SECONDS => 'a[$(touch pwned)]' },
		qr/CHECK_SECONDS must be/],
	['an expression for KEEP_RELEASES', { KEEP_RELEASES => 'a[$(touch pwned)]' },
		qr/KEEP_RELEASES must be/],
) {
	my ($name, $change, $want) = @$case;
	my $before = current($root);
	$site->checkout('public/index.html' => "x\n");
	my $got = $site->deploy(%env, %$change);
	ok(!$got->{ok}, "static site: $name is rejected");
	like($got->{log}, $want, "static site: the error for $name says why");
	ok(!-e $site->work . '/pwned', "static site: $name runs nothing");
	next if $name =~ /KEEP/;
	is(current($root), $before, "static site: $name keeps the current release");
}
{
	local $Slipway::Template::path = room_path(qw(bash env));
	$site->checkout('public/index.html' => "x\n");
	my $got = $site->deploy(%env);
	ok(!$got->{ok}, 'static site: a deployment without rsync fails');
	like($got->{log}, qr/rsync is not installed on the runner: apt-get install rsync/,
	    'static site: the error without rsync names its package');
}
# A PATH with only these programs.
sub room_path {
	my $dir = tempdir() . '/few';
	mkdir $dir or die "$dir: $!" if !-d $dir;
	for my $name (@_) {
		my ($from) = grep { -x } map { "$_/$name" } qw(/bin /usr/bin);
		symlink $from, "$dir/$name" or die "$name: $!";
	}
	return $dir;
}

# --- what is in the way
sub own_all { Slipway::Template::own(@_); return }
sub made {
	my ($name, $text) = @_;
	mkdir $name or die "$name: $!";
	own_all(spew("$name/index.html", $text), $name);
}
{
	my $root = Slipway::Template::room('strangers');
	my %env = (DEPLOY_ROOT => $root, KEEP_RELEASES => 2);
	$site->checkout('public/index.html' => "first\n");
	my $first = $site->deploy(%env);
	# a restored database gives the ids of releases again, here that of the live one
	my $next = $first->{id} + 1;
	made("$root/releases/$next", "live\n");
	unlink "$root/current" or die "current: $!";
	symlink "releases/$next", "$root/current" or die "current: $!";
	symlink "releases/$first->{id}", "$root/previous" or die "previous: $!";
	$site->checkout('public/index.html' => "new\n");
	my $got = $site->deploy(%env);
	is($got->{failed}, 'Copy',
	    'strangers: a deployment whose id was given before fails before the switch');
	is($got->{broken}, 'Copy', 'strangers: its rollback succeeds') or diag($got->{log});
	like($got->{log}, qr{releases/$next belongs to another deployment.*slipway-admin skip-ids}s,
	    'strangers: the log says why, and what to do');
	is(slurp("$root/current/index.html"), "live\n", 'strangers: what is live stays as it is');
	is_deeply([sort map { s{.*/}{}r } glob "$root/releases/$next/*"], ['index.html'],
	    'strangers: nothing is written into it');
	symlink $first->{id}, "$root/releases/" . ($next + 1) or die "link: $!";
	is($site->deploy(%env, SLIPWAY_ROLLBACK_TO => $first->{id})->{failed}, 'Build',
	    'strangers: the same for a rollback');
	is(readlink("$root/releases/" . ($next + 1)), $first->{id}, 'strangers: which leaves the link alone');

	made("$root/releases/$_", "old\n") for 9001 .. 9004;
	my @own = map { $site->deploy(%env) } 1 .. 3;
	ok($own[-1]{ok}, 'strangers: a deployment beside releases with higher numbers succeeds')
	    or diag($own[-1]{log});
	is_deeply([sort { $a <=> $b } map { m{/(\d+)$} } grep { !-l } glob "$root/releases/*"],
	    [$own[1]{id}, $own[2]{id}], 'strangers: they do not take the places of newer releases');
	spew("$root/releases/.$own[0]{id}", '');
	$site->deploy(%env);
	ok(!-e "$root/releases/.$own[0]{id}", 'strangers: the record of a pruned release is removed');

	# a release of the same number, of another commit
	my $live = current($root) =~ s{.*/}{}r;
	spew("$root/releases/.$live", '1' x 40);
	$site->checkout('public/index.html' => "built\n");
	$got = $site->deploy(%env, SLIPWAY_ROLLBACK_TO => $live);
	ok($got->{ok} && !-l "$root/releases/$got->{id}",
	    'strangers: a rollback uses only what has its commit')
	    or diag($got->{log});
}
# --- what cannot be deleted
{
	my $root = Slipway::Template::room('undeletable');
	my %env = (DEPLOY_ROOT => $root, KEEP_RELEASES => 1);
	my @own = map { $site->deploy(%env, KEEP_RELEASES => 9) } 1 .. 4;
	my $dir = "$root/releases/$own[1]{id}/cache";
	mkdir $dir or die "$dir: $!";
	spew("$dir/page", '');
	own_all($dir) if !is_root();
	chmod 0555, $dir;
	my $got = $site->deploy(%env);
	ok($got->{ok}, 'prune: what it cannot delete does not fail the deployment') or diag($got->{log});
	is_deeply($got->{warnings}, ['Prune'], 'prune: it is a warning');
	$dir = "$root/releases/$own[1]{id}.old/cache";
	my $owner = getpwuid((stat $dir)[4]) || (stat _)[4];
	like($got->{log},
	    qr{\Q$dir\E/page, which belongs to \Q$owner\E, cannot be deleted. As root: rm -rf \Q$root\E},
	    'prune: it says which file, whose it is and what to do');
	is_deeply([map { m{/(\d+)$} } glob "$root/releases/*"], [$own[3]{id}, $got->{id}],
	    'prune: it goes on with the others');
	my $again = $site->deploy(%env);
	is_deeply([$again->{ok}, $again->{warnings}], [1, ['Prune']],
	    'prune: the next deployment succeeds, too');
	chmod 0755, $dir;
	run_cmd('rm', '-rf', "$root/releases/$own[1]{id}.old");
}

# --- no empty site, and nothing from outside
for my $case (
	['without an index page', { 'public/index.js' => "1\n", 'public/a.html' => "a\n" },
	    qr/no index page/],
	['with an empty index page', { 'public/index.html' => '', 'public/a' => 'a' }, qr/no index page/],
	['with a pointer of Git LFS', { 'public/index.html' =>
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n" },
		    qr/pointer of Git LFS/],
) {
	my ($name, $files, $want) = @$case;
	my $before = current($root);
	$site->checkout(%$files);
	my $got = $site->deploy(%env);
	is($got->{failed}, 'Copy', "static site: a site $name is rejected");
	like($got->{log}, $want, "static site: the error for a site $name says why");
	is(current($root), $before, "static site: a site $name keeps the current release");
}
$site->checkout('x' => "x\n");
mkdir $site->work . '/public' or die "public: $!";
like($site->deploy(%env)->{log}, qr/is empty: if it is a submodule/,
    'static site: an empty directory is rejected');
rmdir $site->work . '/public';
symlink '/etc', $site->work . '/public' or die "public: $!";
like($site->deploy(%env)->{log}, qr/leads out of the checkout/, 'static site: a link out of it is rejected');

# --- rollback
my $now = current($root);
my $back = Slipway::Template->new('rollback');
my %benv = (DEPLOY_ROOT => $root, CHECK_URL => $url, CHECK_SECONDS => 100);
my $previous = readlink("$root/previous");
$dry = $back->deploy(%benv, DRY_RUN => 'yes');
ok($dry->{ok} && current($root) eq $now, 'rollback: a dry run changes nothing') or diag($dry->{log});
my $got = $back->deploy(%benv);
ok($got->{ok}, 'rollback: a rollback to the previous release succeeds') or diag($got->{log});
is(current($root), $previous, 'rollback: the previous release becomes current');
is(readlink("$root/previous"), $now, 'rollback: the former release becomes the previous one');
ok(!-e "$root/.rollback", 'rollback: no temporary file is left');
($now) = $now =~ /(\d+)$/;
$got = $back->deploy(%benv, RELEASE => $now, RELOAD_TRIGGER => "$root/reload");
ok($got->{ok}, 'rollback: a rollback to a release by number succeeds') or diag($got->{log});
is(current($root), "releases/$now", 'rollback: the release of that number becomes current');
is(slurp("$root/reload"), "$got->{id}\n", 'rollback: the trigger file names the deployment');
symlink $now, "$root/releases/900" or die "$root: $!"; # as a rollback of an environment leaves it
for my $case (
	['the current release', { RELEASE => $now }, qr/is already the current release/],
	['a link to the current release', { RELEASE => 900 },
		qr{releases/900 -> $now\n.*is already the current release}s],
	['an unknown release', { RELEASE => '99999' }, qr/does not exist/],
	['a path', { RELEASE => '../releases' }, qr/RELEASE must be a number/],
	['a directory without releases', { DEPLOY_ROOT => Slipway::Template::room('none/none') },
		qr/has no release/],
	['no directory', { DEPLOY_ROOT => undef }, qr/set DEPLOY_ROOT/],
) {
	my ($name, $change, $want) = @$case;
	$got = $back->deploy(%benv, %$change);
	ok(!$got->{ok}, "rollback: $name is rejected");
	like($got->{log}, $want, "rollback: the error for $name says why");
	is(current($root), "releases/$now", "rollback: $name keeps the current release");
}
spew("$root/$previous/.sick", '');
$got = $back->deploy(%benv, CHECK_SECONDS => 1);
ok(!$got->{ok}, 'rollback: a rollback to a release whose page fails is undone');
is($got->{broken}, 'Check', 'rollback: undoing a rollback succeeds') or diag($got->{log});
is(current($root), "releases/$now", 'rollback: undoing a rollback restores the current release');
is(readlink("$root/previous"), $previous, 'rollback: undoing a rollback keeps the previous release');

# --- python
my $app = Slipway::Template::room('python');
my $python = Slipway::Template->new('python-venv-systemd', 'app.py' => "print('hello')\n",
	'test_app.py' => "import unittest\nclass T(unittest.TestCase):\n"
	    . "    def test_a(self):\n        self.assertEqual(1, 1)\n");
my ($have) = run_cmd('/usr/bin/python3', '-c', 'import ensurepip');
if ($have == 0) {
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'unittest');
	ok($got->{ok}, 'python: a deployment with tests succeeds') or diag($got->{log});
	my ($status, $out) = run_cmd("$app/current/venv/bin/python", "$app/current/app.py");
	is($out, "hello\n", 'python: a release runs in its own environment');
	my $good = current($app);
	# creating an environment takes seconds: the next releases copy it
	my $stub = Slipway::Template::room('copying');
	spew("$stub/python3", "#!/bin/sh\n[ \"\$2\" != venv ] || exec cp -a '$app/$good/venv' venv\n"
	    . "exec /usr/bin/python3 \"\$@\"\n", 0755);
	local $Slipway::Template::path = "$stub:$Slipway::Template::path";
	ok($python->deploy(DEPLOY_ROOT => $app)->{ok}, 'python: a second deployment succeeds');
	my $to = $good =~ s{releases/}{}r;
	my $back = $python->deploy(DEPLOY_ROOT => $app, SLIPWAY_ROLLBACK_TO => $to, TESTS => 'nose');
	ok($back->{ok}, 'python: a rollback creates no environment and runs no test') or diag($back->{log});
	is(readlink("$app/releases/$back->{id}"), $to, 'python: it uses the release of then');
	$good = current($app);
	$python->checkout('test_app.py' =>
	    "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.fail()\n");
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'unittest');
	is($got->{failed}, 'Test', 'python: the step Test fails if a test fails');
	is(current($app), $good, 'python: a failing test keeps the current release');
	ok(!-e "$app/releases/$got->{id}", 'python: a failing test removes the release');
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'nose');
	like($got->{log}, qr/TESTS must be/, 'python: an unknown test runner is rejected');
} else {
	$got = $python->deploy(DEPLOY_ROOT => $app);
	ok(!$got->{ok}, 'python: a deployment without venv fails');
	like($got->{log}, qr/python3.* is not installed|apt-get install python3-venv/,
	    'python: the error without venv names its package');
}

# --- the version that tools read from tags
{
	my $root = Slipway::Template::room('scm');
	my $stub = Slipway::Template::room('scm-python');
	spew("$stub/python3", "#!/bin/sh\n[ \"\$2\" = venv ] || exit 0\nmkdir -p venv/bin\n"
	    . "printf '#!/bin/sh\\nenv >env.\$5\\n' >venv/bin/python\nchmod 755 venv/bin/python\n", 0755);
	local $Slipway::Template::path = "$stub:$Slipway::Template::path";
	my $scm = Slipway::Template->new('python-venv-systemd', 'pyproject.toml' => "[project]\n");
	my $git = sub {
		my ($status) = run_cmd({ $scm->as_job, cwd => $scm->work }, 'sh', '-c',
		    "HOME=/nonexistent; export HOME;"
		    . " $_[0]");
		return $status == 0;
	};
	my $build = 'wheel'; # the command of pip that builds the project
	my $versions = sub {
		my $got = $scm->deploy(DEPLOY_ROOT => $root, SLIPWAY_COMMIT => 'abcdef0123456789', @_);
		my %env = slurp("$root/releases/$got->{id}/env.$build") =~ /^(\w+)=(.*)$/mg;
		return join ' ', map { $env{$_} // '-' } qw(SETUPTOOLS_SCM_PRETEND_VERSION PBR_VERSION);
	};
	my $commit = 'git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x';
	ok($git->("git init -q . && git add . && $commit"), 'python: a repository is made');
	is($versions->(), '0.1.dev1+gabcdef012 0.1.dev1+gabcdef012',
	    'python: without a tag there is a version');
	ok($git->('git tag v1.2.9'), 'python: it is tagged');
	is($versions->(), '1.2.9 1.2.9', 'python: a tag is the version');
	ok($git->("$commit && $commit"), 'python: two commits follow');
	is($versions->(), ('1.2.10.dev2+gabcdef012 ' x 2) =~ s/ $//r,
	    'python: a later commit is a version after it');
	is($versions->(SLIPWAY_TAG => 'app-2.0rc1'), '2.0rc1 2.0rc1',
	    'python: the tag that is deployed comes first');
	is($versions->(PBR_VERSION => '9'), '1.2.10.dev2+gabcdef012 9',
	    'python: what the deployment sets stays');
	$build = 'install';
	is($versions->(), '- -', 'python: other packages are built without the version of the project');
	for my $case (["six==1.16.0\n", '- -'], ["six\n-e .[test] # itself\n", '2.0 2.0'], [".\n", '2.0 2.0'],
		["./vendored/six\n", '- -']) {
		spew($scm->work . '/requirements.txt', $case->[0]);
		is($versions->(SLIPWAY_TAG => 'v2.0'), $case->[1],
		    'python: requirements.txt with ' . ($case->[0] =~ s/\n/ /gr));
	}
}

# --- node
$app = Slipway::Template::room('node');
my %js = ('package.json' => '{"name":"app","version":"1.0.0","scripts":{"test":"node -e 0",'
	    . '"build":"node -e \"require(\'fs\').writeFileSync(\'built\',process.env.NODE_ENV)\""}}',
	'package-lock.json' => '{"name":"app","version":"1.0.0","lockfileVersion":3,"requires":true,'
	    . '"packages":{"":{"name":"app","version":"1.0.0"}}}');
my $node = Slipway::Template->new('node', %js);
($have) = run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v node && command -v npm");
$got = $node->deploy(DEPLOY_ROOT => $app, RELOAD_TRIGGER => "$app/restart");
if ($have == 0) {
	ok($got->{ok}, 'node: a deployment succeeds') or diag($got->{log});
	is(slurp("$app/current/built"), 'production', 'node: the build runs with NODE_ENV=production');
	is(slurp("$app/restart"), "$got->{id}\n", 'node: the trigger file names the deployment');
	my $first = $got->{id};
	$node->checkout;
	$got = $node->deploy(DEPLOY_ROOT => $app, SLIPWAY_ROLLBACK_TO => $first);
	ok($got->{ok} && slurp("$app/current/built") eq 'production',
	    'node: a rollback builds nothing') or diag($got->{log});
	$node->checkout(%js, 'package.json' => $js{'package.json'} =~ s/node -e 0/node -e process.exit(1)/r);
	is($node->deploy(DEPLOY_ROOT => $app)->{failed}, 'Build',
	    'node: the step Build fails if a test fails');
	ok($node->deploy(DEPLOY_ROOT => $app, SKIP_TESTS => 'yes')->{ok},
	    'node: a deployment with SKIP_TESTS succeeds');
	$node->checkout('package.json' => $js{'package.json'});
	like($node->deploy(DEPLOY_ROOT => $app)->{log}, qr/no package-lock\.json/,
	    'node: a deployment without package-lock.json is rejected');
} else {
	ok(!$got->{ok}, 'node: a deployment without node fails');
	like($got->{log}, qr/is not installed on the runner: apt-get install/,
	    'node: the error without node names its package');
}

done_testing;
