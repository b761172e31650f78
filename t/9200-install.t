#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The commands of the README's installation and maintenance: they are valid shell, and
# the files that they name are installed by `make install`.  `make check-install` runs
# them in a minimal Debian.

use strict;
use warnings;
use Test::More;
use Slipway::Readme;
use Slipway::Test;

my @install = readme_steps(srcdir() . '/README', 'Installing behind');
my @keep = readme_steps(srcdir() . '/README', 'Upgrade, back up');
my @share = readme_steps(srcdir() . '/README', 'Without a host name');
my @far = readme_steps(srcdir() . '/README', 'MariaDB on another');
my @packages = readme_steps(srcdir() . '/README', 'Debian packages');
my @site = readme_steps(srcdir() . '/README', 'Your first site');
cmp_ok(scalar @install, '>=', 6, 'the README has the steps of the installation');
cmp_ok(scalar @keep, '>=', 5, 'the README has the steps of maintenance');
cmp_ok(scalar @site, '>=', 8, 'the README has the steps of the first site');
my @sections = (\@install, \@packages, \@share, \@far, \@site, \@keep);
is_deeply([map { $_->{number} } @$_], [1 .. @$_], 'the steps are numbered') for @sections;
for my $step (map { @$_ } @sections) {
	ok(@{ $step->{commands} } || $step->{text}, "step $step->{number} has commands or a part of a file");
	for my $command (@{ $step->{commands} }) {
		my ($status, undef, $err) = run_cmd('bash', '-n', '-c', $command);
		is($status, 0, "valid shell: $command") or diag($err);
	}
}

my $dest = tempdir() . '/root';
my ($status, $out, $err) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(),
	'install', "DESTDIR=$dest", 'prefix=/usr/local', 'sysconfdir=/etc');
is($status, 0, 'make install succeeds') or diag($out, $err);
my $text = join "\n", map { @{ $_->{commands} }, $_->{text} // '' } @install, @share;
my %named = map { $_ => 1 } $text =~ m{(/usr/local/[\w./-]+)}g;
ok(-e "$dest$_", "installed: $_") for sort keys %named;
for my $name ($text =~ /\b(slipway-(?:admin|api|runner))\b/g) {
	next if $named{$name}++;
	ok(-x "$dest/usr/local/sbin/$name", "installed: $name");
}

# The README installs the packages that bootstrap needs.
my ($apt) = $text =~ /^(apt-get install.*)$/m;
my %apt = map { $_ => 1 } split ' ', $apt;
my $bootstrap = slurp(srcdir() . '/bootstrap');
my @needed = map { split ' ' } $bootstrap =~ /^\t(?:configure|build)  +(.+)$/mg;
cmp_ok(scalar @needed, '>', 8, 'bootstrap lists its packages');
is_deeply([grep { !$apt{$_} } @needed], [], 'the README lists all packages of bootstrap');

# The example is a valid configuration.
my $conf = "$dest/usr/local/share/doc/slipway/examples/slipway.conf";
($status, $out, $err) = run_cmd(program('slipway-api'), '-n', '-c', $conf);
is($status, 0, 'the example configuration is valid') or diag($err);

# Units start installed programs; they were built for the prefix of the build.
my ($prefix) = (slurp(builddir() . '/Makefile') || '') =~ /^prefix = (.*)$/m;
for my $unit (glob "$dest/usr/local/lib/systemd/system/*.service") {
	my $body = slurp($unit);
	my ($name) = $unit =~ m{([^/]+)$};
	for ($body =~ m{^ExecStart=(\S+)}mg) {
		my $program = s{^\Q$prefix\E/}{/usr/local/}r;
		ok(-x "$dest$program", "$name starts $program");
	}
	unlike($body, qr/\@\w+\@/, "$name has its directories");
}

# The API's unit is sandboxed, and systemd accepts it.
my $api = slurp("$dest/usr/local/lib/systemd/system/slipway-api.service");
like($api, qr/^\Q$_\E$/m, "slipway-api.service: $_")
    for 'Type=notify', 'User=slipway-api', 'SupplementaryGroups=slipway www-data', 'CapabilityBoundingSet=',
    'NoNewPrivileges=yes', 'ProtectSystem=strict',
    'PrivateDevices=yes', 'MemoryDenyWriteExecute=yes', 'SystemCallFilter=@system-service',
    'SystemCallFilter=@chown';
my ($analyze) = grep { -x } map { "$_/systemd-analyze" } split /:/, "$ENV{PATH}:/usr/bin";
if ($analyze) {
	my $dir = tempdir() . '/units';
	mkdir $dir;
	my @units = map { m{([^/]+)$} } glob "$dest/usr/local/lib/systemd/system/slipway-api*";
	for my $unit (@units) {
		my $text = slurp("$dest/usr/local/lib/systemd/system/$unit");
		spew("$dir/$unit", $text =~ s{=/\S+/slipway-api\b}{=/bin/true}gr);
	}
	($status, $out, $err) = run_cmd({ env => { SYSTEMD_LOG_LEVEL => 'warning' } }, $analyze,
	    'verify', '--man=no',
	    map { "$dir/$_" } @units);
	unlike($out . $err, qr/slipway-api/, 'systemd has no complaint');
} else {
	note('systemd-analyze is not installed: the units are only parsed');
}

# make uninstall removes everything.
($status, $out, $err) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(),
	'uninstall', "DESTDIR=$dest", 'prefix=/usr/local', 'sysconfdir=/etc');
is($status, 0, 'make uninstall succeeds') or diag($out, $err);
(undef, $out) = run_cmd('find', $dest, '(', '!', '-type', 'd', '-o', '-name', '*slipway*', ')');
is($out, '', 'make uninstall leaves no file and no directory of its own');

done_testing();
