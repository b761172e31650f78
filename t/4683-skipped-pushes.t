#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Pushes that start nothing: those whose commit asks for it, and events that arrive
# after a runner has found their push. The response says why.

use strict;
use warnings;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(ann => { id => 7 });
my $repo = $forge->repo('team/site', private => 1, users => ['ann']);
my $conf = $forge->conf(token => scalar $forge->token('ann'), report => 'no');
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\ncatch_up = 1\n");
my ($api, $runner) = ($all->api, $all->runner);
my @hash = $repo->commit('main', { version => "0\n" }, 'number 0');
sub another {
	my ($message) = @_;
	push @hash, $repo->commit('main', { version => @hash . "\n" }, $message // 'number ' . @hash);
	return $#hash;
}
my $project = $all->project($repo->clone_url);
my $pipeline = $all->pipeline($project, 'true');
my $second = $all->pipeline($project, 'true');
my %trigger = (pipelineId => $pipeline, envVars => {}, supersede => Cpanel::JSON::XS::false());
sub triggers {
	my $got = $api->put("/api/projects/$project", { triggers => [@_] });
	die "$got->{status} $got->{body}" if $got->{status} != 200;
	return;
}
triggers({ %trigger, branch => 'main' }, { %trigger, tag => 'v*' });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my $number = 0;
sub deliver {
	my ($i, $before, %more) = @_;
	my ($headers, $body) = push_event('gitea', $secret, path => 'team/site', repo_id => $repo->id,
	    commit => $hash[$i], %more, body => { n => ++$number, before => $hash[$before] });
	return $api->as('none')->post("/api/hooks/$project", $body, $headers);
}
sub ignored {
	my ($got, $why, $name) = @_;
	is($got->{status}, 204, "$name starts nothing") or diag($got->{body});
	like($got->{headers}{'x-slipway-ignored'}, $why, "$name: the response says why");
	return;
}
# The commits of all deployments, oldest first.
sub deployed {
	my %index = map { $hash[$_] => $_ } 0 .. $#hash;
	return join ' ', map { $index{ $_->{commitHash} } }
	    reverse @{ $api->get("/api/deployments?projectId=$project&limit=100")->{json}{data} };
}
sub becomes {
	my ($want, $name) = @_;
	ok(poll(60, sub { deployed() eq $want }), $name) or diag(deployed(), $runner->said);
	$all->wait($_->{id}) for @{ $api->get("/api/deployments?projectId=$project")->{json}{data} };
	return;
}

# --- an event that arrives after its push was found, and after a newer one
is(deliver(another(), 0)->{status}, 202, 'an event is accepted');
becomes('1', 'its commit is deployed');
$runner->stop;
another();
$runner->resume;
becomes('1 2', 'a push without an event is found');
is(deliver(another(), 2)->{status}, 202, 'the event of the next push is accepted');
becomes('1 2 3', 'its commit is deployed');
ignored(deliver(2, 1), qr/A runner has found this push/, 'the late event of an older push');
ignored(deliver(2, 1), qr/A runner has found this push/, 'another delivery of it');
triggers({ %trigger, branch => 'main' }, { %trigger, branch => 'main', pipelineId => $second });
is(scalar @{ deliver(2, 1)->{json}{data} }, 1, 'a trigger that was added since then starts its pipeline');
triggers({ %trigger, branch => 'main' }, { %trigger, tag => 'v*' });
becomes('1 2 3 2', 'the others start nothing again');
$runner->stop;
$repo->branch('main', $hash[2]);
is(deliver(2, 3)->{status}, 202, 'a push that takes the branch back to that commit is a new one');
$runner->resume;
becomes('1 2 3 2 2', 'its commit is deployed again');

# --- what the message of the commit asks for
$runner->stop;
my $last = 2;
for my $message ('docs [skip ci]', '[ci skip] docs', "docs\n\nMore. [no ci]\n", 'docs [Skip CI]',
    'docs [skip slipway]', 'docs [slipway skip]') {
	my ($mark) = $message =~ /(\[.*?\])/;
	my $i = another($message);
	ignored(deliver($i, $last, message => $message), qr/\Q$mark\E/i, $mark);
	$last = $i;
}
ignored(deliver($last, $last - 1, message => 'docs [skip ci]', ref => 'refs/tags/v1'), qr/\[skip ci\]/,
    'a tag of such a commit');
my $next = another();
$runner->resume;
becomes("1 2 3 2 2 $next", 'pushes that ask for it are not missed; the next one is found');
for my $message ('explain skip ci', 'docs [skip  ci]', '[skip tests]') {
	my $i = another($message);
	is(deliver($i, $i - 1, message => $message)->{status}, 202, "\"$message\" starts a deployment");
}
becomes("1 2 3 2 2 $next " . join(' ', $next + 1 .. $next + 3), 'these commits are deployed');
my $before = deployed();
$runner->stop;
another('docs [skip ci]');
$runner->resume;
ok(poll(60, sub { $runner->said =~ /the push of $hash[-1] to main is ignored: .*\[skip ci\]/ }),
    'a runner that finds such a push says so') or diag($runner->said);
is(deployed(), $before, 'it starts nothing');
ignored(deliver($#hash, $#hash - 1, message => 'docs [skip ci]'), qr/\[skip ci\]/, 'the event of that push');
is(deliver(another(), $#hash - 1)->{status}, 202, 'the next push is accepted');
becomes("$before $#hash", 'the next push is deployed');

# --- other events that start nothing
my ($headers, $body) = push_event('gitea', $secret, path => 'team/site', repo_id => $repo->id,
    commit => '0' x 40);
ignored($api->as('none')->post("/api/hooks/$project", $body, $headers), qr/was deleted/, 'a deletion');
ignored(deliver(1, 0, branch => 'other'), qr/No trigger/, 'a push to another branch');
ignored(deliver(1, 0, event => 'release'), qr/not a push/, 'another event');
$_->stop for $runner, $api, $all->db;
done_testing;
