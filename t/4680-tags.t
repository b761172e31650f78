#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Tags: a deployment of one, by hand or by a push, which environments accept it,
# and what the Git server lists.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(ann => { id => 7 });
my $repo = $forge->repo('team/site', users => ['ann']);
my $conf = $forge->conf(token => scalar $forge->token('ann'));
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\npoll = 60\nslots = 2\n");
my $api = $all->api;

# Commits a version and tags it, with a tag object if there is a message.
my %hash;
sub release {
	my ($tag, $message) = @_;
	$hash{$tag} = $repo->commit('main', { version => "$tag\n" }, "release $tag");
	$repo->git('tag', '-f', defined $message ? ('-a', '-m', $message) : (), $tag);
	$repo->git('push', '-q', '-f', 'bare', "refs/tags/$tag");
	return $hash{$tag};
}
release('v1.9');
release('v1.10', 'the tenth');
release('rc/1');
my $head = $repo->commit('main', { version => "head\n" }, 'more');

sub slipway {
	my ($address, %more) = @_;
	my $project = $all->project($address);
	my $script = 'echo "ran [${SLIPWAY_TAG-none}] [$SLIPWAY_BRANCH] [$SLIPWAY_COMMIT]"; cat version || :';
	my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p', %more,
		steps => [ { name => 's', script => $script } ] })->{json}{id};
	return ($project, $pipeline);
}
sub deploy { my (%body) = @_; return $api->post('/api/deployments', \%body) }

for my $case ([ 'over HTTPS' => $repo->clone_url ], [ 'local path' => $repo->dir ]) {
	my ($how, $address) = @$case;
	my ($project) = slipway($address);
	my $got = $api->get("/api/git/tags?projectId=$project&limit=2");
	is($got->{status}, 200, "$how: tags are listed") or diag($got->{body});
	is_deeply($got->{json}, { data => [ map { { name => $_, commitHash => $hash{$_} } } qw(v1.10 v1.9) ],
		pagination => { page => 1, limit => 2, hasMore => Cpanel::JSON::XS::true() } },
	    "$how: higher versions come first, with the commits of annotated tags");
	is_deeply([ map { $_->{name} } @{ $api->get("/api/git/tags?projectId=$project&limit=2&page=2")
		->{json}{data} } ], ['rc/1'], "$how: the second page has the rest");
	for my $tag (sort keys %hash) {
		$got = deploy(projectId => $project, tag => $tag);
		is($got->{status}, 201, "$how: the tag $tag is deployed") or diag($got->{body});
		is_deeply([ @{ $got->{json} }{qw(tag branch commitHash)} ], [ $tag, undef, undef ],
		    "$how: the new deployment has the tag $tag and no branch");
		my $end = $all->wait($got->{json}{id});
		is("$end->{status} $end->{tag} $end->{commitHash}", "success $tag $hash{$tag}",
		    "$how: the commit of the tag $tag was checked out") or diag($all->log($end->{id}));
		like($all->log($end->{id}), qr/^ran \[\Q$tag\E\] \[\] \[$hash{$tag}\]\n\Q$tag\E$/m,
		    "$how: the steps see the tag $tag, no branch, and its files");
		next if $tag ne 'v1.10';
		my $again = $api->post("/api/deployments/$end->{id}/retry")->{json};
		is($again->{tag}, $tag, "$how: a retry has the tag");
		is($all->wait($again->{id})->{commitHash}, $hash{$tag}, "$how: a retry deploys its commit");
	}
	my $end = $all->wait(deploy(projectId => $project, branch => 'main')->{json}{id});
	is("$end->{status} $end->{commitHash}", "success $head", "$how: a branch is deployed after a tag");
	like($all->log($end->{id}), qr/^ran \[none\] \[main\]/m, "$how: its steps see no tag");
	my $unknown = deploy(projectId => $project, tag => 'v9');
	$end = $all->wait($unknown->{json}{id}) if $unknown->{status} == 201;
	is($unknown->{status} == 201 ? "$end->{status} $end->{reason}" : outcome($unknown),
	    $how eq 'over HTTPS' ? '422 /tag' : 'failed checkout_failed',
	    "$how: an unknown tag is rejected where the server can tell, or fails at the checkout");
}

# --- environments
my ($project, $pipeline) = slipway($repo->clone_url);
my $production = $all->make('/api/environments', { projectId => $project, name => 'production',
	branches => ['main'], tags => ['v*'] })->{id};
for my $case (
	[ { tag => 'rc/1' }, '/tag', 'a tag that the environment does not accept' ],
	[ { tag => 'v1.9', branch => 'main' }, '/tag', 'a tag with a branch' ],
	[ { tag => 'a b' }, '/tag', 'a tag with a blank' ],
	[ { tag => '-v1' }, '/tag', 'a tag with a leading dash' ],
	[ { tag => '' }, '/tag', 'an empty tag' ],
	[ { tag => 5 }, '/tag', 'a number for a tag' ],
	[ { branch => 'v1.9' }, '/branch', 'the name of an accepted tag as a branch' ],
) {
	my ($body, $want, $name) = @$case;
	is(outcome(deploy(projectId => $project, %$body)), "422 $want", "$name is rejected");
}
my $end = $all->wait(deploy(projectId => $project, tag => 'v1.9')->{json}{id});
is($end->{status}, 'success', 'a tag that the environment accepts is deployed');
my $live = $api->get("/api/environments/$production")->{json}{live};
is_deeply([ @$live{qw(tag branch)} ], [ 'v1.9', undef ], 'the environment shows the live tag');
is($api->get('/api/board')->{json}{data}[-1]{environments}[0]{live}{tag}, 'v1.9',
    'the board shows the tag, too');
is(outcome(deploy(projectId => $project, tag => 'v1.9', commitHash => $head)), '422 /commitHash',
    'a tag does not open the environment to every commit');
$end = $all->wait(deploy(projectId => $project, tag => 'v1.9', commitHash => $hash{'v1.9'})->{json}{id});
is($end->{status}, 'success', 'the commit of a tag can be sent with it');
$end = $all->wait(deploy(projectId => $project, tag => 'v1.10', commitHash => $hash{'v1.9'})->{json}{id});
is("$end->{status} $end->{reason}", 'failed checkout_failed',
    'a tag does not open the environment to a commit before it');
$api->put("/api/environments/$production", { tags => [] });
is(outcome(deploy(projectId => $project, tag => 'v1.9')), '422 /tag',
    'an environment with patterns for branches alone accepts no tag');
$api->put("/api/environments/$production", { branches => [], tags => ['v*'] });
is(outcome(deploy(projectId => $project, branch => 'main')), '422 /branch',
    'one with patterns for tags alone accepts no branch');
$api->put("/api/environments/$production", { branches => ['main'] });
my $rolled = $api->post("/api/environments/$production/rollback",
    { deploymentId => $live->{deploymentId} })->{json};
is($rolled->{tag}, 'v1.9', 'a rollback has the tag');
is($all->wait($rolled->{id})->{status}, 'success', 'a rollback to a tag succeeds');

# --- approval is given for the commit of the tag
$api->put("/api/environments/$production", { approval => 'required' });
my $waits = deploy(projectId => $project, tag => 'v1.10')->{json};
is("$waits->{approval} $waits->{commitHash}", "required $hash{'v1.10'}",
    'approval fixes the commit of a tag');
my $got = deploy(projectId => $project, tag => 'v7');
is(outcome($got), '422 /tag', 'an unknown tag cannot wait for approval');
$api->put("/api/environments/$production", { approval => 'none', tags => ['w*'] });
is($api->as('maintainer')->post("/api/deployments/$waits->{id}/approve", {})->{status}, 409,
    'a deployment whose tag is no longer accepted is not approved');
$api->post("/api/deployments/$waits->{id}/cancel", {});
$api->put("/api/environments/$production", { tags => ['v*'] });

# --- triggers
sub set_triggers {
	my @triggers = map { { pipelineId => $pipeline, %$_ } } @_;
	return $api->put("/api/projects/$project", { triggers => \@triggers });
}
for my $case (
	[ {}, '/triggers/0/branch', 'a trigger without a branch or tag' ],
	[ { branch => 'main', tag => 'v*' }, '/triggers/0/tag', 'a trigger with a branch and a tag' ],
	[ { tag => '-v' }, '/triggers/0/tag', 'a trigger with a leading dash' ],
	[ { tag => '' }, '/triggers/0/tag', 'a trigger with an empty tag' ],
	[ { tag => [] }, '/triggers/0/tag', 'a trigger with a list of tags' ],
) {
	my ($trigger, $want, $name) = @$case;
	is(outcome(set_triggers($trigger)), "422 $want", "$name is rejected");
}
$got = set_triggers({ tag => 'v*', branch => undef });
is_deeply($got->{json}{triggers}[0]{tag}, 'v*', 'a trigger for tags is stored') or diag($got->{body});
ok(!exists $got->{json}{triggers}[0]{branch}, 'a trigger for tags has no branch');
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
sub deliver {
	my ($kind, $tag, $commit, %body) = @_;
	my ($headers, $text) = push_event($kind, $secret, path => 'team/site', repo_id => $repo->id,
	    ref => "refs/tags/$tag", commit => $commit, body => \%body,
	    $kind =~ /gitlab/ ? (event => 'Tag Push Hook') : ());
	return $api->as('none')->post("/api/hooks/$project", $text, $headers);
}
for my $kind (@HOOK_KINDS) {
	my $tag = "v2-$kind";
	my $commit = release($tag, 'annotated');
	my $object = $repo->git('rev-parse', $tag) =~ s/\n//r;
	$got = deliver($kind, $tag, $commit, after => $object);
	is($got->{status}, 202, "$kind: the push of a tag is accepted") or diag($got->{body});
	is_deeply([ @{ $got->{json}{data}[0] }{qw(tag branch commitHash)} ], [ $tag, undef, $commit ],
	    "$kind: the deployment has the tag and the commit of the annotated tag");
	$end = $all->wait($got->{json}{data}[0]{id});
	is("$end->{status} $end->{trigger} $end->{commitHash}", "success webhook $commit",
	    "$kind: a pushed tag is deployed") or diag($all->log($end->{id}));
}
is(deliver('gitea', 'rc/1', $hash{'rc/1'})->{status}, 204, 'a tag that no trigger matches starts nothing');
is(deliver('gitea', 'v1.9', '0' x 40)->{status}, 204, 'a deleted tag starts nothing');
is(deliver('gitea', "v1\t9", $hash{'v1.9'})->{status}, 400, 'a tag with a control character is rejected');
$end = $all->wait(deliver('gitea', 'v1.9', $hash{'rc/1'})->{json}{data}[0]{id});
is("$end->{status} $end->{reason}", 'canceled superseded',
    'a tag that has moved since the event is superseded');
like($end->{detail}, qr/^The tag v1\.9 is now at commit $hash{'v1.9'}, not at $hash{'rc\/1'} /,
    'the detail names the tag and its commit');
$got = deliver('gitea', 'v1.10', $hash{'v1.10'}, head_commit => undef);
is($got->{json}{data}[0]{commitHash}, undef,
    'an event that names only the tag object leaves the commit open');
$end = $all->wait($got->{json}{data}[0]{id});
is("$end->{status} $end->{commitHash}", "success $hash{'v1.10'}", 'the checkout finds the commit of the tag');
set_triggers({ branch => 'v*' });
is(deliver('github', 'v1.9', $hash{'v1.9'})->{status}, 204, 'a trigger for branches ignores tags');

# --- no checkout
($project, $pipeline) = slipway($repo->clone_url, checkout => 'none');
set_triggers({ tag => '**' });
$secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$end = $all->wait(deliver('gitea', 'v1.10', $hash{'v1.10'})->{json}{data}[0]{id});
is($end->{status}, 'success', 'a tag is deployed without a checkout') or diag($all->log($end->{id}));
like($all->log($end->{id}), qr/^ran \[v1\.10\] \[\] \[$hash{'v1.10'}\]/m,
    'steps without a checkout see tag and commit');
$end = $all->wait(deliver('gitea', 'v1.9', $hash{'rc/1'})->{json}{data}[0]{id});
is($end->{reason}, 'superseded', 'without a checkout, a moved tag is superseded, too');
is($api->as('none')->get("/api/git/tags?projectId=$project")->{status}, 401, 'listing tags requires a role');
is($api->get('/api/git/tags?projectId=99999')->{status}, 404, 'an unknown project has no tags');
$_->stop for $api, $all->runner, $all->db;
done_testing;
