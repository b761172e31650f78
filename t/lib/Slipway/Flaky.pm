# SPDX-License-Identifier: ISC
package Slipway::Flaky;

# A harness of prove(1) that repeats each test that failed once, alone, when the others
# have ended.  If it passes then, it counts as passed, and the run ends with a line
# "flaky: t/NNNN (first line that failed)".  A test that fails twice fails the run.
#
#   prove --harness=Slipway::Flaky -j13 t/*.t

use strict;
use warnings;
use TAP::Parser::Aggregator ();
use parent 'TAP::Harness';

my $most = 10; # more of them have a common cause

sub make_parser {
	my ($self, $job) = @_;
	my ($parser, $session) = $self->SUPER::make_parser($job);
	my $first = \$self->{first_failed}{ $job->description };
	$parser->callback(test => sub { $$first //= $_[0]->as_string if !$_[0]->is_ok });
	return ($parser, $session);
}

# The summary comes after the repetition, so that it is that of the whole run.
sub summary {
	my ($self, $all, $interrupted) = @_;
	my @failed = $interrupted ? () : _failed($all);
	my @flaky = @failed > 0 && @failed <= $most ? $self->_repeat($all, @failed) : ();
	$self->SUPER::summary($all, $interrupted);
	$self->formatter->_output("flaky: $_\n") for @flaky;
	return;
}

sub _failed {
	my ($all) = @_;
	my %failed = map { $_ => 1 } map { $all->$_ } qw(failed exit wait parse_errors);
	return grep { $failed{$_} } $all->descriptions;
}

# Runs the tests one by one.  Those that pass replace their first run in the results.
sub _repeat {
	my ($self, $all, @failed) = @_;
	my %before = %{ $self->{first_failed} };
	my (%again, @flaky);
	$self->formatter->_output("Repeating what failed, alone:\n");
	{
		local $self->{jobs} = 1;
		for my $test (@failed) {
			my $one = TAP::Parser::Aggregator->new;
			$one->start;
			$self->aggregate_tests($one, $test);
			$one->stop;
			next if $one->has_errors;
			($again{$test}) = $one->parsers($test);
			my $why = $before{$test} // 'it ended with an error';
			push @flaky, $test =~ s{^.*/(?=t/)}{}r . " ($why)";
		}
	}
	my $now = TAP::Parser::Aggregator->new;
	$now->start;
	for my $test ($all->descriptions) {
		$now->add($test, $again{$test} // ($all->parsers($test))[0]);
	}
	$now->stop;
	$now->{start_time} = $all->{start_time};
	%$all = %$now;
	return @flaky;
}

1;
