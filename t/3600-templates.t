#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Templates as the service reads them: what is found, what is left out, and
# pipelines that are made of them.

use strict;
use warnings;
use File::Basename qw(basename);
use File::Path qw(make_path);
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $json = JSON::PP->new->utf8->canonical;
my $site = tempdir() . '/templates';
sub template {
	my ($id, $about, %files) = @_;
	make_path("$site/$id");
	spew("$site/$id/template.json", ref $about ? $json->encode($about) : $about, 0644);
	spew("$site/$id/$_", $files{$_}, 0644) for keys %files;
}
sub steps { return [ map { { name => "Step $_", file => "$_.sh" } } @_ ] }
my %ok = ('1.sh' => "echo 1\n", '2.sh' => "echo 2\n");
template('own', { name => "The site's own", steps => [ { name => 'One', file => '1.sh' },
	{ name => 'Two', file => '2.sh', runWhen => 'always', timeoutSeconds => 9 } ] }, %ok);
template('rollback', { name => 'Another rollback', description => 'Ours.', steps => steps(1) }, %ok);
template('sharing', { name => 'Sharing', steps => [ { name => 'One', file => '../common/common.sh' } ] });
make_path("$site/common");
spew("$site/common/common.sh", "echo common\n", 0644);
spew("$site/common/template.json", $json->encode({ name => 'x', steps => [ { name => 'x', file => 'common.sh' } ] }), 0644);
my %bad = (
	'common-missing' => [ { name => 'x', steps => [ { name => 'x', file => '../common/missing.sh' } ] } ],
	'common-outside' => [ { name => 'x', steps => [ { name => 'x', file => '../common/../own/1.sh' } ] } ],
	'common-below' => [ { name => 'x', steps => [ { name => 'x', file => 'common/common.sh' } ] } ],
	'no-json' => [ '{' ],
	'no-object' => [ '[]' ],
	'no-name' => [ { steps => steps(1) } ],
	'no-steps' => [ { name => 'x' } ],
	'empty-steps' => [ { name => 'x', steps => [] } ],
	'stranger' => [ { name => 'x', steps => steps(1), sparse => 'x' } ],
	'no-file' => [ { name => 'x', steps => steps(3) } ],
	'outside' => [ { name => 'x', steps => [ { name => 'x', file => '../own/1.sh' } ] } ],
	'hidden' => [ { name => 'x', steps => [ { name => 'x', file => '.sh' } ] } ],
	'script' => [ { name => 'x', steps => [ { name => 'x', file => '1.sh', script => 'x' } ] } ],
	'when' => [ { name => 'x', steps => [ { name => 'x', file => '1.sh', runWhen => 'never' } ] } ],
	'same-names' => [ { name => 'x', steps => [ map { { name => 'x', file => '1.sh' } } 1, 2 ] } ],
	'empty-file' => [ { name => 'x', steps => steps(1) }, '1.sh' => '' ],
	'binary' => [ { name => 'x', steps => steps(1) }, '1.sh' => "a\0b" ],
	'latin1' => [ { name => 'x', steps => steps(1) }, '1.sh' => "echo \xfc" ],
	'large' => [ { name => 'x', steps => steps(1) }, '1.sh' => 'x' x 65_536 ],
	'preset' => [ { name => 'x', steps => steps(1), envPresets => [ { key => 'PATH', label => 'x', type => 'input' } ] } ],
	'preset-twice' => [ { name => 'x', steps => steps(1), envPresets => [ map { { key => 'A', label => 'x', type => 'input' } } 1, 2 ] } ],
	'Upper' => [ { name => 'x', steps => steps(1) } ],
	'a b' => [ { name => 'x', steps => steps(1) } ],
);
for my $id (keys %bad) { my ($about, %files) = @{ $bad{$id} }; template($id, $about, %ok, %files) }
make_path("$site/folder", "$site/.hidden");
make_path("$site/dir/template.json");
spew("$site/README", 'not a template');

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db,
	conf => "[api]\ntemplates = " . srcdir() . "/src/templates $site, /nowhere\n");

# --- what is found
my @package = map { basename($_) } grep { -d && !m{/common$} } glob srcdir() . '/src/templates/*';
my $got = $api->as('viewer')->get('/api/templates?limit=100');
is($got->{status}, 200, 'a viewer lists them');
my %all = map { $_->{id} => $_ } @{ $got->{json}{data} };
is(join(' ', map { $_->{id} } @{ $got->{json}{data} }), join(' ', sort @package, 'own', 'sharing'), "the package's and the site's, by id");
is($got->{json}{pagination}{total}, @package + 2, 'counted');
for my $id (@package) {
	next if $id eq 'rollback';
	my $is = $json->decode(slurp(srcdir() . "/src/templates/$id/template.json"));
	is_deeply([ @{ $all{$id} }{qw(name description)} ], [ @$is{qw(name description)} ], "$id: what it says");
	is_deeply([ map { $_->{script} } @{ $all{$id}{steps} } ],
	    [ map { slurp(srcdir() . "/src/templates/$id/$_->{file}") } @{ $is->{steps} } ], "$id: its files");
	is_deeply([ map { $_->{key} } @{ $all{$id}{envPresets} } ], [ map { $_->{key} } @{ $is->{envPresets} || [] } ], "$id: its presets");
}
is_deeply($all{own}, { id => 'own', name => "The site's own", description => undef, envPresets => [], steps => [
	{ name => 'One', script => "echo 1\n", runWhen => 'success', timeoutSeconds => undef },
	{ name => 'Two', script => "echo 2\n", runWhen => 'always', timeoutSeconds => 9 } ] }, "the site's own, whole");
is($all{rollback}{name}, 'Another rollback', 'a later folder wins');
for my $id (sort keys %bad) {
	ok(!exists $all{$id}, "left out: $id");
	like($api->log, qr{template \Q$site/$id\E ignored: \S}, "and the log says why: $id");
}
like($api->log, qr{\Q$site/folder\E ignored}, 'a folder without template.json is named too');
unlike($api->log, qr{\Q$site\E/own ignored}, 'a good one is not');

$got = $api->get('/api/templates?limit=2&page=2');
is(join(' ', map { $_->{id} } @{ $got->{json}{data} }), join(' ', (sort @package, 'own', 'sharing')[ 2, 3 ]), 'in pages');
like($got->{headers}{link}, qr/rel="next"/, 'with links');
is(scalar @{ $api->get('/api/templates?page=99')->{json}{data} }, 0, 'none past the end');
$got = $api->get('/api/templates/sharing');
is($got->{json}{steps}[0]{script}, "echo common\n", 'a step has the whole text of a shared script');
is($api->get('/api/templates/common')->{status}, 404, 'the folder of shared scripts is not a template');
$got = $api->get('/api/templates/own');
is_deeply($got->{json}, $all{own}, 'one alone');
is($api->get('/api/templates/own', { 'If-None-Match' => $got->{headers}{etag} })->{status}, 304, 'with a tag');
is($api->get("/api/templates/$_")->{status}, 404, "no template: $_") for 'nothing', 'Upper', 'no-name', 'a%20b', '.hidden';
is($api->get('/api/templates/..')->{status}, 400, 'nor a way out');
is($api->as('none')->get('/api/templates')->{status}, 401, 'nobody lists them');

# --- made of them
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
my $maker = $api->as('maintainer');
$got = $maker->post('/api/pipelines/from-template', { templateId => 'own', projectId => $project });
is($got->{status}, 201, 'a pipeline of a template') or diag($got->{body});
my $made = $got->{json};
is($got->{headers}{location}, "/api/pipelines/$made->{id}", 'with its address');
is_deeply([ @$made{qw(name description projectId)} ], [ "The site's own", undef, $project ], 'named like it');
is_deeply([ map { [ @$_{qw(name script position runWhen timeoutSeconds)} ] } @{ $made->{steps} } ],
    [ [ 'One', "echo 1\n", 0, 'success', undef ], [ 'Two', "echo 2\n", 1, 'always', 9 ] ], 'with its steps');
is_deeply($api->get("/api/pipelines/$made->{id}")->{json}, $made, 'and it stays');
$got = $maker->post('/api/pipelines/from-template', { templateId => 'own', projectId => $project, name => 'Mine', description => 'D' });
is_deeply([ $got->{status}, @{ $got->{json} }{qw(name description)} ], [ 201, 'Mine', 'D' ], 'named otherwise');
for my $id (@package) {
	is($maker->post('/api/pipelines/from-template', { templateId => $id, projectId => $project, name => "of $id" })->{status}, 201, "of $id");
}
my @before = $api->get('/api/pipelines')->{headers}{'x-total-count'};
for my $try ([ 'the same name', { templateId => 'own', projectId => $project }, 409, '/name' ],
    [ 'no such template', { templateId => 'nothing', projectId => $project }, 422, '/templateId' ],
    [ 'one that was left out', { templateId => 'no-name', projectId => $project }, 422, '/templateId' ],
    [ 'no such project', { templateId => 'own', projectId => 999 }, 422, '/projectId' ],
    [ 'nothing named', {}, 422, '/projectId /templateId' ],
    [ 'an empty name', { templateId => 'own', projectId => $project, name => '' }, 422, '/name' ],
    [ 'steps of its own', { templateId => 'own', projectId => $project, name => 'Other', steps => [] }, 422, '/steps' ],
    [ 'steps of its own, and the same name', { templateId => 'own', projectId => $project, steps => [] }, 422, '/name /steps' ],
    [ 'a number', { templateId => 1, projectId => $project }, 422, '/templateId' ]) {
	$got = $maker->post('/api/pipelines/from-template', $try->[1]);
	is("$got->{status} " . join(' ', sort map { $_->{pointer} } @{ $got->{json}{errors} }), "$try->[2] $try->[3]", "refused: $try->[0]");
}
is($api->as('deployer')->post('/api/pipelines/from-template', { templateId => 'own', projectId => $project })->{status}, 403, 'refused: a deployer');
is($api->get('/api/pipelines/from-template')->{status}, 405, 'refused: GET');
is($api->get('/api/pipelines')->{headers}{'x-total-count'}, $before[0], 'refusals left nothing');

# --- a reload
template('late', { name => 'Late', steps => steps(1) }, %ok);
template('own', '{', %ok);
kill 'HUP', $api->pid;
ok(poll(10, sub { $api->get('/api/templates/late')->{status} == 200 }), 'a reload finds a new one');
ok(poll(10, sub { $api->get('/api/templates/own')->{status} == 404 }), 'and drops one that became faulty');
is($api->get("/api/pipelines/$made->{id}")->{json}{steps}[0]{script}, "echo 1\n", 'pipelines keep what they were made of');
done_testing;
