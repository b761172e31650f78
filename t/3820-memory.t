#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Bodies that are made to take memory: a worker answers each, stays the same
# process and never holds more than 16 MB.

use strict;
use warnings;
use POSIX ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;

use constant MIB => 1 << 20;
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my @workers = poll(10, sub { ($api->workers) == 6 }) ? sort($api->workers) : ();
note('a build with sanitizers: its memory is not measured') if sanitized();


sub object { return '{' . join(',', @_) . '}' }
my %body = (
	'a name of a mebibyte' => object('"' . 'n' x (MIB - 20) . '":1'),
	'one of which every byte is escaped in its pointer' => object('"' . '~' x (MIB - 20) . '":1'),
	'ten long names' => object(map { '"' . $_ x 100000 . '":1' } 'a' .. 'j'),
	'forty thousand short names' => object(map { qq("k$_":0) } 1 .. 39990),
	'half as many longer ones' => object(map { sprintf '"%040d":0', $_ } 1 .. 19990),
	'a text of a mebibyte' => object('"name":"a"', '"description":"' . 'd' x (MIB - 100) . '"'),
	'one of escapes' => object('"name":"a"', '"description":"' . '\u0001' x 174000 . '"'),
	'nine thousand faulty presets' => object('"envPresets":[' . join(',', ('{"":{}}') x 9000) . ']'),
	'presets with faulty options' => object('"envPresets":[' . join(',',
		map { '{"key":"K' . $_ . '","options":[' . join(',', ('{"labe":1}') x 90) . ']}' } 1 .. 99) . ']'),
	'forty thousand arrays' => '[' . join(',', ('[]') x 39990) . ']',
	'as many numbers of fifty digits' => object('"a":[' . join(',', ('1' x 50) x 19990) . ']'),
	'the deepest there may be' => '{"a":' x 31 . '1' . '}' x 31,
);
for my $what (sort keys %body) {
	my $got = $api->post('/api/projects', $body{$what});
	is($got->{status}, 422, $what) || diag(substr $got->{body}, 0, 200);
	cmp_ok(length $got->{body}, '<', 4 * MIB, '  the answer has an end');
	cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
}
# Variables of a deployment: in escapes, and more than there may be.
my $project = $api->post('/api/projects', { name => 'a',
	repository => 'https://git.example.org/a/a.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	steps => [{ name => 's', script => '#' x 65535 }] })->{json}{id};
for my $case ([500, 201, "\x01\"" x 250], [950, 422, 'v' x 1000]) {
	my ($n, $status, $value) = @$case;
	my $got = $api->post('/api/deployments', { projectId => $project,
		pipelineId => $pipeline, envVars => { map { ("V$_" => $value) } 1 .. $n } });
	is($got->{status}, $status, "$n large variables: $status")
	    || diag(substr $got->{body}, 0, 300);
	cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
}
my $got = $api->put("/api/pipelines/$pipeline", { description => 'd' x 1_000_000 });
is($got->{status}, 422, 'a change with a text of a megabyte');
$got = $api->post('/api/pipelines', { projectId => $project, name => 'q',
	steps => [map { { name => "s$_", script => '#' x 60_000 } } 1 .. 17] });
is($got->{status}, 201, 'a pipeline of a megabyte');
is($api->get('/api/pipelines')->{status}, 200, 'and a list with it');
cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();

# A project as large as one may be: as it is stored, changed and answered.
sub presets {
	my ($n) = @_;
	return [map { my $i = $_; { key => "K$i", label => 'l' x 200, type => 'select',
		options => [map { { label => 'x', value => 'v' x 400 . $_ } } 1 .. $n] } } 1 .. 100];
}
sub triggers { my ($n, $name) = @_; return [map { { branch => ($name || 'b') . $_, pipelineId => $pipeline,
	envVars => { map { ("V$_" => 'x' x 1000) } 1 .. $n } } } 1 .. 100] }
my $path = "/api/projects/$project";
for my $case (['presets', envPresets => presets(22)], ['the same again', envPresets => presets(22)],
	['both', envPresets => presets(10), triggers => triggers(5)], ['a word', description => 'x'],
	['no presets', envPresets => []], ['triggers', triggers => triggers(10)]) {
	my ($what, %body) = @$case;
	$got = $api->put($path, \%body);
	is($got->{status}, 200, "a project of a megabyte: $what") || diag(substr $got->{body}, 0, 300);
	cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
}
$got = $api->put($path, { envPresets => presets(6) });
is("$got->{status} " . join(' ', map { "'$_->{pointer}'" } @{ $got->{json}{errors} }), "422 ''",
    'what is stored already counts') || diag(substr $got->{body}, 0, 300);
# The same while its pipeline is held, so that it is tried three times: once because its
# connection breaks, once because it has waited too long.
sub lock_waits { return $db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'") =~ /(\d+)/ && $1 }
open my $holder, '|-', 'mariadb', '--no-defaults', '--socket=' . $db->socket, '--user=' . getpwuid($>), 'slipway' or die "mariadb: $!";
$holder->autoflush(1);
print $holder "START TRANSACTION; SELECT id FROM pipeline WHERE id = $pipeline FOR UPDATE;\n";
ok(poll(10, sub { !eval { $db->sql("SELECT id FROM pipeline WHERE id = $pipeline FOR UPDATE NOWAIT"); 1 } }),
    'a pipeline is held');
my $waits = lock_waits();
my $changes = fork;
die "fork: $!" if !defined $changes;
if ($changes == 0) {
	my $mine = $api->as('admin');
	delete $mine->{parent}{http};
	POSIX::_exit($mine->put($path, { triggers => triggers(10, 'c') })->{status} == 200 ? 0 : 1);
}
ok(poll(10, sub { lock_waits() > $waits }), 'a change of a megabyte waits');
$db->sql('KILL ' . $db->sql("SELECT id FROM information_schema.processlist WHERE info LIKE '%FROM pipeline%SHARE MODE'"));
ok(poll(30, sub { lock_waits() >= $waits + 3 }), 'is tried again, and again');
print $holder "ROLLBACK;\n";
close $holder;
waitpid $changes, 0;
is($?, 0, 'and is made then');
my ($large) = grep { $_->{name} eq 'q' } @{ $api->get('/api/pipelines')->{json}{data} };
is($api->put($path, { triggers => [map { { branch => "b$_", pipelineId => $large->{id} } } 1 .. 100] })->{status},
    200, 'a hundred triggers of a pipeline of a megabyte');

# Lists of large ones: pages of any size.
for my $n (1 .. 6) {
	my $one = $api->post('/api/projects', { name => "large $n", repository => 'https://git.example.org/a/a.git', envPresets => presets(22) });
	my $two = $api->post('/api/pipelines', { projectId => $project, name => "large $n", steps => [map { { name => "s$_", script => '#' x 60_000 } } 1 .. 17] });
	is("$one->{status} $two->{status}", '201 201', 'a large project and a large pipeline');
}
for my $list (qw(projects pipelines steps)) {
	for my $limit (1, 3, 7, 100) {
		$got = $api->get("/api/$list?limit=$limit");
		is($got->{status}, 200, "$list by $limit");
		cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
	}
}

# More projects than one answer names; the sizes at which memory ends before
# it does.
$db->sql("INSERT INTO project (name, repository, project_dir) SELECT CONCAT('bulk', seq), 'https://git.example.org/a/b',"
    . " CONCAT('bulk-dir', seq) FROM seq_1_to_120000");
for my $left (120_000, 90_000, 80_000, 70_000, 60_000) {
	$db->sql("DELETE FROM project WHERE name LIKE 'bulk%' AND CAST(SUBSTR(name, 5) AS INT) > $left");
	$got = $api->get('/projects');
	like("$got->{status} " . ($got->{json}{detail} || ''), qr/^400 .*(?:too many projects|more items)/, "$left projects are too many") if $left > 60_000;
	is("$got->{status} " . @{ $got->{json} }, '200 60007', "$left are not") if $left == 60_000;
	cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
}

my %refused = (
	'one byte too many' => [413, object('"name":"' . 'n' x MIB . '"')],
	'a million brackets' => [422, '[' x 1_000_000],
	'half a million values' => [413, '[' . join(',', (0) x 500_000) . ']'],
	'a mebibyte of blanks' => [400, ' ' x MIB],
);
for my $what (sort keys %refused) {
	my ($status, $text) = @{ $refused{$what} };
	is($api->post('/api/projects', $text)->{status}, $status, "$what: $status");
	cmp_ok(peak_memory($api->workers), '<', 16_000, '  nobody holds more than 16 MB') if !sanitized();
}
is_deeply([sort($api->workers)], \@workers, 'no worker died of it');

$api->stop;
$db->stop;
done_testing();
