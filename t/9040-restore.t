#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A dump of the database that is taken while a deployment runs, and restored on
# a host that has the keys, but neither spool nor checkouts: all is there again,
# what ran is called interrupted, what waited runs.

use strict;
use warnings;
use Digest::SHA ();
use File::Path qw(remove_tree);
use JSON::PP ();
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(runner => "[runner]\nlease = 30\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $marks = $all->marks('marks');
my $project = $all->project($runner->repo({ file => "text\n" }),
	envPresets => [{ key => 'PASSWORD', label => 'Password', type => 'input', secret => JSON::PP::true }]);
my $quick = $all->pipeline($project, 'cat file; printf %s "$PASSWORD" | sha256sum; echo "<$PASSWORD>"');
my $slow = $all->pipeline($project, "echo up; until test -s $marks; do sleep 0.05; done");
my %vars = (envVars => { PASSWORD => 'open sesame' });
my $hash = Digest::SHA::sha256_hex('open sesame');

my $done = $all->post(projectId => $project, pipelineId => $quick, %vars);
is($all->wait($done)->{status}, 'success', 'one has run');
my ($shown, $log) = ($all->show($done), $all->log($done));
like($log, qr/^\Q$hash\E\b.*^<\*+>$/ms, 'with its secret, which the log does not tell');
my $running = $all->post(projectId => $project, pipelineId => $slow);
ok($all->saw($running, qr/^up$/m), 'one runs');
my $waiting = $all->post(projectId => $project, pipelineId => $quick, %vars);
my ($status, $dump, $err) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $db->socket,
	'--user=' . getpwuid($>), '--default-character-set=utf8mb4', '--single-transaction', 'slipway');
is($status, 0, 'a dump meanwhile') or diag($err);

# --- what comes later is lost with the host
my $late = $all->post(projectId => $project, pipelineId => $quick, %vars);
spew($marks, "on\n");
is($all->wait($_)->{status}, 'success', "here deployment $_ succeeds") for $running, $waiting, $late;
$runner->stop;
$api->stop_api;
remove_tree($runner->{spool}, $runner->{workspaces});
$db->sql('DROP DATABASE slipway', 'mysql');
$db->sql('CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
$db->load($dump);
is((run_cmd(program('slipway-admin'), '-c', $db->conf_file, 'migrate'))[0], 0, 'the schema is that of this version');

# --- the other host
$api->start_api;
is_deeply($all->show($done), $shown, 'what has run is shown as before');
is($all->log($done), $log, 'so is its log');
is($all->show($running)->{status}, 'running', 'the one that ran is told to');
is($api->get("/api/deployments/$late")->{status}, 404, 'the late one is unknown');
$runner->resume;
my $lost = $all->wait($running, undef, 90);
is("$lost->{status} $lost->{reason}", 'interrupted runner_lost', 'then it is called interrupted');
is($all->wait($waiting)->{status}, 'success', 'the one that waited runs');
like($all->log($waiting), qr/^text\n\Q$hash\E\b/m, 'in a checkout made anew, with its secret');
is($all->post(projectId => $project, pipelineId => $quick, %vars), $late, 'the next goes on counting from the dump');
is($all->wait($late)->{status}, 'success', 'and runs');
done_testing;
