#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The database is dumped while a deployment runs, and restored on a host that has the
# keys but neither spool nor workspaces: everything is there again, the running
# deployment is interrupted, and the pending one runs.

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
	envPresets => [{ key => 'PASSWORD', label => 'Password', type => 'input',
	    secret => JSON::PP::true }]);
my $quick = $all->pipeline($project, 'cat file; printf %s "$PASSWORD" | sha256sum; echo "<$PASSWORD>"');
my $slow = $all->pipeline($project, "echo up; until test -s $marks; do sleep 0.1; done");
my %vars = (envVars => { PASSWORD => 'open sesame' });
my $hash = Digest::SHA::sha256_hex('open sesame');

my $done = $all->post(projectId => $project, pipelineId => $quick, %vars);
is($all->wait($done)->{status}, 'success', 'a deployment succeeds');
my ($shown, $log) = ($all->show($done), $all->log($done));
like($log, qr/^\Q$hash\E\b.*^<\*+>$/ms, 'the step has the secret, and the log masks it');
my $running = $all->post(projectId => $project, pipelineId => $slow);
ok($all->saw($running, qr/^up$/m), 'a deployment runs');
my $waiting = $all->post(projectId => $project, pipelineId => $quick, %vars);
my ($status, $dump, $err) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $db->socket,
	'--user=' . getpwuid($>), '--default-character-set=utf8mb4', '--single-transaction', 'slipway');
is($status, 0, 'the database is dumped meanwhile') or diag($err);

# --- changes after the dump are lost
my $late = $all->post(projectId => $project, pipelineId => $quick, %vars);
spew($marks, "on\n");
is($all->wait($_)->{status}, 'success', "deployment $_ succeeds on the old host")
    for $running, $waiting, $late;
$runner->stop;
$api->stop_api;
remove_tree($runner->{spool}, $runner->{workspaces});
$db->sql('DROP DATABASE slipway', 'mysql');
$db->sql('CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
$db->load($dump);
is((run_cmd(program('slipway-admin'), '-c', $db->conf_file, 'migrate'))[0], 0,
    'slipway-admin accepts the restored schema');

# --- the new host
$api->start_api;
is_deeply($all->show($done), $shown, 'the finished deployment is unchanged');
is($all->log($done), $log, 'the log of the finished deployment is unchanged');
is($all->show($running)->{status}, 'running', 'the deployment that ran during the dump is running');
is($api->get("/api/deployments/$late")->{status}, 404, 'a deployment after the dump is unknown');
$runner->resume;
my $lost = $all->wait($running, undef, 90);
is("$lost->{status} $lost->{reason}", 'interrupted runner_lost',
    'the deployment that ran during the dump is interrupted');
is($all->wait($waiting)->{status}, 'success', 'the deployment that was pending during the dump succeeds');
like($all->log($waiting), qr/^text\n\Q$hash\E\b/m,
    'the restored deployment has its secret and a fresh checkout');
is($all->post(projectId => $project, pipelineId => $quick, %vars), $late,
    'ids continue from the dump');
is($all->wait($late)->{status}, 'success', 'a new deployment succeeds');
done_testing;
