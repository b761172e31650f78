#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The programs as built are hardened, and the privileged ones link nothing but
# libc and libbsd.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my @programs = grep { -x program($_) }
    qw(slipway slipway-api slipway-runner slipway-dispatch slipway-job slipway-live slipway-admin);
my $makefile = slurp(builddir() . '/Makefile');
my ($flags) = $makefile =~ /^HARD_CFLAGS = (.*)$/m;
my $hard = $flags !~ /sanitize|coverage/;
my ($ldflags) = $makefile =~ /^HARD_LDFLAGS = (.*)$/m;

# The marks of an object or program on x86: IBT (tracked branches), SHSTK
# (shadow stack). Compiler, linker and start objects must all support a mark.
sub cet {
	my ($path) = @_;
	my $notes = readelf('-n', $path);
	return join ' ', $notes =~ /x86 feature:.*\b(IBT)/, $notes =~ /x86 feature:.*?\b(?:IBT, )?(SHSTK)/;
}
my ($any_object) = glob builddir() . '/src/core/*arena.o';
my $compiler_notes = cet($any_object) =~ /IBT SHSTK/;
my $linker_notes = $ldflags =~ /shstk/;
my ($cc) = $makefile =~ /^CC = (.*)$/m;
spew(tempdir() . '/empty.c', "int main(void) { return 0; }\n");
my ($built) = run_cmd({ cwd => tempdir() }, 'sh', '-c', "$cc $flags $ldflags -o empty empty.c");
my $tracked = $built == 0 && cet(tempdir() . '/empty') =~ /IBT/;
note('compiler marks objects: ' . ($compiler_notes ? 'yes' : 'no')
    . ', linker marks programs: ' . ($linker_notes ? 'yes' : 'no')
    . ', start objects track branches: ' . ($tracked ? 'yes' : 'no'));
note($hard ? 'a hardened build' : 'not a hardened build: only its libraries are checked');

sub readelf {
	my ($what, $path) = @_;
	my ($status, $out) = run_cmd({ env => { LC_ALL => 'C' } }, 'readelf', '-W', $what, $path);
	return $status == 0 ? $out : '';
}

for my $name (@programs) {
	my $path = program($name);
	my $dynamic = readelf('-d', $path);
	like($dynamic, qr/NEEDED/, "$name is a dynamically linked program");
	if ($name =~ /^slipway-(?:runner|job)$/) {
		my @needed = grep { !/^(?:libc|libbsd|libmd|ld-linux.*|libasan|libubsan|libm|libgcc_s)\.so/ }
		    $dynamic =~ /NEEDED\).*\[(.*?)\]/g;
		is_deeply(\@needed, [], "$name needs only libc and libbsd");
		my ($status, $out) = run_cmd('nm', '-u', $path);
		is_deeply([$out =~ /\b((?:mysql|mariadb|curl|cJSON|sodium|FCGX|crypto)_\w+)/g], [],
		    "$name uses no function of another library");
		is_deeply([$out =~ /\b(connect|accept4?|listen|getaddrinfo|gethostbyname)\b/g], [],
		    "$name calls no function that opens a connection");
	}
	# Only the dispatcher and slipway-admin hold the key that decrypts variables.
	my ($opens) = (run_cmd('nm', '-u', $path))[1] =~ /\b(crypto_box_\w*open\w*)/;
	is(defined $opens ? 1 : 0, $name =~ /^slipway-(?:dispatch|admin)$/ ? 1 : 0,
	    "$name " . (defined $opens ? 'can' : 'cannot') . ' decrypt secret variables');
	next if !$hard;
	my $header = readelf('-h', $path);
	my $segments = readelf('-l', $path);
	my $symbols = readelf('--dyn-syms', $path);
	like($header, qr/Type:\s+DYN/, "$name is position-independent");
	like($segments, qr/GNU_RELRO/, "$name has read-only relocations");
	like($dynamic, qr/BIND_NOW|FLAGS_1.*NOW/, "$name binds its symbols at start");
	unlike($segments, qr/GNU_STACK.*RWE/, "$name has no executable stack");
	like($symbols, qr/__stack_chk_fail/, "$name has stack protectors");
	like($symbols, qr/__\w+_chk\b/, "$name calls fortified functions");
	next if !$compiler_notes || !$linker_notes;
	like(cet($path), qr/SHSTK/, "$name supports a shadow stack");
	is(cet($path) =~ /IBT/ ? 1 : 0, $tracked ? 1 : 0,
	    "$name tracks branches exactly if the start objects support it");
}
if ($hard && $compiler_notes) {
	my @without;
	for my $object (glob builddir() . '/src/*/*.o') {
		push @without, $object if cet($object) !~ /IBT SHSTK/;
	}
	is_deeply(\@without, [], 'every object supports shadow stacks and branch tracking');
}
ok(@programs > 0 || $makefile !~ /^sbin_PROGRAMS = \S/m, 'the programs are built');

done_testing();
