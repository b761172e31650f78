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

# --- pushes: whoever knows the secret can sign any message, and any commit of the repository
$api->put("/api/projects/$project", { triggers => [
	map { { $_ => '*', pipelineId => $pipeline, environmentId => $production } } 'branch', 'tag' ] });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
sub push_of {
	my ($commit, %o) = @_;
	my ($headers, $body) = push_event('gitea', $secret, path => 'team/site', repo_id => $repo->id,
	    commit => $commit, %o, body => { head_commit => { id => $commit, message => 'Fix a typo' } });
	my $got = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	return $got->{json}{data}[0]{id} // die "push: $got->{status} $got->{body}";
}
# What an approver is shown, when it is so.
sub shown_of {
	my ($id, $want, $name) = @_;
	my $is = '';
	poll(20, sub {
		my $d = $all->show($id);
		$is = join ' ', map { $_ // '-' } @$d{qw(approval branch tag commitHash commitMessage)},
		    $d->{commitRead} ? 'read' : 'unread';
		return $is eq $want;
	});
	return is($is, $want, $name);
}
my @pushed = (push_of($tip, ref => 'refs/heads/long'), push_of($second, ref => 'refs/tags/v2'),
    push_of($feature, ref => 'refs/heads/main'));
shown_of($pushed[0], "required long - $tip change 310 read", 'a push to a branch: its commit is read');
shown_of($pushed[1], "required - v2 $second the second commit read", 'a push of a tag: its commit is read');
my $looked = qr/deployment $pushed[2] waits for approval: .*does not confirm/;
ok(poll(20, sub { $all->runner->said =~ $looked }),
    'the runner has looked at the push of a commit of another branch');
shown_of($pushed[2], "required main - $feature - unread", 'an approver sees that it was not confirmed');
like($all->show($pushed[2])->{waitingFor}[0]{detail}, qr/has not confirmed that the branch or tag has this/,
    'the reason for which it waits says so');
unlike($all->show($pushed[0])->{waitingFor}[0]{detail}, qr/confirmed/, 'not if it was confirmed');
my $maker = $db->sql("SELECT read_by FROM deployment WHERE id = $pushed[0]");
$db->sql("UPDATE user SET status = 'inactive' WHERE id = $maker");
my $left = push_of($repo->tip('main'), ref => 'refs/heads/main');
poll(60, sub { $all->runner->said =~ /deployment $left waits for approval/ }) or fail('nobody looked');
$db->sql("UPDATE user SET status = 'active' WHERE id = $maker");
shown_of($left, "required main - @{[$repo->tip('main')]} - unread",
    'the access of a user who has left is not used');

# --- a Git server that does not respond
$forge->stop_nginx;
is(shown(order(branch => 'main', commitHash => $feature, @lie)), "required main $feature -",
    'without the server, a deployment is created, and its message is not shown');
my $later = order(branch => 'main', commitHash => $first, @lie)->{json}{id};
my $got = order(pipelineId => $restart, branch => 'main', commitHash => $feature, @lie);
is(outcome($got), '422 /commitHash', 'unless no checkout would compare the commit');
$got = order(environmentId => $staging, pipelineId => $restart, branch => 'main', commitHash => $feature,
    @lie);
is($got->{status}, 201, 'without approval it is created') or diag($got->{body});
my $end = $all->wait($got->{json}{id});
is($end->{status}, 'success', 'and runs');
$got = $api->post("/api/deployments/$end->{id}/promote", { environmentId => $production }, $as);
is(shown($got), "required main $feature -", 'a promotion to approval does not show its message');
$forge->start_nginx;
shown_of($later, "required main - $first the first commit read", 'the commit is read later');

# --- GitLab and GitHub say in another way whether a branch has a commit
for my $type (qw(gitlab github)) {
	my $server = Slipway::Forge->start(type => $type);
	$server->user('bot');
	my $token = $server->token('bot');
	my $here = Slipway::Whole->start(api => $server->conf(token => $token),
	    runner => $server->conf(token => $token) . "[runner]\npoll = 60\n");
	my $site = $server->repo('team/site', private => 1, users => ['bot']);
	my $old = $site->commit('main', { file => "1\n" }, 'the old commit');
	my $beside = $site->commit('beside', { file => "2\n" }, 'beside');
	my $end = $old;
	for my $n (1 .. 310) {
		chomp($end = $site->git('commit-tree', '-p', $end, '-m', "change $n", "$end^{tree}"));
	}
	$site->branch('long', $end);
	my $p = $here->project($site->clone_url);
	my $l = $here->pipeline($p, 'cat file');
	my $live = $here->make('/api/environments', { projectId => $p, name => 'live',
		approval => 'required' })->{id};
	my %to = (projectId => $p, pipelineId => $l, environmentId => $live, branch => 'long');
	for my $length (40, 9) {
		my ($good, $bad) = map {
			$here->api->post('/api/deployments', { %to, commitHash => substr($_, 0, $length) })
		} $old, $beside;
		is(shown($good), "required long $old the old commit",
		    "$type: $length digits of a commit far back");
		is(outcome($bad), '422 /commitHash',
		    "$type: $length digits of a commit that the branch does not have");
	}
	$here->api->put("/api/projects/$p", { triggers => [{ branch => '*', pipelineId => $l,
		environmentId => $live }] });
	my $key = $here->api->put("/api/projects/$p/hook-secret")->{json}{secret};
	my ($headers, $body) = push_event($type, $key, path => 'team/site', repo_id => $site->id,
	    commit => $old, branch => 'long', message => 'Fix a typo');
	my $id = $here->api->as('none')->post("/api/hooks/$p", $body, $headers)->{json}{data}[0]{id};
	ok(poll(20, sub { $here->show($id)->{commitRead} }), "$type: the commit of a push is read");
	is($here->show($id)->{commitMessage}, 'the old commit', "$type: its message is the commit's own");
	is_deeply([$server->complaints], [], "$type: the Git server received only valid requests");
}
done_testing;
