#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deployments of the largest size and beyond: each gets a response in time, no
# worker dies, none takes more than 16 MB of memory.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
make_keys($api->conf_file, $api->dir . '/secret.key');
ok($api->reload, 'a reload reads the new keys');
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git', envPresets => [
	{ key => 'WORD', label => 'L', type => 'input', pattern => '([a-z]|[a-m]+|x*)*' },
	{ key => 'KEY', label => 'L', type => 'input', secret => JSON::PP::true } ] })->{json}{id};
my $made = $api->post('/api/pipelines', { projectId => $project, name => 'l',
	steps => [ map { { name => "s$_", script => '#' x 4000 } } 1 .. 20 ] });
is($made->{status}, 201, 'a pipeline of 80 kB is created') or diag($made->{body});
my @workers = sort $api->workers;

my %body = (
	'variables of half a mebibyte' => [ 201, { map { ("A$_" => 'x' x 65_000) } 1 .. 8 } ],
	'a thousand variables' => [ 201, { map { ("A$_" => 'x' x 500) } 1 .. 1000 } ],
	'a thousand and one variables' => [ 422, { map { ("A$_" => 'x') } 1 .. 1001 } ],
	'eighty thousand control bytes' => [ 201, { map { ("A$_" => "\x01" x 40_000) } 1 .. 4 } ],
	'a large secret' => [ 201, { KEY => "\x01" x 65_000 } ],
	'a large value for a pattern' => [ 201, { WORD => 'ab' x 32_000 } ],
	'a large value that does not match its pattern' => [ 422, { WORD => 'ab' x 32_000 . '1' } ],
	'a name of a mebibyte' => [ 422, { '~' x 1_000_000 => 'x' } ],
	'ten long names' => [ 422, { map { (chr(97 + $_) x 90_000 => 'x') } 0 .. 9 } ],
	'five hundred reserved names' => [ 422, { map { ("LD_$_" => 'x' x 500) } 1 .. 500 } ],
	'a value of a mebibyte' => [ 422, { A => 'x' x 1_000_000 } ],
);
my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $n = 0;
for my $what (sort keys %body) {
	my ($want, $vars) = @{ $body{$what} };
	my $body = $json->encode({ projectId => $project, envVars => $vars });
	my $key = 'large' . ++$n;
	my $got;
	my @all = ($db->pid, $api->workers);
	my ($at, $began) = (time, cpu_time(@all));
	$got = $api->post('/api/deployments', $body, { 'Idempotency-Key' => $key });
	my $took = cpu_time(@all) - $began;
	cmp_ok($took, '<', 2, sprintf 'a deployment with %s takes little processor time (%.2f s)', $what,
	    $took);
	cmp_ok(time - $at, '<', deadline(20), "a deployment with $what gets its response in time");
	is($got->{status}, $want, "a deployment with $what returns $want")
	    or diag(substr $got->{body}, 0, 300);
	my $again = $api->post('/api/deployments', $body, { 'Idempotency-Key' => $key });
	is($again->{status}, $want, "a repeated deployment with $what returns $want")
	    or diag(substr $again->{body}, 0, 300);
	if ($want == 201) {
		ok($again->{body} eq $got->{body},
		    "a repeated deployment with $what returns the first response");
		my $read = $api->get("/api/deployments/$got->{json}{id}")->{json};
		my %want = %$vars;
		$want{KEY} = undef if exists $want{KEY};
		is_deeply($read->{envVars}, \%want, "a deployment with $what has its variables");
		my $retried = $api->post("/api/deployments/$got->{json}{id}/retry");
		is($retried->{status}, 201, "a deployment with $what can be retried")
		    or diag("$retried->{status} $retried->{body} " . $api->log);
	}
	cmp_ok(peak_memory($api->workers), '<', 16_000, "no worker takes more than 16 MB of memory for $what")
	    if !sanitized();
}
my ($cursor, $seen) = ('', 0);
for (1 .. 50) {
	my $page = $api->get("/api/deployments?limit=100$cursor");
	is($page->{status}, 200, 'a page of large deployments returns 200') or last;
	$seen += @{ $page->{json}{data} };
	last if !defined $page->{json}{pagination}{next};
	$cursor = "&cursor=$page->{json}{pagination}{next}";
}
is($seen, $db->sql('SELECT COUNT(*) FROM deployment'), 'the pages list every deployment');
my $peak = peak_memory($api->workers);
cmp_ok($peak, '<', 16_000, "no worker takes more than 16 MB of memory ($peak kB)") if !sanitized();
is_deeply([ sort $api->workers ], \@workers, 'no worker died');
unlike($api->log, qr/arena limit/, 'no worker reached the limit of an arena');
done_testing;
