#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The usage message of each program (-h) and its man page name the same options
# and commands.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

# The options in a usage message: -c, -fnV, --once.
sub options {
	my ($text) = @_;
	my %o = map { $_ => 1 } $text =~ /(?<![\w-])(--[a-z][a-z-]*)/g;
	while ($text =~ /(?<![\w-])-([A-Za-z]+)/g) { $o{"-$_"} = 1 for split //, $1 }
	return \%o;
}

# The options in mdoc: "Fl hV" in a synopsis is -h and -V.
sub flags {
	my ($mdoc) = @_;
	my %o;
	while ($mdoc =~ /\bFl ((?:\\-)?)([A-Za-z][A-Za-z-]*)/g) {
		if ($1) { $o{"--$2"} = 1 }
		else { $o{"-$_"} = 1 for split //, $2 }
	}
	return \%o;
}

# The commands that a help text lists, and the help of one.
sub commands { return $_[0] =~ /^  ([a-z-]+(?: [a-z]+)?)(?= |$)/mg }
sub command_help {
	my ($program, $command) = @_;
	return (run_cmd(program($program), 'help', split / /, $command))[1] =~ s/\A.*?(?=^usage)//msr;
}

for my $name (qw(slipway-admin slipway-api slipway-dispatch slipway-job slipway-live slipway-runner)) {
	my $page = slurp(srcdir() . "/man/$name.8");
	my ($status, $help, $err) = run_cmd(program($name), '-h');
	$help = "$help$err" =~ s/\A.*?(?=^usage)//msr;
	my %command = $name eq 'slipway-admin' ? map { $_ => command_help($name, $_) } commands($help) : ();
	$help .= $_ for values %command;
	my ($synopsis) = $page =~ /^\.Sh SYNOPSIS\n(.*?)^\.Sh/ms;
	my ($rest) = $page =~ /^\.Sh DESCRIPTION\n(.*)/ms;
	my $items = join "\n", $rest =~ /^(\.It .*)$/mg;
	is_deeply(flags($items), options($help),
	    "$name: the man page explains exactly the options of the program");
	my %short = map { $_ => 1 } grep { /^-\w$/ } keys %{ options($help) };
	my %named = map { $_ => 1 } grep { /^-\w$/ } keys %{ flags($synopsis) };
	is_deeply(\%named, \%short, "$name: the synopsis names exactly the short options of the program");
	if ($name eq 'slipway-admin') {
		my %explained = $items =~ /^\.It Cm ([a-z-]+(?: [a-z]+)?)(?= |$)(.*)/mg;
		is_deeply([sort keys %explained], [sort keys %command],
		    "$name: the man page explains exactly the commands of the program");
		for my $c (sort keys %command) {
			my ($own) = $command{$c} =~ /^(usage: .*)$/m;
			is_deeply(flags($explained{$c} // ''), options($own =~ s/\[-c FILE\]//r),
			    "$name: the man page explains exactly the options of $c");
		}
	}
	next if $name =~ /-(?:dispatch|job)$/; # other programs start these
	my ($version) = slurp(srcdir() . '/configure.ac') =~ /AC_INIT\(\[slipway\], \[([^\]]+)\]/;
	($status, my $out) = run_cmd(program($name), '-V');
	is("$status $out", "0 $name $version\n", "$name -V prints its name and version");
	($status, $out, $err) = run_cmd(program($name), '-?');
	is($status >> 8, 64, "$name exits with EX_USAGE on an unknown option");
	is($out, '', "$name prints nothing on standard output for an unknown option");
	isnt($err, '', "$name explains an unknown option on standard error");
}

done_testing();
