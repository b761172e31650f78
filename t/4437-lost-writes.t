#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A database server takes over that does not have the last writes of the one before:
# the runner stores again what is missing.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\npoll = 60\n");
my $project = $runner->project;
my $gates = tempdir() . '/gates';
mkdir $gates or die "$gates: $!";
chmod 0777, $gates or die "$gates: $!";

# A script that prints numbered lines, and waits in the middle for a file.
sub script {
	my ($name) = @_;
	return "seq 1 2000; while ! [ -e $gates/$name ]; do sleep 0.05; done; seq 2001 3000";
}
my $all = join '', map { "$_\n" } 1 .. 3000;
# What a replica does not have, and the connections to the server before it.
sub fail_over {
	my ($id, @lost) = @_;
	my @connections = split /\n/, $db->sql("SELECT id FROM information_schema.processlist"
	    . " WHERE user = 'slipway'");
	$db->sql(join ';', @lost, map { "KILL $_" } @connections);
	return;
}

for my $case (['the last part of a log', "DELETE FROM log_chunk WHERE deployment_id = ID AND start > 0"],
    ['a whole log', 'DELETE FROM log_chunk WHERE deployment_id = ID'],
    ['the end of a step', "UPDATE deployment_step SET status = 'running', exit_code = NULL,"
	    . ' finished_at = NULL, log_length = NULL WHERE deployment_id = ID AND position = 0'],
    ['the start of a step', "UPDATE deployment_step SET status = 'pending', started_at = NULL,"
	    . ' finished_at = NULL, exit_code = NULL, log_offset = NULL, log_length = NULL'
	    . ' WHERE deployment_id = ID'],
    ['nothing', 'DO 1']) {
	my ($what, $lost) = @$case;
	my $name = $what =~ tr/ /-/r;
	my $id = $runner->deploy($project, 'echo first; seq 1 500; sleep 0.3; seq 501 900', script($name));
	ok(poll(60, sub { $runner->log($id) =~ /^2000$/m }), "$what: the deployment prints");
	fail_over($id, $lost =~ s/ID/$id/r);
	spew("$gates/$name", '');
	is($runner->wait($id), 'success', "$what is lost: the deployment succeeds");
	my $log = $runner->log($id);
	is($runner->column($id, 'log_size'), length $log, "$what is lost: the log has no hole");
	like($log, qr/\b\Q$all\E/, "$what is lost: each line of the log is there once");
	is($db->sql("SELECT GROUP_CONCAT(CONCAT(status, ' ', exit_code) ORDER BY position)"
		. " FROM deployment_step WHERE deployment_id = $id"), 'success 0,success 0',
	    "$what is lost: the results of the steps are complete");
}
like($runner->said, qr/the database has only \d+ of \d+ bytes of the log; the rest is stored again/,
    'the runner logs that writes were lost');

# --- the job has ended before the dispatcher connects again
my $id = $runner->deploy($project, script('ended'));
ok(poll(60, sub { $runner->log($id) =~ /^2000$/m }), 'a deployment prints');
my $holder = $db->hold("SELECT id FROM deployment WHERE id = $id FOR UPDATE");
spew("$gates/ended", '');
my ($result) = glob "$runner->{spool}/$id.*/result";
ok(poll(60, sub { (slurp($result) // '') =~ /^end /m }), 'its job ends while its row is locked');
fail_over($id, "DELETE FROM log_chunk WHERE deployment_id = $id");
$db->let_go($holder);
is($runner->wait($id), 'success', 'it succeeds');
is($runner->column($id, 'log_size'), length $runner->log($id), 'its log has no hole');
like($runner->log($id), qr/\b\Q$all\E/, 'its log is complete');
# --- the spool does not have it any more, either
$id = $runner->deploy($project, 'echo first', script('gone'), 'echo last');
ok(poll(60, sub { $runner->log($id) =~ /^2000$/m }), 'a deployment prints');
$holder = $db->hold("SELECT id FROM deployment WHERE id = $id FOR UPDATE");
spew("$gates/gone", '');
($result) = glob "$runner->{spool}/$id.*/result";
ok(poll(60, sub { (slurp($result) // '') =~ /^end /m }), 'its job ends while its row is locked');
my $lost = 1000;
truncate $result =~ s/result$/log/r, 10 or die "truncate: $!";
fail_over($id, "DELETE FROM log_chunk WHERE deployment_id = $id AND start > 0",
    'SET foreign_key_checks = 0', # the deployment is locked
    "UPDATE log_chunk SET data = SUBSTR(data, $lost + 1), start = $lost, length = length - $lost"
	. " WHERE deployment_id = $id");
my $kept = $db->sql("SELECT MAX(start + length) FROM log_chunk WHERE deployment_id = $id");
$db->let_go($holder);
is($runner->wait($id), 'success', 'a deployment with a hole in its log ends as its job did');
is($runner->column($id, 'detail'), ($lost - 10) . ' bytes of the log are missing.',
    'its result says how much of the log is missing');
is($runner->column($id, 'warnings'), 1, 'that is a warning');
is($runner->column($id, 'log_size'), $kept, 'the rest of the log is kept');
like($runner->said, qr/$id\.\d+: @{[$lost - 10]} bytes of the log are lost/, 'the runner logs it');

is($runner->stop, 0, 'the runner stops');
done_testing();
