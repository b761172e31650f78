#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments to environments, run for real: the step's variables, what is live,
# and environments that are bound to a runner.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $true = JSON::PP::true;
my $all = Slipway::Whole->start(runner => "[runner]\nname = left\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $project = $all->project($runner->repo,
    envPresets => [ { key => 'LEVEL', label => 'Level', type => 'input', default => 'preset' } ]);
my $pipeline = $all->pipeline($project,
    'echo "[${SLIPWAY_ENVIRONMENT-none}] [$LEVEL] [${TOKEN-none}] ${#TOKEN}"; [ "$LEVEL" != fail ]');
sub environment {
	my ($name, @vars) = @_;
	return $all->make('/api/environments', { projectId => $project, name => $name,
	    variables => \@vars })->{id};
}
sub post { my (%body) = @_; return $all->post(projectId => $project, pipelineId => $pipeline, %body) }
sub live { return $api->get("/api/environments/$_[0]")->{json}{live} }

# --- variables
my $plain = post();
is($all->wait($plain)->{status}, 'success', 'a deployment without an environment succeeds');
like($all->log($plain), qr/^\[none\] \[preset\] \[none\] 0$/m,
    'without an environment, SLIPWAY_ENVIRONMENT is not set');
my $first = environment('staging-1', { key => 'LEVEL', value => 'staging' },
    { key => 'TOKEN', value => 'swordfish', secret => $true });
my $id = post();
my $end = $all->wait($id);
is($end->{status}, 'success', 'a deployment to the only environment succeeds') or diag($end->{detail});
like($all->log($id), qr/^\[staging-1\] \[staging\] \[\*\*\*\] 9$/m,
    'the step has the name and the variables of the environment, and the secret is masked');

# --- live
my $live = live($first);
is_deeply({ map { $_ => $live->{$_} } keys %$live },
    { deploymentId => $id,
        map { $_ => $end->{$_} } qw(commitHash commitMessage branch tag finishedAt createdBy) },
    'a successful deployment is live in its environment');
my $tag = $api->get("/api/environments/$first")->{headers}{etag};
my $second = environment('production');
is(live($second), undef, 'nothing is live in a new environment');
my $failed = post(environmentId => $first, envVars => { LEVEL => 'fail' });
is($all->wait($failed)->{status}, 'failed', 'a deployment fails');
is(live($first)->{deploymentId}, $id, 'a failed deployment does not change what is live');
my $retry = $api->post("/api/deployments/$id/retry")->{json}{id};
is($all->wait($retry)->{status}, 'success', 'a retry succeeds');
like($all->log($retry), qr/^\[staging-1\] \[staging\] \[\*\*\*\] 9$/m,
    'a retry goes to the same environment');
is(live($first)->{deploymentId}, $retry, 'a successful retry is live');
is(live($second), undef, 'the live deployment of another environment does not change');
my $after = $api->get("/api/environments/$first", { 'If-None-Match' => $tag });
is($after->{status}, 200, 'the ETag changes with what is live');
is($api->put("/api/environments/$first", { url => 'https://example.org/' },
    { 'If-Match' => $tag })->{status}, 200,
    'an environment with a live deployment can be changed');
($live) = grep { $_->{id} == $first } @{ $api->get("/api/environments?projectId=$project")->{json}{data} };
is($live->{live}{deploymentId}, $retry, 'a list says what is live');


# --- commits of other branches
my $repo = $runner->repo;
sub git { return (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, @_))[1] =~ s/\s+\z//r }
my $old = git('rev-parse', 'main');
my @author = ('-c', 'user.name=a', '-c', 'user.email=a@example.org');
my $tree = git('rev-parse', 'main^{tree}');
my $new = git(@author, 'commit-tree', '-p', $old, '-m', 'new', $tree);
my $foreign = git(@author, 'commit-tree', '-p', $old, '-m', 'foreign', $tree);
git('update-ref', 'refs/heads/main', $new);
git('update-ref', 'refs/heads/feature', $foreign);
my $guarded = $all->project($repo, projectDir => 'guarded');
my $check = $all->pipeline($guarded, 'echo "at $SLIPWAY_COMMIT"');
my $only = $all->make('/api/environments',
    { projectId => $guarded, name => 'live', branches => ['main'] })->{id};
sub commit { my ($commit) = @_; return $all->wait($all->post(projectId => $guarded, commitHash => $commit)) }
my @how = ([ $new, 'success', 'its newest commit' ], [ $old, 'success', 'an older commit of it' ],
    [ substr($old, 0, 10), 'success', 'the first digits of one' ],
    [ $foreign, 'failed', 'a commit of another branch' ],
    [ substr($foreign, 0, 10), 'failed', 'the first digits of one of another branch' ]);
for my $case (@how) {
	my ($commit, $want, $what) = @$case;
	$end = commit($commit);
	is($end->{status}, $want, "an environment that accepts main: $what: $want") or diag($end->{detail});
	next if $want eq 'success';
	is($end->{reason}, 'checkout_failed', "$what: the checkout fails");
	like($end->{detail}, qr/is not on the branch main, and the environment accepts only/,
	    "$what: the detail says why");
}
is(live($only)->{commitHash}, $old, 'a rejected commit does not become live');
$api->put("/api/environments/$only", { branches => [] });
is(commit($foreign)->{status}, 'success', 'an environment without patterns accepts any commit');
$api->put("/api/environments/$only", { branches => ['main'] });
is(commit($foreign)->{reason}, 'checkout_failed',
    'an environment that accepts main: a commit of another branch fails even if the workspace is at it');
my $bare = $all->make('/api/pipelines', { projectId => $guarded, name => 'bare', checkout => 'none',
	steps => [ { name => 'step', script => 'true' } ] })->{id};
my %bare = (projectId => $guarded, pipelineId => $bare);
my $unchecked = $api->post('/api/deployments', { %bare, commitHash => $foreign });
is(outcome($unchecked), '422 /commitHash',
    'without a checkout, an environment that accepts main rejects every commit of a request');
like($unchecked->{body}, qr/pipeline has no checkout that compares the commit/, 'the error says why');
is($all->wait($all->post(%bare))->{status}, 'success', 'without a commit, the deployment runs');
$api->put("/api/environments/$only", { branches => [] });
my $any = $all->post(%bare, commitHash => $foreign);
is($all->wait($any)->{status}, 'success', 'without patterns, it runs with any commit');
is(outcome($api->post("/api/deployments/$any/retry")), '201', 'a deployment with any commit can be retried');
$api->put("/api/environments/$only", { branches => ['main'] });
$unchecked = $api->post("/api/deployments/$any/retry");
is(outcome($unchecked), '409', 'once the environment accepts only main, such a deployment is not retried');
like($unchecked->{body}, qr/no checkout that compares its commit/, 'the error of the retry says why');

# --- bound to a runner
$api->put("/api/environments/$second", { runner => 'right' });
my $bound = post(environmentId => $second);
my $behind = post(environmentId => $first);
my $other = $all->project($runner->repo, projectDir => 'other');
my $free = $all->post(projectId => $other, pipelineId => $all->pipeline($other, 'true'));
is($all->wait($free)->{status}, 'success',
    'a deployment that is bound to another runner delays no other project');
my $now;
ok(poll(30, sub { $now = $all->show($bound)->{waitingFor}; return @$now > 0 }),
    'a deployment bound to a missing runner says why it waits');
is($now->[0]{reason}, 'no_runner', 'the reason is no_runner');
like($now->[0]{detail}, qr/environment production is bound to the runner right/,
    'the detail names the environment and the runner');
is($all->wait($behind)->{status}, 'success', 'a deployment to another environment of the project passes it');
is($all->show($bound)->{status}, 'pending',
    'a deployment bound to a missing runner is not claimed by another one');
$api->put("/api/environments/$second", { runner => 'left' });
is($all->wait($bound)->{status}, 'success',
    'a runner claims the deployment when the environment is bound to that runner');
is(live($second)->{deploymentId}, $bound, 'the deployment is live');

ok($all->is_clean, 'the jobs leave nothing');
done_testing;
