#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Environments over REST: members, faults, secret variables, order, deletion, and
# what a deployment to one is checked against and gets.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome pointers);
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $json = JSON::PP->new->canonical;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 1\n");
my $deployer = $api->as('deployer');
my ($n, $got) = (0);

sub preset { my ($key, %more) = @_; return { key => $key, label => $key, type => 'input', %more } }
# A project with a pipeline: (project, pipeline).
sub project {
	my (%more) = @_;
	$n++;
	my $id = $api->make('/api/projects', { name => "p$n",
		repository => 'https://git.example.org/o/p.git', %more })->{id};
	return ($id, $api->make('/api/pipelines', { projectId => $id, name => 'l',
		steps => [ { name => 's', script => 'make' } ] })->{id});
}
sub environment {
	my ($project, $name, %more) = @_;
	return $api->make('/api/environments', { projectId => $project, name => $name, %more })->{id};
}
sub body { my (%more) = @_; $n++; return { name => "env$n", %more } }
sub var { my ($key, $value, %more) = @_; return { key => $key, value => $value, %more } }

# --- members
my ($project, $pipeline) = project();
my ($other) = project();
my %full = (projectId => $project, name => 'production', url => 'https://www.example.org/',
	branches => [ 'main', 'release/*' ], tags => ['v*'], runner => 'rack 7',
	variables => [ var('HOST', 'www', secret => $false), var('TOKEN', 'sword fish', secret => $true) ]);
$got = $api->post('/api/environments', \%full);
is($got->{status}, 201, 'an environment is created') or diag($got->{body});
my $production = $got->{json};
my $path = "/api/environments/$production->{id}";
is($got->{headers}{location}, $path, 'Location is the path of the new environment');
is_deeply({ map { $_ => $production->{$_} } keys %full },
    { %full, variables => [ var('HOST', 'www', secret => $false), var('TOKEN', undef, secret => $true) ] },
    'the environment has the members sent, without secret values');
is_deeply([ @{$production}{qw(live position valid)} ], [ undef, 0, 1 ],
    'a new environment has nothing live, is first and is valid');
is($api->as('viewer')->get($path)->{body}, $got->{body}, 'GET returns what POST returned');
unlike(join("\n", $db->sql('SELECT secret_values, variables FROM environment')), qr/sword/,
    'a secret variable is stored encrypted');
my $staging = environment($project, 'staging');
$got = $api->get("/api/environments/$staging")->{json};
is_deeply([ @{$got}{qw(url branches tags variables runner position)} ], [ undef, [], [], [], undef, 1 ],
    'omitted members are null or empty, and a new environment is the last');

# --- faults
for my $case (
	[ {}, '/name /projectId', 'an empty body' ],
	[ body(projectId => 77777), '/projectId', 'an unknown project' ],
	[ body(projectId => $project, name => ''), '/name', 'an empty name' ],
	[ body(projectId => $project, name => '-x'), '/name', 'a name that starts with a dash' ],
	[ body(projectId => $project, name => 'a b'), '/name', 'a name with a blank' ],
	[ body(projectId => $project, name => 'x' x 51), '/name', 'a name of 51 characters' ],
	[ body(projectId => $project, url => 'ftp://example.org/'), '/url',
	    'an address with another scheme' ],
	[ body(projectId => $project, url => 'https://a b/'), '/url', 'an address with a blank' ],
	[ body(projectId => $project, position => -1), '/position', 'a negative position' ],
	[ body(projectId => $project, branches => 'main'), '/branches', 'a string for branches' ],
	[ body(projectId => $project, branches => [ 'main', 1 ]), '/branches/1', 'a number for a branch' ],
	[ body(projectId => $project, branches => ['']), '/branches/0', 'an empty pattern' ],
	[ body(projectId => $project, branches => ['a..b']), '/branches/0',
	    'a pattern that no branch matches' ],
	[ body(projectId => $project, tags => ['a b']), '/tags/0', 'a pattern that no tag matches' ],
	[ body(projectId => $project, branches => [ map { "b$_" } 1 .. 101 ]), '/branches', '101 patterns' ],
	[ body(projectId => $project, variables => { A => 1 }), '/variables', 'an object for variables' ],
	[ body(projectId => $project, variables => [ {} ]), '/variables/0/key', 'a variable without a key' ],
	[ body(projectId => $project, variables => [ var('1A', 'x') ]), '/variables/0/key',
	    'an invalid key' ],
	[ body(projectId => $project, variables => [ var('LD_PRELOAD', 'x') ]), '/variables/0/key',
	    'a key that controls the loader' ],
	[ body(projectId => $project, variables => [ var('SLIPWAY_ENVIRONMENT', 'x') ]), '/variables/0/key',
	    'a key of the service' ],
	[ body(projectId => $project, variables => [ var('A', 'x'), var('A', 'y') ]), '/variables/1/key',
	    'a repeated key' ],
	[ body(projectId => $project, variables => [ var('A', undef) ]), '/variables/0/value',
	    'null for a value that is not secret' ],
	[ body(projectId => $project, variables => [ { key => 'A' } ]), '/variables/0/value',
	    'a variable without a value' ],
	[ body(projectId => $project, variables => [ var('A', undef, secret => $true) ]),
	    '/variables/0/value', 'null for a secret that is not stored' ],
	[ body(projectId => $project, variables => [ map { var("A$_", 'x' x 60000) } 1 .. 3 ]), '/variables',
	    'variables of 180 kB' ],
	[ body(projectId => $project, live => {}), '/live', 'what is live' ],
	[ body(projectId => $project, runner => ''), '/runner', 'an empty runner' ],
	[ body(projectId => $project, approver => []), '/approver', 'an unknown member' ],
) {
	my ($body, $want, $name) = @$case;
	is(outcome($api->post('/api/environments', $body)), "422 $want", "$name is rejected");
}
is($api->get('/api/environments')->{json}{pagination}{total}, 2, 'rejected requests create no environment');
is(outcome($api->post('/api/environments', { projectId => $project, name => 'Production' })), '409 /name',
    'a name in use in the project, in another case, is a conflict');
is($api->post('/api/environments', { projectId => $other, name => 'production' })->{status}, 201,
    'a name in use in another project is free');
is($deployer->post('/api/environments', body(projectId => $project))->{status}, 403,
    'a deployer creates no environment');
is($deployer->put($path, { url => undef })->{status}, 403, 'a deployer changes no environment');
is($deployer->delete($path)->{status}, 403, 'a deployer deletes no environment');

# --- changes
sub stored { return $db->sql("SELECT secret_values FROM environment WHERE id = $production->{id}") }
my $sealed = stored();
my $tag = $api->get($path)->{headers}{etag};
$got = $api->put($path, $production);
is("$got->{status} $got->{headers}{etag}", "200 $tag", 'sending an environment back changes nothing');
is(stored(), $sealed, 'null keeps a secret value');
is($api->put($path, { url => undef }, { 'If-Match' => '"9-x"' })->{status}, 412,
    'a change with another tag returns 412');
$got = $api->put($path, { url => undef, variables => [ var('TOKEN', undef, secret => $true),
	var('B', 'b') ] });
is($got->{status}, 200, 'an environment is changed') or diag($got->{body});
is_deeply($got->{json}{variables}, [ var('TOKEN', undef, secret => $true), var('B', 'b', secret => $false) ],
    'variables are replaced as a whole');
is(stored(), $sealed, 'a secret keeps its value when others change');
is(outcome($api->put($path, { variables => [ var('TOKEN', undef) ] })), '422 /variables/0/value',
    'a secret cannot become visible without its value');
is(outcome($api->put($path, { variables => [ var('NEW', undef, secret => $true) ] })),
    '422 /variables/0/value',
    'null for a new secret is rejected');
$api->put($path, { variables => [ var('TOKEN', 'new value', secret => $true) ] });
isnt(stored(), $sealed, 'a new secret value replaces the old one');
is(outcome($api->put($path, { projectId => $other })), '422 /projectId', 'an environment keeps its project');
is(outcome($api->put($path, { name => 'staging' })), '409 /name', 'a change to a name in use is a conflict');
is($api->put('/api/environments/77777', {})->{status}, 404, 'a change of an unknown environment returns 404');
is($api->put($path, { position => 7 })->{status}, 200, 'an environment can be moved');
sub names { return join ' ', map { $_->{name} } @{ $api->get("/api/environments$_[0]")->{json}{data} } }
is(names("?projectId=$project"), 'staging production', 'a list is ordered by position');
is(names('?limit=1&page=2'), 'production', 'a list has pages');
is(names('?projectId=77777'), '', 'an unknown project has no environments');
is(outcome($api->get('/api/environments?projectId=x')), '400', 'an invalid filter is rejected');

# --- deployments: the environment
sub deploy { my ($as, %body) = @_; return $as->post('/api/deployments', { projectId => $project, %body }) }
is(outcome(deploy($deployer, branch => 'main')), '422 /environmentId',
    'with several environments, a deployment must name one');
is(outcome(deploy($deployer, branch => 'main', environmentId => 77777)), '422 /environmentId',
    'an unknown environment is rejected');
my ($foreign) = map { $_->{id} } @{ $api->get("/api/environments?projectId=$other")->{json}{data} };
is(outcome(deploy($deployer, branch => 'main', environmentId => $foreign)), '422 /environmentId',
    'an environment of another project is rejected');
for my $case ([ 'main', '201' ], [ 'release/1', '201' ], [ 'release/1/x', '422 /branch' ],
    [ 'Main', '422 /branch' ], [ undef, '422 /branch' ]) {
	my ($branch, $want) = @$case;
	is(outcome(deploy($deployer, branch => $branch, environmentId => $production->{id})), $want,
	    'branch ' . ($branch || 'null') . " to an environment with main and release/*: $want");
}
is(outcome(deploy($deployer, branch => 'feature', environmentId => $staging)), '201',
    'an environment without patterns accepts any branch');
is(outcome(deploy($deployer, environmentId => $staging)), '201',
    'an environment without patterns accepts the default branch');
is(outcome(deploy($deployer, branch => '-x', environmentId => $production->{id})), '422 /branch',
    'an invalid branch is reported once');
my ($bare) = project();
is(outcome($deployer->post('/api/deployments', { projectId => $bare, environmentId => $staging })),
    '422 /environmentId', 'a project without environments accepts none');
my $nowhere = $deployer->post('/api/deployments', { projectId => $bare })->{json};
is($nowhere->{environmentId}, undef, 'a deployment of a project without environments has none');
is(outcome($deployer->post("/api/deployments/$nowhere->{id}/retry")), '201', 'it can be retried');
for my $name (qw(first second)) {
	environment($bare, $name, approval => 'required');
	$got = $deployer->post("/api/deployments/$nowhere->{id}/retry");
	is($got->{status}, 409, "a retry does not go past the $name environment of the project");
}
like($got->{json}{detail}, qr/ has no environment, but its project has environments now/,
    'the error says why');

# --- deployments: variables
my ($shop) = project(envPresets => [ preset('HOST', required => $true), preset('LEVEL', default => '7'),
	preset('KEY', secret => $true, default => 'preset key'), preset('NOTE', default => 'preset') ]);
sub shop { my ($as, %vars) = @_; return $as->post('/api/deployments', { projectId => $shop,
    envVars => \%vars }) }
is(outcome(shop($deployer)), '422 /envVars/HOST', 'a required variable is required without an environment');
my $live = environment($shop, 'live', variables => [ var('HOST', 'live.example.org'), var('LEVEL', '8'),
	var('KEY', 'live key'), var('MORE', 'm'), var('HIDDEN', 'hidden value', secret => $true) ]);
$got = shop($deployer);
is($got->{status}, 201, 'a variable of the environment satisfies a preset that requires it')
    or diag($got->{body});
is($got->{json}{environmentId}, $live, 'the only environment of a project is the default');
is_deeply($got->{json}{envVars}, { HOST => 'live.example.org', LEVEL => '8', KEY => undef, MORE => 'm',
	HIDDEN => undef, NOTE => 'preset' },
    'variables of the environment precede defaults of presets, and secrets read as null');
my $first = $got->{json}{id};
my $secrets = $json->decode($db->sql("SELECT secret_vars FROM deployment WHERE id = $first"));
is_deeply([ sort keys %$secrets ], [qw(HIDDEN KEY)],
    'a variable is encrypted if the environment or a preset says that it is secret');
is($secrets->{HIDDEN},
    $json->decode($db->sql("SELECT secret_values FROM environment WHERE id = $live"))->{HIDDEN},
    'a secret of the environment is copied without decrypting it');
$got = shop($api, HOST => 'sent', HIDDEN => 'sent secret');
is($got->{json}{envVars}{HOST}, 'sent', 'a variable sent precedes that of the environment');
is($got->{json}{envVars}{HIDDEN}, undef, 'a variable sent in place of a secret is secret');
unlike($db->sql("SELECT CONCAT(env_vars, secret_vars) FROM deployment WHERE id = $got->{json}{id}"),
    qr/sent secret/, 'a value sent in place of a secret is encrypted');
is(outcome(shop($deployer, MORE => 'x')), '422 /envVars/MORE',
    'a deployer cannot replace a variable that no preset names');
is(outcome(shop($deployer, HIDDEN => undef)), '201', 'null for a secret of the environment counts as absent');
is(outcome(shop($deployer, MORE => undef)), '422 /envVars/MORE', 'null for another variable is rejected');
is($api->put("/api/environments/$live", { variables => [ var('HOST', '') ] })->{status}, 200,
    'a variable of an environment can be empty');
is(outcome(shop($deployer)), '422 /envVars/HOST',
    'an empty variable does not satisfy a preset that requires it');
is(outcome($deployer->post("/api/deployments/$first/retry")), '403',
    'a deployer cannot repeat variables that no preset or environment names any more');
$api->put("/api/environments/$live", { variables => [ map { var($_, 'now') } qw(HOST MORE HIDDEN) ] });
is(outcome($deployer->post("/api/deployments/$first/retry")), '403',
    'a deployer cannot repeat values that the environment has no more');
$api->put("/api/environments/$live", { variables => [ var('HOST', 'now'), var('MORE', 'm'),
	var('HIDDEN', 'now', secret => $true) ] });
$got = $deployer->post("/api/deployments/$first/retry");
is($got->{status}, 201, 'a deployer repeats a deployment with variables of the environment')
    or diag($got->{body});
is("$got->{json}{environmentId} $got->{json}{envVars}{HOST}", "$live live.example.org",
    'a retry has the environment and the variables of the deployment that it repeats');
my $most = environment((project())[0], 'most', variables => [ map { var("A$_", 'x' x 60000) } 1 .. 2 ]);
my $of = $api->get("/api/environments/$most")->{json}{projectId};
is(outcome($api->post('/api/deployments', { projectId => $of,
	envVars => { map { ("B$_" => 'x' x 60000) } 1 .. 8 } })), '422 /envVars',
    'all variables together have at most 512 KiB');

# --- triggers
my $web = (project())[0];
my $l = $api->get("/api/pipelines?projectId=$web")->{json}{data}[0]{id};
my @places = map { environment($web, $_) } qw(one two);
sub triggers { return $api->put("/api/projects/$web", { triggers => [@_] }) }
is(outcome(triggers({ branch => 'main', pipelineId => $l, environmentId => $staging })),
    '422 /triggers/0/environmentId', 'a trigger with an environment of another project is rejected');
$got = triggers(map { { branch => 'main', pipelineId => $l, environmentId => $_, envVars => {} } } @places);
is($got->{status}, 200, 'triggers may name environments') or diag($got->{body});
is_deeply([ map { $_->{environmentId} } @{ $got->{json}{triggers} } ], \@places,
    'a trigger returns its environment');
my $secret = $api->put("/api/projects/$web/hook-secret")->{json}{secret};
sub pushed {
	my ($commit) = @_;
	my ($headers, $body) = push_event(gitea => $secret, branch => 'main', path => 'o/p',
	    commit => $commit);
	return $api->as('none')->post("/api/hooks/$web", $body, $headers);
}
$got = pushed('a' x 40);
is($got->{status}, 202, 'a push to two environments is accepted') or diag($got->{body});
is_deeply([ map { $api->get("/api/deployments/$_->{id}")->{json}{environmentId} } @{ $got->{json}{data} } ],
    \@places, 'a push deploys to the environments of the triggers');
triggers({ branch => 'main', pipelineId => $l });
$got = pushed('b' x 40);
is($got->{status}, 422, 'a push is rejected if its trigger names none of several environments');
like($got->{json}{detail}, qr{/environmentId is required}, 'the error says why');
triggers({ branch => 'main', pipelineId => $l, environmentId => $places[0] });
$api->put("/api/environments/$places[0]", { branches => ['release'] });
$got = pushed('c' x 40);
is($got->{status}, 422, 'a push to a branch that the environment does not accept is rejected');
like($got->{json}{detail}, qr{/branch is not a branch that the environment one},
    'the error names the environment that does not accept the branch');

# --- filter
sub listed { return join ' ', map { $_->{id} } @{ $api->get("/api/deployments?$_[0]")->{json}{data} } }
my @to = map { deploy($api, branch => 'main', environmentId => $_)->{json}{id} } $production->{id}, $staging;
like(listed("environmentId=$production->{id}"), qr/^$to[0] /,
    'a list of deployments can be filtered by environment');
for my $more ("projectId=$project", "pipelineId=$pipeline", 'status=pending', 'branch=main') {
	like(listed("environmentId=$staging&$more"), qr/^$to[1]\b/,
	    "the filters environmentId and $more combine");
}
my @all = ("projectId=$project", "pipelineId=$pipeline", 'status=pending', 'branch=main');
for my $set (0 .. 15) {
	my @some = map { $all[$_] } grep { $set & 1 << $_ } 0 .. 3;
	my @want = grep { my $d = $_; $d->{environmentId} == $production->{id}
		&& (!grep({ $_ eq 'branch=main' } @some) || $d->{branch} eq 'main') }
	    grep { defined $_->{environmentId} } @{ $api->get('/api/deployments?limit=100')->{json}{data} };
	is(listed(join '&', "environmentId=$production->{id}", @some), join(' ', map { $_->{id} } @want),
	    "filters environmentId @some return the deployments to it");
}
is(listed("environmentId=$production->{id}&projectId=$other"), '',
    'an environment of another project matches nothing');
is(outcome($api->get('/api/deployments?environmentId=0')), '400', 'environment 0 is rejected');

# --- deletion
is($api->delete("/api/environments/$staging", { 'If-Match' => '"9-x"' })->{status}, 412,
    'a deletion with another tag returns 412');
is($api->delete("/api/environments/$staging")->{status}, 204, 'an environment is deleted');
is($api->get("/api/environments/$staging")->{status}, 404, 'a deleted environment returns 404');
is($api->delete("/api/environments/$staging")->{status}, 404,
    'a deleted environment cannot be deleted again');
$got = $api->get("/api/deployments/$to[1]")->{json};
is("$got->{status} $got->{reason}", 'canceled environment_deleted',
    'the deletion of an environment cancels its pending deployments');
is($api->get("/api/deployments/$to[0]")->{json}{status}, 'pending', 'deployments to others stay pending');
is(outcome($api->post("/api/deployments/$to[1]/retry")), '409',
    'a deployment to a deleted environment has no retry');
$api->put($path, { branches => ['other'] });
is(outcome($api->post("/api/deployments/$to[0]/retry")), '409',
    'a retry of a branch that the environment no longer accepts is rejected');
environment($project, 'staging');
is(names("?projectId=$project"), 'production staging', 'the name of a deleted environment is free');
$api->delete("/api/projects/$project");
is($api->get($path)->{status}, 404, 'deleting a project deletes its environments');
is(names("?projectId=$project"), '', 'a deleted project has no environments');

# --- without a key
my $nokey = Slipway::API->start(db => Slipway::DB->start);
my $id = $nokey->make('/api/projects', { name => 'p',
    repository => 'https://git.example.org/o/p.git' })->{id};
is(outcome($nokey->post('/api/environments', { projectId => $id, name => 'x',
	variables => [ var('A', 'a', secret => $true) ] })), '503', 'a secret without a key returns 503');
is($nokey->get('/api/environments')->{json}{pagination}{total}, 0, 'no environment is created then');

done_testing;
