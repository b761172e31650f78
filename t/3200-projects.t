#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Projects over REST, through nginx: what is taken, what is refused.

use strict;
use warnings;
use utf8;
use JSON::PP ();
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $n = 0;

# The least that a project needs, and what the test adds.
sub body {
	my (%more) = @_;
	$n++;
	return { name => "Project $n", repository => "https://git.example.org/team/p$n", %more };
}

sub choice {
	my ($value) = @_;
	return { label => 'L', value => $value };
}

sub pointers {
	my ($got) = @_;
	return join ' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] };
}

# --- all faults at once: what members are, and what they mean
my $all = $api->post('/api/projects', { name => 'x' x 101, foo => 1, defaultBranch => '..',
	repository => 'https://evil.example/a/b', envPresets => [ { key => 'PATH', label => 'P', type => 'input' } ] });
is("$all->{status} " . join(' ', sort map { $_->{pointer} } @{ $all->{json}{errors} || [] }),
    '422 /defaultBranch /envPresets/0/key /foo /name /repository', 'every fault is told at once');
$all = $api->post('/api/projects', { foo => 1 });
is(join(' ', sort map { $_->{pointer} } @{ $all->{json}{errors} || [] }), '/foo /name /repository',
    'and what is missing, once');

# --- made
my $got = $api->post('/api/projects', body());
is($got->{status}, 201, 'a project is made') or diag $got->{body} // '';
my $p = $got->{json};
is($got->{headers}{location}, "/api/projects/$p->{id}", 'Location names it');
like($got->{headers}{etag}, qr/^"1-[0-9a-f]{24}"$/, 'it has a strong ETag');
is($p->{projectDir}, 'project-1', 'its directory is the name as a slug');
is_deeply([@$p{qw(description defaultBranch)}], [undef, undef], 'what was left out is null');
is_deeply([$p->{envPresets}, $p->{triggers}], [[], []], 'lists are empty');
is($p->{valid}, 1, 'valid is the number 1');
is($p->{extraEnv}, 'maintainers', 'extraEnv is maintainers unless it is set');
is($p->{workspaceStatus}{status}, 'not_created', 'its workspace does not exist yet');
like($p->{createdAt}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'times are RFC 3339');
ok(!exists $p->{version}, 'the row version stays inside');
is($api->get("/api/projects/$p->{id}")->{body}, $got->{body}, 'reading it gives the same');

my $full = body(description => "Zwölf Boxkämpfer \x{1f680}", defaultBranch => 'main',
	projectDir => 'sites/www', extraEnv => 'deployers',
	envPresets => [
		{ key => 'STAGE', label => 'Stage', type => 'select', default => 'test',
			options => [{ label => 'Test', value => 'test' }, { label => 'Live', value => 'live' }] },
		{ key => 'PARTS', label => 'Parts', type => 'multiselect', required => JSON::PP::true,
			options => [{ label => 'A', value => 'a' }, { label => 'B', value => 'b' }] },
		{ key => 'NOTE', label => 'Note', type => 'input', pattern => '[a-z]+' },
	]);
$got = $api->post('/api/projects', $full);
is($got->{status}, 201, 'with all there is') or diag $got->{body};
is($got->{json}{description}, $full->{description}, 'text comes back as it was sent');
is($got->{json}{envPresets}[0]{default}, 'test', 'presets keep their default');
is($got->{json}{projectDir}, 'sites/www', 'the directory is the one asked for');

# --- refused
for my $case (
	[{}, '/name /repository', 'nothing'],
	[body(name => ''), '/name', 'an empty name'],
	[body(name => 'x' x 101), '/name', 'a long name'],
	[body(name => "a\nb"), '/name', 'a name of two lines'],
	[body(name => 7), '/name', 'a number for a name'],
	[body(description => 'x' x 501), '/description', 'a long description'],
	[body(extraEnv => 'admins'), '/extraEnv', 'a value that is none of extraEnv'],
	[body(strictEnv => JSON::PP::true), '/strictEnv', 'the former member strictEnv'],
	[body(env => 'production'), '/env', 'the former member env'],
	[body(valid => 0), '/valid', 'valid, which the service sets'],
	[body(id => 7), '/id', 'an id'],
	[body(projectDir => '../x'), '/projectDir', 'a directory above'],
	[body(projectDir => '/etc'), '/projectDir', 'an absolute directory'],
	[body(projectDir => 'a/./b'), '/projectDir', 'a dot'],
	[body(projectDir => '.git'), '/projectDir', 'a hidden directory'],
	[body(projectDir => 'a/.home'), '/projectDir', 'one within another'],
	[body(projectDir => 'a//b'), '/projectDir', 'an empty part'],
	[body(projectDir => '-rf'), '/projectDir', 'a directory like an option'],
	[body(projectDir => 'a b'), '/projectDir', 'a blank'],
	[body(defaultBranch => '-x'), '/defaultBranch', 'a branch like an option'],
	[body(defaultBranch => 'a..b'), '/defaultBranch', 'a range for a branch'],
	[body(envPresets => {}), '/envPresets', 'an object for presets'],
	[body(envPresets => [{ key => '1X', label => 'x', type => 'input' }]), '/envPresets/0/key', 'a bad key'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'radio' }]), '/envPresets/0/type', 'an unknown type'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select' }]), '/envPresets/0/options', 'no options'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'input', pattern => '(' }]),
		'/envPresets/0/pattern', 'a pattern that does not compile'],
	[body(envPresets => [map { { key => 'X', label => 'x', type => 'input' } } 1, 2]),
		'/envPresets/1/key', 'a key twice'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'input', options => [choice('a')] }]),
		'/envPresets/0/options', 'an input with options'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select', pattern => 'a', options => [choice('a')] }]),
		'/envPresets/0/pattern', 'a pattern for a choice'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'multiselect', options => [choice('a,b')] }]),
		'/envPresets/0/options', 'a value with a comma, which joins them'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select', options => [map { choice($_) } qw(a b a)] }]),
		'/envPresets/0/options', 'a value twice'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select', options => [choice('a'), { label => 'b' }] }]),
		'/envPresets/0/options/1/value', 'an option without a value'],
	[body(triggers => [{ branch => 'main', pipelineId => 1 }]), '/triggers/0/pipelineId',
		'a trigger of a pipeline that is not there'],
	[body(extraEnv => 'yes', triggers => [map { { branch => 'main', pipelineId => 999999 } } 1 .. 20]),
		join(' ', '/extraEnv', map { "/triggers/$_/pipelineId" } 0 .. 19), 'many of them, and another fault'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/projects', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is refused")
	    or diag $got->{body};
}
for my $url (
	'git.example.org/a/b', 'https://git.example.org',
	'https://evil.example.com/a/b', 'https://git.example.org.evil.com/a/b',
	'https://git.example.org@evil.example.com/a/b', 'https://user:pw@git.example.org/a/b',
	'https://token@git.example.org/a/b', 'http://git.example.org/a/b', 'http://localhost/a/b',
	'file:///etc/a', '/srv/git/a', '--upload-pack=id', '-x', 'ext::sh -c id',
	'https://git.example.org/a/../b', 'https://git.example.org/a/b?x=1',
	'https://git.example.org/a/b#x', "https://git.example.org/a/b\n", 'https://git.example.org/a b/c',
	'https://git.example.org/a/%2e%2e', 'https://git.example.org//a/b', 'ssh://-oProxyCommand=x/a/b',
	'git@git.example.org:-x/b', '-git@git.example.org:a/b', 'ssh://git:pw@git.example.org/a/b',
	'https://git.example.org:0/a/b', 'https://[::1]/a/b', 'https://127.0.0.1/a/b', 'javascript:alert(1)',
	"https://git.example.org/a/\$(id)", 'https://git.example.org/a/b/..', '',
) {
	$got = $api->post('/api/projects', body(repository => $url));
	is("$got->{status} " . pointers($got), '422 /repository',
	    'refused as a repository: ' . JSON::PP->new->allow_nonref->encode($url));
}
for my $url (
	'https://git.example.org/a/b.git', 'https://GIT.example.org/a/b', 'https://git.example.org/g/sub/b',
	'ssh://git@git.example.org:2222/a/b.git', 'ssh://git.example.org/a/b', 'git@git.example.org:a/b.git',
	'https://git.example.org:8443/a/b', 'https://git.example.org/a-b_c/d.e+f', 'https://git.example.org/a',
) {
	is($api->post('/api/projects', body(repository => $url))->{status}, 201, "taken: $url");
}

# --- unique
$got = $api->post('/api/projects', body(name => 'PROJECT 1', projectDir => 'other'));
is("$got->{status} " . pointers($got), '409 /name', 'a name that differs by case only is taken');
$got = $api->post('/api/projects', body(projectDir => 'project-1'));
is("$got->{status} " . pointers($got), '409 /projectDir', 'a directory is taken');
like($got->{json}{detail}, qr/Project 1/, 'and says by whom');
$got = $api->post('/api/projects', body(projectDir => 'sites/www/blog'));
is("$got->{status} " . pointers($got), '409 /projectDir', 'so is one inside it');
$got = $api->post('/api/projects', body(projectDir => 'sites'));
is("$got->{status} " . pointers($got), '409 /projectDir', 'and one around it');
is($api->post('/api/projects', body(projectDir => 'sites/www2'))->{status}, 201, 'a neighbour is free');
is($api->post('/api/projects', body(projectDir => 'sit'))->{status}, 201, 'so is the start of its name');

# --- a directory where none is asked for
for my $case (['Shop Front', 'shop-front'], ['Shop: front', 'shop-front-2'], ['Shop, front', 'shop-front-3'],
	['店', 'project'], ['магазин', 'project-2'], ['---', 'project-3'], ['Project 3', 'project-3-2']) {
	my ($name, $want) = @$case;
	$got = $api->post('/api/projects', body(name => $name));
	is("$got->{status} " . ($got->{json}{projectDir} // pointers($got)), "201 $want", "a project lies in $want");
}
$api->delete('/api/projects/' . (grep { $_->{name} eq 'магазин' } @{ $api->get('/api/projects?limit=100')->{json}{data} })[0]{id});
is($api->post('/api/projects', body(name => '商店'))->{json}{projectDir}, 'project-2', 'what was given up is taken again');
$api->post('/api/projects', body(name => 'Inner', projectDir => 'outer/inner'));
$api->post('/api/projects', body(name => 'Inner 2', projectDir => 'outer-2.x'));
is($api->post('/api/projects', body(name => 'Outer'))->{json}{projectDir}, 'outer-2', 'not around that of another');
my @taken;
for my $k (1 .. 6) {
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		my $mine = $api->as('admin');
		delete $mine->{parent}{http};
		POSIX::_exit($mine->post('/api/projects', body(name => 'Same' . '?' x $k))->{status} == 201 ? 0 : 1);
	}
	push @taken, $pid;
}
is(join('', map { waitpid $_, 0; $? >> 8 } @taken), '000000', 'six with the same slug at once');
is($db->sql("SELECT GROUP_CONCAT(project_dir ORDER BY 1) FROM project WHERE project_dir LIKE 'same%'"),
    "same,same-2,same-3,same-4,same-5,same-6", 'have six directories');

# --- changed
my $path = "/api/projects/$p->{id}";
$got = $api->put($path, { description => 'new' });
is($got->{status}, 200, 'a part is changed') or diag $got->{body};
is_deeply([@{ $got->{json} }{qw(name description)}], [$p->{name}, 'new'], 'the rest stays');
like($got->{headers}{etag}, qr/^"2-/, 'the ETag counts it');
is($api->put($path, { description => undef })->{json}{description}, undef, 'null clears');
$got = $api->put($path, { name => undef });
is("$got->{status} " . pointers($got), '422 /name', 'null does not clear what is needed');
$got = $api->put($path, { projectDir => 'elsewhere' });
is("$got->{status} " . pointers($got), '422 /projectDir', 'the directory cannot be changed');
is($api->put($path, { projectDir => 'project-1' })->{status}, 200, 'the same one may be sent');
$got = $api->put($path, { name => 'Project 2' });
is("$got->{status} " . pointers($got), '409 /name', 'a taken name is refused');
is($api->put($path, { name => 'Project 1' })->{status}, 200, "one's own is not taken");
is($api->put('/api/projects/999999', { name => 'x' })->{status}, 404, 'one that is not there');
is($api->put($path, {})->{status}, 200, 'an empty change is one');
my $pipe = $api->post('/api/pipelines', { projectId => $p->{id}, name => 'deploy',
	steps => [{ name => 's', script => 'true' }] })->{json};
is($api->put($path, { triggers => [{ branch => 'main', pipelineId => $pipe->{id} }] })->{status}, 200,
    'a trigger of its own pipeline');

# --- what a change leaves as it is, is not judged anew
my $other = $api->post('/api/pipelines', { projectId => $p->{id}, name => 'other' })->{json};
my @triggers = map { { branch => $_->{name}, pipelineId => $_->{id} } } $pipe, $other;
is($api->put($path, { triggers => \@triggers })->{status}, 200, 'two triggers');
is($api->delete("/api/pipelines/$other->{id}")->{status}, 204, 'the pipeline of one is deleted');
is($api->put($path, { description => 'still mine' })->{status}, 200, 'the project can be changed still');
$got = $api->put($path, { name => 'Project 1', triggers => [$triggers[1]] });
is("$got->{status} " . pointers($got), '422 /triggers/0/pipelineId', 'but get no trigger of it anew');
is($api->put($path, { triggers => [$triggers[0]] })->{status}, 200, 'the other may stay alone');
$db->sql("UPDATE project SET repository = 'https://gone.example.org/a/b', default_branch = 'a..b' WHERE id = $p->{id}");
is($api->put($path, { description => 'x' })->{status}, 200, 'an address that was allowed once is no fault of a change');
is($api->put($path, { repository => 'https://gone.example.org/a/b' })->{status}, 200, 'nor if it is sent again');
$got = $api->put($path, { repository => 'https://gone.example.org/a/c', defaultBranch => 'b..c' });
is("$got->{status} " . pointers($got), '422 /repository /defaultBranch', 'new ones are judged');
is($api->put($path, { repository => $p->{repository}, defaultBranch => undef })->{status}, 200, 'back to those before');

# --- listed
$got = $api->get('/api/projects?limit=2');
is($got->{status}, 200, 'projects are listed');
is_deeply([sort keys %{ $got->{json} }], [qw(data pagination)], 'in the envelope');
is(scalar @{ $got->{json}{data} }, 2, 'as many as asked for');
ok(!exists $got->{json}{data}[0]{workspaceStatus}, 'without what only the single read has');
$api->post('/api/projects', body(name => '100%_sure!'));
for my $case (['%25', 1], ['_', 1], ['!', 1], ['sure', 1], ['SURE', 1], ['%25%25', 0], ['project%201', 0]) {
	my ($name, $exact) = @$case;
	$got = $api->get("/api/projects?name=$name");
	if ($exact) { is($got->{json}{pagination}{total}, 1, "name=$name finds one") }
	else { isnt($got->{json}{pagination}{total}, undef, "name=$name answers") }
}
is($api->get('/api/projects?name=%25%25')->{json}{pagination}{total}, 0, 'wildcards are literal');
my $names = $api->get('/projects');
is(ref $names->{json}, 'ARRAY', '/projects is an array');
like($names->{body}, qr/\{"id":"\d+","name":"/, 'of texts');
is($api->as('none')->get('/projects')->{status}, 401, 'not for all');

# --- deleted
my $doomed = $api->post('/api/projects', body(name => 'Doomed', projectDir => 'doomed'))->{json};
my $with = $api->post('/api/pipelines', { projectId => $doomed->{id}, name => 'x',
	steps => [{ name => 's', script => 'true' }] })->{json};
$db->sql("INSERT INTO deployment (project_id, pipeline_id, `trigger`) VALUES ($doomed->{id}, $with->{id}, 'manual')");
$got = $api->delete("/api/projects/$doomed->{id}", { 'If-Match' => '"7-0000000000000000"' });
is($got->{status}, 412, 'not if it has changed');
$got = $api->delete("/api/projects/$doomed->{id}");
is($got->{status}, 204, 'a project is deleted');
is($got->{body}, '', 'without a word');
is($api->get("/api/projects/$doomed->{id}")->{status}, 404, 'it is gone');
is($api->delete("/api/projects/$doomed->{id}")->{status}, 404, 'it cannot be deleted twice');
is($api->get("/api/pipelines/$with->{id}")->{status}, 404, 'its pipeline is gone');
is($api->get("/api/steps/$with->{steps}[0]{id}")->{status}, 404, 'so are its steps');
like($db->sql("SELECT status, reason FROM deployment WHERE project_id = $doomed->{id}"),
    qr/canceled\s+project_deleted/, 'what waited is canceled');
like($db->sql("SELECT valid FROM project WHERE id = $doomed->{id}"), qr/0/, 'the record is kept');
is($api->post('/api/projects', body(name => 'Doomed', projectDir => 'doomed'))->{status}, 201,
    'name and directory are free again');

$db->sql("REPLACE INTO workspace (project_id, status, branch, dirty, size_bytes) VALUES ($p->{id}, 'ready', 'main', 1, 12)");
my $before = $api->get($path);
is_deeply([@{ $before->{json}{workspaceStatus} }{qw(status branch dirty sizeBytes)}],
    ['ready', 'main', JSON::PP::true, 12], 'the workspace is as its runner saw it');
$db->sql("UPDATE workspace SET dirty = 0");
is($api->get($path, { 'If-None-Match' => $before->{headers}{etag} })->{status}, 200,
    'a change there is a new answer');
is($api->put($path, { description => 'x' }, { 'If-Match' => $before->{headers}{etag} })->{status}, 200,
    'but no change of the project');

done_testing;
