#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Places in logs, and search in them.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $api = Slipway::API->start(db => $db);
my $probe = Slipway::Probe->start($db->conf_file, 'deployment_probe');

my $last = 0;
# Stores a running deployment with that log; its id. Older versions stored neither
# lines nor times.
sub deployment {
	my ($text, $old) = @_;
	my ($id, $at, $part) = (++$last, 0);
	$db->sql("INSERT INTO project (id, name, repository, project_dir) VALUES"
	    . " ($id, 'p$id', 'https://git.example/o/p', 'd$id');"
	    . "INSERT INTO pipeline (id, project_id, name) VALUES ($id, $id, 'l');"
	    . "INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch)"
	    . " VALUES ($id, $id, $id, 'manual', 'running', 1)");
	while ($at < length $text) {
		$part = substr $text, $at, 60_000;
		my $hex = unpack 'H*', $part;
		my $more = $old ? 'NULL, NULL' : ($part =~ tr/\n//) . ', NOW(3)';
		$db->sql('INSERT INTO log_chunk (deployment_id, start, length, data, breaks, written_at)'
		    . " VALUES ($id, $at, " . length($part) . ", X'$hex', $more)");
		$at += length $part;
	}
	return $id;
}
sub finish {
	my ($id, $size) = @_;
	$db->sql("UPDATE deployment SET status = 'success', log_size = $size, finished_at = NOW(3)"
	    . " WHERE id = $id");
	is($probe->ask("pack $id"), 'ok', 'the log is packed');
}
sub step {
	my ($id, $position, $offset) = @_;
	$db->sql('INSERT INTO deployment_step (deployment_id, position, name, script, run_when, log_offset,'
	    . " started_at) VALUES ($id, $position, 's', 'x', 'always', $offset, '2026-01-02 03:04:05.678')");
}
sub line_of { my ($text, $offset) = @_; return 1 + (substr($text, 0, $offset) =~ tr/\n//) }
sub places {
	my ($id) = @_;
	my $got = $api->get("/api/deployments/$id/log/index");
	is($got->{status}, 200, 'the index of a log is returned') or diag $got->{body};
	return @{ $got->{json}{data} };
}
# All matches, continued as long as there are more; the number of requests.
my $requests;
sub search {
	my ($id, $text, %query) = @_;
	my ($next, @all) = (0);
	$text =~ s/([^\w])/sprintf '%%%02X', ord $1/ge;
	for ($requests = 0; defined $next && $requests < 1000; $requests++) {
		my $got = $api->get("/api/deployments/$id/log/matches?q=$text&from=$next"
		    . join '', map { "&$_=$query{$_}" } sort keys %query);
		is($got->{status}, 200, 'a log is searched') or die $got->{body};
		push @all, @{ $got->{json}{data} };
		$next = $got->{json}{pagination}{next};
	}
	return @all;
}

# --- places
my $text = join '', map { "line $_ of a long log\n" } 1 .. 50_000;
for my $case (['running', 0], ['running, stored by an older version', 1]) {
	my ($name, $old) = @$case;
	my $id = deployment($text, $old);
	my @step = (70_000, 70_000, 500_005);
	step($id, $_, $step[$_]) for 0 .. 2;
	for my $state ($name, "packed after it was $name") {
		my @place = places($id);
		is($place[0]{offset}, 0, "$state: the first place is the start of the log");
		is_deeply([map { $_->{line} } @place], [map { line_of($text, $_->{offset}) } @place],
		    "$state: each place has its line");
		my ($wide) = grep { $place[$_ + 1]{offset} - $place[$_]{offset} > 400_000 } 0 .. $#place - 1;
		is($wide, undef, "$state: places are about 256 KiB apart");
		cmp_ok(scalar @place, '<', 15, "$state: there are few places");
		my ($first, $second, $third) =
		    grep { defined $_->{step} && "@step" =~ /\b$_->{offset}\b/ } @place;
		is("$first->{step} $second->{step} $third->{step}", '0 1 2', "$state: each step has a place");
		is($third->{at}, '2026-01-02T03:04:05.678Z', "$state: a step's place has its start");
		is($place[0]{step}, undef, "$state: a place before the steps has none");
		is($place[-1]{step}, 2, "$state: a place in a step names it");
		is(defined $place[0]{at} ? 1 : 0, $old ? 0 : 1, "$state: a place has its time if known");
		finish($id, length $text) if $state eq $name;
	}
}
my $stored = deployment('');
is($probe->ask("append $stored 1 0 $_"), 'ok', "$_ bytes are stored") for 1000, 3000, 2000;
is($db->sql("SELECT length, breaks = LENGTH(data) - LENGTH(REPLACE(data, '\\n', '')), breaks > 0,"
    . " written_at <= NOW(3) FROM log_chunk WHERE deployment_id = $stored"), "3000\t1\t1\t1",
    'a part of a log is stored with its time and its line breaks, also when it grows');

my $empty = deployment('');
is_deeply([places($empty)], [], 'an empty log has no places');
is_deeply([search($empty, 'x')], [], 'an empty log has no matches');

# --- search
my $e = "\e[";
my $small = "Start\n"
    . "${e}31mERR${e}0mor: disk full\n\nan ${e}1;3mErro${e}0m${e}Kr and error error\nend ER\nROR\n"
    . "\e]8;;https://error.example\e\\link\e]8;;\e\\ \e(Bplain \e7errOR\e8\n";
my $id = deployment($small);
my @found = search($id, 'error');
is_deeply([map { substr $small, $_->{offset}, $_->{length} } @found],
    ["ERR${e}0mor", "Erro${e}0m${e}Kr", 'error', 'error', 'errOR'],
    'a search ignores case and escape sequences, and finds nothing across lines or in addresses');
is_deeply([map { $_->{line} } @found], [2, 4, 4, 4, 7], 'each match has its line');
is_deeply([search($id, 'error', limit => 1)], \@found, 'pages of one match find the same');
is($requests, 6, 'each page has one match');
is_deeply([search($id, 'error error')], [{ offset => index($small, 'error error'), length => 11, line => 4 }],
    'a text with a space is found');
is_deeply([search($id, '.*')], [], 'a search is for plain text');
is_deeply([search($id, '[31m')], [], 'an escape sequence is not found');
is(scalar(search(deployment('aaaaa'), 'aa')), 2, 'matches do not overlap');

my $long = substr($text, 0, 262_140) . "nEEd${e}1mle\n" . substr($text, 0, 262_130)
    . "need${e}0;1;2;3mle\n$text";
for my $size (0, length $long) {
	my $one = deployment($long, 1);
	finish($one, $size) if $size;
	my $how = $size ? 'packed' : 'plain';
	my @match = search($one, 'needle');
	is(join(' ', map { $_->{offset} } @match),
	    join(' ', map { index lc $long, 'need', $_ } 0, 262_150),
	    "matches across pieces of a $how log are found");
	is_deeply([map { $_->{line} } @match], [map { line_of($long, $_->{offset}) } @match],
	    "matches in a $how log have their lines");
	my @many = search($one, 'LINE 12', limit => 1000);
	my $n = () = $long =~ /line 12/g;
	is(scalar @many, $n, "all matches in a $how log are found");
	is_deeply([grep { $_->{line} != line_of($long, $_->{offset}) } @many[0, 500, 1000, -1]], [],
	    "the lines of many matches in a $how log are right");
}

# --- a log of which the database lost a part
sub log_of { my ($id, $query, @more) = @_; return $api->get("/api/deployments/$id/log$query", @more) }
sub hole { my ($n) = @_; return sprintf "\n%-*s\n", $n - 2, "==> $n bytes of the log are missing here" }
my $whole = substr $text, 0, 500_000;
for my $case (['in the middle', 'start IN (60000, 120000)', [60_000, 120_000]],
    ['at the start', 'start < 300000', [0, 300_000]],
    ['of one byte', undef, [60_000, 1]], ['of six bytes', undef, [120_000, 6]],
    ['at the end', 'start >= 480000', [480_000, 20_000]], ['of all', '1', [0, 500_000]]) {
	my ($name, $lost, $hole) = @$case;
	my ($from, $n) = @$hole;
	my $one = deployment($whole);
	$db->sql("DELETE FROM log_chunk WHERE deployment_id = $one AND $lost") if $lost;
	$db->sql("UPDATE log_chunk SET start = start + $n, length = length - $n, breaks = NULL,"
	    . " data = SUBSTR(data, $n + 1) WHERE deployment_id = $one AND start = $from") if !$lost;
	my $shown = $whole;
	substr($shown, $from, $n) = $n > 40 ? hole($n) : substr("\n$n?" . ' ' x $n, 0, $n - 1) . "\n";
	step($one, 0, 100_000);
	step($one, 1, 490_000);
	for my $state ('running', 'finished') {
		next if $from + $n == 500_000 && $state eq 'running'; # no one knows the size yet
		finish($one, 500_000) if $state eq 'finished';
		my $what = "a hole $name, $state";
		my $got = log_of($one, '?wait=1');
		is($got->{status}, 200, "$what: the log is served");
		ok($got->{body} eq $shown, "$what: a line says how much is missing")
		    or diag substr $got->{body}, $from, 100;
		for my $at ($from, $from + int($n / 2), $from + $n - 1, $from + $n, 499_999) {
			next if $at >= 500_000;
			$got = log_of($one, "?offset=$at");
			ok($got->{body} eq substr($shown, $at), "$what: offset $at");
			$got = log_of($one, '', { Range => "bytes=$at-" . ($at + 9) });
			is($got->{body}, substr($shown, $at, 10), "$what: range from $at");
		}
		my @place = places($one);
		is_deeply([map { $_->{line} } @place], [map { line_of($shown, $_->{offset}) } @place],
		    "$what: places have their lines");
		is(scalar(grep { $_->{offset} == 100_000 || $_->{offset} == 490_000 } @place), 2,
		    "$what: each step has a place");
		my @match = search($one, 'line 18', limit => 1000);
		my $all = () = $shown =~ /line 18/g;
		is(scalar @match, $all, "$what: all matches are found");
		is_deeply([grep { $_->{line} != line_of($shown, $_->{offset})
			|| substr($shown, $_->{offset}, 7) ne 'line 18' } @match], [],
		    "$what: matches have their lines and offsets");
		@match = search($one, 'log are missing');
		is(scalar @match, $n > 40 ? 1 : 0, "$what: the line is found");
	}
}
# What was stored again after a failover overlaps what was there.
my $over = deployment('');
for ([0, 1000], [1000, 60_000], [30_000, 10], [30_005, 20], [61_000, 5], [61_000, 500]) {
	my ($at, $n) = @$_;
	$probe->ask("append $over 1 $at $n");
}
is($probe->ask("read $over $_ 100"), '100 good', "an overlapping chunk is read from $_")
    for 30_008, 30_015, 30_030, 60_950;
is($api->get("/api/deployments/$over/log?offset=$_")->{status}, 200, "a log is served from $_")
    for 30_008, 40_000, 61_100;

# --- errors
is($api->get("/api/deployments/$id/log/matches")->{status}, 400, 'a search without a text returns 400');
is($api->get("/api/deployments/$id/log/matches?q=a%0Ab")->{status}, 400,
    'a search for a line break returns 400');
is($api->get("/api/deployments/$id/log/matches?q=" . 'x' x 201)->{status}, 400,
    'a search for a long text returns 400');
is($api->get("/api/deployments/$id/log/matches?q=end&from=99999")->{json}{pagination}{next}, undef,
    'a search from the end of a log ends');
for my $path ('index', 'matches?q=x') {
	is($api->get("/api/deployments/9999/log/$path")->{status}, 404, "$path of no deployment returns 404");
	is($api->as('none')->get("/api/deployments/1/log/$path")->{status}, 401, "$path needs a credential");
}
finish($id, length $small);
$db->sql("UPDATE deployment SET log_pruned = 1 WHERE id = $id;"
    . " DELETE FROM log_chunk WHERE deployment_id = $id");
is($api->get("/api/deployments/$id/log/$_")->{status}, 404, "$_ of a deleted log returns 404")
    for 'index', 'matches?q=x';

done_testing;
