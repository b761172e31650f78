#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Entity tags: conditions of reads and writes, tags that were never issued, and
# writes that change nothing.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1);
my $got;

my %url;
$got = $api->post('/api/projects',
    { name => 'One', repository => 'https://git.example.org/a/one', description => 'x',
	envPresets => [{ key => 'A', label => 'A', type => 'select',
		options => [{ label => 'a', value => 'a' }], default => 'a' },
	    { key => 'S', label => 'S', type => 'input', secret => \1, default => 'hush' }] });
is($got->{status}, 201, 'a project with presets is created') or diag $got->{body};
my $id = $got->{json}{id};
$url{project} = "/api/projects/$id";
my $second = $api->post('/api/projects', { name => 'Two', repository => 'https://git.example.org/a/two' });
$got = $api->post('/api/pipelines', { projectId => $id, name => 'P', description => 'x',
	steps => [map { { name => $_, script => "echo $_" } } 'a' .. 'c'] });
is($got->{status}, 201, 'a pipeline is created');
$url{pipeline} = "/api/pipelines/$got->{json}{id}";
$url{step} = "/api/steps/$got->{json}{steps}[1]{id}";
my $last = "/api/steps/$got->{json}{steps}[2]{id}";
$got = $api->post('/api/user',
    { username => 'eve', role => 'viewer', name => 'Eve', email => 'eve@example.org' });
$url{user} = "/api/user/$got->{json}{id}";
my %read = (%url, user => "/api/user/detail/$got->{json}{id}");
is($api->put($url{project},
    { triggers => [{ branch => 'main', pipelineId => 0 + ($url{pipeline} =~ /(\d+)$/)[0],
	    envVars => { A => 'a',
	    S => 'psst' } }] })->{status}, 200, 'a project gets a trigger with a secret');

# --- reads (RFC 9110, section 13.2.2)
for my $what (sort keys %read) {
	my $tag = $api->get($read{$what})->{headers}{etag};
	my @cases = (
		['its tag', $tag, undef, 200],
		['any', '*', undef, 200],
		['one of several', "\"x\", $tag", undef, 200],
		['another', '"x"', undef, 412],
		['a weak tag', "W/$tag", undef, 412],
		['none', '', undef, 412],
		['no tag', 'x', undef, 400],
		['half a tag', '"x', undef, 400],
		['a blank in a tag', '"x y"', undef, 400],
		['no comma between two', "\"x\" $tag", undef, 400],
		['a star in a list', "*, $tag", undef, 400],
		['a lower-case w', "w/$tag", undef, 400],
		['both: If-Match fails first', '"x"', $tag, 412],
		['both: then If-None-Match', $tag, $tag, 304],
		['both hold', $tag, '"x"', 200],
	);
	for my $case (@cases) {
		my ($name, $match, $none, $status) = @$case;
		for my $method (qw(GET HEAD)) {
			my %h = ('If-Match' => $match, defined $none ? ('If-None-Match' => $none) : ());
			is($api->request($method, $read{$what}, undef, \%h)->{status}, $status,
			    "$method of a $what with If-Match of $name returns $status");
		}
	}
}
is($api->get('/api/projects/77777', { 'If-Match' => '"x"' })->{status}, 404,
    'a condition on an unknown project returns 404');
for my $list (qw(/api/projects /api/pipelines /api/steps /api/user/list /api/auth/tokens /api/deployments
    /projects)) {
	is($api->get($list, { 'If-Match' => '"x"' })->{status}, 412,
	    "$list with If-Match of a tag returns 412");
	is($api->get($list, { 'If-Match' => '*' })->{status}, 200, "$list with If-Match: * returns 200");
	is($api->get($list, { 'If-Match' => 'x' })->{status}, 400,
	    "$list with an invalid If-Match returns 400");
}

# --- tags that were never issued
for my $what (sort keys %url) {
	my $tag = $api->get($read{$what})->{headers}{etag};
	my ($version) = $tag =~ /^"(\d+)-/;
	(my $bent = $tag) =~ s/(.)"$/($1 eq '0' ? '1' : '0') . '"'/e;
	(my $front = $tag) =~ s/-(.)/'-' . ($1 eq '0' ? '1' : '0')/e;
	my $other = $what eq 'project'
	    ? $second->{headers}{etag} : $api->get($read{project})->{headers}{etag};
	my @never = (['with another last digit', $bent], ['with another first digit', $front],
		['of another resource', $other], ['of zeros', "\"$version-0000000000000000\""],
		['of more zeros', "\"$version-" . '0' x 24 . '"'], ['of the version alone', "\"$version\""],
		['that is truncated', substr($tag, 0, 12) . '"']);
	for my $case (@never) {
		is($api->put($url{$what}, { name => 'changed' }, { 'If-Match' => $case->[1] })->{status}, 412,
		    "a change of a $what with a tag $case->[0] returns 412");
		is($api->delete($url{$what}, { 'If-Match' => $case->[1] })->{status}, 412,
		    "a deletion of a $what with a tag $case->[0] returns 412");
	}
	is($api->put($url{$what}, {}, { 'If-None-Match' => $bent })->{status}, 200,
	    "a change of a $what with If-None-Match of a tag that was never issued succeeds");
}
# Two projects with the same number of changes.
my ($a) = $second->{headers}{etag} =~ /^"(\d+)-/;
my $third = $api->post('/api/projects',
    { name => 'Three', repository => 'https://git.example.org/a/two', projectDir => 'three' });
is($api->put("/api/projects/$third->{json}{id}", { name => 'x' },
    { 'If-Match' => $second->{headers}{etag} })->{status}, 412,
    'a change with the tag of a project of the same version returns 412');

# --- routes without tags reject conditions instead of ignoring them
for my $case (['POST', '/api/projects', { name => 'Four', repository => 'https://git.example.org/a/four' }],
    ['PUT', "$url{project}/hook-secret", undef], ['POST', '/api/deployments', { projectId => $id }]) {
	my ($method, $path, $body) = @$case;
	is($api->request($method, $path, $body, { 'If-Match' => '"x"' })->{status}, 412,
	    "$method $path with If-Match of a tag returns 412");
	is($api->request($method, $path, $body, { 'If-Match' => 'x' })->{status}, 400,
	    "$method $path with an invalid If-Match returns 400");
}
is($api->get('/api/projects?name=Four')->{json}{pagination}{total}, 0,
    'a rejected condition creates no project');

# --- a PUT that changes nothing
for my $what (sort keys %url) {
	my $before = $api->get($read{$what});
	my $pipeline = $api->get($read{pipeline});
	my %same = %{ $before->{json} };
	delete @same{qw(id valid createdAt updatedAt createdBy workspaceStatus lastLoginAt steps)};
	for my $case (['an empty body', {}], ['the same members', \%same],
	    ['the same name', { name => $same{name} }]) {
		$got = $api->put($url{$what}, $case->[1]);
		is("$got->{status} $got->{headers}{etag}", "200 $before->{headers}{etag}",
		    "a PUT of a $what with $case->[0] keeps its ETag")
		    or diag $got->{body};
		is($got->{json}{updatedAt}, $before->{json}{updatedAt},
		    "a PUT of a $what with $case->[0] keeps its updatedAt");
	}
	is($api->get($read{$what})->{headers}{etag}, $before->{headers}{etag},
	    "a read after a PUT of a $what without changes returns the same ETag");
	is($api->get($read{pipeline})->{headers}{etag}, $pipeline->{headers}{etag},
	    "a PUT of a $what without changes keeps the ETag of the pipeline");
	$got = $api->put($url{$what}, { name => "$same{name}!" });
	isnt($got->{headers}{etag}, $before->{headers}{etag}, "a change of a $what changes its ETag");
	isnt($got->{json}{updatedAt} // '', $before->{json}{updatedAt} // '-',
	    "a change of a $what changes its updatedAt")
	    if exists $same{name} && $what ne 'user';
}
my $before = $api->get($last);
$got = $api->put($last, { position => 99 });
is("$got->{headers}{etag} $got->{json}{position}", "$before->{headers}{etag} 2",
    'moving the last step to the end changes nothing');
is($db->sql('SELECT SUM(LENGTH(secret_defaults) > 10 AND LENGTH(trigger_secrets) > 10) FROM project'
    . " WHERE id = $id"), 1, 'writes without changes keep the secrets');
$before = $api->get($url{project});
my @presets = map { $_->{key} eq 'S' ? { %$_, default => 'new' } : $_ } @{ $before->{json}{envPresets} };
$got = $api->put($url{project}, { envPresets => \@presets });
isnt($got->{headers}{etag}, $before->{headers}{etag}, 'a new secret changes the ETag');

# --- locks, whose version is the time of their last change
my $lock = { reason => 'an incident' };
for my $path ('/api/lock', "$url{project}/lock") {
	is($api->put($path, $lock, { 'If-Match' => '*' })->{status}, 412,
	    "$path: a lock that is not set matches nothing");
	my $set = $api->put($path, $lock, { 'If-None-Match' => '*' });
	is($set->{status}, 200, "$path: If-None-Match * sets a lock where there is none");
	is($api->put($path, { reason => 'mine' }, { 'If-None-Match' => '*' })->{status}, 412,
	    "$path: If-None-Match * does not replace a lock");
	my %mine = ('If-Match' => $set->{headers}{etag});
	my $changed = $api->put($path, { reason => 'a longer incident' }, \%mine);
	is("$changed->{status} $changed->{json}{reason}", '200 a longer incident',
	    "$path: the tag of a PUT allows a PUT");
	is($api->put($path, $lock, \%mine)->{status}, 412, "$path: the former tag does not");
	is($api->delete($path, \%mine)->{status}, 412, "$path: nor does it allow a DELETE");
	is($api->get($path)->{headers}{etag}, $changed->{headers}{etag}, 'a GET returns the tag of the PUT')
	    if $path eq '/api/lock';
	is($api->delete($path, { 'If-Match' => $changed->{headers}{etag} })->{status}, 204,
	    "$path: the present tag allows a DELETE");
}

# --- 415
$got = $api->post('/api/projects', '{}', { 'Content-Encoding' => 'gzip' });
is("$got->{status} $got->{headers}{'accept-encoding'}", '415 identity',
    '415 for a content coding names the accepted codings');
$got = $api->post('/api/projects', '{}', { 'Content-Type' => 'text/plain' });
is("$got->{status} $got->{headers}{accept}", '415 application/json',
    '415 for a content type names the accepted types');

done_testing;
