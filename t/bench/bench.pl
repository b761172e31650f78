#!/usr/bin/perl
# SPDX-License-Identifier: ISC
#
# Measures slipway on this machine beside its yardsticks, alternately and in one run,
# prints each row with its ratio, and writes bench.json into the build directory.  It
# has no assertions.  README describes the variables.
#
#   make bench [BENCH_ROWS="read16 list"]

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use POSIX qw(strftime);
use Slipway::Bench::Figures qw(document result row_line);
use Slipway::Bench::Rows;
use Slipway::Bench::Site;
use Slipway::Test;

$| = 1;
my %run = (rounds => 5, seconds => 2, posts => 20, jobs => 120, idle => 60, lines => 200, log => 1024,
	history => 100_000);
for my $name (keys %run) {
	my $value = $ENV{ 'BENCH_' . uc $name } // next;
	die 'BENCH_' . uc($name) . "=$value is not a number above 0\n" if $value !~ /^[1-9]\d*$/;
	$run{$name} = $value;
}
my @keys = map { $_->{key} } @Slipway::Bench::Rows::rows;
my %wanted = map { $_ => 1 } split /[\s,]+/, $ENV{BENCH_ROWS} || join ' ', @keys;
for my $key (keys %wanted) {
	die "BENCH_ROWS: unknown row \"$key\"; the rows are @keys\n" if !grep { $_ eq $key } @keys;
}

my $limit = 240; # seconds after which each row has only one round
my $began = time;

# Measures a row: both sides alternate, and its figures are printed.
sub measure {
	my ($row, $site) = @_;
	my $why = $row->{missing} && $row->{missing}->($site);
	if (defined $why) {
		print "$row->{name}: skipped, as $why\n";
		return { %$row, skipped => $why };
	}
	my $note = $row->{prepare} && $row->{prepare}->($site);
	print "$row->{name}: $note\n" if defined $note;
	my $alone = !$row->{yardstick_measure} ? 1
	    : $row->{yardstick_missing} && $row->{yardstick_missing}->();
	my %rounds = (subject => [], yardstick => []);
	for my $round (1 .. $row->{rounds} || $run{rounds}) {
		last if $round > 1 && time - $began > $limit;
		push @{ $rounds{subject} }, $row->{measure}->($site, \%run);
		push @{ $rounds{yardstick} }, $row->{yardstick_measure}->($site, \%run) if !$alone;
	}
	$site->start_runner;
	my @figures;
	for my $figure (@{ $row->{figures} }) {
		my $result = result($figure, $rounds{subject}, $figure->{alone} ? [] : $rounds{yardstick});
		print row_line(@figures ? "  $figure->{name}" : $row->{name}, $result), "\n";
		push @figures, $result;
	}
	print "  beside: $row->{yardstick}", $alone ? " (not measured, as $alone)" : '', "\n"
	    if $row->{yardstick};
	return { %$row, subject => 'slipway', figures => \@figures };
}

my $site = Slipway::Bench::Site->start(history => $run{history});
printf "slipway on %d processors; rounds: %d, alternating; load: %d s, TLS, %d workers on either side\n",
    Slipway::Bench::Site::processors(), $run{rounds}, $run{seconds}, $site->workers;
printf "%-44s %-12s %-24s %-24s %-21s %-20s %s\n", 'row', 'unit', 'slipway', 'yardstick', 'ratio', 'goal',
    'met';
my ($failed, @measured) = (0);
for my $row (grep { $wanted{ $_->{key} } } @Slipway::Bench::Rows::rows) {
	my $measured = eval { measure($row, $site) };
	if (!$measured) {
		print "$row->{name}: failed: $@";
		$failed = 1;
		$measured = { %$row, skipped => "failed: $@" };
		$site->start_runner;
	}
	push @measured, $measured;
}
my %about = (benchmark => 'slipway', started => strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $began),
	seconds => time - $began, processors => Slipway::Bench::Site::processors(), settings => \%run);
my $file = builddir() . '/bench.json';
spew($file, document(\%about, @measured), 0644);
printf "%d s; the same as JSON: %s\n", time - $began, $file;
exit $failed;
