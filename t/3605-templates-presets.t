#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A pipeline that is created from a template adds the template's presets to its
# project in one transaction; and the list of templates has two paths.

use strict;
use warnings;
use File::Path qw(make_path);
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $site = tempdir() . '/templates';
sub template {
	my ($id, @presets) = @_;
	make_path("$site/$id");
	spew("$site/$id/template.json", $json->encode({ name => "Of $id",
		steps => [ { name => 'One', file => '1.sh' } ], envPresets => \@presets }), 0644);
	spew("$site/$id/1.sh", "true\n", 0644);
}
make_path("$site/bare");
spew("$site/bare/template.json", $json->encode({ name => 'Bare', checkout => 'none',
	steps => [ { name => 'One', file => '1.sh' } ] }), 0644);
spew("$site/bare/1.sh", "true\n", 0644);
sub preset { my ($key, %more) = @_; return { key => $key, label => "The $key", type => 'input', %more } }
my @two = (preset('TARGET', default => 'theirs', pattern => '[a-z]*'),
	preset('PLACE', type => 'select', options => [ map { { label => uc, value => $_ } } qw(a b) ],
	    default => 'b'));
template('two', @two);
template('none');
template('secret', preset('WORD', secret => JSON::PP::true),
    preset('KEPT', secret => JSON::PP::true, default => 'hidden'));
template('must', preset('NEEDED', required => JSON::PP::true));
template('many', map { preset("MANY_$_") } 1 .. 60);
template('large', map { preset("LARGE_$_", description => 'd' x 500, default => 'x' x 4096) } 1 .. 40);

my $db = Slipway::DB->start;
my $conf = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
ok(make_keys(spew(tempdir() . '/key.conf', $db->conf . $conf), tempdir() . '/secret.key'),
    'slipway-admin key creates the keys for secrets');
my $api = Slipway::API->start(db => $db, conf => "[api]\ntemplates = $site\n$conf");
my $as = $api->as('maintainer');

# --- the list of templates
my $list = $api->as('viewer')->get('/api/pipelines/templates?limit=2&page=2');
is($list->{status}, 200, 'a viewer lists templates at /api/pipelines/templates');
is_deeply($list->{json}, $api->get('/api/templates?limit=2&page=2')->{json},
    '/api/pipelines/templates returns the list of /api/templates');
like($list->{headers}{link}, qr{</api/pipelines/templates\?[^>]*page=1[^>]*>; rel="prev"},
    'the links of /api/pipelines/templates lead to its own pages');
is($list->{headers}{'x-total-count'}, 7, '/api/pipelines/templates counts the templates');
is($api->as('none')->get('/api/pipelines/templates')->{status}, 401,
    '/api/pipelines/templates without a token returns 401');
is($api->head('/api/pipelines/templates')->{status}, 200, 'HEAD of /api/pipelines/templates succeeds');
is($api->request('DELETE', '/api/pipelines/templates')->{headers}{allow}, 'GET, HEAD, OPTIONS',
    '/api/pipelines/templates allows only reads');
is($api->get('/api/pipelines/template')->{status}, 404, '/api/pipelines/template returns 404');

# --- presets
my $n = 0;
sub project {
	my (%more) = @_;
	$n++;
	my $got = $as->post('/api/projects',
	    { name => "p$n", repository => "https://git.example.org/o/p$n.git", %more });
	is($got->{status}, 201, "project $n is created") or diag($got->{body});
	return $got->{json};
}
sub use_template {
	my ($template, $project, %more) = @_;
	return $as->post('/api/pipelines/from-template',
	    { templateId => $template, projectId => $project->{id}, %more });
}

# --- the checkout
my $plain = project();
is(use_template('bare', $plain)->{json}{checkout}, 'none', "a pipeline has the checkout of its template");
is(use_template('none', $plain)->{json}{checkout}, 'fresh', 'without one, it has a fresh checkout');
is($api->get('/api/templates/bare')->{json}{checkout}, 'none', 'a template shows its checkout');

sub now_of { return $api->get("/api/projects/$_[0]{id}") }
sub keys_of { return join ' ', map { $_->{key} } @{ now_of($_[0])->{json}{envPresets} } }

my $own = project(envPresets => [ preset('TARGET', default => 'ours') ]);
my $before = now_of($own);
my $got = use_template('two', $own);
is($got->{status}, 201, 'a pipeline is created from a template with presets') or diag($got->{body});
is($got->{headers}{location}, "/api/pipelines/$got->{json}{id}", 'Location is the path of the new pipeline');
my $after = now_of($own);
is(keys_of($own), 'TARGET PLACE', 'a project gets the presets whose keys it lacks, after its own');
is($after->{json}{envPresets}[0]{default}, 'ours', "a project's own preset is not changed");
is_deeply($after->{json}{envPresets}[1], $api->get('/api/templates/two')->{json}{envPresets}[1],
    "an added preset is the template's, with every member");
isnt($after->{headers}{etag}, $before->{headers}{etag}, 'adding presets changes the ETag of the project');
cmp_ok($after->{json}{updatedAt}, 'gt', $before->{json}{updatedAt},
    'adding presets changes updatedAt of the project');
is($api->put("/api/projects/$own->{id}", { description => 'x' }, { 'If-Match' => $before->{headers}{etag} })
    ->{status}, 412, 'a change with the tag before added presets returns 412');
$got = $as->post('/api/deployments', { projectId => $own->{id}, envVars => {} });
is_deeply($got->{json}{envVars}, { TARGET => 'ours', PLACE => 'b' },
    'a deployment gets the default of an added preset');

$before = now_of($own);
is(use_template('two', $own, name => 'Again')->{status}, 201,
    'a second pipeline is created from the template');
is_deeply([ now_of($own)->{json}, now_of($own)->{headers}{etag} ],
    [ $before->{json}, $before->{headers}{etag} ],
    'a project that has every preset is not changed');

my $bare = project();
$before = now_of($bare);
is(use_template('two', $bare, presets => 'none')->{status}, 201, 'a pipeline with presets: none is created');
is_deeply([ now_of($bare)->{json}, now_of($bare)->{headers}{etag} ],
    [ $before->{json}, $before->{headers}{etag} ],
    'presets: none does not change the project');
is(use_template('none', $bare)->{status}, 201, 'a pipeline is created from a template without presets');
is(now_of($bare)->{headers}{etag}, $before->{headers}{etag},
    'a template without presets does not change the project');
is(use_template('two', $bare, name => 'Added', presets => 'add')->{status}, 201,
    'a pipeline with presets: add is created');
is(keys_of($bare), 'TARGET PLACE', 'presets: add adds every preset in its order');
is(use_template('secret', $bare)->{status}, 201, 'a pipeline is created from a template with secret presets');
is($api->get("/api/projects/$bare->{id}")->{json}{envPresets}[3]{default}, undef,
    'a secret default is returned as null');
my ($pipeline) = @{ $api->get("/api/pipelines?projectId=$bare->{id}")->{json}{data} };
$got = $as->post('/api/deployments',
    { projectId => $bare->{id}, pipelineId => $pipeline->{id}, envVars => {} });
is_deeply([ @{ $got->{json}{envVars} }{qw(KEPT PLACE)} ], [ undef, 'b' ],
    'a deployment has a variable for a secret default') or diag($got->{body});
ok(exists $got->{json}{envVars}{KEPT}, 'a secret default is a secret variable of the deployment');

# --- presets that cannot be added
sub pipelines { return $api->get("/api/pipelines?projectId=$_[0]{id}")->{headers}{'x-total-count'} }
my $full = project(envPresets => [ map { preset("OWN_$_") } 1 .. 50 ]);
my $big = project(envPresets => [ map { preset("OWN_$_", type => 'select', default => undef,
	options => [ map { { label => 'l', value => $_ . 'y' x 4000 } } 1 .. 5 ]) } 1 .. 50 ]);
my $pushed = project();
my $runs = use_template('none', $pushed)->{json}{id};
my @triggers = ({ branch => 'main', pipelineId => $runs, envVars => {} });
$got = $as->put("/api/projects/$pushed->{id}", { triggers => \@triggers });
is($got->{status}, 200, 'a project gets a trigger') or diag($got->{body});
for my $try ([ 'too many presets', 'many', $full, qr/at most 100 members, has 110/ ],
    [ 'too large presets', 'large', $big, qr/1 MiB/ ],
    [ 'a required preset that a trigger lacks', 'must', $pushed, qr{triggers/0/envVars/NEEDED} ]) {
	my ($what, $template, $project, $says) = @$try;
	my @held = (now_of($project)->{headers}{etag}, pipelines($project));
	$got = use_template($template, $project);
	is(outcome($got), '422 /presets', "a template with $what is rejected");
	like($got->{json}{errors}[0]{detail} || '', $says, "the error for $what says why")
	    or diag($got->{body});
	like($got->{json}{errors}[0]{detail} || '', qr/"none"/, "the error for $what gives advice");
	is_deeply([ now_of($project)->{headers}{etag}, pipelines($project) ], \@held,
	    "a rejected template with $what creates and changes nothing");
	is(use_template($template, $project, presets => 'none')->{status}, 201,
	    "a pipeline is created from a template with $what by presets: none");
}
$got = use_template('many', $full, name => '', extra => 1);
is(outcome($got), '422 /extra /name /presets', 'a response lists every error');
for my $bad ('some', 1, undef) {
	$got = use_template('two', $bare, name => 'X', presets => $bad);
	is("$got->{status} $got->{json}{errors}[0]{pointer}", '422 /presets',
	    'presets: ' . $json->allow_nonref->encode($bad) . ' is rejected');
}
is(use_template('two', { id => 999_999 })->{json}{errors}[0]{pointer}, '/projectId',
    'an unknown project is rejected');
my $gone = project();
$api->request('DELETE', "/api/projects/$gone->{id}");
is(use_template('two', $gone)->{status}, 422, 'a deleted project is rejected');
my %body = (templateId => 'two', projectId => $bare->{id}, name => 'D');
is($api->as('deployer')->post('/api/pipelines/from-template', \%body)->{status}, 403,
    'a deployer cannot create a pipeline from a template');

# --- simultaneous requests
my $shared = project();
my @runs = map {
	my ($template, $name) = ($_ % 2 ? 'two' : 'secret', "At once $_");
	background(sub { delete $api->{http};
		return use_template($template, $shared, name => $name)->{status} });
} 1 .. 6;
is(join(' ', map { $_->result } @runs), '201 201 201 201 201 201',
    'six simultaneous pipelines are created from templates');
is(join(' ', sort split / /, keys_of($shared)), 'KEPT PLACE TARGET WORD',
    'six simultaneous pipelines add each preset once');

$api->stop;
$db->stop;
done_testing;
