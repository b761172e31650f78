#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The Debian packages on a minimal Debian that already serves a site: the README is
# followed literally from apt-get install to a first site in PHP; then the packages
# pass their own test under autopkgtest, and piuparts.  `make check-packages` builds
# them and runs this.

use strict;
use warnings;
use Test::More;
use Slipway::Chroot;
use Slipway::FirstSite;
use Slipway::Readme;
use Slipway::Test;

chroot_begin();
my $root = chroot_dir();
my @built = glob builddir() . '/deb/*.deb';
cmp_ok(scalar @built, '>', 4, 'the packages are built') or BAIL_OUT('run make deb');
my ($source) = glob builddir() . '/deb/slipway-*/debian';
site_host();
must('the packages are copied', run_cmd('sh', '-ec', 'mkdir -p "$0/slipway/deb" && cp "$@" "$0/slipway/deb/"',
	"$root/root", @built));
must('the source is copied', run_cmd('cp', '-a', $source =~ s{/debian$}{}r, "$root/root/source"));

# --- the README, with the paths of the packages
my $readme = srcdir() . '/README';
my %path = slurp($readme) =~ m{(/usr/local/share/\S+) by\s+(/usr/share/\S+?)[\s,]}g;
is(scalar keys %path, 2, 'the README says which paths differ');
my $began = time;
my $packages = (readme_steps($readme, 'Debian packages'))[2];
site_follow([ { %$packages, commands => [ $packages->{commands}[0] ] } ]); # the others are for upgrades
my $token = site_follow([ grep { $_->{number} >= 3 } readme_steps($readme, 'Installing behind') ], sub {
	for my $here (keys %path) { s{\Q$here\E}{$path{$here}}g }
});
ok($token, 'the installation prints a token');
my $installed = time - $began;
is(site_old(), "the old site\n200", 'the existing site is unchanged');
site_first($token);
diag("apt-get install to health: $installed s; to a site, its second release and back: "
    . (time - $began) . ' s');

# --- the packages' own test
must('the packages are purged', in_root('systemctl stop slipway-api slipway-live slipway-runner;'
    . ' apt-get purge -q -y "slipway*"; rm -r /etc/slipway /etc/nginx/conf.d/slipway.conf'
    . ' /etc/nginx/sites-enabled/slipway; nginx -s reload; mariadb -e "DROP DATABASE slipway;'
    . ' DROP USER slipway@localhost; DROP USER \`slipway-api\`@localhost"'));
must('autopkgtest and piuparts are installed',
    in_root('apt-get install -q -y --no-install-recommends autopkgtest piuparts debootstrap'));
# This chroot is the container, and it is deleted afterwards.
my $out = must("the packages' own test passes",
    in_root('autopkgtest --ignore-restrictions=isolation-container,breaks-testbed --no-built-binaries'
    . ' $(ls /root/slipway/deb/*.deb | grep -v dbgsym) /root/source -- null 2>&1'));
like($out, qr/^deployment +PASS/m, 'the test of the packages deploys');
unlike($out, qr/\b(?:SKIP|FAIL|FLAKY)\b/, 'autopkgtest skips nothing');

# --- installation and removal under piuparts, which installs systemd as a dependency:
# its own directories remain
my $systemd = '^(/var/(cache|lib|log)/private|/var/lib/systemd/.*|/root/\.ssh)/?$';
$out = must('piuparts finds nothing', in_root("piuparts --no-eatmydata -d bookworm --ignore-regex '$systemd'"
    . ' $(ls /root/slipway/deb/*.deb | grep -v dbgsym) 2>&1'));
like($out, qr/PASS: All tests/, 'piuparts has run all its tests');
done_testing();
