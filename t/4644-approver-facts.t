#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What an approver is shown about branch and commit is read from the repository: made-up
# commits, messages and branches are rejected or not shown.

use strict;
use warnings;
use Slipway::API qw(bearer outcome);
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('bot');
my $all = Slipway::Whole->start(api => $forge->conf(token => scalar $forge->token('bot')),
    runner => $forge->conf(token => scalar $forge->token('bot')) . "[runner]\npoll = 60\n");
my ($api, $db) = ($all->api, $all->db);
my $as = bearer($api->new_token('deployer', 'dan'));

my $repo = $forge->repo('team/site', private => 1, users => ['bot']);
my $first = $repo->commit('main', { file => "1\n" }, 'the first commit');
my $second = $repo->commit('main', { file => "2\n" }, 'the second commit');
my $feature = $repo->commit('feature', { file => "3\n" }, 'delete everything');
$repo->tag('v1', $first);

my $project = $all->project($repo->clone_url);
my $pipeline = $all->pipeline($project, 'cat file');
my $restart = $all->pipeline($project, { pipeline => { checkout => 'none' } }, 'true');
my ($staging, $production) = map {
	$all->make('/api/environments', { projectId => $project, name => $_->[0], approval => $_->[1] })->{id}
} ['staging', 'none'], ['production', 'required'];

sub order {
	my (%body) = @_;
	return $api->post('/api/deployments', { projectId => $project, pipelineId => $pipeline,
		environmentId => $production, %body }, $as);
}
sub shown {
	my ($got) = @_;
	return "$got->{status} $got->{body}" if $got->{status} != 201;
	return join ' ', map { $got->{json}{$_} // '-' } qw(approval branch commitHash commitMessage);
}

# --- what the Git server can tell
my @lie = (commitMessage => 'Fix a typo');
for my $place ([ 'an environment with approval', $production ], [ 'one without', $staging ]) {
	my ($name, @to) = ($place->[0], environmentId => $place->[1]);
	is(outcome(order(@to, branch => 'main', commitHash => $feature, @lie)), '422 /commitHash',
	    "$name: a commit of another branch is rejected");
	is(outcome(order(@to, branch => 'main', commitHash => '1' x 40)), '422 /commitHash',
	    "$name: an unknown commit is rejected");
	is(order(@to, tag => 'v1', commitHash => $first)->{status}, 201,
	    "$name: the commit of a tag is accepted");
	is(outcome(order(@to, branch => 'nothing')), '422 /branch', "$name: an unknown branch is rejected");
	is(outcome(order(@to, branch => 'nothing', commitHash => $first)), '422 /branch',
	    "$name: an unknown branch with a commit is rejected");
	is(outcome(order(@to, tag => 'v2')), '422 /tag', "$name: an unknown tag is rejected");
	my $part = uc substr $feature, 0, 12;
	is(order(@to, branch => 'feature', commitHash => $part)->{json}{commitHash}, $feature,
	    "$name: a part of a hash becomes the whole hash");
}
is(outcome(order(commitHash => $feature, @lie)), '422 /commitHash',
    'an approver is not shown a default branch that does not have the commit');
is(shown(order(branch => 'main', commitHash => $first, @lie)),
    "required main $first the first commit",
    "an approver sees the commit's own message");
is(shown(order(@lie)), "required main $second the second commit",
    'also that of the newest commit');
is(shown(order(pipelineId => $restart, branch => 'main', commitHash => $first, @lie)),
    "required main $first the first commit", 'also without a checkout');

# --- tags
my $third = $repo->commit('main', { file => "4\n" }, 'the third commit');
$repo->tag('v2', $second);
for my $tag (['v1', $second], ['v1', $feature], ['v2', $third], ['v2', '1' x 40]) {
	is(outcome(order(tag => $tag->[0], commitHash => $tag->[1])), '422 /commitHash',
	    "a commit that tag $tag->[0] does not have is rejected");
}
is(shown(order(tag => 'v2', commitHash => $first, @lie)), "required - $first the first commit",
    'a commit before a tag is accepted');

# --- a history that is too long to read
my $tip = $third;
for my $n (1 .. 310) {
	chomp($tip = $repo->git('commit-tree', '-p', $tip, '-m', "change $n", "$tip^{tree}"));
}
$repo->branch('long', $tip);
is(shown(order(branch => 'long', commitHash => uc $first, @lie)),
    "required long $first the first commit", 'a commit far back on a branch is confirmed');
is(outcome(order(branch => 'long', commitHash => $feature)), '422 /commitHash',
    'a commit that a long branch does not have is rejected');
is(shown(order(branch => 'long', commitHash => uc(substr $first, 0, 9), @lie)),
    "required long $first the first commit", 'also by a part of its hash');
is(outcome(order(branch => 'long', commitHash => substr $feature, 0, 9)), '422 /commitHash',
    'a part of the hash of a commit that a long branch does not have is rejected');
$forge->store->change(sub { $_[0]{no_not} = 1 });
is(shown(order(branch => 'long', commitHash => $first, @lie)), "required long $first -",
    'a server that cannot compare does not reject a commit far back');
is(order(branch => 'long', commitHash => $feature)->{status}, 201,
    'nor one that is not there: the job decides');
$forge->store->change(sub { $_[0]{no_not} = 0 });

# --- pushes: whoever knows the secret can sign any message
$api->put("/api/projects/$project", { triggers => [{ branch => 'main', pipelineId => $pipeline,
	environmentId => $production }] });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my ($headers, $body) = push_event('gitea', $secret, path => 'team/site', repo_id => $repo->id,
    commit => $second, body => { head_commit => { id => $second, message => 'Fix a typo' } });
my $pushed = $api->as('none')->post("/api/hooks/$project", $body, $headers)->{json}{data}[0];
isnt($all->show($pushed->{id})->{commitMessage}, 'Fix a typo',
    'the message of an event is not shown as fact');

# --- a Git server that does not respond
$forge->stop_nginx;
is(shown(order(branch => 'main', commitHash => $feature, @lie)), "required main $feature -",
    'without the server, a deployment is created, and its message is not shown');
my $got = order(pipelineId => $restart, branch => 'main', commitHash => $feature, @lie);
is(outcome($got), '422 /commitHash', 'unless no checkout would compare the commit');
$got = order(environmentId => $staging, pipelineId => $restart, branch => 'main', commitHash => $feature,
    @lie);
is($got->{status}, 201, 'without approval it is created') or diag($got->{body});
my $end = $all->wait($got->{json}{id});
is($end->{status}, 'success', 'and runs');
$got = $api->post("/api/deployments/$end->{id}/promote", { environmentId => $production }, $as);
is(shown($got), "required main $feature -", 'a promotion to approval does not show its message');
done_testing;
