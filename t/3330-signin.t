#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by the Git server, end to end through nginx: which account becomes
# which user, what is rejected, and errors of the Git server.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API qw(bearer session_cookie);
use Slipway::Background;
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('ann', { id => 7, name => 'Ann Lee', email => 'ann@example.org' });

my %common = (db => $db, nginx => \&Slipway::Visitor::unlimited);
# As many CAs as a system has: a worker's memory is limited.
my $system = slurp('/etc/ssl/certs/ca-certificates.crt') || '';
my $ca = spew(tempdir() . '/all-ca.pem', $system . slurp($forge->ca), 0644);
my $conf = "[api]\nslow_workers = 4\n" . $forge->conf(tls_ca => $ca) . "[auth]\nadmins = boss, Chief\n";
my $api = Slipway::API->start(%common, conf => $conf);
my $none = $api->as('none');
my ($got, $back);

# The name of the cookie of a sign-in, by its state.
sub info { my ($token) = @_; return $none->get('/api/auth/info', bearer($token)) }
sub mark { return '__Host-slipway-signin-' . substr sha256_hex($_[0]), 0, 16 }
sub browser { return Slipway::Visitor->new($api, $forge) }
# Signs in; the response, and in a list the browser.
sub enter {
	my ($login, $b) = @_;
	$b ||= browser();
	my $got = $b->enter($login);
	return wantarray ? ($got, $b) : $got;
}
sub sessions { return $db->sql('SELECT COUNT(*) FROM session') }
sub value { return $db->sql("SELECT $_[1] FROM user WHERE valid = 1 AND username = '$_[0]'") }

# --- without a key
$got = $none->get('/api/auth/url');
is($got->{status}, 503, 'without a key GET /api/auth/url returns 503');
is($none->head('/api/auth/url')->{status}, 503, 'without a key HEAD /api/auth/url returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'without a key the error says how to create one');
is($none->post('/api/auth/login', { code => 'x', state => 'y' })->{status}, 503,
    'without a key POST /api/auth/login returns 503');
ok(make_keys($api->conf_file, $api->dir . '/secret.key'), 'slipway-admin key creates the keys for secrets');
$api->reload or die 'the workers were not replaced';

# --- the start of a sign-in
my $b = browser();
$got = $none->head('/api/auth/url');
is($got->{status}, 200, 'HEAD /api/auth/url says that signing in works');
like($got->{headers}{'x-git-server'}, qr/^Gitea \(localhost:\d+\)$/,
    'HEAD /api/auth/url names the Git server');
is($db->sql('SELECT COUNT(*) FROM signin'), 0, 'HEAD /api/auth/url starts no sign-in');
is($got->{headers}{'set-cookie'}, undef, 'HEAD /api/auth/url sets no cookie');
$got = $b->visit('GET', '/api/auth/url');
is($got->{status}, 200, 'GET /api/auth/url returns 200') or diag $got->{body};
my ($url, $state) = @{ $got->{json} }{qw(url state)};
like($state, qr/^[A-Za-z0-9_-]{43}$/, 'the state has 256 bits');
like($url, qr{^\Q@{[$forge->url]}\E/login/oauth/authorize\?}, 'the URL is at the Git server');
my %q = map { split /=/, $_, 2 } split /&/, (split /\?/, $url, 2)[1];
is($q{state}, $state, 'the URL carries the state');
is($q{code_challenge_method}, 'S256', 'the URL requests PKCE by S256');
like($q{code_challenge}, qr/^[A-Za-z0-9_-]{43}$/, 'the URL carries a PKCE challenge');
is(scalar(() = $b->set), 1, 'the start of a sign-in sets one cookie');
my $attributes = 'Secure; HttpOnly; SameSite=Lax';
like(($b->set)[0], qr/^\Q@{[mark($state)]}\E=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; $attributes$/,
    'the cookie of a sign-in binds it to the browser');
my $row = $db->sql('SELECT state_hash, browser_hash FROM signin');
is($row, sha256_hex($state) . "\t" . sha256_hex($b->jar->{mark($state)}),
    'the database stores only hashes of a sign-in');
my $again = $b->visit('GET', '/api/auth/url');
isnt($again->{json}{state}, $state, 'each sign-in has its own state');
isnt($b->jar->{mark($again->{json}{state})}, $b->jar->{mark($state)}, 'each sign-in has its own cookie');
isnt(($again->{json}{url} =~ /code_challenge=([^&]+)/)[0], $q{code_challenge},
    'each sign-in has its own challenge');

# --- without auth.signup only known users can sign in
$b = browser();
$got = $b->login($b->go('ann'));
is($got->{status}, 403, 'an unknown account cannot sign in') or diag $got->{body};
like($got->{json}{detail}, qr/user named "ann"/, 'an unknown account gets advice');
is(sessions(), 0, 'a rejected sign-in creates no session');
is($db->sql('SELECT COUNT(*) FROM user'), 0, 'a rejected sign-in creates no user');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'a rejected sign-in stores no token');
is(scalar(() = $b->set), 0, 'a rejected sign-in sets no cookie');

# --- a user that an administrator created
$api->post('/api/user', { username => 'Ann', role => 'deployer' });
$b = browser();
$back = $b->go('ann');
my $guest = $b->jar->{mark($back->{state})};
$got = $b->login($back);
is($got->{status}, 200, 'an account signs in as the user of its name') or diag $got->{body};
my $first = $got->{json};
like($first->{token}, qr/^sls_[A-Za-z0-9_-]{43}$/, 'a session has 256 bits');
is($first->{user}{role}, 'deployer', 'a user who signs in has the role that the administrator set');
is($first->{user}{username}, 'ann', 'the username follows the case of the Git server');
is($first->{user}{name}, 'Ann Lee', 'the full name comes from the Git server');
is($first->{user}{email}, 'ann@example.org', 'the email address comes from the Git server');
like($first->{user}{lastLoginAt}, qr/^\d{4}-/, 'lastLoginAt is the time of the sign-in');
is(scalar(() = $b->set), 2, 'a login sets two cookies');
is((grep { /^__Host-slipway=\Q$first->{token}\E; Path=\/; Max-Age=604800; $attributes$/ } $b->set), 1,
    'a login sets the cookie of the session');
is((grep { /^\Q@{[mark($back->{state})]}\E=; Path=\/; Max-Age=0; $attributes$/ } $b->set), 1,
    'a login deletes the cookie of the sign-in');
is($b->visit('GET', '/api/auth/info')->{json}{username}, 'ann', 'the cookie of a session works');
is(info($first->{token})->{status}, 200, 'a session works as a token');
is($db->sql('SELECT hash FROM session'), sha256_hex($first->{token}),
    'the database stores the hash of a session');
is(value('ann', "CONCAT(forge, ' ', forge_id)"), $forge->server . ' 7',
    'a user is bound to the server and the id of the account');
my ($token) = $forge->live_tokens('ann');
my $dump = $db->sql('SELECT * FROM git_token; SELECT * FROM signin; SELECT * FROM session');
unlike($dump, qr/\Q$token\E/, 'tokens of the Git server are stored encrypted');
unlike($api->log, qr/\Q$token\E|\Q$back->{code}\E|\Q$first->{token}\E/, 'the log contains no secret');
is(join(' ', $forge->complaints), '', 'every request to the Git server was well-formed');

# --- a sign-in ends once
my $former = browser();
$former->jar->{mark($back->{state})} = $guest;
for my $case (['by the same browser', $b], ['without cookies', browser()],
    ['with the deleted cookie', $former]) {
	my ($name, $with) = @$case;
	my $before = sessions();
	$got = $with->login($back);
	is($got->{status}, 400, "a second login with the same state $name returns 400");
	is(sessions(), $before, "a second login with the same state $name creates no session");
}

# --- session fixation: each sign-in creates a session, and ends the browser's old one
my $planted = 'sls_' . 'A' x 43;
$b->jar->{'__Host-slipway'} = $planted;
(my $second) = enter('ann', $b);
is($second->{status}, 200, 'a browser with a planted session cookie can sign in');
isnt($second->{json}{token}, $planted, 'a login ignores a planted session');
is($none->get('/api/auth/info', session_cookie($planted))->{status}, 401, 'a planted session stays invalid');
my $third = enter('ann', $b);
isnt($third->{json}{token}, $second->{json}{token}, 'each login creates a new session');
is(info($second->{json}{token})->{status}, 401, "a login ends the browser's previous session");
is(info($first->{token})->{status}, 200, 'a login keeps the session of another browser');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'a user has one token of the Git server');

# --- mismatches
$b = browser();
$back = $b->go('ann');
my $other = browser();
$other->go('ann');
my %body = (code => $back->{code}, state => $back->{state});
sub post_login { my ($body, %headers) = @_; return $b->visit('POST', '/api/auth/login', $body, %headers) }
my %wrong = (
	'by another browser' => sub { $other->login($back) },
	'by a new browser' => sub { browser()->login($back) },
	'with another state' => sub { $b->login({ %$back, state => 'x' x 43 }) },
	'with a longer state' => sub { $b->login({ %$back, state => "$back->{state}x" }) },
	'from another origin' => sub { post_login(\%body, Origin => 'https://evil.example') },
	'from another site' => sub { post_login(\%body, 'Sec-Fetch-Site' => 'cross-site') },
	'with another issuer' => sub { $b->login($back, iss => 'https://evil.example') },
	'with a longer issuer' => sub { $b->login($back, iss => $forge->server . '.evil.example') },
	'without a state' => sub { post_login({ code => $back->{code} }) },
	'with an access token' => sub { post_login({ %body, access_token => 'x' }) },
	'as a form' => sub {
		post_login("code=$back->{code}&state=$back->{state}",
		    'Content-Type' => 'application/x-www-form-urlencoded');
	},
);
my %status = ('from another origin' => 403, 'from another site' => 403, 'without a state' => 422,
	'with an access token' => 422, 'as a form' => 415);
sub recorded { return $db->sql("SELECT COUNT(*) FROM audit WHERE action = 'login' AND username = 'ann'") }
my ($before, $logins) = (sessions(), recorded());
for my $name (sort keys %wrong) {
	my $status = $status{$name} || 400;
	is($wrong{$name}->()->{status}, $status, "a login $name returns $status");
}
is(sessions(), $before, 'mismatched logins create no session');
is($b->login($back, iss => $forge->server . '/')->{status}, 200,
    'mismatched logins do not use up the sign-in');
is(recorded() - $logins, 1, 'the audit log has the accepted login and no rejected one');
$b = browser();
$back = $b->go('ann');
$db->sql('UPDATE signin SET created_at = created_at - INTERVAL 11 MINUTE');
is($b->login($back)->{status}, 400, 'a sign-in that began eleven minutes ago returns 400');

# --- several windows of one browser
for my $order ([0, 1, 2], [2, 1, 0], [1, 2, 0]) {
	$b = browser();
	my @windows = map { $b->go('ann') } 0 .. 2;
	is(scalar(grep { /signin/ } keys %{ $b->jar }), 3, 'three windows of a browser begin to sign in');
	my @ended = map { $b->login($windows[$_])->{status} } @$order;
	is("@ended", '200 200 200', "three windows of a browser sign in in the order @$order");
	is(join(' ', keys %{ $b->jar }), '__Host-slipway',
	    "after logins in the order @$order the browser has only the session cookie");
	is($b->visit('GET', '/api/auth/info')->{status}, 200,
	    "after logins in the order @$order the session works");
	is($b->login($_)->{status}, 400, "after logins in the order @$order none succeeds twice")
	    for @windows;
}
# Both requests were sent before either response came.
$b = browser();
my @at_once = map { my $o = browser(); [$o, $o->go('ann')] } 1, 2;
%{ $b->jar } = map { %{ $_->[0]->jar } } @at_once;
is($b->login($_->[1])->{status}, 200, 'sign-ins that a browser began simultaneously both succeed')
    for @at_once;

# --- login CSRF: a browser completes only its own sign-ins
my $mallory = browser();
my $trap = $mallory->go('ann');
$b = browser();
my $own = $b->go('ann');
$before = sessions();
is($b->login($trap)->{status}, 400, "a login with another browser's code and state returns 400");
$b->jar->{mark($trap->{state})} = $b->jar->{mark($own->{state})};
is($b->login($trap)->{status}, 400,
    "a login with another browser's code and state and an own cookie returns 400");
$b->jar->{mark($trap->{state})} = '';
is($b->login($trap)->{status}, 400,
    "a login with another browser's code and state and an empty cookie returns 400");
$b->jar->{'__Host-slipway-signin'} = $mallory->jar->{mark($trap->{state})};
is($b->login($trap)->{status}, 400, 'a login with the right cookie under another name returns 400');
is($b->login({ %$own, state => $trap->{state} })->{status}, 400,
    "a login with an own code and another browser's state returns 400");
is($b->login({ %$trap, state => $own->{state} })->{status}, 400,
    "a login with another browser's code and an own state returns 400");
is(sessions(), $before, 'login CSRF creates no session');
is($mallory->login($trap)->{status}, 200, 'login CSRF does not use up the sign-in of the other browser');
# A guest who saw the cookies of a browser cannot complete its later sign-ins.
$b = browser();
$b->go('ann');
my %known = %{ $b->jar };
my $later = $b->go('ann');
my $thief = browser();
%{ $thief->jar } = %known;
is($thief->login($later)->{status}, 400, 'a cookie that a guest saw does not complete a later sign-in');
my ($seen) = values %known;
$thief->jar->{mark($later->{state})} = $seen;
is($thief->login($later)->{status}, 400,
    'a cookie that a guest saw does not complete a later sign-in under its name');
is($b->login($later)->{status}, 200, 'the browser that began the later sign-in completes it');

# --- abandoned sign-ins do not fill a browser
$b = browser();
my @begun = map { $b->go('ann') } 1 .. 7;
is(scalar keys %{ $b->jar }, 7, 'a browser keeps seven sign-ins');
$b->jar->{mark($_->{state})} or die for @begun;
# This browser sorts cookies by name; the service deletes the first ones.
push @begun, $b->go('ann') for 1 .. 6;
is(scalar keys %{ $b->jar }, 8, 'a browser keeps at most eight sign-ins');
is($b->login($begun[-1])->{status}, 200, 'the newest sign-in of a browser is kept');
my $crowd = { Cookie => join '; ', map { "__Host-slipway-signin-$_=x" } map { sprintf '%016x', $_ } 1 .. 40 };
$got = $none->get('/api/auth/url', $crowd);
is($got->{status}, 200, 'a browser with forty sign-ins can begin another');
my @set = @{ $got->{headers}{'set-cookie'} };
is(scalar(grep { /Max-Age=0/ } @set), 8, 'a response deletes at most eight sign-ins');
is((grep { /Max-Age=600/ } @set), 1, 'a response that deletes sign-ins sets the new one');
my @foreign = map { "__Host-slipway-signin-$_=x" } 'A' x 16, 'a' x 15, 'a' x 17, '', ('%0d%0aX: y') x 20;
$got = $none->get('/api/auth/url', { Cookie => join '; ', @foreign });
ok(!ref $got->{headers}{'set-cookie'}, 'cookies with other names are left alone');

# --- codes that the Git server rejects
sub fresh { $b = browser(); return $b->go('ann') }
$before = sessions();
$back = fresh();
my $used = $back->{code};
$b->login($back);
$before = sessions();
$got = $b->login({ %{ fresh() }, code => $used });
is($got->{status}, 400, 'a used code returns 400');
like($got->{json}{detail}, qr/invalid_grant/, 'the error for a used code quotes the Git server');
$back = fresh();
$forge->expire_codes;
is($b->login($back)->{status}, 400, 'an expired code returns 400');
is($b->login({ %{ fresh() }, code => 'nonsense' })->{status}, 400, 'an unknown code returns 400');
my $theirs = fresh()->{code};
is($b->login({ %{ fresh() }, code => $theirs })->{status}, 400,
    'a code of another sign-in returns 400 (PKCE)');
$forge->store->change(sub { $_[0]{clients}{other} = { redirect_uris => [$forge->redirect_uri] } });
$back = fresh();
my $foreign = $forge->authorize($back->{url} =~ s/client_id=[^&]+/client_id=other/r, 'ann');
is($b->login({ %$back, code => $foreign->{code} })->{status}, 400, 'a code for another client returns 400');
is(sessions(), $before, 'rejected codes create no session');
$back = do { $b = browser(); $b->go('ann', deny => 1) };
is($back->{error}, 'access_denied', 'a user who denies access returns with access_denied');
ok(!defined $back->{code}, 'a user who denies access returns without a code');

# --- invalid responses of the Git server: [path, fault, status]
my $path = '/login/oauth/access_token';
my @json = (kind => 'status', status => 200, type => 'application/json');
my %error = (kind => 'status', type => 'application/json');
my %html = (kind => 'status', type => 'text/html');
my %faults = (
	'200 and an error' => [$path, [@json,
	    body => '{"error":"bad_verification_code","error_description":"The code is wrong."}'], 400],
	'HTML' => [$path, [%html, status => 200, body => '<h1>Sign in</h1>'], 502],
	'nothing' => [$path, [@json, body => ''], 502],
	'no token' => [$path, [@json, body => '{"token_type":"bearer"}'], 502],
	'a token of another type' => [$path, [@json, body => '{"access_token":"x","token_type":"mac"}'], 502],
	'a token with a line break' => [$path, [@json,
	    body => '{"access_token":"x\\r\\nX-Evil: 1","token_type":"bearer"}'], 502],
	'a token with a smaller scope' => [$path, [@json,
	    body => '{"access_token":"x","token_type":"bearer","scope":"read:user"}'], 400],
	'500' => [$path, [%html, status => 500, body => 'oops'], 502],
	'a closed connection' => [$path, [kind => 'drop'], 502],
	'an account without an id' => ['/api/v1/user', [@json, body => '{"login":"ann"}'], 502],
	'an account whose id is not a number' => ['/api/v1/user',
		[@json, body => '{"id":"7 or 8","login":"ann"}'], 502],
	'401 to its own token' => ['/api/v1/user', [%error, status => 401, body => '{"message":"no"}'], 502],
	'404 for the account' => ['/api/v1/user', [%error, status => 404, body => '{"message":"not found"}'],
		502],
	'404 for codes' => [$path, [%html, status => 404, body => '<p>'], 502],
	'an account as HTML' => ['/api/v1/user', [%html, status => 200, body => '<p>'], 502],
);
for my $name (sort keys %faults) {
	my ($at, $fault, $status) = @{ $faults{$name} };
	$back = fresh();
	$forge->fault($at, @$fault);
	$got = $b->login($back);
	is($got->{status}, $status, "a login to which the Git server returns $name returns $status")
	    or diag $got->{body};
	cmp_ok(length($got->{json}{detail} || ''), '>', 10,
	    "a login to which the Git server returns $name explains it")
	    and unlike($got->{body}, qr/x{40}|X-Evil/,
	    "a login to which the Git server returns $name shows no token");
	$forge->clear_faults;
	is($b->login($back)->{status}, 400,
	    "a login to which the Git server returned $name cannot be repeated");
}
is(sessions(), $before, 'invalid responses of the Git server create no session');
is(enter('ann')->{status}, 200, 'signing in succeeds after invalid responses of the Git server');

# --- renamed accounts
$forge->rename_user(ann => 'anna');
$got = enter('anna');
is($got->{status}, 200, 'a renamed account can sign in');
is($got->{json}{user}{id}, $first->{user}{id}, 'a renamed account signs in as the same user');
is($got->{json}{user}{username}, 'anna', 'the username follows a renamed account');
$forge->user('ann', { id => 8 });
$got = enter('ann');
is($got->{status}, 403, 'a new account with the old name of another cannot sign in as its user');
$api->post('/api/user', { username => 'ann', role => 'admin' });
$forge->rename_user(anna => 'annabel');
$forge->user('anna', { id => 9 });
$got = enter('anna');
is($got->{status}, 403, 'a new account with the present username of another cannot sign in as its user');
like($got->{json}{detail}, qr/belongs to another account/,
    'the error says that the user belongs to another account');
$forge->rename_user(ann => 'oldann');
$forge->rename_user(annabel => 'ann');
$got = enter('ann');
is($got->{status}, 200, 'an account renamed to a username in use can sign in');
is($got->{json}{user}{username}, 'anna', 'the username does not follow to one in use');
is($got->{json}{user}{role}, 'deployer', 'an account renamed to a username in use keeps its role');
is(value('ann', 'forge_id'), 'NULL', 'the user with that username stays unbound');
$forge->user('ANNA', { id => 24 });
is(enter('ANNA')->{status}, 403, 'an account with the username of another in another case cannot sign in');
$db->sql("INSERT INTO user (username, role) VALUES ('m\xc3\xbcller', 'admin')");
$forge->user('muller', { id => 30 });
is(enter('muller')->{status}, 403, 'an account with a username that differs by an accent cannot sign in');
$forge->user('unbound', { id => 31 });
$db->sql('INSERT INTO user (username, role, forge, forge_id)'
    . " VALUES ('unbound', 'admin', 'https://other.example', '31')");
is(enter('unbound')->{status}, 403, 'an account with the same id at another server cannot sign in');

# --- administrators by configuration
$forge->user('Boss', { id => 40 });
$got = enter('Boss');
is($got->{status}, 200, 'an account of auth.admins can sign in') or diag $got->{body};
is($got->{json}{user}{role}, 'admin', 'an account of auth.admins becomes an administrator');
$forge->rename_user(Boss => 'exboss');
$forge->user('boss', { id => 41 });
is(enter('boss')->{status}, 403, 'another account that takes a login of auth.admins cannot sign in');
is(enter('exboss')->{json}{user}{role}, 'admin', 'a renamed administrator stays one');
is(enter('boss')->{status}, 403,
    'another account with a login of auth.admins cannot sign in even if the username is free');
$forge->user('chief', { id => 42 });
$api->post('/api/user', { username => 'chief', role => 'viewer' });
is(enter('chief')->{json}{user}{role}, 'admin',
    'an existing user of auth.admins becomes an administrator at the first sign-in');
$api->put('/api/user/' . value('chief', 'id'), { role => 'viewer' });
is(enter('chief')->{json}{user}{role}, 'viewer', 'a demoted user of auth.admins stays demoted');

# --- inactive and deleted users
my $id = value('chief', 'id');
my ($session) = map { $_->{json}{token} } scalar enter('chief');
$api->put("/api/user/$id", { status => 'inactive' });
is(info($session)->{status}, 401, 'the session of an inactive user returns 401');
$got = enter('chief');
is($got->{status}, 403, 'an inactive user cannot sign in');
like($got->{json}{detail}, qr/disabled/, 'the error says that the user is disabled');
is(value('chief', 'status'), 'inactive', 'an attempt to sign in does not activate the user');
$api->delete("/api/user/$id");
is(enter('chief')->{status}, 403, 'a deleted user cannot sign in');
is($db->sql("SELECT COUNT(*) FROM git_token WHERE user_id = $id"), 0,
    'deleting a user deletes the token of the Git server');

# --- with auth.remote_user names belong to nginx, not to the Git server
$db->sql("INSERT INTO user (username, role) VALUES ('nora', 'admin')");
$forge->user('nora', { id => 4711 });
my $beside = browser();
my $begun = $beside->go("nora");
$api->write_conf($conf . "remote_user = yes\n");
$api->reload or die 'the workers were not replaced';
is($none->get('/api/auth/url')->{status}, 503, 'with auth.remote_user GET /api/auth/url returns 503');
$got = $beside->login($begun);
is($got->{status}, 503, 'with auth.remote_user POST /api/auth/login returns 503') or diag $got->{body};
like($got->{json}{detail}, qr/auth\.remote_user/, 'the error names auth.remote_user');
is(value('nora', 'COALESCE(forge, "none")'), 'none',
    'a user of nginx is not bound to an account of the Git server');

# --- auth.signup
$forge->user('new', { id => 50, email => 'not an address', name => "with\nbreak" });
$api->reload($conf . "signup = viewer\n") or die 'the workers were not replaced';
$got = enter('new');
is($got->{status}, 200, 'with auth.signup an unknown account can sign in') or diag $got->{body};
is($got->{json}{user}{role}, 'viewer', 'with auth.signup a new user gets the configured role');
is($got->{json}{user}{email}, undef, 'an invalid email address of an account is omitted');
$got = enter('chief');
is($got->{status}, 403, 'with auth.signup a deleted user cannot sign in');
like($got->{json}{detail}, qr/deleted/, 'the error says that the user was deleted');
$api->post('/api/user', { username => 'chief', role => 'viewer' });
is(enter('chief')->{status}, 200, 'a deleted user can sign in once an administrator creates the user again');
is(enter('boss')->{json}{user}{role}, 'viewer',
    'another account with a login of auth.admins gets the role of auth.signup');

# --- simultaneous logins of one sign-in: one session. All have read the sign-in
# before one takes it.
my $grant = $forge->token('new');
for my $round ('if the server accepts a code once', 'if the server accepts a code again') {
	$b = browser();
	$back = $b->go('new');
	$forge->fault($path, @json, body => qq({"access_token":"$grant","token_type":"bearer"}))
	    if $round =~ /again/;
	my $before = sessions();
	my $holder = $db->hold('SELECT 1 FROM signin FOR UPDATE');
	my @runs = map {
		background(sub { delete $api->{http}; return $b->login($back)->{status} });
	} 1 .. 4;
	ok(poll(60, sub { $db->waiting == 4 }), "four simultaneous logins wait, $round");
	$db->let_go($holder);
	my @said = map { $_->result } @runs;
	$forge->clear_faults;
	is(join(' ', sort @said), '200 400 400 400', "one of four simultaneous logins succeeds, $round");
	is(sessions(), $before + 1, "four simultaneous logins create one session, $round");
}

# --- simultaneous first sign-ins of one account
$forge->user('twin', { id => 77 });
$db->sql("INSERT INTO user (username, role) VALUES ('twin', 'viewer')");
my @twins = map { my $b = browser(); [ $b, $b->go('twin') ] } 1 .. 2;
# A login in the background: "status body".
sub login_later {
	my ($b, $back) = @_;
	return background(sub {
		delete $api->{http};
		my $got = $b->login($back);
		return "$got->{status} $got->{body}";
	});
}
my $holder = $db->hold("SELECT id FROM user WHERE username = 'twin' FOR UPDATE");
my @runs = map { login_later(@$_) } @twins;
ok(poll(60, sub { $db->waiting == 2 }), 'two first sign-ins of one account wait for the user');
$db->let_go($holder);
like($_->result, qr/^200 /, 'two simultaneous first sign-ins of one account both succeed') for @runs;

# --- rotated keys
$b = browser();
$back = $b->go('new');
ok(make_keys($api->conf_file, $api->dir . '/secret.key'), 'slipway-admin key rotates the keys');
$api->reload or die 'the workers were not replaced';
is($b->login($back)->{status}, 200, 'a sign-in that began before a rotation of keys succeeds');

# --- a Git server that is down
$back = fresh();
$forge->stop_nginx;
my $began = stopwatch();
$got = $b->login($back);
is($got->{status}, 502, 'a login while the Git server is down returns 502');
cmp_ok($began->(), '<', deadline(30), 'a login while the Git server is down fails in time');
$forge->start_nginx;
is(info($first->{token})->{status}, 200, 'sessions work while the Git server is down');

# --- a slow Git server: all requests of a login share ten seconds, or more where this
# machine was slow when the test began
my $limit = $forge->patience + 2;
my $took = best_of($limit, sub {
	$forge->fault($path, kind => 'delay', seconds => 0.55 * $forge->patience, times => 1);
	$forge->fault('/api/v1/user', kind => 'silent', times => 1);
	$back = fresh();
	$began = stopwatch();
	$got = $b->login($back);
	$forge->clear_faults;
	return $began->();
});
is($got->{status}, 504, 'a login returns 504 if the Git server is slow and then silent') or diag $got->{body};
cmp_ok($took, '<', deadline($limit),
    'all requests of a login with a slow Git server share one time limit');

# --- a slow Git server delays only logins
my @slow = map { my $o = browser(); [$o, $o->go('new')] } 1 .. 2;
$forge->fault($path, kind => 'silent');
my @waiting = map { login_later(@$_) } @slow;
poll(10, sub { $forge->requests(qr/\Q$path\E$/) > 0 });
for my $what ('/api/auth/info', '/api/projects', '/api/auth/tokens') {
	my $took = best_of(3, sub {
		my $began = stopwatch();
		$got = $none->get($what, bearer($first->{token}));
		return $began->();
	});
	is($got->{status}, 200, "$what is served while logins wait for the Git server");
	cmp_ok($took, '<', deadline(3), "$what is served at once while logins wait for the Git server");
}
my @slow_results = map { $_->result } @waiting;
$forge->clear_faults;
like($_, qr/^50[24] /, 'a login to a silent Git server fails') for @slow_results;

# --- MariaDB fails during a login
$back = fresh();
$forge->forget_requests;
$forge->fault('/api/v1/user', kind => 'delay', seconds => 2, times => 1);
my $lost = login_later($b, $back);
poll(10, sub { $forge->requests(qr{/user$}) }) or die 'no request';
$before = sessions();
$db->kill9;
like($lost->result, qr/^503 /, 'a login during which MariaDB fails returns 503');
$db->resume;
$forge->clear_faults;
is(sessions(), $before, 'a login during which MariaDB fails creates no session');
is($b->login($back)->{status}, 400, 'a login during which MariaDB failed cannot be repeated');
is(enter('ann')->{status}, 200, 'a new sign-in succeeds once MariaDB is back');

# --- signing out
($got, $b) = enter('new');
is($b->visit('POST', '/api/auth/logout', undef, Origin => $api->url)->{status}, 204,
    'POST /api/auth/logout returns 204');
ok(!exists $b->jar->{'__Host-slipway'}, 'signing out deletes the cookie');
is(info($got->{json}{token})->{status}, 401, 'signing out ends the session');
is(join(' ', $forge->complaints), '', 'every request to the Git server was well-formed');
$forge->stop;

done_testing;
