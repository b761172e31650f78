#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every text of t/data/json as a body, through nginx: what is JSON is judged as
# a project (422, for none of them is one), what is JSON but has a member twice
# U+0000 or too many levels is refused as that (422), what is not JSON as
# malformed (400) with the place; nothing is taken for something else, nothing dies.

use strict;
use warnings;
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my %want = (pass => [422, 'validation_failed'], fail => [400, 'bad_request'],
	unfit => [422, 'validation_failed']);

my @before = poll(10, sub { ($api->workers) == 5 }) ? $api->workers : ();
for my $kind (sort keys %want) {
	my @files = glob srcdir() . "/t/data/json/$kind/*.json";
	cmp_ok(scalar @files, '>', 10, "there are texts to $kind");
	for my $file (@files) {
		my ($name) = $file =~ m{([^/]+)\.json$};
		my $got = $api->post('/api/projects', slurp($file));
		my ($status, $code) = @{ $want{$kind} };
		my $said = $got->{json} || {};
		is("$got->{status} " . ($said->{code} || ''), "$status $code", "$kind: $name")
		    || diag(substr $got->{body}, 0, 300);
		is($got->{headers}{'content-type'}, 'application/problem+json', '  as problem details');
		if ($status == 422) {
			my @errors = @{ $said->{errors} || [] };
			ok(@errors && !grep({ !defined $_->{pointer} || $_->{pointer} !~ m{^(?:/|$)} } @errors),
			    '  and its faults are told, each with its place');
		} else {
			like($said->{detail}, qr/at byte \d+: |body is missing/, '  and the place is told');
		}
	}
}
for my $open ('[' x 100_000, '[{"":' x 50_000, '{"a":' x 100_000) {
	my $got = $api->post('/api/projects', $open);
	is("$got->{status} " . ($got->{json}{code} || ''), '422 validation_failed', 'a hundred thousand that open');
	like($got->{json}{detail}, qr/nested too deeply/, '  are too deep');
}
is_deeply([$api->workers], \@before, 'no worker died of it');
is($api->get('/api/projects')->{json}{pagination}{total}, 0, 'nothing was made');

$api->stop;
$db->stop;
done_testing();
