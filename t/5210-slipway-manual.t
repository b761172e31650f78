#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway(1) and the help of slipway name the same commands, arguments and
# options.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my $page = slurp(srcdir() . '/man/slipway.1');
my ($description) = $page =~ /^\.Sh DESCRIPTION\n(.*?)^\.Sh/ms;
sub help { return (run_cmd(program('slipway'), 'help', @_))[1] }
my $help = help();
my ($list) = $help =~ /^usage: [^\n]*\n(.*?)^$/ms;
my @command = $list =~ /^  ([a-z]+(?: [a-z]+)?)(?= |$)/mg;
cmp_ok(scalar @command, '>', 10, 'the test finds the commands');

# mdoc of an item on one line, without macros: "list [-p project]"
sub plain {
	my ($mdoc) = @_;
	$mdoc =~ s/\\-/-/g;
	$mdoc =~ s/\bFl (\S)/-$1/g;
	$mdoc =~ s/^\.//mg;
	$mdoc =~ s/\b(?:It|Xo|Xc|Op|Oo|Oc|Cm|Ar)\b//g;
	return join ' ', split ' ', $mdoc;
}

# The items of the page: of a command, or of an option within the last command.
my (%head, %option);
my $current = '';
while ($description =~ /^\.It (Xo\n.*?^\.Xc|[^\n]*)$/msg) {
	my $item = $1;
	if ($item =~ /\bCm ((?:[a-z]+)(?: [a-z]+)?)/) {
		my $words = $1;
		($current) = grep { $words eq $_ } @command;
		($current) = grep { $words =~ /^\Q$_\E / } @command if !defined $current;
		if (!defined $current) {
			fail("slipway(1) explains $words, which is no command");
			$current = '';
			next;
		}
		$head{$current} = $item;
	} else {
		$option{$current}{join ' ', sort grep { /^-/ } split ' ', plain($item)} = 1;
	}
}
is_deeply([sort keys %head], [sort @command], 'slipway(1) explains exactly the commands of slipway');

# The options in a help text: "-p --project".
sub options {
	my ($text) = @_;
	my %o;
	while ($text =~ /^  ((?:-\w, )?--[a-z-]+)(?= )/mg) { $o{join ' ', sort split /, /, $1} = 1 }
	return \%o;
}
my $general = options($help);
is_deeply($option{''}, $general, 'slipway(1) explains the options of every command');
for my $name (@command) {
	my $text = help(split / /, $name);
	my $own = options($text);
	delete $own->{$_} for keys %$general;
	is_deeply($option{$name} || {}, $own, "slipway(1) explains the options of slipway $name");
	my ($usage) = $text =~ /^usage: slipway \[-H URL\] \[--json\] (.*)$/m;
	my %in_usage = map { $_ => 1 } $usage =~ /(?<![\w-])(--?[a-z][a-z-]*)/gi;
	my %in_page = map { $_ => 1 } plain($head{$name}) =~ /(?<![\w-])(--?[a-z][a-z-]*)/gi;
	is_deeply(\%in_page, \%in_usage, "slipway(1) shows the options of slipway $name in its heading");
	my @word = map { lc =~ s/[\[\]]//gr } grep { !/-/ } split ' ', substr($usage, length $name)
	    =~ s/\[?--?[a-z][a-z-]*(?: [^ \[\]]+(?:\[=\w+\])?)?\]?(?:\.\.\.)?//gir;
	my @said = split ' ', plain($head{$name}) =~ s/^\Q$name\E//r =~ s/--?[a-z][a-z-]*(?: (?!-)\S+)?//gir;
	pop @word if $name eq 'help'; # a command of two words
	is("@said", "@word", "slipway(1) names the arguments of slipway $name");
	is((help(split / /, $name))[0] =~ /\A\Qslipway $name\E: [a-z][^\n]*[^\n.]\n/ ? 1 : 0, 1,
	    "the help of slipway $name begins with what it does");
}

done_testing();
