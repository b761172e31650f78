#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments through nginx: what makes one, what is refused, what retry copies,
# what cancel does.

use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;
use JSON::PP ();
use Slipway::API;
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
sub woken { my $n = 0; while (IO::Select->new($wake)->can_read(0.2)) { recv $wake, my $x, 16, 0; $n++ } return $n }
sub pointers { my ($got) = @_; return join ' ', sort map { $_->{pointer} } @{ $got->{json}{errors} || [] } }

my $n = 0;
sub project {
	my (%more) = @_;
	$n++;
	my $got = $api->post('/api/projects', { name => "p$n", repository => "https://git.example.org/o/p$n.git", %more });
	is($got->{status}, 201, "project $n is made") or diag($got->{body});
	return $got->{json}{id};
}
sub pipeline {
	my ($project, @names) = @_;
	$n++;
	my $got = $api->post('/api/pipelines', { projectId => $project, name => "l$n", timeoutSeconds => 77,
		steps => [ map { { name => $_, script => "echo $_", runWhen => $_ eq 'last' ? 'always' : 'success', timeoutSeconds => 5 } } @names ] });
	is($got->{status}, 201, "pipeline $n is made") or diag($got->{body});
	return $got->{json}{id};
}

my $project = project(defaultBranch => 'trunk');
my $pipeline = pipeline($project, 'first', 'last');

# --- one
my $deployer = $api->as('deployer');
my $got = $deployer->post('/api/deployments', { projectId => $project });
is($got->{status}, 201, 'a deployment is made') or diag($got->{body});
my $first = $got->{json};
is($got->{headers}{location}, "/api/deployments/$first->{id}", 'with its address');
like($got->{headers}{etag}, qr/^"/, 'and an entity tag');
is(woken(), 1, 'the runner is woken once');
my %want = (projectId => $project, pipelineId => $pipeline, branch => 'trunk', commitHash => undef,
	commitMessage => undef, status => 'pending', reason => undef, detail => undef, trigger => 'manual',
	retryOf => undef, runner => undef, startedAt => undef, finishedAt => undef, logSize => 0, queuePosition => 0);
is_deeply({ map { $_ => $first->{$_} } keys %want }, \%want, 'all members are there');
is_deeply($first->{envVars}, {}, 'no variables');
is_deeply([ map { "$_->{position} $_->{name} $_->{status}" } @{ $first->{steps} } ],
    [ '0 first pending', '1 last pending' ], 'its steps');
is(scalar(grep { exists $_->{script} } @{ $first->{steps} }), 0, 'without their scripts');
is($first->{createdBy}, $db->sql("SELECT id FROM user WHERE username = 't-deployer'"), 'and who made it');
is($db->sql("SELECT CONCAT_WS(' ', timeout_seconds, (SELECT GROUP_CONCAT(script, run_when, timeout_seconds ORDER BY position)"
    . " FROM deployment_step WHERE deployment_id = $first->{id})) FROM deployment WHERE id = $first->{id}"),
    '77 echo firstsuccess5,echo lastalways5', 'scripts and limits are copied');

my $read = $api->as('viewer')->get("/api/deployments/$first->{id}");
is($read->{status}, 200, 'a viewer reads it');
is_deeply($read->{json}, $first, 'as it was answered');
is($api->get("/api/deployments/$first->{id}", { 'If-None-Match' => $read->{headers}{etag} })->{status}, 304,
    'its tag is good for a 304');
my $second = $api->post('/api/deployments', { projectId => $project, pipelineId => $pipeline, branch => 'feature/x-1',
	commitHash => 'abcdef0123', commitMessage => "Two\nlines", envVars => { A => '1', B => "x \x{fc}\n" } })->{json};
is_deeply([ @$second{qw(branch commitHash commitMessage queuePosition)} ],
    [ 'feature/x-1', 'abcdef0123', "Two\nlines", 1 ], 'what was said stands in it');
is_deeply($second->{envVars}, { A => '1', B => "x \x{fc}\n" }, 'so do its variables');

# --- refusals, all faults at once
$got = $api->post('/api/deployments', { projectId => $project, branch => '-rf', commitHash => 'xyz', envVars => { PATH => '/x', OK => 'y' } });
is($got->{status}, 422, 'faults of members');
is(pointers($got), '/branch /commitHash /envVars/PATH', 'are told, with those that need the project');
$got = $api->post('/api/deployments', { projectId => 999999, env => {}, branch => '-rf' });
is(pointers($got), '/branch /env /projectId', 'also where there is no such project');
$got = $api->post('/api/deployments', { projectId => 'x', env => {}, envVars => { PATH => '/x' } });
is(pointers($got), '/env /projectId', 'and as far as a project is named at all');
$got = $api->post('/api/deployments', { projectId => $project, branch => '-rf', envVars => { PATH => '/x', '1x' => 'y', OK => 'z' } });
is(pointers($got), '/branch /envVars/1x /envVars/PATH', 'and those that need the project, together');
for my $bad ([ 'no project', {}, '/projectId' ],
    [ 'a project that is not there', { projectId => 999999 }, '/projectId' ],
    [ 'a pipeline that is not there', { projectId => $project, pipelineId => 999999 }, '/pipelineId' ],
    [ 'the former member env', { projectId => $project, env => {} }, '/env' ],
    [ 'a status', { projectId => $project, status => 'success' }, '/status' ],
    [ 'an empty branch', { projectId => $project, branch => '' }, '/branch' ],
    [ 'a branch with ..', { projectId => $project, branch => 'a..b' }, '/branch' ],
    [ 'a branch with a blank', { projectId => $project, branch => 'a b' }, '/branch' ],
    [ 'a branch like a revision', { projectId => $project, branch => 'a@{1}' }, '/branch' ],
    [ 'a branch with a colon', { projectId => $project, branch => 'x:y' }, '/branch' ],
    [ 'a branch that ends in .lock', { projectId => $project, branch => 'x.lock' }, '/branch' ],
    [ 'a member twice', "{\"projectId\":$project,\"projectId\":$project}", '' ],
    [ 'a NUL', "{\"projectId\":$project,\"envVars\":{\"A\":\"\\u0000\"}}", '' ],
    [ 'a short hash', { projectId => $project, commitHash => 'abcdef' }, '/commitHash' ],
    (map { [ "a hash of $_ digits", { projectId => $project, commitHash => 'a' x $_ }, '/commitHash' ] } 0, 1, 41, 63, 65, 80),
    [ 'a hash that is none', { projectId => $project, commitHash => 'g' x 40 }, '/commitHash' ],
    [ 'a hash with an option', { projectId => $project, commitHash => '--upload-pack=x' }, '/commitHash' ],
    [ 'variables as an array', { projectId => $project, envVars => [] }, '/envVars' ],
    [ 'a variable that is a number', { projectId => $project, envVars => { A => 1 } }, '/envVars/A' ],
    [ 'a variable that is null', { projectId => $project, envVars => { A => undef } }, '/envVars/A' ],
    [ 'LD_PRELOAD', { projectId => $project, envVars => { LD_PRELOAD => 'x' } }, '/envVars/LD_PRELOAD' ],
    [ 'a function of bash', { projectId => $project, envVars => { 'BASH_FUNC_x%%' => 'x' } }, '/envVars/BASH_FUNC_x%%' ],
    [ 'a name with a slash', { projectId => $project, envVars => { 'a/b' => 'x' } }, '/envVars/a~1b' ],
    [ 'a large variable', { projectId => $project, envVars => { A => 'x' x 65537 } }, '/envVars/A' ],
    [ 'too much in all', { projectId => $project, envVars => { map { ("A$_" => 'x' x 65000) } 1 .. 9 } }, '/envVars' ]) {
	$got = $api->post('/api/deployments', $bad->[1]);
	is("$got->{status} " . pointers($got), "422 $bad->[2]", "refused: $bad->[0]");
}
is($api->post('/api/deployments', '{"projectId":1,}')->{status}, 400, 'refused: no JSON');
is($api->as('viewer')->post('/api/deployments', { projectId => $project })->{status}, 403, 'refused: a viewer');
is($api->as('none')->post('/api/deployments', { projectId => $project })->{status}, 401, 'refused: nobody');
for my $digits (7, 39, 40, 64) {
	$got = $api->post('/api/deployments', { projectId => $project, commitHash => 'aB' x 32 =~ s/^(.{$digits}).*/$1/r });
	is($got->{status}, 201, "a hash of $digits digits is taken");
	$db->sql("DELETE FROM deployment_step WHERE deployment_id = $got->{json}{id}; DELETE FROM deployment WHERE id = $got->{json}{id}");
}
woken();
is($api->post('/api/deployments', { projectId => $project, envVars => { map { ("A$_" => 'x' x 65000) } 1 .. 8 } })->{status}, 201,
    'but nearly 512 KiB pass');
is($db->sql("SELECT COUNT(*) FROM deployment"), 3, 'refusals left nothing');
woken();

# --- pipelines
my $other = project();
$got = $api->post('/api/deployments', { projectId => $other });
is("$got->{status} " . pointers($got), '422 /pipelineId', 'a project without a pipeline');
my $empty = pipeline($other);
$got = $api->post('/api/deployments', { projectId => $other });
is("$got->{status} " . pointers($got), '422 /pipelineId', 'a pipeline without steps');
pipeline($other, 'one');
$got = $api->post('/api/deployments', { projectId => $other });
is("$got->{status} " . pointers($got), '422 /pipelineId', 'several pipelines: one must be named');
like($got->{json}{errors}[0]{detail}, qr/several/, 'it says so');
$got = $api->post('/api/deployments', { projectId => $other, pipelineId => $pipeline });
is("$got->{status} " . pointers($got), '422 /pipelineId', "another project's pipeline");
is(woken(), 0, 'a refusal wakes nobody');

# --- presets
for my $bad ([ 'a name that may not be set', { key => 'PATH', type => 'input' }, 'key' ],
    [ 'a default that is no choice', { key => 'A', type => 'select', default => 'x', options => [ { label => 'y', value => 'y' } ] }, 'default' ],
    [ 'a comma at the end of a default', { key => 'A', type => 'multiselect', default => 'y,', options => [ { label => 'y', value => 'y' } ] }, 'default' ],
    [ 'an empty default of a required one', { key => 'A', type => 'input', required => JSON::PP::true, default => '' }, 'default' ],
    [ 'a pattern that is none', { key => 'A', type => 'input', pattern => '(' }, 'pattern' ],
    [ 'a default beside the pattern', { key => 'A', type => 'input', pattern => 'a+', default => 'b' }, 'default' ],
    [ 'a secret choice', { key => 'A', type => 'select', secret => JSON::PP::true, options => [ { label => 'y', value => 'y' } ] }, 'secret' ]) {
	$got = $api->put("/api/projects/$project", { envPresets => [ { label => 'L', %{ $bad->[1] } } ] });
	is("$got->{status} " . pointers($got), "422 /envPresets/0/$bad->[2]", "refused: a preset with $bad->[0]");
}
$got = $api->put("/api/projects/$project", { envPresets => [ map { { key => $_, label => 'L', type => 'input' } } qw(A B A) ] });
is("$got->{status} " . pointers($got), '422 /envPresets/2/key', 'refused: a key twice');
$got = $api->put("/api/projects/$project", { extraEnv => 'nobody',
	envPresets => [ { key => 'A', label => 'L', type => 'input', required => JSON::PP::true },
	    { key => 'S', label => 'L', type => 'input', secret => JSON::PP::true } ],
	triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => { S => 'x', B => 'y' } } ] });
is("$got->{status} " . pointers($got), '422 /triggers/0/envVars/A /triggers/0/envVars/B',
    'refused: a trigger that lacks one and has another');
$got = $api->put("/api/projects/$project", { triggers => [ { branch => 'x/*', pipelineId => $pipeline, envVars => { ENV => '/x' } } ] });
is("$got->{status} " . pointers($got), '422 /triggers/0/envVars/ENV', 'refused: a trigger with a name that may not be set');
is($api->put("/api/projects/$project", { triggers => [ { branch => 'x/*', pipelineId => $pipeline, envVars => { A => 'b' } } ] })->{status},
    200, 'a good trigger passes');

my $form = project(extraEnv => 'nobody', envPresets => [
	{ key => 'STAGE', label => 'Stage', type => 'select', required => JSON::PP::true,
	    options => [ { label => 'Test', value => 'test' }, { label => 'Live', value => 'live' } ] },
	{ key => 'PARTS', label => 'Parts', type => 'multiselect', default => 'a',
	    options => [ map { { label => uc, value => $_ } } qw(a b c) ] },
	{ key => 'TAG', label => 'Tag', type => 'input', pattern => 'v[0-9]+' },
	{ key => 'KEY', label => 'Key', type => 'input', secret => JSON::PP::true },
]);
pipeline($form, 'one');
$got = $api->post('/api/deployments', { projectId => $form, envVars => { PARTS => 'a,d', TAG => '1', OTHER => 'x' } });
is("$got->{status} " . pointers($got), '422 /envVars/OTHER /envVars/PARTS /envVars/STAGE /envVars/TAG', 'all that the presets refuse, at once');
$got = $api->post('/api/deployments', { projectId => $form, envVars => { STAGE => 'live', TAG => 'v2' } });
is($got->{status}, 201, 'what they ask for') or diag($got->{body});
is_deeply($got->{json}{envVars}, { STAGE => 'live', TAG => 'v2', PARTS => 'a' }, 'with the default filled in');
my $secret = { projectId => $form, envVars => { STAGE => 'test', KEY => 'hunter2-hunter2' } };
$got = $api->post('/api/deployments', $secret);
is($got->{status}, 503, 'a secret without a key to seal it');
like($got->{json}{detail}, qr/slipway-admin key/, 'says how to make one');
ok($got->{headers}{'retry-after'}, 'and when to try again');
my ($status, undef, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
is($status, 0, 'the key is made') or diag($err);
chmod 0640, $api->dir . '/secret.key';
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
kill 'HUP', $api->pid;
poll(10, sub { $got = $api->post('/api/deployments', $secret); $got->{status} == 201 });
is($got->{status}, 201, 'then it is taken') or diag($got->{body}, $api->log);
my $sealed = $got->{json};
is_deeply($sealed->{envVars}, { STAGE => 'test', KEY => undef, PARTS => 'a' }, 'it reads as null');
unlike($got->{body}, qr/hunter2/, 'and stands nowhere');
is($api->get("/api/deployments/$sealed->{id}")->{json}{envVars}{KEY}, undef, 'later neither');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE id = $sealed->{id} AND LENGTH(secret_vars) > 40"
    . " AND secret_vars NOT LIKE '%hunter2%' AND env_vars NOT LIKE '%hunter2%'"), 1, 'the database has it sealed');

# --- retry
my ($step) = map { $_->{id} } @{ $api->get("/api/steps?pipelineId=$pipeline")->{json}{data} };
$api->put("/api/steps/$step", { script => 'echo changed' });
$db->sql("UPDATE deployment SET status = 'failed', finished_at = NOW(3), commit_hash = REPEAT('a', 40), branch = 'trunk' WHERE id = $first->{id}");
woken();
$got = $deployer->post("/api/deployments/$first->{id}/retry");
is($got->{status}, 201, 'a retry') or diag($got->{body});
my $again = $got->{json};
is($got->{headers}{location}, "/api/deployments/$again->{id}", 'with its address');
is_deeply([ @$again{qw(status trigger retryOf branch commitHash pipelineId startedAt)} ],
    [ 'pending', 'retry', $first->{id}, 'trunk', 'a' x 40, $pipeline, undef ], 'a pending copy');
is($db->sql("SELECT script FROM deployment_step WHERE deployment_id = $again->{id} AND position = 0"), 'echo first',
    'of the steps that it had, whatever they are now');
is(woken(), 1, 'the runner is woken');
is($api->post('/api/deployments', { projectId => $project })->{status}, 201, 'a new one');
is($db->sql("SELECT script FROM deployment_step WHERE position = 0 ORDER BY deployment_id DESC LIMIT 1"), 'echo changed', 'has the new script');
$got = $api->post("/api/deployments/$sealed->{id}/retry");
is($got->{status}, 201, 'a retry with a secret');
is($db->sql("SELECT COUNT(*) FROM deployment a, deployment b WHERE a.id = $sealed->{id} AND b.id = $got->{json}{id}"
    . " AND a.secret_vars = b.secret_vars AND a.env_vars = b.env_vars"), 1, 'has it too');
is($api->put("/api/projects/$form", { envPresets => [] })->{status}, 200, 'the presets are changed');
is($api->post("/api/deployments/$sealed->{id}/retry")->{status}, 201, 'which does not matter to a retry');
is($api->delete("/api/pipelines/$pipeline")->{status}, 204, 'the pipeline is deleted');
is($api->post("/api/deployments/$first->{id}/retry", {})->{status}, 201, 'nor does that');
is($api->post('/api/deployments/999999/retry')->{status}, 404, 'of nothing: 404');
is($api->as('viewer')->post("/api/deployments/$first->{id}/retry")->{status}, 403, 'by a viewer: 403');
is($api->post("/api/deployments/$first->{id}/retry", { branch => 'x' })->{status}, 400, 'with a body: 400');
$got = $api->get("/api/deployments/$first->{id}/retry");
is("$got->{status} $got->{headers}{allow}", '405 POST, OPTIONS', 'by GET: 405');

# --- cancel
woken();
$got = $deployer->post("/api/deployments/$again->{id}/cancel");
is($got->{status}, 200, 'cancel of a pending one');
is_deeply([ @{ $got->{json} }{qw(status reason)} ], [ 'canceled', 'canceled_by_user' ], 'it never runs');
ok($got->{json}{finishedAt}, 'it is over');
is(join(' ', map { $_->{status} } @{ $got->{json}{steps} }), 'skipped skipped', 'its steps are skipped');
is(woken(), 1, 'the runner is woken');
$got = $api->post("/api/deployments/$again->{id}/cancel");
is($got->{status}, 409, 'twice: 409');
like($got->{json}{detail}, qr/canceled/, 'with what it is');
$db->sql("UPDATE deployment SET status = 'running', epoch = 1, started_at = NOW(3) WHERE id = $second->{id}");
$got = $api->post("/api/deployments/$second->{id}/cancel");
is("$got->{status} $got->{json}{status}", '200 running', 'cancel of a running one');
my $asked = $db->sql("SELECT cancel_at FROM deployment WHERE id = $second->{id}");
isnt($asked, 'NULL', 'asks the runner');
$got = $api->post("/api/deployments/$second->{id}/cancel");
is($got->{status}, 200, 'twice is no error');
is($db->sql("SELECT cancel_at FROM deployment WHERE id = $second->{id}"), $asked, 'and changes nothing');
is($got->{json}{queuePosition}, undef, 'what runs has no place in the queue');
for my $end (qw(success failed interrupted)) {
	$db->sql("UPDATE deployment SET status = '$end', finished_at = NOW(3) WHERE id = $second->{id}");
	is($api->post("/api/deployments/$second->{id}/cancel")->{status}, 409, "cancel of one that ended as $end: 409");
}
is($api->post('/api/deployments/999999/cancel')->{status}, 404, 'of nothing: 404');
is($api->as('viewer')->post("/api/deployments/$second->{id}/cancel")->{status}, 403, 'by a viewer: 403');

# --- a deleted project
is($api->delete("/api/projects/$project")->{status}, 204, 'the project is deleted');
is($api->post("/api/deployments/$first->{id}/retry")->{status}, 409, 'its deployments cannot be retried');
$got = $api->post('/api/deployments', { projectId => $project });
is("$got->{status} " . pointers($got), '422 /projectId', 'nor can it be deployed');
is($api->get("/api/deployments/$first->{id}")->{status}, 200, 'but they can be read');

# --- lists
my $many = project();
pipeline($many, 'one');
my @ids = map { $api->post('/api/deployments', { projectId => $many, branch => $_ % 2 ? 'odd' : 'even' })->{json}{id} } 1 .. 7;
is($api->get("/api/deployments/$ids[6]")->{json}{queuePosition}, 6, 'six wait before the seventh');
$db->sql("UPDATE deployment SET status = 'success', finished_at = NOW(3) WHERE id IN ($ids[0], $ids[1])");
is($api->get("/api/deployments/$ids[6]")->{json}{queuePosition}, 4, 'then four');
my $page = $api->get("/api/deployments?projectId=$many&limit=3");
is($page->{status}, 200, 'a page');
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), join(' ', reverse @ids[ 4 .. 6 ]), 'newest first');
ok(!exists $page->{json}{data}[0]{steps}, 'without steps');
is($page->{json}{pagination}{limit}, 3, 'so many');
my $next = $page->{json}{pagination}{next};
ok(defined $next, 'with what follows');
my ($link) = $page->{headers}{link} =~ /<([^>]+)>; rel="next"/;
$page = $api->get($link);
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), join(' ', reverse @ids[ 1 .. 3 ]), 'behind the link');
is($api->get("/api/deployments?projectId=$many&limit=3&cursor=$next")->{body}, $page->{body}, 'and the cursor');
$page = $api->get("/api/deployments?projectId=$many&limit=3&cursor=$page->{json}{pagination}{next}");
is(join(' ', map { $_->{id} } @{ $page->{json}{data} }), $ids[0], 'the last');
is($page->{json}{pagination}{next}, undef, 'nothing follows');
is(scalar @{ $api->get("/api/deployments?projectId=$many&status=pending&branch=odd")->{json}{data} }, 3, 'by status and branch');
is(scalar @{ $api->get("/api/deployments?projectId=$many&status=running")->{json}{data} }, 0, 'none of a status');
for my $bad ('limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=0', 'status=done', 'page=1', 'projectId=a', 'env=x') {
	is($api->get("/api/deployments?$bad")->{status}, 400, "refused: $bad");
}
is($api->get('/api/deployments/999999')->{status}, 404, 'no such deployment');
is($api->get('/api/deployments/0')->{status}, 404, 'nor this');
is($api->delete("/api/deployments/$first->{id}")->{status}, 405, 'none is ever deleted');

# --- what waits is cloned with the Git token of whoever started it
{
	my $moved = project();
	$api->post('/api/pipelines', { projectId => $moved, name => 'l', steps => [ { name => 's', script => 'true' } ] });
	my $waits = $api->post('/api/deployments', { projectId => $moved, branch => 'main' })->{json}{id};
	my $move = sub { return $api->as('maintainer')->put("/api/projects/$moved", { repository => "https://git.example.org/secret/$_[0]" }) };
	for my $status ('pending', 'running') {
		$db->sql("UPDATE deployment SET status = '$status' WHERE id = $waits");
		my $got = $move->('x');
		is($got->{status}, 409, "while one is $status nobody chooses another repository for it") or diag($got->{body});
		is($got->{json}{code}, 'conflict', 'as a conflict');
		like($got->{json}{detail}, qr/cancel/, 'it says what to do');
	}
	unlike($api->get("/api/projects/$moved")->{json}{repository}, qr/secret/, 'it stays');
	is($api->put("/api/projects/$moved", { description => 'd', repository => $api->get("/api/projects/$moved")->{json}{repository} })->{status}, 200, 'the same one is no change');
	$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE id = $waits");
	is($move->('y')->{status}, 200, 'when none waits it may be another');
}

unlike($api->log, qr/hunter2/, 'the log knows no secret');
done_testing;
