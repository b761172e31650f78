#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The plugin that starts tests in copies of prove(1): however a test ends, prove reports
# the same as without it, and a test runs as in a perl of its own.

use strict;
use warnings;
use Slipway::Test;
use Test::More;

my $dir = tempdir();
my $head = "use strict; use warnings; use Slipway::Test; use Test::More;\n";

# Runs tests with these options of prove: (exit status, output without times).
sub prove {
	my (@args) = @_;
	my ($status, $out) = run_cmd({ merged => 1, cwd => $dir, env => {
		PERL5LIB => join(':', srcdir() . '/t/lib', $ENV{PERL5LIB} // ()),
		map { $_ => undef } grep { /^HARNESS_/ } keys %ENV } }, 'prove', '--norc', @args);
	$out =~ s/^(Files=\d+, Tests=\d+), .*/$1/m;
	return ($status, $out);
}

# --- how a test ends
my %ends = (
	passes => 'ok(1); done_testing;',
	fails => 'ok(1); ok(0, "two"); done_testing;',
	dies => '$! = 0; ok(1); die "a reason\n";',
	'dies-of-errno' => 'ok(1); open my $none, "<", "/nowhere" or die "open: $!\n";',
	exits => 'ok(1); done_testing; exit 7;',
	'is-killed' => 'ok(1); kill "KILL", $$; sleep 60;',
	'has-no-plan' => 'ok(1);',
	'stops-early' => 'plan tests => 2; ok(1);',
	'is-skipped' => 'plan skip_all => "a reason";',
);
spew("$dir/$_.t", "$head$ends{$_}\n") for keys %ends;
# one that fails comes before one that dies
my @files = map { "$dir/$_.t" } reverse sort keys %ends;
my ($status, $want) = prove(@files);
isnt($status, 0, 'without the plugin, prove reports failures');
for my $end (sort keys %ends) {
	my ($line) = $want =~ m{^\Q$dir/$end\E\.t \.+ (.*)}m;
	like($line, $end eq 'passes' ? qr/^ok/ : $end eq 'is-skipped' ? qr/^skipped: a reason/
	    : qr/^(?!ok|skipped)/, "prove judges a test that $end");
}
my ($same, $got) = prove('-PSlipway::Harness', @files);
is($same, $status, 'with the plugin, prove ends with the same status');
is($got, $want, 'and reports the same of each test');

spew("$dir/does-not-compile.t", "${head}ok(1\n");
($status, $got) = prove('-PSlipway::Harness', "$dir/does-not-compile.t");
isnt($status, 0, 'a test that does not compile fails');
like($got, qr{^syntax error at \Q$dir\E/does-not-compile\.t line 2}m, 'and says where');

# --- what a test finds
spew("$dir/finds$_.t", $head . <<'TEST') for 1 .. 4;
is("@ARGV", '', 'there are no arguments');
like($0, qr{/finds\d\.t$}, 'the name of the program is that of the test');
is($SIG{__DIE__} // 'none', 'none', 'no handler catches errors');
my @opened = map { readlink "/proc/$$/fd/$_" // '' } 0 .. 30;
my %mine = (%ENV, map { $_ => 1 } @opened[0 .. 2]);
is(join(' ', grep { /^pipe:/ && !$mine{$_} } @opened), '', 'no pipe of another test is open');
opendir my $own, tempdir();
is(join(' ', grep { !/^\.\.?$/ } readdir $own), '', 'its directory is empty');
diag('rand ', rand);
done_testing;
TEST
# pipes that this process has inherited are open everywhere
$ENV{ readlink "/proc/$$/fd/$_" } = 1 for grep { -p "/proc/$$/fd/$_" } 3 .. 30;
for my $plugin ([], ['-PSlipway::Harness']) {
	($status, $got) = prove('-j4', @$plugin, map { "$dir/finds$_.t" } 1 .. 4);
	my %rand = map { $_ => 1 } $got =~ /^# rand (\S+)/mg;
	is($status, 0, @$plugin ? 'a test of the plugin runs in a new process'
	    : 'a test runs in a new process')
	    or diag($got);
	is(scalar keys %rand, 4, 'each test draws its own random numbers');
}

done_testing;
