#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The health of the service says whether the database accepts writes, and writes
# little itself: a read-only server, and a healthy one that is asked often.

use strict;
use warnings;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start;
my ($api, $db) = ($all->api, $all->db);
my $none = $api->as('none');
sub health { return $none->get('/health') }
sub status { return health()->{status} }
sub metric {
	return ($none->get('/api/metrics')->{body} =~ /^slipway_database_writable (\d)$/m)[0];
}
ok(poll(30, sub { status() == 200 }), 'the service is healthy');
is(metric(), 1, 'a metric says that the database accepts writes');

# --- asked often
$all->runner->stop;
my $before = $db->sql('SELECT COUNT(*) FROM commit_token');
is(scalar(grep { status() != 200 } 1 .. 60), 0, 'the health is asked 60 times');
cmp_ok($db->sql('SELECT COUNT(*) FROM commit_token') - $before, '<=', 2, 'that causes two writes at most');

# --- read-only
$db->sql('SET GLOBAL read_only = 1', 'mysql');
my $got = health();
is($got->{status}, 503, 'with a read-only database the service is not healthy');
like($got->{body}, qr/accepts no writes\. Check whether it is read-only or its disk is full/, 'it says why');
is(metric(), 0, 'the metric says so');
$db->sql('SET GLOBAL read_only = 0', 'mysql');
is(status(), 200, 'the service is healthy at once when the database accepts writes again');

done_testing;
