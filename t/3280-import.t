#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Export and import of projects. Two values of each member that the OpenAPI document
# lets a client write go through a document; a new member needs a line here.

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
my $maintainer = $api->as('maintainer');
my $schemas = $api->get('/api/openapi.json')->{json}{components}{schemas};

sub copy { my ($data) = @_; return $json->decode($json->encode($data)) }
sub import {
	my ($doc, %more) = @_;
	return $maintainer->post('/api/projects/import', { document => $doc, %more });
}
sub export { my ($id) = @_; return $maintainer->get("/api/projects/$id/export")->{json} }
# "type name: action members", of all parts of a result.
sub parts {
	my ($got) = @_;
	return [ map {
		my %seen;
		join ' ', "$_->{type} $_->{name}: $_->{action}", sort grep { !$seen{$_}++ } map { $_->{name} }
		    @{ $_->{changes} }
	} @{ $got->{json}{items} } ];
}

# --- two values of each member: resource => { member => [one, other] }
my @script = (name => 's', directory => undef, timeoutSeconds => undef, runWhen => 'success',
	mayFail => $false);
my %values = (
	Project => {
		name => [ 'Site', 'Site' ], description => [ 'one', undef ],
		repository => [ map { "https://git.example.org/o/$_.git" } 'a', 'b' ],
		projectDir => [ 'site', 'site' ], defaultBranch => [ 'main', undef ],
		envPresets => [ [ { key => 'SIZE', label => 'Size', type => 'select', required => $true,
			options => [ { label => 'S', value => 's' }, { label => 'L', value => 'l' } ],
			default => 's', description => 'the size', pattern => undef, secret => $false },
			{ key => 'KEY', label => 'Key', type => 'input', options => [], required => $false,
			default => undef, description => undef, pattern => '[a-z]+', secret => $true } ],
			[ { key => 'LEVEL', label => 'Level', type => 'input', options => [],
			required => $false, default => '1', description => undef, pattern => '[0-9]',
			secret => $false } ] ],
		extraEnv => [ 'deployers', 'nobody' ], badge => [ $true, $false ],
		submodules => [ $true, undef ], submoduleRepositories => [ ['team/theme'], [] ],
		lfs => [ $false, $true ],
	},
	Trigger => {
		branch => [ 'release/*', undef ], tag => [ undef, 'v*' ], pipeline => [ 'build', 'ship' ],
		environment => [ 'production', 'test' ], envVars => [ { SIZE => 'l' }, { LEVEL => '2' } ],
		paths => [ [ 'src/**' ], [] ], supersede => [ $false, $true ],
	},
	Pipeline => {
		name => [ 'build', 'build' ], description => [ 'builds', undef ],
		timeoutSeconds => [ 60, undef ], checkout => [ 'keep', 'none' ],
		steps => [ [ { @script, script => 'make', directory => 'web/app', timeoutSeconds => 5,
				runWhen => 'always', mayFail => $true },
			{ @script, script => 'make check' } ], [ { @script, script => 'make all' } ] ],
	},
	Environment => {
		name => [ 'production', 'production' ], url => [ 'https://example.org/', undef ],
		position => [ 3, 4 ], branches => [ ['main'], [] ], tags => [ [ 'v*', 'w*' ], [] ],
		variables => [ [ { key => 'HOST', value => 'a', secret => $false } ],
			[ { key => 'HOST', value => 'b', secret => $false } ] ],
		approval => [ 'required', 'none' ], approvers => [ [ 't-maintainer', 't-admin' ], [] ],
		runner => [ 'web', undef ],
	},
	Schedule => {
		name => [ 'nightly', 'nightly' ], pipeline => [ 'ship', 'build' ],
		environment => [ 'test', 'production' ],
		cron => [ '5 4 * * *', '@daily' ], timezone => [ 'Europe/Berlin', 'UTC' ],
		branch => [ 'main', undef ], envVars => [ { SIZE => 's' }, { LEVEL => '3' } ],
		active => [ $false, $true ],
	},
	Notifier => {
		kind => [ 'webhook', 'webhook' ], target => [ ('https://example.org/hook') x 2 ],
		environment => [ 'production', 'production' ],
		events => [ [ 'failed', 'recovered' ], ['started'] ], active => [ $false, $true ],
	},
);
# Members with ids, and those that other parts of a document contain.
my %named = (projectId => undef, pipelineId => 'pipeline', environmentId => 'environment');
for my $type (sort keys %values) {
	my $write = $schemas->{"${type}Input"} || $schemas->{"${type}Create"} || $schemas->{$type};
	my @members = grep { !$write->{properties}{$_}{readOnly} && "$type $_" ne 'Project triggers' }
	    keys %{ $write->{properties} };
	is_deeply([ sort map { exists $named{$_} ? $named{$_} // () : $_ } @members ],
	    [ sort keys %{ $values{$type} } ],
	    "the test has values of all members that a client can write of the schema $type");
}

sub values_of {
	my ($type, $i) = @_;
	return { map { $_ => $values{$type}{$_}[$i] } keys %{ $values{$type} } };
}
# A document with the first or the second values.
sub document {
	my ($i) = @_;
	my %other = (description => undef, timeoutSeconds => undef);
	return copy({ %{ values_of(Project => $i) }, triggers => [ values_of(Trigger => $i) ],
		pipelines => [ values_of(Pipeline => $i),
			{ %other, name => 'ship', checkout => 'fresh',
			steps => [ { @script, script => 'true' } ] } ],
		environments => [ { url => undef, position => 1, branches => [], tags => [], variables => [],
			approval => 'none', approvers => [], runner => undef, name => 'test' },
			values_of(Environment => $i) ],
		schedules => [ values_of(Schedule => $i) ], notifiers => [ values_of(Notifier => $i) ] });
}
my ($one, $other) = map { document($_) } 0, 1;

# --- round trip
my $got = import($one, dryRun => $true);
is("$got->{status} " . join(' ', map { $_->{action} } @{ $got->{json}{items} }), '200' . ' created' x 7,
    'a dry run of a new project lists what it would create') or diag($got->{body});
is($api->get('/api/projects')->{json}{pagination}{total}, 0, 'a dry run of a new project creates nothing');
$got = import($one);
is("$got->{status} " . join(' ', map { $_->{action} } @{ $got->{json}{items} }), '200' . ' created' x 7,
    'an import creates the project and all that belongs to it') or diag($got->{body});
my $project = $got->{json}{projectId};
is_deeply(export($project), $one, 'an export of the imported project is the document');
my $entries = $db->sql('SELECT MAX(id) FROM audit');
$got = import($one);
sub affected {
	my ($result) = @_;
	return [ grep { $_->{action} ne 'unchanged' } @{ $result->{json}{items} } ];
}
is_deeply(affected($got), [], 'a second import changes nothing') or diag($got->{body});
is($db->sql('SELECT MAX(id) FROM audit'), $entries,
    'an import that changes nothing adds no entry to the audit log');
sub text { my ($value) = @_; return $json->encode([$value]) }
# What parts() has of a part that gets the other values.
sub changed {
	my ($type, $name, @more) = @_;
	my $of = $values{ ucfirst $type };
	my %id = reverse map { $_ => $named{$_} } grep { $named{$_} } keys %named;
	return join ' ', "$type $name: changed", sort @more, map { $id{$_} || $_ }
	    grep { text($of->{$_}[0]) ne text($of->{$_}[1]) } keys %$of;
}
my @changed = (changed('project', 'Site', 'triggers'), changed('pipeline', 'build'),
	'pipeline ship: unchanged', 'environment test: unchanged', changed('environment', 'production'),
	changed('schedule', 'nightly'), changed('notifier', 'https://example.org/hook'));
$got = import($other, dryRun => $true);
is_deeply(parts($got), \@changed, 'a dry run lists each member that differs') or diag($got->{body});
is_deeply(export($project), $one, 'a dry run changes nothing');
$got = import($other);
is_deeply(parts($got), \@changed, 'an import lists the same');
my $log = $maintainer->get("/api/audit?projectId=$project")->{json}{data};
is_deeply([ sort map { "$_->{action} $_->{objectType}" } grep { $_->{id} > $entries } @$log ],
    [ sort map { "importProject $_" } qw(project pipeline step step environment schedule notifier) ],
    'the audit log has an entry of each change');
is_deeply(export($project), $other, 'an import makes the project match the document');
is($got->{json}{projectId}, $project, 'an import changes the project of that name');

# --- secrets
sub secret { my ($key, $value) = @_; return { key => $key, value => $value, secret => $true } }
my $closed = copy($one);
$closed->{name} = 'Closed';
$closed->{projectDir} = 'closed';
$closed->{envPresets}[1]{default} = 'preset';
$closed->{triggers}[0]{envVars}{KEY} = 'trigger';
$closed->{environments}[1]{variables} = [ secret(KEY => 'variable') ];
$got = import($closed);
is_deeply([ $got->{status}, $got->{json}{missing} ], [ 200, ['/document/notifiers/0'] ],
    'with all secrets in the document, only the secret of a new webhook is missing') or diag($got->{body});
my $id = $got->{json}{projectId};
my $bare = export($id);
is_deeply([ $bare->{envPresets}[1]{default}, $bare->{triggers}[0]{envVars}{KEY},
    $bare->{environments}[1]{variables} ], [ undef, undef, [ secret(KEY => undef) ] ],
    'an export has null in place of secrets');
sub sealed {
	return $db->sql("SELECT CONCAT(p.secret_defaults, p.trigger_secrets, e.secret_values) FROM project p"
	    . " JOIN environment e ON e.project_id = p.id AND e.name = 'production' WHERE p.id = $id");
}
my $sealed = sealed();
$bare->{description} = 'changed';
$bare->{environments}[1]{url} = 'https://example.org/changed';
$got = import($bare);
is_deeply([ $got->{status}, $got->{json}{missing}, export($id) ], [ 200, [], $bare ],
    'an import of that changes other members');
is(sealed(), $sealed, 'an import without secrets keeps the stored ones');
my $again = copy($bare);
@$again{qw(name projectDir)} = ('Copy', 'copy');
$got = import($again);
is_deeply([ $got->{status}, $got->{json}{missing} ], [ 200, [ '/document/environments/1/variables/0/value',
    '/document/triggers/0/envVars/KEY', '/document/envPresets/1/default', '/document/notifiers/0' ] ],
    'an import into a new project lists the secrets that are missing') or diag($got->{body});
my $copy = $got->{json}{projectId};
is_deeply(affected(import($again)), [], 'a second import into the new project changes nothing');
is_deeply(export($copy)->{environments}[1]{variables}, [], 'the missing variable does not exist');

# --- parts are found by name, and the others stay
$got = import({ name => 'copy', repository => $again->{repository}, pipelines => [ { name => 'SHIP' } ] });
is_deeply(parts($got),
    [ 'project copy: changed badge defaultBranch description envPresets lfs name submoduleRepositories '
    . 'submodules triggers',
    'pipeline SHIP: changed name steps' ], 'names are compared regardless of case') or diag($got->{body});
is($got->{json}{projectId}, $copy, 'the project is the same');
my $rest = export($copy);
is_deeply([ map { scalar @{ $rest->{$_} } } qw(pipelines environments schedules notifiers) ], [ 2, 2, 1, 1 ],
    'parts that the document does not name stay');

# --- large projects
my $large = { name => 'Large', repository => $one->{repository}, projectDir => 'large',
	pipelines => [ { name => 'build',
	steps => [ map { { name => "s$_", script => 'x' x 60000 } } 1 .. 8 ] } ],
	environments => [ map { { name => "e$_", variables => [ map {
		{ key => "V$_", value => 'v' x 60000 } } 1, 2 ] } } 1 .. 26 ] };
$got = import($large);
is($got->{status}, 200, 'a large document is imported') or diag($got->{body});
my $huge = $got->{json}{projectId};
my $read = $maintainer->get("/api/projects/$huge/export");
is($read->{status}, 200, 'a large document is exported');
cmp_ok(length $read->{body}, '>', 3 << 20, 'an export may be larger than other bodies');
is($maintainer->get("/api/projects/$huge/export", { 'If-None-Match' => $read->{headers}{etag} })->{status},
    304, 'an export has an entity tag');
is_deeply(affected(import($read->{json})), [], 'an import of the export changes nothing');
@{ $read->{json} }{qw(name projectDir)} = ('Largest', 'largest');
$got = import($read->{json});
is_deeply(export($got->{json}{projectId}), $read->{json}, 'a copy of the project has the same document');
$read->{json}{environments}[$_]{variables}[0]{value} = 'w' for 0 .. 25;
is(scalar @{ affected(import($read->{json})) }, 26, 'an import lists changes of many parts');
my $padded = { document => $one, dryRun => $true, ' ' => ' ' x (8 << 20) };
is(outcome($maintainer->post('/api/projects/import', $padded)), '413',
    'a body of more than 8 MiB is rejected');
$padded->{' '} = ' ' x (2 << 20);
is($api->as('none')->post('/api/projects/import', $padded)->{status}, 413,
    'without credentials, the limit is that of other bodies');
sub too_large {
	my ($name) = @_;
	my $too = $maintainer->get("/api/projects/$huge/export");
	is(outcome($too), '409', "a project with $name cannot be exported");
	like($too->{json}{detail}, qr/too large .* at most 4 MiB, 40000 values and 1000 items/,
	    "the error for a project with $name says what an export has");
}
my $steps = "FROM step WHERE pipeline_id = (SELECT id FROM pipeline WHERE project_id = $huge)";
$db->sql("INSERT INTO step (pipeline_id, name, script, position) SELECT pipeline_id, name, script,"
    . " position + 8 * seq $steps" =~ s/FROM step/FROM step JOIN seq_1_to_3/r);
too_large('more than 4 MiB');
$db->sql("DELETE $steps");
$db->sql("UPDATE environment SET variables = (SELECT JSON_ARRAYAGG(JSON_OBJECT('key', CONCAT('V', seq),"
    . " 'value', '', 'secret', FALSE)) FROM seq_1_to_400) WHERE project_id = $huge");
too_large('more than 40000 values');
$db->sql("DELETE FROM environment WHERE project_id = $huge; INSERT INTO pipeline (project_id, name)"
    . " SELECT $huge, CONCAT('p', seq) FROM seq_1_to_1000");
too_large('more than 1000 pipelines');
for my $case ([ variables => { environments => [ { name => 'e',
	variables => [ map { { key => "V$_", value => 'v' x 65000 } } 1 .. 120 ] } ] } ],
    [ presets => { envPresets => [ map {
	{ key => "P$_", label => 'p', type => 'input', default => 'v' x 65000 } } 1 .. 100 ] } ],
    [ scripts => { pipelines => [ { name => 'p',
	steps => [ map { { name => "s$_", script => 'x' x 65000 } } 1 .. 120 ] } ] } ]) {
	my ($what, $part) = @$case;
	like(import({ %$one{qw(name repository)}, %$part })->{status}, qr/^4\d\d$/,
	    "a document with too many $what is rejected");
}
unlike($api->log, qr/worker \d+: (?:killed|exit)/, 'no worker ended');

# --- notifiers that differ only in their events, as a project can have them
my %alike = (name => 'Alike', repository => 'https://git.example.org/o/a', notifiers => [ map {
	{ %{ copy($one->{notifiers}[0]) }, environment => undef, target => $_->[0], events => [ $_->[1] ] }
} ['https://git.example.org/a', 'failed'], ['https://git.example.org/b', 'failed'],
    ['https://git.example.org/a', 'started'] ]);
$got = import(\%alike);
is($got->{status}, 200, 'a document with notifiers that differ only in their events is imported')
    or diag($got->{body});
my $alike = export($got->{json}{projectId});
is_deeply([ map { "$_->{target} @{ $_->{events} }" } @{ $alike->{notifiers} } ],
    [ map { "$_->{target} @{ $_->{events} }" } @{ $alike{notifiers} } ], 'each is created');
is_deeply(affected(import($alike)), [], 'a second import of them changes nothing');

# --- approvers who were deleted: without them, any maintainer could approve
my @ann = map { $api->make('/api/user', { username => $_, role => 'deployer' })->{id} } qw(ann bea);
my %guarded = (name => 'Guarded', repository => 'https://git.example.org/o/g', environments => [
	{ %{ copy($one->{environments}[0]) }, approval => 'required', approvers => ['ann'] } ]);
my $guarded = import(\%guarded)->{json}{projectId};
is($api->delete("/api/user/$ann[0]")->{status}, 204, 'the only approver is deleted');
my $left = export($guarded);
is_deeply($left->{environments}[0]{approvers}, ['ann'], 'an export names a deleted approver');
is_deeply(affected(import($left)), [], 'an import of it changes nothing');
$api->make('/api/user', { username => 'ann', role => 'deployer' });
is_deeply(affected(import($left)), [], 'a second import changes nothing if another user has the name now');
$left->{environments}[0]{approvers} = [ 'ann', 'bea' ];
is_deeply([ grep { !/: unchanged/ } @{ parts(import($left)) } ], ['environment test: changed approvers'],
    'an import adds an approver');
my ($there) = @{ $api->get("/api/environments?projectId=$guarded")->{json}{data} };
is_deeply($there->{approvers}, \@ann, 'the deleted one stays');
$api->put("/api/environments/$there->{id}", { approvers => [ $ann[0],
	$db->sql("SELECT id FROM user WHERE live_username = 'ann'") + 0 ] });
is_deeply(affected(import(export($guarded))), [], 'two approvers can have the same name');
$api->delete('/api/user/' . $db->sql("SELECT id FROM user WHERE live_username = 'ann'"));
is(outcome(import({ %$left, name => 'Unguarded', projectDir => 'unguarded' })),
    '422 /document/environments/0/approvers/0', 'another project cannot have a deleted approver');

# --- rejections
my $before = export($project);
sub with { my ($change) = @_; my $doc = copy($other); $change->($doc); return $doc }
for my $case (
	[ 'an unknown member', '/document/owner', sub { $_[0]{owner} = 'x' } ],
	[ 'an unknown member of a part', '/document/pipelines/0/id', sub { $_[0]{pipelines}[0]{id} = 1 } ],
	[ 'no name', '/document/name', sub { delete $_[0]{name} } ],
	[ 'a blank name', '/document/name', sub { @{ $_[0] }{qw(name projectDir)} = (' ', 'blank') } ],
	[ 'another directory', '/document/projectDir', sub { $_[0]{projectDir} = 'elsewhere' } ],
	[ 'an invalid preset', '/document/envPresets/0/key', sub { $_[0]{envPresets}[0]{key} = '1' } ],
	[ 'a password in the address', '/document/repository',
		sub { $_[0]{repository} = 'https://user:secret@git.example.org/o/b.git' } ],
	[ 'an unknown pipeline in a trigger', '/document/triggers/0/pipeline',
		sub { $_[0]{triggers}[0]{pipeline} = 'x' } ],
	[ 'an unknown environment in a trigger', '/document/triggers/0/environment',
		sub { $_[0]{triggers}[0]{environment} = 'x' } ],
	[ 'a trigger without a pattern', '/document/triggers/0/branch',
		sub { $_[0]{triggers}[0]{tag} = undef } ],
	[ 'an unknown pipeline in a schedule', '/document/schedules/0/pipeline',
		sub { $_[0]{schedules}[0]{pipeline} = 'x' } ],
	[ 'no environment where there are two', '/document/schedules/0/environment',
		sub { $_[0]{schedules}[0]{environment} = undef } ],
	[ 'an invalid cron', '/document/schedules/0/cron', sub { $_[0]{schedules}[0]{cron} = '61 * * * *' } ],
	[ 'an unknown approver', '/document/environments/1/approvers/0',
		sub { $_[0]{environments}[1]{approvers} = ['x'] } ],
	[ 'an approver who may not deploy', '/document/environments/1/approvers/0',
		sub { $_[0]{environments}[1]{approvers} = ['t-viewer'] } ],
	[ 'an invalid pattern', '/document/environments/1/branches/0',
		sub { $_[0]{environments}[1]{branches} = ['a b'] } ],
	[ 'an invalid variable', '/document/environments/1/variables/0/key',
		sub { $_[0]{environments}[1]{variables}[0]{key} = 'PATH' } ],
	[ 'an empty script', '/document/pipelines/0/steps/0/script',
		sub { $_[0]{pipelines}[0]{steps}[0]{script} = '' } ],
	[ 'an unknown condition', '/document/pipelines/1/steps/0/runWhen',
		sub { $_[0]{pipelines}[1]{steps}[0]{runWhen} = 'never' } ],
	[ 'a directory outside', '/document/pipelines/1/steps/0/directory',
		sub { $_[0]{pipelines}[1]{steps}[0]{directory} = '../a' } ],
	[ 'no events', '/document/notifiers/0/events', sub { $_[0]{notifiers}[0]{events} = [] } ],
	[ 'an unknown kind', '/document/notifiers/0/kind', sub { $_[0]{notifiers}[0]{kind} = 'fax' } ],
	[ 'two pipelines of one name', '/document/pipelines/1/name',
		sub { $_[0]{pipelines}[1]{name} = $_[0]{pipelines}[0]{name} } ],
	[ 'a new pipeline twice, in another case', '/document/pipelines/3/name',
		sub { my ($doc) = @_; push @{ $doc->{pipelines} },
		    map { { %{ copy($doc->{pipelines}[1]) }, name => $_ } } 'x', 'X' } ],
	[ 'two environments of one name', '/document/environments/2/name',
		sub { push @{ $_[0]{environments} }, copy($_[0]{environments}[1]) } ],
	[ 'two schedules of one name', '/document/schedules/1/name',
		sub { push @{ $_[0]{schedules} }, copy($_[0]{schedules}[0]) } ],
	[ 'two faults', '/document/pipelines/0/timeoutSeconds /document/pipelines/1/timeoutSeconds',
		sub { $_->{timeoutSeconds} = 0 for @{ $_[0]{pipelines} } } ],
) {
	my ($name, $pointers, $change) = @$case;
	my $doc = with(sub { $_[0]{description} = 'rejected'; $change->(@_) });
	is(outcome(import($doc)), "422 $pointers", "a document with $name is rejected");
}
is_deeply(export($project), $before, 'a rejected import changes nothing');
for my $role ('viewer', 'deployer') {
	is($api->as($role)->get("/api/projects/$project/export")->{status}, 403, "a $role cannot export");
	is($api->as($role)->post('/api/projects/import', { document => $one })->{status}, 403,
	    "a $role cannot import");
}
is($maintainer->get('/api/projects/999/export')->{status}, 404, 'an unknown project returns 404');

$_->stop for $api, $db;
done_testing;
