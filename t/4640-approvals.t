#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Approval of deployments: who may approve, what runs then, and what happens if the
# approver, the environment, its rules or the branch change while a deployment waits.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(api => "[gitserver]\ntype = git\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my ($maintainer, $deployer, $viewer) = map { $api->as($_) } qw(maintainer deployer viewer);
my $repo = $runner->repo;
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
my $project = $all->project($repo);
my $go = tempdir() . '/go';
my $pipeline = $all->pipeline($project, 'echo at $SLIPWAY_COMMIT');
my $hold = $all->pipeline($project, "echo up; while test ! -e $go; do sleep 0.1; done");
my ($staging, $production) = map {
	$all->make('/api/environments', { projectId => $project, name => $_ })->{id}
} qw(staging production);
my $rules = "/api/environments/$production";
my $got;
sub git { return (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, @_))[1] =~ s/\s+\z//r }
my $tree = git('rev-parse', 'main^{tree}');
sub commit_on {
	my ($branch) = @_;
	my $commit = git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit-tree', '-p', 'main',
	    '-m', 'new ' . rand, $tree);
	git('update-ref', "refs/heads/$branch", $commit);
	return $commit;
}
sub order {
	my ($as, %body) = @_;
	return $as->post('/api/deployments', { projectId => $project, pipelineId => $pipeline,
		environmentId => $production, %body });
}
# The id of a new deployment, which a deployer starts.
sub ordered {
	my (%body) = @_;
	my $made = order($deployer, %body);
	die "$made->{status} $made->{body}\n" if $made->{status} != 201;
	return $made->{json}{id};
}
sub vote { my ($as, $what, $id, $body) = @_; return $as->post("/api/deployments/$id/$what", $body || {}) }
sub waits { my ($id) = @_; return join ' ', map { $_->{reason} } @{ $all->show($id)->{waitingFor} } }

# --- the rules of an environment
$got = $api->get($rules)->{json};
is($got->{approval}, 'none', 'an environment requires no approval at first');
is_deeply($got->{approvers}, [], 'an environment lists no approvers at first');
is(order($deployer)->{json}{approval}, undef, 'a deployment to it needs no approval');
my %id = map { $_ => $api->as($_)->get('/api/auth/info')->{json}{id} } qw(viewer maintainer);
my $ann = $api->make('/api/user', { username => 'ann', role => 'deployer' })->{id};
my $bob = $api->make('/api/user', { username => 'bob', role => 'deployer' })->{id};
$api->{tokens}{$_} = $api->new_token('deployer', $_) for qw(ann bob);
my ($as_ann, $as_bob) = map { $api->as($_) } qw(ann bob);
for my $case ([ { approval => 'maybe' }, '/approval' ], [ { approval => undef }, '/approval' ],
    [ { approvers => [77777] }, '/approvers/0' ], [ { approvers => ['ann'] }, '/approvers/0' ],
    [ { approvers => [ $ann, $ann ] }, '/approvers/1' ],
    [ { approvers => [ $id{viewer} ] }, '/approvers/0' ]) {
	my ($body, $at) = @$case;
	is(outcome($maintainer->put($rules, $body)), "422 $at", "a wrong rule is rejected at $at");
}
is($deployer->put($rules, { approval => 'none' })->{status}, 403, 'a deployer does not change the rules');
$got = $maintainer->put($rules, { approval => 'required' });
is($got->{json}{approval}, 'required', 'a maintainer requires approval');

# --- a deployment that waits
my $first = git('rev-parse', 'main');
$got = order($deployer);
is($got->{status}, 201, 'a deployment is created') or diag($got->{body});
my $waiting = $got->{json};
is("$waiting->{status} $waiting->{approval} $waiting->{commitHash}", "pending required $first",
    'a new deployment waits for approval of the newest commit');
is_deeply([ map { $_->{reason} } @{ $waiting->{waitingFor} } ], ['approval'],
    'a deployment that waits for approval says so');
is($waiting->{queuePosition}, undef, 'a deployment that waits for approval has no place in the queue');
my $moved = commit_on('main');
my ($step) = map { $_->{id} } @{ $api->get("/api/pipelines/$pipeline")->{json}{steps} };
$api->put("/api/steps/$step", { script => 'echo edited' });
my $behind = ordered(environmentId => $staging);
is($all->wait($behind)->{status}, 'success', 'a later deployment to another environment runs');
is(waits($waiting->{id}), 'approval', 'the deployment still waits');

# --- what the request overrides
my $secret_preset = { key => 'TOKEN', label => 'Token', type => 'input', secret => \1, default => 'stored' };
is($maintainer->put("/api/projects/$project", { envPresets => [ $secret_preset,
	{ key => 'SIZE', label => 'Size', type => 'input', default => 'small' } ] })->{status}, 200,
    'a project has a secret preset');
my %own = (envVars => { TOKEN => 'the value of ann' });
my $sets = ordered(%own);
$got = $api->get("/api/deployments/$sets")->{json};
is_deeply($got->{envVarsSent}, ['TOKEN'], 'an approver sees that a secret preset was overridden');
is_deeply($got->{envVars}, { TOKEN => undef, SIZE => 'small' }, 'but not its value');
is_deeply($all->show(ordered(envVars => { TOKEN => undef }))->{envVarsSent}, [],
    'null, which keeps the stored value, overrides nothing');
is_deeply([ map { $_->{envVarsSent} } grep { $_->{id} == $sets }
    @{ $api->get("/api/deployments?projectId=$project")->{json}{data} } ], [ ['TOKEN'] ],
    'a list of deployments names the keys');
my ($entry) = grep { $_->{action} eq 'createDeployment' && $_->{objectId} == $sets }
    @{ $api->get("/api/audit?projectId=$project")->{json}{data} };
is_deeply([ map { $_->{to} } grep { $_->{name} eq 'envVars' } @{ $entry->{changes} } ], ['TOKEN'],
    'the audit log names the keys');
unlike($api->get("/api/audit?projectId=$project")->{body}, qr/value of ann/, 'and no value');
is($all->show($api->post("/api/deployments/$sets/retry", undef)->{json}{id})->{envVarsSent}[0], 'TOKEN',
    'a retry repeats them, and says so');

# --- users who may approve
my $own = order($maintainer)->{json}{id};
for my $what (qw(approve deny)) {
	for my $case ([ $viewer, 403, 'a viewer' ], [ $deployer, 403, 'the deployer who started it' ],
	    [ $as_ann, 403, 'a deployer who is no approver' ]) {
		my ($as, $status, $who) = @$case;
		is(vote($as, $what, $waiting->{id})->{status}, $status, "$what: $who is rejected");
	}
	$got = vote($maintainer, $what, $own);
	is($got->{status}, 403, "$what: a maintainer who started it is rejected");
	like($got->{json}{detail}, qr/^You started this deployment/, "$what: the error says why");
	is(vote($maintainer, $what, 77777)->{status}, 404, "$what: an unknown deployment returns 404");
	is(vote($maintainer, $what, $behind)->{status}, 409, "$what: one that does not wait returns 409");
	is(outcome(vote($maintainer, $what, $own, { comment => 'x' x 501 })), '422 /comment',
	    "$what: a long comment is rejected");
	is(outcome(vote($maintainer, $what, $own, { why => 'x' })), '422 /why',
	    "$what: an unknown member is rejected");
}
is($all->show($_)->{approval}, 'required', 'rejected requests change nothing') for $own, $waiting->{id};
$got = vote($maintainer, 'approve', $waiting->{id}, { comment => 'looks good' });
is($got->{status}, 200, 'a maintainer approves') or diag($got->{body});
is("@{$got->{json}}{qw(approval approvalBy approvalComment)}", "granted $id{maintainer} looks good",
    'the deployment says who approved it and why');
like($got->{json}{approvalAt}, qr/^20.*Z$/, 'the deployment says when it was approved');
$got = $all->wait($waiting->{id});
is("$got->{status} $got->{commitHash}", "success $first",
    'the approved commit runs, though the branch has moved');
like($all->log($waiting->{id}), qr/^at $first$/m, 'the approved steps run');
is(vote($maintainer, 'approve', $waiting->{id})->{status}, 409,
    'an approved deployment cannot be approved again');
is($maintainer->post("/api/deployments/$own/cancel")->{json}{reason}, 'canceled_by_user',
    'the user who started a waiting deployment can cancel it');

# --- denial
my $bad = ordered();
$got = $maintainer->post("/api/deployments/$bad/deny");
is($got->{status}, 200, 'a denial needs no body');
is("@{$got->{json}}{qw(status reason approval detail)}",
    'canceled approval_denied denied The user t-maintainer denied it.', 'a denied deployment is canceled');
is($all->steps($bad), 'skipped', 'the steps of a denied deployment are skipped');
is(vote($maintainer, 'approve', $bad)->{status}, 409, 'a denied deployment cannot be approved');

# --- commits
is(outcome(order($deployer, commitHash => substr $first, 0, 10)), '422 /commitHash',
    'a part of a hash is rejected, because it names no single commit');
is(order($deployer, commitHash => $first)->{json}{commitHash}, $first, 'a whole hash is accepted');
is(outcome(order($deployer, branch => 'nowhere')), '422 /branch', 'an unknown branch is rejected');
my $count = $db->sql('SELECT COUNT(*) FROM deployment');
rename $repo, "$repo.away";
$got = order($deployer);
is($got->{status}, 502, 'without the repository, the request is rejected');
like($got->{json}{detail}, qr/^The environment requires approval, so the commit must be known now\. \S/,
    'the error says why');
rename "$repo.away", $repo;
is($db->sql('SELECT COUNT(*) FROM deployment'), $count, 'the rejected request creates no deployment');
my $none = $all->pipeline($project, { pipeline => { checkout => 'none' } }, 'true');
is(order($deployer, pipelineId => $none)->{json}{commitHash}, undef,
    'a pipeline without a checkout needs no commit');
my @key = ('/api/deployments', { projectId => $project, pipelineId => $pipeline,
	environmentId => $production }, { 'Idempotency-Key' => 'approval-1' });
is($deployer->post(@key)->{json}{id}, $deployer->post(@key)->{json}{id},
    'with one Idempotency-Key, one deployment waits');

# --- named approvers; one is removed after the approval
$maintainer->put($rules, { approvers => [ $ann, $bob ] });
my ($blocked, $later) = (ordered(environmentId => $staging, pipelineId => $hold), ordered());
ok($all->saw($blocked, qr/^up$/m), 'a deployment runs');
is(vote($maintainer, 'approve', $later)->{status}, 403, 'with named approvers, a maintainer is none');
is(vote($as_ann, 'approve', $later)->{status}, 200, 'a named deployer approves');
is(waits($later), 'project_busy', 'the approved deployment waits for its turn');
is($api->delete("/api/user/$ann")->{status}, 204, 'the approver is removed');
spew($go, '');
is($all->wait($later)->{status}, 'success', 'the approval stays valid');
is($all->show($later)->{approvalBy}, $ann, 'the approval shows the removed user');
my $read = $api->get($rules)->{json};
is($maintainer->put($rules, $read)->{status}, 200,
    'the environment can be sent back with a removed approver');

# --- the rules change
my @closed = map { ordered() } 1 .. 2;
$maintainer->put($rules, { branches => ['release'] });
$got = vote($as_bob, 'approve', $closed[0]);
is($got->{status}, 409, 'a deployment cannot be approved when its branch is no longer accepted');
like($got->{json}{detail}, qr/^The environment production no longer accepts/, 'the error says why');
is(waits($closed[0]), 'approval', 'a deployment that was not approved still waits');
is(vote($as_bob, 'deny', $closed[0])->{status}, 200,
    'a deployment that the environment no longer accepts can be denied');
$maintainer->put($rules, { branches => [] });
is(vote($as_bob, 'approve', $closed[1])->{status}, 200, 'approved once the branch is accepted again');
is($all->wait($closed[1])->{status}, 'success', 'the deployment runs once it is approved');
my @waiting = map { ordered() } 1 .. 2;
$maintainer->put($rules, { approval => 'none', approvers => [$bob] });
is(waits($_), 'approval', 'a deployment still waits when approval is no longer required') for @waiting;
is($all->wait(ordered())->{status}, 'success', 'a new deployment needs no approval');
is(vote($as_bob, 'approve', $waiting[0])->{status}, 200, 'the approvers of now decide');
is($all->wait($waiting[0])->{status}, 'success', 'an approved one runs');
my $undone = order($deployer, branch => 'main')->{json}{id};
$db->sql("UPDATE deployment SET status = 'failed', commit_hash = NULL WHERE id = $undone")
    if $all->wait($undone);
$maintainer->put($rules, { approval => 'required', approvers => [] });
$got = $deployer->post("/api/deployments/$undone/retry");
is($got->{status}, 409, 'a deployment without a commit is not retried where approval is required');
like($got->{json}{detail}, qr/commit of this deployment is not known/, 'the error says why');
$got = $deployer->post("/api/deployments/$waiting[0]/retry")->{json};
is("$got->{approval} $got->{waitingFor}[0]{reason}", 'required approval', 'a retry waits for approval again');

# --- pushes
my $hook = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline,
	environmentId => $production } ] });
my $pushed = commit_on('main');
my ($headers, $body) = push_event(gitea => $hook, branch => 'main', path => $path, commit => $pushed);
$got = $api->as('none')->post("/api/hooks/$project", $body, $headers);
is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
my $push = $got->{json}{data}[0]{id};
is(waits($push), 'approval', 'the deployment of a push waits for approval');
commit_on('main');
is(vote($api, 'approve', $push)->{status}, 200, 'the user who set up the pushes can approve it');
$got = $all->wait($push);
is("$got->{status} $got->{commitHash}", "success $pushed",
    'the approved commit runs, though it is not the newest');

# --- the environment is deleted
my $homeless = ordered();
is($maintainer->delete($rules)->{status}, 204, 'the environment is deleted');
$got = $all->show($homeless);
is("$got->{status} $got->{reason}", 'canceled environment_deleted', 'a deployment that waits is canceled');
is(vote($maintainer, 'approve', $homeless)->{status}, 409, 'a canceled deployment cannot be approved');
done_testing();
