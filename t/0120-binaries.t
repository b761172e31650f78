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
my ($ldflags) = $makefile =~ /^HARD_LDFLAGS = (.*)$/m;

# x86: whether a shadow stack may be used, and whether branches are tracked, as
# far as compiler, linker and what a program starts with can say so.
sub cet { my ($path) = @_; return join ' ', sort { $a cmp $b } readelf('-n', $path) =~ /x86 feature:.*?\b(?:IBT, )?(SHSTK)/, readelf('-n', $path) =~ /x86 feature:.*\b(IBT)/ }
my ($any_object) = glob builddir() . '/src/core/*arena.o';
my $compiler_notes = cet($any_object) =~ /IBT SHSTK/;
my $linker_notes = $ldflags =~ /shstk/;
my ($cc) = $makefile =~ /^CC = (.*)$/m;
spew(tempdir() . '/empty.c', "int main(void) { return 0; }\n");
my ($built) = run_cmd({ cwd => tempdir() }, 'sh', '-c', "$cc $flags $ldflags -o empty empty.c");
my $tracked = $built == 0 && cet(tempdir() . '/empty') =~ /IBT/;
note('compiler notes: ' . ($compiler_notes ? 'yes' : 'no') . ', linker notes: ' . ($linker_notes ? 'yes' : 'no')
	. ', start objects track branches: ' . ($tracked ? 'yes' : 'no'));
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
	next if !$compiler_notes || !$linker_notes;
	like(cet($path), qr/SHSTK/, "$name can have a shadow stack");
	is(cet($path) =~ /IBT/ ? 1 : 0, $tracked ? 1 : 0, "$name has its branches tracked where all that it is made of can");
}
if ($hard && $compiler_notes) {
	my @without;
	for my $object (glob builddir() . '/src/*/*.o') {
		push @without, $object if cet($object) !~ /IBT SHSTK/;
	}
	is_deeply(\@without, [], 'every object is made for shadow stacks and branch tracking');
}
ok(@programs > 0 || $makefile !~ /^sbin_PROGRAMS = \S/m, 'the programs are built');

done_testing();
