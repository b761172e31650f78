#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Members of projects: every operation of the OpenAPI document with every role as a
# member, on objects of the member's project and of another one. A new operation
# needs a line here.

use strict;
use warnings;
use Slipway::API qw(bearer outcome);
use Slipway::DB;
use Slipway::Test;
use Slipway::Visitor;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited);
my $document = $api->get('/api/openapi.json')->{json};
my @ranks = qw(none guest viewer deployer maintainer admin);
my %rank = map { $ranks[$_] => $_ } 0 .. $#ranks;

# --- where each operation finds the project: by the id in its path, by a parameter
# or a member of the body; no project: the user's own role decides
my %where = (
	path => [
		map({ ("GET $_", "PUT $_", "DELETE $_") } map { "/api/$_/{id}" } qw(projects pipelines steps
		    environments schedules notifiers)),
		'PUT /api/projects/{id}/hook-secret', map({ ("PUT $_/lock", "DELETE $_/lock") }
		    '/api/projects/{id}', '/api/environments/{id}'),
		'GET /api/projects/{id}/members', 'GET /api/projects/{id}/export',
		map({ "$_ /api/projects/{id}/members/{userId}" } qw(PUT DELETE)),
		'POST /api/environments/{id}/rollback',
		'PUT /api/notifiers/{id}/secret', 'POST /api/notifiers/{id}/test',
		map({ "GET /api/deployments/{id}$_" } '', '/events', '/log', '/log/index', '/log/matches'),
		map({ "POST /api/deployments/{id}/$_" } qw(approve cancel deny promote retry)),
	],
	query => [
		map({ "GET /api/$_" } qw(deployments environments pipelines schedules steps notifiers audit
		    events)),
		map({ "GET /api/git/$_" } qw(branches commits tags)),
	],
	body => [
		map({ "POST /api/$_" } qw(deployments environments pipelines schedules steps notifiers
		    pipelines/from-template)),
	],
	nowhere => [
		'GET /health', 'GET /api/health', 'GET /api/openapi.json', 'GET /api/metrics',
		'GET /projects', 'GET /api/projects', 'POST /api/projects', 'GET /api/board',
		'POST /api/projects/import', 'GET /api/projects/{id}/badge.svg',
		'POST /api/hooks/{id}',
		'GET /api/runners', map({ "GET /api/$_" } qw(pipelines/templates templates templates/{id})),
		map({ "$_ /api/lock" } qw(GET PUT DELETE)),
		map({ "GET /api/user/$_" } qw(list search detail/{id})), 'POST /api/user',
		map({ "$_ /api/user/{id}" } qw(PUT DELETE)),
		map({ "$_ /api/variables" } qw(GET POST)),
		map({ "$_ /api/variables/{id}" } qw(GET PUT DELETE)),
		map({ "$_ /api/auth/logout" } qw(GET POST)), 'GET /api/auth/info', 'GET /api/auth/url',
		'POST /api/auth/login', 'POST /api/auth/session', map({ "$_ /api/auth/tokens" } qw(GET POST)),
		map({ "$_ /api/auth/tokens/{id}" } qw(GET DELETE)),
	],
);
my %kind = map { my $kind = $_; map { $_ => $kind } @{ $where{$kind} } } keys %where;
my %operation;
for my $path (keys %{ $document->{paths} }) {
	$operation{ uc($_) . " $path" } = $document->{paths}{$path}{$_}
	    for grep { /^(?:get|post|put|delete)$/ } keys %{ $document->{paths}{$path} };
}
is_deeply([ sort keys %kind ], [ sort keys %operation ],
    'the test knows where every operation finds its project');
my @said = grep { $operation{$_}{description} =~ /as a member of the project/ } sort keys %operation;
is_deeply(\@said, [ sort grep { $kind{$_} ne 'nowhere' } keys %kind ],
    'the document says to which operations the role of a member applies');
my %need = map { $_ => $operation{$_}{description} =~ /Requires the role (\w+)/ ? $1 : 'none' }
    keys %operation;

# --- two projects, each with one object of every kind
sub objects {
	my ($name) = @_;
	my %id = (projects => $api->make('/api/projects', { name => $name,
		repository => "https://git.example.org/team/$name" })->{id});
	my @of = (projectId => $id{projects}, name => $name);
	my $pipeline = $api->make('/api/pipelines', { @of, steps => [ { name => 'a', script => 'true' } ] });
	$id{pipelines} = $pipeline->{id};
	($id{steps}) = map { $_->{id} } @{ $pipeline->{steps} };
	$id{environments} = $api->make('/api/environments', {@of})->{id};
	$id{schedules} = $api->make('/api/schedules', { @of, pipelineId => $id{pipelines},
		cron => '@yearly' })->{id};
	$id{notifiers} = $api->make('/api/notifiers', { projectId => $id{projects}, kind => 'mail',
		target => 'team@example.org', events => ['failed'] })->{id};
	$id{deployments} = $api->make('/api/deployments', { projectId => $id{projects} })->{id};
	return \%id;
}
ok($api->create_keys, 'the service has keys');
my %of = map { $_ => objects($_) } qw(mine other);

# A user with a global role who is a member of the first project; `token`: the role
# of the token.
my %user;
sub user {
	my ($name, $role, $member, $token) = @_;
	$user{$name} = { headers => bearer($api->new_token($role, $name)), role => $role,
		member => $member || 'none', token => $token || 'admin' };
	$user{$name}{id} = $db->sql("SELECT id FROM user WHERE username = '$name'");
	$db->sql("UPDATE api_token SET role = '$user{$name}{token}' WHERE user_id = $user{$name}{id}");
	return if !$member;
	my $got = $api->put("/api/projects/$of{mine}{projects}/members/$user{$name}{id}",
	    { role => $member });
	die "$got->{status} $got->{body}" if $got->{status} != 200;
}
user('v', 'viewer');
user("v-$_", 'viewer', $_) for qw(viewer deployer maintainer);
user('d-maintainer', 'deployer', 'maintainer');
user('m-viewer', 'maintainer', 'viewer');
user('v-capped', 'viewer', 'maintainer', 'deployer');

# Sends a request that changes nothing, because its body or precondition is invalid.
sub ask {
	my ($user, $name, $id) = @_;
	my ($method, $path) = split / /, $name;
	my ($type) = $path =~ m{^(?:/api)?/(\w+)};
	my $place = $kind{$name};
	$path =~ s/\{id\}/$id->{$type} || 999999/e;
	$path =~ s/\{userId\}/$user{v}{id}/;
	my %named = $type eq 'steps' ? (pipelineId => $id->{pipelines}) : (projectId => $id->{projects});
	my %query = ($path =~ /matches/ ? (q => 'x') : (), $place eq 'query' ? %named : ());
	$path .= '?' . join '&', map { "$_=$query{$_}" } sort keys %query if %query;
	my %body = (nonsense => 1, $place eq 'body' ? %named : ());
	return $api->request($method, $path, $method =~ /^P/ ? \%body : undef,
	    { %{ $user->{headers} }, $method eq 'DELETE' ? ('If-Match' => '"0-0"') : () });
}

# --- the higher one of both roles applies, to the project alone
for my $name (sort keys %user) {
	my $user = $user{$name};
	my (@wrong, @failed);
	for my $operation (sort keys %operation) {
		next if $operation =~ m{^POST /api/hooks|/logout|/auth/session};
		for my $project (qw(mine other)) {
			my @roles = ($user->{role}, $kind{$operation} eq 'nowhere' || $project eq 'other'
				? () : $user->{member});
			my ($role) = sort { $b <=> $a } map { $rank{$_} } @roles;
			$role = $rank{ $user->{token} } if $role > $rank{ $user->{token} };
			my $want = $role < $rank{ $need{$operation} } ? 'forbidden' : 'in';
			$want = 'forbidden' if $operation eq 'GET /api/audit' && $role < $rank{maintainer};
			my $got = ask($user, $operation, $of{$project});
			my $is = $got->{status} == 403 ? 'forbidden' : 'in';
			push @wrong, "$operation ($project): $got->{status}" if $is ne $want;
			push @failed, "$operation: $got->{status}"
			    if $got->{status} >= 500 && $got->{status} != 503;
		}
	}
	is_deeply(\@wrong, [], "$name: exactly the operations of the higher role are accepted");
	is_deeply(\@failed, [], "$name: no request causes a server error");
}

# --- the routes of members
my $at = "/api/projects/$of{mine}{projects}/members";
my $v = "$at/$user{v}{id}";
my $list = $api->get("$at?limit=2");
is(join(' ', map { "$_->{username}=$_->{role}" } @{ $list->{json}{data} }),
    'd-maintainer=maintainer m-viewer=viewer', 'members are listed by username');
is($list->{json}{pagination}{total}, 6, 'the list counts the members');
is($api->get('/api/projects/999999/members')->{status}, 404, 'the members of an unknown project are a 404');
my $maintainer = $user{'v-maintainer'}{headers};
my $got = $api->put($v, { role => 'deployer' }, $maintainer);
is($got->{status}, 200, 'a maintainer of the project adds a member');
is(join(' ', sort keys %{ $got->{json} }), 'createdAt role userId username', 'the response is the member');
is($api->post('/api/deployments', { projectId => $of{mine}{projects} }, $user{v}{headers})->{status}, 201,
    'the new member deploys');
is($api->post('/api/deployments', { projectId => $of{other}{projects} }, $user{v}{headers})->{status}, 403,
    'the new member does not deploy another project');
is($api->put($v, { role => 'viewer' }, { %$maintainer, 'If-Match' => '"0-0"' })->{status}, 412,
    'If-Match of another version rejects the change');
is($api->put($v, { role => 'viewer' }, { %$maintainer, 'If-Match' => $got->{headers}{etag} })->{status}, 200,
    'If-Match of the current version permits it');
is(outcome($api->put($v, { role => $_ }, $maintainer)), '422 /role', "$_ is not a role of members")
    for 'admin', 'guest', '';
is(outcome($api->put("$at/$user{'m-viewer'}{id}", {})), 200, 'a change without a role changes nothing');
is($api->put("$at/999999", { role => 'viewer' })->{status}, 404, 'an unknown user is a 404');
is($api->delete($v, $maintainer)->{status}, 204, 'a maintainer of the project removes a member');
is($api->delete($v, $maintainer)->{status}, 404, 'a user who is not a member is a 404');
is($api->post('/api/deployments', { projectId => $of{mine}{projects} }, $user{v}{headers})->{status}, 403,
    'the former member no longer deploys');

# --- rules of deploying that depend on the role
my %vars = (projectId => $of{mine}{projects}, envVars => { EXTRA => '1' });
is(outcome($api->post('/api/deployments', \%vars, $user{'v-deployer'}{headers})), '422 /envVars/EXTRA',
    'a deployer of the project sets no other variables');
is($api->post('/api/deployments', \%vars, $maintainer)->{status}, 201, 'a maintainer of the project does');
my $env = "/api/environments/$of{mine}{environments}";
is(outcome($api->put($env, { approvers => [ 0 + $user{v}{id} ] })), '422 /approvers/0',
    'a viewer cannot become an approver');
is($api->put($env, { approval => 'required',
	approvers => [ 0 + $user{'v-deployer'}{id} ] })->{status}, 200, 'a deployer of the project can');
my @waiting = map { $api->make('/api/deployments', { projectId => $of{mine}{projects},
	commitHash => 'a' x 40 })->{id} } 1, 2;
$got = $api->post("/api/deployments/$waiting[0]/approve", undef, $user{'v-deployer'}{headers});
is($got->{json}{approval}, 'granted', 'and approves a deployment');
is($api->delete("$at/$user{'v-deployer'}{id}")->{status}, 204, 'the approver is removed from the project');
is($api->post("/api/deployments/$waiting[1]/approve", undef, $user{'v-deployer'}{headers})->{status}, 403,
    'a removed member approves nothing');
is($api->get("/api/deployments/$waiting[0]")->{json}{approval}, 'granted',
    'what the member approved stays approved');

# --- tokens
my $token = $api->post('/api/auth/tokens', { name => 'own' }, $maintainer);
is($token->{json}{role}, 'maintainer', 'the default role of a token is the highest role that its user has');
is(outcome($api->post('/api/auth/tokens', { name => 'x', role => 'admin' }, $maintainer)), '422 /role',
    'a token has no higher role than its user has anywhere');

# --- deletion
is($api->delete("/api/user/$user{'m-viewer'}{id}")->{status}, 204, 'a member is deleted');
is($db->sql("SELECT COUNT(*) FROM member WHERE user_id = $user{'m-viewer'}{id}"), 0,
    'and is a member no longer');
is($api->delete("/api/projects/$of{mine}{projects}")->{status}, 204, 'a project is deleted');
is($db->sql('SELECT COUNT(*) FROM member'), 0, 'and its members with it');

done_testing;
