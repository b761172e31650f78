#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The checkout: the right commit, from a clone that may have been tampered with,
# of a repository that may be hostile.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $repo = tempdir() . '/repo';
sub git_in {
	my ($dir, $script) = @_;
	my ($status, $out, $err) = run_cmd({ cwd => $dir, env => { GIT_CONFIG_GLOBAL => '/dev/null', GIT_ALLOW_PROTOCOL => 'file' } },
		'bash', '-ec', 'export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org;' . $script);
	die "git: $script: $err" if $status;
	chomp $out;
	return $out;
}
mkdir $repo;
git_in($repo, 'git init -q -b main; echo one >file; mkdir -p dir/sub; echo deep >dir/sub/file; git add .; git commit -qm "first commit"');
my $first = git_in($repo, 'git rev-parse HEAD');
git_in($repo, 'echo two >file; ln -s file link; printf "#!/bin/sh\necho run\n" >tool; chmod +x tool; git add .; git commit -qm "second commit" -m "with a body
of two lines"');
my $second = git_in($repo, 'git rev-parse HEAD');
git_in($repo, 'git checkout -qb feature/x; echo feature >file; git commit -qam "on a branch"');
my $feature = git_in($repo, 'git rev-parse HEAD');
git_in($repo, 'git checkout -q main; git tag v1 HEAD; git tag -am note v2 HEAD');
# One account and one workspace from job to job.
my $user = uid_for();
my $shared = tempdir() . '/ws';
my $seen; # what the last job said of the objects, as the dispatcher keeps it
sub deploy {
	my (%o) = @_;
	my $j = job_run(repository => $repo, uid => $user, workspace => $shared, objects => $seen,
		steps => ['git rev-parse HEAD; git status --porcelain | sed "s/^/dirty: /"; cat file'], %o);
	my ($r) = grep { $_->[0] eq 'objects' } job_result($j);
	$seen = $r->[1] if $r;
	return $j;
}
sub inodes { return join ' ', map { (stat)[1] } sort glob "$shared/.git/objects/*/*" }
sub checked { my ($job) = @_; my ($r) = grep { $_->[0] eq 'checked-out' } job_result($job); return $r ? $r->[1] : undef }
sub workspace { my ($job) = @_; my ($r) = grep { $_->[0] eq 'workspace' } job_result($job); return $r ? $r->[1] : '' }

# --- what is asked for
my $job = deploy(branch => 'main');
is(checked($job), "main\n$second\nsecond commit\n\nwith a body\nof two lines", 'a branch: name, hash and message');
like(job_log($job), qr/^$second\ntwo$/m, 'its files, clean');
like(workspace($job), qr/^ready 0 \d+$/, 'the state of the workspace');
$job = deploy(branch => 'feature/x');
is(checked($job), "feature/x\n$feature\non a branch", 'another branch, the same clone');
like(job_log($job), qr/^$feature\nfeature$/m, 'its files');
$job = deploy();
is(checked($job), "main\n$second\nsecond commit\n\nwith a body\nof two lines", 'no branch: that of HEAD, by name');
$job = deploy(branch => 'main', commit => $first);
is(checked($job), "main\n$first\nfirst commit", 'a commit of the past');
like(job_log($job), qr/^$first\none$/m, 'its files');
ok(!-e "$shared/link", 'and no others');
$job = deploy(branch => 'main', commit => substr $second, 0, 10);
like(checked($job), qr/^main\n$second\n/, 'a short hash');
$job = deploy(branch => 'main', commit => $feature);
like(checked($job), qr/^main\n$feature\n/, 'a commit of another branch');
git_in($repo, 'git checkout -q main; git checkout -q --detach; echo lost >file; git commit -qam lost');
my $lost = git_in($repo, 'git rev-parse HEAD; git checkout -q main');
$job = deploy(commit => $lost, branch => 'main');
like(checked($job), qr/^main\n$lost\nlost$/, 'a commit that no branch has, where the server gives it');
git_in($repo, 'git -c gc.auto=0 commit -q --amend -m "second again"');
my $amended = git_in($repo, 'git rev-parse HEAD');
$job = deploy(branch => 'main');
like(checked($job), qr/^main\n$amended\nsecond again/, 'a branch that was rewritten');
$job = deploy(branch => 'main', repository => "file://$repo");
like(checked($job), qr/^main\n$amended/, 'as file://');

# --- the clone is kept as long as nobody has touched its objects
my $kept = inodes();
$job = deploy(branch => 'main');
is(inodes(), $kept, 'the clone is used again');
unlike(job_log($job), qr/made anew/, 'and nothing else is said');
$job = deploy(branch => 'main', steps => ['git log -1 --oneline; git status; git diff; git describe --always; touch new']);
$job = deploy(branch => 'main');
is(inodes(), $kept, 'also after steps that read it');
$job = deploy(branch => 'main', objects => undef);
like(job_log($job), qr/made anew/, 'it is made anew where nobody knows its state');
$kept = inodes();
deploy(branch => 'main', steps => ['git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m mine']);
$job = deploy(branch => 'main');
like(job_log($job), qr/made anew/, 'or where a step has added to it');
is(checked($job), "main\n$amended\nsecond again\n\nwith a body\nof two lines" =~ s/\n\nwith.*//sr, 'and is right then');

# --- a fetch that fails takes nothing with it
for ([ 'a repository that is away', repository => "$repo.away" ], [ 'a branch that is not there', branch => 'mistyped' ],
    [ 'a commit that is not there', commit => 'deadbeef' x 5 ], [ 'one without a branch', repository => "$repo.away", branch => undef ]) {
	my ($what, %o) = @$_;
	deploy(branch => 'main');
	my ($old) = glob "$shared/.git/objects/pack/*.pack $shared/.git/objects/" . $amended =~ s{^..}{$&/}r;
	$kept = (stat $old)[1];
	$job = deploy(branch => 'main', %o);
	is(scalar job_end($job), 'failed checkout_failed', $what);
	unlike(job_log($job), qr/made anew/, 'the clone is not made anew');
	is(slurp("$shared/file"), "two\n", 'the files of the one before are there');
	like(workspace($job), qr/^ready 0 /, 'and the workspace is what it was');
	$job = deploy(branch => 'main');
	is(checked($job), "main\n$amended\nsecond again", 'then it goes on');
	is((stat $old)[1], $kept, 'with the same clone');
}
{
	my ($object) = grep { -f } glob "$shared/.git/objects/" . $amended =~ s{^..}{$&/}r . " $shared/.git/objects/pack/*.pack";
	chmod 0600, $object;
	spew($object, 'not what it was');
	$job = deploy(branch => 'main');
	is(checked($job), "main\n$amended\nsecond again", 'a broken clone is made anew');
}
for ([ 'no clone', 'rm -rf .git' ], [ 'one that a step has added to', 'echo x | git hash-object -w --stdin' ]) {
	my ($what, $script) = @$_;
	deploy(branch => 'main', steps => [$script]);
	$job = deploy(branch => 'main', repository => "$repo.away");
	is(scalar job_end($job), 'failed checkout_failed', "$what, and a repository that is away");
	is(slurp("$shared/file"), "two\n", 'the files are there');
	is(checked(deploy(branch => 'main')), "main\n$amended\nsecond again", 'then it goes on');
}

# --- what cannot be had
for (['a branch that is not there', branch => 'nowhere'], ['a commit that is not there', commit => 'deadbeef' x 5],
    ['a tag is no branch', branch => 'v1'], ['a tree is no commit', commit => git_in($repo, 'git rev-parse HEAD^{tree}')],
    ['a blob is no commit', commit => git_in($repo, 'git rev-parse HEAD:file')],
    ['no repository', repository => tempdir() . '/none'], ['an empty one', repository => do { my $e = tempdir() . '/empty'; mkdir $e; git_in($e, 'git init -q'); $e }]) {
	my ($what, %o) = @$_;
	my $j = deploy(branch => 'main', steps => ['echo ran'], %o);
	my ($end, $detail) = job_end($j);
	is($end, 'failed checkout_failed', "refused: $what");
	ok(length $detail, "it says: $detail");
	unlike(job_log($j), qr/^ran/m, 'no step runs');
}
deploy(branch => 'main');
$job = deploy(repository => tempdir() . '/none');
my ($end, $detail) = job_end($job);
like($detail, qr/^fatal: .*none/, 'nor has what is not there a HEAD: git says why');
like(job_log($job), qr/^\Q$detail\E$/m, 'in the log, too');
like(workspace($job), qr/^ready 0 \d+$/, 'and the workspace is what it was');
$job = deploy(repository => 'ssh://git@127.0.0.1:' . free_port() . '/x/y', branch => 'main');
like((job_end($job))[1], qr/^(?:ssh: connect to host .*refused|No user exists for uid)/, 'where ssh has ended it is what ssh says');
like(job_log($job), qr/^fatal: Could not read from remote repository\.$/m, 'though git has a word, too');
for ('-x', '--upload-pack=touch /tmp/pwned', 'HEAD', '@', 'a;b', '$(touch pwned)', '`id`', "a'b", 'a b', '..', 'a..b', '*', 'main:refs/heads/evil', 'a.lock', "a\nb", '+main', 'refs/heads/main') {
	my $j = deploy(branch => $_, steps => ['echo ran']);
	is(scalar job_end($j), 'failed checkout_failed', "no harm in the branch name $_" =~ s/\n/\\n/r);
}
git_in($repo, 'git update-ref refs/heads/-x HEAD');
is((job_end(deploy(branch => '-x')))[1], 'That is no name of a branch.', 'one with a leading dash is none even where the repository has it');
git_in($repo, 'git update-ref -d refs/heads/-x');
for my $name ('a;b', '$(id>pwned)', "a'b", 'x&y', 'HEAD') {
	my $ref = git_in($repo, "git update-ref refs/heads/\Q$name\E HEAD");
	my $j = deploy(branch => $name);
	like(checked($j), qr/^\Q$name\E\n$amended\n/, "a branch that is really called $name");
	git_in($repo, "git update-ref -d refs/heads/\Q$name\E");
}
ok(!-e "$shared/pwned" && !-e 'pwned', 'nothing was executed');
for ('--upload-pack=/bin/false', 'ext::sh -c "touch pwned"', "/etc\n", 'fd::17', '') {
	my $j = deploy(repository => $_, branch => 'main');
	is((split / /, scalar job_end($j))[0], 'failed', "refused: repository $_" =~ s/\n/\\n/r);
}
$job = deploy(allow_local => 0, branch => 'main');
is((job_end($job))[1], 'Local repositories are not allowed here.', 'refused: a local repository where that is not allowed');
for my $commit ('HEAD', '--all', 'g' x 40) {
	$job = deploy(branch => 'main', commit => $commit);
	is((job_end($job))[1], 'That is no hash of a commit.', "refused: commit $commit");
}
$job = deploy(branch => 'main', path => tempdir() . '/nothing:/nonexistent');
is(scalar job_end($job), 'failed checkout_failed', 'without git nothing is checked out');
is((job_end($job))[1], 'git is not installed on the runner.', 'and it says so');
$job = deploy(allow_local => 0, branch => 'main', repository => "file://$repo");
is(scalar job_end($job), 'failed checkout_failed', 'as file:// too');
for ('http://127.0.0.1:9/x', 'git://127.0.0.1:9/x', 'ftp://127.0.0.1:9/x') {
	my $j = deploy(repository => $_, branch => 'main');
	is(scalar job_end($j), 'failed checkout_failed', "refused: $_");
	unlike(job_log($j), qr/refused|connect/i, 'before anything is sent');
}

# --- leftovers
my $mess = 'echo changed >file; echo new >untracked; mkdir -p un/tracked; touch un/tracked/x; echo "*.o" >.gitignore; touch a.o; mkdir nested; git init -q nested; rm -rf dir; echo notdir >dir; rm link; ln -s /etc/passwd link; chmod 0 tool';
$job = deploy(branch => 'main', steps => [$mess]);
like(workspace($job), qr/^ready 1 /, 'a step leaves a mess');
$job = deploy(branch => 'main', steps => ['git status --porcelain --ignored; cat file dir/sub/file; readlink link; ./tool; ls -A']);
is(job_log($job) =~ s/.*step 1\n//sr, "two\ndeep\nfile\nrun\n.git\ndir\nfile\nlink\ntool\n", 'the next checkout has none of it');
my $stamp = (stat "$shared/file")[9];
utime 1000000000, 1000000000, "$shared/file" if !is_root();
system("touch -d \@1000000000 '$shared/file'") if is_root();
$job = deploy(branch => 'main');
is((stat "$shared/file")[9], 1000000000, 'a file that is right already keeps its time');
$job = deploy(branch => 'main', steps => ['for l in .git/index.lock .git/HEAD.lock .git/config.lock .git/shallow.lock .git/refs/slipway/tip.lock .git/packed-refs.lock; do mkdir -p $(dirname $l); touch $l; done; mkdir locked; touch locked/x; chmod 0 locked']);
$job = deploy(branch => 'main');
is(scalar job_end($job), 'success -', 'locks and closed directories that were left');
ok(!-e "$shared/locked", 'are gone');
for my $closed ('chmod 500 locked/in', 'chmod 0 locked/in locked') {
	$job = deploy(branch => 'main', steps => ["mkdir -p locked/in; touch locked/in/x; $closed; rm -rf .git"]);
	is(scalar job_end(deploy(branch => 'main')), 'success -', "the same without a clone: $closed");
	ok(!-e "$shared/locked", 'are gone');
}
$job = deploy(branch => 'main', steps => ['d=.; for i in $(seq 300); do d=$d/xxxxxxxxxx; done; mkdir -p $d; rm -f .git/index']);
is(scalar job_end(deploy(branch => 'main')), 'success -', 'a very deep directory');

# --- a clone that was tampered with
my $trap = tempdir() . '/trap';
mkdir $trap;
chmod 01777, $trap;
my $touch = "touch $trap/\$(basename \$0)-\$\$; echo trapped >&2";
my @tampers = (
	['hooks', "mkdir -p .git/hooks; for h in post-checkout pre-commit reference-transaction post-index-change fsmonitor-watchman post-merge pre-auto-gc; do printf '#!/bin/sh\n$touch\n' >.git/hooks/\$h; chmod +x .git/hooks/\$h; done"],
	['core.hooksPath', "mkdir ~/../h 2>/dev/null; mkdir -p .git/h; printf '#!/bin/sh\n$touch\n' >.git/h/post-checkout; chmod +x .git/h/post-checkout; git config core.hooksPath .git/h"],
	['core.fsmonitor', "git config core.fsmonitor 'touch $trap/fsmonitor'"],
	['core.sshCommand', "git config core.sshCommand 'touch $trap/ssh'"],
	['core.askPass', "git config core.askPass '$trap/ask'"],
	['credential.helper', "git config credential.helper '!touch $trap/helper'"],
	['core.gitProxy', "git config core.gitProxy 'touch $trap/proxy'"],
	['filters', "git config filter.x.smudge 'touch $trap/smudge; cat'; git config filter.x.clean 'touch $trap/clean; cat'; git config filter.x.process 'touch $trap/process'; mkdir -p .git/info; echo '* filter=x' >.git/info/attributes"],
	['url.insteadOf', "git config url.$trap/other.insteadOf '$repo'"],
	['uploadpack', "git config remote.origin.uploadpack 'touch $trap/up'; git config uploadpack.packObjectsHook 'touch $trap/pack'"],
	['include.path', "printf '[core]\n\tfsmonitor = touch $trap/include\n' >.git/more; git config include.path more"],
	['worktree config', "git config extensions.worktreeConfig true; git config core.worktree /tmp; git config --worktree core.fsmonitor 'touch $trap/wt'"],
	['alternates', "echo $trap >.git/objects/info/alternates"],
	['aliases and pager', "git config alias.fetch '!touch $trap/alias'; git config core.pager 'touch $trap/pager'; git config pager.log 'touch $trap/pager2'"],
	['gpg', "git config log.showSignature true; git config gpg.program 'touch $trap/gpg'"],
	['textconv', "git config diff.x.textconv 'touch $trap/textconv'; git config diff.external 'touch $trap/ext'"],
	['.git is a file', "rm -rf .git; echo 'gitdir: $trap' >.git"],
	['.git is a link', "rm -rf .git; ln -s $trap .git"],
	['.git is a pipe', "rm -rf .git; mkfifo .git"],
	['objects is a link', "mv .git/objects .git/o; ln -s $trap .git/objects"],
	['tip is a pipe', "rm -f .git/refs/slipway/tip; mkfifo .git/refs/slipway/tip"],
	['tip is a link', "rm -f .git/refs/slipway/tip; ln -s /etc/passwd .git/refs/slipway/tip"],
	['tip is garbage', "echo garbage >.git/refs/slipway/tip"],
	['tip is a commit that is not there', "echo " . 'ab' x 20 . " >.git/refs/slipway/tip"],
	['objects under false names', <<'END'],
mkdir p && mv -f .git/objects/pack/* p && for pack in p/*.pack; do git unpack-objects -q <$pack; done
rm -f file
blob=$(git rev-parse HEAD:file)
object=.git/objects/${blob:0:2}/${blob:2}
test -f $object
chmod u+w $object
perl -MCompress::Zlib -e 'print compress("blob 5\0evil\n")' >$object
git cat-file -p HEAD:file | grep -q evil && echo POISONED
END
	['objects are gone', "rm -rf .git/objects/*"],
	['objects are broken', "chmod -R u+w .git/objects; find .git/objects -type f -exec sh -c 'echo broken >\"\$1\"' _ {} \\;"],
	['a commondir', "echo $trap >.git/commondir"],
	['skip-worktree', "echo stale >file; git update-index --skip-worktree file"],
	['assume-unchanged', "echo stale >file; git update-index --assume-unchanged file"],
	['a poisoned index', "dd if=/dev/urandom of=.git/index bs=1k count=4 2>/dev/null"],
	['replace refs', "echo bad >x; git replace -f HEAD:file \$(git hash-object -w x)"],
	['grafts and shallow', "mkdir -p .git/info; git rev-parse HEAD >.git/info/grafts; git rev-parse HEAD >.git/shallow"],
	['exclude', "mkdir -p .git/info; echo leftover >.git/info/exclude; touch leftover"],
);
for (@tampers) {
	my ($what, $script) = @$_;
	my $bad = deploy(branch => 'main', steps => ["set +e\n$script\ntrue"]);
	like(job_log($bad), qr/^POISONED$/m, 'git itself does not notice') if $script =~ /POISONED/;
	unlink glob "$trap/*";
	my $j = deploy(branch => 'main', steps => ['cat file; ls -A | tr "\n" " "; git config --local -l | grep -vE "^(core.repositoryformatversion|core.bare|remote.origin.url)=" || true']);
	is(scalar job_end($j), 'success -', "after tampering: $what");
	is(job_log($j) =~ s/.*step 1\n//sr, "two\n.git dir file link tool ", 'the files and the clone are right')
	    or diag(job_log($j));
	is(join(' ', glob "$trap/*"), '', 'nothing of it was executed');
}

# --- a hostile repository
my $evil = tempdir() . '/evil';
mkdir $evil;
git_in($evil, "git init -q -b main; echo '* filter=lfs diff=x' >.gitattributes; printf '[core]\n\tfsmonitor = touch $trap/x\n' >.gitconfig; mkdir hooks; printf '#!/bin/sh\ntouch $trap/y\n' >hooks/post-checkout; chmod +x hooks/post-checkout; ln -s /etc/passwd outside; ln -s .git/hooks inside; echo fine >file; git add .; git commit -qm evil");
git_in($evil, "printf '[submodule \"s\"]\n\tpath = s\n\turl = file://$repo\n' >.gitmodules; git update-index --add --cacheinfo 160000,$second,s; git add .gitmodules; git commit -qm 'with a submodule'");
$job = deploy(repository => $evil, branch => 'main', steps => ['ls -A s | wc -l; cat file']);
is(scalar job_end($job), 'success -', 'a repository with attributes, links and a submodule');
like(job_log($job), qr/^0\nfine$/m, 'the submodule is not fetched');
is(join(' ', glob "$trap/*"), '', 'nothing of it was executed');
git_in($evil, "git checkout -qb update; printf '\tupdate = !touch $trap/z\n' >>.gitmodules; git add .gitmodules; git commit -qm update; git checkout -q main");
$job = deploy(repository => $evil, branch => 'update');
is(scalar job_end($job), 'failed checkout_failed', 'refused: a submodule with a command');
git_in($evil, " blob=\$(echo x | git hash-object -w --stdin); tree=\$(printf '100644 blob %s\t.git\n' \$blob | git mktree --missing); c=\$(git commit-tree -m dotgit \$tree); git update-ref refs/heads/dotgit \$c");
$job = deploy(repository => $evil, branch => 'dotgit');
is(scalar job_end($job), 'failed checkout_failed', 'refused: a tree with a .git in it');
like((job_end($job))[1], qr/^(?:fatal|error): /, 'in git\'s own words');

# --- submodules, where they are allowed
my $super = tempdir() . '/super';
mkdir $super;
git_in($super, "git init -q -b main; git -c protocol.file.allow=always submodule --quiet add $repo lib; git commit -qm 'uses lib'");
$job = deploy(repository => $super, branch => 'main', submodules => 1, steps => ['cat lib/file']);
if (is_root()) {
	is((split / /, scalar job_end($job))[0], 'failed', 'a local submodule of another user is not trusted');
} else {
	like(job_log($job), qr/^two$/m, 'a submodule');
}
if (!is_root()) {
	$job = deploy(repository => $super, branch => 'main', submodules => 1, steps => ['cat lib/file; git -C lib status --porcelain']);
	like(job_log($job), qr/step 1\ntwo\n\z/, 'a submodule again');
}
$job = deploy(repository => $super, branch => 'main', submodules => 0, steps => ['ls lib | wc -l; mkdir -p lib; echo stale >lib/stale']);
like(job_log($job), qr/^0$/m, 'or none');
$job = deploy(repository => $super, branch => 'main', submodules => 0, steps => ['ls lib | wc -l']);
like(job_log($job), qr/^0$/m, 'and nothing is left in its place');

# --- time, cancel
my $slow = tempdir() . '/slow';
mkdir $slow;
spew("$slow/git", "#!/bin/sh\nfor a; do [ \"\$a\" = fetch ] && exec sleep 3000; done\nexec /usr/bin/git \"\$@\"\n", 0755);
my $t = time;
$job = job_run(repository => $repo, branch => 'main', path => "$slow:/usr/bin:/bin", checkout_timeout => 1, steps => ['echo ran', { script => 'echo cleanup', when => 'always' }]);
is(scalar job_end($job), 'failed timeout', 'a checkout that takes too long');
cmp_ok(time - $t, '<', deadline(60), 'is ended');
like(job_log($job), qr/^cleanup$/m, 'cleanup steps run');
$job = job_start(repository => $repo, branch => 'main', path => "$slow:/usr/bin:/bin", steps => ['echo ran']);
poll(10, sub { job_log($job) =~ /checkout of/ });
job_cancel($job);
is(job_wait($job, 20), 0, 'a cancel during the checkout');
is(scalar job_end($job), 'canceled canceled_by_user', 'ends it');
is(job_steps($job), '0:skipped', 'before any step');

# --- a message that is not as it should be
my $odd = tempdir() . '/odd';
mkdir $odd;
git_in($odd, "git init -q -b main; git commit -q --allow-empty -m old; new=\$({ git cat-file commit HEAD | sed '/^\$/q'; printf 'caf\\351 \\377'; } | git hash-object -t commit -w --stdin --literally); git update-ref HEAD \$new");
$job = deploy(repository => $odd, branch => 'main', steps => []);
like(checked($job), qr/^main\n[0-9a-f]{40}\ncaf\? \?$/, 'a message that is no UTF-8');
git_in($odd, "perl -e 'print \"long \\xc3\\xa9\" x 40000' | git commit -q --allow-empty -F -");
$job = deploy(repository => $odd, branch => 'main', steps => []);
my ($message) = checked($job) =~ /^main\n[0-9a-f]{40}\n(.*)$/s;
cmp_ok(length $message, '<=', 65535, 'a long message is cut');
ok(utf8::decode($message), 'between characters');
git_in($odd, "printf ' ' | git commit -q --allow-empty --allow-empty-message -F - --cleanup=verbatim");
is(scalar job_end(deploy(repository => $odd, branch => 'main', steps => [])), 'success -', 'an empty message');

# --- sha256
SKIP: {
	my $sha = tempdir() . '/sha256';
	mkdir $sha;
	skip 'git without SHA-256', 2 if !eval { git_in($sha, 'git init -q -b main --object-format=sha256; echo x >file; git add .; git commit -qm new'); 1 };
	my $own = tempdir() . '/ws256';
	for (1, 2) {
		my $j = deploy(repository => $sha, branch => 'main', workspace => $own);
		like(checked($j) || '', qr/^main\n[0-9a-f]{64}\nnew$/, 'a repository of SHA-256');
	}
}

done_testing();
