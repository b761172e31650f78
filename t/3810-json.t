#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Every text in t/data/json as a request body, through nginx.  Valid JSON returns
# 422, because none of the texts is a project; so does JSON with a duplicate
# member, U+0000 or too many levels.  Anything else returns 400 with the position.
# No text is mistaken for another, and no worker dies.

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

my @before = poll(10, sub { ($api->workers) == 3 }) ? $api->workers : ();
for my $kind (sort keys %want) {
	my @files = glob srcdir() . "/t/data/json/$kind/*.json";
	cmp_ok(scalar @files, '>', 10, "t/data/json/$kind has more than ten texts");
	for my $file (@files) {
		my ($name) = $file =~ m{([^/]+)\.json$};
		my $got = $api->post('/api/projects', slurp($file));
		my ($status, $code) = @{ $want{$kind} };
		my $said = $got->{json} || {};
		is("$got->{status} " . ($said->{code} || ''), "$status $code",
		    "$kind: $name returns $status $code")
		    || diag(substr $got->{body}, 0, 300);
		is($got->{headers}{'content-type'}, 'application/problem+json',
		    "$kind: $name returns problem details");
		if ($status == 422) {
			my @errors = @{ $said->{errors} || [] };
			ok(@errors
			    && !grep({ !defined $_->{pointer} || $_->{pointer} !~ m{^(?:/|$)} } @errors),
			    "$kind: $name returns errors with a pointer each");
		} else {
			like($said->{detail}, qr/at byte \d+: |body is missing/,
			    "$kind: $name returns the position of the error");
		}
	}
}
for my $open ('[' x 100_000, '[{"":' x 50_000, '{"a":' x 100_000) {
	my $got = $api->post('/api/projects', $open);
	is("$got->{status} " . ($got->{json}{code} || ''), '422 validation_failed',
	    '100,000 levels of nesting return 422');
	like($got->{json}{detail}, qr/nested too deeply/,
	    'the error says that the body is nested too deeply');
}
is_deeply([$api->workers], \@before, 'no worker died');
is($api->get('/api/projects')->{json}{pagination}{total}, 0, 'no project was created');

$api->stop;
$db->stop;
done_testing();
