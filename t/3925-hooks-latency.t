#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A push event gets its response within a second, even if it starts a hundred
# deployments and whatever state the Git server is in: the sender waits for the
# response, and slipway writes it before it sends any request.

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

# Starts slipway with a Git server and creates a project there with the maximum of
# triggers: a push to "main" matches one, a push to "main-all" all of them.
sub slipway {
	my ($conf, $url) = @_;
	my $n = $made++;
	my $api = Slipway::API->start(db => $db, migrated => $n,
	    conf => "$conf\[secrets]\nkey_file = $key\n");
	ok($api->create_keys($key), 'slipway-admin key creates the keys for secrets') if !-e $key;
	my $project = $api->post('/api/projects',
	    { name => "p$n", repository => "$url/owner/name$n.git" })->{json}{id};
	my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	    steps => [ { name => 's', script => 'true' } ] })->{json}{id};
	my @vars = map { ("V$_" => 'x' x 100) } 1 .. 20;
	my $got = $api->put("/api/projects/$project",
	    { triggers => [ map { { branch => $_, pipelineId => $pipeline, envVars => { @vars } } } 'main*',
	    ('main-all') x 99 ] });
	is($got->{status}, 200, 'a project with 100 triggers is stored') or diag($got->{body});
	return { api => $api, open => $api->as('none'), project => $project, path => "owner/name$n",
		secret => $api->put("/api/projects/$project/hook-secret")->{json}{secret} };
}
sub push_of {
	my ($s, $branch, %o) = @_;
	my ($headers, $body) = push_event(gitea => $o{secret} || $s->{secret}, branch => $branch,
	    path => $s->{path}, commit => fresh(), repo_id => 9000 + $s->{project}, %o);
	my $began = time;
	my $got = $s->{open}->post("/api/hooks/$s->{project}", $body, $headers);
	$got->{took} = time - $began;
	return $got;
}

# Events, and the status of the response to each.
my %sorts = (
	'a push that starts one deployment' => [ 202, 'main' ],
	'a push that starts a hundred deployments' => [ 202, 'main-all' ],
	'a push that starts nothing' => [ 204, 'other' ],
	'the deletion of a branch' => [ 204, 'main', commit => '0' x 40 ],
	'a push with the signature of another secret' => [ 401, 'main', secret => 'whsec_' . 'A' x 43 . '=' ],
);
# Measures the better of two events, because a single one depends on how busy the
# machine is: few enough that slipway does not yet give up a silent server, and
# then again with fresh workers.
sub soon {
	my ($s, $sort, $when) = @_;
	my ($status, $branch, %o) = @{ $sorts{$sort} };
	my $tries = 0;
	within(1, sub {
		$s->{api}->restart_api if $tries++;
		my ($best, $answered) = (9999, 1);
		for (1, 2) {
			my $got = push_of($s, $branch, %o);
			$answered &&= $got->{status} == $status || diag("$got->{status} $got->{body}") && 0;
			$best = $got->{took} if $got->{took} < $best;
		}
		ok($answered, "$when: the response to $sort is $status");
		cmp_ok($best, '<', deadline(1), sprintf '%s: the response to %s took %.0f ms', $when,
		    $sort, 1000 * $best);
	});
	return;
}
sub all_soon { my ($s, $when) = @_; soon($s, $_, $when) for sort keys %sorts; return }

# Runs the code while n requests wait for the branches of the project.
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

# --- a healthy server, which records its requests
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('bot');
my $s = slipway($forge->conf(token => scalar $forge->token('bot')), $forge->url);
my $many = push_of($s, 'main-all');
is(scalar @{ $many->{json}{data} || [] }, 100, 'a push that matches 100 triggers starts 100 deployments')
    or diag($many->{body});
is($db->sql('SELECT COUNT(*) FROM deployment'), 100, '100 deployments are stored');
is(push_of($s, 'main', event => 'ping')->{status}, 204, 'a ping returns 204');
is(push_of($s, 'main', path => 'owner/other', repo_id => 1)->{status}, 422,
    'a push to another repository returns 422');
all_soon($s, 'healthy Git server');
is_deeply([ map { "$_->{method} $_->{path}" } $forge->requests ], [],
    'push events cause no request to the Git server');
$s->{api}->get("/api/git/branches?projectId=$s->{project}");
cmp_ok(scalar(my @asked = $forge->requests), '>', 0, 'a list of branches causes a request to the Git server');
$s->{api}->stop;
$forge->stop;

# --- a server that accepts connections and never responds
my ($silent, $url) = Slipway::Hostile->silent;
my $http = "allow_http = yes\ntype = gitea\ntoken = t\n";
$s = slipway("[gitserver]\nurl = $url\n$http", $url);
all_soon($s, 'silent Git server');
$silent->blocking(0);
ok(!defined $silent->accept, 'push events cause no connection to a silent Git server');
meanwhile($s, 3, sub {
	my (@asking) = @_;
	my @held;
	ok(poll(10, sub { my $one = $silent->accept; push @held, $one if $one; @held }),
	    'a request for branches waits for the silent Git server');
	soon($s, 'a push that starts one deployment', 'requests wait for a silent Git server');
	soon($s, 'a push that starts a hundred deployments', 'requests wait for a silent Git server');
	kill 'TERM', @asking;
});
$s->{api}->stop;

# --- a dead server: connection refused, packets dropped, unknown name
my $port = free_port();
my ($full, $hole) = Slipway::Hostile->full;
for my $case ([ 'Git server that refuses connections', "http://127.0.0.1:$port" ],
    [ 'Git server that drops packets', $hole ],
    [ 'Git server with an unknown name', 'http://no-such-host.invalid' ]) {
	my ($when, $address) = @$case;
	$s = slipway("[gitserver]\nurl = $address\n$http", $address);
	all_soon($s, $when);
	$s->{api}->stop;
}
done_testing;
