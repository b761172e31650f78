#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The files that start the runner: systemd takes them, and they say what keeps
# deployments alive over a restart.

use strict;
use warnings;
use Slipway::Test;
use Test::More;

my @units = qw(slipway-runner.service slipway-runner-once.service);
my $timer = srcdir() . '/src/monitor/slipway-runner-once.timer';
my %text = map { $_ => slurp(builddir() . "/src/monitor/$_") } @units;
for my $unit (@units) {
	ok(defined $text{$unit}, "$unit is made") or next;
	unlike($text{$unit}, qr/\@\w+\@/, 'with its directories');
	like($text{$unit}, qr/^KillMode=process$/m, 'a stop leaves jobs alone');
	like($text{$unit}, qr/^Delegate=yes$/m, 'its control groups are its own');
	like($text{$unit}, qr/^OOMPolicy=continue$/m, 'a step that takes all memory ends itself alone');
	unlike($text{$unit}, qr/^(?:PrivateTmp|ProtectHome|ProcSubset|ProtectProc)=/m,
	    'steps see the machine as their account does');
	is(join(' ', $text{$unit} =~ /^ProtectSystem=(.*)$/mg), 'yes', 'but for /usr');
	like($text{$unit}, qr{^ReadWritePaths=-/usr/local }m, 'of which /usr/local is theirs');
	for my $cap (qw(SETUID SETGID KILL CHOWN)) {
		like($text{$unit}, qr/^CapabilityBoundingSet=.*\bCAP_$cap\b/m, "CAP_$cap is left to it");
	}
}
for my $same (qw(CapabilityBoundingSet ExecStopPost NoNewPrivileges TasksMax)) {
	my ($daemon, $once) = map { join '', $text{$_} =~ /^$same=.*$/mg } @units;
	is($once, $daemon, "$same: the same in both");
	isnt($once, '', '- and set');
}
like($text{'slipway-runner.service'}, qr/^Type=notify$/m, 'the daemon says when it is ready');
like($text{'slipway-runner-once.service'}, qr/^ExecStart=\S+ --once$/m, 'the other one ends');
like($text{'slipway-runner-once.service'}, qr/^TimeoutStartSec=infinity$/m, 'whenever that is');
like(slurp($timer), qr/^OnCalendar=/m, 'and is started again');

my $cron = slurp(builddir() . '/src/monitor/slipway-runner.cron');
my @lines = grep { !/^(?:#|\w+=|$)/ } split /\n/, $cron;
is(scalar @lines, 1, 'one line for cron');
like($lines[0], qr{^\* \* \* \* \* root exec flock -n \S+ /\S+/slipway-runner --once$}, 'that runs it once, alone');

my ($found) = grep { -x } map { "$_/systemd-analyze" } split /:/, "$ENV{PATH}:/usr/bin";
if ($found) {
	# with programs that are there, it looks for them
	my $dir = tempdir();
	for my $unit (@units) {
		(my $body = $text{$unit}) =~ s{=/\S+/slipway-runner}{=/bin/true}g;
		spew("$dir/$unit", $body);
	}
	spew("$dir/slipway-runner-once.timer", slurp($timer));
	my ($status, $out, $err) = run_cmd({ env => { SYSTEMD_LOG_LEVEL => 'warning' } },
	    $found, 'verify', '--man=no', map { "$dir/$_" } @units, 'slipway-runner-once.timer');
	unlike($out . $err, qr/slipway-runner/, 'systemd has nothing to say of them');
} else {
	note('no systemd-analyze here: the units were only read');
}
done_testing;
