#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Runners report their presence, labels and slots; environments are bound to a name
# or a label; without a runner the service is degraded and deployments say so.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $all = Slipway::Whole->start(runner => "[runner]\nlabels = rack7, eu\nslots = 3\n");
my ($api, $db, $first) = ($all->api, $all->db, $all->runner);
sub runners { return $api->get('/api/runners')->{json}{data} }
sub runner { my ($name) = @_; return (grep { $_->{name} eq $name } @{ runners() })[0] }
sub health { return $api->as('none')->get('/api/health') }
sub is_online { my ($name) = @_; my $r = runner($name); return $r && $r->{online} }
sub waits { my ($id) = @_; return $all->show($id)->{waitingFor}[0] || {} }
sub bind_to { my ($env, $to) = @_; return $api->put("/api/environments/$env", { runner => $to })->{status} }

my $project = $all->project($first->repo);
my $pipeline = $all->pipeline($project, 'true');
my $env = $all->make('/api/environments', { projectId => $project, name => 'production' })->{id};
my %run = (projectId => $project, pipelineId => $pipeline);
sub post { return $all->post(%run, environmentId => $env) }

# --- presence
ok(poll(60, sub { is_online('runner-1') }), 'a runner that starts is online');
my $got = $api->as('viewer')->get('/api/runners');
is($got->{status}, 200, 'a viewer lists runners');
my %is = %{ $got->{json}{data}[0] };
is_deeply([ @is{qw(name labels slots running online)} ], [ 'runner-1', [ 'rack7', 'eu' ], 3, 0, $true ],
    'a runner has a name, labels, slots and no running deployment');
is($is{version}, health()->{json}{version}, 'a runner has a version');
cmp_ok($is{seenAt}, 'ge', $is{startedAt}, 'a runner reports after its start');
is($got->{json}{pagination}{total}, 1, 'the list is counted');
is($api->as('none')->get('/api/runners')->{status}, 401, 'runners are not public');
is(outcome($api->get('/api/runners?limit=0')), '400', 'an invalid limit is rejected');
is($api->post('/api/runners', {})->{status}, 405, 'runners cannot be created');
is_deeply([ @{ health()->{json} }{qw(status runners)} ], [ 'ok', { online => 1, total => 1 } ],
    'the service with a runner is healthy');
$db->sql('UPDATE runner SET slots = 99');
is($all->wait(post())->{status}, 'success', 'a deployment succeeds');
is(runner('runner-1')->{slots}, 99, 'a deployment causes no report');

# --- labels
for my $to ('runner-1', 'rack7', 'eu') {
	is(bind_to($env, $to), 200, "an environment is bound to $to");
	is($all->wait(post())->{status}, 'success', "the runner runs what is bound to $to");
}
my $other = Slipway::Runner->start(db => $db, conf => $first->{conf} =~ s/^labels.*$/labels = rack8/mr);
ok(poll(60, sub { is_online('runner-2') }), 'a second runner is online');
bind_to($env, 'rack8');
my $id = post();
is($all->wait($id)->{runner}, 'runner-2', 'the runner with the label runs the deployment');
is_deeply(health()->{json}{runners}, { online => 2, total => 2 }, 'both runners are counted');

# --- an environment that is bound after a runner chose the deployment
bind_to($env, 'nowhere');
$id = post();
my $holder = $db->hold("SELECT id FROM deployment WHERE id = $id FOR UPDATE");
bind_to($env, 'rack7');
ok(poll(60, sub { $db->waiting > 0 }), 'the first runner is about to claim a deployment');
bind_to($env, 'rack8');
$db->let_go($holder);
is($all->wait($id)->{runner}, 'runner-2', 'the runner to which the environment is bound now runs it');

# --- a runner that does not exist
for my $to ('rack9', 'RACK7', 'rack', 'rack7, eu', '"rack7"', 'e\\u0075', '*') {
	bind_to($env, $to);
	my $waits = post();
	ok(poll(60, sub { (waits($waits)->{reason} || '') eq 'no_runner' }),
	    "a deployment bound to $to waits for a runner");
	is(waits($waits)->{detail}, "The environment production is bound to the runner $to, and no runner"
	    . ' with this name or label is online.', 'the detail names the environment and the runner');
	is($api->post("/api/deployments/$waits/cancel")->{status}, 200,
	    'a deployment that waits for a runner can be canceled');
}
bind_to($env, 'rack9');
my $late = post();
ok(poll(60, sub { (waits($late)->{reason} || '') eq 'no_runner' }), 'a deployment waits for rack9');
$other->write_conf($other->{conf} =~ s/^labels.*$/labels = rack9/mr);
kill HUP => $other->pid;
is($all->wait($late)->{runner}, 'runner-2', 'a reload gives a runner a label, and it runs the deployment');
ok(poll(60, sub { "@{ runner('runner-2')->{labels} }" eq 'rack9' }), 'the new label is reported');

# --- deployments that pass those which wait for a runner
my $staging = $all->make('/api/environments', { projectId => $project, name => 'staging' })->{id};
bind_to($env, 'nowhere');
my ($stuck, $behind) = (post(), post());
ok(poll(60, sub { (waits($stuck)->{reason} || '') eq 'no_runner' }),
    'a deployment waits for a missing runner');
sub staged { return $all->post(%run, environmentId => $staging) }
is($all->wait(staged())->{status}, 'success',
    'a later deployment to another environment passes one that waits for a runner');
$db->sql("UPDATE deployment SET turn = 0, `trigger` = 'rollback' WHERE id = $behind");
is($all->wait(staged())->{status}, 'success',
    'a later deployment passes a rollback that waits for a missing runner');
is_deeply([ map { $all->show($_)->{status} } $stuck, $behind ], [ 'pending', 'pending' ],
    'deployments to the environment without a runner still wait');
bind_to($staging, 'nowhere');
my $both = staged();
bind_to($env, undef);
$all->wait($_) for $behind, $stuck;
cmp_ok($all->show($behind)->{startedAt}, 'lt', $all->show($stuck)->{startedAt},
    'when the environment has a runner, they run in their order');
is($all->show($both)->{status}, 'pending', 'the other environment now waits for a missing runner');
bind_to($staging, undef);
is($all->wait($both)->{status}, 'success',
    'a deployment runs when its environment is no longer bound to a runner');

# --- a runner that is drained
my $gate = $all->marks('gate');
unlink $gate;
my $gated = $all->pipeline($project, "until test -e $gate; do sleep 0.1; done");
sub gated { return $all->post(%run, pipelineId => $gated, environmentId => $staging) }
bind_to($staging, 'runner-2');
my ($running, $next) = (gated(), gated());
$all->wait($running, qr/^running$/);
my $before = $other->{conf};
$other->write_conf("$before\nslots = 0\n");
kill HUP => $other->pid;
ok(poll(60, sub { runner('runner-2')->{slots} == 0 }), 'a reload drains a runner');
spew($gate, '', 0644);
is($all->wait($running)->{status}, 'success', 'a drained runner ends what it runs');
ok(poll(60, sub { (waits($next)->{detail} || '') =~ /^No runner has claimed it/ }),
    'a drained runner claims nothing');
is($all->show($next)->{status}, 'pending', 'the deployment still waits');
$other->write_conf($before);
kill HUP => $other->pid;
is($all->wait($next)->{status}, 'success', 'a runner that has slots again claims the deployment');
bind_to($staging, undef);

# --- a stop, and a loss
is($other->stop, 0, 'a runner stops');
is(is_online('runner-2'), $false, 'a runner that was stopped is offline at once');
is_deeply([ @{ health()->{json} }{qw(status runners)} ], [ 'ok', { online => 1, total => 2 } ],
    'the service with one of two runners is healthy');
$first->stop;
$got = health();
is($got->{status}, 200, 'the service without a runner responds with 200');
is_deeply([ @{ $got->{json} }{qw(status runners)} ], [ 'degraded', { online => 0, total => 2 } ],
    'the service without a runner is degraded');
is_deeply((grep { $_->{name} eq 'runners' } @{ $got->{json}{components} })[0],
    { name => 'runners', status => 'down', detail => 'No runner is online. Start slipway-runner.' },
    'the health of the service says what is down and what to do');
bind_to($env, undef);
$id = post();
ok(poll(60, sub { (waits($id)->{reason} || '') eq 'no_runner' }), 'a deployment without a runner waits');
is(waits($id)->{detail}, 'No runner is online. Start slipway-runner.',
    'a waiting deployment says that no runner is online');
$first->resume;
is($all->wait($id)->{status}, 'success', 'a runner that starts again runs the deployment');
ok(poll(60, sub { is_online('runner-1') }), 'the runner is online again');
$db->sql("UPDATE runner SET seen_at = NOW(3) - INTERVAL 3 MINUTE WHERE name = 'runner-1'");
is(is_online('runner-1'), $false, 'a runner that misses reports is offline');
is(health()->{json}{status}, 'degraded', 'the service is degraded');

sub doctor { return (run_cmd(program('slipway-admin'), '-c', $first->conf_file, 'doctor'))[1] }
like(doctor(), qr/^note   runners: none is online, so deployments wait: systemctl enable --now/m,
    'the doctor notes that no runner is online');
$db->sql("UPDATE runner SET seen_at = NOW(3) WHERE name = 'runner-1'");
like(doctor(), qr/^ok     runners: 1 of 2 are online$/m, 'the doctor counts the runners');

# --- the configuration
for my $labels ('a b,c', 'x' x 50, ' a , b ', 'a.b_c-1') {
	my $conf = spew(tempdir() . '/labels.conf', $db->conf . "[runner]\nlabels = $labels\n", 0600);
	is((run_cmd(program('slipway-api'), '-n', '-c', $conf))[0], 0, "labels are valid: $labels");
}
for my $labels ('x' x 51, 'a/b', 'a:b', 'a,b*', 'é') {
	my $conf = spew(tempdir() . '/labels.conf', $db->conf . "[runner]\nlabels = $labels\n", 0600);
	my ($status, undef, $err) = run_cmd(program('slipway-api'), '-n', '-c', $conf);
	is($status >> 8, 78, "labels are rejected: $labels");
	like($err, qr/labels.*must be labels of up to 50 letters/, 'the error says what a label is');
}
ok($all->is_clean, 'the jobs leave nothing');
done_testing;
