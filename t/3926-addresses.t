#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Addresses of repositories and names of branches: which are taken, what the
# message to the others says, and that one rule holds wherever they appear.

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
sub make { my ($api, $url, %more) = @_; return $api->post('/api/projects', { name => 'p' . ++$named, repository => $url, %more }) }
sub taken { my ($api, $url) = @_; my $got = make($api, $url); is($got->{status}, 201, "taken: $url") or diag($got->{body}); return $got->{json}{id} }
sub refused {
	my ($api, $url, $like) = @_;
	my $got = make($api, $url);
	is($got->{status}, 422, "rejected: $url") or diag($got->{body});
	is($got->{json}{errors}[0]{pointer}, '/repository', 'at /repository');
	like($got->{json}{errors}[0]{detail}, $like, 'with the form to use') or diag($got->{body});
	return;
}

# --- servers without owners (gitolite)
my $api = Slipway::API->start(db => $db);
taken($api, $_) for 'git@git.example.org:site.git', 'git@git.example.org:site', 'https://git.example.org/site.git',
    'ssh://git@git.example.org/site.git', 'ssh://git.example.org:2222/site', 'https://git.example.org:8443/site/';
refused($api, $_, qr/git\@host:owner\/name/) for 'git@git.example.org:', 'git@git.example.org:/', 'git@git.example.org:..', 'https://git.example.org/',
    'https://git.example.org/.git', 'git@git.example.org:-x', 'ssh://git.example.org/-x', 'git@git.example.org:.';

# --- what a browser shows in its address bar
my $repo = 'https://git.example.org/o/r';
refused($api, $_, qr{page: write that of the repository, \Q$repo\E$}) for map { "$repo$_" } '/src/branch/main', '/src/branch/main/a/b.c',
    '/src/tag/v1', '/src/commit/abc', '/tree/main', '/tree/feature%2Fa', '/blob/main/README.md', '/-/tree/main', '/-/blob/main/x?ref_type=heads',
    '/-/settings/repository', '/raw/main/x', '/commits/main', '/blame/main/x', '?tab=readme-ov-file', '#readme', '/tree/main#a';
refused($api, 'https://git.example.org/g/sub/r/-/tree/main', qr{repository, https://git\.example\.org/g/sub/r$});
refused($api, 'https://user:word@git.example.org/o/r/tree/main', qr/without credentials$/);
taken($api, "$repo$_") for '', '/', '.git', '/src', '/src/branch', '/releases';
$api->stop;

# --- what is remembered of a repository, and how to correct it
my $f = Slipway::Forge->start(type => 'gitea', prefix => '/git');
$f->user('ann');
my $site = $f->repo('team/site');
my $hash = $site->commit('main', { file => "a\n" });
$api = Slipway::API->start(db => $db, migrated => 1, conf => $f->conf(token => scalar $f->token('ann')));
refused($api, $f->url . '/team', qr{https://host/owner/name});
refused($api, $f->server . '/team/site', qr/does not lie below the Git server's address, \Q@{[$f->url]}\E$/);
refused($api, $f->url . "/team/site/$_", qr{repository, \Q@{[$f->url]}\E/team/site$}) for 'pulls', 'settings/hooks', 'releases';
my $id = taken($api, $f->url . '/team/site.git');
my $path = "/api/projects/$id";
sub branches { return $api->get("/api/git/branches?projectId=$id&limit=100") }
sub remembered { return $db->sql("SELECT COALESCE(MAX(repo_id), 'none') FROM git_repo WHERE project_id = $id") }
is(branches()->{status}, 200, 'its branches are read');
is(remembered(), $site->id, 'and its number is remembered');
my $address = $api->get($path)->{json}{repository};
is($api->put($path, { description => 'x' })->{status}, 200, 'a change of something else');
is(remembered(), $site->id, 'keeps it');
is($api->put($path, { repository => $address, description => 'y' })->{status}, 200, 'so does a client that writes the address back beside a change');
is(remembered(), $site->id, 'as that corrects nothing');
my $got = $api->put($path, { repository => $address });
is($got->{status}, 200, 'the same address, sent alone');
is(remembered(), 'none', 'forgets the number');
is(branches()->{status}, 200, 'which the next request');
is(remembered(), $site->id, 'finds again');
$db->sql("UPDATE git_repo SET repo_id = '99999' WHERE project_id = $id");
$db->sql("INSERT INTO branch_commits (project_id, branch, commits, checked_at) VALUES ($id, 'main', '[]', NOW(3))");
is($api->put($path, { repository => $_ })->{status}, 200, 'away and back') for $f->url . '/team/other', $address;
is(remembered(), 'none', 'forgets it, too');
is($db->sql("SELECT COUNT(*) FROM branch_commits WHERE project_id = $id"), 0, 'with the commits of the clone');
is(branches()->{status}, 200, 'the repository is found by its address');
$api->put($path, { repository => $address });
is($api->as('deployer')->put($path, { repository => $address })->{status}, 403, 'who may not write the project corrects nothing');

# --- names that git stores but no script can pass on
is((run_cmd('git', '-C', $site->dir, 'update-ref', "refs/heads/$_", $hash))[0], 0, "the repository has a branch $_") for '-dash', '--upload-pack=id', 'a/-b';
my @names = sort map { $_->{name} } @{ branches()->{json}{data} };
is_deeply(\@names, [ 'a/-b', 'main' ], 'a list leaves out branches that start with a dash');
my $pipeline = $api->post('/api/pipelines', { projectId => $id, name => 'p', steps => [ { name => 's', script => 'true' } ] })->{json}{id};
for my $name ('-dash', '--upload-pack=id', "x\x7f", 'x' x 256) {
	$got = $api->post('/api/deployments', { projectId => $id, branch => $name });
	is("$got->{status} $got->{json}{errors}[0]{pointer}", '422 /branch', "none is deployed: $name");
	is($api->put($path, { defaultBranch => $name })->{status}, 422, 'nor is the default');
	is($api->put($path, { triggers => [ { branch => $name, pipelineId => $pipeline, envVars => {} } ] })->{status}, 422, 'nor starts a trigger');
}
is($api->get("/api/git/commits?projectId=$id&branch=-dash")->{status}, 404, 'nor has commits');
is($api->post('/api/deployments', { projectId => $id, branch => 'a/-b' })->{status}, 201, 'one with a dash further on is deployed');
$api->stop;

# --- the same over git's own protocol
$db->sql("UPDATE deployment SET status = 'canceled'");
chmod 0755, $site->dir;
$api = Slipway::API->start(db => $db, migrated => 1, conf => "[gitserver]\ntype = git\nallow_local = yes\n");
$id = taken($api, $site->dir);
@names = sort map { $_->{name} } @{ branches()->{json}{data} || [] };
is_deeply(\@names, [ 'a/-b', 'main' ], 'a list by git-ls-remote(1) leaves them out, too');
$f->stop;
done_testing;
