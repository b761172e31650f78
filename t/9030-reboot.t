#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The machine loses power while deployments run, and its services start in any order:
# running deployments are interrupted, pending ones run.

use strict;
use warnings;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(time);

my $all = Slipway::Whole->start(runner => "[runner]\nslots = 2\nlease = 300\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $repo = $runner->repo;
my $marks = $all->marks('marks');
my $runs = 'echo "$SLIPWAY_DEPLOYMENT_ID" >>' . $marks . '; echo up';
my (%quick, %slow);
for (1, 2) {
	my $project = $all->project($repo);
	$quick{$project} = $all->pipeline($project, $runs);
	$slow{$project} = $all->pipeline($project, 'echo before', "$runs; setsid sleep 1000 & sleep 1000",
	    { name => 'cleanup', script => 'echo cleaned', runWhen => 'always' });
}
my @projects = sort { $a <=> $b } keys %slow;

sub below {
	my ($pid) = @_;
	return map { ($_, below($_)) } split ' ', slurp("/proc/$pid/task/$pid/children") || '';
}
sub power_failure {
	my @services = ($api->nginx_pid, $api->pid, $db->pid);
	my @all = (@services, map { below($_) } @services);
	kill 'STOP', @all;
	$runner->kill_all;
	kill 'KILL', @all;
	stop_process($_, 'KILL') for @services;
	$db->kill9;
	# processes that have left the trees of their parents
	my @left = $all->left;
	kill 'KILL', @left;
	ok(poll(5, sub { !$all->left }), 'no process is alive');
	return;
}
my %up = (database => sub { $db->resume }, runner => sub { $runner->resume },
	api => sub { $api->start_api }, nginx => sub { $api->start_nginx });

for my $order (['runner', 'api', 'nginx', 'database'], ['nginx', 'database', 'runner', 'api'],
    ['api', 'database', 'nginx', 'runner']) {
	my %was;
	for my $project (@projects) {
		$was{$project} = [map { $all->post(projectId => $project, pipelineId => $_) } $slow{$project},
		    @quick{$project, $project}];
	}
	my @ran = map { $was{$_}[0] } @projects;
	ok($all->saw($_, qr/^up$/m), "start in the order @$order: a step runs") for @ran;
	my %first = map { $_ => $all->log($_) } @ran;
	my $refused = $all->post(projectId => $projects[0], pipelineId => $quick{ $projects[0] });
	is($api->post("/api/deployments/$refused/cancel", {})->{status}, 200,
	    "start in the order @$order: another deployment is canceled");
	power_failure();
	for my $what (@$order) {
		$up{$what}->();
		next if $what ne 'nginx' || grep { $_ eq 'database' } @$order[0 .. 1];
		my $got = $api->get("/api/deployments/$ran[0]");
		is("$got->{status} " . ($got->{headers}{'content-type'} || ''),
		    '503 application/problem+json',
		    "start in the order @$order: without the database a request returns 503");
	}
	my $began = stopwatch();
	ok(poll(20, sub { $api->get('/api/health')->{status} == 200 }),
	    "start in the order @$order: the service is healthy");
	for my $project (@projects) {
		my ($id, @waited) = @{ $was{$project} };
		my $now = $all->wait($id);
		is("$now->{status} $now->{reason}", 'interrupted runner_lost',
		    "start in the order @$order: a running deployment is interrupted");
		ok(defined $now->{finishedAt} && length $now->{detail},
		    "start in the order @$order: an interrupted deployment has its end and a detail");
		is($all->steps($id), 'success interrupted skipped',
		    "start in the order @$order: the steps of an interrupted deployment are settled");
		is(substr($all->log($id), 0, length $first{$id}), $first{$id},
		    "start in the order @$order: the log of an interrupted deployment is kept");
		is($api->get("/api/deployments/$id/log")->{headers}{'x-log-complete'}, 'true',
		    "start in the order @$order: the log of an interrupted deployment is complete");
		is($all->wait($_)->{status}, 'success',
		    "start in the order @$order: a pending deployment succeeds") for @waited;
	}
	is($all->show($refused)->{status}, 'canceled',
	    "start in the order @$order: a canceled deployment stays canceled");
	cmp_ok($began->(), '<', deadline(200),
	    "start in the order @$order: no deployment waits for a lease");
	is($api->post("/api/deployments/$ran[0]/cancel", {})->{status}, 409,
	    "start in the order @$order: an interrupted deployment cannot be canceled");
	my $retry = $all->make("/api/deployments/$ran[0]/retry", {});
	ok($all->saw($retry->{id}, qr/^up$/m),
	    "start in the order @$order: an interrupted deployment can be retried");
	is($api->post("/api/deployments/$retry->{id}/cancel", {})->{status}, 200,
	    "start in the order @$order: the retry can be canceled");
	is($all->wait($retry->{id})->{status}, 'canceled',
	    "start in the order @$order: the retry is canceled");
}
my %times;
$times{$_}++ for split /\n/, slurp($marks);
is(join(' ', grep { $times{$_} != 1 } sort keys %times), '', 'no script ran twice');
ok($all->is_clean, 'no process of a step is alive');
done_testing;
