#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pipelines and their steps over REST. The positions of steps have no gaps, even
# after simultaneous changes.

use strict;
use warnings;
use Slipway::API qw(outcome pointers);
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $n = 0;
my $got;
my @projects = map { $api->post('/api/projects',
    { name => "P$_", repository => 'https://git.example.org/a/b' })->{json}{id} } 1, 2;

sub body { my (%more) = @_; $n++; return { projectId => $projects[0], name => "Pipeline $n", %more } }
sub step { my ($name, %more) = @_; return { name => $name, script => "echo $name", %more } }

# The names of the steps in their order; positions must have no gaps.
sub order {
	my ($pipeline) = @_;
	my $steps = $api->get("/api/pipelines/$pipeline")->{json}{steps};
	my $i = 0;
	for (@$steps) { return "gap at $_->{name}: $_->{position}" if $_->{position} != $i++ }
	return join ' ', map { $_->{name} } @$steps;
}

# --- pipelines
$got = $api->post('/api/pipelines', body(description => 'd', timeoutSeconds => 60,
	steps => [step('a', directory => 'web/app'), step('b', runWhen => 'failure', timeoutSeconds => 5),
		step('c', runWhen => 'always', mayFail => \1)]));
is($got->{status}, 201, 'a pipeline with steps is created') or diag $got->{body};
my $pipe = $got->{json};
is($got->{headers}{location}, "/api/pipelines/$pipe->{id}", 'Location is the path of the new pipeline');
is($api->get("/api/pipelines/$pipe->{id}")->{body}, $got->{body}, 'GET returns what POST returned');
is(order($pipe->{id}), 'a b c', 'a pipeline has its steps in their order');
is_deeply([map { $_->{runWhen} } @{ $pipe->{steps} }], [qw(success failure always)],
    'a step has its runWhen');
is_deeply([map { $_->{mayFail} ? 1 : 0 } @{ $pipe->{steps} }], [0, 0, 1],
    'a step may not fail unless its mayFail says so');
is_deeply([map { $_->{timeoutSeconds} } @{ $pipe->{steps} }], [undef, 5, undef],
    'a step has its timeoutSeconds');
is_deeply([map { $_->{directory} } @{ $pipe->{steps} }], ['web/app', undef, undef],
    'a step has its directory');
$got = $api->post('/api/pipelines', body());
is($got->{status}, 201, 'a pipeline without steps is created');
is_deeply([@{ $got->{json} }{qw(description timeoutSeconds checkout steps)}], [undef, undef, 'fresh', []],
    'omitted members of a pipeline have their defaults');
for my $case (
	[{}, '/projectId /name', 'an empty body'],
	[body(projectId => 77777), '/projectId', 'an unknown project'],
	[body(projectId => '1'), '/projectId', 'a string for a number'],
	[body(projectId => 0), '/projectId', 'project 0'],
	[body(name => ''), '/name', 'an empty name'],
	[body(name => 'x' x 101), '/name', 'a long name'],
	[body(timeoutSeconds => 0), '/timeoutSeconds', 'a time limit of zero'],
	[body(timeoutSeconds => 1.5), '/timeoutSeconds', 'a time limit with a fraction'],
	[body(timeoutSeconds => 99999999), '/timeoutSeconds', 'a time limit of three years'],
	[body(checkout => 'shallow'), '/checkout', 'an unknown checkout'],
	[body(steps => {}), '/steps', 'an object for steps'],
	[body(steps => [1]), '/steps/0', 'a number for a step'],
	[body(steps => [{}]), '/steps/0/name /steps/0/script', 'an empty step'],
	[body(steps => [step('a'), step('b', script => '')]), '/steps/1/script', 'an empty script'],
	[body(steps => [step('a', runWhen => 'never')]), '/steps/0/runWhen', 'an unknown runWhen'],
	[body(steps => [step('a', mayFail => 'yes')]), '/steps/0/mayFail', 'a string for mayFail'],
	[body(steps => [step('a', position => 3)]), '/steps/0/position', 'a position in a list of steps'],
	[body(steps => [step('a', script => 'x' x 65536)]), '/steps/0/script', 'a long script'],
	[body(steps => [step('a', script => "\x{20ac}" x 22000)]), '/steps/0/script',
	    'a script of few characters, but many bytes'],
	[body(steps => [map { step("s$_") } 1 .. 101]), '/steps', 'a list of 101 steps'],
	[body(env => 1), '/env', 'an unknown member'],
	[body(steps => [step('a', id => 5)]), '/steps/0/id', 'an id'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/pipelines', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is rejected") or diag $got->{body};
}
is($api->get('/api/pipelines')->{json}{pagination}{total}, 2, 'rejected requests create no pipeline');
$got = $api->post('/api/pipelines', body(name => $pipe->{name}));
is(outcome($got), '409 /name', 'a name in use in the project is a conflict');
is($api->post('/api/pipelines', body(name => $pipe->{name}, projectId => $projects[1]))->{status}, 201,
    'a name in use in another project is free');
my $path = "/api/pipelines/$pipe->{id}";
$got = $api->put($path, { description => undef, timeoutSeconds => undef, name => 'renamed' });
is($got->{status}, 200, 'PUT changes a pipeline');
is_deeply([@{ $got->{json} }{qw(name description timeoutSeconds)}], ['renamed', undef, undef],
    'PUT returns the changed members');
is(scalar @{ $got->{json}{steps} }, 3, 'PUT keeps the steps');
$got = $api->put($path, { steps => [] });
is(outcome($got), '422 /steps', 'PUT of a pipeline rejects steps');
$got = $api->put($path, { projectId => $projects[1] });
is(outcome($got), '422 /projectId', 'PUT of a pipeline rejects another project');
$got = $api->put($path, { name => 'Pipeline 2' . 'x' });
is($got->{status}, 200, 'PUT renames a pipeline');
my $pipelines = $api->get("/api/pipelines?projectId=$projects[0]")->{json}{data};
my ($other) = grep { $_->{id} != $pipe->{id} } @$pipelines;
$got = $api->put($path, { name => $other->{name} });
is(outcome($got), '409 /name', 'a change to a name in use is a conflict');
is($api->put('/api/pipelines/77777', {})->{status}, 404, 'a change of an unknown pipeline returns 404');

# --- lists
$got = $api->get("/api/pipelines?projectId=$projects[1]")->{json};
is_deeply([map { $_->{projectId} } @{ $got->{data} }], [$projects[1]],
    'a list of pipelines can be filtered by project');
is($api->get('/api/pipelines?projectId=77777')->{json}{pagination}{total}, 0,
    'the list of an unknown project is empty');
my ($listed) = grep { $_->{id} == $pipe->{id} } @{ $api->get('/api/pipelines')->{json}{data} };
is(scalar @{ $listed->{steps} }, 3, 'a list of pipelines contains their steps');
is(scalar @{ $api->get('/api/pipelines?limit=1&page=2')->{json}{data} }, 1, 'a list of pipelines has pages');

# --- steps
$got = $api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('d') } });
is($got->{status}, 201, 'a step is created') or diag $got->{body};
is($got->{headers}{location}, "/api/steps/$got->{json}{id}", 'Location is the path of the new step');
is($api->get("/api/steps/$got->{json}{id}")->{body}, $got->{body}, 'GET returns what POST returned');
is_deeply([@{ $got->{json} }{qw(position runWhen timeoutSeconds)}], [3, 'success', undef],
    'a new step is the last and has the defaults');
my $d = $got->{json}{id};
is(order($pipe->{id}), 'a b c d', 'a step without a position is added at the end');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('e', position => 0) } });
is(order($pipe->{id}), 'e a b c d', 'a step is inserted at the beginning');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('f', position => 2) } });
is(order($pipe->{id}), 'e a f b c d', 'a step is inserted between others');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('g', position => 99) } });
is(order($pipe->{id}), 'e a f b c d g', 'a step with a position past the end is added at the end');
for my $case ([0, 'd e a f b c g'], [6, 'e a f b c g d'], [3, 'e a f d b c g'], [3, 'e a f d b c g'],
    [99, 'e a f b c g d'], [4, 'e a f b d c g']) {
	my ($position, $want) = @$case;
	is($api->put("/api/steps/$d", { position => $position })->{status}, 200,
	    "a step can be moved to position $position");
	is(order($pipe->{id}), $want, "moving a step to position $position yields the order $want");
}
# The tag of a step changes exactly if the step itself is moved or changed.
my %id = map { $_->{name} => $_->{id} } @{ $api->get($path)->{json}{steps} };
my @names = qw(e a f b d c g);
sub tags {
	return map { my $got = $api->get("/api/steps/$id{$_}");
		($_ => [$got->{headers}{etag}, $got->{json}{updatedAt}]) } @names;
}
for my $case (['d', { position => 2 }, 'f b d'], ['d', { position => 4 }, 'f b d'],
    ['d', { position => 4 }, ''],
    ['f', { name => 'f' }, ''], ['f', { script => 'true' }, 'f']) {
	my ($name, $body, $want) = @$case;
	my %was = tags();
	$api->put("/api/steps/$id{$name}", $body);
	my %is = tags();
	my ($member) = keys %$body;
	my $change = "changing $member of step $name";
	is(join(' ', grep { $was{$_}[0] ne $is{$_}[0] } @names), $want,
	    "$change changes the tags of exactly these steps: '$want'");
	is(join(' ', grep { $was{$_}[1] ne $is{$_}[1] } @names), $want,
	    "$change changes the times of exactly these steps: '$want'");
	my ($version) = $was{$name}[0] =~ /(\d+)-/;
	my $next = $version + ($want ne '' ? 1 : 0);
	like($is{$name}[0], qr/^"$next-/, "$change counts as " . ($want ne '' ? 'one change' : 'no change'));
}
my $etag = $api->get($path)->{headers}{etag};
is($api->put("/api/steps/$d", { name => 'dd' })->{json}{position}, 4, 'renaming a step does not move it');
isnt($api->get($path)->{headers}{etag}, $etag, 'renaming a step changes the ETag of its pipeline');
is($api->put($path, {}, { 'If-Match' => $etag })->{status}, 412,
    'a change of the pipeline with its previous tag returns 412');
my $before = $api->get("/api/steps/$d");
is($api->delete("/api/steps/$d", { 'If-Match' => '"1-0000000000000000"' })->{status}, 412,
    'a deletion of a step with another tag returns 412');
is($api->delete("/api/steps/$d", { 'If-Match' => $before->{headers}{etag} })->{status}, 204,
    'a step is deleted');
is(order($pipe->{id}), 'e a f b c g', 'deleting a step closes the gap');
is($api->get("/api/steps/$d")->{status}, 404, 'a deleted step returns 404');
is($api->put("/api/steps/$d", {})->{status}, 404, 'a change of a deleted step returns 404');
is($api->delete("/api/steps/$d")->{status}, 404, 'a second deletion of a step returns 404');
my $a = (grep { $_->{name} eq 'a' } @{ $api->get($path)->{json}{steps} })[0]{id};
for my $case (
	[{}, '/pipelineId /name /script', 'an empty step'],
	[{ pipelineId => 77777, %{ step('x') } }, '/pipelineId', 'an unknown pipeline'],
	[{ pipelineId => $pipe->{id}, %{ step('x', position => -1) } }, '/position', 'a negative position'],
	[{ pipelineId => $pipe->{id}, %{ step('x', position => 'last') } }, '/position',
		'a string for a position'],
	[{ pipelineId => $pipe->{id}, %{ step('x', valid => 0) } }, '/valid', 'a value for valid'],
	[{ pipelineId => $pipe->{id}, %{ step("x\ty") } }, '/name', 'a tab in a name'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/steps', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is rejected") or diag $got->{body};
}
for my $case ([{ script => undef }, '/script'], [{ pipelineId => $other->{id} }, '/pipelineId'],
	[{ runWhen => 'x' }, '/runWhen'], [{ timeoutSeconds => -5 }, '/timeoutSeconds'],
	[{ createdAt => '2026-01-01T00:00:00Z' }, '/createdAt'],
	map { [{ directory => $_ }, '/directory'] } '', '.', '..', '/', '/etc', 'a/', 'a//b', './a', 'a/.',
	    '../a', 'a/../b', 'a/..', "a\tb", "a\nb", "a\x{7f}", 'x' x 256, 1, ['a']) {
	$got = $api->put("/api/steps/$a", $case->[0]);
	is(outcome($got), "422 $case->[1]", "an invalid change of $case->[1] is rejected");
}
is($api->request('POST', '/api/steps', '{"pipelineId":' . $pipe->{id} . ',"name":"nul","script":"a\u0000b"}',
    { 'Content-Type' => 'application/json' })->{status}, 422, 'a script with a NUL is rejected');
for my $directory ('a', 'web/app', '.config', '...', '..a', 'a/.b/c..', "\x{e4}/b c", '-x', '$HOME',
	join('/', ('x') x 128)) {
	(my $name = substr $directory, 0, 20) =~ s/[^ -~]/?/g;
	is($api->put("/api/steps/$a", { directory => $directory })->{json}{directory}, $directory,
	    "the directory $name is accepted");
}
is($api->request('PUT', "/api/steps/$a", '{"directory":"a\u0000b"}',
    { 'Content-Type' => 'application/json' })->{status}, 422, 'a directory with a NUL is rejected');
is($api->put("/api/steps/$a", { script => 'true' })->{json}{directory}, join('/', ('x') x 128),
    'a change of another member leaves the directory');
is($api->put("/api/steps/$a", { directory => undef })->{json}{directory}, undef,
    'null clears the directory');
my $script = "#!/bin/bash\nprintf '%s\\t' \"\$A\" <<'X'\n\x{1f680} \\ \r\nX\n" . join '', map { chr } 1 .. 31;
$got = $api->put("/api/steps/$a", { script => $script });
is($got->{status}, 200, 'a script of unusual characters is accepted');
is($api->get("/api/steps/$a")->{json}{script}, $script,
    'a script of unusual characters is returned unchanged');
is($api->put("/api/steps/$a", { script => 'x' x 65535 })->{status}, 200,
    'a script of 65535 bytes is accepted');
$got = $api->get("/api/steps?pipelineId=$pipe->{id}&limit=3");
is(join(' ', map { $_->{name} } @{ $got->{json}{data} }), 'e a f', 'steps are listed by position');
is($got->{json}{pagination}{total}, 6, 'a list of steps counts them');
is($api->get('/api/steps?pipelineId=77777')->{json}{pagination}{total}, 0,
    'the list of steps of an unknown pipeline is empty');

# --- several clients at once
# Adds and moves eight steps and deletes every fourth; how many requests fail.
sub work_on_steps {
	my ($k) = @_;
	my $bad = 0;
	for my $i (1 .. 8) {
		my $new = $api->post('/api/steps',
		    { pipelineId => $other->{id}, %{ step("k$k.$i", position => $i % 3) } });
		$bad++ if $new->{status} != 201;
		my $path = "/api/steps/$new->{json}{id}";
		$bad++ if $api->put($path, { position => ($k * $i) % 7 })->{status} != 200;
		$bad++ if $i % 4 == 0 && $api->delete($path)->{status} != 204;
	}
	return $bad;
}
my @runs = map { my $k = $_; background(sub { delete $api->{http}; return work_on_steps($k) }) } 1 .. 6;
is(join(' ', map { $_->result } @runs), '0 0 0 0 0 0', 'six clients add, move and delete steps at once');
is(scalar(split ' ', order($other->{id})), 6 * 6,
    'after simultaneous changes every step has its own position, without gaps');

# --- deleting
is($api->delete($path, { 'If-Match' => 'x' })->{status}, 400,
    'a deletion with an invalid If-Match returns 400');
is($api->delete($path)->{status}, 204, 'a pipeline is deleted');
is($api->get($path)->{status}, 404, 'a deleted pipeline returns 404');
is($api->get("/api/steps/$a")->{status}, 404, 'a step of a deleted pipeline returns 404');
is($api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('x') } })->{status}, 422,
    'a deleted pipeline accepts no step');
is($api->post('/api/pipelines', body(name => 'Pipeline 2x'))->{status}, 201,
    'the name of a deleted pipeline is free');

# --- a name that another client takes at the same time
my $busy = $api->make('/api/projects', { name => 'Busy', repository => 'https://git.example.org/a/b' })->{id};
$api->post('/api/pipelines', body(projectId => $busy, name => 'first', steps => [step('s')]));
my $first = $db->session;
$first->("START TRANSACTION; INSERT INTO pipeline (project_id, name) VALUES ($busy, 'Twin')");
my $uncommitted = 'SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;'
    . " SELECT COUNT(*) FROM pipeline WHERE project_id = $busy";
ok(poll(10, sub { $db->sql($uncommitted) == 2 }), 'a first client inserts a pipeline');
my $twin = background(sub {
	delete $api->{http};
	return outcome($api->post('/api/pipelines', body(projectId => $busy, name => 'twin')));
});
ok(poll(60, sub { runs('INSERT INTO pipeline') }), 'a second client inserts a pipeline of the same name');
is($api->post('/api/pipelines', body(projectId => $busy, name => 'unlike'))->{status}, 201,
    'a pipeline of another name is created meanwhile');
$first->('COMMIT');
is($twin->result, '409 /name', 'the second client gets a conflict once the first commits');

# --- a step that is added while its project is deleted
my $doomed = $api->make('/api/projects',
    { name => 'Doomed', repository => 'https://git.example.org/a/b' })->{id};
my $last = $api->make('/api/pipelines', body(projectId => $doomed))->{id};
my $adds = $db->session;
$adds->("SET tx_isolation = 'READ-COMMITTED'");
$adds->("START TRANSACTION; SELECT id FROM pipeline WHERE id = $last FOR UPDATE");
# Whether a statement that begins so is running.
sub runs { return $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '$_[0]%'") }
ok(poll(10, sub { !eval { $db->sql("SELECT id FROM pipeline WHERE id = $last FOR UPDATE NOWAIT"); 1 } }),
    'a client adds a step');
my $deletes = background(sub { delete $api->{http}; return $api->delete("/api/projects/$doomed")->{status} });
ok(poll(60, sub { runs('UPDATE') }), 'another client deletes the project meanwhile');
$adds->("INSERT INTO step (pipeline_id, name, script, position) VALUES ($last, 's', 'true', 0); COMMIT");
is($deletes->result, 204, 'the project is deleted');
is($db->sql("SELECT COUNT(*) FROM step WHERE pipeline_id = $last AND valid = 1"), 0,
    'the step is deleted with its project');
done_testing;
