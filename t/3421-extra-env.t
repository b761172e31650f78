#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# extraEnv: which roles may set variables outside the presets of a project, by
# every way to a deployment.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(bearer outcome);
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 1\n");
my %as = (admin => $api, map { $_ => $api->as($_) } qw(maintainer deployer));
my $n = 0;

sub project {
	my (%more) = @_;
	$n++;
	my $got = $api->post('/api/projects',
	    { name => "p$n", repository => 'https://git.example.org/o/p.git',
		envPresets => [ { key => 'TARGET', label => 'Target', type => 'input' } ], %more });
	diag($got->{body}) if $got->{status} != 201;
	my $id = $got->{json}{id};
	my $pipeline = $api->post('/api/pipelines',
	    { projectId => $id, name => 'l', steps => [ { name => 's', script => 'make' } ] });
	return ($id, $pipeline->{json}{id});
}
sub deploy { my ($role, $project, $vars, @more) = @_;
	return $as{$role}->post('/api/deployments', { projectId => $project, envVars => $vars }, @more) }
sub retry { my ($role, $id) = @_; return $as{$role}->post("/api/deployments/$id/retry") }
my %extra = (TARGET => 'x', MAKEFLAGS => '--eval=$(shell id)');

# --- names that steer programs
for my $name (qw(NODE_OPTIONS PYTHONUNBUFFERED GIT_AUTHOR_NAME PERL5LIB RUBYOPT _JAVA_OPTIONS PHPRC)) {
	my ($project) = project(extraEnv => 'deployers');
	my $got = deploy('maintainer', $project, { $name => 'x' });
	is(outcome($got), '201', "a maintainer may set $name");
	is(outcome(retry('deployer', $got->{json}{id})), '201', 
	    "a deployer may repeat a deployment with that $name");
	$got = deploy('deployer', $project, { $name => 'x' });
	is(outcome($got), "422 /envVars/$name",
	    "a deployer may not set $name, though extraEnv is deployers");
	like($got->{json}{errors}[0]{detail}, qr/steers programs .* ask a maintainer/,
	    "the error for $name gives advice");
	is(outcome($api->put("/api/projects/$project",
		{ envPresets => [ { key => $name, label => 'L', type => 'input', pattern => '[xy]' } ] })),
	    '200',
	    "a preset can have the name $name");
	is(outcome(deploy('deployer', $project, { $name => 'y' })), '201',
	    "a deployer may set a preset $name");
	is(outcome(deploy('deployer', $project, { $name => 'z' })), "422 /envVars/$name",
	    "the pattern of the preset $name holds");
	is(outcome($as{maintainer}->post('/api/environments', { projectId => $project, name => 'e',
		variables => [ { key => $name, value => 'x' } ] })), '201',
	    "an environment can have the variable $name");
}
for my $name (qw(GIT_DIR GIT_SSH_COMMAND GIT_CONFIG_COUNT LD_PRELOAD BASH_ENV OPENSSL_CONF PATH SLIPWAY_X)) {
	my ($project) = project();
	is(outcome(deploy('admin', $project, { $name => 'x' })), "422 /envVars/$name",
	    "an administrator may not set $name");
}

# --- roles
for (
	['nobody', admin => '422 /envVars/MAKEFLAGS', qr/extraEnv is nobody/],
	['nobody', maintainer => '422 /envVars/MAKEFLAGS', qr/extraEnv is nobody/],
	['nobody', deployer => '422 /envVars/MAKEFLAGS', qr/extraEnv is nobody/],
	['maintainers', admin => '201'],
	['maintainers', maintainer => '201'],
	['maintainers', deployer => '422 /envVars/MAKEFLAGS', qr/only a maintainer may set other variables/],
	['deployers', admin => '201'],
	['deployers', deployer => '201'],
) {
	my ($extra, $role, $want, $detail) = @$_;
	my ($project) = project(extraEnv => $extra);
	my $got = deploy($role, $project, \%extra);
	is(outcome($got), $want,
	    "extraEnv $extra: a variable outside the presets from a user who is $role returns $want");
	like($got->{json}{errors}[0]{detail}, $detail,
	    "extraEnv $extra: the error for a user who is $role says why") if $detail;
	is(outcome(deploy($role, $project, { TARGET => 'x' })), '201',
	    "extraEnv $extra: a variable of a preset from a user who is $role is accepted");
	is(outcome(deploy($role, $project,
	    { TARGET => 'x', LD_PRELOAD => '/x' })) =~ s{( /envVars/LD_PRELOAD)+}{ -}r, '422 -',
	    "extraEnv $extra: a name that controls the loader from a user who is $role is rejected");
}
my ($plain) = project();
is($api->get("/api/projects/$plain")->{json}{extraEnv}, 'maintainers', 'extraEnv is maintainers by default');
is(outcome(deploy('deployer', $plain, \%extra)), '422 /envVars/MAKEFLAGS',
    'by default a deployer cannot set a variable outside the presets');
my $token = $api->post('/api/auth/tokens', { name => 'ci', role => 'deployer' })->{json}{token};
is(outcome($api->post('/api/deployments', { projectId => $plain, envVars => \%extra },
    bearer($token))),
    '422 /envVars/MAKEFLAGS', "a maintainer's token with the role deployer counts as a deployer");
is(outcome($as{deployer}->put("/api/projects/$plain", { extraEnv => 'deployers' })), '403',
    'a deployer cannot change extraEnv');
is(outcome($api->put("/api/projects/$plain", { strictEnv => JSON::PP::false })), '422 /strictEnv',
    'the former member strictEnv is unknown');
is(outcome($api->put("/api/projects/$plain", { extraEnv => undef })), '422 /extraEnv',
    'null is not a value of extraEnv');

# --- triggers, which only a maintainer can change
my ($pushed, $pipeline) = project(triggers => []);
my $trigger = { branch => 'main', pipelineId => $pipeline, envVars => { EXTRA => 'of the trigger' } };
is(outcome($api->put("/api/projects/$pushed", { triggers => [$trigger] })), '200',
    'a trigger may set variables outside the presets');
my $secret = $api->put("/api/projects/$pushed/hook-secret")->{json}{secret};
my ($headers, $event) = push_event(gitea => $secret, path => 'o/p', branch => 'main');
my $taken = $api->as('none')->post("/api/hooks/$pushed", $event, $headers);
is($taken->{status}, 202, 'a push is accepted') or diag($taken->{body});
my $webhook = $taken->{json}{data}[0]{id};
is_deeply($api->get("/api/deployments/$webhook")->{json}{envVars}, { EXTRA => 'of the trigger' },
    'a push deploys with the variables of its trigger');
is(outcome($api->put("/api/projects/$pushed", { extraEnv => 'nobody' })), '422 /triggers/0/envVars/EXTRA',
    'extraEnv of a project whose trigger sets variables outside the presets cannot be nobody');
is(outcome(retry('deployer', $webhook)), '201', 'a deployer can retry the deployment of a push');

# --- retries
my ($project) = project(extraEnv => 'deployers');
my $theirs = deploy('deployer', $project, \%extra)->{json}{id};
my $ours = deploy('maintainer', $project, \%extra)->{json}{id};
my $tame = deploy('deployer', $project, { TARGET => 'y' })->{json}{id};
is(outcome(retry('deployer', $theirs)), '201',
    'a deployer can retry a deployment of a deployer while extraEnv is deployers');
for my $extra (qw(maintainers nobody)) {
	is(outcome($api->put("/api/projects/$project", { extraEnv => $extra })), '200',
	    "extraEnv of a project is changed to $extra");
	my $got = retry('deployer', $theirs);
	is(outcome($got), '403',
	    "extraEnv $extra: a deployer cannot retry a deployment with a deployer's variables");
	like($got->{json}{detail}, qr/sets MAKEFLAGS.*Ask a maintainer to repeat the deployment/,
	    "extraEnv $extra: the error for the retry gives advice");
	$got = retry('deployer', $ours);
	is(outcome($got), '201',
	    "extraEnv $extra: a deployer can retry a deployment with a maintainer's variables");
	is_deeply($got->{json}{envVars}, \%extra, "extraEnv $extra: a retry has all variables");
	is(outcome(retry('deployer', $got->{json}{id})), '201',
	    "extraEnv $extra: a deployer can retry a retry with a maintainer's variables");
	is(outcome(retry('deployer', $tame)), '201',
	    "extraEnv $extra: a deployer can retry a deployment with variables of presets only");
	$got = retry('maintainer', $theirs);
	is(outcome($got), '201',
	    "extraEnv $extra: a maintainer can retry a deployment with a deployer's variables");
	is(outcome(retry('deployer', $got->{json}{id})), '403',
	    "extraEnv $extra: a maintainer's retry does not turn a deployer's variables into a maintainer's");
}
for my $value ('-j4', $extra{MAKEFLAGS}) {
	my $shared = $api->make('/api/variables',
	    { key => 'MAKEFLAGS', value => $value, projects => [$project] });
	my $same = $extra{MAKEFLAGS} eq $value;
	is(outcome(retry('deployer', $theirs)), $same ? '201' : '403',
	    "a retry can repeat a shared variable only with its value: $value");
	$api->delete("/api/variables/$shared->{id}");
}
my $select = { key => 'TARGET', label => 'Target', type => 'select',
	options => [ { label => 'a', value => 'a' } ] };
my $free = $api->get("/api/projects/$project")->{json}{envPresets};
is($api->put("/api/projects/$project", { envPresets => [$select] })->{status}, 200, 'a preset is narrowed');
my $late = retry('deployer', $tame);
is(outcome($late), '403', 'a deployer cannot repeat a value that a narrowed preset rejects');
like($late->{json}{detail}, qr/sets TARGET to a value that the project's envPresets no longer accept/,
    'the error says why');
is(outcome(retry('maintainer', $tame)), '201',
    'a maintainer can repeat a value that a narrowed preset rejects');
$api->put("/api/projects/$project", { envPresets => $free });
$db->sql("UPDATE deployment SET env_role = NULL WHERE id IN ($ours, $tame, $webhook)");
is(outcome(retry('deployer', $ours)), '403',
    'variables whose role an older version did not record count as a deployer\'s');
is(outcome(retry('deployer', $tame)), '201',
    'a deployment with variables of presets only can be retried whatever its recorded role');
is(outcome(retry('deployer', $webhook)), '201',
    'the deployment of a push can be retried whatever its recorded role');

# --- secrets of the environment, which cannot be read and so are compared as they are stored
my ($open) = project(extraEnv => 'deployers');
sub secrets {
	my ($value, @keys) = @_;
	return [ map { { key => $_, value => $value, secret => JSON::PP::true } } @keys ];
}
my $env = $api->make('/api/environments',
    { projectId => $open, name => 'production', variables => secrets('first', 'KEY', 'PIN') });
sub sealed_in {
	my ($table, $column, $id, $key) = @_;
	return $db->sql("SELECT JSON_VALUE($column, '\$.$key') FROM $table WHERE id = $id");
}
sub is_sealed {
	my ($id, $key, $like, $name) = @_;
	my ($got, $want) = (sealed_in('deployment', 'secret_vars', $id, $key), $like->($key));
	ok(length $want > 50 && $got eq $want, $name);
	is($api->get("/api/deployments/$id")->{json}{envVars}{$key}, undef, "$name: it is not shown");
	return;
}
my $of_env = sub { return sealed_in('environment', 'secret_values', $env->{id}, $_[0]) };
my $own = deploy('deployer', $open, { KEY => 'own', LATER => 'plain', TARGET => 'x' })->{json}{id};
my $of_own = sub { return sealed_in('deployment', 'secret_vars', $own, $_[0]) };
isnt($of_own->('KEY'), $of_env->('KEY'), 'a deployer replaces a secret of the environment');
is_sealed($own, 'PIN', $of_env, 'a deployment gets a copy of the secret that it does not replace');
is_sealed(retry('deployer', $own)->{json}{id}, 'KEY', $of_own,
    'while a deployer may set the variable, a retry repeats the replaced secret');
my $inherits = deploy('deployer', $open, { TARGET => 'x' })->{json}{id};
is(outcome($api->put("/api/projects/$open", { extraEnv => 'maintainers' })), '200',
    'extraEnv becomes maintainers');
is(outcome(retry('deployer', $own)), '403', 'a deployer cannot repeat a plain variable outside the presets');
is(outcome($api->put("/api/environments/$env->{id}",
    { variables => secrets('changed', 'KEY', 'LATER', 'PIN') })), '200',
    'the variable becomes a secret of the environment, and the others change');
for my $by ('retry', 'rollback') {
	my $again = sub {
		my ($role, $id) = @_;
		return retry($role, $id) if $by eq 'retry';
		$db->sql("UPDATE deployment SET status = 'canceled' WHERE status = 'pending';"
		    . "UPDATE deployment SET status = 'success' WHERE id = $id");
		return $as{$role}->post("/api/environments/$env->{id}/rollback", { deploymentId => $id });
	};
	my $got = $again->('deployer', $own);
	is(outcome($got), '201', "a $by by a deployer needs no value that is secret now");
	is_sealed($got->{json}{id}, $_, $of_env, "a $by by a deployer has the secret $_ of the environment")
	    for 'KEY', 'LATER', 'PIN';
	is($got->{json}{envVars}{TARGET}, 'x', "a $by by a deployer repeats variables of presets");
	$got = $again->('deployer', $got->{json}{id});
	is_sealed($got->{json}{id}, 'KEY', $of_env, "a $by of such a copy has it, too");
	is_sealed($again->('deployer', $inherits)->{json}{id}, 'KEY', $of_env,
	    "a $by by a deployer has a secret as it was changed");
	is_sealed($again->('maintainer', $own)->{json}{id}, 'KEY', $of_own,
	    "a $by by a maintainer repeats the replaced secret");
}
$api->delete("/api/environments/$env->{id}");

# --- idempotency keys
my ($once) = project();
my $key = { 'Idempotency-Key' => 'one' };
my $first = deploy('maintainer', $once, \%extra, $key);
is(outcome($first), '201', 'a maintainer can set variables outside the presets with an Idempotency-Key');
is(outcome(deploy('deployer', $once, \%extra, $key)), '422 /envVars/MAKEFLAGS',
    "a deployer does not get the response of a maintainer's key");
is(outcome(deploy('deployer', $once, \%extra, $key)), '422 /envVars/MAKEFLAGS',
    "a deployer does not get the response of a maintainer's key at a second try");
$db->sql("UPDATE user SET role = 'deployer' WHERE username = '"
    . $as{maintainer}->get('/api/auth/info')->{json}{username} . "'");
my $again = deploy('maintainer', $once, \%extra, $key);
is("$again->{status} $again->{json}{id}", "201 $first->{json}{id}",
    'a replay returns the first response, whatever the role is now');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE project_id = $once"), 1, 'a replay creates no deployment');
is(outcome(deploy('maintainer', $once, \%extra, { 'Idempotency-Key' => 'two' })), '422 /envVars/MAKEFLAGS',
    'a new key is judged by the present role of the user');

# --- rows of an older version
sub migrate {
	$db->sql("DELETE FROM schema_migration WHERE name = '0025-extra-env'");
	my ($exit, $out, $err) = slipway_admin($db->conf_file, 'migrate');
	return $exit == 0 || diag("$out$err") && 0;
}
my @old = map { (project())[0] } 1 .. 2;
$api->stop_api;
$db->sql('ALTER TABLE project ADD COLUMN strict_env TINYINT NOT NULL DEFAULT 0, DROP COLUMN extra_env;'
	. 'ALTER TABLE deployment DROP COLUMN env_role;'
	. "UPDATE project SET strict_env = 1 WHERE id = $old[0]");
ok(migrate(), 'a database of an older version is migrated');
is($db->sql("SELECT GROUP_CONCAT(extra_env ORDER BY id) FROM project WHERE id IN ($old[0], $old[1])"),
    'nobody,maintainers', 'the migration turns strictEnv into nobody, and its absence into maintainers');
ok(migrate(), 'the migration can be repeated');
is($db->sql("SELECT GROUP_CONCAT(extra_env ORDER BY id) FROM project WHERE id IN ($old[0], $old[1])"),
    'nobody,maintainers', 'a repeated migration changes nothing');

done_testing;
