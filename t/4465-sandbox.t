#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The sandbox of the units: the rating of systemd-analyze, and a runner that works
# in a sandbox with the same parts.  No step gets a user namespace, with or without
# a unit, unless the configuration allows it.

use strict;
use warnings;
use Config;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $apart = own_mounts();
my %unit = map { $_ => slurp(builddir() . "/src/$_.service") } 'monitor/slipway-runner',
    'monitor/slipway-runner-once', 'web/slipway-api';

# --- the rating of systemd-analyze
my ($analyze) = grep { -x } map { "$_/systemd-analyze" } split /:/, "$ENV{PATH}:/usr/bin";
my $offline = $analyze && (run_cmd($analyze, '--help'))[1] =~ /--offline/;
for my $name (sort keys %unit) {
	my $file = tempdir() . '/' . ($name =~ s{.*/}{}r) . '.service';
	spew($file, $unit{$name} =~ s{^Exec\w+=-?\K\S+}{/bin/true}gmr);
	if (!$offline) {
		note("systemd-analyze is missing or too old to rate $name");
		next;
	}
	my ($status, $out) = run_cmd($analyze, 'security', '--offline=yes', '--no-pager', $file);
	my ($exposure) = $out =~ /Overall exposure level.*: ([\d.]+)/;
	cmp_ok($exposure // 10, '<', $name =~ /api/ ? 2 : 4, "$name.service has a low exposure");
}
for my $set (qw(CapabilityBoundingSet PrivateDevices PrivateMounts ProtectControlGroups ProtectSystem
    ReadWritePaths RestrictAddressFamilies RestrictNamespaces RestrictSUIDSGID SystemCallErrorNumber
    SystemCallFilter UMask)) {
	my ($daemon, $once) = map { join "\n", $unit{"monitor/slipway-runner$_"} =~ /^$set=.*$/mg } '',
	    '-once';
	isnt($daemon, '', "$set is set");
	is($once, $daemon, "$set is the same for --once");
}

# --- user namespaces without a unit
my $db = Slipway::DB->start;
$db->migrate;
my $try =
    'unshare --user true && echo new || echo none; cat </dev/null | true; perl -e "fork // die; wait"; '
    . 'bash -c "sleep 0 & wait"';
my $may = (run_cmd(is_root() ? ('setpriv', '--reuid', '65534', '--clear-groups') : (), 'unshare',
    '--user', 'true'))[0] == 0;
note('this kernel permits no user namespaces') if !$may;
my $runner = Slipway::Runner->start(db => $db);
my $project = $runner->project;
my $id = $runner->deploy($project, $try, 'grep -i ^seccomp: /proc/self/status');
is($runner->wait($id), 'success', 'a deployment without a unit succeeds') or diag($runner->log($id));
like($runner->log($id), qr/^none$/m, 'a step cannot create a user namespace');
like($runner->log($id), qr/^Seccomp:\s*2$/m, 'a seccomp filter denies user namespaces');
# the system calls of 32-bit programs, and clone
my $x86 = $Config{archname} =~ /^x86_64/;
if ($x86) {
	my $clone =
	    'perl -e \'for ([272, 0x10000000], [272 | 0x40000000, 0x10000000], [56, 0x10000011, 0, 0, 0, '
	    . '0]) { my $r = syscall($_->[0], @$_[1 .. $#$_]);'
	    . ' exit 0 if $r == 0; print "$r $!{EPERM} $!{ENOSYS}\n" } print syscall(435, 0, 88), '
	        . '" $!{ENOSYS}\n"\'';
	$id = $runner->deploy($project, $clone);
	is($runner->wait($id), 'success', 'a step tries the system calls directly');
	my @said = $runner->log($id) =~ /^(-1 .*|\d.*)$/mg;
	is(scalar(@said), 4, 'no system call creates a user namespace') or diag($runner->log($id));
	like($said[0], qr/^-1 [1-9]/, 'unshare is denied');
	like($said[1], qr/^-1 \d/, 'unshare with its x32 number is denied');
	like($said[2], qr/^-1 [1-9]/, 'clone with a user namespace is denied');
	like($said[3], qr/^-1 [1-9]/, 'clone3 is denied');
}
$runner->write_conf("[runner]\nuser_namespaces = yes\n");
$runner->restart;
$id = $runner->deploy($project, $try);
is($runner->wait($id), 'success', 'a deployment with user_namespaces = yes succeeds');
like($runner->log($id), $may ? qr/^new$/m : qr/^none$/m, 'user_namespaces = yes allows a user namespace');
$runner->stop;

# --- a runner in the sandbox
my $numbers = slurp('/usr/include/x86_64-linux-gnu/asm/unistd_64.h') // slurp('/usr/include/asm/unistd_64.h');
if (!$apart || !$x86 || !$analyze || !defined $numbers) {
	note('the sandbox needs root, x86-64 and systemd-analyze');
	done_testing();
	exit;
}
my %number = $numbers =~ /#define __NR_(\w+) (\d+)/g;
my $text = $unit{'monitor/slipway-runner'};
my ($sets) = $text =~ /^SystemCallFilter=~(.*)$/m;
my %denied;
sub expand {
	my ($set) = @_;
	my $listed = (run_cmd($analyze, 'syscall-filter', '--no-pager', $set))[1];
	for my $name (map { /^\s+(\S+)/ ? $1 : () } split /\n/, $listed) {
		next if $name =~ /^#/;
		$name =~ /^@/ ? expand($name) : defined $number{$name} ? $denied{$number{$name}}++ : ();
	}
}
expand($_) for split ' ', $sets;
cmp_ok(scalar keys %denied, '>', 20, 'systemd-analyze lists the denied system calls');
my %flag = (cgroup => 0x02000000, uts => 0x04000000, ipc => 0x08000000, user => 0x10000000,
    pid => 0x20000000, net => 0x40000000, mnt => 0x00020000);
my ($given) = $text =~ /^RestrictNamespaces=(.*)$/m;
delete @flag{ split ' ', $given };
my ($families) = $text =~ /^RestrictAddressFamilies=(.*)$/m;
my %family = (AF_UNIX => 1, AF_INET => 2, AF_INET6 => 10, AF_NETLINK => 16);
# A filter of seccomp(2): instructions { code, jt, jf, k }.
my @code;
sub ins { push @code, pack 'SCCL', @_ }
my ($LD, $JEQ, $JSET, $RET, $EPERM, $ALLOW) = (0x20, 0x15, 0x45, 0x06, 0x00050001, 0x7fff0000);
my $flags = 0;
$flags |= $_ for values %flag;
ins($LD, 0, 0, 0);
for (sort { $a <=> $b } keys %denied) { ins($JEQ, 0, 1, $_); ins($RET, 0, 0, $EPERM) }
for ($number{unshare}, $number{clone}) {
	ins($JEQ, 0, 4, $_);
	ins($LD, 0, 0, 16);
	ins($JSET, 0, 1, $flags);
	ins($RET, 0, 0, $EPERM);
	ins($RET, 0, 0, $ALLOW);
}
ins($JEQ, 0, 1, $number{clone3});
ins($RET, 0, 0, 0x00050026);
my @families = map { $family{$_} // die } split ' ', $families;
ins($JEQ, 0, 3 + @families, $number{socket});
ins($LD, 0, 0, 16);
for my $n (0 .. $#families) { ins($JEQ, @families - $n, 0, $families[$n]) }
ins($RET, 0, 0, 0x00050061);
ins($RET, 0, 0, $ALLOW);
for ([$number{chmod}, 24], [$number{fchmod}, 24], [$number{fchmodat}, 32]) {
	ins($JEQ, 0, 4, $_->[0]);
	ins($LD, 0, 0, $_->[1]);
	ins($JSET, 0, 1, 06000);
	ins($RET, 0, 0, $EPERM);
	ins($RET, 0, 0, $ALLOW);
}
ins($RET, 0, 0, $ALLOW);
my $filter = join '', @code;
my ($caps) = $text =~ /^CapabilityBoundingSet=(.*)$/m;
my $bounding = join ',', '-all', map { '+' . lc(s/^CAP_//r) } split ' ', $caps;

my $boxed = Slipway::Runner->start(db => $db, idle => 1, conf => "[runner]\nmemory_max = 1g\n");
no warnings 'redefine';
my $plain = \&Slipway::Runner::command;
local *Slipway::Runner::command = sub {
	my ($self, @more) = @_;
	spew("$self->{dir}/filter", $filter);
	# /usr and foreign control groups read-only, no devices, then the filter
	my $setup = <<'SH';
set -e
mount --rbind /usr /usr; mount -o remount,bind,ro /usr
mount --bind /usr/local /usr/local; mount -o remount,bind,rw /usr/local
if [ -f /sys/fs/cgroup/cgroup.procs ]; then
	own=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
	if [ "$own" != /sys/fs/cgroup/ ]; then mount --bind "$own" "$own"; fi
fi
dev=$(mktemp -d)
mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$dev"
for d in null zero full random urandom tty; do : >"$dev/$d"; mount --bind /dev/$d "$dev/$d"; done
for d in shm pts; do if [ -d /dev/$d ]; then mkdir "$dev/$d"; mount --rbind /dev/$d "$dev/$d"; fi; done
ln -s /proc/self/fd "$dev/fd"; ln -s pts/ptmx "$dev/ptmx"
mount --move "$dev" /dev
rmdir "$dev"
umask 0077
exec "$@"
SH
	my $load = <<'PERL';
open my $f, "<", shift or die;
local $/;
my $c = <$f>;
my $p = pack "Sx6P", length($c) / 8, $c;
die "seccomp: $!" if syscall(157, 38, 1, 0, 0, 0) != 0
    || syscall(157, 22, 2, unpack("Q", pack "P", $p), 0, 0) != 0;
exec @ARGV or die;
PERL
	return ('unshare', '--mount', '--propagation', 'slave', 'sh', '-c', $setup, 'sh',
	    'setpriv', '--bounding-set', $bounding, '--no-new-privs', $^X, '-e', $load, "$self->{dir}/filter",
	    $plain->($self, @more));
};
$boxed->resume;
my $shop = $boxed->project(dir => 'grp/shop');
my $sockets = 'socket my $s, PF_INET, SOCK_STREAM, 0 or die; socket my $u, PF_UNIX, SOCK_STREAM, 0 or die;'
    . ' socket(my $n, 16, SOCK_RAW, 0) or die; print "sockets\n";'
    . ' print socket(my $p, 38, 5, 0) ? "exotic\n" : "no more\n"';
$id = $boxed->deploy($shop, 'id -un; umask; ulimit -n; echo x >file; mkdir d; chmod 700 d; ln -s file l;'
    . ' test -w /dev/null; head -c 4 /dev/urandom | wc -c', "perl -MSocket -e '$sockets'",
    'sleep 100 & setsid sleep 100 & echo up');
is($boxed->wait($id), 'success', 'a runner in the sandbox runs a deployment')
    or diag($boxed->log($id), tail($boxed->said, 20));
my $log = $boxed->log($id);
like($log, qr/^slipway-\d+$/m, 'an account has a name in the sandbox, because its job has private mounts');
like($log, qr/^0022$/m, 'a step has its usual umask in the sandbox');
like($log, qr/^sockets$/m, 'a step can open Internet, UNIX and netlink sockets');
like($log, qr/^no more$/m, 'a step cannot open other sockets');
unlike($boxed->said, qr/Operation not permitted|Read-only file system/,
    'the sandbox denies the runner nothing');
my $bad = $boxed->deploy($shop, 'unshare --user true', { script => 'unshare --net true', when => 'always' },
    { script => 'touch file; chmod g+s file', when => 'always' },
    { script => 'test -e /dev/sda || test -e /dev/kvm || test -e /dev/fuse || exit 3', when => 'always' });
is($boxed->wait($bad), 'failed', 'a deployment that breaks the sandbox fails');
is(scalar(() = $boxed->log($bad) =~ /ended with exit status [1-9]/g), 4,
    'each step that breaks the sandbox fails')
    or diag($boxed->log($bad));
my $long = $boxed->deploy($shop, 'echo up; sleep 600');
ok(poll(30, sub { ($boxed->log($long) || '') =~ /^up$/m }), 'a job runs');
$boxed->restart;
is($boxed->status($long), 'running', 'the job survives a restart of the runner in the sandbox');
$boxed->cancel($long);
is($boxed->wait($long), 'canceled', 'the job is canceled by the restarted runner');
$db->sql("UPDATE project SET valid = 0, updated_at = NOW(3) - INTERVAL 2 DAY WHERE id = $shop");
$boxed->restart;
ok(poll(30, sub { !-e "$boxed->{workspaces}/grp/shop"
    && !(() = glob "$boxed->{workspaces}/.left/*") }),
    'workspaces of deleted projects are removed in the sandbox')
    or diag(`ls -laR $boxed->{workspaces} | head -40`, tail($boxed->said, 20));
$boxed->stop;
ok(!$boxed->jobs, 'no job is left');
done_testing();
