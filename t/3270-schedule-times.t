#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# When schedules fire: what cron accepts, known nights of daylight saving, and random
# times of ten years in five zones, which croner and Intl must agree on.
# SLIPWAY_SCHEDULES sets the number of random times, SLIPWAY_SEED repeats a run.

use strict;
use warnings;
use IPC::Open2 qw(open2);
use POSIX qw(strftime);
use Slipway::Npm;
use Slipway::Test;
use Test::More;
use Time::Local qw(timegm);

my %peer;
sub peer {
	my ($name, @command) = @_;
	my $pid = open2(my $out, my $in, @command);
	$peer{$name} = [ $pid, $out, $in ];
	return;
}
sub ask {
	my ($name, $line) = @_;
	my (undef, $out, $in) = @{ $peer{$name} };
	print $in "$line\n";
	$in->flush;
	my $answer = <$out>;
	$answer = "$name ended\n" if !defined $answer;
	chomp $answer;
	return $answer;
}
peer(slipway => program('t/unit/cron_probe'));
sub text { my ($times) = @_; return join ' ', map { strftime('%d.%H:%M', gmtime $_) } split / /, $times }
sub at {
	my ($y, $m, $d) = split /-/, $_[0];
	return timegm(0, 0, 0, $d, $m - 1, $y);
}
sub next_of {
	my ($cron, $zone, $day, $n) = @_;
	return text(ask(slipway => "$cron|$zone|" . at($day) . "|$n"));
}

# --- values of a field
for my $case (
	[ '5 4 * * *', '01.04:05 02.04:05' ], [ '*/20 0 * * *', '01.00:20 01.00:40' ],
	[ '1-3,7 0 1 * *', '01.00:01 01.00:02' ], [ '50/4 0 * * *', '01.00:50 01.00:54' ],
	[ '0 0 * FEB *', '01.00:00 02.00:00' ], [ '0 0 * * wed', '03.00:00 10.00:00' ],
	[ '0 0 * * Sat-7', '06.00:00 07.00:00' ], [ '0 0 * * 0', '07.00:00 14.00:00' ],
	[ '0 0 3 * MON', '03.00:00 08.00:00' ], [ '0 0 */2 * MON', '15.00:00 29.00:00' ],
	[ '00 07 * * *', '01.07:00 02.07:00' ], [ '  0	7  * * *  ', '01.07:00 02.07:00' ],
	[ '0 0 29 2 *', '29.00:00 29.00:00' ], [ '@hourly', '01.01:00 01.02:00' ],
	[ '@daily', '02.00:00 03.00:00' ], [ '@Midnight', '02.00:00 03.00:00' ],
	[ '@weekly', '07.00:00 14.00:00' ], [ '@monthly', '01.00:00 01.00:00' ],
	[ '@yearly', '01.00:00 01.00:00' ], [ '@annually', '01.00:00 01.00:00' ],
) {
	my ($cron, $want) = @$case;
	is(next_of($cron, 'UTC', '2024-01-01', 2), $want, "$cron fires at the right times");
}
for my $cron ('', '* * * *', '* * * * * *', '60 * * * *', '* 24 * * *', '* * 0 * *', '* * 32 * *',
    '* * * 13 *', '* * * * 8', '-1 * * * *', '5-1 * * * *', '*/0 * * * *', '*/x * * * *', '1,,2 * * * *',
    ',1 * * * *', '1, * * * *', '1-2-3 * * * *', '1/2/3 * * * *', '* * * JANUARY *', '* * * * MO',
    'JAN * * * *', '* * L * *', '* * ? * *', '1.5 * * * *', '0x5 * * * *', '@reboot', '@', '*5 * * * *',
    '0 0 30 2 *', '0 0 31 4,6,9,11 *', '1' x 300 . ' * * * *') {
	like(ask(slipway => "$cron|UTC|1|1"), qr/^fault /, 'a cron is rejected: ' . substr $cron, 0, 30);
}
like(ask(slipway => '@reboot|UTC|1|1'), qr/^fault must have five fields, or be one of \@hourly/,
    'the fault of another name lists the names');
for my $zone ('Europe/Berlin', 'UTC', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5', 'GMT') {
	like(ask(slipway => "\@daily|$zone|1|1"), qr/^\d+$/, "$zone is a time zone");
}
for my $zone ('', 'Europe', 'Nowhere/City', '../../../etc/passwd', '/etc/localtime', 'zone.tab', 'CET-1',
    'posix/UTC', 'right/UTC', 'Europe/../UTC', ':UTC', 'europe/berlin ', 'x' x 100) {
	is(ask(slipway => "\@daily|$zone|1|1"), 'fault unknown time zone', "$zone is no time zone");
}

# --- nights with a change, in UTC
for my $case (
	[ '30 2 * * *', 'Europe/Berlin', '2026-03-28', '28.01:30 29.01:00 30.00:30', 'does not exist' ],
	[ '*/20 2 * * *', 'Europe/Berlin', '2026-03-29', '29.01:00 30.00:00 30.00:20', 'do not exist' ],
	[ '0 3 * * *', 'Europe/Berlin', '2026-03-29', '29.01:00 30.01:00', 'ends the gap' ],
	[ '30 2 * * *', 'Europe/Berlin', '2026-10-24', '24.00:30 25.00:30 26.01:30', 'exists twice' ],
	[ '15 2 * * *', 'Australia/Lord_Howe', '2026-10-02', '02.15:45 03.15:30 04.15:15',
	    'does not exist in half an hour' ],
	[ '0 0 * * *', 'America/Santiago', '2026-09-05', '05.04:00 06.04:00 07.03:00',
	    'does not exist at midnight' ],
) {
	my ($cron, $zone, $day, $want, $what) = @$case;
	my $n = () = $want =~ /\S+/g;
	is(next_of($cron, $zone, $day, $n), $want, "$zone: a time that $what fires once");
}

# A cron whose minute or hour starts with "*" does not pause when clocks are set back.
for my $case (
	[ '0,30 * * * *', 'Europe/Berlin', '2026-10-25', '25.00:30 25.01:00 25.01:30 25.02:00' ],
	[ '*/15 * * * *', 'Europe/Berlin', '2026-10-25', '25.00:15 25.00:30 25.00:45 25.01:00 25.01:15'
		. ' 25.01:30 25.01:45 25.02:00' ],
	[ '*/30 2 * * *', 'Europe/Berlin', '2026-10-24',
		'24.00:30 25.00:00 25.00:30 25.01:00 25.01:30 26.01:00' ],
	[ '@hourly', 'America/New_York', '2026-11-01',
		'01.01:00 01.02:00 01.03:00 01.04:00 01.05:00 01.06:00' ],
	[ '* 0 1 1 *', 'Europe/Berlin', '2026-10-25', '31.23:00' ],
) {
	my ($cron, $zone, $day, $want) = @$case;
	my $n = () = $want =~ /\S+/g;
	is(next_of($cron, $zone, $day, $n), $want, "$zone: $cron does not pause when clocks are set back");
}
for my $case ([ '*/10 * * * *', 'Australia/Lord_Howe', '2026-04-04', 600 ],
	[ '59 * * * *', 'Europe/Berlin', '2026-10-24', 3600 ],
	[ '* * * * *', 'America/New_York', '2026-11-01', 60 ]) {
	my ($cron, $zone, $day, $seconds) = @$case;
	my @times = split / /, ask(slipway => "$cron|$zone|" . at($day) . '|1000');
	my %gaps = map { $times[$_] - $times[$_ - 1] => 1 } 1 .. $#times;
	is(join(' ', sort keys %gaps), $seconds, "$zone: $cron fires evenly when clocks are set back");
}

# --- random times
my $npm = npm_dir();
if (!$npm) {
	ok(($ENV{SLIPWAY_JUDGES} || '') ne 'all', 'without the npm registry, times are not compared');
	done_testing;
	exit;
}
my $seed = $ENV{SLIPWAY_SEED} || time;
srand $seed;
note("SLIPWAY_SEED=$seed");
sub pick { return $_[rand @_] }
sub between { my ($min, $max) = @_; return $min + int rand $max - $min + 1 }
sub field {
	my ($min, $max, @names) = @_;
	my $value = sub { my $n = between(@_); return @names && rand() < 0.3 ? $names[$n - $min] : $n };
	my ($low, $high) = sort { $a <=> $b } between($min, $max), between($min, $max);
	return pick(
		sub { '*' }, sub { '*' }, sub { '*/' . between(1, $max / 2) }, sub { $value->($min, $max) },
		sub { join ',', map { $value->($min, $max) } 0 .. between(1, 3) }, sub { "$low-$high" },
		sub { "$low-$high/" . between(1, 5) }, sub { "$low-$high," . $value->($min, $max) },
	)->();
}
my @months = qw(JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC);
sub cron {
	my @f = (field(0, 59), field(0, 23), field(1, 28), field(1, 12, @months),
		field(0, 6, qw(SUN MON TUE WED THU FRI SAT)));
	# croner reads a step of all days as a restriction, crontab(5) does not
	$f[2] = '*' if $f[2] =~ /^\*/;
	$f[4] = '*' if $f[4] =~ /^\*/;
	$f[$_] = pick('*', '*', $f[$_]) for 2 .. 4;
	return join ' ', @f;
}
peer(reference => 'node', "$npm/schedule.mjs");
my @zones = qw(Europe/Berlin America/New_York Australia/Lord_Howe America/Santiago Asia/Kathmandu);
my ($from, $to) = map { at($_) } '2024-01-01', '2034-01-01';
my %change = map { $_ => [ split / /, ask(reference => "changes|$_|$from|$to") ] } @zones;
is(join(' ', map { scalar @{ $change{$_} } } @zones), '20 20 20 20 0', 'the reference knows all changes');
# The reference pauses when clocks are set back: compares the times apart from that, as
# far as both go.
sub without_changes {
	my ($zone, @lists) = @_;
	my @times = map { [ grep { my $t = $_; !grep { $t >= $_ && $t < $_ + 7200 } @{ $change{$zone} } }
		split / /, $_ ] } @lists;
	my $n = @{ $times[0] } < @{ $times[1] } ? @{ $times[0] } : @{ $times[1] };
	return map { join ' ', @$_[0 .. $n - 1] } @times;
}
my ($compared, @wrong) = (0);
my $goal = $ENV{SLIPWAY_SCHEDULES} || 8000;
while ($compared < $goal && @wrong < 5) {
	my $zone = pick(@zones);
	my @near = rand() < 0.5 ? @{ $change{$zone} } : ();
	my $start = @near ? pick(@near) - between(1, 7200)
	    : between($from, $to);
	my $line = cron() . "|$zone|$start|" . between(1, 30);
	my ($is, $want) = map { ask($_, $line) } 'slipway', 'reference';
	($is, $want) = without_changes($zone, $is, $want) if $line =~ /^(?:\S+ )?\*/;
	push @wrong, "$line\n  is   $is\n  want $want" if $is ne $want;
	$compared += () = $want =~ /\d+/g;
}
is_deeply(\@wrong, [], 'slipway and the reference agree') or diag("SLIPWAY_SEED=$seed");
cmp_ok($compared, '>=', $goal, 'enough times were compared');
for my $p (values %peer) { close $p->[2]; waitpid $p->[0], 0 }
done_testing;
