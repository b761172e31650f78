#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Commit statuses on the Git server: their content for each kind of server and their
# author; a server that is down or rejects them loses nothing and delays nothing.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'deployer'), (2, 'reader', 'deployer'), "
    . "(3, 'nobody', 'deployer')");
my $key = tempdir() . '/secret.key';
my %ours = (success => 'success', failed => 'failure', error => 'error', canceled => 'error',
    running => 'pending');
my %states = (gitea => { %ours }, github => { %ours },
	gitlab => { map({ $_ => $_ } qw(success failed canceled running)), error => 'failed' });

my ($forge, $repo, $runner, $project, $service, %token);

# Starts afresh with a kind of server.
sub begin {
	my ($type, %more) = @_;
	$runner->stop if $runner;
	$forge->stop if $forge;
	$db->sql('DELETE FROM git_token; DELETE FROM commit_status; DELETE FROM git_repo');
	$forge = Slipway::Forge->start(type => $type, redirect_uri => 'https://slipway.example.org/login');
	$forge->user('ann', { id => 7 });
	$forge->user('reader', { id => 8 });
	$forge->user('robot', { id => 9 });
	$repo = $forge->repo('Team/Site', private => 1, users => ['ann', 'robot'], readers => ['reader']);
	$service = $forge->token('robot');
	my $conf = $forge->conf(token => $service, %more);
	my $file = spew(tempdir() . "/$type.conf", $db->conf . $conf . "[secrets]\nkey_file = $key\n", 0600);
	make_keys($file, $key) if !-e $key;
	%token = map { $_ => scalar $forge->token($_) } qw(ann reader);
	for (['ann', 1], ['reader', 2]) {
		my ($status, $said, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put', $_->[1],
		    $token{ $_->[0] }, '-', 3600);
		die "$said$err" if $status != 0;
	}
	$runner = Slipway::Runner->start(db => $db,
	    conf => "${conf}[secrets]\nkey_file = $key\n[runner]\nslots = 6\n");
	$project = $runner->project(repo => $repo->clone_url);
	return;
}
my $commits = 0;
# A deployment of a new commit by this user; returns its id and the hash.
sub deploy {
	my ($by, @steps) = @_;
	my $hash = $repo->commit('main', { file => ++$commits . "\n" }, "change $commits");
	return ($runner->deploy($project, { by => $by }, @steps), $hash);
}
sub row { return $db->commit_status(@_) }
sub closed {
	my ($id, $deadline) = @_;
	return poll($deadline || 20, sub { my $row = row($id); return $row =~ / 0$/ && $row });
}
sub last_of { my ($hash) = @_; return ($forge->statuses($hash))[-1] || { state => '' } }

for my $type (qw(gitea gitlab github)) {
	begin($type);
	my $is = $states{$type};
	my ($id, $hash) = deploy(1, 'echo a-line');
	is($runner->wait($id), 'success', "$type: a deployment of a private repository succeeds")
	    or diag($runner->log($id), $runner->said);
	is(closed($id), 'success success 0', "$type: all states are reported");
	my $last = last_of($hash);
	is($last->{state}, $is->{success}, "$type: the commit has its status");
	is($last->{context}, "slipway/Pipeline $project",
	    "$type: the status has the context of the pipeline");
	is($last->{target_url}, "https://slipway.example.org/slipway/deployments/$id",
	    "$type: the status has a link");
	is($last->{description}, 'The deployment succeeded.', "$type: the status has a description");
	is($last->{creator}, 'robot', "$type: the service creates the status");
	my %ends = (failed => ['exit 3', 'A step of the deployment failed.'],
	    canceled => ['echo up; sleep 600', 'The deployment was canceled.'],
		error => ['echo up; sleep 600', 'The runner was lost.']);
	for my $end (sort keys %ends) {
		my ($script, $text) = @{ $ends{$end} };
		($id, $hash) = deploy(1, $script);
		if ($end eq 'error') {
			$runner->wait_log($id, qr/^up$/m);
			kill 'KILL', $_ for $runner->jobs;
		}
		if ($end eq 'canceled') {
			$runner->wait_log($id, qr/^up$/m);
			ok(poll(10, sub { row($id) eq 'running running 0' }),
			    "$type: a running deployment is reported");
			is(last_of($hash)->{state}, $is->{running},
			    "$type: the status of a running deployment uses the value of the server");
			$runner->cancel($id);
		}
		$runner->wait($id);
		ok(closed($id), "$type: a deployment that is $end is reported");
		is(row($id, 'told'), $end, "$type: a deployment that is $end is stored as reported");
		is(last_of($hash)->{state}, $is->{$end},
		    "$type: the status of a deployment that is $end uses the value of the server");
		is(last_of($hash)->{description}, $text,
		    "$type: the status of a deployment that is $end has its description");
	}
	# a repeated status is no fault, even if the server rejects it
	$db->sql("UPDATE commit_status SET told = 'running', next_at = NOW(3) WHERE deployment_id = $id");
	$runner->ring;
	is(closed($id), 'failed failed 0', "$type: a repeated failure is reported")
	    if row($id, 'wanted') eq 'failed';
	ok(closed($id), "$type: a repeated status is reported");
	is(row($id, "COALESCE(fault, '-')"), '-', "$type: a repeated status is no fault");
	# a renamed repository
	$repo->rename('Team/Renamed');
	my $before = my @then = $forge->statuses($hash);
	$forge->forget_requests;
	$db->sql("UPDATE commit_status SET told = NULL, next_at = NOW(3) WHERE deployment_id = $id");
	$runner->ring;
	is(closed($id), 'failed failed 0', "$type: a status in a renamed repository is reported");
	is(scalar(my @now = $forge->statuses($hash)), $before + 1,
	    "$type: a renamed repository is found by its id");
	is(scalar(my @old = $forge->requests(qr{Team/Site/statuses/})), 0,
	    "$type: no status is sent to the old path, which another repository may have");
	is($db->sql('SELECT path FROM git_repo'), 'Team/Renamed', "$type: the new path is stored")
	    if $type ne 'gitlab';
	is_deeply([$forge->complaints], [], "$type: the server received only valid requests");
	for my $secret ($token{ann}, $service) {
		unlike($runner->said, qr/\Q$secret\E/, "$type: no token is in the log");
	}
}

# --- the author of statuses
begin('gitea');
my ($id, $hash) = deploy(2, 'true');
is($runner->wait($id), 'success', 'a deployment by a user with read access succeeds');
is(closed($id), 'success success 0', 'a deployment by a user with read access is reported');
is(last_of($hash)->{creator}, 'robot', 'the service is the author of the status');
for my $who (3, undef) {
	($id, $hash) = deploy($who, 'true');
	is($runner->wait($id), 'success',
	    'a deployment by ' . (defined $who ? 'a user without a token' : 'no user')
	    . ' succeeds');
	is(closed($id), 'success success 0', 'the deployment is reported');
	is(last_of($hash)->{creator}, 'robot', 'the service is the author of the status');
}
$forge->expire_tokens('ann');
($id, $hash) = deploy(1, 'true');
is($runner->wait($id), 'failed', 'a deployment by a user whose token was revoked fails');
is($db->sql("SELECT detail FROM deployment WHERE id = $id") =~ /sign in again/i ? 1 : 0, 1,
    'the detail says to sign in again');
# --- without a token of the service
begin('gitea', token => undef);
($id, $hash) = deploy(1, 'true');
is($runner->wait($id), 'success', 'a deployment succeeds if the service has no token');
is(closed($id), 'success success 0', 'the deployment is reported if the service has no token');
is(last_of($hash)->{creator}, 'ann', 'the user who deployed is the author of the status');

# --- the server is down
begin('gitea');
$forge->fault('/statuses/', kind => 'silent');
my $took = best_of(6, sub {
	my $began = time;
	($id, $hash) = deploy(1, 'echo one', 'echo two');
	is($runner->wait($id), 'success',
	    'a deployment succeeds though the server does not respond to statuses');
	return time - $began;
});
cmp_ok($took, '<', deadline(6), 'a silent server does not delay a deployment');
my ($other, $other_hash) = deploy(1, 'true');
is($runner->wait($other), 'success', 'the next deployment succeeds');
ok(poll(25, sub { row($id, "COALESCE(fault, '')") =~ /did not respond|in time/ }), 'the fault is stored')
    or diag(row($id, '*'));
is(row($id, "CONCAT_WS(' ', wanted, COALESCE(told, '-'), COALESCE(open, 0))"), 'success - 1',
    'the status is still open');
$forge->clear_faults;
$forge->stop_nginx;
$db->sql('UPDATE commit_status SET next_at = NOW(3)');
$runner->ring;
my $dispatcher = $runner->dispatcher;
kill 'KILL', $dispatcher;
ok(poll(10, sub { my $pid = $runner->dispatcher; $pid && $pid != $dispatcher }),
    'the dispatcher is restarted while the server is down');
ok(poll(20, sub { row($id, "COALESCE(fault, '')") =~ /cannot be reached/ }),
    'the restarted dispatcher tries to report')
    or diag(row($id, '*'));
$forge->start_nginx;
kill 'HUP', $runner->pid;
$db->sql('UPDATE commit_status SET next_at = NOW(3), held_until = NULL');
$runner->ring;
is(closed($id, 90), 'success success 0', 'the status is reported when the server is back');
is(closed($other, 90), 'success success 0', 'the other status is reported when the server is back');
is(last_of($_)->{state}, 'success', 'the commit has its status') for $hash, $other_hash;
is((grep { $_->{state} eq 'pending' } $forge->statuses($hash)), 0, 'outdated states are not reported');
my $lines = () = $runner->said =~ /^.*\b$id: its commit status success cannot be reported.*$/mg;
cmp_ok($lines, '<=', 4, 'the log has the fault of a status at most four times');

# --- the server rejects a status
for (['403', 403, 60], ['422', 422, 60], ['404', 404, 60], ['500', 500, 1]) {
	my ($what, $status, $least) = @$_;
	$forge->fault('/statuses/', kind => 'status', status => $status, type => 'application/json',
	    body => '{"message":"not so"}');
	($id, $hash) = deploy(1, 'true');
	$runner->wait($id);
	# between two attempts; during an attempt the row is claimed, and a fault of an
	# outdated state is no reason to wait
	my $wait = poll(15, sub {
		my $columns = "wanted, held_until IS NULL, COALESCE(fault, ''),"
		    . ' TIMESTAMPDIFF(SECOND, NOW(3), next_at)';
		my ($wanted, $free, $fault, $seconds) = split /\t/, row($id, $columns);
		return $wanted && $wanted eq 'success' && $free && $fault =~ /not so/ && $seconds > 0
		    && "$seconds s";
	});
	ok($wait, "$what: the status stays open") or diag(row($id, '*'));
	$wait =~ s/ s//;
	$least > 1 ? cmp_ok($wait, '>=', 50, "$what: the next attempt is delayed")
	    : cmp_ok($wait, '<', 30, "$what: the next attempt is soon");
	my ($next, $next_hash) = deploy(1, 'true');
	$forge->clear_faults;
	$runner->wait($next);
	ok(poll(20, sub { last_of($next_hash)->{state} eq 'success' }),
	    "$what: other statuses are reported meanwhile")
	    if $least > 1;
	if ($status == 422) {
		$forge->fault('/statuses/', kind => 'status', status => $status, type => 'application/json',
		    body => '{"message":"not so"}');
		$db->sql("UPDATE commit_status SET attempts = 7, next_at = NOW(3) WHERE deployment_id = $id");
$runner->ring;
		ok(poll(20, sub { row($id, 'dropped') }), "$what: the status is dropped in the end");
		is(row($id, 'COALESCE(open, 0)'), 0, "$what: a dropped status is closed");
		like($runner->said, qr/\b$id: its commit status success is given up/,
		    "$what: the log has the dropped status");
		$forge->clear_faults;
	}
}
$forge->fault('/statuses/', kind => 'status', status => 429, headers => { 'Retry-After' => 900 },
    type => 'application/json', body => '{}');
($id, $hash) = deploy(1, 'true');
$runner->wait($id);
ok(poll(15, sub { row($id, 'TIMESTAMPDIFF(SECOND, NOW(3), next_at)') > 800 }),
    'Retry-After delays the next attempt') or diag(row($id, '*'));
$forge->clear_faults;
$db->sql("UPDATE commit_status SET created_at = NOW(3) - INTERVAL 4 DAY, next_at = NOW(3) WHERE open = 1");
$runner->ring;
ok(poll(90, sub { $db->sql('SELECT COUNT(*) FROM commit_status WHERE open = 1') == 0 }),
    'old statuses are reported') or diag($db->sql('SELECT * FROM commit_status WHERE open = 1'));

# --- of two deployments of a commit the later counts
$runner->stop;
$hash = $repo->commit('main', { file => "last\n" }, 'last');
$db->sql("INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, commit_hash, status) VALUES "
    . "($project, $project, 'main', 'manual', '$hash', 'failed'), ($project, $project, 'main', 'manual', "
    . "'$hash', 'success');"
    . "INSERT INTO commit_status (deployment_id, wanted, next_at) SELECT id, status, NOW(3) + INTERVAL "
        . "IF(status = 'failed', 100, 0) SECOND FROM deployment WHERE commit_hash = '$hash'");
$runner->resume;
ok(poll(20, sub { last_of($hash)->{state} }), 'the later status is reported');
$db->sql('UPDATE commit_status SET next_at = NOW(3)');
$runner->ring;
ok(poll(20, sub { $db->sql('SELECT COUNT(*) FROM commit_status WHERE open = 1') == 0 }),
    'the older status is closed');
is_deeply([map { $_->{state} } $forge->statuses($hash)], ['success'], 'the older status is not sent');

# --- idle
sub counted {
	my $text =
	    $db->sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert', 'Com_update', 'Com_delete', "
	    . "'Com_commit')");
	my $n = 0;
	$n += $1 while $text =~ /\t(\d+)$/mg;
	return $n;
}
my $wrote;
for (1 .. 20) { # what is done once, after the start, may be delayed
	sleep 1;
	my $before = counted();
	sleep 6;
	$wrote = counted() - $before or last;
}
is($wrote, 0, 'an idle runner writes nothing in six seconds');
is_deeply([$forge->complaints], [], 'the server received only valid requests');

# --- --once waits for statuses that are due
$runner->stop;
($id, $hash) = deploy(1, 'true');
is(scalar $runner->once, 0, '--once exits');
is(row($id), 'success success 0', '--once reports the status before it exits');

# --- the link
$runner->write_conf($forge->conf(token => $service, report_url => 'https://console.example.org/d/{id}?x=1')
    . "[secrets]\nkey_file = $key\n");
$runner->resume;
($id, $hash) = deploy(1, 'true');
$runner->wait($id);
ok(closed($id), 'the status is reported');
is(last_of($hash)->{target_url}, "https://console.example.org/d/$id?x=1", 'report_url sets the link');
$runner->stop;
$runner->write_conf($forge->conf(token => $service, report => 'no') . "[secrets]\nkey_file = $key\n");
$runner->resume;
($id, $hash) = deploy(1, 'true');
is($runner->wait($id), 'success', 'a deployment with report = no succeeds');
is(row($id), '', 'report = no writes no row');
is(scalar(my @none = $forge->statuses($hash)), 0, 'report = no reports no status');
is($runner->stop, 0, 'the runner stops');
done_testing;
