#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A fetch fails although its statement was executed: at the first row, in the
# middle, and after the last.  The caller gets the error, and the next use of the
# statement works, over the same connection.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my $db = Slipway::DB->start;
$db->migrate;
Slipway::Probe->tables($db);

# --- errors of the server itself
my $probe = Slipway::Probe->start($db->conf_file(timeout => 2));
is($probe->ask('hold'), 'ok ', 'a statement locks a row');
my $holder = $db->hold('UPDATE counter SET n = n WHERE id = 1');
like($probe->ask('hold'), qr/^err unavailable 1205/, 'its first fetch exceeds the time limit of locks');
$db->let_go($holder);
is($probe->ask('hold'), 'ok ', 'its next use succeeds');
my $impatient = Slipway::Probe->start($db->conf_file(timeout => 1));
for my $what ('rows slow', 'lasting') {
	for my $again (1, 2) {
		like($impatient->ask($what), qr/^err unavailable 1969/,
		    "\"$what\" exceeds the time limit of statements between two rows");
	}
	is($impatient->ask('rows 5'), 'ok 5', 'other statements work after it');
}
is($impatient->ask('both nothing'), 'ok 0 0 -', 'a statement with two results works after it');
$probe->send('rows slow');
my $running = "SELECT id FROM information_schema.processlist WHERE user = 'slipway' AND time_ms > 250"
    . " AND info LIKE '%SLEEP(0.1)%'";
my $query = poll(20, sub { $db->sql($running) });
$db->client("KILL QUERY $query");
like($probe->receive, qr/^err unavailable 1317/, 'a statement is killed between two rows');
is($probe->ask('rows slow'), 'ok 8', 'its next use succeeds');
$_->stop for $probe, $impatient;

# --- the same errors at each fetch of statements with several rows
my $proxy = Slipway::Proxy->start($db->socket);
$probe = Slipway::Probe->start($db->conf_file(socket => $proxy->socket));
$probe->ask('write row') for 1 .. 3;
my $failures = 0;
sub connections {
	return $db->sql("SELECT id FROM information_schema.processlist WHERE user = 'slipway' ORDER BY id");
}
for my $case (['rows 5', 6, 'ok 5'],
    ['both row', 7, 'ok 0 3 row'], ['hold', 3, 'ok '], ['count', 2, 'ok 3']) {
	my ($what, $fetches, $good) = @$case;
	is($probe->ask($what), $good, "\"$what\" succeeds");
	my $same = connections();
	my (@wrong, @broken);
	for my $at (0 .. $fetches) {
		for my $error (1317, 1969, 1205, 1032, 1105) {
			$proxy->plan("fetch $at $error");
			my $answer = $probe->ask($what);
			$failures++;
			# a conflict is tried again
			push @wrong, "$at: $answer"
			    if $error == 1205 ? $answer ne $good : $answer !~ /^err \w+ $error/;
			$answer = $probe->ask($what);
			push @broken, "$error at $at: $answer" if $answer ne $good;
		}
	}
	is("@wrong", '', "\"$what\": the caller gets the error of each fetch");
	is("@broken", '', "\"$what\": its next use succeeds");
	is(connections(), $same, "\"$what\": the connection stays");
}
# The first response of a transaction, whose statement begins it, and the next ones.
my (@wrong, @broken);
for my $what ('look', 'inside') {
	for my $after (0 .. 2) {
		for my $at (0 .. 6) {
			$proxy->plan("fetch $at 1969 $after");
			my $answer = $probe->ask("$what row");
			$proxy->plan('pass');
			push @wrong, "$what $at $after: $answer"
			    if $answer !~ /^(?:ok [01]|err unavailable 1969)/;
			$answer = $probe->ask("$what row");
			push @broken, "$what $at $after: $answer" if $answer !~ /^ok/;
		}
	}
}
is("@wrong", '', 'a transaction ends with the error of a fetch');
is("@broken", '', 'the next transaction succeeds');
is($probe->stop, 0, 'the client survives it');

# --- every statement of the stores
my $stores = Slipway::Probe->start($db->conf_file(socket => $proxy->socket), 'store_faults');
my @names = split ' ', $stores->ask('list');
cmp_ok(scalar @names, '>', 100, 'the stores have statements that return rows');
my (@dead, @other);
for my $name (@names) {
	for my $way ('', 'in ') {
		my $good = $stores->ask("$way$name");
		for my $at (1, 0) {
			$proxy->plan("fetch $at 1969");
			$stores->ask("$way$name");
			$proxy->plan('pass');
			my $answer = $stores->ask("$way$name");
			push @other, "$way$name: $answer, not $good" if $answer ne $good && $answer ne '';
			next if $answer ne '';
			push @dead, "$way$name";
			$stores->stop;
			$stores = Slipway::Probe->start($db->conf_file(socket => $proxy->socket),
			    'store_faults');
		}
	}
}
is("@dead", '', 'no statement of the stores ends the process after a failed fetch');
is(join("\n", @other), '', 'each returns the same as before');
cmp_ok($proxy->cuts, '>', $failures + 2 * @names, 'the proxy made fetches fail');
is($stores->stop, 0, 'one process ran them all');
$proxy->stop;
done_testing();
