#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A push event is answered within a second, also where it starts a hundred
# deployments and whatever state the Git server is in: who sends it waits for
# the answer, and nobody is asked anything before that is written.

use strict;
use warnings;
use IO::Socket::INET;
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Hostile;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my $db = Slipway::DB->start;
my $key = tempdir() . '/secret.key';
my $made = 0;
my $commit = 0;
sub fresh { return sprintf '%040x', ++$commit + 0xabcd0000 }

# slipway for a Git server, with a project there: as many triggers as may be, of
# which a push of "main" matches one, and a push of "main-all" all.
sub slipway {
	my ($conf, $url) = @_;
	my $n = $made++;
	my $api = Slipway::API->start(db => $db, migrated => $n, conf => "$conf\[secrets]\nkey_file = $key\n");
	ok($api->create_keys($key), 'slipway-admin key creates the keys for secrets') if !-e $key;
	my $project = $api->post('/api/projects', { name => "p$n", repository => "$url/owner/name$n.git" })->{json}{id};
	my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
	my @vars = map { ("V$_" => 'x' x 100) } 1 .. 20;
	my $got = $api->put("/api/projects/$project", { triggers => [ map { { branch => $_, pipelineId => $pipeline, envVars => { @vars } } } 'main*', ('main-all') x 99 ] });
	is($got->{status}, 200, 'a project with triggers') or diag($got->{body});
	return { api => $api, open => $api->as('none'), project => $project, path => "owner/name$n",
		secret => $api->put("/api/projects/$project/hook-secret")->{json}{secret} };
}
sub push_of {
	my ($s, $branch, %o) = @_;
	my ($headers, $body) = push_event(gitea => $o{secret} || $s->{secret}, branch => $branch, path => $s->{path}, commit => fresh(), repo_id => 9000 + $s->{project}, %o);
	my $began = time;
	my $got = $s->{open}->post("/api/hooks/$s->{project}", $body, $headers);
	$got->{took} = time - $began;
	return $got;
}

# What an event of each sort is answered with.
my %sorts = (
	'a push that starts one' => [ 202, 'main' ],
	'a push that starts a hundred' => [ 202, 'main-all' ],
	'a push that starts nothing' => [ 204, 'other' ],
	'a deleted branch' => [ 204, 'main', commit => '0' x 40 ],
	'a push that is signed by somebody else' => [ 401, 'main', secret => 'whsec_' . 'A' x 43 . '=' ],
);
# The best of a few: how busy the machine is decides about any single one.  So
# few that a server which is not answered to is not yet given up, and then again
# by workers that know nothing of it.
sub soon {
	my ($s, $sort, $when) = @_;
	my ($status, $branch, %o) = @{ $sorts{$sort} };
	my ($best, $answered) = (9999, 1);
	for my $round (1 .. 3) {
		for (1 .. 4) {
			my $got = push_of($s, $branch, %o);
			$answered &&= $got->{status} == $status || diag("$got->{status} $got->{body}") && 0;
			$best = $got->{took} if $got->{took} < $best;
		}
		last if $best < 1;
		$s->{api}->stop_api;
		$s->{api}->start_api;
	}
	ok($answered, "$when: $sort: $status");
	cmp_ok($best, '<', deadline(1), sprintf '%s: %s: answered in %.0f ms', $when, $sort, 1000 * $best);
	return;
}
sub all_soon { my ($s, $when) = @_; soon($s, $_, $when) for sort keys %sorts; return }

# Runs the code while so many wait for branches of the project.
sub meanwhile {
	my ($s, $n, $code) = @_;
	my @pids = map {
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if (!$pid) {
			delete $s->{api}{http};
			$s->{api}->get("/api/git/branches?projectId=$s->{project}");
			POSIX::_exit(0);
		}
		$pid;
	} 1 .. $n;
	$code->(@pids);
	waitpid $_, 0 for @pids;
	return;
}

# --- a server that is well, and sees what it is asked
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('bot');
my $s = slipway($forge->conf(token => scalar $forge->token('bot')), $forge->url);
my $many = push_of($s, 'main-all');
is(scalar @{ $many->{json}{data} || [] }, 100, 'a hundred triggers match: a hundred deployments') or diag($many->{body});
is($db->sql('SELECT COUNT(*) FROM deployment'), 100, 'which are there');
is(push_of($s, 'main', event => 'ping')->{status}, 204, 'a ping');
is(push_of($s, 'main', path => 'owner/other', repo_id => 1)->{status}, 422, 'a push of another repository');
all_soon($s, 'a Git server that is well');
is_deeply([ map { "$_->{method} $_->{path}" } $forge->requests ], [], 'it was asked nothing for all of these');
$s->{api}->get("/api/git/branches?projectId=$s->{project}");
cmp_ok(scalar(my @asked = $forge->requests), '>', 0, 'as it is for branches');
$s->{api}->stop;
$forge->stop;

# --- it takes connections, and that is all
my ($silent, $url) = Slipway::Hostile->silent;
my $http = "allow_http = yes\ntype = gitea\ntoken = t\n";
$s = slipway("[gitserver]\nurl = $url\n$http", $url);
all_soon($s, 'silent');
$silent->blocking(0);
ok(!defined $silent->accept, 'nobody has connected to it for all of these');
meanwhile($s, 3, sub {
	my (@asking) = @_;
	my @held;
	ok(poll(10, sub { my $one = $silent->accept; push @held, $one if $one; @held }), 'somebody waits for it,');
	soon($s, 'a push that starts one', 'while others wait for the silent one');
	soon($s, 'a push that starts a hundred', 'while others wait for the silent one');
	kill 'TERM', @asking;
});
$s->{api}->stop;

# --- it is dead: it refuses, it is a black hole, nobody knows its name
my $port = free_port();
my ($full, $hole) = Slipway::Hostile->full;
for my $case ([ 'refused', "http://127.0.0.1:$port" ], [ 'a black hole', $hole ], [ 'a name that nobody knows', 'http://no-such-host.invalid' ]) {
	my ($when, $address) = @$case;
	$s = slipway("[gitserver]\nurl = $address\n$http", $address);
	all_soon($s, $when);
	$s->{api}->stop;
}
done_testing;
