#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# API and dispatcher under the accounts that the sysusers file makes: both can
# do their work, and neither gets at what the other holds.  As root, in a mount
# namespace whose passwd and group have these accounts; without root, or where
# there can be no such namespace (a container without the right, a chroot), it
# is only seen that dispatcher and workers are closed to their own account.

use strict;
use warnings;
use IO::Socket::SSL ();
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $alone = own_mounts();

# --- what systemd-sysusers(8) would write
my $sysusers = slurp(srcdir() . '/src/api/slipway.sysusers');
my @users = $sysusers =~ /^u (\S+)/mg;
is_deeply([sort @users], ['slipway', 'slipway-api'], 'two accounts');
is_deeply([$sysusers =~ /^m (\S+ \S+)$/mg], ['slipway-api slipway'], 'with one group of both');
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
		my ($status, $out, $err) = run_cmd('mount', '--bind', spew(tempdir() . "/$name", $text, 0644), "/etc/$name");
		is($status, 0, "another /etc/$name") or diag($err);
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
	$both .= "user = slipway\n[database]\nuser = slipway\napi_user = slipway-api\n[api]\nuser = slipway-api\n";
}
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, idle => 1, conf => $both);
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $runner->conf_file, 'key');
is($status, 0, 'a key') or diag($err);
make_keys($runner->conf_file, $keys) if is_root() && !$alone;
if ($alone) {
	my ($uid, $gid) = (getpwnam 'slipway')[2, 3];
	chown 0, $gid, $runner->conf_file, $keys;
	is_deeply([(stat tempdir() . '/deploy.key')[4], (stat _)[2] & 07777], [$uid, 0400], 'the key that opens variables is the dispatcher\'s');
	chown $uid, $gid, $runner->dir . '/run';
}
$runner->resume;
my $api = Slipway::API->start(db => $db, migrated => 1,
	conf => $both . "[runner]\nwake_socket = " . $runner->wake_socket . "\n");
if ($alone) {
	chown 0, (getpwnam 'slipway')[3], $api->conf_file;
	chmod 0640, $api->conf_file;
	kill 'HUP', $api->pid;
	ok(poll(20, sub { $api->log =~ /replaced|read again|reload/ }), 'the API reads its configuration again') or diag($api->log);
}

# --- both do their work: a call of the API is heard, a secret is sealed by the
# one and opened by the other
my $gate = tempdir() . '/gate';
my $project = $api->post('/api/projects', { name => 'p', repository => $runner->repo, defaultBranch => 'main',
	envPresets => [{ key => 'PASSWORD', label => 'P', type => 'input', secret => JSON::PP::true }] })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	steps => [{ name => 's', script => "echo up; test \"\$PASSWORD\" = 'correct horse' || exit 5; until test -e $gate; do sleep 0.02; done" }] })->{json}{id};
ok(poll(20, sub { -S $runner->wake_socket }), 'the runner listens');
my $before = time;
my $got = $api->post('/api/deployments', { projectId => $project, pipelineId => $pipeline,
	envVars => { PASSWORD => 'correct horse' } });
my $id = $got->{json}{id} or diag($got->{body});
like($runner->wait_log($id, qr/^up$/m), qr/^up$/m, 'a deployment runs');
cmp_ok(time - $before, '<', deadline(50), 'the call of the API was heard, the poll is a minute');

# --- what each account can see
my $dispatcher = $runner->dispatcher;
my ($spool) = glob "$runner->{spool}/$id.*";
ok(defined $spool && -e "$spool/log", 'the spool has its log');
my ($worker) = $api->workers;
my @asks = (
	["cat /proc/$dispatcher/environ", 'the environment of the dispatcher'],
	["cat /proc/$dispatcher/maps", 'its memory'],
	["ls /proc/$dispatcher/fd/", 'its descriptors'],
	["cat /proc/$worker/environ", "the environment of an API worker"],
	["ls /proc/$worker/fd/", 'its descriptors'],
);
my @spool = (["ls $runner->{spool}", 'the spool'], ["cat $spool/log", 'a log in it']);
my @signals = (["kill -0 $dispatcher", 'the dispatcher, to signal it'], ["kill -0 " . $runner->pid, 'the monitor']);
sub refused {
	my ($who, $what, $command) = @_;
	my @as = is_root() ? ('setpriv', "--reuid=$who", '--regid=' . (getpwnam $who)[3], '--init-groups') : ();
	my ($rc, $said, $why) = run_cmd(@as, 'sh', '-c', $command);
	isnt($rc, 0, "$who: not $what");
	like($why, qr/denied|not permitted|cannot open/i, '- for want of rights') or diag($said);
}
if ($alone) {
	note('as root, under accounts of their own');
	for (['slipway', $dispatcher], ['slipway-api', $worker]) {
		my ($want, $pid) = @$_;
		my ($uid) = slurp("/proc/$pid/status") =~ /^Uid:\s+(\d+)/m;
		is(getpwuid $uid, $want, "$pid runs as $want");
	}
	refused('slipway-api', $_->[1], $_->[0]) for @asks, @spool, @signals;
	refused('slipway', $_->[1], $_->[0]) for @asks, ["kill -0 $worker", 'a worker, to signal it'],
	    ['touch ' . $api->dir . '/api.sock', "the API's socket"];
	refused('nobody', $_->[1], $_->[0]) for ['cat ' . $runner->conf_file, 'the configuration'], ["cat $keys", 'the key'];
	refused($_, 'the key that opens variables', 'cat ' . tempdir() . '/deploy.key') for qw(slipway-api nobody);
	is((stat $runner->{spool})[2] & 07777, 0700, 'the spool is closed');
	for my $who ('root', 'slipway-api') {
		my @as = $who eq 'root' ? () : ('setpriv', "--reuid=$who", '--regid=' . (getpwnam $who)[3], '--init-groups');
		my ($rc, $said) = run_cmd(@as, program('slipway-admin'), '-c', $api->conf_file, 'doctor');
		like($said, qr/^ok     public key for variables: /m, "$who: the doctor sees the public half");
		like($said, $who eq 'root' ? qr/^ok     private key for variables: .*that of its first key$/m : qr/^ok     private key for variables: this account cannot open /m,
		    'and of the other what it may');
		unlike($said, qr/^(?:FAULT|note)   ?(?:private|public) key/m, 'without a fault') or diag($said);
	}
} else {
	note('dispatcher and API under one account');
	refused(is_root() ? 'nobody' : 'our account', $_->[1], $_->[0]) for @asks;
}
spew($gate, '');
is($runner->wait($id), 'success', 'the deployment ends well');
done_testing();
