#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Commits of a branch as the runner's clone has them, for Git servers that have
# no interface to ask: which, how many, and what hostile texts come to.

use strict;
use warnings;
use JSON::PP ();
use Slipway::DB;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $repos = 0;
# A bare repository whose branch has these commits, oldest first: [name, email,
# message, time], as they are, whatever is in them.
sub repository {
	my ($branch, @commits) = @_;
	my $dir = tempdir() . '/bare' . ++$repos . '.git';
	my $text = "blob\nmark :1\ndata 5\nhello\n";
	my $n = 0;
	for (@commits) {
		my ($name, $email, $message, $time) = @$_;
		$n++;
		$text .= "commit refs/heads/$branch\nmark :" . ($n + 1) . "\nauthor $name <$email> $time +0200\n"
		    . "committer C <c\@example.org> $time +0000\ndata " . length($message) . "\n$message\n"
		    . ($n > 1 ? "from :$n\n" : '') . "M 100644 :1 file$n\n\n";
	}
	my %env = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null');
	my ($status, $out, $err) = run_cmd({ env => \%env }, 'git', 'init', '-q', '--bare', '-b', $branch, $dir);
	die $err if $status != 0;
	($status, $out, $err) = run_cmd({ env => \%env, cwd => $dir, stdin => $text }, 'git', 'fast-import', '--quiet');
	die $err if $status != 0;
	return $dir;
}
sub hashes {
	my ($dir, @more) = @_;
	my (undef, $out) = run_cmd({ cwd => $dir }, 'git', 'log', '--format=%H', @more);
	return split /\n/, $out;
}

# --- the job alone
my @plain = map { ['A Person', 'a@example.org', "change $_\n\nwith a body", 1_700_000_000 + $_] } 1 .. 5;
my $repo = repository('main', @plain);
my $job = job_run(repository => "file://$repo", branch => 'main', commits => 3, steps => ['true']);
is(job_end($job), 'success -', 'a job that is to tell three commits');
my ($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
my ($branch, $rest) = split /\n/, $said, 2;
is($branch, 'main', 'says of which branch');
my @told = records($rest);
my @hashes = hashes($repo, 'main');
is(scalar @told, 3, 'tells three');
is($told[0][1], "$hashes[0] 1700000005\nA Person\na\@example.org\nchange 5\n\nwith a body", 'the newest first, whole');
$job = job_run(repository => "file://$repo", branch => 'main', commit => $hashes[4], commits => 9, steps => ['true']);
($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
is(scalar(my @all = records((split /\n/, $said, 2)[1])), 5, 'of an older commit still those of the branch');
$job = job_run(repository => "file://$repo", branch => 'main', steps => ['true']);
is(scalar(grep { $_->[0] eq 'commits' } job_result($job)), 0, 'one that is not to tell does not');
$job = job_run(repository => "file://$repo", commits => 2, steps => ['true']);
($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
like($said, qr/^main\n/, 'without a branch it is that of HEAD');
$job = job_run(repository => "file://$repo", branch => 'gone', commits => 2, steps => ['true']);
is(scalar(grep { $_->[0] eq 'commits' } job_result($job)), 0, 'a checkout that failed tells nothing');

# --- in the database
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
sub stored {
	my ($project, $name) = @_;
	my $hex = $db->sql("SELECT HEX(commits) FROM branch_commits WHERE project_id = $project AND branch = '$name'");
	return $hex eq '' ? undef : JSON::PP->new->utf8->decode(pack 'H*', $hex);
}
my $project = $runner->project(repo => repository('main', map { ['A', 'a@example.org', "number $_", 1_700_000_000 + $_] } 1 .. 130));
is($runner->wait($runner->deploy($project, 'true')), 'success', 'a deployment without a Git server');
my $list = stored($project, 'main');
is(scalar @$list, 100, 'a hundred commits of its branch are kept');
is_deeply($list->[0], { hash => $list->[0]{hash}, message => 'number 130', authorName => 'A', authorEmail => 'a@example.org',
	committedAt => '2023-11-14T22:15:30.000Z', url => undef }, 'in the form of the API');
is($list->[99]{message}, 'number 31', 'the newest of them');
my $checked = $db->sql("SELECT checked_at FROM branch_commits WHERE project_id = $project");
is($runner->wait($runner->deploy($project, 'true')), 'success', 'again');
isnt($db->sql("SELECT checked_at FROM branch_commits WHERE project_id = $project"), $checked, 'they are looked at again');

# --- texts of strangers
my @hostile = (
	['quotes', 'A "quoted" \\ name', "a\"b\\c\@example.org", "\"}],\"x\":[{\"\\u0000", qr/^"\}\],"x":\[\{"\\u0000$/],
	['a terminal', "B\e[31m", 'b@example.org', "\e]0;title\a\e[2J\r\btext", qr/^ \]0;title  \[2J  text$/],
	['half of UTF-8', "C\xff\xfe", 'c@example.org', "\xc3", qr/^\?$/],
	['an overlong form', 'D', 'd@example.org', "\xc0\xaf\xed\xa0\x80", qr/^\?{5}$/],
	['records', 'E', 'e@example.org', "x\nend 0\n\nstep-ended 12\n0 success 0 -\ncommit 3\nabc\n", qr/^x\nend 0\n\nstep-ended 12/],
	['markup', 'script;', 'f@example.org', '<img src=x onerror=alert(1)>', qr/^<img src=x onerror=alert\(1\)>$/],
	['nothing', 'G', '', "\n\n", qr/^$/],
	['much', 'I', 'i@example.org', "\x{e2}\x{82}\x{ac}" x 200_000, qr/^(?:\x{20ac}){1300,4000}$/],
	['many lines', 'J', 'j@example.org', "line\n" x 3000, qr/^line\nline\n/],
	['a long name', 'K' x 3000, 'k' x 2000 . '@example.org', 'short', qr/^short$/],
);
$project = $runner->project(repo => repository('main', map { [@$_[1 .. 3], 1_700_000_000] } @hostile));
is($runner->wait($runner->deploy($project, 'true')), 'success', 'hostile texts deploy like others');
$list = stored($project, 'main');
is(scalar @$list, scalar @hostile, 'all of them are there');
for my $i (0 .. $#hostile) {
	my $got = $list->[$#hostile - $i] || {};
	like($got->{message}, $hostile[$i][4], "$hostile[$i][0]: as text");
	unlike("$got->{authorName}$got->{authorEmail}$got->{message}", qr/[\x00-\x08\x0b-\x1f\x7f]/, 'without control bytes');
	cmp_ok(length $got->{authorName}, '<=', 200, 'and no longer than it may be');
}
# some 130 MB of messages
$project = $runner->project(repo => repository('main', ['A', 'a@example.org', 'small and old', 1_700_000_000],
	['A', 'a@example.org', 'x' x 130_000_000, 1_700_000_001], ['A', 'a@example.org', 'small and new', 1_700_000_002]));
is($runner->wait($runner->deploy($project, 'true'), undef, 60), 'success', 'a commit of 130 MB');
is(stored($project, 'main')->[0]{message}, 'small and new', 'leaves out what does not fit');

# --- a Git server that has nothing to do with it
my $kept = sub { $db->sql('SELECT COUNT(*) FROM branch_commits') };
my $before = $kept->();
for my $type ('gitea', 'git') {
	$runner->stop;
	$runner->write_conf("[gitserver]\nurl = https://git.example.org\ntype = $type\n");
	$runner->resume;
	$project = $runner->project(repo => $repo);
	is($runner->wait($runner->deploy($project, 'true')), 'success', "a repository from elsewhere, with a Git server of type $type");
	is($kept->(), ++$before, 'keeps them, too');
}
unlike($runner->said, qr/malformed|step-ended/, 'nothing was taken for what it is not');
is($runner->stop, 0, 'ends');
done_testing;
