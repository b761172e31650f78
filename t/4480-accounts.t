#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# API and dispatcher under the accounts of the sysusers file: both can do their
# work, and neither can reach what belongs to the other.  As root, in a mount
# namespace whose passwd and group files have these accounts; without root, or
# where such a namespace is impossible (a container without the right, a chroot),
# the test only checks that dispatcher and workers are closed to their own account.
use strict;
use warnings;
use IO::Socket::SSL ();
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $alone = own_mounts();

# --- the entries that systemd-sysusers(8) would write
my $sysusers = slurp(srcdir() . '/src/web/slipway.sysusers');
my @users = $sysusers =~ /^u (\S+)/mg;
is_deeply([sort @users], ['slipway', 'slipway-api'], 'the sysusers file has two accounts');
is_deeply([$sysusers =~ /^m (\S+ \S+)$/mg], ['slipway-api slipway'],
    'the sysusers file has one shared group');
if ($alone) {
	my ($passwd, $group) = map { slurp("/etc/$_") =~ s/^slipway(?:-api)?:.*\n//mgr } qw(passwd group);
	my $number = 991;
	my %members;
	push @{ $members{$2} }, $1 while $sysusers =~ /^m (\S+) (\S+)$/mg;
	for my $name (@users) {
		$number-- while getpwuid $number || getgrgid $number;
		$passwd .= "$name:x:${number}:${number}::/:/usr/sbin/nologin\n";
		$group .= "$name:x:${number}:" . join(',', @{ $members{$name} || [] }) . "\n";
		$number--;
	}
	for (['passwd', $passwd], ['group', $group]) {
		my ($name, $text) = @$_;
		my ($status, $out, $err) = run_cmd('mount', '--bind', spew(tempdir() . "/$name", $text, 0644),
		    "/etc/$name");
		is($status, 0, "/etc/$name is replaced in the namespace") or diag($err);
	}
}

my $db = Slipway::DB->start;
my $keys = tempdir() . '/secret.key';
my $both = "[gitserver]\nallow_local = yes\n[secrets]\nkey_file = $keys\n[runner]\npoll = 60\n";
if ($alone) {
	for my $name (@users) {
		$db->sql("CREATE OR REPLACE USER '$name'\@localhost IDENTIFIED VIA unix_socket;"
		    . "GRANT SELECT, INSERT, UPDATE, DELETE ON slipway.* TO '$name'\@localhost", 'mysql');
	}
	$both .= "user = slipway\n[database]\nuser = slipway\napi_user = slipway-api\n[api]\nuser = "
	    . "slipway-api\n";
}
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, idle => 1, conf => $both);
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $runner->conf_file, 'key');
is($status, 0, 'slipway-admin creates a key') or diag($err);
make_keys($runner->conf_file, $keys) if is_root() && !$alone;
if ($alone) {
	my ($uid, $gid) = (getpwnam 'slipway')[2, 3];
	chown 0, $gid, $runner->conf_file, $keys;
	is_deeply([(stat tempdir() . '/deploy.key')[4], (stat _)[2] & 07777], [$uid, 0400],
	    'the private key belongs to the dispatcher');
	chown $uid, $gid, $runner->dir . '/run';
}
$runner->resume;
my $api = Slipway::API->start(db => $db, migrated => 1,
	conf => $both . "[runner]\nwake_socket = " . $runner->wake_socket . "\n");
if ($alone) {
	chown 0, (getpwnam 'slipway')[3], $api->conf_file;
	chmod 0640, $api->conf_file;
	kill 'HUP', $api->pid;
	ok(poll(20, sub { $api->log =~ /replaced|read again|reload/ }),
	    'the API reloads its configuration') or diag($api->log);
}

# --- both do their work: the API wakes the dispatcher, and the dispatcher decrypts
# a secret that the API encrypted
my $gate = tempdir() . '/gate';
my $project = $api->post('/api/projects', { name => 'p', repository => $runner->repo, defaultBranch => 'main',
	envPresets => [{ key => 'PASSWORD', label => 'P', type => 'input',
	    secret => JSON::PP::true }] })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	steps => [{ name => 's',
	    script => "echo up; test \"\$PASSWORD\" = 'correct horse' || exit 5; until test -e $gate; "
	    . "do sleep 0.1; done" }] })->{json}{id};
ok(poll(20, sub { -S $runner->wake_socket }), 'the dispatcher listens on its socket');
my $before = stopwatch();
my $got = $api->post('/api/deployments', { projectId => $project, pipelineId => $pipeline,
	envVars => { PASSWORD => 'correct horse' } });
my $id = $got->{json}{id} or diag($got->{body});
like($runner->wait_log($id, qr/^up$/m), qr/^up$/m, 'a deployment with a secret runs');
cmp_ok($before->(), '<', deadline(50), 'the API wakes the dispatcher before the next poll');

# --- files that each account can read
my $dispatcher = $runner->dispatcher;
my ($spool) = glob "$runner->{spool}/$id.*";
ok(defined $spool && -e "$spool/log", 'the log is in the spool');
# An idle worker would end.
$api->get('/api/health');
kill 'STOP', $api->pid;
my ($worker) = $api->workers;
kill 'STOP', $worker;
my @asks = (
	["cat /proc/$dispatcher/environ", 'the environment of the dispatcher'],
	["cat /proc/$dispatcher/maps", 'the memory of the dispatcher'],
	["ls /proc/$dispatcher/fd/", 'the descriptors of the dispatcher'],
	["cat /proc/$worker/environ", "the environment of an API worker"],
	["ls /proc/$worker/fd/", 'the descriptors of an API worker'],
);
my @spool = (["ls $runner->{spool}", 'the spool'], ["cat $spool/log", 'a log in the spool']);
my @signals = (["kill -0 $dispatcher", 'the dispatcher, by a signal'],
    ["kill -0 " . $runner->pid, 'the monitor, by a signal']);
sub unreachable {
	my ($who, $what, $command) = @_;
	my @as = is_root() ? ('setpriv', "--reuid=$who", '--regid=' . (getpwnam $who)[3], '--init-groups')
	    : ();
	my ($rc, $said, $why) = run_cmd(@as, 'sh', '-c', $command);
	isnt($rc, 0, "$who cannot reach $what");
	like($why, qr/denied|not permitted|cannot open/i, "$who cannot reach $what for lack of permission")
	    or diag($said);
}
if ($alone) {
	note('as root, under separate accounts');
	for (['slipway', $dispatcher], ['slipway-api', $worker]) {
		my ($want, $pid) = @$_;
		my ($uid) = slurp("/proc/$pid/status") =~ /^Uid:\s+(\d+)/m;
		is(getpwuid $uid, $want, "$pid runs as $want");
	}
	unreachable('slipway-api', $_->[1], $_->[0]) for @asks, @spool, @signals;
	unreachable('slipway', $_->[1], $_->[0]) for @asks, ["kill -0 $worker", 'a worker, by a signal'],
	    ['touch ' . $api->dir . '/api.sock', 'the socket of the API'];
	unreachable('nobody', $_->[1], $_->[0])
	    for ['cat ' . $runner->conf_file, 'the configuration'], ["cat $keys", 'the key'];
	unreachable($_, 'the private key', 'cat ' . tempdir() . '/deploy.key')
	    for qw(slipway-api nobody);
	kill 'CONT', $worker, $api->pid;
	is((stat $runner->{spool})[2] & 07777, 0700, 'the spool is closed to other accounts');
	for my $who ('root', 'slipway-api') {
		my @as = $who eq 'root' ? ()
		    : ('setpriv', "--reuid=$who", '--regid=' . (getpwnam $who)[3], '--init-groups');
		my ($rc, $said) = run_cmd(@as, program('slipway-admin'), '-c', $api->conf_file, 'doctor');
		like($said, qr/^ok     public key for variables: /m,
		    "$who: the doctor checks the public key");
		like($said, $who eq 'root' ?
		    qr/^ok     private key for variables: .*belongs to its first key$/m
		    : qr/^ok     private key for variables: this account cannot open /m,
		    "$who: the doctor checks the private key as far as the account may");
		unlike($said, qr/^(?:FAULT|note)   ?(?:private|public) key/m,
		    "$who: the doctor finds no fault of the keys")
		    or diag($said);
	}
} else {
	note('dispatcher and API under the same account');
	unreachable(is_root() ? 'nobody' : 'our account', $_->[1], $_->[0]) for @asks;
	kill 'CONT', $worker, $api->pid;
}
spew($gate, '');
is($runner->wait($id), 'success', 'the deployment succeeds');
done_testing();
