#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments that a dispatcher claimed before it died: returned to the queue if
# certainly no line of them ran, otherwise interrupted.

use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock :seek);
use POSIX qw(mkfifo);
use Slipway::DB;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => "[runner]\nslots = 4\n");
my $spool = $runner->{spool};
my $project = $runner->project;
my $boot = slurp('/proc/sys/kernel/random/boot_id');
chomp $boot;

# The names of the dispatchers with files in the spool.
sub owners { return map { m{owner\.([0-9a-f]{32})$} ? $1 : () } glob "$spool/owner.*" }
sub give { my (@paths) = @_; chown((getpwnam 'nobody')[2, 3], @paths) if is_root(); return }
# Whether one dispatcher runs, and no file of a dead one is left: another starts only
# after a while, and a runner that stops before leaves them.
sub is_alone {
	my @owners = owners();
	return 0 if @owners != 1 || !open my $file, '<', "$spool/owner.$owners[0]";
	return !flock $file, LOCK_SH | LOCK_NB;
}
# A deployment that this owner holds and that has no directory.  It is never pending: a
# dispatcher could claim it.
sub held {
	my ($owner, $name) = @_;
	my $project = $runner->project;
	$name ||= $runner->{name};
	my $id = $db->sql('START TRANSACTION; INSERT INTO deployment (project_id, pipeline_id, branch,'
	    . ' `trigger`, env_vars, status, epoch, owner, runner, lease_until, started_at)'
	    . " VALUES ($project, $project, 'main', 'manual', '{}', 'running', 1, '$owner', '$name',"
	    . ' NOW(3) + INTERVAL 1 HOUR, NOW(3)); SET @id = LAST_INSERT_ID();'
	    . ' INSERT INTO deployment_step (deployment_id, position, name, script, run_when)'
	    . " VALUES (\@id, 0, 'step 0', 'echo it-runs', 'success'); COMMIT; SELECT \@id");
	return $id;
}
# A directory as a dispatcher creates it, with these changes.
sub directory {
	my ($id, %o) = @_;
	my $dir = "$spool/$id.1";
	mkdir $dir, 0700 or die "$dir: $!";
	my $of = defined $o{boot} ? $o{boot} : $boot;
	my %files = (keeper => "1 $of project1\n", log => '', result => '', lock => '', %o);
	delete $files{boot};
	spew("$dir/$_", $files{$_}, 0600) for keys %files;
	mkfifo("$dir/control", 0600) or die "mkfifo: $!";
	give($dir, glob "$dir/*");
	return $dir;
}
sub again {
	my ($id) = @_;
	return $runner->wait($id, undef, 60) . ' '
	    . ($runner->column($id, 'epoch') > 1 ? 'later' : 'at once');
}

# --- without a directory
ok(poll(20, sub { owners() == 1 }), 'a dispatcher has a file in the spool');
my ($me) = owners();
is(slurp("$spool/owner.$me"), $boot, 'the file has the boot id');
$runner->kill_all;
$db->sql("UPDATE deployment SET cancel_at = NULL");
my $id = held($me);
my $canceled = held($me);
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $canceled");
my $elsewhere = held($me, 'renamed since');
my $stranger = held('f' x 32);
$runner->resume;
is(again($id), 'success later', 'a deployment claimed by a dispatcher that died before the start runs');
like($runner->log($id), qr/^it-runs$/m, 'the deployment runs completely');
is($runner->wait($canceled), 'canceled', 'a claimed deployment with a cancel is canceled');
is(again($elsewhere), 'success later', 'a deployment claimed under another runner name runs');
ok(poll(30, sub { $runner->said =~ /runner \Q$runner->{name}\E: another runner has this name/ }),
    'the log reports a deployment of an unknown owner');
is($runner->status($stranger), 'running', 'a deployment of an unknown owner is left alone');
is((() = $runner->said =~ /another runner has this name/g), 1,
    'a deployment of an unknown owner is logged once');
$db->sql("UPDATE deployment SET lease_until = NOW(3) WHERE id = $stranger");
is(again($stranger), 'interrupted later',
    'a deployment of an unknown owner is interrupted when its lease expires');
ok(poll(10, sub { my @now = owners(); return @now == 1 && $now[0] ne $me }),
    'the file of the dead dispatcher is removed');

for (['of another boot', '00000000-0000-4000-8000-000000000000'], ['without a boot id', '-'],
    ['with an empty file', ''],
    ['with a long file', 'x' x 500]) {
	my ($what, $text) = @$_;
	($me) = owners();
	$runner->kill_all;
	spew("$spool/owner.$me", $text);
	$id = held($me);
	$runner->resume;
	is(again($id), 'interrupted at once', "a deployment of a dispatcher $what is interrupted");
	ok(poll(10, sub { my @now = owners(); return @now == 1 && $now[0] ne $me }),
	    "the file of a dispatcher $what is removed");
}

# --- with a directory
my %dirs = (
	'without a job' => [{}, 'success later'],
	'with a started job' => [{ lock => 'x' }, 'interrupted at once'],
	# its dispatcher decided that, and died before the queue knew
	'that was given up' => [{ lock => 'xx' }, 'success later'],
	'that was given up before a crash of the machine' =>
	    [{ lock => 'xx', boot => '00000000-0000-4000-8000-000000000000' }, 'success later'],
	'with a log' => [{ log => "a line\n" }, 'interrupted at once'],
	'with a result' => [{ result => "step-started 5\n0 1 0\n" }, 'interrupted at once'],
	'of another boot' => [{ boot => '00000000-0000-4000-8000-000000000000' }, 'interrupted at once'],
	'of an unknown boot' => [{ boot => '-' }, 'interrupted at once'],
	# a crash of the machine loses what was not synced
	'with an empty keeper' => [{ keeper => '' }, 'interrupted at once'],
	'with a keeper of zeros' => [{ keeper => "\0" x 48 }, 'interrupted at once'],
	'with an empty keeper and a result' => [{ keeper => '', lock => 'x',
		result => record('workspace', 'ready 0 17') . record('end', "success - 1760000000000\n") },
		'success at once'],
);
for my $what (sort keys %dirs) {
	my ($files, $how) = @{ $dirs{$what} };
	($me) = owners();
	$runner->kill_all;
	$id = held($me);
	directory($id, %$files);
	$runner->resume;
	is(again($id), $how, "a deployment with a directory $what: $how");
}
ok($runner->is_clean, 'deployments of dead dispatchers leave nothing behind');

# --- a dispatcher that decided, and is killed before it can write that
($me) = owners();
$runner->kill_all;
$id = held($me);
my $undecided = directory($id);
my $holder = $db->hold('SELECT id FROM project WHERE id = ' . $runner->column($id, 'project_id')
    . ' FOR UPDATE'); # its return to the queue waits for this
$runner->resume;
ok(poll(60, sub { -s "$undecided/lock" }), 'a dispatcher decides that a job never began');
$runner->kill_all;
$db->let_go($holder);
$runner->resume;
is(again($id), 'success later', 'a deployment whose dispatcher was killed after that: success later');

# --- with a result that a crash of the host damaged: [content, status]; a readable
# end counts, whatever happened to the steps
my $end = record('end', "success - 1760000000000\n");
my %results = (
	'that is complete' => [record('step-started', '0 1 0') . record('step-ended', '0 success 0 - 2 0')
	    . $end, 'success'],
	'that is not a record' => ["\0" x 4096, 'interrupted'],
	'that is longer than its length' => [record('step-started', '0 1 0') . "end 3\nsuccess\n",
	    'interrupted'],
	'that is truncated' => [substr($end, 0, -9), 'interrupted'],
	'with an invalid step-started' => [record('step-started', 'a 1 0') . $end, 'success'],
	'with an invalid step-ended' => [record('step-ended', '0 splendid 0 - 2 0') . $end,
	    'success'],
	'with an empty step-skipped' => [record('step-skipped', '') . $end, 'success'],
	'with an incomplete checkout' => [record('checked-out', 'main') . $end, 'interrupted'],
	'with an overlong record of objects' => [record('objects', '1' x 20_000) . $end, 'interrupted'],
	'with an invalid workspace' => [record('workspace', 'gone - 1') . $end, 'interrupted'],
	'with an invalid end' => [record('end', "splendid - 1\n"), 'interrupted'],
	'that is too large' => [record('step-started', '0 1 0') x 1_200_000 . $end, 'interrupted'],
);
for my $what (sort keys %results) {
	my ($text, $how) = @{ $results{$what} };
	($me) = owners();
	$runner->kill_all;
	$id = held($me);
	directory($id, lock => 'x', log => "a line\n", result => $text);
	$runner->resume;
	is(again($id), "$how at once", "a result $what: $how");
	is($runner->column($id, 'reason'), 'runner_lost', "a result $what: the reason is runner_lost")
	    if $how ne 'success';
	is($runner->log($id), "a line\n", "a result $what: the log is stored");
}
is($runner->wait($runner->deploy($project, 'true')), 'success',
    'a deployment succeeds after damaged results');
ok($runner->is_clean, 'damaged results leave nothing behind');

# --- a lasting fault is logged once, when it changes, and when it is over
my @spare;
sub lines { my ($re) = @_; return scalar(grep { $_ =~ $re } split /\n/, $runner->said) }
# Makes the dispatcher read the spool several times: it finds another directory each time.
sub looks {
	for my $other (splice @spare, 0, $_[0]) {
		directory($other);
		poll(60, sub { $runner->said =~ /\b$other\.1: adopted/ }) or return 0;
	}
	return 1;
}
$runner->stop;
my ($odd, $blind) = map { held('e' x 32) } 1, 2;
@spare = map { held('e' x 32) } 1 .. 5;
$runner->resume;
my $odd_dir = directory($odd, keeper => "nothing\n");
ok(poll(30, sub { lines(qr{\] $odd\.1: .*keeper is malformed$}) }), 'a malformed keeper is logged');
ok(looks(3), 'the dispatcher reads the spool again');
is(lines(qr{\] $odd\.1: }), 1, 'a malformed keeper is logged once');
unlink "$odd_dir/lock" or die;
spew("$odd_dir/keeper", "1 $boot project1\n");
ok(poll(30, sub { lines(qr{\] $odd\.1: .*No such file}) }), 'another fault of the deployment is logged');
ok(looks(2), 'the dispatcher reads the spool again');
is(lines(qr{\] $odd\.1: }), 2, 'the other fault is logged once');
spew("$odd_dir/lock", 'x', 0600);
give("$odd_dir/lock");
ok(poll(30, sub { lines(qr{\] $odd\.1: recovered$}) }), 'the end of the faults is logged');
is($runner->wait($odd), 'interrupted', 'the deployment is interrupted after the faults');

# an unreadable log of a live job
my $blind_dir = "$spool/../blind";
mkdir $blind_dir, 0700 or die "$blind_dir: $!";
mkdir "$blind_dir/log", 0700 or die "log: $!";
spew("$blind_dir/$_->[0]", $_->[1], 0600) for ['keeper', "1 $boot project1\n"], ['lock', 'x'], ['result', ''];
mkfifo("$blind_dir/control", 0600) or die "mkfifo: $!";
give($blind_dir, glob "$blind_dir/*");
open my $lock, '+<', "$blind_dir/lock" or die "lock: $!";
my $whole = pack 's s l! l! i', F_WRLCK, SEEK_SET, 0, 0, 0;
fcntl $lock, F_SETLK, $whole or die "lock: $!";
rename $blind_dir, "$spool/$blind.1" or die "rename: $!";
ok(poll(30, sub { lines(qr{\] $blind\.1/log: read: Is a directory$}) }), 'an unreadable log is logged');
my $renewed = $runner->column($blind, 'lease_until');
ok(poll(60, sub { $runner->column($blind, 'lease_until') gt $renewed }),
    'the deployment is renewed with an unreadable log');
is(lines(qr{\] $blind\.1/log: read: Is a directory$}), 1, 'an unreadable log is logged once');
close $lock;
is($runner->wait($blind), 'interrupted', 'the deployment is interrupted when its job ends');
rmdir for glob "$spool/{,old.}$blind.1/log";

# --- a job that starts after it was given up
my $late = spool_make(steps => ['echo it-runs']);
spew("$late->{dir}/lock", 'x', 0600);
my $job = job_run(spool => $late);
isnt($job->{status}, 0, 'a job that was given up does not start');
is(job_log($job) . slurp("$late->{dir}/result"), '', 'a job that was given up writes nothing');
$job = job_run(steps => ['echo it-runs']);
is(-s "$job->{dir}/lock", 1, 'a job that starts marks its lock');

# --- a dispatcher that is killed at random: each deployment runs once
my $marks = tempdir() . '/marks';
mkdir $marks or die;
chmod 0777, $marks or die;
my @projects = map { $runner->project } 1 .. 8;
my @ids =
    $runner->deploy_many(map { [$projects[$_ % 8], "echo ran >>$marks/\$SLIPWAY_DEPLOYMENT_ID"] } 1 .. 48);
my $kills = 0;
poll(60, sub {
	my $pid = $runner->dispatcher;
	sleep rand 0.25;
	$kills++ if defined $pid && kill 'KILL', $pid;
	return $kills >= 7;
});
ok(poll(90, sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") == 0 }),
    "all deployments end, though the dispatcher was killed $kills times");
is($db->sql("SELECT GROUP_CONCAT(DISTINCT status) FROM deployment WHERE id >= $ids[0]"),
    'success', 'all deployments succeed, though the dispatcher was killed');
is_deeply([grep { slurp("$marks/$_") ne "ran\n" } @ids], [],
    'each deployment runs once, though the dispatcher was killed');
ok(poll(10, sub { !grep { m{/\d+\.\d+$} } glob "$spool/*" }), 'the deployments leave nothing behind');
ok(poll(40, \&is_alone), 'the files of dead dispatchers are removed');
is($runner->stop, 0, 'the runner stops');
is(scalar(owners()), 0, 'the dispatcher removes its file');

# --- claims whose response was lost: the dispatcher looks for them when the database
# is back and for a while afterwards, however long the poll interval is
# Stops the database under an idle dispatcher, and waits until it notices.  Whatever it
# queries first reports the outage; the later ones are silent.
sub outage {
	ok(poll(10, sub { !grep { m{/\d+\.\d+$} } glob "$spool/*" }), 'the dispatcher is idle');
	my $said = length $runner->said;
	$db->stop;
	$runner->ring;
	ok(poll(20, sub { substr($runner->said, $said) =~ /slipway-dispatch\S+ [^:]+: .*(?:connect|lost)/i }),
	    'the dispatcher queries the database while it is down');
	return;
}
# Stops a process while it waits, not while it works.
sub pause {
	my ($pid) = @_;
	poll(30, sub { (slurp("/proc/$pid/stat") || '') =~ /\) S / });
	kill STOP => $pid;
	return;
}
$runner->write_conf("[runner]\npoll = 3600\nlease = 45\n");
$runner->resume;
ok(poll(20, \&is_alone), 'the runner starts');
($me) = owners();
$id = $runner->deploy($runner->project, 'true');
is($runner->wait($id), 'success', 'a deployment succeeds');
$id = held($me);
outage();
$db->resume;
is(again($id), 'success later', 'a deployment claimed meanwhile is returned to the queue and runs');
$id = held($me);
is(again($id), 'success later', 'a deployment claimed a moment later is returned to the queue and runs');
is($runner->stop, 0, 'the runner stops');
is(scalar(owners()), 0, 'the dispatcher removes its file');
# A dispatcher that stops while a claim is in doubt queries once more.  The claim appears
# while the dispatcher stands still, or it could return and claim it before it stops.
$runner->resume;
ok(poll(20, \&is_alone), 'the runner starts');
($me) = owners();
is($runner->wait($runner->deploy($runner->project, 'true')), 'success', 'a deployment succeeds');
outage();
my $waits = $runner->dispatcher;
pause($waits);
$db->resume;
$id = held($me);
sleep 2.5; # all pauses are over when it continues, to stop at once
kill TERM => $runner->pid, $waits;
kill CONT => $waits;
is($runner->stop, 0, 'the runner stops');
is($runner->column($id, "CONCAT_WS(' ', status, epoch)"), 'pending 2',
    'a deployment that may have been claimed is back in the queue');
is(scalar(owners()), 0, 'the dispatcher removes its file');
done_testing;
