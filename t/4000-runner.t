#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The monitor, with a stand-in for its dispatcher: it starts, rejects and ends
# jobs, and survives whatever the dispatcher does wrong.

use strict;
use warnings;
use File::Basename qw(basename);
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root: each project has an account' : 'without root: privilege_drop = no');
my $repo = tempdir() . '/repo.git';
{
	ok(-d make_repo($repo) . '/.git', 'git creates a repository');
}
sub procs_of { my ($uid) = @_; return scalar grep { !/^Z/ } split " ", `ps -o stat= -u $uid` }
sub alive { return kill 0, $_[0] }

my $m = Slipway::Monitor->start;
my ($pid, $uid, $gid, $rest) = $m->await(qr/^up (\d+) (\d+) (\d+)(.*)$/m);
ok($pid, 'the monitor starts the dispatcher');
is($rest, " -c $m->{dir}/slipway.conf", 'the dispatcher gets the configuration');
if (is_root()) {
	my @pw = getpwnam 'nobody';
	is("$uid $gid", "$pw[2] $pw[3]", 'the dispatcher runs under its own account');
	my $status = slurp("/proc/$pid/status");
	like($status, qr/^CapEff:\t0+$/m, 'the dispatcher has no capabilities');
	like($status, qr/^NoNewPrivs:\t1$/m, 'the dispatcher can gain no privileges');
	is((stat $m->{spool})[4], $pw[2], 'the spool belongs to the dispatcher');
} else {
	is($uid, $>, 'without root the dispatcher runs under the same account');
}
is((stat $m->{spool})[2] & 07777, 0700, 'only the owner can read the spool');
like($m->log, qr/control groups: memory .*, processes .*, kill/,
    'the log names the limits of control groups');

# --- a job from start to end
my $base = $m->{uid_first} + 7;
my $job = $m->job(repository => $repo, branch => 'main',
    steps => ['id -u; echo $HOME; touch ~/left; mkdir -p ~/a/b/c; chmod 0 ~/a/b']);
my $jobpid = $m->started($job);
ok($jobpid, 'a job is started');
is($m->exited($job), 0, 'a job ends');
is(scalar job_end($job), 'success -', 'the result is written before the end is reported');
my $home = "$m->{workspaces}/.home/$job->{id}.1";
like(job_log($job), qr/^\Q$home\E$/m, 'a job has its own home');
ok(!-e $home, 'the home is removed after the job');
if (is_root()) {
	like(job_log($job), qr/^$base$/m, 'a job runs under the account of its project');
	is((stat "$m->{workspaces}/shop")[4], $base, 'the workspace belongs to the account of the project');
	is((stat "$m->{workspaces}/shop")[2] & 07777, 0700, 'only its account can read the workspace');
} else {
	like(job_log($job), qr/^$>$/m, 'without root a job runs under the same account');
}

# --- two jobs at once: of one project, of two projects
my $mark = sprintf '.%06d', $$ % 1000000; # tells our sleeps from others
sub sleeper { my (%o) = @_; return $m->job(repository => $repo, steps => ['echo up; sleep 600'], %o) }
my $one = sleeper(project => 8, dir => 'eight');
ok($m->started($one), 'a long job is started');
ok(poll(20, sub { job_log($one) =~ /^up$/m }), 'the step of the long job runs');
my $again = sleeper(deployment => $one->{id} + 500, project => 8, dir => 'eight');
if (is_root()) {
	is($m->refused($again), '1 0', 'a second job under the same account is rejected');
} else {
	ok($m->started($again), 'without accounts a second job of the project is started');
	$m->command("kill $again->{id} 1");
	ok(defined $m->exited($again), 'the second job is killed');
}
my $other = $m->job(repository => $repo, project => 9, dir => 'deep/er/nine', steps => ['pwd']);
ok($m->started($other), 'a job of another project runs at the same time, in a subdirectory');
is($m->exited($other), 0, 'the job in a subdirectory ends');
like(job_log($other), qr{^\Q$m->{workspaces}\E/deep/er/nine$}m, 'the job runs in its subdirectory');

# --- kill
my $t = stopwatch();
$m->command("kill $one->{id} 1");
ok(defined $m->exited($one), 'kill ends a job');
cmp_ok($t->(), '<', deadline(30), 'kill ends a job at once');
is(procs_of($m->{uid_first} + 8), 0, 'a killed job leaves no process') if is_root();
is(scalar job_end($one), undef, 'a killed job has no result');
$m->command('kill 424242 3');
ok(defined $m->await(qr/^exited 424242 3 0 (\d+) 0$/m), 'kill of an unknown job reports its end');

# --- a job killed by another process
my $lost = sleeper(project => 10, dir => 'ten',
    steps => ["(setsid sleep 601$mark &); (trap '' TERM HUP; sleep 602$mark & sleep 603$mark) & echo up; "
    . "sleep 604$mark"]);
$jobpid = $m->started($lost);
ok(poll(20, sub { job_log($lost) =~ /^up$/m }), 'a job has children that detach');
kill 'KILL', $jobpid;
my $status = $m->exited($lost);
is($status, 9, 'the monitor reports how the job was killed');
is(procs_of($m->{uid_first} + 10), 0, 'the end is reported after all processes of the job are gone')
    if is_root();
is(scalar(grep { /sleep 60[1-4]\Q$mark\E/ } `ps -eo args`), 0, 'no child of the killed job is alive')
    if !is_root();

# --- directories
my @bad = ('..', '.', 'a/../b', '-x', 'a/-x', '/abs', 'a//b', 'a/', '.home', 'a/.git', 'x y' =~ s/ /\t/r,
    'a%2f', "\xc3\xa4");
for my $dir (@bad) {
	my $j = $m->job(repository => $repo, dir => $dir, steps => ['true']);
	is((split / /, $m->refused($j) || '')[0], 3, "a job in the directory $dir is rejected");
}
for ([0, 1], [-1, 1], [5, 0], [5, -1]) {
	my ($id, $epoch) = @$_;
	my $spool = spool_make(root => $m->{spool});
	$m->command("start $id $epoch 7 shop $spool->{dir}") if !is_root();
	next if !is_root();
	my @pw = getpwnam 'nobody';
	chown $pw[2], $pw[3], $spool->{dir}, glob("$spool->{dir}/*");
	$m->command("start $id $epoch 7 shop $spool->{dir}");
	ok($m->await(qr/^refused $id $epoch 0 3 0$/m), "deployment $id, epoch $epoch, is rejected");
}
symlink '/etc', "$m->{workspaces}/link" or die;
my $link = $m->job(repository => $repo, project => 11, dir => 'link', steps => ['true']);
like($m->refused($link), qr/^3 /, 'a symbolic link as directory is rejected');
$link = $m->job(repository => $repo, project => 11, dir => 'link/etc', steps => ['true']);
like($m->refused($link), qr/^3 /, 'a symbolic link in the path is rejected');
if (is_root()) {
	my $owner = (stat "$m->{workspaces}/shop")[4];
	my $inside = $m->job(repository => $repo, project => 12, dir => 'shop/inside', steps => ['true']);
	is($m->exited($inside), 0, "a workspace inside another project's workspace replaces it");
	my ($left) = glob "$m->{workspaces}/.left/*";
	is((stat $left)[4], $owner, 'the replaced workspace keeps its owner');
	is((stat "$m->{workspaces}/.left")[2] & 07777, 0700, 'the replaced workspace is private to root');
}

# --- faults of the dispatcher
my $calm = sleeper(project => 13, dir => 'calm',
    steps => ['echo up; while [ ! -e ../go ]; do sleep 0.1; done; echo done']);
ok($m->started($calm) && poll(20, sub { job_log($calm) =~ /^up$/m }), 'a job is running');
my $n = 0;
for (['raw 00', 'a single byte', qr/malformed message: its size$/m],
    ['raw ' . '00' x 312, 'zeros', qr/malformed message: its magic$/m],
    ['raw ' . '32776c73' . 'ff' x 308, 'an unknown type', qr/malformed message: its type$/m],
    ['send 5', 'a message that only the monitor sends', qr/sent message 5, a message of the monitor$/m],
    ['send 1', 'a start without descriptors', qr/malformed message: the number of descriptors$/m],
    ['exit 3', 'an exit', qr/the dispatcher ended with status 3;/]) {
	my ($command, $what, $why) = @$_;
	my @before = $m->out =~ /^up/mg;
	my $logged = length $m->log;
	my ($last) = ($m->out =~ /^up (\d+)/mg)[-1];
	$m->command($command);
	ok(poll(30, sub { my @now = $m->out =~ /^up/mg; @now > @before }),
	    "$what: the dispatcher is restarted");
	ok(!alive($last), "$what: the old dispatcher has ended");
	like(substr($m->log, $logged), $why, "$what: the log says why");
	last if ++$n == 4 && !$ENV{SLIPWAY_LONG};
}
# descriptors that are not files of a job: nothing starts, the dispatcher is restarted
for my $kind (qw(device foreign directory path overwrites readable fifo unlocked file ends socket)) {
	next if $kind eq 'foreign' && !is_root(); # without root every file is its own
	my $h = Slipway::Monitor->start;
	my ($was) = $h->await(qr/^up (\d+)/m);
	my $spool = spool_make(root => $h->{spool}, repository => $repo, steps => ['true']);
	if (is_root()) {
		my @pw = getpwnam 'nobody';
		chown $pw[2], $pw[3], $spool->{dir}, glob("$spool->{dir}/*");
	}
	$h->command("odd $kind $spool->{id} $spool->{dir}");
	ok(poll(20, sub { $h->log =~ /descriptors that are not files of a job/ }),
	    "a start with a descriptor that is a $kind is rejected")
	    or diag($h->log);
	ok(poll(20, sub { !alive($was) }), "a dispatcher that sends a $kind is killed");
	ok(!-e "$h->{workspaces}/shop", "a start with a $kind creates no workspace");
	$h->stop;
}
ok(alive($m->{pid}), 'the monitor survives all faults');
# A dispatcher that floods the monitor may be killed first because it is slow to read
# the responses: repeats until it has sent too many.
my ($flooded, $dry);
for (1 .. 8) {
	$flooded->stop if $flooded;
	$flooded = Slipway::Monitor->start;
	$dry = $flooded->job(repository => $repo, project => 16, dir => 'dry', steps => ['echo up; exit 3']);
	ok($flooded->started($dry), 'a job is running');
	$flooded->command("flood $dry->{dir}");
	ok($flooded->await(qr/^(floods)$/m), 'the dispatcher sends too many messages');
	ok(poll(60, sub { $flooded->log =~ /too many messages|does not read its messages/ }),
	    'the monitor stops a flood of messages');
	last if $flooded->log =~ /too many messages/;
}
like($flooded->log, qr/too many messages/, 'the log names the flood');
ok(poll(10, sub { 2 <= (my @ups = $flooded->out =~ /^up/mg) }), 'the dispatcher is restarted after a flood');
ok(poll(20, sub { $flooded->log =~ /job $dry->{id}\.1 ended/ }),
    'the end of a job is noticed after a flood');
kill 'HUP', $flooded->{pid};
ok(poll(10, sub { $flooded->log =~ /configuration reloaded/ }), 'a reload works after a flood');
is($flooded->stop, 0, 'the monitor stops after a flood');

# --- reload, stop, adopt
kill 'HUP', $m->{pid};
ok($m->await(qr/^(reload)/m), 'a reload is passed on to the dispatcher');
{
	local $m->{workspaces} = "$m->{dir}/elsewhere";
	local $m->{user} = 'daemon';
	spew("$m->{dir}/slipway.conf", $m->conf, 0644);
}
kill 'HUP', $m->{pid};
ok(poll(10, sub { $m->log =~ /only with a restart/ }), 'a reload logs the settings that need a restart');
my $stays = $m->job(repository => $repo, project => 17, dir => 'stays',
    steps => ['echo "at $SLIPWAY_WORKSPACE"']);
ok($m->started($stays), 'a job starts after such a reload');
is($m->exited($stays), 0, 'the job after such a reload ends');
like(job_log($stays), qr{^at \Q$m->{workspaces}\E/stays$}m, 'settings that need a restart are unchanged');
spew("$m->{dir}/slipway.conf", "[runner]\nslots = many\n", 0644);
kill 'HUP', $m->{pid};
ok(poll(10, sub { $m->log =~ /configuration is unchanged/ }), 'an invalid configuration keeps the old one');
is($m->stop, 0, 'the monitor stops on TERM');
ok($m->await(qr/^(stop)/m), 'the monitor tells the dispatcher to stop');
ok(!defined job_end($calm), 'a job survives the stop of the monitor');
my $heir = Slipway::Monitor->start(dir => $m->{dir});
like($heir->log, qr/job $calm->{id}\.1 adopted/, 'the next monitor adopts the job');
if (is_root()) {
	my $busy = $heir->job(repository => $repo, project => 13, dir => 'calm', steps => ['true']);
	is($heir->refused($busy), '1 0', 'the account of an adopted job is busy');
}
spew("$m->{workspaces}/go", '');
ok(poll(20, sub { defined job_end($calm) }), 'the adopted job ends');
is(scalar job_end($calm), 'success -', 'the adopted job succeeds');
ok(defined $heir->exited($calm), 'the monitor reports the end of an adopted job');
ok(poll(10, sub { !-e "$m->{workspaces}/.home/$calm->{id}.1" }), 'the home of an adopted job is removed');

# --- a step that stops its own job does not evade the time limit
my $stopper = 'kill -STOP $PPID && echo stopped; echo up; sleep 604';
my $stopped = $heir->job(repository => $repo, project => 13, dir => 'thirteen',
    timeout => 5, steps => [$stopper]);
ok($heir->started($stopped), 'a step stops its own job');
ok(defined $heir->exited($stopped, 30), 'the stopped job ends');
like(join(' ', job_end($stopped)), qr/^failed timeout/, 'the stopped job exceeds its time limit');
unlike(job_log($stopped), qr/^stopped$/m, 'as root a step cannot stop its job') if is_root();

# --- a killed monitor: jobs survive; kill ends an adopted job
my $adopted = $heir->job(repository => $repo, project => 14, dir => 'fourteen',
    steps => ['(setsid flock "$HOME" sleep 605 &) ; (flock "$HOME/.." true; setsid flock .. sleep 607) &'
	    . ' echo up; sleep 606']);
ok($heir->started($adopted) && poll(20, sub { job_log($adopted) =~ /^up$/m }), 'a job is running');
$heir->stop('KILL');
my $third = Slipway::Monitor->start(dir => $m->{dir});
like($third->log, qr/job $adopted->{id}\.1 adopted/, 
    'a job is adopted after the monitor was killed, though a step waits for the lock of its home');
$third->command("kill $adopted->{id} 1");
ok(defined $third->exited($adopted), 'kill ends an adopted job');
ok(!-e "$m->{workspaces}/.home/$adopted->{id}.1.lock", 'the lock of a home is removed with it');
is(procs_of($m->{uid_first} + 14), 0, 'a killed adopted job leaves no process') if is_root();

my $gone;

# --- one of two monitors is killed: the other can end its jobs
my $two = Slipway::Monitor->start(conf => "[runner]\nworkspaces = $m->{workspaces}\n"
    . (is_root() ? "uid_first = $m->{uid_first}\n" : ''));
my $orphan = $third->job(repository => $repo, project => 18, dir => 'eighteen',
    steps => ['(setsid sleep 609 &) ; echo up; sleep 610']);
$gone = $third->started($orphan);
ok($gone && poll(20, sub { job_log($orphan) =~ /^up$/m }), 'a job is running');
$two->command("kill $orphan->{id} 1");
ok(defined $two->exited($orphan), 'another monitor reports that it does not have the job');
ok(alive($gone), 'another monitor does not kill the job of a living monitor');
$third->stop('KILL');
$two->command("kill $orphan->{id} 1");
ok(poll(20, sub { $two->log =~ /job $orphan->{id}\.1 ended/
    && !-e "$m->{workspaces}/.home/$orphan->{id}.1" }),
    'another monitor ends the job of a dead monitor and removes its home');
is(procs_of($m->{uid_first} + 18), 0, 'a job ended by another monitor leaves no process') if is_root();
is($two->stop, 0, 'the other monitor stops');
$third = Slipway::Monitor->start(dir => $m->{dir});

# --- monitor and job were killed: the next start sweeps
my $reboot = $third->job(repository => $repo, project => 15, dir => 'fifteen',
    steps => ['(setsid sleep 607 &) ; echo up; sleep 608']);
$gone = $third->started($reboot);
ok($gone && poll(20, sub { job_log($reboot) =~ /^up$/m }), 'a job is running');
$third->stop('KILL');
kill 'KILL', $gone;
my $last = Slipway::Monitor->start(dir => $m->{dir});
ok(poll(20, sub { !-e "$m->{workspaces}/.home/$reboot->{id}.1" }),
    'the next start removes the home of a killed job');
is(procs_of($m->{uid_first} + 15), 0, 'the next start ends the processes of a killed job') if is_root();
$last->stop;

done_testing();
