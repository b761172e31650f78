# SPDX-License-Identifier: ISC
package Slipway::Readme;

# The numbered steps of a section of README, with their commands.
#
#   readme_steps($path, 'Installing behind')

use strict;
use warnings;
use Exporter 'import';
use Slipway::Test;

our @EXPORT = qw(readme_steps);

sub readme_steps {
	my ($path, $title) = @_;
	my ($part) = slurp($path) =~ /^\Q$title\E[^\n]*\n-+\n(.*?)^\S[^\n]*\n-+$/ms;
	my @steps;
	for my $line (split /\n/, $part =~ s/\\\n\s*//gr) {
		if ($line =~ /^(\d+)\. (.*)/) {
			push @steps, { number => $1, title => $2, commands => [] };
		} elsif (@steps && $line =~ /^    (.+)/) {
			push @{ $steps[-1]{commands} }, $1;
		}
	}
	return @steps;
}

1;
