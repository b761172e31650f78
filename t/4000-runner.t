#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The monitor, with a stand-in for its dispatcher: starting jobs, refusing them,
# ending them, living through what the dispatcher does wrong.

use strict;
use warnings;
use File::Basename qw(basename);
use Test::More;
use Time::HiRes qw(sleep time);
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

note(is_root() ? 'as root: accounts of their own' : 'without root: privilege_drop = no');
my $repo = tempdir() . '/repo.git';
{
	my ($status) = run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo';"
		. 'git config user.email a@example.org; git config user.name a;'
		. 'echo hello >file; git add .; git commit -qm first');
	is($status, 0, 'a repository is made');
}
sub procs_of { my ($uid) = @_; return scalar grep { !/^Z/ } split " ", `ps -o stat= -u $uid` }
sub alive { return kill 0, $_[0] }

my $m = Slipway::Monitor->start;
my ($pid, $uid, $gid, $rest) = $m->await(qr/^up (\d+) (\d+) (\d+)(.*)$/m);
ok($pid, 'the dispatcher is started');
is($rest, " -c $m->{dir}/slipway.conf", 'with the configuration');
if (is_root()) {
	my @pw = getpwnam 'nobody';
	is("$uid $gid", "$pw[2] $pw[3]", 'as its own account');
	my $status = slurp("/proc/$pid/status");
	like($status, qr/^CapEff:\t0+$/m, 'without capabilities');
	like($status, qr/^NoNewPrivs:\t1$/m, 'and no way to any');
	is((stat $m->{spool})[4], $pw[2], 'the spool is its own');
} else {
	is($uid, $>, 'as ourselves');
}
is((stat $m->{spool})[2] & 07777, 0700, 'and nobody else reads it');
like($m->log, qr/control groups: memory .*, processes .*, kill/, 'the log says what limits there are');

# --- a job from start to end
my $base = $m->{uid_first} + 7;
my $job = $m->job(repository => $repo, branch => 'main', steps => ['id -u; echo $HOME; touch ~/left; mkdir -p ~/a/b/c; chmod 0 ~/a/b']);
my $jobpid = $m->started($job);
ok($jobpid, 'a job is started');
is($m->exited($job), 0, 'and is over');
is(scalar job_end($job), 'success -', 'its result is there by then');
my $home = "$m->{workspaces}/.home/$job->{id}.1";
like(job_log($job), qr/^\Q$home\E$/m, 'it had a home of its own');
ok(!-e $home, 'which is gone');
if (is_root()) {
	like(job_log($job), qr/^$base$/m, 'it ran under the account of its project');
	is((stat "$m->{workspaces}/shop")[4], $base, 'which owns the workspace');
	is((stat "$m->{workspaces}/shop")[2] & 07777, 0700, 'alone');
} else {
	like(job_log($job), qr/^$>$/m, 'it ran as ourselves');
}

# --- two at once: one project, two projects
my $mark = sprintf '.%06d', $$ % 1000000; # of our sleeps among all
sub sleeper { my (%o) = @_; return $m->job(repository => $repo, steps => ['echo up; sleep 600'], %o) }
my $one = sleeper(project => 8, dir => 'eight');
ok($m->started($one), 'a long job');
ok(poll(20, sub { job_log($one) =~ /^up$/m }), 'its step runs');
my $again = sleeper(deployment => $one->{id} + 500, project => 8, dir => 'eight');
if (is_root()) {
	is($m->refused($again), '1 0', 'no second one under the same account');
} else {
	ok($m->started($again), 'without accounts there is no such rule');
	$m->command("kill $again->{id} 1");
	ok(defined $m->exited($again), 'the second is ended');
}
my $other = $m->job(repository => $repo, project => 9, dir => 'deep/er/nine', steps => ['pwd']);
ok($m->started($other), 'another project beside it, in a directory further down');
is($m->exited($other), 0, 'and ends');
like(job_log($other), qr{^\Q$m->{workspaces}\E/deep/er/nine$}m, 'its directory');

# --- kill
my $t = time;
$m->command("kill $one->{id} 1");
ok(defined $m->exited($one), 'a job is killed');
cmp_ok(time - $t, '<', deadline(30), 'at once');
is(procs_of($m->{uid_first} + 8), 0, 'and nothing of it is left') if is_root();
is(scalar job_end($one), undef, 'there is no result');
$m->command('kill 424242 3');
ok(defined $m->await(qr/^exited 424242 3 0 (\d+) 0$/m), 'a job that is not there is over');

# --- the job is killed by somebody else
my $lost = sleeper(project => 10, dir => 'ten', steps => ["(setsid sleep 601$mark &); (trap '' TERM HUP; sleep 602$mark & sleep 603$mark) & echo up; sleep 604$mark"]);
$jobpid = $m->started($lost);
ok(poll(20, sub { job_log($lost) =~ /^up$/m }), 'a job with children that hide');
kill 'KILL', $jobpid;
my $status = $m->exited($lost);
is($status, 9, 'the end of the job is told');
is(procs_of($m->{uid_first} + 10), 0, 'when nothing is left of it') if is_root();
is(scalar(grep { /sleep 60[1-4]\Q$mark\E/ } `ps -eo args`), 0, 'none of its children lives') if !is_root();

# --- directories
my @bad = ('..', '.', 'a/../b', '-x', 'a/-x', '/abs', 'a//b', 'a/', '.home', 'a/.git', 'x y' =~ s/ /\t/r, 'a%2f', "\xc3\xa4");
for my $dir (@bad) {
	my $j = $m->job(repository => $repo, dir => $dir, steps => ['true']);
	is((split / /, $m->refused($j) || '')[0], 3, "refused: the directory $dir");
}
for ([0, 1], [-1, 1], [5, 0], [5, -1]) {
	my ($id, $epoch) = @$_;
	my $spool = spool_make(root => $m->{spool});
	$m->command("start $id $epoch 7 shop $spool->{dir}") if !is_root();
	next if !is_root();
	my @pw = getpwnam 'nobody';
	chown $pw[2], $pw[3], $spool->{dir}, glob("$spool->{dir}/*");
	$m->command("start $id $epoch 7 shop $spool->{dir}");
	ok($m->await(qr/^refused $id $epoch 0 3 0$/m), "refused: deployment $id, epoch $epoch");
}
symlink '/etc', "$m->{workspaces}/link" or die;
my $link = $m->job(repository => $repo, project => 11, dir => 'link', steps => ['true']);
like($m->refused($link), qr/^3 /, 'a link is not followed');
$link = $m->job(repository => $repo, project => 11, dir => 'link/etc', steps => ['true']);
like($m->refused($link), qr/^3 /, 'nor on the way');
if (is_root()) {
	my $owner = (stat "$m->{workspaces}/shop")[4];
	my $inside = $m->job(repository => $repo, project => 12, dir => 'shop/inside', steps => ['true']);
	is($m->exited($inside), 0, 'a directory that is in the way makes room');
	my ($left) = glob "$m->{workspaces}/.left/*";
	is((stat $left)[4], $owner, 'a workspace stays with its account');
	is((stat "$m->{workspaces}/.left")[2] & 07777, 0700, 'where nobody else gets at it');
}

# --- what the dispatcher does wrong
my $calm = sleeper(project => 13, dir => 'calm', steps => ['echo up; while [ ! -e ../go ]; do sleep 0.1; done; echo done']);
ok($m->started($calm) && poll(20, sub { job_log($calm) =~ /^up$/m }), 'a job is running');
my $n = 0;
for (['raw 00', 'a single byte'], ['raw ' . '00' x 312, 'zeros'], ['raw ' . '31776c73' . 'ff' x 308, 'a type that is none'],
    ['send 4', 'a message of the monitor\'s'], ['send 1', 'a start without descriptors'], ['exit 3', 'it exits']) {
	my ($command, $what) = @$_;
	my @before = $m->out =~ /^up/mg;
	my ($last) = ($m->out =~ /^up (\d+)/mg)[-1];
	$m->command($command);
	ok(poll(30, sub { my @now = $m->out =~ /^up/mg; @now > @before }), "$what: it is started again");
	ok(!alive($last), 'and the old one is gone');
	last if ++$n == 4 && !$ENV{SLIPWAY_LONG};
}
# descriptors that are no files of a job: nothing starts, it is started again
for my $kind (qw(device foreign directory path overwrites readable fifo unlocked file ends socket)) {
	next if $kind eq 'foreign' && !is_root(); # all files are its own then
	my $h = Slipway::Monitor->start;
	my ($was) = $h->await(qr/^up (\d+)/m);
	my $spool = spool_make(root => $h->{spool}, repository => $repo, steps => ['true']);
	if (is_root()) {
		my @pw = getpwnam 'nobody';
		chown $pw[2], $pw[3], $spool->{dir}, glob("$spool->{dir}/*");
	}
	$h->command("odd $kind $spool->{id} $spool->{dir}");
	ok(poll(20, sub { $h->log =~ /descriptors that are no files of a job/ }), "refused: $kind")
	    or diag($h->log);
	ok(poll(20, sub { !alive($was) }), '- by who sent it');
	ok(!-e "$h->{workspaces}/shop", '- before anything was made');
	$h->stop;
}
ok(alive($m->{pid}), 'the monitor lives');
# One that is slow to read the answers is ended for that, before it has sent too
# many.
my ($flooded, $dry);
for (1 .. 8) {
	$flooded->stop if $flooded;
	$flooded = Slipway::Monitor->start;
	$dry = $flooded->job(repository => $repo, project => 16, dir => 'dry', steps => ['echo up; exit 3']);
	ok($flooded->started($dry), 'a job is running');
	$flooded->command("flood $dry->{dir}");
	ok($flooded->await(qr/^(floods)$/m), 'messages without end');
	ok(poll(60, sub { $flooded->log =~ /messages without end|takes no messages/ }), 'are not taken');
	last if $flooded->log =~ /messages without end/;
}
like($flooded->log, qr/messages without end/, 'for they are too many');
ok(poll(10, sub { 2 <= (my @ups = $flooded->out =~ /^up/mg) }), 'it is started again');
ok(poll(20, sub { $flooded->log =~ /job $dry->{id}\.1 is over/ }), 'the end of a job is seen all the same');
kill 'HUP', $flooded->{pid};
ok(poll(10, sub { $flooded->log =~ /configuration read again/ }), 'a reload is heard');
is($flooded->stop, 0, 'and a stop');

# --- reload, stop, adopt
kill 'HUP', $m->{pid};
ok($m->await(qr/^(reload)/m), 'a reload is passed on');
{
	local $m->{workspaces} = "$m->{dir}/elsewhere";
	local $m->{user} = 'daemon';
	spew("$m->{dir}/slipway.conf", $m->conf, 0644);
}
kill 'HUP', $m->{pid};
ok(poll(10, sub { $m->log =~ /with a restart only/ }), 'what needs a restart is said');
my $stays = $m->job(repository => $repo, project => 17, dir => 'stays', steps => ['echo "at $SLIPWAY_WORKSPACE"']);
ok($m->started($stays), 'and has changed nothing: a job starts');
is($m->exited($stays), 0, 'and ends');
like(job_log($stays), qr{^at \Q$m->{workspaces}\E/stays$}m, 'where it would have before');
spew("$m->{dir}/slipway.conf", "[runner]\nslots = many\n", 0644);
kill 'HUP', $m->{pid};
ok(poll(10, sub { $m->log =~ /stays as it was/ }), 'a broken configuration changes nothing');
is($m->stop, 0, 'the monitor ends on TERM');
ok($m->await(qr/^(stop)/m), 'after telling the dispatcher');
ok(!defined job_end($calm), 'the job runs on');
my $heir = Slipway::Monitor->start(dir => $m->{dir});
like($heir->log, qr/job $calm->{id}\.1 is adopted/, 'the next monitor adopts it');
if (is_root()) {
	my $busy = $heir->job(repository => $repo, project => 13, dir => 'calm', steps => ['true']);
	is($heir->refused($busy), '1 0', 'its account stays busy');
}
spew("$m->{workspaces}/go", '');
ok(poll(20, sub { defined job_end($calm) }), 'it ends');
is(scalar job_end($calm), 'success -', 'well');
ok(defined $heir->exited($calm), 'which is told');
ok(poll(10, sub { !-e "$m->{workspaces}/.home/$calm->{id}.1" }), 'and its home is removed');

# --- a step that stops its own job stops no time limit
my $stopper = 'kill -STOP $PPID && echo stopped; echo up; sleep 604';
my $stopped = $heir->job(repository => $repo, project => 13, dir => 'thirteen', timeout => 5, steps => [$stopper]);
ok($heir->started($stopped), 'a step stops its own job');
ok(defined $heir->exited($stopped, 30), 'the job ends all the same');
like(join(' ', job_end($stopped)), qr/^failed timeout/, 'by its time limit');
unlike(job_log($stopped), qr/^stopped$/m, 'as root, it was never stopped') if is_root();

# --- the monitor is killed: jobs live; a kill reaches the adopted
my $adopted = $heir->job(repository => $repo, project => 14, dir => 'fourteen', steps => ['(setsid sleep 605 &) ; echo up; sleep 606']);
ok($heir->started($adopted) && poll(20, sub { job_log($adopted) =~ /^up$/m }), 'a job is running');
$heir->stop('KILL');
my $third = Slipway::Monitor->start(dir => $m->{dir});
like($third->log, qr/job $adopted->{id}\.1 is adopted/, 'it is adopted after a kill');
$third->command("kill $adopted->{id} 1");
ok(defined $third->exited($adopted), 'and ended when asked to');
is(procs_of($m->{uid_first} + 14), 0, 'all of it') if is_root();

my $gone;

# --- one of two monitors is killed: the other ends its jobs
my $two = Slipway::Monitor->start(conf => "[runner]\nworkspaces = $m->{workspaces}\n"
    . (is_root() ? "uid_first = $m->{uid_first}\n" : ''));
my $orphan = $third->job(repository => $repo, project => 18, dir => 'eighteen', steps => ['(setsid sleep 609 &) ; echo up; sleep 610']);
$gone = $third->started($orphan);
ok($gone && poll(20, sub { job_log($orphan) =~ /^up$/m }), 'a job is running');
$two->command("kill $orphan->{id} 1");
ok(defined $two->exited($orphan), 'another monitor does not have it');
ok(alive($gone), 'nor ends it, as long as there is one that does');
$third->stop('KILL');
$two->command("kill $orphan->{id} 1");
ok(poll(20, sub { $two->log =~ /job $orphan->{id}\.1 is over/ && !-e "$m->{workspaces}/.home/$orphan->{id}.1" }), 'then it does, and tidies up');
is(procs_of($m->{uid_first} + 18), 0, 'nothing of it is left') if is_root();
is($two->stop, 0, 'ends');
$third = Slipway::Monitor->start(dir => $m->{dir});

# --- everything was killed: the next start tidies up
my $reboot = $third->job(repository => $repo, project => 15, dir => 'fifteen', steps => ['(setsid sleep 607 &) ; echo up; sleep 608']);
$gone = $third->started($reboot);
ok($gone && poll(20, sub { job_log($reboot) =~ /^up$/m }), 'a job is running');
$third->stop('KILL');
kill 'KILL', $gone;
my $last = Slipway::Monitor->start(dir => $m->{dir});
ok(poll(20, sub { !-e "$m->{workspaces}/.home/$reboot->{id}.1" }), 'what was killed is tidied up');
is(procs_of($m->{uid_first} + 15), 0, 'and its strays ended') if is_root();
$last->stop;

done_testing();
