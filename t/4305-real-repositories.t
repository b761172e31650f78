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
{
	git_in($bad, "git checkout -q --detach main; "
		. "printf '[submodule \"s\"]\n\tpath = s\n\turl = x\n' >.gitmodules;"
		. "git add .; git commit -qm good; git update-ref refs/heads/links HEAD; "
		. "printf '\tupdate = !touch x\n' >>.gitmodules; git commit -qam bad; "
		. "git update-ref refs/heads/command HEAD; git checkout -q main");
	my $command = git_in($bad, 'git rev-parse command');
	my $before = deploy(repository => $bad, branch => 'links');
	is(scalar job_end(deploy(repository => $bad, after($before), branch => 'links', commit => $command)),
	    'failed checkout_failed', 'a command in .gitmodules is rejected in an existing clone, by hash');
	is(scalar job_end(deploy(repository => $bad, after($before), branch => 'command')),
	    'failed checkout_failed', 'and by branch');
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

# --- tags, as in a plain clone
my $tagged = repo('tagged', 'git tag -am x v1; echo 2 >n; git add n; git commit -qm two; git tag light; '
	. 'git checkout -qb other; git commit -q --allow-empty -m o; git tag -am o elsewhere; '
	. 'git checkout -q main; '
	. 'echo 3 >n; git commit -qam three');
my @describe = (steps => ['git describe --tags; git describe; git tag | tr "\n" " "; echo; touch made']);
sub described { return job_log($_[0]) =~ /^==> step.*\n((?:.*\n)*)/m ? $1 : job_log($_[0]) }
my $abbrev = substr git_in($tagged, 'git rev-parse main'), 0, 7;
$job = deploy(repository => $tagged, @describe);
is(described($job), "light-1-g$abbrev\nv1-2-g$abbrev\nlight v1 \n", 'tags are those of the history');
$job = deploy(repository => $tagged, after($job), @describe);
like(described($job), qr/^light-1-g$abbrev\nv1-2-g$abbrev\n/, 'the next checkout has the same tags');
$job = deploy(repository => $tagged, after($job), @describe,
    commit => git_in($tagged, 'git rev-parse main~1'));
like(described($job), qr/^light\nv1-1-/, 'a commit that is not fetched has its tags');
git_in($tagged, 'git tag -d light; git tag -f v1 -am moved main~1; git tag -am new release/2');
$job = deploy(repository => $tagged, after($job), @describe);
like(described($job), qr{^release/2\nrelease/2\nelsewhere release/2 v1 $}m,
    'new, moved and removed tags are those of the server') or diag(job_log($job));
$job = deploy(repository => $tagged, after($job), branch => undef, tag => 'v1', @describe);
like(described($job), qr/^v1\nv1\n/, 'the tag that is deployed is found');
$job = deploy(repository => $tagged, after($job), branch => undef, tag => 'v1', steps => ['true']);
$job = deploy(repository => $tagged, after($job),
    steps => ['git tag -f v1 HEAD >/dev/null; git pack-refs --all']);
$job = deploy(repository => $tagged, after($job), @describe);
like(described($job), qr{^release/2\n}, 'tags that a step wrote are not kept');
git_in($tagged, 'for i in $(seq 300); do echo "create refs/tags/n/$i main~2"; done | git update-ref --stdin; '
	. 'git tag -am o off/branch other~0');
for my $time ('first', 'second', 'third') {
	$job = deploy(repository => $tagged, after($job), @describe);
	like(described($job), qr{^release/2\nrelease/2\n.* n/300 .*v1 $}m,
	    "many tags are there the $time time")
	    or diag(job_log($job));
}
ok(!-e "$job->{workspace}/.git/refs/tags/n", 'they have no file each');
{
	my $odd = git_in($tagged, 'git tag -d $(git tag -l "n/*") >/dev/null; '
		. 'printf "object %s\ntype commit\n"'
		. ' $(git rev-parse main) | git hash-object -t tag -w --stdin --literally');
	$job = deploy(repository => $tagged, after($job));
	spew("$tagged/.git/refs/tags/odd", "$odd\n");
	$job = deploy(repository => $tagged, after($job), @describe);
	like(described($job), qr{^release/2\n},
	    'a malformed tag prevents neither the checkout nor the others')
	    or diag(job_log($job));
	unlink "$tagged/.git/refs/tags/odd";
}

# --- what is not fetched is named
my $pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" . 'a' x 64 . "\nsize 12345\n";
my $theme = repo('theme', 'git rev-parse HEAD >/dev/null');
my $site = repo('site', "git update-index --add --cacheinfo 160000,\$(git -C $theme rev-parse HEAD),theme;"
	. "printf '%s' '$pointer' >logo.png; git add logo.png; git commit -qm more");
for my $version (2, 4) {
	my @old = $version == 2 ? () : after($job);
	$job = deploy(repository => $site, @old, steps => ["git update-index --index-version $version"]);
	like(job_log($job), qr/^==> warning: submodules are not fetched.* \(1\): theme$/m,
	    "a submodule that is not fetched is named (index $version)") or diag(job_log($job));
	like(job_log($job), qr/^==> warning: files of Git LFS are not fetched.* \(1\): logo\.png$/m,
	    "a pointer of Git LFS is named (index $version)");
	$job = deploy(repository => $site, after($job), steps => ["git update-index --index-version 4"]);
}
is(scalar job_end($job), 'success -', 'they fail no deployment');
$job = deploy(repository => $site, submodules => 1);
like(job_log($job), qr/^==> warning: submodules are not fetched.* \(1\): theme$/m,
    'a submodule without .gitmodules is named, and does not fail the checkout') or diag(job_log($job));
unlike(job_log(deploy(repository => $deep)), qr/warning/, 'a repository without either has no warning');

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
