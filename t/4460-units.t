#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The unit files of the runner: systemd accepts them, and they keep deployments
# alive across a restart.

use strict;
use warnings;
use Slipway::Test;
use Test::More;

my @units = qw(slipway-runner.service slipway-runner-once.service);
my $timer = srcdir() . '/src/monitor/slipway-runner-once.timer';
my %text = map { $_ => slurp(builddir() . "/src/monitor/$_") } @units;
for my $unit (@units) {
	ok(defined $text{$unit}, "$unit is built") or next;
	unlike($text{$unit}, qr/\@\w+\@/, "$unit has its directories");
	like($text{$unit}, qr/^KillMode=process$/m, "$unit: a stop leaves jobs alone");
	like($text{$unit}, qr/^Delegate=yes$/m, "$unit manages its own control groups");
	like($text{$unit}, qr/^KeyringMode=private$/m, "$unit shares no keyring with other services");
	like($text{$unit}, qr/^OOMPolicy=continue$/m, "$unit: a step that runs out of memory ends alone");
	unlike($text{$unit}, qr/^(?:PrivateTmp|ProtectHome|ProcSubset|ProtectProc)=/m,
	    "$unit: steps see the host as their account does");
	is(join(' ', $text{$unit} =~ /^ProtectSystem=(.*)$/mg), 'yes', "$unit: /usr is read-only");
	like($text{$unit}, qr{^ReadWritePaths=-/usr/local }m, "$unit: /usr/local is writable");
	for my $cap (qw(SETUID SETGID KILL CHOWN)) {
		like($text{$unit}, qr/^CapabilityBoundingSet=.*\bCAP_$cap\b/m, "$unit keeps CAP_$cap");
	}
}
for my $same (qw(CapabilityBoundingSet ExecStopPost NoNewPrivileges TasksMax)) {
	my ($daemon, $once) = map { join '', $text{$_} =~ /^$same=.*$/mg } @units;
	is($once, $daemon, "$same is the same in both units");
	isnt($once, '', "$same is set");
}
like($text{'slipway-runner.service'}, qr/^Type=notify$/m, 'the daemon reports when it is ready');
like($text{'slipway-runner-once.service'}, qr/^ExecStart=\S+ --once$/m, 'the other unit runs --once');
like($text{'slipway-runner-once.service'}, qr/^TimeoutStartSec=infinity$/m,
    'the unit with --once has no time limit');
like(slurp($timer), qr/^OnCalendar=/m, 'a timer starts the unit with --once');

my $cron = slurp(builddir() . '/src/monitor/slipway-runner.cron');
my @lines = grep { !/^(?:#|\w+=|$)/ } split /\n/, $cron;
is(scalar @lines, 1, 'the cron file has one line');
like($lines[0], qr{^\* \* \* \* \* root exec flock -n \S+ /\S+/slipway-runner --once$},
    'cron runs --once, one at a time');

my ($found) = grep { -x } map { "$_/systemd-analyze" } split /:/, "$ENV{PATH}:/usr/bin";
if ($found) {
	# systemd-analyze requires that the programs exist
	my $dir = tempdir();
	for my $unit (@units) {
		(my $body = $text{$unit}) =~ s{=/\S+/slipway-runner}{=/bin/true}g;
		spew("$dir/$unit", $body);
	}
	spew("$dir/slipway-runner-once.timer", slurp($timer));
	my ($status, $out, $err) = run_cmd({ env => { SYSTEMD_LOG_LEVEL => 'warning' } },
	    $found, 'verify', '--man=no', map { "$dir/$_" } @units, 'slipway-runner-once.timer');
	unlike($out . $err, qr/slipway-runner/, 'systemd-analyze has no complaint');
} else {
	note('systemd-analyze is not installed: the units are only parsed');
}
done_testing;
