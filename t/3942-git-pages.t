#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Lists of a Gitea that returns fewer items per page than requested, or commits
# that are too large: each item is listed once and in order.  A tag is not a branch.

use strict;
use warnings;
use Encode qw(encode_utf8);
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;

my $db = Slipway::DB->start;
my $named = 0;

sub begin {
	my (%opt) = @_;
	my $f = Slipway::Forge->start(type => 'gitea', %opt);
	$f->user(bot => { id => 8 });
	my $repo = $f->repo('team/site', private => 1, users => ['bot']);
	my $api = Slipway::API->start(db => $db, conf => $f->conf(token => scalar $f->token('bot')));
	my $got = $api->post('/api/projects', { name => 'p' . ++$named, repository => $repo->clone_url });
	is($got->{status}, 201, 'a project is created') or diag($got->{body});
	return ($f, $repo, $api, $got->{json}{id});
}
# Reads all items in pages of $limit; every page but the last must be full.
sub walk {
	my ($api, $what, $project, $limit, $branch) = @_;
	my @all;
	for my $page (1 .. 50) {
		my $got;
		poll(60, sub { # a busy machine may cause a 504
			$got = $api->get("/api/git/$what?projectId=$project&limit=$limit&page=$page"
			    . ($branch ? "&branch=$branch" : ''));
			return $got->{status} != 504;
		});
		is($got->{status}, 200, "$what: page $page of $limit returns 200") or diag($got->{body});
		my $data = $got->{json}{data} || [];
		push @all, @$data;
		return @all if !$got->{json}{pagination}{hasMore};
		is(scalar @$data, $limit, "$what: page $page of $limit is full");
	}
	return @all;
}

{
	note('fewer commits per page than max_response_items');
	my ($f, $repo, $api, $p) = begin(commits_range => 4);
	my @hash = reverse map { $repo->commit('main', undef, "c$_") } 1 .. 12;
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, $_)], \@hash,
	    "pages of $_ list each commit once") for 5, 6, 4, 3, 12, 100;
	$api->stop_api;
	$api->start_api;
	is_deeply($api->get_in_time("/api/git/commits?projectId=$p&limit=6&page=2")->{json}{data}[0]{hash},
	    $hash[6],
	    'the second page can be read first');
	is_deeply($api->get_in_time("/api/git/commits?projectId=$p&limit=12&page=2")->{json}{data}, [],
	    'a page past the last commit is empty');
	is_deeply([$f->complaints], [], 'the server received only valid requests');
	$api->stop;
	$f->stop;
}
{
	note('commits of 100 kB');
	my ($f, $repo, $api, $p) = begin();
	my $long = "\x{20ac}" x 33_000;
	my @hash = reverse map { $repo->commit('main', undef, encode_utf8("c$_ $long")) } 1 .. 14;
	$repo->branch("b$_", $hash[$_]) for 1 .. 12;
	for my $limit (20, 7, 100) {
		my @all = walk($api, 'commits', $p, $limit);
		is_deeply([map { $_->{hash} } @all], \@hash, "pages of $limit list each large commit once");
		my @wrong = grep { my $m = encode_utf8($all[$_]{message}); length $m > 16_384
		    || length $m < 16_380 || $all[$_]{message} !~ /^c@{[14 - $_]} \x{20ac}+$/ } 0 .. $#all;
		is_deeply(\@wrong, [], 'the messages of large commits are truncated between characters');
	}
	is(scalar(walk($api, 'branches', $p, $_)), 13,
	    "all branches with large commits are listed in pages of $_") for 20, 100, 3;
	is_deeply([$f->complaints], [], 'the server received only valid requests');
	for my $kind (qw(gzip big)) {
		$f->fault(qr{/branches$}, kind => $kind, size => 20 << 20);
		my $before = () = $f->requests;
		like($api->get("/api/git/branches?projectId=$p")->{status}, qr/^50[24]$/,
		    "a page of 20 MiB returns 502 or 504 ($kind)");
		my $asked = (() = $f->requests) - $before;
		cmp_ok($asked, '<=', $kind eq 'gzip' ? 2 : 4,
		    "a page of 20 MiB is requested $asked times, not again and again");
		$f->clear_faults;
	}
	$api->stop;
	$f->stop;
}
{
	note('tags and hashes');
	my ($f, $repo, $api, $p) = begin();
	my @hash = map { $repo->commit('main', undef, "c$_") } 1 .. 3;
	$repo->tag($_) for qw(both alone);
	$repo->branch('both', $hash[0]);
	$repo->branch(substr($hash[2], 0, 10), $hash[1]);
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, 'both')], [$hash[0]],
	    'a branch takes precedence over a tag of the same name');
	is($api->get_in_time("/api/git/commits?projectId=$p&branch=$_")->{status}, 404, "$_ is not a branch")
	    for 'alone', $hash[2], 'main~1', 'refs/heads/main', 'tags/alone';
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, substr $hash[2], 0, 10)], [@hash[1, 0]],
	    'a branch whose name looks like a hash is found');
	$repo->branch('refs/heads/main', $hash[0]);
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, 'refs/heads/main')], [$hash[0]],
	    'a branch whose name looks like a full ref is found');
	$api->stop;
	$f->stop;
}
done_testing();
