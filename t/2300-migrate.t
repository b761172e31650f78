#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Migrations: cut anywhere and run again, and schemas that are not a program's
# own.

use strict;
use warnings;
use Test::More;
use Slipway::DB;
use Slipway::Probe;
use Slipway::Proxy;
use Slipway::Test;

my $db = Slipway::DB->start(empty => 1, args => ['--innodb-flush-log-at-trx-commit=0']);
my $proxy = Slipway::Proxy->start($db->socket);
my $conf = $db->conf_file;
my $cut_conf = $db->conf_file(socket => $proxy->socket);

sub admin {
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), @_);
	return ($status >> 8, $out . $err);
}
sub empty {
	$db->sql('DROP DATABASE slipway; CREATE DATABASE slipway CHARACTER SET utf8mb4', 'mysql');
	return;
}
# All that can be said about the tables, but for how many rows they had.
sub schema {
	my $text = $db->sql(join ';', map { "SHOW CREATE TABLE `$_`" } split /\n/, $db->sql('SHOW TABLES'));
	return $text =~ s/ AUTO_INCREMENT=\d+//gr;
}
my $probe = Slipway::Probe->start($conf);

# --- what a clean run makes
like($probe->ask('schema'), qr/^err internal 0 \| db_probe \d\S+ refuses this schema: migration 0001-schema is not applied: run slipway-admin migrate/,
    'an empty database is refused');
my ($status, $said) = admin('-c', $conf, 'migrate');
is($status, 0, 'migrated') or diag($said);
like($probe->ask('schema'), qr/^ok/, 'the schema is accepted');
my $clean = schema();
my $charsets = $db->sql(<<'SQL');
SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'slipway'
AND character_set_name IS NOT NULL AND character_set_name <> 'utf8mb4'
SQL
is($charsets, 0, 'every text is utf8mb4');
is($db->sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'slipway' AND engine <> 'InnoDB'"), 0,
    'every table is InnoDB');
is($db->sql(<<'SQL'), 0, 'every table has a primary key');
SELECT COUNT(*) FROM information_schema.tables t WHERE table_schema = 'slipway' AND NOT EXISTS (SELECT 1
FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name
AND constraint_type = 'PRIMARY KEY')
SQL

# --- run over itself, it changes nothing
$db->sql("UPDATE schema_migration SET state = 'started', finished_at = NULL");
like($probe->ask('schema'), qr/0001-schema was interrupted: run slipway-admin migrate/, 'unfinished is refused');
($status, $said) = admin('-c', $conf, 'migrate', '--status');
like($said, qr/^0001-schema unfinished$/m, 'and shown');
($status, $said) = admin('-c', $conf, 'migrate', '--dry-run');
like($said, qr/^would apply 0001-schema$/m, 'and would be applied');
($status, $said) = admin('-c', $conf, 'migrate');
is($status, 0, 'it can be run again') or diag($said);
is(schema(), $clean, 'and changes nothing');
like($probe->ask('schema'), qr/^ok/, 'accepted');

# --- cut at every packet, before and after it
my ($cut, $packet, @wrong) = (0, 0);
CUT: for my $how ('before', 'after') {
	for ($packet = 1; ; $packet++) {
		empty();
		$proxy->plan("packet $packet $how");
		($status) = admin('-c', $cut_conf, 'migrate');
		if (slurp($proxy->{plan}) ne 'pass') {
			is($status, 0, "$how: a run has " . ($packet - 1) . ' packets');
			next CUT;
		}
		$cut++;
		push @wrong, "packet $packet $how: status $status" if $status != 0 && $status != 75;
		my $answer = $probe->ask('schema');
		push @wrong, "packet $packet $how: cut, but accepted" if $status != 0 && $answer =~ /^ok/
		    && $db->sql("SELECT COALESCE(MAX(state), '') FROM schema_migration") ne 'applied';
		($status, $said) = admin('-c', $conf, 'migrate');
		push @wrong, "packet $packet $how: again: $said" if $status != 0;
		push @wrong, "packet $packet $how: another schema" if schema() ne $clean;
		push @wrong, "packet $packet $how: refused after" if $probe->ask('schema') !~ /^ok/;
	}
}
is_deeply(\@wrong, [], "cut at $cut places, run again, the same");
cmp_ok($cut, '>', 30, 'at every packet');

# --- not this program's
$db->sql("INSERT INTO schema_migration (name, checksum, state) VALUES ('0099-future', REPEAT('0', 64), 'applied')");
like($probe->ask('schema'), qr/^err internal 0 \| db_probe \d\S+ refuses this schema: migration 0099-future is newer than this program/,
    'a newer schema is refused by name');
for my $command (['migrate'], ['user', 'list']) {
	($status, $said) = admin('-c', $conf, @$command);
	is($status, 78, "@$command refuses it too");
	like($said, qr/slipway-admin \d\S+ refuses this schema: migration 0099-future is newer/, 'and says so');
}
($status, $said) = admin('-c', $conf, 'migrate', '--status');
like($said, qr/^0099-future unknown$/m, 'it is shown');
$db->sql("DELETE FROM schema_migration WHERE name = '0099-future'");
like($probe->ask('schema'), qr/^ok/, 'without it all is well');
my $sum = $db->sql('SELECT checksum FROM schema_migration WHERE name = \'0001-schema\'');
$db->sql("UPDATE schema_migration SET checksum = REVERSE(checksum) WHERE name = '0001-schema'");
like($probe->ask('schema'), qr/migration 0001-schema was applied with another text/, 'a changed migration is refused');
($status, $said) = admin('-c', $conf, 'migrate');
is($status, 78, 'and not applied over it');
like($said, qr/0001-schema was applied with another text/, 'and says so');
$db->sql("UPDATE schema_migration SET checksum = '$sum' WHERE name = '0001-schema'");
like($probe->ask('schema'), qr/^ok/, 'its own is accepted');

# --- the text that is recorded is the one that is shipped
require Digest::SHA;
is($sum, Digest::SHA->new(256)->addfile(srcdir() . '/sql/0001-schema.sql')->hexdigest, 'the checksum is that of the file');

# --- the account of the service cannot migrate
empty();
my $poor = $db->conf =~ s/^migrate_\w+ = .*\n//mgr;
($status, $said) = admin('-c', spew(tempdir() . '/poor.conf', $poor, 0600), 'migrate');
isnt($status, 0, 'without its account nothing is migrated');
like($said, qr/1142/, 'for want of rights');
is($db->sql('SHOW TABLES'), '', 'and nothing is made');
$proxy->stop;
$probe->stop;
done_testing();
