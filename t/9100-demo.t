#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# ./bootstrap demo in a copy of the tree: the commands that it prints work when
# pasted, it can be stopped, killed and started again, and it ends what it started.

use strict;
use warnings;
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Test::More;
use Slipway::Browser;
use Slipway::Test;

my $top = srcdir();
my $tree = tempdir() . '/tree';
my ($status) = run_cmd('sh', '-c', 'mkdir "$1" && cp -R "$0"/. "$1" && chmod -R u+w "$1"',
	copy_source(), $tree);
is($status, 0, 'the tree is copied');

# Copies the parts of the tree that a demo uses; a build inside may be large.
sub copy_source {
	my $dir = tempdir() . '/source';
	run_cmd('sh', '-c',
	    'mkdir -p "$1"/t && cd "$0" && cp bootstrap configure.ac "$1" && cp t/demo.sh "$1"/t && cp -R '
	    . 'nginx "$1"',
	    $top, $dir);
	return $dir;
}

my $installed = tempdir() . '/usr';
my ($status_install, undef, $said) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C',
    builddir(),
	'install', "prefix=$installed", "sysconfdir=$installed/etc");
is($status_install, 0, 'make install succeeds') or die $said;
my %env = (SLIPWAY_INSTALLED => $installed);
my @as;

sub demo {
	my @args = @_;
	my ($status, $out, $err) = run_cmd({ cwd => $tree, env => \%env }, @as, './bootstrap', 'demo', @args);
	return ($status, $out, $err);
}

# Starts a demo on the port in the foreground: its process and its log.
my $foregrounds = 0;
sub foreground {
	my ($port) = @_;
	my $name = 'demo-' . ++$foregrounds;
	my $log = tempdir() . "/$name.log";
	my $pid = start_process({ name => $name, cwd => $tree, env => \%env }, @as, './bootstrap', 'demo',
	    '--port', $port);
	ok(poll(300, sub { (slurp($log) // '') =~ /Press Ctrl-C to stop the demo\.\n\z/ }),
	    'the demo starts in the foreground');
	return ($pid, $log);
}

# The processes whose program or arguments lie below a directory.
sub left {
	my ($dir) = @_;
	return grep {
		my $line = slurp("$_/cmdline") // '';
		my $exe = readlink("$_/exe") // '';
		$_ ne "/proc/$$" && ($line =~ m{\Q$dir\E/} || $exe =~ m{^\Q$dir\E/})
	} glob '/proc/[0-9]*';
}

sub place { return (split " ", slurp("$tree/demo/place") // "")[0] // "/nowhere" }

# --- it deploys, and prints what happened
my $port = free_port();
my ($code, $out, $err) = demo('--detach', '--port', $port);
is($code, 0, 'demo --detach succeeds') or diag($out, $err);
my $place = place();
like($out, qr/deployment \d+: success/, 'the deployment of the demo succeeds');
my ($user) = $out =~ /I am user (\d+)/;
if (is_root()) {
	note('as root: steps run under their own account');
	ok($user, "the step runs as user $user, not root");
} else {
	note('as an ordinary user: steps run as that user');
	is($user, $>, 'the step runs as the ordinary user');
	like($out, qr/privilege_drop = no/, 'the demo says that privilege_drop is off');
}
like($out, qr/GREETING=Good morning TARGET=staging REGIONS=eu,us/,
    'presets of all three types reach the step');
like($out, qr{<h1>Hello from commit [0-9a-f]{40}</h1>}, 'the template builds the commit');

# --- the environment file and the commands
is(((stat "$tree/demo/env")[2] // 0) & 0777, 0600, 'demo/env is private to its owner');
my $env = slurp("$tree/demo/env");
like($env, qr{^SLIPWAY_URL='https://127\.0\.0\.1:$port'$}m, 'demo/env sets SLIPWAY_URL');
like($env, qr{^SLIPWAY_TOKEN='slw_[\w-]+'$}m, 'demo/env sets SLIPWAY_TOKEN');
like($env, qr{^SLIPWAY_CACERT='/.*'$}m, 'demo/env sets SLIPWAY_CACERT');
my @lines = $out =~ /^(\. '.*(?:curl|bin\/slipway') .*)$/mg;
like($lines[0], qr{/usr/bin/slipway' list$}, 'the first command lists deployments');
cmp_ok(scalar @lines, '>=', 5, 'the demo prints commands');
for my $line (@lines) {
	my ($status, $answer, $error) = run_cmd({ cwd => '/', env => { SLIPWAY_URL => undef } },
	    'bash', '-c', $line);
	is($status, 0, "a pasted command succeeds: $line") or diag($error);
	unlike($answer, qr{^\{"type":"about:blank"|^\z}, "a pasted command returns no error: $line");
}
like($out, qr/^Deployment \d+ waits for approval/m, 'the demo says which deployment waits for approval');
my $slipway = ". '$tree/demo/env'; '$place/usr/bin/slipway'";
my ($promoted, undef, $why) = run_cmd({ stdin => '{"environmentId": 2}' }, 'bash', '-c',
    "$slipway api POST /api/deployments/3/promote -i -");
is($promoted, 0, 'a deployment of the demo can be promoted to production') or diag($why);

# --- the console: open the address, see the board, deploy again, follow
my ($address) = $out =~ m{^(https://\S+/slipway/#sign-in=\S+)$}m;
ok($address, 'the demo prints the address of the console');
my $page = Slipway::Browser->start;
$page->visit($address)->click('.sign-in .primary');
ok($page->wait_for('.place', 'Translate the greeting'),
    'the address offers to sign in, then shows what is live');
ok($page->wait_for('.place a.state', 'Failed'), 'the board shows the failed deployment');
$page->click('[aria-label="Deploy Sample site"]');
ok($page->wait_for('#deploy'), 'the board leads to the deploy form');
$page->choose('[name=environmentId]', '1');
$page->type('[name="env.GREETING"]', 'Hello')->click('#deploy .primary');
ok($page->wait_until('/deployments\/\d+$/.test(location.pathname)'), 'the form deploys');
ok($page->wait_for('h1 .status', 'Succeeded'), 'the page follows the deployment to its end');
$page->visit("https://127.0.0.1:$port/slipway/projects/1")->click('[aria-label="Roll back staging"]');
$page->click('dialog .danger');
ok($page->wait_for('h1 .status', 'Succeeded'), 'a rollback takes it back');
ok($page->wait_for('.facts', 'rollback'), 'as its page says');
$page->visit("https://127.0.0.1:$port/slipway/");
ok($page->wait_for('.place', 'Needs approval'), 'a deployment waits for approval');
$page->click('.place .failed')->wait_for('.reason', 'exit status 1');
ok($page->wait_for('.log-text', 'row 200000 of the report'), 'the failed one has a long log');
$page->stop;

# --- demo --reload
my $demo_conf = "$place/etc/slipway.conf";
my $sound = slurp($demo_conf);
my @stat = stat $demo_conf;
sub conf_is {
	my ($text) = @_;
	spew($demo_conf, $text, 0640);
	chown @stat[ 4, 5 ], $demo_conf if is_root();
	chmod $stat[2] & 0777, $demo_conf;
	return;
}
sub hook_url {
	my $command = '. "$1"; curl -sS --cacert "$SLIPWAY_CACERT" -H "Authorization: Bearer $SLIPWAY_TOKEN"'
	    . ' -X PUT "$SLIPWAY_URL/api/projects/1/hook-secret"';
	my ($status, $answer) = run_cmd('bash', '-c', $command, '-', "$tree/demo/env");
	return $answer;
}
conf_is("${sound}[api]\nurl = https://ci.example.org\n");
($code, $out, $err) = demo('--reload');
is($code, 0, 'demo --reload succeeds') or diag($out, $err);
like($out, qr/^ok +slipway-live/m, 'the demo runs slipway-live');
like($out, qr/^ok +database/m, 'demo --reload prints the result of doctor');
unlike($out, qr/^FAULT/m, 'doctor finds no fault');
like($_, qr{"https://ci\.example\.org/api/hooks/1"}, 'every worker has the new setting')
    for map { hook_url() } 1 .. 8;
conf_is("${sound}[nonsense]\n");
($code, $out, $err) = demo('--reload');
isnt($code, 0, 'demo --reload rejects an invalid configuration');
like($err, qr/nonsense.*nothing was reloaded/s, 'the error names the invalid setting') or diag($out, $err);
like(hook_url(), qr{"https://ci\.example\.org/}, 'the service keeps the old configuration');
conf_is($sound);
is((demo('--reload'))[0], 0, 'demo --reload succeeds with the first configuration');

# --- the port is in use, and the next one is bound but not listening
my ($taken, $silent);
until ($taken && $silent) {
	my $first = free_port();
	$taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $first, Listen => 1);
	$silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $first + 1, Proto => 'tcp');
}
cmp_ok(scalar left($place), '>=', 4, 'the processes of the first demo run');
($code, undef, $err) = demo('--detach', '--port', $taken->sockport);
isnt($code, 0, 'a second demo is rejected while the first one runs');
like($err, qr{is already running at https://127\.0\.0\.1:$port\.\n.*demo --stop; .*deletes its data},
    'the error names the address of the first one and says how to stop it');
is((run_cmd('bash', '-c', "$slipway list"))[0], 0, 'the first demo keeps running');
is((demo('--stop'))[0], 0, 'demo --stop succeeds');
is_deeply([left(place() // $place), left($place)], [], 'demo --stop leaves no process');
ok(!-e "$tree/demo/env", 'demo --stop removes the token');
is((demo('--stop'))[0], 0, 'demo --stop without a demo succeeds');

# --- in the foreground: it is killed, which does not block the next
my ($pid, $log) = foreground($taken->sockport);
$place = place();
for my $socket ($taken, $silent) {
	my $port = $socket->sockport;
	like(slurp($log), qr/port $port is taken: using \d+/, "the second demo skips port $port");
}
like(slurp($log), qr/deployment \d+: success/, 'the second demo deploys');
kill 'KILL', $pid;
waitpid $pid, 0;
cmp_ok(scalar left($place), '>=', 4, 'a killed demo leaves processes');
kill 'KILL', (split ' ', slurp("$place/run/nginx.pid"))[0];
($port) = slurp($log) =~ /running at https:\/\/127\.0\.0\.1:(\d+)/;
($code, $out, $err) = demo('--detach', '--port', $port);
is($code, 0, 'the next demo succeeds') or diag($out, $err);
unlike($out, qr/is taken/, 'the next demo uses the same port');
kill 'KILL', (split ' ', slurp("$place/run/api.pid"))[0];
spew("$place/run/api.pid", "$$ 1\n");
demo('--stop');
ok(kill(0, $$), 'demo --stop does not kill a process whose id is in a stale file');
ok(poll(10, sub { !left($place) }), 'demo --stop leaves no process of a killed demo')
    or diag(join ' ', left($place));

# --- invalid usage
($code, $out, $err) = demo('--reload');
isnt($code, 0, 'demo --reload without a demo fails');
like($err, qr/no demo is running here/, 'the error says that no demo is running');
for my $args (['--port', 'x'], ['--port', '0'], ['--port', '65536'], ['--prot', '1'], ['now'], ['--port']) {
	($code, $out, $err) = demo(@$args);
	isnt($code, 0, "demo @$args is rejected");
	like($out . $err, qr/--port/, "demo @$args prints its usage");
	like($err, qr/unknown option \Q$args->[0]\E$/m, "demo @$args names the unknown option")
	    if $args->[0] ne '--port';
}

# --- until Ctrl-C; as an ordinary user
if (is_root()) {
	my ($name, $uid, $gid) = (getpwnam 'nobody')[0, 2, 3];
	run_cmd('rm', '-rf', "$tree/demo");
	run_cmd('chown', '-R', "$uid:$gid", $tree);
	@as = ('setpriv', "--reuid=$uid", "--regid=$gid", '--clear-groups');
	$user = $uid;
}
($pid, $log) = foreground(free_port());
$place = place();
like(slurp($log), qr/privilege_drop = no/, 'the demo says that privilege_drop is off');
like(slurp($log), qr/I am user $user\b/, 'the step runs as the ordinary user');
kill 'INT', $pid;
my $ended = poll(180, sub { waitpid($pid, WNOHANG) == $pid });
ok($ended && $? == 0, 'Ctrl-C stops the demo');
is_deeply([left($place)], [], 'Ctrl-C leaves no process');

END { run_cmd({ cwd => $tree, env => \%env }, @as, './bootstrap', 'demo', '--stop')
    if $tree && -x "$tree/bootstrap" }

done_testing();
