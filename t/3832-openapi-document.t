#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The content of the OpenAPI document: every part is described, names replace
# copies, and limits and patterns are those of the service.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my $db = Slipway::DB->start;
my $conf = "[secrets]\nkey_file = " . tempdir() . "/secret.key\n";
ok(make_keys(spew(tempdir() . '/key.conf', $db->conf . $conf), tempdir() . '/secret.key'),
    'slipway-admin key creates the keys for secrets');
my $api = Slipway::API->start(db => $db, conf => $conf);
my $doc = $api->get('/api/openapi.json')->{json};
my $schemas = $doc->{components}{schemas};

# --- descriptions
ok($doc->{info}{contact}{name} && $doc->{info}{license}{identifier},
    'the document names a contact and the license');
sub resolve {
	my ($at) = @_;
	while (ref $at eq 'HASH' && $at->{'$ref'}) {
		my $to = $doc;
		$to = $to->{$_} for split m{/}, substr $at->{'$ref'}, 2;
		$at = $to;
	}
	return $at;
}
my (@mute, @operations);
for my $path (sort keys %{ $doc->{paths} }) {
	for my $method (sort keys %{ $doc->{paths}{$path} }) {
		my $operation = $doc->{paths}{$path}{$method};
		my $responses = $operation->{responses};
		push @operations, { %$operation, name => "$method $path" };
		push @mute, "$method $path" if !$operation->{summary} || !$operation->{description};
		push @mute, map { "$method $path $_->{name}" } grep { !$_->{description} }
		    map { resolve($_) } @{ $operation->{parameters} || [] };
		push @mute, map { "$method $path $_" } grep { !resolve($responses->{$_})->{description} }
		    keys %$responses;
	}
}
for my $name (sort keys %$schemas) {
	push @mute, $name if !$schemas->{$name}{description} || $schemas->{$name}{description} eq $name;
	my $members = $schemas->{$name}{properties} || {};
	push @mute, map { "$name.$_" } grep { !$members->{$_}{description}
	    && !resolve($members->{$_})->{description} } sort keys %$members;
}
for my $kind (qw(parameters headers responses securitySchemes)) {
	my $parts = $doc->{components}{$kind};
	push @mute, map { "$kind $_" } grep { !$parts->{$_}{description} } sort keys %$parts;
}
is(join(', ', @mute), '', 'every operation, parameter, response, schema and member is described');

# --- names instead of copies
my (@inline, @integers, %seen);
sub walk {
	my ($at, $where) = @_;
	if (ref $at eq 'ARRAY') {
		walk($at->[$_], "$where/$_") for 0 .. $#$at;
	} elsif (ref $at eq 'HASH') {
		push @inline, $where
		    if $at->{enum} && $where !~ m{^/components/schemas/\w+$} && @{ $at->{enum} } > 1
			&& $json->encode($at->{enum}) ne '[0,1]' && $where !~ m{/headers/};
		push @inline, $where
		    if ref $at->{properties} eq 'HASH' && $where !~ m{^/components/schemas/\w+$};
		my $type = ref $at->{type} eq 'ARRAY' ? $at->{type}[0] : $at->{type} || '';
		push @integers, $where if $type eq 'integer' && !ref $at->{format}
		    && ($at->{format} || '') !~ /^int(32|64)$/ && !$at->{enum};
		walk($at->{$_}, "$where/$_") for sort keys %$at;
	}
}
walk($doc->{paths}, '/paths');
walk($doc->{components}, '/components');
is(join(', ', @inline), '', 'every enumeration and every object is a named schema');
is(join(', ', @integers), '', 'every integer has a format');
is($schemas->{$_->[0]}{properties}{$_->[1]}{format}, 'int64', "$_->[0].$_->[1] is an int64")
    for [ 'Project', 'id' ], [ 'Deployment', 'logSize' ];
my %pages;
for my $operation (@operations) {
	my $ok = $operation->{responses}{200} or next;
	my $schema = $ok->{content}{'application/json'}{schema} or next;
	my $out = resolve($schema);
	$pages{ $operation->{name} } = $schema->{'$ref'} || 'inline'
	    if ($out->{type} || '') eq 'array' || $out->{properties}{data};
}
cmp_ok(scalar keys %pages, '>', 9, 'the document has lists');
is(join(', ', grep { $pages{$_} !~ m{^#/components/schemas/\w+List$} } sort keys %pages), '',
    'the schema of every list is named');
for my $name ('Page', 'Limit', 'Id') {
	ok($doc->{components}{parameters}{$name}, "the parameter $name is defined once");
}
is_deeply($schemas->{Role}{enum}, [qw(guest viewer deployer maintainer admin)],
    'the roles are a schema');
is_deeply($schemas->{TokenRole}{enum}, [qw(viewer deployer maintainer admin)],
    'a token has no role below viewer');

# --- states and reasons: the document has those of the table in state.h, with their descriptions
my $table = slurp(srcdir() . '/src/core/state.h') =~ s/"\s*\\\n\s*"//gr;
my %sentence;
while ($table =~ /\b([XS])\(STATE_\w+, "(\w+)", \w+,\s*(?:\\\n\s*)?"([^"]+)"\)/g) {
	$sentence{$_}{$2} = $3 for $1 eq 'X' ? ('DeploymentStatus', 'StepStatus') : 'StepStatus';
}
while ($table =~ /\bX\(REASON_\w+, "(\w+)", \w+,\s*(?:\\\n\s*)?\w+,\s*(?:\\\n\s*)?"([^"]+)"/g) {
	$sentence{DeploymentReason}{$1} = $2;
}
cmp_ok(scalar keys %{ $sentence{DeploymentReason} }, '>', 5, 'state.h has reasons');
cmp_ok(scalar keys %{ $sentence{StepStatus} }, '>', 5, 'state.h has states');
for my $name (sort keys %sentence) {
	is(join(' ', sort @{ $schemas->{$name}{enum} }), join(' ', sort keys %{ $sentence{$name} }),
	    "every value of $name is in the enumeration");
	my @undescribed = grep { index($schemas->{$name}{description}, "$_: $sentence{$name}{$_}") < 0 }
	    sort keys %{ $sentence{$name} };
	is("@undescribed", '', "every value of $name is described");
}

# --- requests that a client can send
sub members { return $schemas->{ $_[0] }{properties} }
for my $case ([ 'PipelineUpdate', 'steps' ], [ 'PipelineUpdate', 'projectId' ],
    [ 'StepUpdate', 'pipelineId' ], [ 'ProjectUpdate', 'projectDir' ],
    [ 'ProjectUpdate', 'id' ], [ 'UserUpdate', 'createdAt' ]) {
	ok(members($case->[0])->{ $case->[1] }{readOnly}, "$case->[0].$case->[1] is read-only");
}
ok(!exists members('ProjectInput')->{id}, 'ProjectInput has no id');
my %true = map { $_ => members("${_}Input") } qw(Project Schedule Notifier);
is(join(' ', grep { exists $true{$_}{ $_ eq 'Project' ? 'lfs' : 'active' }{default} } sort keys %true), '',
    'no member has a default in the document, because openapi-typescript requires those that do');
like($true{$_}{ $_ eq 'Project' ? 'lfs' : 'active' }{description}, qr/\bdefault true\b/,
    "the description of ${_}Input tells what is true by default") for sort keys %true;
my @variables = (members('Deployment')->{envVars}, members('DeploymentRequestInput')->{envVars},
    members('Trigger')->{envVars}, members('TriggerInput')->{envVars});
is_deeply([ map { $_->{'$ref'} } @variables ], [ ('#/components/schemas/EnvVars') x 4 ],
    'requests and responses share one schema of variables');
sub parameters { return map { resolve($_) } @{ $_[0]{parameters} } }
my ($cursor) = grep { $_->{name} eq 'cursor' } parameters($doc->{paths}{'/api/deployments'}{get});
my $next = $schemas->{Cursor}{properties}{next};
is($cursor->{schema}{type}, $next->{type}[0], 'a cursor has the same type in requests and responses');
is($cursor->{schema}{pattern}, $next->{pattern}, 'a cursor has the same pattern in requests and responses');
my ($offset) = grep { $_->{name} eq 'offset' } parameters($doc->{paths}{'/api/deployments/{id}/log'}{get});
ok(!exists $offset->{schema}{default}, 'offset has no default, because it excludes Range');
my %sent = map { $_->{name} => 1 } parameters($doc->{paths}{'/api/hooks/{id}'}{post});
my @headers = qw(X-Gitea-Event X-Forgejo-Signature X-GitHub-Event X-Hub-Signature-256 X-Gitlab-Token
    webhook-signature);
is(join(' ', grep { !$sent{$_} } @headers), '', 'the headers of push events are parameters');

# --- patterns and limits, compared with the service: the document and the service
# reject the same values
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/o/p.git',
	envPresets => [ { key => 'WORD', label => 'w', type => 'input', secret => JSON::PP::true,
	    default => 'kept' },
		{ key => 'OPEN', label => 'o', type => 'input' } ] })->{json}{id};
$api->post('/api/pipelines',
    { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
my $n = 0;
my %make = (
	UserInput => [ '/api/user', sub { return { username => 'u' . ++$n, role => 'viewer' } } ],
	DeploymentRequestInput => [ '/api/deployments', sub { return { projectId => $project } } ],
	ProjectInput => [ '/api/projects',
	    sub { return { name => 'x' . ++$n, repository => 'https://git.example.org/o/p.git' } } ],
);
# Whether the schema of a member accepts a string.
sub takes {
	my ($schema, $value) = @_;
	return 0 if defined $schema->{minLength} && length $value < $schema->{minLength};
	return 0 if defined $schema->{maxLength} && length $value > $schema->{maxLength};
	return 1 if !defined $schema->{pattern};
	(my $pattern = $schema->{pattern}) =~ s/\\u([0-9a-f]{4})/\\x{$1}/g;
	$pattern =~ s/\$$/\\z/;
	return $value =~ /$pattern/;
}
my %values = (
	email => [ 'a@b', 'a b@c', 'a@b@c', '@b', 'a@', "a\@b\n", "a\@\x01b", ' ', 'x' x 250 . '@b.de',
	    'x' x 252 . '@b' ],
	avatarUrl => [ 'https://x/y', 'http://x', 'ftp://x', 'https://', 'https://a b', "https://a\tb",
	    'https://' . 'a' x 993 ],
	username => [ 'a.b@c+d-e', 'a b', '', 'x' x 100, 'x' x 101 ],
	name => [ "a\tb", "a\x7fb", ' ', "\xe4 \x{4e2d}", 'x' x 200, 'x' x 201 ],
	commitHash => [ 'a' x 6, 'a' x 7, 'A' x 40, 'a' x 41, 'a' x 63, 'a' x 64, 'g' x 40, 'a' x 65 ],
	branch => [ 'main', 'a/b', '-x', '/x', '.x', 'a..b', 'a//b', 'a@{b', 'a/.b', 'a.lock/b', 'a.lock',
	    'a/', 'a.', '@', 'a b', 'a~b', 'a^b', 'a:b', 'a?b',
		'a*b', 'a[b', 'a\\b', "a\x01", "a\nb", 'x' x 255, 'x' x 256, "\xe4" ],
	commitMessage => [ "a\nb", '', 'x' x 2000, 'x' x 2001 ],
	defaultBranch => [ 'main', 'a..b', '' ],
	projectDir => [ 'a', 'b/c.d', '.e', '-f', 'g/.h', 'i/-j', 'k//l', '/m', 'n/', 'o p',
	    'q' x 255, 'r' x 256 ],
	description => [ "a\tb\n", 'x' x 500, 'x' x 501 ],
);
my %of = (email => 'UserInput', avatarUrl => 'UserInput', username => 'UserInput', name => 'UserInput',
	commitHash => 'DeploymentRequestInput', branch => 'DeploymentRequestInput',
	commitMessage => 'DeploymentRequestInput',
	defaultBranch => 'ProjectInput', projectDir => 'ProjectInput', description => 'ProjectInput');
for my $member (sort keys %values) {
	my ($path, $least) = @{ $make{ $of{$member} } };
	for my $value (@{ $values{$member} }) {
		my $status = $api->post($path, { %{ $least->() }, $member => $value })->{status};
		my $takes = takes(members($of{$member})->{$member}, $value) ? 1 : 0;
		(my $shown = length $value > 30 ? substr($value, 0, 5) . '… (' . length($value) . ')'
		    : $value) =~ s/([^!-~])/sprintf '\\x{%x}', ord $1/ge;
		is($takes, $status == 201 ? 1 : 0,
		    "$member: the document and the service agree on \"$shown\"");
	}
}
my $pattern = $doc->{components}{parameters}{IdempotencyKey}{schema};
for my $key ('a', '"a b"', '""', 'a b', 'x' x 255, 'x' x 256, '"' . 'x' x 255 . '"', '"' . 'x' x 256 . '"',
    '"a', '"a\\b"', 'a"b', "\xe4") {
	my $status = $api->post('/api/deployments', { projectId => $project },
	    { 'Idempotency-Key' => $key })->{status};
	is(takes($pattern, $key) ? 1 : 0, $status == 201 ? 1 : 0,
	    'Idempotency-Key: the document and the service agree on' . length($key) . ' characters: '
	    . substr $key, 0, 6);
}
# limits in bytes, not in characters
my $about = $schemas->{EnvVars}{description};
like($about, qr/\b65536 bytes\b/, 'the document states the limit of a value in bytes');
like($about, qr/\b524288\b.*two for each/,
    'the document states the limit of all variables and how they are counted');
sub deploy { return $api->post('/api/deployments', { projectId => $project, envVars => $_[0] }) }
is(deploy({ V => "\xe4" x 32_768 })->{status}, 201, 'a value of 65,536 bytes is accepted');
is(deploy({ V => "\xe4" x 32_768 . 'x' })->{json}{errors}[0]{pointer}, '/envVars/V',
    'a value of 65,537 bytes is rejected');
my %full = map { ("V$_" => 'x' x 65_532) } 1 .. 8; # 2 + 65532 + 2 each
is(deploy(\%full)->{status}, 201, 'variables of 524,288 bytes are accepted');
$full{V1} .= 'x';
is(deploy(\%full)->{json}{errors}[0]{pointer}, '/envVars', 'variables of 524,289 bytes are rejected');

# --- the variables of a deployment can be sent again
my $first = deploy({ WORD => 'mine', OPEN => 'x' })->{json};
is_deeply($first->{envVars}, { WORD => undef, OPEN => 'x' }, 'a secret reads as null');
my $again = deploy($first->{envVars});
is($again->{status}, 201, 'a request may send null for a secret') or diag($again->{body});
is_deeply($again->{json}{envVars}, { WORD => undef, OPEN => 'x' },
    'a secret sent as null gets the default of the project');
for my $case ([ { OPEN => undef }, '/envVars/OPEN' ], [ { OTHER => undef }, '/envVars/OTHER' ]) {
	my $got = deploy($case->[0]);
	is("$got->{status} $got->{json}{errors}[0]{pointer}", "422 $case->[1]",
	    "null is rejected for $case->[1]");
}
# a cursor goes back unchanged
my $page = $api->get('/api/deployments?limit=2')->{json};
my $next_page = $api->get("/api/deployments?limit=2&cursor=$page->{pagination}{next}");
is($next_page->{status}, 200, 'the cursor of a page is accepted');
cmp_ok($next_page->{json}{data}[0]{id}, '<', $page->{data}[1]{id},
    'the cursor of a page leads to older deployments');
for my $value ('0', '01', '-1', 'x', '1' x 17, '9' x 16, '1') {
	is($api->get("/api/deployments?cursor=$value")->{status} == 200 ? 1 : 0,
	    $value =~ /$cursor->{schema}{pattern}/ ? 1 : 0,
	    "cursor=$value: the document and the service agree");
}

$api->stop;
$db->stop;
done_testing;
