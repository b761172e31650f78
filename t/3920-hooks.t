#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Push events: who may send them, what they start, and what they do not.

use strict;
use warnings;
use IO::Socket::SSL ();
use IO::Socket::UNIX ();
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
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 3\n");
ok($api->create_keys, 'slipway-admin key creates the keys for secrets');
my $bell = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $api->dir . '/wake.sock') or die "bell: $!";
chmod 0777, $api->dir . '/wake.sock';
$bell->blocking(0);
sub woken { my $n = 0; $n++ while defined $bell->recv(my $data, 16); return $n }

my $open = $api->as('none');
my $project = $api->post('/api/projects', { name => 'p', repository => 'https://git.example.org/Owner/Name.git' })->{json}{id};
my $hook = "/api/hooks/$project";
sub pipeline {
	my ($name) = @_;
	return $api->post('/api/pipelines', { projectId => $project, name => $name, steps => [ { name => 's', script => 'true' } ] })->{json}{id};
}
my ($one, $two) = map { pipeline($_) } qw(one two);
sub change { my (%what) = @_; my $got = $api->put("/api/projects/$project", \%what); is($got->{status}, 200, 'the project is changed') or diag($got->{body}); return }
sub trigger { my ($branch, $pipeline, %vars) = @_; return { branch => $branch, pipelineId => $pipeline, envVars => \%vars } }
my $secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
sub send_it { my ($headers, $body, $path) = @_; return $open->post($path || $hook, $body, $headers) }
sub push_it { my ($kind, %o) = @_; return send_it(push_event($kind, $secret, %o)) }
sub made { return $db->sql('SELECT COUNT(*) FROM deployment') }
my $commit = 0;
sub fresh { return sprintf '%040x', ++$commit + 0xabcd0000 }
sub is_nothing {
	my ($got, $want, $what) = @_;
	my $before = made();
	my $answer = ref $got eq 'CODE' ? $got->() : $got;
	is($answer->{status}, $want, $what) or diag($answer->{body});
	is(made(), $before, '... which makes nothing') if ref $got eq 'CODE';
	return $answer;
}

# --- what they start
my $maker = $db->sql("SELECT made_by FROM hook_secret WHERE project_id = $project") + 0;
cmp_ok($maker, '>', 0, 'who made the secret is remembered');
change(triggers => [ trigger('main', $one, STAGE => 'live'), trigger('release/*', $two), trigger('**', $two, ALL => 'x') ]);
for my $kind (@HOOK_KINDS) {
	my $hash = fresh();
	my $got = push_it($kind, commit => $hash, branch => 'main', message => "Mend it\n\nb\x{c3}\x{a4}h");
	is($got->{status}, 202, "$kind: a push") or diag($got->{body}, $api->log);
	my @data = @{ $got->{json}{data} || [] };
	is(scalar @data, 2, '... of a branch that two triggers match');
	is_deeply([ map { $_->{pipelineId} } @data ], [ $one, $two ], '... in their order');
	is_deeply([ sort keys %{ $data[0] } ], [qw(branch commitHash commitMessage createdAt id pipelineId projectId status trigger)], '... told without variables');
	my $made = $api->get("/api/deployments/$data[0]{id}")->{json};
	is_deeply([ @$made{qw(branch commitHash status trigger createdBy retryOf projectId pipelineId)} ],
	    [ 'main', $hash, 'pending', 'webhook', $maker, undef, $project, $one ], '... makes this deployment, in the name of who made the secret');
	like($made->{commitMessage}, qr/^Mend it\n\nb/, '... with its message');
	is_deeply($made->{envVars}, { STAGE => 'live' }, '... and the variables of its trigger');
	is(scalar @{ $made->{steps} }, 1, '... and steps');
	cmp_ok(woken(), '>=', 1, '... and wakes the runner');
}
my $role = $db->sql("SELECT role FROM user WHERE id = $maker");
for my $gone ("status = 'inactive'", 'valid = 0', "role = 'viewer'") {
	$db->sql("UPDATE user SET $gone WHERE id = $maker");
	my $got = push_it(gitea => commit => fresh(), branch => 'main', message => 'x');
	is($db->sql("SELECT created_by FROM deployment WHERE id = $got->{json}{data}[0]{id}"), 'NULL', "and nobody's while they are not here: $gone");
	$db->sql("UPDATE user SET status = 'active', valid = 1, role = '$role' WHERE id = $maker");
}
is(push_it(gitea => branch => 'release/1', commit => fresh())->{json}{data}[0]{pipelineId}, $two, 'a pattern');
is(scalar @{ push_it(gitea => branch => 'release/1/x', commit => fresh())->{json}{data} }, 1, 'whose star ends at a slash');
is(push_it(gitea => commit => 'b' x 64)->{json}{data}[0]{commitHash}, 'b' x 64, 'a commit by SHA-256');
my $long = push_it(gitea => commit => fresh(), message => "\xc3\xa4" x 5000);
is(length $long->{json}{data}[0]{commitMessage}, 2000, 'a long message is cut');
is(push_it(gitea => commit => fresh(), path => 'OWNER/name')->{status}, 202, 'the case of the path does not count');
my $content = push_body('gitea', commit => fresh());
is(send_it({ %{ sign_event('gitea', $secret, $content) }, 'Content-Type' => 'application/json; charset=utf-8' }, $content)->{status}, 202, 'with a charset');

# --- what they do not
my %nothing = ('a tag' => [ gitea => ref => 'refs/tags/v1' ], 'a deleted branch' => [ gitea => commit => '0' x 40 ],
	'a deleted branch by SHA-256' => [ github => commit => '0' x 64 ], 'a ping' => [ github => event => 'ping' ],
	'an issue' => [ gitea => event => 'issues' ], 'a tag of GitLab' => [ gitlab => event => 'Tag Push Hook', ref => 'refs/tags/v1' ],
	"a deleted branch of GitLab" => [ gitlab => commit => '0' x 40 ], 'a note' => [ 'gitlab-signed' => event => 'Note Hook' ]);
for my $what (sort keys %nothing) {
	my ($kind, %o) = @{ $nothing{$what} };
	my $got = is_nothing(sub { push_it($kind, %o) }, 204, $what);
	is($got->{body}, '', '... and says nothing');
}
change(triggers => [ trigger('main', $one) ]);
is_nothing(sub { push_it(gitea => branch => 'other', commit => fresh()) }, 204, 'a branch that nothing matches');
is_nothing(sub { push_it(gitea => branch => 'Main', commit => fresh()) }, 204, 'nor in another case');
change(triggers => []);
is_nothing(sub { push_it(gitea => commit => fresh()) }, 204, 'no triggers');
my @later = push_event(gitea => $secret, commit => fresh());
is(send_it(@later)->{status}, 204, 'a push that came too early');
change(triggers => [ trigger('main', $one) ]);
is(send_it(@later)->{status}, 202, 'can be sent again once there is a trigger');

# --- signatures, of the raw bytes (CVE-2022-43411, CVE-2023-40034)
woken();
sub signed { my ($kind, %o) = @_; my $body = push_body($kind, commit => fresh(), %o); return (sign_event($kind, $secret, $body, %o), $body) }
for my $kind (@HOOK_KINDS) {
	my ($headers, $body) = signed($kind);
	my ($name) = grep { exists $headers->{$_} } 'webhook-signature', 'X-Forgejo-Signature', 'X-Gitea-Signature', 'X-Gitlab-Token', 'X-Hub-Signature-256';
	my $right = $headers->{$name};
	my @names = grep { /Signature|signature|Token/ } keys %$headers;
	my %wrong = ('another secret' => (sign_event($kind, 'whsec_' . 'A' x 43 . '=', $body))->{$name}, 'none' => undef, 'an empty one' => '',
		'a part of it' => substr($right, 0, -2), 'more than it' => "${right}x", 'a word' => 'sha256=', 'another case' => uc $right);
	for my $what (sort keys %wrong) {
		is_nothing(sub { send_it({ %$headers, map { $_ => $wrong{$what} } @names }, $body) }, 401, "$kind: $what");
	}
	next if $kind eq 'gitlab'; # the secret itself is no signature of a body
	is_nothing(sub { send_it($headers, "$body ") }, 401, "$kind: one more blank");
	is_nothing(sub { send_it($headers, $body =~ s/Mend/mend/r) }, 401, "$kind: another body");
}
my $got = send_it({ %{ (signed('gitea'))[0] }, 'X-Gitea-Signature' => 'x' }, '{}');
is($got->{json}{code}, 'unauthenticated', 'a wrong signature says so');
like($got->{headers}{'www-authenticate'} || '', qr/^Signature /, 'with what is needed');
unlike($got->{body}, qr/whsec/, 'and no more');
is(woken(), 0, 'none of these wakes anybody');

# --- nobody learns which projects there are
my $bare = $api->post('/api/projects', { name => 'bare', repository => 'https://git.example.org/o/bare.git' })->{json}{id};
my $gone = $api->post('/api/projects', { name => 'gone', repository => 'https://git.example.org/o/gone.git' })->{json}{id};
my $dead = $api->put("/api/projects/$gone/hook-secret")->{json}{secret};
$api->delete("/api/projects/$gone");
my ($headers, $body) = signed('gitea');
my %answers;
for (['wrong', $hook, 'wrong'], ['no secret', "/api/hooks/$bare", $secret], ['no project', '/api/hooks/99999', $secret], ['a deleted one', "/api/hooks/$gone", $dead]) {
	my $answer = send_it(sign_event('gitea', $_->[2], $body), $body, $_->[1]);
	$answer->{json}{requestId} = '';
	$answers{$_->[0]} = [ $answer->{status}, $answer->{json}, $answer->{headers}{'www-authenticate'} ];
}
is_deeply($answers{$_}, $answers{wrong}, "$_: the same answer as to a wrong signature") for 'no secret', 'no project', 'a deleted one';
is($answers{wrong}[0], 401, 'which is 401');
is_nothing(sub { send_it(sign_event('gitea', '', $body), $body, "/api/hooks/$bare") }, 401, 'no secret is not an empty one');
is_nothing(sub { send_it({ %{ sign_event('gitlab', '', $body) }, 'X-Gitlab-Token' => '' }, $body, "/api/hooks/$bare") }, 401, 'nor for GitLab');

# --- the window of Standard Webhooks
for ([ 0, 202 ], [ -280, 202 ], [ 280, 202 ], [ -320, 401 ], [ 320, 401 ], [ -86400, 401 ]) {
	my $text = push_body('gitlab-signed', commit => fresh());
	is(send_it(sign_event('gitlab-signed', $secret, $text, time => int(time) + $_->[0]), $text)->{status}, $_->[1], "signed at $_->[0] s: $_->[1]");
}
my $text = push_body('gitlab-signed', commit => fresh());
my $h = sign_event('gitlab-signed', $secret, $text);
is(send_it({ %$h, 'webhook-timestamp' => $h->{'webhook-timestamp'} + 1 }, $text)->{status}, 401, 'the time is signed');
is(send_it({ %$h, 'webhook-id' => 'other' }, $text)->{status}, 401, 'so is the number');
is(send_it({ %$h, 'webhook-timestamp' => 'soon' }, $text)->{status}, 400, 'a time that is none');
is(send_it({ %$h, 'webhook-signature' => "v1,AAAA v2,xyz $h->{'webhook-signature'}" }, $text)->{status}, 202, 'one right signature of several is enough');

# --- replays (CVE-2021-45327)
for my $kind (@HOOK_KINDS) {
	my ($headers, $body) = signed($kind);
	my $before = made();
	my $first = send_it($headers, $body);
	my $second = send_it($headers, $body);
	is($first->{status}, 202, "$kind: a delivery");
	is($second->{status}, 202, '... again');
	is($second->{body}, $first->{body}, '... the same answer');
	is(made(), $before + 1, '... one deployment');
}
{
	my $body = push_body('gitea', commit => fresh());
	my $first = send_it(sign_event('gitea', $secret, $body), $body)->{body};
	is(send_it(sign_event('gitea', $secret, $body), $body)->{body}, $first, 'a number that is not signed makes no new delivery');
	is(send_it(sign_event($_, $secret, $body), $body)->{body}, $first, "nor does it as an event of $_, which is not signed either") for qw(github forgejo);
	$body = push_body('gitlab', commit => fresh());
	$first = send_it(sign_event('gitlab', $secret, $body, delivery => 'n1'), $body)->{json}{data}[0]{id};
	isnt(send_it(sign_event('gitlab', $secret, $body, delivery => 'n2'), $body)->{json}{data}[0]{id}, $first, 'one of who knows the secret does');
	$body = push_body('gitlab', commit => fresh());
	my $bare = sign_event('gitlab', $secret, $body);
	delete @$bare{qw(X-Gitlab-Event-UUID Idempotency-Key)};
	is(send_it($bare, $body)->{body}, send_it($bare, $body)->{body}, 'without a number the body counts');
	my $old = send_it(sign_event('gitlab', $secret, $body, delivery => 'old'), $body)->{json}{data}[0]{id};
	$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE id = $old");
	my $again = send_it(sign_event('gitlab', $secret, $body, delivery => 'old'), $body)->{json}{data}[0];
	is_deeply([ @$again{qw(id status)} ], [ $old, 'canceled' ], 'the same deployment, as it is by now');
}
{ # at the same instant
	my ($headers, $body) = signed('gitea');
	my $before = made();
	my @socks = map { IO::Socket::SSL->new(PeerAddr => $api->url =~ s{https://}{}r, SSL_ca_file => $api->cacert, SSL_verifycn_name => 'localhost') or die "connect: $!" } 1 .. 12;
	my $text = "POST $hook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
	    . join('', map { "$_: $headers->{$_}\r\n" } keys %$headers) . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
	print {$_} $text for @socks;
	my @answers = map { my $s = $_; local $/; scalar <$s> } @socks;
	is(scalar(grep { /^HTTP\/1.1 202/ } @answers), 12, 'the same delivery twelve times at once: 202 for all');
	my %bodies = map { (split /\r\n\r\n/)[1] => 1 } @answers;
	is(scalar keys %bodies, 1, 'with one answer');
	is(made(), $before + 1, 'and one deployment');
}

# --- repositories
for my $path ('owner/other', 'other/name', 'xOwner/Name', 'Owner/Name.git', '', 'a/Owner/Name') {
	is_nothing(sub { push_it(gitea => commit => fresh(), path => $path) }, length $path ? 422 : 400, "a push of \"$path\"");
}
like(push_it(gitea => commit => fresh(), path => 'owner/other')->{json}{detail}, qr{owner/other.*project's}, 'it says what is wrong');

# --- triggers that cannot be used
my $third = pipeline('third');
change(envPresets => [ { key => 'NEED', label => 'n', type => 'input' } ],
	triggers => [ trigger('main', $one, NEED => 'x'), trigger('main', $two), trigger('main', $third, NEED => 'y') ]);
$db->sql(q(UPDATE project SET env_presets = JSON_SET(env_presets, '$[0].required', TRUE)));
$got = push_it(gitea => commit => fresh());
is_deeply([ map { $_->{pipelineId} } @{ $got->{json}{data} } ], [ $one, $third ], 'a variable is missing by now: the others are made');
like($api->log, qr/project $project: trigger 1 \(main\): \/envVars\/NEED is required/, 'and the log says what is not');
is($api->delete("/api/pipelines/$one")->{status}, 204, 'a pipeline is deleted');
is_deeply([ map { $_->{pipelineId} } @{ push_it(gitea => commit => fresh())->{json}{data} } ], [ $third ], 'the one that is left');
$api->delete("/api/pipelines/$third");
my @retried = signed('gitea');
my $none = is_nothing(sub { send_it(@retried) }, 422, 'none is left');
like($none->{json}{detail}, qr/trigger 0.*pipeline.*trigger 1.*NEED/s, 'it says why');
is_nothing(sub { push_it(gitea => branch => 'x', commit => fresh()) }, 204, 'a branch that nothing matches all the same');
change(envPresets => [], triggers => [ trigger('main', $two) ]);
is(send_it(@retried)->{status}, 202, 'mended, the same delivery is taken');
my $branch = push_it(gitea => branch => 'a..b', commit => fresh());
is($branch->{status}, 204, 'a branch that git would not have');
change(triggers => [ trigger('**', $two) ]);
is(push_it(gitea => branch => $_, commit => fresh())->{status}, 422, "a branch that is none: $_") for 'a..b', '-x', 'a b', 'x.lock';
is(push_it(gitea => branch => $_, commit => fresh())->{status}, 202, "a branch that is one: $_") for 'a;b', '$(id)', "a'b", "\x{c3}\x{a4}", 'a%2fb#c', 'HEAD';

# --- secrets of triggers
change(envPresets => [ map { { key => $_, label => $_, type => 'input', secret => $true } } qw(TOKEN OTHER) ],
	triggers => [ trigger('main', $two, TOKEN => 'swordfish-1', OPEN => 'o') ]);
change(envPresets => [ { key => 'TOKEN', label => 'T', type => 'input', secret => $true }, { key => 'OTHER', label => 'O', type => 'input', secret => $true, default => 'swordfish-2' } ]);
$got = push_it(gitea => commit => fresh());
is($got->{status}, 202, 'a trigger with secrets') or diag($got->{body});
my $id = $got->{json}{data}[0]{id};
is_deeply($api->get("/api/deployments/$id")->{json}{envVars}, { TOKEN => undef, OTHER => undef, OPEN => 'o' }, 'they read as null');
my ($opened, $plain) = run_cmd({ stdin => $db->sql("SELECT secret_vars FROM deployment WHERE id = $id") }, program('t/unit/unseal'), $api->dir . '/deploy.key', $project);
is_deeply(JSON::PP->new->utf8->decode($plain), { TOKEN => 'swordfish-1', OTHER => 'swordfish-2' }, 'and are there for the runner');
unlike($api->log, qr/swordfish/, 'the log has none');

# --- bodies and headers
my $sign = sub { my ($kind, $text, %o) = @_; return send_it({ %{ sign_event($kind, $secret, $text) }, %o }, $text) };
my %bad = ('no JSON' => 'x', 'nothing of a push' => '{}', 'an array' => '[]', 'a null' => 'null', 'half' => '{"ref":', 'a NUL' => "{\"ref\":\"a\0\"}",
	'no UTF-8' => "{\"ref\":\"\xff\"}", 'nested without end' => '[' x 500_000, 'nested in members' => '{"a":' x 100_000,
	'an object as ref' => '{"ref":{},"after":"' . 'a' x 40 . '","repository":{"full_name":"Owner/Name"}}',
	'a hash that is none' => push_body('gitea', commit => 'xyz'), 'a ref without a branch' => push_body('gitea', ref => 'refs/heads/'),
	'no repository' => push_body('gitea', body => { repository => undef }), 'a repository of another type' => push_body('gitea', body => { repository => [] }));
for my $what (sort keys %bad) {
	for my $kind (qw(gitea gitlab)) {
		is_nothing(sub { $sign->($kind, $bad{$what}) }, 400, "$kind: $what");
	}
}
is_nothing(sub { $sign->('gitea', '{"a":"' . 'x' x ((32 << 20) - 8) . '"}') }, 400, 'as large as may be');
is_nothing(sub { $sign->('gitea', '{"a":"' . 'x' x (32 << 20) . '"}') }, 413, 'larger');
my $big = push_body('gitea', commit => fresh(), body => { commits => [ map { { id => fresh(), message => 'm' x 100, added => [ map { "file$_" } 1 .. 40 ] } } 1 .. 1200 ] });
cmp_ok(length $big, '<', 1048576, 'many commits: ' . length $big);
is($sign->('gitea', $big)->{status}, 202, 'are taken');
for ('application/x-www-form-urlencoded', 'text/plain', '', undef) {
	$got = is_nothing(sub { $sign->('github', push_body('github'), 'Content-Type' => $_) }, 415, 'type ' . (defined $_ ? "\"$_\"" : 'none'));
}
like($got->{json}{detail}, qr{application/json}, 'it says which');
is(send_it({}, push_body('gitea'))->{status}, 400, 'no header of any server');
is(send_it({ 'X-Gitea-Event' => 'push' }, push_body('gitea'))->{status}, 401, 'no signature');
is($open->get($hook)->{status}, 405, 'it is no page');
is($open->post("$hook/x", '{}')->{status}, 404, 'nothing below it');
is($open->post('/api/hooks/x', '{}')->{status}, 404, 'no number');
is($sign->('gitea', push_body('gitea', commit => fresh()), Authorization => 'Bearer wrong')->{status}, 202, 'whoever asks does not matter');
is($sign->('gitea', push_body('gitea', commit => fresh()), Origin => 'https://evil.example', Cookie => '__Host-slipway=x')->{status}, 202, 'nor from where');

# --- a new secret
my $old = $secret;
$secret = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
$body = push_body('gitea', commit => fresh());
is(send_it(sign_event('gitea', $old, $body), $body)->{status}, 401, 'the old secret is over');
is(send_it(sign_event('gitea', $secret, $body), $body)->{status}, 202, 'the new one holds');

is(scalar(grep { m{\bsignal|Sanitizer|exited} } split /\n/, $api->log), 0, 'no worker was lost') or diag($api->log);

# --- without a key, and without a database
rename $api->dir . '/secret.key', $api->dir . '/away';
$api->stop_api;
$api->start_api;
is(push_it(gitea => commit => fresh())->{status}, 503, 'no key: 503');
rename $api->dir . '/away', $api->dir . '/secret.key';
$api->stop_api;
$api->start_api;
$db->stop;
is(push_it(gitea => commit => fresh())->{status}, 503, 'no database: 503, and it can be sent again');

done_testing;
