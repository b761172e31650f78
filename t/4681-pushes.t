#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Which pushes a trigger with paths accepts, and which pending deployments the
# deployment of a push supersedes.

use strict;
use warnings;
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(ann => { id => 7 });
my $repo = $forge->repo('team/site', users => ['ann']);
$repo->commit('main', { version => "start\n" }, 'start');
my $conf = $forge->conf(token => scalar $forge->token('ann'));
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\npoll = 60\nslots = 1\n");
my $api = $all->api;
my $maintainer = $api->as('maintainer');
my ($project, $secret, %pipeline);

# A project whose one slot is held by a deployment that waits for a gate.
sub slipway {
	my (@checkout) = @_;
	$project = $all->project($repo->clone_url);
	my $gate = tempdir() . '/gate';
	for my $name ('hold', 'live', 'other') {
		my $script = $name eq 'hold' ? "until [ -e $gate ]; do sleep 0.1; done" :
		    "echo ran $name \$SLIPWAY_COMMIT \$(cat version)";
		$pipeline{$name} = $api->make('/api/pipelines', { projectId => $project, name => $name,
			steps => [ { name => 's', script => $script } ],
			$name eq 'hold' ? (checkout => 'none') : @checkout })->{id};
	}
	chmod 0777, $gate =~ s{/gate$}{}r;
	$secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
	return $gate;
}
sub hold {
	my $id = $api->make('/api/deployments', { projectId => $project, pipelineId => $pipeline{hold},
		branch => 'main' })->{id};
	ok(poll(60, sub { $all->show($id)->{status} eq 'running' }), 'the project is busy');
	return $id;
}
sub triggers {
	my (@triggers) = @_;
	return $api->put("/api/projects/$project", { triggers => [ map { {
		branch => 'main', pipelineId => $pipeline{live}, envVars => {}, %$_ } } @triggers ] });
}
sub files { my (@files) = @_; return map { { id => $_->[0], message => 'm', added => $_->[1] || [],
	modified => $_->[2] || [], removed => $_->[3] || [] } } @files }
# Pushes a commit; the ids of the deployments.
my $number = 0;
sub deliver {
	my ($commit, %o) = @_;
	my %body = (n => ++$number, before => $o{before} || '1' x 40, %{ $o{body} || {} });
	$body{commits} = [ files(@{ $o{files} }) ] if $o{files};
	my ($headers, $text) = push_event($o{kind} || 'gitea', $secret, path => 'team/site',
	    repo_id => $repo->id, commit => $commit, body => \%body, ref => $o{ref} || 'refs/heads/main');
	my $got = $api->as('none')->post("/api/hooks/$project", $text, $headers);
	like($got->{status}, qr/^20[24]$/, 'a push event is accepted') or diag($got->{body});
	return map { $_->{id} } @{ ($got->{json} || {})->{data} || [] };
}
sub status { my ($id) = @_; return join ' ', grep { defined } @{ $all->show($id) }{qw(status reason)} }

# --- paths
my $gate = slipway();
for my $case (
	[ { paths => 'src' }, '/triggers/0/paths', 'a string' ],
	[ { paths => [ 'a', 1 ] }, '/triggers/0/paths/1', 'a number' ],
	[ { paths => [''] }, '/triggers/0/paths/0', 'an empty path' ],
	[ { paths => ['/src'] }, '/triggers/0/paths/0', 'an absolute path' ],
	[ { paths => ["a\n"] }, '/triggers/0/paths/0', 'a path with a line break' ],
	[ { paths => [ map { "p$_" } 1 .. 101 ] }, '/triggers/0/paths', '101 paths' ],
	[ { supersede => 'no' }, '/triggers/0/supersede', 'a text for supersede' ],
) {
	my ($trigger, $want, $name) = @$case;
	is(outcome(triggers($trigger)), "422 $want", "a trigger with $name is rejected");
}
my $stored = triggers({})->{json}{triggers}[0];
is_deeply([ @$stored{qw(paths supersede)} ], [ [], $true ],
    'a trigger matches any file and supersedes by default');
$all->db->sql("UPDATE project SET triggers = '"
    . qq([{"branch":"main","pipelineId":$pipeline{live},"envVars":{}}]) . "' WHERE id = $project");
is_deeply($api->get("/api/projects/$project")->{json}{triggers}[0]{branch}, 'main',
    'a trigger of an older version is read');
is(scalar(deliver('a' x 40)), 1, 'a trigger of an older version fires');
triggers({ paths => [ 'src/**', 'Makefile' ] });
my $held = hold();
for my $case (
	[ 1, [ [ 'a' x 40, ['src/x/y.c'] ] ], 'an added file' ],
	[ 1, [ [ 'a' x 40, [], ['Makefile'] ] ], 'a modified file' ],
	[ 1, [ [ 'a' x 40, [], [], ['src/old'] ] ], 'a removed file' ],
	[ 1, [ [ 'b' x 40, ['src/z'] ], [ 'a' x 40, ['README'] ] ], 'a file of an earlier commit' ],
	[ 0, [ [ 'a' x 40, ['README'] ] ], 'another file' ],
	[ 0, [ [ 'a' x 40, ['lib/src/x'], [ 'Makefile.am', 'src' ] ] ], 'similar names' ],
	[ 1, [ [ 'a' x 40, [] ] ], 'no file that the event lists' ],
) {
	my ($want, $files, $name) = @$case;
	for my $kind ('gitea', 'gitlab', 'github') {
		my @made = deliver('a' x 40, kind => $kind, files => $files,
		    body => { total_commits => scalar @$files, total_commits_count => scalar @$files });
		is(scalar @made, $want, "$kind: a push with $name starts $want deployments");
	}
}
my @other = (files => [ [ 'a' x 40, ['README'] ] ]);
is(scalar(deliver('a' x 40, @other, body => { total_commits => 6 })), 1,
    'a push of which the event lists some commits only starts a deployment');
is(scalar(deliver('a' x 40, @other, kind => 'github', body => { forced => $true })), 1,
    'a forced push starts a deployment');
is(scalar(deliver('a' x 40, @other, before => '0' x 40)), 1,
    'the first push of a branch starts a deployment');
is(scalar(deliver('a' x 40, body => { commits => 'none' })), 1,
    'a push without a list of commits starts a deployment');
$api->post("/api/deployments/$_->{id}/cancel", {})
    for @{ $api->get("/api/deployments?projectId=$project&status=pending&limit=100")->{json}{data} };

# --- a trigger with paths deploys the head of the branch
my @hash = map { $repo->commit('main', { version => "$_\n" }, "number $_") } 0 .. 4;
my ($first) = deliver($hash[0], files => [ [ $hash[0], ['src/a'] ] ]);
is(scalar(deliver($hash[1], before => $hash[0], files => [ [ $hash[1], ['README'] ] ])), 0,
    'a push of another file starts nothing');
spew($gate, '');
my $end = $all->wait($first);
is("$end->{status} $end->{commitHash}", "success $hash[4]",
    'a deployment whose branch moved on with other files deploys the head') or diag($all->log($first));
like($all->log($first), qr/^==> the branch main has moved on to commit $hash[4]\n.*^ran live $hash[4] 4$/ms,
    'the log says so, and the steps see the head');
unlink $gate;

# --- supersede
my %by = (a => { envVars => {} }, b => { pipelineId => $pipeline{other} }, c => { supersede => $false });
triggers(@by{qw(a b c)});
$held = hold();
my @one = deliver($hash[1], before => $hash[0]);
my @two = deliver($hash[2], before => $hash[1]);
is_deeply([ map { status($_) } @one ], [ 'canceled superseded', 'canceled superseded', 'pending' ],
    'a newer push cancels the pending deployments of the same triggers, unless supersede is false');
is_deeply([ map { status($_) } @two ], [ ('pending') x 3 ], 'the deployments of the newer push are pending');
like($all->show($one[0])->{detail}, qr/newer/i, 'the detail of a superseded deployment says why');
my @late = deliver($hash[0], before => '2' x 40);
is_deeply([ map { status($_) } @two ], [ ('pending') x 3 ], 'an event that arrives late cancels nothing');
my @elsewhere = deliver($hash[3], before => $hash[2], ref => 'refs/heads/release');
is(scalar @elsewhere, 0, 'a push to another branch matches none');
my $manual = $api->make('/api/deployments', { projectId => $project, pipelineId => $pipeline{live},
	branch => 'main', commitHash => $hash[2] })->{id};
my @three = deliver($hash[4], before => $hash[2]);
is(status($manual), 'pending', 'a push does not supersede what a user started');
spew($gate, '');
$all->wait($_) for @one, @two, @late, @three, $manual;
my @each = map { $all->show($_) } $one[2], $two[2], $late[2], $three[2];
is_deeply([ map { "$_->{status} $_->{commitHash}" } @each ], [ map { "success $hash[$_]" } 1, 2, 0, 4 ],
    'without supersede, every push is deployed as it was pushed');
is_deeply([ map { status($_) } @late[ 0, 1 ] ], [ ('canceled superseded') x 2 ],
    'an outdated push is superseded when it starts');
is_deeply([ map { status($_) } @three ], [ ('success') x 3 ], 'the newest push is deployed');
unlink $gate;

# --- tags, branches of one pattern, approval
triggers({ branch => undef, tag => 'v*' }, { branch => '**', pipelineId => $pipeline{other} });
$held = hold();
my ($v1) = deliver($hash[1], ref => 'refs/tags/v1');
my ($v2) = deliver($hash[2], ref => 'refs/tags/v2');
is(status($v1), 'canceled superseded', 'a newer tag supersedes an older one of the same trigger');
is(status($v2), 'pending', 'the newer tag is pending');
my ($left) = deliver($hash[3], ref => 'refs/heads/left');
my ($right) = deliver($hash[4], ref => 'refs/heads/right', before => $hash[3]);
is(status($left), 'pending', 'a push does not supersede that of another branch');
$api->post("/api/deployments/$_/cancel", {}) for $v2, $left, $right, $held;
$all->wait($held);
$held = hold();
$api->make('/api/environments', { projectId => $project, name => 'production', approval => 'required' });
triggers({ paths => ['**'] });
my ($granted) = deliver($hash[0]);
is($maintainer->post("/api/deployments/$granted/approve", {})->{status}, 200, 'a push is approved');
my ($asks) = deliver($hash[1], before => $hash[0]);
is(status($granted), 'pending', 'a deployment that was approved is not superseded');
deliver($hash[2], before => $hash[1]);
is(status($asks), 'canceled superseded', 'one that waits for approval is');
$_->stop for $api, $all->runner, $all->db;
done_testing;
