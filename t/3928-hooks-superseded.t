#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A push event for a commit that is no longer at the head of its branch deploys
# nothing, whenever and in whatever order events arrive; a user still can deploy
# that commit.  A test delivery deploys nothing.

use strict;
use warnings;
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
my @hash = map { $repo->commit('main', { version => "$_\n" }, "number $_") } 0 .. 3;

# The last step that ran prints the live version.
sub slipway {
	my ($address, %more) = @_;
	my $project = $all->project($address);
	my $live = $more{checkout} ? '$SLIPWAY_COMMIT' : '$(cat version)';
	my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p', %more, steps => [
		{ name => 'live', script => qq(echo "live $live") },
		{ name => 'after', script => 'echo cleanup', runWhen => 'always' } ] })->{json}{id};
	is($api->put("/api/projects/$project",
	    { triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => {} } ] })->{status},
	    200, 'a trigger is stored');
	return ($project, $api->put("/api/projects/$project/hook-secret")->{json}{secret});
}
my $number = 0;
sub deliver {
	my ($project, $secret, $hash, %o) = @_;
	my ($headers, $body) = push_event($o{kind} || 'gitea', $secret, path => $o{path} || 'team/site',
	    repo_id => $repo->id, commit => $hash,
		body => { n => ++$number, %{ $o{body} || {} } });
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
sub ended {
	my ($got) = @_;
	is($got->{status}, 202, 'a push event is accepted') or diag($got->{body});
	return $all->wait($got->{json}{data}[0]{id});
}

for my $case ([ 'over HTTPS' => $repo->clone_url ], [ 'local path' => $repo->dir, 'repos/' . $repo->id ]) {
	my ($how, $address, $path) = @$case;
	my @of = $path ? (path => $path) : ();
	my ($project, $secret) = slipway($address);
	my $end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]", "$how: the newest push is deployed")
	    or diag($all->log($end->{id}));
	my $before = $api->get("/api/projects/$project")->{json}{workspaceStatus};
	for my $old (@hash[ 2, 0 ]) {
		$end = ended(deliver($project, $secret, $old, @of));
		is("$end->{status} $end->{reason}", 'canceled superseded',
		    "$how: a redelivered older push is canceled as superseded")
		    or diag($all->log($end->{id}));
		like($end->{detail}, qr/^The branch main is now at commit $hash[3], not at $old .*Retry/,
		    "$how: the detail names the newer commit and how to retry");
		unlike($all->log($end->{id}), qr/^(?:live|cleanup)/m,
		    "$how: a superseded deployment runs no step, not even cleanup");
		is(join(' ', map { $_->{status} } @{ $end->{steps} }), 'skipped skipped',
		    "$how: the steps of a superseded deployment are skipped");
	}
	my $after = $api->get("/api/projects/$project")->{json}{workspaceStatus};
	is_deeply([ @$after{qw(status dirty)} ], [ @$before{qw(status dirty)} ],
	    "$how: a superseded deployment leaves the workspace unchanged");
	my $retry = $api->post("/api/deployments/$end->{id}/retry")->{json};
	$end = $all->wait($retry->{id});
	is("$end->{status} $end->{commitHash}", "success $hash[0]",
	    "$how: a retry by a user deploys the older commit");
	$end = $all->wait($api->post('/api/deployments',
	    { projectId => $project, branch => 'main', commitHash => $hash[1] })->{json}{id});
	is("$end->{status} $end->{commitHash}", "success $hash[1]",
	    "$how: a user can deploy an older commit");
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]",
	    "$how: the head of the branch can be delivered again");
	$repo->branch('main', $hash[1]);
	$end = ended(deliver($project, $secret, $hash[1], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[1]",
	    "$how: a push that resets the branch to an older commit is deployed");
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{reason}", 'canceled superseded',
	    "$how: after a reset the abandoned commit is superseded");
	$repo->branch('main', $hash[3]);

	# --- a fresh clone
	($project, $secret) = slipway($address);
	$end = ended(deliver($project, $secret, $hash[0], @of));
	is("$end->{status} $end->{reason}", 'canceled superseded',
	    "$how: an older push is superseded in a project that was never deployed");
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]",
	    "$how: the head is deployed after a superseded push");

	# --- a test delivery
	my $n = $all->db->sql('SELECT COUNT(*) FROM deployment');
	for my $kind (@HOOK_KINDS) {
		my $got = deliver($project, $secret, $hash[3], @of, kind => $kind,
		    body => { before => $hash[3] });
		is($got->{status}, 204,
		    "$how: $kind: an event from a commit to the same commit is a test delivery")
		    or diag($got->{body});
	}
	is($all->db->sql('SELECT COUNT(*) FROM deployment'), $n, "$how: test deliveries deploy nothing");
}

# --- no checkout
for my $address ($repo->clone_url, $repo->dir) {
	my @of = $address eq $repo->dir ? (path => 'repos/' . $repo->id) : ();
	my ($project, $secret) = slipway($address, checkout => 'none');
	my $end = ended(deliver($project, $secret, $hash[3], @of));
	is($end->{status}, 'success', 'the newest push is deployed without a checkout')
	    or diag($end->{detail}, $all->log($end->{id}));
	like($all->log($end->{id}), qr/^live $hash[3]$/m,
	    'without a checkout, steps get the commit of the push');
	$end = ended(deliver($project, $secret, $hash[1], @of));
	is("$end->{status} $end->{reason}", 'canceled superseded',
	    'an older push is superseded without a checkout, too') or diag($all->log($end->{id}));
	like($end->{detail}, qr/^The branch main is now at commit $hash[3], not at $hash[1] /,
	    'the detail names the newer commit');
	unlike($all->log($end->{id}), qr/^(?:live|cleanup)/m, 'no step of it runs');
	for my $other ('refs/original/refs/heads/main', 'refs/zz/refs/heads/main') {
		$repo->git('update-ref', $other, $hash[1]);
	}
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is($end->{status}, 'success', 'refs that end in the name of the branch are not the branch')
	    or diag($end->{detail});
	$repo->git('update-ref', '-d', "refs/$_/refs/heads/main") for 'original', 'zz';
}

# --- the Git server is down
for my $checkout ('fresh', 'none') {
	my ($project, $secret) = slipway($repo->clone_url, $checkout eq 'none' ? (checkout => 'none') : ());
	$forge->start_nginx if $checkout eq 'none';
	ended(deliver($project, $secret, $hash[3]));
	$forge->stop_nginx;
	my $end = ended(deliver($project, $secret, $hash[1]));
	is("$end->{status} $end->{reason}", 'failed checkout_failed',
	    'without the Git server an older push fails at its checkout');
	unlike($all->log($end->{id}), qr/^live/m, 'without the Git server no step of an older push runs');
}
$_->stop for $api, $all->runner, $all->db;
done_testing;
