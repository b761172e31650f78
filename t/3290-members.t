#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Members of projects, and guests: every operation of the OpenAPI document with every
# role as a member, on objects of the member's project and of another one. A new
# operation needs a line here. A guest learns nothing about other projects.

use strict;
use warnings;
use List::Util qw(min);
use Slipway::API qw(bearer outcome);
use Slipway::DB;
use Slipway::Stream;
use Slipway::Test;
use Slipway::Visitor;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, nginx => \&Slipway::Visitor::unlimited);
my $document = $api->get('/api/openapi.json')->{json};
my @ranks = qw(none guest viewer deployer maintainer admin);
my %rank = map { $ranks[$_] => $_ } 0 .. $#ranks;

# --- where each operation finds the project: by the id in its path, by a parameter
# or a member of the body; no project: the user's own role decides
my %where = (
	path => [
		map({ ("GET $_", "PUT $_", "DELETE $_") } map { "/api/$_/{id}" } qw(projects pipelines steps
		    environments schedules notifiers)),
		'DELETE /api/projects/{id}/cache', 'PUT /api/projects/{id}/hook-secret',
		map({ ("PUT $_/lock", "DELETE $_/lock") } '/api/projects/{id}', '/api/environments/{id}'),
		'GET /api/projects/{id}/members', 'GET /api/projects/{id}/export',
		map({ "$_ /api/projects/{id}/members/{userId}" } qw(PUT DELETE)),
		map({ "$_ /api/projects/{id}/deploy-key" } qw(GET PUT DELETE)),
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
		map({ "$_ /api/lock" } qw(GET PUT DELETE)), 'GET /api/git/repositories',
		map({ "GET /api/user/$_" } qw(list search detail/{id})), 'POST /api/user',
		map({ "$_ /api/user/{id}" } qw(PUT DELETE)),
		map({ "$_ /api/variables" } qw(GET POST)),
		map({ "$_ /api/variables/{id}" } qw(GET PUT DELETE)),
		map({ "$_ /api/auth/logout" } qw(GET POST)), 'GET /api/auth/info', 'GET /api/auth/url',
		'POST /api/auth/login', 'POST /api/auth/session', map({ "$_ /api/auth/tokens" } qw(GET POST)),
		map({ "$_ /api/auth/tokens/{id}" } qw(GET DELETE)),
		'POST /api/auth/device', 'GET /api/auth/device/request',
		map({ "POST /api/auth/device/$_" } qw(token approve deny)),
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
my %of = map { $_ => objects($_) } qw(mine other third);

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
user('g', 'guest');
user("g-$_", 'guest', $_) for qw(viewer deployer maintainer);
user('g-capped', 'guest', 'maintainer', 'viewer');

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
			my $foreign = $project eq 'other' || $user->{member} eq 'none';
			my $hidden = $user->{role} eq 'guest' && ($operation eq 'GET /api/user/detail/{id}'
			    || $kind{$operation} ne 'nowhere' && $foreign);
			my $want = !$hidden && $role < $rank{ $need{$operation} } ? 'forbidden' : 'in';
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

# --- the role in a project, alone and in lists
for my $name (sort keys %user) {
	my $user = $user{$name};
	for my $project (qw(mine other)) {
		my $id = $of{$project}{projects};
		my ($rank) = sort { $b <=> $a } map { $rank{$_} } $user->{role},
		    $project eq 'mine' ? $user->{member} : ();
		next if $rank == $rank{guest}; # sees nothing
		$rank = $rank{ $user->{token} } if $rank > $rank{ $user->{token} };
		my @role = map { $_->{role} } $api->get("/api/projects/$id", $user->{headers})->{json},
		    map { grep { $_->{id} == $id } @{ $api->get($_, $user->{headers})->{json}{data} } }
		    '/api/projects', '/api/board';
		is("@role", join(' ', ($ranks[$rank]) x 3), "$name: reads the role in the $project project");
	}
}

# --- a guest: ids of other projects have the responses of unknown ids
my %unknown = map { $_ => 999_999 } keys %{ $of{other} };
sub response {
	my ($user, $operation, $id) = @_;
	my $got = ask($user, $operation, $id);
	my %head = %{ $got->{headers} };
	delete @head{qw(date x-request-id)};
	my $text = join "\n", $got->{status}, $got->{body}, map { "$_: $head{$_}" } sort keys %head;
	$text =~ s/"requestId":"\w+"//;
	$text =~ s/((?:project|pipeline)Id=)\d+/$1/g;
	return $text;
}
for my $name (qw(g g-maintainer)) {
	my @shown;
	for my $operation (grep { $kind{$_} ne 'nowhere' } sort keys %operation) {
		my ($one, $none) = map { response($user{$name}, $operation, $_) } $of{other}, \%unknown;
		push @shown, "$operation: $one, not $none" if $one ne $none;
	}
	is_deeply(\@shown, [], "$name: the objects of other projects look like unknown ones");
}

my ($maintains, $mine) = ($user{'g-maintainer'}{headers}, $of{mine});
for my $case ([ POST => 'deployments', projectId => $mine->{projects}, pipelineId => 'pipelines' ],
    [ POST => 'deployments', projectId => $mine->{projects}, environmentId => 'environments' ],
    [ POST => 'schedules', projectId => $mine->{projects}, cron => '@daily', name => 'x',
	pipelineId => 'pipelines' ],
    [ PUT => "schedules/$mine->{schedules}", environmentId => 'environments' ],
    [ PUT => "notifiers/$mine->{notifiers}", environmentId => 'environments' ],
    [ POST => "deployments/$mine->{deployments}/promote", environmentId => 'environments' ],
    [ POST => "environments/$mine->{environments}/rollback", deploymentId => 'deployments' ],
    [ PUT => "projects/$mine->{projects}", triggers => 'pipelines' ]) {
	my ($method, $path, @body) = @$case;
	my $type = pop @body;
	my ($one, $none) = map {
		my $id = $_->{$type};
		$id = [ { branch => 'x', pipelineId => $id } ] if $body[-1] eq 'triggers';
		my $got = $api->request($method, "/api/$path", { @body, $id }, $maintains);
		"$got->{status} $got->{body}" =~ s/"requestId":"\w+"//r;
	} $of{other}, \%unknown;
	is($one, $none, "$method /api/$path: $body[-1] of another project looks like an unknown one");
}

# --- a guest: lists contain the member's project alone
my %lists = (projects => 'id', board => 'id', pipelines => 'projectId', steps => 'pipelineId',
	environments => 'projectId', schedules => 'projectId', deployments => 'projectId');
$db->sql("INSERT INTO runner (name, labels, version, slots, started_at, seen_at)"
    . " VALUES ('r', '[]', '1', 4, NOW(3), NOW(3));"
    . "UPDATE deployment SET runner = 'r', status = 'running', started_at = NOW(3)");
for my $list (sort keys %lists) {
	my ($guest) = map { $api->get("/api/$list", $_->{headers}) } $user{'g-viewer'};
	my $id = $list eq 'steps' ? $mine->{pipelines} : $mine->{projects};
	is(join(' ', map { $_->{ $lists{$list} } } @{ $guest->{json}{data} }), $id,
	    "a guest's list of $list has those of the guest's project");
	is($guest->{json}{pagination}{total} // 1, 1, "a guest's list of $list counts no others");
	my $none = $api->get("/api/$list", $user{g}{headers});
	is(scalar @{ $none->{json}{data} }, 0, "a guest without a project has an empty list of $list");
	is($api->get("/api/$list?page=2&limit=1", $user{'g-viewer'}{headers})->{json}{data}[0], undef,
	    "a guest's list of $list has no second page") if $list ne 'deployments';
}
my $guest = $user{'g-viewer'}{headers};
is_deeply([ map { $_->{name} } @{ $api->get('/projects', $guest)->{json} } ], ['mine'],
    "a guest's list of names has those of the guest's projects");
is($api->get('/api/projects?name=oth', $guest)->{json}{pagination}{total}, 0,
    'a guest finds no other project');
is($api->get('/api/projects?name=MIN', $guest)->{json}{pagination}{total}, 1, 'a guest finds its own');
is($api->get('/api/runners', $guest)->{json}{data}[0]{running}, 1,
    "a guest's list of runners counts the deployments of the guest's projects");
is($api->get('/api/runners')->{json}{data}[0]{running}, 3,
    'a list of runners counts all deployments for other users');
my @members = map { $_->{username} }
    @{ $api->get("/api/projects/$mine->{projects}/members")->{json}{data} };
is_deeply([ map { $_->{username} } @{ $api->get('/api/user/list', $guest)->{json}{data} } ], \@members,
    'a guest lists the members of its projects');
is($api->get('/api/user/search?keyword=t-admin', $guest)->{json}{pagination}{total}, 0,
    'a guest finds no other users');
is($api->get("/api/user/detail/$user{v}{id}", $guest)->{status}, 404, 'other users are unknown to a guest');
is($api->get("/api/user/detail/$user{'g-capped'}{id}", $guest)->{status}, 200, 'members are not');

# --- a guest: pages of deployments
$db->sql("UPDATE deployment SET runner = NULL, status = 'success', finished_at = NOW(3)");
my $third = "/api/projects/$of{third}{projects}/members/$user{'g-viewer'}{id}";
is($api->put($third, { role => 'viewer' })->{status}, 200, 'a guest becomes a member of a second project');
for my $n (1 .. 5) {
	$api->make('/api/deployments', { projectId => $of{$_}{projects}, branch => $n % 2 ? 'odd' : 'even' })
	    for qw(mine other third other);
}
for my $query ('', '&status=pending', '&branch=odd', "&createdBy=" . $api->get('/api/auth/info')->{json}{id},
    '&trigger=manual') {
	my (@pages, $next);
	for (1 .. 20) {
		my $cursor = $next ? "&cursor=$next" : '';
		my $page = $api->get("/api/deployments?limit=2$query$cursor", $guest)->{json};
		push @pages, @{ $page->{data} };
		$next = $page->{pagination}{next} or last;
	}
	my @want = grep { $_->{projectId} != $of{other}{projects} }
	    @{ $api->get("/api/deployments?limit=100$query")->{json}{data} };
	is_deeply([ map { $_->{id} } @pages ], [ map { $_->{id} } @want ],
	    "the pages of a guest's deployments ($query) have all of the guest's projects and no others");
}

# --- a guest: rules
my $own = "/api/projects/$mine->{projects}";
is(outcome($api->put($own, { name => $_ }, $maintains)), '422 /name', 'a guest does not rename a project')
    for 'other', 'free';
is(outcome($api->put($own, { repository => 'https://git.example.org/team/other' }, $maintains)),
    '422 /repository', 'a guest does not select another repository');
is($api->put($own, { description => 'new' }, $maintains)->{status}, 200,
    'a guest who is a maintainer changes the rest');
is($api->put("$own/members/$user{v}{id}", { role => 'viewer' }, $maintains)->{status}, 404,
    'a guest adds no user who is unknown to the guest');
is($api->put("$own/members/$user{'g-viewer'}{id}", { role => 'deployer' }, $maintains)->{status}, 200,
    'a guest who is a maintainer changes the role of a member');
my @why = map {
	my $got = $api->put("/api/environments/$mine->{environments}", { approvers => [$_] }, $maintains);
	join ' ', outcome($got), $got->{json}{errors}[0]{detail} || '';
} 999999, $user{v}{id} + 0;
like($why[0], qr/unknown user/, 'an approver who does not exist is unknown');
is($why[1], $why[0], 'a user who shares no project is unknown to a guest, too');
is($api->post('/api/auth/tokens', { name => 'own' }, $user{g}{headers})->{json}{role}, 'viewer',
    'a guest without a project creates tokens for viewers');
my %key = ('Idempotency-Key' => 'k');
my @again = ('/api/deployments', { projectId => $of{third}{projects} }, { %$guest, %key });
is($api->post(@again)->{status}, 403, 'a guest deploys nothing as a viewer');
$api->put($third, { role => 'deployer' });
is($api->post(@again)->{status}, 201, 'a guest who is a deployer deploys');

# --- the cost of memberships: only callers whose role they can raise pay for it
sub executed { return $db->sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'") =~ s/\D//gr }
sub statements {
	my (@headers) = @_;
	my @n;
	for (1 .. 4) { # a worker may record the last use of a token, once
		my $before = executed();
		$api->get("/api/projects/$of{mine}{projects}", @headers);
		push @n, executed() - $before;
	}
	return min @n;
}
is(statements(), 2, 'an administrator reads a project with two statements');
is(statements($user{v}{headers}), 3, 'a viewer reads it with one more: the role as a member');
$db->sql("UPDATE api_token SET role = 'viewer' WHERE user_id = $user{v}{id}");
is(statements($user{v}{headers}), 2, 'a token whose role a membership cannot raise needs no more than two');
$db->sql("UPDATE api_token SET role = 'admin' WHERE user_id = $user{v}{id}");

# --- a guest: streams
$api->start_live;
my %stream = map { my $path = $_; ($path => Slipway::Stream->open($api, "/api/$path", %$guest)) }
    'events', "events?projectId=$of{third}{projects}", "events?projectId=$of{other}{projects}";
ok($stream{"events?projectId=$of{other}{projects}"}->wait_for(qr/\AHTTP\S+ 404/),
    'a stream of another project does not exist');
my @made = map { $api->make('/api/deployments', { projectId => $of{$_}{projects} })->{id} } qw(other third);
ok($_->wait_for(qr/"id":$made[1],/), 'a guest listens to its projects')
    for $stream{events}, $stream{"events?projectId=$of{third}{projects}"};
my %seen = map { $_ => 1 } $stream{events}->ids;
my @foreign = map { $_->{id} } grep { $_->{projectId} == $of{other}{projects} }
    @{ $api->get('/api/deployments?limit=100')->{json}{data} };
is_deeply([ grep { $seen{$_} } @foreign ], [], "a guest's stream has no events of other projects");
is($api->delete($third)->{status}, 204, 'a guest is removed from a project');
is(outcome($api->post(@again)), '422 /projectId', 'a former member gets no earlier response again');
ok($stream{$_}->has_ended, "the stream $_ of a former member ends")
    for sort grep { !/=$of{other}{projects}$/ } keys %stream;

# --- the routes of members
my $at = "/api/projects/$of{mine}{projects}/members";
my $v = "$at/$user{v}{id}";
my $list = $api->get("$at?limit=2");
is(join(' ', map { "$_->{username}=$_->{role}" } @{ $list->{json}{data} }),
    'd-maintainer=maintainer g-capped=maintainer', 'members are listed by username');
is($list->{json}{pagination}{total}, 10, 'the list counts the members');
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
is($got->{json}{approval}, 'granted', 'a deployer of the project approves a deployment');
is($api->delete("$at/$user{'v-deployer'}{id}")->{status}, 204, 'the approver is removed from the project');
is($api->post("/api/deployments/$waiting[1]/approve", undef, $user{'v-deployer'}{headers})->{status}, 403,
    'a removed member approves nothing');
is($api->get("/api/deployments/$waiting[0]")->{json}{approval}, 'granted',
    'the deployment that the member approved stays approved');

# --- tokens
my $token = $api->post('/api/auth/tokens', { name => 'own' }, $maintainer);
is($token->{json}{role}, 'maintainer', 'the default role of a token is the highest role that its user has');
is(outcome($api->post('/api/auth/tokens', { name => 'x', role => 'admin' }, $maintainer)), '422 /role',
    'a token has no higher role than its user has anywhere');

# --- deletion
is($api->delete("/api/user/$user{'m-viewer'}{id}")->{status}, 204, 'a member is deleted');
is($db->sql("SELECT COUNT(*) FROM member WHERE user_id = $user{'m-viewer'}{id}"), 0,
    'a deleted user is no longer a member');
is($api->delete("/api/projects/$of{mine}{projects}")->{status}, 204, 'a project is deleted');
is($db->sql('SELECT COUNT(*) FROM member'), 0, 'the members of a deleted project are deleted');

done_testing;
