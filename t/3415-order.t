#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments of one project are committed in the order of their ids, however
# they are made: nothing overtakes on the queue one that is being made.

use strict;
use warnings;
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 3\n");
my ($status, undef, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'a key is made') or diag($err);
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
$api->stop_api;
$api->start_api;

sub made { my ($path, $body) = @_; my $got = $api->post($path, $body); is($got->{status}, 201, "$path: made") or diag($got->{body}); return $got->{json}{id} }
sub project { my ($name) = @_; return made('/api/projects', { name => $name, repository => "https://git.example.org/o/$name.git" }) }
sub pipeline { my ($of, $step) = @_; return made('/api/pipelines', { projectId => $of, name => $step, steps => [ { name => $step, script => 'true' } ] }) }
my ($project, $other) = map { project($_) } qw(name other);
my ($gated, $quick) = map { pipeline($project, $_) } qw(gate quick);
pipeline($other, 'quick');
my $old = made('/api/deployments', { projectId => $project, pipelineId => $gated });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
is($api->put("/api/projects/$project", { triggers => [ { branch => '*', pipelineId => $gated, envVars => {} } ] })->{status}, 200, 'a push deploys');
$db->sql('UPDATE deployment SET status = \'success\'');

# Copying a step of that name waits here, in the middle of the transaction.
$db->sql("CREATE TABLE gate (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO gate VALUES (1);\n"
    . "CREATE TRIGGER wait_at_gate BEFORE INSERT ON deployment_step FOR EACH ROW\n"
    . "BEGIN DECLARE n INT; IF NEW.name = 'gate' THEN SELECT id INTO n FROM gate FOR UPDATE; END IF; END");

my $commit = 100; # never what a push starts from: that is a test delivery
my %way = (
	post => sub { return $_[0]->post('/api/deployments', { projectId => $project, pipelineId => $gated }) },
	retry => sub { return $_[0]->post("/api/deployments/$old/retry") },
	push => sub {
		my ($headers, $body) = push_event('gitea', $secret, commit => sprintf('%040x', ++$commit), branch => 'main', path => 'o/name');
		return $_[0]->post("/api/hooks/$project", $body, $headers);
	},
);
sub in_background {
	my ($name, $does) = @_;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	return $pid if $pid != 0;
	delete $api->{http};
	spew(tempdir() . "/$name", $does->($api)->{status});
	POSIX::_exit(0);
}
sub ended { my ($name) = @_; return -s tempdir() . "/$name" }

for my $first (sort keys %way) {
	my $last = $db->sql('SELECT MAX(id) FROM deployment');
	my $holder = $db->hold('SELECT id FROM gate FOR UPDATE');
	my @pids = in_background('first', $way{$first});
	ok(poll(60, sub { $db->waiting == 1 }), "$first: one is being made");
	push @pids, in_background('second', sub { $_[0]->post('/api/deployments', { projectId => $project, pipelineId => $quick }) });
	ok(poll(60, sub { $db->waiting == 2 || ended('second') }), 'another is posted');
	is($db->sql("SELECT COUNT(*) FROM deployment WHERE id > $last"), 0, 'and does not overtake it');
	is($api->post('/api/deployments', { projectId => $other })->{status}, 201, 'another project does not wait');
	$db->let_go($holder);
	waitpid $_, 0 for @pids;
	is(slurp(tempdir() . '/first'), $first eq 'push' ? 202 : 201, 'the first is made');
	is(slurp(tempdir() . '/second'), 201, 'the second is made');
	is($db->sql("SELECT GROUP_CONCAT(pipeline_id ORDER BY id) FROM deployment WHERE id > $last AND project_id = $project"),
	    "$gated,$quick", 'the queue has them in the order in which they came');
	unlink map { tempdir() . "/$_" } qw(first second);
}
done_testing;
