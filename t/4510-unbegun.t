#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a dispatcher has claimed and dies before it ran: put back where it is
# certain that no line of it ran, else interrupted.

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

# The names of the dispatchers whose files lie in the spool.
sub owners { return map { m{owner\.([0-9a-f]{32})$} ? $1 : () } glob "$spool/owner.*" }
sub give { my (@paths) = @_; chown((getpwnam 'nobody')[2, 3], @paths) if is_root(); return }
# Whether one is at work, and no file of a dead one lies beside its own: another
# is started after a while only, and who stops the runner before leaves them.
sub is_alone {
	my @owners = owners();
	return 0 if @owners != 1 || !open my $file, '<', "$spool/owner.$owners[0]";
	return !flock $file, LOCK_SH | LOCK_NB;
}
# A deployment that this owner holds, of which no directory is there.
sub held {
	my ($owner, $name) = @_;
	my $id = $runner->deploy($runner->project, 'echo it-runs');
	$db->sql("UPDATE deployment SET status = 'running', epoch = 1, owner = '$owner', runner = '" . ($name || $runner->{name})
	    . "', lease_until = NOW(3) + INTERVAL 1 HOUR, started_at = NOW(3) WHERE id = $id");
	return $id;
}
# A directory as a dispatcher makes it, with what is different.
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
sub again { my ($id) = @_; return $runner->wait($id, undef, 60) . ' ' . ($runner->column($id, 'epoch') > 1 ? 'later' : 'at once') }

# --- without a directory
ok(poll(20, sub { owners() == 1 }), 'a dispatcher has a file in the spool');
my ($me) = owners();
is(slurp("$spool/owner.$me"), $boot, 'with the boot');
$runner->kill_all;
$db->sql("UPDATE deployment SET cancel_at = NULL");
my $id = held($me);
my $canceled = held($me);
$db->sql("UPDATE deployment SET cancel_at = NOW(3) WHERE id = $canceled");
my $elsewhere = held($me, 'renamed since');
my $stranger = held('f' x 32);
$runner->resume;
is(again($id), 'success later', 'claimed by one who died before it asked: it runs after all');
like($runner->log($id), qr/^it-runs$/m, 'all of it');
is($runner->wait($canceled), 'canceled', 'one that was to be canceled is canceled');
is(again($elsewhere), 'success later', 'whatever name the runner had then');
ok(poll(30, sub { $runner->said =~ /runner \Q$runner->{name}\E: another runner has this name/ }), 'claimed by one of whom nothing is known: the log says so');
is($runner->status($stranger), 'running', 'it is left alone');
is((() = $runner->said =~ /another runner has this name/g), 1, 'which is said once');
$db->sql("UPDATE deployment SET lease_until = NOW(3) WHERE id = $stranger");
is(again($stranger), 'interrupted later', 'until its lease is over');
ok(poll(10, sub { my @now = owners(); return @now == 1 && $now[0] ne $me }), 'the dead one is forgotten');

for (['of another boot', '00000000-0000-4000-8000-000000000000'], ['that does not say', '-'], ['without a boot', ''],
    ['that says too much', 'x' x 500]) {
	my ($what, $text) = @$_;
	($me) = owners();
	$runner->kill_all;
	spew("$spool/owner.$me", $text);
	$id = held($me);
	$runner->resume;
	is(again($id), 'interrupted at once', "one $what: interrupted");
	ok(poll(10, sub { my @now = owners(); return @now == 1 && $now[0] ne $me }), 'and forgotten');
}

# --- with a directory
my %dirs = (
	'that nobody has begun' => [{}, 'success later'],
	'that a job has begun' => [{ lock => 'x' }, 'interrupted at once'],
	'with a log' => [{ log => "a line\n" }, 'interrupted at once'],
	'with a result' => [{ result => "step-started 5\n0 1 0\n" }, 'interrupted at once'],
	'of another boot' => [{ boot => '00000000-0000-4000-8000-000000000000' }, 'interrupted at once'],
	'of a boot that is not known' => [{ boot => '-' }, 'interrupted at once'],
);
for my $what (sort keys %dirs) {
	my ($files, $how) = @{ $dirs{$what} };
	($me) = owners();
	$runner->kill_all;
	$id = held($me);
	directory($id, %$files);
	$runner->resume;
	is(again($id), $how, "a directory $what: $how");
}
ok($runner->is_clean, 'nothing is left');

# --- with a result that a crash of the host has spoilt: [what it holds, what
# comes of it]; an end that can be read counts, whatever became of the steps
my $end = record('end', "success - 1760000000000\n");
my %results = (
	'as it should be' => [record('step-started', '0 1 0') . record('step-ended', '0 success 0 - 2 0') . $end, 'success'],
	'that is no record' => ["\0" x 4096, 'interrupted'],
	'that is longer than it says' => [record('step-started', '0 1 0') . "end 3\nsuccess\n", 'interrupted'],
	'that is cut' => [substr($end, 0, -9), 'interrupted'],
	'with a start of no step' => [record('step-started', 'a 1 0') . $end, 'success'],
	'with an end of a step that cannot be' => [record('step-ended', '0 splendid 0 - 2 0') . $end, 'success'],
	'that skips no step' => [record('step-skipped', '') . $end, 'success'],
	'of a checkout of nothing' => [record('checked-out', 'main') . $end, 'interrupted'],
	'with objects that are no number' => [record('objects', '-1') . $end, 'interrupted'],
	'of a workspace that is none' => [record('workspace', 'gone - 1') . $end, 'interrupted'],
	'with an end that cannot be' => [record('end', "splendid - 1\n"), 'interrupted'],
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
	is($runner->column($id, 'reason'), 'runner_lost', '  and why') if $how ne 'success';
	is($runner->log($id), "a line\n", '  with all of its log');
}
is($runner->wait($runner->deploy($project, 'true')), 'success', 'the runner goes on');
ok($runner->is_clean, 'nothing is left of them');

# --- what is wrong for long is said once, and when it changes, and when it is over
my @spare;
sub lines { my ($re) = @_; return scalar(grep { $_ =~ $re } split /\n/, $runner->said) }
# as many looks at the spool: something else is found by the last
sub looks {
	for my $other (splice @spare, 0, $_[0]) {
		directory($other);
		poll(60, sub { $runner->said =~ /\b$other\.1: is adopted/ }) or return 0;
	}
	return 1;
}
$runner->stop;
my ($odd, $blind) = map { held('e' x 32) } 1, 2;
@spare = map { held('e' x 32) } 1 .. 5;
$runner->resume;
my $odd_dir = directory($odd, keeper => "nothing\n");
ok(poll(30, sub { lines(qr{\] $odd\.1: .*keeper is malformed$}) }), 'a keeper that is malformed is told');
ok(looks(3), 'it is looked at again and again');
is(lines(qr{\] $odd\.1: }), 1, 'but told once');
unlink "$odd_dir/lock" or die;
spew("$odd_dir/keeper", "1 $boot project1\n");
ok(poll(30, sub { lines(qr{\] $odd\.1: .*No such file}) }), 'another fault of it is told');
ok(looks(2), 'while that lasts');
is(lines(qr{\] $odd\.1: }), 2, 'once, too');
spew("$odd_dir/lock", 'x', 0600);
give("$odd_dir/lock");
ok(poll(30, sub { lines(qr{\] $odd\.1: all is well again$}) }), 'as is its end');
is($runner->wait($odd), 'interrupted', 'and it is settled');

# a log that cannot be read, of a job that lives
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
ok(poll(30, sub { lines(qr{\] $blind\.1/log: read: Is a directory$}) }), 'a log that cannot be read is told');
my $renewed = $runner->column($blind, 'lease_until');
ok(poll(60, sub { $runner->column($blind, 'lease_until') gt $renewed }), 'while it goes on');
is(lines(qr{\] $blind\.1/log: read: Is a directory$}), 1, 'once');
close $lock;
is($runner->wait($blind), 'interrupted', 'until it ends');
rmdir for glob "$spool/{,old.}$blind.1/log";

# --- a job that comes late
my $late = spool_make(steps => ['echo it-runs']);
spew("$late->{dir}/lock", 'x', 0600);
my $job = job_run(spool => $late);
isnt($job->{status}, 0, 'a job that was given up does not begin');
is(job_log($job) . slurp("$late->{dir}/result"), '', 'it says and does nothing');
$job = job_run(steps => ['echo it-runs']);
is(-s "$job->{dir}/lock", 1, 'one that begins says so');

# --- for real: each ran once, whenever the dispatcher was killed
my $marks = tempdir() . '/marks';
mkdir $marks or die;
chmod 0777, $marks or die;
my @projects = map { $runner->project } 1 .. 8;
my @ids = $runner->deploy_many(map { [$projects[$_ % 8], "echo ran >>$marks/\$SLIPWAY_DEPLOYMENT_ID"] } 1 .. 48);
my $kills = 0;
poll(60, sub {
	my $pid = $runner->dispatcher;
	sleep rand 0.25;
	$kills++ if defined $pid && kill 'KILL', $pid;
	return $kills >= 7;
});
ok(poll(90, sub { $db->sql("SELECT COUNT(*) FROM deployment WHERE status IN ('pending', 'running')") == 0 }),
    "all end, though the dispatcher was killed $kills times");
is($db->sql("SELECT GROUP_CONCAT(DISTINCT status) FROM deployment WHERE id >= $ids[0]"), 'success', 'with success');
is_deeply([grep { slurp("$marks/$_") ne "ran\n" } @ids], [], 'each ran once');
ok(poll(10, sub { !grep { m{/\d+\.\d+$} } glob "$spool/*" }), 'nothing is left');
ok(poll(40, \&is_alone), 'and the dead are forgotten');
is($runner->stop, 0, 'ends');
is(scalar(owners()), 0, 'and takes its file away');

# --- claims whose answer was lost: looked for when the database is back, and
# for a while after that, however seldom the queue is looked at
$runner->write_conf("[runner]\npoll = 3600\nlease = 45\n");
$runner->resume;
ok(poll(20, \&is_alone), 'starts');
($me) = owners();
$id = $runner->deploy($runner->project, 'true');
is($runner->wait($id), 'success', 'works');
sub held_silently { local $runner->{wake} = '/nowhere'; return held($me) }
$id = held_silently();
$db->stop;
$runner->ring;
ok(poll(20, sub { $runner->said =~ /\] claim: / }), 'asks the database that is away');
$db->resume;
is(again($id), 'success later', 'what was claimed meanwhile is put back, and runs');
$id = held_silently();
is(again($id), 'success later', 'as is what arrives late');
is($runner->stop, 0, 'ends');
is(scalar(owners()), 0, 'and leaves nothing in doubt');
# one that is told to end while it is in doubt looks once more
$runner->resume;
ok(poll(20, \&is_alone), 'starts');
($me) = owners();
is($runner->wait($runner->deploy($runner->project, 'true')), 'success', 'works');
my $said = length $runner->said;
$id = held_silently();
$db->stop;
$runner->ring;
ok(poll(20, sub { substr($runner->said, $said) =~ /\] claim: / }), 'is in doubt');
my $waits = $runner->dispatcher;
kill STOP => $waits;
$db->resume;
sleep 2.5; # all pauses are over when it goes on, to end at once
kill TERM => $runner->pid, $waits;
kill CONT => $waits;
is($runner->stop, 0, 'ends');
is($runner->column($id, "CONCAT_WS(' ', status, epoch)"), 'pending 2', 'what it may have claimed is back on the queue');
is(scalar(owners()), 0, 'and nothing is in doubt');
done_testing;
