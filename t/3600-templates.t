#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Templates as the service reads them: those that it finds, those that it leaves
# out, and pipelines that are created from them.

use strict;
use warnings;
use File::Basename qw(basename);
use File::Path qw(make_path);
use Cpanel::JSON::XS ();
use Slipway::API qw(outcome);
use Slipway::DB;
use Slipway::Template;
use Slipway::Test;
use Test::More;

my ($true, $false) = (Cpanel::JSON::XS::true, Cpanel::JSON::XS::false);
my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $site = tempdir() . '/templates';
# Writes a template: its id, template.json and other files.
sub template {
	my ($id, $about, %files) = @_;
	make_path("$site/$id");
	spew("$site/$id/template.json", ref $about ? $json->encode($about) : $about, 0644);
	spew("$site/$id/$_", $files{$_}, 0644) for keys %files;
}
sub steps { return [ map { { name => "Step $_", file => "$_.sh" } } @_ ] }
my %ok = ('1.sh' => "echo 1\n", '2.sh' => "echo 2\n");
template('own', { name => "The site's own", steps => [ { name => 'One', file => '1.sh' },
	{ name => 'Two', file => '2.sh', directory => 'web/app', runWhen => 'always', mayFail => \1,
		timeoutSeconds => 9 } ] }, %ok);
template('rollback', { name => 'Another rollback', description => 'Ours.', steps => steps(1) }, %ok);
template('sharing', { name => 'Sharing', steps => [ { name => 'One', file => '../common/common.sh' } ] });
template('parts', { name => 'Parts', steps => [ { name => 'One', file => '1.sh' },
	{ name => 'Two', file => '../common/step.sh' } ] },
    '1.sh' => join "\n", '# first', '. ../common/one.sh', "\tx=1", ' . ../common/one.sh',
    '. ../common/two.sh', '. ../common/one.sh');
make_path("$site/common");
spew("$site/common/common.sh", "echo common\n", 0644);
spew("$site/common/step.sh", "echo step\n. ../common/one.sh\n", 0644);
spew("$site/common/one.sh", "# About\n#\tthe file.\n\n# A comment.\n\none() { :; }\n", 0644);
spew("$site/common/two.sh", 'two=2', 0644);
spew("$site/common/nesting.sh", "x=1\n. ../common/one.sh\n", 0644);
spew("$site/common/comments.sh", "# only\n# comments", 0644);
spew("$site/common/half.sh", 'x' x 40_000, 0644);
my %common = (name => 'x', steps => [ { name => 'x', file => 'common.sh' } ]);
spew("$site/common/template.json", $json->encode(\%common), 0644);
my %bad = (
	'common-missing' => [ { name => 'x', steps => [ { name => 'x', file => '../common/missing.sh' } ] } ],
	'common-outside' => [ { name => 'x',
		steps => [ { name => 'x', file => '../common/../own/1.sh' } ] } ],
	'common-below' => [ { name => 'x', steps => [ { name => 'x', file => 'common/common.sh' } ] } ],
	'part-missing' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/missing.sh\n" ],
	'part-outside' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/../own/1.sh\n" ],
	'part-nameless' => [ { name => 'x', steps => steps(1) }, '1.sh' => '. ../common/' ],
	'part-and-more' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/one.sh x\n" ],
	'part-nesting' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/nesting.sh\n" ],
	'part-empty' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/comments.sh\n" ],
	'parts-large' => [ { name => 'x', steps => steps(1) }, '1.sh' => ". ../common/half.sh\n" x 2 ],
	'checkout' => [ { name => 'x', checkout => 'some', steps => steps(1) }, %ok ],
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
	'directory' => [ { name => 'x', steps => [ { name => 'x', file => '1.sh', directory => '../x' } ] } ],
	'same-names' => [ { name => 'x', steps => [ map { { name => 'x', file => '1.sh' } } 1, 2 ] } ],
	'empty-file' => [ { name => 'x', steps => steps(1) }, '1.sh' => '' ],
	'binary' => [ { name => 'x', steps => steps(1) }, '1.sh' => "a\0b" ],
	'latin1' => [ { name => 'x', steps => steps(1) }, '1.sh' => "echo \xfc" ],
	'large' => [ { name => 'x', steps => steps(1) }, '1.sh' => 'x' x 65_536 ],
	'preset' => [ { name => 'x', steps => steps(1),
		envPresets => [ { key => 'PATH', label => 'x', type => 'input' } ] } ],
	'preset-twice' => [ { name => 'x', steps => steps(1),
		envPresets => [ ({ key => 'A', label => 'x', type => 'input' }) x 2 ] } ],
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

# --- templates that are found
my @package = map { basename($_) } grep { -d && !m{/common$} } glob srcdir() . '/src/templates/*';
my $got = $api->as('viewer')->get('/api/templates?limit=100');
is($got->{status}, 200, 'a viewer lists templates');
my %all = map { $_->{id} => $_ } @{ $got->{json}{data} };
is(join(' ', map { $_->{id} } @{ $got->{json}{data} }),
    join(' ', sort @package, 'own', 'parts', 'sharing'),
    "the list has the package's and the site's templates in the order of their ids");
is($got->{json}{pagination}{total}, @package + 3, 'the list counts the templates');
for my $id (@package) {
	next if $id eq 'rollback';
	my $is = $json->decode(slurp(srcdir() . "/src/templates/$id/template.json"));
	is_deeply([ @{ $all{$id} }{qw(name description)} ], [ @$is{qw(name description)} ],
	    "$id: the API returns its name and description");
	is_deeply([ map { $_->{script} } @{ $all{$id}{steps} } ],
	    [ map { Slipway::Template::script(srcdir() . "/src/templates/$id/$_->{file}") }
	    @{ $is->{steps} } ],
	    "$id: the API returns the complete text of its scripts");
	is($all{$id}{checkout}, $is->{checkout} || 'fresh', "$id: the API returns its checkout");
	is_deeply([ map { $_->{key} } @{ $all{$id}{envPresets} } ],
	    [ map { $_->{key} } @{ $is->{envPresets} || [] } ], "$id: the API returns its presets");
}
is_deeply($all{own},
    { id => 'own', name => "The site's own", description => undef, checkout => 'fresh',
	envPresets => [], steps => [
	{ name => 'One', script => "echo 1\n", directory => undef, runWhen => 'success',
		mayFail => $false, timeoutSeconds => undef },
	{ name => 'Two', script => "echo 2\n", directory => 'web/app', runWhen => 'always',
		mayFail => $true, timeoutSeconds => 9 } ] },
    "a template of the site is returned with every member");
is($all{rollback}{name}, 'Another rollback', 'a template in a later folder replaces one of the same id');
for my $id (sort keys %bad) {
	ok(!exists $all{$id}, "the invalid template $id is left out");
	like($api->log, qr{template \Q$site/$id\E ignored: \S}, "the log says why $id is left out");
}
like($api->log, qr{\Q$site/folder\E ignored}, 'the log names a folder without template.json');
unlike($api->log, qr{\Q$site\E/own ignored}, 'the log does not name a valid template');

$got = $api->get('/api/templates?limit=2&page=2');
is(join(' ', map { $_->{id} } @{ $got->{json}{data} }),
    join(' ', (sort @package, 'own', 'parts', 'sharing')[ 2, 3 ]),
    'a list of templates has pages');
like($got->{headers}{link}, qr/rel="next"/, 'a page of templates links to the next');
is(scalar @{ $api->get('/api/templates?page=99')->{json}{data} }, 0,
    'a page of templates past the end is empty');
$got = $api->get('/api/templates/sharing');
is($got->{json}{steps}[0]{script}, "echo common\n", 'a step has the whole text of a shared script');
my $one = "# A comment.\n\none() { :; }\n";
is_deeply([ map { $_->{script} } @{ $all{parts}{steps} } ],
    [ "# first\n$one\tx=1\n . ../common/one.sh\ntwo=2\n$one", "echo step\n$one" ],
    'a step has the text of the parts that it includes');
is($api->get('/api/templates/common')->{status}, 404, 'the folder of shared scripts is not a template');
$got = $api->get('/api/templates/own');
is_deeply($got->{json}, $all{own}, 'GET of a template returns the item of the list');
is($api->get('/api/templates/own', { 'If-None-Match' => $got->{headers}{etag} })->{status}, 304,
    'a read of a template with its tag returns 304');
is($api->get("/api/templates/$_")->{status}, 404, "the template $_ returns 404")
    for 'nothing', 'Upper', 'no-name', 'a%20b', '.hidden';
is($api->get('/api/templates/..')->{status}, 400, 'a path that leaves the templates returns 400');
is($api->as('none')->get('/api/templates')->{status}, 401, 'a list of templates without a token returns 401');

# --- pipelines from templates
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
my $maker = $api->as('maintainer');
$got = $maker->post('/api/pipelines/from-template', { templateId => 'own', projectId => $project });
is($got->{status}, 201, 'a pipeline is created from a template') or diag($got->{body});
my $made = $got->{json};
is($got->{headers}{location}, "/api/pipelines/$made->{id}", 'Location is the path of the new pipeline');
is_deeply([ @$made{qw(name description projectId)} ], [ "The site's own", undef, $project ],
    'a pipeline from a template has its name');
is_deeply([ map { [ @$_{qw(name script directory position runWhen mayFail timeoutSeconds)} ] }
	@{ $made->{steps} } ],
    [ [ 'One', "echo 1\n", undef, 0, 'success', $false, undef ],
	[ 'Two', "echo 2\n", 'web/app', 1, 'always', $true, 9 ] ],
    'a pipeline from a template has its steps');
is_deeply($api->get("/api/pipelines/$made->{id}")->{json}, $made, 'GET returns the pipeline from a template');
sub from_template {
	my (%body) = @_;
	return $maker->post('/api/pipelines/from-template', \%body);
}
my %own = (templateId => 'own', projectId => $project);
$got = from_template(%own, name => 'Mine', description => 'D');
is_deeply([ $got->{status}, @{ $got->{json} }{qw(name description)} ], [ 201, 'Mine', 'D' ],
    'a pipeline from a template can have another name');
for my $id (@package) {
	my $own = $api->post('/api/projects', { name => "p $id",
		repository => 'https://git.example.org/a/b.git', envPresets => $all{$id}{envPresets} });
	is($own->{status}, 201, "$id: a project with its presets is created") or diag($own->{body});
	$got = $api->post('/api/pipelines', { projectId => $own->{json}{id},
		map { $_ => $all{$id}{$_} } qw(name description steps) });
	is($got->{status}, 201, "$id: a pipeline with its steps is created") or diag($got->{body});
	is_deeply([ map { [ @$_{qw(name script runWhen)} ] } @{ $got->{json}{steps} } ],
	    [ map { [ @$_{qw(name script runWhen)} ] } @{ $all{$id}{steps} } ],
	    "$id: the pipeline has the text of its scripts");
	is(from_template(templateId => $id, projectId => $project, name => "of $id")->{status}, 201,
	    "a pipeline is created from $id");
}
my @before = $api->get('/api/pipelines')->{headers}{'x-total-count'};
for my $try ([ 'with a name in use', { %own }, '409 /name' ],
    [ 'from an unknown template', { %own, templateId => 'nothing' }, '422 /templateId' ],
    [ 'from a template that was left out', { %own, templateId => 'no-name' }, '422 /templateId' ],
    [ 'for an unknown project', { %own, projectId => 999 }, '422 /projectId' ],
    [ 'without template and project', {}, '422 /projectId /templateId' ],
    [ 'with an empty name', { %own, name => '' }, '422 /name' ],
    [ 'with steps', { %own, name => 'Other', steps => [] }, '422 /steps' ],
    [ 'with steps and a name in use', { %own, steps => [] }, '422 /name /steps' ],
    [ 'from a number', { %own, templateId => 1 }, '422 /templateId' ]) {
	is(outcome(from_template(%{ $try->[1] })), $try->[2], "a pipeline $try->[0] is rejected");
}
is($api->as('deployer')->post('/api/pipelines/from-template', \%own)->{status}, 403,
    'a deployer cannot create a pipeline from a template');
is($api->get('/api/pipelines/from-template')->{status}, 405, 'GET /api/pipelines/from-template returns 405');
is($api->get('/api/pipelines')->{headers}{'x-total-count'}, $before[0],
    'rejected requests create no pipeline');

# --- a reload
template('late', { name => 'Late', steps => steps(1) }, %ok);
template('own', '{', %ok);
kill 'HUP', $api->pid;
ok(poll(10, sub { $api->get('/api/templates/late')->{status} == 200 }), 'a reload finds a new template');
ok(poll(10, sub { $api->get('/api/templates/own')->{status} == 404 }),
    'a reload leaves out a template that became invalid');
is($api->get("/api/pipelines/$made->{id}")->{json}{steps}[0]{script}, "echo 1\n",
    'a pipeline keeps the steps of a template that changed');
done_testing;
