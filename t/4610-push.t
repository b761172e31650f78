#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A real push to a Git server of each kind: the event arrives through nginx, signed in
# the way of that server, and the runner deploys the pushed commit.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(time);

my %hooks = (gitea => ['secret'], forgejo => ['secret'], gitlab => ['secret', 'signing_token'],
    github => ['secret']);
for my $type (@ARGV ? @ARGV : sort keys %hooks) {
	for my $how (@{ $hooks{$type} }) {
		subtest "$type by $how" => sub { deploy_by_push($type, $how) };
	}
}

sub deploy_by_push {
	my ($type, $how) = @_;
	my $forge = Slipway::Forge->start(type => $type);
	$forge->user(ann => { id => 7, name => 'Ann', email => 'ann@example.org' });
	my $repo = $forge->repo('Team/Site', users => ['ann']);
	$repo->commit('main', { version => "0\n" }, 'first');
	my $token = $forge->token('ann');
	my $conf = $forge->conf;
	my $all = Slipway::Whole->start(api => $conf . "[api]\nworkers = 2\n",
	    runner => "${conf}[runner]\npoll = 60\nlease = 5\n");
	my $api = $all->api;
	my $project = $all->project($repo->clone_url,
	    envPresets => [ { key => 'KEY', label => 'k', type => 'input', secret => JSON::PP::true,
	    required => JSON::PP::true } ]);
	my $pipeline = $all->pipeline($project,
	    'cat version; echo "$SLIPWAY_BRANCH $SLIPWAY_COMMIT $STAGE"; echo "key $KEY ${#KEY}"');
	my $got = $api->put("/api/projects/$project", { triggers => [
		{ branch => 'main', pipelineId => $pipeline,
		    envVars => { STAGE => 'live', KEY => 'swordfish-and-chips' } },
		{ branch => 'feature/**', pipelineId => $pipeline,
		    envVars => { STAGE => 'test', KEY => 'other-fish' } } ] });
	is($got->{status}, 200, 'triggers are stored') or diag($got->{body});
	my $access = $api->put("/api/projects/$project/hook-secret")->{json};
	my %hook = (url => $api->url . "/api/hooks/$project", ca => $api->cacert);
	$forge->hook($repo, $hook{url}, $how eq 'secret' ? $access->{secret} : undef, ca => $api->cacert,
		$how eq 'secret' ? () : (signing_token => $access->{secret}));
	my $count = sub { return $all->db->sql('SELECT COUNT(*) FROM deployment') };
	my $pushed = sub {
		my (@refs) = @_;
		my $before = my @before = $forge->deliveries;
		my ($status, $out) = $repo->push($token, @refs);
		is($status, 0, "git push @refs succeeds") or diag($out);
		poll(10, sub { my @now = $forge->deliveries; @now > $before });
		return ($forge->deliveries)[-1];
	};

	# --- a push to main
	my $hash = $repo->commit_here('main', { version => "1\n" }, "second\n\nwith more");
	my $began = stopwatch();
	my $answer = $pushed->('main');
	is($answer->{status}, 202, 'the push event is accepted') or diag(explain($answer), $api->log);
	my $made = Cpanel::JSON::XS->new->utf8->decode($answer->{body})->{data};
	is(scalar @$made, 1, 'the push starts one deployment');
	my $end = $all->wait($made->[0]{id});
	is($end->{status}, 'success', 'the deployment succeeds') or diag($all->log($end->{id}));
	cmp_ok($began->(), '<', deadline(50), 'the push wakes the dispatcher');
	is_deeply([ @$end{qw(branch commitHash trigger)} ], [ 'main', $hash, 'webhook' ],
	    'the deployment has the pushed commit');
	cmp_ok($end->{createdBy}, '>', 0, 'the deployment belongs to the account that created the secret');
	like($end->{commitMessage}, qr/^second/, 'the deployment has the commit message');
	is_deeply($end->{envVars}, { STAGE => 'live', KEY => undef },
	    'the deployment has the variables of the trigger');
	my $log = $all->log($end->{id});
	like($log, qr/^1\nmain $hash live\nkey \*\*\* 19\n/m,
	    'the step has the variables, and the secret is masked');
	unlike($log, qr/swordfish/, 'the log does not contain the secret');
	my $retry = $api->post("/api/deployments/$end->{id}/retry")->{json};
	like($all->log($all->wait($retry->{id})->{id}), qr/^key \*\*\* 19\n/m, 'a retry has the secret');

	# --- the pushed commit is deployed, unless there is a newer one
	my $older = $repo->commit_here('feature/a/b', { version => "2\n" }, 'on a branch');
	my $event_for = $pushed->('feature/a/b');
	is($event_for->{status}, 202, 'a push to a branch with slashes is accepted');
	$end = $all->wait(Cpanel::JSON::XS->new->utf8->decode($event_for->{body})->{data}[0]{id});
	is("$end->{status} $end->{commitHash}", "success $older", 'the deployment has the pushed commit');
	like($all->log($end->{id}), qr/ $older test\n/, 'the step has the pushed commit');
	$repo->commit('feature/a/b', { version => "3\n" }, 'newer');
	my $late = $forge->deliver($forge->push_event($repo, of => { url => $hook{url}, ca => $api->cacert,
		$how eq 'secret' ? (secret => $access->{secret}) : (signing_token => $access->{secret}) },
		ref => 'refs/heads/feature/a/b', before => '2' x 40, after => $older, by => 'ann'));
	is($late->{status}, 202, 'an event of the older commit is accepted');
	$end = $all->wait($late->{json}{data}[0]{id});
	is("$end->{status} " . ($end->{reason} // ''), 'canceled superseded',
	    'the older commit is superseded') or diag($all->log($end->{id}));

	# --- events that start nothing
	my $n = $count->();
	$repo->git('branch', '-f', 'other', 'main');
	is($pushed->('other')->{status}, 204, 'a push to a branch without a trigger starts nothing');
	$repo->git('tag', 'v1');
	is($pushed->('v1')->{status}, 204, 'a push of a tag starts nothing');
	is($pushed->(':other')->{status}, 204, 'a deleted branch starts nothing');
	is($forge->deliver($forge->push_event($repo, of => { %hook, secret => $access->{secret} },
	    kind => 'ping', branch => 'main'))->{status}, 204, 'a ping')
	    if $type eq 'github';
	is($count->(), $n, 'no deployment was created');

	# --- a redelivery
	my $event = $forge->push_event($repo, of => { url => $hook{url}, ca => $api->cacert,
		$how eq 'secret' ? (secret => $access->{secret}) : (signing_token => $access->{secret}) },
		    branch => 'main', by => 'ann');
	my @twice = map { $forge->deliver($event) } 1, 2;
	is("$twice[0]{status} $twice[1]{status}", '202 202', 'a redelivery is accepted');
	is_deeply([ map { $_->{id} } @{ $twice[1]{json}{data} } ],
	    [ map { $_->{id} } @{ $twice[0]{json}{data} } ], 'a redelivery returns the same response');
	is($count->(), $n + 1, 'a redelivery creates no second deployment');

	# --- a repository by its id
	my $stored = sub {
		my ($path) = @_;
		return $all->db->sql('SELECT COUNT(*) FROM git_repo'
		    . " WHERE project_id = $project AND path = '$path'");
	};
	is($stored->('Team/Site'), 1, 'the id and path of the repository are stored');
	$repo->rename('Team/Renamed');
	$repo->commit_here('main', { version => "4\n" }, 'after the renaming');
	is($pushed->('main')->{status}, 202, 'a push to the renamed repository is accepted');
	is($stored->('Team/Renamed'), 1, 'a push to the renamed repository stores its path');
	my $other = $forge->repo('Team/Site2', users => ['ann']);
	$other->commit('main', { version => "x\n" }, 'first');
	my $stranger =
	    $forge->deliver($forge->push_event($other, of => { url => $hook{url}, ca => $api->cacert,
		$how eq 'secret' ? (secret => $access->{secret}) : (signing_token => $access->{secret}) },
		    branch => 'main', by => 'ann'));
	is($stranger->{status}, 422, 'a push to another repository is rejected') or diag($stranger->{body});
	my ($headers, $body) = push_event({ gitea => 'gitea', forgejo => 'forgejo', github => 'github',
	    gitlab => 'gitlab' }->{$type},
		$access->{secret}, path => 'Team/Site', repo_id => 999, commit => $hash);
	is($api->as('none')->post("/api/hooks/$project", $body, $headers)->{status}, 422,
	    'a push to another repository with the old path is rejected');
	my $deliveries = sub { return $all->db->sql('SELECT COUNT(*) FROM hook_delivery') + 0 };
	my $kept = $deliveries->();
	$all->db->sql("INSERT INTO hook_delivery (project_id, delivery_hash, created_at) SELECT $project, "
	    . "SHA2(seq, 256),"
	    . ' NOW(3) - INTERVAL 89 DAY - INTERVAL (seq % 2) * 2 DAY FROM seq_1_to_10');
	$all->runner->restart;
	ok(poll(20, sub { $deliveries->() == $kept + 5 }), 'deliveries are kept for 90 days')
	    or diag($deliveries->(), " of $kept + 10 ", $all->runner->said);
	is_deeply([ $forge->complaints ], [], 'the server received only valid requests');
	$_->stop for $api, $all->runner, $all->db;
	$forge->stop;
	return;
}

done_testing;
