#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# MariaDB runs and rejects statements: a runner that cannot renew a lease because of
# that loses no deployment to another runner, however long it lasts.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
# privileges for each table, so that REVOKE takes effect at once
my @hosts = map { "'slipway'\@'$_'" } 'localhost', '127.0.0.1';
for my $who (@hosts) {
	$db->sql("REVOKE ALL ON slipway.* FROM $who;" . join '',
	    map { "GRANT SELECT, INSERT, UPDATE, DELETE ON slipway.`$_` TO $who;" }
	    split /\n/, $db->sql('SHOW TABLES'));
	# MariaDB counts the connections of accounts with a limit
	$db->sql("ALTER USER $who WITH MAX_USER_CONNECTIONS 100");
}
my $lease = 6;
my @runners = map { Slipway::Runner->start(db => $db, name => $_, idle => 1,
    conf => "[runner]\nlease = $lease\nslots = 4\n") } qw(one two);
my ($one, $two) = @runners;
my $project = $one->project;

# Connections of the account, oldest first.
sub connections {
	return split /\n/,
	    $db->sql("SELECT id FROM information_schema.processlist WHERE user = 'slipway' ORDER BY id");
}
# Whether the lease expired some time ago.
sub is_over { my ($id) = @_; return $one->column($id, 'lease_until < NOW(3) - INTERVAL 3 SECOND') eq '1' }

# Ways to reject: the function that begins it (its argument is the id of a connection
# that stays), the function that ends it, and the error.
sub rights {
	my ($verb, $of) = @_;
	for my $who (@hosts) {
		$db->sql("$verb UPDATE ON slipway.$_ $of $who") for 'deployment', 'deployment_step';
	}
	return;
}
sub cut_but { my ($keep) = @_; for (grep { $_ != $keep } connections()) { $db->client("KILL $_") } return }
my @ways = (
	['too many connections', sub {
		my ($mine) = @_;
		$db->sql("ALTER USER $_ WITH MAX_USER_CONNECTIONS 1") for @hosts;
		cut_but($mine);
	}, sub { $db->sql("ALTER USER $_ WITH MAX_USER_CONNECTIONS 100") for @hosts }, qr/1226 /],
	['a locked account', sub {
		my ($mine) = @_;
		$db->sql("ALTER USER $_ ACCOUNT LOCK") for @hosts;
		cut_but($mine);
	}, sub { $db->sql("ALTER USER $_ ACCOUNT UNLOCK") for @hosts }, qr/4151 /],
	['a revoked privilege', sub { rights(REVOKE => 'FROM') }, sub { rights(GRANT => 'TO') },
	    qr/1142 /],
	['a read-only server', sub { $db->sql('SET GLOBAL read_only = 1') },
	    sub { $db->sql('SET GLOBAL read_only = 0') }, qr/1290 /],
);

for my $way (@ways) {
	my ($what, $begin, $end, $words) = @$way;
	my ($gate, $next) = map { tempdir() . "/$_" } 'gate', 'next';
	my $tries = 0;
	# a runner that stands still for a lease loses it
	within($lease / 2, sub {
		if ($tries++) {
			$end->();
			$_->pid && $_->kill_all for $one, $two;
			$db->sql("UPDATE deployment SET status = 'interrupted', finished_at = NOW(3)"
			    . " WHERE status IN ('pending', 'running')");
		}
		unlink $gate, $next;
		# the only connection is that of the other runner, which keeps it
		$two->resume;
		ok(poll(60, sub { $two->said =~ /runner two/ && connections() == 1 }),
		    "$what: the second runner starts")
		    or diag join ' ', connections();
		my ($theirs) = connections();
		my $still = $two->dispatcher;
		# a stopped dispatcher claims nothing
		kill 'STOP', $still;
		$one->resume;
		my $id = $one->deploy($project, 'echo up; ' . waits_until($next),
		    waits_until($gate) . '; echo down');
		like($one->wait_log($id, qr/^up$/m), qr/^up$/m, "$what: a step runs");
		is($one->column($id, 'runner'), 'one', "$what: the first runner has the deployment");
		kill 'CONT', $still;
		# the second runner has had its connection for a whole lease: it may expire others'
		sleep $lease + 1;
		my ($said, $of_one) = (length $two->said, length $one->said);
		$begin->($theirs);
		spew($next, '');
		# its dispatcher may die as well: the next one waits for the end of the rejections
		my $died = $what =~ /locked/ ? $one->dispatcher : undef;
		if ($died) {
			kill KILL => $died;
			ok(poll(30, sub { ($one->dispatcher || $died) != $died }),
			    "$what: another dispatcher starts");
		}
		ok(poll(60, sub { is_over($id) }), "$what: the lease expires");
		like(substr($one->said, $of_one), $words, "$what: the first runner logs the error");
		ok(poll(30,
		    sub { substr($two->said, $said) =~
		    /leases of other runners: none expires while the database rejects renewals: .*$words/ }),
		    "$what: the second runner logs why it interrupts no deployment")
		    or diag substr $two->said, $said;
		sleep 2 * $lease;
		is($one->status($id), 'running', "$what: the deployment keeps running for more than a lease");
		is((() = substr($two->said, $said) =~ /none expires/g), 1,
		    "$what: the second runner logs the reason once");
		my $again = () = substr($one->said, $of_one) =~ /$words/g;
		cmp_ok($again, '<', 4,
		    "$what: the first runner logs the error @{[$again]} times, not all the time");
		is(scalar $one->jobs, 1, "$what: the job survives");
		$end->();
		ok(poll(60, sub { $one->column($id, 'lease_until > NOW(3) + INTERVAL 2 SECOND') eq '1' }),
		    "$what: the lease is renewed afterwards");
		spew($gate, '');
		is($one->wait($id), 'success', "$what: the deployment succeeds");
		like($one->log($id), qr/^up\n(?:==> .*\n)*down$/m, "$what: the log is complete");
		is($one->steps($id), 'success success', "$what: the steps succeed");
		is($one->column($id, 'epoch'), 1, "$what: the deployment keeps its epoch");
		is($_->stop, 0, "$what: a runner stops") for $one, $two;
	});
}

# --- a lost runner's deployment is still interrupted, and soon
$two->resume;
$one->resume;
my $id;
for (1 .. 20) {
	$id = $one->deploy($one->project, 'echo up; sleep 600');
	$one->wait($id, qr/^running$/);
	last if $one->column($id, 'runner') eq 'one';
}
is($one->column($id, 'runner'), 'one', 'the first runner has a deployment');
sleep $lease + 1;
$one->kill_all;
my $since = stopwatch();
is($two->wait($id), 'interrupted', 'the deployment of a lost runner is interrupted');
cmp_ok($since->(), '<', deadline(30), 'the deployment of a lost runner is interrupted soon');
is($two->column($id, 'TIMESTAMPDIFF(SECOND, started_at, finished_at) >= ' . $lease), 1,
    'the deployment of a lost runner is not interrupted before its lease expires');
is($two->stop, 0, 'the runner stops');
done_testing;
