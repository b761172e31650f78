#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The member `checkout` of a pipeline, from the request through nginx to the files
# that a step finds: fresh, keep and none; the directory of a step; the cache of the
# project.

use strict;
use warnings;
use Slipway::API qw(outcome);
use Slipway::Registry;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

# A git that records its calls.
my $dir = tempdir() . '/calls';
mkdir $dir or die;
mkdir "$dir/bin" or die;
my $calls = spew("$dir/list", '', 0666);
chmod 0755, $dir, "$dir/bin";
spew("$dir/bin/git", "#!/bin/sh\necho call >>$calls\nexec /usr/bin/git \"\$@\"\n", 0755);
my ($npm) = grep { -x "$_/npm" } split /:/, $ENV{PATH};
my $all = Slipway::Whole->start(runner => "[runner]\npath = $dir/bin:/usr/bin:/bin:"
    . ($npm || '/usr/local/bin') . "\n");
my $api = $all->api;
my $repo = $all->runner->repo({ file => "one\n", '.gitignore' => "*.o\nbuild/\n", 'src/a' => "a\n" });
my $project = $all->project($repo);
my $list = 'find . -name .git -prune -o -type f -print | sort | tr "\n" " "; echo; pwd; '
    . 'echo "[$SLIPWAY_WORKSPACE] [$SLIPWAY_BRANCH] [$SLIPWAY_COMMIT]"';
sub pipeline {
	my ($checkout, @steps) = @_;
	return $all->pipeline($project, { pipeline => { defined $checkout ? (checkout => $checkout) : () } },
		@steps);
}
sub deploy {
	my ($pipeline, $name) = @_;
	my $id = $all->post(projectId => $project, pipelineId => $pipeline);
	is($all->wait($id)->{status}, 'success', $name) or diag($all->log($id));
	return $all->log($id);
}
sub files {
	my ($log) = @_;
	my ($line) = $log =~ /^(.*)\n\//m;
	return $line;
}
my $mess = 'echo x >new; echo x >a.o; mkdir -p build; echo x >build/x; echo x >src/b.o; '
    . 'echo "*" >src/.gitignore; echo changed >file; echo "!a.o" >>.gitignore; echo n >>.gitignore; ';

# --- requests
my $made = $api->make('/api/pipelines', { projectId => $project, name => 'default' });
is($made->{checkout}, 'fresh', 'a pipeline has a fresh checkout by default');
for my $bad ('Fresh', 'other', '', 1, undef, ['keep']) {
	my $what = !defined $bad ? 'null' : ref $bad ? 'an array' : "\"$bad\"";
	is(outcome($api->put("/api/pipelines/$made->{id}", { checkout => $bad })), '422 /checkout',
	    "PUT rejects $what as checkout");
	is(outcome($api->post('/api/pipelines', { projectId => $project, name => 'x', checkout => $bad })),
	    '422 /checkout', "POST rejects $what as checkout");
}
is($api->put("/api/pipelines/$made->{id}", { checkout => 'keep' })->{json}{checkout}, 'keep',
    'PUT changes the checkout');
is($api->put("/api/pipelines/$made->{id}", { name => 'other' })->{json}{checkout}, 'keep',
    'PUT without the member leaves the checkout');

# --- keep
my $fresh = pipeline(undef, $list, $mess);
my $keep = pipeline('keep', $list, $mess);
my $kept = './.gitignore ./a.o ./build/x ./file ./src/.gitignore ./src/a ./src/b.o ';
my $committed = './.gitignore ./file ./src/a ';
is(files(deploy($fresh, 'a fresh deployment succeeds')), $committed,
    'a fresh checkout has the files of the commit');
is(files(deploy($keep, 'a deployment with keep succeeds')), $kept,
    'keep leaves what git ignores and nothing else');
is(files(deploy($keep, 'another deployment with keep succeeds')), $kept,
    'keep does so again');
is(files(deploy($fresh, 'a fresh deployment after it succeeds')), $committed,
    'a fresh checkout after it has the files of the commit only');
my $quiet = pipeline('keep', $list);
my $clean = pipeline('fresh', $list);
deploy($keep, 'a deployment that leaves ignored files succeeds');
is(files(deploy($quiet, 'a deployment that leaves them succeeds')), $kept,
    'ignored files of an earlier run stay');
is(files(deploy($quiet, 'a deployment without a change succeeds')), $kept,
    'ignored files stay in an unchanged workspace');
is(files(deploy($clean, 'a fresh deployment of an unchanged workspace succeeds')), $committed,
    'a fresh checkout does not reuse a workspace with ignored files');

# --- none
my ($real) = deploy($clean, 'a deployment shows its workspace') =~ m{^(/\S+)$}m;
my $state = "SELECT CONCAT_WS(' ', status, branch, commit_hash, checked_at) FROM workspace"
    . " WHERE project_id = $project";
my $before = $all->db->sql($state);
my $none = pipeline('none', $list, 'echo x >left; ls; test -w "$SLIPWAY_WORKSPACE"');
my $called = -s $calls;
cmp_ok($called, '>', 0, 'a checkout runs git');
rename $repo, "$repo.away" or die;
my $log = deploy($none, 'a deployment without a checkout needs no repository');
is(files($log), '', 'without a checkout, the workspace has no files');
my ($at) = $log =~ m{^(/.*)$}m;
like($log, qr/^\Q[$at] [main] []\E$/m,
    'without a checkout, SLIPWAY_WORKSPACE is the current directory and SLIPWAY_COMMIT is empty');
is(-s $calls, $called, 'without a checkout, git does not run');
is($all->db->sql($state), $before, 'without a checkout, the state of the workspace stays as it is');
ok(poll(30, sub { !-e $at }), 'the empty workspace is removed after the run');
is(files(deploy($none, 'another deployment without a checkout succeeds')), '',
    'another deployment without a checkout finds no files of the first');
my $reach = pipeline('none', $list, "set +e; cd '$real'; ls -A; cat file; echo changed >file; rm -rf '$real';"
	. " umount '$real'; echo x >evil; true");
$log = deploy($reach, 'a deployment without a checkout looks for the files of the last one');
unlike($log, qr/^(?:one|file|\.git|src)$/m, 'it does not see them');
like($log, qr/Read-only file system/, 'it cannot write there');
rename "$repo.away", $repo or die;
is(files(deploy($clean, 'a checkout afterwards succeeds')), $committed,
    'a checkout afterwards has the files of the commit');
unlike($log, qr/new clone/, 'a checkout afterwards reuses the clone');

# --- the directory of a step
my $below = pipeline(undef, { script => 'pwd; cat a; echo "[$SLIPWAY_WORKSPACE]"', directory => 'src' });
like(deploy($below, 'a step with a directory succeeds'), qr{^(/.*)/src\na\n\[\1\]$}m,
    'a step runs in its directory of the workspace');
my $lost = $all->post(projectId => $project, pipelineId => pipeline(undef,
	{ name => 'Build', script => 'echo ran', directory => 'src/none' },
	{ script => 'true', runWhen => 'always' }));
my $failed = $all->wait($lost);
is("$failed->{status} $failed->{reason} $failed->{detail}",
    'failed step_failed Step 1 (Build) cannot run in its directory: src/none does not exist.',
    'the reason says which directory of a step is missing');
is_deeply([map { @$_{qw(status exitCode signal)} } @{ $failed->{steps} }],
    ['failed', undef, undef, 'success', 0, undef], 'a step without its directory fails and was not run');
like($all->log($lost),
    qr{^==> step 1 cannot run in the directory src/none of the workspace: src/none does not exist$}m,
    'the log says so, too');

# --- fixed when the deployment is created
$all->runner->stop;
my $id = $all->post(projectId => $project, pipelineId => $clean);
my $there = $all->post(projectId => $project, pipelineId => $below);
$api->put("/api/pipelines/$clean", { checkout => 'none' });
$api->put("/api/steps/" . $api->get("/api/pipelines/$below")->{json}{steps}[0]{id}, { directory => 'none' });
$all->runner->resume;
is($all->wait($there)->{status}, 'success', 'a deployment has the directory of the time when it was created');
is($all->wait($api->post("/api/deployments/$there/retry", {})->{json}{id})->{status}, 'success',
    'a retry has the directory of the deployment that it repeats');
is($all->wait($id)->{status}, 'success', 'a deployment of a pipeline that was changed since succeeds');
is(files($all->log($id)), $committed, 'a deployment has the checkout of the time when it was created');
my $later = deploy($clean, 'a deployment after the change succeeds');
is(files($later), '', 'a deployment after the change has the new checkout');
my $retry = $api->post("/api/deployments/$id/retry", {})->{json}{id};
is($all->wait($retry)->{status}, 'success', 'a retry of the first one succeeds');
is(files($all->log($retry)), $committed, 'a retry has the checkout of the deployment that it repeats');

# --- the cache: Composer, npm and pip download a package once
my $registry = Slipway::Registry->start;
my $app = $all->project($all->runner->repo({ $registry->project }));
my ($pip) = glob '/usr/share/python-wheels/pip-*.whl';
my $install = $all->pipeline($app,
	'composer install --no-interaction --no-progress; test -e vendor/team/leaf/composer.json',
	'npm ci --ignore-scripts --loglevel=error; test -d node_modules/leaf',
	($pip ? "PYTHONPATH=$pip " : '') . '/usr/bin/python3 -m pip download -q --disable-pip-version-check '
	. '--timeout 120 --no-deps -d "$HOME/wheels" --cert ' . $registry->ca . ' -i ' . $registry->url
	. '/simple leaf==1.0; ls "$HOME/wheels"');
my $see = $all->pipeline($app, 'ls -A "$SLIPWAY_CACHE"; echo "$SLIPWAY_CACHE"');
sub run_app {
	my ($pipeline, $name) = @_;
	my $id = $all->post(projectId => $app, pipelineId => $pipeline);
	is($all->wait($id, undef, 300)->{status}, 'success', $name) or diag($all->log($id));
	return $all->log($id);
}
run_app($install, 'Composer, npm and pip install a package');
# a client on a busy machine may repeat a request
my %paths = map { $_ => 1 } my @first = $registry->downloads;
is_deeply([sort keys %paths], ['/leaf-1.0-py3-none-any.whl', '/leaf-1.0.0.tgz', '/leaf-1.0.tar'],
    'the first deployment downloads it for each of them');
like(run_app($install, 'another deployment installs it'), qr/^leaf-1\.0-py3-none-any\.whl$/m,
    'in another deployment pip finds the package in the cache');
is_deeply([$registry->downloads], \@first, 'another deployment downloads nothing');
like(run_app($see, 'a deployment lists the cache'), qr/^composer\nnpm\npip\n/m,
    'the cache has their directories');
my $cache = "/api/projects/$app/cache";
is($api->as('viewer')->delete($cache)->{status}, 403, 'a viewer cannot empty the cache');
is($api->delete('/api/projects/999999/cache')->{status}, 404, 'an unknown project has no cache');
is($api->as('deployer')->delete($cache)->{status}, 204, 'a deployer empties the cache');
like(run_app($see, 'a deployment after it lists the cache'), qr{^==> step 1[^\n]*\n/}m, 'the cache is empty');
run_app($install, 'a deployment installs it again');
my %again = map { $_ => 1 } ($registry->downloads)[ @first .. $registry->downloads - 1 ];
is_deeply([sort keys %again], [sort keys %paths], 'without a cache, each of them downloads it again');
is($all->db->sql("SELECT CONCAT_WS(' ', username, object_type, object_id, project_id) FROM audit"
	. " WHERE action = 'emptyProjectCache'"), "t-deployer project $app $app",
    'the audit log says who emptied the cache');
is_deeply([$all->left], [], 'no process is left');

done_testing();
