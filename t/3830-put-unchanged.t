#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# PUT accepts a whole object as GET returned it: members that the service sets
# are accepted with their current value, and only with that.

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

my $project = $api->post('/api/projects',
    { name => 'Shop', repository => 'https://git.example.org/o/shop.git',
	description => undef, envPresets => [
		{ key => 'WORD', label => 'Word', type => 'input', secret => JSON::PP::true,
		    default => 'hidden' },
		{ key => 'TARGET', label => 'Target', type => 'select',
		    options => [ { label => 'A', value => 'a' } ] } ] })->{json};
my $pipeline = $api->post('/api/pipelines', { projectId => $project->{id}, name => 'Deploy',
	steps => [ { name => 'One', script => "true\n" },
	    { name => 'Two', script => 'false', directory => 'web', runWhen => 'always',
		timeoutSeconds => 9 } ] })->{json};
my $got = $api->put("/api/projects/$project->{id}",
    { triggers => [ { branch => 'main', pipelineId => $pipeline->{id},
	envVars => { WORD => 'pushed', TARGET => 'a' } } ] });
is($got->{status}, 200, 'the project has a trigger with a secret') or diag($got->{body});
$db->sql("INSERT INTO workspace (project_id, status, branch, commit_hash, dirty, size_bytes, runner, "
    . "checked_at)"
	. " VALUES ($project->{id}, 'ready', 'main', REPEAT('a', 40), 0, 123, 'r1', NOW(3))");
is($api->get("/api/projects/$project->{id}")->{json}{workspaceStatus}{sizeBytes}, 123,
    'the project has a workspace');
my $user = $api->post('/api/user', { username => 'ann', role => 'deployer', name => 'Ann' })->{json};
my $step = $pipeline->{steps}[0];

my %read = (project => "/api/projects/$project->{id}", pipeline => "/api/pipelines/$pipeline->{id}",
	step => "/api/steps/$step->{id}", user => "/api/user/detail/$user->{id}");
my %write = (%read, user => "/api/user/$user->{id}");
# members that the service sets or that cannot change, each with another value
my %fixed = (
	project => { id => 999, valid => 0, createdAt => '2020-01-01T00:00:00Z',
	    updatedAt => '2020-01-01T00:00:00Z', createdBy => undef,
		projectDir => 'elsewhere', role => 'viewer', workspaceStatus => { status => 'error' } },
	pipeline => { id => 999, valid => 0, createdAt => '2020-01-01T00:00:00Z', updatedAt => 'today',
	    createdBy => 999,
		projectId => 999, steps => [ { name => 'Other', script => 'true' } ] },
	step => { id => 999, valid => JSON::PP::false, createdAt => 1, updatedAt => undef,
	    pipelineId => 999 },
	user => { id => 999, createdAt => '2020-01-01T00:00:00Z', lastLoginAt => '2020-01-01T00:00:00Z' },
);
my ($trigger_secret) = $db->sql("SELECT trigger_secrets FROM project WHERE id = $project->{id}");
for my $what (sort keys %read) {
	my $before = $api->get($read{$what});
	my $sent = $before->{json};
	$got = $api->put($write{$what}, $sent, { 'If-Match' => $before->{headers}{etag} });
	is($got->{status}, 200, "PUT accepts a whole $what as GET returned it") or diag($got->{body});
	my $after = $api->get($read{$what});
	delete $_->{updatedAt} for my ($old, $new) = ({ %$sent }, { %{ $after->{json} } });
	is_deeply($new, $old, "a PUT of a $what as GET returned it changes nothing");
	my $now = $after->{json};
	for my $member (sort keys %{ $fixed{$what} }) {
		my %bent = (%$now, $member => $fixed{$what}{$member});
		$got = $api->put($write{$what}, \%bent);
		is("$got->{status} " . join(' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] }),
		    "422 /$member",
			"$what: $member cannot be changed") or diag($got->{body});
	}
	is($api->get($read{$what})->{headers}{etag}, $after->{headers}{etag},
	    "a rejected change leaves the $what unchanged");
	# clients format times in their own way
	my %other = %$now;
	($other{createdAt} = $now->{createdAt}) =~ s/(\.\d{3})Z$/${1}000+00:00/;
	$got = $api->put($write{$what}, \%other);
	is($got->{status}, 200, "$what: PUT accepts the same time in another format") or diag($got->{body});
}

# nested arrays
my $whole = $api->get($read{pipeline})->{json};
my @cases = (
	[ 'a script of a step', sub { $_[0]{steps}[0]{script} = 'true' } ],
	[ 'the id of a step', sub { $_[0]{steps}[1]{id}++ } ],
	[ 'a missing step', sub { pop @{ $_[0]{steps} } } ],
	[ 'an unknown member of a step', sub { $_[0]{steps}[0]{more} = 1 } ],
	[ 'a step that is not an object', sub { $_[0]{steps}[0] = 1 } ],
	[ 'another order', sub { @{ $_[0]{steps} } = reverse @{ $_[0]{steps} } } ],
	[ 'an object instead of the array', sub { $_[0]{steps} = {} } ],
	[ 'null', sub { $_[0]{steps} = undef } ],
);
for my $case (@cases) {
	my $bent = $json->decode($json->encode($whole));
	$case->[1]->($bent);
	$got = $api->put($write{pipeline}, $bent);
	is("$got->{status} " . ($got->{json}{errors}[0]{pointer} || ''), '422 /steps',
	    "PUT of a pipeline rejects changed steps: $case->[0]");
}
like($got->{json}{errors}[0]{detail}, qr/\w/, 'the error has a detail');
my $sent = $api->get($read{project})->{json};
$sent->{workspaceStatus}{sizeBytes}++;
is($api->put($write{project}, $sent)->{json}{errors}[0]{pointer}, '/workspaceStatus',
    'PUT of a project rejects a changed member of a nested object');
is($api->put($write{project}, { workspaceStatus => undef })->{status}, 422,
    'PUT of a project rejects null for a nested object');
$got = $api->put($write{project}, { id => 999, name => '', valid => 0 });
is(join(' ', sort map { $_->{pointer} } @{ $got->{json}{errors} }), '/id /name /valid',
    'the response lists all errors at once');
like($got->{json}{errors}[0]{detail}, qr/leave it out/, 'the error says to leave the member out');

# new objects
$got = $api->post('/api/projects',
    { id => 7, name => 'New', repository => 'https://git.example.org/o/new.git' });
is("$got->{status} $got->{json}{errors}[0]{pointer}", '422 /id', 'POST rejects an id');

# a project without a workspace, and secrets
my $bare = $api->post('/api/projects',
    { name => 'Bare', repository => 'https://git.example.org/o/bare.git' })->{json};
$got = $api->put("/api/projects/$bare->{id}", $api->get("/api/projects/$bare->{id}")->{json});
is($got->{status}, 200, 'PUT accepts a project without a workspace as GET returned it') or diag($got->{body});
is($db->sql("SELECT trigger_secrets FROM project WHERE id = $project->{id}"), $trigger_secret,
    'secrets that read as null keep their stored values');

$api->stop;
$db->stop;
done_testing;
