#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Commit statuses from end to end: what a client of the API does is reported to the
# Git server from the start.

use strict;
use warnings;
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(time);

my $forge = Slipway::Forge->start(type => 'gitlab');
$forge->user('robot', { id => 9 });
my $repo = $forge->repo('group/sub/site', private => 1, users => ['robot']);
my $first = $repo->commit('main', { file => "one\n" }, 'first');
my $second = $repo->commit('main', { file => "two\n" }, 'second');
my $conf = $forge->conf(token => scalar $forge->token('robot'))
    . "[api]\nurl = https://deploy.example.org/\n";
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\npoll = 60\n");
my $gate = tempdir() . '/gate';
my $project = $all->project($repo->clone_url);
my $pipeline = $all->pipeline($project,
    { name => 'wait', script => "until test -e $gate; do sleep 0.1; done" });
my %of = (projectId => $project, pipelineId => $pipeline, branch => 'main');
sub states { my ($hash) = @_; return join ' ', map { $_->{state} } $forge->statuses($hash) }
sub becomes { my ($hash, $what) = @_; poll(15, sub { states($hash) eq $what }); return states($hash) }

# --- a pending deployment behind a running one
my $began = stopwatch();
my $runs = $all->post(%of);
is(becomes($second, 'running'), 'running', 'a deployment of a branch is reported when it runs');
cmp_ok($began->(), '<', deadline(45), 'a running deployment is reported before the next poll');
my $waits = $all->post(%of, commitHash => $first);
is(becomes($first, 'pending'), 'pending', 'a deployment of a commit is reported while it is pending');
my ($status) = $forge->statuses($first);
is($status->{target_url}, "https://deploy.example.org/slipway/deployments/$waits",
    'the status has a link to the deployment');
is($status->{description}, 'The deployment is waiting to start.', 'the status has a description');

# --- cancel and retry
is($all->api->post("/api/deployments/$waits/cancel", {})->{status}, 200, 'a pending deployment is canceled');
is(becomes($first, 'pending canceled'), 'pending canceled', 'the canceled deployment is reported');
my $again = $all->api->post("/api/deployments/$waits/retry", {})->{json}{id};
is(becomes($first, 'pending canceled pending'), 'pending canceled pending', 'the pending retry is reported');
spew($gate, '');
is($all->wait($runs)->{status}, 'success', 'the running deployment succeeds');
is(becomes($second, 'running success'), 'running success', 'the successful deployment is reported');
is($all->wait($again)->{status}, 'success', 'the retry succeeds');
# the running state is reported only if there is time
my $ended = qr/^pending canceled pending (?:running )?success$/;
ok(poll(15, sub { states($first) =~ $ended }), 'the retry is reported') or diag(states($first));

# --- rejected requests and abbreviated commits
is($all->api->post('/api/deployments', { %of, branch => '../evil' })->{status}, 422,
    'a deployment of an invalid branch is rejected');
my $short = $all->post(%of, commitHash => substr($first, 0, 10));
is($all->wait($short)->{status}, 'success', 'a deployment of an abbreviated commit succeeds');
# so is the pending state: the API found the whole hash
my $twice = qr{^pending canceled pending (?:running )?success (?:pending )?(?:running )?success$};
ok(poll(15, sub { states($first) =~ $twice }), 'a deployment of an abbreviated commit is reported')
    or diag(states($first));
is($all->db->sql('SELECT COUNT(*) FROM commit_status'), 4, 'each deployment has one row');

# --- deletion of the project
unlink $gate or die "$gate: $!";
my $third = $repo->commit('main', { file => "three\n" }, 'third');
my $last = $all->post(%of, commitHash => $second);
ok(poll(15, sub { $all->api->get("/api/deployments/$last")->{json}{status} eq 'running' }),
    'a deployment runs');
my $left = $all->post(%of, commitHash => $third);
is(becomes($third, 'pending'), 'pending', 'another deployment is pending');
is($all->api->delete("/api/projects/$project")->{status}, 204, 'the project is deleted');
is(becomes($third, 'pending canceled'), 'pending canceled',
    'a deployment canceled by the deletion is reported');
is($all->api->get("/api/deployments/$left")->{json}{reason}, 'project_deleted',
    'a deployment canceled by the deletion has the reason project_deleted');
spew($gate, '');
ok(poll(15, sub { states($second) =~ /success$/
    && $all->api->get("/api/deployments/$last")->{json}{status} eq 'success' }),
    'the deployment that was running is reported') or diag(states($second));
is_deeply([$forge->complaints], [], 'the server received only valid requests');
done_testing;
