#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Which git commands a checkout runs: none that the state of the clone makes
# unnecessary, and all that a changed workspace requires.

use strict;
use warnings;
use Fcntl;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

my $dir = tempdir();
my $repo = make_repo("$dir/repo",
    'mkdir -p src/deep; echo one >file; echo deep >src/deep/file; echo "*.o" >.gitignore');
sub git {
	my ($script) = @_;
	my ($status, $out, $err) = run_cmd({ cwd => $repo }, 'sh', '-ec', $script);
	die "git: $script: $err" if $status != 0;
	chomp $out;
	return $out;
}
sub commit {
	my ($script) = @_;
	return git("$script; git add -A; git commit -qm 'changes: $script'; git rev-parse HEAD");
}
my $first = git('git rev-parse HEAD');

# A git that records the subcommands which the job starts, but not those that git starts.
mkdir "$dir/bin" or die;
mkdir "$dir/calls" or die;
chmod 01777, "$dir/calls";
spew("$dir/bin/git", <<"END", 0755);
#!/bin/sh
name=
for w; do
	if [ "\$w" = -c ]; then name=skip; elif [ "\$name" = skip ]; then name=; else name=\$w; break; fi
done
echo "\$name" >>$dir/calls/list
chmod 0666 $dir/calls/list 2>/dev/null
exec /usr/bin/git "\$@"
END

my $user = uid_for();
my ($state, $job, $calls);
# Deploys into the same workspace; $calls has the commands before the first step, then
# "|" and those after the last.  With `canceled`, the job finds a cancel when it starts.
sub deploy {
	my (%o) = @_;
	unlink "$dir/calls/list";
	my $spool = spool_make(repository => $repo, branch => 'main', objects => $state,
		path => "$dir/bin:/usr/bin:/bin", %o,
		steps => ["echo '|' >>$dir/calls/list; " . ($o{script} || 'true')], script => undef);
	sysopen my $control, "$spool->{dir}/control", O_RDWR or die "control: $!";
	syswrite $control, "cancel\n" if $o{canceled};
	$job = job_run(spool => $spool, uid => $user, workspace => "$dir/ws");
	my ($r) = grep { $_->[0] eq 'objects' } job_result($job);
	$state = $r->[1] if $r;
	$calls = join ' ', -e "$dir/calls/list" ? split(/\n/, slurp("$dir/calls/list")) : ();
	return job_end($job);
}
sub value {
	my ($name) = @_;
	my ($r) = grep { $_->[0] eq $name } job_result($job);
	return $r ? $r->[1] : undef;
}
my $pristine;
sub files {
	return run_cmd({ cwd => "$dir/ws" }, 'sh', '-c',
	    'find . -path ./.git -prune -o -print | sort; cat file src/deep/file');
}

# --- nothing changed
is(scalar deploy(), 'success -', 'the first deployment succeeds') or diag(job_log($job));
is($calls, 'fetch ls-remote checkout log |', 'a new clone needs four git commands');
my $checked = value('checked-out');
like($checked, qr/^main\n$first\nfirst$/, 'the first deployment checks out the commit');
$pristine = (files())[1];
is(scalar deploy(), 'success -', 'a deployment of an unchanged branch succeeds');
is($calls, 'fetch |', 'an unchanged branch needs one git command: fetch') or diag($state);
is(value('checked-out'), $checked, 'an unchanged branch has its commit and message');
like(value('workspace'), qr/^ready 0 [1-9]\d*$/, 'an unchanged branch leaves the workspace ready');
deploy(commit => $first);
is($calls, '|', 'the commit that is checked out needs no git command');
is(value('checked-out'), $checked, 'the commit that is checked out has its branch and message');
rename $repo, "$repo.away" or die;
is(scalar deploy(commit => $first), 'success -', 'the commit that is checked out needs no server');
isnt(scalar deploy(), 'success -', 'a branch needs the server');
rename "$repo.away", $repo or die;

# --- a new commit in an unchanged workspace
deploy();
my $second = commit(
    'echo two >file; rm -r src; mkdir -p src/deep; echo "deep two" >src/deep/file; echo x >added');
deploy();
is($calls, 'fetch checkout log |', 'a new commit needs three git commands in an unchanged workspace');
is(slurp("$dir/ws/file"), "two\n", 'a new commit has its files');
deploy();
is($calls, 'fetch |', 'the new commit needs no checkout afterwards');

# --- an older commit, which the clone has
rename $repo, "$repo.away" or die;
is(scalar deploy(commit => $first), 'success -', 'an older commit needs no server');
is($calls, 'rev-parse merge-base rev-list checkout log update-ref |', 'an older commit needs no fetch');
is((files())[1], $pristine, 'an older commit has its files and no others');
is(value('checked-out'), $checked, 'an older commit has its message');
# whether the branch still has a newer one, only the server knows
is(scalar deploy(commit => $second, rollback_to => 1), 'success -',
    'a rollback to a newer commit of the clone needs no server');
is(slurp("$dir/ws/file"), "two\n", 'a newer commit of the clone has its files');
is(scalar deploy(commit => $first, branch => undef), 'failed checkout_failed',
    'without a branch, the server is asked for one');
is(scalar deploy(commit => $first, repository => "$repo.away/../repo"), 'failed checkout_failed',
    'a commit of another address needs the server');
rename "$repo.away", $repo or die;
deploy();

# --- objects that are not from this address
{
	my $other = make_repo("$dir/other", 'echo other >other');
	my ($status, $theirs) = run_cmd({ cwd => $other }, 'git', 'rev-parse', 'HEAD');
	chomp $theirs;
	is(scalar deploy(repository => $other), 'success -',
	    'another repository is checked out into the clone');
	is(scalar deploy(), 'success -', 'the first repository is checked out again');
	deploy(commit => $theirs);
	like($calls, qr/^fetch /,
	    'a clone with objects of two repositories needs the server for a commit');
	$state = undef;
	deploy();
	deploy(commit => $second);
	is($calls, '|', 'a new clone needs no server again');
}

# --- a changed workspace is restored
my @harmless = ('cat file', '/usr/bin/git rev-parse HEAD; /usr/bin/git log --oneline', 'ls -lR . >/dev/null');
for my $script (@harmless) {
	deploy();
	deploy(script => $script);
	deploy();
	is($calls, 'fetch |', "a step that only reads changes nothing: $script");
}
my $good = (deploy(), (files())[1])[-1];
my @changes = (
	[ 'a file with the same size and times', 'cp -p file keep; '
	    . 'printf "TWO\n" >file; touch -r keep file; rm keep' ],
	[ 'a new file', 'echo new >new' ],
	[ 'a new ignored file', 'echo new >new.o' ],
	[ 'an empty directory', 'mkdir empty' ],
	[ 'a deleted file', 'rm added' ],
	[ 'a deleted directory', 'rm -r src' ],
	[ 'a new mode', 'chmod +x file' ],
	[ 'a renamed file', 'mv file renamed' ],
	[ 'a link', 'ln -sf /etc/passwd file' ],
	[ 'a pipe', 'mkfifo pipe; rm .gitignore; mkfifo .gitignore' ],
	[ 'an unreadable directory', 'mkdir -p closed/in; touch closed/in/x; chmod 0 closed' ],
	[ 'a deeper file', 'echo "deep 2wo" >src/deep/file' ],
	[ 'a hidden change', 'echo xxx >file; /usr/bin/git update-index --skip-worktree file' ],
	[ 'a nested repository', '/usr/bin/git init -q nested' ],
	[ 'a config', '/usr/bin/git config core.fsmonitor "touch ' . $dir . '/calls/pwned"' ],
	[ 'a file exchanged for another', 'mv file x; mv added file; mv x added' ],
);
for (@changes) {
	my ($what, $script) = @$_;
	deploy(script => $script);
	like(value('workspace'), qr/^ready [01] /, "$what: the state of the workspace is known");
	is(scalar deploy(commit => $second), 'success -', "$what: the next deployment succeeds")
	    or diag(job_log($job));
	like($calls, qr/update-index clean/, "$what: the next deployment checks the files");
	unlike($calls, qr/fetch/, "$what: the next deployment needs no server");
	is((files())[1], $good, "$what: the next deployment has the commit's files and no others");
	deploy(commit => $second);
	is($calls, '|', "$what: the deployment after that changes nothing");
}
ok(!-e "$dir/calls/pwned", 'no command of a config was executed');
deploy(script => 'echo changed >file');
like(value('workspace'), qr/^ready 1 /, 'a changed file makes the workspace dirty');
like($calls, qr/\| status$/, 'only a changed workspace needs git status');

# Git compares the times of status changes in seconds only: changes a file within the
# second in which an index has recorded it, with the same size and times.
{
	my $at = 'touch -d @1000000000 file; stat -c "at %Z" file';
	# the times of files lag behind the clock by up to a tick of the kernel
	my $wait = 'sleep $(printf 0.%06d $((999999 - 10#${EPOCHREALTIME#*.})));'
	    . ' now=$(date +%s); new=$(mktemp);'
	    . ' for i in {1..1000}; do touch $new; [ $(stat -c %Z $new) -lt $now ] || break; done; rm $new; ';
	my $change_twice = sub {
		for (1 .. 20) {
			deploy(commit => $second, script => $wait . $at);
			my ($from) = job_log($job) =~ /^at (\d+)$/m;
			deploy(commit => $second, script => 'printf "TWO\n" >file; ' . $at);
			return 1 if job_log($job) =~ /^at $from$/m;
			deploy(commit => $second);
		}
		return 0;
	};
	ok($change_twice->(), 'two deployments run within one second');
	deploy(commit => $second);
	is(slurp("$dir/ws/file"), "two\n", 'a change that git itself does not notice is undone');
	utime 1000000000, 1000000000, "$dir/ws/added" or die;
	ok($change_twice->(), 'two more deployments run within one second');
	my $second_of = (stat "$dir/ws/file")[10];
	poll(10, sub { time > $second_of });
	deploy(commit => $second);
	is(slurp("$dir/ws/file"), "two\n", 'such a change is undone a second later, too');
	is((stat "$dir/ws/added")[9], 1000000000, 'an unchanged file keeps its time then');
}

# --- a cancel before the first command of git
{
	deploy(commit => $second);
	my $inode = (stat "$dir/ws/.git/objects")[1];
	for my $what ([ 'an unchanged', 'true' ], [ 'a changed', 'touch .git/config' ]) {
		deploy(commit => $second, script => $what->[1]);
		is(scalar deploy(canceled => 1), 'canceled canceled_by_user',
		    "a cancel that waits for the job cancels it in $what->[0] workspace");
		like(value('stayed') || '', qr/^\n$second\n./, "$what->[0] workspace stays at its commit");
		like(value('workspace'), qr/^ready 0 /, "$what->[0] workspace stays ready");
		is((stat "$dir/ws/.git/objects")[1], $inode, "$what->[0] workspace keeps its clone");
	}
	for my $grace (0, 60) {
		deploy(commit => $second, script => 'touch .git/objects/pack/forged');
		is(scalar deploy(canceled => 1, cancel_grace => $grace), 'canceled canceled_by_user',
		    "a cancel with a grace period of $grace s cancels the job");
		deploy(commit => $second);
		ok(!-e "$dir/ws/.git/objects/pack/forged",
		    "a cancel with a grace period of $grace s hides no change to the clone");
	}
}

# --- an incomplete clone
{
	my $third = commit('echo three >file');
	my ($tree, $blob) = map { git("git rev-parse '$third$_'") } '^{tree}', ':file';
	deploy(commit => $third);
	is(slurp("$dir/ws/file"), "three\n", 'a commit that the clone does not have is fetched');
	like($calls, qr/^rev-parse fetch /, 'a commit that the clone does not have needs the server')
	    or diag($calls);
	for my $what ([ 'a tree', $tree ], [ 'a blob', $blob ]) {
		is(scalar deploy(commit => $what->[1]), 'failed checkout_failed', "$what->[0] is no commit");
	}
}
done_testing();
