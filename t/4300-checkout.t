#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The checkout: the right commit, from a clone that may have been tampered with, of
# a repository that may be hostile.

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
	my ($status, $out, $err) = run_cmd({ cwd => $dir,
	    env => { GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_NOSYSTEM => 1,
	GIT_ALLOW_PROTOCOL => 'file' } },
		'bash', '-ec',
		'export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a '
		    . 'GIT_COMMITTER_EMAIL=a@example.org;' . $script);
	die "git: $script: $err" if $status;
	chomp $out;
	return $out;
}
mkdir $repo;
git_in($repo,
    'git init -q -b main; echo one >file; mkdir -p dir/sub; echo deep >dir/sub/file; git add .; '
    . 'git commit -qm "first commit"');
my $first = git_in($repo, 'git rev-parse HEAD');
git_in($repo,
    'echo two >file; ln -s file link; printf "#!/bin/sh\necho run\n" >tool; chmod +x tool; git add .; '
    . 'git commit -qm "second commit" -m "with a body
of two lines"');
my $second = git_in($repo, 'git rev-parse HEAD');
git_in($repo, 'git checkout -qb feature/x; echo feature >file; git commit -qam "on a branch"');
my $feature = git_in($repo, 'git rev-parse HEAD');
git_in($repo, 'git checkout -q main; git tag v1 HEAD; git tag -am note v2 HEAD');
# One account and one workspace for all jobs.
my $user = uid_for();
my $shared = tempdir() . '/ws';
my $seen; # what the last job reported about the objects, as the dispatcher stores it
sub deploy {
	my (%o) = @_;
	my $j = job_run(repository => $repo, uid => $user, workspace => $shared, objects => $seen,
		steps => ['git rev-parse HEAD; git status --porcelain | sed "s/^/dirty: /"; cat file'], %o);
	my ($r) = grep { $_->[0] eq 'objects' } job_result($j);
	$seen = $r->[1] if $r;
	return $j;
}
sub inodes { return join ' ', map { (stat)[1] } sort glob "$shared/.git/objects/*/*" }
sub checked {
	my ($job) = @_;
	my ($r) = grep { $_->[0] eq 'checked-out' } job_result($job);
	return $r ? $r->[1] : undef;
}
sub workspace {
	my ($job) = @_;
	my ($r) = grep { $_->[0] eq 'workspace' } job_result($job);
	return $r ? $r->[1] : '';
}

# --- branches and commits
my $job = deploy(branch => 'main');
is(checked($job), "main\n$second\nsecond commit\n\nwith a body\nof two lines",
    'a branch is checked out, with its name, hash and message');
like(job_log($job), qr/^$second\ntwo$/m, 'a branch has its files and a clean state');
like(workspace($job), qr/^ready 0 \d+$/, 'the job reports the state of the workspace');
$job = deploy(branch => 'feature/x');
is(checked($job), "feature/x\n$feature\non a branch", 'another branch is checked out in the same clone');
like(job_log($job), qr/^$feature\nfeature$/m, 'another branch has its files');
$job = deploy();
is(checked($job), "main\n$second\nsecond commit\n\nwith a body\nof two lines",
    'without a branch that of HEAD is checked out, by name');
$job = deploy(branch => 'main', commit => $first);
is(checked($job), "main\n$first\nfirst commit", 'an older commit is checked out');
like(job_log($job), qr/^$first\none$/m, 'an older commit has its files');
ok(!-e "$shared/link", 'files of newer commits are removed');
$job = deploy(branch => 'main', commit => substr $second, 0, 10);
like(checked($job), qr/^main\n$second\n/, 'a short hash is enough');
$job = deploy(branch => 'main', commit => $feature);
like(checked($job), qr/^-\n$feature\n/,
    'a commit of another branch is checked out, without the name of the branch');
git_in($repo, 'git checkout -q main; git checkout -q --detach; echo lost >file; git commit -qam lost');
my $lost = git_in($repo, 'git rev-parse HEAD; git checkout -q main');
$job = deploy(commit => $lost, branch => 'main');
like(checked($job), qr/^-\n$lost\nlost$/, 'a commit on no branch is checked out if the server offers it');
git_in($repo, 'git -c gc.auto=0 commit -q --amend -m "second again"');
my $amended = git_in($repo, 'git rev-parse HEAD');
$job = deploy(branch => 'main');
like(checked($job), qr/^main\n$amended\nsecond again/, 'a rewritten branch is checked out');
$job = deploy(branch => 'main', repository => "file://$repo");
like(checked($job), qr/^main\n$amended/, 'a file:// address is checked out');

# --- the clone is kept as long as nothing touches its objects
my $kept = inodes();
$job = deploy(branch => 'main');
is(inodes(), $kept, 'the clone is reused');
unlike(job_log($job), qr/creating a new clone/, 'the log does not mention a reused clone');
$job = deploy(branch => 'main',
    steps => ['git log -1 --oneline; git status; git diff; git describe --always; touch new']);
$job = deploy(branch => 'main');
is(inodes(), $kept, 'the clone is reused after steps that read it');
$job = deploy(branch => 'main', objects => undef);
like(job_log($job), qr/creating a new clone/, 'the clone is replaced if its state is unknown');
$kept = inodes();
deploy(branch => 'main',
    steps => ['git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m mine']);
$job = deploy(branch => 'main');
like(job_log($job), qr/creating a new clone/, 'the clone is replaced if a step added a commit');
is(checked($job), "main\n$amended\nsecond again\n\nwith a body\nof two lines" =~ s/\n\nwith.*//sr,
    'the replaced clone has the right commit');

# --- a fetch that fails keeps the clone
for ([ 'an unreachable repository', repository => "$repo.away" ],
    [ 'an unknown branch', branch => 'mistyped' ],
    [ 'an unknown commit', commit => 'deadbeef' x 5 ],
    [ 'an unreachable repository without a branch', repository => "$repo.away", branch => undef ]) {
	my ($what, %o) = @$_;
	deploy(branch => 'main');
	my ($old) = glob "$shared/.git/objects/pack/*.pack $shared/.git/objects/" . $amended =~ s{^..}{$&/}r;
	$kept = (stat $old)[1];
	$job = deploy(branch => 'main', %o);
	is(scalar job_end($job), 'failed checkout_failed', "$what fails the checkout");
	unlike(job_log($job), qr/creating a new clone/, "$what: the clone is not replaced");
	is(slurp("$shared/file"), "two\n", "$what: the files of the previous deployment stay");
	like(workspace($job), qr/^ready 0 /, "$what: the workspace stays ready");
	$job = deploy(branch => 'main');
	is(checked($job), "main\n$amended\nsecond again", "$what: the next deployment has its commit");
	is((stat $old)[1], $kept, "$what: the next deployment reuses the clone");
}
{
	my ($object) = grep { -f } glob "$shared/.git/objects/" . $amended =~ s{^..}{$&/}r
	    . " $shared/.git/objects/pack/*.pack";
	chmod 0600, $object;
	spew($object, 'not what it was');
	$job = deploy(branch => 'main');
	is(checked($job), "main\n$amended\nsecond again", 'a broken clone is replaced');
}
for ([ 'no clone', 'rm -rf .git' ],
    [ 'a clone that a step has added to', 'echo x | git hash-object -w --stdin' ]) {
	my ($what, $script) = @$_;
	deploy(branch => 'main', steps => [$script]);
	$job = deploy(branch => 'main', repository => "$repo.away");
	is(scalar job_end($job), 'failed checkout_failed',
	    "$what and an unreachable repository fail the checkout");
	is(slurp("$shared/file"), "two\n", "$what: the files of the previous deployment stay");
	is(checked(deploy(branch => 'main')), "main\n$amended\nsecond again",
	    "$what: the next deployment has its commit");
}

# --- unknown revisions
for (['an unknown branch', branch => 'nowhere'],
    ['an unknown commit', commit => 'deadbeef' x 5],
    ['a tag instead of a branch', branch => 'v1'],
    ['a tree instead of a commit', commit => git_in($repo, 'git rev-parse HEAD^{tree}')],
    ['a blob instead of a commit', commit => git_in($repo, 'git rev-parse HEAD:file')],
    ['no repository', repository => tempdir() . '/none'],
    ['an empty repository',
	repository => do { my $e = tempdir() . '/empty'; mkdir $e; git_in($e, 'git init -q'); $e }]) {
	my ($what, %o) = @$_;
	my $j = deploy(branch => 'main', steps => ['echo ran'], %o);
	my ($end, $detail) = job_end($j);
	is($end, 'failed checkout_failed', "$what fails the checkout");
	ok(length $detail, "$what: the detail is: $detail");
	unlike(job_log($j), qr/^ran/m, "$what: no step runs");
}
deploy(branch => 'main');
$job = deploy(repository => tempdir() . '/none');
my ($end, $detail) = job_end($job);
like($detail, qr/^fatal: .*none/, 'without a repository the detail is the message of git');
like(job_log($job), qr/^\Q$detail\E$/m, 'the message of git is in the log');
like(workspace($job), qr/^ready 0 \d+$/, 'a failed checkout leaves the workspace ready');
$job = deploy(repository => 'ssh://git@127.0.0.1:' . free_port() . '/x/y', branch => 'main');
like((job_end($job))[1], qr/^(?:ssh: connect to host .*refused|No user exists for uid)/,
    'if ssh fails the detail is the message of ssh');
like(job_log($job), qr/^fatal: Could not read from remote repository\.$/m,
    'the message of git after that of ssh is in the log');
for ('-x', '--upload-pack=touch /tmp/pwned', 'HEAD', '@', 'a;b', '$(touch pwned)', '`id`', "a'b", 'a b', '..',
    'a..b', '*', 'main:refs/heads/evil', 'a.lock', "a\nb", '+main', 'refs/heads/main') {
	my $j = deploy(branch => $_, steps => ['echo ran']);
	is(scalar job_end($j), 'failed checkout_failed', "the branch name $_ is harmless" =~ s/\n/\\n/r);
}
git_in($repo, 'git update-ref refs/heads/-x HEAD');
is((job_end(deploy(branch => '-x')))[1], 'The branch name is invalid.',
    'a branch with a leading dash is rejected even if the repository has it');
git_in($repo, 'git update-ref -d refs/heads/-x');
for my $name ('a;b', '$(id>pwned)', "a'b", 'x&y', 'HEAD') {
	my $ref = git_in($repo, "git update-ref refs/heads/\Q$name\E HEAD");
	my $j = deploy(branch => $name);
	like(checked($j), qr/^\Q$name\E\n$amended\n/, "the existing branch $name is checked out");
	git_in($repo, "git update-ref -d refs/heads/\Q$name\E");
}
ok(!-e "$shared/pwned" && !-e 'pwned', 'no branch name was executed');
for ('--upload-pack=/bin/false', 'ext::sh -c "touch pwned"', "/etc\n", 'fd::17', '') {
	my $j = deploy(repository => $_, branch => 'main');
	is((split / /, scalar job_end($j))[0], 'failed',
	    "the repository address $_ is rejected" =~ s/\n/\\n/r);
}
$job = deploy(allow_local => 0, branch => 'main');
is((job_end($job))[1], 'Local repositories are not allowed here.',
    'a local repository is rejected unless allow_local is set');
for my $commit ('HEAD', '--all', 'g' x 40) {
	$job = deploy(branch => 'main', commit => $commit);
	is((job_end($job))[1], 'The commit hash is invalid.', "the commit $commit is rejected");
}
$job = deploy(branch => 'main', path => tempdir() . '/nothing:/nonexistent');
is(scalar job_end($job), 'failed checkout_failed', 'without git the checkout fails');
is((job_end($job))[1], 'git is not installed on the runner.', 'without git the detail names git');
$job = deploy(allow_local => 0, branch => 'main', repository => "file://$repo");
is(scalar job_end($job), 'failed checkout_failed', 'a file:// address is rejected unless allow_local is set');
for ('http://127.0.0.1:9/x', 'git://127.0.0.1:9/x', 'ftp://127.0.0.1:9/x') {
	my $j = deploy(repository => $_, branch => 'main');
	is(scalar job_end($j), 'failed checkout_failed', "the repository address $_ is rejected");
	unlike(job_log($j), qr/refused|connect/i,
	    "the repository address $_ is rejected before a connection");
}

# --- files that steps leave behind
my $mess =
    'echo changed >file; echo new >untracked; mkdir -p un/tracked; touch un/tracked/x; '
    . 'echo "*.o" >.gitignore; touch a.o; mkdir nested; git init -q nested; rm -rf dir; echo notdir >dir; '
    . 'rm link; ln -s /etc/passwd link; chmod 0 tool';
$job = deploy(branch => 'main', steps => [$mess]);
like(workspace($job), qr/^ready 1 /, 'a step leaves a dirty workspace');
$job = deploy(branch => 'main',
    steps => ['git status --porcelain --ignored; cat file dir/sub/file; readlink link; ./tool; ls -A']);
is(job_log($job) =~ s/.*step 1\n//sr, "two\ndeep\nfile\nrun\n.git\ndir\nfile\nlink\ntool\n",
    'the next checkout removes files that a step left behind');
my $stamp = (stat "$shared/file")[9];
utime 1000000000, 1000000000, "$shared/file" if !is_root();
system("touch -d \@1000000000 '$shared/file'") if is_root();
$job = deploy(branch => 'main');
is((stat "$shared/file")[9], 1000000000, 'an unchanged file keeps its time');
$job = deploy(branch => 'main',
    steps => ['for l in .git/index.lock .git/HEAD.lock .git/config.lock .git/shallow.lock '
    . '.git/refs/slipway/tip.lock .git/packed-refs.lock; do mkdir -p $(dirname $l); touch $l; done; '
    . 'mkdir locked; touch locked/x; chmod 0 locked']);
$job = deploy(branch => 'main');
is(scalar job_end($job), 'success -', 'a checkout after lock files and an inaccessible directory succeeds');
ok(!-e "$shared/locked", 'the inaccessible directory is removed');
for my $closed ('chmod 500 locked/in', 'chmod 0 locked/in locked') {
	$job = deploy(branch => 'main',
	    steps => ["mkdir -p locked/in; touch locked/in/x; $closed; rm -rf .git"]);
	is(scalar job_end(deploy(branch => 'main')), 'success -',
	    "a checkout without a clone succeeds after: $closed");
	ok(!-e "$shared/locked", "the directory is removed after: $closed");
}
$job = deploy(branch => 'main',
    steps => ['d=.; for i in $(seq 300); do d=$d/xxxxxxxxxx; done; mkdir -p $d; rm -f .git/index']);
is(scalar job_end(deploy(branch => 'main')), 'success -', 'a very deep directory is removed');

# --- a clone that was tampered with
my $trap = tempdir() . '/trap';
mkdir $trap;
chmod 01777, $trap;
my $touch = "touch $trap/\$(basename \$0)-\$\$; echo trapped >&2";
my @tampers = (
	['hooks',
	    "mkdir -p .git/hooks; for h in post-checkout pre-commit reference-transaction post-index-change "
	    . "fsmonitor-watchman post-merge pre-auto-gc; do printf '#!/bin/sh\n$touch\n' >.git/hooks/\$h; "
	    . "chmod +x .git/hooks/\$h; done"],
	['core.hooksPath',
	    "mkdir ~/../h 2>/dev/null; mkdir -p .git/h; printf '#!/bin/sh\n$touch\n' >.git/h/post-checkout; "
	    . "chmod +x .git/h/post-checkout; git config core.hooksPath .git/h"],
	['core.fsmonitor', "git config core.fsmonitor 'touch $trap/fsmonitor'"],
	['core.sshCommand', "git config core.sshCommand 'touch $trap/ssh'"],
	['core.askPass', "git config core.askPass '$trap/ask'"],
	['credential.helper', "git config credential.helper '!touch $trap/helper'"],
	['core.gitProxy', "git config core.gitProxy 'touch $trap/proxy'"],
	['filters',
	    "git config filter.x.smudge 'touch $trap/smudge; cat'; git config filter.x.clean 'touch "
	    . "$trap/clean; cat'; git config filter.x.process 'touch $trap/process'; mkdir -p .git/info; "
	    . "echo '* filter=x' >.git/info/attributes"],
	['url.insteadOf', "git config url.$trap/other.insteadOf '$repo'"],
	['uploadpack',
	    "git config remote.origin.uploadpack 'touch $trap/up'; git config uploadpack.packObjectsHook "
	    . "'touch $trap/pack'"],
	['include.path',
	    "printf '[core]\n\tfsmonitor = touch $trap/include\n' >.git/more; git config include.path more"],
	['worktree config',
	    "git config extensions.worktreeConfig true; git config core.worktree /tmp; git config --worktree "
	    . "core.fsmonitor 'touch $trap/wt'"],
	['alternates', "echo $trap >.git/objects/info/alternates"],
	['aliases and pager',
	    "git config alias.fetch '!touch $trap/alias'; git config core.pager 'touch $trap/pager'; "
	    . "git config pager.log 'touch $trap/pager2'"],
	['gpg', "git config log.showSignature true; git config gpg.program 'touch $trap/gpg'"],
	['textconv',
	    "git config diff.x.textconv 'touch $trap/textconv'; git config diff.external 'touch $trap/ext'"],
	['.git is a file', "rm -rf .git; echo 'gitdir: $trap' >.git"],
	['.git is a link', "rm -rf .git; ln -s $trap .git"],
	['.git is a pipe', "rm -rf .git; mkfifo .git"],
	['objects is a link', "mv .git/objects .git/o; ln -s $trap .git/objects"],
	['tip is a pipe', "rm -f .git/refs/slipway/tip; mkfifo .git/refs/slipway/tip"],
	['tip is a link', "rm -f .git/refs/slipway/tip; ln -s /etc/passwd .git/refs/slipway/tip"],
	['tip is garbage', "echo garbage >.git/refs/slipway/tip"],
	['tip is an unknown commit', "echo " . 'ab' x 20 . " >.git/refs/slipway/tip"],
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
	['objects are broken',
	    'chmod -R u+w .git/objects; '
	    . 'find .git/objects -type f -exec sh -c \'echo broken >"$1"\' _ {} \;'],
	['a commondir', "echo $trap >.git/commondir"],
	['skip-worktree', "echo stale >file; git update-index --skip-worktree file"],
	['assume-unchanged', "echo stale >file; git update-index --assume-unchanged file"],
	['a poisoned index', "dd if=/dev/urandom of=.git/index bs=1k count=4 2>/dev/null"],
	['replace refs', "echo bad >x; git replace -f HEAD:file \$(git hash-object -w x)"],
	['grafts and shallow',
	    "mkdir -p .git/info; git rev-parse HEAD >.git/info/grafts; git rev-parse HEAD >.git/shallow"],
	['exclude', "mkdir -p .git/info; echo leftover >.git/info/exclude; touch leftover"],
);
for (@tampers) {
	my ($what, $script) = @$_;
	my $bad = deploy(branch => 'main', steps => ["set +e\n$script\ntrue"]);
	like(job_log($bad), qr/^POISONED$/m, 'git itself does not notice') if $script =~ /POISONED/;
	unlink glob "$trap/*";
	my $j = deploy(branch => 'main',
	    steps => ['cat file; ls -A | tr "\n" " "; git config --local -l | grep -vE '
	    . '"^(core.repositoryformatversion|core.bare|remote.origin.url)=" || true']);
	is(scalar job_end($j), 'success -', "after tampering ($what) the checkout succeeds");
	is(job_log($j) =~ s/.*step 1\n//sr, "two\n.git dir file link tool ",
	    "after tampering ($what) the files and the clone are right")
	    or diag(job_log($j));
	is(join(' ', glob "$trap/*"), '', "after tampering ($what) no command was executed");
}

# --- a hostile repository
my $evil = tempdir() . '/evil';
mkdir $evil;
git_in($evil,
    "git init -q -b main; echo '* filter=lfs diff=x' >.gitattributes; printf '[core]\n\tfsmonitor = touch "
    . "$trap/x\n' >.gitconfig; mkdir hooks; printf '#!/bin/sh\ntouch $trap/y\n' >hooks/post-checkout; "
    . "chmod +x hooks/post-checkout; ln -s /etc/passwd outside; ln -s .git/hooks inside; echo fine >file; "
    . "git add .; git commit -qm evil");
git_in($evil,
    "printf '[submodule \"s\"]\n\tpath = s\n\turl = file://$repo\n' >.gitmodules; git update-index --add "
    . "--cacheinfo 160000,$second,s; git add .gitmodules; git commit -qm 'with a submodule'");
$job = deploy(repository => $evil, branch => 'main', steps => ['ls -A s | wc -l; cat file']);
is(scalar job_end($job), 'success -', 'a repository with attributes, links and a submodule is checked out');
like(job_log($job), qr/^0\nfine$/m, 'a submodule is not fetched');
is(join(' ', glob "$trap/*"), '', 'no command of the repository was executed');
git_in($evil,
    "git checkout -qb update; printf '\tupdate = !touch $trap/z\n' >>.gitmodules; git add .gitmodules; "
    . "git commit -qm update; git checkout -q main");
$job = deploy(repository => $evil, branch => 'update');
is(scalar job_end($job), 'failed checkout_failed', 'a submodule with a command is rejected');
git_in($evil,
    " blob=\$(echo x | git hash-object -w --stdin); tree=\$(printf '100644 blob %s\t.git\n' \$blob | git "
    . "mktree --missing); c=\$(git commit-tree -m dotgit \$tree); git update-ref refs/heads/dotgit \$c");
$job = deploy(repository => $evil, branch => 'dotgit');
is(scalar job_end($job), 'failed checkout_failed', 'a tree that contains .git is rejected');
like((job_end($job))[1], qr/^(?:fatal|error): /, 'the detail is the message of git');

# --- submodules
my $super = tempdir() . '/super';
mkdir $super;
git_in($super,
    "git init -q -b main; git -c protocol.file.allow=always submodule --quiet add $repo lib; git commit -qm "
    . "'uses lib'");
$job = deploy(repository => $super, branch => 'main', submodules => 1, steps => ['cat lib/file']);
if (is_root()) {
	is((split / /, scalar job_end($job))[0], 'failed',
	    'a local submodule of another account is rejected');
} else {
	like(job_log($job), qr/^two$/m, 'a submodule is checked out');
}
if (!is_root()) {
	$job = deploy(repository => $super, branch => 'main', submodules => 1,
	    steps => ['cat lib/file; git -C lib status --porcelain']);
	like(job_log($job), qr/step 1\ntwo\n\z/, 'a submodule is checked out again');
}
$job = deploy(repository => $super, branch => 'main', submodules => 0,
    steps => ['ls lib | wc -l; mkdir -p lib; echo stale >lib/stale']);
like(job_log($job), qr/^0$/m, 'without submodules the directory is empty');
$job = deploy(repository => $super, branch => 'main', submodules => 0, steps => ['ls lib | wc -l']);
like(job_log($job), qr/^0$/m, 'a file in the directory of a submodule is removed');

# --- time limit and cancel
my $slow = tempdir() . '/slow';
mkdir $slow;
spew("$slow/git",
    "#!/bin/sh\nfor a; do [ \"\$a\" = fetch ] && exec sleep 3000; done\nexec /usr/bin/git \"\$@\"\n", 0755);
my $t = stopwatch();
$job = job_run(repository => $repo, branch => 'main', path => "$slow:/usr/bin:/bin", checkout_timeout => 1,
    steps => ['echo ran', { script => 'echo cleanup', when => 'always' }]);
is(scalar job_end($job), 'failed timeout', 'a checkout that takes too long times out');
cmp_ok($t->(), '<', deadline(60), 'a checkout that takes too long is ended');
like(job_log($job), qr/^cleanup$/m, 'cleanup steps run after a checkout that timed out');
$job = job_start(repository => $repo, branch => 'main', path => "$slow:/usr/bin:/bin", steps => ['echo ran']);
poll(10, sub { job_log($job) =~ /checkout of/ });
job_cancel($job);
is(job_wait($job, 20), 0, 'a cancel during the checkout ends the job');
is(scalar job_end($job), 'canceled canceled_by_user', 'a cancel during the checkout cancels the job');
is(job_steps($job), '0:skipped', 'a cancel during the checkout skips all steps');

# --- unusual commit messages
my $odd = tempdir() . '/odd';
mkdir $odd;
git_in($odd,
    "git init -q -b main; git commit -q --allow-empty -m old; new=\$({ git cat-file commit HEAD | sed "
    . "'/^\$/q'; printf 'caf\\351 \\377'; } | git hash-object -t commit -w --stdin --literally); "
    . "git update-ref HEAD \$new");
$job = deploy(repository => $odd, branch => 'main', steps => []);
like(checked($job), qr/^main\n[0-9a-f]{40}\ncaf\? \?$/, 'invalid UTF-8 in a commit message is replaced');
git_in($odd, "perl -e 'print \"long \\xc3\\xa9\" x 40000' | git commit -q --allow-empty -F -");
$job = deploy(repository => $odd, branch => 'main', steps => []);
my ($message) = checked($job) =~ /^main\n[0-9a-f]{40}\n(.*)$/s;
cmp_ok(length $message, '<=', 65535, 'a long commit message is truncated');
ok(utf8::decode($message), 'a long commit message is truncated between characters');
git_in($odd, "printf ' ' | git commit -q --allow-empty --allow-empty-message -F - --cleanup=verbatim");
is(scalar job_end(deploy(repository => $odd, branch => 'main', steps => [])),
    'success -', 'an empty commit message is accepted');

# --- sha256
SKIP: {
	my $sha = tempdir() . '/sha256';
	mkdir $sha;
	skip 'git without SHA-256', 2
	    if !eval { git_in($sha,
	    'git init -q -b main --object-format=sha256; echo x >file; git add .; git commit -qm new'); 1 };
	my $own = tempdir() . '/ws256';
	for (1, 2) {
		my $j = deploy(repository => $sha, branch => 'main', workspace => $own);
		like(checked($j) || '', qr/^main\n[0-9a-f]{64}\nnew$/,
		    "checkout $_ of a repository with SHA-256 succeeds");
	}
}

done_testing();
