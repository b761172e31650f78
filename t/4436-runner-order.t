#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The order in which the database hears of a job: what a step said is there
# before the step has ended.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("CREATE TABLE early (deployment BIGINT, position BIGINT, wants BIGINT, has BIGINT) ENGINE = InnoDB;\n"
    . "CREATE TRIGGER see_early BEFORE UPDATE ON deployment_step FOR EACH ROW\nBEGIN\nDECLARE n BIGINT;\n"
    . "IF NEW.log_length IS NOT NULL AND OLD.log_length IS NULL THEN\n"
    . "SELECT COALESCE(MAX(start + length), 0) INTO n FROM log_chunk WHERE deployment_id = NEW.deployment_id;\n"
    . "IF n < NEW.log_offset + NEW.log_length THEN INSERT INTO early VALUES (NEW.deployment_id, NEW.position, NEW.log_offset + NEW.log_length, n); END IF;\n"
    . "END IF;\nEND");
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\npoll = 60\n");
sub early { return $db->sql("SELECT * FROM early WHERE deployment = $_[0]") }

my $project = $runner->project;
my $id = $runner->deploy($project, map { sprintf 'echo %d; sleep 0.%02d; echo end', $_, $_ } 1 .. 40);
is($runner->wait($id), 'success', 'many short steps');
is(early($id), '', 'none has ended before all that it said is there');
$id = $runner->deploy($project, ('head -c 9000000 /dev/zero | tr "\0" "x"; echo') x 3);
is($runner->wait($id), 'success', 'steps that say more than is sent at once');
is(early($id), '', 'neither');
is($runner->column($id, 'log_size >= 27000000'), 1, 'and all of it is there');
is($runner->stop, 0, 'ends');
done_testing;
