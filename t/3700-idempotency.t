#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The same request sent again, at once, after a lost answer, after a day: one
# deployment, one answer.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Proxy;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 8\n");
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
$api->post('/api/pipelines', { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }
sub deploy { my ($key, %more) = @_; return $api->post('/api/deployments', { projectId => $project, %more }, { 'Idempotency-Key' => $key }) }

# --- one after the other
my $first = deploy('abc');
is($first->{status}, 201, 'a deployment under a key') or diag($first->{body});
my $second = deploy('abc');
is($second->{status}, 201, 'again: the same status');
is($second->{body}, $first->{body}, 'the same body');
is($second->{headers}{$_}, $first->{headers}{$_}, "the same $_") for qw(location etag);
is(made(), 1, 'and but one deployment');
is(deploy('"abc"')->{body}, $first->{body}, 'the key in quotes is the same');
$db->sql("UPDATE deployment SET status = 'running', started_at = NOW(3), epoch = 1");
is(deploy('abc')->{body}, $first->{body}, 'the first answer, not how it is now');
my $got = deploy('abc', branch => 'other');
is($got->{status}, 422, 'another body under the key: 422');
like($got->{json}{detail}, qr/Idempotency-Key/, 'it says why');
is(made(), 1, 'which makes nothing');
isnt(deploy('ABC')->{body}, $first->{body}, 'keys differ by case');
isnt(deploy('abd')->{json}{id}, $first->{json}{id}, 'another key, another deployment');
is($api->as('deployer')->post('/api/deployments', { projectId => $project }, { 'Idempotency-Key' => 'abc' })->{json}{createdBy},
    $db->sql("SELECT id FROM user WHERE username = 't-deployer'"), "another user's key is another key");
isnt($api->post('/api/deployments', { projectId => $project })->{json}{id},
    $api->post('/api/deployments', { projectId => $project })->{json}{id}, 'without a key each makes one');

# --- what is no key
my $count = made();
for my $bad ('', '""', 'a b', 'a, b', 'x' x 256, '"a', '"a"b"', '"a\\b"', '"' . 'x' x 256 . '"') {
	is(deploy($bad)->{status}, 400, 'no key: ' . substr $bad, 0, 10);
}
is(made(), $count, 'none of these made anything');
is(deploy($_)->{status}, 201, 'a key: ' . substr $_, 0, 20)
    for 'x' x 255, '"' . 'y' x 255 . '"', '8e03978e-40d5-43dd-bc93-6894a57f9324', '~!', 'a"b';

# --- refusals are not kept
is(deploy('later', pipelineId => 999)->{status}, 422, 'a refused request');
is(deploy('later')->{status}, 201, 'does not use up its key');

# --- retry
my $id = $first->{json}{id};
my $retry = $api->post("/api/deployments/$id/retry", undef, { 'Idempotency-Key' => 'again' });
is($retry->{status}, 201, 'a retry under a key') or diag($retry->{body});
is($api->post("/api/deployments/$id/retry", undef, { 'Idempotency-Key' => 'again' })->{body}, $retry->{body}, 'twice: one retry');
is($api->post("/api/deployments/$retry->{json}{id}/retry", undef, { 'Idempotency-Key' => 'again' })->{status}, 422, 'of another deployment: 422');
is(deploy('again')->{status}, 422, 'for a new deployment: 422');

# --- a day later
$db->sql("UPDATE idempotency SET created_at = created_at - INTERVAL 25 HOUR WHERE idempotency_key = 'abc'");
$got = deploy('abc', branch => 'new');
is($got->{status}, 201, 'after a day the key is free');
isnt($got->{json}{id}, $first->{json}{id}, 'and makes a new one');
is(deploy('abc', branch => 'new')->{body}, $got->{body}, 'which is kept in turn');

# --- at once
sub at_once {
	my ($n, $key_of, $body_of) = @_;
	pipe my $from, my $to or die "pipe: $!";
	pipe my $gate_out, my $gate_in or die "pipe: $!";
	$api->token('admin');
	my @pids = map {
		my $k = $_;
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if ($pid == 0) {
			delete $api->{http};
			close $gate_in;
			$api->get('/api/health');
			sysread $gate_out, my $go, 1;
			my $seen = deploy($key_of->($k), %{ $body_of->($k) });
			syswrite $to, "$seen->{status} " . ($seen->{json}{id} || 0) . "\n";
			POSIX::_exit(0);
		}
		$pid;
	} 1 .. $n;
	close $to;
	select undef, undef, undef, 0.5;
	close $gate_in;
	my @seen = <$from>;
	waitpid $_, 0 for @pids;
	chomp @seen;
	return sort @seen;
}
for my $round (1 .. 3) {
	$count = made();
	my @seen = at_once(20, sub { "storm$round" }, sub { {} });
	is(scalar @seen, 20, 'twenty at once are answered');
	my %different = map { $_ => 1 } @seen;
	is(scalar keys %different, 1, 'all alike') or diag(join "\n", sort keys %different);
	like($seen[0], qr/^201 [1-9]/, 'with a deployment');
	is(made(), $count + 1, 'the only one');
}
$count = made();
my @seen = at_once(20, sub { 'mixed' }, sub { { branch => 'b' . $_[0] % 2 } });
is(made(), $count + 1, 'two bodies under one key at once: one deployment');
is(scalar(grep { /^201/ } @seen), 10, 'ten got it');
is(scalar(grep { /^422/ } @seen), 10, 'ten are refused');
$count = made();
@seen = at_once(20, sub { "own$_[0]" }, sub { {} });
is(made(), $count + 20, 'twenty keys at once: twenty deployments');
is($db->sql("SELECT COUNT(*) FROM deployment d WHERE (SELECT COUNT(*) FROM deployment_step s WHERE s.deployment_id = d.id) <> 1"), 0,
    'each with its steps');

# --- what was sent cannot be guessed from what is kept of it
sub kept { return $db->sql("SELECT request_hash FROM idempotency WHERE idempotency_key = '$_[0]'") }
sub plain {
	my ($operation, $id, $body) = @_;
	return sha256_hex("$operation $id " . sha256_hex($body));
}
my $sent = JSON::PP->new->canonical->encode({ projectId => $project });
is(kept('later'), '0' x 8 . substr(plain('createDeployment', 0, $sent), 0, 56), 'without a key for secrets, which are not taken then, a hash');
my $key = $api->dir . '/secret.key';
for my $round (1, 2) {
	my ($status, undef, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
	is($status, 0, 'there is a key') or diag($err);
	chmod 0640, $key;
	chown 0, (getpwnam 'nobody')[3], $key if is_root();
	my %old = map { $_ => 1 } $api->workers;
	kill 'HUP', $api->pid;
	ok(poll(15, sub { my @now = $api->workers; @now == 11 && !grep { $old{$_} } @now }), 'the workers have it');
	$got = deploy('sealed') if $round == 1;
	is($got->{status}, 201, 'a deployment under a key for secrets');
	is(deploy('sealed')->{body}, $got->{body}, $round == 1 ? 'and its answer again' : 'also once there is a newer one');
}
unlike(kept('sealed'), qr/@{[substr plain('createDeployment', 0, $sent), 0, 56]}/, 'what is kept follows from the key');
like(kept('sealed'), qr/^00000001[0-9a-f]{56}$/, 'as a code that says which');
is(deploy('sealed', branch => 'x')->{status}, 422, 'of that body only');
is(deploy('later', branch => 'x')->{status}, 422, 'what is kept from before there were keys can be told');
isnt(deploy('later')->{json}{id}, undef, 'and is answered');
my $both = slurp($key);
spew("$key.new", (split /^/, $both)[0], 0640);
chown 0, (getpwnam 'nobody')[3], "$key.new" if is_root();
rename "$key.new", $key or die "rename: $!";
is(deploy('next')->{status}, 201, 'the older key is taken out, and nobody is told to reload');
like(kept('next'), qr/^00000002/, 'a newer code');
is(deploy('next', branch => 'x')->{status}, 422, 'can be told');
my $before = made();
is(deploy('sealed')->{body}, $got->{body}, 'of the older nobody can tell any more: the first answer stands');
is(deploy('sealed', branch => 'x')->{body}, $got->{body}, 'whatever is sent');
is(made(), $before, 'and nothing is run twice');

# --- the database goes away
$count = made();
$db->kill9;
is(deploy('dark')->{status}, 503, 'no database: 503');
$db->resume;
ok(poll(20, sub { deploy('dark')->{status} == 201 }), 'the same request again is taken');
is(made(), $count + 1, 'once');
$api->stop;

# --- packets to and from the database get lost
my $proxy = Slipway::Proxy->start($db->socket);
chmod 0777, $proxy->socket; # the service runs under another account
$api = Slipway::API->start(db => $db, migrated => 1, conf => "[api]\nworkers = 1\n"
    . "[database]\nsocket = " . $proxy->socket . "\ntimeout = 2\n");
is(deploy('warm-up')->{status}, 201, 'through the proxy') or diag($api->log);
for my $where ('before', 'after', 'answer') {
	$count = made();
	$proxy->plan("commit $where");
	$got = deploy("commit-$where");
	is($got->{status}, 201, "a COMMIT that is lost ($where) is resolved") or diag($got->{body});
	is(made(), $count + 1, 'once');
	is(deploy("commit-$where")->{body}, $got->{body}, 'and its answer is kept');
}
my %met;
my $lost = 0;
for my $where ('before', 'after', 'answer') {
	for my $n (1 .. 18) {
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
		is($got->{status} . ' ' . (made() - $count), '201 1', "packet $n is lost ($where): one deployment in the end")
		    or diag($got->{body});
	}
}
cmp_ok($lost, '>=', 40, "packets were lost indeed: $lost of 54");
note('first answers: ' . join ', ', map { "$_: $met{$_}" } sort keys %met);
is(join(' ', grep { !/^(201|503)$/ } keys %met), '', 'taken or refused for now, nothing else');
is($db->sql('SELECT COUNT(*) FROM idempotency i LEFT JOIN deployment d ON d.id = i.deployment_id WHERE d.id IS NULL'), 0,
    'every key that is kept has its deployment');
done_testing;
