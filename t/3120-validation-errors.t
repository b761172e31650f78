#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A response lists every error of a body at once, for every operation with a body:
# errors of form and errors of meaning. Only a value in use that is the sole error
# is a conflict.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my %repository = (repository => 'https://git.example.org/team/shop');
my $none = 9007199254740991;

# Creates an object; its id.
sub create { return $api->make(@_)->{id} }

my $project = create('/api/projects', { name => 'Shop', projectDir => 'shop', %repository,
	envPresets => [{ key => 'TARGET', label => 'Where to', type => 'select', required => JSON::PP::true,
		options => [{ label => 'Live', value => 'live' }] },
	    { key => 'PASSWORD', label => 'Password', type => 'input', secret => JSON::PP::true }] });
my $other = create('/api/projects', { name => 'Tools', projectDir => 'tools', %repository });
my $pipeline = create('/api/pipelines', { projectId => $project, name => 'Deploy',
	steps => [{ name => 'a', script => 'true' }] });
my $second = create('/api/pipelines', { projectId => $project, name => 'Roll back' });
my $foreign = create('/api/pipelines', { projectId => $other, name => 'Deploy',
	steps => [{ name => 'a', script => 'true' }] });
my $full = create('/api/pipelines', { projectId => $other, name => 'Full',
	steps => [map { { name => "s$_", script => "true" } } 1 .. 100] });
my $large = create('/api/pipelines', { projectId => $other, name => 'Large' });
create('/api/steps', { pipelineId => $large, name => "s$_", script => 'x' x 65535 }) for 1 .. 16;
my $step = create('/api/steps', { pipelineId => $large, name => 'last', script => 'true' });
my $user = create('/api/user', { username => 'ann', role => 'viewer' });
my $me = $api->get('/api/auth/info')->{json}{id};
my ($environment) = map { create('/api/environments', { projectId => $other, name => $_ }) } 'live', 'test';
my $variable = create('/api/variables', { key => 'MIRROR', value => '', projects => [$other] });
my ($template) = @{ $api->get('/api/templates')->{json}{data} };
create('/api/pipelines/from-template', { templateId => $template->{id}, projectId => $other });

my %project = (name => 'New', %repository);
my %pipeline = (projectId => $project, name => 'New');
my %step = (pipelineId => $pipeline, name => 'b', script => 'true');
my %from = (projectId => $project, templateId => $template->{id});
my %deployment = (projectId => $project, pipelineId => $pipeline, envVars => { TARGET => 'live' });
my %user = (username => 'ben', role => 'viewer');
my %environment = (projectId => $other, name => 'new');
my %variable = (key => 'NEW', value => '');
my %schedule = (projectId => $project, pipelineId => $pipeline, cron => '@daily', name => 'new',
	envVars => { TARGET => 'live' });
my $schedule = create('/api/schedules', { %schedule, name => 'nightly' });
create('/api/schedules', { %schedule, name => 'weekly' });
my %notifier = (kind => 'text', target => 'https://chat.example.org/x', events => ['failed']);
my $notifier = create('/api/notifiers', \%notifier);
my %lock = (reason => 'maintenance', until => '2020-01-01T00:00:00Z');
my %preset = (key => 'A', label => 'A', type => 'input');

# Operation, its {id}; a body with errors of meaning; status and pointers of the
# response; a member to which an error of form is added.
my @table = (
	['POST /api/projects', undef, { %project, name => 'SHOP' }, 409, '/name', 'description'],
	['POST /api/projects', undef, { %project, projectDir => 'shop/x' }, 409, '/projectDir',
		'description'],
	['POST /api/projects', undef, { %project, name => 'Shop', projectDir => 'tools' }, 409,
	    '/name /projectDir', 'extraEnv'],
	['POST /api/projects', undef, { %project, name => 'Shop', defaultBranch => '..' }, 422,
	    '/defaultBranch /name', 'description'],
	['POST /api/projects', undef, { %project, repository => 'https://evil.example/a/b' }, 422,
	    '/repository', 'description'],
	['POST /api/projects', undef, { %project, envPresets => [\%preset, \%preset] }, 422,
	    '/envPresets/1/key', 'description'],
	['POST /api/projects', undef,
		{ %project, triggers => [{ branch => 'main', pipelineId => $pipeline }] }, 422,
	    '/triggers/0/pipelineId', 'description'],
	['POST /api/projects', undef, { %project, projectDir => '-x' }, 422, '/projectDir', 'description'],
	['POST /api/projects', undef, { %project, envPresets => [
		{ %preset, label => 5 },
		{ %preset, type => 'select', options => [7] },
		{ %preset, key => 'B', type => 'select', default => 'x', options => [{ value => 'x' }] },
		{ key => 'PATH' }] }, 422,
	    '/envPresets/0/label /envPresets/1/key /envPresets/1/options/0 /envPresets/2/options/0/label '
	    . '/envPresets/3/key /envPresets/3/label /envPresets/3/type', 'description'],
	['PUT /api/projects/{id}', $project, { triggers => [1,
		{ branch => 5, pipelineId => $foreign, envVars => { TARGET => 7, PATH => '/' } },
		{ branch => '-x', pipelineId => 'x', envVars => [] },
		{ branch => 'main', pipelineId => $pipeline }] }, 422,
	    '/triggers/0 /triggers/1/branch /triggers/1/envVars/PATH /triggers/1/envVars/TARGET '
	    . '/triggers/1/pipelineId /triggers/2/branch /triggers/2/envVars '
	    . '/triggers/2/pipelineId /triggers/3/envVars/TARGET', 'name'],
	['PUT /api/projects/{id}', $project, { name => 'TOOLS' }, 409, '/name', 'description'],
	['PUT /api/projects/{id}', $project, { name => 'Tools', projectDir => 'elsewhere' }, 422,
	    '/name /projectDir', 'extraEnv'],
	['PUT /api/projects/{id}', $project, { projectDir => 'elsewhere', defaultBranch => '-x' }, 422,
	    '/defaultBranch /projectDir', 'name'],
	['PUT /api/projects/{id}', $project, { repository => 'file:///etc' }, 422, '/repository', 'name'],
	['PUT /api/projects/{id}', $project, { envPresets => [\%preset, \%preset] }, 422,
	    '/envPresets/1/key', 'name'],
	['PUT /api/projects/{id}', $project, { triggers => [
		{ branch => 'main', pipelineId => $foreign, envVars => { TARGET => 'live' } }] }, 422,
	    '/triggers/0/pipelineId', 'name'],
	['PUT /api/projects/{id}', $project, { triggers => [
		{ branch => 'main', pipelineId => $pipeline, envVars => { TARGET => 'moon' } }] }, 422,
	    '/triggers/0/envVars/TARGET', 'name'],
	['PUT /api/projects/{id}', $project, { triggers => [
		{ branch => 'main', pipelineId => $none,
			envVars => { TARGET => 'live', PASSWORD => undef } }] }, 422,
	    '/triggers/0/envVars/PASSWORD /triggers/0/pipelineId', 'name'],
	['POST /api/pipelines', undef, { %pipeline, projectId => $none }, 422, '/projectId', 'name'],
	['POST /api/pipelines', undef, { %pipeline, projectId => $none }, 422, '/projectId', 'steps'],
	['POST /api/pipelines', undef, { %pipeline, name => 'DEPLOY' }, 409, '/name', 'steps'],
	['PUT /api/pipelines/{id}', $second, { name => 'deploy' }, 409, '/name', 'timeoutSeconds'],
	['PUT /api/pipelines/{id}', $second, { projectId => $other, name => 'Deploy' }, 422,
	    '/name /projectId', 'description'],
	['POST /api/steps', undef, { %step, pipelineId => $none }, 422, '/pipelineId', 'name'],
	['POST /api/steps', undef, { %step, pipelineId => $full }, 409, '/pipelineId', 'position'],
	['POST /api/steps', undef, { %step, pipelineId => $large, script => 'x' x 65535 }, 422, '/script',
		'name'],
	['PUT /api/steps/{id}', $step, { script => 'x' x 65535 }, 422, '/script', 'position'],
	['PUT /api/steps/{id}', $step, { pipelineId => $pipeline }, 422, '/pipelineId', 'position'],
	['POST /api/pipelines/from-template', undef, { %from, templateId => 'nothing' }, 422, '/templateId',
		'name'],
	['POST /api/pipelines/from-template', undef, { %from, projectId => $none }, 422, '/projectId',
		'name'],
	['POST /api/pipelines/from-template', undef, { projectId => $none, templateId => 'nothing' }, 422,
	    '/projectId /templateId', 'name'],
	['POST /api/pipelines/from-template', undef, { %from, name => 'Deploy' }, 409, '/name',
		'description'],
	['POST /api/pipelines/from-template', undef, { %from, projectId => $other }, 409, '/name',
		'description'],
	['POST /api/pipelines/from-template', undef, { %from, templateId => 'nothing', name => 'Deploy' },
		422,
	    '/name /templateId', 'description'],
	['POST /api/deployments', undef, { %deployment, projectId => $none }, 422, '/projectId',
		'commitHash'],
	['POST /api/deployments', undef, { %deployment, branch => '-x' }, 422, '/branch', 'commitHash'],
	['POST /api/deployments', undef, { %deployment, pipelineId => $foreign }, 422, '/pipelineId',
		'commitHash'],
	['POST /api/deployments', undef, { projectId => $project, envVars => { TARGET => 'live' } }, 422,
	    '/pipelineId', 'commitHash'],
	['POST /api/deployments', undef, { %deployment, pipelineId => $second }, 422, '/pipelineId',
		'commitHash'],
	['POST /api/deployments', undef, { %deployment, pipelineId => $none, envVars => {} }, 422,
	    '/envVars/TARGET /pipelineId', 'branch'],
	['POST /api/deployments', undef, { projectId => $project, pipelineId => $pipeline }, 422,
	    '/envVars/TARGET', 'commitHash'],
	['POST /api/deployments', undef, { %deployment, envVars => { TARGET => 'moon', PATH => '/' } }, 422,
	    '/envVars/PATH /envVars/TARGET', 'pipelineId'],
	['POST /api/deployments', undef, { %deployment, envVars => { TARGET => 5, PATH => '/' } }, 422,
	    '/envVars/PATH /envVars/TARGET', 'commitHash'],
	['POST /api/deployments', undef, { %deployment, envVars => ['x'] }, 422, '/envVars', 'commitHash'],
	['POST /api/environments', undef, { %environment, projectId => $none }, 422, '/projectId', 'url'],
	['POST /api/environments', undef, { %environment, name => 'LIVE' }, 409, '/name', 'url'],
	['PUT /api/environments/{id}', $environment, { name => 'test' }, 409, '/name', 'url'],
	['PUT /api/environments/{id}', $environment, { approvers => [$none] }, 422, '/approvers/0', 'url'],
	['POST /api/variables', undef, { %variable, projects => [$none] }, 422, '/projects/0', 'description'],
	['POST /api/variables', undef, { %variable, key => 'MIRROR', projects => [$other] }, 409,
		'/projects/0', 'description'],
	['PUT /api/variables/{id}', $variable, { projects => [$other, $none] }, 422, '/projects/1',
		'description'],
	['POST /api/schedules', undef, { %schedule, cron => 'x', timezone => 'x', pipelineId => $none,
		envVars => { PATH => '/', TARGET => 'live' } }, 422,
		'/cron /envVars/PATH /pipelineId /timezone', 'branch'],
	['POST /api/schedules', undef, { %schedule, name => 'WEEKLY' }, 409, '/name', 'branch'],
	['POST /api/schedules', undef, { %schedule, projectId => $none }, 422, '/projectId', 'branch'],
	['PUT /api/schedules/{id}', $schedule, { name => 'weekly' }, 409, '/name', 'branch'],
	['PUT /api/schedules/{id}', $schedule, { cron => '* * *', timezone => 'x' }, 422, '/cron /timezone',
		'branch'],
	['POST /api/notifiers', undef, { %notifier, target => 'chat', events => ['failed', 'failed'],
		projectId => $none }, 422, '/events/1 /projectId /target', 'active'],
	['POST /api/notifiers', undef, { %notifier, environmentId => $environment }, 422,
		'/environmentId', 'active'],
	['PUT /api/notifiers/{id}', $notifier, { target => 'team@example.org' }, 422, '/target', 'active'],
	['PUT /api/lock', undef, \%lock, 422, '/until', 'reason'],
	['PUT /api/projects/{id}/lock', $project, \%lock, 422, '/until', 'reason'],
	['PUT /api/environments/{id}/lock', $environment, \%lock, 422, '/until', 'reason'],
	['POST /api/user', undef, { %user, username => 'ANN' }, 409, '/username', 'email'],
	['PUT /api/user/{id}', $user, { username => 't-admin' }, 409, '/username', 'role'],
	['PUT /api/user/{id}', $me, { role => 'viewer' }, 409, '/role', 'email'],
	['PUT /api/user/{id}', $me, { status => 'inactive' }, 409, '/status', 'email'],
	['PUT /api/user/{id}', $me, { role => 'viewer', username => 'ann' }, 409, '/role /username', 'email'],
	['POST /api/auth/tokens', undef, { name => 'x', role => 'admin' }, 422, '/role', 'name'],
	['POST /api/auth/tokens', undef, { name => 'x', expiresAt => '2020-01-01T00:00:00Z' }, 422,
		'/expiresAt', 'role'],
	['POST /api/auth/tokens', undef,
		{ name => 'x', role => 'admin', expiresAt => '2020-01-01T00:00:00Z' }, 422,
	    '/expiresAt /role', 'name'],
);

# Two lists of pointers as one, sorted.
sub both { return join ' ', sort map { split ' ' } @_ }

my %seen;
for my $case (@table) {
	my ($operation, $id, $body, $status, $pointers, $member) = @$case;
	my ($method, $path) = split ' ', $operation;
	$path =~ s/\{id\}/$id/;
	my $as = $api->as($path =~ /tokens/ ? 'deployer' : 'admin');
	my $ask = sub { return $as->within_rate($method, $path, @_) };
	$seen{$operation}++;
	my $label = "$operation with errors in $pointers";
	my $got = $ask->($body);
	is(outcome($got), "$status $pointers", "$label returns $status and these") or diag $got->{body};
	like($got->{json}{detail}, qr/\S{2} \S+ .*\.$/, "$label explains the conflict") if $status == 409;
	is(outcome($ask->({ %$body, $member => [[]] })), '422 ' . both($pointers, inner($path, $member)),
	    "$label and in $member reports them all");
	is(outcome($ask->({ %$body, env => 'x' })), '422 ' . both($pointers, '/env'),
	    "$label and an unknown member reports them all");
	if ($method eq 'POST' && $pointers !~ m{/name} && exists $body->{name} && $path !~ /from/) {
		my %less = %$body;
		delete $less{name};
		is(outcome($ask->(\%less)), '422 ' . both($pointers, '/name'),
		    "$label and without a name reports them all");
	}
}
# --- blank names
my @blank = (' ', "\t", "  \x{a0}", "\x{3000}", "\x{2003}\x{feff}", "\x{301}", " \x{301} \x{20d0}");
my %named = (
	'POST /api/projects' => \%project, "PUT /api/projects/$project" => {},
	'POST /api/pipelines' => \%pipeline, "PUT /api/pipelines/$pipeline" => {},
	'POST /api/steps' => \%step, "PUT /api/steps/$step" => {},
	'POST /api/pipelines/from-template' => \%from, 'POST /api/user' => \%user,
	"PUT /api/user/$user" => {},
);
for my $what (sort keys %named) {
	my ($method, $path) = split ' ', $what;
	for my $name (@blank) {
		is(outcome($api->request($method, $path, { %{ $named{$what} }, name => $name })), '422 /name',
		    sprintf '%s rejects the blank name %vX', $what, $name);
	}
}
is(outcome($api->as('maintainer')->post('/api/auth/tokens', { name => "\x{a0} " })), '422 /name',
    'a blank name of a token is rejected');
is(outcome($api->post('/api/pipelines', { %pipeline, steps => [{ name => ' ', script => 'true' }] })),
    '422 /steps/0/name', 'a blank name of a step is rejected');
is(outcome($api->post('/api/projects', { %project, envPresets => [{ %preset, label => "\x{2003}" }] })),
    '422 /envPresets/0/label', 'a blank label of a preset is rejected');
is(outcome($api->put("/api/projects/$other", { name => " \x{e9} " })), '200',
    'a name may begin and end with blanks');

# The pointer of an error of form in this member.
sub inner { my ($path, $member) = @_; return $member eq 'steps' ? '/steps/0' : "/$member" }

my $doc = $api->get('/api/openapi.json')->{json};
my @bodies;
for my $path (keys %{ $doc->{paths} }) {
	my $methods = $doc->{paths}{$path};
	push @bodies, map { uc($_) . " $path" } grep { $methods->{$_}{requestBody} } keys %$methods;
}
# Other tests cover requests that need a deployment or a device, imports, and bodies of one member.
my $elsewhere = qr{/auth/(?:login|device(?:/\w+)?)$|/hooks/|/members/|/import$
    |/(?:approve|deny|cancel|promote|rollback)$}x;
is_deeply([grep { !$seen{$_} && !m{$elsewhere} } sort @bodies], [],
    'the test covers every operation with a body');

is($db->sql("SELECT COUNT(*) FROM project") + 0, 2, 'rejected requests create no project');
is($db->sql("SELECT COUNT(*) FROM deployment") + 0, 0, 'rejected requests create no deployment');
is($db->sql("SELECT COUNT(*) FROM user WHERE username = 'ben'") + 0, 0, 'rejected requests create no user');

# --- several requests with the same name at once: one succeeds
for my $case (['/api/pipelines', { %pipeline, name => 'Twice' }, '/name'],
	['/api/user', { %user, username => 'twice' }, '/username'],
	['/api/projects', { %project, name => 'Twice' }, '/name']) {
	my ($path, $body, $pointer) = @$case;
	my @runs = map {
		background(sub { delete $api->{http}; return outcome($api->post($path, $body)) });
	} 1 .. 4;
	is(join(', ', sort map { $_->result } @runs), '201' . ", 409 $pointer" x 3,
	    "one of four simultaneous POST $path with the same name succeeds");
}
done_testing;
