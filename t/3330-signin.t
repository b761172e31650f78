#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Signing in by the Git server, whole and through nginx: who becomes which
# user, what is refused, what the Git server may do wrong.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('ann', { id => 7, name => 'Ann Lee', email => 'ann@example.org' });

my %common = (db => $db, nginx => \&Slipway::Browser::unlimited);
# As many CAs as a system has: a worker's memory is limited.
my $ca = spew(tempdir() . '/all-ca.pem', (slurp('/etc/ssl/certs/ca-certificates.crt') || '') . slurp($forge->ca), 0644);
my $conf = "[api]\nslow_workers = 4\n" . $forge->conf(tls_ca => $ca) . "[auth]\nadmins = boss, Chief\n";
my $api = Slipway::API->start(%common, conf => $conf);
my $none = $api->as('none');
my ($got, $back);

# The cookie of a sign-in that was begun, by its state.
sub mark { return '__Host-slipway-signin-' . substr sha256_hex($_[0]), 0, 16 }
sub browser { return Slipway::Browser->new($api, $forge) }
sub enter { my ($login, $b) = @_; $b ||= browser(); my $got = $b->enter($login); return wantarray ? ($got, $b) : $got }
sub sessions { return $db->sql('SELECT COUNT(*) FROM session') }
sub value { return $db->sql("SELECT $_[1] FROM user WHERE valid = 1 AND username = '$_[0]'") }

# --- without a key nothing could be kept
$got = $none->get('/api/auth/url');
is($got->{status}, 503, 'without a key nobody signs in');
like($got->{json}{detail}, qr/slipway-admin key/, 'and is told what to do');
is($none->post('/api/auth/login', { code => 'x', state => 'y' })->{status}, 503, 'at the end too');
my $key = $api->dir . '/secret.key';
sub key_make {
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
	is($status, 0, 'slipway-admin key') or diag "$out$err";
	chown 0, (getpwnam 'nobody')[3], $key if is_root();
}
sub reload {
	my $before = join ' ', $api->workers;
	kill 'HUP', $api->pid;
	poll(15, sub { my %old = map { $_ => 1 } split / /, $before; !grep { $old{$_} } $api->workers }) or die 'no reload';
}
key_make();
reload();

# --- begin
my $b = browser();
$got = $b->visit('GET', '/api/auth/url');
is($got->{status}, 200, 'where to sign in') or diag $got->{body};
my ($url, $state) = @{ $got->{json} }{qw(url state)};
like($state, qr/^[A-Za-z0-9_-]{43}$/, 'state has 256 bits');
like($url, qr{^\Q@{[$forge->url]}\E/login/oauth/authorize\?}, 'at the Git server');
my %q = map { split /=/, $_, 2 } split /&/, (split /\?/, $url, 2)[1];
is($q{state}, $state, 'state');
is($q{code_challenge_method}, 'S256', 'PKCE by S256');
like($q{code_challenge}, qr/^[A-Za-z0-9_-]{43}$/, 'a challenge');
is(scalar(() = $b->set), 1, 'one cookie');
like(($b->set)[0], qr/^\Q@{[mark($state)]}\E=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/, 'binds the browser');
my $row = $db->sql('SELECT state_hash, browser_hash FROM signin');
is($row, sha256_hex($state) . "\t" . sha256_hex($b->jar->{mark($state)}), 'the database knows hashes only');
my $again = $b->visit('GET', '/api/auth/url');
isnt($again->{json}{state}, $state, 'the next state is another');
isnt($b->jar->{mark($again->{json}{state})}, $b->jar->{mark($state)}, 'and what binds it');
isnt(($again->{json}{url} =~ /code_challenge=([^&]+)/)[0], $q{code_challenge}, 'as is the challenge');

# --- closed: nobody comes in whom nobody let in
$b = browser();
$got = $b->login($b->go('ann'));
is($got->{status}, 403, 'a stranger is not let in') or diag $got->{body};
like($got->{json}{detail}, qr/user named "ann"/, 'and is told whom to ask for what');
is(sessions(), 0, 'no session');
is($db->sql('SELECT COUNT(*) FROM user'), 0, 'no user');
is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'no token');
is(scalar(() = $b->set), 0, 'no cookie');

# --- whom an administrator has made
$api->post('/api/user', { username => 'Ann', role => 'deployer' });
$b = browser();
$back = $b->go('ann');
my $guest = $b->jar->{mark($back->{state})};
$got = $b->login($back);
is($got->{status}, 200, 'a user made by name signs in') or diag $got->{body};
my $first = $got->{json};
like($first->{token}, qr/^sls_[A-Za-z0-9_-]{43}$/, 'with a session of 256 bits');
is($first->{user}{role}, 'deployer', 'the role is what the administrator gave');
is($first->{user}{username}, 'ann', 'the name is written as at the Git server');
is($first->{user}{name}, 'Ann Lee', 'with its name');
is($first->{user}{email}, 'ann@example.org', 'and mail');
like($first->{user}{lastLoginAt}, qr/^\d{4}-/, 'the sign-in is dated');
is(scalar(() = $b->set), 2, 'two cookies');
is((grep { /^__Host-slipway=\Q$first->{token}\E; Path=\/; Max-Age=604800; Secure; HttpOnly; SameSite=Lax$/ } $b->set), 1, 'the session');
is((grep { /^\Q@{[mark($back->{state})]}\E=; Path=\/; Max-Age=0; Secure; HttpOnly; SameSite=Lax$/ } $b->set), 1, 'the other is taken back');
is($b->visit('GET', '/api/auth/info')->{json}{username}, 'ann', 'the cookie works');
is($none->get('/api/auth/info', { Authorization => "Bearer $first->{token}" })->{status}, 200, 'the token too');
is($db->sql('SELECT hash FROM session'), sha256_hex($first->{token}), 'the database has its hash');
is(value('ann', "CONCAT(forge, ' ', forge_id)"), $forge->server . ' 7', 'who it is, is the server and the number');
my ($token) = $forge->live_tokens('ann');
my $dump = $db->sql('SELECT * FROM git_token; SELECT * FROM signin; SELECT * FROM session');
unlike($dump, qr/\Q$token\E/, 'tokens of the Git server are sealed');
unlike(slurp($api->dir . '/../slipway-api-1.log') || $api->log, qr/\Q$token\E|\Q$back->{code}\E|\Q$first->{token}\E/, 'the log has no secret');
is(join(' ', $forge->complaints), '', 'the Git server had nothing to complain of');

# --- one use: nothing of it works twice
for my $case (['the same again', $b, {}], ['without cookies', browser(), {}], ['with the old cookie', do { my $o = browser(); $o->jar->{mark($back->{state})} = $guest; $o }, {}]) {
	my ($name, $with) = @$case;
	my $before = sessions();
	$got = $with->login($back);
	is($got->{status}, 400, "a state that was used: $name");
	is(sessions(), $before, 'no session');
}

# --- fixation: each sign-in is a new session, the browser's old one ends
my $planted = 'sls_' . 'A' x 43;
$b->jar->{'__Host-slipway'} = $planted;
(my $second) = enter('ann', $b);
is($second->{status}, 200, 'with a planted cookie');
isnt($second->{json}{token}, $planted, 'the session is another');
is($none->get('/api/auth/info', { Cookie => "__Host-slipway=$planted" })->{status}, 401, 'the planted one is nobody\'s');
my $third = enter('ann', $b);
isnt($third->{json}{token}, $second->{json}{token}, 'the next is new again');
is($none->get('/api/auth/info', { Authorization => "Bearer $second->{json}{token}" })->{status}, 401, 'the one before has ended');
is($none->get('/api/auth/info', { Authorization => "Bearer $first->{token}" })->{status}, 200, 'that of another browser has not');
is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'the Git server\'s token is the user\'s');

# --- what does not fit together
$b = browser();
$back = $b->go('ann');
my $other = browser();
$other->go('ann');
my %wrong = (
	'another browser' => sub { $other->login($back) },
	'no browser' => sub { browser()->login($back) },
	'another state' => sub { $b->login({ %$back, state => 'x' x 43 }) },
	'a state with more' => sub { $b->login({ %$back, state => "$back->{state}x" }) },
	'another page' => sub { $b->visit('POST', '/api/auth/login', { code => $back->{code}, state => $back->{state} }, Origin => 'https://evil.example') },
	'another site' => sub { $b->visit('POST', '/api/auth/login', { code => $back->{code}, state => $back->{state} }, 'Sec-Fetch-Site' => 'cross-site') },
	'another server' => sub { $b->login($back, iss => 'https://evil.example') },
	'a longer server' => sub { $b->login($back, iss => $forge->server . '.evil.example') },
	'a body without state' => sub { $b->visit('POST', '/api/auth/login', { code => $back->{code} }) },
	'a token instead' => sub { $b->visit('POST', '/api/auth/login', { access_token => 'x', state => $back->{state}, code => $back->{code} }) },
	'a form' => sub { $b->visit('POST', '/api/auth/login', "code=$back->{code}&state=$back->{state}", 'Content-Type' => 'application/x-www-form-urlencoded') },
);
my %status = ('another page' => 403, 'another site' => 403, 'a body without state' => 422, 'a token instead' => 422, 'a form' => 415);
my $before = sessions();
for my $name (sort keys %wrong) {
	is($wrong{$name}->()->{status}, $status{$name} || 400, $name);
}
is(sessions(), $before, 'none of these made a session');
is($b->login($back, iss => $forge->server . '/')->{status}, 200, 'and none used it up: now it works, with its server named');
$b = browser();
$back = $b->go('ann');
$db->sql('UPDATE signin SET created_at = created_at - INTERVAL 11 MINUTE');
is($b->login($back)->{status}, 400, 'eleven minutes old');

# --- windows of one browser sign in at once, in any order
for my $order ([0, 1, 2], [2, 1, 0], [1, 2, 0]) {
	$b = browser();
	my @windows = map { $b->go('ann') } 0 .. 2;
	is(scalar(grep { /signin/ } keys %{ $b->jar }), 3, 'three windows begin');
	my @ended = map { $b->login($windows[$_])->{status} } @$order;
	is("@ended", '200 200 200', "and end as @$order");
	is(join(' ', keys %{ $b->jar }), '__Host-slipway', 'the last session is left');
	is($b->visit('GET', '/api/auth/info')->{status}, 200, 'and works');
	is($b->login($_)->{status}, 400, 'none of them ends twice') for @windows;
}
# neither answer had come when the other asked
$b = browser();
my @at_once = map { my $o = browser(); [$o, $o->go('ann')] } 1, 2;
%{ $b->jar } = map { %{ $_->[0]->jar } } @at_once;
is($b->login($_->[1])->{status}, 200, 'begun at the very same time') for @at_once;

# --- login CSRF: a browser ends no sign-in but its own
my $mallory = browser();
my $trap = $mallory->go('ann');
$b = browser();
my $own = $b->go('ann');
$before = sessions();
is($b->login($trap)->{status}, 400, 'a code and state of somebody else\'s browser');
$b->jar->{mark($trap->{state})} = $b->jar->{mark($own->{state})};
is($b->login($trap)->{status}, 400, 'under a cookie of one\'s own');
$b->jar->{mark($trap->{state})} = '';
is($b->login($trap)->{status}, 400, 'an empty one');
$b->jar->{'__Host-slipway-signin'} = $mallory->jar->{mark($trap->{state})};
is($b->login($trap)->{status}, 400, 'or one of another name');
is($b->login({ %$own, state => $trap->{state} })->{status}, 400, 'one\'s own code for that state');
is($b->login({ %$trap, state => $own->{state} })->{status}, 400, 'that code for one\'s own state');
is(sessions(), $before, 'nobody is signed in by any of these');
is($mallory->login($trap)->{status}, 200, 'where it was begun it ends');
# what a guest of the same browser knows helps with no later sign-in
$b = browser();
$b->go('ann');
my %known = %{ $b->jar };
my $later = $b->go('ann');
my $thief = browser();
%{ $thief->jar } = %known;
is($thief->login($later)->{status}, 400, 'a cookie that was seen binds no later sign-in');
my ($seen) = values %known;
$thief->jar->{mark($later->{state})} = $seen;
is($thief->login($later)->{status}, 400, 'under any name');
is($b->login($later)->{status}, 200, 'which ends where it was begun');

# --- sign-ins that were given up do not fill a browser
$b = browser();
my @begun = map { $b->go('ann') } 1 .. 7;
is(scalar keys %{ $b->jar }, 7, 'seven are begun');
$b->jar->{mark($_->{state})} or die for @begun;
# this browser sorts by name; the service ends those that come first
push @begun, $b->go('ann') for 1 .. 6;
is(scalar keys %{ $b->jar }, 8, 'never more than eight are kept');
is($b->login($begun[-1])->{status}, 200, 'the newest is one of them');
my $crowd = { Cookie => join '; ', map { "__Host-slipway-signin-$_=x" } map { sprintf '%016x', $_ } 1 .. 40 };
$got = $none->get('/api/auth/url', $crowd);
is($got->{status}, 200, 'a browser with forty');
my @set = @{ $got->{headers}{'set-cookie'} };
is(scalar(grep { /Max-Age=0/ } @set), 8, 'is told to forget some');
is((grep { /Max-Age=600/ } @set), 1, 'and of the one that was begun');
$got = $none->get('/api/auth/url', { Cookie => join '; ', map { "__Host-slipway-signin-$_=x" } 'A' x 16, 'a' x 15, 'a' x 17, '', ('%0d%0aX: y') x 20 });
ok(!ref $got->{headers}{'set-cookie'}, 'names that are none of the service are let be');

# --- codes that the Git server refuses
sub fresh { $b = browser(); return $b->go('ann') }
$before = sessions();
$back = fresh();
my $used = $back->{code};
$b->login($back);
$before = sessions();
$got = $b->login({ %{ fresh() }, code => $used });
is($got->{status}, 400, 'a code that was used');
like($got->{json}{detail}, qr/invalid_grant/, 'in the Git server\'s words');
$back = fresh();
$forge->expire_codes;
is($b->login($back)->{status}, 400, 'a code that has expired');
is($b->login({ %{ fresh() }, code => 'nonsense' })->{status}, 400, 'a code that is none');
my $theirs = fresh()->{code};
is($b->login({ %{ fresh() }, code => $theirs })->{status}, 400, 'a code of another sign-in: PKCE');
$forge->store->change(sub { $_[0]{clients}{other} = { redirect_uris => [$forge->redirect_uri] } });
$back = fresh();
my $foreign = $forge->authorize($back->{url} =~ s/client_id=[^&]+/client_id=other/r, 'ann');
is($b->login({ %$back, code => $foreign->{code} })->{status}, 400, 'a code for another client');
is(sessions(), $before, 'none of these made a session');
$back = do { $b = browser(); $b->go('ann', deny => 1) };
is($back->{error}, 'access_denied', 'the user says no: the page is told');
ok(!defined $back->{code}, 'and there is nothing to send');

# --- answers that are wrong: [path, fault, status]
my $path = '/login/oauth/access_token';
my @json = (kind => 'status', status => 200, type => 'application/json');
my %grant = (access_token => 'x' x 40, token_type => 'bearer');
my %faults = (
	'200 and an error' => [$path, [@json, body => '{"error":"bad_verification_code","error_description":"The code is wrong."}'], 400],
	'HTML' => [$path, [kind => 'status', status => 200, type => 'text/html', body => '<h1>Sign in</h1>'], 502],
	'nothing' => [$path, [@json, body => ''], 502],
	'no token' => [$path, [@json, body => '{"token_type":"bearer"}'], 502],
	'a token of another type' => [$path, [@json, body => '{"access_token":"x","token_type":"mac"}'], 502],
	'a token with a line break' => [$path, [@json, body => '{"access_token":"x\\r\\nX-Evil: 1","token_type":"bearer"}'], 502],
	'less than was asked for' => [$path, [@json, body => '{"access_token":"x","token_type":"bearer","scope":"read:user"}'], 400],
	'500' => [$path, [kind => 'status', status => 500, type => 'text/html', body => 'oops'], 502],
	'a connection cut' => [$path, [kind => 'drop'], 502],
	'an account without a number' => ['/api/v1/user', [@json, body => '{"login":"ann"}'], 502],
	'an account whose number is text' => ['/api/v1/user', [@json, body => '{"id":"7 or 8","login":"ann"}'], 502],
	'a token that does not work' => ['/api/v1/user', [kind => 'status', status => 401, type => 'application/json', body => '{"message":"no"}'], 502],
	'no account where one should be' => ['/api/v1/user', [kind => 'status', status => 404, type => 'application/json', body => '{"message":"not found"}'], 502],
	'no such address for codes' => [$path, [kind => 'status', status => 404, type => 'text/html', body => '<p>'], 502],
	'an account as HTML' => ['/api/v1/user', [kind => 'status', status => 200, type => 'text/html', body => '<p>'], 502],
);
for my $name (sort keys %faults) {
	my ($at, $fault, $status) = @{ $faults{$name} };
	$back = fresh();
	$forge->fault($at, @$fault);
	$got = $b->login($back);
	is($got->{status}, $status, "the Git server answers $name") or diag $got->{body};
	cmp_ok(length($got->{json}{detail} || ''), '>', 10, 'words') and unlike($got->{body}, qr/x{40}|X-Evil/, 'no token among them');
	$forge->clear_faults;
	is($b->login($back)->{status}, 400, 'it cannot be tried again');
}
is(sessions(), $before, 'none of these made a session');
is(enter('ann')->{status}, 200, 'afterwards all is well');

# --- names and numbers
$forge->rename_user(ann => 'anna');
$got = enter('anna');
is($got->{status}, 200, 'a renamed account signs in');
is($got->{json}{user}{id}, $first->{user}{id}, 'as the same user');
is($got->{json}{user}{username}, 'anna', 'whose name follows');
$forge->user('ann', { id => 8 });
$got = enter('ann');
is($got->{status}, 403, 'who takes the old name gets nothing by it');
$api->post('/api/user', { username => 'ann', role => 'admin' });
$forge->rename_user(anna => 'annabel');
$forge->user('anna', { id => 9 });
$got = enter('anna');
is($got->{status}, 403, 'nor while the user bears it still');
like($got->{json}{detail}, qr/belongs to another account/, 'in words');
$forge->rename_user(ann => 'oldann');
$forge->rename_user(annabel => 'ann');
$got = enter('ann');
is($got->{status}, 200, 'a name that is taken here');
is($got->{json}{user}{username}, 'anna', 'does not follow');
is($got->{json}{user}{role}, 'deployer', 'nor give the role of the user that has it');
is(value('ann', 'forge_id'), 'NULL', 'who stays nobody\'s');
$forge->user('ANNA', { id => 24 });
is(enter('ANNA')->{status}, 403, 'nor does a name in another case, to another account');
$db->sql("INSERT INTO user (username, role) VALUES ('m\xc3\xbcller', 'admin')");
$forge->user('muller', { id => 30 });
is(enter('muller')->{status}, 403, 'accents make another name');
$forge->user('unbound', { id => 31 });
$db->sql("INSERT INTO user (username, role, forge, forge_id) VALUES ('unbound', 'admin', 'https://other.example', '31')");
is(enter('unbound')->{status}, 403, 'the same number at another server is somebody else');

# --- administrators by configuration
$forge->user('Boss', { id => 40 });
$got = enter('Boss');
is($got->{status}, 200, 'a login of auth.admins comes in') or diag $got->{body};
is($got->{json}{user}{role}, 'admin', 'as an administrator');
$forge->rename_user(Boss => 'exboss');
$forge->user('boss', { id => 41 });
is(enter('boss')->{status}, 403, 'who takes that login later does not');
is(enter('exboss')->{json}{user}{role}, 'admin', 'the first one still is');
is(enter('boss')->{status}, 403, 'also when the name is free here');
$forge->user('chief', { id => 42 });
$api->post('/api/user', { username => 'chief', role => 'viewer' });
is(enter('chief')->{json}{user}{role}, 'admin', 'a user that was there is made one');
$api->put('/api/user/' . value('chief', 'id'), { role => 'viewer' });
is(enter('chief')->{json}{user}{role}, 'viewer', 'once: who is demoted stays so');

# --- who may no more
my $id = value('chief', 'id');
my ($session) = map { $_->{json}{token} } scalar enter('chief');
$api->put("/api/user/$id", { status => 'inactive' });
is($none->get('/api/auth/info', { Authorization => "Bearer $session" })->{status}, 401, 'a disabled user\'s session ends');
$got = enter('chief');
is($got->{status}, 403, 'and signing in does not revive it');
like($got->{json}{detail}, qr/disabled/, 'in words');
is(value('chief', 'status'), 'inactive', 'it stays so');
$api->delete("/api/user/$id");
is(enter('chief')->{status}, 403, 'nor a deleted one');
is($db->sql("SELECT COUNT(*) FROM git_token WHERE user_id = $id"), 0, 'whose token is gone');

# --- signup
$forge->user('new', { id => 50, email => 'not an address', name => "with\nbreak" });
# --- a login at the Git server is not the person whom nginx knows by that name
$db->sql("INSERT INTO user (username, role) VALUES ('nora', 'admin')");
$forge->user('nora', { id => 4711 });
my $beside = browser();
my $begun = $beside->go("nora");
$api->write_conf($conf . "remote_user = yes\n");
reload();
is($none->get('/api/auth/url')->{status}, 503, 'with auth.remote_user nobody begins to sign in by the Git server');
$got = $beside->login($begun);
is($got->{status}, 503, 'nor ends what was begun') or diag $got->{body};
like($got->{json}{detail}, qr/auth\.remote_user/, 'and is told why');
is(value('nora', 'COALESCE(forge, "nobody")'), 'nobody', 'the user of nginx stays nginx\'s');
$api->write_conf($conf . "signup = viewer\n");
reload();
$got = enter('new');
is($got->{status}, 200, 'with signup, whoever the Git server signs in') or diag $got->{body};
is($got->{json}{user}{role}, 'viewer', 'gets its role');
is($got->{json}{user}{email}, undef, 'what cannot be kept is left out');
$got = enter('chief');
is($got->{status}, 403, 'whom an administrator deleted stays out');
like($got->{json}{detail}, qr/deleted/, 'in words');
$api->post('/api/user', { username => 'chief', role => 'viewer' });
is(enter('chief')->{status}, 200, 'until a user is made anew');
is(enter('boss')->{json}{user}{role}, 'viewer', 'the second of that login is like all others');

# --- the same twice at once: one session, whatever the Git server says.  All of
# them have found the sign-in before one may take it.
my $grant = $forge->token('new');
for my $round ('by codes', 'by a server that takes each code again') {
	$b = browser();
	$back = $b->go('new');
	$forge->fault($path, @json, body => qq({"access_token":"$grant","token_type":"bearer"})) if $round =~ /again/;
	my $before = sessions();
	my $holder = $db->hold('SELECT 1 FROM signin FOR UPDATE');
	my @pids = map {
		my $n = $_;
		my $pid = fork;
		if (!$pid) {
			my ($status) = (run_cmd('curl', '-s', '--cacert', $api->cacert, '-o', '/dev/null', '-w', '%{http_code}',
			    '-H', 'Content-Type: application/json', '-H', 'Cookie: ' . $b->cookies,
			    '-d', qq({"code":"$back->{code}","state":"$back->{state}"}), $api->url . '/api/auth/login'))[1];
			spew(tempdir() . "/race$n", $status);
			POSIX::_exit(0);
		}
		$pid;
	} 1 .. 4;
	ok(poll(60, sub { $db->waiting == 4 }), 'all four wait');
	$db->let_go($holder);
	waitpid $_, 0 for @pids;
	$forge->clear_faults;
	is(join(' ', sort map { slurp(tempdir() . "/race$_") } 1 .. 4), '200 400 400 400', "one of four at once signs in, $round");
	is(sessions(), $before + 1, 'one session');
}

# --- two first sign-ins of one account, at once
$forge->user('twin', { id => 77 });
$db->sql("INSERT INTO user (username, role) VALUES ('twin', 'viewer')");
my @twins = map { my $b = browser(); [ $b, $b->go('twin') ] } 1 .. 2;
my $row = $db->hold("SELECT id FROM user WHERE username = 'twin' FOR UPDATE");
my @first = map {
	my $n = $_;
	my $pid = fork;
	if (!$pid) {
		delete $api->{http};
		my ($b, $back) = @{ $twins[$n] };
		my $got = $b->login($back);
		spew(tempdir() . "/twin$n", "$got->{status} $got->{body}");
		POSIX::_exit(0);
	}
	$pid;
} 0, 1;
ok(poll(60, sub { $db->waiting == 2 }), 'both wait for the user');
$db->let_go($row);
waitpid $_, 0 for @first;
like(slurp(tempdir() . "/twin$_"), qr/^200 /, 'two first sign-ins of one account both succeed') for 0, 1;

# --- a new key: what the old one sealed still opens
$b = browser();
$back = $b->go('new');
key_make();
reload();
is($b->login($back)->{status}, 200, 'a sign-in begun under the old key is ended under the new one');

# --- a Git server that is away
$back = fresh();
$forge->stop_nginx;
my $began = time;
$got = $b->login($back);
is($got->{status}, 502, 'a Git server that is down');
cmp_ok(time - $began, '<', deadline(30), 'is told of soon');
$forge->start_nginx;
is($none->get('/api/auth/info', { Authorization => "Bearer $first->{token}" })->{status}, 200, 'who is in stays in');

# --- a slow one: all it is asked together has ten seconds
my $took = best_of(11, sub {
	$forge->fault($path, kind => 'delay', seconds => 0.55 * $forge->patience, times => 1);
	$forge->fault('/api/v1/user', kind => 'silent', times => 1);
	$back = fresh();
	$began = time;
	$got = $b->login($back);
	$forge->clear_faults;
	return time - $began;
});
is($got->{status}, 504, 'slow, and then silent') or diag $got->{body};
cmp_ok($took, '<', deadline(11), 'within ten seconds');

# --- a slow one holds up those who sign in, nobody else
my @slow = map { my $o = browser(); [$o, $o->go('new')] } 1 .. 2;
$forge->fault($path, kind => 'silent');
my @waiting = map {
	my ($o, $way) = @$_;
	my $one = fork;
	if (!$one) {
		my $got = $o->login($way);
		spew(tempdir() . "/slow-$way->{state}", "$got->{status} $got->{body}");
		POSIX::_exit(0);
	}
	$one;
} @slow;
poll(10, sub { $forge->requests(qr/\Q$path\E$/) > 0 });
for my $what ('/api/auth/info', '/api/projects', '/api/auth/tokens') {
	my $took = best_of(3, sub {
		my $began = time;
		$got = $none->get($what, { Authorization => "Bearer $first->{token}" });
		return time - $began;
	});
	is($got->{status}, 200, "$what meanwhile");
	cmp_ok($took, '<', deadline(3), 'at once');
}
waitpid $_, 0 for @waiting;
$forge->clear_faults;
like(slurp(tempdir() . "/slow-$_->[1]{state}"), qr/^50[24] /, 'who signed in is told') for @slow;

# --- MariaDB goes while the Git server answers
$back = fresh();
$forge->forget_requests;
$forge->fault('/api/v1/user', kind => 'delay', seconds => 2, times => 1);
my $pid = fork;
if (!$pid) { spew(tempdir() . '/lost', $b->login($back)->{status}); POSIX::_exit(0) }
poll(10, sub { $forge->requests(qr{/user$}) }) or die 'no request';
$before = sessions();
$db->kill9;
waitpid $pid, 0;
is(slurp(tempdir() . '/lost'), 503, 'MariaDB goes while the Git server answers');
$db->resume;
$forge->clear_faults;
is(sessions(), $before, 'no session');
is($b->login($back)->{status}, 400, 'it cannot be tried again');
is(enter('ann')->{status}, 200, 'but begun again');

# --- the last sign-out
($got, $b) = enter('new');
is($b->visit('POST', '/api/auth/logout', undef, Origin => $api->url)->{status}, 204, 'signing out');
ok(!exists $b->jar->{'__Host-slipway'}, 'the cookie is gone');
is($none->get('/api/auth/info', { Authorization => "Bearer $got->{json}{token}" })->{status}, 401, 'as is the session');
is(join(' ', $forge->complaints), '', 'the Git server had nothing to complain of');
$forge->stop;

done_testing;
