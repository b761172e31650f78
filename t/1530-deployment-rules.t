#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The rules for new deployments without a server in front of them: a program that
# links src/deploy and the store creates deployments with the same checks as
# POST /api/deployments.

use strict;
use warnings;
use IO::Socket::UNIX;
use Cpanel::JSON::XS ();
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Socket qw(SOCK_DGRAM);
use Test::More;

my $json = Cpanel::JSON::XS->new->canonical;
my $db = Slipway::DB->start;
my $dir = tempdir();
$db->migrate;
my $conf = spew("$dir/slipway.conf", $db->conf
	. "[runner]\nwake_socket = $dir/wake\n[secrets]\nkey_file = $dir/secret.key\n", 0600);

$db->sql(<<'SQL');
INSERT INTO user (id, username, role) VALUES (1, 'ada', 'deployer');
INSERT INTO project (id, name, repository, project_dir, default_branch, env_presets) VALUES
    (1, 'site', 'https://git.example.org/o/site', 'site', 'trunk',
     '[{"key":"TARGET","label":"T","type":"select","required":true,'
     '"options":[{"label":"s","value":"stage"},{"label":"l","value":"live"}]},'
     '{"key":"LEVEL","label":"L","type":"input","pattern":"[0-9]+","default":"7"},'
     '{"key":"TOKEN","label":"K","type":"input","secret":true}]'),
    (2, 'strict', 'https://git.example.org/o/strict', 'strict', NULL, '[]'),
    (3, 'bare', 'https://git.example.org/o/bare', 'bare', NULL, '[]'),
    (4, 'gone', 'https://git.example.org/o/gone', 'gone', NULL, '[]');
UPDATE project SET extra_env = 'nobody' WHERE id = 2;
INSERT INTO pipeline (id, project_id, name) VALUES
    (11, 1, 'a'), (21, 2, 'a'), (22, 2, 'b'), (31, 3, 'empty'), (41, 4, 'a');
INSERT INTO step (pipeline_id, name, script, position) VALUES
    (11, 'one', 'true', 0), (11, 'two', 'false', 1), (21, 's', 'true', 0), (22, 's', 'true', 0),
    (41, 's', 'true', 0);
SQL

my $probe = Slipway::Probe->start($conf, 'deploy_probe');
sub ask { return $probe->ask("@_") }
sub create { my (%body) = @_; return ask('maintainer create', $json->encode(\%body)) }
sub deploy { my ($role, %body) = @_; return ask($role, 'create', $json->encode(\%body)) }
sub row { my ($id, $what) = @_; return $db->sql("SELECT $what FROM deployment WHERE id = $id") }
sub count { return $db->sql('SELECT COUNT(*) FROM deployment') }

# --- without a key
is(create(projectId => 1, envVars => { TARGET => 'live', TOKEN => 'swordfish' }),
    'error config The project has secret variables, and the service has no key to encrypt them. '
    . 'An administrator must run "slipway-admin key" and reload the service.',
    'without a key a secret variable is an error');
is($probe->stop, 0, 'the probe ends with status 0');
is(count(), 0, 'a rejected secret variable creates no deployment');
ok(make_keys($conf, "$dir/secret.key"), 'slipway-admin key creates the keys for secrets');
$probe = Slipway::Probe->start($conf, 'deploy_probe');

# --- valid requests
my $wake = IO::Socket::UNIX->new(Local => "$dir/wake", Type => SOCK_DGRAM) or die "wake: $!";
my $got = create(projectId => 1, envVars => { TARGET => 'live', TOKEN => 'swordfish', MORE => 'x' });
my ($first) = $got =~ /^ok (\d+)$/;
ok($first, 'a valid request creates a deployment') or BAIL_OUT($got);
ok(defined recv($wake, my $datagram, 16, 0), 'a new deployment wakes the runner');
is(row($first, 'status, `trigger`, branch, pipeline_id'), "pending\tmanual\ttrunk\t11",
    'a new deployment is pending, on the default branch, with the only pipeline');
is_deeply($json->decode(row($first, 'env_vars')),
    { TARGET => 'live', TOKEN => undef, MORE => 'x', LEVEL => '7' },
    'variables include defaults of presets, and a secret as null');
is($db->sql('SELECT GROUP_CONCAT(name, script ORDER BY position) FROM deployment_step'
    . " WHERE deployment_id = $first"),
    'onetrue,twofalse', 'the deployment has a copy of the steps');
my $sealed = row($first, 'secret_vars');
unlike($sealed, qr/swordfish/, 'a secret variable is stored encrypted');
my ($status, $opened) = run_cmd({ stdin => $sealed }, program('t/unit/unseal'), "$dir/deploy.key", 1);
is_deeply($json->decode($opened), { TOKEN => 'swordfish' },
    "the dispatcher's key decrypts a secret variable");
like(create(projectId => 1, branch => 'feature/x', commitHash => 'a' x 40, commitMessage => "two\nlines",
	pipelineId => 11,
	envVars => { TARGET => 'stage' }), qr/^ok /, 'a request with every member creates a deployment');

# --- invalid requests
my $before = count();
for (
	['an unknown project', { projectId => 99 }, 'faults /projectId'],
	['a missing project', {}, 'faults /projectId'],
	['a missing required variable', { projectId => 1 }, 'faults /envVars/TARGET'],
	['a value that is not an option', { projectId => 1, envVars => { TARGET => 'moon' } },
		'faults /envVars/TARGET'],
	['a value that the pattern does not match',
		{ projectId => 1, envVars => { TARGET => 'live', LEVEL => 'x' } },
	    'faults /envVars/LEVEL'],
	['a name that steers the shell',
		{ projectId => 1, envVars => { TARGET => 'live', LD_PRELOAD => 'x' } },
	    'faults /envVars/LD_PRELOAD'],
	['a variable that is not a string', { projectId => 1, envVars => { TARGET => 7 } },
		'faults /envVars/TARGET'],
	['a branch that is an option',
		{ projectId => 1, branch => '--upload-pack=x', envVars => { TARGET => 'live' } },
	    'faults /branch'],
	['a pipeline of another project',
		{ projectId => 1, pipelineId => 21, envVars => { TARGET => 'live' } },
	    'faults /pipelineId'],
	['a request that names none of several pipelines', { projectId => 2 }, 'faults /pipelineId'],
	['a pipeline without steps', { projectId => 3 }, 'faults /pipelineId'],
	['a variable outside the presets, if extraEnv is nobody,',
	    { projectId => 2, pipelineId => 21, envVars => { X => '1' } }, 'faults /envVars/X'],
	['an unknown member', { projectId => 1, env => {}, envVars => { TARGET => 'live' } }, 'faults /env'],
	['a request with several errors',
		{ projectId => 1, branch => '-x', pipelineId => 22, envVars => { TARGET => '' } },
	    'faults /branch /pipelineId /envVars/TARGET'],
) {
	my ($what, $body, $want) = @$_;
	is(create(%$body), $want, "$what is rejected");
}
is(create(projectId => '1'), 'faults /projectId', 'a number in quotes is rejected');
like(ask('maintainer create', '{"projectId":1,'), qr/^error bad_request /,
    'a body that is not JSON is rejected');
is(deploy('deployer', projectId => 1, envVars => { TARGET => 'live', MAKEFLAGS => 'x' }),
    'faults /envVars/MAKEFLAGS',
    'a deployer cannot set a variable outside the presets');
is(count(), $before, 'rejected requests create no deployment');

# --- retries
my ($again) = ask("deployer retry $first") =~ /^ok (\d+)$/;
ok($again, 'a deployer can retry a deployment');
is(row($again, '`trigger`, retry_of, created_by, branch'), "retry\t$first\t1\ttrunk",
    'a retry refers to the first deployment and its user');
is(row($again, 'secret_vars'), $sealed, 'a retry has the same encrypted secrets');
like(ask('deployer retry 9999'), qr/^error not_found /, 'an unknown deployment cannot be retried');
$db->sql("UPDATE deployment SET env_role = 'deployer' WHERE id = $again");
like(ask("deployer retry $again"), qr/^error forbidden .*sets MORE/,
    'a deployer cannot retry a deployment with variables outside the presets');
like(ask("maintainer retry $again"), qr/^ok/,
    'a maintainer can retry a deployment with variables outside the presets');
my ($orphan) = create(projectId => 4) =~ /^ok (\d+)$/;
$db->sql('UPDATE project SET valid = 0 WHERE id = 4');
like(ask("deployer retry $orphan"), qr/^error conflict .*was deleted/,
    'a deployment of a deleted project cannot be retried');
is(create(projectId => 4), 'faults /projectId', 'a deleted project accepts no deployment');

is($probe->stop, 0, 'the probe ends with status 0');
done_testing;
