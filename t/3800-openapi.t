#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The OpenAPI document describes what the service does: the document passes a
# third-party linter, every operation in it is called through nginx, and
# third-party validators check every response, successes and errors: Debian's
# jsonschema, and npm's where the npm registry can be reached.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Hook;
use Slipway::Npm;
use Slipway::Test;
use Slipway::Visitor;

my $npm = npm_dir();
note($npm ? 'validators: jsonschema, Redocly and Ajv' : 'validators: jsonschema alone');
my @python = ('/usr/bin/python3', srcdir() . '/t/openapi-judge.py');
my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my $db = Slipway::DB->start;
my $conf = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
ok(make_keys(spew(tempdir() . '/key.conf', $db->conf . $conf), tempdir() . '/secret.key'),
    'slipway-admin key creates the keys for secrets');
my $api = Slipway::API->start(db => $db, conf => $conf, nginx => \&Slipway::Visitor::unlimited);
my %as = map { $_ => $api->as($_) } qw(none viewer deployer maintainer admin);

# --- the document itself
my $got = $as{none}->get('/api/openapi.json');
is($got->{status}, 200, 'the document needs no authentication');
my $doc = $got->{json} || die 'no OpenAPI document';
is($doc->{openapi}, '3.1.0', 'the document is OpenAPI 3.1');
is($as{none}->get('/api/openapi.json',
    { 'If-None-Match' => $got->{headers}{etag} || '' })->{status}, 304,
    'If-None-Match with the ETag of the document returns 304');
my $file = spew(tempdir() . '/openapi.json', $got->{body});

my $broken = $json->decode($got->{body});
$broken->{components}{schemas}{Project}{properties}{id} = { type => 'number of the project' };
delete $broken->{paths}{'/api/projects'}{get}{responses}{$_}
    for grep { /^4/ } keys %{ $broken->{paths}{'/api/projects'}{get}{responses} };

# The problems of each document.
sub lint {
	my (@files) = @_;
	my @lines;
	for my $run ($npm ? ['node', 'lint.mjs', @files] : map { [@python, $_] } @files) {
		my ($status, $out, $err) = run_cmd({ cwd => $npm || '.' }, @$run);
		die "the linter failed:\n$out$err" if $status != 0;
		push @lines, split /\n/, $out;
	}
	return map { $json->decode($_) } @lines;
}
my ($problems, $found) = lint($file, spew(tempdir() . '/broken.json', $json->encode($broken)));
is_deeply($problems, [], 'the linter accepts the document') || diag(explain $problems);
cmp_ok(scalar @$found, '>', 0,
    'the linter rejects an operation without error responses and an unknown type');
my ($status, $words) = run_cmd(@python, $file);
is($words, "[]\n", 'the schemas are valid and every reference resolves');
for my $path (sort keys %{ $doc->{paths} }) {
	for my $method (grep { ref $doc->{paths}{$path}{$_} eq 'HASH' } qw(put delete)) {
		my $operation = $doc->{paths}{$path}{$method};
		my %takes = map { ($_->{'$ref'} || '') =~ m{/(If\w+)$} ? ($1 => 1) : () }
		    @{ $operation->{parameters} || [] }, @{ $doc->{paths}{$path}{parameters} || [] };
		is(join(' ', sort keys %takes), $operation->{responses}{412} ? 'IfMatch IfNoneMatch' : '',
		    "$method $path: If-Match and If-None-Match are parameters exactly if 412 is a response");
		ok(!$operation->{responses}{304}, "$method $path: a change never returns 304");
	}
}

# Every operation: "GET /api/projects/{id}" => its object in the document.
my %operation;
for my $path (keys %{ $doc->{paths} }) {
	for my $method (keys %{ $doc->{paths}{$path} }) {
		my $name = uc($method) . " $path";
		$operation{$name} = { %{ $doc->{paths}{$path}{$method} },
			name => $name, method => uc $method, path => $path };
	}
}
cmp_ok(scalar keys %operation, '>', 30, 'the document has operations');
for my $name (sort keys %operation) {
	my @errors = grep { /^[45]/ } keys %{ $operation{$name}{responses} };
	my @wrong = grep {
		my $ref = $operation{$name}{responses}{$_}{'$ref'} || '';
		my ($key) = $ref =~ m{^#/components/responses/(\w+)$};
		join(' ', keys %{ $doc->{components}{responses}{$key || ''}{content} || {} })
		    ne 'application/problem+json';
	} @errors;
	ok(@errors > 2 && !@wrong, "$name describes its errors as problem details");
}

# --- calls
my (@records, %driven);

# Makes one request of an operation and expects the status `want`.
sub drive {
	my ($name, $want, %opt) = @_;
	my $op = $operation{$name};
	return fail("$name is in the document") if !$op;
	my $path = $op->{path};
	$path =~ s/\{(\w+)\}/$opt{$1} \/\/ ($1 eq 'userId' ? 1 : 0)/ge;
	my $sent = ref $opt{body} ? $json->encode($opt{body}) : $opt{body};
	my $answer = $as{ $opt{role} || 'admin' }->request($opt{method} || $op->{method},
		$path . ($opt{query} ? "?$opt{query}" : ''), $sent, $opt{headers});
	my $label = "$name: " . ($opt{label} || 'works');
	is($answer->{status}, $want, $label) || diag(substr $answer->{body}, 0, 500);
	return $answer if $opt{method};
	$driven{$name}{ $answer->{status} } = 1;
	my %headers = map {
		my $v = $answer->{headers}{$_};
		lc($_) => ref $v ? join(', ', @$v) : $v;
	} keys %{ $answer->{headers} };
	push @records, { operation => $op->{operationId}, status => 0 + $answer->{status},
		headers => \%headers, body => $answer->{body}, sent => $sent, label => $label };
	return $answer;
}

my %id;
sub make {
	my ($what, $name, %opt) = @_;
	my $answer = drive($name, 201, %opt);
	$id{$what} = $answer->{json}{id};
	is($answer->{headers}{location}, $opt{at} . ($id{$what} || '?'),
	    "$name: Location points to the new object");
	return $answer;
}

# Reads an object, and reads it again with its ETag.
sub show {
	my ($name, %opt) = @_;
	my $answer = drive($name, 200, %opt);
	drive($name, 304, %opt, label => 'not modified',
	    headers => { 'If-None-Match' => $answer->{headers}{etag} });
	drive($name, 412, %opt, label => 'If-Match of another version', headers => { 'If-Match' => '"0-0"' });
	return $answer;
}

my %project = (
	name => 'Shop', repository => 'https://git.example.org/team/shop.git',
	description => 'What we sell', defaultBranch => 'main', extraEnv => 'deployers',
	badge => JSON::PP::true, submodules => JSON::PP::false,
	submoduleRepositories => ['team/theme'], lfs => JSON::PP::false,
	envPresets => [
		{ key => 'TARGET', label => 'Where to', type => 'select', required => JSON::PP::true,
			options => [{ label => 'Live', value => 'live' },
			    { label => 'Test', value => 'test' }],
			default => 'test', description => 'The host' },
		{ key => 'PARTS', label => 'Parts', type => 'multiselect',
			options => [{ label => 'Web', value => 'web' },
			    { label => 'Jobs', value => 'jobs' }] },
		{ key => 'NOTE', label => 'Note', type => 'input', pattern => '[a-z ]*' },
		{ key => 'PASSWORD', label => 'Password', type => 'input', secret => JSON::PP::true },
	],
);

sub projects {
	make(project => 'POST /api/projects', at => '/api/projects/', body => \%project,
	    role => 'maintainer');
	make(other => 'POST /api/projects', at => '/api/projects/', label => 'only the required members',
	    body => { name => 'Tools', repository => 'https://git.example.org/team/tools' });
	drive('POST /api/projects', 409, body => \%project, label => 'duplicate name');
	my $read = show('GET /api/projects/{id}', id => $id{project}, role => 'viewer');
	is_deeply([map { $_->{key} } @{ $read->{json}{envPresets} }],
	    [qw(TARGET PARTS NOTE PASSWORD)], 'presets read back as they were written');
	drive('PUT /api/projects/{id}', 200, id => $id{project}, label => 'the object that GET returned',
	    role => 'maintainer', body => { %{ $read->{json} }, role => 'maintainer' });
	drive('GET /api/projects', 200, role => 'viewer');
	drive('GET /api/projects', 200, query => 'page=1&limit=1&name=SHO', label => 'a filter');
	drive('GET /api/projects', 200, query => 'page=99', label => 'a page past the end');
	drive('GET /api/projects', 200, query => 'name=nobody', label => 'a filter that matches nothing');
	drive('GET /projects', 200, role => 'viewer');
	drive('GET /api/projects/{id}/badge.svg', 200, id => $id{project}, role => 'none');
	drive('GET /api/projects/{id}/badge.svg', 404, id => $id{other}, role => 'none', label => 'no badge');
	drive('PUT /api/projects/{id}/hook-secret', 200, id => $id{project}, role => 'maintainer');
	my @key = (id => $id{project}, role => 'maintainer');
	drive('DELETE /api/projects/{id}/deploy-key', 404, @key, label => 'no key');
	drive('PUT /api/projects/{id}/deploy-key', 200, @key);
	show('GET /api/projects/{id}/deploy-key', @key);
	drive('DELETE /api/projects/{id}/deploy-key', 204, @key);
	my $document = show('GET /api/projects/{id}/export', id => $id{project},
	    role => 'maintainer')->{json};
	drive('POST /api/projects/import', 200, role => 'maintainer',
	    body => { document => $document, dryRun => JSON::PP::true });
	drive('POST /api/projects/import', 409, label => 'the directory of another project',
	    body => { document => { name => 'Copy', repository => 'https://git.example.org/o/r',
		projectDir => 'tools' } });
}

sub pipelines {
	make(pipeline => 'POST /api/pipelines', at => '/api/pipelines/', role => 'maintainer',
	    body => { projectId => $id{project}, name => 'Deploy', timeoutSeconds => 600,
		steps => [{ name => 'Build', script => "make\n" },
		    { name => 'Clean', script => 'true', runWhen => 'always', timeoutSeconds => 5 }] });
	drive('POST /api/pipelines', 409, label => 'duplicate name',
	    body => { projectId => $id{project}, name => 'Deploy' });
	my $read = show('GET /api/pipelines/{id}', id => $id{pipeline}, role => 'viewer');
	drive('PUT /api/pipelines/{id}', 200, id => $id{pipeline}, label => 'the object that GET returned',
	    body => $read->{json});
	drive('PUT /api/pipelines/{id}', 200, id => $id{pipeline},
	    body => { description => 'Builds and deploys', timeoutSeconds => undef });
	drive('GET /api/pipelines', 200, query => "projectId=$id{project}", role => 'viewer');
	make(step => 'POST /api/steps', at => '/api/steps/', role => 'maintainer',
	    body => { pipelineId => $id{pipeline}, name => 'Test', script => 'make check',
		position => 1 });
	show('GET /api/steps/{id}', id => $id{step}, role => 'viewer');
	drive('PUT /api/steps/{id}', 200, id => $id{step},
	    body => { position => 0, directory => 'web', runWhen => 'success', timeoutSeconds => 9 });
	drive('PUT /api/steps/{id}', 422, id => $id{step}, label => 'a directory outside',
	    body => { directory => '../web' });
	drive('GET /api/steps', 200, query => "pipelineId=$id{pipeline}&limit=100",
	    role => 'viewer');
}

sub environments {
	make(environment => 'POST /api/environments', at => '/api/environments/', role => 'maintainer',
	    body => { projectId => $id{other}, name => 'live', url => 'https://www.example.org/',
		branches => [ 'main', 'release/*' ], tags => ['v*'], runner => 'host1',
		variables => [ { key => 'LEVEL', value => '9' } ] });
	drive('POST /api/environments', 409, label => 'duplicate name',
	    body => { projectId => $id{other}, name => 'LIVE' });
	drive('POST /api/environments', 422, label => 'an invalid pattern',
	    body => { projectId => $id{other}, name => 'x', branches => ['a..b'] });
	my $read = show('GET /api/environments/{id}', id => $id{environment}, role => 'viewer');
	drive('PUT /api/environments/{id}', 200, id => $id{environment},
	    label => 'the object that GET returned',
	    body => $read->{json});
	drive('PUT /api/environments/{id}', 200, id => $id{environment}, body => { position => 3,
	    url => undef });
	drive('GET /api/environments', 200, query => "projectId=$id{other}", role => 'viewer');
}

# Two deployments that wait for approval, one approved and one denied.
sub approvals {
	my ($place) = map { $_->{json}{id} } $api->post('/api/environments', { projectId => $id{other},
		name => 'guarded', approval => 'required' });
	my ($pipeline) = map { $_->{json}{id} } $api->post('/api/pipelines', { projectId => $id{other},
		name => 'guarded', steps => [ { name => 's', script => 'true' } ] });
	my @one = map { drive('POST /api/deployments', 201, role => 'deployer',
		label => 'one that waits for approval', body => { projectId => $id{other},
			pipelineId => $pipeline, environmentId => $place,
			commitHash => 'c' x 40 })->{json}{id} } 1, 2;
	my @body = (body => { comment => 'fine' });
	drive('POST /api/deployments/{id}/approve', 403, id => $one[0], role => 'deployer', @body);
	drive('POST /api/deployments/{id}/approve', 422, id => $one[0], body => { comment => 1 });
	drive('POST /api/deployments/{id}/approve', 200, id => $one[0], role => 'maintainer', @body);
	drive('POST /api/deployments/{id}/approve', 409, id => $one[0], role => 'maintainer', @body);
	drive('POST /api/deployments/{id}/deny', 200, id => $one[1], role => 'maintainer', @body);
	drive('GET /api/deployments/{id}', 200, id => $one[1], label => 'a denied deployment');
	$db->sql("UPDATE deployment SET status = 'success', approval = NULL WHERE id IN ($one[0], $one[1]);"
	    . "UPDATE deployment SET replaced = $one[0] WHERE id = $one[1];"
	    . "UPDATE environment SET live_deployment = $one[1] WHERE id = $place");
	@body = (role => 'deployer', body => { reason => 'broken' });
	drive('POST /api/environments/{id}/rollback', 422, id => $place, body => { reason => 1 });
	drive('POST /api/environments/{id}/rollback', 201, id => $place, @body);
	drive('POST /api/environments/{id}/rollback', 409, id => $place, @body);
	my ($second) = map { $_->{json}{id} } $api->post('/api/environments', { projectId => $id{other},
		name => 'second' });
	@body = (id => $one[0], role => 'deployer');
	drive('POST /api/deployments/{id}/promote', 422, @body, body => { environmentId => $place });
	drive('POST /api/deployments/{id}/promote', 201, @body, body => { environmentId => $second });
	drive('POST /api/deployments/{id}/cancel', 409, @body, body => { then => 'rollback' });
	$api->delete("/api/environments/$_") for $place, $second;
}

sub variables {
	make(variable => 'POST /api/variables', at => '/api/variables/', role => 'admin',
	    body => { key => 'LEVEL', value => '9', projects => [ $id{other} ] });
	drive('POST /api/variables', 409, label => 'a key that the project receives',
	    body => { key => 'LEVEL', value => '8', projects => [ $id{other} ] });
	my $read = show('GET /api/variables/{id}', id => $id{variable}, role => 'admin');
	drive('PUT /api/variables/{id}', 200, id => $id{variable}, label => 'the object that GET returned',
	    body => $read->{json});
	drive('PUT /api/variables/{id}', 200, id => $id{variable}, body => { projects => [] });
	drive('GET /api/variables', 200, role => 'admin');
}

sub caches {
	drive('DELETE /api/projects/{id}/cache', 204, id => $id{project}, role => 'deployer');
	drive('DELETE /api/projects/{id}/cache', 403, id => $id{project}, role => 'viewer');
	drive('DELETE /api/projects/{id}/cache', 404, id => 9_999_999, role => 'deployer');
}

sub locks {
	my @one = (id => $id{other}, role => 'maintainer');
	my %body = (body => { reason => 'incident 7', until => '2100-01-01T00:00:00Z' });
	drive('PUT /api/projects/{id}/lock', 200, @one, %body);
	drive('GET /api/projects/{id}', 200, id => $id{other}, label => 'a locked project');
	drive('PUT /api/projects/{id}/lock', 422, @one, body => { reason => '' }, label => 'no reason');
	drive('DELETE /api/projects/{id}/lock', 204, @one);
	drive('DELETE /api/projects/{id}/lock', 404, @one, label => 'no lock');
	my @two = (id => $id{environment}, role => 'maintainer');
	drive('PUT /api/environments/{id}/lock', 200, @two, %body);
	drive('GET /api/environments/{id}', 200, id => $id{environment}, label => 'a locked environment');
	drive('DELETE /api/environments/{id}/lock', 204, @two);
	drive('GET /api/lock', 404, label => 'no lock');
	drive('PUT /api/lock', 200, %body);
	drive('GET /api/lock', 200, role => 'viewer');
	drive('GET /api/board', 200, role => 'viewer');
	drive('DELETE /api/lock', 204);
}

sub schedules {
	my %body = (projectId => $id{project}, pipelineId => $id{pipeline}, cron => '*/5 2-4 * JAN MON-FRI');
	make(schedule => 'POST /api/schedules', at => '/api/schedules/', role => 'maintainer',
	    body => { %body, name => 'nightly', timezone => 'Europe/Berlin', branch => 'main',
		envVars => {} });
	drive('POST /api/schedules', 409, label => 'duplicate name', body => { %body, name => 'NIGHTLY' });
	drive('POST /api/schedules', 422, label => 'an invalid cron',
	    body => { %body, name => 'x', cron => 'x' });
	my $read = show('GET /api/schedules/{id}', id => $id{schedule}, role => 'viewer');
	drive('PUT /api/schedules/{id}', 200, id => $id{schedule}, label => 'the object that GET returned',
	    body => $read->{json});
	drive('PUT /api/schedules/{id}', 200, id => $id{schedule}, body => { active => JSON::PP::false });
	drive('GET /api/schedules', 200, query => "projectId=$id{project}", role => 'viewer');
}

sub notifiers {
	my %body = (projectId => $id{project}, kind => 'webhook', target => 'https://hooks.example.org/x',
	    events => ['failed', 'recovered']);
	make(notifier => 'POST /api/notifiers', at => '/api/notifiers/', role => 'maintainer',
	    body => \%body);
	drive('POST /api/notifiers', 422, label => 'a target without TLS',
	    body => { %body, target => 'http://hooks.example.org/x' });
	my %one = (id => $id{notifier}, role => 'maintainer');
	my $read = show('GET /api/notifiers/{id}', %one);
	drive('PUT /api/notifiers/{id}', 200, %one, label => 'the object that GET returned',
	    body => $read->{json});
	drive("$_", 200, %one) for 'PUT /api/notifiers/{id}/secret', 'POST /api/notifiers/{id}/test';
	drive('PUT /api/notifiers/{id}', 200, %one, body => { active => JSON::PP::false });
	drive('POST /api/notifiers/{id}/test', 409, %one, label => 'a notifier that is not active');
	drive('GET /api/notifiers', 200, query => "projectId=$id{project}", role => 'maintainer');
	my $chat = drive('POST /api/notifiers', 201, role => 'maintainer',
	    body => { %body, kind => 'text' });
	drive('PUT /api/notifiers/{id}/secret', 409, id => $chat->{json}{id}, label => 'one for text');
}

sub runners {
	$db->sql("INSERT INTO runner (name, labels, version, slots, started_at, seen_at)"
	    . " VALUES ('rack 7', '[\"eu\"]', '1', 4, NOW(3), NOW(3))");
	drive('GET /api/runners', 200, role => 'viewer');
	drive('GET /api/audit', 200, query => 'limit=3');
	drive('GET /api/audit', 200, query => "projectId=$id{project}", role => 'maintainer');
}

sub users {
	make(user => 'POST /api/user', at => '/api/user/detail/', body => {
		username => 'ann', role => 'deployer', name => 'Ann', email => 'ann@example.org',
		avatarUrl => 'https://example.org/ann.png', status => 'active' });
	drive('POST /api/user', 409, label => 'duplicate name',
	    body => { username => 'ann', role => 'viewer' });
	show('GET /api/user/detail/{id}', id => $id{user}, role => 'viewer');
	drive('PUT /api/user/{id}', 200, id => $id{user}, body => { status => 'inactive', name => undef });
	drive('GET /api/user/list', 200, role => 'viewer');
	drive('GET /api/user/search', 200, query => 'keyword=AN&status=inactive&role=deployer',
	    role => 'viewer');
	drive('GET /api/user/search', 200, query => 'keyword=&status=&role=',
	    label => 'empty filters');
	my @filters = grep { $_->{name}
	    && $_->{name} !~ /^(page|limit)$/ } @{ $operation{'GET /api/user/search'}{parameters} };
	is(join(' ', map { $_->{allowEmptyValue} ? $_->{name} : () } @filters), 'keyword status role',
	    'the document allows empty filters');
	drive('GET /api/user/search', 400, query => 'role=emperor', label => 'unknown role');
	show('GET /api/auth/info', role => 'deployer');
	make(token => 'POST /api/auth/tokens', at => '/api/auth/tokens/',
	    body => { name => 'ci', role => 'viewer', expiresAt => '2099-01-01T00:00:00Z' });
	drive('POST /api/auth/tokens', 422, role => 'viewer', label => "a role above the caller's",
	    body => { name => 'ci', role => 'admin' });
	show('GET /api/auth/tokens/{id}', id => $id{token});
	drive('GET /api/auth/tokens', 200);
	drive('POST /api/auth/session', 200, role => 'viewer');
	devices();
	drive('GET /api/auth/logout', 204, role => 'viewer');
	drive('POST /api/auth/logout', 204, role => 'viewer');
}

sub devices {
	my ($start, $take) = map { "POST /api/auth/device$_" } '', '/token';
	my %code = map { $_ => drive($start, 200, role => 'none', body => { name => $_ })->{json} } qw(a b);
	drive($start, 200, role => 'none', label => 'without a body');
	drive($start, 422, role => 'none', label => 'an empty name', body => { name => '' });
	my $poll = sub {
		my ($status, $code, $label) = @_;
		return drive($take, $status, role => 'none', label => $label,
		    body => { deviceCode => $code });
	};
	my $pending = $poll->(400, $code{a}{deviceCode}, 'not approved yet');
	is($pending->{json}{error}, 'authorization_pending', 'the problem has the error of RFC 8628');
	my $look = 'GET /api/auth/device/request';
	drive($look, 200, role => 'viewer', query => "userCode=$code{a}{userCode}");
	drive($look, 404, role => 'viewer', query => 'userCode=AAAA', label => 'unknown code');
	my ($approve, $deny) = map { "POST /api/auth/device/$_" } qw(approve deny);
	drive($approve, 422, role => 'viewer', label => "a role above the caller's",
	    body => { userCode => $code{a}{userCode}, role => 'admin' });
	drive($approve, 204, role => 'viewer', body => { userCode => $code{a}{userCode}, role => 'viewer',
		expiresAt => '2099-01-01T00:00:00Z' });
	drive($deny, 204, role => 'viewer', body => { userCode => $code{b}{userCode} });
	drive($_, 404, role => 'viewer', body => { userCode => $code{b}{userCode} }, label => 'decided')
	    for $approve, $deny;
	$poll->(201, $code{a}{deviceCode});
	$poll->(400, $code{$_}{deviceCode}, $_ eq 'a' ? 'used' : 'denied') for qw(a b);
}

sub members {
	my @one = (id => $id{project}, userId => $id{user}, role => 'maintainer');
	my ($name, $end) = map { "$_ /api/projects/{id}/members/{userId}" } qw(PUT DELETE);
	drive($name, 422, @one, body => {}, label => 'no role');
	drive($name, 422, @one, body => { role => 'admin' }, label => 'not a role of members');
	drive($name, 200, @one, body => { role => 'deployer' });
	drive($name, 404, @one, userId => 999_999, body => { role => 'viewer' }, label => 'unknown user');
	drive('GET /api/projects/{id}/members', 200, id => $id{project}, role => 'viewer');
	drive($_, 412, @one, body => $_ eq $name ? { role => 'viewer' } : undef,
	    headers => { 'If-Match' => '"0-0"' }, label => 'If-Match of another version') for $name, $end;
	drive($end, 204, @one);
	drive($end, 404, @one, label => 'not a member');
}

sub service {
	drive($_, 200, role => 'none') for 'GET /health', 'GET /api/health',
	    'GET /api/openapi.json', 'GET /api/metrics';
	# Without a Git server these name the missing settings.
	my %query = ('GET /api/git/branches' => "projectId=$id{project}",
		'GET /api/git/tags' => "projectId=$id{project}",
		'GET /api/git/commits' => "projectId=$id{project}&branch=main&page=1&limit=5");
	my $list = 'GET /api/git/repositories';
	for my $name (sort keys %query, $list, 'GET /api/auth/url', 'POST /api/auth/login') {
		my $answer = drive($name, 503, query => $query{$name}, label => 'no Git server',
		    role => $query{$name} ? 'viewer' : $name eq $list ? 'maintainer' : 'none',
		    $name =~ /^POST/ ? (body => { code => 'c', state => 's' }) : ());
		like($answer->{json}{detail}, qr/gitserver/i, "$name: the error names the setting");
	}
	drive('GET /api/git/branches', 400, label => 'missing projectId');
}

# The same service beside a Git server.
sub gitserver {
	my $f = Slipway::Forge->start(type => 'gitea');
	$f->user('gus');
	my $repo = $f->repo('team/shop');
	$repo->commit('main', {}, "change $_") for 1 .. 3;
	$repo->tag('v1');
	my $beside = Slipway::API->start(db => $db, conf => $conf . $f->conf . "[auth]\nsignup = viewer\n");
	my %before = %as;
	%as = map { $_ => $beside->as($_) } keys %as;
	my $p = $as{maintainer}->post('/api/projects',
	    { name => 'Read', repository => $repo->clone_url })->{json}{id};
	my %query = ('GET /api/git/branches' => "projectId=$p", 'GET /api/git/tags' => "projectId=$p",
		'GET /api/git/commits' => "projectId=$p&branch=main",
		'GET /api/git/repositories' => 'search=shop');
	for my $name (sort keys %query) {
		my $query = $query{$name};
		my $of_project = $query =~ /project/;
		my $role = $of_project ? 'viewer' : 'maintainer';
		my $answer = drive($name, 200, query => $query, role => $role);
		ok(scalar @{ $answer->{json}{data} }, "$name returns items");
		is($as{$role}->head("$operation{$name}{path}?$query")->{status}, 200,
		    "HEAD of $name returns 200");
		drive($name, 200, query => "$query&page=2&limit=1", role => $role,
		    label => 'page 2');
		drive($name, 404, query => 'projectId=999999', role => 'viewer', label => 'no such project')
		    if $of_project;
		$f->fault('/api/v1/', kind => 'status', %$_)
		    && drive($name, $_->{due}, query => $query, label => "the Git server says $_->{status}")
		    && $f->clear_faults for { status => 500, due => 502 },
		    { status => 404, due => $of_project ? 404 : 502 },
		    { status => 429, due => 429, headers => { 'Retry-After' => 9 } },
		    { status => 200, body => '<p>', due => 502 };
	}
	drive('GET /api/git/commits', 404, query => "projectId=$p&branch=none", role => 'viewer',
	    label => 'unknown branch');
	my $begin = drive('GET /api/auth/url', 200, role => 'none');
	my ($cookie) = $begin->{headers}{'set-cookie'} =~ /^([^;]+)/;
	my $back = $f->authorize($begin->{json}{url}, 'gus');
	my @cookies = grep { $operation{$_}{responses}{200}{headers}{'Set-Cookie'}
	    || $operation{$_}{responses}{204}{headers}{'Set-Cookie'} } sort keys %operation;
	is_deeply(\@cookies,
	    ['GET /api/auth/logout', 'GET /api/auth/url', 'POST /api/auth/login', 'POST /api/auth/logout',
		'POST /api/auth/session'],
	    'only sign-in and logout set cookies');
	drive('POST /api/auth/login', 200, role => 'none', headers => { Cookie => $cookie },
	    body => { code => $back->{code}, state => $back->{state} });
	%as = %before;
	$beside->stop;
	$f->stop;
}

sub templates {
	my $list = drive('GET /api/templates', 200, role => 'viewer');
	my ($first) = map { $_->{id} } @{ $list->{json}{data} };
	ok($first, 'the list of templates is not empty');
	drive('GET /api/pipelines/templates', 200, role => 'viewer');
	show('GET /api/templates/{id}', id => $first, role => 'viewer');
	make(copy => 'POST /api/pipelines/from-template', at => '/api/pipelines/',
	    role => 'maintainer', body => { templateId => $first, projectId => $id{other},
		name => 'From a template', description => undef, presets => 'add' });
	drive('POST /api/pipelines/from-template', 422, label => 'unknown template',
	    body => { templateId => 'nothing', projectId => $id{other} });
}

sub deployments {
	my %once = (role => 'deployer', headers => { 'Idempotency-Key' => 'once' },
	    body => { projectId => $id{project}, pipelineId => $id{pipeline}, branch => 'main',
		commitHash => 'a' x 40, commitMessage => 'Mend it',
		envVars => { TARGET => 'live', PASSWORD => 'hunter2', OTHER => 'x' } });
	my $made = make(deployment => 'POST /api/deployments', at => '/api/deployments/', %once);
	unlike($made->{body}, qr/hunter2/, 'the response leaves out the value of a secret');
	my $again = drive('POST /api/deployments', 201, %once, label => 'the same Idempotency-Key again');
	is($again->{json}{id}, $id{deployment}, 'the same Idempotency-Key returns the same deployment');
	drive('POST /api/deployments', 422, %once, label => 'an Idempotency-Key used with another body',
	    body => { projectId => $id{project}, pipelineId => $id{pipeline} });
	drive('POST /api/deployments', 422, role => 'deployer',
	    label => 'a value that the preset does not offer',
	    body => { projectId => $id{project}, envVars => { TARGET => 'moon' } });
	show('GET /api/deployments/{id}', id => $id{deployment}, role => 'viewer');
	make(retried => 'POST /api/deployments/{id}/retry', at => '/api/deployments/',
	    id => $id{deployment}, role => 'deployer');
	drive('GET /api/deployments', 200, role => 'viewer');
	drive('GET /api/deployments', 200, label => 'filtered', query =>
	    "limit=1&projectId=$id{project}&pipelineId=$id{pipeline}&status=pending&branch=main");
	drive('GET /api/deployments', 200, query => "cursor=$id{retried}", label => 'the next page');
	drive('GET /api/deployments', 400, query => 'status=lost', label => 'unknown status');
	logs();
	drive('POST /api/deployments/{id}/cancel', 200, id => $id{$_}, role => 'deployer')
	    for qw(deployment retried);
	drive('POST /api/deployments/{id}/cancel', 409, id => $id{retried}, label => 'it has ended');
}

# Push events, to a project of their own.
sub hooks {
	my $project = $as{admin}->post('/api/projects',
	    { name => 'hooked', repository => 'https://git.example.org/o/hooked.git' })->{json}{id};
	my $pipeline = $as{admin}->post('/api/pipelines', { projectId => $project, name => 'p',
	    steps => [ { name => 's', script => 'true' } ] })->{json}{id};
	$as{admin}->put("/api/projects/$project",
	    { triggers => [ { branch => 'main', pipelineId => $pipeline } ] });
	my $secret = $as{admin}->put("/api/projects/$project/hook-secret")->{json}{secret};
	my $hook = sub {
		my ($status, $label, $key, %o) = @_;
		my ($headers, $body) = push_event(gitea => $key, path => 'o/hooked', %o);
		return drive('POST /api/hooks/{id}', $status, id => $project, role => 'none', label => $label,
		    headers => { %$headers, %{ $o{headers} || {} } }, body => $body);
	};
	drive('POST /api/hooks/{id}', 404, id => '9007199254740992', role => 'none', body => {},
	    label => 'an id that no project can have');
	$hook->(202, 'a push', $secret);
	$hook->(204, 'a ping', $secret, event => 'ping');
	$hook->(401, 'a signature with another secret', 'x');
	$hook->(400, 'a push event without a commit', $secret, commit => 'x');
	$hook->(422, 'a push to another repository', $secret, path => 'o/other');
	$hook->(415, 'a body with the type of a form', $secret,
	    headers => { 'Content-Type' => 'application/x-www-form-urlencoded' });
	$hook->(413, 'a body that is too large', $secret, message => 'x' x (32 << 20));
	return;
}

sub logs {
	my %log = (id => $id{deployment}, role => 'viewer');
	$db->sql('INSERT INTO log_chunk (deployment_id, start, length, data) VALUES '
	    . "($id{deployment}, 0, 6, 'hello\n')");
	$db->sql("UPDATE deployment SET log_size = 6 WHERE id = $id{deployment}");
	is(drive('GET /api/deployments/{id}/log', 200, %log)->{body}, "hello\n",
	    'GET of a log returns its text');
	is(drive('GET /api/deployments/{id}/log', 200, %log, query => 'offset=2&wait=0',
	    label => 'from an offset')->{body}, "llo\n", 'offset returns the rest of a log');
	is(drive('GET /api/deployments/{id}/log', 206, %log, label => 'a range',
	    headers => { Range => 'bytes=1-2' })->{body}, 'el', 'Range returns a part of a log');
	drive('GET /api/deployments/{id}/log', 416, %log, label => 'a range past the end',
	    headers => { Range => 'bytes=99-' });
	drive("GET /api/$_", 503, %log, label => 'slipway-live is not running')
	    for 'events', 'deployments/{id}/events';
	drive("GET /api/deployments/{id}/log/$_->[0]", 200, %log, query => $_->[1])
	    for ['index', ''], ['matches', 'q=HELL&limit=1'];
	drive('GET /api/deployments/{id}/log', 400, %log, query => 'wait=21',
	    label => 'wait above its limit');
}

# If-Match, then the deletion of each object; nothing uses them afterwards.
sub endings {
	for my $kind (['/api/variables/{id}', 'variable'], ['/api/environments/{id}', 'environment'],
	    ['/api/schedules/{id}', 'schedule'], ['/api/notifiers/{id}', 'notifier'],
	    ['/api/steps/{id}', 'step', 'description'],
	    ['/api/pipelines/{id}', 'pipeline'], ['/api/projects/{id}', 'other'],
	    ['/api/user/{id}', 'user']) {
		my ($path, $what) = @$kind;
		my %old = (id => $id{$what}, headers => { 'If-Match' => '"0-0"' },
		    label => 'If-Match of an older version');
		drive("PUT $path", 412, %old, body => {});
		drive("DELETE $path", 412, %old);
		drive("DELETE $path", 204, id => $id{$what});
		drive("DELETE $path", 404, id => $id{$what}, label => 'a deleted object');
	}
	drive('DELETE /api/auth/tokens/{id}', 412, id => $id{token},
	    headers => { 'If-Match' => '"0-0"' }, label => 'If-Match of another version');
	drive('DELETE /api/auth/tokens/{id}', 204, id => $id{token});
}

# Errors that follow from the document alone, for every operation.
sub refusals {
	my ($op) = @_;
	my $name = $op->{name};
	my $none = '9007199254740991';
	return if $op->{path} =~ m{^/api/hooks/}; # reveals nothing without a signature
	my $open = $op->{security} && !@{ $op->{security} };
	my ($role) = ($op->{description} || '') =~ /role (\w+)/;
	my %lower = (deployer => 'viewer', maintainer => 'deployer', admin => 'maintainer');
	my %valid = $op->{requestBody} ? (body => '{}') : ();
	if (!$open) {
		drive($name, 401, id => 1, role => 'none', %valid, label => 'no token');
		drive($name, 401, id => 1, role => 'none', %valid, label => 'an invalid token',
		    headers => { Authorization => 'Bearer slw_wrong' });
		drive($name, 403, id => 1, role => $lower{$role}, %valid, label => 'a role that is too low')
		    if $lower{$role};
	}
	my $reads = $op->{method} eq 'GET';
	my @must = grep { $_->{required} && $_->{in} eq 'query' } @{ $op->{parameters} || [] };
	drive($name, 404, id => $none, %valid, query => join('&', map { "$_->{name}=1" } @must),
	    label => 'unknown id')
	    if $op->{path} =~ /\{id\}/;
	drive($name, 400, id => 1, query => 'nonsense=1', %valid, label => 'unknown parameter');
	drive($name, 204, id => 1, method => 'OPTIONS', label => 'OPTIONS', role => 'none');
	if ($op->{requestBody}) {
		drive($name, 400, id => 1, body => '{"a":', label => 'truncated JSON');
		my $twice = drive($name, 422, id => 1, body => '{"a":1,"\u0061":2}',
		    label => 'duplicate member');
		ok(scalar @{ $twice->{json}{errors} || [] },
		    "$name: the response to a duplicate member lists it as an error");
		drive($name, 415, id => 1, body => 'a=1', label => 'a body with the type of a form',
		    headers => { 'Content-Type' => 'application/x-www-form-urlencoded' });
		drive($name, 422, body => '{"nonsense":1}', label => 'unknown member')
		    if $op->{path} !~ /\{id\}/;
		drive($name, 422, body => '[]', label => 'an array instead of an object')
		    if $op->{path} !~ /\{id\}/;
	} elsif ($op->{method} eq 'POST') {
		drive($name, 400, id => 1, body => '{"a":1}', label => 'a body where none is expected');
	}
}

projects();
pipelines();
hooks();
environments();
variables();
caches();
locks();
schedules();
notifiers();
runners();
approvals();
users();
members();
service();
gitserver();
templates();
deployments();
refusals($operation{$_}) for sort keys %operation;
for my $name (sort keys %operation) {
	my $head = $name =~ /^GET/ && $name !~ m{\{|/git/|/auth/(?:url|device/request)$|/lock$}
	    && $driven{$name}{200} or next;
	my $path = $operation{$name}{path};
	my $answer = $as{admin}->head($path);
	ok($answer->{status} == 200 && $answer->{body} eq '', "HEAD $path returns 200 and no body");
}
endings();

# --- validation
my $input = spew(tempdir() . '/records.json', $json->encode(\@records));

# Runs the validators on recorded responses: a hash of arrays, by validator.
sub judge {
	my ($path) = @_;
	my %judge = (jsonschema => [{}, @python, $file, $path]);
	$judge{Ajv} = [{ cwd => $npm }, 'node', 'validate.js', $file, $path] if $npm;
	return map {
		my ($rc, $out, $err) = run_cmd(@{ $judge{$_} });
		is($rc, 0, "$_ runs") || diag($err);
		$_ => $rc == 0 ? $json->decode($out) : [];
	} sort keys %judge;
}
my %faults = judge($input);
for my $judge (sort keys %faults) {
	is(scalar @{ $faults{$judge} }, scalar @records, "$judge judged every answer");
	for my $i (0 .. $#records) {
		my @said = @{ $faults{$judge}[$i] || ['not checked'] };
		ok(!@said,
		    "$judge: $records[$i]{label}: the response with status $records[$i]{status} is valid")
		    || diag(join "\n", @said, substr $records[$i]{body}, 0, 500);
	}
}
# Streams do not end.
my @streams = ('GET /api/deployments/{id}/events', 'GET /api/events');
is_deeply([grep { !grep { /^2/ } keys %{ $driven{$_} || {} } } sort keys %operation], \@streams,
    'every operation in the document succeeded once');

# The validators find errors: responses that are each wrong in one way.
my ($good) = grep { $_->{operation} eq 'getProject' && $_->{status} == 200 } @records;
my %bend = (
	'an undocumented status' => sub { $_[0]{status} = 418 },
	'another content type' => sub { $_[0]{headers}{'content-type'} = 'text/html' },
	'a missing header' => sub { delete $_[0]{headers}{'x-request-id'} },
	'an undocumented header' => sub { $_[0]{headers}{'retry-after'} = '5' },
	'an undocumented cookie' => sub { $_[0]{headers}{'set-cookie'} = '__Host-slipway=; Path=/' },
	'a body that is not JSON' => sub { $_[0]{body} = '{' },
	'a missing member' => sub { $_[0]{body} =~ s/"name":"[^"]*",// },
	'an unknown member' => sub { $_[0]{body} =~ s/^\{/{"further":1,/ },
	'a number instead of a string' => sub { $_[0]{body} =~ s/"name":"[^"]*"/"name":1/ },
	'an invalid time' => sub { $_[0]{body} =~ s/"createdAt":"[^"]*"/"createdAt":"today"/ },
);
my @names = sort keys %bend;
my @bent = map { my $r = { %$good, headers => { %{ $good->{headers} } } }; $bend{$_}->($r); $r } @names;
%faults = judge(spew(tempdir() . '/bent.json', $json->encode(\@bent)));
for my $judge (sort keys %faults) {
	ok(scalar @{ $faults{$judge}[$_] || [] }, "$judge rejects $names[$_]") for 0 .. $#names;
}

$api->stop;
$db->stop;
done_testing();
