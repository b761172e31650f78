#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every request that slipway sends to Gitea, GitLab and GitHub, and every response
# of the tests' Git server, fits the published descriptions of those servers, as
# checked by TypeScript: GitHub's and Gitea's OpenAPI documents, and the types of
# GitLab's best known client, for which no package has a document. If npm's
# registry is unreachable, only the tests' Git server checks the requests.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Test::More;
use Slipway::Forge;
use Slipway::Npm;
use Slipway::Probe;
use Slipway::Test;

my $npm = npm_dir();
note($npm ? 'checked by @octokit/openapi-types, gitea-js, @gitbeaker/core and the stand-in'
    : "checked by the stand-in alone: npm's packages are unavailable");
my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;
my @records;
my $probe = Slipway::Probe->start(undef, 'forge_probe');

# Sends a request by the service's own code.
sub probe {
	my ($conf, @request) = @_;
	my ($status, $out) = $probe->run($conf, @request);
	is($status, 0, "the Git server accepts the request \"$request[0]\"") or diag($out);
	return;
}

for my $type (qw(gitea gitlab github)) {
	my $f = Slipway::Forge->start(type => $type, max_items => 2);
	$f->user(ann => { id => 7 });
	my $repo = $f->repo('team/site', private => 1, users => ['ann']);
	my $hash = $repo->commit('main', { file => "one\n" }, 'first');
	$repo->commit('main', { file => "$_\n" }, "change $_") for 2 .. 5;
	$repo->branch($_) for ("release/1.0", "a#b", "c%d", "zebra");
	my $ann = $f->token('ann');
	my $conf = spew(tempdir() . "/$type.conf", $f->conf);
	my $url = $repo->clone_url;
	probe($conf, 'whoami', $ann);
	probe($conf, 'repo', $ann, $url);
	probe($conf, 'repo', $ann, '#' . $repo->id);
	probe($conf, 'repos', $ann, 7, $_, 1, 2) for '-', 'site';
	probe($conf, 'branches', $ann, $url, $_, 2) for 1 .. 3;
	probe($conf, 'commits', $ann, $url, $_, 1, 4) for ("main", "release/1.0", "a#b", "c%d");
	my $other = $repo->commit('other', { file => "other\n" }, 'beside');
	probe($conf, 'commit', $ann, $url, $_) for $hash, substr $hash, 0, 9;
	probe($conf, 'contains', $ann, $url, $repo->tip('main'), $_) for $hash, $other;
	probe($conf, 'status', $ann, $url, $hash, $_, 'main', 'it is so', 'https://slipway.example.org/1')
	    for 0 .. 5;
	$repo->rename('team/page');
	probe($conf, 'branches', $ann, $url, 1, 100);
	is_deeply([$f->complaints], [], "$type: the stand-in finds nothing wrong with any request");

	# Its responses to the same requests: only GETs are repeated, which change nothing.
	my $base = $f->api =~ s/^\Q@{[$f->url]}\E//r;
	my $number = @records;
	for my $req ($f->requests(qr{^\Q$base\E/})) {
		my %record = (type => $type, method => $req->{method},
		    path => $req->{raw_path} =~ s/^\Q$base\E//r,
			query => $req->{query},
			body => length $req->{body} ? $json->decode($req->{body}) : undef, answer => undef);
		if ($req->{method} eq 'GET') {
			my @kept = grep { !/^(?:host|connection|x-forwarded-proto|accept-encoding)$/ }
			    keys %{ $req->{headers} };
			my %headers = map { $_ => $req->{headers}{$_} } @kept;
			my $query = length $req->{query_string} ? "?$req->{query_string}" : '';
			my $got = $f->http->get($f->url . $req->{raw_path} . $query,
			    { headers => \%headers });
			$record{answer} = $json->decode($got->{content}) if $got->{status} == 200;
		}
		push @records, \%record;
	}
	cmp_ok(@records - $number, '>=', 15, "$type: the stand-in recorded the requests");
	$f->stop;
}

my @wrong = (
	{ type => 'gitea', method => 'GET', path => '/repos/o/r/branches', query => { pages => 1 } },
	{ type => 'gitea', method => 'POST', path => '/repos/o/r/statuses/a', query => {},
		body => { color => 'red' } },
	{ type => 'gitea', method => 'GET', path => '/repos/o/r/nothing', query => {} },
	{ type => 'gitea', method => 'GET', path => '/user', query => {}, answer => { id => 'seven' } },
	{ type => 'github', method => 'POST', path => '/repos/o/r/statuses/a', query => {},
		body => { state => 'running' } },
	{ type => 'github', method => 'GET', path => '/repos/o/r/commits', query => { ref => 'main' } },
	{ type => 'github', method => 'GET', path => '/repos/o/r/branches', query => {},
		answer => [{ commit => { id => 'a' } }] },
	{ type => 'gitlab', method => 'GET', path => '/projects/1/repository/commits',
		query => { sha => 'main' } },
	{ type => 'gitlab', method => 'POST', path => '/projects/1/statuses/a', query => {},
		body => { state => 'failure' } },
);

if ($npm) {
	my $file = spew(tempdir() . '/records.json', $json->encode([@records, @wrong]));
	my ($status, $out, $err) = run_cmd({ cwd => $npm }, 'node', 'described.js', $file);
	is($status, 0, 'the checker runs') or diag($err);
	my $faults = $json->decode($out);
	is(scalar @$faults, @records + @wrong, 'the checker judges every request');
	my @good = splice @$faults, 0, scalar @records;
	for my $i (0 .. $#records) {
		my $r = $records[$i];
		my $what = "$r->{method} $r->{path}" . ($r->{answer} ? ' and its response' : '');
		is_deeply($good[$i], [], "$r->{type} documents $what") or diag($json->encode($r));
	}
	for my $i (0 .. $#wrong) {
		isnt(scalar @{ $faults->[$i] }, 0, "the checker rejects @{[$json->encode($wrong[$i])]}");
	}
}

done_testing;
