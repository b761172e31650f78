#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The disk of the database is full: what needs room is rejected, the health of the
# service and doctor say so although small writes still succeed, and all recovers.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $dir = tempdir() . '/disk';
mkdir $dir or die "$dir: $!";
sub mount_small { return (run_cmd('mount', '-t', 'tmpfs', '-o', 'size=112m', 'none', $dir))[0] == 0 }
plan(skip_all => 'no file system can be mounted here') if !own_mounts() || !mount_small();

my $all = Slipway::Whole->start(db => Slipway::DB->start(in => $dir));
my ($api, $db) = ($all->api, $all->db);
my $none = $api->as('none');
sub health { return $none->get('/health') }
sub writable { return ($none->get('/api/metrics')->{body} =~ /^slipway_database_writable (\d)$/m)[0] }
sub doctor {
	my (undef, $out) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'doctor');
	return join "\n", grep { /^FAULT +database/ } split /\n/, $out;
}
my ($made, $repository) = (0, $all->runner->repo);
sub make_project {
	return $api->post('/api/projects', { name => 'p' . ++$made, repository => $repository });
}
ok(poll(30, sub { health()->{status} == 200 }), 'the service is healthy');
is(make_project()->{status}, 201, 'a project is created');
like(doctor(), qr/^FAULT +database.*: only \d+ MiB are free where it stores its data/,
    'doctor sees that room is scarce');

# --- full
# no long values: 10.11 can end with a signal when there is no room for them
$db->sql('CREATE TABLE filler (a VARCHAR(2000)) ENGINE = InnoDB');
my ($rc, $why) = (0);
($rc, undef, $why) = $db->client('INSERT INTO filler SELECT REPEAT("x", 2000) FROM seq_1_to_20')
    while $rc == 0;
like($why, qr/ERROR 1114/, 'the disk is full');
run_cmd('dd', 'if=/dev/zero', "of=$dir/fill", 'bs=4k');
my $got;
poll(60, sub { return ($got = make_project())->{status} != 201 });
is($got->{status}, 503, 'a project is rejected when there is no room for it') or diag($got->{body});
$got = health();
is($got->{status}, 503, 'the service is not healthy');
like($got->{body}, qr/accepts no writes\. Check whether it is read-only or its disk is full/, 'it says why');
is(writable(), 0, 'the metric says so');
is($api->get('/api/projects')->{status}, 200, 'reads work');
# the time at which a token was used needs no more room than before
$db->sql('UPDATE api_token SET last_used_at = NOW(3) - INTERVAL 1 DAY');
$api->get('/api/projects');
is($db->sql('SELECT COUNT(*) FROM api_token WHERE last_used_at > NOW(3) - INTERVAL 1 HOUR'), 1,
    'a small write succeeds');
is(health()->{status}, 503, 'that does not hide that others fail');
like(doctor(), qr/^FAULT +database.*: only 0 MiB are free where it stores its data/, 'doctor says so');

# --- recovery
unlink "$dir/fill" or die "fill: $!";
$db->sql('DROP TABLE filler');
is(make_project()->{status}, 201, 'a project is created when there is room');
ok(poll(90, sub { health()->{status} == 200 }), 'the service is healthy again');
is(writable(), 1, 'the metric says so');
my $project = $all->project($all->runner->repo);
my $id = $all->post(projectId => $project, pipelineId => $all->pipeline($project, 'true'));
is($all->wait($id)->{status}, 'success', 'a deployment succeeds');

done_testing;
END {
	if (defined $dir && -d $dir) {
		my $code = $?;
		$db->stop if $db;
		run_cmd('umount', '-l', $dir);
		$? = $code;
	}
}
