#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The arithmetic of the benchmark, and the form of what it writes.

use strict;
use warnings;
use JSON::PP ();
use Slipway::Bench::Figures qw(document goal_text median percentile result row_line);
use Slipway::Bench::Rows;
use Slipway::Test;
use Test::More;

# --- percentiles and medians
is(percentile(0.5, 1 .. 100), 50, 'the 50th percentile of 1 to 100 is 50');
is(percentile(0.99, reverse 1 .. 100), 99, 'the 99th percentile of 1 to 100 in any order is 99');
is(percentile(0.99, 1 .. 10), 10, 'the 99th percentile of ten values is the largest');
is(percentile(1, 3, 2, 1), 3, 'the 100th percentile is the largest value');
is(percentile(0, 3, 2, 1), 1, 'the percentile 0 is the smallest value');
is(percentile(0.5, 7), 7, 'each percentile of one value is that value');
is(percentile(0.5), undef, 'no values have no percentile');
is(median(9, 1, 5), 5, 'the median of three values is the one in the middle');
is(median(10, 2, 4, 1), 3, 'the median of four values is the mean of the two in the middle');
is(median(), undef, 'no values have no median');

# --- numbers: the median of the rounds, and of the rounds' ratios
my $rate = { name => 'rate', unit => 'requests/s', goal => [ratio_at_least => 0.9] };
my $got = result($rate, [ { rate => 100 }, { rate => 50 }, { rate => 300 } ],
	[ { rate => 100 }, { rate => 100 }, { rate => 150 } ]);
is_deeply($got->{subject}, { value => 100, min => 50, max => 300, rounds => 3 },
	'a number is the median of its rounds, with their range');
is($got->{yardstick}{value}, 100, 'the yardstick is the median of its own rounds');
is_deeply($got->{ratio}, { value => 1, min => 0.5, max => 2, rounds => 3 },
	'the ratio is the median of the ratios of the rounds');
is($got->{goal}, 'ratio >= 0.9', 'a figure says what its goal is');
is($got->{met}, JSON::PP::true, 'a ratio above its goal meets it');

# --- samples: a percentile of all rounds together
my $p50 = { name => 'p50', unit => 'ms', of => 'ms', at => 0.5, goal => [over => 8] };
$got = result($p50, [ { ms => [1, 2, 30] }, { ms => [3, 4, 50] } ],
	[ { ms => [1, 1, 2] }, { ms => [2, 2, 2] } ]);
is($got->{subject}{value}, 3, 'a percentile is taken from the samples of all rounds');
is("$got->{subject}{min} $got->{subject}{max}", '2 4', 'the range of a percentile is that of the rounds');
is($got->{subject}{samples}, 6, 'a percentile says how many samples it has');
is($got->{ratio}{value}, 1.5, 'the ratio of percentiles is that of all samples');
is($got->{met}, JSON::PP::true, 'a time within the difference to the yardstick meets its goal');

# --- each kind of goal, met and missed
my %sides = (10 => [ [ { rate => 10 } ], [ { rate => 20 } ] ]);
for (
	[at_least => 10, 1, '>= 10'], [at_least => 11, 0, '>= 11'],
	[at_most => 10, 1, '<= 10'], [at_most => 9, 0, '<= 9'],
	[ratio_at_least => 0.5, 1, 'ratio >= 0.5'], [ratio_at_least => 0.6, 0, 'ratio >= 0.6'],
	[ratio_at_most => 0.5, 1, 'ratio <= 0.5'], [ratio_at_most => 0.4, 0, 'ratio <= 0.4'],
	[over => -10, 1, '<= yardstick + -10'], [over => -11, 0, '<= yardstick + -11']) {
	my ($kind, $limit, $met, $text) = @$_;
	my $one = result({ name => 'rate', unit => 'x', goal => [$kind => $limit] }, @{ $sides{10} });
	is($one->{met} ? 1 : 0, $met, "10 beside 20 " . ($met ? 'meets' : 'misses') . " the goal $text");
	is($one->{goal}, $text, "the goal $kind reads $text");
}
ok(!eval { goal_text(['nearly' => 1]); 1 }, 'an unknown goal is an error');
ok(!eval { result({ name => 'rate', unit => 'x', goal => ['nearly' => 1] }, @{ $sides{10} }); 1 },
	'a figure with an unknown goal is an error');

# --- without a yardstick, or with one that measured 0
$got = result($rate, [ { rate => 1 } ], []);
is($got->{met}, undef, 'a ratio without a yardstick neither meets nor misses its goal');
is($got->{ratio}, undef, 'there is no ratio without a yardstick');
$got = result({ name => 'rate', unit => 'x', goal => [at_least => 1] }, [ { rate => 1 } ], []);
is($got->{met}, JSON::PP::true, 'a goal for the figure itself needs no yardstick');
is(result($rate, [ { rate => 1 } ], [ { rate => 0 } ])->{ratio}, undef,
	'there is no ratio to a yardstick of 0');

# --- a figure that could not be measured
$got = result({ name => 'pss', unit => 'MiB', goal => [at_most => 15] },
	[ { pss => undef } ], [ { pss => 9 } ]);
is($got->{subject}, undef, 'a figure that a round could not measure has no value');
is($got->{met}, undef, 'a figure without a value neither meets nor misses its goal');
is($got->{ratio}, undef, 'a figure without a value has no ratio');

# --- output
$got = result($rate, [ { rate => 6900.4 }, { rate => 6000 }, { rate => 7000 } ],
	[ map { { rate => 10_000 } } 1 .. 3 ]);
my $line = row_line('project read', $got);
like($line, qr{^project\ read\ +requests/s\ +6900\ \(6000\ to\ 7000\)\ +10000\ \(10000\ to\ 10000\)
	\ +0\.69\ \(0\.60\ to\ 0\.70\)\ +ratio\ >=\ 0\.9\ +NO$}x,
	'a line has both sides with ranges, the ratio, the goal and the verdict');
like(row_line('idle', result({ name => 'pss', unit => 'MiB' }, [ { pss => 31.25 } ], [])),
	qr{^idle +MiB +31\.[23] +- +- +- +-$}, 'a line without yardstick and goal has dashes');
my $text = document({ cores => 2 }, { key => 'read', name => 'project read', yardstick => 'bare loop',
	figures => [$got], code => sub { 1 } }, { key => 'log', name => 'log', skipped => 'wrk is missing' });
my $document = JSON::PP->new->utf8->decode($text);
is($document->{cores}, 2, 'the document describes the run');
is_deeply([ map { $_->{key} } @{ $document->{rows} } ], [qw(read log)],
	'the document has the rows in their order');
is_deeply([ sort keys %{ $document->{rows}[0] } ], [qw(figures key name skipped subject yardstick)],
	'each row of the document has the same members');
is($document->{rows}[0]{figures}[0]{subject}{value}, 6900.4, 'the document has the figures with all digits');
is($document->{rows}[0]{figures}[0]{met}, JSON::PP::false, 'the document says whether the goal is met');
is($document->{rows}[1]{skipped}, 'wrk is missing', 'the document says why a row was skipped');

# --- the rows, and README
my @keys = map { $_->{key} } @Slipway::Bench::Rows::rows;
my %seen;
is_deeply([ grep { $seen{$_}++ } @keys ], [], 'each row has its own key');
my ($listed) = slurp(srcdir() . '/README')
	=~ /^    BENCH_ROWS +rows to measure, by their keys: (.*?)\n    BENCH/ms;
is_deeply([ split ' ', $listed // '' ], \@keys, 'README lists the keys of all rows in their order');
for my $row (@Slipway::Bench::Rows::rows) {
	is_deeply([ grep { ref $row->{$_} ne 'CODE' } qw(measure) ], [], "row $row->{key} can be measured");
	for my $figure (@{ $row->{figures} }) {
		ok(!$figure->{goal} || defined goal_text($figure->{goal}),
			"the goal of $row->{key} $figure->{name} is known");
		ok($row->{yardstick_measure} || $figure->{alone} || !$figure->{goal}
			|| $figure->{goal}[0] =~ /^at_/,
			"row $row->{key} has the yardstick that its goal needs");
	}
}

# --- the programs
for my $name (qw(bench scale)) {
	my ($status, undef, $err) = run_cmd($^X, '-c', srcdir() . "/t/bench/$name.pl");
	is($status, 0, "t/bench/$name.pl compiles") or diag($err);
}
for ([ { BENCH_ROWS => 'read16 nothing' }, qr/unknown row "nothing"; the rows are idle read16 /,
	'an unknown row is rejected before anything starts' ],
	[ { BENCH_ROUNDS => 0 }, qr/BENCH_ROUNDS=0 is not a number above 0/, 'zero rounds are rejected' ]) {
	my ($env, $message, $name) = @$_;
	my ($status, undef, $err) = run_cmd({ env => $env }, $^X, srcdir() . '/t/bench/bench.pl');
	isnt($status, 0, $name);
	like($err, $message, "$name with a message");
}
done_testing;
