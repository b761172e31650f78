#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Lists of a Gitea that puts fewer on a page than was asked for, or more into a
# commit than fits: each item comes once and in order. A branch is no tag.

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
	is($got->{status}, 201, 'a project') or diag($got->{body});
	return ($f, $repo, $api, $got->{json}{id});
}
# All items in pages of so many; each full page but the last must be full.
sub walk {
	my ($api, $what, $project, $limit, $branch) = @_;
	my @all;
	for my $page (1 .. 50) {
		my $got;
		poll(60, sub { # on a machine that has much else to do
			$got = $api->get("/api/git/$what?projectId=$project&limit=$limit&page=$page" . ($branch ? "&branch=$branch" : ''));
			return $got->{status} != 504;
		});
		is($got->{status}, 200, "$what, page $page of $limit") or diag($got->{body});
		my $data = $got->{json}{data} || [];
		push @all, @$data;
		return @all if !$got->{json}{pagination}{hasMore};
		is(scalar @$data, $limit, 'is full');
	}
	return @all;
}

{
	note('fewer commits on a page than max_response_items says');
	my ($f, $repo, $api, $p) = begin(commits_range => 4);
	my @hash = reverse map { $repo->commit('main', undef, "c$_") } 1 .. 12;
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, $_)], \@hash, "in pages of $_ each comes once") for 5, 6, 4, 3, 12, 100;
	$api->stop_api;
	$api->start_api;
	is_deeply($api->get("/api/git/commits?projectId=$p&limit=6&page=2")->{json}{data}[0]{hash}, $hash[6], 'also if the second page is asked for first');
	is_deeply($api->get("/api/git/commits?projectId=$p&limit=12&page=2")->{json}{data}, [], 'and none is beyond the end');
	is_deeply([$f->complaints], [], 'nothing was sent that the server would not take');
	$api->stop;
	$f->stop;
}
{
	note('a hundred kilobytes in each commit');
	my ($f, $repo, $api, $p) = begin();
	my $long = "\x{20ac}" x 33_000;
	my @hash = reverse map { $repo->commit('main', undef, encode_utf8("c$_ $long")) } 1 .. 14;
	$repo->branch("b$_", $hash[$_]) for 1 .. 12;
	for my $limit (20, 7, 100) {
		my @all = walk($api, 'commits', $p, $limit);
		is_deeply([map { $_->{hash} } @all], \@hash, "in pages of $limit each comes once");
		my @wrong = grep { my $m = encode_utf8($all[$_]{message}); length $m > 16_384 || length $m < 16_380 || $all[$_]{message} !~ /^c@{[14 - $_]} \x{20ac}+$/ } 0 .. $#all;
		is_deeply(\@wrong, [], 'with the start of its message, of whole characters');
	}
	is(scalar(walk($api, 'branches', $p, $_)), 13, "branches, in pages of $_") for 20, 100, 3;
	is_deeply([$f->complaints], [], 'nothing was sent that the server would not take');
	for my $kind (qw(gzip big)) {
		$f->fault(qr{/branches$}, kind => $kind, size => 20 << 20);
		my $before = () = $f->requests;
		like($api->get("/api/git/branches?projectId=$p")->{status}, qr/^50[24]$/, "a page of twenty mebibytes ($kind)");
		my $asked = (() = $f->requests) - $before;
		cmp_ok($asked, '<=', $kind eq 'gzip' ? 2 : 4, "is not asked for again and again: $asked");
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
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, 'both')], [$hash[0]], 'a branch comes before the tag of its name');
	is($api->get("/api/git/commits?projectId=$p&branch=$_")->{status}, 404, "$_ is no branch") for 'alone', $hash[2], 'main~1', 'refs/heads/main', 'tags/alone';
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, substr $hash[2], 0, 10)], [@hash[1, 0]], 'one that looks like a hash is');
	$repo->branch('refs/heads/main', $hash[0]);
	is_deeply([map { $_->{hash} } walk($api, 'commits', $p, 20, 'refs/heads/main')], [$hash[0]], 'and one that looks like a whole name');
	$api->stop;
	$f->stop;
}
done_testing();
