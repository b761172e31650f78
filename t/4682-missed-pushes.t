#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pushes whose events are not delivered: runners find them, once.

use strict;
use warnings;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(ann => { id => 7 });
my $repo = $forge->repo('team/site', private => 1, users => ['ann']);
my $conf = $forge->conf(token => scalar $forge->token('ann'));
my $runner_conf = "${conf}[runner]\npoll = 60\nslots = 2\n";
my $all = Slipway::Whole->start(api => $conf, runner => $runner_conf);
my ($api, $runner, $db) = ($all->api, $all->runner, $all->db);
my @hash = $repo->commit('main', { version => "0\n" }, 'number 0');
sub another {
	push @hash, $repo->commit('main', { version => @hash . "\n" }, 'number ' . @hash);
	return $#hash;
}

sub slipway {
	my (%more) = @_;
	my $project = $all->project($repo->clone_url);
	my $pipeline = $api->make('/api/pipelines', { projectId => $project, name => 'p',
		steps => [ { name => 's', script => 'true' } ] })->{id};
	$api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline,
		envVars => {}, %more } ] });
	return ($project, $api->put("/api/projects/$project/hook-secret")->{json}{secret});
}
my $number = 0;
sub deliver {
	my ($project, $secret, $i, $before) = @_;
	my ($headers, $body) = push_event('gitea', $secret, path => 'team/site', repo_id => $repo->id,
	    commit => $hash[$i], body => { n => ++$number, before => $hash[$before] });
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
# "commit number: trigger" of all deployments of a project, oldest first.
sub deployed {
	my ($project) = @_;
	my %index = map { $hash[$_] => $_ } 0 .. $#hash;
	return join ' ', map { "$index{$_->{commitHash}}:$_->{trigger}" }
	    reverse @{ $api->get("/api/deployments?projectId=$project")->{json}{data} };
}
# Waits until all deployments of the projects have ended.
sub end_of {
	my (@projects) = @_;
	for my $project (@projects) {
		$all->wait($_->{id}) for @{ $api->get("/api/deployments?projectId=$project")->{json}{data} };
	}
	return;
}
sub becomes {
	my ($project, $want, $name) = @_;
	ok(poll(60, sub { deployed($project) eq $want }), $name) or diag(deployed($project), $runner->said);
	return;
}

my ($site, $secret) = slipway();
# The newest deployments of the site.
sub newest {
	my ($n) = @_;
	return @{ $api->get("/api/deployments?projectId=$site")->{json}{data} }[ 0 .. $n - 1 ];
}
sub children { my ($pid) = @_; return split ' ', slurp("/proc/$pid/task/$pid/children") || '' }

my ($quiet) = slipway();
my ($files, $files_secret) = slipway(paths => ['file']);
another();
for my $event ([ $site, $secret ], [ $files, $files_secret ]) {
	my $got = deliver(@$event, 1, 0);
	is($got->{status}, 202, 'an event is accepted') or diag($got->{body});
	$all->wait($got->{json}{data}[0]{id});
}

# --- the service was down
$runner->stop;
another() for 2, 3;
$runner->resume;
becomes($site, '1:webhook 3:webhook', 'when the runner starts, the head of the branch is deployed');
becomes($files, '1:webhook 3:webhook', 'also for a trigger with paths, as the files are not known');
my $found = $api->get("/api/deployments?projectId=$site")->{json}{data}[0];
my $end = $all->wait($found->{id});
is("$end->{status} $end->{branch}", 'success main', 'the deployment succeeds');
is($end->{createdBy}, $api->get("/api/deployments?projectId=$files")->{json}{data}[-1]{createdBy},
    'the deployment of a missed push belongs to the same user as those of events');
is(deliver($site, $secret, 3, 2)->{status}, 204, 'an event that arrives after that starts nothing');

like($runner->said, qr/project $site: the push of $hash[3] to main was not delivered: created 1 deployment$/m,
    'the log names the push');
my ($entry) = grep { $_->{objectId} == $found->{id} && $_->{action} eq 'catchUp' }
    @{ $api->get("/api/audit?projectId=$site")->{json}{data} };
is("$entry->{via} $entry->{username}", "runner $runner->{name}", 'the audit log names the runner');

# --- once, with several runners
end_of($site, $files); # a deployment that has not started would follow the branch
$runner->stop;
another();
my @more = map { Slipway::Runner->start(db => $db, conf => $runner->{conf}, idle => 1) } 1, 2;
$_->resume for $runner, @more;
becomes($site, '1:webhook 3:webhook 4:webhook', 'a push that several runners could find is deployed');
becomes($files, '1:webhook 3:webhook 4:webhook', 'in each project');
end_of($site, $files); # only the runner that has started a deployment can end it
$_->stop for $runner, @more;

# --- --once looks in the first run of each interval
$runner->write_conf("${runner_conf}catch_up = 86400\n");
another();
$db->sql('UPDATE runner SET seen_at = NOW(3)');
is($runner->once, 0, 'slipway-runner --once succeeds');
is(deployed($site), '1:webhook 3:webhook 4:webhook', 'after a run on the same day it does not look');
$db->sql('UPDATE runner SET seen_at = NOW(3) - INTERVAL 1 DAY');
is($runner->once, 0, 'slipway-runner --once succeeds again');
is(deployed($site), '1:webhook 3:webhook 4:webhook 5:webhook',
    'the first run of a day looks; each push is deployed once');
is((newest(1))[0]{status}, 'success', 'the deployment of a missed push runs');

# --- events in the wrong order
another() for 6, 7;
deliver($site, $secret, 7, 6);
deliver($site, $secret, 6, 5);
my $files_triggers = $api->get("/api/projects/$files")->{json}{triggers};
$api->put("/api/projects/$files", { triggers => [] });
$runner->write_conf("${runner_conf}catch_up = 1\n")->resume;
end_of($site, $files);
my $files_before = deployed($files);
$api->put("/api/projects/$site/lock", { reason => 'incident' });
another();
becomes($site, '1:webhook 3:webhook 4:webhook 5:webhook 7:webhook 6:webhook 8:webhook',
    'the head is not repeated if events named it in the wrong order; a runner also looks while it runs');
is((newest(1))[0]{status}, 'pending', 'a missed push to a locked project waits');
another();
ok(poll(60, sub { deployed($site) =~ / 9:webhook$/ }), 'a second missed push is found');
is(join(' ', map { ($_->{status}, $_->{reason} || ()) } newest(2)), 'pending canceled superseded',
    'the second missed push supersedes the first one');
is(deployed($quiet), '', 'nothing is deployed in a project that never had a delivery');

# --- force pushes under a lock that undo each other
$runner->stop;
another();
$repo->branch('main', $hash[9]);
deliver($site, $secret, 9, 10);
deliver($site, $secret, 10, 9);
is(join(' ', map { $_->{status} } newest(2)), 'pending canceled',
    'the event of the first push arrives last, and supersedes the head');
$runner->resume;
ok(poll(60, sub { deployed($site) =~ / 9:webhook 10:webhook 9:webhook$/ }), 'the head is found')
    or diag(deployed($site));
$api->delete("/api/projects/$site/lock");
is(join(' ', map { $all->wait($_->{id}); $all->show($_->{id})->{status} } newest(2)), 'success canceled',
    'after the lock, the head is deployed');

# --- a Git server that hangs, pushes without triggers, another repository
my $after = deployed($site);
my @nginx = children($forge->{nginx});
kill 'STOP', @nginx;
ok(poll(60, sub { children($runner->dispatcher) }),
    'a runner looks while the Git server hangs');
my $restart = $api->make('/api/pipelines', { projectId => $quiet, name => 'restart', checkout => 'none',
	steps => [ { name => 's', script => 'true' } ] })->{id};
my $other = $api->make('/api/deployments',
    { projectId => $quiet, pipelineId => $restart, branch => 'main' })->{id};
is($all->wait($other)->{status}, 'success', 'deployments run meanwhile');
$runner->stop;
kill 'CONT', @nginx;
my $triggers = $api->get("/api/projects/$site")->{json}{triggers};
$api->put("/api/projects/$site", { triggers => [] });
my $unwatched = another();
is(deliver($site, $secret, $unwatched, 9)->{status}, 204, 'a push that no trigger names starts nothing');
$api->put("/api/projects/$site", { triggers => $triggers });
my $moved = $forge->repo('team/moved', users => ['ann']);
$moved->commit('main', { other => "1\n" }, 'another repository');
$api->put("/api/projects/$files", { repository => $moved->clone_url, triggers => $files_triggers });
my ($last, $last_secret) = slipway();
deliver($last, $last_secret, 1, 0);
$runner->resume;
becomes($last, "1:webhook $unwatched:webhook", 'a push to the last project is found');
is(deployed($site), $after, 'a push from the time without triggers was delivered, so it is not missed');
is(deployed($files), $files_before, 'a new repository has no missed pushes');

# --- a branch that was deleted, a server that is down
$repo->branch('other', $hash[0]);
$repo->drop_branch('main');
$forge->stop_nginx;
ok(poll(60, sub { $runner->said =~ /project $site: missed pushes cannot be found: ./ }),
    'a repository that cannot be read is logged');
$_->stop for $api, $runner, $db;
done_testing;
