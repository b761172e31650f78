#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Repositories as they are: histories with the faults of old tools, shallow sources,
# SHA-256 behind a server of the first protocol, commits that are on no branch.  What
# git clones is checked out, and what attacks the checkout is rejected.

use strict;
use warnings;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $dir = tempdir();
sub git_in {
	my ($where, $script) = @_;
	my ($status, $out, $err) = run_cmd({ cwd => $where,
	    env => { GIT_CONFIG_GLOBAL => '/dev/null', GIT_ALLOW_PROTOCOL => 'file' } },
		'bash', '-ec',
		'export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a '
		    . 'GIT_COMMITTER_EMAIL=a@example.org;' . $script);
	die "git: $script: $err" if $status;
	chomp $out;
	return $out;
}
sub repo {
	my ($name, $script, @options) = @_;
	mkdir "$dir/$name";
	git_in("$dir/$name", "git init -q -b main @options; echo fine >file; git add .; git commit -qm first;"
		. $script);
	return "$dir/$name";
}
sub checked {
	my ($job) = @_;
	my ($r) = grep { $_->[0] eq 'checked-out' } job_result($job);
	return $r ? $r->[1] : '';
}
# The options with which the next job has the workspace of this one.
sub after {
	my ($job) = @_;
	my ($state) = map { $_->[1] } grep { $_->[0] eq 'objects' } job_result($job);
	return (uid => $job->{uid}, workspace => $job->{workspace}, objects => $state);
}
sub deploy { return job_run(branch => 'main', steps => ['cat file'], @_) }

# --- histories with faults: the faulty object is an ancestor, and in another run the head
# In place of a line of a good commit.
my %line = (
	badDate => 'author a <a@e> x +0000',
	badDateOverflow => 'author a <a@e> 18446744073709551600 +0000',
	badEmail => 'author a <a 1 +0000',
	badTimezone => 'author a <a@e> 1 +07640',
	missingEmail => 'author a 1 +0000',
	missingNameBeforeEmail => 'author <a@e> 1 +0000',
	missingSpaceBeforeEmail => 'author a<a@e> 1 +0000',
	missingSpaceBeforeDate => 'author a <a@e>1 +0000',
	zeroPaddedDate => 'author a <a@e> 01 +0000',
	multipleAuthors => "author a <a\@e> 1 +0000\\nauthor b <b\@e> 1 +0000",
	missingAuthor => '',
);
my %tree = (
	duplicateEntries => '100644 file\0$file100644 file\0$file',
	treeNotSorted => '100644 file\0$file100644 a\0$file',
	zeroPaddedFilemode => '0100644 file\0$file',
	badFilemode => '100666 file\0$file',
);
my $bad = repo('bad', '');
my $commit = 'git cat-file commit HEAD';
for my $id (sort keys %line) {
	my $line = $line{$id} eq '' ? '/^author /d' : "s/^author .*/$line{$id}/";
	git_in($bad, "git checkout -q --detach main; c=\$($commit | sed -e '$line' | "
		. "git hash-object -t commit -w --stdin --literally); "
		. "git update-ref refs/heads/head-$id \$c; "
		. "git update-ref refs/heads/old-$id \$(git commit-tree -p \$c -m new main^{tree})");
}
my $raw = 'perl -e \'my ($f, $t) = @ARGV; my $o = pack("H*", $f); '
    . '$t =~ s/\\\\0/\0/g; $t =~ s/\$file/$o/g; print $t\''
    . ' $(git rev-parse main:file)';
for my $id (sort keys %tree) {
	git_in($bad, "t=\$($raw '$tree{$id}' | git hash-object -t tree -w --stdin --literally); "
		. "c=\$(git commit-tree -p main -m bad \$t); git update-ref refs/heads/head-$id \$c; "
		. "git update-ref refs/heads/old-$id \$(git commit-tree -p \$c -m new main^{tree})");
}
git_in($bad, "c=\$({ $commit; printf 'a\\0b'; } | git hash-object -t commit -w --stdin --literally); "
	. "git update-ref refs/heads/head-nulInCommit \$c; "
	. "git update-ref refs/heads/old-nulInCommit \$(git commit-tree -p \$c -m new main^{tree})");
for my $id (sort(keys %line, keys %tree), 'nulInCommit') {
	for my $where ('old', 'head') {
		my $job = deploy(repository => $bad, branch => "$where-$id");
		like(job_log($job), qr/^fine$/m,
		    "$id in " . ($where eq 'old' ? 'the history' : 'the commit itself')
		    . ' does not prevent the checkout') or diag(job_log($job));
	}
}

# --- what attacks the checkout
my %attack = (
	'an entry .git' => '100644 .git\0$file',
	'an entry ..' => '100644 ..\0$file',
	'an entry .' => '100644 .\0$file',
	'an entry with a slash' => '100644 a/b\0$file',
	'an entry without a name' => '100644 \0$file',
	'an entry .GIT' => '100644 .GIT\0$file',
	'a link .gitmodules' => '120000 .gitmodules\0$file',
);
for my $what (sort keys %attack) {
	git_in($bad, "t=\$($raw '$attack{$what}' | git hash-object -t tree -w --stdin --literally); "
		. "c=\$(git commit-tree -p main -m bad \$t); git update-ref refs/heads/attack \$c");
	is(scalar job_end(deploy(repository => $bad, branch => 'attack')), 'failed checkout_failed',
	    "$what is rejected");
}
my $out = tempdir();
chmod 0777, $out;
git_in($bad, "l=\$(printf '$out' | git hash-object -w --stdin); s=\$(printf '100644 blob %s\\tfile' "
	. "\$(git rev-parse main:file) | git mktree); t=\$({ perl -e 'print "
	. "\"120000 x\\0\", pack(\"H*\", \$ARGV[0]),"
	. " \"40000 x\\0\", pack(\"H*\", \$ARGV[1])' \$l \$s; } | git hash-object -t tree -w "
	. "--stdin --literally); git update-ref refs/heads/twice \$(git commit-tree -p main -m twice \$t)");
deploy(repository => $bad, branch => 'twice');
ok(!-e "$out/file", 'a link and a directory of one name write nothing outside of the workspace');

# --- a shallow source
my $deep = repo('deep', 'for i in 1 2 3 4; do echo $i >n; git add n; git commit -qm $i; done');
git_in($dir, "git clone -q --depth 2 file://$deep shallow; chmod -R a+rX shallow");
my $job = deploy(repository => "$dir/shallow");
like(job_log($job), qr/^==> warning: the repository is a shallow clone/m, 'a shallow source is reported');
like(job_log($job), qr/^fine$/m, 'a shallow source is checked out') or diag(job_log($job));
$job = deploy(repository => "$dir/shallow", after($job), steps => ['cat file; touch new']);
$job = deploy(repository => "$dir/shallow", after($job));
like(job_log($job), qr/^fine$/m, 'a shallow source is checked out again');

# --- SHA-256 from a server that knows only the first protocol, such as sshd without AcceptEnv
SKIP: {
	skip 'git without SHA-256', 2 if !eval { repo('sha256', '', '--object-format=sha256') };
	my $first = "$dir/first";
	mkdir $first;
	spew("$first/git", "#!/bin/sh\nexec /usr/bin/git -c protocol.version=0 \"\$@\"\n", 0755);
	my @how = (repository => "$dir/sha256", path => "$first:/usr/bin:/bin");
	$job = deploy(@how);
	like(checked($job), qr/^main\n[0-9a-f]{64}\nfirst$/, 'SHA-256 is checked out by the first protocol')
	    or diag(job_log($job));
	$job = deploy(@how, after($job));
	like(checked($job), qr/^main\n[0-9a-f]{64}\nfirst$/,
	    'SHA-256 is checked out again by the first protocol');
}

# --- a commit that the server has on none of its branches, as of a fork
my $forked = repo('forked', 'git tag v1; git checkout -q --detach; echo fork >file; git commit -qam fork; '
	. 'git update-ref refs/pull/1/head HEAD; git checkout -q main; echo more >n; '
	. 'git add n; git commit -qm more');
my ($main, $fork, $first) = split /\n/, git_in($forked, 'git rev-parse main refs/pull/1/head main~1');
my @fork = (repository => $forked, commit => $fork,
    steps => ['echo "branch=$SLIPWAY_BRANCH tag=$SLIPWAY_TAG"']);
for my $case (['with a branch', branch => 'main'], ['without one', branch => undef],
    ['with a tag', branch => undef, tag => 'v1']) {
	my ($what, @of) = @$case;
	$job = deploy(@fork, @of);
	is(checked($job), "-\n$fork\nfork", "$what, the commit of a fork has no branch");
	like(job_log($job), qr/^==> commit $fork is not on the (?:branch main|tag v1)$/m,
	    "$what, the log says so");
	like(job_log($job), qr/^branch= tag=$/m, "$what, the steps see neither branch nor tag");
	$job = deploy(@fork, @of, after($job));
	is(checked($job), "-\n$fork\nfork", "$what, it has none in the second deployment either");
	$job = deploy(@fork, @of, on_branch => 1);
	is(scalar job_end($job), 'failed checkout_failed', "$what, an environment with branches rejects it");
}
$job = deploy(repository => $forked);
$job = deploy(repository => $forked, after($job), commit => $first);
is(checked($job), "main\n$first\nfirst", 'a commit in the history of the branch has its name');
rename $forked, "$forked.away" or die;
$job = deploy(repository => $forked, after($job), commit => $first);
is(checked($job), "main\n$first\nfirst", 'a commit seen on the branch needs no server');
$job = deploy(repository => $forked, after($job), commit => $main, rollback_to => 1);
is(checked($job), "main\n$main\nmore", 'a rollback needs no server, and keeps the branch');

done_testing();
