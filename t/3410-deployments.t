#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments through nginx: creating, validating, retrying, canceling, listing.

use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::DB;
use Slipway::Test;
use Socket qw(SOCK_DGRAM);
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $wake_path = tempdir() . '/wake.sock';
my $wake = IO::Socket::UNIX->new(Local => $wake_path, Type => SOCK_DGRAM) or die "wake: $!";
chmod 0777, $wake_path;
my $api = Slipway::API->start(db => $db, conf => "[runner]\nwake_socket = $wake_path\n");
# How often the runner was woken since the last call.
sub woken {
	my $n = 0;
	for (; IO::Select->new($wake)->can_read(0.2); $n++) { recv $wake, my $datagram, 16, 0 }
	return $n;
}

my $n = 0;
sub project {
	my (%more) = @_;
	$n++;
	my $got = $api->post('/api/projects',
	    { name => "p$n", repository => "https://git.example.org/o/p$n.git", %more });
	is($got->{status}, 201, "project $n is created") or diag($got->{body});
	return $got->{json}{id};
}
sub pipeline {
	my ($project, @names) = @_;
	$n++;
	my $got = $api->post('/api/pipelines', { projectId => $project, name => "l$n", timeoutSeconds => 77,
		steps => [ map { { name => $_, script => "echo $_", timeoutSeconds => 5,
			runWhen => $_ eq 'last' ? 'always' : 'success' } } @names ] });
	is($got->{status}, 201, "pipeline $n is created") or diag($got->{body});
	return $got->{json}{id};
}

my $project = project(defaultBranch => 'trunk');
my $pipeline = pipeline($project, 'first', 'last');

# --- creating
my $deployer = $api->as('deployer');
my $got = $deployer->post('/api/deployments', { projectId => $project });
is($got->{status}, 201, 'POST /api/deployments creates a deployment') or diag($got->{body});
my $first = $got->{json};
is($got->{headers}{location}, "/api/deployments/$first->{id}", 'Location is the path of the new deployment');
like($got->{headers}{etag}, qr/^"/, 'a new deployment has an entity tag');
is(woken(), 1, 'a new deployment wakes the runner once');
my %want = (projectId => $project, pipelineId => $pipeline, branch => 'trunk', commitHash => undef,
	commitMessage => undef, status => 'pending', reason => undef, detail => undef, trigger => 'manual',
	retryOf => undef, runner => undef, startedAt => undef, finishedAt => undef, logSize => 0,
	queuePosition => 0);
is_deeply({ map { $_ => $first->{$_} } keys %want }, \%want, 'a new deployment has its members');
is_deeply($first->{envVars}, {}, 'a deployment has no variables by default');
is_deeply([ map { "$_->{position} $_->{name} $_->{status}" } @{ $first->{steps} } ],
    [ '0 first pending', '1 last pending' ], 'a new deployment has pending steps');
is(scalar(grep { exists $_->{script} } @{ $first->{steps} }), 0, 'a deployment does not show scripts');
is($first->{createdBy}, $db->sql("SELECT id FROM user WHERE username = 't-deployer'"),
    'createdBy is the user of the request');
is($db->sql("SELECT CONCAT_WS(' ', timeout_seconds, (SELECT GROUP_CONCAT(script, run_when, timeout_seconds"
    . " ORDER BY position)"
    . " FROM deployment_step WHERE deployment_id = $first->{id})) FROM deployment WHERE id = $first->{id}"),
    '77 echo firstsuccess5,echo lastalways5', 'scripts and time limits are copied');

my $read = $api->as('viewer')->get("/api/deployments/$first->{id}");
is($read->{status}, 200, 'a viewer can read a deployment');
is_deeply($read->{json}, $first, 'GET returns what POST returned');
is($api->get("/api/deployments/$first->{id}", { 'If-None-Match' => $read->{headers}{etag} })->{status}, 304,
    'a read with the entity tag returns 304');
my $second = $api->post('/api/deployments',
    { projectId => $project, pipelineId => $pipeline, branch => 'feature/x-1',
	commitHash => 'abcdef0123', commitMessage => "Two\nlines",
	envVars => { A => '1', B => "x \x{fc}\n" } })->{json};
is_deeply([ @$second{qw(branch commitHash commitMessage queuePosition)} ],
    [ 'feature/x-1', 'abcdef0123', "Two\nlines", 1 ], 'a deployment has the members of the request');
is_deeply($second->{envVars}, { A => '1', B => "x \x{fc}\n" },
    'a deployment has the variables of the request');

# --- invalid requests: a response lists all errors
$got = $api->post('/api/deployments', { projectId => $project, branch => '-rf', commitHash => 'xyz',
	envVars => { PATH => '/x', OK => 'y' } });
is($got->{status}, 422, 'an invalid request returns 422');
is(outcome($got), '422 /branch /commitHash /envVars/PATH', 'a response lists every error');
$got = $api->post('/api/deployments', { projectId => 999999, env => {}, branch => '-rf' });
is(outcome($got), '422 /branch /env /projectId', 'a response lists every error beside an unknown project');
$got = $api->post('/api/deployments', { projectId => 'x', env => {}, envVars => { PATH => '/x' } });
is(outcome($got), '422 /env /projectId',
    'a response lists the errors that need no project beside an invalid one');
$got = $api->post('/api/deployments', { projectId => $project, branch => '-rf',
	envVars => { PATH => '/x', '1x' => 'y', OK => 'z' } });
is(outcome($got), '422 /branch /envVars/1x /envVars/PATH', 'a response lists every error of variables');
for my $bad ([ 'without a project', {}, '/projectId' ],
    [ 'of an unknown project', { projectId => 999999 }, '/projectId' ],
    [ 'of an unknown pipeline', { projectId => $project, pipelineId => 999999 }, '/pipelineId' ],
    [ 'with the former member env', { projectId => $project, env => {} }, '/env' ],
    [ 'with a status', { projectId => $project, status => 'success' }, '/status' ],
    [ 'of an empty branch', { projectId => $project, branch => '' }, '/branch' ],
    [ 'of a branch with ..', { projectId => $project, branch => 'a..b' }, '/branch' ],
    [ 'of a branch with a blank', { projectId => $project, branch => 'a b' }, '/branch' ],
    [ 'of a branch like a revision', { projectId => $project, branch => 'a@{1}' }, '/branch' ],
    [ 'of a branch with a colon', { projectId => $project, branch => 'x:y' }, '/branch' ],
    [ 'of a branch that ends in .lock', { projectId => $project, branch => 'x.lock' }, '/branch' ],
    [ 'with a duplicate member', "{\"projectId\":$project,\"projectId\":$project}", '' ],
    [ 'with a NUL', "{\"projectId\":$project,\"envVars\":{\"A\":\"\\u0000\"}}", '' ],
    [ 'of a short hash', { projectId => $project, commitHash => 'abcdef' }, '/commitHash' ],
    (map { [ "of a hash of $_ digits", { projectId => $project, commitHash => 'a' x $_ }, '/commitHash' ] }
	0, 1, 41, 63, 65, 80),
    [ 'of an invalid hash', { projectId => $project, commitHash => 'g' x 40 }, '/commitHash' ],
    [ 'of a hash like an option', { projectId => $project, commitHash => '--upload-pack=x' }, '/commitHash' ],
    [ 'with an array for variables', { projectId => $project, envVars => [] }, '/envVars' ],
    [ 'with a number for a variable', { projectId => $project, envVars => { A => 1 } }, '/envVars/A' ],
    [ 'with null for a variable', { projectId => $project, envVars => { A => undef } }, '/envVars/A' ],
    [ 'with LD_PRELOAD', { projectId => $project, envVars => { LD_PRELOAD => 'x' } }, '/envVars/LD_PRELOAD' ],
    [ 'with a function of bash', { projectId => $project, envVars => { 'BASH_FUNC_x%%' => 'x' } },
	'/envVars/BASH_FUNC_x%%' ],
    [ 'with a slash in the name of a variable', { projectId => $project, envVars => { 'a/b' => 'x' } },
    '/envVars/a~1b' ],
    [ 'with a large variable', { projectId => $project, envVars => { A => 'x' x 65537 } }, '/envVars/A' ],
    [ 'with too many bytes of variables',
	{ projectId => $project, envVars => { map { ("A$_" => 'x' x 65000) } 1 .. 9 } }, '/envVars' ]) {
	$got = $api->post('/api/deployments', $bad->[1]);
	is(outcome($got), "422 $bad->[2]", "a deployment $bad->[0] is rejected");
}
is($api->post('/api/deployments', '{"projectId":1,}')->{status}, 400, 'a body that is not JSON returns 400');
is($api->as('viewer')->post('/api/deployments', { projectId => $project })->{status}, 403,
    'a viewer cannot create a deployment');
is($api->as('none')->post('/api/deployments', { projectId => $project })->{status}, 401,
    'a deployment without a token returns 401');
for my $digits (7, 39, 40, 64) {
	$got = $api->post('/api/deployments',
	    { projectId => $project, commitHash => substr 'aB' x 32, 0, $digits });
	is($got->{status}, 201, "a hash of $digits digits is accepted");
	my $id = $got->{json}{id};
	$db->sql("DELETE FROM deployment_step WHERE deployment_id = $id; DELETE FROM deployment"
	    . " WHERE id = $id");
}
woken();
my %most = map { ("A$_" => 'x' x 65000) } 1 .. 8;
is($api->post('/api/deployments', { projectId => $project, envVars => \%most })->{status}, 201,
    'nearly 512 KiB of variables are accepted');
is($db->sql("SELECT COUNT(*) FROM deployment"), 3, 'rejected requests create no deployment');
woken();

# --- pipelines
my $other = project();
$got = $api->post('/api/deployments', { projectId => $other });
is(outcome($got), '422 /pipelineId',
    'a deployment of a project without a pipeline is rejected');
my $empty = pipeline($other);
$got = $api->post('/api/deployments', { projectId => $other });
is(outcome($got), '422 /pipelineId',
    'a deployment of a pipeline without steps is rejected');
pipeline($other, 'one');
$got = $api->post('/api/deployments', { projectId => $other });
is(outcome($got), '422 /pipelineId',
    'a deployment that names none of several pipelines is rejected');
like($got->{json}{errors}[0]{detail}, qr/several/, 'the error says that there are several pipelines');
$got = $api->post('/api/deployments', { projectId => $other, pipelineId => $pipeline });
is(outcome($got), '422 /pipelineId',
    "a deployment with another project's pipeline is rejected");
is(woken(), 0, 'rejected requests do not wake the runner');

# --- presets
my @choice = (options => [ { label => 'y', value => 'y' } ]);
for my $bad ([ 'a reserved name', { key => 'PATH', type => 'input' }, 'key' ],
    [ 'a name that controls the shell', { key => 'BASH_ENV', type => 'input' }, 'key' ],
    [ 'an invalid name', { key => '1A', type => 'input' }, 'key' ],
    [ 'an invalid type', { key => 'A', type => 'number' }, 'type' ],
    [ 'a default that is not an option', { key => 'A', type => 'select', default => 'x', @choice },
    'default' ],
    [ 'a default that ends with a comma', { key => 'A', type => 'multiselect', default => 'y,', @choice },
    'default' ],
    [ 'an empty default that is required',
    { key => 'A', type => 'input', required => JSON::PP::true, default => '' }, 'default' ],
    [ 'an invalid pattern', { key => 'A', type => 'input', pattern => '(' }, 'pattern' ],
    [ 'a default that does not match the pattern',
    { key => 'A', type => 'input', pattern => 'a+', default => 'b' }, 'default' ],
    [ 'a secret selection', { key => 'A', type => 'select', secret => JSON::PP::true, @choice }, 'secret' ]) {
	$got = $api->put("/api/projects/$project", { envPresets => [ { label => 'L', %{ $bad->[1] } } ] });
	is(outcome($got), "422 /envPresets/0/$bad->[2]",
	    "a preset with $bad->[0] is rejected");
}
$got = $api->put("/api/projects/$project",
    { envPresets => [ map { { key => $_, label => 'L', type => 'input' } } qw(A B A) ] });
is(outcome($got), '422 /envPresets/2/key', 'a duplicate key of a preset is rejected');
$got = $api->put("/api/projects/$project", { extraEnv => 'nobody',
	envPresets => [ { key => 'A', label => 'L', type => 'input', required => JSON::PP::true },
	    { key => 'S', label => 'L', type => 'input', secret => JSON::PP::true } ],
	triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => { S => 'x', B => 'y' } } ] });
is(outcome($got), '422 /triggers/0/envVars/A /triggers/0/envVars/B',
    'a trigger without a required variable and with an unknown one is rejected');
my %trigger = (branch => 'x/*', pipelineId => $pipeline);
$got = $api->put("/api/projects/$project", { triggers => [ { %trigger, envVars => { ENV => '/x' } } ] });
is(outcome($got), '422 /triggers/0/envVars/ENV', 'a trigger with a reserved name is rejected');
is($api->put("/api/projects/$project", { triggers => [ { %trigger, envVars => { A => 'b' } } ] })->{status},
    200, 'a valid trigger is accepted');

my $form = project(extraEnv => 'nobody', envPresets => [
	{ key => 'STAGE', label => 'Stage', type => 'select', required => JSON::PP::true,
	    options => [ { label => 'Test', value => 'test' }, { label => 'Live', value => 'live' } ] },
	{ key => 'PARTS', label => 'Parts', type => 'multiselect', default => 'a',
	    options => [ map { { label => uc, value => $_ } } qw(a b c) ] },
	{ key => 'TAG', label => 'Tag', type => 'input', pattern => 'v[0-9]+' },
	{ key => 'KEY', label => 'Key', type => 'input', secret => JSON::PP::true },
]);
pipeline($form, 'one');
$got = $api->post('/api/deployments',
    { projectId => $form, envVars => { PARTS => 'a,d', TAG => '1', OTHER => 'x' } });
is(outcome($got), '422 /envVars/OTHER /envVars/PARTS /envVars/STAGE /envVars/TAG',
    'a response lists every variable that the presets reject');
$got = $api->post('/api/deployments', { projectId => $form, envVars => { STAGE => 'live', TAG => 'v2' } });
is($got->{status}, 201, 'variables that match the presets are accepted') or diag($got->{body});
is_deeply($got->{json}{envVars}, { STAGE => 'live', TAG => 'v2', PARTS => 'a' },
    'an omitted variable gets the default of its preset');
my $secret = { projectId => $form, envVars => { STAGE => 'test', KEY => 'hunter2-hunter2' } };
$got = $api->post('/api/deployments', $secret);
is($got->{status}, 503, 'a secret variable without a key returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'the error says how to create a key');
cmp_ok($got->{headers}{'retry-after'}, '>', 60, 'Retry-After leaves time to create one');
ok(make_keys($api->conf_file, $api->dir . '/secret.key'), 'slipway-admin key creates the keys for secrets');
chmod 0640, $api->dir . '/secret.key';
kill 'HUP', $api->pid;
poll(10, sub { $got = $api->post('/api/deployments', $secret); $got->{status} == 201 });
is($got->{status}, 201, 'a secret variable is accepted once there is a key') or diag($got->{body}, $api->log);
my $sealed = $got->{json};
is_deeply($sealed->{envVars}, { STAGE => 'test', KEY => undef, PARTS => 'a' },
    'a secret variable is returned as null');
unlike($got->{body}, qr/hunter2/, 'the response does not contain the secret');
is($api->get("/api/deployments/$sealed->{id}")->{json}{envVars}{KEY}, undef,
    'GET returns a secret variable as null');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE id = $sealed->{id} AND LENGTH(secret_vars) > 40"
    . " AND secret_vars NOT LIKE '%hunter2%' AND env_vars NOT LIKE '%hunter2%'"), 1,
    'a secret variable is stored encrypted');

# --- retry
my ($step) = map { $_->{id} } @{ $api->get("/api/steps?pipelineId=$pipeline")->{json}{data} };
$api->put("/api/steps/$step", { script => 'echo changed' });
$db->sql("UPDATE deployment SET status = 'failed', finished_at = NOW(3), commit_hash = REPEAT('a', 40),"
    . " branch = 'trunk' WHERE id = $first->{id}");
woken();
$got = $deployer->post("/api/deployments/$first->{id}/retry");
is($got->{status}, 201, 'a retry creates a deployment') or diag($got->{body});
my $again = $got->{json};
is($got->{headers}{location}, "/api/deployments/$again->{id}", 'Location is the path of the retry');
is_deeply([ @$again{qw(status trigger retryOf branch commitHash pipelineId startedAt)} ],
    [ 'pending', 'retry', $first->{id}, 'trunk', 'a' x 40, $pipeline, undef ], 'a retry is a pending copy');
is($db->sql("SELECT script FROM deployment_step WHERE deployment_id = $again->{id} AND position = 0"),
    'echo first',
    'a retry copies the steps of the deployment, not those of the pipeline');
is(woken(), 1, 'a retry wakes the runner');
is($api->post('/api/deployments', { projectId => $project })->{status}, 201,
    'a new deployment is created after a step changed');
is($db->sql('SELECT script FROM deployment_step WHERE position = 0 ORDER BY deployment_id DESC LIMIT 1'),
    'echo changed', 'a new deployment has the changed script');
$got = $api->post("/api/deployments/$sealed->{id}/retry");
is($got->{status}, 201, 'a deployment with a secret can be retried');
is($db->sql("SELECT COUNT(*) FROM deployment a, deployment b WHERE a.id = $sealed->{id}"
    . " AND b.id = $got->{json}{id}"
    . " AND a.secret_vars = b.secret_vars AND a.env_vars = b.env_vars"), 1, 'a retry has the same secret');
is($api->put("/api/projects/$form", { envPresets => [] })->{status}, 200,
    'the presets of a project are changed');
is($api->post("/api/deployments/$sealed->{id}/retry")->{status}, 201,
    'a deployment can be retried after presets changed');
is($api->delete("/api/pipelines/$pipeline")->{status}, 204, 'the pipeline is deleted');
is($api->post("/api/deployments/$first->{id}/retry", {})->{status}, 201,
    'a deployment of a deleted pipeline can be retried');
is($api->post('/api/deployments/999999/retry')->{status}, 404,
    'a retry of an unknown deployment returns 404');
is($api->as('viewer')->post("/api/deployments/$first->{id}/retry")->{status}, 403,
    'a viewer cannot retry a deployment');
is($api->post("/api/deployments/$first->{id}/retry", { branch => 'x' })->{status}, 400,
    'a retry with a body returns 400');
$got = $api->get("/api/deployments/$first->{id}/retry");
is("$got->{status} $got->{headers}{allow}", '405 POST, OPTIONS', 'GET of a retry returns 405');

# --- cancel
woken();
$got = $deployer->post("/api/deployments/$again->{id}/cancel");
is($got->{status}, 200, 'a pending deployment can be canceled');
is_deeply([ @{ $got->{json} }{qw(status reason)} ], [ 'canceled', 'canceled_by_user' ],
    'a pending deployment is canceled at once');
ok($got->{json}{finishedAt}, 'a canceled deployment has finishedAt');
is(join(' ', map { $_->{status} } @{ $got->{json}{steps} }), 'skipped skipped',
    'the steps of a canceled deployment are skipped');
is(woken(), 1, 'canceling wakes the runner');
$got = $api->post("/api/deployments/$again->{id}/cancel");
is($got->{status}, 409, 'canceling a canceled deployment is a conflict');
like($got->{json}{detail}, qr/canceled/, 'the conflict names the status');
$db->sql("UPDATE deployment SET status = 'running', epoch = 1, started_at = NOW(3) WHERE id = $second->{id}");
$got = $api->post("/api/deployments/$second->{id}/cancel");
is("$got->{status} $got->{json}{status}", '200 running', 'canceling a running deployment leaves it running');
my $asked = $db->sql("SELECT cancel_at FROM deployment WHERE id = $second->{id}");
isnt($asked, 'NULL', 'canceling a running deployment stores the request for the runner');
$got = $api->post("/api/deployments/$second->{id}/cancel");
is($got->{status}, 200, 'canceling a running deployment twice succeeds');
is($db->sql("SELECT cancel_at FROM deployment WHERE id = $second->{id}"), $asked,
    'canceling a running deployment twice keeps the first time');
is($got->{json}{queuePosition}, undef, 'a running deployment has no position in the queue');
for my $end (qw(success failed interrupted)) {
	$db->sql("UPDATE deployment SET status = '$end', finished_at = NOW(3) WHERE id = $second->{id}");
	is($api->post("/api/deployments/$second->{id}/cancel")->{status}, 409,
	    "canceling a deployment that ended as $end is a conflict");
}
is($api->post('/api/deployments/999999/cancel')->{status}, 404,
    'canceling an unknown deployment returns 404');
is($api->as('viewer')->post("/api/deployments/$second->{id}/cancel")->{status}, 403,
    'a viewer cannot cancel a deployment');

# --- a deleted project
is($api->delete("/api/projects/$project")->{status}, 204, 'the project is deleted');
is($api->post("/api/deployments/$first->{id}/retry")->{status}, 409,
    'a deployment of a deleted project cannot be retried');
$got = $api->post('/api/deployments', { projectId => $project });
is(outcome($got), '422 /projectId', 'a deleted project cannot be deployed');
is($api->get("/api/deployments/$first->{id}")->{status}, 200,
    'a deployment of a deleted project can be read');

# --- lists
my $many = project();
pipeline($many, 'one');
my @ids = map {
	$api->make('/api/deployments', { projectId => $many, branch => $_ % 2 ? 'odd' : 'even' })->{id};
} 1 .. 7;
is($api->get("/api/deployments/$ids[6]")->{json}{queuePosition}, 6, 'the seventh deployment has position 6');
$db->sql("UPDATE deployment SET status = 'success', finished_at = NOW(3) WHERE id IN ($ids[0], $ids[1])");
is($api->get("/api/deployments/$ids[6]")->{json}{queuePosition}, 4,
    'the position counts only pending deployments');
my $page = $api->get("/api/deployments?projectId=$many&limit=3");
is($page->{status}, 200, 'GET /api/deployments returns a page');
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), join(' ', reverse @ids[ 4 .. 6 ]),
    'a page has the newest deployments first');
ok(!exists $page->{json}{data}[0]{steps}, 'a page omits steps');
is($page->{json}{pagination}{limit}, 3, 'a page names its limit');
my $next = $page->{json}{pagination}{next};
ok(defined $next, 'a page names the next cursor');
my ($link) = $page->{headers}{link} =~ /<([^>]+)>; rel="next"/;
$page = $api->get($link);
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), join(' ', reverse @ids[ 1 .. 3 ]),
    'the Link header leads to the next page');
is($api->get("/api/deployments?projectId=$many&limit=3&cursor=$next")->{body}, $page->{body},
    'the cursor leads to the next page');
$page = $api->get("/api/deployments?projectId=$many&limit=3&cursor=$page->{json}{pagination}{next}");
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), $ids[0], 'the last page has the oldest deployment');
is($page->{json}{pagination}{next}, undef, 'the last page names no cursor');
is(scalar @{ $api->get("/api/deployments?projectId=$many&status=pending&branch=odd")->{json}{data} }, 3,
    'a list can be filtered by status and branch');
is(scalar @{ $api->get("/api/deployments?projectId=$many&status=running")->{json}{data} }, 0,
    'a filter by status may match nothing');
my @hash = ('fed0123' . 'a' x 33, 'fed0123' . 'b' x 33, 'fed0124' . 'a' x 33);
$db->sql(join ';', map { "UPDATE deployment SET commit_hash = '$hash[$_ % 3]' WHERE id = $ids[$_]" } 0 .. 6);
for my $case ([ $hash[0], '', '6 3 0' ], [ uc $hash[1], '', '4 1' ], [ 'fed0123', '', '6 4 3 1 0' ],
    [ 'fed0123', '&status=success', '1 0' ], [ 'fed0123', '&branch=odd', '6 4 0' ],
    [ $hash[2], '&limit=1', '5' ],
    [ $hash[0], "&projectId=$project", '' ], [ 'fed0123' . 'c' x 33, '', '' ], [ '0000000', '', '' ]) {
	my ($commit, $more, $want) = @$case;
	$page = $api->get("/api/deployments?commitHash=$commit$more")->{json};
	is(join(' ', map { $_->{id} } @{ $page->{data} }), join(' ', @ids[ split ' ', $want ]),
	    "a list of commit $commit$more has its deployments, newest first");
}
my %column = (createdBy => 'created_by', trigger => '`trigger`', projectId => 'project_id',
	pipelineId => 'pipeline_id', environmentId => 'environment_id', commitHash => 'commit_hash',
	status => 'status', branch => 'branch', tag => 'tag');
my $one = $api->get("/api/deployments/$ids[1]")->{json};
$db->sql("UPDATE deployment SET `trigger` = 'webhook' WHERE id IN ($ids[1], $ids[3], $ids[4]);"
    . " UPDATE deployment SET tag = IF(id % 3 = 0, 'V1', 'v1') WHERE id <> $ids[5]");
for my $more ('', "&projectId=$many", "&projectId=$project", "&pipelineId=$one->{pipelineId}",
    '&environmentId=77777', "&status=success", '&branch=odd', "&commitHash=$hash[1]",
    "&projectId=$many&pipelineId=$one->{pipelineId}&status=pending&branch=even") {
	for my $filter ("createdBy=$first->{createdBy}", "createdBy=$one->{createdBy}", 'createdBy=77777',
	    'trigger=webhook', 'trigger=rollback', "trigger=webhook&createdBy=$one->{createdBy}",
	    'tag=v1', 'tag=V1', 'tag=v', 'tag=v1&trigger=webhook',
	    "tag=v1&createdBy=$one->{createdBy}&trigger=webhook") {
		my @where = map { /(\w+)=(\w+)/ ? "$column{$1} = '$2'" : () } split /&/, $filter . $more;
		my @want = split /\n/, $db->sql('SELECT id FROM deployment WHERE ' . join(' AND ', @where)
		    . ' ORDER BY id DESC LIMIT 20');
		my $data = $api->get("/api/deployments?$filter$more")->{json}{data} || ['none'];
		is(join(' ', map { $_->{id} } @$data), "@want",
		    "a list with $filter$more has its deployments");
	}
}
$page = $api->get("/api/deployments?trigger=webhook&projectId=$many&limit=2")->{json};
is($page->{pagination}{next}, $ids[3], 'a filtered list has pages');
for my $bad ('limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=0', 'status=done', 'page=1',
    'projectId=a', 'env=x', 'createdBy=x', 'trigger=x', 'commitHash=abcdef',
    'commitHash=abcdefg', 'commitHash=abc%25def') {
	is($api->get("/api/deployments?$bad")->{status}, 400, "a list with $bad returns 400");
}
is($api->get('/api/deployments/999999')->{status}, 404, 'an unknown deployment returns 404');
is($api->get('/api/deployments/0')->{status}, 404, 'deployment 0 returns 404');
is($api->delete("/api/deployments/$first->{id}")->{status}, 405, 'DELETE of a deployment returns 405');

# --- a pending deployment is cloned with its user's token: its repository must not change
{
	my $moved = project();
	$api->post('/api/pipelines',
	    { projectId => $moved, name => 'l', steps => [ { name => 's', script => 'true' } ] });
	my $waits = $api->post('/api/deployments', { projectId => $moved, branch => 'main' })->{json}{id};
	my $move = sub {
		my ($name) = @_;
		return $api->as('maintainer')->put("/api/projects/$moved",
		    { repository => "https://git.example.org/secret/$name" });
	};
	for my $status ('pending', 'running') {
		$db->sql("UPDATE deployment SET status = '$status' WHERE id = $waits");
		my $got = $move->('x');
		is($got->{status}, 409,
		    "the repository of a project with a $status deployment cannot be changed")
		    or diag($got->{body});
		is($got->{json}{code}, 'conflict',
		    "changing the repository of a project with a $status deployment is a conflict");
		like($got->{json}{detail}, qr/cancel/i,
		    "the conflict with a $status deployment gives advice");
	}
	my $repository = $api->get("/api/projects/$moved")->{json}{repository};
	unlike($repository, qr/secret/, 'a rejected change keeps the repository');
	is($api->put("/api/projects/$moved", { description => 'd', repository => $repository })->{status},
	    200,
	    'a change may repeat the repository of a project with a running deployment');
	$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE id = $waits");
	is($move->('y')->{status}, 200,
	    'the repository can be changed once no deployment is pending or running');
}

unlike($api->log, qr/hunter2/, 'the log contains no secret');
done_testing;
