#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A hundred deployments of ten projects, posted by several clients at once: all
# succeed, those of a project run in order and one at a time, and each runs once.

use strict;
use warnings;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(sleep time);

my ($projects, $each, $slots) = (10, 10, 4);
my $all = Slipway::Whole->start(runner => "[runner]\nslots = $slots\n");
my $api = $all->api;
my $repo = $all->runner->repo({ map { ("file$_" => "text $_\n") } 1 .. 20 });
my $marks = $all->marks('marks');
my %pipeline;
for (1 .. $projects) {
	my $project = $all->project($repo);
	my $mark = "echo \"$project \$SLIPWAY_DEPLOYMENT_ID %s \$EPOCHREALTIME\" >>$marks";
	$pipeline{$project} = $all->pipeline($project, sprintf($mark, 'start'), 'sleep 0.05',
	    sprintf $mark, 'end');
}
my @projects = sort { $a <=> $b } keys %pipeline;

# --- five clients, each posting to all projects
my $began = time;
my @clients = map {
	my $n = $_;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		delete $api->{http};
		my $made = eval {
			for my $round (1 .. $each / 5) {
				$all->post(projectId => $_, pipelineId => $pipeline{$_})
				    for $n % 2 ? @projects : reverse @projects;
			}
			1;
		};
		warn $@ if !$made;
		POSIX::_exit($made ? 0 : 1);
	}
	$pid;
} 1 .. 5;
my $failed = 0;
for (@clients) { waitpid $_, 0; $failed++ if $? != 0 }
is($failed, 0, 'every POST of every client is accepted');

# --- the end of all deployments
sub all_of {
	my ($filter) = @_;
	my @found;
	my $path = "/api/deployments?limit=100&$filter";
	while (1) {
		my $page = $api->get($path)->{json};
		push @found, @{ $page->{data} };
		my $next = $page->{pagination}{next};
		return @found if !defined $next;
		$path = "/api/deployments?limit=100&$filter&cursor=$next";
	}
}
my $most = 0;
my $done = poll(300, sub {
	my $waits = () = all_of('status=pending'); # first, because they become running
	my @running = all_of('status=running');
	$most = @running if @running > $most;
	return !$waits && !@running;
});
ok($done, 'the queue becomes empty');
diag(sprintf '%d deployments of %d projects in %d slots: %.1f s', $projects * $each, $projects, $slots,
    time - $began);
cmp_ok($most, '<=', $slots, 'no more deployments run than there are slots');
cmp_ok($most, '>', 1, 'several deployments run at a time');

my @marks = map { [split ' '] } split /\n/, slurp($marks);
is(scalar @marks, 2 * $projects * $each, 'each deployment starts and ends');
my %seen;
my $twice = grep { $seen{"$_->[1] $_->[2]"}++ } @marks;
is($twice, 0, 'no deployment starts or ends twice');
my $deployments = 0;
for my $project (@projects) {
	my @list = sort { $a->{id} <=> $b->{id} } all_of("projectId=$project");
	$deployments += @list;
	is(join(' ', map { $_->{status} } @list), join(' ', ('success') x $each),
	    "project $project: all deployments succeed");
	my @got = grep { $_->[0] == $project } @marks;
	is(join(' ', map { "$_->[1] $_->[2]" } @got),
	    join(' ', map { ("$_->{id} start", "$_->{id} end") } @list),
	    "project $project: deployments run in order, one after the other");
	my @when = map { $_->[3] } @got;
	is_deeply([sort { $a <=> $b } @when], \@when,
	    "project $project: deployments do not overlap by the clock of their steps");
	my @times = map { @$_{qw(startedAt finishedAt)} } @list;
	is_deeply([sort @times], \@times, "project $project: deployments do not overlap by their times");
}
is($deployments, $projects * $each, 'there are a hundred deployments');
ok($all->is_clean, 'deployments leave nothing behind');
done_testing;
