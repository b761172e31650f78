#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pages and objects of any size that the limits let in: a read returns all of
# it, a write that was made is never reported as an error.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $sanitized = `nm @{[program('slipway-api')]} 2>/dev/null` =~ /__asan_init/;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my @workers = sort $api->workers;
my $repository = 'https://git.example.org/a/b';
my $project = $api->post('/api/projects', { name => 'P', repository => $repository })->{json}{id};
my $got;

# --- scripts of 1 MiB, of which each byte takes six
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'control' })->{json}{id};
for my $k (1 .. 16) {
	$got = $api->post('/api/steps', { pipelineId => $pipeline, name => "s$k", script => "\x01" x 65_535 });
	is($got->{status}, 201, "step $k of control characters") or diag substr $got->{body}, 0, 300;
}
is($api->post('/api/steps', { pipelineId => $pipeline, name => 's17', script => 'x' x 17 })->{status}, 422, 'no byte more fits into the pipeline');
$got = $api->get("/api/pipelines/$pipeline");
is($got->{status}, 200, 'the pipeline is read') or diag substr $got->{body}, 0, 300;
is_deeply([map { length $_->{script} } @{ $got->{json}{steps} }], [(65_535) x 16], 'with all of its scripts');
$got = $api->put("/api/pipelines/$pipeline", { name => 'renamed' }, { 'If-Match' => $got->{headers}{etag} });
is($got->{status}, 200, 'a change of it succeeds') or diag substr $got->{body}, 0, 300;
is($got->{json}{name}, 'renamed', 'and is returned');
$got = $api->get("/api/pipelines?projectId=$project");
is("$got->{status} $got->{json}{data}[0]{name}", '200 renamed', 'a list has it');

# --- more projects than fit into memory
$db->sql("INSERT INTO project (name, repository, project_dir) SELECT CONCAT('many ', seq), '$repository', CONCAT('many-', seq) FROM seq_1_to_61000");
my @ids = split /\n/, $db->sql("SELECT id FROM project WHERE valid = 1 ORDER BY name, id");
$got = $api->get('/projects');
is($got->{status}, 200, 'the names of 61,000 projects are listed') or diag substr $got->{body}, 0, 300;
is_deeply([map { $_->{id} } @{ $got->{json} }], \@ids, 'each of them once, ordered by name');
$db->sql("DELETE FROM project WHERE project_dir LIKE 'many-%'");

# --- pages whose items are as large as they may be
for my $k (1 .. 6) {
	$got = $api->post('/api/projects', { name => sprintf('Q%02d', $k), repository => $repository, envPresets => [map { { key => "K$_", label => 'l',
		type => 'input', description => 'd' x 500, default => 'x' x 4096, pattern => 'x*' } } 1 .. 100] });
	is($got->{status}, 201, "a project of half a megabyte") or diag substr $got->{body}, 0, 300 if $k == 1;
	$got = $api->post('/api/pipelines', { projectId => $got->{json}{id}, name => 'l', steps => [map { { name => "s$_", script => 'x' x 64_000 } } 1 .. 15] });
	is($got->{status}, 201, 'a pipeline of a megabyte') if $k == 1;
}
sub walk {
	my ($path, $limit) = @_;
	my (@seen, $page);
	my $url = "$path?limit=$limit";
	while (defined $url && @seen < 1000) {
		my $got = $api->get($url);
		is($got->{status}, 200, "$url is a page") or return;
		$page = $got->{json}{pagination};
		is($page->{limit}, $limit, 'of the size that was asked for');
		is($got->{headers}{'x-total-count'}, $page->{total}, 'with the count of all');
		push @seen, @{ $got->{json}{data} };
		($url) = ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/;
	}
	is(scalar @seen, $page->{total}, "$path: all are seen");
	my %ids = map { $_->{id} => 1 } @seen;
	is(scalar keys %ids, scalar @seen, 'each once');
	return \@seen;
}
for my $path (qw(/api/projects /api/pipelines /api/steps)) {
	my $all = walk($path, 100);
	is_deeply([map { $_->{id} } @{ walk($path, 4) }], [map { $_->{id} } @$all], "$path: pages of any size show the same") if $path =~ /projects/;
	my ($one) = @$all;
	my %read = %{ $api->get("$path/$one->{id}")->{json} };
	delete $read{workspaceStatus};
	is_deeply($one, \%read, 'an item is what it is alone');
}
for my $version ('--http1.1', '--http2') {
	my (undef, $out) = run_cmd('curl', '-s', $version, '--cacert', $api->cacert, '-H', 'Authorization: Bearer ' . $api->token,
	    $api->url . '/api/pipelines?limit=100');
	my $list = eval { JSON::PP->new->utf8->decode($out) } || {};
	is(scalar @{ $list->{data} || [] }, 7, "$version carries it whole");
	like($out, qr/\}\n\z/, 'to its end');
}
$got = $api->head('/api/pipelines?limit=100');
is("$got->{status} $got->{body}", '200 ', 'HEAD of a large page');
is($got->{headers}{"x-total-count"}, 7, "counts");
is($api->get('/api/pipelines?limit=100&page=2')->{json}{data}[0], undef, 'a page past the end is empty');
is($api->get('/api/projects?limit=100&name=Q')->{json}{pagination}{total}, 6, 'a filter holds');
is(scalar @{ $api->get('/api/projects?limit=100&name=Q')->{json}{data} }, 6, 'for the items, too');

is_deeply([sort $api->workers], \@workers, 'no worker has died of it');
my $peak = 0;
for my $pid (@workers) {
	my ($rss) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	$peak = $rss if $rss > $peak;
}
cmp_ok($peak, '<', 16 * 1024, "none was ever larger than 16 MiB (at most $peak KiB)") if !$sanitized;

done_testing;
