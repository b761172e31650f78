#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Schedules over REST and in the runner: members, faults, what they fire, missed
# times, two runners, superseding, locks, rejected deployments, failures.

use strict;
use warnings;
use JSON::PP ();
use POSIX qw(strftime);
use Slipway::API qw(outcome);
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $all = Slipway::Whole->start;
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $maintainer = $api->as('maintainer');
my $token = { key => 'TOKEN', label => 'Token', type => 'input', secret => $true, default => 'sword fish' };
my $size = { key => 'SIZE', label => 'Size', type => 'select', default => 's',
	options => [ map { { label => $_, value => $_ } } qw(s l) ] };
my $project = $all->project($runner->repo, envPresets => [ $token, $size ]);
my $pipeline = $all->pipeline($project, 'test "$TOKEN" = "sword fish"; echo size=$SIZE; test "$SIZE" = s');
my $other = $all->project($runner->repo, projectDir => 'other');
my $got;

sub body { my (%more) = @_; return { projectId => $project, pipelineId => $pipeline, name => 'nightly',
	cron => '30 2 * * *', %more } }
sub show { my ($id) = @_; return $api->get("/api/schedules/$id")->{json} }
# Makes a schedule due, as if its time had come some seconds ago.
sub due {
	my ($id, $seconds) = @_;
	$seconds ||= 1;
	$db->sql("UPDATE schedule SET next_at = NOW(3) - INTERVAL $seconds SECOND WHERE id = $id");
	$runner->ring;
	return;
}
# Waits for a deployment after that one; its id.
sub fired {
	my ($id, $after, $name) = @_;
	my $last;
	ok(poll(60, sub { $last = show($id)->{lastDeploymentId} || 0; return $last > $after }), $name)
	    or diag(explain(show($id)), tail($runner->said, 20));
	return $last;
}
sub count { return $db->sql("SELECT COUNT(*) FROM deployment WHERE `trigger` = 'schedule'") }

# --- members
$got = $maintainer->post('/api/schedules', body(timezone => 'Europe/Berlin', branch => 'main',
	envVars => { SIZE => 'l' }));
is($got->{status}, 201, 'a maintainer creates a schedule') or diag($got->{body});
my $id = $got->{json}{id};
my $path = "/api/schedules/$id";
is($got->{headers}{location}, $path, 'Location is the path of the new schedule');
is($api->as('viewer')->get($path)->{body}, $got->{body}, 'a viewer reads a schedule');
is_deeply([ @{ $got->{json} }{qw(active failures lastDeploymentId lastError environmentId envVars)} ],
    [ $true, 0, undef, undef, undef, { SIZE => 'l' } ], 'a new schedule is active and has started nothing');
my $next = $got->{json}{nextAt};
like($next, qr/T0[01]:30:00\.000Z$/, 'a schedule fires at the local time of its time zone');
cmp_ok($next, 'gt', strftime('%FT%T', gmtime), 'the next time is in the future');
$got = $maintainer->post('/api/schedules', { %{ body(name => 'paused') }, active => $false });
is_deeply([ @{ $got->{json} }{qw(active nextAt timezone branch)} ], [ $false, undef, 'UTC', undef ],
    'a schedule that is not active has no next time; the time zone is UTC by default');
my $paused = $got->{json}{id};

# --- faults
for my $case (
	[ {}, '422 /cron /name /pipelineId /projectId', 'an empty body' ],
	[ body(name => ''), '422 /name', 'an empty name' ],
	[ body(name => "a\nb"), '422 /name', 'two lines' ],
	[ body(name => 'Nightly'), '409 /name', 'a name in use in another case' ],
	[ body(name => 'x', cron => '* * *'), '422 /cron', 'three fields' ],
	[ body(name => 'x', cron => '0 0 30 2 *'), '422 /cron', 'a day that never comes' ],
	[ body(name => 'x', timezone => 'Mars/Olympus'), '422 /timezone', 'an unknown time zone' ],
	[ body(name => 'x', timezone => '../UTC'), '422 /timezone', 'a path' ],
	(map { [ body(name => 'x', timezone => $_), '422 /timezone', "the file $_" ] }
	    qw(localtime posixrules Factory)),
	[ body(name => 'x', projectId => 77777), '422 /projectId', 'an unknown project' ],
	[ body(name => 'x', projectId => $other), '422 /pipelineId', 'the pipeline of another project' ],
	[ body(name => 'x', environmentId => 77777), '422 /environmentId', 'an unknown environment' ],
	[ body(name => 'x', branch => 'a..b'), '422 /branch', 'an invalid branch' ],
	[ body(name => 'x', envVars => { SIZE => 'xl' }), '422 /envVars/SIZE', 'a value that is no option' ],
	[ body(name => 'x', envVars => { PATH => '/' }), '422 /envVars/PATH', 'a reserved name' ],
	[ body(name => 'x', envVars => { TOKEN => 'x' }), '422 /envVars/TOKEN', 'a secret' ],
	[ body(name => 'x', envVars => { SIZE => undef }), '422 /envVars/SIZE', 'null for a value' ],
	[ body(name => 'x', nextAt => '2030-01-01T00:00:00Z'), '422 /nextAt', 'the next time' ],
	[ body(name => 'x', failures => 1), '422 /failures', 'the number of failures' ],
	[ body(name => 'x', active => 1), '422 /active', 'a number for active' ],
) {
	my ($body, $want, $name) = @$case;
	is(outcome($maintainer->post('/api/schedules', $body)), $want, "$name is rejected");
}
is(outcome($maintainer->put($path, { cron => 'soon' })),
    '422 /cron', 'a change to an invalid cron is rejected');
is(outcome($maintainer->put($path, { name => 'paused' })),
    '409 /name', 'a change to a name in use is rejected');
is(outcome($maintainer->put($path, { projectId => $other })), '422 /projectId', 'the project cannot change');
my $deployer = $api->as('deployer');
is($deployer->post('/api/schedules', body(name => 'x'))->{status}, 403, 'a deployer creates no schedule');
is($deployer->put($path, { active => $false })->{status}, 403, 'a deployer changes no schedule');
is($deployer->delete($path)->{status}, 403, 'a deployer deletes no schedule');
is($api->as('none')->get('/api/schedules')->{status}, 401, 'schedules are not public');
is($api->get('/api/schedules/77777')->{status}, 404, 'an unknown schedule returns 404');
is($api->get("/api/schedules?projectId=$other")->{json}{pagination}{total}, 0, 'another project has none');
is(join(' ', map { $_->{name} } @{ $api->get("/api/schedules?projectId=$project")->{json}{data} }),
    'nightly paused', 'rejected requests create nothing, and a list is sorted by name');

my $guarded = $all->project($runner->repo, projectDir => 'guarded');
my %guarded = (projectId => $guarded, pipelineId => $all->pipeline($guarded, 'true'), name => 'x',
	environmentId => $all->make('/api/environments', { projectId => $guarded, name => 'live',
	    approval => 'required' })->{id});
is(outcome($maintainer->post('/api/schedules', body(%guarded))), '422 /environmentId',
    'an environment that requires approval is rejected');

# --- changes
is($maintainer->put($path, { name => 'nightly 2' })->{json}{nextAt}, $next, 'a new name keeps the next time');
like($maintainer->put($path, { cron => '0 5 * * *' })->{json}{nextAt}, qr/T0[34]:00:00/,
    'a new cron sets the next time');
like($maintainer->put($path, { timezone => 'UTC' })->{json}{nextAt}, qr/T05:00:00/,
    'a new time zone sets the next time');
is($maintainer->put($path, { active => $false })->{json}{nextAt}, undef,
    'the next time is null while a schedule is not active');
like($maintainer->put($path, { active => $true })->{json}{nextAt}, qr/T05:00:00/,
    'the next time comes back when the schedule is active');
my $etag = $api->get($path)->{headers}{etag};
is($maintainer->put($path, { branch => undef, envVars => {} }, { 'If-Match' => $etag })->{status}, 200,
    'a change with the current ETag succeeds');
is($maintainer->put($path, { name => 'x' }, { 'If-Match' => $etag })->{status},
    412, 'one with an old ETag fails');

# --- firing
is(count(), 0, 'no schedule has fired');
due($id, 7 * 86400);
my $last = fired($id, 0, 'a schedule that is due fires');
$got = $all->wait($last);
is_deeply([ @$got{qw(status trigger createdBy pipelineId branch)} ],
    [ 'success', 'schedule', undef, $pipeline, 'main' ],
    'the deployment of the schedule succeeds, with the stored secret');
is(count(), 1, 'times that were missed are fired once');
like(show($id)->{nextAt}, qr/T05:00:00/, 'the next time is in the future');
cmp_ok(show($id)->{nextAt}, 'gt', strftime('%FT%T', gmtime), 'the next time is not one that was missed');
is(show($paused)->{lastDeploymentId}, undef, 'a schedule that is not active does not fire');

# --- two runners
my $second = Slipway::Runner->start(db => $db);
ok(poll(60, sub { $api->get('/api/health')->{json}{runners}{online} == 2 }), 'two runners are online');
my @many = map { $all->make('/api/schedules', body(name => "many $_"))->{id} } 1 .. 8;
$db->sql('UPDATE schedule SET next_at = NOW(3) WHERE id IN (' . join(',', @many) . ')');
$_->ring for $runner, $second;
my @made = map { fired($_, $last, 'a schedule fires with two runners') } @many;
is(count(), 9, 'each schedule fires once');
$all->wait($_) for @made;
is($maintainer->delete("/api/schedules/$_")->{status}, 204, 'a schedule is deleted') for @many;
is($second->stop, 0, 'the second runner stops');

# --- failures
is($maintainer->put($path, { envVars => { SIZE => 'l' } })->{status}, 200, 'the next deployments will fail');
for my $n (1 .. 3) {
	due($id);
	$last = fired($id, $last, 'the schedule fires');
	is($all->wait($last)->{status}, 'failed', 'the deployment of the schedule fails');
	is(show($id)->{failures}, $n, "$n failures in a row are counted");
}
is(show($id)->{active}, $true, 'the schedule stays active');
is(show($id)->{envVars}{SIZE}, 'l', 'the schedule keeps its variables');
$maintainer->put($path, { envVars => {} });
due($id);
$last = fired($id, $last, 'it fires again');
$all->wait($last);
is(show($id)->{failures}, 0, 'a success ends the count');
my $gate = tempdir() . '/gate';
$maintainer->put($path, { pipelineId => $all->pipeline($project,
	"echo up; until test -e $gate; do sleep 0.1; done; false") });
due($id);
my $long = fired($id, $last, 'the schedule fires');
ok($all->saw($long, qr/^up$/m), 'its deployment runs');
my @next = ($long);
for my $what ('fires meanwhile', 'fires once more') {
	due($id);
	push @next, fired($id, $next[-1], "the schedule $what");
}
spew($gate, '');
is($all->wait($long)->{status}, 'failed', 'the deployment that ran fails');
is($all->wait($last = $next[2])->{status}, 'failed', 'so does the next one');
is(show($id)->{failures}, 2, 'both failures are counted');
my $closed = $all->make('/api/environments', { projectId => $project, name => 'closed', branches => ['x'] });
due($id);
ok(poll(60, sub { defined show($id)->{lastError} }), 'the rules reject the next deployment');
is(show($id)->{failures}, 2, 'one that was not created is not counted');
$api->delete("/api/environments/$closed->{id}");
$maintainer->put($path, { pipelineId => $pipeline });
due($id);
$last = fired($id, $last, 'the schedule fires again');
is($all->wait($last)->{status}, 'success', 'its deployment succeeds');
is(show($id)->{failures}, 0, 'that ends the count, too');

# --- superseding, and locks
$maintainer->put("/api/projects/$project/lock", { reason => 'freeze' });
due($id);
my $old = fired($id, $last, 'a schedule of a locked project fires');
is($all->show($old)->{status}, 'pending', 'the deployment of a schedule waits for the lock');
due($id);
my $new = fired($id, $old, 'it fires again');
$got = $all->show($old);
is("$got->{status} $got->{reason}", 'canceled superseded', 'the older deployment is superseded');
$maintainer->delete("/api/projects/$project/lock");
is($all->wait($new)->{status}, 'success', 'the newest one runs after the lock');
my $hold = $all->post(projectId => $project, pipelineId => $all->pipeline($project, 'sleep 600'));
ok(poll(60, sub { $all->show($hold)->{status} eq 'running' }), 'a long deployment runs');
due($id);
$old = fired($id, $new, 'a schedule of a busy project fires');
due($id);
$new = fired($id, $old, 'the schedule fires again before its deployment has begun');
is($all->show($old)->{reason}, 'superseded', 'only the newest deployment of a schedule waits');
$api->post("/api/deployments/$hold/cancel");
is($all->wait($new)->{status}, 'success', 'the deployment of the schedule runs when the project is idle');

# --- approval
my $nocheckout = $all->pipeline($guarded, { pipeline => { checkout => 'none' } }, 'true');
my $asking = $all->make('/api/schedules', body(%guarded, pipelineId => $nocheckout))->{id};
$maintainer->put("/api/projects/$guarded/lock", { reason => 'freeze' });
my @asked = (0);
for my $what ('fires', 'fires again', 'fires once more') {
	due($asking);
	push @asked, fired($asking, $asked[-1], "a schedule of an environment that requires approval $what");
	$maintainer->post("/api/deployments/$asked[-1]/approve") if @asked == 3;
}
is($all->show($asked[1])->{reason}, 'superseded', 'one that waits for approval is superseded');
is($all->show($asked[2])->{status}, 'pending', 'one that was approved is not');
$maintainer->delete("/api/projects/$guarded/lock");
is($all->wait($asked[2])->{status}, 'success', 'the approved one runs after the lock');
is($maintainer->delete("/api/schedules/$asking")->{status}, 204, 'the schedule is deleted');

# --- rejected deployments
my $environment = $all->make('/api/environments', { projectId => $project, name => 'production',
	branches => ['release/*'] })->{id};
due($id);
ok(poll(60, sub { defined show($id)->{lastError} }), 'a deployment that the rules reject is recorded');
$got = show($id);
is($got->{lastError}, 'branch: is not a branch that the environment production accepts',
    'the error says why');
is($got->{lastDeploymentId}, $new, 'the last deployment stays');
cmp_ok($got->{nextAt}, 'gt', strftime('%FT%T', gmtime), 'the schedule goes on');
$api->delete("/api/environments/$environment");
due($id);
$last = fired($id, $new, 'it fires again when the rules allow it');
is(show($id)->{lastError}, undef, 'the error is over');
is($all->wait($last)->{status}, 'success', 'the deployment succeeds');

# --- a time zone that the runner's host lacks
$db->sql("UPDATE schedule SET timezone = 'Mars/Olympus' WHERE id = $id");
my $created = count();
due($id);
ok(poll(60, sub { defined show($id)->{lastError} }), 'a schedule whose time zone is missing is recorded');
$got = show($id);
like($got->{lastError}, qr{^timezone: .* does not know Mars/Olympus; install}, 'the error names the zone');
cmp_ok($got->{nextAt}, 'lt', strftime('%FT%T', gmtime(time + 1)),
    'a schedule whose time zone is missing stays due for another runner');
my $beside = $all->make('/api/schedules', body(name => 'beside'))->{id};
due($beside);
$all->wait(fired($beside, 0, 'other schedules fire'));
is(count(), $created + 1, 'the one without a time zone has fired nothing');
$maintainer->delete("/api/schedules/$beside");
$db->sql("UPDATE schedule SET timezone = 'UTC' WHERE id = $id");
$runner->ring;
$all->wait($last = fired($id, $last, 'a schedule fires once its time zone is known'));
is(show($id)->{lastError}, undef, 'the error of a schedule that has fired is cleared');

# --- the clock of the database
# as after a clock that was ahead for days, and was set back
my $ahead = $maintainer->post('/api/schedules', body(name => 'ahead', cron => '0 * * * *'))->{json};
my $right = $ahead->{nextAt};
$db->sql("UPDATE schedule SET next_at = next_at + INTERVAL 9 DAY WHERE id = $ahead->{id}");
ok(poll(30, sub { show($ahead->{id})->{nextAt} eq $right }),
    'a time that a clock set days ahead is corrected when the clock is right again');
like($runner->said, qr/schedule $ahead->{id} fires next at \Q$right\E instead of /, 'the runner says so');
# the database is two days behind the hosts
$db->sql('SET GLOBAL init_connect = "SET timestamp = UNIX_TIMESTAMP() - 172800"');
$db->sql('KILL ' . $_) for split /\n/, $db->sql("SELECT id FROM information_schema.processlist"
    . " WHERE user = 'slipway' AND command = 'Sleep'");
my $behind;
ok(poll(30, sub {
	my $made = $maintainer->post('/api/schedules', body(name => 'behind ' . rand, cron => '0 * * * *'));
	$behind = $made->{json}{nextAt};
	return $made->{status} == 201 && $behind lt strftime('%Y-%m-%dT%H:%M:%SZ', gmtime time - 86400);
}), "a new schedule takes the database's clock") or diag($behind);
$db->sql('SET GLOBAL init_connect = ""');
# --- --once, and deletion
is($runner->stop, 0, 'the runner stops');
due($id);
is(scalar $runner->once, 0, 'a runner for a timer runs once');
$got = show($id)->{lastDeploymentId};
cmp_ok($got, '>', $last, 'a runner for a timer fires the schedules that are due');
is($all->show($got)->{status}, 'success', 'the deployment of the schedule runs');
is($maintainer->delete($path)->{status}, 204, 'a maintainer deletes a schedule');
is($api->get($path)->{status}, 404, 'a deleted schedule returns 404');
is($all->show($got)->{status}, 'success', 'the deployments of a deleted schedule stay');
is($maintainer->post('/api/schedules', body(name => 'nightly 2'))->{status}, 201,
    'the name of a deleted schedule is free again');
$api->delete("/api/projects/$project");
is($db->sql('SELECT COUNT(*) FROM schedule WHERE valid = 1'), 0, 'schedules end with their project');
$db->sql('UPDATE schedule SET next_at = NOW(3)');
my $before = count();
is(scalar $runner->once, 0, 'the runner runs once more');
is(count(), $before, 'deleted schedules do not fire');

ok($all->is_clean, 'the jobs leave nothing');
done_testing;
