#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The audit log: every route that writes adds an entry for each change, and none for
# a rejected request or one that changes nothing; so do pushes, slipway-admin and the
# runner. No entry contains a secret. Roles that read the log, and its age limit.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(bearer outcome session_cookie);
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(runner => "[runner]\nlease = 3\naudit_days = 30\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my %as = map { $_ => $api->as($_) } qw(admin maintainer deployer viewer none);
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $secret = 'sword fish ' . rand;
my (%driven, $got);

sub newest { return $as{admin}->get('/api/audit?limit=100')->{json}{data} }
sub of_users { return grep { $_->{via} ne 'runner' } @{ newest() } }
sub entries { return $db->sql("SELECT COUNT(*) FROM audit WHERE via <> 'runner'") }
sub changed { return join ' ', sort map { $_->{name} } @{ $_[0]{changes} } }

my $document = $as{admin}->get('/api/openapi.json')->{json};
my %operation;
for my $path (keys %{ $document->{paths} }) {
	for my $method (grep { !/^(?:get|parameters)$/ } keys %{ $document->{paths}{$path} }) {
		$operation{ uc($method) . " $path" } = $document->{paths}{$path}{$method}{operationId};
	}
}
sub ask {
	my ($name, %opt) = @_;
	my ($method, $path) = split / /, $name;
	$path =~ s/\{(\w+)\}/$1 eq 'userId' ? $opt{user} || 1 : $opt{id}/ge;
	my @body = $method eq 'DELETE' || !$opt{body} ? () : $opt{body};
	my $call = lc $method;
	return $as{ $opt{as} || 'maintainer' }->$call($path, @body, @body || $method eq 'DELETE' ? () : undef,
	    $opt{headers});
}
# Sends a request: exactly one entry appears, with these values.  A PUT that is sent
# again changes nothing and adds none.
sub drive {
	my ($name, $status, %opt) = @_;
	my $before = entries();
	my $got = ask($name, %opt);
	is($got->{status}, $status, "$name succeeds") or diag($got->{body});
	is(entries() - $before, $opt{adds} // 1, "$name adds one entry");
	my ($entry) = of_users();
	is("$entry->{action} $entry->{objectType}", "$operation{$name} $opt{type}", "$name is recorded");
	my $id = $status == 201 ? $got->{json}{id} : $opt{id};
	is($entry->{objectId}, exists $opt{object} ? $opt{object} : $id,
	    "$name is recorded with its object");
	is($entry->{projectId}, $opt{project}, "$name is recorded with its project");
	is(changed($entry), join(' ', sort $opt{set} ? @{ $opt{set} } : keys %{ $opt{body} || {} }),
	    "$name is recorded with the names of the members");
	if ($name =~ /^PUT/ && $opt{body}) {
		is(ask($name, %opt)->{status}, $status, "$name succeeds again");
		is(entries() - $before, 1, "$name that changes nothing adds no entry");
	}
	$driven{$name}++;
	return $got->{json};
}

# --- projects and their parts
my $repo = $runner->repo;
my $token = { key => 'TOKEN', label => 'Token', type => 'input', secret => $true, default => $secret };
my $project = 1 + $as{maintainer}->make('/api/projects', { name => 'first', repository => $repo })->{id};
my @of = (project => $project);
drive('POST /api/projects', 201, type => 'project', @of, set => [qw(name repository defaultBranch envPresets
	extraEnv lfs submoduleRepositories triggers)], body => { name => 'shop', repository => $repo,
	defaultBranch => 'main', envPresets => [$token] });
drive('PUT /api/projects/{id}', 200, type => 'project', id => $project, @of,
    body => { description => 'new' });
my $pipeline = drive('POST /api/pipelines', 201, type => 'pipeline', @of, body => { projectId => $project,
	name => 'deploy', steps => [ { name => 'a', script => 'true' } ] })->{id};
drive('PUT /api/pipelines/{id}', 200, type => 'pipeline', id => $pipeline, @of, body => { name => 'new' });
my $step = drive('POST /api/steps', 201, type => 'step', @of,
    body => { pipelineId => $pipeline, name => 'b', script => "echo $secret" })->{id};
drive('PUT /api/steps/{id}', 200, type => 'step', id => $step, @of, body => { script => 'true' });
drive('DELETE /api/steps/{id}', 204, type => 'step', id => $step, @of);
my $fill = [qw(approval approvers branches name projectId tags variables)];
my $staging = drive('POST /api/environments', 201, type => 'environment', @of, set => $fill,
    body => { projectId => $project, name => 'staging', variables => [ { key => 'A', value => $secret,
		secret => $true } ] })->{id};
my $live = $as{maintainer}->make('/api/environments', { projectId => $project, name => 'live' })->{id};
drive('PUT /api/environments/{id}', 200, type => 'environment', id => $staging, @of, body => {
	variables => [ { key => 'A', value => undef, secret => $true }, { key => 'B', value => 'b' } ] });
my $schedule = drive('POST /api/schedules', 201, type => 'schedule', @of,
    set => [qw(active cron environmentId envVars name pipelineId projectId timezone)], body => {
	projectId => $project, pipelineId => $pipeline, environmentId => $staging, name => 'nightly',
	cron => '@yearly', envVars => { SIZE => 'l' } })->{id};
drive('PUT /api/schedules/{id}', 200, type => 'schedule', id => $schedule, @of,
    body => { cron => '@monthly', envVars => { SIZE => 'm' } });
my $notifier = drive('POST /api/notifiers', 201, type => 'notifier', @of,
    set => [qw(active environmentId events kind projectId target)], body => { projectId => $project,
	environmentId => $staging, kind => 'webhook', target => 'https://hooks.example.org/x',
	events => ['failed'] })->{id};
my @notifier = (type => 'notifier', id => $notifier, @of);
drive('PUT /api/notifiers/{id}', 200, @notifier, body => { events => ['locked'] });
drive($_, 200, @notifier) for 'PUT /api/notifiers/{id}/secret', 'POST /api/notifiers/{id}/test';
drive('DELETE /api/notifiers/{id}', 204, @notifier);
drive('PUT /api/projects/{id}/hook-secret', 200, type => 'project', id => $project, @of);
my @key = (type => 'project', id => $project, @of, set => ['fingerprint']);
drive('PUT /api/projects/{id}/deploy-key', 200, @key);
drive('DELETE /api/projects/{id}/deploy-key', 204, @key);
drive('DELETE /api/projects/{id}/cache', 204, type => 'project', id => $project, @of);
drive('POST /api/projects/import', 200, type => 'project', id => $project, @of, set => ['description'],
    body => { document => {
	%{ $api->get("/api/projects/$project/export")->{json} }, description => 'imported' } });
my %lock = (body => { reason => "freeze: $secret" });
for my $place ([ projects => 'project', $project ], [ environments => 'environment', $staging ]) {
	my ($path, $type, $id) = @$place;
	drive("PUT /api/$path/{id}/lock", 200, type => $type, id => $id, @of, %lock);
	drive("DELETE /api/$path/{id}/lock", 204, type => $type, id => $id, @of);
}
drive('PUT /api/lock', 200, type => 'service', as => 'admin', %lock);
drive('DELETE /api/lock', 204, type => 'service', as => 'admin');
drive('POST /api/pipelines/from-template', 201, type => 'pipeline', @of,
    body => { projectId => $project, templateId => 'systemd-restart', name => 'restart', presets => 'none' });

# --- deployments
my %deploy = (projectId => $project, pipelineId => $pipeline, environmentId => $live,
	envVars => { TOKEN => $secret });
sub deployed {
	my ($name, %opt) = @_;
	my $id = drive($name, 201, type => 'deployment', @of, %opt)->{id};
	is($all->wait($id)->{status}, 'success', "the deployment of $name succeeds");
	return $id;
}
my $one = deployed('POST /api/deployments', body => \%deploy);
deployed('POST /api/deployments/{id}/retry', id => $one);
deployed('POST /api/deployments/{id}/promote', id => $one, body => { environmentId => $staging });
deployed('POST /api/environments/{id}/rollback', id => $live);
my ($end) = grep { $_->{via} eq 'runner' && $_->{objectId} == $one } @{ newest() };
is_deeply([ @$end{qw(action username userId objectType projectId changes)} ],
    [ 'endDeployment', 'runner-1', undef, 'deployment', $project,
	[ { name => 'status', from => 'running', to => 'success' } ] ],
    'the end of a run is recorded with the runner') or diag(explain($end));
my %key = (headers => { 'Idempotency-Key' => 'k1' });
drive('POST /api/deployments', 201, type => 'deployment', @of, body => \%deploy, %key);
my $before = entries();
is(ask('POST /api/deployments', body => \%deploy, %key)->{status}, 201, 'a repeated request returns 201');
is(entries(), $before, 'a repeated request adds no entry');
$as{maintainer}->put("/api/environments/$live", { approval => 'required' });
sub waiting { return $as{maintainer}->make('/api/deployments', { %deploy, commitHash => 'a' x 40 })->{id} }
drive('POST /api/deployments/{id}/approve', 200, type => 'deployment', as => 'admin', id => waiting(), @of,
    body => { comment => $secret });
drive('POST /api/deployments/{id}/deny', 200, type => 'deployment', as => 'admin', id => waiting(), @of,
    body => { comment => 'no' });
drive('POST /api/deployments/{id}/cancel', 200, type => 'deployment', id => waiting(), @of);
$as{maintainer}->put("/api/steps/" . $as{viewer}->get("/api/pipelines/$pipeline")->{json}{steps}[0]{id},
    { script => 'echo up; sleep 600' });
my $long = $as{maintainer}->make('/api/deployments', { %deploy, environmentId => $staging })->{id};
ok($all->saw($long, qr/^up$/m), 'a deployment runs');
drive('POST /api/deployments/{id}/cancel', 200, type => 'deployment', id => $long, @of, adds => 2,
    body => { then => 'rollback' });
is_deeply([ map { "$_->{action} " . ($_->{objectId} - $long) } (of_users())[ 0, 1 ] ],
    [ 'cancelDeployment 0', 'rollbackEnvironment 1' ],
    'a cancellation with a rollback is recorded for both deployments, with what was done to each');

# --- the rest
my $variable = drive('POST /api/variables', 201, type => 'variable', as => 'admin',
    body => { key => 'B', value => $secret, secret => $true, projects => [$project] })->{id};
drive('PUT /api/variables/{id}', 200, type => 'variable', as => 'admin', id => $variable,
    body => { description => 'new' });
drive('DELETE /api/variables/{id}', 204, type => 'variable', as => 'admin', id => $variable);
my $user = drive('POST /api/user', 201, type => 'user', as => 'admin',
    body => { username => 'ben', role => 'viewer' })->{id};
drive('PUT /api/user/{id}', 200, type => 'user', as => 'admin', id => $user, body => { role => 'deployer',
	name => 'Ben' });
my ($entry) = of_users();
is_deeply([ sort { $a->{name} cmp $b->{name} } @{ $entry->{changes} } ],
    [ { name => 'name', from => undef, to => undef },
	{ name => 'role', from => 'viewer', to => 'deployer' } ],
    'values of an enumeration are recorded, texts are not') or diag(explain($entry));
my @member = (type => 'member', id => $project, object => $user, user => $user, @of);
drive('PUT /api/projects/{id}/members/{userId}', 200, @member, body => { role => 'deployer' });
drive('DELETE /api/projects/{id}/members/{userId}', 204, @member);
drive('DELETE /api/user/{id}', 204, type => 'user', as => 'admin', id => $user);
my $made = drive('POST /api/auth/tokens', 201, type => 'token', as => 'viewer', body => { name => 'ci' });
drive('DELETE /api/auth/tokens/{id}', 204, type => 'token', as => 'none', id => $made->{id},
    headers => bearer($made->{token}));
($entry) = of_users();
is_deeply([ @$entry{qw(username via tokenName)} ], [ 't-viewer', 'token', 'ci' ],
    'an entry has the user and the token, even if the token deletes itself') or diag(explain($entry));
like($entry->{address}, qr/^[0-9a-f.:]+$/, 'an entry has the address of the client');
my $session = drive('POST /api/auth/session', 200, type => 'session', as => 'viewer',
    object => undef)->{token};
drive('POST /api/auth/logout', 204, type => 'session', as => 'none', object => undef,
    headers => { %{ session_cookie($session) }, authorization => undef, Origin => $api->url });
is((of_users())[0]{via}, 'session', 'a request with the cookie is recorded as that of a session');
my %device = map { $_ => $as{none}->post('/api/auth/device', { name => 'laptop' })->{json} } qw(kept denied);
my @device = (type => 'device', as => 'viewer', set => ['userCode']);
for my $case ([ approve => 'kept' ], [ deny => 'denied' ]) {
	my ($what, $which) = @$case;
	my $code = $device{$which}{userCode};
	my $id = $db->sql("SELECT id FROM device WHERE user_code = '" . ($code =~ s/-//r) . "'");
	drive("POST /api/auth/device/$what", 204, @device, object => $id, body => { userCode => $code });
}
drive('POST /api/auth/device/token', 201, type => 'token', as => 'none', set => [qw(name role)],
    body => { deviceCode => $device{kept}{deviceCode} });
($entry) = of_users();
is($entry->{username}, 't-viewer', 'the token of a device is recorded for the user who has approved');

# --- a push
my $pushed = $as{maintainer}->make('/api/projects', { name => 'pushed', defaultBranch => 'main',
	repository => 'https://git.example.org/owner/name.git' })->{id};
my $pushes = $as{maintainer}->make('/api/pipelines', { projectId => $pushed, name => 'a',
	steps => [ { name => 'a', script => 'true' } ] })->{id};
$as{maintainer}->put("/api/projects/$pushed", { triggers => [ map { { branch => $_, pipelineId => $pushes } }
	qw(main ma*) ] });
my $key = $as{maintainer}->put("/api/projects/$pushed/hook-secret")->{json}{secret};
my ($headers, $body) = push_event(gitea => $key, path => 'owner/name');
$before = entries();
$got = $as{none}->post("/api/hooks/$pushed", $body, $headers);
is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
is_deeply([ map { [ @$_{qw(action via userId objectType objectId projectId)} ] } (of_users())[ 1, 0 ] ],
    [ map { [ 'takePush', 'hook', undef, 'deployment', $_->{id}, $pushed ] } @{ $got->{json}{data} } ],
    'a push adds an entry for each of its deployments');
$as{none}->post("/api/hooks/$pushed", $body, $headers);
is(entries() - $before, 2, 'a repeated push adds none');
$driven{'POST /api/hooks/{id}'}++;

# --- requests that add no entry
my %left = (projects => $pushed, pipelines => $pushes, environments => $live, schedules => $schedule);
$before = entries();
for my $name (sort keys %operation) {
	my ($type) = $name =~ m{/api/(\w+)};
	my $of = $left{$type};
	my @requests = ({ id => 7777777, body => { name => 'x' } });
	@requests = ({ body => { nonsense => 1 } }) if $name !~ /\{id\}/;
	push @requests, { as => 'viewer', id => $of || 1, body => { name => 'x' } } if $type !~ /auth|hooks/;
	push @requests, { id => $of, body => { nonsense => 1 } } if $of && $name !~ /^DELETE/;
	push @requests, { id => $of, headers => { 'If-Match' => '"0-0-0"' } }
	    if $of && $name =~ m{^DELETE /api/\w+/\{id\}$};
	for my $request (grep { $name !~ m{^DELETE /api/lock$|auth/(?:session|logout|device$)} } @requests) {
		my $got = ask($name, as => 'admin', %$request);
		cmp_ok($got->{status}, '>=', 400, "$name is rejected") or diag($got->{body});
	}
}
is(entries(), $before, 'rejected requests add no entry') or diag(explain((of_users())[0]));
$as{viewer}->get($_) for '/api/projects', "/api/projects/$pushed", '/api/audit';
is(entries(), $before, 'reads add no entry');

# --- deletions, and the end of the table
drive('DELETE /api/schedules/{id}', 204, type => 'schedule', id => $schedule, @of);
drive('DELETE /api/environments/{id}', 204, type => 'environment', id => $live, @of);
drive('DELETE /api/pipelines/{id}', 204, type => 'pipeline', id => $pipeline, @of);
drive('DELETE /api/projects/{id}', 204, type => 'project', id => $project, @of);
delete $operation{'POST /api/auth/login'}; # needs a Git server; t/3330 sends it
delete $operation{'POST /api/auth/device'}; # sent by nobody known; t/3315 sends it
is_deeply([ grep { !$driven{$_} } sort keys %operation ], [], 'every route that writes was driven');
unlike($db->sql('SELECT * FROM audit'), qr/sword fish/, 'no entry contains a secret');

# --- reading, while the runner writes nothing
ok(poll(60, sub { !$db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") }),
    'all deployments have ended');
is($as{maintainer}->get('/api/audit')->{status}, 403, 'a maintainer cannot list the entries of all projects');
$got = $as{maintainer}->get("/api/audit?projectId=$project&limit=100")->{json}{data};
is_deeply([ grep { $_->{projectId} != $project } @$got ], [],
    'a maintainer lists the entries of one project');
is((grep { $_->{via} ne 'runner' } @$got)[0]{action}, 'deleteProject',
    'a maintainer lists the entries of a deleted project');
is($as{deployer}->get("/api/audit?projectId=$project")->{status}, 403, 'a deployer lists none');
is($as{admin}->post('/api/audit', {})->{status}, 405, 'entries cannot be created');
is(outcome($as{admin}->get('/api/audit?cursor=x')), '400', 'an invalid cursor is rejected');
my ($next, @ids) = ('');
do {
	my $page = $as{admin}->get("/api/audit?limit=17$next")->{json};
	push @ids, map { $_->{id} } @{ $page->{data} };
	$next = defined $page->{pagination}{next} ? "&cursor=$page->{pagination}{next}" : undef;
} while defined $next;
is_deeply(\@ids, [ reverse split /\n/, $db->sql('SELECT id FROM audit ORDER BY id') ],
    'the pages have all entries, newest first');

# --- slipway-admin
my $conf = spew(tempdir() . '/admin.conf', $db->conf, 0600);
sub admin { return (run_cmd(program('slipway-admin'), '-c', $conf, @_))[0] }
for my $case ([ 'user add', 'cat', '--role', 'viewer' ], [ 'user set', 'cat', '--role', 'deployer' ],
    [ 'token add', 'cat', '--name', 'ci' ], [ 'token delete', 'cat', 'ID' ], [ 'user delete', 'cat' ]) {
	my ($action, @words) = @$case;
	@words = map { $_ eq 'ID' ? (of_users())[0]{objectId} : $_ } @words;
	$before = entries();
	is(admin(split(/ /, $action), @words), 0, "slipway-admin $action succeeds");
	is(entries() - $before, 1, "slipway-admin $action adds one entry");
	($entry) = of_users();
	is_deeply([ @$entry{qw(action via username userId)} ], [ $action, 'cli', scalar getpwuid($>), undef ],
	    "slipway-admin $action is recorded with the account");
}
admin(qw(user add dan --role viewer));
$before = entries();
is(admin(qw(user set dan --role viewer)), 0, 'slipway-admin sets what is set');
isnt(admin(qw(user set eve --role viewer)), 0, 'slipway-admin changes no unknown user');
is(entries(), $before, 'commands that change nothing add no entry');

# --- the runner: a schedule, the end of a lock, old entries
$as{maintainer}->make('/api/schedules', { projectId => $pushed, pipelineId => $pushes, name => 'due',
	cron => '@yearly' });
$as{maintainer}->put("/api/projects/$pushed/lock",
    { reason => 'soon over', until => '2099-01-01T00:00:00Z' });
my $kept = entries();
$db->sql('UPDATE deploy_lock SET `until` = NOW(3) - INTERVAL 1 SECOND;'
    . 'UPDATE schedule SET next_at = NOW(3) - INTERVAL 1 SECOND WHERE valid = 1;'
    . 'UPDATE audit SET at = NOW(3) - INTERVAL 31 DAY ORDER BY id LIMIT 5');
$runner->restart;
my %ran;
ok(poll(60, sub {
	%ran = map { $_->{action} => $_ } grep { $_->{via} eq 'runner' } @{ newest() };
	return $ran{fireSchedule} && $ran{expireLock};
}), 'the runner fires a schedule and removes an expired lock')
    or diag(tail($runner->said, 20));
is("$ran{fireSchedule}{objectType} $ran{fireSchedule}{projectId}", "deployment $pushed",
    'the deployment of a schedule is recorded');
is_deeply([ @{ $ran{expireLock} }{qw(objectType objectId projectId username)} ],
    [ 'project', $pushed, $pushed, 'runner-1' ], 'the end of a lock is recorded');
ok(poll(60, sub { return $db->sql('SELECT MIN(id) FROM audit') > 5 }), 'the runner deletes old entries');
is(entries(), $kept - 5, 'the runner deletes no other entries');
done_testing;
