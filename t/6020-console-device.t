#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The console's page that signs in a device, in Chromium: the code survives the
# sign-in, what the user sees, approval and denial by keyboard, codes that do not work,
# themes, a narrow window, and the command line at the other end.

use strict;
use warnings;
use Slipway::API qw(bearer);
use Slipway::Browser;
use Slipway::Client;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Slipway::Visitor;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 3\n",
    nginx => \&Slipway::Visitor::unlimited);
my $none = $api->as('none');
my $page = Slipway::Browser->start(origin => $api->url, certificate => $api->cacert);

sub started { return $none->post('/api/auth/device', { name => $_[0] // 'slipway on dora' })->{json} }
sub taken { return $none->post('/api/auth/device/token', { deviceCode => $_[0]{deviceCode} }) }
# A new tab of the address, because going from one fragment to another is no visit.
sub open_code {
	my ($device) = @_;
	return $page->visit('about:blank')->visit("/slipway/device#$device->{userCode}");
}
sub focused { return $page->js('return document.activeElement.textContent') }
sub asks { return $page->wait_for('h1', 'Sign in this device?') }

# --- the code survives signing in
my $device = started();
open_code($device);
ok($page->wait_for('#sign-in'), 'without a session, the page asks to sign in');
$page->type('#sign-in-token', $api->token('maintainer') . "\n");
ok(asks(), 'after signing in, the page of the code asks') or diag($page->url);
is($page->text('.user-code'), $device->{userCode}, 'the page shows the code');
like(join(' ', $page->texts('.facts dd')), qr/slipway on dora (?:127\.0\.0\.1|::1) (?:just now|\d+ min ago)/,
    'the page shows the name, the address and the time of the device');
like($page->text('.lead'), qr/acts as t-maintainer/, 'the page shows whose rights the device gets');
like($page->text('.notice.pending'), qr/only if you have just started this yourself/,
    'the page warns of codes from others');
is(join(' ', $page->texts('[name=role] option')), 'Viewer Deployer Maintainer',
    'no higher role is offered than that of the user');
is(taken($device)->{json}{error}, 'authorization_pending', 'opening the page decides nothing');

# --- themes and a narrow window
for my $theme (qw(light dark)) {
	$page->emulate('prefers-color-scheme' => $theme);
	axe_ok($page, "the question in $theme colors");
}
$page->size(320, 640);
is($page->overflow, '', 'the question fits 320 pixels');
$page->size(1280, 800)->emulate('prefers-color-scheme' => 'light');

# --- by keyboard: skip the navigation, choose a role, approve
$page->js('window.drawn = document.querySelector("main"); document.querySelector(".skip").focus()');
$page->press('Enter');
ok($page->wait_until('document.querySelector("main") !== window.drawn'
	. ' && document.querySelector(".user-code") !== null'), 'skipping the navigation keeps the question');
is($page->text('.user-code'), $device->{userCode}, 'skipping the navigation keeps the code');
$page->js('document.querySelector("[name=role]").focus()');
$page->press('d');
is($page->js('return document.activeElement.value'), 'deployer', 'a key chooses a role');
my $reached = 0;
while ($reached++ < 20 && focused() ne 'Approve') { $page->press('Tab') }
is(focused(), 'Approve', 'the Tab key reaches the button');
ok($page->js('return document.activeElement.matches(":focus-visible")'),
    'the focus of the button is visible');
$page->press('Enter');
ok($page->wait_for('h1', 'Device approved'), 'Enter approves');
is(focused(), 'Device approved', 'the focus is on what happened');
unlike($page->url, qr/#/, 'the code leaves the address bar');
axe_ok($page, 'the end of an approval');
my $got = taken($device);
is("$got->{status} $got->{json}{role}", '201 deployer', 'the device gets a token with the role')
    or diag($got->{body});
$page->click('main a');
ok($page->wait_for('table', 'slipway on dora'), 'the page of the account lists it');

# --- denied
$device = started();
open_code($device);
ok(asks(), 'another device asks');
$page->js('document.querySelector(".actions [type=button]").focus()');
$page->press('Enter');
ok($page->wait_for('h1', 'Device denied'), 'Enter denies');
is(taken($device)->{json}{error}, 'access_denied', 'the device learns that');

# --- a code that is typed
$page->visit('/slipway/device');
ok($page->wait_for('h1', 'Sign in a device'), 'without a code, the page asks for one');
is($page->js('return document.querySelector("[name=userCode]").value'), '',
    'the field for the code is empty');
axe_ok($page, 'the form for a code');
$page->size(320, 640);
is($page->overflow, '', 'the form fits 320 pixels');
$page->size(1280, 800);
$page->type('[name=userCode]', "BBBB-BBBB\n");
ok($page->wait_for('.summary', 'No device waits with this code'), 'an unknown code is rejected');
$device = started('<b>bold</b> & "quoted"');
$page->clear('[name=userCode]')->type('[name=userCode]', lc($device->{userCode}) =~ s/-//r . "\n");
ok(asks(), 'a code is found however it is typed');
is(($page->texts('.facts dd'))[1], '<b>bold</b> & "quoted"', 'the name of a device is plain text');

# --- a code that expires while the page is open
$db->sql('UPDATE device SET expires_at = NOW(3)');
$page->click('.device .primary');
ok($page->wait_for('.summary', 'No device waits with this code'), 'an expired code cannot be approved');
$page->click('.actions [type=button]');
ok($page->wait_for('.toast', 'No device waits'), 'an expired code cannot be denied');
open_code($device);
ok($page->wait_for('.summary', 'No device waits with this code'), 'a link with an old code says so');
$page->visit('about:blank')->visit('/slipway/device#sign-up');
ok($page->wait_for('h1', 'Sign in a device'), 'a fragment that is no code is ignored');
is($page->text('.summary'), '', 'a fragment that is no code causes no error');

# --- the session ends while the page is open
$device = started();
open_code($device);
ok(asks(), 'a device asks before the session ends');
$db->sql('DELETE FROM session');
$page->js('document.querySelector(".device .primary").click()'); # the dialog may be there already
ok($page->wait_for('dialog.renew'), 'approving asks to sign in again');
$page->type('dialog #sign-in-token', $api->token('maintainer') . "\n");
ok($page->wait_for('h1', 'Device approved'), 'after signing in again, the request is approved');
is(taken($device)->{status}, 201, 'the device gets its token');

# --- the command line, and a user who signs in at the Git server
my $forge = Slipway::Forge->start(redirect_uri => $api->url . '/slipway/sign-in');
$forge->user(ann => { id => 7, name => 'Ann Lee', email => 'ann@example.org' });
$api->write_conf("[api]\nworkers = 3\n" . $forge->conf . "[auth]\nsignup = deployer\n");
$api->reload or die 'the workers were not replaced';
$page->cdp('Network.enable');
$page->cdp('Network.setExtraHTTPHeaders', headers => { 'X-Test-Login' => 'ann' });
$page->js('return fetch("/api/auth/logout", { method: "POST" }).then(() => true)');
my $slipway = Slipway::Client->new($api,
    env => { map { $_ => undef } qw(SLIPWAY_URL SLIPWAY_TOKEN SLIPWAY_CACERT) });
my $on = $slipway->terminal('auth', 'login', '--cacert', $api->cacert, $api->url);
ok($on->saw(qr/code  \w{4}-\w{4}\s/), 'slipway auth login shows a code');
my ($address) = $on->screen =~ m{page  https://[^/]+(/\S+)};
my ($code) = $on->screen =~ /code  (\w{4}-\w{4})/;
$page->visit('about:blank')->visit("$address#$code");
ok($page->wait_for('#sign-in'), 'a visitor has to sign in');
$page->click('.ways .ways button');
ok(asks(), 'the code survives a sign-in at the Git server') or diag($page->url);
is($page->text('.user-code'), $code, 'the page shows the code of the terminal');
$page->click('.device .primary');
ok($page->wait_for('h1', 'Device approved'), 'the user approves');
is($on->end, 0, 'slipway auth login succeeds');
like($on->screen, qr/signed in to \S+ as ann \(deployer\)/,
    'slipway is signed in as the user of the browser');
$forge->stop;
$page->stop;
$api->stop;
done_testing;
