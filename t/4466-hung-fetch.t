#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A Git server that takes connections and never answers holds some slots, not
# all: projects of other servers are deployed meanwhile.  Who waits learns why.

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
is($runner->wait($_), 'success', 'a deployment behind seventy of a silent server is run') for @other;
is(running(), 2, 'half of the slots wait for that server');
sub why { return $db->sql("SELECT CONCAT(reason, ': ', detail) FROM deployment_wait WHERE deployment_id = $_[0]") =~ s/\n//r }
like(why($stuck[5]), qr/^slots: .*127\.0\.0\.1:$port/, 'one that waits says for whom');
is($runner->column($stuck[5], 'status'), 'pending', 'and is pending');
is($runner->column($stuck[5], 'epoch'), 0, 'it was never taken');
$runner->cancel($_) for @stuck[0, 1];
is($runner->wait($_), 'canceled', 'those that hang can be canceled') for @stuck[0, 1];
ok(poll(30, sub { running() == 2 }), 'then others try');
is($runner->wait($runner->deploy($good[0], 'true')), 'success', 'which keeps others from nothing');
$db->sql("UPDATE deployment SET cancel_at = NOW(3), status = 'canceled', finished_at = NOW(3) WHERE status = 'pending'");
my @last = map { s/\s//gr } split /\n/, $db->sql("SELECT id FROM deployment WHERE status = 'running'");
$runner->cancel($_) for @last;
$runner->wait($_) for @last;
$runner->stop;

# --- after a fetch that hung, one at a time
my $brief = Slipway::Runner->start(db => $db, idle => 1, conf => $conf =~ s/600/31/r);
my @again = map { $brief->project(repo => "http://127.0.0.1:$port/o/s$_.git", dir => "again$_") } 1 .. 5;
@stuck = $brief->deploy_many(map { [$_, 'true'] } @again);
$brief->resume;
is($brief->wait($stuck[$_], undef, 120), 'failed', 'a fetch that hangs fails') for 0, 1;
ok(poll(30, sub { running() == 1 }), 'after that one deployment at a time tries that server');
like($brief->said, qr/127\.0\.0\.1:$port let a fetch hang/, 'the log says so');
$brief->stop;
$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE status IN ('pending', 'running')");

# --- one slot is one slot
my $single = Slipway::Runner->start(db => $db, conf => $conf =~ s/slots = 4/slots = 1/r =~ s/600/3/r);
my $one = $single->project(repo => "http://127.0.0.1:$port/o/t.git", dir => 'single');
is($single->wait($single->deploy($one, 'true')), 'failed', 'with a single slot a silent server is tried as well');
is($single->wait($single->deploy($single->project(dir => 'next'), 'true')), 'success', 'and given up in time');
$single->stop;
done_testing();
