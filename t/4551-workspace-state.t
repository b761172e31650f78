#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The state of a workspace after a checkout that did not complete is true: the
# previous commit, or the one that was being checked out.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
my $repo = $runner->repo({ map { ("dir$_/file" => "$_\n" x 50) } 1 .. 200 });
my %env = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null', GIT_AUTHOR_NAME => 'A',
	GIT_AUTHOR_EMAIL => 'a@example.org', GIT_COMMITTER_NAME => 'A',
	GIT_COMMITTER_EMAIL => 'a@example.org');
sub git {
	my @args = @_;
	my ($status, $out, $err) = run_cmd({ env => \%env, cwd => $repo }, 'git', @args);
	die "git @args: $err" if $status != 0;
	chomp $out;
	return $out;
}
sub commit {
	my ($file) = @_;
	spew("$repo/$file", "new\n");
	git('add', '-A');
	git('commit', '-q', '-m', "adds $file");
	return git('rev-parse', 'HEAD');
}
my $first = git('rev-parse', 'HEAD');
my $project = $runner->project(repo => $repo);
sub seen {
	my $row =
	    $db->sql("SELECT CONCAT_WS(' ', status, COALESCE(branch, '-'), COALESCE(commit_hash, '-'), "
	    . "dirty) FROM workspace WHERE project_id = $project");
	chomp $row;
	return $row;
}
sub message {
	my $text =
	    $db->sql("SELECT COALESCE(commit_message, '-') FROM workspace WHERE project_id = $project");
	chomp $text;
	return $text;
}
sub deploy {
	my ($columns, @steps) = @_;
	my $id = $runner->deploy($project, @steps ? @steps : 'true');
	$db->sql("UPDATE deployment SET $columns WHERE id = $id") if $columns;
	return $id;
}
# The columns are set before a runner sees the deployment.
sub run {
	my ($columns, $want, $name, @steps) = @_;
	$runner->stop;
	my $id = deploy($columns, @steps);
	$runner->resume;
	is($runner->wait($id), $want, $name) or diag($runner->log($id), tail($runner->said, 20));
	return $id;
}

run('', 'success', 'the first deployment');
is(seen(), "ready main $first 0", 'the workspace is ready after a checkout');
run("branch = 'none'", 'failed', 'a deployment of an unknown branch fails');
is(seen(), "ready main $first 0", 'an unknown branch leaves the workspace unchanged');
like(message(), qr/^first/, 'an unknown branch leaves the commit message unchanged');
run("commit_hash = '" . '1' x 40 . "'", 'failed', 'a deployment of an unknown commit fails');
is(seen(), "ready main $first 0", 'an unknown commit leaves the workspace unchanged');

my $second = commit('second');
run("commit_hash = '" . '1' x 40 . "'", 'failed',
    'a deployment of an unknown commit fails after the branch moved');
is(seen(), "ready main $first 0", 'fetched commits do not change the state of the workspace');
run("commit_hash = '$first'", 'success', 'a deployment of an older commit succeeds');
run("branch = 'none'", 'failed', 'a deployment of an unknown branch fails after an older commit');
is(seen(), "ready main $first 0", 'the workspace stays at the older commit');
run('', 'success', 'a deployment of the branch succeeds');
is(seen(), "ready main $second 0", 'the workspace is at the head of the branch');

# --- canceled and timed-out checkouts
rename "$repo", "$repo.real" or die;
mkdir $repo or die;
# a FIFO instead of the repository's HEAD blocks the fetch
symlink "$repo.real/.git/$_", "$repo/$_" for qw(objects refs config);
run_cmd('mkfifo', '-m', '0666', "$repo/HEAD");
$runner->stop;
$runner->write_conf("[runner]\ncheckout_timeout = 3\n");
my $id = deploy('');
$runner->resume;
is($runner->wait($id), 'failed', 'a deployment whose fetch hangs fails');
is($db->sql("SELECT reason FROM deployment WHERE id = $id") =~ s/\n//r, 'timeout',
    'a deployment whose fetch hangs times out');
is(seen(), "ready main $second 0", 'a timed-out fetch leaves the workspace unchanged');
$runner->write_conf("[runner]\ncheckout_timeout = 600\n");
$runner->restart;
$id = $runner->deploy($project, 'true');
ok(poll(20, sub { $runner->log($id) =~ /checkout of/ }), 'another fetch hangs');
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'a deployment whose fetch hangs is canceled');
is(seen(), "ready main $second 0", 'a canceled fetch leaves the workspace unchanged');
run_cmd('rm', '-r', $repo);
rename "$repo.real", $repo or die;

# --- a cancel while files are written
my $third;
{
	spew("$repo/large$_", 'x' x 3_000_000) for 1 .. 60;
	git('add', '-A');
	git('commit', '-q', '-m', 'large');
	$third = git('rev-parse', 'HEAD');
}
my $at = "$runner->{workspaces}/project$project";
$id = $runner->deploy($project, 'true');
ok(poll(30, sub { -e "$at/large1" || -e "$at/.git/index.lock" }), 'the checkout writes files');
$runner->cancel($id);
my $end = $runner->wait($id);
my $now = seen();
if ($end eq 'canceled' && $now =~ /\Q$third\E/) {
	like($now, qr/^ready main $third [01]$/,
	    'a checkout canceled while it writes has the new commit');
} else {
	like($now, qr/^ready main (?:$second|$third) [01]$/, "the checkout ended before the cancel ($end)");
}
my $files = grep { -e "$at/large$_" } 1 .. 60;
is($now =~ / 0$/ && $now =~ /$third/ ? 1 : 0, $files == 60 ? 1 : 0, 'a workspace with missing files is dirty')
    if $now =~ /$third/;
run('', 'success', 'the next deployment succeeds');
is(seen(), "ready main $third 0", 'the workspace has the new commit');

# --- steps after a failed checkout find an empty workspace, and its state says so
my $failed = run("branch = 'none'", 'failed', 'a deployment with a failed checkout fails', 'true',
    { script => 'ls -A; echo "[$SLIPWAY_BRANCH] [$SLIPWAY_COMMIT]"', when => 'always' });
is(seen(), 'empty - - 0', 'the workspace is empty after a failed checkout');
like($runner->log($failed), qr/^\[none\] \[\]$/m,
    'a step after a failed checkout has the branch and no commit');
$runner->stop;
done_testing();
