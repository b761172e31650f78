#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Migrations that are interrupted anywhere can be run again, and programs reject
# a schema that is not their own.

use strict;
use warnings;
use File::Basename qw(basename);
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my $db = Slipway::DB->start(empty => 1, args => ['--innodb-flush-log-at-trx-commit=0']);
my $proxy = Slipway::Proxy->start($db->socket);
my $conf = $db->conf_file;
my $cut_conf = $db->conf_file(socket => $proxy->socket);

# Exit status and output of slipway-admin.
sub admin {
	my ($exit, $out, $err) = slipway_admin(@_);
	return ($exit, $out . $err);
}
sub empty {
	$db->sql('DROP DATABASE slipway; CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
	return;
}
# The definitions of all tables, whatever rows they had.
sub schema {
	my $text = $db->sql(join ';', map { "SHOW CREATE TABLE `$_`" } split /\n/, $db->sql('SHOW TABLES'));
	return $text =~ s/ AUTO_INCREMENT=\d+//gr;
}
my $probe = Slipway::Probe->start($conf);

# --- an uninterrupted run
my $refused = qr/^err config 0 \| db_probe \d\S+ does not fit the schema/;
like($probe->ask('schema'),
    qr/$refused: migration 0001-schema has not been applied: run slipway-admin migrate/,
    'an empty database is rejected');
my ($status, $said) = admin($conf, 'migrate');
is($status, 0, 'slipway-admin migrate succeeds on an empty database') or diag($said);
like($probe->ask('schema'), qr/^ok/, 'the migrated schema is accepted');
my $clean = schema();
my $migrations = $db->sql('SELECT COUNT(*) FROM schema_migration');
my $charsets = $db->sql(<<'SQL');
SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'slipway'
AND character_set_name IS NOT NULL AND character_set_name <> 'utf8mb4'
SQL
is($charsets, 0, 'every text column is utf8mb4');
is($db->sql('SELECT COUNT(*) FROM information_schema.tables'
    . " WHERE table_schema = 'slipway' AND engine <> 'InnoDB'"), 0, 'every table is InnoDB');
is($db->sql(<<'SQL'), 0, 'every table has a primary key');
SELECT COUNT(*) FROM information_schema.tables t WHERE table_schema = 'slipway' AND NOT EXISTS (SELECT 1
FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema
AND c.table_name = t.table_name AND constraint_type = 'PRIMARY KEY')
SQL

# --- a second run
$db->sql("UPDATE schema_migration SET state = 'started', finished_at = NULL");
like($probe->ask('schema'), qr/0001-schema was interrupted: run slipway-admin migrate/,
    'an unfinished migration is rejected');
($status, $said) = admin($conf, 'migrate', '--status');
like($said, qr/^0001-schema unfinished$/m, 'migrate --status shows an unfinished migration');
($status, $said) = admin($conf, 'migrate', '--dry-run');
like($said, qr/^would apply 0001-schema$/m, 'migrate --dry-run would apply an unfinished migration');
($status, $said) = admin($conf, 'migrate');
is($status, 0, 'an unfinished migration can be run again') or diag($said);
is(schema(), $clean, 'running a migration again changes nothing');
like($probe->ask('schema'), qr/^ok/, 'the schema of a repeated migration is accepted');

# --- the connection is lost at a packet, before and after it
for my $how ('before', 'after') {
	my @wrong;
	for my $packet (1 .. 8) {
		empty();
		$proxy->plan("packet $packet $how");
		my ($exit) = admin($cut_conf, 'migrate');
		push @wrong, "packet $packet: status $exit" if $exit != 0 && $exit != 75;
		($exit, my $text) = admin($conf, 'migrate');
		push @wrong, "packet $packet: again: $text" if $exit != 0;
		push @wrong, "packet $packet: another schema" if schema() ne $clean;
	}
	is_deeply(\@wrong, [], "a lost connection leaves a schema that migrate completes ($how)");
}

# --- slipway-admin is killed at every packet, before and after it
# Each run resumes what the one before left behind, and dies one packet later until
# a migration is complete.  Then the next one is interrupted, from the packet at which
# the one before had begun: each begins later than the one before.
sub count {
	my ($state) = @_;
	return 0 if $db->sql("SHOW TABLES LIKE 'schema_migration'") eq '';
	return $db->sql("SELECT COUNT(*) FROM schema_migration WHERE state = '$state'");
}
for my $how ('before', 'after') {
	my ($killed, $packet, $first, $done, @wrong) = (0, 0, 0, 0);
	empty();
	while (++$packet) {
		$proxy->plan("packet $packet $how kill");
		my ($wait, $out, $err) = run_cmd(program('slipway-admin'), '-c', $cut_conf, 'migrate');
		last if $wait == 0;
		$killed++;
		push @wrong, "packet $packet: wait status $wait: $out$err" if $wait != 9;
		$first ||= $packet if count('started');
		my $now = count('applied');
		push @wrong, "packet $packet: accepted after $now migrations"
		    if $now < $migrations && $probe->ask('schema') =~ /^ok/;
		($done, $packet, $first) = ($now, ($first || $packet) - 1, 0) if $now > $done;
	}
	is_deeply(\@wrong, [], "an interrupted migration is rejected and can be run again ($how)");
	cmp_ok($killed, '>=', 3 * $migrations, "every migration was interrupted ($how)");
	is(schema(), $clean, "interrupted migrations yield the same schema in the end ($how)");
	like($probe->ask('schema'), qr/^ok/, "the schema of interrupted migrations is accepted ($how)");
}

# --- the schema of another version
$db->sql('INSERT INTO schema_migration (name, checksum, state)'
    . " VALUES ('0099-future', REPEAT('0', 64), 'applied')");
like($probe->ask('schema'), qr/$refused: migration 0099-future is newer than this program/,
    'a newer schema is rejected by name');
for my $command (['migrate'], ['user', 'list']) {
	($status, $said) = admin($conf, @$command);
	is($status, 78, "slipway-admin @$command exits with EX_CONFIG on a newer schema");
	like($said, qr/slipway-admin \d\S+ does not fit the schema: migration 0099-future is newer/,
	    "slipway-admin @$command names the newer migration");
}
($status, $said) = admin($conf, 'migrate', '--status');
like($said, qr/^0099-future unknown$/m, 'migrate --status shows an unknown migration');
$db->sql("DELETE FROM schema_migration WHERE name = '0099-future'");
like($probe->ask('schema'), qr/^ok/, 'the schema without the unknown migration is accepted');
my $sums = $db->sql('SELECT name, checksum FROM schema_migration ORDER BY name');
my ($sum) = $sums =~ /^0001-schema\t(.*)/m;
$db->sql("UPDATE schema_migration SET checksum = REVERSE(checksum) WHERE name = '0001-schema'");
like($probe->ask('schema'), qr/migration 0001-schema was applied with a text that differs/,
    'a migration with another checksum is rejected');
($status, $said) = admin($conf, 'migrate');
is($status, 78, 'slipway-admin migrate exits with EX_CONFIG on a migration with another checksum');
like($said, qr/0001-schema was applied with a text that differs/,
    'slipway-admin migrate names the migration with another checksum');
$db->sql("UPDATE schema_migration SET checksum = '$sum' WHERE name = '0001-schema'");
like($probe->ask('schema'), qr/^ok/, 'the schema with the right checksum is accepted');

# --- checksums
require Digest::SHA;
is($sums, join("\n", map { basename($_, '.sql') . "\t" . Digest::SHA->new(256)->addfile($_)->hexdigest }
    sort glob srcdir() . '/sql/[0-9]*.sql'), 'the recorded checksums are those of the shipped files');

# --- the account of the service cannot migrate
empty();
my $poor = $db->conf =~ s/^migrate_\w+ = .*\n//mgr;
($status, $said) = admin(spew(tempdir() . '/poor.conf', $poor, 0600), 'migrate');
isnt($status, 0, 'slipway-admin migrate fails without the account for migrations');
like($said, qr/1142/, 'the database denies migrations to the account of the service');
is($db->sql('SHOW TABLES'), '', 'a denied migration creates no table');
$proxy->stop;
$probe->stop;
done_testing();
