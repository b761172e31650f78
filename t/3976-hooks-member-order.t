#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A push event with many commits before its repository, in the order of members
# that Gitea and GitHub use.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1);

my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/owner/name' })->{json}{id};
my $pipeline = $api->post('/api/pipelines',
    { projectId => $project, name => 'x', steps => [{ name => 's', script => 'true' }] })->{json}{id};
is($api->put("/api/projects/$project",
    { triggers => [{ branch => 'main', pipelineId => $pipeline }] })->{status}, 200,
    'a trigger is stored');
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};

my $json = Cpanel::JSON::XS->new->utf8->canonical;

# Puts the commits first, whatever the order of names, and the needed members last.
sub commits_first {
	my ($kind, $commits, $members, $twice) = @_;
	my $body = $json->decode(push_body($kind, path => 'owner/name', commit => 'c' x 40));
	my $commit = delete($body->{commits})->[0];
	$commit->{"member$_"} = $_ for 1 .. $members;
	my $rest = substr $json->encode($body), 1;
	$rest = '"ref":"refs/heads/main",' . $rest if $twice;
	return '{"commits":[' . join(',', ($json->encode($commit)) x $commits) . "],$rest";
}
sub answer {
	my ($kind, $body) = @_;
	return $api->as('none')->post("/api/hooks/$project", $body, sign_event($kind, $secret, $body));
}

for my $kind (@HOOK_KINDS) {
	my $got = answer($kind, commits_first($kind, 8000, 20));
	is($got->{status}, 202,
	    "a $kind push with many commits before the repository starts a deployment")
	    or diag $got->{body};
	is($got->{json}{data}[0]{branch}, 'main', "a $kind push with many commits has the right branch");
}
my $got = answer(gitea => commits_first('gitea', 8000, 20, 1));
is($got->{status}, 400, 'a duplicate member after many commits is found') or diag $got->{body};
like($got->{body}, qr/duplicate member/, 'the error names the duplicate');

done_testing;
