#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Large content: a list may be far larger than the memory that a worker may take;
# it is served all the same, and the worker's memory stays small.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my @workers = $api->workers;
my $project = $api->post('/api/projects',
    { name => 'P', repository => 'https://git.example.org/a/b' })->{json}{id};
my ($got, @ids);

# Fifteen steps of 64,000 bytes each.
for my $k (1 .. 20) {
	$got = $api->post('/api/pipelines', { projectId => $project, name => "p$k",
		steps => [map { { name => "s$_", script => 'x' x 64000 } } 1 .. 15] });
	push @ids, $got->{json}{id};
	is($got->{status}, 201, "pipeline $k of almost a megabyte is created")
	    if $k == 1 || $got->{status} != 201;
}
$got = $api->get('/api/pipelines?limit=100');
is($got->{status}, 200, 'a page of twenty large pipelines returns 200');
is_deeply([map { scalar @{ $_->{steps} } } @{ $got->{json}{data} }], [(15) x 20],
    'a page of large pipelines contains every step');
$got = $api->get('/api/steps?limit=100');
is($got->{status}, 200, 'a page of a hundred large steps returns 200');
is_deeply([map { length $_->{script} } @{ $got->{json}{data} }], [(64000) x 100],
    'a page of large steps contains every script');
is($api->get('/api/pipelines?limit=2')->{status}, 200, 'a page of two large pipelines returns 200');
is($api->get('/api/steps?limit=20')->{status}, 200, 'a page of twenty large steps returns 200');
is(length $api->get("/api/pipelines/$ids[0]")->{json}{steps}[14]{script}, 64000,
    'a large pipeline contains its last script whole');
$got = $api->post('/api/steps', { pipelineId => $ids[0], name => 'more', script => 'x' x 65535 });
is($got->{status}, 201, 'a sixteenth step fits into the size limit of a pipeline');
$got = $api->post('/api/steps', { pipelineId => $ids[0], name => 'more', script => 'x' x 65535 });
is($got->{status}, 422, 'a seventeenth step exceeds the size limit of a pipeline');
like($got->{json}{errors}[0]{detail}, qr/1 MiB/, 'the error names the size limit');
$got = $api->put("/api/steps/$_->{id}", { script => 'y' x 65535 })
    for @{ $api->get("/api/pipelines/$ids[1]")->{json}{steps} };
is($got->{status}, 200, 'every step of a pipeline may grow up to the size limit');
my $bad = join '', map { chr } 1 .. 31;
$got = $api->post('/api/pipelines',
    { projectId => $project, name => 'control', steps => [{ name => 's', script => $bad x 2000 }] });
is($got->{status}, 201, 'a script of control characters, which take six bytes each in JSON, is accepted');
is($api->get("/api/pipelines/$got->{json}{id}")->{status}, 200, 'a script of control characters is returned');
for my $k (1 .. 12) {
	$api->post('/api/projects', { name => "Q$k", repository => 'https://git.example.org/a/b',
		envPresets => [map { { key => "K$_", label => 'l', type => 'input', description => 'd' x 500,
			pattern => 'x' x 500,
			default => 'x' x 500 } } 1 .. 100] });
}
is($api->get('/api/projects?limit=100')->{status}, 200, 'a page of projects with large presets returns 200');
is($api->get('/projects')->{status}, 200, 'the names of projects with large presets return 200');
is_deeply([sort $api->workers], [sort @workers], 'no worker died');
my $peak = peak_memory(@workers);
cmp_ok($peak, '<', 16 * 1024, "no worker takes more than 16 MiB of memory ($peak KiB)");

done_testing;
