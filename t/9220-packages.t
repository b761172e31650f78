#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The Debian packages: every file that `make install` installs is in exactly one of
# them, their version is that of the programs, and NEWS describes it.  `make
# check-packages` builds and tests them.

use strict;
use warnings;
use File::Find;
use Test::More;
use Slipway::Test;

my $debian = srcdir() . '/src/debian';
my $dest = tempdir() . '/root';
my ($status, $out, $err) = run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(),
	'install', "DESTDIR=$dest", 'prefix=/usr/local', 'sysconfdir=/etc');
is($status, 0, 'make install succeeds') or diag($out, $err);
# The directories of debian/rules, which also installs the configuration.
my @installed = ('etc/slipway/slipway.conf');
my @moved = ([ 'usr/local/lib/systemd/', 'lib/systemd/' ], [ 'usr/local/', 'usr/' ],
	[ 'usr/share/doc/slipway/examples/', 'usr/share/slipway/examples/' ],
	[ 'usr/share/zsh/site-functions/', 'usr/share/zsh/vendor-completions/' ]);
sub place {
	my ($path) = @_;
	$path =~ s/^\Q$_->[0]\E/$_->[1]/ for @moved;
	return $path;
}
find({ no_chdir => 1, wanted => sub { push @installed, place(substr $_, length "$dest/") if -f } }, $dest);
cmp_ok(scalar @installed, '>', 60, 'the test finds the installed files');

my (%in, @absent);
for my $list (glob "$debian/*.install $debian/*.manpages") {
	my ($package) = $list =~ m{([^/]+)\.\w+$};
	for my $pattern (split ' ', slurp($list)) {
		my $re = join '[^/]*', map { quotemeta } split /\*/, $pattern, -1;
		my @found = grep { m{^$re(?:/|$)} } @installed;
		push @absent, "$package: $pattern" if !@found;
		push @{ $in{$_} }, $package for @found;
	}
}
is_deeply(\@absent, [], 'every file that a package names is installed');
is_deeply([grep { @{ $in{$_} || [] } != 1 } sort @installed], [],
    'every installed file is in exactly one package');
my @packages = slurp("$debian/control") =~ /^Package: (\S+)$/mg;
is_deeply([sort @packages], [qw(slipway slipway-api slipway-client slipway-common slipway-runner)],
    'there are five packages');
my @depends = slurp("$debian/control") =~ /^Package: slipway\n(?:.+\n)*?Depends:\n((?: .+\n)+)/m;
like($depends[0], qr/^ slipway-$_ /m, "the package slipway depends on slipway-$_") for qw(api client runner);

# --- the build dependencies of the packages
my ($needs) = slurp("$debian/control") =~ /^Build-Depends:\n((?: .+\n)+)/m;
my %needs = map { s/[, (].*//r => 1 } $needs =~ /^ (.+)$/mg;
my @libraries = grep { /^lib.+-dev$/ && $_ ne 'libc6-dev' }
    map { split ' ' } slurp(srcdir() . '/bootstrap') =~ /^\t(?:build)  +(.+)$/mg;
is_deeply([grep { !$needs{$_} } @libraries, 'zlib1g-dev'], [],
    'the packages are built with all libraries of bootstrap');

# --- the version
my ($version) = slurp(srcdir() . '/configure.ac') =~ /AC_INIT\(\[slipway\], \[([^\]]+)\]/;
like(slurp(builddir() . '/src/debian/changelog'), qr/\Aslipway \(\Q$version\E\) /,
    'the packages have the version of the programs');
my ($versioned) = slurp(srcdir() . '/Makefile.am') =~ /^VERSIONED = \\\n((?:\t.*\n)+)/m;
my @versioned = map { s/libdb_a-//r } $versioned =~ m{^\t(\S+)\.o}mg;
is_deeply(\@versioned, [grep { slurp(srcdir() . "/$_.c") =~ /\bSLIPWAY_VERSION\b/ }
	map { m{(src/\w+/\w+)\.c$} } sort glob srcdir() . '/src/*/*.c'],
	'a new version compiles every file that contains it');
my @news = slurp(srcdir() . '/NEWS') =~ /^(\d+\.\d+\.\d+), \w+ \d{4}\n-+\n/mg;
is($news[0], $version, 'NEWS begins with this version');
sub number { return sprintf '%05d' x 3, split /\./, $_[0] }
is_deeply(\@news, [sort { number($b) cmp number($a) } @news], 'the versions in NEWS increase');

# --- scripts of the packages
for my $script (glob("$debian/*.p{ostinst,ostrm,rerm}"), "$debian/tests/deployment") {
	my ($name) = $script =~ m{([^/]+)$};
	my $text = slurp($script);
	($status, undef, $err) = run_cmd($text =~ /\A#!(\S+)/, '-n', $script);
	is($status, 0, "$name is a valid script") or diag($err);
	next if $name eq 'deployment';
	unlike($text, qr/mariadb|mysql|debconf|slipway-admin (?:setup|migrate) *$/,
	    "$name touches no database and asks nothing");
	like($text, qr/^set -e$/m, "$name ends at the first error");
}
done_testing();
