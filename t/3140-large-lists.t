#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pages and objects up to the limits: a read returns all of them, and a write that
# succeeded is never reported as an error.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my @workers = sort $api->workers;
my $repository = 'https://git.example.org/a/b';
my $project = $api->post('/api/projects', { name => 'P', repository => $repository })->{json}{id};
my $got;

# --- scripts of 1 MiB of control characters, which take six bytes each in JSON
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'control' })->{json}{id};
for my $k (1 .. 16) {
	$got = $api->post('/api/steps',
	    { pipelineId => $pipeline, name => "s$k", script => "\x01" x 65_535 });
	is($got->{status}, 201, "step $k of control characters is created")
	    or diag substr $got->{body}, 0, 300;
}
is($api->post('/api/steps', { pipelineId => $pipeline, name => 's17', script => 'x' x 17 })->{status}, 422,
    'a step over the size limit of the pipeline is rejected');
$got = $api->get("/api/pipelines/$pipeline");
is($got->{status}, 200, 'a pipeline of the largest size is returned') or diag substr $got->{body}, 0, 300;
is_deeply([map { length $_->{script} } @{ $got->{json}{steps} }], [(65_535) x 16],
    'a pipeline of the largest size contains every script');
$got = $api->put("/api/pipelines/$pipeline", { name => 'renamed' }, { 'If-Match' => $got->{headers}{etag} });
is($got->{status}, 200, 'a pipeline of the largest size can be changed') or diag substr $got->{body}, 0, 300;
is($got->{json}{name}, 'renamed', 'a change of a pipeline of the largest size returns it');
$got = $api->get("/api/pipelines?projectId=$project");
is("$got->{status} $got->{json}{data}[0]{name}", '200 renamed',
    'a list contains a pipeline of the largest size');

# --- more projects than fit into memory
$db->sql('INSERT INTO project (name, repository, project_dir)'
    . " SELECT CONCAT('many ', seq), '$repository', CONCAT('many-', seq) FROM seq_1_to_61000");
my @ids = split /\n/, $db->sql('SELECT id FROM project WHERE valid = 1 ORDER BY name, id');
$got = $api->get('/projects');
is($got->{status}, 200, 'the names of 61,000 projects are listed') or diag substr $got->{body}, 0, 300;
is_deeply([map { $_->{id} } @{ $got->{json} }], \@ids,
    'each of 61,000 projects is listed once, ordered by name');
$db->sql("DELETE FROM project WHERE project_dir LIKE 'many-%'");

# --- pages of items of the largest size
for my $k (1 .. 6) {
	my %preset = (label => 'l', type => 'input', description => 'd' x 500, default => 'x' x 4096,
	    pattern => 'x*');
	$got = $api->post('/api/projects', { name => sprintf('Q%02d', $k), repository => $repository,
		envPresets => [map { { %preset, key => "K$_" } } 1 .. 100] });
	is($got->{status}, 201, 'a project of half a megabyte is created')
	    or diag substr $got->{body}, 0, 300 if $k == 1;
	$got = $api->post('/api/pipelines', { projectId => $got->{json}{id}, name => 'l',
		steps => [map { { name => "s$_", script => 'x' x 64_000 } } 1 .. 15] });
	is($got->{status}, 201, 'a pipeline of a megabyte is created') if $k == 1;
}
# a page that is sent item by item is that of the caller, too
my $guest = { Authorization => 'Bearer ' . $api->new_token('guest', 'gus') };
$db->sql("UPDATE api_token SET role = 'admin' WHERE role = 'guest';"
    . " INSERT INTO member (project_id, user_id, role) SELECT p.id, u.id, 'deployer'"
    . " FROM project p JOIN user u ON u.username = 'gus' WHERE p.name LIKE 'Q%'");
is_deeply([map { "$_->{name} $_->{role}" } @{ $api->get('/api/projects?limit=100', $guest)->{json}{data} }],
    [map { "Q0$_ deployer" } 1 .. 6], 'a guest gets a large page of own projects, with the role in each');

# All items of a list, read in pages of this size.
sub walk {
	my ($path, $limit) = @_;
	my (@seen, $page);
	my $url = "$path?limit=$limit";
	while (defined $url && @seen < 1000) {
		my $got = $api->get($url);
		is($got->{status}, 200, "$url returns a page") or return;
		$page = $got->{json}{pagination};
		is($page->{limit}, $limit, "$url reports the requested size of pages");
		is($got->{headers}{'x-total-count'}, $page->{total}, "$url counts all items");
		push @seen, @{ $got->{json}{data} };
		($url) = ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/;
	}
	is(scalar @seen, $page->{total}, "$path in pages of $limit returns every item");
	my %ids = map { $_->{id} => 1 } @seen;
	is(scalar keys %ids, scalar @seen, "$path in pages of $limit returns each item once");
	return \@seen;
}
for my $path (qw(/api/projects /api/pipelines /api/steps)) {
	my $all = walk($path, 100);
	is_deeply([map { $_->{id} } @{ walk($path, 4) }], [map { $_->{id} } @$all],
	    "$path returns the same items in pages of any size") if $path =~ /projects/;
	my ($one) = @$all;
	my %read = %{ $api->get("$path/$one->{id}")->{json} };
	delete $read{workspaceStatus};
	is_deeply($one, \%read, "an item of $path is the same in the list as alone");
}
for my $version ('--http1.1', '--http2') {
	my (undef, $out) = run_cmd('curl', '-s', $version, '--cacert', $api->cacert, '-H',
	    'Authorization: Bearer ' . $api->token,
	    $api->url . '/api/pipelines?limit=100');
	my $list = eval { Cpanel::JSON::XS->new->utf8->decode($out) } || {};
	is(scalar @{ $list->{data} || [] }, 7, "curl $version reads every item of a large page");
	like($out, qr/\}\n\z/, "curl $version reads a large page to its end");
}
$got = $api->head('/api/pipelines?limit=100');
is("$got->{status} $got->{body}", '200 ', 'HEAD of a large page returns no body');
is($got->{headers}{"x-total-count"}, 7, 'HEAD of a large page counts all items');
is($api->get('/api/pipelines?limit=100&page=2')->{json}{data}[0], undef, 'a page past the end is empty');
is($api->get('/api/projects?limit=100&name=Q')->{json}{pagination}{total}, 6,
    'a filtered list counts the matching items');
is(scalar @{ $api->get('/api/projects?limit=100&name=Q')->{json}{data} }, 6,
    'a filtered list returns the matching items');

is_deeply([sort $api->workers], \@workers, 'no worker died');
my $peak = peak_memory(@workers);
cmp_ok($peak, '<', 16 * 1024, "no worker takes more than 16 MiB of memory ($peak KiB)") if !sanitized();

done_testing;
