#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Projects over REST, through nginx: creating, validating, changing, listing,
# deleting.

use strict;
use warnings;
use utf8;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::API qw(outcome pointers);
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $n = 0;

# The members that a project requires, and those of the test.
sub body {
	my (%more) = @_;
	$n++;
	return { name => "Project $n", repository => "https://git.example.org/team/p$n", %more };
}

sub choice {
	my ($value) = @_;
	return { label => 'L', value => $value };
}

# --- a response lists all errors, of form and of meaning
my $all = $api->post('/api/projects', { name => 'x' x 101, foo => 1, defaultBranch => '..',
	repository => 'https://evil.example/a/b',
	envPresets => [ { key => 'PATH', label => 'P', type => 'input' } ] });
is(outcome($all), '422 /defaultBranch /envPresets/0/key /foo /name /repository',
    'a response lists every error of a body');
$all = $api->post('/api/projects', { foo => 1 });
is(outcome($all), '422 /foo /name /repository', 'a response lists each missing member once');

# --- creating
my $got = $api->post('/api/projects', body());
is($got->{status}, 201, 'POST /api/projects creates a project') or diag $got->{body} // '';
my $p = $got->{json};
is($got->{headers}{location}, "/api/projects/$p->{id}", 'Location is the path of the new project');
like($got->{headers}{etag}, qr/^"1-[0-9a-f]{24}"$/, 'a project has a strong ETag');
is($p->{projectDir}, 'project-1', 'the default directory of a project is its name as a slug');
is_deeply([@$p{qw(description defaultBranch)}], [undef, undef], 'omitted members are null');
is_deeply([$p->{envPresets}, $p->{triggers}], [[], []], 'omitted lists are empty');
is($p->{valid}, 1, 'valid is the number 1');
is_deeply([@$p{qw(submodules lfs)}], [undef, JSON::PP::true],
    'submodules are fetched as the runner is set up, files of Git LFS are to be fetched');
is($p->{extraEnv}, 'maintainers', 'extraEnv is "maintainers" by default');
is($p->{workspaceStatus}{status}, 'not_created', 'the workspace of a new project does not exist');
like($p->{createdAt}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'times are RFC 3339');
ok(!exists $p->{version}, 'a project does not show its row version');
is($api->get("/api/projects/$p->{id}")->{body}, $got->{body}, 'GET returns what POST returned');

my $full = body(description => "Zwölf Boxkämpfer \x{1f680}", defaultBranch => 'main',
	projectDir => 'sites/www', extraEnv => 'deployers',
	envPresets => [
		{ key => 'STAGE', label => 'Stage', type => 'select', default => 'test',
			options => [{ label => 'Test', value => 'test' },
				{ label => 'Live', value => 'live' }] },
		{ key => 'PARTS', label => 'Parts', type => 'multiselect', required => JSON::PP::true,
			options => [{ label => 'A', value => 'a' }, { label => 'B', value => 'b' }] },
		{ key => 'NOTE', label => 'Note', type => 'input', pattern => '[a-z]+' },
	]);
$got = $api->post('/api/projects', $full);
is($got->{status}, 201, 'a project with every member is created') or diag $got->{body};
is($got->{json}{description}, $full->{description}, 'text is returned unchanged');
is($got->{json}{envPresets}[0]{default}, 'test', 'a preset is returned with its default');
is($got->{json}{projectDir}, 'sites/www', 'a project has the requested directory');

# --- a member that is true, false or null
my $of_all = "/api/projects/$got->{json}{id}";
for my $case (map { ($_, undef) } JSON::PP::true, JSON::PP::false) {
	my $word = defined $case ? $case ? 'true' : 'false' : 'null';
	$got = $api->put($of_all, { submodules => $case });
	is(outcome($got), '200', "submodules can be $word") or diag $got->{body};
	like($got->{body}, qr/"submodules":$word[,}]/, "submodules is $word");
}
is(outcome($api->put($of_all, { submodules => $_ })), '422 /submodules',
    'submodules is neither a number nor a text') for 1, 'yes';

# --- rejected
for my $case (
	[{}, '/name /repository', 'an empty body'],
	[body(name => ''), '/name', 'an empty name'],
	[body(name => 'x' x 101), '/name', 'a long name'],
	[body(name => "a\nb"), '/name', 'a name of two lines'],
	[body(name => 7), '/name', 'a number for a name'],
	[body(description => 'x' x 501), '/description', 'a long description'],
	[body(extraEnv => 'admins'), '/extraEnv', 'an invalid extraEnv'],
	[body(strictEnv => JSON::PP::true), '/strictEnv', 'the former member strictEnv'],
	[body(env => 'production'), '/env', 'the former member env'],
	[body(valid => 0), '/valid', 'valid, which the service sets'],
	[body(id => 7), '/id', 'an id'],
	[body(projectDir => '../x'), '/projectDir', 'a directory outside the workspaces'],
	[body(projectDir => '/etc'), '/projectDir', 'an absolute directory'],
	[body(projectDir => 'a/./b'), '/projectDir', 'a directory with the part "."'],
	[body(projectDir => '.git'), '/projectDir', 'a hidden directory'],
	[body(projectDir => '.cache'), '/projectDir', 'the directory of the caches'],
	[body(projectDir => 'a/.home'), '/projectDir', 'a hidden directory within another'],
	[body(projectDir => 'a//b'), '/projectDir', 'a directory with an empty part'],
	[body(projectDir => '-rf'), '/projectDir', 'a directory like an option'],
	[body(projectDir => 'a b'), '/projectDir', 'a directory with a blank'],
	[body(defaultBranch => '-x'), '/defaultBranch', 'a branch like an option'],
	[body(defaultBranch => 'a..b'), '/defaultBranch', 'a range for a branch'],
	[body(envPresets => {}), '/envPresets', 'an object for presets'],
	[body(envPresets => [{ key => '1X', label => 'x', type => 'input' }]), '/envPresets/0/key',
		'an invalid key'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'radio' }]), '/envPresets/0/type',
		'an unknown type of preset'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select' }]), '/envPresets/0/options',
		'a selection without options'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'input', pattern => '(' }]),
		'/envPresets/0/pattern', 'a pattern that does not compile'],
	[body(envPresets => [map { { key => 'X', label => 'x', type => 'input' } } 1, 2]),
		'/envPresets/1/key', 'a duplicate key'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'input', options => [choice('a')] }]),
		'/envPresets/0/options', 'an input with options'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select', pattern => 'a',
		options => [choice('a')] }]),
		'/envPresets/0/pattern', 'a selection with a pattern'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'multiselect',
		options => [choice('a,b')] }]),
		'/envPresets/0/options', 'an option of a multiple selection with a comma'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select',
		options => [map { choice($_) } qw(a b a)] }]),
		'/envPresets/0/options', 'a duplicate option'],
	[body(envPresets => [{ key => 'X', label => 'x', type => 'select',
		options => [choice('a'), { label => 'b' }] }]),
		'/envPresets/0/options/1/value', 'an option without a value'],
	[body(triggers => [{ branch => 'main', pipelineId => 1 }]), '/triggers/0/pipelineId',
		'a trigger of an unknown pipeline'],
	[body(extraEnv => 'yes', triggers => [map { { branch => 'main', pipelineId => 999999 } } 1 .. 20]),
		join(' ', '/extraEnv', map { "/triggers/$_/pipelineId" } 0 .. 19),
		'a body with many unknown pipelines and another error'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/projects', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is rejected") or diag $got->{body};
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
	is(outcome($got), '422 /repository',
	    'the repository ' . Cpanel::JSON::XS->new->allow_nonref->encode($url) . ' is rejected');
}
for my $url (
	'https://git.example.org/a/b.git', 'https://GIT.example.org/a/b', 'https://git.example.org/g/sub/b',
	'ssh://git@git.example.org:2222/a/b.git', 'ssh://git.example.org/a/b', 'git@git.example.org:a/b.git',
	'https://git.example.org:8443/a/b', 'https://git.example.org/a-b_c/d.e+f',
	'https://git.example.org/a',
) {
	is($api->post('/api/projects', body(repository => $url))->{status}, 201,
	    "the repository $url is accepted");
}

# --- names and directories in use
$got = $api->post('/api/projects', body(name => 'PROJECT 1', projectDir => 'other'));
is(outcome($got), '409 /name', 'a name in use in another case is a conflict');
$got = $api->post('/api/projects', body(projectDir => 'project-1'));
is(outcome($got), '409 /projectDir', 'a directory in use is a conflict');
like($got->{json}{detail}, qr/Project 1/, 'the conflict names the project that uses the directory');
$got = $api->post('/api/projects', body(projectDir => 'sites/www/blog'));
is(outcome($got), '409 /projectDir', 'a directory inside one in use is a conflict');
$got = $api->post('/api/projects', body(projectDir => 'sites'));
is(outcome($got), '409 /projectDir', 'a directory around one in use is a conflict');
is($api->post('/api/projects', body(projectDir => 'sites/www2'))->{status}, 201,
    'a directory beside one in use is free');
is($api->post('/api/projects', body(projectDir => 'sit'))->{status}, 201,
    'a directory whose name begins one in use is free');

# --- default directories
for my $case (['Shop Front', 'shop-front'], ['Shop: front', 'shop-front-2'], ['Shop, front', 'shop-front-3'],
	['店', 'project'], ['магазин', 'project-2'], ['---', 'project-3'], ['Project 3', 'project-3-2']) {
	my ($name, $want) = @$case;
	$got = $api->post('/api/projects', body(name => $name));
	is("$got->{status} " . ($got->{json}{projectDir} // pointers($got)), "201 $want",
	    "the default directory is $want");
}
my ($shop) = grep { $_->{name} eq 'магазин' } @{ $api->get('/api/projects?limit=100')->{json}{data} };
$api->delete("/api/projects/$shop->{id}");
is($api->post('/api/projects', body(name => '商店'))->{json}{projectDir}, 'project-2',
    'the directory of a deleted project is free');
$api->post('/api/projects', body(name => 'Inner', projectDir => 'outer/inner'));
$api->post('/api/projects', body(name => 'Inner 2', projectDir => 'outer-2.x'));
is($api->post('/api/projects', body(name => 'Outer'))->{json}{projectDir}, 'outer-2',
    'a default directory is never around one in use');
my @runs = map {
	my $name = 'Same' . '?' x $_;
	background(sub { delete $api->{http};
		return $api->post('/api/projects', body(name => $name))->{status} });
} 1 .. 6;
is(join(' ', map { $_->result } @runs), '201 201 201 201 201 201',
    'six simultaneous projects with the same slug are created');
is($db->sql("SELECT GROUP_CONCAT(project_dir ORDER BY 1) FROM project WHERE project_dir LIKE 'same%'"),
    'same,same-2,same-3,same-4,same-5,same-6',
    'simultaneous projects with the same slug have different directories');

# --- changing
my $path = "/api/projects/$p->{id}";
$got = $api->put($path, { description => 'new' });
is($got->{status}, 200, 'PUT changes a member') or diag $got->{body};
is_deeply([@{ $got->{json} }{qw(name description)}], [$p->{name}, 'new'], 'PUT keeps the other members');
like($got->{headers}{etag}, qr/^"2-/, 'a change increments the version in the ETag');
is($api->put($path, { description => undef })->{json}{description}, undef, 'null clears an optional member');
$got = $api->put($path, { name => undef });
is(outcome($got), '422 /name', 'null for a required member is rejected');
$got = $api->put($path, { projectDir => 'elsewhere' });
is(outcome($got), '422 /projectDir', 'the directory cannot be changed');
is($api->put($path, { projectDir => 'project-1' })->{status}, 200, 'a change may repeat the directory');
$got = $api->put($path, { name => 'Project 2' });
is(outcome($got), '409 /name', 'a change to a name in use is a conflict');
is($api->put($path, { name => 'Project 1' })->{status}, 200, 'a change may repeat the name');
is($api->put('/api/projects/999999', { name => 'x' })->{status}, 404,
    'a change of an unknown project returns 404');
is($api->put($path, {})->{status}, 200, 'an empty change succeeds');
my $pipe = $api->post('/api/pipelines', { projectId => $p->{id}, name => 'deploy',
	steps => [{ name => 's', script => 'true' }] })->{json};
is($api->put($path, { triggers => [{ branch => 'main', pipelineId => $pipe->{id} }] })->{status}, 200,
    'a project gets a trigger of its own pipeline');

# --- a change does not validate what it leaves unchanged
my $other = $api->post('/api/pipelines', { projectId => $p->{id}, name => 'other' })->{json};
my @triggers = map { { branch => $_->{name}, pipelineId => $_->{id} } } $pipe, $other;
is($api->put($path, { triggers => \@triggers })->{status}, 200, 'a project gets two triggers');
is($api->delete("/api/pipelines/$other->{id}")->{status}, 204, 'the pipeline of a trigger is deleted');
is($api->put($path, { description => 'still mine' })->{status}, 200,
    'a project with a trigger of a deleted pipeline can be changed');
$got = $api->put($path, { name => 'Project 1', triggers => [$triggers[1]] });
is(outcome($got), '422 /triggers/0/pipelineId', 'a changed trigger of a deleted pipeline is rejected');
is($api->put($path, { triggers => [$triggers[0]] })->{status}, 200,
    'a trigger of a deleted pipeline can be removed');
my $gone = 'https://gone.example.org/a/b';
$db->sql("UPDATE project SET repository = '$gone', default_branch = 'a..b' WHERE id = $p->{id}");
is($api->put($path, { description => 'x' })->{status}, 200,
    'a project whose repository is no longer allowed can be changed');
is($api->put($path, { repository => $gone })->{status}, 200,
    'a change may repeat a repository that is no longer allowed');
$got = $api->put($path, { repository => 'https://gone.example.org/a/c', defaultBranch => 'b..c' });
is("$got->{status} " . pointers($got), '422 /repository /defaultBranch',
    'a new repository that is not allowed is rejected');
is($api->put($path, { repository => $p->{repository}, defaultBranch => undef })->{status}, 200,
    'the first repository can be restored');

# --- lists
$got = $api->get('/api/projects?limit=2');
is($got->{status}, 200, 'GET /api/projects returns a list');
is_deeply([sort keys %{ $got->{json} }], [qw(data pagination)], 'a list has data and pagination');
is(scalar @{ $got->{json}{data} }, 2, 'a list has as many items as requested');
ok(!exists $got->{json}{data}[0]{workspaceStatus}, 'a list omits workspaceStatus');
$api->post('/api/projects', body(name => '100%_sure!'));
for my $case (['%25', 1], ['_', 1], ['!', 1], ['sure', 1], ['SURE', 1], ['%25%25', 0], ['project%201', 0]) {
	my ($name, $exact) = @$case;
	$got = $api->get("/api/projects?name=$name");
	if ($exact) { is($got->{json}{pagination}{total}, 1, "name=$name finds one") }
	else { isnt($got->{json}{pagination}{total}, undef, "name=$name returns a list") }
}
is($api->get('/api/projects?name=%25%25')->{json}{pagination}{total}, 0, 'wildcards in a filter are literal');
my $names = $api->get('/projects');
is(ref $names->{json}, 'ARRAY', 'GET /projects returns an array');
like($names->{body}, qr/\{"id":"\d+","name":"/, 'GET /projects returns ids as strings');
is($api->as('none')->get('/projects')->{status}, 401, 'GET /projects requires a token');

# --- deleting
my $doomed = $api->post('/api/projects', body(name => 'Doomed', projectDir => 'doomed'))->{json};
my $with = $api->post('/api/pipelines', { projectId => $doomed->{id}, name => 'x',
	steps => [{ name => 's', script => 'true' }] })->{json};
$db->sql('INSERT INTO deployment (project_id, pipeline_id, `trigger`)'
    . " VALUES ($doomed->{id}, $with->{id}, 'manual')");
$got = $api->delete("/api/projects/$doomed->{id}", { 'If-Match' => '"7-0000000000000000"' });
is($got->{status}, 412, 'a deletion with an outdated tag returns 412');
$got = $api->delete("/api/projects/$doomed->{id}");
is($got->{status}, 204, 'DELETE returns 204');
is($got->{body}, '', 'DELETE returns no body');
is($api->get("/api/projects/$doomed->{id}")->{status}, 404, 'a deleted project returns 404');
is($api->delete("/api/projects/$doomed->{id}")->{status}, 404, 'a second DELETE returns 404');
is($api->get("/api/pipelines/$with->{id}")->{status}, 404, 'a pipeline of a deleted project returns 404');
is($api->get("/api/steps/$with->{steps}[0]{id}")->{status}, 404, 'a step of a deleted project returns 404');
like($db->sql("SELECT status, reason FROM deployment WHERE project_id = $doomed->{id}"),
    qr/canceled\s+project_deleted/, 'a pending deployment of a deleted project is canceled');
like($db->sql("SELECT valid FROM project WHERE id = $doomed->{id}"), qr/0/,
    'the row of a deleted project is kept');
is($api->post('/api/projects', body(name => 'Doomed', projectDir => 'doomed'))->{status}, 201,
    'name and directory of a deleted project are free');

# --- the workspace
$db->sql('REPLACE INTO workspace (project_id, status, branch, dirty, size_bytes)'
    . " VALUES ($p->{id}, 'ready', 'main', 1, 12)");
my $before = $api->get($path);
is_deeply([@{ $before->{json}{workspaceStatus} }{qw(status branch dirty sizeBytes)}],
    ['ready', 'main', JSON::PP::true, 12], 'a project shows its workspace as the runner reported it');
$db->sql("UPDATE workspace SET dirty = 0");
is($api->get($path, { 'If-None-Match' => $before->{headers}{etag} })->{status}, 200,
    'a read with the old tag returns a changed workspace');
is($api->put($path, { description => 'x' }, { 'If-Match' => $before->{headers}{etag} })->{status}, 200,
    'a changed workspace does not outdate the tag for writes');

done_testing;
