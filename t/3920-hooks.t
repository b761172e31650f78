#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Push events: who may send them, which deployments they start, and which they do not.

use strict;
use warnings;
use IO::Socket::SSL ();
use IO::Socket::UNIX ();
use Cpanel::JSON::XS ();
use JSON::PP ();
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::Hook;
use Slipway::Test;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time);

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 3\n");
my $bell = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $api->dir . '/wake.sock') or die "bell: $!";
chmod 0777, $api->dir . '/wake.sock';
$bell->blocking(0);
sub woken { my $n = 0; $n++ while defined $bell->recv(my $data, 16); return $n }

my $open = $api->as('none');
my $project = $api->post('/api/projects',
    { name => 'p', repository => 'https://git.example.org/Owner/Name.git' })->{json}{id};
my $hook = "/api/hooks/$project";
sub pipeline {
	my ($name) = @_;
	return $api->post('/api/pipelines', { projectId => $project, name => $name,
	    steps => [ { name => 's', script => 'true' } ] })->{json}{id};
}
my ($one, $two) = map { pipeline($_) } qw(one two);
sub change {
	my (%what) = @_;
	my $got = $api->put("/api/projects/$project", \%what);
	is($got->{status}, 200, 'the project is changed') or diag($got->{body});
	return;
}
sub trigger {
	my ($branch, $pipeline, %vars) = @_;
	return { branch => $branch, pipelineId => $pipeline, envVars => \%vars }
}
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
sub send_it { my ($headers, $body, $path) = @_; return $open->post($path || $hook, $body, $headers) }
sub push_it { my ($kind, %o) = @_; return send_it(push_event($kind, $secret, %o)) }
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }
my $commit = 0;
sub fresh { return sprintf '%040x', ++$commit + 0xabcd0000 }
# Expects the status of a response, and that a request (given as code) creates no deployment.
sub is_nothing {
	my ($got, $want, $what) = @_;
	my $before = made();
	my $answer = ref $got eq 'CODE' ? $got->() : $got;
	is($answer->{status}, $want, $what) or diag($answer->{body});
	is(made(), $before, "$what: no deployment is created") if ref $got eq 'CODE';
	return $answer;
}

# --- events that start deployments
my $maker = $db->sql("SELECT made_by FROM hook_secret WHERE project_id = $project") + 0;
cmp_ok($maker, '>', 0, 'the account that created the webhook secret is stored');
change(triggers => [ trigger('main', $one, STAGE => 'live'), trigger('release/*', $two),
    trigger('**', $two, ALL => 'x') ]);
for my $kind (@HOOK_KINDS) {
	my $hash = fresh();
	my $got = push_it($kind, commit => $hash, branch => 'main',
	    message => "Mend it\n\nb\x{c3}\x{a4}h \x{c2}\x{9b}1m");
	is($got->{status}, 202, "$kind: a push returns 202") or diag($got->{body}, $api->log);
	my @data = @{ $got->{json}{data} || [] };
	is(scalar @data, 2, "$kind: a push starts a deployment for each matching trigger");
	is_deeply([ map { $_->{pipelineId} } @data ], [ $one, $two ],
	    "$kind: deployments are created in the order of their triggers");
	is_deeply([ sort keys %{ $data[0] } ],
	    [qw(branch commitHash commitMessage createdAt id pipelineId projectId status tag trigger)],
	    "$kind: the response leaves out the variables");
	my $made = $api->get("/api/deployments/$data[0]{id}")->{json};
	is_deeply([ @$made{qw(branch commitHash status trigger createdBy retryOf projectId pipelineId)} ],
	    [ 'main', $hash, 'pending', 'webhook', $maker, undef, $project, $one ],
	    "$kind: the deployment belongs to the account that created the secret");
	like($made->{commitMessage}, qr/^Mend it\n\nb/, "$kind: the deployment has the commit message");
	is_deeply($made->{envVars}, { STAGE => 'live' },
	    "$kind: the deployment has the variables of its trigger");
	is(scalar @{ $made->{steps} }, 1, "$kind: the deployment has the steps of its pipeline");
	cmp_ok(woken(), '>=', 1, "$kind: a push wakes the dispatcher");
}
my $role = $db->sql("SELECT role FROM user WHERE id = $maker");
for my $gone ("status = 'inactive'", 'valid = 0', "role = 'viewer'") {
	$db->sql("UPDATE user SET $gone WHERE id = $maker");
	my $got = push_it(gitea => commit => fresh(), branch => 'main', message => 'x');
	is($db->sql("SELECT created_by FROM deployment WHERE id = $got->{json}{data}[0]{id}"), 'NULL',
	    "the deployment has no creator if the account has $gone");
	$db->sql("UPDATE user SET status = 'active', valid = 1, role = '$role' WHERE id = $maker");
}
is(push_it(gitea => branch => 'release/1', commit => fresh())->{json}{data}[0]{pipelineId}, $two,
    'a trigger matches by its pattern');
is(scalar @{ push_it(gitea => branch => 'release/1/x', commit => fresh())->{json}{data} }, 1,
    '* in a pattern does not match a slash');
is(push_it(gitea => commit => 'b' x 64)->{json}{data}[0]{commitHash}, 'b' x 64,
    'a push with a SHA-256 commit is accepted');
my $long = push_it(gitea => commit => fresh(), message => "\xc3\xa4" x 5000);
is(length $long->{json}{data}[0]{commitMessage}, 2000, 'a long commit message is truncated');
is(push_it(gitea => commit => fresh(), path => 'OWNER/name')->{status}, 202,
    'the case of the repository path is ignored');
my $content = push_body('gitea', commit => fresh());
is(send_it({ %{ sign_event('gitea', $secret, $content) },
    'Content-Type' => 'application/json; charset=utf-8' }, $content)->{status}, 202,
    'a Content-Type with a charset is accepted');

# --- events that start nothing
my %nothing = ('a push of a tag' => [ gitea => ref => 'refs/tags/v1' ],
    'deletion of a branch' => [ gitea => commit => '0' x 40 ],
	'deletion of a branch with SHA-256' => [ github => commit => '0' x 64 ],
	'a ping' => [ github => event => 'ping' ],
	'an issue event' => [ gitea => event => 'issues' ],
	'a push of a tag to GitLab' => [ gitlab => event => 'Tag Push Hook', ref => 'refs/tags/v1' ],
	'deletion of a branch on GitLab' => [ gitlab => commit => '0' x 40 ],
	'a note event' => [ 'gitlab-signed' => event => 'Note Hook' ]);
for my $what (sort keys %nothing) {
	my ($kind, %o) = @{ $nothing{$what} };
	my $got = is_nothing(sub { push_it($kind, %o) }, 204, $what);
	is($got->{body}, '', "$what: the response has no body");
}
change(triggers => [ trigger('main', $one) ]);
is_nothing(sub { push_it(gitea => branch => 'other', commit => fresh()) }, 204,
    'a push to a branch without a trigger');
is_nothing(sub { push_it(gitea => branch => 'Main', commit => fresh()) }, 204,
    'a push to a branch that differs in case');
change(triggers => []);
is_nothing(sub { push_it(gitea => commit => fresh()) }, 204, 'a push to a project without triggers');
my @later = push_event(gitea => $secret, commit => fresh());
is(send_it(@later)->{status}, 204, 'a push before the trigger exists returns 204');
change(triggers => [ trigger('main', $one) ]);
is(send_it(@later)->{status}, 202, 'the same push can be redelivered after the trigger exists');

# --- paths that would keep a worker busy for minutes
sub listed { return (body => { commits => [ { id => $_[0], message => 'm', added => $_[1] } ] }) }
my $costly = { %{ trigger('main', $one) },
	paths => [ map { '**a' x 60 . '/' . 'a' x $_ . '?' } 0 .. 49 ] };
my $cheap = { %{ trigger('main', $two) }, paths => [ 'src/**', '**.c', 'doc/*/x?' ] };
change(triggers => [ ($costly) x 20, $cheap, ($costly) x 19 ]);
for my $case ([ 10, 204, 0 ], [ 160, 202, 39 ]) {
	my ($names, $status, $matching) = @$case;
	my @files = map { sprintf('%03d', $_) . 'a' x 252 } 1 .. $names;
	my $hash = fresh();
	my $began = time;
	my $got = push_it(gitea => commit => $hash, listed($hash, \@files));
	cmp_ok(time - $began, '<', 5, "$names files and 1950 costly patterns do not keep a worker busy");
	is($got->{status}, $status, "a push of $names files returns $status")
	    or diag($got->{body}, $api->log);
	is_deeply([ map { $_->{pipelineId} } @{ $got->{json}{data} || [] } ], [ ($one) x $matching ],
	    "with $names files $matching triggers match that cost too much, and none that costs little");
	$hash = fresh();
	$got = push_it(gitea => commit => $hash, listed($hash, [ @files, 'b/c.c' ]));
	is(scalar(grep { $_->{pipelineId} == $two } @{ $got->{json}{data} || [] }), 1,
	    'a trigger whose paths cost little matches among costly ones');
}
like($api->log, qr/trigger 0: its paths take too long to match with 160 files/,
    'the log names a trigger that costs too much');
sub too_long { my @found = $api->log =~ /its paths take too long/g; return scalar @found }
my $before = too_long();
$db->sql('CREATE TRIGGER deadlocks BEFORE INSERT ON deployment FOR EACH ROW BEGIN'
    . ' SET @tries = COALESCE(@tries, 0) + 1; IF @tries < 5 THEN'
    . " SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'; END IF; END");
my $many = fresh();
is(push_it(gitea => commit => $many, listed($many, [ map { sprintf('%03d', $_) . 'a' x 252 } 1 .. 160 ]))
    ->{status}, 202, 'a push is accepted after deadlocks');
$db->sql('DROP TRIGGER deadlocks');
is(too_long() - $before, 39, 'its files are matched with the paths of each trigger once');
change(triggers => [ trigger('main', $one) ]);

# --- signatures, of the raw bytes (CVE-2022-43411, CVE-2023-40034)
woken();
sub signed {
	my ($kind, %o) = @_;
	my $body = push_body($kind, commit => fresh(), %o);
	return (sign_event($kind, $secret, $body, %o), $body);
}
for my $kind (@HOOK_KINDS) {
	my ($headers, $body) = signed($kind);
	my ($name) = grep { exists $headers->{$_} } 'webhook-signature', 'X-Forgejo-Signature',
	    'X-Gitea-Signature', 'X-Gitlab-Token', 'X-Hub-Signature-256';
	my $right = $headers->{$name};
	my @names = grep { /Signature|signature|Token/ } keys %$headers;
	my %wrong = ('another secret' => (sign_event($kind, 'whsec_' . 'A' x 43 . '=', $body))->{$name},
	    'no signature' => undef, 'an empty signature' => '',
		'a truncated signature' => substr($right, 0, -2), 'a longer signature' => 'a prefix alone',
		'a word' => 'sha256=',
		'a signature in upper case' => uc $right);
	for my $what (sort keys %wrong) {
		is_nothing(sub { send_it({ %$headers, map { $_ => $wrong{$what} } @names }, $body) }, 401,
		    "$kind: $what returns 401");
	}
	next if $kind eq 'gitlab'; # sends the secret itself, which signs no body
	is_nothing(sub { send_it($headers, "$body ") }, 401, "$kind: a body with an added space returns 401");
	is_nothing(sub { send_it($headers, $body =~ s/Mend/mend/r) }, 401,
	    "$kind: a changed body returns 401");
}
my $got = send_it({ %{ (signed('gitea'))[0] }, 'X-Gitea-Signature' => 'x' }, '{}');
is($got->{json}{code}, 'unauthenticated', 'a wrong signature has the code unauthenticated');
like($got->{headers}{'www-authenticate'} || '', qr/^Signature /, 'a wrong signature has a challenge');
unlike($got->{body}, qr/whsec/, 'the response to a wrong signature reveals no secret');
is(woken(), 0, 'a rejected event does not wake the dispatcher');

# --- responses do not reveal which projects exist
my $bare = $api->post('/api/projects',
    { name => 'bare', repository => 'https://git.example.org/o/bare.git' })->{json}{id};
my $gone = $api->post('/api/projects',
    { name => 'gone', repository => 'https://git.example.org/o/gone.git' })->{json}{id};
my $dead = $api->put("/api/projects/$gone/hook-secret")->{json}{secret};
$api->delete("/api/projects/$gone");
my ($headers, $body) = signed('gitea');
my %answers;
for (['wrong', $hook, 'wrong'], ['no secret', "/api/hooks/$bare", $secret],
    ['no project', '/api/hooks/99999', $secret], ['a deleted project', "/api/hooks/$gone", $dead]) {
	my $answer = send_it(sign_event('gitea', $_->[2], $body), $body, $_->[1]);
	$answer->{json}{requestId} = '';
	$answers{$_->[0]} = [ $answer->{status}, $answer->{json}, $answer->{headers}{'www-authenticate'} ];
}
is_deeply($answers{$_}, $answers{wrong},
    "the response to an event with $_ is the same as with a wrong signature")
    for 'no secret', 'no project', 'a deleted project';
is($answers{wrong}[0], 401, 'the response to a wrong signature is 401');
is_nothing(sub { send_it(sign_event('gitea', '', $body), $body, "/api/hooks/$bare") }, 401,
    'a project without a secret rejects an empty secret');
is_nothing(sub { send_it({ %{ sign_event('gitlab', '', $body) }, 'X-Gitlab-Token' => '' }, $body,
    "/api/hooks/$bare") }, 401, 'a project without a secret rejects an empty token of GitLab');

# --- the time window of Standard Webhooks
for ([ 0, 202 ], [ -280, 202 ], [ 280, 202 ], [ -320, 401 ], [ 320, 401 ], [ -86400, 401 ]) {
	my $text = push_body('gitlab-signed', commit => fresh());
	is(send_it(sign_event('gitlab-signed', $secret, $text, time => int(time) + $_->[0]), $text)->{status},
	    $_->[1], "an event signed at $_->[0] s returns $_->[1]");
}
my $text = push_body('gitlab-signed', commit => fresh());
my $h = sign_event('gitlab-signed', $secret, $text);
is(send_it({ %$h, 'webhook-timestamp' => $h->{'webhook-timestamp'} + 1 }, $text)->{status},
    401, 'the timestamp is part of the signature');
is(send_it({ %$h, 'webhook-id' => 'other' }, $text)->{status}, 401,
    'the webhook id is part of the signature');
is(send_it({ %$h, 'webhook-timestamp' => 'soon' }, $text)->{status}, 400, 'an invalid timestamp returns 400');
is(send_it({ %$h, 'webhook-signature' => "v1,AAAA v2,xyz $h->{'webhook-signature'}" }, $text)->{status}, 202,
    'one valid signature among several is enough');

# --- replays (CVE-2021-45327)
for my $kind (@HOOK_KINDS) {
	my ($headers, $body) = signed($kind);
	my $before = made();
	my $first = send_it($headers, $body);
	my $second = send_it($headers, $body);
	is($first->{status}, 202, "$kind: the first delivery returns 202");
	is($second->{status}, 202, "$kind: a redelivery returns 202");
	is($second->{body}, $first->{body}, "$kind: a redelivery returns the same response");
	is(made(), $before + 1, "$kind: a redelivery creates no second deployment");
}
{
	my $body = push_body('gitea', commit => fresh());
	my $first = send_it(sign_event('gitea', $secret, $body), $body)->{body};
	is(send_it(sign_event('gitea', $secret, $body), $body)->{body}, $first,
	    'an unsigned delivery id makes no new delivery');
	is(send_it(sign_event($_, $secret, $body), $body)->{body}, $first,
	    "an unsigned event header of $_ makes no new delivery") for qw(github forgejo);
	$body = push_body('gitlab', commit => fresh());
	$first = send_it(sign_event('gitlab', $secret, $body, delivery => 'n1'), $body)->{json}{data}[0]{id};
	isnt(send_it(sign_event('gitlab', $secret, $body, delivery => 'n2'), $body)->{json}{data}[0]{id},
	    $first, 'a new delivery id of GitLab, whose sender knows the secret, makes a new delivery');
	$body = push_body('gitlab', commit => fresh());
	my $bare = sign_event('gitlab', $secret, $body);
	delete @$bare{qw(X-Gitlab-Event-UUID Idempotency-Key)};
	is(send_it($bare, $body)->{body}, send_it($bare, $body)->{body},
	    'without a delivery id the body identifies the delivery');
	my $old = send_it(sign_event('gitlab', $secret, $body, delivery => 'old'),
	    $body)->{json}{data}[0]{id};
	$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE id = $old");
	my $again = send_it(sign_event('gitlab', $secret, $body, delivery => 'old'), $body)->{json}{data}[0];
	is_deeply([ @$again{qw(id status)} ], [ $old, 'canceled' ],
	    'a redelivery returns the deployment with its current status');
}
{ # concurrent deliveries
	my ($headers, $body) = signed('gitea');
	my $before = made();
	my @socks = map { IO::Socket::SSL->new(PeerAddr => $api->url =~ s{https://}{}r,
	    SSL_ca_file => $api->cacert, SSL_verifycn_name => 'localhost') or die "connect: $!" } 1 .. 12;
	my $text = "POST $hook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	    . "Content-Type: application/json\r\n" . join('', map { "$_: $headers->{$_}\r\n" } keys %$headers)
	    . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
	print {$_} $text for @socks;
	my @answers = map { my $s = $_; local $/; scalar <$s> } @socks;
	is(scalar(grep { /^HTTP\/1.1 202/ } @answers), 12,
	    'twelve concurrent deliveries of one event return 202');
	my %bodies = map { (split /\r\n\r\n/)[1] => 1 } @answers;
	is(scalar keys %bodies, 1, 'twelve concurrent deliveries return the same response');
	is(made(), $before + 1, 'twelve concurrent deliveries create one deployment');
}

# --- repositories
for my $path ('owner/other', 'other/name', 'xOwner/Name', 'Owner/Name.git', '', 'a/Owner/Name') {
	is_nothing(sub { push_it(gitea => commit => fresh(), path => $path) }, length $path ? 422 : 400,
	    "a push to the repository \"$path\"");
}
like(push_it(gitea => commit => fresh(), path => 'owner/other')->{json}{detail}, qr{owner/other.*project's},
    'the error names both repositories');

# --- invalid triggers
my $third = pipeline('third');
change(envPresets => [ { key => 'NEED', label => 'n', type => 'input' } ],
	triggers => [ trigger('main', $one, NEED => 'x'), trigger('main', $two),
	    trigger('main', $third, NEED => 'y') ]);
$db->sql(q(UPDATE project SET env_presets = JSON_SET(env_presets, '$[0].required', TRUE)));
$got = push_it(gitea => commit => fresh());
is_deeply([ map { $_->{pipelineId} } @{ $got->{json}{data} } ], [ $one, $third ],
    'a trigger that lacks a required variable does not stop the others');
like($api->log, qr/project $project: trigger 1 \(main\): \/envVars\/NEED is required/,
    'the log names the trigger and the missing variable');
is($api->delete("/api/pipelines/$one")->{status}, 204, 'a pipeline with triggers is deleted');
is_deeply([ map { $_->{pipelineId} } @{ push_it(gitea => commit => fresh())->{json}{data} } ],
    [ $third ], 'a trigger whose pipeline is deleted does not stop the others');
$api->delete("/api/pipelines/$third");
my @retried = signed('gitea');
my $none = is_nothing(sub { send_it(@retried) }, 422, 'a push whose triggers are all invalid returns 422');
like($none->{json}{detail}, qr/trigger 0.*pipeline.*trigger 1.*NEED/s,
    'the error gives the reason for each trigger');
is_nothing(sub { push_it(gitea => branch => 'x', commit => fresh()) }, 204,
    'a push to a branch without a trigger, while others are invalid');
change(envPresets => [], triggers => [ trigger('main', $two) ]);
is(send_it(@retried)->{status}, 202, 'after a correction the same delivery is accepted');
my $branch = push_it(gitea => branch => 'a..b', commit => fresh());
is($branch->{status}, 204, 'a push to an invalid branch without a trigger returns 204');
change(triggers => [ trigger('**', $two) ]);
is(push_it(gitea => branch => $_, commit => fresh())->{status}, 422,
    "a push to the invalid branch $_ returns 422")
    for 'a..b', '-x', 'a b', 'x.lock';
is(push_it(gitea => branch => $_, commit => fresh())->{status}, 202, "a push to the branch $_ returns 202")
    for 'a;b', '$(id)', "a'b", "\x{c3}\x{a4}", 'a%2fb#c', 'HEAD';

# --- secrets of triggers
change(envPresets => [ map { { key => $_, label => $_, type => 'input', secret => $true } } qw(TOKEN OTHER) ],
	triggers => [ trigger('main', $two, TOKEN => 'swordfish-1', OPEN => 'o') ]);
change(envPresets => [ { key => 'TOKEN', label => 'T', type => 'input', secret => $true },
    { key => 'OTHER', label => 'O', type => 'input', secret => $true, default => 'swordfish-2' } ]);
$got = push_it(gitea => commit => fresh());
is($got->{status}, 202, 'a push that matches a trigger with secrets is accepted') or diag($got->{body});
my $id = $got->{json}{data}[0]{id};
is_deeply($api->get("/api/deployments/$id")->{json}{envVars}, { TOKEN => undef, OTHER => undef, OPEN => 'o' },
    'secrets of triggers read as null');
my ($opened, $plain) = run_cmd({ stdin => $db->sql("SELECT secret_vars FROM deployment WHERE id = $id") },
    program('t/unit/unseal'), $api->dir . '/deploy.key', $project);
is_deeply(Cpanel::JSON::XS->new->utf8->decode($plain), { TOKEN => 'swordfish-1', OTHER => 'swordfish-2' },
    'the runner can decrypt secrets of triggers');
unlike($api->log, qr/swordfish/, 'the log contains no secret of a trigger');

# --- bodies and headers
my $sign = sub {
	my ($kind, $text, %o) = @_;
	return send_it({ %{ sign_event($kind, $secret, $text) }, %o }, $text);
};
my %bad = ('text' => 'x', 'an empty object' => '{}', 'an array' => '[]', 'null' => 'null',
    'truncated JSON' => '{"ref":', 'a NUL' => "{\"ref\":\"a\0\"}",
	'invalid UTF-8' => "{\"ref\":\"\xff\"}", 'deeply nested arrays' => '[' x 500_000,
	'deeply nested objects' => '{"a":' x 100_000,
	'an object as ref' => '{"ref":{},"after":"' . 'a' x 40 . '","repository":{"full_name":"Owner/Name"}}',
	'an invalid commit' => push_body('gitea', commit => 'xyz'),
	'a ref without a branch' => push_body('gitea', ref => 'refs/heads/'),
	'null for the repository' => push_body('gitea', body => { repository => undef }),
	'a repository of another type' => push_body('gitea', body => { repository => [] }));
for my $what (sort keys %bad) {
	for my $kind (qw(gitea gitlab)) {
		is_nothing(sub { $sign->($kind, $bad{$what}) }, 400, "$kind: $what");
	}
}
like($sign->('gitea', $bad{$_})->{json}{detail}, qr/^The (?:body|name of the branch) /,
    "the error for $_ describes the request")
    for sort keys %bad;
is_nothing(sub { $sign->('gitea', '{"a":"' . 'x' x ((32 << 20) - 8) . '"}') }, 400,
    'a body of 32 MiB that is not a push');
is_nothing(sub { $sign->('gitea', '{"a":"' . 'x' x (32 << 20) . '"}') }, 413, 'a body above 32 MiB');
my $big = push_body('gitea', commit => fresh(),
    body => { commits => [ map { { id => fresh(), message => 'm' x 100,
    added => [ map { "file$_" } 1 .. 40 ] } } 1 .. 1200 ] });
cmp_ok(length $big, '<', 1048576,
    "a push with many commits is smaller than 1 MiB: @{[length $big]}" . length $big);
is($sign->('gitea', $big)->{status}, 202, 'a push with many commits is accepted');
for ('application/x-www-form-urlencoded', 'text/plain', '', undef) {
	$got = is_nothing(sub { $sign->('github', push_body('github'), 'Content-Type' => $_) }, 415,
	    'an event with the Content-Type ' . ($_ // '(none)'));
}
like($got->{json}{detail}, qr{application/json}, 'the error names application/json');
is(send_it({}, push_body('gitea'))->{status}, 400, 'an event without the header of a Git server returns 400');
is(send_it({ 'X-Gitea-Event' => 'push' }, push_body('gitea'))->{status}, 401,
    'an event without a signature returns 401');
is($open->get($hook)->{status}, 405, 'GET of a webhook returns 405');
is($open->post("$hook/x", '{}')->{status}, 404, 'a path below a webhook returns 404');
is($open->post('/api/hooks/x', '{}')->{status}, 404, 'a webhook whose id is not a number returns 404');
is($sign->('gitea', push_body('gitea', commit => fresh()), Authorization => 'Bearer wrong')->{status}, 202,
    'an Authorization header is ignored');
is($sign->('gitea', push_body('gitea', commit => fresh()), Origin => 'https://evil.example',
    Cookie => '__Host-slipway=x')->{status}, 202, 'an Origin header and a cookie are ignored');

# --- a new secret
my $old = $secret;
$secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$body = push_body('gitea', commit => fresh());
is(send_it(sign_event('gitea', $old, $body), $body)->{status}, 401,
    'after a new secret the old one is rejected');
is(send_it(sign_event('gitea', $secret, $body), $body)->{status}, 202,
    'after a new secret the new one is accepted');

is(scalar(grep { m{\bsignal|Sanitizer|exited} } split /\n/, $api->log), 0, 'no worker died')
    or diag($api->log);

# --- without a key, and without a database
rename $api->dir . '/secret.key', $api->dir . '/away';
$api->stop_api;
$api->start_api;
is(push_it(gitea => commit => fresh())->{status}, 503, 'without a key file an event returns 503');
rename $api->dir . '/away', $api->dir . '/secret.key';
$api->stop_api;
$api->start_api;
$db->stop;
is(push_it(gitea => commit => fresh())->{status}, 503,
    'without the database an event returns 503, so that it can be sent again');

done_testing;
