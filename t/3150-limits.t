#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The documented limits fit together: a request within all of them is accepted,
# returned and deployed; a request beyond one is rejected with its name.

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
my $n = 0;

sub project {
	my (%more) = @_;
	$n++;
	return $api->post('/api/projects', { name => "p$n", repository => $repository, %more });
}
# The status of a response, its code and the pointers of its errors.
sub problem_of {
	my ($got) = @_;
	my $j = $got->{json} || {};
	return join ' ', $got->{status}, $j->{code} || '', sort map { $_->{pointer} } @{ $j->{errors} || [] };
}
sub same_workers {
	my ($name) = @_;
	is_deeply([sort $api->workers], \@workers, "no worker died of $name");
	return;
}

# --- presets and options
sub select_presets {
	my ($presets, $options) = @_;
	my @options = map { { label => 'l', value => "v$_" } } 1 .. $options;
	return [map { { key => "K$_", label => 'l', type => 'select', options => \@options } } 1 .. $presets];
}
my $made;
for my $case ([64, 100], [65, 100], [99, 100], [100, 99], [100, 100]) {
	my ($presets, $options) = @$case;
	$made = project(envPresets => select_presets(@$case));
	is($made->{status}, 201, "a project with $presets presets of $options options is created")
	    or diag substr $made->{body}, 0, 300;
	my $got = $api->get("/api/projects/$made->{json}{id}");
	is($got->{status}, 200, "a project with $presets presets of $options options is returned");
	is(scalar map({ @{ $_->{options} } } @{ $got->{json}{envPresets} }), $presets * $options,
	    "a project with $presets presets of $options options contains them all");
	is($api->put("/api/projects/$made->{json}{id}", { description => 'd' })->{status}, 200,
	    "a project with $presets presets of $options options can be changed");
}
same_workers('large presets');
my $id = $made->{json}{id};
my $pipeline = $api->make('/api/pipelines', { projectId => $id, name => 'l',
	steps => [{ name => 's', script => 'true' }] })->{id};
my %deployment = (projectId => $id, branch => 'main');
is($api->post('/api/deployments',
    { %deployment, envVars => { map { ("K$_" => 'v100') } 1 .. 100 } })->{status},
    201, 'a project with 100 presets of 100 options is deployed');
is($api->put("/api/projects/$id",
    { triggers => [map { { branch => "b$_", pipelineId => $pipeline } } 1 .. 100] })
    ->{status}, 200, 'a project with 100 presets of 100 options gets 100 triggers');
is(problem_of(project(envPresets => select_presets(101, 1))), '422 validation_failed /envPresets',
    '101 presets are rejected');
is(problem_of(project(envPresets => select_presets(1, 101))), '422 validation_failed /envPresets/0/options',
    '101 options are rejected');

# --- values, levels and bytes of a body
sub raw { my ($text) = @_; return $api->post('/api/projects', $text) }
my $got = raw('{"x":[' . join(',', (0) x 39_998) . ']}');
is(problem_of($got), '422 validation_failed /name /repository /x', 'a body of 40,000 values is read');
$got = raw('{"x":[' . join(',', (0) x 39_999) . ']}');
is(problem_of($got), '413 payload_too_large', 'a body of 40,001 values is too large');
like($got->{json}{detail}, qr/too many values; the limit is 40000/, 'the error names the limit of values');
my $path = "/api/projects/$id";
$got = $api->put($path, '{"x":[' . join(',', (0) x 39_999) . ']}');
is(problem_of($got), '413 payload_too_large', 'a change with 40,001 values is too large');
$got = raw('{"x":' . '[' x 31 . ']' x 31 . '}');
is(problem_of($got), '422 validation_failed /name /repository /x', 'a body of 32 levels is read');
$got = raw('{"x":' . '[' x 32 . ']' x 32 . '}');
is(problem_of($got), '422 validation_failed ', 'a body of 33 levels is rejected');
like($got->{json}{detail} . $got->{body}, qr/nested too deeply; the limit is 32/,
    'the error names the limit of levels');
for my $more (-1, 0, 1) {
	my $frame = length '{"name":""}';
	$got = raw('{"name":"' . 'x' x ((1 << 20) - $frame + $more) . '"}');
	is(problem_of($got), $more > 0 ? '413 payload_too_large' : '422 validation_failed /name /repository',
	    'a body of 1 MiB ' . ($more > 0 ? 'and one byte is too large' : "and $more bytes is read"));
}
my %variables = map { ("A$_" => '') } 1 .. 1000;
my @triggers = map { { branch => "b$_", pipelineId => $pipeline, envVars => \%variables } } 1 .. 41;
$got = project(triggers => \@triggers);
is(problem_of($got), '413 payload_too_large', 'triggers with more than 40,000 values are too large');
$got = $api->put($path, { triggers => [@triggers[0 .. 38]] });
is(problem_of($got), '200 ', 'triggers with 39,000 values are accepted beside 10,000 options');
is($api->get($path)->{status}, 200, 'a project with 39,000 values in triggers is returned');
is(problem_of($api->put($path, { description => 'both' })), '200 ',
    'the description of a project with 39,000 values in triggers can be changed');
is(problem_of($api->put($path, { envPresets => select_presets(100, 99) })), '200 ',
    'the presets of a project with 39,000 values in triggers can be changed');
is($api->get('/api/projects?limit=100')->{status}, 200, 'a list with large projects is returned');
is(problem_of($api->put($path,
    { triggers => [map { { branch => "b$_", pipelineId => $pipeline } } 1 .. 100] })),
    '200 ', 'the triggers of a project with 39,000 values can be replaced');
same_workers('large bodies');

# --- members, each at its limit
sub preset { return project(envPresets => [{ key => 'K', label => 'l', type => 'input', @_ }]) }
sub step { return $api->post('/api/steps', { pipelineId => $pipeline, name => 's', script => 'true', @_ }) }
my %text = (
	name => [100, '/name', sub { project(name => $_[0]) }],
	description => [500, '/description', sub { project(description => $_[0]) }],
	label => [200, '/envPresets/0/label', sub { preset(label => $_[0]) }],
	key => [128, '/envPresets/0/key', sub { preset(key => $_[0]) }],
	default => [4096, '/envPresets/0/default', sub { preset(default => $_[0]) }],
	'option value' => [4096, '/envPresets/0/options/0/value',
	    sub { preset(type => 'select', options => [{ label => 'l', value => $_[0] }]) }],
	'trigger branch' => [255, '/triggers/0/branch', sub { project(triggers => [{ branch => $_[0] }]) }],
	'step name' => [100, '/name', sub { step(name => $_[0]) }],
	script => [65_535, '/script', sub { step(script => $_[0]) }],
	'token name' => [100, '/name', sub { $api->post('/api/auth/tokens', { name => $_[0] }) }],
	'name of a user' => [200, '/name',
	    sub { $api->post('/api/user', { username => 'u' . ++$n, role => 'viewer', name => $_[0] }) }],
);
for my $what (sort keys %text) {
	my ($limit, $pointer, $send) = @{ $text{$what} };
	for my $more (-1, 0, 1) {
		my $got = $send->('x' x ($limit + $more));
		my @at = map { $_->{pointer} } @{ $got->{json}{errors} || [] };
		my $faulty = grep { $_ eq $pointer } @at;
		my $length = $limit + $more;
		is($faulty ? 1 : 0, $more > 0 ? 1 : 0,
		    "a $what of $length characters " . ($more > 0 ? 'exceeds' : 'keeps') . ' its limit');
		cmp_ok($got->{status}, '<', 500, "a $what of $length characters causes no server error");
	}
}
is(problem_of(step(script => "\x{e9}" x 32_768)), '422 validation_failed /script',
    'the limit of a script counts bytes');
for my $steps (99, 100, 101) {
	$got = $api->post('/api/pipelines', { projectId => $id, name => "n$steps",
		steps => [map { { name => "s$_", script => 'x' } } 1 .. $steps] });
	is(problem_of($got), $steps > 100 ? '422 validation_failed /steps' : '201 ',
	    "a pipeline of $steps steps is " . ($steps > 100 ? 'rejected' : 'created'));
}
$deployment{pipelineId} = $pipeline;
sub deploy {
	my ($variables) = @_;
	return $api->post('/api/deployments', { %deployment, envVars => $variables });
}
for my $count (999, 1000, 1001) {
	$got = deploy({ map { ("A$_" => '') } 1 .. $count });
	is(problem_of($got), $count > 1000 ? '422 validation_failed /envVars' : '201 ',
	    "a deployment with $count variables is " . ($count > 1000 ? 'rejected' : 'created'));
}
for my $more (-1, 0, 1) {
	my $done = $more > 0 ? 'rejected' : 'accepted';
	$got = deploy({ A => 'x' x (65_536 + $more) });
	is(problem_of($got), $more > 0 ? '422 validation_failed /envVars/A' : '201 ',
	    'a variable of ' . (65_536 + $more) . " bytes is $done");
	my $rest = 512 * 1024 - 8 * (1 + 2 + 60_000) - 3; # names, values, and two for each
	$got = deploy({ (map { ($_ => 'x' x 60_000) } 'A' .. 'H'), I => 'x' x ($rest + $more) });
	is(problem_of($got), $more > 0 ? '422 validation_failed /envVars' : '201 ',
	    "512 KiB of variables and $more bytes are $done");
}
same_workers('large members');

# --- presets and triggers share 1 MiB
my %wide = (label => 'l', type => 'input', description => 'd' x 500, pattern => 'x' x 500,
    default => 'x' x 500);
$got = project(envPresets => [map { { %wide, key => "K$_" } } 1 .. 100]);
is($got->{status}, 201, 'a project with large presets is created');
my $large = "/api/projects/$got->{json}{id}";
my $own = $api->post('/api/pipelines', { projectId => $got->{json}{id}, name => 'l' })->{json}{id};
my %value = (A => 'x' x 60_000);
$got = $api->put($large,
    { triggers => [map { { branch => "b$_", pipelineId => $own, envVars => \%value } } 1 .. 16] });
is($got->{status}, 422, 'triggers of almost a megabyte beside large presets are rejected');
like($got->{body}, qr/envPresets and triggers together must have at most 1 MiB/,
    'the error names the limit that presets and triggers share');
is($api->get($large)->{status}, 200, 'the project with large presets is returned after the rejected change');

# --- more errors than are listed
$got = raw(Cpanel::JSON::XS->new->utf8->encode({ map { ("unknown$_" => 1) } 1 .. 150 }));
is(scalar @{ $got->{json}{errors} }, 100, 'a response lists at most a hundred errors');
like($got->{json}{detail}, qr/152 errors.*first 100/, 'a response counts all errors');
same_workers('many errors');
my $peak = peak_memory(@workers);
cmp_ok($peak, '<', 16 * 1024, "no worker takes more than 16 MiB of memory ($peak KiB)") if !sanitized();

done_testing;
