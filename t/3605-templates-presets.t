#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A pipeline made from a template brings the template's presets to its project,
# in one transaction; and the list of templates has two addresses.

use strict;
use warnings;
use File::Path qw(make_path);
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $json = JSON::PP->new->utf8->canonical;
my $site = tempdir() . '/templates';
sub template {
	my ($id, @presets) = @_;
	make_path("$site/$id");
	spew("$site/$id/template.json", $json->encode({ name => "Of $id",
		steps => [ { name => 'One', file => '1.sh' } ], envPresets => \@presets }), 0644);
	spew("$site/$id/1.sh", "true\n", 0644);
}
sub preset { my ($key, %more) = @_; return { key => $key, label => "The $key", type => 'input', %more } }
my @two = (preset('TARGET', default => 'theirs', pattern => '[a-z]*'),
	preset('PLACE', type => 'select', options => [ map { { label => uc, value => $_ } } qw(a b) ], default => 'b'));
template('two', @two);
template('none');
template('secret', preset('WORD', secret => JSON::PP::true), preset('KEPT', secret => JSON::PP::true, default => 'hidden'));
template('must', preset('NEEDED', required => JSON::PP::true));
template('many', map { preset("MANY_$_") } 1 .. 60);
template('large', map { preset("LARGE_$_", description => 'd' x 500, default => 'x' x 4096) } 1 .. 40);

my $db = Slipway::DB->start;
my $conf = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
my ($made) = run_cmd(program('slipway-admin'), '-c', spew(tempdir() . '/key.conf', $db->conf . $conf), 'key');
is($made, 0, 'there is a key for secrets');
my $api = Slipway::API->start(db => $db, conf => "[api]\ntemplates = $site\n$conf");
my $as = $api->as('maintainer');

# --- the list of templates
my $list = $api->as('viewer')->get('/api/pipelines/templates?limit=2&page=2');
is($list->{status}, 200, 'a viewer lists templates at /api/pipelines/templates');
is_deeply($list->{json}, $api->get('/api/templates?limit=2&page=2')->{json}, 'it is the list of /api/templates');
like($list->{headers}{link}, qr{</api/pipelines/templates\?[^>]*page=1[^>]*>; rel="prev"}, 'its links lead to its own pages');
is($list->{headers}{'x-total-count'}, 6, 'it is counted');
is($api->as('none')->get('/api/pipelines/templates')->{status}, 401, 'it is not public');
is($api->head('/api/pipelines/templates')->{status}, 200, 'HEAD works on it');
is($api->request('DELETE', '/api/pipelines/templates')->{headers}{allow}, 'GET, HEAD, OPTIONS', 'it only reads');
is($api->get('/api/pipelines/template')->{status}, 404, 'another word is no pipeline');

# --- presets
my $n = 0;
sub project {
	my (%more) = @_;
	$n++;
	my $got = $as->post('/api/projects', { name => "p$n", repository => "https://git.example.org/o/p$n.git", %more });
	is($got->{status}, 201, "project $n") or diag($got->{body});
	return $got->{json};
}
sub use_template {
	my ($template, $project, %more) = @_;
	return $as->post('/api/pipelines/from-template', { templateId => $template, projectId => $project->{id}, %more });
}
sub now_of { return $api->get("/api/projects/$_[0]{id}") }
sub keys_of { return join ' ', map { $_->{key} } @{ now_of($_[0])->{json}{envPresets} } }

my $own = project(envPresets => [ preset('TARGET', default => 'ours') ]);
my $before = now_of($own);
my $got = use_template('two', $own);
is($got->{status}, 201, 'a pipeline is made from a template with presets') or diag($got->{body});
is($got->{headers}{location}, "/api/pipelines/$got->{json}{id}", 'the answer is the pipeline');
my $after = now_of($own);
is(keys_of($own), 'TARGET PLACE', 'the project gets the preset whose key it lacks, behind its own');
is($after->{json}{envPresets}[0]{default}, 'ours', "the project's own preset stays as it was");
is_deeply($after->{json}{envPresets}[1], $api->get('/api/templates/two')->{json}{envPresets}[1],
	"what was added is the template's preset, whole");
isnt($after->{headers}{etag}, $before->{headers}{etag}, "the project's ETag changes");
cmp_ok($after->{json}{updatedAt}, 'gt', $before->{json}{updatedAt}, 'so does updatedAt');
is($api->request('PUT', "/api/projects/$own->{id}", '{"description":"x"}', { 'If-Match' => $before->{headers}{etag} })->{status}, 412,
	'a change that knows the old presets is refused');
$got = $as->post('/api/deployments', { projectId => $own->{id}, envVars => {} });
is_deeply($got->{json}{envVars}, { TARGET => 'ours', PLACE => 'b' }, 'a deployment has its default');

$before = now_of($own);
is(use_template('two', $own, name => 'Again')->{status}, 201, 'a second pipeline from it');
is_deeply([ now_of($own)->{json}, now_of($own)->{headers}{etag} ], [ $before->{json}, $before->{headers}{etag} ],
	'where no key lacks, the project stays as it is');

my $bare = project();
$before = now_of($bare);
is(use_template('two', $bare, presets => 'none')->{status}, 201, 'presets: none makes the pipeline');
is_deeply([ now_of($bare)->{json}, now_of($bare)->{headers}{etag} ], [ $before->{json}, $before->{headers}{etag} ],
	'and leaves the project as it is');
is(use_template('none', $bare)->{status}, 201, 'a template without presets makes one');
is(now_of($bare)->{headers}{etag}, $before->{headers}{etag}, 'and leaves the project as it is');
is(use_template('two', $bare, name => 'Added', presets => 'add')->{status}, 201, 'presets: add is the default');
is(keys_of($bare), 'TARGET PLACE', 'the project has them all, in their order');
is(use_template('secret', $bare)->{status}, 201, 'a template with secrets');
is($api->get("/api/projects/$bare->{id}")->{json}{envPresets}[3]{default}, undef, 'a secret default is not readable');
my ($pipeline) = @{ $api->get("/api/pipelines?projectId=$bare->{id}")->{json}{data} };
$got = $as->post('/api/deployments', { projectId => $bare->{id}, pipelineId => $pipeline->{id}, envVars => {} });
is_deeply([ @{ $got->{json}{envVars} }{qw(KEPT PLACE)} ], [ undef, 'b' ], 'a deployment is given it all the same') or diag($got->{body});
ok(exists $got->{json}{envVars}{KEPT}, 'as a secret');

# --- what cannot be
sub pipelines { return $api->get("/api/pipelines?projectId=$_[0]{id}")->{headers}{'x-total-count'} }
my $full = project(envPresets => [ map { preset("OWN_$_") } 1 .. 50 ]);
my $big = project(envPresets => [ map { preset("OWN_$_", type => 'select', default => undef,
	options => [ map { { label => 'l', value => $_ . 'y' x 4000 } } 1 .. 5 ]) } 1 .. 50 ]);
my $pushed = project();
my $runs = use_template('none', $pushed)->{json}{id};
$got = $as->request('PUT', "/api/projects/$pushed->{id}", { triggers => [ { branch => 'main', pipelineId => $runs, envVars => {} } ] });
is($got->{status}, 200, 'a project with a trigger') or diag($got->{body});
for my $try ([ 'too many', 'many', $full, qr/at most 100 members, has 110/ ], [ 'too large', 'large', $big, qr/1 MiB/ ],
    [ 'one that a trigger lacks', 'must', $pushed, qr{triggers/0/envVars/NEEDED} ]) {
	my ($what, $template, $project, $says) = @$try;
	my @held = (now_of($project)->{headers}{etag}, pipelines($project));
	$got = use_template($template, $project);
	is("$got->{status} " . join(' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] }), '422 /presets', "refused: $what");
	like($got->{json}{errors}[0]{detail} || '', $says, "it says why: $what") or diag($got->{body});
	like($got->{json}{errors}[0]{detail} || '', qr/"none"/, "and what to do: $what");
	is_deeply([ now_of($project)->{headers}{etag}, pipelines($project) ], \@held, "nothing is made or changed: $what");
	is(use_template($template, $project, presets => 'none')->{status}, 201, "without the presets it can be made: $what");
}
$got = use_template('many', $full, name => '', extra => 1);
is(join(' ', sort map { $_->{pointer} } @{ $got->{json}{errors} }), '/extra /name /presets', 'all faults are reported at once');
for my $bad ('some', 1, undef) {
	$got = use_template('two', $bare, name => 'X', presets => $bad);
	is("$got->{status} $got->{json}{errors}[0]{pointer}", '422 /presets', 'no such choice: ' . $json->allow_nonref->encode($bad));
}
is(use_template('two', { id => 999_999 })->{json}{errors}[0]{pointer}, '/projectId', 'a project that does not exist');
my $gone = project();
$api->request('DELETE', "/api/projects/$gone->{id}");
is(use_template('two', $gone)->{status}, 422, 'nor one that was deleted');
is($api->as('deployer')->post('/api/pipelines/from-template', { templateId => 'two', projectId => $bare->{id}, name => 'D' })->{status}, 403,
	'a deployer cannot');

# --- at the same time
my $shared = project();
my @children = map {
	my $i = $_;
	my $child = fork // die "fork: $!";
	if (!$child) {
		delete $api->{http}; # each with a connection of its own
		my $status = use_template($i % 2 ? 'two' : 'secret', $shared, name => "At once $i")->{status};
		require POSIX;
		POSIX::_exit($status == 201 ? 0 : 1);
	}
	$child;
} 1 .. 6;
is(join(' ', map { waitpid $_, 0; $? >> 8 } @children), '0 0 0 0 0 0', 'several pipelines are made at once');
is(join(' ', sort split / /, keys_of($shared)), 'KEPT PLACE TARGET WORD', 'several at once add each key once');

$api->stop;
$db->stop;
done_testing;
