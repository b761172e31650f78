#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Commits of a branch from the runner's clone, for Git servers without an API: which,
# how many, and with hostile texts.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::DB;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

my $repos = 0;
# Creates a bare repository whose branch has these commits, oldest first: [name,
# email, message, time], with whatever bytes they contain.
sub repository {
	my ($branch, @commits) = @_;
	my $dir = tempdir() . '/bare' . ++$repos . '.git';
	my $text = "blob\nmark :1\ndata 5\nhello\n";
	my $n = 0;
	for (@commits) {
		my ($name, $email, $message, $time) = @$_;
		$n++;
		$text .= "commit refs/heads/$branch\nmark :" . ($n + 1)
		    . "\nauthor $name <$email> $time +0200\n"
		    . "committer C <c\@example.org> $time +0000\ndata " . length($message) . "\n$message\n"
		    . ($n > 1 ? "from :$n\n" : '') . "M 100644 :1 file$n\n\n";
	}
	my %env = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null');
	my ($status, $out, $err) = run_cmd({ env => \%env }, 'git', 'init', '-q', '--bare',
	    '-b', $branch, $dir);
	die $err if $status != 0;
	($status, $out, $err) = run_cmd({ env => \%env, cwd => $dir, stdin => $text }, 'git',
	    'fast-import', '--quiet');
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
is(job_end($job), 'success -', 'a job that lists three commits succeeds');
my ($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
my ($branch, $rest) = split /\n/, $said, 2;
is($branch, 'main', 'the job reports the branch');
my @told = records($rest);
my @hashes = hashes($repo, 'main');
is(scalar @told, 3, 'the job reports three commits');
is($told[0][1], "$hashes[0] 1700000005\nA Person\na\@example.org\nchange 5\n\nwith a body",
    'the job reports the newest commit first, with all members');
$job = job_run(repository => "file://$repo", branch => 'main', commit => $hashes[4],
    commits => 9, steps => ['true']);
($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
is(scalar(my @all = records((split /\n/, $said, 2)[1])), 5,
    'a job with an older commit reports those of the branch');
$job = job_run(repository => "file://$repo", branch => 'main', steps => ['true']);
is(scalar(grep { $_->[0] eq 'commits' } job_result($job)), 0, 'a job without the option reports no commits');
$job = job_run(repository => "file://$repo", commits => 2, steps => ['true']);
($said) = map { $_->[1] } grep { $_->[0] eq 'commits' } job_result($job);
like($said, qr/^main\n/, 'a job without a branch reports the branch of HEAD');
$job = job_run(repository => "file://$repo", branch => 'gone', commits => 2, steps => ['true']);
is(scalar(grep { $_->[0] eq 'commits' } job_result($job)), 0, 'a failed checkout reports no commits');

# --- in the database
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
sub stored {
	my ($project, $name) = @_;
	my $hex =
	    $db->sql("SELECT HEX(commits) FROM branch_commits WHERE project_id = $project AND branch = "
	    . "'$name'");
	return $hex eq '' ? undef : Cpanel::JSON::XS->new->utf8->decode(pack 'H*', $hex);
}
my $project = $runner->project(repo => repository('main',
    map { ['A', 'a@example.org', "number $_", 1_700_000_000 + $_] } 1 .. 130));
is($runner->wait($runner->deploy($project, 'true')), 'success', 'a deployment without a Git server succeeds');
my $list = stored($project, 'main');
is(scalar @$list, 100, '100 commits of the branch are stored');
is_deeply($list->[0],
    { hash => $list->[0]{hash}, message => 'number 130', authorName => 'A', authorEmail => 'a@example.org',
	committedAt => '2023-11-14T22:15:30.000Z', url => undef },
	    'commits are stored in the form of the API');
is($list->[99]{message}, 'number 31', 'the newest commits are stored');
my $checked = $db->sql("SELECT checked_at FROM branch_commits WHERE project_id = $project");
is($runner->wait($runner->deploy($project, 'true')), 'success', 'a second deployment succeeds');
isnt($db->sql("SELECT checked_at FROM branch_commits WHERE project_id = $project"), $checked,
    'the second deployment updates the commits');

# --- hostile texts
my @hostile = (
	['quotes', 'A "quoted" \\ name', "a\"b\\c\@example.org", "\"}],\"x\":[{\"\\u0000",
	    qr/^"\}\],"x":\[\{"\\u0000$/],
	['terminal escapes', "B\e[31m", 'b@example.org', "\e]0;title\a\e[2J\r\btext",
	    qr/^ \]0;title  \[2J  text$/],
	['invalid UTF-8', "C\xff\xfe", 'c@example.org', "\xc3", qr/^\?$/],
	['overlong UTF-8', 'D', 'd@example.org', "\xc0\xaf\xed\xa0\x80", qr/^\?{5}$/],
	['records', 'E', 'e@example.org', "x\nend 0\n\nstep-ended 12\n0 success 0 -\ncommit 3\nabc\n",
	    qr/^x\nend 0\n\nstep-ended 12/],
	['markup', 'script;', 'f@example.org', '<img src=x onerror=alert(1)>',
	    qr/^<img src=x onerror=alert\(1\)>$/],
	['an empty message', 'G', '', "\n\n", qr/^$/],
	['a long message', 'I', 'i@example.org', "\x{e2}\x{82}\x{ac}" x 200_000,
	    qr/^(?:\x{20ac}){1300,4000}$/],
	['many lines', 'J', 'j@example.org', "line\n" x 3000, qr/^line\nline\n/],
	['a long name', 'K' x 3000, 'k' x 2000 . '@example.org', 'short', qr/^short$/],
);
$project = $runner->project(repo => repository('main', map { [@$_[1 .. 3], 1_700_000_000] } @hostile));
is($runner->wait($runner->deploy($project, 'true')), 'success',
    'a repository with hostile texts is deployed');
$list = stored($project, 'main');
is(scalar @$list, scalar @hostile, 'all hostile commits are stored');
for my $i (0 .. $#hostile) {
	my $got = $list->[$#hostile - $i] || {};
	like($got->{message}, $hostile[$i][4], "$hostile[$i][0]: the message is text");
	unlike("$got->{authorName}$got->{authorEmail}$got->{message}", qr/[\x00-\x08\x0b-\x1f\x7f]/,
	    "$hostile[$i][0]: texts have no control bytes");
	cmp_ok(length $got->{authorName}, '<=', 200, "$hostile[$i][0]: the name has at most 200 characters");
}
# some 130 MB of messages
$project = $runner->project(repo => repository('main', ['A', 'a@example.org', 'small and old', 1_700_000_000],
	['A', 'a@example.org', 'x' x 130_000_000, 1_700_000_001],
	['A', 'a@example.org', 'small and new', 1_700_000_002]));
is($runner->wait($runner->deploy($project, 'true'), undef, 60), 'success',
    'a repository with a commit message of 130 MB is deployed');
is(stored($project, 'main')->[0]{message}, 'small and new', 'a commit message of 130 MB is left out');

# --- a Git server of another host
my $kept = sub { $db->sql('SELECT COUNT(*) FROM branch_commits') };
my $before = $kept->();
for my $type ('gitea', 'git') {
	$runner->stop;
	$runner->write_conf("[gitserver]\nurl = https://git.example.org\ntype = $type\n");
	$runner->resume;
	$project = $runner->project(repo => $repo);
	is($runner->wait($runner->deploy($project, 'true')), 'success',
	    "a repository on another host is deployed with a Git server of type $type");
	is($kept->(), ++$before, "the commits are stored with a Git server of type $type");
}
unlike($runner->said, qr/malformed|step-ended/, 'no text was mistaken for a record');
is($runner->stop, 0, 'the runner stops');
done_testing;
