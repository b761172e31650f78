#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# extraEnv: who may set variables that no preset of the project names, by every
# way to a deployment.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 1\n");
make_keys($api->conf_file, $api->dir . '/secret.key');
$api->stop_api;
$api->start_api;
my %as = (admin => $api, map { $_ => $api->as($_) } qw(maintainer deployer));
my $n = 0;

sub project {
	my (%more) = @_;
	$n++;
	my $got = $api->post('/api/projects', { name => "p$n", repository => 'https://git.example.org/o/p.git',
		envPresets => [ { key => 'TARGET', label => 'Target', type => 'input' } ], %more });
	diag($got->{body}) if $got->{status} != 201;
	my $id = $got->{json}{id};
	my $pipeline = $api->post('/api/pipelines', { projectId => $id, name => 'l', steps => [ { name => 's', script => 'make' } ] });
	return ($id, $pipeline->{json}{id});
}
sub deploy { my ($role, $project, $vars, @more) = @_;
	return $as{$role}->post('/api/deployments', { projectId => $project, envVars => $vars }, @more) }
sub retry { my ($role, $id) = @_; return $as{$role}->post("/api/deployments/$id/retry") }
sub says { my ($got) = @_; return join ' ', $got->{status}, map { $_->{pointer} } @{ $got->{json}{errors} || [] } }
my %extra = (TARGET => 'x', MAKEFLAGS => '--eval=$(shell id)');

# --- who may, and who may not
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
	is(says($got), $want, "$extra: a variable outside the presets, from a user who is $role: $want");
	like($got->{json}{errors}[0]{detail}, $detail, '- and the response says why') if $detail;
	is(says(deploy($role, $project, { TARGET => 'x' })), '201', '- a preset is always accepted');
	is(says(deploy($role, $project, { TARGET => 'x', LD_PRELOAD => '/x' })) =~ s{( /envVars/LD_PRELOAD)+}{ -}r, '422 -',
	    '- a name that steers the loader never');
}
my ($plain) = project();
is($api->get("/api/projects/$plain")->{json}{extraEnv}, 'maintainers', 'extraEnv is maintainers by default');
is(says(deploy('deployer', $plain, \%extra)), '422 /envVars/MAKEFLAGS', 'which rejects what a deployer adds');
my $token = $api->post('/api/auth/tokens', { name => 'ci', role => 'deployer' })->{json}{token};
is(says($api->post('/api/deployments', { projectId => $plain, envVars => \%extra }, { Authorization => "Bearer $token" })),
    '422 /envVars/MAKEFLAGS', "a maintainer's token with the role deployer counts as a deployer");
is(says($as{deployer}->put("/api/projects/$plain", { extraEnv => 'deployers' })), '403', 'a deployer cannot change extraEnv');
is(says($api->put("/api/projects/$plain", { strictEnv => JSON::PP::false })), '422 /strictEnv', 'the former member is unknown');
is(says($api->put("/api/projects/$plain", { extraEnv => undef })), '422 /extraEnv', 'null is no value of it');

# --- triggers are a maintainer's
my ($pushed, $pipeline) = project(triggers => []);
my $trigger = { branch => 'main', pipelineId => $pipeline, envVars => { EXTRA => 'of the trigger' } };
is(says($api->put("/api/projects/$pushed", { triggers => [$trigger] })), '200', 'a trigger may set other variables');
my $secret = $api->put("/api/projects/$pushed/hook-secret")->{json}{secret};
my ($headers, $event) = push_event(gitea => $secret, path => 'o/p', branch => 'main');
my $taken = $api->as('none')->post("/api/hooks/$pushed", $event, $headers);
is($taken->{status}, 202, 'a push is taken') or diag($taken->{body});
my $webhook = $taken->{json}{data}[0]{id};
is_deeply($api->get("/api/deployments/$webhook")->{json}{envVars}, { EXTRA => 'of the trigger' }, 'a push deploys with them');
is(says($api->put("/api/projects/$pushed", { extraEnv => 'nobody' })), '422 /triggers/0/envVars/EXTRA',
    'a project with such a trigger cannot forbid them to everybody');
is(says(retry('deployer', $webhook)), '201', "a deployer may retry a push's deployment");

# --- retries
my ($project) = project(extraEnv => 'deployers');
my $theirs = deploy('deployer', $project, \%extra)->{json}{id};
my $ours = deploy('maintainer', $project, \%extra)->{json}{id};
my $tame = deploy('deployer', $project, { TARGET => 'y' })->{json}{id};
is(says(retry('deployer', $theirs)), '201', 'a deployer may retry his own while extraEnv is deployers');
for my $extra (qw(maintainers nobody)) {
	is(says($api->put("/api/projects/$project", { extraEnv => $extra })), '200', "extraEnv becomes $extra");
	my $got = retry('deployer', $theirs);
	is(says($got), '403', '- what a deployer chose cannot be repeated by a deployer');
	like($got->{json}{detail}, qr/sets MAKEFLAGS.*Ask a maintainer to retry the deployment/, '- the response says what to do');
	$got = retry('deployer', $ours);
	is(says($got), '201', '- what a maintainer chose can');
	is_deeply($got->{json}{envVars}, \%extra, '- with all variables');
	is(says(retry('deployer', $got->{json}{id})), '201', '- and again');
	is(says(retry('deployer', $tame)), '201', '- and what the presets name');
	$got = retry('maintainer', $theirs);
	is(says($got), '201', '- a maintainer can retry everything');
	is(says(retry('deployer', $got->{json}{id})), '403', "- which makes a deployer's choice no maintainer's");
}
$db->sql("UPDATE deployment SET env_role = NULL WHERE id IN ($ours, $tame, $webhook)");
is(says(retry('deployer', $ours)), '403', 'what an older version has not recorded counts as chosen by a deployer');
is(says(retry('deployer', $tame)), '201', 'unless the presets name it all');
is(says(retry('deployer', $webhook)), '201', 'or a push started it');

# --- the same key twice
my ($once) = project();
my $key = { 'Idempotency-Key' => 'one' };
my $first = deploy('maintainer', $once, \%extra, $key);
is(says($first), '201', 'with an Idempotency-Key a maintainer may, too');
is(says(deploy('deployer', $once, \%extra, $key)), '422 /envVars/MAKEFLAGS', "a deployer gets no answer of a maintainer's key");
is(says(deploy('deployer', $once, \%extra, $key)), '422 /envVars/MAKEFLAGS', 'at the second try either');
$db->sql("UPDATE user SET role = 'deployer' WHERE username = '" . $as{maintainer}->get('/api/auth/info')->{json}{username} . "'");
my $again = deploy('maintainer', $once, \%extra, $key);
is("$again->{status} $again->{json}{id}", "201 $first->{json}{id}", 'a replay returns the first response, whatever the role is now');
is($db->sql("SELECT COUNT(*) FROM deployment WHERE project_id = $once"), 1, 'and creates nothing');
is(says(deploy('maintainer', $once, \%extra, { 'Idempotency-Key' => 'two' })), '422 /envVars/MAKEFLAGS',
    'a new key is held against the role that the user has');

# --- rows of an older version
sub migrate {
	$db->sql("DELETE FROM schema_migration WHERE name = '0025-extra-env'");
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $db->conf_file, 'migrate');
	return $status == 0 || diag("$out$err") && 0;
}
my @old = map { (project())[0] } 1 .. 2;
$api->stop_api;
$db->sql('ALTER TABLE project ADD COLUMN strict_env TINYINT NOT NULL DEFAULT 0, DROP COLUMN extra_env;'
	. 'ALTER TABLE deployment DROP COLUMN env_role;'
	. "UPDATE project SET strict_env = 1 WHERE id = $old[0]");
ok(migrate(), 'an older database is migrated');
is($db->sql("SELECT GROUP_CONCAT(extra_env ORDER BY id) FROM project WHERE id IN ($old[0], $old[1])"),
    'nobody,maintainers', 'strictEnv becomes nobody, its absence maintainers');
ok(migrate(), 'and migrated again');
is($db->sql("SELECT GROUP_CONCAT(extra_env ORDER BY id) FROM project WHERE id IN ($old[0], $old[1])"),
    'nobody,maintainers', 'which changes nothing');

done_testing;
