#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a program says of itself with -h, and what its man page says: the same
# options and commands.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

# Options as a program prints them: -c, -fnV, --once.
sub options {
	my ($text) = @_;
	my %o = map { $_ => 1 } $text =~ /(?<![\w-])(--[a-z][a-z-]*)/g;
	while ($text =~ /(?<![\w-])-([A-Za-z]+)/g) { $o{"-$_"} = 1 for split //, $1 }
	return \%o;
}

# Options of some lines of mdoc: "Fl hV" in a synopsis is -h and -V.
sub flags {
	my ($mdoc) = @_;
	my %o;
	while ($mdoc =~ /\bFl ((?:\\-)?)([A-Za-z][A-Za-z-]*)/g) {
		if ($1) { $o{"--$2"} = 1 }
		else { $o{"-$_"} = 1 for split //, $2 }
	}
	return \%o;
}

for my $name (qw(slipway-admin slipway-api slipway-dispatch slipway-job slipway-runner)) {
	my $page = slurp(srcdir() . "/man/$name.8");
	my ($status, $help, $err) = run_cmd(program($name), '-h');
	$help = "$help$err" =~ s/\A.*?(?=^usage)//msr;
	my ($synopsis) = $page =~ /^\.Sh SYNOPSIS\n(.*?)^\.Sh/ms;
	my ($rest) = $page =~ /^\.Sh DESCRIPTION\n(.*)/ms;
	my $items = join "\n", $rest =~ /^(\.It .*)$/mg;
	is_deeply(flags($items), options($help), "$name: the page explains what it takes");
	my %short = map { $_ => 1 } grep { /^-\w$/ } keys %{ options($help) };
	my %named = map { $_ => 1 } grep { /^-\w$/ } keys %{ flags($synopsis) };
	is_deeply(\%named, \%short, "$name: and so does its synopsis");
	if ($name eq 'slipway-admin') {
		my @said = $help =~ /^  ([a-z]+(?: [a-z]+)?)(?= |$)/mg;
		my @told = $items =~ /^\.It Cm ([a-z]+(?: [a-z]+)?)(?= |$)/mg;
		is_deeply([sort @told], [sort @said], "$name: its commands");
	}
	next if $name =~ /-(?:dispatch|job)$/; # which nobody starts by hand
	my ($version) = slurp(srcdir() . '/configure.ac') =~ /AC_INIT\(\[slipway\], \[([^\]]+)\]/;
	($status, my $out) = run_cmd(program($name), '-V');
	is("$status $out", "0 $name $version\n", "$name -V");
	($status, $out, $err) = run_cmd(program($name), '-?');
	is($status >> 8, 64, "$name: an unknown option is wrong usage");
	is($out, '', '- and goes to standard error');
	isnt($err, '', '- with words');
}

done_testing();
