# SPDX-License-Identifier: ISC
# Templates from end to end: the API creates pipelines from them, the runner deploys,
# and the API returns outcome and log.
use strict;
use warnings;
use File::Path qw(make_path);
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Runner;
use Slipway::Test;

my $db = Slipway::DB->start->migrate;
my $runner = Slipway::Runner->start(db => $db);
my $api = Slipway::API->start(db => $db, migrated => 1, conf => "[gitserver]\nallow_local = yes\n"
    . "[runner]\nwake_socket = " . $runner->wake_socket . "\n");

# Creates a project with these files and a pipeline from the template.
sub project {
	my ($slug, %files) = @_;
	my $repo = $runner->repo(\%files);
	my $template = (grep { $_->{id} eq $slug } @{ $api->get('/api/templates')->{json}{data} })[0];
	ok($template, "$slug: the template is listed");
	my $project = $api->post('/api/projects', { name => "a $slug", repository => $repo,
		envPresets => $template->{envPresets} });
	is($project->{status}, 201, "$slug: a project with the presets of the template is created")
	    or diag($project->{body});
	my $id = $project->{json}{id};
	my $pipeline = $api->post('/api/pipelines/from-template', { templateId => $slug, projectId => $id });
	is($pipeline->{status}, 201, "$slug: a pipeline is created from the template")
	    or diag($pipeline->{body});
	is($pipeline->{json}{name}, $template->{name}, "$slug: the pipeline has the name of the template");
	is(scalar @{ $pipeline->{json}{steps} }, scalar @{ $template->{steps} },
	    "$slug: the pipeline has the steps of the template");
	my $room = tempdir() . "/room$id";
	make_path($room);
	my $uid = $runner->{uid_first} + $id % 300;
	chown $uid, $uid, $room if is_root();
	return ($id, $room, $repo);
}

# Deploys and waits; returns the deployment and its log.
sub deploy {
	my ($project, %env) = @_;
	my $made = $api->post('/api/deployments', { projectId => $project, envVars => \%env });
	is($made->{status}, 201, 'a deployment is created') or diag($made->{body});
	my $id = $made->{json}{id};
	my $now;
	poll(180, sub {
		$now = $api->get("/api/deployments/$id")->{json};
		return $now->{status} !~ /^(?:pending|running)$/;
	});
	return ($now, $api->get("/api/deployments/$id/log")->{body});
}

sub commit {
	my ($repo, %files) = @_;
	spew("$repo/$_", $files{$_}) for keys %files;
	my ($status, undef, $err) = run_cmd({ cwd => $repo, env => { GIT_CONFIG_GLOBAL => '/dev/null' } },
		'git', '-c', 'user.name=A', '-c', 'user.email=a@example.org', 'commit', '-qam', 'next');
	die $err if $status != 0;
	return;
}

# --- releases of a static site
my ($site, $root, $repo) = project('static-site-rsync', 'public/index.html' => "one\n");
my $rejected = $api->post('/api/deployments', { projectId => $site, envVars => { BUILD => 'make' } });
is($rejected->{status}, 422, 'static site: a deployment without DEPLOY_ROOT is rejected');
$rejected = $api->post('/api/deployments',
    { projectId => $site, envVars => { DEPLOY_ROOT => $root, BUILD => 'cmake' } });
is($rejected->{status}, 422, 'static site: an unknown value of BUILD is rejected');
my ($one, $log) = deploy($site, DEPLOY_ROOT => $root);
is($one->{status}, 'success', 'static site: a deployment succeeds') or diag($log);
is(readlink("$root/current"), "releases/$one->{id}", 'static site: the release is current');
is($one->{envVars}{KEEP_RELEASES}, '5', 'static site: the deployment has the defaults of the presets');
is(join(' ', map { $_->{status} } @{ $one->{steps} }), 'success success success success skipped success',
	'static site: no rollback runs');
commit($repo, 'public/index.html' => "two\n");
my $nobody = 'http://127.0.0.1:' . free_port() . '/';
(my $two, $log) = deploy($site, DEPLOY_ROOT => $root, CHECK_URL => $nobody, CHECK_SECONDS => '1');
is($two->{status}, 'failed', 'static site: a release that fails its check fails the deployment')
    or diag($log);
is($two->{reason}, 'step_failed', 'static site: a failed check has the reason step_failed');
is(join(' ', map { $_->{status} } @{ $two->{steps} }), 'success success success failed success skipped',
	'static site: a failed check rolls back');
is(slurp("$root/current/index.html"), "one\n", 'static site: the previous release is served');
like($log, qr/did not respond with success within 1 s/, 'static site: the log says that the check failed');

# --- a binary
my ($binary, $room) = project('binary-systemd',
    Makefile => "app:\n\tprintf '%s\\n' '#!/bin/sh' 'echo hello' >app && chmod 755 app\n");
(my $got, $log) = deploy($binary, TARGET => "$room/app");
is($got->{status}, 'success', 'binary: a deployment succeeds') or diag($log);
my (undef, $out) = run_cmd("$room/app");
is($out, "hello\n", 'binary: the program runs');

# --- the two plain templates
my ($plain) = project('git-clone-pipeline', Makefile => "all:\n\ntest:\n\t\@echo tested as \$\$(id -u)\n");
($got, $log) = deploy($plain);
is($got->{status}, 'success', 'git clone: a deployment succeeds') or diag($log);
my $expect = is_root() ? $runner->{uid_first} + $plain % 300 : $>;
like($log, qr/^tested as $expect$/m, 'git clone: steps run under the account of the project');
my ($simple, $target) = project('simple-deploy-pipeline', 'index.html' => "hello\n");
($got, $log) = deploy($simple, DEPLOY_DIR => "$target/site");
is($got->{status}, 'success', 'simple: a deployment succeeds') or diag($log);
is(slurp("$target/site/index.html"), "hello\n", 'simple: the files are copied');

# --- errors of from-template
for my $case (
	['no template', { projectId => $plain }, 422],
	['an unknown template', { projectId => $plain, templateId => 'none' }, qr/^4(?:04|22)$/],
	['a path', { projectId => $plain, templateId => '../static-site-rsync' }, qr/^4(?:04|22)$/],
	['an unknown project', { projectId => 999999, templateId => 'rollback' }, qr/^4(?:04|22)$/],
	['a duplicate name', { projectId => $plain, templateId => 'git-clone-pipeline' }, 409],
) {
	my ($name, $body, $want) = @$case;
	my $answer = $api->post('/api/pipelines/from-template', $body);
	like($answer->{status}, ref $want ? $want : qr/^$want$/, "from-template rejects $name")
	    or diag($answer->{body});
}

done_testing;
