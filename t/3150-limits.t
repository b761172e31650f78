#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The documented limits fit together: what keeps each of them is taken, shown
# and deployed; what exceeds one is told which.

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
my $n = 0;

sub project {
	my (%more) = @_;
	$n++;
	return $api->post('/api/projects', { name => "p$n", repository => $repository, %more });
}
sub told {
	my ($got) = @_;
	my $j = $got->{json} || {};
	return join ' ', $got->{status}, $j->{code} || '', sort map { $_->{pointer} } @{ $j->{errors} || [] };
}
sub same_workers {
	my ($name) = @_;
	is_deeply([sort $api->workers], \@workers, "$name: no worker has died of it");
	return;
}

# --- presets and options
sub select_presets {
	my ($presets, $options) = @_;
	return [map { { key => "K$_", label => 'l', type => 'select', options => [map { { label => 'l', value => "v$_" } } 1 .. $options] } } 1 .. $presets];
}
my $made;
for my $case ([64, 100], [65, 100], [99, 100], [100, 99], [100, 100]) {
	my ($presets, $options) = @$case;
	$made = project(envPresets => select_presets(@$case));
	is($made->{status}, 201, "$presets presets of $options options are taken") or diag substr $made->{body}, 0, 300;
	my $got = $api->get("/api/projects/$made->{json}{id}");
	is($got->{status}, 200, '  and shown');
	is(scalar map({ @{ $_->{options} } } @{ $got->{json}{envPresets} }), $presets * $options, '  all of them');
	is($api->put("/api/projects/$made->{json}{id}", { description => 'd' })->{status}, 200, '  the project can be changed');
}
same_workers('presets');
my $pipeline = $api->post('/api/pipelines', { projectId => $made->{json}{id}, name => 'l', steps => [{ name => 's', script => 'true' }] })->{json}{id};
is($api->post('/api/deployments', { projectId => $made->{json}{id}, branch => 'main', envVars => { map { ("K$_" => 'v100') } 1 .. 100 } })->{status},
    201, 'such a project is deployed');
is($api->put("/api/projects/$made->{json}{id}", { triggers => [map { { branch => "b$_", pipelineId => $pipeline } } 1 .. 100] })->{status}, 200,
    'and has a hundred triggers');
is(told(project(envPresets => select_presets(101, 1))), '422 validation_failed /envPresets', '101 presets are too many');
is(told(project(envPresets => select_presets(1, 101))), '422 validation_failed /envPresets/0/options', 'so are 101 options');

# --- values, levels and bytes of a body
sub raw { my ($text) = @_; return $api->post('/api/projects', $text) }
my $got = raw('{"x":[' . join(',', (0) x 39_998) . ']}');
is(told($got), '422 validation_failed /name /repository /x', 'a body of 40,000 values is read');
$got = raw('{"x":[' . join(',', (0) x 39_999) . ']}');
is(told($got), '413 payload_too_large', 'one more is a limit');
like($got->{json}{detail}, qr/too many values; the limit is 40000/, 'which is named');
my $path = "/api/projects/$made->{json}{id}";
$got = $api->put($path, '{"x":[' . join(',', (0) x 39_999) . ']}');
is(told($got), '413 payload_too_large', 'the same of a change');
$got = raw('{"x":' . '[' x 31 . ']' x 31 . '}');
is(told($got), '422 validation_failed /name /repository /x', '32 levels are read');
$got = raw('{"x":' . '[' x 32 . ']' x 32 . '}');
is(told($got), '422 validation_failed ', '33 are a limit');
like($got->{json}{detail} . $got->{body}, qr/nested too deeply; the limit is 32/, 'which is named');
for my $more (-1, 0, 1) {
	my $frame = length '{"name":""}';
	$got = raw('{"name":"' . 'x' x ((1 << 20) - $frame + $more) . '"}');
	is(told($got), $more > 0 ? '413 payload_too_large' : '422 validation_failed /name /repository', "a body of 1 MiB and $more");
}
$got = project(triggers => [map { { branch => "b$_", pipelineId => $pipeline, envVars => { map { ("A$_" => '') } 1 .. 1000 } } } 1 .. 41]);
is(told($got), '413 payload_too_large', 'triggers with more values than a body has');
$got = $api->put($path, { triggers => [map { { branch => "b$_", pipelineId => $pipeline, envVars => { map { ("A$_" => '') } 1 .. 1000 } } } 1 .. 39] });
is(told($got), '200 ', 'almost as many are taken, beside all the options');
is($api->get($path)->{status}, 200, '  and shown');
is(told($api->put($path, { description => 'both' })), '200 ', '  and the project can be changed');
is(told($api->put($path, { envPresets => select_presets(100, 99) })), '200 ', '  the presets, too');
is($api->get('/api/projects?limit=100')->{status}, 200, '  and listed');
is(told($api->put($path, { triggers => [map { { branch => "b$_", pipelineId => $pipeline } } 1 .. 100] })), '200 ', '  and relieved of them');
same_workers('bodies');

# --- members, each at its limit
my %text = (
	name => [100, '/name', sub { project(name => $_[0]) }],
	description => [500, '/description', sub { project(description => $_[0]) }],
	label => [200, '/envPresets/0/label', sub { project(envPresets => [{ key => 'K', label => $_[0], type => 'input' }]) }],
	key => [128, '/envPresets/0/key', sub { project(envPresets => [{ key => $_[0], label => 'l', type => 'input' }]) }],
	default => [4096, '/envPresets/0/default', sub { project(envPresets => [{ key => 'K', label => 'l', type => 'input', default => $_[0] }]) }],
	'option value' => [4096, '/envPresets/0/options/0/value', sub { project(envPresets => [{ key => 'K', label => 'l', type => 'select',
	    options => [{ label => 'l', value => $_[0] }] }]) }],
	'trigger branch' => [255, '/triggers/0/branch', sub { project(triggers => [{ branch => $_[0] }]) }],
	'step name' => [100, '/name', sub { $api->post('/api/steps', { pipelineId => $pipeline, name => $_[0], script => 'true' }) }],
	script => [65_535, '/script', sub { $api->post('/api/steps', { pipelineId => $pipeline, name => 's', script => $_[0] }) }],
	'token name' => [100, '/name', sub { $api->post('/api/auth/tokens', { name => $_[0] }) }],
	'name of a user' => [200, '/name', sub { $api->post('/api/user', { username => 'u' . ++$n, role => 'viewer', name => $_[0] }) }],
);
for my $what (sort keys %text) {
	my ($limit, $pointer, $send) = @{ $text{$what} };
	for my $more (-1, 0, 1) {
		my $got = $send->('x' x ($limit + $more));
		my @at = map { $_->{pointer} } @{ $got->{json}{errors} || [] };
		my $faulty = grep { $_ eq $pointer } @at;
		is($faulty ? 1 : 0, $more > 0 ? 1 : 0, "a $what of $limit and $more: $got->{status} @at");
		cmp_ok($got->{status}, '<', 500, '  is no failure of the service');
	}
}
is(told($api->post('/api/steps', { pipelineId => $pipeline, name => 's', script => "\x{e9}" x 32_768 })), '422 validation_failed /script',
    'a script is counted in bytes');
for my $steps (99, 100, 101) {
	$got = $api->post('/api/pipelines', { projectId => $made->{json}{id}, name => "n$steps", steps => [map { { name => "s$_", script => 'x' } } 1 .. $steps] });
	is(told($got), $steps > 100 ? '422 validation_failed /steps' : '201 ', "$steps steps");
}
for my $count (999, 1000, 1001) {
	$got = $api->post('/api/deployments', { projectId => $made->{json}{id}, pipelineId => $pipeline, branch => 'main', envVars => { map { ("A$_" => '') } 1 .. $count } });
	is(told($got), $count > 1000 ? '422 validation_failed /envVars' : '201 ', "$count variables");
}
for my $more (-1, 0, 1) {
	$got = $api->post('/api/deployments', { projectId => $made->{json}{id}, pipelineId => $pipeline, branch => 'main', envVars => { A => 'x' x (65_536 + $more) } });
	is(told($got), $more > 0 ? '422 validation_failed /envVars/A' : '201 ', "a value of 64 KiB and $more");
	my $rest = 512 * 1024 - 8 * (1 + 2 + 60_000) - 3; # names, values, and two for each
	$got = $api->post('/api/deployments', { projectId => $made->{json}{id}, pipelineId => $pipeline, branch => 'main',
		envVars => { (map { ($_ => 'x' x 60_000) } 'A' .. 'H'), I => 'x' x ($rest + $more) } });
	is(told($got), $more > 0 ? '422 validation_failed /envVars' : '201 ', "512 KiB of variables and $more");
}
same_workers('members');

# --- presets and triggers share 1 MiB, whichever comes last
my %wide = (key => 'K', label => 'l', type => 'input', description => 'd' x 500, pattern => 'x' x 500, default => '');
$got = project(envPresets => [map { { %wide, key => "K$_", default => "\x{1}" x 0 . 'x' x 500 } } 1 .. 100]);
is($got->{status}, 201, 'a project with large presets');
my $large = "/api/projects/$got->{json}{id}";
my $own = $api->post('/api/pipelines', { projectId => $got->{json}{id}, name => 'l' })->{json}{id};
$got = $api->put($large, { triggers => [map { { branch => "b$_", pipelineId => $own, envVars => { A => 'x' x 60_000 } } } 1 .. 16] });
is($got->{status}, 422, 'triggers of almost a megabyte beside them');
like($got->{body}, qr/envPresets and triggers together must have at most 1 MiB/, 'say which limit');
is($api->get($large)->{status}, 200, 'and the project is as before');

# --- faults past those that are listed
$got = raw(JSON::PP->new->utf8->encode({ map { ("unknown$_" => 1) } 1 .. 150 }));
is(scalar @{ $got->{json}{errors} }, 100, 'a hundred faults are listed');
like($got->{json}{detail}, qr/152 faults.*first 100/, 'and all are counted');
same_workers('all');
my $peak = 0;
for my $pid (@workers) {
	my ($rss) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	$peak = $rss if $rss > $peak;
}
cmp_ok($peak, '<', 16 * 1024, "none was ever larger than 16 MiB (at most $peak KiB)") if !$sanitized;

done_testing;
