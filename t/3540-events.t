#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Streams of events: through nginx over TLS, served by slipway-live.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API qw(bearer);
use Slipway::DB;
use Slipway::Stream;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $live = $api->start_live;
$db->add_project(1, 'a');
$db->add_project(2, 'b');
my $last = 0;
sub deployment { return $db->add_deployment(++$last, @_) }
sub set { my ($id, $what) = @_; return $db->sql("UPDATE deployment SET $what WHERE id = $id") }

sub stream { return Slipway::Stream->open($api, @_) }

# --- events of a stream
my $old = deployment(1, 'success');
set($old, 'finished_at = NOW(3)');
my $early = ++$last; # of a transaction that ends later than the next ones
my $before = deployment(1, 'pending');
my $all = stream('/api/events');
ok($all->wait_for(qr/^data: \{"id":$before,"status":"pending"/m), 'a stream begins with what can change')
    or diag $all->text;
like($all->text, qr/\AHTTP\S+ 200 /, 'a stream has the status 200');
like($all->text, qr/^content-type: text\/event-stream\r$/mi, 'a stream has its type');
is(() = $all->text =~ /^cache-control: no-store\r$/mgi, 1, 'a stream is not cached');
like($all->text, qr/^x-request-id: \w+\r$/mi, 'a stream has a request id');
like($all->text, qr/^retry: \d+$/m, 'a stream says when to connect again');
unlike($all->text, qr/"id":$old,/, 'a stream does not begin with what ended before');
my $other = stream('/api/events?projectId=2');
my $one = stream("/api/deployments/$before/events");
ok($one->wait_for(qr/"id":$before,"status":"pending"/), 'a stream of a deployment begins with its state');
my $ended = stream("/api/deployments/$old/events");
ok($ended->wait_for(qr/"id":$old,"status":"success"/), 'a stream of an ended deployment says so');
my $new = deployment(2, 'pending');
ok($_->wait_for(qr/"id":$new,"status":"pending"/), 'a new deployment is an event') for $all, $other;
set($before, "status = 'running', started_at = NOW(3)");
ok($_->wait_for(qr/"id":$before,"status":"running"/), 'the start of a deployment is an event') for $all, $one;
$db->sql("INSERT INTO log_chunk (deployment_id, start, length, data) VALUES ($before, 0, 5, 'hello')");
ok($_->wait_for(qr/"id":$before,"status":"running","version":\d+,"logSize":5\}/), 'more log is an event')
    for $all, $one;
set($before, "status = 'success', finished_at = NOW(3), log_size = 5");
ok($_->wait_for(qr/"id":$before,"status":"success","version":\d+,"logSize":5\}/), 'the end is an event')
    for $all, $one;
my @version = map { /"id":$before,.*"version":(\d+)/ } $one->events;
is("@version", join(' ', sort { $a <=> $b } @version), 'the version of a deployment only grows');
isnt($version[0], $version[-1], 'the version of a deployment grows');
set($new, "status = 'canceled', finished_at = NOW(3)");
ok($other->wait_for(qr/"id":$new,"status":"canceled"/), 'a cancellation is an event');
is(join(' ', $other->ids), $new, 'a stream of a project has only its deployments');
is(join(' ', $one->ids), $before, 'a stream of a deployment has only its own events');
my @once = $all->events;
my %seen;
is_deeply([grep { $seen{$_}++ } grep { !/"id":$old,/ } @once], [], 'no event comes twice');

# --- transactions that take their ids in one order and end in another
my $late = ++$last;
my $next = deployment(2, 'pending');
ok($other->wait_for(qr/"id":$next,"status":"pending"/), 'a deployment is an event before an older one');
for my $id ($early, $late) {
	$db->sql("INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)"
	    . " VALUES ($id, 2, 2, 'manual', 'pending', 1)");
	ok($other->wait_for(qr/"id":$id,"status":"pending"/),
	    'the older one is an event when it is committed');
	set($id, "status = 'canceled', finished_at = NOW(3)");
	ok($other->wait_for(qr/"id":$id,"status":"canceled"/), 'the end of the older deployment is an event');
}
set($next, "status = 'canceled', finished_at = NOW(3)");
ok($other->wait_for(qr/"id":$next,"status":"canceled"/), 'the end of the newer one is an event, too');

# --- to continue
my ($first) = $all->text =~ /^id: (\S+)\nevent: deployment\ndata: .*"id":$new,"status":"pending"/m;
my $again = stream('/api/events', 'Last-Event-ID' => $first);
ok($again->wait_for(qr/"id":$new,"status":"canceled"/), 'a stream continues after the last event');
like($again->text, qr/"id":$before,"status":"success".*"id":$new,"status":"canceled"/s,
    'the missed events come in their order');
unlike($again->text, qr/"id":$new,"status":"pending"/, 'a stream that continues repeats no event');

# --- ids that do not show what happens elsewhere
my $open = deployment(1, 'pending');
my @begun = map { stream('/api/events') } 1 .. 2;
my @ids = map { $_->wait_for(qr/^data: .*"id":$open,/m); $_->text =~ /^id: (\S+)/m } @begun;
like("$first @ids", qr/^[0-9a-f]{16}(?: [0-9a-f]{16}){2}$/, 'the id of an event is opaque');
isnt($ids[0], $ids[1], 'two streams that begin with the same state get different ids');
set($open, "status = 'canceled', finished_at = NOW(3)");
ok($begun[1]->wait_for(qr/"id":$open,"status":"canceled"/), 'a listener gets the end of a deployment');
my $later = stream('/api/events', 'Last-Event-ID' => $ids[0]);
ok($later->wait_for(qr/"id":$open,/), 'a stream continues after the state with which another began');
is(scalar(() = $later->text =~ /^data: /mg), 1, 'it gets the events since, and nothing else');

# --- roles that may listen
for my $path ('/api/events', "/api/deployments/$old/events") {
	my $none = stream($path, Authorization => 'Bearer slw_wrong');
	ok($none->wait_for(qr/\AHTTP\S+ 401 /), "$path needs a valid credential");
}
for my $path ('/api/events?projectId=99', '/api/deployments/99/events') {
	my $none = stream($path);
	ok($none->wait_for(qr/\AHTTP\S+ 404 /), "$path returns 404 if there is no such object");
}
for my $path ('/.slipway/live', '/.slipway/live?project=0&deployment=0&kind=u&id=1') {
	is($api->get($path)->{status}, 404, "$path returns 404 from outside");
}
my $token = 'slw_' . 'e' x 43;
$db->sql("INSERT INTO user (username, role) VALUES ('eve', 'viewer')");
$db->sql("INSERT INTO api_token (user_id, name, role, hash) SELECT id, 'x', 'viewer', '" . sha256_hex($token)
    . "' FROM user WHERE username = 'eve'");
my $session = $api->new_session('sam', 'viewer');
my $refused = $api->new_token('viewer', 'rex');
my %by = ('a token' => $token, 'a session' => $session, 'a token of a refused account' => $refused);
my %stream = map { $_ => stream('/api/events', %{ bearer($by{$_}) }) } keys %by;
ok($stream{$_}->wait_for(qr/^retry/m), "a stream with $_ begins") for sort keys %by;
my $gus = $api->new_session('gus', 'viewer');
my %of = map { $_ => stream($_, %{ bearer($gus) }) } '/api/events', '/api/events?projectId=1',
    "/api/deployments/$old/events", '/api/events?projectId=2';
ok($of{$_}->wait_for(qr/^retry/m), "a viewer listens to $_") for sort keys %of;
my ($gus_id) = $db->sql("SELECT id FROM user WHERE username = 'gus'");
$db->sql("INSERT INTO member (project_id, user_id, role) VALUES (1, $gus_id, 'viewer');"
    . "UPDATE user SET role = 'guest' WHERE id = $gus_id");
$db->sql("UPDATE api_token SET valid = 0 WHERE hash = '" . sha256_hex($token) . "'");
$db->sql("UPDATE user SET git_refused_at = NOW(3) WHERE username = 'rex'");
is($api->delete('/api/user/' . $db->sql("SELECT id FROM user WHERE username = 'sam'"))->{status}, 204,
    'a user is deleted');
for my $what (sort keys %by) {
	ok($stream{$what}->has_ended, "a stream ends when its credential ($what) ends");
}
ok($of{$_}->has_ended, "$_ ends when its user loses the role") for '/api/events', '/api/events?projectId=2';
ok($of{$_}->text !~ /^0\r$/m, "$_ continues for a member") for '/api/events?projectId=1',
    "/api/deployments/$old/events";
$db->sql("DELETE FROM member WHERE user_id = $gus_id");
ok($of{$_}->has_ended, "$_ ends when its user is no member any more") for '/api/events?projectId=1',
    "/api/deployments/$old/events";
my $still = deployment(1, 'pending');
ok($all->wait_for(qr/"id":$still,"status":"pending"/), 'a stream with a valid token continues');

# --- many listeners
my @many = map { stream('/api/events') } 1 .. 60;
ok($_->wait_for(qr/^retry/m), 'one of many streams begins') for $many[0], $many[-1];
my $shared = deployment(2, 'pending');
is(scalar(grep { $_->wait_for(qr/"id":$shared,"status":"pending"/) } @many), 60,
    'all of many listeners get an event');
my $kib = slurp("/proc/$live/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
cmp_ok($kib, '<', 32 * 1024, "slipway-live takes less than 32 MiB ($kib KiB)") if !sanitized();
$_->close for @many;

# --- outages
stop_process($live, 'KILL');
ok($all->has_ended, 'streams end if slipway-live is killed');
my $got = $api->get('/api/events');
is("$got->{status} $got->{json}{code}", '503 unavailable', 'without slipway-live a stream returns 503');
like($got->{json}{detail}, qr/slipway-live is not running/, 'the error names slipway-live');
like($got->{headers}{'retry-after'}, qr/^\d+$/, 'the error says when to try again');
is($api->get('/api/deployments')->{status}, 200, 'without slipway-live other requests succeed');
$live = $api->start_live;
$all = stream('/api/events');
ok($all->wait_for(qr/"id":$shared,"status":"pending"/), 'a restarted slipway-live sends the present state');

# --- without a listener
$_->close for $all, $other, $one, $ended, $again;
my $statements = sub { $db->sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'") =~ s/\D//gr };
my $n = -1;
ok(poll(60, sub { my $was = $n; $n = $statements->(); select undef, undef, undef, 0.5; return $n == $was }),
    'without a listener slipway-live sends no statement');
is(stop_process($live), 0, 'slipway-live ends on SIGTERM');

done_testing;
