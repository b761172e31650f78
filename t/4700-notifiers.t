#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Notifiers over REST and in the runner: members, faults, roles; signed webhooks, chat
# messages and mail to real servers; retries, receivers that are slow, do not respond or return 410,
# private addresses, several runners, the default mail.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json encode_json);
use Encode qw(decode);
use MIME::Base64 qw(decode_base64);
use Slipway::API qw(outcome);
use Slipway::Certificate;
use Slipway::Npm;
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my ($true, $false) = (Cpanel::JSON::XS::true, Cpanel::JSON::XS::false);
my $npm = npm_dir();
my $dir = tempdir();
make_front($dir);
my ($smtp, $https) = (free_port(), free_port());
my $file = "$dir/received";
my @servers = ({ name => 'receivers' }, '/usr/bin/python3', srcdir() . '/t/receivers.py', $smtp, $https,
	"$dir/cert.pem", "$dir/cert.key", $file);
start_process(@servers);
my $conf = "[mail]\nserver = localhost:$smtp\nsecurity = starttls\nuser = slipway\npassword = pass word\n"
    . "from = slipway\@example.org\ntls_ca = $dir/ca.pem\n"
    . "[notify]\nprivate_networks = 10.0.0.0/8 127.0.0.1\ntls_ca = $dir/ca.pem\n"
    . "[api]\nurl = https://slipway.example.org\n";
my $all = Slipway::Whole->start(runner => $conf, api => $conf);
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $maintainer = $api->as('maintainer');
my $repo = $runner->repo;
my $project = $all->project($repo);
my $environment = $all->make('/api/environments', { projectId => $project, name => 'live' })->{id};
my $pipeline = $all->pipeline($project, 'test "$RESULT" = good');
my $got;

sub received { return json_lines($file) }
# Waits for a request or mail that fits; the newest.
sub arrived {
	my ($fits, $name) = @_;
	my @found;
	ok(poll(60, sub { @found = grep { $fits->($_) } received(); return scalar @found }), $name)
	    or diag(slurp($file) || 'nothing', tail($runner->said, 20));
	return $found[-1] || { headers => {}, body => '{}', text => '' };
}
sub posts { my ($path) = @_; return grep { $_->{kind} eq 'post' && $_->{path} eq $path } received() }
sub arrived_at {
	my ($path, $pattern, $name) = @_;
	return arrived(sub { my ($got) = @_; return $got->{kind} eq 'post' && $got->{path} eq $path
	    && $got->{body} =~ $pattern }, $name);
}
sub to { my ($path) = @_; return "https://localhost:$https$path" }
sub body { my (%more) = @_; return { kind => 'webhook', target => to('/hook'), events => ['failed'], %more } }
sub create { my (%more) = @_; return $all->make('/api/notifiers', body(%more)) }
sub show { my ($n) = @_; return $api->get("/api/notifiers/$n->{id}")->{json} }
sub shows {
	my ($n, $member, $pattern, $name) = @_;
	my $now;
	ok(poll(60, sub { $now = show($n); return ($now->{$member} || '') =~ $pattern }), $name)
	    or diag(explain($now), tail($runner->said, 20));
	return $now;
}
# The text of a mail.
sub text_of { my ($mail) = @_; return decode_base64((split /\r\n\r\n/, $mail->{text})[1]) }
# Sends a test message.
sub test { my ($n) = @_; return $maintainer->post("/api/notifiers/$n->{id}/test") }
# Makes messages that wait for their next attempt due.
sub due {
	$db->sql('UPDATE notice SET next_at = NOW(3), held_until = NULL WHERE next_at IS NOT NULL');
	$_->ring for @_ ? @_ : $runner;
	return;
}
sub deploy {
	my ($result, %more) = @_;
	return $all->wait($all->post(projectId => $project, pipelineId => $pipeline,
		envVars => { RESULT => $result }, %more));
}
# The signatures of requests, by the reference.
sub verified {
	my ($secret, @requests) = @_;
	my $in = join '', map { encode_json({ %$_, secret => $secret }) . "\n" } @requests;
	my (undef, $out, $err) = run_cmd({ cwd => $npm, stdin => $in }, 'node', 'webhook.mjs');
	diag($err) if $err;
	return join ' ', split /\n/, $out;
}

# --- mail without notifiers
$db->sql("UPDATE user SET email = 'dora\@example.org' WHERE username = 't-admin'");
my $failed = deploy('bad');
is($failed->{status}, 'failed', 'a deployment fails');
$got = arrived(sub { $_[0]{kind} eq 'mail' }, 'the user who started it gets a mail without any notifier');
is_deeply([ @$got{qw(sender to tls)} ], [ 'slipway@example.org', ['dora@example.org'], $true ],
    'the mail goes to the address of the user, over TLS');
# The subject of a mail; each of its encoded words has whole characters.
sub subject_of {
	my ($mail) = @_;
	my ($words) = $mail->{text} =~ /^Subject:((?: =\?UTF-8\?B\?[\w+\/=]+\?=\r\n)+)/m;
	return join '', map { decode('UTF-8', decode_base64($_), Encode::FB_CROAK) }
	    ($words || '') =~ /B\?([^?]+)/g;
}
is(subject_of($got), "project 1: deployment $failed->{id} to live failed",
    'the subject of the mail says what happened');
like($got->{text}, qr/^Message-ID: <[0-9a-f]{32}\@example\.org>\r$/m, 'the mail has a Message-ID');
like(text_of($got), qr/^https:..slipway\.example\.org.*$failed->{id}/m, 'the mail has a link');
my $name = join ' ', ("Stra\x{df}enb\x{e4}ume") x 7;
$maintainer->put("/api/projects/$project", { name => $name });
my $good = deploy('good');
$got = arrived(sub { my ($got) = @_; return $got->{kind} eq 'mail' && text_of($got) =~ /succeeded again/ },
    'the user gets another mail on recovery');
is(subject_of($got), "$name: deployment $good->{id} to live succeeded again", 'a long subject is complete');
$maintainer->put("/api/projects/$project", { name => 'project 1' });
deploy('good');
$runner->stop;
my $unseen = $all->post(projectId => $project, pipelineId => $pipeline, envVars => { RESULT => 'bad' });
$db->sql("UPDATE user SET role = 'guest' WHERE username = 't-admin'");
$runner->resume;
is($runner->wait($unseen), 'failed', 'a deployment fails whose user no longer sees the project');
is($db->sql("SELECT COUNT(*) FROM notice WHERE deployment_id = $unseen") + 0, 0,
    'a user who no longer sees the project gets no mail');
$db->sql("UPDATE user SET role = 'admin' WHERE username = 't-admin'");

# --- members, faults, roles
$got = $maintainer->post('/api/notifiers', body(projectId => $project, environmentId => $environment,
	events => [qw(started failed recovered waiting_for_approval locked)]));
is($got->{status}, 201, 'a maintainer creates a webhook') or diag($got->{body});
my $hook = $got->{json};
is($got->{headers}{location}, "/api/notifiers/$hook->{id}", 'Location is its path');
my $secret = $hook->{secret};
like($secret, qr/^whsec_[\w+\/]{43}=$/, 'the response shows the secret');
is(show($hook)->{secret}, undef, 'no other response shows the secret');
is_deeply([ @$hook{qw(active lastError lastDeliveredAt)} ], [ $true, undef, undef ],
    'a new notifier has sent nothing');
is($db->sql('SELECT COUNT(*) FROM notice'), 2, 'a notifier gets no events from before its creation');
for my $case (
	[ {}, '422 /events /kind /target', 'an empty body' ],
	[ body(kind => 'fax'), '422 /kind', 'an unknown kind' ],
	[ body(target => 'http://localhost/x'), '422 /target', 'a URL without TLS' ],
	[ body(target => 'https://a:b@localhost/x'), '422 /target', 'a URL with a password' ],
	[ body(target => 'https://localhost/x y'), '422 /target', 'a URL with a blank' ],
	[ body(kind => 'mail', target => 'team'), '422 /target', 'a mail address without a host' ],
	[ body(kind => 'mail', target => "a\@b\r\nBcc: c\@d"), '422 /target', 'a mail address of two lines' ],
	[ body(kind => 'mail', target => join(',', ('a@b') x 21)), '422 /target', '21 mail addresses' ],
	[ body(events => []), '422 /events', 'no event' ],
	[ body(events => ['exploded']), '422 /events/0', 'an unknown event' ],
	[ body(events => ['failed', 'failed']), '422 /events/1', 'an event listed twice' ],
	[ body(projectId => 77777), '422 /projectId', 'an unknown project' ],
	[ body(environmentId => $environment), '422 /environmentId', 'an environment without a project' ],
	[ body(projectId => $project, environmentId => 77777), '422 /environmentId',
	    'an unknown environment' ],
	[ body(secret => 'x'), '422 /secret', 'a secret' ],
) {
	my ($body, $want, $name) = @$case;
	is(outcome($maintainer->post('/api/notifiers', $body)), $want, "$name is rejected");
}
my $path = "/api/notifiers/$hook->{id}";
is(outcome($maintainer->put($path, { kind => 'text' })), '422 /kind', 'the kind cannot change');
is(outcome($maintainer->put($path, { projectId => undef })), '422 /projectId', 'the project cannot change');
my $deployer = $api->as('deployer');
is($deployer->get($_)->{status}, 403, "a deployer cannot read $_") for '/api/notifiers', $path;
is($deployer->post('/api/notifiers', body())->{status}, 403, 'a deployer creates no notifier');
is(test({ id => 77777 })->{status}, 404, 'an unknown notifier cannot be tested');
is($api->get("/api/notifiers?projectId=$project")->{json}{pagination}{total}, 1,
    'the list of the project has the notifier');

# --- webhooks
deploy('bad');
$got = arrived_at('/hook', qr/deployment\.failed/, 'a webhook gets the failure');
my $data = decode_json($got->{body});
is_deeply([ @{ $data->{data} }{qw(projectId environment status reason user)} ],
    [ $project, 'live', 'failed', 'step_failed', 't-admin' ], 'it says what failed');
my @requests = posts('/hook');
is(join(' ', map { decode_json($_->{body})->{type} } @requests), 'deployment.started deployment.failed',
    'a deployment that fails sends its start and its failure');
my $changed = { %$got, body => $got->{body} . ' ' };
SKIP: {
	skip 'npm cannot install standardwebhooks', 1 if !$npm;
	is(verified($secret, @requests, $changed), 'ok ok No matching signature found',
	    'the reference accepts the signatures, and none of a changed body');
}
is($maintainer->put("$path/secret")->{status}, 200, 'a maintainer rotates the secret');
my $fresh = $maintainer->put("$path/secret")->{json}{secret};
isnt($fresh, $secret, 'each rotation creates another secret');
my $second = $maintainer->put("$path/secret")->{json}{secret};
deploy('good');
$got = arrived_at('/hook', qr/deployment\.recovered/, 'a success after a failure is a recovery');
SKIP: {
	skip 'npm cannot install standardwebhooks', 1 if !$npm;
	is(join(', ', map { verified($_, $got) } $secret, $fresh, $second),
	    'No matching signature found, ok, ok', 'after a rotation, the secret and the one before sign');
}
deploy('good');
$maintainer->put("/api/environments/$environment/lock", { reason => 'moving <b>' });
$got = arrived_at('/hook', qr/lock\.set/, 'a lock is announced');
is(decode_json($got->{body})->{data}{lockReason}, 'moving <b>', 'with its reason');
$maintainer->delete("/api/environments/$environment/lock");
$maintainer->put("/api/environments/$environment", { approval => 'required' });
my $waits = $all->post(projectId => $project, pipelineId => $pipeline, commitHash =>
	$failed->{commitHash}, envVars => { RESULT => 'good' });
arrived_at('/hook', qr/deployment\.waiting_for_approval/, 'a request for approval is announced');
$api->post("/api/deployments/$waits/cancel");
$maintainer->put("/api/environments/$environment", { approval => 'none' });
is(scalar(grep { $_->{kind} eq 'mail' } received()), 2, 'with a notifier, no user gets a mail');

# --- chat and mail
my $chat = create(kind => 'text', target => to('/chat'), events => ['locked'], projectId => $project);
is($chat->{secret}, undef, 'a chat service has no secret');
is($maintainer->put("/api/notifiers/$chat->{id}/secret")->{status}, 409,
    'a secret for a chat service is rejected');
$maintainer->put("/api/projects/$project/lock", { reason => '<!everyone> & @all'
	. ' [ok](https://evil.example) ![i](x) [a][b] [a]: x ```c ~~d~~ a_b__c' });
$got = arrived_at('/chat', qr/locked/, 'a chat service gets a text');
is(Cpanel::JSON::XS->new->decode($got->{body})->{text},
    "project 1 is locked\nReason: &lt;!everyone&gt; &amp; \@\x{200b}all"
	. " [ok]\x{200b}(https://evil.example) !\x{200b}[i]\x{200b}(x) [a]\x{200b}[b] [a]\x{200b}: x"
	. " `\x{200b}`\x{200b}`c ~\x{200b}~d~\x{200b}~ a_b__c\nBy: t-maintainer\n",
    'in which markup and @all have no effect');
$api->delete("/api/projects/$project/lock");
my $mail = create(kind => 'mail', target => 'a@example.org, b@example.org', events => ['failed']);
test($mail);
$got = arrived(sub { "@{ $_[0]{to} || [] }" eq 'a@example.org b@example.org' },
    'a mail goes to all addresses');
shows($mail, lastDeliveredAt => qr/Z$/, 'the notifier shows when it was delivered');
my $three = 'c@example.org, unknown@example.org,d@example.org';
$maintainer->put("/api/notifiers/$mail->{id}", { target => $three });
test($mail);
arrived(sub { "@{ $_[0]{to} || [] }" eq 'c@example.org d@example.org' },
    'a mail goes to the addresses that the server accepts');
my @long = map { 'a' x 50 . $_ . '@example.org' } 1 .. 20;
$maintainer->put("/api/notifiers/$mail->{id}", { target => join(',', @long) });
test($mail);
$got = arrived(sub { "@{ $_[0]{to} || [] }" eq "@long" }, 'a mail goes to 20 long addresses');
is_deeply([ grep { length > 998 } split /\r\n/, $got->{text} ], [], 'without a line of more than 998 bytes');
like($got->{text}, qr/^To: ${\join ",\r\n ", @long}\r$/m, 'the To: of the mail has all addresses');
$maintainer->put("/api/notifiers/$mail->{id}", { target => 'unknown@example.org, unknown@example.com' });
test($mail);
shows($mail, lastError => qr/^localhost:$smtp rejected the mail with reply 550$/,
    'the notifier shows why a mail was rejected');
$api->delete("/api/notifiers/$mail->{id}");

# --- tags
is((run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, 'tag', 'v1.2'))[0], 0, 'a tag is created');
my @tagged = map { create(kind => $_, target => to("/tag/$_"), events => ['succeeded'],
	projectId => $project) } qw(webhook text);
is(deploy('good', tag => 'v1.2')->{status}, 'success', 'a tag is deployed');
is_deeply([ @{ decode_json(arrived_at('/tag/webhook', qr/succeeded/, 'a webhook gets it')->{body})->{data} }
	{qw(branch tag)} ], [ undef, 'v1.2' ], 'with the tag in place of a branch');
like(decode_json(arrived_at('/tag/text', qr/succeeded/, 'a chat service gets it')->{body})->{text},
    qr/^Tag: v1\.2$/m, 'with the tag, too');
$api->delete("/api/notifiers/$_->{id}") for @tagged;

# --- receivers that fail
my $other = create(target => to('/status/500'));
test($other);
shows($other, lastError => qr/^The receiver returned status 500\.$/, 'the notifier shows an error status');
my ($first) = posts('/status/500');
$maintainer->put("/api/notifiers/$other->{id}", { target => to('/better') });
due();
$got = arrived_at('/better', qr/test/, 'the message is sent again');
is($got->{headers}{'webhook-id'}, $first->{headers}{'webhook-id'}, 'a repeated message has the same id');
is(shows($other, lastDeliveredAt => qr/Z$/, 'a repeated message is delivered')->{lastError}, undef,
    'the error of a notifier that delivers again is cleared');
my $gone = create(target => to('/status/410'));
test($gone) for 1 .. 3;
is(poll(60, sub { !show($gone)->{active} }), 1, 'status 410 deactivates the notifier');
is(show($gone)->{lastError}, 'The receiver returned status 410.', 'which says why');
is_deeply([ map { "@$_{qw(via action objectType objectId)}" } grep { $_->{action} eq 'deactivateNotifier' }
	@{ $api->get('/api/audit')->{json}{data} } ], ["runner deactivateNotifier notifier $gone->{id}"],
    'the audit log has an entry of the deactivation');
is(test($gone)->{status}, 409, 'a notifier that is not active cannot be tested');
is($db->sql("SELECT COUNT(*) FROM notice WHERE notifier_id = $gone->{id}"), 0,
    'the messages of a deactivated notifier are deleted');
is($maintainer->put("/api/notifiers/$gone->{id}", { active => $true, target => to('/again') })->{status}, 200,
    'a maintainer activates it again');
test($gone);
arrived_at('/again', qr/test/, 'then it sends');
my $private = create(target => "https://127.0.0.2:$https/private");
test($private);
shows($private, lastError => qr/^127\.0\.0\.2:$https has a private address, which the settings do not list$/,
    'a private address that the settings do not list is not connected to');
is(scalar(posts('/private')), 0, 'a private address that is not listed gets nothing');
my $dead = create(target => 'https://127.0.0.1:' . free_port() . '/');
test($dead);
shows($dead, lastError => qr/cannot be reached$/, 'the notifier shows that a receiver is dead');
$api->delete("/api/notifiers/$_->{id}") for $private, $dead, $other;
is($db->sql("SELECT COUNT(*) FROM notice WHERE next_at IS NOT NULL"), 0,
    'a deleted notifier leaves no message');

# --- a slow receiver, and a sender that dies
my $slow = create(target => to('/status/0'));
test($slow);
($first) = arrived_at('/status/0', qr/test/, 'a slow receiver gets a message and does not respond');
test($gone);
is(poll(60, sub { posts('/again') > 1 }), 1, 'other receivers get their messages meanwhile');
is(show($slow)->{lastDeliveredAt}, undef, 'before the slow one responds');
$runner->kill_all;
$maintainer->put("/api/notifiers/$slow->{id}", { target => to('/fast') });
$runner->resume;
due();
$got = arrived_at('/fast', qr/test/, 'a message is not lost when the sender dies');
is($got->{headers}{'webhook-id'}, $first->{headers}{'webhook-id'},
    'a message that was sent again has the same id');

# --- several runners
my $peer = Slipway::Runner->start(db => $db, conf => $runner->{conf});
my @many = map { create(target => to("/many/$_")) } 1 .. 6;
test($_) for @many, @many;
$_->ring for $runner, $peer;
is(poll(60, sub { grep({ $_->{path} && $_->{path} =~ m{^/many/} } received()) >= 12 }), 1,
    'with two runners, all messages arrive');
ok(poll(60, sub { $db->sql('SELECT COUNT(*) FROM notice WHERE next_at IS NOT NULL') == 0 }), 'none is left');
my %ids = map { $_->{headers}{'webhook-id'} => 1 } grep { ($_->{path} || '') =~ m{^/many/} } received();
is(scalar(grep { ($_->{path} || '') =~ m{^/many/} } received()) . ' ' . keys %ids, '12 12', 'each once');

# Both runners have read which messages are due before one of them claims the first.
my $one = create(target => to('/status/0'), projectId => $project, environmentId => $environment);
my $held = 'WHERE next_at > NOW(3) AND notifier_id = ' . $one->{id};
my $gate = $db->session;
$gate->('BEGIN; SELECT id FROM notifier WHERE id = ' . $one->{id} . ' FOR UPDATE');
$db->sql("INSERT INTO notice (notifier_id, event) VALUES ($one->{id}, 'test'), ($one->{id}, 'test')");
$_->ring for $runner, $peer;
ok(poll(60, sub { $db->waiting == 2 }), 'two runners want to send the messages of one notifier');
$gate->('ROLLBACK');
ok(poll(60, sub { $db->waiting == 0 && $db->sql("SELECT COUNT(*) FROM notice $held") > 0 }),
    'one of two runners sends the messages of a notifier');
test($gone);
ok(poll(60, sub { posts('/again') > 2 }), 'the other one sends what else there is');
is($db->sql("SELECT COUNT(*) FROM notice $held") + 0, 1,
    'the other runner does not send the second message of the notifier');

is($maintainer->delete("/api/environments/$environment")->{status}, 204,
    'an environment with a notifier is deleted');
is($api->get("/api/notifiers/$_")->{status}, 404, 'with its notifiers') for $one->{id}, $hook->{id};
is($db->sql("SELECT COUNT(*) FROM notice WHERE notifier_id = $one->{id}") + 0, 0,
    'the messages of the deleted notifiers are deleted');
$hook = create(projectId => $project);
$path = "/api/notifiers/$hook->{id}";

# --- a success with warnings
my $untidy = $all->make('/api/pipelines', { projectId => $project, name => 'untidy',
	steps => [ { name => 'deploy', script => 'true' },
		{ name => 'prune', script => 'exit 6', mayFail => $true } ] })->{id};
$maintainer->put($path, { events => ['succeeded'], target => to('/warned') });
create(projectId => $project, kind => 'text', events => ['succeeded'], target => to('/warned-chat'));
my $warned = $all->wait($all->post(projectId => $project, pipelineId => $untidy, envVars => {}));
my $why = 'Step 2 (prune) ended with exit status 6.';
$got = arrived_at('/warned', qr/"warnings":1/, 'a webhook has the number of warnings');
is_deeply([ @{ decode_json($got->{body})->{data} }{qw(status detail)} ], [ 'success', $why ],
    'and names them');
arrived_at('/warned-chat', qr/deployment $warned->{id} succeeded with warnings\\n\Q$why\E/,
    'a chat message says that there were warnings, and names them');

$got = $api->as('none')->get('/api/metrics')->{body};
like($got, qr/^slipway_notifications_total\{kind="webhook",result="$_"\} [1-9]/m, "messages $_ are counted")
    for qw(delivered retried dropped);

is($maintainer->delete("/api/projects/$project")->{status}, 204, 'a project with notifiers is deleted');
is($api->get($path)->{status}, 404, 'with its notifiers');
done_testing();
