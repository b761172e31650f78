#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Paths of ssh's files in the configuration: one that the shell or ssh(1) would
# read as another one is rejected by every program that reads the configuration.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start;
my $dir = tempdir();
my %programs = (
	'slipway-api' => [ '-n' ],
	'slipway-runner' => [ '-n' ],
	'slipway-admin' => [ 'doctor' ],
);
sub check {
	my ($name, $text) = @_;
	my $conf = spew("$dir/try.conf",
	    $db->conf . "[runner]\nprivilege_drop = " . (is_root() ? 'yes' : 'no') . "\nuser = nobody\n$text",
	    0600);
	my ($status, $out, $err) = run_cmd(program($name), '-c', $conf, @{ $programs{$name} });
	return ($status >> 8, $out . $err);
}
for my $name (sort keys %programs) {
	my @paths = ("/etc/a'b", '/etc/a"b"c', '/etc/a\\b', '/etc/$(id)', '/etc/`id`', '/etc/%h');
	for my $case (map({ my $path = $_; map { [ $_, $path ] } qw(ssh_key_file ssh_known_hosts) } @paths),
	    [ 'ssh_known_hosts', '/etc/a b' ]) {
		my ($key, $path) = @$case;
		my ($status, $said) = check($name, "[gitserver]\n$key = $path\n");
		is($status, 78, "$name rejects $key = $path");
		like($said, qr/try\.conf:\d+: $key: must not contain .*rename the file/,
		    '... and says where and why');
	}
	for my $case ([ 'ssh_key_file', '/etc/a b/c-1.2_~[x]' ],
	    [ 'ssh_known_hosts', '/etc/slipway/known_hosts' ]) {
		my ($key, $path) = @$case;
		my (undef, $said) = check($name, "[gitserver]\n$key = $path\n");
		unlike($said, qr/must not contain/, "$name accepts $key = $path");
	}
}
done_testing;
