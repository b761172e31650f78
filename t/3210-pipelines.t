#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pipelines and their steps over REST; the order of steps has no gaps, whatever
# is done to it and by how many at once.

use strict;
use warnings;
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $n = 0;
my $got;
my @projects = map { $api->post('/api/projects', { name => "P$_", repository => 'https://git.example.org/a/b' })->{json}{id} } 1, 2;

sub body { my (%more) = @_; $n++; return { projectId => $projects[0], name => "Pipeline $n", %more } }
sub pointers { my ($got) = @_; return join ' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] } }
sub step { my ($name, %more) = @_; return { name => $name, script => "echo $name", %more } }

# Names in their order, after a look at the positions.
sub order {
	my ($pipeline) = @_;
	my $steps = $api->get("/api/pipelines/$pipeline")->{json}{steps};
	my $i = 0;
	for (@$steps) { return "gap at $_->{name}: $_->{position}" if $_->{position} != $i++ }
	return join ' ', map { $_->{name} } @$steps;
}

# --- pipelines
$got = $api->post('/api/pipelines', body(description => 'd', timeoutSeconds => 60,
	steps => [step('a'), step('b', runWhen => 'failure', timeoutSeconds => 5), step('c', runWhen => 'always')]));
is($got->{status}, 201, 'a pipeline with steps') or diag $got->{body};
my $pipe = $got->{json};
is($got->{headers}{location}, "/api/pipelines/$pipe->{id}", 'Location');
is($api->get("/api/pipelines/$pipe->{id}")->{body}, $got->{body}, 'reading gives the same');
is(order($pipe->{id}), 'a b c', 'its steps in their order');
is_deeply([map { $_->{runWhen} } @{ $pipe->{steps} }], [qw(success failure always)], 'with when they run');
is_deeply([map { $_->{timeoutSeconds} } @{ $pipe->{steps} }], [undef, 5, undef], 'and for how long');
$got = $api->post('/api/pipelines', body());
is($got->{status}, 201, 'a pipeline without steps');
is_deeply([@{ $got->{json} }{qw(description timeoutSeconds steps)}], [undef, undef, []], 'has what was left out');
for my $case (
	[{}, '/projectId /name', 'nothing'], [body(projectId => 77777), '/projectId', 'a project that is not there'],
	[body(projectId => '1'), '/projectId', 'a text for a number'], [body(projectId => 0), '/projectId', 'project 0'],
	[body(name => ''), '/name', 'no name'], [body(name => 'x' x 101), '/name', 'a long name'],
	[body(timeoutSeconds => 0), '/timeoutSeconds', 'no time at all'], [body(timeoutSeconds => 1.5), '/timeoutSeconds', 'half a second'],
	[body(timeoutSeconds => 99999999), '/timeoutSeconds', 'three years'], [body(steps => {}), '/steps', 'an object for steps'],
	[body(steps => [1]), '/steps/0', 'a number for a step'], [body(steps => [{}]), '/steps/0/name /steps/0/script', 'an empty step'],
	[body(steps => [step('a'), step('b', script => '')]), '/steps/1/script', 'an empty script'],
	[body(steps => [step('a', runWhen => 'never')]), '/steps/0/runWhen', 'an unknown time to run'],
	[body(steps => [step('a', position => 3)]), '/steps/0/position', 'a position: the order says it'],
	[body(steps => [step('a', script => 'x' x 65536)]), '/steps/0/script', 'a long script'],
	[body(steps => [step('a', script => "\x{20ac}" x 22000)]), '/steps/0/script', 'a script of few characters, but many bytes'],
	[body(steps => [map { step("s$_") } 1 .. 101]), '/steps', 'a hundred and one steps'], [body(env => 1), '/env', 'an unknown member'],
	[body(steps => [step('a', id => 5)]), '/steps/0/id', 'an id'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/pipelines', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is refused") or diag $got->{body};
}
is($api->get('/api/pipelines')->{json}{pagination}{total}, 2, 'none of these left a thing behind');
$got = $api->post('/api/pipelines', body(name => $pipe->{name}));
is("$got->{status} " . pointers($got), '409 /name', 'a name twice in a project');
is($api->post('/api/pipelines', body(name => $pipe->{name}, projectId => $projects[1]))->{status}, 201, 'but not in another');
my $path = "/api/pipelines/$pipe->{id}";
$got = $api->put($path, { description => undef, timeoutSeconds => undef, name => 'renamed' });
is($got->{status}, 200, 'changed');
is_deeply([@{ $got->{json} }{qw(name description timeoutSeconds)}], ['renamed', undef, undef], 'as asked');
is(scalar @{ $got->{json}{steps} }, 3, 'the steps stay');
$got = $api->put($path, { steps => [] });
is("$got->{status} " . pointers($got), '422 /steps', 'steps are changed elsewhere');
$got = $api->put($path, { projectId => $projects[1] });
is("$got->{status} " . pointers($got), '422 /projectId', 'a pipeline stays with its project');
$got = $api->put($path, { name => 'Pipeline 2' . 'x' });
is($got->{status}, 200, 'another name');
my ($other) = grep { $_->{id} != $pipe->{id} } @{ $api->get("/api/pipelines?projectId=$projects[0]")->{json}{data} };
$got = $api->put($path, { name => $other->{name} });
is("$got->{status} " . pointers($got), '409 /name', 'a taken one is refused');
is($api->put('/api/pipelines/77777', {})->{status}, 404, 'one that is not there');

# --- lists
$got = $api->get("/api/pipelines?projectId=$projects[1]")->{json};
is_deeply([map { $_->{projectId} } @{ $got->{data} }], [$projects[1]], 'those of a project');
is($api->get('/api/pipelines?projectId=77777')->{json}{pagination}{total}, 0, 'of none');
is(scalar @{ (grep { $_->{id} == $pipe->{id} } @{ $api->get('/api/pipelines')->{json}{data} })[0]{steps} }, 3, 'with their steps');
is(scalar @{ $api->get('/api/pipelines?limit=1&page=2')->{json}{data} }, 1, 'by pages');

# --- steps
$got = $api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('d') } });
is($got->{status}, 201, 'a step') or diag $got->{body};
is($got->{headers}{location}, "/api/steps/$got->{json}{id}", 'Location');
is($api->get("/api/steps/$got->{json}{id}")->{body}, $got->{body}, 'reading gives the same');
is_deeply([@{ $got->{json} }{qw(position runWhen timeoutSeconds)}], [3, 'success', undef], 'last, and the defaults');
my $d = $got->{json}{id};
is(order($pipe->{id}), 'a b c d', 'at the end');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('e', position => 0) } });
is(order($pipe->{id}), 'e a b c d', 'at the beginning');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('f', position => 2) } });
is(order($pipe->{id}), 'e a f b c d', 'between');
$api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('g', position => 99) } });
is(order($pipe->{id}), 'e a f b c d g', 'past the end is the end');
for my $case ([0, 'd e a f b c g'], [6, 'e a f b c g d'], [3, 'e a f d b c g'], [3, 'e a f d b c g'], [99, 'e a f b c g d'], [4, 'e a f b d c g']) {
	my ($position, $want) = @$case;
	is($api->put("/api/steps/$d", { position => $position })->{status}, 200, "moved to $position");
	is(order($pipe->{id}), $want, $want);
}
# the tag of each step tells whether it was moved itself
my %id = map { $_->{name} => $_->{id} } @{ $api->get($path)->{json}{steps} };
my @names = qw(e a f b d c g);
sub tags { return map { my $got = $api->get("/api/steps/$id{$_}"); ($_ => [$got->{headers}{etag}, $got->{json}{updatedAt}]) } @names }
for my $case (['d', { position => 2 }, 'f b d'], ['d', { position => 4 }, 'f b d'], ['d', { position => 4 }, ''], ['f', { name => 'f' }, ''], ['f', { script => 'true' }, 'f']) {
	my ($name, $body, $want) = @$case;
	my %was = tags();
	$api->put("/api/steps/$id{$name}", $body);
	my %is = tags();
	is(join(' ', grep { $was{$_}[0] ne $is{$_}[0] } @names), $want, "$name at " . ($body->{position} || 'its place') . ": new tags of '$want' alone");
	is(join(' ', grep { $was{$_}[1] ne $is{$_}[1] } @names), $want, '  and new times');
	(my ($version)) = $was{$name}[0] =~ /(\d+)-/;
	like($is{$name}[0], qr/^"@{[$version + ($want ne '' ? 1 : 0)]}-/, '  one change is counted as one');
}
my $etag = $api->get($path)->{headers}{etag};
is($api->put("/api/steps/$d", { name => 'dd' })->{json}{position}, 4, 'a new name moves nothing');
isnt($api->get($path)->{headers}{etag}, $etag, 'but the pipeline shows it, so its ETag changes');
is($api->put($path, {}, { 'If-Match' => $etag })->{status}, 412, 'and guards');
my $before = $api->get("/api/steps/$d");
is($api->delete("/api/steps/$d", { 'If-Match' => '"1-0000000000000000"' })->{status}, 412, 'a guard of a step');
is($api->delete("/api/steps/$d", { 'If-Match' => $before->{headers}{etag} })->{status}, 204, 'a step is deleted');
is(order($pipe->{id}), 'e a f b c g', 'the others close up');
is($api->get("/api/steps/$d")->{status}, 404, 'it is gone');
is($api->put("/api/steps/$d", {})->{status}, 404, 'and cannot be changed');
is($api->delete("/api/steps/$d")->{status}, 404, 'or deleted again');
my $a = (grep { $_->{name} eq 'a' } @{ $api->get($path)->{json}{steps} })[0]{id};
for my $case (
	[{}, '/pipelineId /name /script', 'nothing'], [{ pipelineId => 77777, %{ step('x') } }, '/pipelineId', 'a pipeline that is not there'],
	[{ pipelineId => $pipe->{id}, %{ step('x', position => -1) } }, '/position', 'a negative position'],
	[{ pipelineId => $pipe->{id}, %{ step('x', position => 'last') } }, '/position', 'a word for a position'],
	[{ pipelineId => $pipe->{id}, %{ step('x', valid => 0) } }, '/valid', 'valid'],
	[{ pipelineId => $pipe->{id}, %{ step("x\ty") } }, '/name', 'a tab in a name'],
) {
	my ($body, $want, $name) = @$case;
	$got = $api->post('/api/steps', $body);
	is("$got->{status} " . pointers($got), "422 $want", "$name is refused") or diag $got->{body};
}
for my $case ([{ script => undef }, '/script'], [{ pipelineId => $other->{id} }, '/pipelineId'], [{ runWhen => 'x' }, '/runWhen'],
	[{ timeoutSeconds => -5 }, '/timeoutSeconds'], [{ createdAt => '2026-01-01T00:00:00Z' }, '/createdAt']) {
	$got = $api->put("/api/steps/$a", $case->[0]);
	is("$got->{status} " . pointers($got), "422 $case->[1]", "a change of $case->[1] is refused");
}
is($api->request('POST', '/api/steps', '{"pipelineId":' . $pipe->{id} . ',"name":"nul","script":"a\u0000b"}',
    { 'Content-Type' => 'application/json' })->{status}, 422, 'a NUL in a script');
my $script = "#!/bin/bash\nprintf '%s\\t' \"\$A\" <<'X'\n\x{1f680} \\ \r\nX\n" . join '', map { chr } 1 .. 31;
$got = $api->put("/api/steps/$a", { script => $script });
is($got->{status}, 200, 'a script of all kinds of bytes');
is($api->get("/api/steps/$a")->{json}{script}, $script, 'comes back as it was');
is($api->put("/api/steps/$a", { script => 'x' x 65535 })->{status}, 200, 'one of 65535 bytes');
$got = $api->get("/api/steps?pipelineId=$pipe->{id}&limit=3");
is(join(' ', map { $_->{name} } @{ $got->{json}{data} }), 'e a f', 'steps are listed by position');
is($got->{json}{pagination}{total}, 6, 'with their number');
is($api->get('/api/steps?pipelineId=77777')->{json}{pagination}{total}, 0, 'of no pipeline');

# --- many at once
my @kids;
for my $k (1 .. 6) {
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		my $mine = $api->as('admin');
		delete $mine->{parent}{http};
		my $bad = 0;
		for my $i (1 .. 8) {
			my $r = $mine->post('/api/steps', { pipelineId => $other->{id}, %{ step("k$k.$i", position => $i % 3) } });
			$bad++ if $r->{status} != 201;
			my $r2 = $mine->put("/api/steps/$r->{json}{id}", { position => ($k * $i) % 7 });
			$bad++ if $r2->{status} != 200;
			if ($i % 4 == 0) { $bad++ if $mine->delete("/api/steps/$r->{json}{id}")->{status} != 204 }
		}
		POSIX::_exit($bad);
	}
	push @kids, $pid;
}
my $failed = 0;
for (@kids) { waitpid $_, 0; $failed += $? >> 8 }
is($failed, 0, 'six clients add, move and delete at once');
is(scalar(split ' ', order($other->{id})), 6 * 6, 'all are there, and no position twice or missing');

# --- deleted
is($api->delete($path, { 'If-Match' => 'x' })->{status}, 400, 'a guard that is none');
is($api->delete($path)->{status}, 204, 'a pipeline is deleted');
is($api->get($path)->{status}, 404, 'it is gone');
is($api->get("/api/steps/$a")->{status}, 404, 'with its steps');
is($api->post('/api/steps', { pipelineId => $pipe->{id}, %{ step('x') } })->{status}, 422, 'it takes no more');
is($api->post('/api/pipelines', body(name => 'Pipeline 2x'))->{status}, 201, 'its name is free');

# --- a pipeline whose name another takes at the same time; who deploys does not wait for it
my $busy = $api->post('/api/projects', { name => 'Busy', repository => 'https://git.example.org/a/b' })->{json}{id};
$api->post('/api/pipelines', body(projectId => $busy, name => 'first', steps => [step('s')]));
sub session {
	open my $to, '|-', 'mariadb', '--no-defaults', '--socket=' . $db->socket, '--user=' . getpwuid($>), 'slipway' or die "mariadb: $!";
	$to->autoflush(1);
	return $to;
}
my $other_one = session();
print $other_one "START TRANSACTION; INSERT INTO pipeline (project_id, name) VALUES ($busy, 'Twin');\n";
ok(poll(10, sub { $db->sql("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SELECT COUNT(*) FROM pipeline WHERE project_id = $busy") == 2 }), 'another makes it');
my $twin = fork;
die "fork: $!" if !defined $twin;
if ($twin == 0) {
	my $mine = $api->as('admin');
	delete $mine->{parent}{http};
	my $r = $mine->post('/api/pipelines', body(projectId => $busy, name => 'twin'));
	POSIX::_exit("$r->{status} " . pointers($r) eq '409 /name' ? 0 : 1);
}
ok(poll(10, sub { $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO pipeline%'") }), 'so do we');
is($api->post('/api/pipelines', body(projectId => $busy, name => 'unlike'))->{status}, 201, 'meanwhile the project takes a third');
print $other_one "COMMIT;\n";
close $other_one;
waitpid $twin, 0;
is($?, 0, 'and told that the name is taken');

# --- a step that is being added while its project is deleted
my $doomed = $api->post('/api/projects', { name => 'Doomed', repository => 'https://git.example.org/a/b' })->{json}{id};
my $last = $api->post('/api/pipelines', body(projectId => $doomed))->{json}{id};
open my $adds, '|-', 'mariadb', '--no-defaults', '--socket=' . $db->socket, '--user=' . getpwuid($>), 'slipway' or die "mariadb: $!";
$adds->autoflush(1);
print $adds "SET tx_isolation = 'READ-COMMITTED'; START TRANSACTION; SELECT id FROM pipeline WHERE id = $last FOR UPDATE;\n";
sub runs { return $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '$_[0]%'") }
ok(poll(10, sub { !eval { $db->sql("SELECT id FROM pipeline WHERE id = $last FOR UPDATE NOWAIT"); 1 } }), 'a step is being added');
my $deletes = fork;
die "fork: $!" if !defined $deletes;
if ($deletes == 0) {
	my $mine = $api->as('admin');
	delete $mine->{parent}{http};
	POSIX::_exit($mine->delete("/api/projects/$doomed")->{status} == 204 ? 0 : 1);
}
ok(poll(10, sub { runs('UPDATE') }), 'its project is being deleted');
print $adds "INSERT INTO step (pipeline_id, name, script, position) VALUES ($last, 's', 'true', 0); COMMIT;\n";
close $adds;
waitpid $deletes, 0;
is($?, 0, 'and is gone');
is($db->sql("SELECT COUNT(*) FROM step WHERE pipeline_id = $last AND valid = 1"), 0, 'and the step with it');
done_testing;
