#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A repository of some thousand files, deployed by a client that has nothing
# but the REST interface.

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
my %files = map { (sprintf('part%02d/group%d/deep/er/file%d.txt', $_ % 40, $_ % 7, $_) => "text $_\n" x (1 + $_ % 30)) } 1 .. 3200;
my $first = commit("all of it\n\nwith a body", %files, 'version' => "1\n");
git('checkout', '-q', '-b', 'feature/two');
my $feature = commit('on a branch', version => "feature\n");
git('checkout', '-q', 'main');
my $second = commit("second \x{c3}\x{a4}\n\nmore about it", version => "2\n");

my $project = $all->project($repo);
my $secret = 'kr8.Zu+ql/vm=77pq';
sub workspace { return $api->get("/api/projects/$_[0]")->{json}{workspaceStatus} }
is(workspace($project)->{status}, 'not_created', 'no workspace yet');

# --- from pending to success, watched
my $blocked = tempdir() . '/blocked';
my $gate = tempdir() . '/gate';
my $holds = $all->pipeline($project, "until test -e $blocked; do sleep 0.02; done");
my $lines = 30;
my $watched = $all->pipeline($project,
    'find . -name "*.txt" | wc -l; cat version',
    "for n in \$(seq $lines); do echo \"at \$EPOCHREALTIME\"; sleep 0.1; done; until test -e $gate; do sleep 0.02; done",
    { name => 'breaks', script => 'printf "no line end"; exit 7' },
    { script => 'echo never' },
    { name => 'repairs', script => 'echo repaired', runWhen => 'failure' },
    { name => 'killed', script => 'kill -KILL $$', runWhen => 'always' });
my $before = $all->post(projectId => $project, pipelineId => $holds);
$all->wait($before, qr/^running$/);
my $id = $all->post(projectId => $project, pipelineId => $watched);
my $now = $all->show($id);
is($now->{status}, 'pending', 'pending behind another');
is($now->{queuePosition}, 0, 'as the next') or diag(explain($now));
is($now->{commitHash}, undef, 'no commit known yet');
is($all->log($id), '', 'no log yet');
spew($blocked, '');
is($all->wait($before)->{status}, 'success', 'the first ends');
is($all->wait($id, qr/^running$/)->{status}, 'running', 'then it runs');
my ($text, $seen_running, @ages) = ('', 0);
poll(180, sub {
	my $got = $api->get("/api/deployments/$id/log?wait=5&offset=" . length $text);
	my $read = time;
	push @ages, map { 1000 * ($read - $_) } $got->{body} =~ /^at ([\d.]+)$/mg;
	$text .= $got->{body};
	if (@ages == $lines && !-e $gate) {
		$seen_running = $all->show($id)->{steps}[1]{status} eq 'running';
		spew($gate, '');
	}
	return $got->{headers}{'x-log-complete'} eq 'true';
});
ok($seen_running, 'all lines of a step were read while it ran');
is(scalar @ages, $lines, 'each once');
@ages = sort { $a <=> $b } @ages;
diag(sprintf 'from write to reader, of at most 250 ms: median %.0f ms, worst %.0f ms', $ages[@ages / 2], $ages[-1]);
cmp_ok($ages[@ages / 2], '<', 1000, 'soon');
is($all->wait($id)->{status}, 'failed', 'it fails');
is($text, $all->log($id), 'the parts are the log');
$now = $all->show($id);
is($now->{reason}, 'step_failed', 'by a step');
is($now->{logSize}, length $text, 'the size of the log is told');
is($now->{commitHash}, $second, 'the commit');
is($now->{commitMessage}, "second \x{e4}\n\nmore about it", 'its message');
is($now->{branch}, 'main', 'and branch');
my @steps = @{ $now->{steps} };
is(join(' ', map { $_->{status} } @steps), 'success success failed skipped success failed', 'each step has its end');
is(join(' ', map { defined $_->{exitCode} ? $_->{exitCode} : '-' } @steps), '0 0 7 - 0 -', 'its exit code');
is(join(' ', map { defined $_->{signal} ? $_->{signal} : '-' } @steps), '- - - - - 9', 'or signal');
my @parts = map { defined $_->{logOffset} ? substr $text, $_->{logOffset}, $_->{logLength} : undef } @steps;
is($parts[0], "3200\n2\n", 'cut out of the log: the first step, with every file there');
like($parts[1], qr/\A(?:at [\d.]+\n){$lines}\z/, 'the second');
like($parts[2], qr/\Ano line end\n?\z/, 'one without a line end');
is($parts[3], undef, 'a skipped one has no part');
is($parts[4], "repaired\n", 'the one after it');
is($parts[5], '', 'one that said nothing');
for my $n (0, 1, 4) {
	my $range = sprintf 'bytes=%d-%d', $steps[$n]{logOffset}, $steps[$n]{logOffset} + $steps[$n]{logLength} - 1;
	my $got = $api->get("/api/deployments/$id/log", { Range => $range });
	is("$got->{status} $got->{body}", "206 $parts[$n]", "range of step $n");
}
my @times = map { $now->{$_} } qw(createdAt startedAt finishedAt);
is("@times", join(' ', sort @times), 'created, started, finished');
my $space = workspace($project);
is("$space->{status} $space->{branch} $space->{commitHash}", "ready main $second", 'the workspace is told');
ok(!$space->{dirty} && $space->{sizeBytes} > 500_000, 'clean, with its size') or diag(explain($space));

# --- what to check out
my $says = $all->pipeline($project, 'cat version; echo "$SLIPWAY_BRANCH $SLIPWAY_COMMIT"; git status --porcelain | wc -l');
sub said {
	my (%how) = @_;
	my $n = $all->post(projectId => $project, pipelineId => $says, %how);
	my $end = $all->wait($n);
	return $end->{status} eq 'success' ? substr $all->log($n), $end->{steps}[0]{logOffset}, $end->{steps}[0]{logLength}
	    : "$end->{status} $end->{reason}";
}
is(said(branch => 'feature/two'), "feature\nfeature/two $feature\n0\n", 'a branch');
is(said(commitHash => $first), "1\nmain $first\n0\n", 'a commit');
is(said(commitHash => substr $first, 0, 10), "1\nmain $first\n0\n", 'a short commit');
is(said(), "2\nmain $second\n0\n", 'the default branch again');
is(said(branch => 'nowhere'), 'failed checkout_failed', 'a branch that is not there');
is(said(commitHash => '0123456789' x 4), 'failed checkout_failed', 'a commit that is not there');
my $third = commit('third', version => "3\n");
is(said(), "3\nmain $third\n0\n", 'a new commit');
my $dirt = $all->post(projectId => $project, pipelineId => $all->pipeline($project, 'echo x >>version; echo y >untracked'));
is($all->wait($dirt)->{status}, 'success', 'a step writes a file of the repository');
ok(workspace($project)->{dirty}, 'the workspace is dirty');
is(said(), "3\nmain $third\n0\n", 'the next one starts clean');
ok(!workspace($project)->{dirty}, 'and is told so');

# --- edits change nothing that is there
my $held = tempdir() . '/held';
my $edited = $all->pipeline($project, "echo old; until test -e $held; do sleep 0.02; done", 'echo old-end');
my $running = $all->post(projectId => $project, pipelineId => $edited);
my $queued = $all->post(projectId => $project, pipelineId => $edited);
ok($all->saw($running, qr/^old$/m), 'a step runs');
my $got = $api->put("/api/pipelines/$edited", { name => 'edited', timeoutSeconds => 1 });
is($got->{status}, 200, 'its pipeline is edited') or diag($got->{body});
my $old_steps = $api->get("/api/steps?pipelineId=$edited")->{json}{data};
for (@$old_steps) {
	is($api->put("/api/steps/$_->{id}", { script => 'echo new' })->{status}, 200, 'and a step');
}
spew($held, '');
for ($running, $queued) {
	is($all->wait($_)->{status}, 'success', 'it ends well');
	is(join(' ', $all->log($_) =~ /^(old|old-end|new)$/mg), 'old old-end', 'by the old steps');
}
my $retry = $all->make("/api/deployments/$running/retry", {});
is("$retry->{trigger} $retry->{retryOf} $retry->{status}", "retry $running pending", 'a retry');
is($all->wait($retry->{id})->{status}, 'success', 'ends well');
is(join(' ', $all->log($retry->{id}) =~ /^(old|old-end|new)$/mg), 'old old-end', 'by the old steps, too');
$id = $all->post(projectId => $project, pipelineId => $edited);
$all->wait($id);
is(join(' ', $all->log($id) =~ /^(old|old-end|new)$/mg), 'new new', 'a new one has the new steps');

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
my $env = $all->pipeline($preset, 'echo "$TARGET/$PARTS/$NOTE/$OTHER"; echo "${#PASSWORD} <$PASSWORD>"; printf %s "$PASSWORD" | base64; '
    . 'printf %s "$PASSWORD" | md5sum', "sleep 1000 & echo \"sleeps \$!\"; until test -e $open; do sleep 0.02; done; kill \$!");
my @answers;
$got = $api->post('/api/deployments', { projectId => $preset, pipelineId => $env,
	envVars => { TARGET => 'live', PARTS => 'a,c', OTHER => "o'ther", PASSWORD => $secret } });
is($got->{status}, 201, 'with values') or diag($got->{body});
push @answers, $got->{body};
$id = $got->{json}{id};
ok($all->saw($id, qr/^sleeps \d+$/m), 'a step runs');
my (@shown, $opened);
for my $pid (grep { m{^\d+$} } map { m{(\d+)$} } glob '/proc/[0-9]*') {
	my $line = slurp("/proc/$pid/cmdline");
	push @shown, $pid if defined $line && index($line, $secret) >= 0;
}
is("@shown", '', 'no command line has the secret');
my ($sleeper) = $all->log($id) =~ /^sleeps (\d+)$/m;
if (is_root()) {
	my $environ = slurp("/proc/$sleeper/environ");
	ok(defined $environ && index($environ, "PASSWORD=$secret") >= 0, 'the step has it in its environment');
	my ($status) = run_cmd('setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups', 'cat', "/proc/$sleeper/environ");
	isnt($status, 0, 'which nobody else can read');
	my @spool = grep { my $text = slurp($_); defined $text && index($text, $secret) >= 0 } grep { -f } glob "$runner->{spool}/$id.*/*";
	is("@spool", '', 'no file of the spool has it');
}
spew($open, '');
is($all->wait($id)->{status}, 'success', 'it ends');
$text = $all->log($id);
like($text, qr{^live/a,c/by default/o'ther$}m, 'each kind of preset reaches the step');
like($text, qr/^@{[length $secret]} <\*\*\*>$/m, 'the secret is masked');
require Digest::MD5;
like($text, qr/^@{[Digest::MD5::md5_hex($secret)]}/m, 'but was the right one');
(my $coded = encode_base64($secret, '')) =~ s/=+$//;
is(scalar(grep { index($text, substr $coded, $_, 8) >= 0 } 0 .. length($coded) - 9), 0, 'it is masked in base64 as well');
push @answers, map { $api->get($_)->{body} } "/api/deployments/$id", "/api/deployments?projectId=$preset", "/api/projects/$preset", '/api/projects?limit=100';
$got = $api->post("/api/deployments/$id/retry", {});
push @answers, $got->{body};
is($all->wait($got->{json}{id})->{status}, 'success', 'a retry');
like($all->log($got->{json}{id}), qr/^@{[Digest::MD5::md5_hex($secret)]}/m, 'has the same secret');
is(scalar(grep { index($_, $secret) >= 0 } @answers), 0, 'no answer has the secret');
is(scalar(grep { /"PASSWORD":null/ } @answers), 4, 'it reads as null');
my ($status, $dump) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $all->db->socket, '--user=' . getpwuid($>),
    '--skip-opt', '--compact', 'slipway');
is($status, 0, 'a dump of the database');
cmp_ok(index($dump, 'TARGET'), '>', 0, 'has the values');
for (['itself', $secret], ['in hex', unpack 'H*', $secret], ['in base64', $coded]) {
	is(index(lc $dump, lc $_->[1]), -1, "but not the secret $_->[0]");
}
is(index($runner->said . $api->log . (slurp($api->dir . '/nginx.log') || ''), $secret), -1, 'nor has any log');
for (['a choice that is none', { TARGET => 'moon' }], ['no required one', {}], ['a wrong part', { TARGET => 'live', PARTS => 'a,x' }],
    ['a text that does not match', { TARGET => 'live', NOTE => 'NO' }], ['a name that steers', { TARGET => 'live', LD_PRELOAD => 'x' }]) {
	is($api->post('/api/deployments', { projectId => $preset, pipelineId => $env, envVars => $_->[1] })->{status}, 422, "refused: $_->[0]");
}

# --- cancel
my $long = $all->pipeline($project, 'echo up; setsid sleep 1000 & sleep 1000', 'echo never',
    { name => 'cleanup', script => 'echo cleaned', runWhen => 'always' });
$running = $all->post(projectId => $project, pipelineId => $long);
$queued = $all->post(projectId => $project, pipelineId => $long);
ok($all->saw($running, qr/^up$/m), 'one runs');
is($api->post("/api/deployments/$queued/cancel", {})->{json}{status}, 'canceled', 'the pending one is canceled at once');
is($api->post("/api/deployments/$running/cancel", {})->{status}, 200, 'so is the other');
$now = $all->wait($running);
is("$now->{status} $now->{reason}", 'canceled canceled_by_user', 'it ends so');
is($all->steps($running), 'canceled skipped success', 'with its cleanup');
like($all->log($running), qr/^cleaned$/m, 'which ran');
unlike($all->log($running), qr/^never$/m, 'the rest did not');
is($all->log($queued), '', 'the pending one never started');
is($all->show($queued)->{startedAt}, undef, 'and says so');
is($api->post("/api/deployments/$_/cancel", {})->{status}, 409, 'once ended: a conflict') for $running, $queued;

# --- timeouts
$id = $all->post(projectId => $project, pipelineId => $all->pipeline($project,
    { script => 'echo up; setsid sleep 1000 & sleep 1000', timeoutSeconds => 1 },
    { script => 'echo cleaned', runWhen => 'always' }));
$now = $all->wait($id);
is("$now->{status} $now->{reason} " . $all->steps($id), 'failed timeout failed success', 'a step takes too long');
$id = $all->post(projectId => $project, pipelineId => $all->pipeline($project, { pipeline => { timeoutSeconds => 8 } },
    'echo one', 'sleep 1000', 'echo never', { script => 'echo cleaned', runWhen => 'failure' }));
$now = $all->wait($id);
is("$now->{status} $now->{reason} " . $all->steps($id), 'failed timeout success failed skipped success', 'a pipeline does');

# --- a project is deleted
my $gone = $all->project($repo);
my $ends = tempdir() . '/ends';
my $line = $all->pipeline($gone, "echo up; until test -e $ends; do sleep 0.02; done; echo down");
($running, $queued) = map { $all->post(projectId => $gone, pipelineId => $line) } 1, 2;
ok($all->saw($running, qr/^up$/m), 'one runs');
is($api->delete("/api/projects/$gone")->{status}, 204, 'its project is deleted');
$now = $all->show($queued);
is("$now->{status} $now->{reason}", 'canceled project_deleted', 'what was queued is canceled');
is($all->show($running)->{status}, 'running', 'what runs, runs on');
is($api->post('/api/deployments', { projectId => $gone, pipelineId => $line })->{status}, 422, 'nothing new is taken');
spew($ends, '');
is($all->wait($running)->{status}, 'success', 'to its end');
like($all->log($running), qr/^down$/m, 'with all of its log');

ok($all->is_clean, 'nothing of a job is left');
is($runner->stop, 0, 'the runner ends');
done_testing;
