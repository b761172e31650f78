#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A request that is repeated at once, after a lost response or after a day, creates
# one deployment and returns one response.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::Background;
use Slipway::DB;
use Slipway::Proxy;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 8\n");
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
$api->post('/api/pipelines',
    { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }
sub deploy {
	my ($key, %more) = @_;
	my %body = (projectId => $project, %more);
	return $api->post('/api/deployments', \%body, { 'Idempotency-Key' => $key });
}

# --- repeated requests
my $first = deploy('abc');
is($first->{status}, 201, 'a request with a key creates a deployment') or diag($first->{body});
my $second = deploy('abc');
is($second->{status}, 201, 'a repeated request returns the same status');
is($second->{body}, $first->{body}, 'a repeated request returns the same body');
is($second->{headers}{$_}, $first->{headers}{$_}, "a repeated request returns the same $_")
    for qw(location etag);
is(made(), 1, 'a repeated request creates no second deployment');
is(deploy('"abc"')->{body}, $first->{body}, 'a key in quotes is the same key');
$db->sql("UPDATE deployment SET status = 'running', started_at = NOW(3), epoch = 1");
is(deploy('abc')->{body}, $first->{body},
    'a repeated request returns the first response, not the present state');
my $got = deploy('abc', branch => 'other');
is($got->{status}, 422, 'another body with the same key returns 422');
like($got->{json}{detail}, qr/Idempotency-Key/, 'the error for another body names Idempotency-Key');
is(made(), 1, 'another body with the same key creates no deployment');
isnt(deploy('ABC')->{body}, $first->{body}, 'keys are case-sensitive');
isnt(deploy('abd')->{json}{id}, $first->{json}{id}, 'another key creates another deployment');
$got = $api->as('deployer')->post('/api/deployments', { projectId => $project },
    { 'Idempotency-Key' => 'abc' });
is($got->{json}{createdBy}, $db->sql("SELECT id FROM user WHERE username = 't-deployer'"),
    "the same key of another user creates another deployment");
isnt($api->post('/api/deployments', { projectId => $project })->{json}{id},
    $api->post('/api/deployments', { projectId => $project })->{json}{id},
    'each request without a key creates a deployment');

# --- invalid keys
my $count = made();
for my $bad ('', '""', 'a b', 'a, b', 'x' x 256, '"a', '"a"b"', '"a\\b"', '"' . 'x' x 256 . '"') {
	is(deploy($bad)->{status}, 400, 'the key <' . substr($bad, 0, 10) . '> is rejected');
}
is(made(), $count, 'rejected keys create no deployment');
is(deploy($_)->{status}, 201, 'the key <' . substr($_, 0, 20) . '> is accepted')
    for 'x' x 255, '"' . 'y' x 255 . '"', '8e03978e-40d5-43dd-bc93-6894a57f9324', '~!', 'a"b';

# --- rejected requests do not use up their keys
is(deploy('later', pipelineId => 999)->{status}, 422, 'an invalid request with a key is rejected');
is(deploy('later')->{status}, 201, 'a rejected request does not use up its key');

# --- retry
my $id = $first->{json}{id};
my $retry = $api->post("/api/deployments/$id/retry", undef, { 'Idempotency-Key' => 'again' });
is($retry->{status}, 201, 'a retry with a key creates a deployment') or diag($retry->{body});
is($api->post("/api/deployments/$id/retry", undef, { 'Idempotency-Key' => 'again' })->{body}, $retry->{body},
    'a repeated retry returns the first response');
is($api->post("/api/deployments/$retry->{json}{id}/retry", undef, { 'Idempotency-Key' => 'again' })->{status},
    422, 'a retry of another deployment with the same key returns 422');
is(deploy('again')->{status}, 422, 'a new deployment with the key of a retry returns 422');

# --- after a day
$db->sql("UPDATE idempotency SET created_at = created_at - INTERVAL 25 HOUR WHERE idempotency_key = 'abc'");
$got = deploy('abc', branch => 'new');
is($got->{status}, 201, 'a key is free after a day');
isnt($got->{json}{id}, $first->{json}{id}, 'a key that is a day old creates another deployment');
is(deploy('abc', branch => 'new')->{body}, $got->{body},
    'a repeated request returns the response of the new deployment');

# --- simultaneous requests
# Sends n requests as simultaneously as possible; "status id" of each, sorted.
sub at_once {
	my ($n, $key_of, $body_of) = @_;
	pipe my $gate_out, my $gate_in or die "pipe: $!";
	$api->token('admin');
	my @runs = map {
		my $k = $_;
		background(sub {
			delete $api->{http};
			close $gate_in;
			$api->get('/api/health');
			sysread $gate_out, my $go, 1; # until all have connected
			my $seen = deploy($key_of->($k), %{ $body_of->($k) });
			return "$seen->{status} " . ($seen->{json}{id} || 0);
		});
	} 1 .. $n;
	select undef, undef, undef, 0.5;
	close $gate_in;
	my @seen = sort map { $_->result } @runs;
	return @seen;
}
for my $round (1 .. 3) {
	$count = made();
	my @seen = at_once(20, sub { "storm$round" }, sub { {} });
	is(scalar @seen, 20, 'twenty simultaneous requests with one key get responses');
	my %different = map { $_ => 1 } @seen;
	is(scalar keys %different, 1, 'twenty simultaneous requests with one key get the same response')
	    or diag(join "\n", sort keys %different);
	like($seen[0], qr/^201 [1-9]/, 'twenty simultaneous requests with one key get a deployment');
	is(made(), $count + 1, 'twenty simultaneous requests with one key create one deployment');
}
$count = made();
my @seen = at_once(20, sub { 'mixed' }, sub { { branch => 'b' . $_[0] % 2 } });
is(made(), $count + 1, 'simultaneous requests with two bodies and one key create one deployment');
is(scalar(grep { /^201/ } @seen), 10,
    'ten of twenty requests with two bodies and one key get the deployment');
is(scalar(grep { /^422/ } @seen), 10, 'ten of twenty requests with two bodies and one key return 422');
$count = made();
@seen = at_once(20, sub { "own$_[0]" }, sub { {} });
is(made(), $count + 20, 'twenty simultaneous requests with different keys create twenty deployments');
is($db->sql('SELECT COUNT(*) FROM deployment d'
    . ' WHERE (SELECT COUNT(*) FROM deployment_step s WHERE s.deployment_id = d.id) <> 1'), 0,
    'every deployment has its steps');

# --- the stored hash of a request does not reveal it
sub stored_hash { return $db->sql("SELECT request_hash FROM idempotency WHERE idempotency_key = '$_[0]'") }
sub plain {
	my ($operation, $id, $body) = @_;
	return sha256_hex("$operation $id " . sha256_hex($body));
}
my $sent = Cpanel::JSON::XS->new->canonical->encode({ projectId => $project });
is(stored_hash('later'), '0' x 8 . substr(plain('createDeployment', 0, $sent), 0, 56),
    'without a key for secrets a plain hash is stored');
my $key = $api->dir . '/secret.key';
for my $round (1, 2) {
	ok(make_keys($api->conf_file, $key),
	    'slipway-admin key ' . ($round == 1 ? 'creates' : 'rotates') . ' the keys');
	chmod 0640, $key;
	my %old = map { $_ => 1 } $api->workers;
	kill 'HUP', $api->pid;
	ok(poll(15, sub { my @now = $api->workers; @now == 9 && !grep { $old{$_} } @now }),
	    'the workers read the new key');
	$got = deploy('sealed') if $round == 1;
	is($got->{status}, 201, 'a request creates a deployment while there is a key for secrets');
	is(deploy('sealed')->{body}, $got->{body},
	    'a repeated request returns the first response '
	    . ($round == 1 ? 'under the same key' : 'under a newer key'));
}
my $plain_hash = substr plain('createDeployment', 0, $sent), 0, 56;
unlike(stored_hash('sealed'), qr/$plain_hash/, 'with a key for secrets the stored hash depends on the key');
like(stored_hash('sealed'), qr/^00000001[0-9a-f]{56}$/, 'the stored hash names the number of its key');
is(deploy('sealed', branch => 'x')->{status}, 422, 'another body is detected by a hash with a key');
is(deploy('later', branch => 'x')->{status}, 422, 'another body is detected by a plain hash');
isnt(deploy('later')->{json}{id}, undef, 'a repeated request with a plain hash returns its deployment');
my $both = slurp($key);
spew("$key.new", (split /^/, $both)[0], 0640);
chown 0, (getpwnam 'nobody')[3], "$key.new" if is_root();
rename "$key.new", $key or die "rename: $!";
is(deploy('next')->{status}, 201, 'a request creates a deployment after the older key was removed');
like(stored_hash('next'), qr/^00000002/, 'a new stored hash names the newer key');
is(deploy('next', branch => 'x')->{status}, 422, 'another body is detected by a hash with the newer key');
my $before = made();
is(deploy('sealed')->{body}, $got->{body},
    'a repeated request whose key was removed returns the first response');
is(deploy('sealed', branch => 'x')->{body}, $got->{body},
    'another body with a removed key returns the first response');
is(made(), $before, 'requests with a removed key create no deployment');

# --- the database fails
$count = made();
$db->kill9;
is(deploy('dark')->{status}, 503, 'a request without the database returns 503');
$db->resume;
ok(poll(20, sub { deploy('dark')->{status} == 201 }),
    'the repeated request succeeds once the database is back');
is(made(), $count + 1, 'the repeated request creates one deployment');
$api->stop;

# --- packets to and from the database are lost
my $proxy = Slipway::Proxy->start($db->socket);
chmod 0777, $proxy->socket; # the service runs under another account
$api = Slipway::API->start(db => $db, migrated => 1, conf => "[api]\nworkers = 1\n"
    . "[database]\nsocket = " . $proxy->socket . "\ntimeout = 2\n");
is(deploy('warm-up')->{status}, 201, 'a request through the proxy succeeds') or diag($api->log);
for my $where ('before', 'after', 'answer') {
	$count = made();
	$proxy->plan("commit $where");
	$got = deploy("commit-$where");
	is($got->{status}, 201, "a request whose COMMIT is lost ($where) succeeds") or diag($got->{body});
	is(made(), $count + 1, "a request whose COMMIT is lost ($where) creates one deployment");
	is(deploy("commit-$where")->{body}, $got->{body},
	    "a repeated request after a lost COMMIT ($where) returns the first response");
}
my %met;
my $lost = 0;
for my $where ('before', 'after', 'answer') {
	for my $n (1 .. 12) {
		$count = made();
		my $cuts = $proxy->cuts;
		$proxy->plan("packet $n $where");
		my $tries = 1;
		$got = deploy("packet-$where-$n");
		$met{ $got->{status} }++;
		while ($got->{status} == 503 && $tries++ < 10) {
			$got = deploy("packet-$where-$n");
		}
		$proxy->plan('pass');
		$lost++ if $proxy->cuts > $cuts;
		is($got->{status} . ' ' . (made() - $count), '201 1',
		    "a request that is repeated after packet $n is lost ($where) creates one deployment")
		    or diag($got->{body});
	}
}
cmp_ok($lost, '>=', 28, "the proxy lost packets in most cases ($lost of 36)");
note('first responses: ' . join ', ', map { "$_: $met{$_}" } sort keys %met);
is(join(' ', grep { !/^(201|503)$/ } keys %met), '', 'every first response is 201 or 503');
is($db->sql('SELECT COUNT(*) FROM idempotency i LEFT JOIN deployment d ON d.id = i.deployment_id'
    . ' WHERE d.id IS NULL'), 0, 'every stored key has its deployment');
done_testing;
