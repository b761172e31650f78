#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The configurations that the monitor rejects, the accounts it uses, --once, and
# that the monitor and the job link with hardly any library.

use strict;
use warnings;
use POSIX ();
use Test::More;
use Slipway::Monitor;
use Slipway::Spool;
use Slipway::Test;

my $runner = program('slipway-runner');
my $conf = tempdir() . '/slipway.conf';
sub check { my ($text) = @_; spew($conf, $text, 0644); return run_cmd($runner, '-c', $conf, '-n') }
my $drop = is_root() ? "user = nobody\n" : "privilege_drop = no\n";
note(is_root() ? 'as root' : 'without root');

my ($status, $out, $err) = check("[runner]\n$drop");
is($status, 0, 'a minimal configuration is valid');
like($out, qr/is valid/, '-n prints that the configuration is valid');
($status, $out) = run_cmd($runner, '-h');
is($status, 0, '-h succeeds');
like($out, qr/--once/, '-h prints the options');
($status, $out) = run_cmd($runner, '-V');
like($out, qr/^slipway-runner \d+\.\d+/, '-V prints the version');
for (['-x'], ['-c'], ['more'], ['--onc', 'x']) {
	($status) = run_cmd($runner, @$_);
	is($status >> 8, 64, "invalid arguments: @$_");
}

my @bad = (
	["[runner]\n${drop}slots = 257\n", qr/slots/],
	["[runner]\n${drop}spool = here\n", qr/spool/],
	["[runner]\n${drop}nothing = 1\n", qr/nothing/],
	is_root() ? (
		["[runner]\nprivilege_drop = no\nuser = nobody\n", qr/no step runs as root/],
		["[runner]\nuser = root\n", qr/root, but nothing may run as root/],
		["[runner]\nuser = no-such-user\n", qr/unknown account no-such-user/],
		["[runner]\n${drop}job_user = root\n", qr/job_user: root is root/],
		["[runner]\n${drop}uid_first = 65000\nuid_count = 1000\n",
		    qr/runner\.user: nobody has uid \d+, which is in the range/],
		["[runner]\n${drop}job_user = daemon\nuid_first = 1\nuid_count = 9\n",
		    qr/job_user: daemon has uid 1, which is in the range/],
		["[runner]\n${drop}uid_first = 1\nuid_count = 9\n[run_as]\nshop = daemon\n",
		    qr/run_as: daemon has uid 1, which is in the range/],
		["[runner]\n${drop}uid_first = 4294967000\nuid_count = 1000\n", qr/past the last/],
		["[runner]\n${drop}[run_as]\nshop = no-such-user\n", qr/run_as: unknown account/],
		["[runner]\n${drop}[run_as]\nshop = root\n", qr/run_as: root is root/],
		["[runner]\n${drop}[run_as]\n../x = nobody\n", qr/not a project directory/],
		["[runner]\n${drop}[run_as]\n" . join('', map { "p$_ = nobody\n" } 0 .. 256),
		    qr/run_as: at most 256 projects/],
	) : (
		["[runner]\n", qr/privilege_drop = no/],
		["[runner]\nprivilege_drop = yes\n", qr/privilege_drop = no/],
	),
);
for (@bad) {
	my ($text, $want) = @$_;
	my ($code, undef, $said) = check($text);
	isnt($code, 0, 'invalid configuration: ' . ($text =~ s/\n/, /gr));
	like($said, $want, "the error gives the reason: @{[$text =~ s/\n/, /gr]}");
}
# --- unusable directories: the monitor reports them and does not change them
{
	my $dir = tempdir() . '/folders';
	mkdir $dir or die "$dir: $!";
	chmod 0755, $dir or die;
	my $file = spew("$dir/file", 'keep me', 0644);
	mkdir "$dir/open" or die;
	chmod 0777, "$dir/open" or die;
	my @folders = (
		["spool = $file", qr{open \Q$file\E: Not a directory}],
		["spool = $file/spool", qr{make \Q$file\E/spool: Not a directory}],
		["workspaces = $file", qr{open \Q$file\E: Not a directory}],
		["workspaces = $dir/open",
		    qr{\Q$dir\E/open: must belong to uid \d+ and be writable only by it}],
	);
	if (is_root()) {
		for my $name (qw(spool workspaces)) {
			mkdir "$dir/$name.theirs" or die;
			chown((getpwnam 'daemon')[2, 3], "$dir/$name.theirs") or die;
		}
		push @folders,
		    ["spool = $dir/spool.theirs", qr{\Q$dir\E/spool\.theirs: must belong to nobody}],
		    ["workspaces = $dir/workspaces.theirs", qr{workspaces\.theirs: must belong to uid 0}];
	}
	my %there = ("spool = $dir/s\n" => 1, "workspaces = $dir/w\n" => 1);
	for (@folders) {
		my ($line, $want) = @$_;
		my ($name) = $line =~ /^(\w+)/;
		my $rest = join '', grep { !/^$name / } sort keys %there;
		spew($conf, "[runner]\n$drop$rest$line\n", 0644);
		my ($code, undef, $said) = run_cmd('timeout', 600, $runner, '-c', $conf);
		ok($code != 0 && $code >> 8 != 124, 'not started: ' . substr $line, 0, 80);
		like($said, $want, "the error gives the reason: @{[substr $line, 0, 80]}");
	}
	is(slurp($file), 'keep me', 'a file in place of a directory is left unchanged');
	is(sprintf('%04o', (stat "$dir/open")[2] & 07777), '0777',
	    'the mode of an unsafe directory is left unchanged');
	is((stat "$dir/spool.theirs")[4], (getpwnam 'daemon')[2],
	    "the owner of another account's directory is left unchanged") if is_root();
}
($status) = run_cmd($runner, '-c', tempdir() . '/none.conf', '-n');
isnt($status, 0, 'a missing configuration is rejected');
if (is_root()) {
	spew($conf, "[runner]\n$drop", 0666);
	($status, undef, $err) = run_cmd($runner, '-c', $conf, '-n');
	like($err, qr/belong to root/, 'a configuration that others may write is rejected');
	spew($conf, "[runner]\n$drop", 0644);
	chown 65534, 65534, $conf;
	($status, undef, $err) = run_cmd($runner, '-c', $conf, '-n');
	like($err, qr/belong to root/, 'a configuration that another account owns is rejected');
	unlink $conf;
	spew($conf, "[runner]\n$drop", 0644);
	($status) = run_cmd({ env => { SLIPWAY_RUNNER_SLOTS => 'many' } }, $runner, '-c', $conf, '-n');
	is($status, 0, 'root ignores SLIPWAY_RUNNER_SLOTS in the environment');
	($status) = run_cmd({ env => { SLIPWAY_DATABASE_PASSWORD_FILE => '/no/such' } }, $runner,
	    '-c', $conf, '-n');
	is($status, 0, 'root ignores secrets in the environment');
	spew($conf, "[runner]\n$drop" . "[database]\npassword_file = /no/such\n", 0644);
	($status) = run_cmd($runner, '-c', $conf, '-n');
	is($status, 0, 'the monitor does not read the database password');
	# directories that others may write to
	my $open = tempdir() . '/open';
	mkdir $open;
	chmod 0777, $open;
	spew($conf, "[runner]\n${drop}spool = " . tempdir() . "/sp\nworkspaces = $open\n", 0644);
	($status, undef, $err) = run_cmd($runner, '-c', $conf, '-d', '/bin/false', '--once');
	like($err, qr/writable only by it/, 'workspaces that others may write to are rejected');
}

# --- named accounts
my $repo = make_repo(tempdir() . '/repo.git');
SKIP: {
	my ($name) = grep { defined getpwnam $_ } qw(games daemon mail);
	skip 'needs root and another account', 4 if !is_root() || !$name;
	my @pw = getpwnam $name;
	my $mark = sprintf '.%06d', $$ % 1000000;
	my $m = Slipway::Monitor->start(conf => "[run_as]\nspecial = $name\n");
	my $bystander = fork;
	if (!$bystander) {
		POSIX::setgid($pw[3]);
		POSIX::setuid($pw[2]);
		exec 'sleep', '6000';
	}
	my $job = $m->job(repository => $repo, dir => 'special',
		steps => ["id -u; id -G; (setsid sleep 55$mark &)"]);
	ok($m->started($job),
	    'a project with its own account starts, though the account has other processes');
	is($m->exited($job), 0, 'a job under a named account ends');
	like(job_log($job), qr/^$pw[2]\n$pw[3]/m, 'a job under a named account runs as that account');
	ok(kill(0, $bystander), 'processes of a named account that are not of its job survive');
	is(scalar(grep { /sleep 55\Q$mark\E/ } `ps -o args= -u $name`), 0,
	    'a job under a named account leaves no process');
	kill 'KILL', $bystander;
	waitpid $bystander, 0;
	$m->stop;
	my $all = Slipway::Monitor->start(conf => "[runner]\njob_user = $name\n");
	$job = $all->job(repository => $repo, dir => 'any', steps => ['id -u']);
	is($all->exited($job), 0, 'a job under job_user ends');
	like(job_log($job), qr/^$pw[2]$/m, 'a job runs as job_user');
	$all->stop;
	# an account that does not own the existing files
	my $changed = Slipway::Monitor->start(dir => $all->{dir}, conf => '');
	$job = $changed->job(repository => $repo, dir => 'any', steps => ['id -u']);
	is((split / /, $changed->refused($job))[0], 3,
	    'a workspace that belongs to another account is rejected');
	like($changed->log, qr/belongs to uid $pw[2].*chown/, 'the log says how to change the owner');
	$changed->stop;
}

# --- the workspace of a deleted project
SKIP: {
	skip 'needs root', 8 if !is_root();
	my $m = Slipway::Monitor->start;
	my $old = $m->job(repository => $repo, dir => 'again', project => 8,
	    steps => ['until [ -e ../go ]; do sleep 0.1; done; id -u; echo old >left']);
	ok($m->started($old), 'a job of the first project is started');
	my $early = $m->job(repository => $repo, dir => 'again', project => 9, steps => ['id -u']);
	is((split / /, $m->refused($early))[0], 1,
	    'a second project waits for the directory while the job runs');
	spew("$m->{workspaces}/go", '');
	is($m->exited($old), 0, 'the job of the first project ends');
	my $new = $m->job(repository => $repo, dir => 'again', project => 9, steps => ['id -u; ls']);
	is($m->exited($new), 0, 'the second project gets the directory');
	like(job_log($new), qr/^@{[$m->{uid_first} + 9]}\nfile$/m,
	    'the second project gets no file of the first');
	is_deeply([map { s{.*/}{}r } glob "$m->{workspaces}/.left/*/left"], ['left'],
	    'the files of the first project are kept elsewhere');
	my $in = $m->job(repository => $repo, dir => 'again/in', project => 10, steps => ['id -u']);
	is($m->exited($in), 0, 'a third project gets a subdirectory');
	like(job_log($in), qr/^@{[$m->{uid_first} + 10]}$/m,
	    'the job of the third project runs under its own account');
	$m->stop;
}

# --- once
my $m = Slipway::Monitor->start(args => ['--once']);
like(($m->out =~ /^up.*$/m)[0] && $m->out, qr/--once/, '--once is passed on to the dispatcher');
my $job = $m->job(repository => $repo, dir => 'once', steps => ['echo up; sleep 1; echo done']);
ok($m->started($job), 'a job is started with --once');
$m->command('exit 0');
my $code = poll(20, sub { waitpid($m->{pid}, POSIX::WNOHANG()) == $m->{pid} ? [$?] : undef });
is($code && $code->[0], 0, 'with --once the monitor exits after its dispatcher');
like(job_log($job), qr/^done$/m, 'with --once the monitor waits for the job');

# --- without the executable of the job
my $broken = Slipway::Monitor->start;
my $dead = tempdir() . '/no-such-job';
$broken->stop;
$broken->{args} = ['-j', $dead];
$broken->run;
$job = $broken->job(repository => $repo, dir => 'broken', steps => ['true']);
is($broken->refused($job), '4 ' . POSIX::ENOENT(), 'a job whose executable is missing is rejected');
ok(!-e "$broken->{workspaces}/.home/$job->{id}.1", 'a job whose executable is missing leaves no home');
$broken->stop;

# --- linked libraries
for my $name (qw(slipway-runner slipway-job)) {
	my @needed = `readelf -d '@{[program($name)]}'` =~ /NEEDED.*\[(.*?)\]/g;
	is_deeply([grep { !/^lib(?:c|bsd|asan|ubsan|gcc_s|m|md)\.so|^ld-linux/ } @needed], [],
	    "$name links with libc and libbsd alone");
	my @symbols = `nm -u '@{[program($name)]}'`;
	is_deeply([grep { /mysql|cJSON|curl|sodium|FCGX|deflate|getaddrinfo|gethostby/ } @symbols], [],
	    "$name has no symbol of a database, JSON or network library");
}

done_testing();
