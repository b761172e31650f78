#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The steps of README's installation and what comes after: their commands are
# shell, and what they name is what `make install` puts there.  `make
# check-install` follows them in a bare Debian.

use strict;
use warnings;
use Test::More;
use Slipway::Readme;
use Slipway::Test;

my @install = readme_steps(srcdir() . '/README', 'Installing behind');
my @keep = readme_steps(srcdir() . '/README', 'Upgrade, back up');
cmp_ok(scalar @install, '>=', 8, 'README has its steps');
cmp_ok(scalar @keep, '>=', 5, 'and those that follow');
is_deeply([map { $_->{number} } @$_], [1 .. @$_], 'they are numbered') for \@install, \@keep;
my @steps = (@install, @keep);
for my $step (@steps) {
	ok(@{ $step->{commands} } > 0, "step $step->{number} says what to run");
	for my $command (@{ $step->{commands} }) {
		my ($status, undef, $err) = run_cmd('bash', '-n', '-c', $command);
		is($status, 0, "shell: $command") or diag($err);
	}
}

my $dest = tempdir() . '/root';
my ($status, $out, $err) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(),
	'install', "DESTDIR=$dest", 'prefix=/usr/local', 'sysconfdir=/etc');
is($status, 0, 'make install') or diag($out, $err);
my $text = join "\n", map { @{ $_->{commands} } } @install;
my %named = map { $_ => 1 } $text =~ m{(/usr/local/[\w./-]+)}g;
ok(-e "$dest$_", "installed: $_") for sort keys %named;
for my $name ($text =~ /\b(slipway-(?:admin|api|runner))\b/g) {
	next if $named{$name}++;
	ok(-x "$dest/usr/local/sbin/$name", "installed: $name");
}

# The packages that it names are those that bootstrap builds with.
my ($apt) = $text =~ /^(apt-get install.*)$/m;
my %apt = map { $_ => 1 } split ' ', $apt;
my $bootstrap = slurp(srcdir() . '/bootstrap');
my @needed = map { split ' ' } $bootstrap =~ /^\t(?:configure|build)  +(.+)$/mg;
cmp_ok(scalar @needed, '>', 8, 'bootstrap says what it builds with');
is_deeply([grep { !$apt{$_} } @needed], [], 'README names all of it');

# The example is a configuration that the programs take.
my $conf = "$dest/usr/local/share/doc/slipway/examples/slipway.conf";
($status, $out, $err) = run_cmd(program('slipway-api'), '-n', '-c', $conf);
is($status, 0, 'the example configuration is one') or diag($err);

# Units: what they start is there; they were made for the prefix of the build.
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

# The API's unit: locked up, and known to systemd where there is one.
my $api = slurp("$dest/usr/local/lib/systemd/system/slipway-api.service");
like($api, qr/^\Q$_\E$/m, "slipway-api.service: $_")
    for 'Type=notify', 'User=slipway-api', 'SupplementaryGroups=slipway www-data', 'CapabilityBoundingSet=', 'NoNewPrivileges=yes', 'ProtectSystem=strict',
    'PrivateDevices=yes', 'MemoryDenyWriteExecute=yes', 'SystemCallFilter=@system-service', 'SystemCallFilter=@chown';
my ($analyze) = grep { -x } map { "$_/systemd-analyze" } split /:/, "$ENV{PATH}:/usr/bin";
if ($analyze) {
	my $dir = tempdir() . '/units';
	mkdir $dir;
	my @units = map { m{([^/]+)$} } glob "$dest/usr/local/lib/systemd/system/slipway-api*";
	for my $unit (@units) {
		spew("$dir/$unit", slurp("$dest/usr/local/lib/systemd/system/$unit") =~ s{=/\S+/slipway-api\b}{=/bin/true}gr);
	}
	($status, $out, $err) = run_cmd({ env => { SYSTEMD_LOG_LEVEL => 'warning' } }, $analyze, 'verify', '--man=no',
	    map { "$dir/$_" } @units);
	unlike($out . $err, qr/slipway-api/, 'systemd has nothing to say of them');
} else {
	note('no systemd-analyze here: the units were only read');
}

# What is installed can be taken away.
($status, $out, $err) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(),
	'uninstall', "DESTDIR=$dest", 'prefix=/usr/local', 'sysconfdir=/etc');
is($status, 0, 'make uninstall') or diag($out, $err);
(undef, $out) = run_cmd('find', $dest, '(', '!', '-type', 'd', '-o', '-name', '*slipway*', ')');
is($out, '', 'leaves neither a file nor a folder of its own');

done_testing();
