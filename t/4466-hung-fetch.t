#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A Git server that accepts connections and never responds occupies some slots, not
# all: projects on other servers are deployed meanwhile.  A pending deployment shows
# why it waits.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Hostile;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my ($silent, $url) = Slipway::Hostile->silent;
my ($port) = $url =~ /:(\d+)$/;
my $conf = "[runner]\nslots = 4\ncheckout_timeout = 600\n[gitserver]\nallow_http = yes\n";
my $runner = Slipway::Runner->start(db => $db, conf => $conf, idle => 1);
my @hung = map { $runner->project(repo => "http://127.0.0.1:$port/o/r$_.git", dir => "hung$_") } 1 .. 70;
my @good = map { $runner->project(dir => "good$_") } 1 .. 5;
my @stuck = $runner->deploy_many(map { [$_, 'true'] } @hung);
my @other = $runner->deploy_many(map { [$_, 'true'] } @good);
$runner->resume;
sub running { return 0 + $db->sql("SELECT COUNT(*) FROM deployment WHERE status = 'running'") }
is($runner->wait($_), 'success', 'a deployment behind 70 of a silent server succeeds') for @other;
is(running(), 2, 'half of the slots wait for the silent server');
sub why {
	my ($id) = @_;
	my $why =
	    $db->sql("SELECT CONCAT(reason, ': ', detail) FROM deployment_wait WHERE deployment_id = $id");
	return $why =~ s/\n//r;
}
like(why($stuck[5]), qr/^slots: .*127\.0\.0\.1:$port/, 'a waiting deployment names the silent server');
is($runner->column($stuck[5], 'status'), 'pending', 'a waiting deployment is pending');
is($runner->column($stuck[5], 'epoch'), 0, 'a waiting deployment was never claimed');
$runner->cancel($_) for @stuck[0, 1];
is($runner->wait($_), 'canceled', 'a deployment that hangs can be canceled') for @stuck[0, 1];
ok(poll(30, sub { running() == 2 }), 'other deployments take the free slots');
is($runner->wait($runner->deploy($good[0], 'true')), 'success',
    'a deployment of another server succeeds meanwhile');
$db->sql("UPDATE deployment SET cancel_at = NOW(3), status = 'canceled', finished_at = NOW(3) WHERE status = "
    . "'pending'");
my @last = map { s/\s//gr } split /\n/, $db->sql("SELECT id FROM deployment WHERE status = 'running'");
$runner->cancel($_) for @last;
$runner->wait($_) for @last;
$runner->stop;

# --- after a fetch timed out: one deployment at a time
my $brief = Slipway::Runner->start(db => $db, idle => 1, conf => $conf =~ s/600/31/r);
my @again = map { $brief->project(repo => "http://127.0.0.1:$port/o/s$_.git", dir => "again$_") } 1 .. 5;
@stuck = $brief->deploy_many(map { [$_, 'true'] } @again);
$brief->resume;
is($brief->wait($stuck[$_], undef, 120), 'failed', 'a fetch that hangs times out') for 0, 1;
ok(poll(30, sub { running() == 1 }), 'after a timeout one deployment at a time tries the silent server');
like($brief->said, qr/127\.0\.0\.1:$port let a fetch hang/, 'the log names the silent server');
$brief->stop;
$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE status IN ('pending', "
    . "'running')");

# --- a runner with one slot
my $single = Slipway::Runner->start(db => $db, conf => $conf =~ s/slots = 4/slots = 1/r);
my $one = $single->project(repo => "http://127.0.0.1:$port/o/t.git", dir => "single");
$one = $single->deploy($one, "true");
$single->wait($one, qr/^running$/);
is($single->wait($single->deploy($single->project(dir => 'next'), 'true')), 'success',
    'a silent server does not hold the only slot');
is($single->column($one, 'status'), 'running', 'the deployment from the silent server still waits for it');
$single->cancel($one);
is($single->wait($one), 'canceled', 'the deployment that waits for the silent server can be canceled');
$single->stop;
done_testing();
