# SPDX-License-Identifier: ISC
# Templates that make releases: copied, switched in one step, checked, rolled
# back, pruned.
use strict;
use warnings;
use Test::More;
use Slipway::Template;
use Slipway::Test;

note(is_root() ? 'steps run under a nameless account' : 'steps run as this user');

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
my %env = (DEPLOY_ROOT => $root, CHECK_URL => $url, CHECK_SECONDS => 10, KEEP_RELEASES => 2);

my $dry = $site->deploy(%env, DRY_RUN => 'yes');
ok($dry->{ok}, 'a dry run of a first deployment') or diag($dry->{log});
is_deeply([glob "$root/*"], [], 'writes nothing');

my $one = $site->deploy(%env);
ok($one->{ok}, 'a first deployment') or diag($one->{log});
is(current($root), "releases/$one->{id}", 'is the current release');
is(slurp("$root/current/css/a.css"), "a\n", 'its files are there');
is((stat "$root/current/index.html")[2] & 0777, 0644, 'and others can read them');
ok(!-l "$root/previous", 'nothing is before it');
like($one->{log}, qr/\Q$url\E responds/, 'its page was requested');

$site->checkout('public/index.html' => "two\n");
$dry = $site->deploy(%env, DRY_RUN => 'yes');
ok($dry->{ok}, 'a dry run of the second');
like($dry->{log}, qr{deleting +css/}, 'shows what would go');
is(current($root), "releases/$one->{id}", 'and changes nothing');
my $two = $site->deploy(%env);
ok($two->{ok}, 'a second deployment') or diag($two->{log});
is(slurp("$root/current/index.html"), "two\n", 'is served');
is(readlink("$root/previous"), "releases/$one->{id}", 'the first is remembered');

$site->checkout('public/index.html' => "three\n", 'public/.sick' => "x\n");
my $sick = $site->deploy(%env, CHECK_SECONDS => 1);
ok(!$sick->{ok}, 'a release that does not answer fails');
is($sick->{failed}, 'Check', 'in the check');
is($sick->{broken}, 'Check', 'and the roll back itself succeeds') or diag($sick->{log});
is_deeply($sick->{ran}, ['Build', 'Copy', 'Switch', 'Check', 'Roll back'], 'prune does not run');
is(slurp("$root/current/index.html"), "two\n", 'the second is served again');
ok(!-e "$root/releases/$sick->{id}", 'the sick release is gone');

$site->checkout('public/index.html' => "four\n");
my $four = $site->deploy(%env);
my $five = $site->deploy(%env);
ok($four->{ok} && $five->{ok}, 'two more');
is_deeply([map { m{(\d+)$} } glob "$root/releases/*"], [$four->{id}, $five->{id}], 'two are kept');

$site->checkout('build.sh' => "mkdir public; echo built >public/index.html\n");
ok($site->deploy(%env, BUILD => 'script')->{ok}, 'a site that builds itself');
is(slurp("$root/current/index.html"), "built\n", 'is built');

for my $case (
	['no directory', { DEPLOY_ROOT => undef }, qr/set DEPLOY_ROOT/],
	['a relative directory', { DEPLOY_ROOT => 'srv/www' }, qr/absolute path/],
	['a top directory', { DEPLOY_ROOT => '/srv' }, qr/absolute path/],
	['a directory with ..', { DEPLOY_ROOT => "$root/../x" }, qr/must not contain \.\./],
	['the checkout itself', { DEPLOY_ROOT => $site->work }, qr/must not be in the checkout/],
	['a directory of the checkout', { DEPLOY_ROOT => $site->work . '/out' }, qr/must not be in the checkout/],
	['a source outside', { SOURCE_DIR => '/etc' }, qr/SOURCE_DIR must be/],
	['a source that climbs', { SOURCE_DIR => '../site' }, qr/SOURCE_DIR must be/],
	['a source that is not there', { SOURCE_DIR => 'dist' }, qr/no directory dist/],
	['an unknown build', { BUILD => 'rm' }, qr/BUILD must be/],
	['seconds that compute', { CHECK_SECONDS => 'a[$(touch pwned)]' }, qr/CHECK_SECONDS must be/],
	['a number to keep that computes', { KEEP_RELEASES => 'a[$(touch pwned)]' }, qr/KEEP_RELEASES must be/],
) {
	my ($name, $change, $want) = @$case;
	my $before = current($root);
	$site->checkout('public/index.html' => "x\n");
	my $got = $site->deploy(%env, %$change);
	ok(!$got->{ok}, "refused: $name");
	like($got->{log}, $want, '- saying why');
	ok(!-e $site->work . '/pwned', '- and nothing was run');
	next if $name =~ /keep/;
	is(current($root), $before, '- and the site is as before');
}
{
	local $Slipway::Template::path = room_path(qw(bash env));
	$site->checkout('public/index.html' => "x\n");
	my $got = $site->deploy(%env);
	ok(!$got->{ok}, 'without rsync it fails');
	like($got->{log}, qr/rsync is not installed on the runner: apt-get install rsync/, 'and says how to get it');
}
# A PATH with these programs alone.
sub room_path {
	my $dir = tempdir() . '/few';
	mkdir $dir or die "$dir: $!" if !-d $dir;
	for my $name (@_) {
		my ($from) = grep { -x } map { "$_/$name" } qw(/bin /usr/bin);
		symlink $from, "$dir/$name" or die "$name: $!";
	}
	return $dir;
}

# --- rollback
my $now = current($root);
my $back = Slipway::Template->new('rollback');
my %benv = (DEPLOY_ROOT => $root, CHECK_URL => $url, CHECK_SECONDS => 5);
my $previous = readlink("$root/previous");
$dry = $back->deploy(%benv, DRY_RUN => 'yes');
ok($dry->{ok} && current($root) eq $now, 'rollback: a dry run changes nothing') or diag($dry->{log});
my $got = $back->deploy(%benv);
ok($got->{ok}, 'rollback to the previous release') or diag($got->{log});
is(current($root), $previous, 'switches');
is(readlink("$root/previous"), $now, 'and can be undone');
ok(!-e "$root/.rollback", 'nothing is left behind');
($now) = $now =~ /(\d+)$/;
$got = $back->deploy(%benv, RELEASE => $now, RELOAD_TRIGGER => "$root/reload");
ok($got->{ok}, 'rollback to a release by number') or diag($got->{log});
is(current($root), "releases/$now", 'switches');
is(slurp("$root/reload"), "$got->{id}\n", 'and says so in the trigger file');
for my $case (
	['the current one', { RELEASE => $now }, qr/is already the current release/],
	['one that is not there', { RELEASE => '99999' }, qr/does not exist/],
	['a path', { RELEASE => '../releases' }, qr/RELEASE must be a number/],
	['a directory without releases', { DEPLOY_ROOT => Slipway::Template::room('none/none') }, qr/has no release/],
	['no directory', { DEPLOY_ROOT => undef }, qr/set DEPLOY_ROOT/],
) {
	my ($name, $change, $want) = @$case;
	$got = $back->deploy(%benv, %$change);
	ok(!$got->{ok}, "rollback refuses $name");
	like($got->{log}, $want, '- saying why');
	is(current($root), "releases/$now", '- and nothing is switched');
}
spew("$root/$previous/.sick", '');
$got = $back->deploy(%benv, CHECK_SECONDS => 1);
ok(!$got->{ok}, 'rollback to a release that does not answer fails');
is($got->{broken}, 'Check', 'and returns') or diag($got->{log});
is(current($root), "releases/$now", 'to where it was');
is(readlink("$root/previous"), $previous, 'with the same way back');

# --- python
my $app = Slipway::Template::room('python');
my $python = Slipway::Template->new('python-venv-systemd', 'app.py' => "print('hello')\n",
	'test_app.py' => "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n");
my ($have) = run_cmd('/usr/bin/python3', '-c', 'import ensurepip');
if ($have == 0) {
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'unittest');
	ok($got->{ok}, 'python: a release with its own environment') or diag($got->{log});
	my ($status, $out) = run_cmd("$app/current/venv/bin/python", "$app/current/app.py");
	is($out, "hello\n", 'which runs');
	my $good = current($app);
	$python->checkout('test_app.py' =>
	    "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.fail()\n");
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'unittest');
	is($got->{failed}, 'Test', 'python: a failing test stops it');
	is(current($app), $good, 'before the switch');
	ok(!-e "$app/releases/$got->{id}", 'and its release is removed');
	$got = $python->deploy(DEPLOY_ROOT => $app, TESTS => 'nose');
	like($got->{log}, qr/TESTS must be/, 'python: refuses an unknown runner');
} else {
	$got = $python->deploy(DEPLOY_ROOT => $app);
	ok(!$got->{ok}, 'python: without venv it fails');
	like($got->{log}, qr/python3.* is not installed|apt-get install python3-venv/, 'and says how to get it');
}

# --- node
$app = Slipway::Template::room('node');
my %js = ('package.json' => '{"name":"app","version":"1.0.0","scripts":{"test":"node -e 0","build":"node -e \"require(\'fs\').writeFileSync(\'built\',process.env.NODE_ENV)\""}}',
	'package-lock.json' => '{"name":"app","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"app","version":"1.0.0"}}}');
my $node = Slipway::Template->new('node', %js);
($have) = run_cmd('sh', '-c', "PATH=$Slipway::Template::path; command -v node && command -v npm");
$got = $node->deploy(DEPLOY_ROOT => $app, RELOAD_TRIGGER => "$app/restart");
if ($have == 0) {
	ok($got->{ok}, 'node: built, released') or diag($got->{log});
	is(slurp("$app/current/built"), 'production', 'for production');
	is(slurp("$app/restart"), "$got->{id}\n", 'and the restart was asked for');
	$node->checkout(%js, 'package.json' => $js{'package.json'} =~ s/node -e 0/node -e process.exit(1)/r);
	is($node->deploy(DEPLOY_ROOT => $app)->{failed}, 'Build', 'node: a failing test stops it');
	ok($node->deploy(DEPLOY_ROOT => $app, SKIP_TESTS => 'yes')->{ok}, 'unless tests are skipped');
	$node->checkout('package.json' => $js{'package.json'});
	like($node->deploy(DEPLOY_ROOT => $app)->{log}, qr/no package-lock\.json/, 'node: refuses to guess versions');
} else {
	ok(!$got->{ok}, 'node: without node it fails');
	like($got->{log}, qr/is not installed on the runner: apt-get install/, 'and says how to get it');
}

done_testing;
