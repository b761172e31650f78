#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The README's installation, upgrade, backup, restore, key rotation and removal,
# followed literally in a minimal Debian with an existing nginx and MariaDB.  Needs
# root, debootstrap, a Debian mirror and minutes: `make check-install` runs it.  No
# systemd runs inside; the commands of the units are started by hand.  Everything is
# in private namespaces, so that no mount and no process survives the test.

use strict;
use warnings;
use Test::More;
use Slipway::Readme;
use Slipway::Test;

own_mounts('--pid', '--fork', '--kill-child', '--mount-proc')
    or BAIL_OUT('make check-install needs root and private namespaces');
$SIG{$_} = sub { exit 1 } for qw(HUP INT TERM); # pid 1 ignores them by default
my $root = tempdir() . '/debian';
my @mounted;

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

# --- a machine with nginx and MariaDB
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
spew("$root/etc/hosts", "127.0.0.1 localhost example.org\n");
spew("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0755);
must('nginx, MariaDB and systemd are installed', in_root('apt-get update -q && apt-get install -q -y '
    . '--no-install-recommends mariadb-server nginx systemd curl openssl ca-certificates'));
spew("$root/usr/local/bin/systemctl", slurp(__FILE__) =~ s/.*\n__END__\n//sr, 0755);
must('MariaDB runs', in_root('mkdir -p /run/mysqld && chown mysql /run/mysqld && '
    . '{ setsid mariadbd --user=mysql >/var/log/mariadb.log 2>&1 </dev/null & } && '
    . 'for i in $(seq 3000); do mariadb-admin ping >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1'));
spew("$root/etc/nginx/sites-enabled/example.org", <<'SITE');
server {
	listen 443 ssl;
	server_name example.org;
	ssl_certificate /etc/ssl/own.pem;
	ssl_certificate_key /etc/ssl/own.key;
	location / { return 200 "the old site\n"; }
}
SITE
must('nginx runs', in_root('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes '
    . '-days 2 -subj /CN=example.org -addext subjectAltName=DNS:example.org '
    . '-keyout /etc/ssl/own.key -out /etc/ssl/own.pem && nginx'));

# --- the tarball, and the steps of the README
my $tar = tempdir() . '/dist';
mkdir $tar;
must('make dist', run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(), 'dist'));
must('the tarball is unpacked',
    run_cmd('sh', '-c', 'mkdir "$1"/root/slipway && tar xzf "$0"/slipway-*.tar.gz '
    . '-C "$1"/root/slipway --strip-components=1', builddir(), $root));
my $token;
sub follow {
	my ($step) = @_;
	for my $command (@{ $step->{commands} }) {
		my $out = must("$step->{number}: $command", in_root("cd /root/slipway\n$command\n",
			CURL_CA_BUNDLE => '/etc/ssl/own.pem'));
		($token) = $out =~ /(slw_[\w-]+)/ if $command =~ /token add/;
		like($out, qr/"status":"ok"/, 'the service is healthy') if $command =~ /health/;
	}
}
follow($_) for readme_steps(srcdir() . '/README', 'Installing behind');
ok($token, 'the installation prints a token');

# --- the existing site is unchanged; the service requires a token
my $curl = 'curl -sS -w "%{http_code}" https://example.org';
my (undef, $out) = in_root("$curl/", CURL_CA_BUNDLE => '/etc/ssl/own.pem');
is($out, "the old site\n200", 'the existing site is unchanged after the installation');
(undef, $out) = in_root("$curl/api/projects", CURL_CA_BUNDLE => '/etc/ssl/own.pem');
like($out, qr/"unauthenticated".*\s401$/, 'a request without a token is rejected');
(undef, $out) = in_root("$curl/api/projects -H 'Authorization: Bearer $token'",
	CURL_CA_BUNDLE => '/etc/ssl/own.pem');
like($out, qr/^\{"data":\[\].*\s200$/, 'a request with a token is accepted');
(undef, $out) = in_root('ls -l /proc/[0-9]*/exe 2>/dev/null');
like($out, qr{/usr/local/libexec/slipway/slipway-dispatch}, 'the runner has started its dispatcher');

# --- maintenance
sub ask {
	my ($path, @more) = @_;
	my (undef, $out) = in_root("$curl$path -H 'Authorization: Bearer $token' @more",
	    CURL_CA_BUNDLE => '/etc/ssl/own.pem');
	return $out;
}
my ($upgrade, $backup, $restore, $keys, $drop, $away) = readme_steps(srcdir() . '/README',
    'Upgrade, back up');
like(ask('/api/projects',
    q{-H 'Content-Type: application/json' -d '{"name":"kept","repository":"git@localhost:a/b"}'}),
	qr/422$/, 'a project with an unknown Git server is rejected');
must('a Git server is allowed', in_root(q{sed -i 's|^#allowed_hosts.*|allowed_hosts = localhost|' }
    . '/etc/slipway/slipway.conf && systemctl reload slipway-api'));
ok(poll(20,
    sub { ask('/api/projects',
    q{-H 'Content-Type: application/json' -d '{"name":"kept","repository":"git@localhost:a/b"}'})
	=~ /201$/ }), 'a project is created');
like(ask('/api/projects/1/hook-secret', '-X PUT'), qr/200$/, 'a webhook secret is stored');
follow($upgrade);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after an upgrade')
    or diag(ask('/api/projects'));
follow($backup);
(undef, $out) = in_root('stat -c %a:%U /var/backups/slipway*');
is($out, "600:root\n600:root\n", 'a backup is readable by root alone');
like(ask('/api/projects/1', '-X DELETE'), qr/204$/, 'the project is deleted');
must('the keys are deleted', in_root('rm -rf /etc/slipway'));
follow($restore);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after a restore')
    or diag(ask('/api/projects'));
must('the keys are there after a restore', in_root('runuser -u slipway-api -- slipway-admin check'));
follow($keys);
ok(poll(20, sub { ask('/api/projects/1/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored with the new key');
must('some minutes pass',
    in_root("touch -d '10 minutes ago' /etc/slipway/secret.key /etc/slipway/deploy.key"));
follow($drop);
(undef, $out) = in_root('wc -l </etc/slipway/secret.key;'
    . ' stat -c %a:%U:%G /etc/slipway/secret.key /etc/slipway/deploy.key');
is($out, "1\n640:root:slipway\n400:slipway:root\n",
    'the old keys are dropped, and the files keep owner and mode');
ok(poll(20, sub { ask('/api/projects/1/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored without the old keys');
follow($away);
(undef, $out) = in_root("$curl/", CURL_CA_BUNDLE => '/etc/ssl/own.pem');
is($out, "the old site\n200", 'the existing site is unchanged after the removal');
(undef, $out) = in_root("$curl/api/health", CURL_CA_BUNDLE => '/etc/ssl/own.pem');
is($out, "the old site\n200", 'the service is gone after the removal');
(undef, $out) =
    in_root('find / -xdev -name "*slipway*" ! -path "/root/*" ! -path "/var/log/*" ! -path "/var/backups/*"'
	. ' ! -path "/proc/*" ! -path "/usr/local/bin/*"; getent passwd slipway slipway-api; getent group '
	    . 'slipway slipway-api;'
	. ' ls -l /proc/[0-9]*/exe 2>/dev/null | grep slipway-; mariadb -BNe "SELECT user FROM mysql.user '
	    . 'WHERE user LIKE \'slipway%\'"');
is($out, '', 'the removal leaves nothing');

done_testing();

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

__END__
#!/bin/bash
# Replaces systemctl where systemd does not run: starts the commands of the units.
set -eu
what=$1
shift
[ "${1-}" != --now ] || shift

start() {
	local unit=/usr/local/lib/systemd/system/$1.service start user groups as=() command
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
