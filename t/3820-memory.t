#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Request bodies that are made to use memory: a worker responds to each, is not
# restarted and never uses more than 16 MB.

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
my @workers = poll(10, sub { ($api->workers) == 4 }) ? sort($api->workers) : ();
note('a build with sanitizers: memory is not measured') if sanitized();

sub object { return '{' . join(',', @_) . '}' }
my %body = (
	'a member name of 1 MiB' => object('"' . 'n' x (MIB - 20) . '":1'),
	'a member name of 1 MiB that doubles in a pointer' => object('"' . '~' x (MIB - 20) . '":1'),
	'ten long member names' => object(map { '"' . $_ x 100000 . '":1' } 'a' .. 'j'),
	'40,000 short member names' => object(map { qq("k$_":0) } 1 .. 39990),
	'20,000 longer member names' => object(map { sprintf '"%040d":0', $_ } 1 .. 19990),
	'a string of 1 MiB' => object('"name":"a"', '"description":"' . 'd' x (MIB - 100) . '"'),
	'a string of 1 MiB of escapes' => object('"name":"a"', '"description":"' . '\u0001' x 174000 . '"'),
	'9,000 invalid presets' => object('"envPresets":[' . join(',', ('{"":{}}') x 9000) . ']'),
	'presets with invalid options' => object('"envPresets":[' . join(',',
		map { '{"key":"K' . $_ . '","options":[' . join(',', ('{"labe":1}') x 90) . ']}' } 1 .. 99)
		    . ']'),
	'40,000 arrays' => '[' . join(',', ('[]') x 39990) . ']',
	'20,000 numbers of fifty digits' => object('"a":[' . join(',', ('1' x 50) x 19990) . ']'),
	'the deepest nesting that is allowed' => '{"a":' x 31 . '1' . '}' x 31,
);
for my $what (sort keys %body) {
	my $got = $api->post('/api/projects', $body{$what});
	is($got->{status}, 422, $what) || diag(substr $got->{body}, 0, 200);
	cmp_ok(length $got->{body}, '<', 4 * MIB, "$what: the response is smaller than 4 MiB");
	cmp_ok(peak_memory($api->workers), '<', 16_000, "$what: no worker uses more than 16 MB")
	    if !sanitized();
}
# Variables of a deployment: escaped ones, and more than the limit.
my $project = $api->post('/api/projects', { name => 'a',
	repository => 'https://git.example.org/a/a.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	steps => [{ name => 's', script => '#' x 65535 }] })->{json}{id};
for my $case ([500, 201, "\x01\"" x 250], [950, 422, 'v' x 1000]) {
	my ($n, $status, $value) = @$case;
	my $got = $api->post('/api/deployments', { projectId => $project,
		pipelineId => $pipeline, envVars => { map { ("V$_" => $value) } 1 .. $n } });
	is($got->{status}, $status, "$n large variables return $status")
	    || diag(substr $got->{body}, 0, 300);
	cmp_ok(peak_memory($api->workers), '<', 16_000, "$n large variables: no worker uses more than 16 MB")
	    if !sanitized();
}
my $got = $api->put("/api/pipelines/$pipeline", { description => 'd' x 1_000_000 });
is($got->{status}, 422, 'a PUT with a description of 1 MB returns 422');
$got = $api->post('/api/pipelines', { projectId => $project, name => 'q',
	steps => [map { { name => "s$_", script => '#' x 60_000 } } 1 .. 17] });
is($got->{status}, 201, 'a pipeline of 1 MB is created');
is($api->get('/api/pipelines')->{status}, 200, 'the list of pipelines includes it');
cmp_ok(peak_memory($api->workers), '<', 16_000, 'a pipeline of 1 MB: no worker uses more than 16 MB')
    if !sanitized();

# A project of the maximum size: stored, changed and read.
sub presets {
	my ($n) = @_;
	return [map { my $i = $_; { key => "K$i", label => 'l' x 200, type => 'select',
		options => [map { { label => 'x', value => 'v' x 400 . $_ } } 1 .. $n] } } 1 .. 100];
}
sub triggers { my ($n, $name) = @_; return [map { { branch => ($name || 'b') . $_, pipelineId => $pipeline,
	envVars => { map { ("V$_" => 'x' x 1000) } 1 .. $n } } } 1 .. 100] }
my $path = "/api/projects/$project";
for my $case (['presets', envPresets => presets(22)], ['the same presets again', envPresets => presets(22)],
    ['presets and triggers', envPresets => presets(10), triggers => triggers(5)],
    ['a description', description => 'x'], ['no presets', envPresets => []],
    ['triggers', triggers => triggers(10)]) {
	my ($what, %body) = @$case;
	$got = $api->put($path, \%body);
	is($got->{status}, 200, "a project of 1 MB is stored: $what") || diag(substr $got->{body}, 0, 300);
	cmp_ok(peak_memory($api->workers), '<', 16_000,
	    "a project of 1 MB: $what: no worker uses more than 16 MB")
	    if !sanitized();
}
$got = $api->put($path, { envPresets => presets(6) });
is("$got->{status} " . join(' ', map { "'$_->{pointer}'" } @{ $got->{json}{errors} }), "422 ''",
    'stored triggers count towards the limit of a change') || diag(substr $got->{body}, 0, 300);
# The same while another transaction locks the pipeline, so that the change is tried
# three times: once because its connection breaks, once because its lock wait expires.
sub lock_waits { return $db->sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'") =~ /(\d+)/ && $1 }
open my $holder, '|-', 'mariadb', '--no-defaults', '--socket=' . $db->socket, '--user=' . getpwuid($>),
    'slipway' or die "mariadb: $!";
$holder->autoflush(1);
print $holder "START TRANSACTION; SELECT id FROM pipeline WHERE id = $pipeline FOR UPDATE;\n";
ok(poll(10, sub { !eval { $db->sql("SELECT id FROM pipeline WHERE id = $pipeline FOR UPDATE NOWAIT"); 1 } }),
    'a transaction locks a pipeline');
my $waits = lock_waits();
my $changes = fork;
die "fork: $!" if !defined $changes;
if ($changes == 0) {
	my $mine = $api->as('admin');
	delete $mine->{parent}{http};
	POSIX::_exit($mine->put($path, { triggers => triggers(10, 'c') })->{status} == 200 ? 0 : 1);
}
ok(poll(10, sub { lock_waits() > $waits }), 'a change of 1 MB waits for the lock');
$db->sql('KILL '
    . $db->sql("SELECT id FROM information_schema.processlist WHERE info LIKE '%FROM pipeline%SHARE MODE'"));
ok(poll(30, sub { lock_waits() >= $waits + 3 }), 'the change is tried three times');
print $holder "ROLLBACK;\n";
close $holder;
waitpid $changes, 0;
is($?, 0, 'the change succeeds after the lock is released');
my ($large) = grep { $_->{name} eq 'q' } @{ $api->get('/api/pipelines')->{json}{data} };
is($api->put($path,
    { triggers => [map { { branch => "b$_", pipelineId => $large->{id} } } 1 .. 100] })->{status},
    200, '100 triggers for a pipeline of 1 MB are stored');

# Lists of large objects, with pages of any size.
for my $n (1 .. 6) {
	my $one = $api->post('/api/projects', { name => "large $n",
	    repository => 'https://git.example.org/a/a.git', envPresets => presets(22) });
	my $two = $api->post('/api/pipelines', { projectId => $project, name => "large $n",
	    steps => [map { { name => "s$_", script => '#' x 60_000 } } 1 .. 17] });
	is("$one->{status} $two->{status}", '201 201', "large project $n and large pipeline $n are created");
}
for my $list (qw(projects pipelines steps)) {
	for my $limit (1, 3, 7, 100) {
		$got = $api->get("/api/$list?limit=$limit");
		is($got->{status}, 200, "a list of large $list, $limit per page, returns 200");
		cmp_ok(peak_memory($api->workers), '<', 16_000,
		    "a list of large $list, $limit per page: no worker uses more than 16 MB") if !sanitized();
	}
}

# More projects than fit into a worker: they are sent as they are read.
# An entry of an index counts twice if a condition is pushed down to the index.
sub entries_read { return $db->sql('SELECT SUM(variable_value) FROM information_schema.global_status'
	. " WHERE variable_name IN ('Handler_read_next', 'Handler_icp_attempts')") =~ /(\d+)/ && $1 }
for my $n (60_000, 120_000) {
	$db->sql("INSERT INTO project (name, repository, project_dir) SELECT CONCAT('bulk', seq),"
	    . " 'https://git.example.org/a/b', CONCAT('bulk-dir', seq) FROM seq_"
	    . ($n - 59_999) . "_to_$n");
	my $before = entries_read();
	$got = $api->get('/projects');
	is("$got->{status} " . (() = $got->{body} =~ /"id":/g), '200 ' . ($n + 7),
	    "a list of $n projects returns them all");
	cmp_ok(entries_read() - $before, '<', 3 * $n, "a list of $n projects reads the index once");
	cmp_ok(peak_memory($api->workers), '<', 16_000,
	    "a list of $n projects: no worker uses more than 16 MB")
	    if !sanitized();
}

# The same for a member of some of them.
my $guest = $api->as('guest');
$guest->get('/projects');
$db->sql("INSERT INTO member (project_id, user_id, role) SELECT p.id, u.id, 'viewer' FROM project p"
    . " JOIN user u ON u.username = 't-guest' WHERE p.name LIKE 'bulk%' AND p.id % 480 = 0");
my @names = map { split /\n/ } $db->sql(
    "SELECT p.name FROM project p JOIN member m ON m.project_id = p.id ORDER BY p.name");
cmp_ok(scalar @names, '>', 200, 'a user is a member of many projects');
is_deeply([map { $_->{name} } @{ $guest->get('/projects')->{json} }], \@names,
    'a member gets the names of own projects in order, in several pieces');

my %rejected = (
	'a body one byte above 1 MiB' => [413, object('"name":"' . 'n' x MIB . '"')],
	'a million brackets' => [422, '[' x 1_000_000],
	'half a million values' => [413, '[' . join(',', (0) x 500_000) . ']'],
	'1 MiB of spaces' => [400, ' ' x MIB],
);
for my $what (sort keys %rejected) {
	my ($status, $text) = @{ $rejected{$what} };
	is($api->post('/api/projects', $text)->{status}, $status, "$what returns $status");
	cmp_ok(peak_memory($api->workers), '<', 16_000, "$what: no worker uses more than 16 MB")
	    if !sanitized();
}
is_deeply([sort($api->workers)], \@workers, 'no worker died');

$api->stop;
$db->stop;
done_testing();
