#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Workspaces of deleted projects in the way of other workspaces: inside, around or
# in the same place, under the same account or another.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
my $at = $runner->{workspaces};
sub gone {
	my ($id, $ago) = @_;
	$db->sql("UPDATE project SET valid = 0, updated_at = NOW(3) - INTERVAL $ago WHERE id = $id");
	return;
}
sub deployed {
	my ($by, $project, $name, @steps) = @_;
	my $id = $by->deploy($project, @steps);
	is($by->wait($id), 'success', $name) or diag($by->log($id), tail($by->said, 30));
	return $id;
}
sub inode { return (stat "$_[0]{workspaces}/$_[1]")[1] }
sub kept { my ($by, $file) = @_; return scalar grep { -e "$_/$file" } glob "$by->{workspaces}/.left/*" }

# --- a workspace around those of deleted projects
my @inner = map { $runner->project(dir => $_) } 'grp/one', 'grp/two', 'grp/deep/er';
for (@inner) {
	deployed($runner, $_, "project $_ is deployed in a group", "echo $_ >of-$_");
}
gone($_, '1 MINUTE') for @inner;
my $around = $runner->project(dir => 'grp');
deployed($runner, $around, 'a project around workspaces of deleted projects is deployed',
    'test ! -e one && test ! -e two && test ! -e deep && echo mine >file');
is(kept($runner, "of-$_"), 1, "the workspace of deleted project $_ is kept for a day") for @inner;
is((stat "$at/grp")[4], (stat "$at/grp/file")[4], 'the new workspace belongs to its project');

# --- a workspace inside that of a deleted project
gone($around, '1 MINUTE');
my $within = $runner->project(dir => 'grp/three');
deployed($runner, $within, 'a project inside the workspace of a deleted one is deployed',
    'echo mine >file');
is(kept($runner, 'file'), 1, 'the workspace around it is kept for a day');
gone($around, '2 DAY');
my $three = inode($runner, 'grp/three');
$runner->restart;
deployed($runner, $within, 'the inner project is deployed again when the outer workspace is due', 'true');
is(inode($runner, 'grp/three'), $three, 'the inner project keeps its workspace');

# --- files that belong to no project are not touched
SKIP: {
	skip 'without root everything belongs to one account', 3 if !is_root();
	mkdir "$at/tree" or die;
	spew("$at/tree/note", "an administrator's\n");
	my $tree = $runner->project(dir => 'tree');
	my $id = $runner->deploy($tree, 'true');
	is($runner->wait($id), 'failed', 'a workspace with a file of root fails the deployment');
	is(slurp("$at/tree/note"), "an administrator's\n", 'the file of root stays');
	like($runner->said, qr/note in it belongs to uid 0, not to a project: remove it/,
	    'the log names the file');
}

# --- while a job of the deleted project runs
my $slow = $runner->project(dir => 'busy/one');
my $job = $runner->deploy($slow,
    "touch up; while test ! -e '" . tempdir() . "/go'; do sleep 0.1; done; echo done >file");
ok(poll(30, sub { -e "$at/busy/one/up" }), 'a job runs');
gone($slow, '1 MINUTE');
my $next = $runner->deploy($runner->project(dir => 'busy'), 'test ! -e one');
SKIP: {
	skip 'without accounts the owner of a job is unknown', 2 if !is_root();
	ok(poll(30, sub { $runner->said =~ /job $next\.\d+ rejected: .*a job of the deleted project/ }),
	    'a project around the workspace of a running job waits')
	    or diag(tail($runner->said, 20));
	# Until the dispatcher has returned the claim, the deployment is still running.
	ok(poll(30, sub { $runner->status($next) eq 'pending' }), 'the waiting deployment is pending');
}
spew(tempdir() . '/go', '');
is($runner->wait($job), 'success', 'the running job succeeds');
is($runner->wait($next), 'success', 'the project around it is deployed afterwards');
$runner->stop;

# --- all projects under one account
my $same = Slipway::Runner->start(db => $db, conf => "[runner]\nuid_count = 1\n");
my $old = $same->project(dir => 'shop');
deployed($same, $old, 'a project is deployed', 'echo x >left-behind');
my $older = $same->project(dir => 'mall/shop');
deployed($same, $older, 'another project is deployed', 'echo x >left-behind');
gone($_, '1 MINUTE') for $old, $older;
my ($heir, $mall) = map { $same->project(dir => $_) } 'shop', 'mall';
deployed($same, $heir, 'a successor under the same account finds no file of its predecessor',
    'test ! -e left-behind; echo mine >file');
deployed($same, $mall, 'a project around a deleted one finds no file of it',
    'test ! -e shop; echo mine >file');
is(kept($same, 'left-behind'), 2, 'replaced workspaces are kept for a day');
gone($_, '2 DAY') for $old, $older;
my @own = map { inode($same, $_) } 'shop', 'mall';
$same->restart;
deployed($same, $_, 'a successor is deployed again when its predecessor is due', 'true') for $heir, $mall;
is_deeply([map { inode($same, $_) } 'shop', 'mall'], \@own, 'the successors keep their workspaces');
$same->stop;

# --- several runners
my @two = map { Slipway::Runner->start(db => $db, idle => 1) } 1, 2;
my $one = $two[0]->project(dir => 'pair/one');
for my $by (@two) {
	$by->resume;
	deployed($by, $one, "a project is deployed on $by->{name}", 'echo x >left-behind');
	$by->stop;
}
gone($one, '2 DAY');
my $pair = $two[0]->project(dir => 'pair');
$two[0]->resume;
deployed($two[0], $pair, 'a project around a deleted one is deployed on one runner',
    'test ! -e one; echo mine >file');
$two[0]->stop;
$two[1]->resume;
ok(poll(30, sub { !-e "$two[1]{workspaces}/pair/one" }), 'the other runner removes the workspace that is due')
    or diag($two[1]->said);
deployed($two[1], $pair, 'the project is deployed on the other runner', 'test ! -e one');
$two[1]->stop;
done_testing();
