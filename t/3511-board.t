#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The board: what is live, running and waiting in every project.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use Slipway::API;
use Slipway::Background;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my %repository = (repository => 'https://git.example.org/team/shop');

sub create { return $api->make(@_)->{id} }

is_deeply($api->get('/api/board')->{json}{data}, [], 'the board of an empty service is empty');
my $shop = create('/api/projects', { name => 'Shop', %repository });
my $blog = create('/api/projects', { name => 'Blog', %repository });
my ($test, $live) = map { create('/api/environments', { projectId => $shop, name => $_,
    url => "https://$_.example.org" }) } 'test', 'live';
my %pipeline = map { $_ => create('/api/pipelines', { projectId => $_, name => 'Deploy',
	steps => [{ name => 'a', script => 'true' }] }) } $shop, $blog;

# Stores a deployment; its id.
sub deployed {
	my ($project, $environment, $status) = @_;
	my $to = $environment || 'NULL';
	my $started = $status eq 'pending' ? 'NULL' : 'NOW(3)';
	my $ended = $status =~ /^(?:pending|running)$/ ? 'NULL' : 'NOW(3)';
	my $id = $db->sql('INSERT INTO deployment (project_id, pipeline_id, environment_id, branch,'
	    . ' commit_hash, commit_message, status, `trigger`, started_at, finished_at) VALUES'
	    . " ($project, $pipeline{$project}, $to, 'main', REPEAT('a', 40), 'Fix it\n\nIt broke.',"
	    . " '$status', 'manual', $started, $ended) RETURNING id");
	$db->sql("UPDATE environment SET live_deployment = $id WHERE id = $to")
	    if $environment && $status eq 'success';
	return $id;
}
my $first = deployed($shop, $test, 'success');
my $tested = deployed($shop, $test, 'success');
my $broken = deployed($shop, $test, 'failed');
my $released = deployed($shop, $live, 'success');
my $running = deployed($shop, $live, 'running');
deployed($shop, $live, 'pending') for 1 .. 2;
my $last = deployed($shop, $test, 'pending');
$db->sql("UPDATE deployment SET approval = 'required' WHERE id = $last");
my $post = deployed($blog, undef, 'success');
my $draft = deployed($blog, undef, 'canceled');
$db->sql("UPDATE deployment SET warnings = 2 WHERE id = $post");
is($api->put("/api/environments/$live/lock", { reason => 'fair' })->{status}, 200, 'a lock is set');
is($api->put("/api/projects/$blog/lock", { reason => 'moving' })->{status}, 200, 'a lock is set');

my $got = $api->as('viewer')->get('/api/board');
is($got->{status}, 200, 'a viewer reads the board') or diag $got->{body};
my ($b, $s) = @{ $got->{json}{data} };
is("$b->{name} $s->{name}", 'Blog Shop', 'the board lists projects by name');
is($b->{lock}{reason}, 'moving', 'the board shows the lock of a project');
is($b->{live}{id}, $post, 'the board shows what is live in a project without environments');
is($b->{live}{warnings}, 2, 'the board shows how many warnings it had');
is($b->{latest}{id}, $draft, 'the board shows the newest deployment of a project');
is($b->{latest}{status}, 'canceled', 'the newest deployment has its status');
is_deeply($b->{environments}, [], 'a project without environments has none on the board');
is($b->{running}, undef, 'a project without a running deployment has none on the board');
is($b->{waiting}, 0, 'no deployment of it waits');
is($s->{live}, undef, 'a project with environments has nothing live itself');
is($s->{running}{id}, $running, 'the board shows the running deployment');
is($s->{running}{environmentId}, $live, 'the running deployment names its environment');
is($s->{waiting}, 3, 'the board counts the waiting deployments of a project');
is($s->{approvals}, 1, 'the board counts the deployments that wait for approval');
is($s->{latest}{id}, $last, 'a waiting deployment is the newest one');
is($s->{latest}{approval}, 'required', 'a deployment on the board says whether it waits for approval');
is($b->{latest}{approval}, undef, 'a deployment that needs no approval has none on the board');
is($s->{lock}, undef, 'the lock of an environment is not that of its project');
my ($t, $l) = @{ $s->{environments} };
is("$t->{name} $l->{name}", 'test live', 'the board lists environments by position');
is($l->{url}, 'https://live.example.org', 'the board shows the address of an environment');
is($t->{live}{id}, $tested, 'the last success is live, not a later failure or an earlier success');
is($t->{live}{commitMessage}, 'Fix it', 'the board shows the first line of a commit message');
is($t->{waiting}, 1, 'the board counts the waiting deployments of an environment');
is($l->{waiting}, 2, 'the board counts those of another environment separately');
is("$t->{approvals} $l->{approvals}", '1 0', 'the board counts approvals by environment');
is($l->{live}{id}, $released, 'the running deployment is not live yet');
is($l->{lock}{reason}, 'fair', 'the board shows the lock of an environment');
is($t->{lock}, undef, 'an environment without a lock has none on the board');
is($l->{latest}{status}, 'pending', 'the newest deployment of an environment has its status');
is_deeply([@{ $got->{json}{pagination} }{qw(page limit total)}], [1, 500, 2], 'the board is a page');
is($api->get('/api/board?limit=501')->{status}, 400, 'a page of more than 500 projects returns 400');
is($api->get('/api/board?limit=1&page=2')->{json}{data}[0]{name}, 'Shop', 'page 2 follows');
is($api->as('none')->get('/api/board')->{status}, 401, 'the board needs a credential');

# --- a deployment that is created while the board is read
my $session = $db->session;
# A board whose reading stops at the environments; the connection that it uses.
sub stopped_board {
	$session->('LOCK TABLES environment WRITE');
	my $board = background(sub {
		delete $api->{http};
		return $api->get('/api/board')->{body};
	});
	my $connection;
	my $found = poll(30, sub {
		$connection = $db->sql('SELECT id FROM information_schema.processlist'
		    . " WHERE state = 'Waiting for table metadata lock' AND user = 'slipway'");
	});
	ok($found, 'a board waits for the environments');
	return ($board, $connection);
}
my ($reading, $reader) = stopped_board();
my $new = deployed($blog, undef, 'pending');
$session->('UNLOCK TABLES');
($b) = @{ decode_json($reading->result)->{data} };
is("$b->{latest}{id} $b->{waiting}", "$draft 0",
    'a board omits a deployment that was created while it was read');
($b) = @{ $api->get('/api/board')->{json}{data} };
is("$b->{latest}{id} $b->{waiting}", "$new 1", 'the next board shows that deployment');
($reading, $reader) = stopped_board();
$db->sql("KILL $reader");
$session->('UNLOCK TABLES');
is(decode_json($reading->result)->{data}[0]{latest}{id}, $new,
    'a board that loses its connection is read again');
$db->sql("DELETE FROM deployment WHERE id = $new");

# --- the cost
sub statements {
	my $before = $db->sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'") =~ s/\D//gr;
	my $n = @{ $api->get('/api/board')->{json}{data} };
	return ($n, $db->sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'") =~ s/\D//gr - $before);
}
statements(); # the first request of a worker prepares
my (undef, $few) = statements();
$db->sql("INSERT INTO project (name, repository, project_dir, env_presets) SELECT CONCAT('P', seq),"
    . " 'https://x/y/z', CONCAT('p', seq), '[]' FROM seq_1_to_300");
$db->sql('INSERT INTO environment (project_id, name, position)'
    . " SELECT id, 'live', 0 FROM project WHERE name LIKE 'P%'");
my ($n, $many) = statements();
is($n, 302, 'the board shows all projects in one response');
is($many, $few, 'the board of many projects costs no more statements than one of few');
is($api->delete("/api/projects/$blog")->{status}, 204, 'a project is deleted');
is($api->get('/api/board')->{json}{pagination}{total}, 301, 'a deleted project leaves the board');

# --- the cost of a start: all statements are checked against the tables once
sub prepared { return $db->sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'") =~ s/\D//gr }
my $before = prepared();
my ($status) = run_cmd(program('t/unit/store_check'), $db->conf_file);
is($status, 0, 'the statements fit the tables');
my $once = prepared() - $before;
$before = prepared();
$api->restart_api;
is($api->get('/api/board')->{status}, 200, 'the service starts again');
my $start = prepared() - $before;
cmp_ok($start, '>=', $once, 'a start checks all statements');
cmp_ok($start, '<', 1.5 * $once, 'no worker checks the statements again');

done_testing;
