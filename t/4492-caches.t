#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Caches of projects, with a stand-in for the dispatcher: where they are, who can
# reach them, and when they are emptied, whatever steps leave in them.

use strict;
use warnings;
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;
use Test::More;

note(is_root() ? 'as root: each project has an account' : 'without root: privilege_drop = no');
my $outside = tempdir() . '/outside';
mkdir $outside or die;
spew("$outside/keep", 'k' x 2_000_000, 0666);
chmod 0777, $outside;
my $repo = make_repo(tempdir() . '/repo');
my $m = Slipway::Monitor->start(conf => "[runner]\ncache_max = 1m\n");
my ($caches, $left) = map { "$m->{workspaces}/$_" } '.cache', '.left';

# The log of a job that succeeds.
sub job {
	my ($script, %o) = @_;
	my $job = $m->job(repository => $repo, project => 7, dir => 'shop', steps => [$script], %o);
	my $exited = $m->exited($job) // 'none';
	is("$exited " . (scalar job_end($job) // 'none'), '0 success -', 'the job succeeds')
	    or diag(job_log($job));
	return job_log($job);
}
sub listed { my ($log) = @_; return $log =~ /^has:(?: (.+))?$/m ? $1 // '' : undef }
my $list = 'echo has: $(ls -A "$SLIPWAY_CACHE")';

# --- where it is
my $log = job("env | sort; cd; $list", env => ['SLIPWAY_CACHE=/x', 'A=b']);
my $names = 'SLIPWAY_CACHE|XDG_CACHE_HOME|COMPOSER_CACHE_DIR|npm_config_cache|PIP_CACHE_DIR';
is_deeply([$log =~ /^((?:$names)=.*)$/mg],
    ["COMPOSER_CACHE_DIR=$caches/7/0/composer", "PIP_CACHE_DIR=$caches/7/0/pip",
	"SLIPWAY_CACHE=$caches/7/0", "XDG_CACHE_HOME=$caches/7/0", "npm_config_cache=$caches/7/0/npm"],
    'a step has the variables of its cache');
like(job('env', env => ['npm_config_cache=/mine', 'PIP_CACHE_DIR=/own']),
    qr{^(?=.*^npm_config_cache=/mine$)(?=.*^PIP_CACHE_DIR=/own$)}ms, 'a user can set those of a program');
is(listed($log), '', 'a new cache is empty');
for (['.cache', 0711], ['.cache/7', 0710], ['.cache/7/0', 0700]) {
	my ($name, $mode) = @$_;
	is((stat "$m->{workspaces}/$name")[2] & 07777, $mode, sprintf '%s has the mode %04o', $name, $mode);
}
if (is_root()) {
	is((stat "$m->{workspaces}/$_")[4], 0, "$_ belongs to root") for '.cache', '.cache/7';
	is((stat "$caches/7/0")[4], $m->{uid_first} + 7, 'the cache belongs to the account of the job');
}

# --- between runs
job('echo mine >"$SLIPWAY_CACHE/file"');
like(job("$list; cat \$SLIPWAY_CACHE/file; rm -rf ./* .g*"), qr/^has: file\nmine$/m,
    'the next job finds what the last one left in the cache');
my $other = job("$list; cat $caches/7/0/file || :; ls $caches || :", project => 8, dir => 'other')
    if is_root();
if (is_root()) {
	is(listed($other), '', 'another project has another cache');
	unlike($other, qr/^mine$/m, "a project cannot read another project's cache");
	like($other, qr/cannot open directory '\Q$caches\E': Permission denied/,
	    'a project cannot list the caches');
	job('chmod 0777 $SLIPWAY_CACHE');
	$other = job("cat $caches/7/0/file || :; mkdir $caches/7/0/theirs || :",
	    project => 8, dir => 'other');
	unlike($other, qr/^mine$/m, 'a project cannot read a cache that a step opened to everybody');
	ok(!-e "$caches/7/0/theirs", 'a project cannot write to such a cache');
}
is(listed(job($list, checkout => 'none')), 'file', 'a job without a checkout has the cache, too');
is(listed(job($list, cache => 1)), '', 'a request for another generation empties the cache');
ok(!-e "$caches/7/0" && -d "$caches/7/1", 'only the cache of that generation exists');
job('echo mine >"$SLIPWAY_CACHE/file"', cache => 1);
is(listed(job($list)), '', 'a generation that returns begins empty');
my $invalid = $m->job(repository => $repo, project => 7, dir => 'shop', steps => ['true'], cache => -1);
like($m->refused($invalid), qr/^\d/, 'a negative generation is rejected');
for my $dir ('.cache', '.cache/7', '.cache/7/0', 'shop/../.cache') {
	my $bad = $m->job(repository => $repo, project => 7, dir => $dir, steps => ['true']);
	like($m->refused($bad), qr/^\d/, "$dir is not the directory of a project");
}

# --- files that steps leave there: attack, whether it is emptied, and the line in the log
my $emptied = '==> the cache is emptied before the next deployment: ';
# Whether a directory stays large when its files are gone, as on ext4.
sub wide {
	my $wide = tempdir() . '/wide';
	my @files = map { "$wide/" . 'x' x 240 . $_ } 1 .. 6000;
	mkdir $wide or die;
	spew($_, '') for @files;
	unlink @files;
	return (stat $wide)[12] * 512 > 1_048_576;
}
my @attacks = (
	['a file of 2 MB', 'head -c 2000000 /dev/zero >a', 'it has more than 1048576 bytes'],
	['3000 empty files', 'touch $(seq 3000)', 'it has more than 1048576 bytes'],
	['a directory whose many files are gone',
		'perl -e \'for (1 .. 6000) { open F, ">", "x" x 240 . $_; close F } unlink glob "*"\';'
		    . ' touch f',
		wide() ? 'it has more than 1048576 bytes' : undef],
	['a file with many links', 'head -c 200000 /dev/zero >a; for i in 1 2 3 4 5 6; do ln a $i; done',
		'it has more than 1048576 bytes'],
	['a link to a large file that the account may write', "ln $outside/keep a",
		'it has more than 1048576 bytes'],
	['a deep tree', 'perl -e \'for (1 .. 2000) { mkdir "d"; chdir "d" }\'',
		'its directories are too deep'],
	['an inaccessible directory', 'mkdir d; touch d/f; chmod 0 d',
		'measuring a directory: Permission denied'],
	['an inaccessible cache', 'touch f; chmod 0 .', 'measuring it: Permission denied'],
	['a sticky cache', 'touch f; chmod +t .', undef, 'emptied'],
	['a sparse file', 'truncate -s 4G a', undef],
	['links to other files', "ln -s $outside $outside/keep .; ln -s . self; ln -s none dangling", undef],
	['FIFOs and sockets', 'mkfifo a; python3 -c "import socket; socket.socket(1).bind(\"s\")"', undef],
	['odd names', 'mkdir -- "-rf" "\$(x)" "$(printf "a\nb")"; touch ...', undef],
);
# attacks that need rights that steps do not have; without root, they have them
push @attacks, ['a device, or a link to a file of another account',
	'mknod a c 1 3 2>&1 || :; ln /etc/shadow b 2>&1 || :', undef],
    ['another directory in its place', "cd ..; mv 7 8 || :; mv 0 1 || :; rmdir 0 || :; mkdir x || :", undef]
    if is_root();
for (@attacks) {
	my ($what, $script, $why, $silent) = @$_;
	my $log = job("cd \$SLIPWAY_CACHE; $script");
	my ($said) = $log =~ /^\Q$emptied\E(.*)$/m;
	is($said, $why, $why ? "$what: the log says why the cache is emptied" : "$what: the cache stays");
	my $now = listed(job($list));
	if ($why || $silent) { is($now, '', "$what: the next job has an empty cache") }
	else { isnt($now, '', "$what: the next job has the cache") if $what !~ /^a(?:nother| device)/ }
	job('cd $SLIPWAY_CACHE; chmod -R u+rwx .; find . -mindepth 1 -delete') if !$why && !$silent;
}
ok(poll(60, sub { !(() = glob "$left/*") }), 'emptied caches are removed')
    or diag(glob("$left/*"), $m->log);
is(-s "$outside/keep", 2_000_000, 'nothing outside of the caches was removed');
like($m->log, qr/job \S+: its cache is emptied \(runner\.cache_max\)/,
    'the log of the runner says that a cache was emptied');

# --- a restart of the monitor while a job runs
my $gate = tempdir() . '/gate';
my $job = $m->job(repository => $repo, project => 7, dir => 'shop',
    steps => ["echo up; until [ -e $gate ]; do sleep 0.1; done; "
	. 'head -c 2000000 /dev/zero >$SLIPWAY_CACHE/a']);
ok($m->started($job) && poll(60, sub { job_log($job) =~ /^up$/m }), 'a job runs');
$m->stop;
$m = Slipway::Monitor->start(dir => $m->{dir}, conf => "[runner]\ncache_max = 1m\n");
spew($gate, '');
ok(defined $m->exited($job), 'a job that another monitor adopted ends');
like(job_log($job), qr/^\Q$emptied\Eit has more/m, 'the cache of an adopted job is measured');
is(listed(job($list)), '', 'the next job has an empty cache');

# --- obstacles of the host
if (is_root()) {
	mkdir "$caches/7/0/x" or die;
	run_cmd('chown', '-R', $m->{uid_first} + 20, "$caches/7/0");
	is(listed(job($list)), '', 'a cache that belongs to another account is replaced');
	ok(poll(60, sub { !(() = glob "$left/*") }), 'the cache of another account is removed');
}
job('touch $SLIPWAY_CACHE/file');
rename $caches, "$caches.away" or die;
symlink $outside, $caches or die;
$log = job('echo "[${SLIPWAY_CACHE-none}] [${XDG_CACHE_HOME-none}]"');
like($log, qr/^\[none\] \[none\]$/m, 'a job runs without a cache if none can be made');
like($m->log, qr/has no cache: open \.cache: /, 'the log of the runner says why a job has no cache');
is_deeply([map { m{([^/]+)$} } glob "$outside/*"], ['keep'], 'no cache is made behind a symbolic link');
unlink $caches;
rename "$caches.away", $caches or die;
is(listed(job($list)), 'file', 'afterwards it has its cache again');

# --- renamed while it is measured
$m->stop;
$m = Slipway::Monitor->start(dir => $m->{dir}, conf => "[runner]\ncache_max = 1g\n");
my $marks = tempdir() . '/marks';
mkdir $marks or die;
chmod 0777, $marks;

# Stops the process of the job that looks into the directory after the steps; its pid.
sub measuring {
	my ($job, $pid, $mark, $dir) = @_;
	my $found;
	poll(60, sub { -e $mark });
	poll(60, sub {
		for (1 .. 1000) {
			for my $child (split ' ', slurp("/proc/$pid/task/$pid/children") || '') {
				next if (slurp("/proc/$child/comm") || '') ne "slipway-job\n";
				kill 'STOP', $child;
				# in a chroot, something precedes the paths of another mount namespace
				$found = $child if grep { (readlink || '') =~ m{\Q$dir\E(?:/|$)} }
				    "/proc/$child/cwd", glob "/proc/$child/fd/*";
				return 1 if $found;
				kill 'CONT', $child;
			}
		}
		return defined job_end($job);
	});
	return $found;
}
# Runs jobs until one is seen as it measures, and renames what it measures.
sub renamed {
	my ($dir, $script) = @_;
	for my $n (1 .. 20) {
		my $mark = "$marks/$n";
		unlink $mark;
		my $job = $m->job(repository => $repo, project => 7, dir => 'shop',
		    steps => ["$script; touch $mark"]);
		my $pid = $m->started($job) or die 'the job is refused';
		my $child = measuring($job, $pid, $mark, $dir);
		rename $dir, "$dir.moved" or die "$dir: $!" if $child;
		kill 'CONT', $child if $child;
		is($m->exited($job) . ' ' . job_end($job), '0 success -', 'the job succeeds')
		    or diag(job_log($job));
		return job_log($job) if $child;
	}
	return;
}
my $many = 'mkdir -p many; cd many; [ -e 1 ] || seq 20000 | xargs touch';
$log = renamed("$caches/7/0", "cd \$SLIPWAY_CACHE; $many");
ok(defined $log, 'a cache is renamed while it is measured') or diag($m->log);
unlike($log, qr/cache/, 'the log of the job does not mention a renamed cache');
is(listed(job($list)), '', 'the next job has an empty cache');
is_deeply([map { m{([^/]+)$} } glob "$caches/7/*"], ['0'], 'the project has one cache');
ok(poll(60, sub { !(() = glob "$left/*") }), 'the renamed one is removed');
my $workspace = "$m->{workspaces}/shop";
$log = renamed($workspace, $many);
ok(defined $log, 'a workspace is renamed while it is measured') or diag($m->log);
like(job('pwd; ls -A'), qr{^\Q$workspace\E\n\.git\n(?!many)}m, 'the next job has a new workspace');
is((() = glob "$workspace.moved/many/*"), 20000, 'the renamed one keeps its files');

# --- deleted projects, and no caches
$m->command('wipe 7 shop');
ok(poll(60, sub { !-e "$caches/7" }), 'the cache of a deleted project leaves its place');
job('touch $SLIPWAY_CACHE/file');
$m->stop;
$m = Slipway::Monitor->start(dir => $m->{dir}, conf => "[runner]\ncache_max = 0\n");
like(job('echo "[${SLIPWAY_CACHE-none}]"'), qr/^\[none\]$/m, 'with cache_max = 0, a job has no cache');
ok(!-e "$caches/7", 'with cache_max = 0, the cache of a project is removed');
ok(poll(60, sub { !(() = glob "$left/*") }), 'all of them are removed');
is($m->stop, 0, 'the monitor stops');

done_testing;
