#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Large content: what a worker is asked to show may be far more than it may
# hold; it says so, and stays small.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my @workers = $api->workers;
my $project = $api->post('/api/projects', { name => 'P', repository => 'https://git.example.org/a/b' })->{json}{id};
my ($got, @ids);

# Fifteen steps of 64,000 bytes each.
for my $k (1 .. 20) {
	$got = $api->post('/api/pipelines', { projectId => $project, name => "p$k",
		steps => [map { { name => "s$_", script => 'x' x 64000 } } 1 .. 15] });
	push @ids, $got->{json}{id};
	is($got->{status}, 201, "pipeline $k of almost a megabyte") if $k == 1 || $got->{status} != 201;
}
$got = $api->get('/api/pipelines?limit=100');
is($got->{status}, 200, 'twenty of them are one page');
is_deeply([map { scalar @{ $_->{steps} } } @{ $got->{json}{data} }], [(15) x 20], 'with all their steps');
$got = $api->get('/api/steps?limit=100');
is($got->{status}, 200, 'so are a hundred steps');
is_deeply([map { length $_->{script} } @{ $got->{json}{data} }], [(64000) x 100], 'with their scripts');
is($api->get('/api/pipelines?limit=2')->{status}, 200, 'two are not');
is($api->get('/api/steps?limit=20')->{status}, 200, 'nor are twenty steps');
is(length $api->get("/api/pipelines/$ids[0]")->{json}{steps}[14]{script}, 64000, 'one is whole');
$got = $api->post('/api/steps', { pipelineId => $ids[0], name => 'more', script => 'x' x 65535 });
is($got->{status}, 201, 'a sixteenth fits');
$got = $api->post('/api/steps', { pipelineId => $ids[0], name => 'more', script => 'x' x 65535 });
is($got->{status}, 422, 'a seventeenth does not');
like($got->{json}{errors}[0]{detail}, qr/1 MiB/, 'and why');
$got = $api->put("/api/steps/$_->{id}", { script => 'y' x 65535 }) for @{ $api->get("/api/pipelines/$ids[1]")->{json}{steps} };
is($got->{status}, 200, 'all may grow');
my $bad = join '', map { chr } 1 .. 31;
$got = $api->post('/api/pipelines', { projectId => $project, name => 'control', steps => [{ name => 's', script => $bad x 2000 }] });
is($got->{status}, 201, 'control characters, that take six bytes each');
is($api->get("/api/pipelines/$got->{json}{id}")->{status}, 200, 'are shown');
for my $k (1 .. 12) {
	$api->post('/api/projects', { name => "Q$k", repository => 'https://git.example.org/a/b',
		envPresets => [map { { key => "K$_", label => 'l', type => 'input', description => 'd' x 500, pattern => 'x' x 500,
			default => 'x' x 500 } } 1 .. 100] });
}
is($api->get('/api/projects?limit=100')->{status}, 200, 'presets of a hundred kilobytes each');
is($api->get('/projects')->{status}, 200, 'names');
is_deeply([sort $api->workers], [sort @workers], 'no worker has died of it');
my $peak = 0;
for my $pid (@workers) {
	my ($rss) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	$peak = $rss if $rss > $peak;
}
cmp_ok($peak, '<', 16 * 1024, "none was ever larger than 16 MiB (at most $peak KiB)");

done_testing;
