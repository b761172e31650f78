#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The patterns of presets: even patterns that are catastrophic in other matchers
# are decided in time, and a pattern that POSIX does not define is rejected with
# the right form.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/o/p.git' })->{json}{id};
my $pipeline = $api->post('/api/pipelines',
    { projectId => $project, name => 'l', steps => [ { name => 's', script => 'true' } ] });
is($pipeline->{status}, 201, 'a pipeline is created');
my @workers = sort $api->workers;

sub presets {
	my (%more) = @_;
	return { envPresets => [ { key => 'WORD', label => 'L', type => 'input', %more } ] };
}
# The status of a response and its errors with their details.
sub fault {
	my ($got) = @_;
	return join ' ', $got->{status},
	    map { "$_->{pointer}: $_->{detail}" } @{ $got->{json}{errors} || [] };
}

# --- patterns of other dialects
for my $case ([ '\d+', 'write [0-9]' ], [ '\w*', 'write [A-Za-z0-9_]' ], [ 'a\s', 'write [[:space:]]' ],
    [ '\bx\b', 'no word boundaries' ],
	[ '[\d.]+', 'write 0-9' ], [ '(?:a|b)', 'write ( for a group' ],
	[ 'a+?', 'right after a repetition' ], [ '(a)\1', 'must not contain a back reference' ]) {
	my ($pattern, $says) = @$case;
	like(fault($api->put("/api/projects/$project", presets(pattern => $pattern))),
	    qr{^422 /envPresets/0/pattern: .*\Q$says\E}, "the pattern $pattern is rejected with advice");
}

# --- patterns on which other matchers never finish
my $got;
my $long = 'a' x 65_000;
for my $pattern ('((a*)*){1,200}b', '((a*)*){1,150}b', '(((a?)*)*){1,99}b', '((a|a)*|(a|a)*)*b',
    '(a|b)*a(a|b){240}c', '(x+x+)+y|((a+)+)+b',
	'((((a{1,9}){1,9}){1,9}){1,9}){1,9}', '((a{1,255}){1,255}){1,255}') {
	$got = $api->put("/api/projects/$project", presets(pattern => $pattern, default => 'a' x 4096));
	like(fault($got), qr{^422 /envPresets/0/(?:pattern: repeats too much|default: must match)},
	    "the pattern $pattern with a default is decided");
	$got = $api->put("/api/projects/$project", presets(pattern => $pattern));
	next if $got->{status} == 422;
	is($got->{status}, 200, "the pattern $pattern is accepted without a default");
	$got = $api->post('/api/deployments', { projectId => $project, envVars => { WORD => $long } });
	like(fault($got), qr{^422 /envVars/WORD: must match the pattern},
	    "a long value for the pattern $pattern is rejected");
}
is_deeply([ sort $api->workers ], \@workers, 'no worker died');

# --- many values, each of which is decided in time
my @keys = map { "WORD$_" } 1 .. 7;
$got = $api->put("/api/projects/$project", { envPresets => [ map { { key => $_, label => 'L', type => 'input',
	pattern => '(a|b)*a(a|b){240}c' } } @keys ] });
is($got->{status}, 200, 'seven presets have a costly pattern');
# processor time, because others may use the machine
my $used = cpu_time($api->workers);
$got = $api->post('/api/deployments', { projectId => $project, envVars => { map { $_ => $long } @keys } });
cmp_ok(cpu_time($api->workers) - $used, '<', 1.5, 'seven long values do not take seven times as long');
is($got->{status}, 422, 'long values for a costly pattern are rejected');
like(fault($got), qr{/envVars/WORD1: must match the pattern}, 'the first one is decided');
like(fault($got), qr{/envVars/WORD7: takes too long to match the pattern.*: shorten the value},
    'the last one takes too long, and the error gives advice');

# --- an import has many parts, each with values of its own
$used = cpu_time($api->workers);
$got = $api->post('/api/projects/import', { document => { name => 'many', projectDir => 'many',
	repository => 'https://git.example.org/o/many.git',
	envPresets => [ map { { key => $_, label => 'L', type => 'input',
		pattern => '(a|b)*a(a|b){240}c?' } } @keys[0 .. 1] ],
	pipelines => [ { name => 'l', steps => [ { name => 's', script => 'true' } ] } ],
	schedules => [ map { { name => "s$_", pipeline => 'l', cron => '@daily',
		envVars => { map { $_ => 'a' x 16_000 } @keys[0 .. 1] } } } 1 .. 40 ] } });
is($got->{status}, 422, 'an import with long values in many schedules is rejected') or diag($got->{body});
like(fault($got), qr{/schedules/\d+: cannot be checked: .* take too long}, 'the error says why');
cmp_ok(cpu_time($api->workers) - $used, '<', 5, 'its parts share the time for patterns');

# --- after a deadlock, a transaction is repeated, but the work has one budget
$api->put("/api/projects/$project", { envPresets => [ { key => 'WORD', label => 'L', type => 'input',
	pattern => '(a|b)*a(a|b){240}c?' } ] });
my %costly = (projectId => $project, envVars => { WORD => 'a' x 45_000 });
is($api->post('/api/deployments', \%costly)->{status}, 201, 'a costly value is accepted');
$db->sql('CREATE TRIGGER deadlocks BEFORE INSERT ON deployment FOR EACH ROW BEGIN'
    . ' SET @tries = COALESCE(@tries, 0) + 1; IF @tries < 5 THEN'
    . " SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'; END IF; END");
$used = cpu_time($api->workers);
$got = $api->post('/api/deployments', \%costly);
is($got->{status}, 422, 'not again and again');
like(fault($got), qr{/envVars/WORD: takes too long to match}, 'the error says why');
cmp_ok(cpu_time($api->workers) - $used, '<', 1, 'it took no more than the budget');
$got = $api->post('/api/deployments', { projectId => $project, envVars => { WORD => 'a' x 300 } });
is($got->{status}, 201, 'a value that is cheap to match is accepted after deadlocks') or diag($got->{body});
$db->sql('DROP TRIGGER deadlocks');

# --- a retry checks the values again
my @many = map { "WORD$_" } 1 .. 30;
$api->put("/api/projects/$project", { envPresets => [ map { { key => $_, label => 'L', type => 'input' } }
    @many ] });
$got = $api->as('deployer')->post('/api/deployments', { projectId => $project,
    envVars => { map { $_ => 'a' x 16_000 } @many } });
is($got->{status}, 201, 'long values are accepted without patterns') or diag($got->{body});
$api->put("/api/projects/$project", { envPresets => [ map { { key => $_, label => 'L', type => 'input',
	pattern => '(a|b)*a(a|b){240}c?' } } @many ] });
$api->post("/api/deployments/$got->{json}{id}/cancel");
$used = cpu_time($api->workers);
$got = $api->as('deployer')->post("/api/deployments/$got->{json}{id}/retry");
is($got->{status}, 403, 'a deployer does not repeat values that the patterns do not decide');
cmp_ok(cpu_time($api->workers) - $used, '<', 1.5, 'its values share the time for patterns');

# --- characters, not bytes
$api->put("/api/projects/$project", presets(pattern => "[[:upper:]]?[a-z\x{e4}\x{f6}\x{fc}]{1,4}"));
for my $case ([ 201, "\x{fc}ber" ], [ 201, "\x{e4}\x{f6}\x{fc}\x{fc}" ],
    [ 422, "\x{e4}\x{f6}\x{fc}\x{fc}\x{e4}" ], [ 422, "\x{e9}" ]) {
	my ($want, $value) = @$case;
	is($api->post('/api/deployments', { projectId => $project, envVars => { WORD => $value } })->{status},
	    $want,
	    sprintf('%d characters beyond ASCII return %d', length $value, $want));
}

# --- a stored pattern that is no longer accepted
$db->sql('UPDATE project SET env_presets'
    . " = JSON_REPLACE(env_presets, '\$[0].pattern', CONCAT(CHAR(92), 'w+')) WHERE id = $project");
is($api->get("/api/projects/$project")->{json}{envPresets}[0]{pattern}, '\w+',
    'a project shows a pattern that an earlier version accepted');
like(fault($api->post('/api/deployments', { projectId => $project, envVars => { WORD => 'a' } })),
    qr{^422 /envVars/WORD: cannot be validated: the preset's pattern has \\w, .*write \[A-Za-z0-9_\]},
    'a deployment with an old pattern is rejected with advice');
is($api->put("/api/projects/$project", presets(pattern => '[A-Za-z0-9_]+'))->{status}, 200,
    'an old pattern can be corrected');
is($api->post('/api/deployments', { projectId => $project, envVars => { WORD => 'a' } })->{status}, 201,
    'a deployment succeeds once the pattern is corrected');

done_testing;
