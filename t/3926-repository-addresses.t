#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Repository addresses and branch names: which are accepted, what the error for
# the others says, and that the same rule applies wherever they appear.

use strict;
use warnings;
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Test;

my $db = Slipway::DB->start;
my $named = 0;
sub make {
	my ($api, $url, %more) = @_;
	return $api->post('/api/projects', { name => 'p' . ++$named, repository => $url, %more });
}
sub accepted {
	my ($api, $url) = @_;
	my $got = make($api, $url);
	is($got->{status}, 201, "accepted: $url") or diag($got->{body});
	return $got->{json}{id}
}
sub rejected {
	my ($api, $url, $like) = @_;
	my $got = make($api, $url);
	is($got->{status}, 422, "rejected: $url") or diag($got->{body});
	is($got->{json}{errors}[0]{pointer}, '/repository', "the error points to /repository: $url");
	like($got->{json}{errors}[0]{detail}, $like, "the error shows the form to use: $url")
	    or diag($got->{body});
	return;
}

# --- servers without owners (gitolite)
my $api = Slipway::API->start(db => $db);
accepted($api, $_) for 'git@git.example.org:site.git', 'git@git.example.org:site',
    'https://git.example.org/site.git',
    'ssh://git@git.example.org/site.git', 'ssh://git.example.org:2222/site',
    'https://git.example.org:8443/site/';
rejected($api, $_, qr/git\@host:owner\/name/)
    for 'git@git.example.org:', 'git@git.example.org:/', 'git@git.example.org:..', 'https://git.example.org/',
    'https://git.example.org/.git', 'git@git.example.org:-x', 'ssh://git.example.org/-x',
    'git@git.example.org:.';

# --- addresses of web pages
my $repo = 'https://git.example.org/o/r';
rejected($api, $_, qr{page; use that of the repository, \Q$repo\E$})
    for map { "$repo$_" } '/src/branch/main', '/src/branch/main/a/b.c',
    '/src/tag/v1', '/src/commit/abc', '/tree/main', '/tree/feature%2Fa', '/blob/main/README.md',
    '/-/tree/main', '/-/blob/main/x?ref_type=heads',
    '/-/settings/repository', '/raw/main/x', '/commits/main', '/blame/main/x', '?tab=readme-ov-file',
    '#readme', '/tree/main#a';
rejected($api, 'https://git.example.org/g/sub/r/-/tree/main',
    qr{repository, https://git\.example\.org/g/sub/r$});
rejected($api, 'https://user:word@git.example.org/o/r/tree/main', qr/without credentials$/);
accepted($api, "$repo$_") for '', '/', '.git', '/src', '/src/branch', '/releases';
# a group of a server of an unknown kind may have the name of a page
rejected($api, "$repo$_", qr{page; use that of the repository, \Q$repo\E$})
    for '/issues/3', '/pulls/12/files', '/pull/1#note', '/merge_requests/7?x=y', '/milestones/2/';
accepted($api, "$repo$_") for '/wiki', '/pulls', '/issues/3.git', '/issues/v3', '/group/sub/name';
$api->stop;

# --- a host whose repositories have an owner and a name, and no more
$api = Slipway::API->start(db => $db, migrated => 1,
    conf => "[gitserver]\nallowed_hosts = github.com, gitlab.com git.example.org:8443\n");
my $hub = 'https://github.com/o/r';
rejected($api, "$hub$_", qr{page; use that of the repository, \Q$hub\E$})
    for qw(/pulls /issues /wiki /releases /settings/hooks /issues/3 /pull/3/files /src/branch/x);
rejected($api, 'https://github.com/o', qr{https://host/owner/name});
accepted($api, $_) for $hub, "$hub/", "$hub.git", 'git@github.com:o/r.git', 'https://gitlab.com/g/sub/deep/r',
    'https://gitlab.com/g/sub/wiki', 'https://git.example.org:8443/o/r';
rejected($api, $_, qr/neither the Git server nor one of/)
    for 'https://git.example.org/o/r', 'https://github.com.example.org/o/r';
$api->stop;

# --- the stored id of a repository, and how to correct it
my $f = Slipway::Forge->start(type => 'gitea', prefix => '/git');
$f->user('ann');
my $site = $f->repo('team/site');
my $hash = $site->commit('main', { file => "a\n" });
$api = Slipway::API->start(db => $db, migrated => 1, conf => $f->conf(token => scalar $f->token('ann')));
rejected($api, $f->url . '/team', qr{https://host/owner/name});
rejected($api, $f->server . '/team/site',
    qr/is not below the Git server's URL, \Q@{[$f->url]}\E$/);
rejected($api, $f->url . "/team/site/$_", qr{repository, \Q@{[$f->url]}\E/team/site$})
    for 'pulls', 'settings/hooks', 'releases';
my $id = accepted($api, $f->url . '/team/site.git');
my $path = "/api/projects/$id";
sub branches { return $api->get_in_time("/api/git/branches?projectId=$id&limit=100") }
sub stored_id {
	return $db->sql("SELECT COALESCE(MAX(repo_id), 'none') FROM git_repo WHERE project_id = $id");
}
is(branches()->{status}, 200, 'the branches of the repository are read');
is(stored_id(), $site->id, 'the id of the repository is stored');
my $address = $api->get($path)->{json}{repository};
is($api->put($path, { description => 'x' })->{status}, 200, 'another member is changed');
is(stored_id(), $site->id, 'a change of another member keeps the stored id');
is($api->put($path, { repository => $address, description => 'y' })->{status}, 200,
    'PUT accepts the unchanged address beside another change');
is(stored_id(), $site->id, 'the unchanged address beside another change keeps the stored id');
my $got = $api->put($path, { repository => $address });
is($got->{status}, 200, 'PUT accepts the unchanged address alone');
is(stored_id(), 'none', 'the unchanged address alone deletes the stored id');
is(branches()->{status}, 200, 'branches are read by the address');
is(stored_id(), $site->id, 'the next request stores the id again');
$db->sql("UPDATE git_repo SET repo_id = '99999' WHERE project_id = $id");
$db->sql("INSERT INTO branch_commits (project_id, branch, commits, checked_at) VALUES ($id, 'main', '[]', "
    . "NOW(3))");
is($api->put($path, { repository => $_ })->{status}, 200, "the address is changed to $_")
    for $f->url . '/team/other', $address;
is(stored_id(), 'none', 'a change of the address and back deletes the stored id');
is($db->sql("SELECT COUNT(*) FROM branch_commits WHERE project_id = $id"), 0,
    'a change of the address deletes the stored commits');
is(branches()->{status}, 200, 'the repository is found by its address');
$api->put($path, { repository => $address });
is($api->as('deployer')->put($path, { repository => $address })->{status}, 403,
    'a deployer cannot correct the stored id');

# --- branch names that git stores but that are unsafe in scripts
is((run_cmd('git', '-C', $site->dir, 'update-ref', "refs/heads/$_", $hash))[0], 0,
    "git creates the branch $_") for '-dash', '--upload-pack=id', 'a/-b';
my @names = sort map { $_->{name} } @{ branches()->{json}{data} };
is_deeply(\@names, [ 'a/-b', 'main' ], 'a list leaves out branches that start with a dash');
my $pipeline = $api->post('/api/pipelines',
    { projectId => $id, name => 'p', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
for my $name ('-dash', '--upload-pack=id', "x\x7f", 'x' x 256) {
	$got = $api->post('/api/deployments', { projectId => $id, branch => $name });
	is("$got->{status} $got->{json}{errors}[0]{pointer}", '422 /branch',
	    "a deployment of the branch $name is rejected");
	is($api->put($path, { defaultBranch => $name })->{status}, 422,
	    "the default branch $name is rejected");
	is($api->put($path,
	    { triggers => [ { branch => $name, pipelineId => $pipeline, envVars => {} } ] })->{status}, 422,
	    "a trigger for the branch $name is rejected");
}
is($api->get_in_time("/api/git/commits?projectId=$id&branch=-dash")->{status}, 404,
    'commits of the branch -dash return 404');
is($api->post('/api/deployments', { projectId => $id, branch => 'a/-b' })->{status}, 201,
    'a deployment of a branch with a dash after a slash is accepted');
$api->stop;

# --- the same over git's own protocol
$db->sql("UPDATE deployment SET status = 'canceled'");
chmod 0755, $site->dir;
$api = Slipway::API->start(db => $db, migrated => 1, conf => "[gitserver]\ntype = git\nallow_local = yes\n");
$id = accepted($api, $site->dir);
@names = sort map { $_->{name} } @{ branches()->{json}{data} || [] };
is_deeply(\@names, [ 'a/-b', 'main' ],
    'a list by git-ls-remote(1) leaves out branches that start with a dash');
$f->stop;
done_testing;
