#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# An account without a passwd entry gets a name inside its job, so that ssh runs
# there; the host's passwd file does not change.

use strict;
use warnings;
use Test::More;
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

own_mounts(); # other tests' mounts are not ours
my $repo = tempdir() . '/repo.git';
ok(-d make_repo($repo) . '/.git', 'git creates a repository');
my $port = free_port();
my $script = <<"END";
id -un || true
getent passwd "\$(id -u)" | cut -d: -f3,4,6,7 || true
echo "home \$HOME \$(ls -A ~ | tr '\\n' ' ')"
(echo evil::0:0::/:/bin/sh >>/etc/passwd) 2>/dev/null || echo 'read-only'
stat -c 'mode %a of %u' /etc/passwd
getent passwd root | cut -d: -f1,3
ssh -o BatchMode=yes -p $port 127.0.0.1 2>&1 || true
END

sub deploy {
	my ($m) = @_;
	my $job = $m->job(repository => $repo, branch => 'main', steps => [$script]);
	my $pid = $m->started($job);
	is($m->exited($job), 0, 'the job succeeds');
	return ($job, job_log($job));
}

my $before = slurp('/etc/passwd');
my $mounts = slurp('/proc/self/mountinfo');
my $m = Slipway::Monitor->start;
my ($job, $log) = deploy($m);
if (is_root()) {
	my $uid = $m->{uid_first} + 7;
	my $home = "$m->{workspaces}/.home/$job->{id}.1";
	if ($m->log =~ /without names/) {
		note('as root without mount namespaces: the account has no name');
		unlike($log, qr/^slipway-$uid$/m, 'without mount namespaces the account has no name');
	} else {
		note('as root with a mount namespace');
		like($log, qr/^slipway-$uid$/m, 'the account has a name in the job');
		like($log, qr/^$uid:$uid:\Q$home\E:\/bin\/bash$/m,
		    'the entry has the ids, home and shell of the job');
		like($log, qr/^mode 644 of 0$/m, 'the passwd file in the job belongs to root');
		like($log, qr/connect to host 127\.0\.0\.1 port $port|Connection refused/,
		    'ssh runs in the job');
		unlike($log, qr/No user exists/, 'ssh finds the name of the account');
	}
	unlike($log, qr/^home .*passwd/m, 'the home contains no passwd file');
	like($log, qr/^read-only$/m, 'a step cannot write to the passwd file');
} else {
	note('without root: the account has a name already');
	my $name = getpwuid $>;
	like($log, qr/^\Q$name\E$/m, 'without root the account keeps its name');
}
like($log, qr/^root:0$/m, 'the passwd file in the job lists the accounts of the host');
is(slurp('/etc/passwd'), $before, 'the passwd file of the host is unchanged');
is(slurp('/proc/self/mountinfo'), $mounts, 'the mounts of the host are unchanged');
$m->stop;

done_testing();
