#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments of one project are committed in the order of their ids, however they
# are created: none overtakes another that is being created.

use strict;
use warnings;
use Slipway::API;
use Slipway::Background;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 3\n");

# Creates an object; its id.
sub create { return $api->make(@_)->{id} }
sub project {
	my ($name) = @_;
	return create('/api/projects',
	    { name => $name, repository => "https://git.example.org/o/$name.git" });
}
sub pipeline {
	my ($project, $step) = @_;
	return create('/api/pipelines', { projectId => $project, name => $step,
		steps => [ { name => $step, script => 'true' } ] });
}
my ($project, $other) = map { project($_) } qw(name other);
my ($gated, $quick) = map { pipeline($project, $_) } qw(gate quick);
pipeline($other, 'quick');
my $old = create('/api/deployments', { projectId => $project, pipelineId => $gated });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my @triggers = ({ branch => '*', pipelineId => $gated, envVars => {} });
is($api->put("/api/projects/$project", { triggers => \@triggers })->{status}, 200,
    'a project gets a trigger');
$db->sql("UPDATE deployment SET status = 'success'");

# Copying a step named "gate" waits, in the middle of the transaction.
$db->add_gate('deployment_step', "NEW.name = 'gate'");

my $commit = 100; # a push to the commit that it starts from would be a test delivery
my %way = (
	post => sub { return $_[0]->post('/api/deployments',
	    { projectId => $project, pipelineId => $gated }) },
	retry => sub { return $_[0]->post("/api/deployments/$old/retry") },
	push => sub {
		my ($headers, $body) = push_event('gitea', $secret, commit => sprintf('%040x', ++$commit),
		    branch => 'main', path => 'o/name');
		return $_[0]->post("/api/hooks/$project", $body, $headers);
	},
);
# Calls the code with the API in the background; the status of its response.
sub status_of {
	my ($code) = @_;
	return background(sub { delete $api->{http}; return $code->($api)->{status} });
}

for my $first (sort keys %way) {
	my $last = $db->sql('SELECT MAX(id) FROM deployment');
	my $holder = $db->hold('SELECT id FROM gate FOR UPDATE');
	my $one = status_of($way{$first});
	ok(poll(60, sub { $db->waiting == 1 }), "a deployment by $first is being created");
	my $two = status_of(sub { $_[0]->post('/api/deployments',
	    { projectId => $project, pipelineId => $quick }) });
	ok(poll(60, sub { $db->waiting == 2 || $two->ended }),
	    "another deployment is posted after one by $first");
	is($db->sql("SELECT COUNT(*) FROM deployment WHERE id > $last"), 0,
	    "a posted deployment does not overtake one by $first");
	is($api->post('/api/deployments', { projectId => $other })->{status}, 201,
	    "a deployment of another project does not wait for one by $first");
	$db->let_go($holder);
	is($one->result, $first eq 'push' ? 202 : 201, "the deployment by $first is created");
	is($two->result, 201, "the deployment posted after one by $first is created");
	is($db->sql('SELECT GROUP_CONCAT(pipeline_id ORDER BY id) FROM deployment'
	    . " WHERE id > $last AND project_id = $project"), "$gated,$quick",
	    "a deployment by $first and the posted one are queued in the order of the requests");
}
done_testing;
