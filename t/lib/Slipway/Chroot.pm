# SPDX-License-Identifier: ISC
package Slipway::Chroot;

# A minimal Debian with MariaDB, in a chroot of its own.  Needs root, debootstrap,
# a Debian mirror and minutes.  Everything is in private namespaces, so that no mount
# and no process survives the test.  No systemd runs inside; /usr/local/bin/systemctl
# starts the commands of slipway's units.
#
#   chroot_begin();                   before anything else
#   chroot_create(['nginx'], ['slipway.example.org']);
#   my ($status, $out, $err) = in_root('nginx -t');
#   my $out = must('nginx runs', in_root('nginx'));

use strict;
use warnings;
use Exporter 'import';
use Test::More;
use Slipway::Test;

our @EXPORT = qw(chroot_begin chroot_create chroot_dir in_root must);

my ($root, @mounted);

sub chroot_begin {
	own_mounts('--pid', '--fork', '--kill-child', '--mount-proc')
	    or BAIL_OUT('this test needs root and private namespaces');
	$SIG{$_} = sub { exit 1 } for qw(HUP INT TERM); # pid 1 ignores them by default
	$root = tempdir() . '/debian';
	return;
}

sub chroot_dir { return $root }

sub in_root {
	my ($shell, %env) = @_;
	my @env = map { "$_=$env{$_}" } sort keys %env;
	return run_cmd('chroot', $root, '/usr/bin/env', '-i', 'HOME=/root', 'LC_ALL=C',
	    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
	    'DEBIAN_FRONTEND=noninteractive', @env, 'bash', '-ec', $shell);
}

sub must {
	my ($what, $status, $out, $err) = @_;
	is($status, 0, $what) or do { diag($out, $err); BAIL_OUT("cannot go on without: $what") };
	return $out;
}

# Installs the packages, gives this machine the names, and starts MariaDB.
sub chroot_create {
	my ($packages, $names) = @_;
	must('debootstrap', run_cmd('debootstrap', '--variant=minbase', 'bookworm', $root));
	for my $fs (['proc'], ['sysfs', 'sys', 'ro'], ['tmpfs', 'dev', 'mode=755'],
	    ['devpts', 'dev/pts', 'newinstance,ptmxmode=666'], ['tmpfs', 'dev/shm', 'mode=1777']) {
		my ($type, $at, $options) = @$fs;
		$at ||= $type;
		run_cmd('mkdir', '-p', "$root/$at");
		must("mount $at", run_cmd('mount', '-t', $type, '-o', $options || 'rw', $type, "$root/$at"));
		unshift @mounted, "$root/$at";
	}
	# the machine's own /dev is never used
	must('devices', run_cmd({ cwd => "$root/dev" }, 'sh', '-ec', <<'NODES'));
mknod -m 666 null c 1 3
mknod -m 666 zero c 1 5
mknod -m 666 full c 1 7
mknod -m 666 random c 1 8
mknod -m 666 urandom c 1 9
mknod -m 666 tty c 5 0
ln -s pts/ptmx ptmx
ln -s /proc/self/fd fd
ln -s fd/0 stdin
ln -s fd/1 stdout
ln -s fd/2 stderr
NODES
	spew("$root/etc/hosts", "127.0.0.1 localhost @$names\n");
	spew("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0755);
	must('MariaDB, systemd and other packages are installed', in_root('apt-get update -q && '
	    . "apt-get install -q -y --no-install-recommends mariadb-server systemd @$packages"));
	spew("$root/usr/local/bin/systemctl", do { local $/; <DATA> }, 0755);
	must('MariaDB runs', in_root('mkdir -p /run/mysqld && chown mysql /run/mysqld && '
	    . '{ setsid mariadbd --user=mysql >/var/log/mariadb.log 2>&1 </dev/null & } && '
	    . 'for i in $(seq 3000); do mariadb-admin ping >/dev/null 2>&1 && exit 0; sleep 0.1; done; '
	    . 'exit 1'));
	return;
}

END {
	# The test is the first process of its namespace: these are all others in it.
	if ($$ == 1 && @mounted) {
		my $code = $?;
		kill 'KILL', -1;
		1 while wait != -1;
		run_cmd('umount', @mounted);
		$? = $code;
	}
}

1;

__DATA__
#!/bin/bash
# Replaces systemctl where systemd does not run: starts the commands of the units.
set -eu
what=$1
shift
[ "${1-}" != --now ] || shift

start() {
	local unit start user groups as=() command
	unit=$(ls -d {/usr/local,}/lib/systemd/system/"$1.service" 2>/dev/null) || true
	start=$(sed -n 's/^ExecStart=//p' "$unit")
	user=$(sed -n 's/^User=//p' "$unit")
	groups=$(sed -n 's/^SupplementaryGroups=/,/p' "$unit" | tr ' ' ,)
	read -ra command <<<"$start"
	[ -z "$user" ] || as=(setpriv "--reuid=$user" "--regid=$user" "--groups=$user$groups")
	setsid "${as[@]}" "${command[@]}" >>"/var/log/$1.log" 2>&1 </dev/null &
	echo $! >"/run/of-$1"
	sleep 1
	kill -0 $! || { cat "/var/log/$1.log" >&2; exit 1; }
}

gone() { # a zombie has no program
	local pid i
	for pid; do
		for ((i = 0; i < 300; i++)); do
			readlink "/proc/$pid/exe" >/dev/null || break
			sleep 0.1
		done
	done
}

stop() {
	local pid
	pid=$(cat "/run/of-$1")
	kill -TERM "$pid"
	gone "$pid"
	rm "/run/of-$1"
}

case $what in
daemon-reload) ;;
reload)
	for name; do
		if [ "$name" != nginx ]; then
			kill -HUP "$(cat "/run/of-$name")"
			continue
		fi
		# Until the old workers no longer accept connections.
		workers=/proc/$(cat /run/nginx.pid)/task/$(cat /run/nginx.pid)/children
		old=$(cat "$workers")
		nginx -s reload
		# shellcheck disable=SC2086 # one word per process
		gone $old
	done
	;;
enable | start) for name; do start "$name"; done ;;
disable | stop) for name; do stop "$name"; done ;;
*) exit 64 ;;
esac
