#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Entity tags: conditions of reads and writes, tags that were never issued, and
# changes that change nothing.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $got;
make_keys($api->conf_file, $api->dir . '/secret.key');
$api->stop_api;
$api->start_api;

my %url;
$got = $api->post('/api/projects', { name => 'One', repository => 'https://git.example.org/a/one', description => 'x',
	envPresets => [{ key => 'A', label => 'A', type => 'select', options => [{ label => 'a', value => 'a' }], default => 'a' },
	    { key => 'S', label => 'S', type => 'input', secret => \1, default => 'hush' }] });
is($got->{status}, 201, 'a project') or diag $got->{body};
my $id = $got->{json}{id};
$url{project} = "/api/projects/$id";
my $second = $api->post('/api/projects', { name => 'Two', repository => 'https://git.example.org/a/two' });
$got = $api->post('/api/pipelines', { projectId => $id, name => 'P', description => 'x',
	steps => [map { { name => $_, script => "echo $_" } } 'a' .. 'c'] });
is($got->{status}, 201, 'a pipeline');
$url{pipeline} = "/api/pipelines/$got->{json}{id}";
$url{step} = "/api/steps/$got->{json}{steps}[1]{id}";
my $last = "/api/steps/$got->{json}{steps}[2]{id}";
$got = $api->post('/api/user', { username => 'eve', role => 'viewer', name => 'Eve', email => 'eve@example.org' });
$url{user} = "/api/user/$got->{json}{id}";
my %read = (%url, user => "/api/user/detail/$got->{json}{id}");
is($api->put($url{project}, { triggers => [{ branch => 'main', pipelineId => 0 + ($url{pipeline} =~ /(\d+)$/)[0],
	    envVars => { A => 'a', S => 'psst' } }] })->{status}, 200, 'a trigger with a secret');

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
			is($api->request($method, $read{$what}, undef, \%h)->{status}, $status, "$method of a $what, $name: $status");
		}
	}
}
is($api->get('/api/projects/77777', { 'If-Match' => '"x"' })->{status}, 404, 'a condition on what is not there is ignored');
for my $list (qw(/api/projects /api/pipelines /api/steps /api/user/list /api/auth/tokens /api/deployments /projects)) {
	is($api->get($list, { 'If-Match' => '"x"' })->{status}, 412, "$list has no tags to match");
	is($api->get($list, { 'If-Match' => '*' })->{status}, 200, 'but is there');
	is($api->get($list, { 'If-Match' => 'x' })->{status}, 400, 'and rejects what is no tag');
}

# --- tags that were never issued
for my $what (sort keys %url) {
	my $tag = $api->get($read{$what})->{headers}{etag};
	my ($version) = $tag =~ /^"(\d+)-/;
	(my $bent = $tag) =~ s/(.)"$/($1 eq '0' ? '1' : '0') . '"'/e;
	(my $front = $tag) =~ s/-(.)/'-' . ($1 eq '0' ? '1' : '0')/e;
	my $other = $what eq 'project' ? $second->{headers}{etag} : $api->get($read{project})->{headers}{etag};
	my @never = (['another digit', $bent], ['another hash', $front], ['another resource', $other], ['zeros', "\"$version-0000000000000000\""],
		['more zeros', "\"$version-" . '0' x 24 . '"'], ['the version alone', "\"$version\""], ['half of it', substr($tag, 0, 12) . '"']);
	for my $case (@never) {
		is($api->put($url{$what}, { name => 'changed' }, { 'If-Match' => $case->[1] })->{status}, 412,
		    "a $what is not changed by a tag of $case->[0]");
		is($api->delete($url{$what}, { 'If-Match' => $case->[1] })->{status}, 412, 'or deleted');
	}
	is($api->put($url{$what}, {}, { 'If-None-Match' => $bent })->{status}, 200, 'and it is none that If-None-Match excludes');
}
# Two projects that had the same number of changes.
my ($a) = $second->{headers}{etag} =~ /^"(\d+)-/;
my $third = $api->post('/api/projects', { name => 'Three', repository => 'https://git.example.org/a/two', projectDir => 'three' });
is($api->put("/api/projects/$third->{json}{id}", { name => 'x' }, { 'If-Match' => $second->{headers}{etag} })->{status}, 412,
    'nor by that of its like');

# --- what nothing guards is not written unguarded
for my $case (['POST', '/api/projects', { name => 'Four', repository => 'https://git.example.org/a/four' }],
    ['PUT', "$url{project}/hook-secret", undef], ['POST', '/api/deployments', { projectId => $id }]) {
	my ($method, $path, $body) = @$case;
	is($api->request($method, $path, $body, { 'If-Match' => '"x"' })->{status}, 412, "$method $path has no tag to match");
	is($api->request($method, $path, $body, { 'If-Match' => 'x' })->{status}, 400, 'and rejects what is none');
}
is($api->get('/api/projects?name=Four')->{json}{pagination}{total}, 0, 'so nothing was made');

# --- a PUT that changes nothing
for my $what (sort keys %url) {
	my $before = $api->get($read{$what});
	my $pipeline = $api->get($read{pipeline});
	my %same = %{ $before->{json} };
	delete @same{qw(id valid createdAt updatedAt createdBy workspaceStatus lastLoginAt steps)};
	for my $case (['an empty one', {}], ['all of it', \%same], ['a part', { name => $same{name} }]) {
		$got = $api->put($url{$what}, $case->[1]);
		is("$got->{status} $got->{headers}{etag}", "200 $before->{headers}{etag}", "a $what, $case->[0]: the same ETag")
		    or diag $got->{body};
		is($got->{json}{updatedAt}, $before->{json}{updatedAt}, 'the same updatedAt');
	}
	is($api->get($read{$what})->{headers}{etag}, $before->{headers}{etag}, 'also when it is read');
	is($api->get($read{pipeline})->{headers}{etag}, $pipeline->{headers}{etag}, 'and the pipeline\'s');
	$got = $api->put($url{$what}, { name => "$same{name}!" });
	isnt($got->{headers}{etag}, $before->{headers}{etag}, 'a change has another ETag');
	isnt($got->{json}{updatedAt} // '', $before->{json}{updatedAt} // '-', 'and another updatedAt') if exists $same{name} && $what ne 'user';
}
my $before = $api->get($last);
$got = $api->put($last, { position => 99 });
is("$got->{headers}{etag} $got->{json}{position}", "$before->{headers}{etag} 2", 'moving the last step to the end changes nothing');
is($db->sql("SELECT SUM(LENGTH(secret_defaults) > 10 AND LENGTH(trigger_secrets) > 10) FROM project WHERE id = $id"), 1, 'secrets are kept');
$before = $api->get($url{project});
$got = $api->put($url{project}, { envPresets => [map { $_->{key} eq 'S' ? { %$_, default => 'new' } : $_ } @{ $before->{json}{envPresets} }] });
isnt($got->{headers}{etag}, $before->{headers}{etag}, 'a new secret is a change');

# --- 415 says what is accepted
$got = $api->post('/api/projects', '{}', { 'Content-Encoding' => 'gzip' });
is("$got->{status} $got->{headers}{'accept-encoding'}", '415 identity', 'a 415 for a coding names the codings');
$got = $api->post('/api/projects', '{}', { 'Content-Type' => 'text/plain' });
is("$got->{status} $got->{headers}{accept}", '415 application/json', 'and one for a type the types');

done_testing;
