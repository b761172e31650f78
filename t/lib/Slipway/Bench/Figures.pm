# SPDX-License-Identifier: ISC
package Slipway::Bench::Figures;

# The arithmetic of the benchmark: percentiles, medians of rounds, ratios and goals.
#
# A round of a measurement is a hash of figures: { rate => 6900, ms => [0.3, …] }.
# A figure of a row names one of them:
#
#   { name => 'rate', unit => 'requests/s', goal => [ratio_at_least => 1] }
#   { name => 'p99', unit => 'ms', of => 'ms', at => 0.99, goal => [at_most => 15] }
#
# The first is the median of the rounds; the second, a percentile of all samples. A
# figure that a round could not measure is undef there, and then has no value.
# Goals: at_least, at_most (the figure itself), ratio_at_least, ratio_at_most (its
# ratio to the yardstick), over (at most the yardstick plus a difference).

use strict;
use warnings;
use Exporter 'import';
use JSON::PP ();
use List::Util qw(max min);
use POSIX qw(ceil);

our @EXPORT_OK = qw(document goal_text median percentile result row_line);

# The smallest value that this part of all values do not exceed.
sub percentile {
	my ($part, @values) = @_;
	return undef if !@values;
	my @sorted = sort { $a <=> $b } @values;
	return $sorted[max(0, ceil($part * @sorted - 1e-9) - 1)];
}

sub median {
	my (@values) = @_;
	return undef if !@values;
	my @sorted = sort { $a <=> $b } @values;
	my $half = int(@sorted / 2);
	return @sorted % 2 ? $sorted[$half] : ($sorted[$half - 1] + $sorted[$half]) / 2;
}

sub _range {
	my ($value, @rounds) = @_;
	return { value => $value, min => min(@rounds), max => max(@rounds), rounds => scalar @rounds };
}

sub _side {
	my ($figure, $rounds) = @_;
	return undef if !@$rounds;
	my $of = $figure->{of};
	if (!defined $of) {
		my @values = map { $_->{ $figure->{name} } } @$rounds;
		return grep({ !defined } @values) ? undef : _range(median(@values), @values);
	}
	my @all = map { @{ $_->{$of} } } @$rounds;
	return { %{ _range(percentile($figure->{at}, @all),
		map { percentile($figure->{at}, @{ $_->{$of} }) } @$rounds) }, samples => scalar @all };
}

# The ratio of two sides: of numbers the median of the rounds' ratios, of samples the
# ratio of their percentiles.
sub _ratio {
	my ($figure, $subject, $yardstick, $sides) = @_;
	my @rounds;
	for my $i (0 .. min($#$subject, $#$yardstick)) {
		my ($one, $other) = map { _side($figure, [$_])->{value} } $subject->[$i], $yardstick->[$i];
		push @rounds, $one / $other if $other;
	}
	return undef if !@rounds;
	my $whole = !defined $figure->{of} ? median(@rounds)
	    : $sides->[1]{value} ? $sides->[0]{value} / $sides->[1]{value} : undef;
	return defined $whole ? _range($whole, @rounds) : undef;
}

# Whether the goal is met: a JSON boolean, or undef if there is none or no yardstick.
sub _met {
	my ($goal, $subject, $yardstick, $ratio) = @_;
	return undef if !$goal || !$subject;
	my ($kind, $limit) = @$goal;
	my $met;
	if ($kind eq 'at_least') { $met = $subject->{value} >= $limit }
	elsif ($kind eq 'at_most') { $met = $subject->{value} <= $limit }
	elsif (!$yardstick || !$ratio) { return undef }
	elsif ($kind eq 'ratio_at_least') { $met = $ratio->{value} >= $limit }
	elsif ($kind eq 'ratio_at_most') { $met = $ratio->{value} <= $limit }
	elsif ($kind eq 'over') { $met = $subject->{value} <= $yardstick->{value} + $limit }
	else { die "$kind: unknown goal" }
	return $met ? JSON::PP::true : JSON::PP::false;
}

my %phrases = (at_least => '>= %s', at_most => '<= %s', ratio_at_least => 'ratio >= %s',
	ratio_at_most => 'ratio <= %s', over => '<= yardstick + %s');
sub goal_text {
	my ($goal) = @_;
	return undef if !$goal;
	die "$goal->[0]: unknown goal" if !$phrases{ $goal->[0] };
	return sprintf $phrases{ $goal->[0] }, $goal->[1];
}

# One figure of a row, from the rounds of both sides; the yardstick may have none.
sub result {
	my ($figure, $subject, $yardstick) = @_;
	my @sides = map { _side($figure, $_) } $subject, $yardstick;
	my $ratio = $sides[0] && $sides[1] ? _ratio($figure, $subject, $yardstick, \@sides) : undef;
	return { figure => $figure->{name}, unit => $figure->{unit}, goal => goal_text($figure->{goal}),
		subject => $sides[0], yardstick => $sides[1], ratio => $ratio,
		met => _met($figure->{goal}, @sides, $ratio) };
}

# --- output

sub _number {
	my ($n) = @_;
	return '-' if !defined $n;
	return sprintf $n >= 100 ? '%.0f' : $n >= 10 ? '%.1f' : '%.2f', $n;
}

sub _with_range {
	my ($side) = @_;
	return '-' if !$side;
	return _number($side->{value}) if $side->{rounds} < 2;
	return sprintf '%s (%s to %s)', map { _number($side->{$_}) } qw(value min max);
}

# A line of the table for one figure.
sub row_line {
	my ($name, $result) = @_;
	return sprintf '%-44s %-12s %-24s %-24s %-21s %-20s %s', $name, $result->{unit},
	    _with_range($result->{subject}), _with_range($result->{yardstick}),
	    _with_range($result->{ratio}), $result->{goal} // '-',
	    !defined $result->{met} ? '-' : $result->{met} ? 'yes' : 'NO';
}

# The JSON document: about => members of the run, rows => those that were measured or
# skipped.
sub document {
	my ($about, @rows) = @_;
	return JSON::PP->new->utf8->canonical->pretty->encode({ %$about, rows => [ map {
		my $row = $_;
		+{ map { $_ => $row->{$_} } qw(key name subject yardstick skipped figures) };
	} @rows ] });
}

1;
