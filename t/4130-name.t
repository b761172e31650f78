#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Accounts that no passwd file lists have a name inside their job, so that ssh
# runs there; the host knows nothing of it.

use strict;
use warnings;
use Test::More;
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

own_mounts(); # what other tests mount is not ours
my $repo = tempdir() . '/repo.git';
my ($made) = run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
	. 'git config user.email a@example.org; git config user.name a;'
	. 'echo hello >file; git add .; git commit -qm first');
is($made, 0, 'a repository is made');
my $port = free_port();
my $script = <<"END";
id -un || true
getent passwd "\$(id -u)" | cut -d: -f3,4,6,7 || true
echo "home \$HOME \$(ls -A ~ | tr '\\n' ' ')"
(echo evil::0:0::/:/bin/sh >>/etc/passwd) 2>/dev/null || echo 'not to be written'
stat -c 'mode %a of %u' /etc/passwd
getent passwd root | cut -d: -f1,3
ssh -o BatchMode=yes -p $port 127.0.0.1 2>&1 || true
END

sub deploy {
	my ($m) = @_;
	my $job = $m->job(repository => $repo, branch => 'main', steps => [$script]);
	my $pid = $m->started($job);
	is($m->exited($job), 0, 'the job ends well');
	return ($job, job_log($job));
}

my $before = slurp('/etc/passwd');
my $mounts = slurp('/proc/self/mountinfo');
my $m = Slipway::Monitor->start;
my ($job, $log) = deploy($m);
if (is_root()) {
	my $uid = $m->{uid_first} + 7;
	my $home = "$m->{workspaces}/.home/$job->{id}.1";
	if ($m->log =~ /without a name/) {
		note('as root, without mount namespaces: the account stays nameless');
		unlike($log, qr/^slipway-$uid$/m, 'and has no name');
	} else {
		note('as root: a mount namespace');
		like($log, qr/^slipway-$uid$/m, 'the account has a name');
		like($log, qr/^$uid:$uid:\Q$home\E:\/bin\/bash$/m, 'an entry with ids, home and shell');
		like($log, qr/^mode 644 of 0$/m, 'in a file of root');
		like($log, qr/connect to host 127\.0\.0\.1 port $port|Connection refused/, 'ssh runs');
		unlike($log, qr/No user exists/, 'and knows who it is');
	}
	unlike($log, qr/^home .*passwd/m, 'nothing of it is left in the home');
	like($log, qr/^not to be written$/m, 'the file is not the job\'s');
} else {
	note('without root: the account is ours and has a name');
	my $name = getpwuid $>;
	like($log, qr/^\Q$name\E$/m, 'which it keeps');
}
like($log, qr/^root:0$/m, 'everybody else is listed as before');
is(slurp('/etc/passwd'), $before, 'the host\'s file is as it was');
is(slurp('/proc/self/mountinfo'), $mounts, 'and so are its mounts');
$m->stop;

done_testing();
