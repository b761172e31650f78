#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Statuses on commits through the whole: what a client of the API does, the Git
# server is told, from the first moment on.

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
my $conf = $forge->conf(token => scalar $forge->token('robot')) . "[api]\nurl = https://deploy.example.org/\n";
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\npoll = 60\n");
my $gate = tempdir() . '/gate';
my $project = $all->project($repo->clone_url);
my $pipeline = $all->pipeline($project, { name => 'wait', script => "until test -e $gate; do sleep 0.05; done" });
my %of = (projectId => $project, pipelineId => $pipeline, branch => 'main');
sub told { my ($hash) = @_; return join ' ', map { $_->{state} } $forge->statuses($hash) }
sub becomes { my ($hash, $what) = @_; poll(15, sub { told($hash) eq $what }); return told($hash) }

# --- one that waits behind another
my $began = time;
my $runs = $all->post(%of);
is(becomes($second, 'running'), 'running', 'one whose commit was not known is told when it runs');
cmp_ok(time - $began, '<', deadline(45), 'at once, though the queue is looked at once a minute');
my $waits = $all->post(%of, commitHash => $first);
is(becomes($first, 'pending'), 'pending', 'one whose commit is known is told while it waits');
my ($status) = $forge->statuses($first);
is($status->{target_url}, "https://deploy.example.org/api/deployments/$waits/log", 'with a link to it');
is($status->{description}, 'The deployment waits for a runner.', 'and a sentence');

# --- what a client does with it
is($all->api->post("/api/deployments/$waits/cancel", {})->{status}, 200, 'it is canceled');
is(becomes($first, 'pending canceled'), 'pending canceled', 'which is told');
my $again = $all->api->post("/api/deployments/$waits/retry", {})->{json}{id};
is(becomes($first, 'pending canceled pending'), 'pending canceled pending', 'a retry waits again');
spew($gate, '');
is($all->wait($runs)->{status}, 'success', 'the first ends');
is(becomes($second, 'running success'), 'running success', 'which is told');
is($all->wait($again)->{status}, 'success', 'the retry runs');
# that it runs is told only if there is time
my $ended = qr/^pending canceled pending (?:running )?success$/;
ok(poll(15, sub { told($first) =~ $ended }), 'and is told to its end') or diag(told($first));

# --- what does not come about is not told
is($all->api->post('/api/deployments', { %of, branch => '../evil' })->{status}, 422, 'a deployment that is refused');
my $short = $all->post(%of, commitHash => substr($first, 0, 10));
is($all->wait($short)->{status}, 'success', 'one by the first digits of a commit');
ok(poll(15, sub { told($first) =~ /^pending canceled pending (?:running )?success (?:running )?success$/ }), 'is told when the commit is known')
    or diag(told($first));
is($all->db->sql('SELECT COUNT(*) FROM commit_status'), 4, 'one row for each deployment');

# --- what waits when its project is deleted
unlink $gate or die "$gate: $!";
my $third = $repo->commit('main', { file => "three\n" }, 'third');
my $last = $all->post(%of, commitHash => $second);
ok(poll(15, sub { $all->api->get("/api/deployments/$last")->{json}{status} eq 'running' }), 'one runs');
my $left = $all->post(%of, commitHash => $third);
is(becomes($third, 'pending'), 'pending', 'another waits');
is($all->api->delete("/api/projects/$project")->{status}, 204, 'its project is deleted');
is(becomes($third, 'pending canceled'), 'pending canceled', 'which is told as well');
is($all->api->get("/api/deployments/$left")->{json}{reason}, 'project_deleted', 'as it is');
spew($gate, '');
ok(poll(15, sub { told($second) =~ /success$/ && $all->api->get("/api/deployments/$last")->{json}{status} eq 'success' }),
    'what ran is told to its end') or diag(told($second));
is_deeply([$forge->complaints], [], 'nothing was sent that the server would not take');
done_testing;
