#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# API, queue and runner together: a posted deployment starts at once, can be
# followed and canceled; secrets reach the steps and no log.

use strict;
use warnings;
use IO::Socket::SSL ();
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
my $repo = tempdir() . '/repo1';
# The poll interval is a minute: a deployment that starts sooner was announced by the API.
my $both = "[gitserver]\nallow_local = yes\n[runner]\npoll = 60\n";
my $api = Slipway::API->start(db => $db, conf => $both);
$api->start_live;
my $keys = $api->dir . '/secret.key';
make_keys($api->conf_file, $keys);
$api->stop_api;
$api->start_api;
my $runner = Slipway::Runner->start(db => $db, wake => $api->dir . '/wake.sock',
    conf => "$both\[secrets]\nkey_file = $keys\n");
is($runner->repo({ 'web/index.html' => "<p>hello\n" }), $repo, 'git creates a repository');
ok(poll(20, sub { -S $runner->wake_socket }), 'the dispatcher listens on its socket');

my $got = $api->post('/api/projects', { name => 'Shop', repository => $repo, defaultBranch => 'main',
	envPresets => [
		{ key => 'TARGET', label => 'Target', type => 'select', required => JSON::PP::true,
		    options => [{ label => 'Live', value => 'live' }, { label => 'Test', value => 'test' }] },
		{ key => 'PASSWORD', label => 'Password', type => 'input', secret => JSON::PP::true },
	] });
is($got->{status}, 201, 'a project is created') or diag($got->{body});
my $project = $got->{json}{id};
sub pipeline {
	my ($name, @scripts) = @_;
	my $n = 0;
	my $answer = $api->post('/api/pipelines', { projectId => $project, name => $name,
		steps => [map { ref $_ ? $_ : { name => 'step ' . ++$n, script => $_ } } @scripts] });
	is($answer->{status}, 201, "pipeline $name is created") or diag($answer->{body});
	return $answer->{json}{id};
}
sub post {
	my ($pipeline, %more) = @_;
	my $answer = $api->post('/api/deployments', { projectId => $project, pipelineId => $pipeline,
		envVars => { TARGET => 'live', PASSWORD => 'correct horse' }, %more });
	is($answer->{status}, 201, 'a deployment is created') or diag($answer->{body});
	return $answer->{json}{id};
}
sub show { my ($id) = @_; return $api->get("/api/deployments/$id")->{json} }
sub wait_for {
	my ($id, $want) = @_;
	my $now;
	poll(30, sub { $now = show($id); return $now->{status} =~ $want });
	return $now->{status};
}
my $final = qr/^(?:success|failed|canceled|interrupted)$/;

# --- a successful deployment
my $deploy = pipeline('deploy', 'cat web/index.html', 'echo "to $TARGET with $PASSWORD"', 'id -u');
my $id = post($deploy);
is(wait_for($id, $final), 'success', 'the deployment succeeds');
my $done = show($id);
is($done->{runner}, 'runner-1', 'the deployment has its runner');
like($done->{commitHash}, qr/^[0-9a-f]{40}$/, 'the deployment has its commit');
is(scalar(grep { $_->{status} eq 'success' && $_->{exitCode} == 0 } @{ $done->{steps} }), 3,
    'the steps have their status');
ok(!defined $done->{envVars}{PASSWORD} && $done->{envVars}{TARGET} eq 'live',
    'the deployment shows no secret');
my $log = $api->get("/api/deployments/$id/log");
is($log->{status}, 200, 'the log is read');
is($log->{headers}{'x-log-complete'}, 'true', 'the log is complete');
is($log->{headers}{'x-log-size'}, length $log->{body}, 'X-Log-Size is the size of the log');
is($done->{logSize}, length $log->{body}, 'logSize is the size of the log');
like($log->{body}, qr/^<p>hello$/m, 'the step has the checkout');
like($log->{body}, qr/^to live with \S+$/m, 'the step has the secret');
unlike($log->{body}, qr/correct horse/, 'the secret is masked in the log');
my ($uid) = $log->{body} =~ /^(\d+)$/m;
if (is_root()) { isnt($uid, 0, "steps run as $uid") } else { is($uid, $>,
    'steps run under the same account') }
is($api->get("/api/projects/$project")->{json}{workspaceStatus}{status}, 'ready',
    'the project shows the state of the workspace');

# --- a secret in different encodings, read through nginx
my $dresses = pipeline('dresses', 'printf "plain %s\n" "$PASSWORD"
for before in "" x xy; do printf "base64 %s\n" "$(printf %s "$before$PASSWORD" | base64 -w 0)"; done
printf "address "; printf %s "$PASSWORD" |
perl -pe "s/([^A-Za-z0-9._~-])/sprintf q(%%%02X), ord(\$1)/ge"; echo
printf "slow "; printf %s "$PASSWORD" |
perl -e "$| = 1; while (read STDIN, my \$c, 1) { print \$c; select undef, undef, undef, 0.02 }"; echo
printf "%s\n" "$PASSWORD" | sed "s/^/line /"');
for my $secret ('correct horse&battery/1', "first of three\nsecond & more\nthe third of it") {
	my $first = post($dresses, envVars => { TARGET => 'live', PASSWORD => $secret });
	is(wait_for($first, $final), 'success', 'a step that prints its secret succeeds');
	my $again = $api->post("/api/deployments/$first/retry")->{json}{id};
	is(wait_for($again, $final), 'success', 'a retry with the copied secret succeeds');
	for my $shown (map { $api->get("/api/deployments/$_/log")->{body} } $first, $again) {
		my @parts = split /\n/, $secret;
		# the first bytes of slow output, fewer than eight, may be shown
		my $begun = join '|', map { quotemeta substr $secret, 0, $_ } 0 .. 7;
		my @dressed = map { my $part = $_;
			($part, $part =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ger) } @parts;
		push @dressed, map { substr encode_base64("$_$secret", ''), 4, -4 } '', 'x', 'xy';
		is_deeply([grep { index($shown, $_) >= 0 } @dressed], [],
		    'the log has the secret in no encoding')
		    or diag($shown);
		like($shown, qr/^$_ \S*\*\*\*/m, "the log marks the masked secret: $_")
		    for qw(plain base64 address line);
		like($shown, qr/^slow (?:$begun)\*\*\*$/m, 'the log marks the masked secret: slow');
	}
}

# --- the delay of a start
my $started = tempdir() . '/started';
spew($started, '', 0666);
my $stamp = pipeline('stamp', "date +%s.%N >$started");
my $late = best_of(2, sub {
	my @late;
	for (1 .. 15) {
		spew($started, '');
		my $before = time;
		$id = post($stamp);
		poll(20, sub { -s $started });
		push @late, slurp($started) - $before;
		wait_for($id, $final);
	}
	@late = sort { $a <=> $b } @late;
	return $late[7];
});
diag(sprintf 'from POST to the first output of the script: median %.0f ms', 1000 * $late);
cmp_ok($late, '<', deadline(2), 'a POST starts the deployment at once');

# --- the log of a running deployment
my $gate = spew(tempdir() . '/gate', '');
my $slow = pipeline('slow', 'for n in 1 2 3 4 5 6 7 8 9 10; do date +at-%s.%N; sleep 0.3; done;'
    . " until test -e $gate; do sleep 0.1; done", 'exit 9',
    { name => 'cleanup', script => 'echo cleaned', runWhen => 'always' });
my ($text, @ages);
my $age = best_of(1, sub {
	$id = post($slow);
	($text, @ages) = ('');
	poll(30, sub {
		my $more = $api->get("/api/deployments/$id/log?wait=5&offset=" . length $text);
		my $now = time;
		push @ages, map { $now - $_ } $more->{body} =~ /^at-([\d.]+)$/mg;
		$text .= $more->{body};
		return $more->{headers}{'x-log-complete'} eq 'true';
	});
	@ages = sort { $a <=> $b } @ages;
	return $ages[5];
});
is(scalar @ages, 10, 'every line is read while the deployment runs');
diag(sprintf 'from the step to the reader of the API: median %.0f ms', 1000 * $age);
cmp_ok($age, '<', deadline(1), 'a line is read soon after it was written');
is($text, $api->get("/api/deployments/$id/log")->{body}, 'the parts make up the whole log');
like($text, qr/^cleaned$/m, 'the log has the output of the cleanup step');
is(show($id)->{status}, 'failed', 'the deployment fails');
is(show($id)->{reason}, 'step_failed', 'the deployment has the reason step_failed');
unlink $gate;
my $again = $api->post("/api/deployments/$id/retry", {});
is($again->{status}, 201, 'a retry is created');
$id = $again->{json}{id};

# --- cancels
is(wait_for($id, qr/^running$/), 'running', 'the retry runs');
my $behind = post($deploy);
is(show($behind)->{status}, 'pending', 'the next deployment waits');
is($api->post("/api/deployments/$behind/cancel", {})->{json}{status}, 'canceled',
    'a pending deployment is canceled at once');
my $before = stopwatch();
is($api->post("/api/deployments/$id/cancel", {})->{status}, 200,
    'a cancel of a running deployment is accepted');
is(wait_for($id, $final), 'canceled', 'a running deployment is canceled');
cmp_ok($before->(), '<', deadline(30), 'a running deployment is canceled at once');
is(show($id)->{reason}, 'canceled_by_user', 'a canceled deployment has the reason canceled_by_user');
is($api->post("/api/deployments/$id/cancel", {})->{status}, 409, 'a second cancel returns 409');
$again = $api->post("/api/deployments/$behind/retry", {});
is(wait_for($again->{json}{id}, $final), 'success', 'a retry of a canceled deployment succeeds');
like($api->get("/api/deployments/$again->{json}{id}/log")->{body}, qr/^to live with \S+$/m,
    'a retry of a canceled deployment has the secret');
unlike($runner->said . $api->log, qr/correct horse/, 'the logs of API and runner do not contain the secret');
ok($runner->is_clean, 'deployments leave nothing behind');
is($runner->stop, 0, 'the runner stops');
done_testing;
