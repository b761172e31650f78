#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# End to end with a repository of some thousand files and a client that knows only
# the REST interface.

use strict;
use warnings;
use File::Path qw(make_path);
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(time);

my $all = Slipway::Whole->start(runner => "[runner]\npoll = 60\n");
my ($api, $runner) = ($all->api, $all->runner);

# --- a repository
my $repo = tempdir() . '/repository';
my %identity = (GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_SYSTEM => '/dev/null',
	map { ("GIT_$_" . '_NAME' => 'A', "GIT_$_" . '_EMAIL' => 'a@example.org') } qw(AUTHOR COMMITTER));
sub git {
	my ($status, $out, $err) = run_cmd({ env => \%identity, cwd => $repo }, 'git', @_);
	die "git @_: $out$err" if $status != 0;
	chomp $out;
	return $out;
}
sub commit {
	my ($message, %files) = @_;
	for my $name (keys %files) {
		make_path("$repo/$1") if $name =~ m{^(.*)/};
		spew("$repo/$name", $files{$name});
	}
	git('add', '-A');
	git('commit', '-q', '-m', $message);
	return git('rev-parse', 'HEAD');
}
make_path($repo);
git('init', '-q', '-b', 'main');
my %files = map { (sprintf('part%02d/group%d/deep/er/file%d.txt', $_ % 40, $_ % 7,
    $_) => "text $_\n" x (1 + $_ % 30)) } 1 .. 3200;
my $first = commit("all of it\n\nwith a body", %files, 'version' => "1\n");
git('checkout', '-q', '-b', 'feature/two');
my $feature = commit('on a branch', version => "feature\n");
git('checkout', '-q', 'main');
my $second = commit("second \x{c3}\x{a4}\n\nmore about it", version => "2\n");

my $project = $all->project($repo);
my $secret = 'kr8.Zu+ql/vm=77pq';
sub workspace { return $api->get("/api/projects/$_[0]")->{json}{workspaceStatus} }
is(workspace($project)->{status}, 'not_created', 'a new project has no workspace');

# --- from pending to its end, watched
my $blocked = tempdir() . '/blocked';
my $gate = tempdir() . '/gate';
my $holds = $all->pipeline($project, "until test -e $blocked; do sleep 0.1; done");
my $lines = 30;
my $watched = $all->pipeline($project,
    'find . -name "*.txt" | wc -l; cat version',
    "n=0; until test -e $gate; do echo \"at \$EPOCHREALTIME\"; n=\$((n+1)); sleep 0.1; done; "
        . 'echo "lines $n"',
    { name => 'breaks', script => 'printf "no line end"; exit 7' },
    { script => 'echo never' },
    { name => 'repairs', script => 'echo repaired', runWhen => 'failure' },
    { name => 'killed', script => 'kill -KILL $$', runWhen => 'always' });
my $before = $all->post(projectId => $project, pipelineId => $holds);
$all->wait($before, qr/^running$/);
my $id = $all->post(projectId => $project, pipelineId => $watched);
my $now = $all->show($id);
is($now->{status}, 'pending', 'a deployment behind another is pending');
is($now->{queuePosition}, 0, 'a deployment behind another is next in the queue') or diag(explain($now));
is($now->{commitHash}, undef, 'a pending deployment has no commit');
is($all->log($id), '', 'a pending deployment has no log');
spew($blocked, '');
is($all->wait($before)->{status}, 'success', 'the first deployment succeeds');
is($all->wait($id, qr/^running$/)->{status}, 'running', 'the next deployment of the project runs');
# until they have been read soon for a while: the machine may be slow for some minutes
my ($text, $seen_running, $median, @ages) = ('', 0);
my $end = time + 600;
poll(1200, sub {
	my $got = $api->get("/api/deployments/$id/log?wait=5&offset=" . length $text);
	my $read = time;
	push @ages, map { 1000 * ($read - $_) } $got->{body} =~ /^at ([\d.]+)$/mg;
	$text .= $got->{body};
	my @last = sort { $a <=> $b } @ages >= $lines ? @ages[-$lines .. -1] : ();
	$median = $last[$lines / 2] if @last && !-e $gate;
	if (@last && !-e $gate && ($median < 1000 || time > $end)) {
		$seen_running = $all->show($id)->{steps}[1]{status} eq 'running';
		spew($gate, '');
	}
	return $got->{headers}{'x-log-complete'} eq 'true';
});
ok($seen_running, 'lines of a step are read while it runs');
is(scalar @ages, ($text =~ /^lines (\d+)$/m)[0], 'each line is read once');
diag(sprintf 'from write to reader, of at most 250 ms: median %.0f ms', $median);
cmp_ok($median, '<', 1000, 'a line is read soon');
is($all->wait($id)->{status}, 'failed', 'the deployment fails');
is($text, $all->log($id), 'the parts make up the log');
$now = $all->show($id);
is($now->{reason}, 'step_failed', 'the deployment has the reason step_failed');
is($now->{logSize}, length $text, 'logSize is the size of the log');
is($now->{commitHash}, $second, 'the deployment has its commit');
is($now->{commitMessage}, "second \x{e4}\n\nmore about it", 'the deployment has its commit message');
is($now->{branch}, 'main', 'the deployment has its branch');
my @steps = @{ $now->{steps} };
is(join(' ', map { $_->{status} } @steps), 'success success failed skipped success failed',
    'each step has its status');
is(join(' ', map { defined $_->{exitCode} ? $_->{exitCode} : '-' } @steps), '0 0 7 - 0 -',
    'each step has its exit code');
is(join(' ', map { defined $_->{signal} ? $_->{signal} : '-' } @steps), '- - - - - 9',
    'a killed step has its signal');
my @parts = map { defined $_->{logOffset} ? substr $text, $_->{logOffset}, $_->{logLength} : undef } @steps;
is($parts[0], "3200\n2\n", 'the log position selects the output of the first step, which sees every file');
like($parts[1], qr/\A(?:at [\d.]+\n){$lines,}lines \d+\n\z/,
    'the log position selects the output of the second step');
like($parts[2], qr/\Ano line end\n?\z/, 'the log position selects output without a line end');
is($parts[3], undef, 'a skipped step has no output');
is($parts[4], "repaired\n", 'the log position selects the output after a skipped step');
is($parts[5], '', 'the log position selects empty output');
for my $n (0, 1, 4) {
	my $range = sprintf 'bytes=%d-%d', $steps[$n]{logOffset},
	    $steps[$n]{logOffset} + $steps[$n]{logLength} - 1;
	my $got = $api->get("/api/deployments/$id/log", { Range => $range });
	is("$got->{status} $got->{body}", "206 $parts[$n]", "a range request returns the output of step $n");
}
my @times = map { $now->{$_} } qw(createdAt startedAt finishedAt);
is("@times", join(' ', sort @times), 'createdAt, startedAt and finishedAt are in order');
my $space = workspace($project);
is("$space->{status} $space->{branch} $space->{commitHash}", "ready main $second",
    'the workspace is ready at the commit');
ok(!$space->{dirty} && $space->{sizeBytes} > 500_000, 'the workspace is clean and has a size')
    or diag(explain($space));

# --- branches and commits
my $says = $all->pipeline($project,
    'cat version; echo "$SLIPWAY_BRANCH $SLIPWAY_COMMIT"; git status --porcelain | wc -l');
sub said {
	my (%how) = @_;
	my $n = $all->post(projectId => $project, pipelineId => $says, %how);
	my $end = $all->wait($n);
	return $end->{status} eq 'success' ? substr $all->log($n), $end->{steps}[0]{logOffset},
	    $end->{steps}[0]{logLength}
	    : "$end->{status} $end->{reason}";
}
is(said(branch => 'feature/two'), "feature\nfeature/two $feature\n0\n", 'a branch is deployed');
is(said(commitHash => $first), "1\nmain $first\n0\n", 'a commit is deployed');
is(said(commitHash => substr $first, 0, 10), "1\nmain $first\n0\n", 'an abbreviated commit is deployed');
is(said(), "2\nmain $second\n0\n", 'without a branch the default branch is deployed');
is(said(branch => 'nowhere'), 'failed checkout_failed', 'an unknown branch fails the checkout');
is(said(commitHash => '0123456789' x 4), 'failed checkout_failed', 'an unknown commit fails the checkout');
my $third = commit('third', version => "3\n");
is(said(), "3\nmain $third\n0\n", 'a new commit is deployed');
my $dirt = $all->post(projectId => $project,
    pipelineId => $all->pipeline($project, 'echo x >>version; echo y >untracked'));
is($all->wait($dirt)->{status}, 'success', 'a step that changes files succeeds');
ok(workspace($project)->{dirty}, 'the workspace is dirty');
is(said(), "3\nmain $third\n0\n", 'the next deployment starts with clean files');
ok(!workspace($project)->{dirty}, 'the workspace is clean again');

# --- edits do not affect existing deployments
my $held = tempdir() . '/held';
my $edited = $all->pipeline($project, "echo old; until test -e $held; do sleep 0.1; done", 'echo old-end');
my $running = $all->post(projectId => $project, pipelineId => $edited);
my $queued = $all->post(projectId => $project, pipelineId => $edited);
ok($all->saw($running, qr/^old$/m), 'a step runs');
my $got = $api->put("/api/pipelines/$edited", { name => 'edited', timeoutSeconds => 1 });
is($got->{status}, 200, 'the pipeline of a running deployment is edited') or diag($got->{body});
my $old_steps = $api->get("/api/steps?pipelineId=$edited")->{json}{data};
for (@$old_steps) {
	is($api->put("/api/steps/$_->{id}", { script => 'echo new' })->{status}, 200,
	    "step $_->{id} is edited");
}
spew($held, '');
for ($running, $queued) {
	is($all->wait($_)->{status}, 'success', "deployment $_ succeeds after the edit");
	is(join(' ', $all->log($_) =~ /^(old|old-end|new)$/mg), 'old old-end',
	    "deployment $_ runs the old steps");
}
my $retry = $all->make("/api/deployments/$running/retry", {});
is("$retry->{trigger} $retry->{retryOf} $retry->{status}", "retry $running pending", 'a retry is pending');
is($all->wait($retry->{id})->{status}, 'success', 'the retry succeeds');
is(join(' ', $all->log($retry->{id}) =~ /^(old|old-end|new)$/mg), 'old old-end',
    'the retry runs the old steps');
$id = $all->post(projectId => $project, pipelineId => $edited);
$all->wait($id);
is(join(' ', $all->log($id) =~ /^(old|old-end|new)$/mg), 'new new', 'a new deployment runs the new steps');

# --- presets and secrets
my $t = JSON::PP::true;
my $preset = $all->project($repo, envPresets => [
	{ key => 'TARGET', label => 'Target', type => 'select', required => $t,
	    options => [map { { label => $_, value => $_ } } qw(live test)] },
	{ key => 'PARTS', label => 'Parts', type => 'multiselect',
	    options => [map { { label => $_, value => $_ } } qw(a b c)] },
	{ key => 'NOTE', label => 'Note', type => 'input', pattern => '[a-z ]+', default => 'by default' },
	{ key => 'PASSWORD', label => 'Password', type => 'input', secret => $t },
]);
my ($shut, $open) = map { tempdir() . "/$_" } qw(shut open);
my $env = $all->pipeline($preset,
    'echo "$TARGET/$PARTS/$NOTE/$OTHER"; echo "${#PASSWORD} <$PASSWORD>"; printf %s "$PASSWORD" | base64; '
    . 'printf %s "$PASSWORD" | md5sum',
    "sleep 1000 & echo \"sleeps \$!.\"; until test -e $open; do sleep 0.1; done; kill \$!");
my @answers;
$got = $api->post('/api/deployments', { projectId => $preset, pipelineId => $env,
	envVars => { TARGET => 'live', PARTS => 'a,c', OTHER => "o'ther", PASSWORD => $secret } });
is($got->{status}, 201, 'a deployment with values is created') or diag($got->{body});
push @answers, $got->{body};
$id = $got->{json}{id};
# the mask holds back what may be the start of a secret, as the last digit may
ok($all->saw($id, qr/^sleeps \d+\./m), 'a step runs');
my (@shown, $opened);
for my $pid (grep { m{^\d+$} } map { m{(\d+)$} } glob '/proc/[0-9]*') {
	my $line = slurp("/proc/$pid/cmdline");
	push @shown, $pid if defined $line && index($line, $secret) >= 0;
}
is("@shown", '', 'no command line contains the secret');
my ($sleeper) = $all->log($id) =~ /^sleeps (\d+)\./m;
if (is_root()) {
	# while the shell's child executes sleep, there is none to read
	ok(poll(60, sub { index(slurp("/proc/$sleeper/environ") // '', "PASSWORD=$secret") >= 0 }),
	    'the step has the secret in its environment');
	my ($status) = run_cmd('setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups', 'cat',
	    "/proc/$sleeper/environ");
	isnt($status, 0, 'other accounts cannot read the environment');
	my @spool = grep { my $text = slurp($_); defined $text
	    && index($text, $secret) >= 0 } grep { -f } glob "$runner->{spool}/$id.*/*";
	is("@spool", '', 'no file in the spool contains the secret');
}
spew($open, '');
is($all->wait($id)->{status}, 'success', 'the deployment succeeds');
$text = $all->log($id);
like($text, qr{^live/a,c/by default/o'ther$}m, 'presets of each type reach the step');
like($text, qr/^@{[length $secret]} <\*\*\*>$/m, 'the secret is masked in the log');
require Digest::MD5;
like($text, qr/^@{[Digest::MD5::md5_hex($secret)]}/m, 'the step has the right secret');
(my $coded = encode_base64($secret, '')) =~ s/=+$//;
is(scalar(grep { index($text, substr $coded, $_, 8) >= 0 } 0 .. length($coded) - 9), 0,
    'the secret is masked in base64');
push @answers, map { $api->get($_)->{body} } "/api/deployments/$id", "/api/deployments?projectId=$preset",
    "/api/projects/$preset", '/api/projects?limit=100';
$got = $api->post("/api/deployments/$id/retry", {});
push @answers, $got->{body};
is($all->wait($got->{json}{id})->{status}, 'success', 'a retry succeeds');
like($all->log($got->{json}{id}), qr/^@{[Digest::MD5::md5_hex($secret)]}/m, 'a retry has the secret');
is(scalar(grep { index($_, $secret) >= 0 } @answers), 0, 'no response contains the secret');
is(scalar(grep { /"PASSWORD":null/ } @answers), 4, 'the secret reads as null');
my ($status, $dump) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $all->db->socket,
    '--user=' . getpwuid($>),
    '--skip-opt', '--compact', 'slipway');
is($status, 0, 'the database is dumped');
cmp_ok(index($dump, 'TARGET'), '>', 0, 'the dump contains plain values');
for (['as it is', $secret], ['in hex', unpack 'H*', $secret], ['in base64', $coded]) {
	is(index(lc $dump, lc $_->[1]), -1, "the dump does not contain the secret $_->[0]");
}
is(index($runner->said . $api->log . (slurp($api->dir . '/nginx.log') || ''), $secret), -1,
    'no log contains the secret');
for (['an unknown choice', { TARGET => 'moon' }], ['a missing required variable', {}],
    ['an unknown choice among several', { TARGET => 'live', PARTS => 'a,x' }],
    ['a text that does not match its pattern', { TARGET => 'live', NOTE => 'NO' }],
    ['a reserved name', { TARGET => 'live', LD_PRELOAD => 'x' }]) {
	is($api->post('/api/deployments', { projectId => $preset, pipelineId => $env,
	    envVars => $_->[1] })->{status}, 422, "$_->[0] is rejected");
}

# --- cancel
my $long = $all->pipeline($project, 'echo up; setsid sleep 1000 & sleep 1000', 'echo never',
    { name => 'cleanup', script => 'echo cleaned', runWhen => 'always' });
$running = $all->post(projectId => $project, pipelineId => $long);
$queued = $all->post(projectId => $project, pipelineId => $long);
ok($all->saw($running, qr/^up$/m), 'a deployment runs');
is($api->post("/api/deployments/$queued/cancel", {})->{json}{status}, 'canceled',
    'a pending deployment is canceled at once');
is($api->post("/api/deployments/$running/cancel", {})->{status}, 200,
    'a cancel of a running deployment is accepted');
$now = $all->wait($running);
is("$now->{status} $now->{reason}", 'canceled canceled_by_user', 'a running deployment is canceled');
is($all->steps($running), 'canceled skipped success', 'the cleanup step of a canceled deployment succeeds');
like($all->log($running), qr/^cleaned$/m, 'the cleanup step of a canceled deployment runs');
unlike($all->log($running), qr/^never$/m, 'other steps of a canceled deployment do not run');
is($all->log($queued), '', 'a deployment canceled while pending has no log');
is($all->show($queued)->{startedAt}, undef, 'a deployment canceled while pending has no start');
is($api->post("/api/deployments/$_/cancel", {})->{status}, 409,
    "a cancel of deployment $_ after its end returns 409")
    for $running, $queued;

# --- time limits
$id = $all->post(projectId => $project, pipelineId => $all->pipeline($project,
    { script => 'echo up; setsid sleep 1000 & sleep 1000', timeoutSeconds => 1 },
    { script => 'echo cleaned', runWhen => 'always' }));
$now = $all->wait($id);
is("$now->{status} $now->{reason} " . $all->steps($id), 'failed timeout failed success',
    'a step above its time limit fails the deployment');
$id = $all->post(projectId => $project,
    pipelineId => $all->pipeline($project, { pipeline => { timeoutSeconds => 8 } },
    'echo one', 'sleep 1000', 'echo never', { script => 'echo cleaned', runWhen => 'failure' }));
$now = $all->wait($id);
is("$now->{status} $now->{reason} " . $all->steps($id), 'failed timeout success failed skipped success',
    'a pipeline above its time limit fails the deployment');

# --- deletion of a project
my $gone = $all->project($repo);
my $ends = tempdir() . '/ends';
my $line = $all->pipeline($gone, "echo up; until test -e $ends; do sleep 0.1; done; echo down");
($running, $queued) = map { $all->post(projectId => $gone, pipelineId => $line) } 1, 2;
ok($all->saw($running, qr/^up$/m), 'a deployment runs');
is($api->delete("/api/projects/$gone")->{status}, 204, 'the project of a running deployment is deleted');
$now = $all->show($queued);
is("$now->{status} $now->{reason}", 'canceled project_deleted',
    'a pending deployment of a deleted project is canceled');
is($all->show($running)->{status}, 'running', 'a running deployment of a deleted project continues');
is($api->post('/api/deployments', { projectId => $gone, pipelineId => $line })->{status},
    422, 'a deleted project accepts no deployment');
spew($ends, '');
is($all->wait($running)->{status}, 'success', 'a running deployment of a deleted project succeeds');
like($all->log($running), qr/^down$/m, 'a running deployment of a deleted project has its whole log');

ok($all->is_clean, 'deployments leave nothing behind');
is($runner->stop, 0, 'the runner stops');
done_testing;
