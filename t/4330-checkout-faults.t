#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Checkout of a private repository from a Git server that rejects, is silent, slow
# or faulty, redirects, or changes during the checkout: it ends in time with a clear
# message, and the token is sent to its own server alone and is in no log.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Slipway::Forge;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $f = Slipway::Forge->start(type => 'gitea');
my $other = Slipway::Forge->start(type => 'gitea');
$f->user('ann');
my $repo = $f->repo('team/site', private => 1, users => ['ann']);
my $first = $repo->commit('main', { file => "one\n" }, 'first');
my $token = $f->token('ann');
my $workspace;

sub deploy {
	my (%o) = @_;
	my $began = stopwatch();
	my $job = job_run(branch => 'main', repository => $repo->clone_url, tls_ca => slurp($f->ca),
		credential => "slipway\n$token", allow_local => 0, checkout_timeout => 60,
		steps => ['cat file'], %o);
	my $took = $began->();
	return { end => [job_end($job)], log => job_log($job), took => $took };
}
sub works {
	my ($name, %o) = @_;
	my $got = deploy(%o);
	is($got->{end}[0], 'success -', $name) or diag("$got->{end}[1]\n$got->{log}");
	return $got->{log};
}
# Expects that a checkout fails in time, and that neither log nor detail has the token.
sub fails {
	my ($name, $detail, %o) = @_;
	my $got = deploy(%o);
	like($got->{end}[0], qr/^failed (?:checkout_failed|timeout)$/, $name) or diag($got->{log});
	like($got->{end}[1], $detail, "$name: the detail gives the cause");
	cmp_ok($got->{took}, '<', deadline(50), "$name: the job ends in time");
	unlike("$got->{end}[1] $got->{log}", qr/\Q$token\E/,
	    "$name: neither log nor detail contains the token");
	unlike($got->{log}, qr/^one$/m, "$name: no step runs");
	$f->clear_faults;
	return $got;
}

like(works('a private repository is checked out'), qr/^one$/m, 'a private repository has its files');

# --- steps that run after a failed checkout do not see the files of another's checkout
{
	my @job = (branch => 'main', repository => $repo->clone_url, tls_ca => slurp($f->ca),
	    allow_local => 0);
	my $theirs = job_run(@job, credential => "slipway\n$token", steps => ['cat file']);
	is((job_end($theirs))[0], 'success -', 'another user deploys');
	my ($seen) = map { $_->[1] } grep { $_->[0] eq 'objects' } job_result($theirs);
	my @same = (uid => $theirs->{uid}, workspace => $theirs->{workspace}, objects => $seen,
	    credential => undef);
	my @steps =
	    map { { script => 'cat file || :; git cat-file -p refs/slipway/tip:file || :; ls -A .git/objects '
	    . '|| :; echo ran', when => $_ } } qw(always failure);
	$f->fault('info/refs', kind => 'silent');
	my $mine = job_run(@job, @same, checkout_timeout => 1, steps => \@steps);
	$f->clear_faults;
	is((job_end($mine))[0], 'failed timeout', 'a deployment without access to the repository times out')
	    or diag(job_log($mine));
	like(job_log($mine), qr/^ran$/m, 'after a failed checkout, steps with runWhen always run');
	unlike(job_log($mine), qr/^(?:one|[0-9a-f]{2}|pack)$/m,
	    'steps after a failed checkout find no file and no object of the other deployment')
	    or diag(job_log($mine));
	my $next = job_run(@job, @same, credential => "slipway\n$token", steps => ['cat file']);
	is((job_end($next))[0], 'success -', 'the next deployment with access clones again')
	    or diag(job_log($next));
}

# --- rejected
fails('no credential', qr/Authentication|could not read|credential/i, credential => undef);
fails('an invalid token', qr/Authentication|denied|401|credential/i, credential => "slipway\nnone");
fails('an expired token', qr/Authentication|denied|401|credential/i,
    credential => "slipway\n" . $f->token('ann', expires => -1));
$f->user('eve');
fails('the token of another user', qr/not found/i, credential => "slipway\n" . $f->token('eve'));
fails('a certificate of another CA', qr/certificate/i, tls_ca => slurp($other->ca));
fails('a port where nothing listens', qr/connect/i,
    repository => $repo->clone_url =~ s/:\d+/':' . free_port()/er);
fails('an unknown host name', qr/resolve/i, repository => $repo->clone_url =~ s/localhost/nowhere.invalid/r);

# --- faulty responses
for my $case ([403 => '403'], [404 => 'not found|404'], [410 => '410'], [429 => '429'], [500 => '500'],
    [502 => '502'], [503 => '503'], [504 => '504']) {
	$f->fault('info/refs', kind => 'status', status => $case->[0], body => "<h1>$token</h1>",
	    type => 'text/html');
	fails("status $case->[0]", qr/$case->[1]/i);
}
for my $case (['HTML' => status => status => 200, body => '<html>sign in</html>', type => 'text/html'],
	['an empty response' => status => status => 200, body => '',
	    type => 'application/x-git-upload-pack-advertisement'],
	['garbage' => status => status => 200, body => "\x00\xff\x00garbage",
	    type => 'application/x-git-upload-pack-advertisement'],
	['an invalid length' => status => status => 200, body => "zzzz# service",
	    type => 'application/x-git-upload-pack-advertisement'],
	['a truncated response' => cut => body => "001e# service=git-upload-pack\n0000"],
	['a closed connection' => 'drop']) {
	my ($name, $kind, %how) = @$case;
	for my $at ('info/refs', 'git-upload-pack$') {
		$f->fault($at, kind => $kind, %how);
		fails("$at: $name", qr/./);
	}
}
for my $at ('info/refs', 'git-upload-pack$') {
	$f->fault($at, kind => 'silent');
	fails("$at: a silent server", qr/./, checkout_timeout => 5);
	$f->fault($at, kind => 'slow', body => '0' x 1000);
	fails("$at: one byte per second", qr/./, checkout_timeout => 5);
	$f->fault($at, kind => 'big', size => 300 << 20);
	fails("$at: 300 MB of garbage", qr/./);
}

# --- redirects
for my $case (['itself' => $repo->clone_url . '/info/refs?service=git-upload-pack'],
    ['another server' => $other->url . '/x/y.git/info/refs'],
	['a server without TLS' => 'http://localhost:' . free_port() . '/x'],
	['a file' => 'file:///etc/passwd'], ['nowhere' => '']) {
	$f->fault('info/refs', kind => 'status', status => 302, headers => { Location => $case->[1] });
	fails("a redirect to $case->[0]", qr/./);
}
is(scalar(my @there = $other->requests), 0, 'the other server receives no request');

# --- a repository that changes during the checkout
$f->fault('git-upload-pack$', kind => 'status', status => 404, body => 'gone', type => 'text/plain');
fails('a repository removed after the first response', qr/^error: RPC failed; .*returned error: 404/);

# Runs the code after the pack was requested; the response follows a second later.
sub meanwhile {
	my ($code) = @_;
	my $before = my @before = $f->requests(qr/git-upload-pack$/);
	$f->fault('git-upload-pack$', kind => 'delay', seconds => 1);
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	return $pid if $pid;
	poll(20, sub { my @now = $f->requests(qr/git-upload-pack$/); @now > $before + 1 });
	$code->();
	POSIX::_exit(0);
}
my $second = $repo->commit('main', { file => "two\n" }, 'second');
my $pid = meanwhile(sub {
	$repo->git('reset', '-q', '--hard', $first);
	$repo->commit('main', { file => "three\n" }, 'rewritten');
	$repo->_git_in($repo->dir, $_ ? qw(gc -q --prune=now) : qw(reflog expire --expire=now --all))
	    for 0, 1;
});
my $got = deploy();
waitpid $pid, 0;
$f->clear_faults;
if ($got->{end}[0] eq 'success -') {
	like($got->{log}, qr/^(?:two|three)$/m,
	    'a branch rewritten during the fetch has one of both commits');
} else {
	is($got->{end}[0], 'failed checkout_failed',
	    'a branch rewritten during the fetch fails the checkout');
	cmp_ok(length $got->{end}[1], '>', 10,
	    'a branch rewritten during the fetch: the detail gives the cause');
}
like(works('the next checkout succeeds'), qr/^three$/m, 'the next checkout has the new commit');

# --- in an existing workspace
$workspace = tempdir() . '/workspace';
my $uid = uid_for();
my @same = (workspace => $workspace, defined $uid ? (uid => $uid) : ());
$repo->branch('topic');
like(works('a branch is checked out in an existing workspace', @same, branch => 'topic'), qr/^three$/m,
    'a branch in an existing workspace has its files');
$repo->drop_branch('topic');
fails('a deleted branch', qr/topic|no such|couldn't find|does not/i, @same, branch => 'topic');
$repo->branch('topic/one');
like(works('a branch below the name of a deleted branch is checked out', @same, branch => 'topic/one'),
    qr/^three$/m, 'a branch below the name of a deleted branch has its files');
$repo->drop_branch('topic/one');
$repo->branch('topic');
like(works('a branch above the name of a deleted branch is checked out', @same, branch => 'topic'),
    qr/^three$/m, 'a branch above the name of a deleted branch has its files');
$repo->git('checkout', '-q', 'main');
$repo->commit('main', { file => undef, 'file/inside' => "four\n" }, 'a folder in place of a file');
like(works('a directory that replaces a file is checked out', @same, steps => ['cat file/inside']),
    qr/^four$/m, 'a directory that replaces a file has its files');
$repo->commit('main', { 'file/inside' => undef, file => "five\n" }, 'a file in place of a folder');
like(works('a file that replaces a directory is checked out', @same), qr/^five$/m,
    'a file that replaces a directory has its content');
$repo->git('reset', '-q', '--hard', $first);
$repo->commit('main', { file => "six\n" }, 'rewritten');
like(works('a rewritten branch is checked out in an existing workspace', @same), qr/^six$/m,
    'a rewritten branch has its files');
$f->fault('git-upload-pack$', kind => 'cut', body => '0008NAK');
$repo->commit('main', { file => "seven\n" }, 'newer');
fails('a truncated fetch', qr/./, @same);
like(works('a checkout after a truncated fetch succeeds', @same), qr/^seven$/m,
    'a checkout after a truncated fetch has its files');
$repo->remove;
fails('a deleted repository', qr/not found/i, @same);
is_deeply([$f->complaints], [], 'the server received only valid requests');

done_testing;
