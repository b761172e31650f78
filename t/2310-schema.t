#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# sql/schema.sql shows the tables that the migrations make.  `make schema` writes it.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Test;

my $file = srcdir() . '/sql/schema.sql';
my @migrations = sort glob srcdir() . '/sql/[0-9]*.sql';
my $usual = 'utf8mb4_unicode_520_nopad_ci';

# What a migration says about a table that it creates: the comment right above.
my %about;
for my $text (map { slurp($_) } @migrations) {
	$about{$2} = $1 while $text =~ /((?:^--.*\n)*)^CREATE TABLE IF NOT EXISTS (\w+)/mg;
}

my $db = Slipway::DB->start;

# The definition of a table, without what all of them have.
my @others;
sub table {
	my ($name) = @_;
	my (undef, $text) = split /\t/, $db->sql("SHOW CREATE TABLE `$name`"), 2;
	chomp $text;
	$text =~ s/\\n/\n/g;
	$text =~ s/ AUTO_INCREMENT=\d+//;
	push @others, $name
	    if $text !~ s/\) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=(\w+)\z/) COLLATE $1;/;
	$text =~ s/\) COLLATE $usual;\z/);/;
	$text =~ s/ CHARACTER SET utf8mb4(?= COLLATE)//g;
	$text =~ s/ DEFAULT NULL\b//g;
	# words that MariaDB reserves keep their quotes
	$text =~ s/`((?!(?:key|trigger|until|position)`)\w+)`/$1/g;
	$text =~ s/^  (\S+ )((?:big|tiny)int)\(\d+\)/  $1\U$2/mg;
	$text =~ s/^  ((?!PRIMARY|UNIQUE|KEY|CONSTRAINT)\S+ )(\w+)/  $1\U$2/mg;
	$text =~ s/^  //mg;
	$text =~ s/^(?!CREATE|\))/\t/mg;
	$text =~ s/,(?=\S)/, /g;
	return ($about{$name} // '') . "$text\n";
}

my $text = join "\n", <<'HEAD', map { table($_) } sort split /\n/, $db->sql('SHOW TABLES');
-- The tables as the migrations make them, for readers.  `make schema` writes this file;
-- slipway-admin migrate applies sql/NNNN-what.sql.
--
-- Times are UTC.  A record that was deleted keeps its row with valid = 0; its unique name
-- is free again, because the generated columns that carry the uniqueness are then NULL.
-- All tables are InnoDB and in utf8mb4.  They compare text by utf8mb4_unicode_520_nopad_ci
-- unless the table or a column says otherwise.
HEAD
is_deeply(\@others, [], 'all tables are InnoDB and in utf8mb4');

if ($ENV{SLIPWAY_WRITE}) {
	spew($file, $text);
	note("$file is written");
}
is(slurp($file), $text, 'sql/schema.sql shows the tables of the migrations (make schema writes it)');

done_testing;
