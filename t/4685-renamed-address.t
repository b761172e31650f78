#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The address of a project follows a repository that is renamed or transferred, and
# slipway finds the project in a checkout, in whatever form the remote is written.

use strict;
use warnings;
use Slipway::Client;
use Slipway::Forge;
use Slipway::Hook qw(push_event);
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('robot', { id => 9 });
my $repo = $forge->repo('team/site', private => 1, users => ['robot']);
my $hash = $repo->commit('main', { file => "1\n" }, 'first');
my $conf = $forge->conf(token => scalar $forge->token('robot'), report => 'no');
my $all = Slipway::Whole->start(api => $conf, runner => $conf);
my $api = $all->api;
my $old = $repo->clone_url;
my $project = $all->project($old, name => 'shop');
my $pipeline = $all->pipeline($project, 'cat file');
sub deploy {
	my $got = $api->as('deployer')->post('/api/deployments',
	    { projectId => $project, pipelineId => $pipeline, branch => 'main' });
	die "$got->{status} $got->{body}" if $got->{status} != 201;
	my $id = $got->{json}{id};
	is($all->wait($id)->{status}, 'success', 'a deployment succeeds') or diag($all->log($id));
	return $id;
}
sub address { return $api->get("/api/projects/$project")->{json}{repository} }

deploy();
is(address(), $old, 'the project has its address');
$repo->rename('Crew/Shop');
my $new = $old =~ s{team/site}{Crew/Shop}r;
my $id = deploy();
is(address(), $new, 'after a rename, the project has the new address');
is($api->get("/api/projects/$project/export")->{json}{repository}, $new, 'so has its export');
my ($entry) = grep { $_->{action} eq 'followRepository' }
    @{ $api->get("/api/audit?projectId=$project")->{json}{data} };
is("$entry->{via} $entry->{objectType} $entry->{objectId}", "runner project $project",
    'the audit log says that a runner changed it');
is_deeply($entry->{changes}, [ { name => 'repository', from => $old, to => $new } ],
    'the audit log has both addresses');
is($all->db->sql("SELECT path FROM git_repo WHERE project_id = $project AND repository = '$new'"),
    'Crew/Shop', 'the number belongs to the new address');
my $trap = $forge->repo('team/site', private => 1, users => ['robot']);
$trap->commit('main', { file => "trap\n" }, 'a stranger');
my $again = deploy();
unlike($all->log($again), qr/trap/, 'another repository at the old address is not deployed');
is(address(), $new, 'the address stays');

# --- slipway in a checkout
my $here = tempdir() . '/checkout';
run_cmd('git', 'init', '-q', '-b', 'main', $here);
run_cmd('git', '-C', $here, 'remote', 'add', 'origin', 'x');
my $slipway = Slipway::Client->new($api);
my ($scheme, $host, $path) = $new =~ m{^(\w+)://([^/:]+)[^/]*/(.*)\.git$};
for my $remote ($new, $new =~ s/\.git$//r, $new =~ s{://}{://ann:s\@cret\@}r, $new =~ s{://}{://ann\@}r,
    lc $new, uc($host) . ":$path.git", "git\@$host:$path.git", "ssh://someone\@$host:2222/$path",
    "$scheme://\U$host\E/$path.GIT/") {
	run_cmd('git', '-C', $here, 'remote', 'set-url', 'origin', $remote);
	my ($status, $out, $err) = $slipway->run({ cwd => $here }, 'status');
	is($status, 0, "slipway finds the project of $remote") or diag($out, $err);
	like($out, qr/^deployment\s+$again$/m, 'it shows its last deployment');
}
for my $remote ($old, "https://elsewhere.example.org/$path", "https://$host\@elsewhere.example.org/$path") {
	run_cmd('git', '-C', $here, 'remote', 'set-url', 'origin', $remote);
	my ($status, undef, $err) = $slipway->run({ cwd => $here }, 'status');
	isnt($status, 0, "slipway finds no project of $remote");
}

# --- without a deployment
sub follows {
	my ($path, $via, $name) = @_;
	is(address(), $new =~ s{Crew/Shop}{$path}r, $name);
	my ($entry) = grep { $_->{action} eq 'followRepository' }
	    @{ $api->get("/api/audit?projectId=$project")->{json}{data} };
	is("$entry->{via} $entry->{changes}[0]{to}", "$via " . address(), "$name: the audit log says so");
	return;
}
sub status_at {
	my ($client, $path) = @_;
	run_cmd('git', '-C', $here, 'remote', 'set-url', 'origin',
	    $new =~ s{://}{://ann:s\@cret\@}r =~ s{Crew/Shop}{$path}r);
	return $client->run({ cwd => $here }, 'status');
}
$repo->rename('Crew/Store');
my $deployer = Slipway::Client->new($api, token => $api->token('deployer'));
my ($status, $out, $err) = status_at($deployer, 'Crew/Store');
is($status, 0, 'after a rename, slipway finds the project of a checkout with the new remote')
    or diag($out, $err);
like($out, qr/^deployment\s+$again$/m, 'it shows the last deployment of the project');
is(address(), $new, 'a user who may not change the project does not change its address');
isnt((status_at($deployer, 'team/site'))[0], 0,
    'slipway finds no project of another repository at an old address');
my $store = $new =~ s{Crew/Shop}{Crew/Store}r;
is_deeply($api->as('guest')->get("/api/projects?remote=$store")->{json}{data}, [],
    'a guest finds no project of others by its remote');
is((status_at($slipway, 'Crew/Store'))[0], 0, 'slipway of a user who may change the project finds it, too');
follows('Crew/Store', 'token', 'the project has the address of the checkout');
$repo->rename('Crew/Stand');
my $branches = "/api/git/branches?projectId=$project";
is($api->as('deployer')->get($branches)->{status}, 200, 'a deployer reads branches');
unlike(address(), qr/Stand/, 'the branches that a deployer reads do not change the address');
is($api->get($branches)->{status}, 200, 'an administrator reads branches');
follows('Crew/Stand', 'token', 'the project has the address of the branches that were read');
$api->put("/api/projects/$project", { triggers => [ { branch => 'main', pipelineId => $pipeline,
	envVars => {} } ] });
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my ($headers, $body) = push_event('gitea', $secret, path => 'Crew/Stand', repo_id => $repo->id,
    commit => $hash);
my $pushed = $api->as('none')->post("/api/hooks/$project", $body, $headers);
is($pushed->{status}, 202, 'a push is accepted') or diag($pushed->{body});
$all->wait($pushed->{json}{data}[0]{id});
$repo->rename('Crew/Booth');
$all->runner->write_conf("$all->{runner}{conf}\n[runner]\ncatch_up = 1\n")->restart;
poll(60, sub { address() =~ /Booth/ });
follows('Crew/Booth', 'runner', 'a runner that looks for missed pushes gives the project its address');
$_->stop for $all->runner, $api, $all->db;
done_testing;
