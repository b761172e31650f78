#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A checkout that the disk fails: it is full, has no inodes left, is read-only, or the
# account is over its quota.  No step runs, the job says so for the dispatcher, and what
# was checked out before stays.

use strict;
use warnings;
use Test::More;
use Slipway::Forge;
use Slipway::Spool;
use Slipway::Sshd;
use Slipway::Test;

plan(skip_all => 'no file system can be mounted here') if !own_mounts();

my $repo = tempdir() . '/repo';
sub git_in {
	my ($script) = @_;
	my ($status, undef, $err) = run_cmd({ cwd => $repo, env => { GIT_CONFIG_GLOBAL => '/dev/null',
	    (map { ("GIT_${_}_NAME" => 'a', "GIT_${_}_EMAIL" => 'a@example.org') } qw(AUTHOR COMMITTER)) } },
	    'bash', '-ec', $script);
	die "git: $script: $err" if $status;
	return;
}
mkdir $repo or die "$repo: $!";
git_in('git init -q -b main; echo small >file; git add .; git commit -qm small; git branch small;'
    . 'head -c 4000000 /dev/urandom >large; git add .; git commit -qm large; git branch large;'
    . 'git checkout -q small; mkdir many; for i in {1..300}; do echo $i >many/$i; done; git add .;'
    . 'git commit -qm many; git branch many; git checkout -q -B small main~1');

my ($made, @mounted) = (0);
my $uid = uid_for();
sub disk {
	my ($options) = @_;
	my $dir = tempdir() . '/disk' . ++$made;
	mkdir $dir or die "$dir: $!";
	my ($status, undef, $err) = run_cmd('mount', '-t', 'tmpfs', '-o', $options, 'none', $dir);
	if ($status != 0) {
		note("no tmpfs with $options: $err");
		return;
	}
	push @mounted, $dir;
	mkdir "$dir/workspace", 0700 or die "$dir: $!";
	chown $uid, $uid, "$dir/workspace" or die "$dir: $!";
	return $dir;
}
sub deploy {
	my ($dir, $branch, %o) = @_;
	return job_run(repository => $repo, branch => $branch, workspace => "$dir/workspace", uid => $uid,
	    steps => [ { script => 'cat file', when => 'always' } ], %o);
}
sub record_of {
	my ($job, $name) = @_;
	return (map { $_->[1] } grep { $_->[0] eq $name } job_result($job))[0];
}
# Expects that the job returns the deployment for this reason.
sub returns {
	my ($what, $job, $like) = @_;
	my $why = record_of($job, 'no-room');
	like($why, $like, "$what: the deployment returns to the queue") or diag(job_log($job));
	is((job_end($job))[0], 'failed workspace_error', "$what: a dispatcher without queue fails it");
	is(job_steps($job), '', "$what: no step has run, not even one that always does");
	like(job_log($job), qr/^==> not started here: \Q$why\E$/m, "$what: the log says so")
	    if defined $why && $what !~ /spool/;
	return;
}

# --- a full disk
my $dir = disk('size=3m');
returns('a repository that does not fit', deploy($dir, 'large'),
    qr/No space left on device\. Free space in \Q$dir\E\/workspace, or make its file system larger: \d MiB/);
is(join(' ', glob "$dir/workspace/{.??,}*"), '', 'nothing of it stays on the disk');
my $job = deploy($dir, 'small');
is((job_end($job))[0], 'success -', 'one that fits is checked out') or diag(job_log($job));
my $seen = record_of($job, 'objects');
my $clone = (stat "$dir/workspace/.git/objects")[1];
$job = deploy($dir, 'large', objects => $seen);
returns('a commit that does not fit', $job, qr/No space left on device/);
is((stat "$dir/workspace/.git/objects")[1], $clone, 'the clone stays as it was');
is(join(' ', glob "$dir/workspace/.git/objects/{pack,??}/tmp_*"), '', 'git\'s temporary files do not stay');
$job = deploy($dir, 'small', objects => record_of($job, 'objects'));
unlike(job_log($job), qr/new clone/, 'the next checkout uses the clone') or diag(job_log($job));
$dir = disk('size=3m');
run_cmd('dd', 'if=/dev/zero', "of=$dir/fill", 'bs=4k');
returns('a disk without any room', deploy($dir, 'small'), qr/No space left on device.*: 0 MiB/);
unlink "$dir/fill" or die "fill: $!";
is((job_end(deploy($dir, 'small')))[0], 'success -', 'with room again, the checkout succeeds');

# --- files that do not fit beside the objects
$dir = disk('size=6m');
$job = deploy($dir, 'small');
returns('large files', deploy($dir, 'large', objects => record_of($job, 'objects')),
    qr/No space left on device/);
is(join(' ', glob "$dir/workspace/{.??,}*"), '', 'nothing of them stays on the disk');
$job = deploy($dir, 'small', checkout => 'keep', steps => ['echo mine >own']);
$job = deploy($dir, 'large', checkout => 'keep', objects => record_of($job, 'objects'));
returns('large files beside others that are kept', $job, qr/No space left on device/);
is(slurp("$dir/workspace/own"), "mine\n", 'the others stay');

# --- a full home
my $home = disk('size=3m');
mkdir "$home/home", 0700 or die "$home: $!";
chown $uid, $uid, "$home/home" or die "$home: $!";
run_cmd('dd', 'if=/dev/zero', "of=$home/fill", 'bs=4k');
returns('a full home', deploy(disk('size=8m'), 'small', home => "$home/home"),
    qr{No space left on device\. Free space in \Q$home\E/home, .*: 0 MiB});

# --- the rest of the file system's errors
$dir = disk('size=8m,nr_inodes=150');
returns('files without inodes', deploy($dir, 'many'), qr/No space left on device.* \d+ files are free/);
$dir = disk('size=8m');
run_cmd('mount', '-o', 'remount,ro', $dir);
returns('a read-only file system', deploy($dir, 'small'), qr/Read-only file system\. Mount it/);
run_cmd('mount', '-o', 'remount,rw', $dir);

# --- messages of git, when its own files are gone and there is room again
my $bin = tempdir() . '/bin';
mkdir $bin or die "$bin: $!";
sub says {
	my ($text) = @_;
	spew("$bin/git", "#!/bin/bash\nif [[ \" \$* \" == *' fetch '* ]]; then\ncat >&2 <<'END'\n$text\nEND\n"
	    . "exit 128\nfi\nPATH=/usr/bin:/bin exec git \"\$@\"\n", 0755);
	return deploy(disk('size=8m'), 'small', path => "$bin:/usr/bin:/bin");
}
returns('a quota', says('fatal: write error: Disk quota exceeded'), qr/quota exceeded\. Raise the quota/);
returns('an error of the disk', says("fatal: write error: Input/output error\nfatal: index-pack failed"),
    qr{Input/output error\. See the log});
returns('a message of git-lfs', says('error: write /x/.git/lfs/tmp/1: no space left on device'),
    qr/No space left on device/);
$job = says("remote: fatal: write error: No space left on device\nfatal: early EOF");
is(record_of($job, 'no-room'), undef, 'the disk of the server is not the runner\'s');

for my $text ("fatal: clone of 'https://h/a' into submodule path '/w/x: No space left on device' failed",
	"Failed to clone 'Read-only file system'. Retry scheduled", 'Encountered Input/output error') {
	is(record_of(says("$text\nfatal: not so"), 'no-room'), undef, "a name is no reason: $text");
}

# --- a submodule whose name looks like a message
git_in('git checkout -q small; n=$(printf "x\nfatal: write error: No space left on device\ny");'
    . 'git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),$n";'
    . 'git config -f .gitmodules submodule.s.path "$n"; git config -f .gitmodules submodule.s.url /none;'
    . 'git add .gitmodules; git commit -qm named; git branch named; git checkout -q -f -B small HEAD~1');
$job = deploy(disk('size=8m'), 'named', submodules => 1);
is((job_end($job))[0], 'failed checkout_failed', 'a submodule with such a name fails the checkout');
like(job_log($job), qr/^fatal: write error: No space left on device$/m, 'git writes the name as it is');
is(record_of($job, 'no-room'), undef, 'it does not make the runner sick');

# --- a disk that something else fills, with the spool on it
$dir = disk('size=8m');
mkdir "$dir/other" or die "$dir: $!";
chmod 0777, "$dir/other" or die "$dir: $!";
spew("$bin/git", "#!/bin/bash\nif [[ \" \$* \" == *' fetch '* ]]; then\n"
    . "dd if=/dev/zero of=$dir/other/fill bs=4k\nexit 1\nfi\nPATH=/usr/bin:/bin exec git \"\$@\"\n", 0755);
$job = deploy($dir, 'small', root => "$dir/spool");
returns('a full spool', deploy($dir, 'many', root => "$dir/spool", path => "$bin:/usr/bin:/bin",
    home => tempdir() . '/home', objects => record_of($job, 'objects')), qr/No space left on device/);

# --- not the disk
$dir = disk('size=8m');
$job = deploy($dir, 'missing', steps => [ { script => 'true', when => 'always' } ]);
is((job_end($job))[0], 'failed checkout_failed', 'a branch that is missing fails the deployment');
is(record_of($job, 'no-room'), undef, 'it does not return to the queue');
is(job_steps($job), '0:success:0:-', 'its cleanup runs') or diag(job_log($job));

# --- the disk of a Git server over SSH, which writes to the same stream as git
SKIP: {
	my $sshd = Slipway::Sshd->start or skip 'the shell of this account permits no login', 3;
	my $home = tempdir();
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$home/user");
	spew("$home/serve", "#!/bin/sh\n"
	    . "echo 'fatal: cannot create /srv/x.lock: No space left on device' >&2\nexit 128\n", 0755);
	$sshd->authorize("command=\"$home/serve\" " . slurp("$home/user.pub") =~ s/\n//r);
	$job = deploy(disk('size=8m'), undef, repository => $sshd->url('/team/site.git'),
	    ssh_key => slurp("$home/user"), known_hosts => $sshd->known,
	    (is_root() ? (limits => ['-N']) : ()));
	is((job_end($job))[0], 'failed checkout_failed', 'a Git server with a full disk fails the checkout');
	like(job_log($job), qr/srv.*No space left on device/, 'its message is in the log');
	is(record_of($job, 'no-room'), undef, 'it is not taken for the disk of the runner');
}

# --- an object of Git LFS that does not fit
{
	my $forge = Slipway::Forge->start(type => 'gitea');
	$forge->user(ann => { id => 7 });
	my $site = $forge->repo('team/site', users => ['ann']);
	$site->commit('main', { '.gitattributes' => "*.bin filter=lfs -text\n", file => "one\n",
		'a.bin' => $site->lfs("small\n") }, 'small');
	$site->commit('large', { 'b.bin' => $site->lfs('x' x 4_000_000) }, 'large');
	my @lfs = (repository => $site->clone_url, tls_ca => slurp($forge->ca), lfs => 1);
	my $full = qr/No space left on device/;
	$dir = disk('size=3m');
	returns('an object of Git LFS', deploy($dir, 'large', @lfs), $full);
	is(join(' ', glob "$dir/workspace/{.??,}*"), '', 'nothing of it stays on the disk, either');
	$job = deploy($dir, 'main', @lfs);
	is((job_end($job))[0], 'success -', 'a commit that fits is checked out') or diag(job_log($job));
	spew("$dir/workspace/kept", 'kept');
	$job = deploy($dir, 'large', @lfs, checkout => 'keep', objects => record_of($job, 'objects'));
	returns('an object of Git LFS beside files that are kept', $job, $full);
	ok(-e "$dir/workspace/.git/objects" && !-e "$dir/workspace/.git/lfs",
	    'what is kept stays, and objects of Git LFS go');
}

done_testing;
END {
	my $code = $?;
	run_cmd('umount', '-l', $_) for @mounted;
	$? = $code;
}
