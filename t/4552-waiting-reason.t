#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The API says why a pending deployment waits.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[gitserver]\nallow_local = yes\n");
my $runner = Slipway::Runner->start(db => $db, idle => 1, conf => "[runner]\nslots = 1\nuid_count = 2\n");
my $uid = $runner->{uid_first};
sub waits { my ($id) = @_; return $api->get("/api/deployments/$id")->{json}{waitingFor} }
sub waits_for {
	my ($id, $reason, $detail, $name) = @_;
	my $for;
	ok(poll(60, sub { $for = waits($id); return @$for == 1 && $for->[0]{reason} eq $reason
	    && $for->[0]{detail} =~ $detail }), $name)
	    or diag(explain($for), tail($runner->said, 20));
	return;
}
my @project = map { $runner->project } 0 .. 3;
my $go = tempdir() . '/go';
my $hold = "echo up; while test ! -e $go; do sleep 0.1; done";

my $first = $runner->deploy($project[0], $hold);
is_deeply([grep { $_->{reason} ne 'no_runner' } @{ waits($first) }], [],
    'a new deployment waits for nothing but a runner');
waits_for($first, 'no_runner', qr/slipway-runner/, 'a deployment without a runner waits for one');
my $second = $runner->deploy($project[0], 'true');
waits_for($second, 'project_busy', qr/^Deployment $first of this project comes first\.$/,
    'a deployment behind another of its project waits for it');
is($api->get("/api/deployments/$second")->{json}{queuePosition}, 1,
    'the position in the queue counts the other deployment');
$runner->resume;
ok(poll(30, sub { $runner->log($first) =~ /^up$/m }), 'the first deployment runs');
is_deeply(waits($first), [], 'a running deployment waits for nothing');
is($api->get("/api/deployments/$first")->{json}{queuePosition}, undef,
    'a running deployment has no position in the queue');
waits_for($second, 'project_busy', qr/^Deployment $first of this project is running\.$/,
    'a deployment behind a running one of its project waits for it');
my $third = $runner->deploy($project[1], 'true');
waits_for($third, 'slots', qr/has a free slot/, 'a deployment of another project waits for a slot');
ok(!exists $api->get('/api/deployments')->{json}{data}[0]{waitingFor}, 'a list does not contain waitingFor');
spew($go, '');
is($runner->wait($_), 'success', "deployment $_ succeeds") for $first, $second, $third;
is_deeply(waits($third), [], 'a finished deployment waits for nothing');
$runner->stop;

# --- accounts that other processes use
if (!is_root()) {
	note('without root there is one account');
	done_testing();
	exit;
}
unlink $go;
$runner->write_conf("[runner]\nslots = 4\nuid_count = 2\n");
$runner->resume;
my $mine = $uid + $project[1] % 2;
my $foreign = start_process({ name => 'foreign' }, 'setpriv', '--reuid', $mine, '--regid', $mine,
    '--clear-groups', 'sleep', '600');
ok(poll(10, sub { (stat "/proc/$foreign")[4] == $mine }),
    'a process of another service uses the account of a project');
my $blocked = $runner->deploy($project[1], 'true');
waits_for($blocked, 'slots',
    qr/did not start them: another service on the host may use the same user ids \(runner\.uid_first\)/,
    'a deployment whose account other processes use waits for a slot');
like($runner->said, qr/ \Q$blocked\E waits: Processes of the account/,
    'the log says that an account is in use');
is($runner->wait($runner->deploy($project[0], 'true')), 'success',
    'a project with another account is deployed');
stop_process($foreign);
is($runner->wait($blocked), 'success', 'the deployment succeeds when the process has ended');
my $long = $runner->deploy($project[1], $hold);
ok(poll(30, sub { $runner->log($long) =~ /^up$/m }), 'a deployment runs');
my $shared = $runner->deploy($project[3], 'true');
waits_for($shared, 'slots', qr/^Another deployment runs under the account that it needs\.$/,
    'a deployment with the same account as a running one waits for it');
spew($go, '');
is($runner->wait($_), 'success', "deployment $_ succeeds") for $long, $shared;
$runner->stop;
done_testing();
