#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The machine goes down while deployments run, and comes up with its services
# in whatever order: what ran is called interrupted, what waited runs.

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
	# what left the trees of its parents
	my @left = $all->left;
	kill 'KILL', @left;
	ok(poll(5, sub { !$all->left }), 'nothing runs');
	return;
}
my %up = (database => sub { $db->resume }, runner => sub { $runner->resume },
	api => sub { $api->start_api }, nginx => sub { $api->start_nginx });

for my $order (['runner', 'api', 'nginx', 'database'], ['nginx', 'database', 'runner', 'api'], ['api', 'database', 'nginx', 'runner']) {
	my %was;
	for my $project (@projects) {
		$was{$project} = [map { $all->post(projectId => $project, pipelineId => $_) } $slow{$project}, @quick{$project, $project}];
	}
	my @ran = map { $was{$_}[0] } @projects;
	ok($all->saw($_, qr/^up$/m), "@$order: a step runs") for @ran;
	my %first = map { $_ => $all->log($_) } @ran;
	my $refused = $all->post(projectId => $projects[0], pipelineId => $quick{ $projects[0] });
	is($api->post("/api/deployments/$refused/cancel", {})->{status}, 200, 'another one is canceled');
	power_failure();
	for my $what (@$order) {
		$up{$what}->();
		next if $what ne 'nginx' || grep { $_ eq 'database' } @$order[0 .. 1];
		my $got = $api->get("/api/deployments/$ran[0]");
		is("$got->{status} " . ($got->{headers}{'content-type'} || ''), '503 application/problem+json', 'without its database: 503');
	}
	my $began = time;
	ok(poll(20, sub { $api->get('/api/health')->{status} == 200 }), 'all is up');
	for my $project (@projects) {
		my ($id, @waited) = @{ $was{$project} };
		my $now = $all->wait($id);
		is("$now->{status} $now->{reason}", 'interrupted runner_lost', 'what ran is interrupted');
		ok(defined $now->{finishedAt} && length $now->{detail}, 'with a time and a word about it');
		is($all->steps($id), 'success interrupted skipped', 'its steps say the same');
		is(substr($all->log($id), 0, length $first{$id}), $first{$id}, 'what was seen of its log is still there');
		is($api->get("/api/deployments/$id/log")->{headers}{'x-log-complete'}, 'true', 'and will not grow');
		is($all->wait($_)->{status}, 'success', 'what waited has run') for @waited;
	}
	is($all->show($refused)->{status}, 'canceled', 'what was canceled is still');
	cmp_ok(time - $began, '<', deadline(200), 'without waiting for a lease to end');
	is($api->post("/api/deployments/$ran[0]/cancel", {})->{status}, 409, 'what is interrupted cannot be canceled');
	my $retry = $all->make("/api/deployments/$ran[0]/retry", {});
	ok($all->saw($retry->{id}, qr/^up$/m), 'but tried again');
	is($api->post("/api/deployments/$retry->{id}/cancel", {})->{status}, 200, 'and that canceled');
	is($all->wait($retry->{id})->{status}, 'canceled', 'as ever');
}
my %times;
$times{$_}++ for split /\n/, slurp($marks);
is(join(' ', grep { $times{$_} != 1 } sort keys %times), '', 'no script ran twice');
ok($all->is_clean, 'nothing of any step is left');
done_testing;
