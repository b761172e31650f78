#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway approves, denies, promotes and rolls back, and clears caches.

use strict;
use warnings;
use Test::More;
use Slipway::Background;
use Slipway::Client;
use Slipway::Test;
use Slipway::Whole;

my $all = Slipway::Whole->start;
my $api = $all->api;
my $anna = Slipway::Client->new($api);
my $bea = Slipway::Client->new($api, token => $api->new_token('maintainer', 'bea'));
my $project = $all->make('/api/projects', { name => 'shop', repository => make_repo(tempdir() . '/repo'),
	defaultBranch => 'main' })->{id};
my $pipeline = $all->pipeline($project, 'echo "to $SLIPWAY_ENVIRONMENT $LEVEL"');
my ($staging, $production) = map { $all->make('/api/environments', { projectId => $project, %$_ })->{id} }
    { name => 'staging' }, { name => 'production', approval => 'required' };
my ($status, $out, $err);
sub run { my $who = shift; ($status, $out, $err) = $who->run(@_); return $status }
my @shop = ('-p', 'shop');
sub live { return $api->get("/api/environments/$_[0]")->{json}{live}{deploymentId} }

is(run($anna, 'deploy', @shop, '-E', 'staging', '-f'), 0, 'a deployment to staging succeeds');
my ($first) = $err =~ /^(\d+)\t/;
is(run($anna, 'deploy', @shop), 65, 'deploy requires an environment if there are several');
like($err, qr{^  --environment: }m, 'the error names the option');

is(run($anna, 'deploy', @shop, '-E', 'production', '-b', 'main'), 65,
    'without a Git server, a deployment that requires approval needs a commit');
like($err, qr{^  --commit: is required: the environment requires approval}m, 'the error names the option');

# --- promote, approve, deny
is(run($anna, 'promote', $first), 64, 'promote requires an environment');
is(run($anna, 'promote', $first, '-E', 'producton'), 66, 'promote rejects an unknown environment');
like($err, qr/did you mean "production"\?/, 'the error suggests a name');
is(run($anna, 'promote', $first, '-E', 'production'), 0, 'promote starts a deployment');
my ($second) = $out =~ /^(\d+)\tpending\t/;
is($api->get("/api/deployments/$second")->{json}{environmentId}, $production,
    'a promotion goes to the environment that the option names');
my $by = 'a maintainer other than the user who started it';
is($err, "deployment $second to production waits for approval by $by. To approve it:\n"
    . "  slipway approve $second\n", 'promote says who can approve it, and how');
run($anna, 'status', $second);
like($out, qr/^approval\trequired$/m, 'status says that approval is required');
like($out, qr/^approval\t\S.*/m, 'status says what the deployment waits for');
is(run($anna, 'approve', $second), 77, 'the user who started a deployment cannot approve it');
unlike($err, qr/auth status|change it/, 'the error gives no advice about roles');
is(run($bea, 'approve', $second, '-m', 'looks good'), 0, 'another maintainer approves it');
is($out, "$second\tapproved\t" . $api->url . "/slipway/deployments/$second\n",
    'approve says that it is approved');
is($all->wait($second)->{status}, 'success', 'the approved deployment runs');
run($anna, 'status', $second);
like($out, qr/^approval\tgranted\napprover\tbea\ncomment\tlooks good$/m,
    'status shows the decision, who made it and the comment');
is(live($production), $second, 'the promoted deployment is live');
is(run($bea, 'approve', $second), 65, 'an ended deployment cannot be approved');
run($anna, 'promote', $first, '-E', 'production');
my ($denied) = $out =~ /^(\d+)\t/;
is(run($bea, 'deny', $denied, '--comment', 'not today'), 0, 'a maintainer denies a deployment');
like($out, qr/^$denied\tdenied\t/, 'deny says that it is denied');
is(run($anna, 'status', $denied), 2, 'a denied deployment is canceled');
like($out, qr/^reason\tapproval_denied$/m, 'status gives the reason');
like($out, qr/^approval\tdenied\napprover\tbea$/m, 'status says who denied it');
my $guest = Slipway::Client->new($api, token => $api->new_session('gus', 'guest'));
my ($gus, $decider) = map { $api->get("/api/user/search?keyword=$_")->{json}{data}[0]{id} } qw(gus bea);
$api->put("/api/projects/$project/members/$gus", { role => 'viewer' });
run($guest, 'status', $denied);
like($out, qr/^approver\tuser $decider$/m, 'a guest who may not see the name sees the id');

# Follows without a terminal while a deployment waits: what is said, and the exit
# status.
sub followed {
	my (@approvers) = @_;
	my $said = tempdir() . '/followed' . @approvers;
	$api->put("/api/environments/$production", { approvers => \@approvers });
	my $follows = background(sub {
		run($anna, { through => ['sh', '-c', "exec \"\$@\" 2>$said", 'sh'] }, 'promote', $first, '-E',
			'production', '-f');
		return $status;
	});
	poll(60, sub { (slurp($said) // '') =~ /^  slipway approve \d+$/m })
	    or diag(slurp($said) // 'nothing is said');
	my ($id, $by) = slurp($said) =~ /^deployment (\d+) to production waits for approval by (.*)\. To/m;
	run($bea, 'approve', $id);
	my $end = $follows->result;
	my $times = () = slurp($said) =~ /waits for/g;
	return "$by; said $times times; exit status $end";
}
my @people = map { $_->{id} } map { @{ $_->get('/api/user/search?keyword=bea')->{json}{data} } } $api;
my $starter = $api->get('/api/auth/info')->{json}{id};
is(followed(), "$by; said 1 times; exit status 0", 'promote -f says once that the deployment waits');
is(followed($starter, @people), 'bea; said 1 times; exit status 0',
    'the user who started it is not named as an approver');
push @people,
    map { $api->make('/api/user', { username => "user$_", role => 'maintainer' })->{id} } 1 .. 6;
is(followed(@people[0 .. 2]), 'bea, user1 or user2; said 1 times; exit status 0', 'all approvers are named');
is(followed(@people), 'bea, user1, user2, user3, user4 or another approver; said 1 times; exit status 0',
    'many approvers are not all named');
$api->put("/api/environments/$production", { approvers => [] });

is(run($anna, 'promote', $second, '-E', 'staging', '-e', 'LEVEL=5', '-f'), 0, 'promote sets variables');
like($out, qr/^to staging 5$/m, 'the deployment has the variable');
is(run($anna, 'promote', $first, '-E', 'staging', '-e', 'PATH=/tmp'), 65, 'promote rejects a reserved name');
like($err, qr/^  --env PATH: /m, 'the error names the option and the variable');
is(run($anna, 'promote', $first, '-E', 'staging', '-e', 'LEVEL'), 64, 'promote requires KEY=VALUE');
like($err, qr/^slipway: promote: --env requires KEY=VALUE/m, 'the error names the command');

# --- rollback
run($anna, 'deploy', @shop, '-E', 'staging', '-f');
my ($third) = $err =~ /^(\d+)\t/;
is(live($staging), $third, 'the newest deployment is live');
is(run($anna, 'rollback', @shop), 64, 'rollback requires an environment if there are several');
like($err, qr/has 2 environments: name one with --environment/, 'the error says what to do');
is(run($anna, 'rollback', @shop, '-E', 'staging', '-m', 'broken', '-f'), 0,
    'rollback -f ends with the result');
my ($back) = $err =~ /^(\d+)\t/;
like($out, qr/^to staging /m, 'rollback -f prints the log');
is($api->get("/api/deployments/$back")->{json}{trigger}, 'rollback', 'rollback starts a rollback');
is(live($staging), $back, 'the rollback is live');
is(run($anna, 'rollback', @shop, '-E', 'staging', '--to', $third, '-f'), 0,
    'rollback --to repeats a deployment');
is(run($anna, 'rollback', @shop, '-E', 'staging', '--to', $second), 65,
    'a deployment to another environment cannot be repeated');

# --- caches
my $notes = $all->make('/api/projects', { name => 'notes', repository => make_repo(tempdir() . '/notes'),
	defaultBranch => 'main' })->{id};
$all->pipeline($notes, 'echo "kept [$(ls "$SLIPWAY_CACHE")]"; touch "$SLIPWAY_CACHE/page"');
my @notes = ('-p', 'notes');
run($anna, 'deploy', @notes, '-f');
run($anna, 'deploy', @notes, '-f');
like($out, qr/^kept \[page\]$/m, 'a project has a cache');
my $viewer = Slipway::Client->new($api, token => $api->new_token('viewer', 'vera'));
is(run($viewer, 'cache', 'clear', @notes), 77, 'a viewer cannot clear a cache');
like($err, qr/deployer/, 'the error names the role');
is(run($anna, 'cache', 'clear', @notes), 0, 'cache clear succeeds');
is($out, "cleared the cache of project notes\n", 'cache clear says what it cleared');
run($anna, 'deploy', @notes, '-f');
like($out, qr/^kept \[\]$/m, 'the next deployment has an empty cache');
is(run($anna, 'cache', 'clear', '-p', $notes, '--json'), 0, 'cache clear --json succeeds');
is($out, '', 'cache clear --json prints nothing, as the response has no object');
is(run($anna, 'cache', 'clear', '-p', 'note'), 66, 'cache clear rejects an unknown project');
like($err, qr/did you mean "notes"\?/, 'the error suggests a name');
is(run($anna, 'cache'), 64, 'cache requires a subcommand');

done_testing();
