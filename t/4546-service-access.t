#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What the credentials of the service read: only what the user who set the repository
# may read at the Git server.  Schedules and pushes read with the access of the user
# who made them.

use strict;
use warnings;
use Slipway::API qw(bearer outcome);
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
my $number = 7;
$forge->user($_, { id => $number++ }) for qw(ann eve bot);
my $service = $forge->token('bot');
my $ssh_key = spew(tempdir() . '/ssh-key', "no key\n", 0600);
my $conf = $forge->conf(token => $service, ssh_key_file => $ssh_key);
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\nslots = 4\nsubmodules = yes\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);

sub repo {
	my ($path, @users) = @_;
	my $repo = $forge->repo($path, private => 1, users => ['bot', @users]);
	$repo->commit('main', { file => "secret of $path\n" }, "message of $path");
	return $repo;
}
my $secret = repo('team/secret', 'ann');
my $trap = repo('eve/trap', 'eve');

# ann and eve sign in at the Git server; max is made by an administrator.
my %role = (ann => 'maintainer', eve => 'viewer', max => 'deployer', vic => 'viewer');
my %as = map { $_ => bearer($api->new_token($role{$_}, $_)) } sort keys %role;
my %id = map { $_ => $db->sql("SELECT id FROM user WHERE username = '$_'") + 0 } keys %role;
# tokens that do not limit what they may in their projects
$as{$_} = bearer(($api->token_of($id{$_}, 'maintainer'))[0]) for qw(eve vic);
my %token;
for my $who (qw(ann eve)) {
	$token{$who} = $forge->token($who);
	my ($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $api->conf_file, 'put', $id{$who},
	    $token{$who}, '-', 0);
	is($status, 0, "$who has signed in") or diag("$out$err");
}

# A project that `who` set to a repository; eve and vic maintain it.
sub project {
	my ($who, $url) = @_;
	my $project = $all->project($trap->clone_url);
	is($api->put("/api/projects/$project/members/$id{$_}", { role => 'maintainer' })->{status}, 200,
	    "$_ becomes a member") for qw(eve vic);
	my $got = $api->put("/api/projects/$project", { repository => $url }, $as{$who});
	is($got->{status}, 200, "$who sets the repository") or diag($got->{body});
	return ($project, $all->pipeline($project, 'cat file; false'));
}
# Git's passwords, and whether anything was read; then none.
sub passwords {
	my $found = $forge->passwords(qr/git-upload-pack|info.refs/);
	$forge->forget_requests;
	return $found =~ s/\Q$service\E/service/r =~ s/\Q$token{ann}\E/ann/r =~ s/\Q$token{eve}\E/eve/r;
}
# Waits for the deployment; checks that it read nothing.
sub denied {
	my ($id, $like, $name) = @_;
	my $d = $all->wait($id);
	is("$d->{status} $d->{reason}", 'failed checkout_failed', "$name: fails") or diag($all->log($id));
	like($d->{detail}, $like, "$name: the detail says why");
	unlike($all->log($id), qr/secret of/, "$name: no file was read");
	unlike(passwords(), qr/service|ann/, "$name: git did not use the token of another");
	return;
}
sub read_as {
	my ($id, $whose, $name) = @_;
	my $d = $all->wait($id);
	is("$d->{status} $d->{reason}", 'failed step_failed', "$name: its step runs")
	    or diag($d->{detail}, $all->log($id));
	is(passwords(), $whose, "$name: git used the token of $whose");
	return;
}
sub manual { my ($who, $p, $l) = @_;
	my %body = (projectId => $p, pipelineId => $l, branch => 'main');
	my $got = $api->post('/api/deployments', \%body, $as{$who});
	die "POST: $got->{status} $got->{body}" if $got->{status} != 201;
	return $got->{json}{id} }
sub schedule {
	my ($who, $p, $l) = @_;
	my $got = $api->post('/api/schedules', { projectId => $p, pipelineId => $l, name => "of $who",
		cron => '0 0 1 1 *', branch => 'main' }, $as{$who});
	is($got->{status}, 201, "$who makes a schedule") or diag($got->{body});
	return $got->{json}{id};
}
sub fire {
	my ($schedule) = @_;
	$db->sql("UPDATE schedule SET next_at = NOW(3) - INTERVAL 1 SECOND WHERE id = $schedule");
	$runner->ring;
	my $found;
	my $before = $db->sql("SELECT COALESCE(last_deployment_id, 0) FROM schedule WHERE id = $schedule");
	poll(30, sub { $found = $db->sql("SELECT COALESCE(last_deployment_id, 0) FROM schedule "
	    . "WHERE id = $schedule"); $found > $before }) or die 'the schedule did not fire';
	return $found + 0;
}
my $event = 0;
sub push_to {
	my ($p, $hook, %o) = @_;
	my ($headers, $body) = push_event('gitea', $hook, path => 'team/secret', repo_id => $secret->id,
	    commit => $secret->tip('main'), body => { n => ++$event }, %o);
	return $api->as('none')->post("/api/hooks/$p", $body, $headers);
}
sub hook {
	my ($who, $p, $l) = @_;
	is($api->put("/api/projects/$p", { triggers => [{ branch => 'main', pipelineId => $l }] },
	    $as{ann})->{status}, 200, 'a trigger is set');
	return $api->put("/api/projects/$p/hook-secret", undef, $as{$who})->{json}{secret};
}

# --- eve, who may not read the repository, points a project at it
my ($p, $l) = project(eve => $secret->clone_url);
denied(fire(schedule(eve => $p, $l)), qr/knows no such repository|cannot read it at the Git server/,
    'a schedule of eve');
denied(manual(max => $p, $l), qr/user who set the project's repository cannot read it/,
    'a deployment by a user without an account');
denied(fire(schedule(ann => $p, $l)), qr/user who set the project's repository cannot read it/,
    'a schedule of ann, whom eve cannot lend her access');
for my $what (qw(branches tags commits)) {
	my $got = $api->get("/api/git/$what?projectId=$p", $as{max});
	is($got->{status}, 404, "max does not list $what") or diag($got->{body});
	like($got->{json}{detail}, qr/user who set the repository.*sends the project's repository again/,
	    "the error says what to do: $what");
}

# --- the maker of a hook secret leaves
my $hook = hook(eve => $p, $l);
my $got = push_to($p, $hook);
is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
denied($got->{json}{data}[0]{id}, qr/Git server/, 'a push with the secret of eve');
is($api->delete("/api/projects/$p/members/$id{eve}")->{status}, 204, 'eve leaves the project');
$got = push_to($p, $hook);
is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
denied($got->{json}{data}[0]{id}, qr/may no longer deploy the project.*new hook secret/,
    'a push with the secret of eve, who has left');
$db->sql("DELETE FROM push_head");
$api->put("/api/projects/$p/members/$id{eve}", { role => 'maintainer' });

# --- commit statuses are written by the service
is(scalar $forge->statuses($secret->tip('main')), 0, 'the repository gets no commit status');

# --- an event that names another repository
($p, $l) = project(eve => $trap->clone_url);
$hook = hook(eve => $p, $l);
$got = push_to($p, $hook, path => 'eve/trap', commit => $trap->tip('main'));
my $made = $got->{json}{data}[0]{id};
is($db->sql("SELECT COUNT(*) FROM git_repo WHERE project_id = $p AND repo_id = '@{[$secret->id]}'"), 0,
    'an event does not choose the repository by its number');
read_as($made, 'eve', 'the push to the repository of eve') if $made;
is(scalar $db->sql("SELECT confirmed_by FROM git_repo WHERE project_id = $p"), $id{eve},
    'it was confirmed with the access of eve');
read_as(manual(max => $p, $l), 'service', 'a deployment by max of a repository that eve may read');

# --- over SSH, with the key of the service
($p, $l) = project(eve => 'ssh://git@localhost:1/team/secret.git');
denied(manual(eve => $p, $l), qr/^The Git server knows no such repository|may not see it/,
    'a deployment by eve over SSH');
denied(manual(max => $p, $l), qr/user who set the project's repository cannot read it/,
    'a deployment over SSH by a user without an account');
$got = $all->wait(manual(ann => $p, $l));
like($got->{detail}, qr/connect to host localhost port 1/, 'a deployment by ann over SSH is tried');

# --- submodules, which whoever can push names
my $lib = repo('eve/lib', 'eve', 'ann');
$lib->git('update-index', '--add', '--cacheinfo', '160000,' . $secret->tip('main') . ',lib');
$lib->commit('main', { '.gitmodules' => "[submodule \"lib\"]\n\tpath = lib\n\turl = "
	. $secret->clone_url . "\n" }, 'a submodule');
my $not_listed = qr/not public is read only if a maintainer.*it in submoduleRepositories of the project/;
my $list = { submoduleRepositories => ['team/secret'] };
# Waits for a deployment that must not read the submodule.
sub unread {
	my ($id, $like, $name) = @_;
	my $d = $all->wait($id);
	is("$d->{status} $d->{reason}", 'failed checkout_failed', "$name: fails") or diag($all->log($id));
	like($d->{detail}, $like, "$name: the detail says what to do");
	unlike($all->log($id), qr/secret of team/, "$name: no file was read");
	is($forge->passwords(qr{^/team/secret\.git/}), '', "$name: git sent no token for it");
	$forge->forget_requests;
	return;
}
sub submodule_read {
	my ($id, $whose, $name) = @_;
	my $d = $all->wait($id);
	is("$d->{status} $d->{reason}", 'failed step_failed', "$name: its step runs")
	    or diag($d->{detail}, $all->log($id));
	like($all->log($id), qr{secret of team/secret}, "$name: the step reads the submodule");
	my $found = $forge->passwords(qr{^/team/secret\.git/});
	is($found, { ann => $token{ann}, bot => $service }->{$whose}, "$name: git sent the token of $whose");
	$forge->forget_requests;
	return;
}
sub push_of_lib {
	my ($p, $hook) = @_;
	$lib->git('commit-tree', '-m', 'x', $lib->tip('main') . '^{tree}');
	my $commit = $lib->commit('main', { n => ++$event }, "push $event");
	my $got = push_to($p, $hook, path => 'eve/lib', repo_id => $lib->id, commit => $commit);
	return $got->{json}{data}[0]{id} // die "push: $got->{status} $got->{body}";
}
sub lib_project {
	my ($who) = @_;
	my ($p) = project($who => $lib->clone_url);
	return ($p, $all->pipeline($p, 'cat lib/file; false'));
}
sub list_as {
	my ($who, $p, $body) = @_;
	my $got = $api->put("/api/projects/$p", $body, $as{$who});
	is($got->{status}, 200, "$who sets the list") or diag($got->{body});
	return;
}
($p, $l) = lib_project('ann');
$hook = hook(ann => $p, $l);
passwords();
unread(push_of_lib($p, $hook), $not_listed, 'a push that names a submodule which ann can read');
unread(fire(schedule(ann => $p, $l)), $not_listed, 'a schedule of ann');
unread(manual(ann => $p, $l), $not_listed, 'a deployment by ann');
unread(manual(max => $p, $l), $not_listed, 'a deployment with the token of the service');
list_as(eve => $p, $list);
my $foreign = qr{$not_listed.*team/secret cannot be read at the Git server by the user who set the list};
unread(push_of_lib($p, $hook), $foreign, 'a list by eve, who cannot read it');
unread(manual(max => $p, $l), $foreign, 'a list by eve, with the token of the service');
is($db->sql("SELECT COUNT(*) FROM git_submodule WHERE project_id = $p"), 0, 'no number is stored');
list_as(ann => $p, $list);
submodule_read(push_of_lib($p, $hook), 'ann', 'a push after ann has sent the same list alone');
submodule_read(manual(max => $p, $l), 'bot', 'a deployment with the token of the service');
unread(manual(eve => $p, $l), qr{team/secret is not shown by the Git server to the user with whose access},
    'a deployment by eve');
list_as(eve => $p, { submoduleRepositories => ['team/secret'], description => 'all members' });
submodule_read(manual(max => $p, $l), 'bot', 'eve has sent the same list with other members');
$db->sql("UPDATE git_submodule SET repo_id = '@{[$trap->id]}' WHERE project_id = $p");
$trap->{users}{ann} = 1;
unread(push_of_lib($p, $hook), qr{team/secret is (?:eve/trap at the Git server now|not shown)},
    'another repository has taken the path');
list_as(ann => $p, $list);
submodule_read(push_of_lib($p, $hook), 'ann', 'ann sends the list again');
$got = $api->put("/api/projects/$p", { submoduleRepositories => [ 'team/lib' ] }, $as{vic});
is(outcome($got), '422 /submoduleRepositories', 'vic, who has no account, cannot set the list')
    or diag($got->{body});
for my $bad ('team/theme.git', '../x', 'https://h/a/b', 'one', '/a/b', 'a/../b') {
	$got = $api->put("/api/projects/$p", { submoduleRepositories => [$bad] }, $as{ann});
	is(outcome($got), '422 /submoduleRepositories/0', "$bad is not accepted") or diag($got->{body});
}
passwords();

# --- a repetition, a promotion or an approval by another user lends nobody's access
($p, $l) = project(ann => $secret->clone_url);
$hook = hook(ann => $p, $l);
sub again { my ($who, $id, $what, $body) = @_;
	my $got = $api->post("/api/deployments/$id/$what", $body, $as{$who});
	is($got->{status}, 201, "$who: $what") or diag($got->{body});
	return $got->{json}{id} }
my $pushed = push_to($p, $hook)->{json}{data}[0]{id};
read_as($pushed, 'ann', 'a push with the secret of ann');
my $unseen = qr/does not show the repository|knows no such repository/;
denied(again(eve => $pushed, 'retry'), $unseen, 'a retry by eve of the push of ann');
for my $who (qw(max ann)) { # the clone has the commit, so nothing is fetched
	is($all->wait(again($who => $pushed, 'retry'))->{reason}, 'step_failed', "a retry by $who runs");
}
passwords();
my $works = $all->pipeline($p, 'cat file');
my %place = map { $_ => $all->make('/api/environments', { projectId => $p, name => $_,
	approval => $_ eq 'live' ? 'required' : 'none' })->{id} } qw(test next live);
my %to_test = (projectId => $p, pipelineId => $works, branch => 'main', environmentId => $place{test});
my $tested = $api->post('/api/deployments', \%to_test, $as{ann})->{json}{id};
is($all->wait($tested)->{status}, 'success', 'ann deploys to test');
passwords();
denied(again(eve => $tested, 'promote', { environmentId => $place{next} }), $unseen,
    'a promotion by eve of the deployment of ann');
sub to_live { my ($who) = @_;
	my $got = $api->post('/api/deployments', { %to_test, environmentId => $place{live},
		commitHash => $secret->tip('main') }, $as{$who});
	is($got->{status}, 201, "$who deploys to live") or diag($got->{body});
	return $got->{json}{id} }
sub approve { my ($who, $id) = @_;
	is($api->post("/api/deployments/$id/approve", {}, $as{$who})->{status}, 200, "$who approves it");
	return $id }
denied(approve(ann => to_live('eve')), $unseen, 'a deployment by eve that ann approves');
my $approved = approve(eve => to_live('ann'));
is($all->wait($approved)->{status}, 'success', 'a deployment by ann that eve approves succeeds');
unlike(passwords(), qr/service|eve/, 'with no token but that of ann');

# --- the creator of a schedule loses the rights
($p, $l) = project(ann => $secret->clone_url);
my $nightly = schedule(eve => $p, $l);
denied(fire($nightly), $unseen, 'a schedule of eve, who cannot read the repository at the Git server');
is($api->delete("/api/projects/$p/members/$id{eve}")->{status}, 204, 'eve leaves the project');
denied(fire($nightly), qr/may no longer deploy the project.*makes the schedule anew/,
    'a schedule of eve, who has left');
$nightly = schedule(ann => $p, $l);
read_as(fire($nightly), 'ann', 'a schedule of ann, who can read it');
my $shut = sub { my ($may) = @_; $forge->store->change(sub {
	my ($user) = grep { $_->{login} eq 'ann' } values %{ $_[0]{users} };
	$_[0]{repos}{ $secret->id }{users}{ $user->{id} } = $may }) };
$shut->(0);
my $late = fire($nightly);
is($all->wait($late)->{reason}, 'checkout_failed', 'the same schedule after the Git server has shut ann out');
like($all->wait($late)->{detail}, qr/does not show the repository/, 'the detail says why');
unlike($all->log($late), qr/secret of/, 'no file is read');
unlike(passwords(), qr/service/, 'git does not use the token of the service');
$shut->(1);
$api->put("/api/projects/$p/members/$id{eve}", { role => 'maintainer' });

# --- users without an account at the Git server
$got = $api->put("/api/projects/$p", { repository => $secret->clone_url }, $as{vic});
is(outcome($got), '422 /repository', 'vic, who has no account, cannot set a repository')
    or diag($got->{body});
$got = $api->put("/api/projects/$p", { repository => 'ssh://git@localhost:1/team/secret.git' }, $as{vic});
is(outcome($got), '422 /repository', 'vic cannot confirm one') or diag($got->{body});

# --- what is legitimate
($p, $l) = project(ann => $secret->clone_url);
read_as(manual(max => $p, $l), 'service', 'a repository that ann set, deployed by max');
is($api->get("/api/git/branches?projectId=$p", $as{max})->{status}, 200, 'max lists its branches');
read_as(fire(schedule(ann => $p, $l)), 'ann', 'a schedule of ann');
$got = push_to($p, hook(ann => $p, $l));
read_as($got->{json}{data}[0]{id}, 'ann', 'a push with the secret of ann');
my ($of_lib, $l_lib) = lib_project('ann');
list_as(ann => $of_lib, $list);
submodule_read(manual(max => $of_lib, $l_lib), 'bot', 'a list that ann set, deployed by max');
$db->sql("UPDATE user SET status = 'inactive' WHERE id = $id{ann}");
$forge->expire_tokens('ann');
read_as(manual(max => $p, $l), 'service', 'the same after ann has left');
submodule_read(manual(max => $of_lib, $l_lib), 'bot', 'a submodule after ann has left');
my $admin = $all->project($secret->clone_url);
read_as(manual(max => $admin, $all->pipeline($admin, 'cat file; false')), 'service',
    'a repository that an administrator without an account set');
is_deeply([grep { $_ !~ /no such/ } $forge->complaints], [], 'the Git server received only valid requests');
done_testing;
