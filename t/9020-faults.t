#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Everything is killed while clients post and deployments run: what was acknowledged
# is stored once, runs at most once, and ends.

use strict;
use warnings;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(sleep time);

my ($projects, $clients, $seconds) = (5, 4, 25);
my $all = Slipway::Whole->start(runner => "[runner]\nslots = 4\n",
    api => "[database]\ntimeout = 2\n[api]\nworkers = 4\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $repo = $runner->repo;
my $marks = $all->marks('marks');
my %pipeline;
for (1 .. $projects) {
	my $project = $all->project($repo);
	my $mark = "echo \"\$SLIPWAY_DEPLOYMENT_ID %s\" >>$marks";
	# the process that it leaves behind must be killed
	$pipeline{$project} = $all->pipeline($project,
	    sprintf($mark, 'start') . '; setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 0.2; '
	    . sprintf $mark, 'end');
}
my @projects = sort { $a <=> $b } keys %pipeline;
my $gate = tempdir() . '/gate';
my $witness = $all->project($repo);
my $counter = $all->post(projectId => $witness, pipelineId => $all->pipeline($witness,
    counts_until($gate) . '; echo last-$n', 'exit 7'));
ok($all->saw($counter, qr/^count-3$/m), 'a step runs and writes');

# --- clients, each with its own keys; a line is "KEY STATUS ID", or what is wrong with
# a response
my $stop = tempdir() . '/stop';
sub check {
	my ($got) = @_;
	return "$got->{status} is not expected" if $got->{status} !~ /^50[234]$/;
	return "$got->{status} of " . ($got->{headers}{'content-type'} || 'no type')
	    if ($got->{headers}{'content-type'} || '') ne 'application/problem+json';
	my $p = $got->{json};
	return "$got->{status} without problem details"
	    if !$p || $p->{status} != $got->{status} || !$p->{code} || !$p->{requestId};
	return "$got->{status} without Retry-After"
	    if $got->{status} == 503 && ($got->{headers}{'retry-after'} || '') !~ /^\d+$/;
	return "$got->{status} reveals internals"
	    if $got->{body} =~ /SELECT|INSERT|UPDATE|MariaDB server|\.sock|slw_|password|\Q@{[tempdir()]}\E/;
	return '';
}
sub client {
	my ($n) = @_;
	open my $out, '>>', tempdir() . "/client$n" or die;
	$out->autoflush;
	my $round = 0;
	while (!-e $stop) {
		my $key = "client$n-" . ++$round;
		my $project = $projects[($n + $round) % @projects];
		# the same request until it is accepted, and once more
		my $taken = 0;
		my $end = time + 1200;
		while ($taken < 2 && time < $end) {
			delete $api->{http}; # a new connection
			my $got = $api->post('/api/deployments',
			    { projectId => $project, pipelineId => $pipeline{$project} },
			    { 'Idempotency-Key' => $key, Connection => 'close' });
			if ($got->{status} == 201) {
				print {$out} "$key 201 $got->{json}{id}\n";
				$taken++;
				next;
			}
			print {$out} "$key $got->{status} 0 " . check($got) . "\n";
			sleep 0.1;
		}
		sleep 0.5;
	}
	return;
}
my @pids = map {
	my $n = $_;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) { eval { client($n) }; warn $@ if $@; POSIX::_exit($@ ? 1 : 0) }
	$pid;
} 1 .. $clients;

# --- faults
my %done = (database => 0);
my @faults = (
	[worker => sub { my ($pid) = $api->workers; kill 'KILL', $pid if $pid }],
	[workers => sub { kill 'KILL', $api->workers }],
	[database => sub { $db->kill9; sleep 1.5; $db->resume }],
	[frozen => sub { kill 'STOP', $db->pid; sleep 3; kill 'CONT', $db->pid }],
	[dispatcher => sub { kill 'KILL', grep { defined } $runner->dispatcher }],
	[nginx => sub { kill 'HUP', $api->nginx_pid }],
	[reload => sub { kill 'HUP', $api->pid }],
	[monitor => sub { $runner->kill9; sleep 0.3; $runner->resume }],
	[runner => sub { kill 'KILL',
	    grep { defined } $runner->dispatcher; $runner->kill9; $runner->resume }],
);
my $end = time + $seconds;
my $i = 0;
sub responses { return join '', map { slurp(tempdir() . "/client$_") // '' } 1 .. $clients }
sub acknowledged { return scalar(() = responses() =~ / 201 /g) }
sub rejected { return responses() =~ / 503 / }
while (time < $end || $done{database} < 2 || acknowledged() < 21 * 2 || !rejected()) {
	my ($what, $do) = @{ $faults[$i++ % @faults] };
	$do->();
	$done{$what}++;
	sleep 0.7;
}
note(join ', ', map { "$_: $done{$_}" } sort keys %done);
cmp_ok($done{database}, '>=', 2, 'the database was killed more than once');
spew($stop, '');
my $failed = 0;
for (@pids) { waitpid $_, 0; $failed++ if $? != 0 }
is($failed, 0, 'the clients end');
spew($gate, '');

# --- the responses that they got
my (%told, %met, @wrong);
for my $n (1 .. $clients) {
	for (split /\n/, slurp(tempdir() . "/client$n")) {
		my ($key, $status, $id, $wrong) = split / /, $_, 4;
		$met{$status}++;
		push @{ $told{$key} }, $id if $status == 201;
		push @wrong, $wrong if $wrong;
	}
}
diag('responses: ' . join ', ', map { "$_: $met{$_}" } sort keys %met);
is(join("\n", @wrong), '', 'every other response is a temporary error with problem details');
cmp_ok(scalar keys %told, '>', 20, 'POSTs are acknowledged');
cmp_ok($met{503} || 0, '>', 0, 'other POSTs are rejected');
is(scalar(grep { $_->[0] != $_->[-1] } values %told), 0, 'a repeated key returns the same deployment');
is(scalar(grep { @$_ != 2 } values %told), 0, 'each key is acknowledged twice in the end');

# --- the deployments
sub all_of {
	my ($filter) = @_;
	my @found;
	my $cursor = '';
	while (1) {
		my $page = $api->get("/api/deployments?limit=100$filter$cursor")->{json};
		push @found, @{ $page->{data} };
		return @found if !defined $page->{pagination}{next};
		$cursor = "&cursor=$page->{pagination}{next}";
	}
}
ok(poll(300, sub { !all_of('&status=pending') && !all_of('&status=running') }),
    'no deployment is pending or running');
my %ends = map { $_->{id} => $_ } grep { $_->{id} != $counter } all_of('');
my %acknowledged;
$acknowledged{ $_->[0] }++ for values %told;
is(scalar(grep { !$ends{$_} } keys %acknowledged), 0, 'every acknowledged deployment is stored');
is(scalar(grep { $_ != 1 } values %acknowledged), 0, 'every acknowledged deployment has its own id');
is(scalar(grep { !$acknowledged{$_} } keys %ends), 0, 'no other deployment is stored');
my %count;
$count{ $ends{$_}{status} }++ for keys %ends;
diag('ends: ' . join ', ', map { "$_: $count{$_}" } sort keys %count);
note(explain([grep { $_->{status} ne 'success' } values %ends]));
my %ran;
for (split /\n/, slurp($marks)) { my ($id, $what) = split / /; $ran{$id}{$what}++ }
is(scalar(grep { ($_->{start} || 0) > 1 || ($_->{end} || 0) > 1 } values %ran), 0, 'no script ran twice');
my @off = grep {
	my ($d, $r) = ($ends{$_}, $ran{$_} || {});
	# no job was killed: what started has succeeded
	$d->{status} eq 'success' ? !($r->{start} && $r->{end})
	    : !($d->{status} eq 'interrupted' && $d->{reason} eq 'runner_lost') || %$r;
} keys %ends;
is("@off", '', 'a successful deployment ran to its end, any other was interrupted before its start')
    or diag(explain([map { { %{ $ends{$_} }, ran => $ran{$_} } } @off]));
cmp_ok($count{interrupted} || 0, '<=', keys(%ends) / 10, 'interrupted deployments are rare');

# --- the step that ran all the time
my $now = $all->show($counter);
is("$now->{status} $now->{reason}", 'failed step_failed',
    'the deployment that ran all the time has its result');
my @got = $all->log($counter) =~ /^(count-\d+|last-\d+)$/mg;
my ($last) = @got ? $got[-1] =~ /^last-(\d+)$/ : ();
ok(defined $last && "@got" eq join(' ', (map { "count-$_" } 1 .. $last), "last-$last"),
    'each line of its log is there once');
# incomplete directories of a killed dispatcher are removed by age
utime 1, 1, $_ for glob "$runner->{spool}/new.* $runner->{spool}/old.*";
ok($all->is_clean, 'no process of a step is alive') or diag(join ' ', $all->left, glob "$runner->{spool}/*");

# --- the service afterwards
is($all->wait($all->post(projectId => $projects[0], pipelineId => $pipeline{ $projects[0] }))->{status},
    'success', 'the next deployment succeeds');
is($api->get('/api/health')->{status}, 200, 'the service is healthy');
unlike($api->log, qr/assert|Sanitizer|died of signal (?!9)/i, 'nothing crashed by itself');
is($runner->stop, 0, 'the runner stops');
is($api->stop, 0, 'the service stops');
done_testing;
