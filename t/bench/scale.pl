#!/usr/bin/perl
# SPDX-License-Identifier: ISC
#
# Seeds a thousand deployments, then ten million (BENCH_DEPLOYMENTS), and prints beside
# each other what every list, read and claim costs: the median time, and how many rows
# the database reads.  It has no assertions.
#
#   make bench-scale [BENCH_DEPLOYMENTS=100000]

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Slipway::Bench::Scale qw(measure seed sizes unmeasured);
use Slipway::Bench::Site;
use Slipway::Test;

$| = 1;
my $small = 1000;
my $n = $ENV{BENCH_DEPLOYMENTS} || 10_000_000;
die "BENCH_DEPLOYMENTS=$n is not a number above $small\n" if $n !~ /^\d+$/ || $n <= $small;
my $pool = $ENV{BENCH_POOL} || 1024;
die "BENCH_POOL=$pool is not a number of MiB\n" if $pool !~ /^\d+$/;

my $site = Slipway::Bench::Site->start(db => [ "--innodb-buffer-pool-size=${pool}M",
	'--innodb-log-file-size=1G', '--innodb-doublewrite=0', '--innodb-flush-log-at-trx-commit=0' ]);
$site->stop_runner;
my @figures;
for my $to ($small, $n) {
	my $began = time;
	seed($site, $to);
	printf "seeded up to %d deployments in %d s; buffer pool of %d MiB\n", $to, time - $began, $pool;
	push @figures, { measure($site) };
}
printf "%-88s %9s %9s %6s %9s %9s\n", "milliseconds and reads at $small and at $n deployments", ('ms') x 2,
    'ratio', ('reads') x 2;
for my $name (sort keys %{ $figures[1] }) {
	my ($few, $many) = map { $_->{$name} } @figures;
	printf "%-88s %9.2f %9.2f %6.2f %9d %9d\n", $name =~ s/limit=20&//r, $few->{ms}, $many->{ms},
	    $many->{ms} / $few->{ms}, $few->{reads}, $many->{reads};
}
print "not measured: $_\n" for unmeasured($site);
printf "%-40s %8.0f MiB\n", "deployment, $_->[0]", $_->[1] for sizes($site);
