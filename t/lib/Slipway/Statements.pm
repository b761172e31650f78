# SPDX-License-Identifier: ISC
package Slipway::Statements;

# Every statement of the stores, to be explained and run by a test.
#
#   my ($error, @statements) = Slipway::Statements->read($db);    [name, arguments, SQL]
#   my $sql = Slipway::Statements->filled($statement);    with a literal for each `?`
#   local $Slipway::Statements::value{branch} = "'main'";

use strict;
use warnings;
use Slipway::Test;

# A value for each argument, by its name.
our %value = (status => "'pending'", username => "'user7'", name => "'project7'", like => "'%a%'",
	hash => "SHA2(7, 256)", user_code => "LPAD(7, 8, '0')", address => "'192.0.2.7'",
	commit_hash => 'SHA1(7)',
	state_hash => "SHA2(7, 256)", browser_hash => "SHA2(7, 256)", holder => "'7'", again => "'7'",
	forge => "'7'", forge_id => "'7'", login => "'user7'",
	seconds => 600, idle => 600,
	owner => "LPAD(1, 32, '0')", runner => "'runner'", project_dir => "'dir7'", branch => "'branch7'",
	created_at => 'NOW(3)', finished_at => 'NOW(3)', started_at => 'NOW(3)', before => 20000, limit => 20,
	offset => 40, role => "'viewer'", key => "'7'", idempotency_key => "'7'",
	request_hash => "SHA2(7, 256)", delivery_hash => "SHA2(7, 256)",
	ids => "'[1,2,3]'", events => "'[\"failed\"]'", trigger => "'retry'", days => 90, start => 100,
	position => 1, tag => "'v7'", repository => "'https://example.org/a/b'",
	server => "'https://git.example.org'", repo_id => "'7'");
my %user_status = map { $_ => "'active'" } qw(status status[0] status[1]);
sub _literal {
	my ($statement, $arg) = @_;
	return $user_status{$arg} if $statement =~ /^user_/ && $user_status{$arg};
	$arg =~ s/\[\d+\]$//;
	return defined $value{$arg} ? $value{$arg} : 7;
}

# Compares them with the tables, too.
sub read {
	my ($class, $db) = @_;
	my ($status, $out, $err) = run_cmd(program('t/unit/store_check'), $db->conf_file);
	return ($status == 0 ? '' : $err || 'store_check fails',
	    map { [split /\t/, $_, 3] } split /\n/, $out);
}

sub filled {
	my ($class, $statement) = @_;
	my ($name, $args, $sql) = @$statement;
	my @arg = split / /, $args;
	return $sql =~ s/\?/_literal($name, shift @arg)/ger;
}

1;
