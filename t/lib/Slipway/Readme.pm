# SPDX-License-Identifier: ISC
package Slipway::Readme;

# The numbered steps of a section of README, with their commands (lines that are
# indented by four blanks) and their parts of files (by more).
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
		} elsif (@steps && $line =~ /^    (\S.*)/) {
			push @{ $steps[-1]{commands} }, $1;
		} elsif (@steps && $line =~ /^     +(.+)/) {
			$steps[-1]{text} .= "$1\n";
		}
	}
	return @steps;
}

1;
