#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The order of writes to the database: the output of a step is stored before the
# end of the step.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("CREATE TABLE early (deployment BIGINT, position BIGINT, wants BIGINT, has BIGINT) ENGINE = "
    . "InnoDB;\n"
    . "CREATE TRIGGER see_early BEFORE UPDATE ON deployment_step FOR EACH ROW\nBEGIN\nDECLARE n BIGINT;\n"
    . "IF NEW.log_length IS NOT NULL AND OLD.log_length IS NULL THEN\n"
    . "SELECT COALESCE(MAX(start + length), 0) INTO n FROM log_chunk WHERE deployment_id = "
        . "NEW.deployment_id;\n"
    . "IF n < NEW.log_offset + NEW.log_length THEN INSERT INTO early VALUES (NEW.deployment_id, "
        . "NEW.position, NEW.log_offset + NEW.log_length, n); END IF;\n"
    . "END IF;\nEND");
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\npoll = 60\n");
sub early { return $db->sql("SELECT * FROM early WHERE deployment = $_[0]") }

my $project = $runner->project;
my $id = $runner->deploy($project, map { sprintf 'echo %d; sleep 0.%02d; echo end', $_, $_ } 1 .. 40);
is($runner->wait($id), 'success', 'a deployment with many short steps succeeds');
is(early($id), '', 'no step ends in the database before its output is stored');
$id = $runner->deploy($project, ('head -c 9000000 /dev/zero | tr "\0" "x"; echo') x 3);
is($runner->wait($id), 'success', 'a deployment with much output succeeds');
is(early($id), '', 'no step with much output ends in the database before its output is stored');
is($runner->column($id, 'log_size >= 27000000'), 1, 'all output is stored');
is($runner->stop, 0, 'the runner stops');
done_testing;
