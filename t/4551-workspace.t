#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What is said of a workspace after a checkout that did not get to its end is
# what is there: the commit of before, or the one that was on its way.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\ncheckout_timeout = 3\n");
my $repo = $runner->repo({ map { ("dir$_/file" => "$_\n" x 50) } 1 .. 200 });
my %env = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null', GIT_AUTHOR_NAME => 'A',
	GIT_AUTHOR_EMAIL => 'a@example.org', GIT_COMMITTER_NAME => 'A', GIT_COMMITTER_EMAIL => 'a@example.org');
sub git {
	my @args = @_;
	my ($status, $out, $err) = run_cmd({ env => \%env, cwd => $repo }, 'git', @args);
	die "git @args: $err" if $status != 0;
	chomp $out;
	return $out;
}
sub commit { my ($file) = @_; spew("$repo/$file", "new\n"); git('add', '-A'); git('commit', '-q', '-m', "adds $file"); return git('rev-parse', 'HEAD') }
my $first = git('rev-parse', 'HEAD');
my $project = $runner->project(repo => $repo);
sub seen {
	my $row = $db->sql("SELECT CONCAT_WS(' ', status, COALESCE(branch, '-'), COALESCE(commit_hash, '-'), dirty) FROM workspace WHERE project_id = $project");
	chomp $row;
	return $row;
}
sub message { my $text = $db->sql("SELECT COALESCE(commit_message, '-') FROM workspace WHERE project_id = $project"); chomp $text; return $text }
sub deploy {
	my ($columns, @steps) = @_;
	my $id = $runner->deploy($project, @steps ? @steps : 'true');
	$db->sql("UPDATE deployment SET $columns WHERE id = $id") if $columns;
	return $id;
}
# What a deployment is to be is known before a runner sees it.
sub run {
	my ($columns, $want, $name, @steps) = @_;
	$runner->stop;
	my $id = deploy($columns, @steps);
	$runner->resume;
	is($runner->wait($id), $want, $name) or diag($runner->log($id), tail($runner->said, 20));
	return $id;
}

run('', 'success', 'the first deployment');
is(seen(), "ready main $first 0", 'a checkout');
run("branch = 'none'", 'failed', 'a branch that does not exist');
is(seen(), "ready main $first 0", 'the workspace is what it was');
like(message(), qr/^first/, 'with its message');
run("commit_hash = '" . '1' x 40 . "'", 'failed', 'a commit that does not exist');
is(seen(), "ready main $first 0", 'the same');

my $second = commit('second');
run("commit_hash = '" . '1' x 40 . "'", 'failed', 'after the branch went on: a commit that does not exist');
is(seen(), "ready main $first 0", 'what was fetched is not what is there');
run("commit_hash = '$first'", 'success', 'a commit that is not the head of the branch');
run("branch = 'none'", 'failed', 'and then a branch that does not exist');
is(seen(), "ready main $first 0", 'that commit is there');
run('', 'success', 'the head of the branch');
is(seen(), "ready main $second 0", 'is there then');

# --- canceled and overdue
rename "$repo", "$repo.real" or die;
mkdir $repo or die;
# a FIFO where git looks for the repository's HEAD holds the fetch
symlink "$repo.real/.git/$_", "$repo/$_" for qw(objects refs config);
run_cmd('mkfifo', '-m', '0666', "$repo/HEAD");
$runner->stop;
my $id = deploy('');
$runner->resume;
is($runner->wait($id), 'failed', 'a fetch that hangs');
is($db->sql("SELECT reason FROM deployment WHERE id = $id") =~ s/\n//r, 'timeout', 'until the time is over');
is(seen(), "ready main $second 0", 'leaves what is there');
$runner->write_conf("[runner]\ncheckout_timeout = 600\n");
$runner->restart;
$id = $runner->deploy($project, 'true');
ok(poll(20, sub { $runner->log($id) =~ /checkout of/ }), 'another one hangs');
$runner->cancel($id);
is($runner->wait($id), 'canceled', 'and is canceled');
is(seen(), "ready main $second 0", 'which leaves what is there, too');
run_cmd('rm', '-r', $repo);
rename "$repo.real", $repo or die;

# --- canceled while files are written: a checkout on its way
my $third;
{
	spew("$repo/large$_", 'x' x 3_000_000) for 1 .. 60;
	git('add', '-A');
	git('commit', '-q', '-m', 'large');
	$third = git('rev-parse', 'HEAD');
}
my $at = "$runner->{workspaces}/project$project";
$id = $runner->deploy($project, 'true');
ok(poll(30, sub { -e "$at/large1" || -e "$at/.git/index.lock" }), 'files are being written');
$runner->cancel($id);
my $end = $runner->wait($id);
my $now = seen();
if ($end eq 'canceled' && $now =~ /\Q$third\E/) {
	like($now, qr/^ready main $third [01]$/, 'a checkout that was canceled on its way says where it was going');
} else {
	like($now, qr/^ready main (?:$second|$third) [01]$/, "it ended before that ($end)");
}
my $files = grep { -e "$at/large$_" } 1 .. 60;
is($now =~ / 0$/ && $now =~ /$third/ ? 1 : 0, $files == 60 ? 1 : 0, 'and that files are missing') if $now =~ /$third/;
run('', 'success', 'the next one');
is(seen(), "ready main $third 0", 'gets there');

# --- steps that run after a failed checkout see nothing, and what is said is that
my $failed = run("branch = 'none'", 'failed', 'a failed checkout with a step after it', 'true',
    { script => 'ls -A; echo "[$SLIPWAY_BRANCH] [$SLIPWAY_COMMIT]"', when => 'always' });
is(seen(), 'empty - - 0', 'the workspace is empty');
like($runner->log($failed), qr/^\[none\] \[\]$/m, 'the step knows the branch that was asked for and no commit');
$runner->stop;
done_testing();
