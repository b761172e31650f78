#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Submodules and files of Git LFS: the project says whether they are fetched, else the
# runner does.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(ann => { id => 7 });
my $repo = $forge->repo('team/site', users => ['ann']);
my $conf = $forge->conf(token => scalar $forge->token('ann'));
my $all = Slipway::Whole->start(api => $conf, runner => "${conf}[runner]\npoll = 60\nsubmodules = no\n");
my $api = $all->api;

my $first = $repo->commit('main', { page => "one\n" }, 'first');
$repo->git('update-index', '--add', '--cacheinfo', "160000,$first,theme");
$repo->commit('main', { '.gitmodules' => "[submodule \"theme\"]\n\tpath = theme\n\turl = "
	. 'https://git.example.invalid/team/theme' . "\n" }, 'with a theme');
my $project = $all->project($repo->dir);
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'p',
	steps => [ { name => 's', script => 'ls -A theme; cat logo.png || :' } ] })->{json}{id};

# Deploys with that value of the member; returns the status and the log.
sub deploy {
	my ($value, $member) = @_;
	$api->put("/api/projects/$project", { $member || 'submodules' => $value });
	my $id = $api->post('/api/deployments', { projectId => $project })->{json}{id};
	my $end = $all->wait($id);
	return ($end->{status}, $all->log($id));
}

my $empty = qr/^==> warning: submodules are not fetched.*: theme$/m;
my ($status, $log) = deploy(undef);
is($status, 'success', 'null: the runner does not fetch submodules') or diag($log);
like($log, $empty, 'which the log says');
($status, $log) = deploy(Cpanel::JSON::XS::true());
is($status, 'failed', 'true: a submodule that cannot be fetched fails the checkout') or diag($log);
like($log, qr/git\.example\.invalid/, 'the log has its address');
($status, $log) = deploy(Cpanel::JSON::XS::false());
is($status, 'success', 'false: submodules are not fetched') or diag($log);
like($log, $empty, 'which the log says, too');

# --- files of Git LFS
$api->put("/api/projects/$project", { repository => $repo->clone_url });
$repo->commit('main', { '.gitattributes' => "*.png filter=lfs -text\n", 'logo.png' => $repo->lfs("a logo\n"),
	'.gitmodules' => undef }, 'with a logo');
($status, $log) = deploy(Cpanel::JSON::XS::false(), 'lfs');
is($status, 'success', 'false: files of Git LFS are not fetched') or diag($log);
like($log, qr/^==> warning: files of Git LFS are not fetched.*: logo\.png$/m, 'which the log says');
like($log, qr/^oid sha256:/m, 'the steps have a pointer');
($status, $log) = deploy(Cpanel::JSON::XS::true(), 'lfs');
is($status, 'success', 'true: they are fetched') or diag($log);
like($log, qr/^a logo$/m, 'the steps have the content');

done_testing;
