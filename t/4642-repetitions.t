#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Rollbacks and promotions: what they repeat, where and for whom, ahead of the queue,
# while locked, and without the Git server.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start;
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my ($maintainer, $deployer, $viewer) = map { $api->as($_) } qw(maintainer deployer viewer);
my $repo = $runner->repo;
my $project = $all->project($repo, envPresets => [ { key => 'SIZE', label => 'Size', type => 'input',
	default => 'small' } ]);
my $go = tempdir() . '/go';
my $pipeline = $all->pipeline($project, 'echo one $SLIPWAY_ENVIRONMENT $REGION $SIZE at $SLIPWAY_COMMIT'
	. ' ${SLIPWAY_ROLLBACK_TO-}');
my $hold = $all->pipeline($project, "echo up; while test ! -e $go; do sleep 0.1; done");
my ($staging, $production) = map {
	$all->make('/api/environments', { projectId => $project, name => $_,
		variables => [ { key => 'REGION', value => "in-$_" } ] })->{id}
} qw(staging production);
my $rollback = "/api/environments/$production/rollback";
my $got;
sub git { return (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, @_))[1] =~ s/\s+\z//r }
my $tree = git('rev-parse', 'main^{tree}');
sub commit {
	my $commit = git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit-tree', '-p', 'main',
	    '-m', 'new ' . rand, $tree);
	git('update-ref', 'refs/heads/main', $commit);
	return $commit;
}
sub order { return $all->post(projectId => $project, pipelineId => $pipeline, @_) }
sub deployed { my $id = order(@_); die "$id\n" if $all->wait($id)->{status} ne 'success'; return $id }
sub live { return $api->get("/api/environments/$production")->{json}{live}{deploymentId} }
sub stop { my ($id) = @_; return $api->post("/api/deployments/$id/cancel") }

# --- environments that cannot be rolled back
is($deployer->post($rollback)->{status}, 409, 'an environment with nothing live is not rolled back');
my $first = git('rev-parse', 'main');
my $one = deployed(environmentId => $production, envVars => { SIZE => 'large' });
is($deployer->post($rollback)->{status}, 409,
    'an environment with a single deployment cannot be rolled back');
my $second = commit();
my ($step) = map { $_->{id} } @{ $api->get("/api/pipelines/$pipeline")->{json}{steps} };
$api->put("/api/steps/$step", { script => 'echo two' });
my $two = deployed(environmentId => $production);
my $test = deployed(environmentId => $staging);
is($viewer->post($rollback)->{status}, 403, 'a viewer rolls nothing back');
is($deployer->post('/api/environments/77777/rollback')->{status}, 404, 'an unknown environment returns 404');
for my $case ([ { deploymentId => $test }, '/deploymentId' ], [ { deploymentId => 77777 }, '/deploymentId' ],
    [ { deploymentId => 'x' }, '/deploymentId' ], [ { reason => 'x' x 501 }, '/reason' ],
    [ { why => 'x' }, '/why' ]) {
	my ($body, $at) = @$case;
	is(outcome($deployer->post($rollback, $body)), "422 $at", "a wrong rollback is rejected at $at");
}
is($db->sql("SELECT COUNT(*) FROM deployment WHERE `trigger` = 'rollback'"), 0,
    'a rejected rollback creates no deployment');

# --- ahead of the queue, while locked, without the Git server
my $running = order(environmentId => $staging, pipelineId => $hold);
ok($all->saw($running, qr/^up$/m), 'a deployment runs');
my $queued = order(environmentId => $staging);
$maintainer->put("/api/projects/$project/lock", { reason => 'incident' });
rename $repo, "$repo.away";
$got = $deployer->post($rollback, { reason => 'broken' }, { 'Idempotency-Key' => 'r1' });
is($got->{status}, 201, 'a deployer rolls back a locked project') or diag($got->{body});
my $back = $got->{json};
is("@{$back}{qw(trigger retryOf commitHash rollbackReason status)}", "rollback $one $first broken pending",
    'the rollback repeats the deployment before the live one');
is($got->{headers}{location}, "/api/deployments/$back->{id}", 'Location is its path');
is($deployer->post($rollback, { reason => 'broken' }, { 'Idempotency-Key' => 'r1' })->{json}{id}, $back->{id},
    'a request with the same Idempotency-Key returns the same rollback');
is($deployer->post($rollback)->{status}, 409, 'a second rollback is rejected while one is pending');
is($back->{queuePosition}, 0, 'a rollback has the first position in the queue');
is($all->show($queued)->{queuePosition}, 1, 'deployments that waited come after a rollback');
spew($go, '');
is($all->wait($back->{id})->{status}, 'success', 'a rollback runs with the clone, without the repository');
is($all->show($queued)->{status}, 'pending', 'before what waited, which the lock holds back');
like($all->log($back->{id}), qr/^one production in-production large at $first $one$/m,
    'a rollback has the commit, steps and variables of the deployment that it repeats');
unlike($all->log($one), qr/ at $first $one$/m, 'only a rollback has SLIPWAY_ROLLBACK_TO');
is(live(), $back->{id}, 'the rollback is live');
rename "$repo.away", $repo;
$api->delete("/api/projects/$project/lock");
is($all->wait($queued)->{status}, 'success', 'the deployment that waited runs after the lock');

# --- which one
is($deployer->post($rollback)->{status}, 409, 'a rollback is rejected if there is no earlier deployment');
$got = $deployer->post($rollback, { deploymentId => $two })->{json};
is("$got->{retryOf} $got->{commitHash}", "$two $second", 'a rollback can name a deployment');
$all->wait($got->{id});
$got = $deployer->post($rollback)->{json};
is($got->{retryOf}, $one, 'the next rollback goes back further');
is($all->wait($got->{id})->{status}, 'success', 'the second rollback succeeds');
$got = $deployer->post($rollback, { deploymentId => $got->{id} })->{json};
is($got->{retryOf}, $one, 'a rollback to a rollback repeats what that repeats');
is($all->wait($got->{id})->{status}, 'success', 'the rollback to a rollback succeeds');
$maintainer->put("/api/environments/$production", { approval => 'required', branches => ['release'] });
$got = $deployer->post($rollback, { deploymentId => $two })->{json};
is($got->{approval}, undef, 'a rollback needs no approval');
is($all->wait($got->{id})->{status}, 'success',
    'a rollback runs even if the environment no longer accepts the branch');
$maintainer->put("/api/environments/$production", { approval => 'none', branches => [] });

# --- dry runs
my $before = live();
my $dry = deployed(environmentId => $production, envVars => { DRY_RUN => 'yes' });
is(live(), $before, 'a dry run is not live');
is(outcome($deployer->post($rollback, { deploymentId => $dry })), '422 /deploymentId',
    'a rollback to a dry run is rejected');
my $real = deployed(environmentId => $production, envVars => { DRY_RUN => 'no' });
is(live(), $real, 'the deployment after it is');
$got = $deployer->post($rollback)->{json};
is($got->{retryOf}, $two, 'a rollback goes back past a dry run');
is($all->wait($got->{id})->{status}, 'success', 'the rollback past a dry run succeeds');

# --- cancel, then roll back
unlink $go;
my $bad = order(environmentId => $production, pipelineId => $hold);
ok($all->saw($bad, qr/^up$/m), 'a deployment runs');
my $late = order(environmentId => $production);
my $cancel = "/api/deployments/$bad/cancel";
is(outcome($deployer->post($cancel, { then => 'retry' })), '422 /then', 'an unknown sequel is rejected');
is($deployer->post("/api/deployments/$late/cancel", { then => 'rollback' })->{status}, 409,
    'a pending deployment has nothing to roll back');
is($all->show($late)->{status}, 'pending', 'a pending deployment without a rollback is not canceled');
$got = $deployer->post($cancel, { then => 'rollback' });
is($got->{status}, 200, 'a running one is canceled and rolled back') or diag($got->{body});
$got = $api->get("/api/deployments?environmentId=$production")->{json}{data}[0];
is("$got->{trigger} $got->{retryOf}", "rollback $two", 'to the live deployment');
is($all->wait($bad)->{status}, 'canceled', 'the deployment is canceled');
is($all->wait($got->{id})->{status}, 'success', 'the rollback succeeds');
is(stop($bad)->{status}, 409, 'a deployment that has ended cannot be canceled');
$got = $deployer->post($cancel, { then => 'rollback' });
is($got->{status}, 409, 'a deployment that has ended cannot be canceled with a rollback');
like($got->{json}{detail}, qr/^The deployment has ended already, with status "canceled"\./,
    'the error says that it has ended');
$all->wait($late);

# --- a second request while a rollback runs
spew($go, '');
deployed(environmentId => $production, pipelineId => $hold);
deployed(environmentId => $production);
unlink $go;
$back = $deployer->post($rollback)->{json};
ok($all->saw($back->{id}, qr/^up$/m), 'a rollback runs');
$got = $deployer->post($rollback);
is($got->{status}, 409, 'a rollback that names no deployment is rejected while one runs');
like($got->{json}{detail}, qr/^The rollback $back->{id} .* is running/, 'the error says why');
spew($go, '');
is($all->wait($back->{id})->{status}, 'success', 'the first one succeeds');

# --- promotion
my $promote = "/api/deployments/$test/promote";
my %to = (environmentId => $production);
my $elsewhere = $all->project($runner->repo, projectDir => 'elsewhere');
my $foreign = $all->make('/api/environments', { projectId => $elsewhere, name => 'x' })->{id};
is($viewer->post($promote, \%to)->{status}, 403, 'a viewer promotes nothing');
is($deployer->post('/api/deployments/77777/promote', \%to)->{status}, 404,
    'an unknown deployment returns 404');
is($deployer->post("/api/deployments/$bad/promote", \%to)->{status}, 409,
    'a deployment that did not succeed is not promoted');
for my $case ([ {}, '/environmentId' ], [ { environmentId => $staging }, '/environmentId' ],
    [ { environmentId => $foreign }, '/environmentId' ], [ { environmentId => 77777 }, '/environmentId' ],
    [ { %to, envVars => { OTHER => 'x' } }, '/envVars/OTHER' ],
    [ { environmentId => $staging, envVars => { OTHER => 'x' } }, '/envVars/OTHER /environmentId' ],
    [ { %to, branch => 'main' }, '/branch' ]) {
	my ($body, $at) = @$case;
	is(outcome($deployer->post($promote, $body)), "422 $at", "a wrong promotion is rejected at $at");
}
$maintainer->put("/api/environments/$production", { branches => ['release'] });
is(outcome($deployer->post($promote, \%to)), '422 /environmentId',
    'an environment that does not accept the branch is rejected');
$maintainer->put("/api/environments/$production", { branches => ['main'] });
$maintainer->put("/api/environments/$production/lock", { reason => 'freeze' });
is($deployer->post($promote, \%to)->{json}{code}, 'locked', 'a locked environment rejects promotions');
$api->delete("/api/environments/$production/lock");
commit();
$api->put("/api/steps/$step", { script => 'echo three' });
my $source = deployed(environmentId => $staging, commitHash => $first,
    pipelineId => $all->pipeline($project, 'echo to $SLIPWAY_ENVIRONMENT $REGION $SIZE at $SLIPWAY_COMMIT'));
$got = $deployer->post("/api/deployments/$source/promote", { %to, envVars => { SIZE => 'huge' } });
is($got->{status}, 201, 'a deployment is promoted') or diag($got->{body});
my $made = $got->{json};
is("@{$made}{qw(trigger retryOf commitHash environmentId)}", "promotion $source $first $production",
    'a promotion deploys the same commit to the other environment');
is($all->wait($made->{id})->{status}, 'success', 'the promotion succeeds');
like($all->log($made->{id}), qr/^to production in-production huge at $first$/m,
    'a promotion has the same steps, and the variables of its environment and of the request');
is(live(), $made->{id}, 'the promotion is live in its environment');
$maintainer->put("/api/environments/$production", { approval => 'required' });
$got = $deployer->post("/api/deployments/$source/promote", \%to)->{json};
is("$got->{approval} $got->{waitingFor}[0]{reason}", 'required approval', 'a promotion can require approval');
$got = $maintainer->post("/api/deployments/$got->{id}/approve");
is($got->{status}, 200, 'a promotion can be approved');
is($all->wait($got->{json}{id})->{commitHash}, $first, 'the approved promotion runs');

# --- deleted places
is($maintainer->delete("/api/environments/$production")->{status}, 204, 'the environment is deleted');
is($deployer->post($rollback)->{status}, 404, 'a deleted environment cannot be rolled back');
is(outcome($deployer->post("/api/deployments/$source/promote", \%to)), '422 /environmentId',
    'a deleted environment cannot be promoted to');
done_testing();
