#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Metrics and badges: what is counted, that totals stay when rows are deleted, and that promtool
# accepts them, the alert rules and the queries of the dashboard.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use JSON::PP ();
use Slipway::API;
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $true = JSON::PP::true;
my $dir = tempdir();
my $name = 'runner "one" \\';
my $all = Slipway::Whole->start(runner => "[runner]\nname = $name\nslots = 3\n");
my ($api, $db) = ($all->api, $all->db);
my $project = $all->project($all->runner->repo);
my $pipeline = $all->pipeline($project, 'echo 0123456789; test "$RESULT" = good');

my $text;
sub scrape { return $text = $api->as('none')->get('/api/metrics')->{body} }
# The value of a metric with labels as in the text.
sub value { return scrape() =~ /^\Q$_[0]\E (\S+)$/m ? $1 : undef }
sub finished { return value(qq(slipway_deployments_finished_total{status="$_[0]",reason="$_[1]"})) }
sub run {
	my ($result) = @_;
	return $all->wait($all->post(projectId => $project, envVars => { RESULT => $result }));
}
sub check_metrics { my ($with) = @_; return [ run_cmd({ stdin => $with }, qw(promtool check metrics)) ] }
sub check_rules { my ($file) = @_; return (run_cmd(qw(promtool check rules), $file))[1] }

# --- deployments
is(finished('success', ''), 0, 'a result is counted from 0');
run('good');
run('good');
run('bad');
is(finished('success', ''), 2, 'deployments that succeed are counted');
is(finished('failed', 'step_failed'), 1, 'deployments that fail are counted by their reason');
for my $metric (qw(slipway_deployment_duration_seconds slipway_queue_wait_seconds)) {
	is(value("${metric}_count"), 3, "$metric counts what has run");
	is(value("${metric}_bucket{le=\"+Inf\"}"), 3, "the last bucket of $metric contains all");
	cmp_ok(value("${metric}_sum"), '>', 0, "$metric has a sum");
	my @buckets = $text =~ /^\Q$metric\E_bucket\{le="[^"]+"\} (\d+)$/mg;
	is_deeply(\@buckets, [ sort { $a <=> $b } @buckets ], "the buckets of $metric grow");
}
my $logs = $db->sql('SELECT SUM(log_size) FROM deployment');
is(value('slipway_log_bytes_total'), $logs, 'bytes of logs are counted');

$db->sql("INSERT INTO deployment_total VALUES ('success', '', 2147483647, 5000, 99, 4, 8000000, 12000, 5)");
is(value('slipway_deployment_duration_seconds_bucket{le="3600"}'), 3,
    'a deployment that takes longer is not in the last range');
is(value('slipway_deployment_duration_seconds_count'), 7, 'a deployment that takes longer is counted');
is(value('slipway_queue_wait_seconds_bucket{le="5"}') - value('slipway_queue_wait_seconds_bucket{le="1"}'), 4,
    'waiting times are in their own range');

# --- badges
my $none = $api->as('none');
my $path = "/api/projects/$project/badge.svg";
sub badge { my ($query, $headers) = @_; return $none->get("$path$query", $headers) }
is(badge('')->{status}, 404, 'a project has no badge by default');
is($api->put("/api/projects/$project", { badge => $true })->{json}{badge}, $true, 'a badge is switched on');
my $got = badge('');
is_deeply([ $got->{status}, @{ $got->{headers} }{qw(content-type cache-control)} ],
    [ 200, 'image/svg+xml', 'public, max-age=60' ], 'anyone can read a badge and cache it for a minute');
like($got->{body}, qr/aria-label="deployment: failed"/, 'a badge shows the last result');
is(badge('', { 'If-None-Match' => $got->{headers}{etag} })->{status}, 304, 'a badge has an ETag');
is((run_cmd({ stdin => $got->{body} }, 'python3', '-c', 'import sys, xml.dom.minidom as m;'
	. ' print(m.parse(sys.stdin).documentElement.namespaceURI)'))[1], "http://www.w3.org/2000/svg\n",
    'the image is SVG');
my $live = $all->make('/api/environments', { projectId => $project, name => 'live' })->{id};
like(badge('?environment=live')->{body}, qr/aria-label="live: none"/, 'an environment has a badge');
run('good');
like(badge('?environment=LIVE')->{body}, qr/aria-label="live: success"/, 'which shows its own result');
is(badge('?environment=dead')->{status}, 404, 'an unknown environment has none');
is(badge("?environment=")->{status}, 200, 'an empty name is none');
is(badge("?environment=" . 'x' x 51)->{status}, 400, 'a name that is too long is rejected');
is($api->delete("/api/environments/$live")->{status}, 204, 'the environment is deleted');
is(badge('?environment=live')->{status}, 404, 'a deleted environment has no badge');
is($api->put("/api/projects/$project", { badge => undef })->{status}, 422, 'null is not a value of badge');
like($none->get("/api/projects/$project")->{headers}{'cache-control'}, qr/^no-store$/,
    'other responses are not cached');

# --- totals outlive their rows
$all->runner->stop;
my $ran = value('slipway_deployment_duration_seconds_count');
my @waiting = map { $all->post(projectId => $project) } 1 .. 3;
is(value('slipway_deployments{status="pending"}'), 3, 'pending deployments are counted');
is($api->post("/api/deployments/$waiting[0]/cancel")->{status}, 200, 'a pending deployment is canceled');
is(finished('canceled', 'canceled_by_user'), 1, 'a canceled deployment is counted');
is(value('slipway_deployment_duration_seconds_count'), $ran,
    'the duration of a deployment that never ran is not counted');
is($api->delete("/api/projects/$project")->{status}, 204, 'the project is deleted');
is(badge('')->{status}, 404, 'a deleted project has no badge');
is(finished('canceled', 'project_deleted'), 2, 'each deployment that ends with its project is counted');
$db->sql('DELETE FROM log_chunk; DELETE FROM deployment_step; DELETE FROM deployment');
is(finished('canceled', 'project_deleted'), 2, 'totals stay when deployments are deleted');

# --- the age of the queue
my $other = $all->project($all->runner->repo);
$all->pipeline($other, 'true');
my $asked = $all->post(projectId => $other);
$db->sql("UPDATE deployment SET created_at = NOW(3) - INTERVAL 1 HOUR, turn = 2 WHERE id = $asked");
is(value('slipway_queue_oldest_seconds'), 0, 'a deployment that waits for approval does not age the queue');
$db->sql("UPDATE deployment SET turn = 1 WHERE id = $asked");
cmp_ok(value('slipway_queue_oldest_seconds'), '>=', 3600, 'any other pending deployment does');

# --- hooks
my $secret = $api->put("/api/projects/$other/hook-secret", {})->{json}{secret};
sub hooks { return value(qq(slipway_hook_deliveries_total{result="$_[0]"})) }
sub push_with {
	my ($signed_with) = @_;
	my ($headers, $body) = push_event('gitea', $signed_with, event => 'issues');
	return $api->as('none')->post("/api/hooks/$other", $body, $headers)->{status};
}
is(push_with($secret), 204, 'an event that is no push');
is(hooks('ignored'), 1, 'an event that is no push is counted as ignored');
is(push_with('wrong'), 401, 'an event with a wrong signature');
is_deeply([ hooks('rejected'), hooks('accepted') ], [ 1, 0 ],
    'an event with a wrong signature is counted as rejected');

# --- runners and notifiers
my $label = $name =~ s/(["\\])/\\$1/gr;
$db->sql('UPDATE runner SET stopped = 0, seen_at = NOW(3)');
is(value(qq(slipway_runner_slots{runner="$label",state="free"})), 3, 'a name with quotes is escaped');
is(value(qq(slipway_runner_slots{runner="$label",state="busy"})), 0, 'busy slots are counted');
cmp_ok(abs(value(qq(slipway_runner_last_seen_timestamp_seconds{runner="$label"})) - time), '<', 3600,
    'the last report of a runner is a Unix time');
$db->sql('UPDATE runner SET stopped = 1');
is(value(qq(slipway_runner_slots{runner="$label",state="free"})), undef, 'an offline runner has no slots');
is(value('slipway_notifications_total{kind="mail",result="dropped"}'), 0, 'messages are counted from 0');

# --- requests
my $seen = value('slipway_request_duration_seconds_count');
is(value('slipway_request_duration_seconds_count'), $seen + 1, 'each request is in the histogram');
like($text, qr/^slipway_build_info\{version="\d[\d.]*"\} 1$/m, 'the version is a label');

# --- promtool
is_deeply(check_metrics(scrape()), [ 0, '', '' ], 'promtool accepts the metrics');
isnt(check_metrics("a_total 1\n")->[0], 0, 'promtool rejects metrics without help');
my $alerts = srcdir() . '/src/web/slipway-alerts.yml';
like(check_rules($alerts), qr/SUCCESS: 8 rules found/, 'promtool accepts the alert rules');
my $dashboard = decode_json(slurp(srcdir() . '/src/web/slipway-dashboard.json'));
my @queries = map { $_->{expr} } map { @{ $_->{targets} } } @{ $dashboard->{panels} };
spew("$dir/rules.yml", "groups:\n- name: dashboard\n  rules:\n"
    . join '', map { "  - record: query$_\n    expr: |\n      $queries[$_]\n" } 0 .. $#queries);
like(check_rules("$dir/rules.yml"), qr/SUCCESS: @{[ scalar @queries ]} rules found/,
    'promtool accepts the queries of the dashboard');
my %known = map { $_ => 1 } $text =~ /^# TYPE (\w+)/mg;
my @used = join("\n", slurp($alerts), @queries) =~ /\b(slipway_\w+?)(?:_bucket)?\b/g;
is_deeply([ grep { !$known{$_} } @used ], [], 'every metric that rules and dashboard use exists');

# --- without the database
$db->stop;
is(value('slipway_database_up'), 0, 'without its database the service returns metrics that say so');
is_deeply(check_metrics($text), [ 0, '', '' ], 'promtool accepts them, too');

done_testing;
