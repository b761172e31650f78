#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The keys of a running service are rotated, and the old ones dropped: deployments
# from before succeed, also those in the queue, and clients notice nothing.  No
# process is reloaded.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use POSIX ();
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $true = JSON::PP::true;
my $json = Cpanel::JSON::XS->new->canonical;
my $all = Slipway::Whole->start;
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $keys = tempdir() . '/keys';

sub preset {
	my ($key, %more) = @_;
	return { key => $key, label => $key, type => 'input', secret => $true, %more }
}
sub sum { my ($text) = @_; return (split /\n/, (run_cmd({ stdin => $text }, 'cksum'))[1])[0] }
my $repo = $runner->repo;
my $project = $all->project($repo,
    envPresets => [ preset('FIXED', default => 'fixed tuna'), preset('GIVEN') ]);
my $pipeline = $all->pipeline($project, join "\n",
    map { "printf '$_ %s\\n' \"\$(printf %s \"\$$_\" | cksum)\"" } qw(FIXED GIVEN));
my $got = $api->put("/api/projects/$project",
    { triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => { GIVEN => 'pushed tuna' } } ] });
is($got->{status}, 200, 'a project with secrets is stored') or diag($got->{body});
my $hook = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
my ($hash) =
    (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, 'rev-parse', 'HEAD'))[1] =~ /^(\w+)$/m;

sub post {
	my ($given) = @_;
	return $all->post(projectId => $project, pipelineId => $pipeline, envVars => { GIVEN => $given });
}
sub retry { my ($id) = @_; return $api->post("/api/deployments/$id/retry")->{json}{id} }
sub pushed {
	my ($delivery) = @_;
	my ($headers, $body) = push_event(gitea => $hook, branch => 'main', path => $path, commit => $hash);
	my $answer = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	return $answer->{json}{data}[0]{id} if $answer->{status} == 202;
	diag($answer->{body});
	return;
}
sub ran {
	my ($id, $what, $given) = @_;
	my $end = $all->wait($id);
	is($end->{status}, 'success', $what) or diag($end->{detail}, $runner->said);
	my ($fixed, $sum) = (sum('fixed tuna'), sum($given));
	like($all->log($id), qr/^FIXED \Q$fixed\E\nGIVEN \Q$sum\E$/m, "$what: the step has the values");
	return;
}
sub key {
	my (@args) = @_;
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', "$keys/slipway.conf", 'key',
	    @args);
	return ($status >> 8, "$out$err");
}
sub done {
	my ($want, @args) = @_;
	my ($status, $said) = key(@args);
	is($status, 0, "slipway-admin key @args succeeds") or diag($said);
	like($said, $want, "slipway-admin key @args prints its result");
	return;
}
sub age { my $then = time - 400; utime $then, $then, "$keys/secret.key", "$keys/deploy.key"; return }
sub numbers {
	my %n;
	for (split /\n/,
	    $db->sql('SELECT secret_vars FROM deployment WHERE secret_vars IS NOT NULL UNION ALL SELECT '
	    . 'secret_defaults FROM project WHERE secret_defaults IS NOT NULL'
	    . ' UNION ALL SELECT trigger_secrets FROM project WHERE trigger_secrets IS NOT NULL')) {
		$n{ unpack 'xN', decode_base64($_) }++ for values %{ $json->decode($_) };
	}
	return join ' ', sort keys %n;
}

my $before = post('given tuna 1');
ran($before, 'a deployment before the rotation succeeds', 'given tuna 1');
$runner->stop;
my $queued = post('given tuna 2');
my $pushed = pushed();
ok($pushed, 'a push starts a deployment');
my @workers = sort $api->workers;

# --- new keys, and the old ones dropped, while deployments are pending
done(qr/new first key/);
my $newer = post('given tuna 3');
is(numbers(), '1 2', 'new values are encrypted with the new key');
done(qr/^no value depends on an older key$/m, '--reseal');
is(numbers(), '2', 'after --reseal all values are encrypted with the new key');
utime undef, undef, "$keys/secret.key", "$keys/deploy.key";
my ($status, $said) = key('--prune');
is("$status $said" =~ /^75 .*try again in \d+ seconds$/m, 1,
    '--prune keeps the old key for processes that may use it')
    or diag($said);
age();
done(qr/deploy\.key: key 1 \(.{8}\) was dropped$/m, '--prune');
is(join(' ', map { scalar(() = slurp("$keys/$_") =~ /\n/g) } qw(secret.key deploy.key deploy.pub)), '1 1 1',
    'after --prune each file has one key');
is(join(' ', sort $api->workers), "@workers", 'the workers are the same, with nothing reloaded');
my $last = post('given tuna 4');
my $retried = retry($before);
my $again = pushed();
ok($again, 'the webhook secret can be decrypted');
is(numbers(), '2', 'no value is encrypted with the old key again');

$runner->resume;
ran($queued, 'a deployment from before the rotation succeeds', 'given tuna 2');
ran($pushed, 'a deployment of a push from before the rotation succeeds', 'pushed tuna');
ran($newer, 'a deployment during the rotation succeeds', 'given tuna 3');
ran($last, 'a deployment after the rotation succeeds', 'given tuna 4');
ran($retried, 'a retry of a deployment from before the rotation succeeds', 'given tuna 1');
ran($again, 'a push after the rotation succeeds', 'pushed tuna');

# --- clients that post all the time
my $stop = tempdir() . '/stop';
my $made = tempdir() . '/made';
$api->token('admin');
my $client = fork // die "fork: $!";
if ($client == 0) {
	my ($n, @ids) = (0);
	while (!-e $stop) {
		$n++;
		my %deployment = (projectId => $project, pipelineId => $pipeline,
		    envVars => { GIVEN => "given tuna c$n" });
		my @presets = (preset('FIXED', default => 'fixed tuna'),
		    preset('GIVEN', $n % 2 ? (default => "d$n") : ()));
		my $answer = $n % 3 ? $api->post('/api/deployments', \%deployment)
		    : $api->put("/api/projects/$project", { envPresets => \@presets });
		push @ids, $n % 3 ? "$answer->{json}{id} given tuna c$n" : () if $answer->{status} < 300;
		push @ids, "refused $answer->{status} $answer->{body}" if $answer->{status} >= 300;
		spew($made, join "\n", @ids, '');
	}
	POSIX::_exit(0);
}
$runner->stop;
sub lines { my $text = slurp($made) // ''; return scalar(() = $text =~ /\n/g) }
for my $round (3 .. 5) {
	my $had = lines();
	done(qr/new first key/);
	ok(poll(60, sub { lines() > $had + 2 }), "round $round: the client continues");
	done(qr/^variables of deployments: \d+ values/m, '--reseal');
	age();
	my ($rc, $text);
	ok(poll(120, sub { ($rc, $text) = key('--prune'); return 1 if $rc == 0; key('--reseal'); return 0 }),
	    "round $round: the old key is dropped") or diag($text);
}
spew($stop, '');
waitpid $client, 0;
my @made = split /\n/, slurp($made);
cmp_ok(scalar @made, '>', 6, "the client made @{[scalar @made]} requests" . @made);
is_deeply([ grep { /^refused/ } @made ], [], 'no request of the client was rejected');
is(numbers(), '5', 'all values are encrypted with the last key');
my ($one, @others) = map { [ split / /, $_, 2 ] } @made;
$api->post("/api/deployments/$_->[0]/cancel") for @others[0 .. $#others - 3];
$runner->resume;
ran($_->[0], "deployment $_->[0] of the client succeeds", $_->[1]) for $one, @others[-3 .. -1];
unlike($api->log . $runner->said, qr/does not open|cannot be (?:opened|decrypted)/,
    'no value failed to be decrypted');
$_->stop for $api, $runner, $db;
done_testing;
