#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Variables that an administrator passes to several projects: members, faults,
# secret values, and what deployments get from them.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::DB;
use Slipway::Test;
use Test::More;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $json = JSON::PP->new->canonical;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 1\n");
my ($n, $got) = (0);

sub project {
	my (%more) = @_;
	$n++;
	my $id = $api->make('/api/projects', { name => "p$n",
		repository => 'https://git.example.org/o/p.git', %more })->{id};
	$api->make('/api/pipelines', { projectId => $id, name => 'l',
		steps => [ { name => 's', script => 'make' } ] });
	return $id;
}
sub variable { return $api->make('/api/variables', {@_}) }
sub deploy {
	my ($project, %more) = @_;
	return $api->post('/api/deployments', { projectId => $project, %more });
}
sub vars { my ($project, %more) = @_; return deploy($project, %more)->{json}{envVars} }
my @project = map { project() } 1 .. 3;

# --- members
$got = $api->post('/api/variables', { key => 'MIRROR', value => 'https://m.example.org/',
	description => 'the mirror', projects => [ @project[1, 0] ] });
is($got->{status}, 201, 'a variable is created') or diag($got->{body});
my $mirror = $got->{json};
my $path = "/api/variables/$mirror->{id}";
is($got->{headers}{location}, $path, 'Location is the path of the new variable');
is_deeply([ @{$mirror}{qw(key value secret description projects)} ],
    [ 'MIRROR', 'https://m.example.org/', $false, 'the mirror', [ @project[0, 1] ] ],
    'the variable has the members sent, with its projects in order');
is($api->get($path)->{body}, $got->{body}, 'GET returns what POST returned');
my $token = variable(key => 'TOKEN', value => 'sword fish', secret => $true, projects => [ $project[0] ]);
is($token->{value}, undef, 'a secret value reads as null');
unlike(join("\n", $db->sql('SELECT value FROM variable; SELECT sealed FROM variable_project')), qr/sword/,
    'a secret value is stored encrypted');
is_deeply($api->get('/api/variables?limit=1')->{json}{pagination},
    { page => 1, limit => 1, total => 2, totalPages => 2 }, 'a list has pages');
is(join(' ', map { $_->{key} } @{ $api->get('/api/variables')->{json}{data} }), 'MIRROR TOKEN',
    'a list is ordered by key');

# --- faults
for my $case (
	[ {}, '422 /key /value', 'an empty body' ],
	[ { key => 'A' }, '422 /value', 'a missing value' ],
	[ { key => 'A', secret => $true }, '422 /value', 'a missing secret value' ],
	[ { key => 'A', secret => $true, value => 'x' }, '422 /projects', 'a secret value for no project' ],
	[ { key => 'A', secret => $true, value => 'x', projects => [] }, '422 /projects',
		'a secret value for an empty list of projects' ],
	[ { key => 'A B', value => '' }, '422 /key', 'an invalid key' ],
	[ { key => 'LD_PRELOAD', value => '' }, '422 /key', 'a key that controls the loader' ],
	[ { key => 'A', value => 1 }, '422 /value', 'a number as value' ],
	[ { key => 'A', value => "\x{20ac}" x 22000 }, '422 /value', 'a value of 66 kB' ],
	[ { key => 'A', value => '', projects => 1 }, '422 /projects', 'a number for projects' ],
	[ { key => 'A', value => '', projects => ['1'] }, '422 /projects/0', 'a string for a project' ],
	[ { key => 'A', value => '', projects => [77777] }, '422 /projects/0', 'an unknown project' ],
	[ { key => 'A', value => '', projects => [ @project[0, 0] ] }, '422 /projects/1',
	    'a repeated project' ],
	[ { key => 'A', value => '', id => 5 }, '422 /id', 'an id' ],
	[ { key => 'MIRROR', value => '', projects => [ @project[2, 1] ] }, '409 /projects/1',
	    'a key that another variable passes to the project' ],
) {
	my ($body, $want, $name) = @$case;
	is(outcome($api->post('/api/variables', $body)), $want, "$name is rejected");
}
is($api->get('/api/variables')->{json}{pagination}{total}, 2, 'rejected requests create no variable');
is($api->as('maintainer')->get('/api/variables')->{status}, 403,
    'a maintainer does not see shared variables');
variable(key => 'MIRROR', value => 'other', projects => [ $project[2] ]);

# --- copies of a secret
$db->sql(join ';', map { 'INSERT INTO project (name, repository, project_dir, env_presets, triggers)'
    . " SELECT 'copy$_', repository, 'copy$_', env_presets, triggers FROM project"
    . " WHERE id = $project[0]" } 1 .. 60);
my @copies = map { $_ + 0 } split /,/,
    $db->sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM project WHERE name LIKE 'copy%'");
my %large = (key => 'LARGE', value => 'x' x 65000, secret => $true);
$got = $api->post('/api/variables', { %large, projects => [@copies] });
is(outcome($got), '422 /projects', 'a secret with more than 2 MiB of copies is rejected');
like($got->{body}, qr/all copies together must have at most 2 MiB/, 'the error names the limit');
my $large = $api->post('/api/variables', { %large, projects => [ @copies[0 .. 31] ] });
is(outcome($large), '201', 'a secret with 2 MiB of copies is created');
is(outcome($api->put("/api/variables/$large->{json}{id}", { %large, value => 'y' x 65000 })), '200',
    'a secret with 2 MiB of copies can be replaced') if $large->{json}{id};
is(outcome($api->put("/api/variables/$large->{json}{id}", { projects => [@copies] })), '422 /value',
    'a secret needs its value to be added to more projects');
is($api->delete("/api/variables/$large->{json}{id}")->{status}, 204,
    'a variable with 2 MiB of copies can be deleted');

# --- large values
my %many = (value => 'x' x 65536, projects => [ $copies[40] ]);
my @many = map { $api->post('/api/variables', { %many, key => "MANY$_" }) } 1 .. 8;
is(join(' ', map { outcome($_) } @many), '201 ' x 7 . '422 /projects/0',
    'values of 64 KiB are accepted until a project would receive more than 512 KiB');
like($many[7]{body}, qr/would receive shared variables of more than 512 KiB/, 'the error names the limit');
is(outcome($api->put("/api/variables/$many[0]{json}{id}", { value => '' })), '200', 'a value is shortened');
is(outcome($api->post('/api/variables', { %many, key => 'MANY8' })), '201',
    'after that, the projects can receive another variable');
is(outcome($api->put("/api/variables/$many[0]{json}{id}", { value => 'x' x 65536 })), '422 /projects/0',
    'a change obeys the same limit');
is($api->delete("/api/variables/$_->{json}{id}")->{status}, 204, 'a large variable is deleted')
    for @many[0 .. 6];

# --- deployments
is_deeply(vars($project[0]), { MIRROR => 'https://m.example.org/', TOKEN => undef },
    'a deployment gets the variables of its project');
is_deeply(vars($project[2]), { MIRROR => 'other' }, 'another project gets another value of the same key');
my $first = deploy($project[0])->{json}{id};
is($json->decode($db->sql("SELECT secret_vars FROM deployment WHERE id = $first"))->{TOKEN},
    $json->decode($db->sql('SELECT sealed FROM variable_project WHERE sealed IS NOT NULL'))->{TOKEN},
    'a secret is copied without decrypting it');
is($api->as('deployer')->post("/api/deployments/$first/retry")->{status}, 201,
    'a deployer repeats a deployment with shared variables');
is(outcome($api->as('deployer')->post('/api/deployments',
    { projectId => $project[0], envVars => { MIRROR => 'x' } })), '422 /envVars/MIRROR',
    'a deployer cannot replace a shared variable that no preset names');
is(vars($project[0], envVars => { TOKEN => 'sent' })->{TOKEN}, undef,
    'a variable sent in place of a secret is secret');
my $shop = project(envPresets => [ map { { key => $_, label => $_, type => 'input', default => 'preset' } }
	qw(A B C D) ]);
variable(key => $_, value => 'shared', projects => [$shop]) for qw(B C D);
$api->make('/api/environments', { projectId => $shop, name => 'live',
	variables => [ map { { key => $_, value => 'environment' } } qw(C D) ] });
is_deeply(vars($shop, envVars => { D => 'sent' }),
    { A => 'preset', B => 'shared', C => 'environment', D => 'sent' },
    'defaults of presets, shared variables, those of the environment, those sent: the later precede');
my $need = project(envPresets => [ { key => 'NEED', label => 'n', type => 'input', required => $true } ]);
is(outcome(deploy($need)), '422 /envVars/NEED', 'a required variable is missing');
variable(key => 'NEED', value => 'x', projects => [$need]);
is(outcome(deploy($need)), '201', 'a shared variable satisfies a preset that requires it');

# --- changes
sub change { return outcome($api->put("/api/variables/$token->{id}", {@_})) }
sub sealed { return $db->sql("SELECT sealed FROM variable_project WHERE variable_id = $token->{id}") }
my $sealed = sealed();
is(change(description => 'd'), '200', 'a variable is changed');
is(sealed(), $sealed, 'a secret keeps its value when other members change');
is(change(projects => [ @project[0, 1] ]), '422 /value', 'adding a project to a secret requires its value');
is(change(key => 'KEY'), '422 /value', 'a new key of a secret requires its value');
is(change(secret => $false), '422 /value', 'a secret cannot become visible without its value');
is(change(projects => [ @project[0, 1] ], value => 'perch'), '200', 'with its value, a project is added');
is(vars($project[1])->{TOKEN} // 'null', 'null', 'the added project receives the variable');
is(scalar(() = $db->sql('SELECT sealed FROM variable_project WHERE sealed IS NOT NULL') =~ /TOKEN/g), 2,
    'the value is encrypted for each project');
is(change(projects => [ $project[1] ]), '200', 'a project is removed without the value');
ok(!exists vars($project[0])->{TOKEN}, 'a project that was removed does not receive the variable');
is(change(secret => $false, value => 'open'), '200', 'with its value, a secret becomes visible');
is(vars($project[1])->{TOKEN}, 'open', 'deployments show its value');
is(change(secret => $true), '200', 'a variable becomes secret');
is($db->sql("SELECT COALESCE(value, 'null') FROM variable WHERE id = $token->{id}"), 'null',
    'the value of a variable that became secret is not stored as text');
is(change(value => undef), '200', 'null keeps a secret');
is($api->put($path, { key => 'TOKEN' })->{status}, 409,
    'a change to a key that the project receives is a conflict');
is($api->put($path, {}, { 'If-Match' => '"9-x"' })->{status}, 412, 'a change with another tag returns 412');
is($api->put('/api/variables/77777', {})->{status}, 404, 'a change of an unknown variable returns 404');

# --- deletion
is($api->delete($path)->{status}, 204, 'a variable is deleted');
is($api->get($path)->{status}, 404, 'a deleted variable returns 404');
ok(!exists vars($project[0])->{MIRROR}, 'projects do not receive a deleted variable');
variable(key => 'MIRROR', value => 'again', projects => [ $project[0] ]);
is(vars($project[0])->{MIRROR}, 'again', 'the key of a deleted variable is free again');
$api->delete("/api/projects/$project[1]");
is_deeply($api->get("/api/variables/$token->{id}")->{json}{projects}, [],
    'a deleted project is removed from its variables');

done_testing;
