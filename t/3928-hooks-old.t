#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A push event of a commit that is no longer at its branch's head puts nothing
# live, whenever and in whatever order events come; a person still can.  A test
# delivery deploys nothing.

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

# What is live is what the last step that ran has seen.
sub slipway {
	my ($address) = @_;
	my $project = $all->project($address);
	my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p', steps => [
		{ name => 'live', script => 'echo "live $(cat version)"' },
		{ name => 'after', script => 'echo cleanup', runWhen => 'always' } ] })->{json}{id};
	is($api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => {} } ] })->{status}, 200, 'a trigger');
	return ($project, $api->put("/api/projects/$project/hook-secret")->{json}{secret});
}
my $number = 0;
sub deliver {
	my ($project, $secret, $hash, %o) = @_;
	my ($headers, $body) = push_event($o{kind} || 'gitea', $secret, path => $o{path} || 'team/site', repo_id => $repo->id, commit => $hash,
		body => { n => ++$number, %{ $o{body} || {} } });
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
sub ended { my ($got) = @_; is($got->{status}, 202, 'an event is taken') or diag($got->{body}); return $all->wait($got->{json}{data}[0]{id}) }

for my $case ([ 'over HTTPS' => $repo->clone_url ], [ 'from a path' => $repo->dir, 'repos/' . $repo->id ]) {
	my ($how, $address, $path) = @$case;
	my @of = $path ? (path => $path) : ();
	my ($project, $secret) = slipway($address);
	my $end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]", "$how: the newest push goes live") or diag($all->log($end->{id}));
	my $before = $api->get("/api/projects/$project")->{json}{workspaceStatus};
	for my $old (@hash[ 2, 0 ]) {
		$end = ended(deliver($project, $secret, $old, @of));
		is("$end->{status} $end->{reason}", 'canceled superseded', 'an older one that is delivered again does not') or diag($all->log($end->{id}));
		like($end->{detail}, qr/^The branch main is at commit $hash[3] now, not at $old .*Retry/, 'and says what is newer and what to do');
		unlike($all->log($end->{id}), qr/^(?:live|cleanup)/m, 'no step runs, not even cleanup');
		is(join(' ', map { $_->{status} } @{ $end->{steps} }), 'skipped skipped', 'they are skipped');
	}
	my $after = $api->get("/api/projects/$project")->{json}{workspaceStatus};
	is_deeply([ @$after{qw(status dirty)} ], [ @$before{qw(status dirty)} ], 'the checkout is what it was');
	my $retry = $api->post("/api/deployments/$end->{id}/retry")->{json};
	$end = $all->wait($retry->{id});
	is("$end->{status} $end->{commitHash}", "success $hash[0]", 'a retry, which a person asks for, deploys the older one');
	$end = $all->wait($api->post('/api/deployments', { projectId => $project, branch => 'main', commitHash => $hash[1] })->{json}{id});
	is("$end->{status} $end->{commitHash}", "success $hash[1]", 'so does a deployment of that commit');
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]", 'the head can be delivered again');
	$repo->branch('main', $hash[1]);
	$end = ended(deliver($project, $secret, $hash[1], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[1]", 'a push that takes the branch back is at its head');
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{reason}", 'canceled superseded', 'and then the commit that was given up is not');
	$repo->branch('main', $hash[3]);

	# --- a fresh clone
	($project, $secret) = slipway($address);
	$end = ended(deliver($project, $secret, $hash[0], @of));
	is("$end->{status} $end->{reason}", 'canceled superseded', 'nor is it in a project that was never deployed');
	$end = ended(deliver($project, $secret, $hash[3], @of));
	is("$end->{status} $end->{commitHash}", "success $hash[3]", 'which can be deployed after that');

	# --- a test delivery
	my $n = $all->db->sql('SELECT COUNT(*) FROM deployment');
	for my $kind (@HOOK_KINDS) {
		my $got = deliver($project, $secret, $hash[3], @of, kind => $kind, body => { before => $hash[3] });
		is($got->{status}, 204, "$kind: an event that moves the branch from a commit to the same one is a test") or diag($got->{body});
	}
	is($all->db->sql('SELECT COUNT(*) FROM deployment'), $n, 'which deploys nothing');
}

# --- the server cannot be asked
{
	my ($project, $secret) = slipway($repo->clone_url);
	ended(deliver($project, $secret, $hash[3]));
	$forge->stop_nginx;
	my $end = ended(deliver($project, $secret, $hash[1]));
	is("$end->{status} $end->{reason}", 'failed checkout_failed', 'where the server does not answer the deployment fails: nothing older goes live');
	unlike($all->log($end->{id}), qr/^live/m, 'and no step of it runs');
}
$_->stop for $api, $all->runner, $all->db;
done_testing;
