#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A commit has one status for each place that it is deployed to. The status says what
# was deployed there: neither another environment nor a deployment that never began
# changes it.

use strict;
use warnings;
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

# The versions that have the state "skipped", and others.
my @kinds = map { { type => $_->[0], version => $_->[1], skipped => $_->[2], failed => $_->[3] } }
    [ 'gitea', '1.27.0', 'skipped', 'failure' ], [ 'gitea', '1.22.6', 'warning', 'failure' ],
    [ 'gitea', '11.0.3+gitea-1.22.0', 'warning', 'failure' ], [ 'github', undef, 'pending', 'failure' ],
    [ 'gitlab', '17.5.1', 'canceled', 'failed' ], [ 'gitlab', '18.4.0', 'skipped', 'failed' ];
my $first = $kinds[0];
my $forge = Slipway::Forge->start(type => 'gitea')->version($first->{version});
$forge->user('robot', { id => 9 });
my $repo = $forge->repo('Team/Site', private => 1, users => ['robot']);
my @hash = map { $repo->commit('main', { file => "$_\n" }, "change $_") } 1 .. 3;
my $conf = $forge->conf(token => scalar $forge->token('robot'))
    . "[api]\nurl = https://deploy.example.org/\n";
my $all = Slipway::Whole->start(api => $conf, runner => $conf);
my $api = $all->api;
my $project = $all->project($repo->clone_url, name => 'Shop');
my $fails = tempdir() . '/fails';
my $pipeline = $all->pipeline($project, { pipeline => { name => 'Deploy' } }, "test ! -e $fails");

# The last status of a context: "STATE DESCRIPTION ID", with the id in its link.
sub status {
	my ($hash, $context) = @_;
	my ($last) = grep { ($_->{context} || $_->{name}) eq $context } reverse $forge->statuses($hash);
	return '-' if !$last;
	my ($id) = $last->{target_url} =~ m{^https://deploy\.example\.org/slipway/deployments/(\d+)$};
	return "$last->{state} $last->{description} " . ($id // $last->{target_url});
}
sub becomes {
	my ($hash, $context, $want, $name) = @_;
	poll(20, sub { status($hash, $context) eq $want });
	is(status($hash, $context), $want, $name) or diag(explain([ $forge->statuses($hash) ]));
	return;
}
sub deploy { my (%more) = @_; return $all->post(projectId => $project, pipelineId => $pipeline, %more) }
sub end { my ($id) = @_; return $all->wait($id)->{status} }

# --- without environments
my $id = deploy(branch => 'main');
is(end($id), 'success', 'a deployment without an environment succeeds');
becomes($hash[2], 'slipway/Deploy', "success The deployment succeeded. $id",
    "without an environment, the pipeline is the place; the link leads to the console's page");

my $warned = $all->pipeline($project, { pipeline => { name => 'Warned' } }, 'true',
	{ script => 'exit 1', mayFail => \1 });
$id = deploy(branch => 'main', pipelineId => $warned);
is(end($id), 'success', 'a deployment of which a step fails that may fail succeeds');
becomes($hash[2], 'slipway/Warned', "success The deployment succeeded with warnings. $id",
    'the status names the warnings');

# --- environments
my %env = map { $_ => $all->make('/api/environments', { projectId => $project, name => $_ })->{id} }
    qw(production staging);
spew($fails, '');
$id = deploy(branch => 'main', environmentId => $env{production});
is(end($id), 'failed', 'a deployment to production fails');
unlink $fails or die $!;
my $bad = "failure production: A step of the deployment failed. $id";
becomes($hash[2], 'slipway/production', $bad, 'the status names the environment and what happened');
my $staged = deploy(branch => 'main', environmentId => $env{staging});
is(end($staged), 'success', 'a deployment to staging succeeds');
my $good = "success staging: The deployment succeeded. $staged";
becomes($hash[2], 'slipway/staging', $good, 'staging has a status of its own');
is(status($hash[2], 'slipway/production'), $bad, 'the status of production stays');

# --- approval
$api->put("/api/environments/$env{production}", { approval => 'required' });
my $waits = deploy(branch => 'main', environmentId => $env{production});
becomes($hash[2], 'slipway/production', "pending production: The deployment is waiting for approval. $waits",
    'the status says that the deployment waits for approval');
is($api->post("/api/deployments/$waits/deny", {})->{status}, 403, 'who started it cannot deny it');
$api->as('maintainer')->post("/api/deployments/$waits/deny", {});
is(end($waits), 'canceled', 'the deployment is denied');
becomes($hash[2], 'slipway/production', $bad, 'a denied deployment leaves the earlier result');
is(status($hash[2], 'slipway/staging'), $good, 'a denied deployment does not change other places');
$waits = deploy(branch => 'main', environmentId => $env{production}, commitHash => $hash[0]);
becomes($hash[0], 'slipway/production', "pending production: The deployment is waiting for approval. $waits",
    'a commit that was never deployed waits for approval');
$api->put("/api/projects/$project/lock", { reason => 'incident' });
$api->as('maintainer')->post("/api/deployments/$waits/approve", {});
becomes($hash[0], 'slipway/production', "pending production: The deployment is waiting to start. $waits",
    'after the approval, the status no longer says that it waits for approval');
$api->post("/api/deployments/$waits/cancel", {});
becomes($hash[0], 'slipway/production',
    "skipped production: Not deployed. The deployment was canceled. $waits",
    'a deployment that never began is no error');
$api->delete("/api/projects/$project/lock");

# --- a newer commit
$id = deploy(branch => 'main', environmentId => $env{staging}, commitHash => $hash[1]);
is(end($id), 'success', 'a commit is deployed');
$good = "success staging: The deployment succeeded. $id";
becomes($hash[1], 'slipway/staging', $good, 'the commit has the status');
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline,
	environmentId => $env{staging}, envVars => {} } ] });
$api->put("/api/projects/$project/lock", { reason => 'incident' });
require Slipway::Hook;
my $n = 0;
sub deliver {
	my ($commit, $before) = @_;
	my ($headers, $body) = Slipway::Hook::push_event('gitea', $secret, path => 'Team/Site',
	    repo_id => $repo->id, commit => $commit, body => { n => ++$n, before => $before });
	my $got = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	die "$got->{status} $got->{body}" if $got->{status} != 202;
	return $got->{json}{data}[0]{id};
}
my $old = deliver($hash[1], $hash[0]);
becomes($hash[1], 'slipway/staging', "pending staging: The deployment is waiting to start. $old",
    'a second deployment of the commit waits');
my $new = deliver($hash[2], $hash[1]);
is($all->show($old)->{reason}, 'superseded', 'a newer push supersedes it');
becomes($hash[1], 'slipway/staging', $good, 'a commit that was deployed stays green when a newer one comes');
$api->delete("/api/projects/$project/lock");
is(end($new), 'success', 'the newer push is deployed');
becomes($hash[2], 'slipway/staging', "success staging: The deployment succeeded. $new",
    'the newer commit has the status');

# --- a second project with the same repository
my $twin = $all->project($repo->clone_url, name => 'Docs');
my $twins = $all->pipeline($twin, 'true');
my $twin_env = $all->make('/api/environments', { projectId => $twin, name => 'production' })->{id};
$id = $all->post(projectId => $twin, pipelineId => $twins, branch => 'main', environmentId => $twin_env);
is(end($id), 'success', 'another project deploys the repository to an environment of the same name');
becomes($hash[2], 'slipway/Docs/production', "success production: The deployment succeeded. $id",
    'its status has the name of the project');
is(status($hash[2], 'slipway/production'), $bad, 'the status of the first project stays');
is_deeply([ $forge->complaints ], [], 'the server received only valid requests');

# --- the plan does not depend on the size of the history
$all->db->sql('INSERT INTO deployment (project_id, pipeline_id, environment_id, `trigger`, status,'
    . " commit_hash) SELECT $project, $pipeline, $env{staging}, 'manual', 'success', SHA1(seq)"
    . ' FROM seq_1_to_20000;'
    . 'ANALYZE TABLE deployment');
my $plan = $all->db->sql("EXPLAIN SELECT x.id FROM deployment d JOIN deployment x ON"
    . " x.commit_hash = d.commit_hash AND x.project_id = d.project_id"
    . " AND x.environment_id <=> d.environment_id"
    . " AND (d.environment_id IS NOT NULL OR x.pipeline_id = d.pipeline_id)"
    . " JOIN commit_status y ON y.deployment_id = x.id WHERE d.id = $staged");
like($plan, qr/deployment_commit/, 'the deployments of a commit are found by an index');
$_->stop for $all->runner, $api;
$forge->stop;

# --- every kind of server
for my $kind (@kinds) {
	my ($type, $version) = @$kind{qw(type version)};
	my $what = join ' ', grep { defined } $type, $version;
	$forge = Slipway::Forge->start(type => $type);
	$forge->version($version) if defined $version;
	$forge->user('robot', { id => 9 });
	$repo = $forge->repo('Team/Site', private => 1, users => ['robot']);
	my $hash = $repo->commit('main', { file => "a\n" }, 'change');
	$repo->tag('v1', $hash) if $repo->can('tag');
	$conf = $forge->conf(token => scalar $forge->token('robot'))
	    . "[api]\nurl = https://deploy.example.org/\n";
	$_->stop for $all->runner, $all->api, $all->db;
	$all = Slipway::Whole->start(api => $conf, runner => $conf);
	$api = $all->api;
	$project = $all->project($repo->clone_url);
	$pipeline = $all->pipeline($project, 'true');
	my $env = $all->make('/api/environments', { projectId => $project, name => 'production',
		approval => 'required' })->{id};
	$waits = deploy(branch => 'main', environmentId => $env);
	becomes($hash, 'slipway/production',
	    "pending production: The deployment is waiting for approval. $waits",
	    "$what: approval is pending");
	$api->as('maintainer')->post("/api/deployments/$waits/deny", {});
	is(end($waits), 'canceled', "$what: the deployment is denied");
	becomes($hash, 'slipway/production', "$kind->{skipped} production: Not deployed. "
	    . "The approval of the deployment was denied. $waits",
	    "$what: a denied deployment is no error");
	is_deeply([ $forge->complaints ], [], "$what: the server received only valid requests");
	$forge->stop;
}
$_->stop for $all->runner, $all->api, $all->db;
done_testing;
