#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# While its Git server does not respond, a deployment waits on the queue: it holds no
# slot, the API names the cause, a cancel ends it at once, and it runs once when the
# server is back.  A wrong repository, branch or credential fails at once.

use strict;
use warnings;
use IO::Socket::INET;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $forge = Slipway::Forge->start(type => 'gitea');
my $api = Slipway::API->start(db => $db, conf => $forge->conf(report => 'no', allow_local => 'yes'));
$forge->user('robot', { id => 9 });
my $token = $forge->token('robot');
sub conf {
	my (%set) = @_;
	my $runner = join '', map { "$_ = $set{$_}\n" } sort keys %set;
	return $forge->conf(report => 'no', allow_local => 'yes', token => $token) . "[runner]\n$runner";
}
my $runner = Slipway::Runner->start(db => $db, conf => conf(slots => 1, git_patience => 600));
my $mark = tempdir() . '/ran';
mkdir $mark, 0777;
chmod 0777, $mark;
my $once = "echo \$SLIPWAY_DEPLOYMENT_ID >>$mark/\$SLIPWAY_DEPLOYMENT_ID; cat file";

sub repo {
	my ($path) = @_;
	my $repo = $forge->repo($path, private => 1, users => ['robot']);
	$repo->commit('main', { file => "$path\n" }, $path);
	return $repo;
}
sub waiting { my ($id) = @_; return $api->get("/api/deployments/$id")->{json} }
sub waits {
	my ($id, $detail, $name) = @_;
	my $got;
	ok(poll(20, sub {
		$got = waiting($id);
		return $got->{status} eq 'pending' && @{ $got->{waitingFor} } == 1
		    && $got->{waitingFor}[0]{reason} eq 'git_server'
		    && $got->{waitingFor}[0]{detail} =~ $detail;
	}), "$name: the deployment waits for the Git server, with the cause")
	    or diag(explain($got), tail($runner->said, 20), $runner->log($id));
	return;
}
sub runs_once {
	my ($id, $name) = @_;
	is($runner->wait($id), 'success', "$name: the deployment succeeds when the server is back")
	    or diag($runner->column($id, 'detail'), $runner->log($id));
	is(slurp("$mark/$id"), "$id\n", "$name: its step ran once");
	return;
}

my $site = repo('team/site');
my $p = $runner->project(repo => $site->clone_url);
my $local = $runner->project(repo => $runner->repo({ file => "here\n" }));
runs_once($runner->deploy($p, $once), 'no fault');

# --- faults of git's own requests, and of the API
my $git = qr{/team/site\.git};
my $any = qr{.};
my %html = (kind => 'status', status => 200, type => 'text/html', body => '<h1>Back soon</h1>');
my @faults = (
	[ 'git gets 502', $git, qr/returned error: 502/, kind => 'status', status => 502 ],
	[ 'git gets 429', $git, qr/returned error: 429/, kind => 'status', status => 429,
	    headers => { 'Retry-After' => 1 } ],
	[ 'git gets a page', $git, qr/listed no branch or tag|not valid: is this a git repo/, %html ],
	[ 'git gets a redirect', $git, qr/returned error: 302|redirect/, kind => 'status', status => 302,
	    headers => { Location => 'https://status.example.org/' } ],
	[ 'the API returns 503', $any, qr/returned 503/, kind => 'status', status => 503 ],
	[ 'the API returns a page', $any, qr/returned an HTML page/, %html ],
	[ 'the API redirects', $any, qr/redirects to another server/, kind => 'status', status => 302,
	    headers => { Location => 'https://status.example.org/' } ],
);
for (@faults) {
	my ($name, $path, $cause, %fault) = @$_;
	$forge->fault($path, %fault);
	my $id = $runner->deploy($p, $once);
	waits($id, $cause, $name);
	is($runner->wait($runner->deploy($local, $once)), 'success',
	    "$name: the only slot is free for another project") if $name =~ /50/;
	is(slurp("$mark/$id"), undef, "$name: no step has run");
	$forge->clear_faults;
	$db->sql("UPDATE deployment SET not_before = NOW(3) WHERE id = $id AND status = 'pending'");
	runs_once($id, $name);
	my $log = $runner->log($id);
	unlike($log, qr/\0/, "$name: the log has no hole");
	like($log, qr/waiting for the Git server: .*^==> at commit/ms,
	    "$name: the log has all tries") if $path eq $git;
	like($api->get("/api/deployments/$id/log")->{body}, qr/\Q$log\E/,
	    "$name: the API has the same log");
}

# --- a database that lost what the first try wrote
for my $what ('connections end', 'the runner starts again') {
	$forge->fault($git, kind => 'status', status => 502);
	my $gate = "$mark/gate-" . ($what =~ tr/ /-/r);
	my $id = $runner->deploy($p, "while ! [ -e $gate ]; do sleep 0.05; done; $once");
	waits($id, qr/502/, $what);
	my $size = $runner->column($id, 'log_size') || $db->sql("SELECT MAX(start + length) FROM log_chunk"
	    . " WHERE deployment_id = $id");
	$forge->clear_faults;
	$db->sql("UPDATE deployment SET not_before = NOW(3) WHERE id = $id AND status = 'pending'");
	ok(poll(60, sub { $runner->log($id) =~ /^==> at commit/m }), "$what: the second try runs")
	    or diag($runner->log($id));
	$db->sql(join ';', "DELETE FROM log_chunk WHERE deployment_id = $id AND start < $size",
	    $what =~ /connections/ ? map { "KILL $_" } split /\n/, $db->sql('SELECT id'
		. " FROM information_schema.processlist WHERE user = 'slipway'") : ());
	$runner->restart if $what =~ /starts/;
	spew($gate, '');
	runs_once($id, $what);
	my $body = $api->get("/api/deployments/$id/log")->{body};
	unlike($body, qr/\0/, "$what: the log has no zero bytes");
	like($body, qr/^==> $size bytes of the log are missing.*^==> at commit/ms,
	    "$what: the log says what is lost") or diag($body);
	is($runner->column($id, 'detail'), "$size bytes of the log are missing.",
	    "$what: the result says it");
}

# --- Retry-After
$forge->fault($any, kind => 'status', status => 429, headers => { 'Retry-After' => 30 });
my $limited = $runner->deploy($p, $once);
waits($limited, qr/tried again in (?:29|30) s: .*rate limit .*429/, 'a rate limit');
cmp_ok(scalar $forge->requests(qr{/repositories/}), '>', 0, 'the API was asked');
$forge->forget_requests;

# --- a cancel, and a rollback that goes first
is($api->post("/api/deployments/$limited/cancel", {})->{status}, 200, 'it can be canceled while it waits')
    or diag(explain(waiting($limited)));
is($runner->wait($limited), 'canceled', 'a deployment that waits is canceled at once');
is(scalar $forge->requests, 0, 'until Retry-After is over nothing is sent');
$forge->clear_faults;

# --- what is wrong fails at once
my $none = $runner->project(repo => $forge->url . '/team/none.git');
is($runner->wait($runner->deploy($none, $once)), 'failed', 'an unknown repository fails');
my $branch = $runner->deploy($p, $once);
is($runner->wait($branch), 'success', 'a branch that exists is deployed');
$db->sql('INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`) '
    . "SELECT project_id, pipeline_id, 'gone', 'manual' FROM deployment WHERE id = $branch");
my $gone = $db->sql('SELECT MAX(id) FROM deployment');
$runner->ring;
is($runner->wait($gone), 'failed', 'an unknown branch fails');
like($runner->column($gone, 'detail'), qr/couldn't find remote ref/, 'an unknown branch is named');

# --- the time is limited, and a runner that starts anew goes on with it
$runner->write_conf(conf(slots => 1, git_patience => 4));
$runner->restart;
$forge->fault($git, kind => 'status', status => 503);
my $last = $runner->deploy($p, $once, { script => "echo cleanup >>$mark/cleanup", when => 'always' });
waits($last, qr/error: 503/, 'a limited time');
$runner->restart;
is($runner->wait($last), 'failed', 'when the time is over, the deployment fails');
like($runner->column($last, 'detail'), qr/returned error: 503/, 'its detail is the cause');
is($runner->column($last, 'reason'), 'checkout_failed', 'its reason is checkout_failed');
is(slurp("$mark/cleanup"), "cleanup\n", 'its cleanup runs once, after the last try');
$forge->clear_faults;

# --- the time counts from the first failure, also if another runner claims it much later
$runner->write_conf(conf(slots => 2, git_patience => 600));
$runner->restart;
$forge->fault($git, kind => 'status', status => 503);
my $late = $runner->deploy($p, $once);
waits($late, qr/error: 503/, 'a queue that is long');
$runner->stop;
$db->sql('UPDATE deployment SET git_since = git_since - INTERVAL 30 MINUTE,'
    . " not_before = NOW(3) - INTERVAL 20 MINUTE WHERE id = $late");
my $other = Slipway::Runner->start(db => $db, conf => conf(slots => 1, git_patience => 600));
is($other->wait($late), 'failed', 'the next try is the last one')
    or diag(explain(waiting($late)));
like($other->column($late, 'detail'), qr/returned error: 503/, 'its detail is the cause');
$other->stop;
$forge->clear_faults;
$runner->resume;

# --- a server that refuses connections, over ssh and https
for my $url ('https://localhost:1/team/site.git', 'ssh://git@localhost:1/team/site.git') {
	my $id = $runner->deploy($runner->project(repo => $url), $once);
	waits($id, qr/refused|connect to/, $url);
	$api->post("/api/deployments/$id/cancel", {});
	is($runner->wait($id), 'canceled', "$url: a cancel ends it");
	like($api->get("/api/deployments/$id/log")->{body}, qr/waiting for the Git server/,
	    "$url: the log of a canceled deployment is still there");
}
is($runner->stop, 0, 'the runner stops');
done_testing();
