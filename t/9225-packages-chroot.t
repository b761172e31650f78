#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The Debian packages are installed, deploy, are upgraded twice under a running
# deployment, and are purged, in a minimal Debian.  `make check-packages` builds them
# and runs this.

use strict;
use warnings;
use Test::More;
use Slipway::Chroot;
use Slipway::Test;

chroot_begin();
my $root = chroot_dir();
my @built = grep { !/-dbgsym_/ } glob builddir() . '/deb/*.deb';
is(scalar @built, 5, 'the packages are built') or BAIL_OUT('run make deb');
my ($version) = $built[0] =~ /_([\d.]+)_/;

# The built packages with another version, as an earlier or later release.
sub release {
	my ($as) = @_;
	mkdir "$root/root/$as" or die "$root/root/$as: $!";
	for my $deb (@built) {
		my $tree = tempdir() . '/tree';
		must('unpack', run_cmd('dpkg-deb', '-R', $deb, $tree));
		my $control = slurp("$tree/DEBIAN/control");
		$control =~ s/^Version: .*/Version: $as/m;
		$control =~ s/\Q$version\E\)/$as)/g;
		spew("$tree/DEBIAN/control", $control, 0644);
		must("$as of $deb", run_cmd('dpkg-deb', '--root-owner-group', '-Znone', '-b', $tree,
		    "$root/root/$as"));
		run_cmd('rm', '-rf', $tree);
	}
	return;
}
sub install {
	my ($as) = @_;
	return must("$as is installed",
	    in_root("apt-get install -q -y --no-install-recommends /root/$as/*.deb 2>&1 </dev/null"));
}

chroot_create([qw(nginx curl openssl ca-certificates)], []);
my ($series, $patch) = $version =~ /^(\d+\.\d+)\.(\d+)$/;
my $next = "$series." . ($patch + 1);
release($_) for '0.0.9', $version, $next;

# --- a new installation
my $said = install('0.0.9');
is((in_root('stat -c "%a %U:%G" /etc/slipway/slipway.conf'))[1], "640 root:slipway\n",
    'only root and the services read the configuration');
is((in_root('mariadb -BNe "SHOW DATABASES LIKE \'slipway\'"'))[1], '', 'the packages create no database');
is((in_root('ls -l /proc/[0-9]*/exe | grep -c slipway-'))[1], "0\n", 'the packages start nothing');
is((in_root('ls /usr/share/man/man?/slipway* | wc -l'))[1], "11\n", 'all man pages are installed');
is((in_root('ls /usr/share/{bash-completion/completions,fish/vendor_completions.d,zsh/vendor-completions} '
    . '| grep -c slipway'))[1], "6\n", 'completion for three shells is installed');
my $deployment = slurp(srcdir() . '/src/debian/tests/deployment');
spew("$root/root/deployment", $deployment, 0755);
must('nginx runs', in_root('nginx'));
my $out = must('the packages deploy',
    in_root('mkdir /srv/test && AUTOPKGTEST_TMP=/srv/test /root/deployment'));
my ($token) = $out =~ /^(slw_\S+)$/m;
like($out, qr/^deployed$/m, 'the log of the deployment follows');

# --- upgrades under a running deployment
my $client = "export SLIPWAY_URL=https://localhost SLIPWAY_TOKEN=$token;";
must('a pipeline that waits', in_root("$client slipway api PUT /api/steps/1 -i - <<<"
    . q('{"script":"echo begun; until [ -e /srv/gate ]; do sleep 0.1; done; echo ended"}')));
must('a deployment starts', in_root("$client slipway deploy -p site"));
ok(poll(60, sub { (in_root("$client slipway logs 2"))[1] =~ /^begun$/m }), 'the deployment runs');
sub pids { return (in_root('cd /run; head -n 1 of-slipway-* | cat'))[1] }
sub job {
	my ($pid) = (in_root('ls -l /proc/[0-9]*/exe 2>/dev/null | grep slipway-job'))[1] =~ m{/proc/(\d+)};
	return $pid;
}
my ($before, $job) = (pids(), job());
must('systemd is there', in_root('mkdir -p /run/systemd/system'));
# apt gives scripts a PATH without /usr/local
spew("$root/usr/bin/deb-systemd-invoke", <<'INVOKE', 0755);
#!/bin/bash
# Runs systemctl for those units of slipway that run.
set -eu
verb=$1
for unit in "${@:2}"; do
	name=${unit%.*}
	[ -e "/run/of-$name" ] || continue
	/usr/local/bin/systemctl stop "$name"
	[ "$verb" = stop ] || /usr/local/bin/systemctl start "$name"
done
INVOKE
$said = install($version);
like($said, qr/slipway-$_: run slipway-admin migrate, and then systemctl restart slipway-$_/,
    "the upgrade to another series says what to do for slipway-$_") for qw(api runner);
is(pids(), $before, 'the upgrade to another series restarts nothing');
is(job(), $job, 'the upgrade to another series leaves the deployment alone');
must('the schema is current', in_root('slipway-admin migrate'));
like((in_root("$client slipway status 2"))[1], qr/running/, 'the service that runs still responds');
$said = install($next);
unlike($said, qr/slipway-admin migrate/, 'an upgrade within a series needs no migration');
isnt(pids(), $before, 'an upgrade within a series restarts the services');
is(job(), $job, 'an upgrade within a series leaves the deployment alone');
must('the gate opens', in_root('touch /srv/gate'));
ok(poll(60, sub { (in_root("$client slipway status 2"))[1] =~ /success/ }), 'the deployment succeeds');
is((in_root("$client slipway logs 2"))[1] =~ /^begun\nended$/m ? 1 : 0, 1, 'no byte of its log is lost');

# --- removal
must('the packages are purged',
    in_root('rm /etc/nginx/conf.d/slipway.conf /etc/nginx/sites-enabled/slipway; nginx -s reload; '
    . 'apt-get purge -q -y "slipway*" </dev/null'));
is((in_root('ls -l /proc/[0-9]*/exe 2>/dev/null | grep -c slipway-'))[1], "0\n", 'no program runs');
is((in_root('find / -xdev -name "*slipway*" ! -path "/root/*" ! -path "/proc/*" ! -path "/var/log/*"'
    . ' ! -path "/srv/*" ! -path "/usr/local/*" ! -path "/etc/ssl/*" ! -path "/var/lib/mysql/*"'
    . ' ! -path "/run/of-*" | sort'))[1], "/etc/slipway\n", 'only the directory of the keys remains');
is((in_root('ls /etc/slipway'))[1], "deploy.key\ndeploy.pub\nsecret.key\n",
    'the directory of the keys contains nothing else');
is((in_root('mariadb -BNe "SHOW DATABASES LIKE \'slipway\'"'))[1], "slipway\n", 'the database remains');
done_testing();
