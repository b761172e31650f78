#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Locks of a project, an environment and the service: deployments that users start
# are rejected, those of pushes wait, the newest is kept, and locks expire.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Background;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start;
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $maintainer = $api->as('maintainer');
my $repo = $runner->repo;
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
my $project = $all->project($repo);
my $pipeline = $all->pipeline($project, 'true');
my $got;
sub post { my (%body) = @_; return $api->post('/api/deployments', { projectId => $project, %body }) }
sub environment {
	my ($name) = @_;
	return $all->make('/api/environments', { projectId => $project, name => $name })->{id};
}
sub git { return (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, @_))[1] =~ s/\s+\z//r }
sub unlock { my ($what) = @_; return $maintainer->delete("/api/$what/lock")->{status} }

# --- setting and removing
my $done = post()->{json}{id};
is($all->wait($done)->{status}, 'success', 'a deployment succeeds');
my $lock = "/api/projects/$project/lock";
is($api->get("/api/projects/$project")->{json}{lock}, undef, 'a project has no lock at first');
for my $case ([ {}, '422 /reason' ], [ { reason => '' }, '422 /reason' ],
    [ { reason => 'x' x 501 }, '422 /reason' ],
    [ { reason => "a\nb" }, '422 /reason' ], [ { reason => 'x', until => 'soon' }, '422 /until' ],
    [ { reason => 'x', until => '2020-01-01T00:00:00Z' }, '422 /until' ],
    [ { reason => 'x', by => 'eve' }, '422 /by' ]) {
	my ($body, $want) = @$case;
	my $name = join ' ', map { "$_ " . substr $body->{$_}, 0, 20 } sort keys %$body;
	is(outcome($maintainer->put($lock, $body)), $want, "a lock is rejected: $name");
}
is($api->as('deployer')->put($lock, { reason => 'x' })->{status}, 403, 'a deployer sets no lock');
is($api->put('/api/projects/77777/lock', { reason => 'x' })->{status}, 404, 'an unknown project returns 404');
is($maintainer->put('/api/lock', { reason => 'x' })->{status}, 403, 'a maintainer does not lock the service');
is($maintainer->delete($lock)->{status}, 404, 'a lock that is not set returns 404');
$got = $maintainer->put($lock, { reason => 'incident 7', until => '2100-01-01T00:00:00Z' });
is($got->{status}, 200, 'a maintainer locks a project') or diag($got->{body});
my $is = $got->{json};
is("$is->{reason} $is->{by} $is->{until}", 'incident 7 t-maintainer 2100-01-01T00:00:00.000Z',
    'the lock says why, by whom and until when');
is_deeply($api->get("/api/projects/$project")->{json}{lock}, $is, 'the project shows its lock');
is_deeply($api->get('/api/projects')->{json}{data}[0]{lock}, $is, 'the list of projects shows the lock');
my $sent = $api->put($lock, $is);
is_deeply([ $sent->{status}, $sent->{json}, $sent->{headers}{etag} ], [ 200, $is, $got->{headers}{etag} ],
    'a lock that another user sends back unchanged keeps its owner, its time and its tag');
my $read = $api->get("/api/projects/$project")->{json};
is($api->put("/api/projects/$project", $read)->{status}, 200, 'a locked project can be sent back');

# --- requests that a lock rejects
$got = post();
is(outcome($got), '409', 'a deployment of a locked project is rejected');
is($got->{json}{code}, 'locked', 'the code is locked');
like($got->{json}{detail}, qr/project was locked by t-maintainer at 20.*: incident 7\. .*2100-01-01T00:00:00/,
    'the error says who set the lock, when, why and until when');
is($api->post("/api/deployments/$done/retry")->{json}{code}, 'locked', 'a retry is rejected, too');
my $free = $all->project($runner->repo, projectDir => 'free');
my $id = $all->post(projectId => $free, pipelineId => $all->pipeline($free, 'true'));
is($all->wait($id)->{status}, 'success', 'other projects are not locked');

# --- deployments that wait for a lock
my $hook = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$api->put("/api/projects/$project",
    { triggers => [ map { { branch => $_, pipelineId => $pipeline } } qw(main other) ] });
my ($tree, $head) = (git('rev-parse', 'main^{tree}'), git('rev-parse', 'main'));
sub pushed {
	my ($branch) = @_;
	my $before = git('rev-parse', "refs/heads/$branch") =~ s/^refs.*/0 x 40/er;
	my $commit = git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit-tree',
	    '-p', $before =~ /[^0]/ ? $before : $head, '-m', 'new ' . rand, $tree);
	git('update-ref', "refs/heads/$branch", $commit);
	return arrived($branch, $before, $commit);
}
my $events = 0;
sub arrived {
	my ($branch, $before, $commit) = @_;
	my ($headers, $body) = push_event(gitea => $hook, branch => $branch, path => $path,
	    commit => $commit, body => { before => $before, n => ++$events });
	my $answer = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	is($answer->{status}, 202, "a push to $branch is accepted") or diag($answer->{body});
	return $answer->{json}{data}[0]{id};
}
my ($old, $other, $new) = map { pushed($_) } qw(main other main);
$got = $all->show($old);
is("$got->{status} $got->{reason}", 'canceled superseded',
    'of pushes to one branch, an older one is canceled');
is($all->show($_)->{status}, 'pending', 'the newest push of a branch waits') for $new, $other;
$got = $all->show($new)->{waitingFor}[0];
is("$got->{reason}: $got->{detail}", 'lock: The project is locked by t-maintainer: incident 7',
    'a push to a locked project says what it waits for');
my $probe = $all->post(projectId => $free);
is($all->wait($probe)->{status}, 'success', 'the runner works');
is($all->show($other)->{status}, 'pending', 'a deployment of a locked project does not start');
is(unlock("projects/$project"), 204, 'the lock is removed');
is($all->wait($_)->{status}, 'success', 'the deployments that waited succeed') for $other, $new;
is(outcome(post()), '201', 'users can start deployments again');

# --- a lock that is set after a runner chose the deployment
$maintainer->put($lock, { reason => 'first' });
my $chosen = pushed('main');
my $holder = $db->hold("SELECT id FROM deployment WHERE id = $chosen FOR UPDATE");
is(unlock("projects/$project"), 204, 'the lock is removed');
ok(poll(60, sub { $db->waiting > 0 }), 'a runner is about to claim what waited');
is($maintainer->put($lock, { reason => 'second' })->{status}, 200, 'the project is locked before it does');
$db->let_go($holder);
is($all->wait($all->post(projectId => $free))->{status}, 'success', 'the runner works');
is($all->show($chosen)->{status}, 'pending', 'the runner has not claimed a deployment that is locked again');
is(unlock("projects/$project"), 204, 'the lock is removed again');
is($all->wait($chosen)->{status}, 'success', 'the deployment runs after the lock is removed');

# --- a long reason
$maintainer->put($lock, { reason => "\x{20ac}" x 150 });
$got = post();
like($got->{json}{detail}, qr/: \x{20ac}{70,}\x{2026}\. Wait until the lock is removed\./,
    'the error shortens a long reason between two characters');
is(unlock("projects/$project"), 204, 'the lock with a long reason is removed');

# --- expiry
$maintainer->put($lock, { reason => 'short', until => '2100-01-01T00:00:00Z' });
my $late = pushed('main');
is(post()->{json}{code}, 'locked', 'the project is locked');
$db->sql('UPDATE deploy_lock SET `until` = NOW(3)');
is($all->wait($late)->{status}, 'success', 'an expired lock delays nothing');
is(outcome(post()), '201', 'an expired lock rejects nothing');
is($api->get("/api/projects/$project")->{json}{lock}, undef, 'an expired lock is not shown');
is($maintainer->delete($lock)->{status}, 404, 'an expired lock cannot be removed');

# --- events in the wrong order
$maintainer->put($lock, { reason => 'late events' });
my $start = git('rev-parse', 'main');
my $newest = pushed('main');
my $delayed = arrived('main', '0' x 40, $start);
is($all->show($newest)->{status}, 'pending', 'an older event that arrives later cancels nothing');
is(unlock("projects/$project"), 204, 'the lock is removed');
is($all->wait($newest)->{status}, 'success', 'the head of the branch is deployed');
$got = $all->wait($delayed);
is("$got->{status} $got->{reason}", 'canceled superseded', 'the older commit is superseded');

# --- a push with two deployments to one place
$api->put("/api/projects/$project", { triggers => [ map { { branch => 'main', pipelineId => $pipeline,
	envVars => { REGION => $_ } } } qw(eu us) ] });
$maintainer->put($lock, { reason => 'twice' });
my $from = pushed('main');
sub made { return $db->sql("SELECT GROUP_CONCAT(status ORDER BY id) FROM deployment WHERE id >= $from") }
is(made(), 'pending,pending', 'deployments of one push do not cancel each other');
my $again = pushed('main');
is(made(), 'canceled,canceled,pending,pending', 'a newer push cancels them all');
is(unlock("projects/$project"), 204, 'the lock is removed');
is($all->wait($_)->{status}, 'success', 'each deployment of the newest push runs') for $again, $again + 1;

# --- approval
my $guarded = $all->make('/api/environments', { projectId => $project, name => 'guarded',
	approval => 'required' })->{id};
$api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline,
	environmentId => $guarded } ] });
$maintainer->put($lock, { reason => 'approval' });
my $asked = pushed('main');
my $granted = pushed('main');
is($all->show($asked)->{reason}, 'superseded', 'a push that waits for approval is superseded');
is($maintainer->post("/api/deployments/$granted/approve")->{status}, 200, 'a push is approved while locked');
my $unasked = pushed('main');
is($all->show($granted)->{status}, 'pending', 'one that was approved is not superseded');
is(unlock("projects/$project"), 204, 'the lock is removed');
is($all->wait($granted)->{status}, 'success', 'the approved one runs after the lock');
is($all->show($unasked)->{waitingFor}[0]{reason}, 'approval', 'the newer one still waits for approval');
is($maintainer->delete("/api/environments/$guarded")->{status}, 204, 'the environment is deleted');

# --- an environment
my ($production, $staging) = map { environment($_) } qw(production staging);
$api->put("/api/projects/$project", { triggers => [ map { { branch => 'main', pipelineId => $pipeline,
	environmentId => $_ } } $production, $staging ] });
$got = $maintainer->put("/api/environments/$production/lock", { reason => 'freeze' });
is($got->{status}, 200, 'an environment is locked');
is_deeply($api->get("/api/environments/$production")->{json}{lock}, $got->{json},
    'a locked environment shows its lock');
is($api->get("/api/environments/$staging")->{json}{lock}, undef,
    'other environments of the project are not locked');
is($api->get("/api/projects/$project")->{json}{lock}, undef,
    'the project of a locked environment is not locked');
$got = post(environmentId => $production);
like($got->{json}{detail}, qr/^The environment was locked by t-maintainer .*freeze/,
    'the error names the environment');
my $first = pushed('main');
my $second = $db->sql("SELECT MIN(id) FROM deployment WHERE environment_id = $staging AND id > $first");
is($all->wait($second)->{status}, 'success', 'a deployment to another environment passes the one that waits');
is($all->show($first)->{status}, 'pending', 'the one to the locked environment waits');
my $staged = post(environmentId => $staging)->{json}{id};
is($all->wait($staged)->{status}, 'success', 'a user can deploy to the other environment');
is(unlock("environments/$production"), 204, 'the lock is removed');
is($all->wait($first)->{status}, 'success', 'the deployment that waited follows');

# --- the service
is($api->get('/api/lock')->{status}, 404, 'the service has no lock');
is($api->put('/api/lock', { reason => 'maintenance' })->{status}, 200, 'an admin locks the service');
is($api->as('viewer')->get('/api/lock')->{json}{reason}, 'maintenance', 'a viewer sees why');
is($api->post('/api/deployments', { projectId => $free })->{json}{code}, 'locked',
    'no project can be deployed');
is($maintainer->delete('/api/lock')->{status}, 403, 'a maintainer does not unlock the service');
is($api->delete('/api/lock')->{status}, 204, 'an admin does');
$holder = $db->hold('INSERT INTO deploy_lock (place, reason, locked_by)'
    . " VALUES ('project 0 environment 0', '', 1)");
my @both = map { my $reason = $_; background(sub {
	delete $api->{http};
	return $api->put('/api/lock', { reason => $reason }, { 'If-None-Match' => '*' })->{status};
}) } qw(one other);
ok(poll(60, sub { $db->waiting >= 2 }), 'two admins lock the service at once');
$db->let_go($holder);
is(join(' ', sort map { $_->result } @both), '200 412', 'one of them does not replace the lock of the other');
is($api->delete('/api/lock')->{status}, 204, 'the lock is removed');
is(outcome($api->post('/api/deployments', { projectId => $free })), '201', 'projects can be deployed again');

# --- deletion
$maintainer->put($lock, { reason => 'x' });
$maintainer->put("/api/environments/$staging/lock", { reason => 'x' });
$api->delete("/api/projects/$project");
is($db->sql('SELECT COUNT(*) FROM deploy_lock'), 0, 'locks of a deleted project are removed');

ok($all->is_clean, 'the jobs leave nothing');
done_testing;
