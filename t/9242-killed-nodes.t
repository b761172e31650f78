#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A site with three hosts on a Galera cluster of three, while its nodes are killed: what
# the host of a dying node has confirmed is kept, what it has not happens once or not
# at all, and nothing happens twice.  `make check-hosts` runs it.

use strict;
use warnings;
use Slipway::API qw(bearer);
use Slipway::Galera;
use Slipway::Hosts;
use Slipway::Stream;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $dir = tempdir();
my @nodes = galera_start(3);
my $site = Slipway::Hosts->start('killed', servers => \@nodes, live => 1);
my @hosts = $site->hosts;
my $repository = $hosts[0]{runner}->repo;
my $marks = spew("$dir/marks", '', 0666);
my $gates = "$dir/gates";
mkdir $gates or die "$gates: $!";
my $run = "echo \$SLIPWAY_DEPLOYMENT_ID >>$marks; sleep 0.2";
my $gated = "until [ -e $gates/\$SLIPWAY_DEPLOYMENT_ID ]; do sleep 0.1; done; $run";

# Projects with a pipeline and an environment, by name.
my %project = map {
	my ($name, $script, %environment) = @$_;
	my $id = $site->make('/api/projects', { name => $name, repository => $repository })->{id};
	my $pipeline = $site->make('/api/pipelines', { projectId => $id, name => 'run', checkout => 'none',
		steps => [ { name => 'a', script => $script } ] })->{id};
	my $environment = $site->make('/api/environments', { projectId => $id, name => 'live',
		%environment })->{id};
	($name => { projectId => $id, pipelineId => $pipeline, environmentId => $environment })
} [ 'approved', $run, approval => 'required' ], [ 'locked', $gated ],
    map { [ $_, $run ] } qw(scheduled sentinel plain1 plain2 plain3 plain4);
my %schedule = map { $_ => $site->make('/api/schedules', { %{ $project{$_} }, name => 'yearly',
	cron => '@yearly' })->{id} } qw(locked scheduled);
$site->notifier(events => ['succeeded']);
my $maintainer = bearer($hosts[0]{api}->token('maintainer'));
my $lock = "/api/projects/$project{locked}{projectId}/lock";

my (@ids, @streams, %count);
sub deploy {
	my ($name, %more) = @_;
	push @ids, $site->deploy(%{ $project{$name} }, %more);
	return $ids[-1];
}
# Moves the time of a schedule to now; its last deployment.
sub due {
	my ($name) = @_;
	my $last = fired($name);
	$nodes[0]->sql("UPDATE schedule SET next_at = NOW(3) WHERE id = $schedule{$name}");
	return $last;
}
sub fired {
	my ($name) = @_;
	return $site->anywhere('GET', "/api/schedules/$schedule{$name}")->{json}{lastDeploymentId} || 0;
}
# Waits until a schedule has fired.
sub fires {
	my ($name, $before, $what) = @_;
	my $id;
	ok(poll(120, sub { return ($id = fired($name)) != $before }), $what);
	push @ids, $id;
	return $id;
}
# Waits for a status of a deployment.
sub becomes {
	my ($id, $status, $what) = @_;
	my $is;
	return ok(poll(300, sub { return ($is = $site->show($id)->{status}) eq $status }), $what)
	    || diag($is);
}
sub bound {
	my ($runner, @names) = @_;
	for (@names) {
		my $got = $site->anywhere('PUT', "/api/environments/$project{$_}{environmentId}",
			{ runner => $runner });
		die "$got->{body}\n" if $got->{status} != 200;
	}
	return;
}
# Has all hosts approve a deployment, and one of them set the lock, while its node dies:
# at any time, or as soon as it has confirmed both.  What each host answers, and this one
# about the lock.
sub kill_during {
	my ($round, $dying, $waits) = @_;
	my $approve = sub { $_[0]{api}->post("/api/deployments/$waits/approve", {}, $maintainer)->{status} };
	my $set = sub { $_[0]{api}->put($lock, { reason => "round $round" })->{status} };
	my $kill = sub { $count{killed}++; db_kill($nodes[$dying]) };
	if ($round % 3 == 0) {
		my @first = map { $_->($hosts[$dying]) } $approve, $set;
		$kill->();
		return (map { $_ == $dying ? $first[0] : served_status($approve, $hosts[$_]) } 0 .. 2),
		    $first[1];
	}
	my $pause = rand 0.3;
	my @status = $site->at_once(sub {
		my ($on) = @_;
		return { status => $approve->($on) } if $on != $hosts[$dying];
		my ($given, $locked) = $round % 3 == 1 ? map({ $_->($on) } $approve, $set)
		    : reverse map { $_->($on) } $set, $approve;
		return { status => "$given $locked" };
	}, sub { sleep $pause; $kill->() });
	return (map { /^(\d+)/ } @status), $status[$dying] =~ / (\d+)/;
}
sub read_on { my ($on, $path) = @_; return served(sub { $on->{api}->get($path) })->{json} }
# Whether the host rejects a deployment of the locked project: the code of the error.
sub tried_on {
	my ($on) = @_;
	my $got = served(sub { $on->{api}->post('/api/deployments', $project{locked}) });
	return $got->{json}{code} || $got->{status};
}
sub served_status {
	my ($request, $on) = @_;
	return served(sub { return { status => $request->($on) } })->{status};
}
sub listen_all {
	return map { { host => $_, last => '', heard => {},
		stream => Slipway::Stream->open($_->{api}, '/api/events') } } @hosts;
}
# Reads what the streams have said, and continues those that have ended.
sub listen_on {
	for my $to (@streams) {
		my $text = $to->{stream}->text;
		$to->{heard}{$_} = 1 for $text =~ /"id":(\d+),"status":"success"/g;
		$to->{last} = $1 if $text =~ /.*^id: (\S+)$/ms;
		next if !$to->{stream}{ended} && $text !~ /^0\r$/m;
		$count{streams}++;
		$to->{stream} = Slipway::Stream->open($to->{host}{api}, '/api/events',
			'Last-Event-ID' => $to->{last});
	}
	return;
}

served(sub { $_->{api}->get('/api/projects') }) for @hosts; # each has its token
@streams = listen_all();
for my $round (1 .. 9) {
	my $dying = int(($round - 1) / 3);
	my $node = $nodes[$dying];
	my @left = @hosts[ grep { $_ != $dying } 0 .. 2 ];
	my $name = "round $round";
	bound($left[0]{runner}{name}, qw(locked sentinel));
	my $holds = deploy('locked');
	becomes($holds, 'running', "$name: a deployment runs on another host");

	# --- what happens as the node dies: deployments, an approval, a lock, a schedule
	deploy("plain$_") for 1 .. 4;
	my $waits = deploy('approved', branch => 'main', commitHash => 'a' x 40);
	my $before = due('scheduled');
	$hosts[$dying]{runner}->ring;
	my @given = kill_during($round, $dying, $waits);
	my $set = pop @given;
	is("$given[$dying] $set", '200 200', "$name: the host of the node confirms both") if $round % 3 == 0;
	cmp_ok(scalar(grep { $_ == 200 } @given), '<=', 1,
	    "$name: at most one host accepts an approval (@given)");
	is_deeply([ grep { !/^(?:200|409|50[034])$/ } @given ], [], "$name: the others reject it or fail");

	# --- the approval
	my @seen = map { read_on($_, "/api/deployments/$waits")->{approval} } @left;
	is($seen[0], $seen[1], "$name: the hosts that are left agree whether it was given");
	is($seen[0], 'granted', "$name: an approval that was confirmed is kept")
	    if grep { $_ == 200 } @given;
	if ($seen[0] ne 'granted') {
		my $got = $site->anywhere('POST', "/api/deployments/$waits/approve", {}, $maintainer);
		is($got->{status}, 200, "$name: an approval that was lost can be given again");
	}
	$count{failed} += $seen[0] ne 'granted';

	# --- the lock
	my @locked = map { read_on($_, "/api/projects/$project{locked}{projectId}")->{lock}{reason} || '' }
	    @left;
	is($locked[0], $locked[1], "$name: the hosts that are left agree whether the lock was set");
	is($locked[0], $name, "$name: a lock that was confirmed is kept") if $set == 200;
	$count{failed} += !$locked[0];
	$count{confirmed} += grep { $_ == 200 } $given[$dying], $set;
	is($site->anywhere('PUT', $lock, { reason => $name })->{status}, 200, "$name: the lock is set")
	    if !$locked[0];
	is(join(' ', map { tried_on($_) } @left), 'locked locked',
	    "$name: the hosts that are left reject a deployment");
	my $late = fired('locked');
	$nodes[ ($dying + 1) % 3 ]->sql("UPDATE schedule SET next_at = NOW(3) WHERE id = $schedule{locked}");
	$late = fires('locked', $late, "$name: a schedule fires in the locked project");
	spew("$gates/$_", '') for $holds, $late;
	becomes($holds, 'success', "$name: the running deployment continues");
	becomes(deploy('sentinel'), 'success', "$name: the same runner claims another deployment");
	my $held = $site->show($late);
	is("$held->{status} $held->{waitingFor}[0]{reason}", 'pending lock',
	    "$name: it claims none of the project");

	# --- the schedule, while the node is away and after its return
	fires('scheduled', $before, "$name: a schedule fires");
	db_return($node);
	is(tried_on($hosts[$dying]), 'locked', "$name: the host whose node returns respects the lock");
	my $got = served(sub { $hosts[$dying]{api}->delete($lock) });
	is($got->{status}, 204, "$name: it removes the lock");
	becomes($late, 'success', "$name: the deployment that waited runs");
	listen_on();
}

# --- the end
my $lost = $site->ended(@ids);
my $sql = sub { return $nodes[0]->sql($_[0]) };
is($sql->("SELECT COUNT(*) FROM deployment WHERE `trigger` = 'schedule'"), 18,
    'each schedule has fired once a round');
is($sql->('SELECT COUNT(*), COUNT(DISTINCT object_id) FROM audit'
	. " WHERE action = 'approveDeployment'"), "9\t9",
    'each deployment was approved once');
is($sql->('SELECT COUNT(*) FROM deployment'), scalar @ids, 'there are no other deployments');
my %ran;
$ran{$_}++ for split ' ', slurp($marks);
is_deeply([ sort { $a <=> $b } keys %ran ], [ sort { $a <=> $b } @ids ], 'each deployment has run');
my $twice = grep { $_ > 1 } values %ran;
is("$lost $twice", '0 0', 'none was lost, and none ran twice');

my %id;
poll(120, sub {
	%id = ();
	$id{ $_->{data}{deploymentId} }{ $_->{id} }++ for $site->sent;
	return keys %id >= @ids;
});
is_deeply([ sort { $a <=> $b } keys %id ], [ sort { $a <=> $b } @ids ], 'each success was sent');
is_deeply([ grep { keys %{ $id{$_} } != 1 } keys %id ], [], 'a message that is sent again has the same id');
my $again = grep { (values %{ $id{$_} })[0] > 1 } keys %id;

my @deaf;
poll(120, sub {
	listen_on();
	@deaf = map { my $to = $_; grep { !$to->{heard}{$_} } @ids } @streams;
	return !@deaf;
});
is_deeply(\@deaf, [], 'the streams of each host have named the end of each deployment');

my $claims = $sql->('SELECT SUM(epoch) FROM deployment');
diag("three nodes, three hosts: nodes killed $count{killed}, " . @ids
    . " deployments, claims tried $claims, "
    . "lost $lost, twice $twice; of the requests to dying hosts, confirmed $count{confirmed}, failed "
    . "$count{failed}; messages sent twice $again, with another id 0; streams continued "
    . ($count{streams} || 0));
$site->stop;
$_->stop for reverse @nodes;
done_testing();
