#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB is there and refuses: whoever cannot renew a lease for that loses no
# deployment to another runner, however long it lasts.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
# rights on each table, so that taking one is felt at once
my @hosts = map { "'slipway'\@'$_'" } 'localhost', '127.0.0.1';
for my $who (@hosts) {
	$db->sql("REVOKE ALL ON slipway.* FROM $who;" . join '', map { "GRANT SELECT, INSERT, UPDATE, DELETE ON slipway.`$_` TO $who;" }
	    split /\n/, $db->sql('SHOW TABLES'));
	# connections are counted of accounts with a limit
	$db->sql("ALTER USER $who WITH MAX_USER_CONNECTIONS 100");
}
my $lease = 6;
my @runners = map { Slipway::Runner->start(db => $db, name => $_, idle => 1, conf => "[runner]\nlease = $lease\nslots = 4\n") } qw(one two);
my ($one, $two) = @runners;
my $project = $one->project;

# Connections of the account, oldest first.
sub connections { return split /\n/, $db->sql("SELECT id FROM information_schema.processlist WHERE user = 'slipway' ORDER BY id") }
# Whether the lease ran out some time ago.
sub is_over { my ($id) = @_; return $one->column($id, 'lease_until < NOW(3) - INTERVAL 3 SECOND') eq '1' }

# What refuses, beginning with the number of a connection that is kept, how that
# ends, and its error.
sub rights {
	my ($verb, $of) = @_;
	for my $who (@hosts) { $db->sql("$verb UPDATE ON slipway.$_ $of $who") for 'deployment', 'deployment_step' }
	return;
}
sub cut_but { my ($keep) = @_; for (grep { $_ != $keep } connections()) { $db->client("KILL $_") } return }
my @ways = (
	['too many connections', sub {
		my ($mine) = @_;
		$db->sql("ALTER USER $_ WITH MAX_USER_CONNECTIONS 1") for @hosts;
		cut_but($mine);
	}, sub { $db->sql("ALTER USER $_ WITH MAX_USER_CONNECTIONS 100") for @hosts }, qr/1226 /],
	['an account that is locked', sub {
		my ($mine) = @_;
		$db->sql("ALTER USER $_ ACCOUNT LOCK") for @hosts;
		cut_but($mine);
	}, sub { $db->sql("ALTER USER $_ ACCOUNT UNLOCK") for @hosts }, qr/4151 /],
	['a right that was taken', sub { rights(REVOKE => 'FROM') }, sub { rights(GRANT => 'TO') }, qr/1142 /],
	['a server that is read-only', sub { $db->sql('SET GLOBAL read_only = 1') }, sub { $db->sql('SET GLOBAL read_only = 0') }, qr/1290 /],
);

for my $way (@ways) {
	my ($what, $begin, $end, $words) = @$way;
	my ($gate, $next) = map { tempdir() . "/$_" } 'gate', 'next';
	unlink $gate, $next;
	# the only connection is that of the other, which is to keep it
	$two->resume;
	ok(poll(60, sub { $two->said =~ /runner two/ && connections() == 1 }), "$what: a runner") or diag join ' ', connections();
	my ($theirs) = connections();
	my $still = $two->dispatcher;
	# it takes nothing while it stands
	kill 'STOP', $still;
	$one->resume;
	my $id = $one->deploy($project, "echo up; until test -e $next; do sleep 0.1; done", "until test -e $gate; do sleep 0.1; done; echo down");
	like($one->wait_log($id, qr/^up$/m), qr/^up$/m, '  a step runs on the other');
	is($one->column($id, 'runner'), 'one', '  of that name');
	kill 'CONT', $still;
	# for a whole lease it was there for the other: it would judge
	sleep $lease + 1;
	my ($said, $of_one) = (length $two->said, length $one->said);
	$begin->($theirs);
	spew($next, '');
	# its dispatcher may die as well: the next one waits for the end of it
	my $died = $what =~ /locked/ ? $one->dispatcher : undef;
	if ($died) {
		kill KILL => $died;
		ok(poll(30, sub { ($one->dispatcher || $died) != $died }), "  and another dispatcher comes");
	}
	ok(poll(60, sub { is_over($id) }), '  its lease runs out');
	like(substr($one->said, $of_one), $words, '  its runner knows why');
	ok(poll(30, sub { substr($two->said, $said) =~ /leases of other runners: none is given up while the database refuses: .*$words/ }),
	    '  the other knows it, too, and says so') or diag substr $two->said, $said;
	sleep 2 * $lease;
	is($one->status($id), 'running', '  for longer than a lease nothing happens');
	is((() = substr($two->said, $said) =~ /none is given up/g), 1, '  said once');
	my $again = () = substr($one->said, $of_one) =~ /$words/g;
	cmp_ok($again, '<', 4, "  nor does its runner say it all the time: $again");
	is(scalar $one->jobs, 1, '  the job runs on');
	$end->();
	ok(poll(60, sub { $one->column($id, 'lease_until > NOW(3) + INTERVAL 2 SECOND') eq '1' }), '  then the lease is renewed');
	spew($gate, '');
	is($one->wait($id), 'success', '  and it succeeds');
	like($one->log($id), qr/^up\n(?:==> .*\n)*down$/m, '  with all of its log');
	is($one->steps($id), 'success success', '  and of its steps');
	is($one->column($id, 'epoch'), 1, '  under its one epoch');
	is($_->stop, 0, '  ends') for $one, $two;
}

# --- who is gone is given up as before, and soon
$two->resume;
$one->resume;
my $id;
for (1 .. 20) {
	$id = $one->deploy($one->project, 'echo up; sleep 600');
	$one->wait($id, qr/^running$/);
	last if $one->column($id, 'runner') eq 'one';
}
is($one->column($id, 'runner'), 'one', 'a deployment of the first runner');
sleep $lease + 1;
$one->kill_all;
my $since = time;
is($two->wait($id), 'interrupted', 'is given up when that is gone');
cmp_ok(time - $since, '<', deadline(30), 'soon');
is($two->column($id, 'TIMESTAMPDIFF(SECOND, started_at, finished_at) >= ' . $lease), 1, 'but not before its lease is over');
is($two->stop, 0, 'ends');
done_testing;
