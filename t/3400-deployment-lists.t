#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Lists of deployments: every combination of filters finds the right rows by the
# right index, and very large rows shorten pages.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
my $probe = Slipway::Probe->start($db->conf_file, 'deployment_probe');
sub ask { return $probe->ask("@_") }

is(ask('check'), 'ok', 'every statement fits its tables');

my (@rows, $sql);
for my $id (1 .. 3) {
	$sql .= "INSERT INTO project (id, name, repository, project_dir) VALUES"
	    . " ($id, 'p$id', 'https://git.example/o/p$id', 'dir$id');"
	    . join '', map { "INSERT INTO pipeline (id, project_id, name) VALUES ($id$_, $id, 'pipe$_');" } 1,
	    2;
}
for my $id (1 .. 240) {
	my $project = 1 + $id % 3;
	my $row = { id => $id, project => $project, pipeline => $project . (1 + $id % 2),
		status => (qw(pending success failed canceled))[ $id % 4 ],
		branch => (qw(main dev feature/x))[ $id % 7 % 3 ] };
	push @rows, $row;
	$sql .= "INSERT INTO deployment (id, project_id, pipeline_id, branch, status, `trigger`)"
	    . " VALUES ($id, $row->{project}, $row->{pipeline}, '$row->{branch}', '$row->{status}',"
	    . " 'manual');";
}
$db->sql($sql);

# --- all sixteen combinations of filters
for my $mask (0 .. 15) {
	my %want = (project => 2, pipeline => 22, status => 'failed', branch => 'main');
	delete $want{project} if !($mask & 1);
	delete $want{pipeline} if !($mask & 2);
	delete $want{status} if !($mask & 4);
	delete $want{branch} if !($mask & 8);
	my @want = reverse map { $_->{id} } grep {
		my $row = $_;
		!grep { $row->{$_} ne $want{$_} } keys %want;
	} @rows;
	my ($before, @got, $pages) = (0);
	do {
		my $page = ask('page', $want{project} // 0, $want{pipeline} // 0,
		    $want{status} // '-', $want{branch} // '-', $before, 20);
		push @got, $page =~ /(\d+):\d+:\d+ /g;
		($before) = $page =~ /next (\d+)/;
		$pages++;
	} while ($before && $pages < 20);
	my $name = join(' ', map { "$_=$want{$_}" } sort keys %want) || 'no filter';
	is("@got", "@want", "$name: the list has all matching rows, newest first");
	is($pages, int((@want + 19) / 20) || 1, "$name: the list has no unnecessary pages");
	my $text = ask('sql', $mask);
	my ($index) = $text =~ /FORCE INDEX \((\w+)\)/;
	my @values = ((map { defined $want{$_} ? "'$want{$_}'" : () } qw(project pipeline status branch)),
	    9e15, 20);
	$text =~ s/\?/shift @values/ge;
	my $plan = $db->sql("EXPLAIN $text");
	my ($first) = grep { /\td\t/ } split /\n/, $plan;
	like($first, qr/\t\Q$index\E\t/, "$name: the statement uses its index");
	unlike($first, qr/filesort|temporary/, "$name: the statement sorts nothing");
}
is(ask('page 1 0 - - 0 100') =~ tr/:/:/, 160, 'a page has as many rows as requested');
is(ask('page 9 0 - - 0 100'), 'next 0', 'the list of an unknown project is empty');
is(ask('page 1 21 - - 0 100'), 'next 0', 'the list of a pipeline of another project is empty');
is(ask('page 0 0 - - 1 10'), 'next 0', 'the page after the last row is empty');

# --- large rows
$db->sql("UPDATE deployment SET env_vars = CONCAT('{\"A\":\"', REPEAT('x', 500000), '\"}'),"
    . " commit_message = REPEAT('m', 60000) WHERE id > 200");
my $page = ask('page 0 0 - - 0 100');
my @got = $page =~ /(\d+):60000:500008 /g;
cmp_ok(scalar @got, '>=', 1, 'large rows are returned whole');
cmp_ok(scalar @got, '<=', 6, 'large rows shorten a page');
is(join(' ', @got), join(' ', reverse 241 - @got .. 240), 'a shortened page has no gap');
like($page, qr/next $got[-1]$/, 'a shortened page names the next one');
my ($before, %seen) = (0);
for (1 .. 60) {
	my $p = ask("page 0 0 - - $before 100");
	$seen{$_}++ for $p =~ /(\d+):\d+:\d+ /g;
	($before) = $p =~ /next (\d+)/;
	last if !$before;
}
is(scalar(keys %seen), 240, 'shortened pages contain every row');
is((grep { $_ != 1 } values %seen), 0, 'shortened pages contain each row once');

is($probe->stop, 0, 'the probe ends with status 0');
done_testing;
