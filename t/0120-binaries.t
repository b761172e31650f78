#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The programs as built: hardened, and the privileged ones with nothing in them
# but libc and libbsd.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my @programs = grep { -x program($_) }
    qw(slipway-api slipway-runner slipway-dispatch slipway-job slipway-admin);
my $makefile = slurp(builddir() . '/Makefile');
my ($flags) = $makefile =~ /^HARD_CFLAGS = (.*)$/m;
my $hard = $flags !~ /sanitize|coverage/;
note($hard ? 'a hardened build' : 'not a hardened build: only libraries are looked at');

sub readelf {
	my ($what, $path) = @_;
	my ($status, $out) = run_cmd({ env => { LC_ALL => 'C' } }, 'readelf', '-W', $what, $path);
	return $status == 0 ? $out : '';
}

for my $name (@programs) {
	my $path = program($name);
	my $dynamic = readelf('-d', $path);
	like($dynamic, qr/NEEDED/, "$name is a program");
	if ($name =~ /^slipway-(?:runner|job)$/) {
		my @needed = grep { !/^(?:libc|libbsd|libmd|ld-linux.*|libasan|libubsan|libm|libgcc_s)\.so/ }
		    $dynamic =~ /NEEDED\).*\[(.*?)\]/g;
		is_deeply(\@needed, [], "$name needs libc and libbsd alone");
		my ($status, $out) = run_cmd('nm', '-u', $path);
		is_deeply([$out =~ /\b((?:mysql|mariadb|curl|cJSON|sodium|FCGX|crypto)_\w+)/g], [],
		    "$name takes nothing from other libraries");
		is_deeply([$out =~ /\b(connect|accept4?|listen|getaddrinfo|gethostbyname)\b/g], [],
		    "$name opens no connection");
	}
	# Who opens what is sealed for the dispatcher.
	my ($opens) = (run_cmd('nm', '-u', $path))[1] =~ /\b(crypto_box_\w*open\w*)/;
	is(defined $opens ? 1 : 0, $name =~ /^slipway-(?:dispatch|admin)$/ ? 1 : 0,
	    defined $opens ? "$name opens sealed boxes" : "$name has nothing to open sealed boxes with");
	next if !$hard;
	my $header = readelf('-h', $path);
	my $segments = readelf('-l', $path);
	my $symbols = readelf('--dyn-syms', $path);
	like($header, qr/Type:\s+DYN/, "$name can be loaded anywhere");
	like($segments, qr/GNU_RELRO/, "$name has its relocations protected");
	like($dynamic, qr/BIND_NOW|FLAGS_1.*NOW/, "$name binds at start");
	unlike($segments, qr/GNU_STACK.*RWE/, "$name has no executable stack");
	like($symbols, qr/__stack_chk_fail/, "$name has stack guards");
	like($symbols, qr/__\w+_chk\b/, "$name has fortified calls");
}
ok(@programs > 0 || $makefile !~ /^sbin_PROGRAMS = \S/m, 'the programs are built');

done_testing();
