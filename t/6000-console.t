#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The web console in Chromium: signing in, from the first project to a deployment,
# faults at their fields, lost sessions and connections, and every page's access.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Digest::SHA qw(sha256_hex);
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, keys => 1, conf => "[api]\nworkers = 3\n");
my $page = Slipway::Browser->start(origin => $api->url, certificate => $api->cacert);

# A new token of the admin: (id, token).
my $made = 0;
sub token {
	my $got = $api->post('/api/auth/tokens', { name => 'browser ' . ++$made })->{json};
	return @{$got}{qw(id token)};
}
sub row { my ($sql) = @_; return ($db->sql($sql))[0] }
sub focused { return $page->js('return document.activeElement.name || document.activeElement.textContent') }

# --- files
my $got = $api->as('none')->get('/slipway/projects/3/deploy');
is($got->{status}, 200, 'every path below /slipway/ is the page');
is($got->{headers}{'cache-control'}, 'no-cache', 'the page is checked for a new version each time');
like($got->{headers}{'content-security-policy'}, qr/default-src 'none'.*trusted-types 'none'/,
    'the page has a strict content security policy');
unlike($got->{body}, qr/<script(?![^>]*src=)|style=|\bon\w+=/, 'the page contains no inline script or style');
my ($module) = $got->{body} =~ m{src="(/slipway/[^"]+)"};
$got = $api->as('none')->get($module);
like($got->{headers}{'cache-control'}, qr/immutable/, 'a browser keeps a module, whose path has the version');
is($got->{headers}{'content-type'}, 'text/javascript; charset=utf-8', 'a module is JavaScript');
$got = $api->as('none')->get($module =~ s/main\.js/nothing.js/r);
is($got->{status}, 404, 'an unknown module is not the page');

# --- signing in
$page->go('/slipway/projects');
ok($page->wait_for('#sign-in'), 'without a session, the console shows the sign-in page');
axe_ok($page, 'the sign-in page');
is($page->js('return getComputedStyle(document.querySelector(".ways .ways")).display'), 'none',
    'without OAuth, the Git server is not offered');
ok($page->wait_for('#sign-in .primary'), 'so the token is the main way');
$page->type('#sign-in-token', "slw_wrong\n");
ok($page->wait_for('#sign-in .summary', 'The token'), 'a wrong token is rejected in the words of the API');
my ($id, $token) = token();
$page->clear('#sign-in-token')->type('#sign-in-token', "$token\n");
ok($page->wait_for('h1', 'Projects'), 'signing in by token returns to the page that was requested');

$page->click('.menu summary');
ok($page->wait_for('.menu-items a'), 'the menu of the account opens');
$page->press('Tab', 'Escape');
ok($page->wait_gone('.menu-items a'), 'Escape closes it');
is($page->js('return document.activeElement.tagName'), 'SUMMARY', 'and the focus returns');
$page->click('.menu summary')->click('h1');
ok($page->wait_gone('.menu-items a'), 'a click elsewhere closes it, too');
$page->click('.menu summary')->click('.menu-items a');
ok($page->wait_for('h1', 'Your account'), 'the menu leads to the account');
ok($page->wait_gone('.menu-items a'), 'and is closed there');

# --- the first project
$page->go('/slipway/');
ok($page->wait_for('.first', 'Add a project'), 'an empty board says what to do first');
axe_ok($page, 'an empty board');
$page->click('.first a.button');
ok($page->wait_for('#new-project-repository'), 'the first step is a form');
is($page->text('.combobox'), '', 'without a Git server, an address is typed');
$page->type('#new-project-repository', 'https://elsewhere.example.com/a/b.git');
$page->type('#new-project-name', "Shop\n");
ok($page->wait_for('[data-field=repository] .fault'), 'a fault is shown at its field');
is(focused(), 'repository', 'the first invalid field has the focus');
$page->clear('#new-project-repository')->type('#new-project-repository', "https://git.example.org/a/b.git\n");
ok($page->wait_for('h1', 'Add a pipeline'), 'a new project continues with its pipeline');
$page->click('.templates li:nth-child(5) button');
ok($page->wait_for('.split details.script'), 'a template shows its scripts before it is used');
$page->click('.templates li:first-child button');
$page->type('#new-pipeline-name', "Deploy\n");
ok($page->wait_for('.empty', 'no steps'), 'an empty pipeline says so');

# --- the pipeline editor
for my $step ([qw(Build make web/app)], ['Test', 'false', '']) {
	$page->click('main > .actions button');
	$page->type('#new-step-name', $step->[0])->type('#new-step-script', $step->[1]);
	$page->type('#new-step-directory', $step->[2]);
	$page->click('#new-step button.primary');
	ok($page->wait_for('.step h2', $step->[0]), "the step $step->[0] is added");
}
$page->click('[aria-label="Move Test up"]');
ok($page->wait_for('.step:first-child h2', 'Test'), 'a button moves a step up');
$page->js(<<'JS');
	const [first, second] = document.querySelectorAll('.step');
	const dataTransfer = new DataTransfer();
	first.dispatchEvent(new DragEvent('dragstart', { dataTransfer, bubbles: true }));
	second.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
JS
ok($page->js('return document.querySelector(".step [draggable=true]") !== null'
	. ' && document.querySelector(".step pre").closest("[draggable=true]") === null'),
    'a step is dragged by its heading, so the text of its script can be selected');
is($page->text('.step .head code'), 'web/app', 'a step shows its directory');
ok($page->wait_for('.step:first-child h2', 'Build'), 'dragging a step onto another takes its place');
$page->js('document.querySelector("[aria-label=\"Move Test up\"]").focus()');
$page->press('Enter');
ok($page->wait_for('.step:first-child h2', 'Test'), 'a key moves it, too');
$page->click('[aria-label="Edit Test"]')->type('.step textarea', '# later');
$page->click('.step form .actions [type=button]');
ok($page->wait_for('dialog', 'Discard the changed script?'),
    'a changed script is not discarded by one click');
$page->click('dialog button:not(.danger)');
is($page->js('return document.querySelector(".step textarea").value'), 'false# later', 'it is kept');
$page->click('.step form .actions [type=button]')->click('dialog .danger');
ok($page->wait_gone('.step textarea'), 'or discarded on purpose');
$page->click('[aria-label="Edit Test"]');
$page->type('.step textarea', "\n")->press('Tab')->type('.step textarea', 'true');
$page->click('.step form button.primary');
ok($page->wait_for('.step:first-child pre', "false\n\ttrue"), 'Tab indents in the script of a step');

# --- deploying
my $project = 0 + row('SELECT id FROM project');
$api->put("/api/projects/$project", { envPresets => [
	{ key => 'GREETING', label => 'Greeting', type => 'input', required => \1, pattern => '[a-z]+',
		default => 'hello' },
	{ key => 'TARGET', label => 'Where to', type => 'select', default => 'b',
		options => [ map { { label => uc, value => $_ } } qw(a b) ] },
	{ key => 'REGIONS', label => 'Regions', type => 'multiselect', default => 'eu',
		options => [ map { { label => uc, value => $_ } } qw(eu us) ] },
	{ key => 'TOKEN', label => 'Token', type => 'input', secret => \1 } ] });
$page->go("/slipway/projects/$project/deploy");
ok($page->wait_for('#deploy'), 'the deploy form is generated from the presets');
is($page->js('return [...new FormData(document.querySelector("#deploy"))]'
	. '.map((entry) => entry.join("=")).join(" ")'),
    'source=branch branch= commitHash= env.GREETING=hello env.TARGET=b'
	. ' env.REGIONS=eu env.TOKEN= more=',
    'the form has the defaults of the presets');
is($page->js('return document.querySelector("[name=\"env.TOKEN\"]").type'), 'password',
    'a secret is not shown while it is typed');
$page->clear('[name="env.GREETING"]')->type('[name="env.GREETING"]', 'HELLO');
$page->type('[name=branch]', 'main')->click('[name="env.REGIONS"][value=us]');
$page->click('#deploy .primary');
ok($page->wait_for('[data-field="env.GREETING"] .fault'), 'a rejected value is marked at its field');
is(join(' ', grep { /\S/ } $page->texts('[data-field=more] .fault')), '', 'and at no other one');
$page->clear('[name="env.GREETING"]')->type('[name="env.GREETING"]', 'moin');

# The session ends: what was typed stays.
my $first_tab = $page->this_tab;
my $second_tab = $page->new_tab;
$page->go('/slipway/');
ok($page->wait_for('.project'), 'a second tab shows the board');
is($page->js('return navigator.locks.query().then((all) => all.held.length)'), 1,
    'one tab listens for all');
$page->tab($first_tab);
$db->sql('DELETE FROM session');
$page->js('document.querySelector("#deploy .primary").click()'); # the dialog may be there already
ok($page->wait_for('dialog.renew'), 'a session that has ended asks to sign in again, over the page');
(undef, $token) = token();
$page->type('dialog #sign-in-token', "$token\n");
ok($page->wait_until('location.pathname === "/slipway/deployments/1"'),
    'after signing in again, the deployment is created');
is(row('SELECT COUNT(*) FROM deployment'), 1, 'it is created once');
$page->tab($second_tab);
ok($page->wait_for('.place', 'Waiting'), 'the second tab goes on');
ok($page->wait_gone('dialog'), 'it does not ask to sign in again');
$page->_command('DELETE', '/window');
$page->tab($first_tab);
is_deeply($api->get('/api/deployments/1')->{json}{envVars},
	{ GREETING => 'moin', TARGET => 'b', REGIONS => 'eu,us' }, 'the values are those of the form');
$page->go("/slipway/projects/$project/deploy?from=1");
ok($page->wait_for('#deploy'), 'a deployment can be repeated with changes');
is($page->js('return ["branch", "env.GREETING"].map((name) =>'
	. ' document.querySelector(`[name="${name}"]`).value).join()'),
    'main,moin', 'the form has the values of that deployment');
$page->clear('[name="env.GREETING"]')->type('[name="env.GREETING"]', 'draft');
$page->reload;
ok($page->wait_until('document.querySelector(`[name="env.GREETING"]`)?.value === "draft"'),
    'typed text survives a reload');

# --- live
$page->go('/slipway/');
ok($page->wait_for('.place', 'Waiting'), 'the board shows the deployment that waits');
$db->sql("UPDATE deployment SET approval = 'required' WHERE id = 1");
$page->go('/slipway/deployments/1');
ok($page->wait_for('h1', 'Needs approval'), 'the page of a deployment says that it needs approval');
$page->go('/slipway/');
ok($page->wait_for('.place', 'Needs approval'), 'the board says so, too');
$page->go('/slipway/deployments/1')->wait_for('h1', 'Needs approval');
sub approves { return $page->js('return document.querySelectorAll(".actions .primary").length') }
is(approves(), 0, 'the page does not invite the user who started a deployment to approve it');
$db->sql("UPDATE deployment SET created_by = created_by + 1 WHERE id = 1");
ok($page->wait_for('.actions .primary', 'Approve'), 'another user is');
$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3) WHERE id = 1");
ok($page->wait_for('h1', 'Canceled'), 'the deployment is canceled');
is(approves(), 0, 'a canceled deployment cannot be approved');
$db->sql("UPDATE deployment SET created_by = created_by - 1, approval = NULL WHERE id = 1");
$page->go('/slipway/');
ok($page->wait_for('.place', 'Canceled'), 'the board shows that it was canceled');
$db->sql("UPDATE deployment SET status = 'failed', finished_at = NOW(3), started_at = NOW(3) WHERE id = 1");
ok($page->wait_for('.place', 'Failed'), 'the board follows a change without a reload');
$page->offline(1);
ok($page->wait_for('.banner', 'No connection'), 'a lost connection is shown');
ok($page->wait_for('.place', 'Failed'), 'the page stays as it was');
$page->offline(0);
ok($page->wait_gone('.banner:not(:empty)'), 'the connection recovers by itself');
$api->put("/api/projects/$project/lock", { reason => 'Audit week' });
$page->go('/slipway/pipelines/1');
ok($page->wait_for('.notice', 'Audit week'), 'a pipeline of a locked project says why');
$page->go("/slipway/projects/$project");
ok($page->wait_for('.notice', 'Audit week'), 'the locked project says so, too');
$page->click('.notice button');
ok($page->wait_gone('.notice'), 'a maintainer unlocks it');
$db->sql("UPDATE project SET valid = 0 WHERE id = $project");
ok($page->wait_for('h1', 'Not found'), 'a page that the user may no longer read is not shown');
$db->sql("UPDATE project SET valid = 1 WHERE id = $project");
ok($page->wait_for('h1', 'Shop'), 'it is shown again when it can be read, unchanged');

$page->go('/slipway/deployments');
is($page->js('return [...new Set([...document.querySelectorAll(".ref, .subject")]'
	. '.map((e) => getComputedStyle(e).unicodeBidi))].join()'), 'isolate',
    'text from Git does not change the direction of what follows') if $page->wait_for('.ref');
my $override = 'return /[\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").textContent)';
$db->sql("UPDATE deployment SET commit_message = 'Fix \xe2\x81\xa9\xe2\x80\xaegro.live' WHERE id = 1");
ok($page->wait_for('.subject', 'Fix gro.live'), 'the message of a commit is shown');
ok(!$page->js($override), 'without control characters that change its order');

# --- presets and triggers
$page->go("/slipway/projects/$project/settings")->click('#presets .entries-field > button');
my ($key, $label) = map { "#presets .entry:last-child [data-key=$_] input" } qw(key label);
$page->type($key, '1ST')->type($label, 'One');
$page->click('#presets .primary');
ok($page->wait_for('[data-pointer="/envPresets/4/key"] .fault', 'A-Z'),
    'a fault is shown at its part of a preset');
$page->clear($key)->type($key, 'FIRST');
$page->click('#presets [aria-label="Move One up"]')->click('#presets .primary');
ok($page->wait_for('.toast', 'Saved'), 'the presets are saved');
is(join(' ', map { $_->{key} } @{ $api->get("/api/projects/$project")->{json}{envPresets} }),
    'GREETING TARGET REGIONS FIRST TOKEN', 'in the order of the editor');
$page->click('#triggers .entries-field > button')->type('#triggers [data-key=branch] input', 'release/*');
$page->click('#triggers .primary');
ok(poll(60, sub { $api->get("/api/projects/$project")->{json}{triggers}[0] }), 'a trigger is saved');
is($api->get("/api/projects/$project")->{json}{triggers}[0]{branch}, 'release/*', 'with its branch');

# --- tags
$api->put("/api/projects/$project", { triggers => [
	{ tag => 'v*', pipelineId => 1, paths => ['src/**'], supersede => \0 }] });
my $release = $api->get("/api/projects/$project")->{json}{triggers}[0];
$page->go("/slipway/projects/$project/settings");
ok($page->wait_for('#triggers .entry', 'v*'), 'a trigger for tags shows them');
is(join(', ', grep { /^(?:Presets|Triggers)/ } $page->texts('h2')), 'Presets of the deploy form, Triggers',
    'the editors of lists have headings as all parts of the page do');
$page->type('#triggers [data-key=paths] textarea', "\ndoc/**")->click('#triggers .primary');
ok(poll(60, sub { @{ $api->get("/api/projects/$project")->{json}{triggers}[0]{paths} } == 2 }),
    'its paths are edited');
is_deeply($api->get("/api/projects/$project")->{json}{triggers}[0],
    { %$release, paths => [qw(src/** doc/**)] },
    'the other members of a trigger stay');
$db->sql("UPDATE deployment SET branch = NULL, tag = 'v1.0' WHERE id = 1");
$page->go('/slipway/deployments');
ok($page->wait_for('tr .ref', 'v1.0'), 'the list of deployments shows a tag');
$page->go('/slipway/deployments/1');
ok($page->wait_for('.facts', 'Tag v1.0'), 'the page of a deployment shows the tag, too');
$page->go("/slipway/projects/$project/deploy?from=1");
ok($page->wait_for('#deploy [name=tag]'), 'deploying a tag again with changes keeps the tag');
is($page->js('return document.querySelector("#deploy [name=tag]").value'), 'v1.0', 'in a field of its own');
is($page->js('return document.querySelector("#deploy [name=branch]").checkVisibility()'),
    Cpanel::JSON::XS::false, 'instead of a branch');
$db->sql("UPDATE deployment SET branch = 'main', tag = NULL WHERE id = 1");

# --- the webhook of the Git server
$page->go("/slipway/projects/$project/settings")->click('[data-key=cache]');
ok($page->wait_for('.toast', 'begins with an empty cache'), 'a button empties the cache of the project');
is(row("SELECT cache_generation FROM project WHERE id = $project") + 0, 1, 'the cache is another one');
$page->go("/slipway/projects/$project/settings")->click('[data-key=hook]');
ok($page->wait_for('dialog h2', 'Create a new secret?'), 'a new secret of the webhook asks first');
$page->click('dialog .danger');
ok($page->wait_for('.notice', 'Copy the secret to the Git server now'), 'the secret is shown');
is(join(' ', map { s/_.*//sr } ($page->texts('.secret'))[0]), 'whsec', 'it is one for a Git server');
is(row('SELECT COUNT(*) FROM hook_secret'), 1, 'it is stored');
$page->reload->wait_for('#general');
is(scalar($page->texts('.secret')), 0, 'it is shown once');

# --- as a file
$page->go("/slipway/projects/$project/settings");
ok($page->wait_for('a[download="Shop.json"]'), 'the project is exported as a file');
my $exported = $page->js('return fetch(document.querySelector("a[download]").href).then((r) => r.text())');
$page->go('/slipway/projects/import')->type('#import-document', '{');
$page->click('#import .primary');
ok($page->wait_for('[data-field=document] .fault', 'is not a JSON document'), 'a broken document is marked');
my $json = Cpanel::JSON::XS->new->utf8(0);
my $changed = $json->decode($exported);
@{$changed}{qw(name description)} = ('Copy', 'From a file');
delete $changed->{projectDir}; # of each project its own
sub put_document {
	$page->js('const a = document.querySelector("#import-document"); a.value = arguments[0];'
	    . ' a.dispatchEvent(new Event("input", { bubbles: true }))', $json->encode($changed));
	$page->click('#import .primary');
	return;
}
put_document();
ok($page->wait_for('.differences', 'Project Copy'), 'the parts that an import creates are shown');
axe_ok($page, 'the differences of an import');
is(row('SELECT COUNT(*) FROM project'), 1, 'nothing has changed');
$changed->{name} = 'Shop';
put_document();
ok($page->wait_for('.differences', 'Changed Project Shopdescription'),
    'the parts that it changes are shown, too');
$page->click('[data-key=apply]');
ok($page->wait_for('.lead', 'From a file'), 'the document is applied');
is(row('SELECT COUNT(*) FROM project'), 1, 'to the project of that name');
$api->put("/api/projects/$project", { description => undef });

# --- the deploy key
my $ssh = $api->make('/api/projects', { name => 'ssh',
	repository => 'ssh://git@git.example.org/team/ssh' })->{id};
sub deploy_key { return $api->get("/api/projects/$ssh/deploy-key")->{json} }
$page->go("/slipway/projects/$ssh/settings");
ok($page->wait_for('#deploy-key p:not(.faint)', 'has no deploy key'), 'a project says that it has no key');
$page->click('#deploy-key [data-key=create]');
ok($page->wait_for('#deploy-key .secret', 'ssh-ed25519 '), 'a new key shows its public half');
my $first_key = deploy_key()->{publicKey};
is(($page->texts('#deploy-key .secret'))[0], $first_key, 'it is that of the project');
is(($page->texts('#deploy-key code:not(.secret)'))[0], deploy_key()->{fingerprint}, 'with its fingerprint');
$page->click('#deploy-key [data-key=copy]');
ok($page->wait_for('.toast', 'Copied'), 'it can be copied');
$page->click('#deploy-key [data-key=replace]');
ok($page->wait_for('dialog h2', 'Replace the deploy key?'), 'a replacement asks first');
$page->click('dialog .danger');
ok($page->wait_until(
    '![null, arguments[0]].includes(document.querySelector("#deploy-key .secret").innerText)', $first_key),
    'the new public half is shown');
is(($page->texts('#deploy-key .secret'))[0], deploy_key()->{publicKey}, 'it is the one that is stored');
$page->reload;
ok($page->wait_for('#deploy-key .secret', 'ssh-ed25519 '), 'it is shown again');
$page->click('#deploy-key [data-key=delete]');
ok($page->wait_for('dialog h2', 'Delete the deploy key?'), 'a deletion asks first');
$page->click('dialog .danger');
ok($page->wait_for('#deploy-key p:not(.faint)', 'has no deploy key'), 'the key is deleted');
is($api->get("/api/projects/$ssh/deploy-key")->{status}, 404, 'from the service as well');
$page->go("/slipway/projects/$project/settings")->wait_for('#general');
is(scalar($page->texts('#deploy-key')), 0, 'a project over HTTPS has no such section');
$api->delete("/api/projects/$ssh");

# --- notifiers
sub notifiers { return $api->get("/api/notifiers?projectId=$project")->{json}{data} }
$page->go("/slipway/projects/$project/notifiers");
ok($page->wait_for('.empty', 'A notifier sends mail'), 'a page without notifiers says what they are for');
$page->click('.empty button')->type('#new-notifier [name=target]', 'http://chat.example.org/x');
$page->choose('#new-notifier [name=kind]', 'webhook');
$page->click('#new-notifier .primary');
ok($page->wait_for('[data-field=target] .fault', 'https'), 'an invalid receiver is marked at its field');
$page->clear('[name=target]')->type('[name=target]', "https://hooks.example.org/deployed\n");
ok($page->wait_for('.notice .secret', 'whsec_'), 'a new webhook shows its secret');
is_deeply(notifiers()->[0]{events}, [qw(failed recovered)], 'it has the usual events');
my $mail = $api->make('/api/notifiers', { projectId => $project, kind => 'mail', events => ['failed'],
	target => 'operations@example.org,development@example.org' })->{id};
ok($page->wait_for('.card h2', 'operations@example.org, development@example.org'),
    'addresses of mail are listed');
$page->size(320, 640);
is($page->overflow, '', 'and fit into 320 pixels');
$page->size(1280, 800);
$api->delete("/api/notifiers/$mail");
my ($secret) = $page->texts('.secret');
$page->click('[aria-label="New secret of hooks.example.org"]');
ok($page->wait_until('![null, arguments[0]].includes(document.querySelector(".secret").innerText)', $secret),
    'its secret is renewed');
$page->click('[aria-label="Send a test to hooks.example.org"]');
ok($page->wait_for('.toast', 'being sent'), 'a test is sent');
is(row("SELECT GROUP_CONCAT(event) FROM notice"), 'test', 'it waits for the runner');
$db->sql("UPDATE notifier SET last_error = 'The receiver returned 500.', version = version + 1");
ok($page->wait_for('.notice.failed', 'The receiver returned 500.'), 'the last error is shown');
$page->click('[aria-label="Edit hooks.example.org"]')->click('[name=events][value=started]');
$page->click('.card .primary');
ok(poll(60, sub { @{ notifiers()->[0]{events} } == 3 }), 'its events are edited');
$page->click('[aria-label="Pause hooks.example.org"]');
ok($page->wait_for('.badge', 'Paused'), 'it is paused');
is($page->js('return document.querySelectorAll("[aria-label^=Send]").length'), 0,
    'one that is paused sends no test');
$page->go('/slipway/notifiers');
ok($page->wait_for('.facts a', 'Shop'), 'the page of all notifiers names the project');
$page->click('[aria-label="Delete hooks.example.org"]')->click('dialog .danger');
ok($page->wait_for('.empty'), 'a notifier is deleted');

# --- members
sub members { return $api->get("/api/projects/$project/members")->{json}{data} }
$page->go("/slipway/projects/$project/members");
ok($page->wait_for('.empty', 'There are no members'), 'a project without members says what that means');
my $admin = $api->get('/api/auth/info')->{json}{id};
$page->choose('#new-member [name=userId]', $admin)->click('#new-member .primary');
ok($page->wait_for('tbody tr', 't-admin'), 'a member is added');
is(members()->[0]{role}, 'deployer', 'with the role of the form');
$page->choose('[aria-label="Role of t-admin"]', 'viewer');
ok(poll(60, sub { members()->[0]{role} eq 'viewer' }), 'the role of a member is changed');
$page->click('[aria-label="Remove t-admin"]')->click('dialog .danger');
ok($page->wait_for('.empty'), 'a member is removed');
is_deeply(members(), [], 'a removed member is no member any more');

# --- two tabs
sub settings { return $page->go("/slipway/projects/$project/settings")->wait_for('#general') }
sub of_project { return $api->get("/api/projects/$project")->{json}{ $_[0] } }
settings();
$page->type('#general-description', 'One');
$page->click('#general .primary');
ok(poll(60, sub { (of_project('description') // '') eq 'One' }), 'a description is saved');
ok($page->js('return document.querySelector("#general-lfs").checked'), 'files of Git LFS are fetched');
$page->click('#general-lfs')->type('#general-description', ' and two')->click('#general .primary');
ok(poll(60, sub { of_project('description') eq 'One and two' }), 'the same form is saved again');
ok(!of_project('lfs'), 'without files of Git LFS');
$page->click('#presets [aria-label="Move One up"]')->click('#presets .primary');
ok(poll(60, sub { of_project('envPresets')->[2]{key} eq 'FIRST' }), 'another form of the page is saved');
settings();
my $warning = 'Someone changed this since you opened the page. Reload it, then repeat your change.';
$api->put("/api/projects/$project", { description => 'By a colleague', envPresets => [
	@{ of_project('envPresets') }, { key => 'THEIRS', label => 'Theirs', type => 'input' } ] });
$page->clear('#general-description')->type('#general-description', 'Mine')->click('#general .primary');
ok($page->wait_for('#general .summary', $warning),
    'a change that another user made meanwhile is not overwritten');
is(of_project('description'), 'By a colleague', 'their change stays');
is($page->js('return document.querySelector("#general-description").value'), 'Mine',
    'the text in the field stays, too');
$page->click('#presets [aria-label="Move One up"]')->click('#presets .primary');
ok($page->wait_for('#presets .summary', $warning), 'neither is a list');
is(of_project('envPresets')->[-1]{key}, 'THEIRS', 'an entry that someone else added stays');
$page->reload;
ok($page->wait_for('#presets .entry:last-child', 'Theirs'), 'a reload shows their changes');
is($page->js('return document.querySelector("#general-description").value'), 'By a colleague',
    'a draft of the form as it was before does not hide them');
$page->clear('#general-description')->type('#general-description', 'Mine')->click('#general .primary');
ok(poll(60, sub { of_project('description') eq 'Mine' }), 'then the change can be repeated');

# --- schedules, the lock of the service
$page->go("/slipway/projects/$project/schedules")->click('.empty button');
$page->type('[name=name]', 'Nightly')->type('[name=cron]', '61 4 * * *');
$page->clear('[name=timezone]')->type('[name=timezone]', 'Europe/Berlin')->click('#new-schedule .primary');
ok($page->wait_for('[data-field=cron] .fault'), 'an invalid time is marked at its field');
my $presets = of_project('envPresets');
is($api->put("/api/projects/$project", { triggers => [], envPresets => [
	{ key => 'NEEDED', label => 'Needed', type => 'input', required => \1 } ] })->{status}, 200,
    'the project has a required preset');
$page->clear('[name=cron]')->type('[name=cron]', "30 4 * * mon-fri\n");
ok($page->wait_for('[data-field=envVars] .fault', 'NEEDED is required'), 'a missing variable is named');
$api->put("/api/projects/$project", { envPresets => $presets });
$page->clear('[name=cron]')->type('[name=cron]', "30 4 * * mon-fri\n");
ok($page->wait_for('.facts time', ':30:00'), 'a schedule says when it runs next');
$page->click('[aria-label="Pause Nightly"]');
ok($page->wait_for('.badge', 'Paused'), 'a schedule is paused');
$page->click('[aria-label="Edit Nightly"]');
$page->clear('.card [name=name]')->type('.card [name=name]', "Each night\n");
ok($page->wait_for('.card h2', 'Each night'), 'a schedule is edited in place');
$page->go('/slipway/runners')->click('.head button');
$page->type('dialog [name=reason]', "Upgrade\n");
ok($page->wait_for('.service-lock', 'Upgrade'), 'an admin locks the whole service');
$page->visit('/slipway/projects');
ok($page->wait_for('.service-lock', 't-admin'), 'every page says who locked it');
$page->click('.service-lock button');
ok($page->wait_gone('.service-lock .notice'), 'the admin unlocks the service');

# --- every page: names and roles, both themes, a narrow window
$api->make('/api/environments', { projectId => $project, name => 'production',
	url => 'https://www.example.org/', approval => 'required' });
$page->go("/slipway/projects/$project/deploy");
ok($page->wait_for('#deploy .notice', 'approve'), 'the deploy form says that an approval is needed');
$page->go("/slipway/projects/$project/environments")->click('[aria-label="Edit production"]');
$page->click('[name=approvers]')->click('.card .primary');
ok($page->wait_for('.facts', 'Approvers'), 'the approvers of an environment are chosen');
is_deeply($api->get("/api/environments?projectId=$project")->{json}{data}[0]{approvers},
    [$api->get('/api/auth/info')->{json}{id}], 'they are the users that were checked');
$page->go('/slipway/audit')->click("tbody a[href\$='/projects/$project/environments']");
ok($page->wait_for('.card h2', 'production'), 'an entry of the audit log links to its object');
$page->go('/slipway/audit');
$page->choose('.filter', 'Shop');
ok($page->wait_for('h1', 'Changes of Shop'), 'the audit log is narrowed to a project');
$api->make('/api/environments', { projectId => $project, name => 'staging' });
$page->go("/slipway/projects/$project/deploy?branch=main");
ok($page->wait_for('#deploy'), 'the deploy form offers two environments');
$page->choose('[name=environmentId]', 'production');
$page->reload;
ok($page->wait_for('[data-field=environmentId] + .stack .notice', 'approve'),
    'the page agrees with the draft that is restored');
$page->size(320, 640);
cmp_ok($page->js('return document.querySelector("#deploy .notice").getBoundingClientRect().top'), '<',
    $page->js('return document.querySelector("#deploy .primary").getBoundingClientRect().top'),
    'in a narrow window, too, an obstacle is shown before the button');
$page->size(1280, 800);
$page->go("/slipway/projects/$project/deploy");
ok($page->wait_for('#deploy'), 'the form is opened by another link');
is($page->js('return document.querySelector("[name=environmentId]").value'), '',
    'the draft does not override what the link says');
$api->make('/api/variables', { key => 'HOST', value => 'www', projects => [$project] });
my @pages = ('/', '/projects', '/projects/new', '/projects/import', '/pipelines/1', '/deployments', '/users',
	'/variables',
	'/account', '/runners', '/notifiers', '/audit', '/nowhere', map { "/projects/$project$_" } '',
	'/deploy', '/pipelines', '/pipelines/new',
	'/environments', '/schedules', '/notifiers', '/members', '/settings');
for my $path (@pages) {
	$page->emulate('prefers-color-scheme' => 'light')->size(1280, 800)->go("/slipway$path");
	$page->wait_for('h1');
	axe_ok($page, "$path in light colors");
	$page->emulate('prefers-color-scheme' => 'dark');
	axe_ok($page, "$path in dark colors", @Slipway::Browser::color_rules);
	$page->size(320, 640);
	is($page->overflow, '', "$path fits 320 pixels");
}
$page->go('/slipway/users');
is($page->js('return [...document.querySelector("tbody tr").cells]'
	. '.map((e) => getComputedStyle(e, "::before").content).filter((text) => text !== "none").join()'),
    '"Mail: ","Role: ","Status: ","Last sign-in: "', 'a narrow table names its columns in each row')
    if $page->wait_for('tbody tr');
$page->visit('/slipway/nowhere');
ok($page->wait_for('h1', 'Not found'), 'an unknown address says so');
for my $id (qw(%E0 1x)) {
	$page->visit("/slipway/projects/$id");
	ok($page->wait_for('.trouble', 'no page at this address'), "the id $id names no page");
}

# --- keyboard
$page->size(1280, 800)->visit('/slipway/');
$page->wait_for('h1');
$page->press('Tab');
is(focused(), 'Skip to the content', 'the first Tab offers to skip the navigation');
ok($page->js('const r = document.activeElement.getBoundingClientRect(); return r.left >= 0 && r.top >= 0'),
    'the link is visible while it has the focus');

$page->emulate('prefers-reduced-motion' => 'reduce');
is($page->js(<<'JS'), '0s', 'nothing moves for a user who wants less motion');
	const one = document.body.appendChild(document.createElement('p'));
	one.className = 'loading';
	return getComputedStyle(one).animationDuration;
JS
$page->emulate('prefers-reduced-motion' => '');

# --- a link that signs in once, which a foreign page can contain
my $info = 'return fetch("/api/auth/info").then((r) => r.json()).then((u) => u.username ?? "none")';
sub who { return $page->js($info) }
$page->click('.menu summary')->click('.menu button');
ok($page->wait_for('#sign-in'), 'signing out returns to the sign-in page');
($id, $token) = token();
my $link = "/slipway/projects/$project#sign-in=$id.$token";
$page->visit('about:blank')->visit($link);
ok($page->wait_for('h1', 'Sign in as t-admin?'),
    'a link with a token in its fragment asks first');
unlike($page->url, qr/slw_/, 'the token leaves the address bar');
axe_ok($page, 'the question about a link');
is(who(), 'none', 'the link alone signs no one in');
$page->click('.sign-in .primary');
ok($page->wait_for('h1', 'Shop'), 'agreeing signs in and leads to the page of the link');
is($api->as('none')->get('/api/auth/info', { Authorization => "Bearer $token" })->{status}, 401,
    'the token works once');
my $other = $api->new_token('viewer', 'mallory');
my $other_id = row("SELECT id FROM api_token WHERE hash = '" . sha256_hex($other) . "'");
$page->js('location.hash = arguments[0]', "sign-in=$other_id.$other");
ok($page->wait_for('.notice', 'You are signed in as t-admin'),
    'a link of another user says which session ends');
unlike($page->url, qr/slw_/, 'that token leaves the address bar, too');
$page->click('.sign-in .ways button:last-child');
ok($page->wait_for('h1', 'Shop'), 'declining returns to the page');
is(who(), 't-admin', 'the session stays after declining');
my $sessions = row('SELECT COUNT(*) FROM session');
$page->js('location.hash = arguments[0]', "sign-in=$other_id.$other");
$page->click('.sign-in .primary');
ok($page->wait_until('document.querySelector(".menu summary")?.textContent.includes("mallory")'),
    'agreeing changes the user');
is(row('SELECT COUNT(*) FROM session'), $sessions, 'the session that it replaces has ended');

# --- roles
$page->js('return fetch("/api/auth/logout", { method: "POST" }).then(() => true)');
my $viewer = $api->token('viewer');
$page->visit('about:blank')->visit($link);
ok($page->wait_for('.sign-in .lead', 'This sign-in link'), 'a link that has been used says so');
$page->click('.sign-in .primary');
ok($page->wait_for('#sign-in'), 'and leads to the sign-in page');
$page->go('/slipway/sign-in?next=/../../api/health')->type('#sign-in-token', "$viewer\n");
ok($page->wait_for('.place'), 'a viewer sees the board');
is(join(' ', $page->texts('.top nav a')), 'Board Projects Deployments Runners',
    'a viewer is offered what a viewer may read');
is($page->js('return document.querySelectorAll("a[href$=deploy]").length'), 0,
    'a viewer is offered no way to deploy');

# A role in a project adds what it allows there.
my ($member) = $db->sql("SELECT id FROM user WHERE username = 't-viewer'") =~ /(\d+)/;
is($api->put("/api/projects/$project/members/$member", { role => 'maintainer' })->{status}, 200,
    'the viewer becomes a maintainer of the project');
$db->sql("UPDATE api_token SET role = 'admin' WHERE user_id = $member"); # which the session cannot exceed
is($api->post('/api/projects', { name => 'Foreign', repository => 'https://git.example.org/a/c' })->{status},
    201, 'a maintainer of a project cannot deploy another one');
$page->visit('/slipway/');
ok($page->wait_for('.project:nth-child(2) h2', 'Shop'), 'the board shows both');
is($page->js('return [...document.querySelectorAll("a[href$=deploy]")].map((a) => a.ariaLabel).join()'),
    'Deploy Shop', 'the board offers to deploy the own project');
$page->go("/slipway/projects/$project/settings");
ok($page->wait_for('#general .primary'), 'its settings can be changed');
$page->visit("/slipway/audit?projectId=$project");
ok($page->wait_for('.filter'), 'its changes are shown');
is(join(' ', $page->texts('.filter option')), 'Shop', 'those of the other project are not offered');
$page->go('/slipway/account');
ok($page->wait_for('#new-token'), 'the account offers tokens');
is(join(' ', $page->texts('#new-token [name=role] option')), 'Viewer Deployer Maintainer',
    'with the roles that the user has anywhere');
$page->go("/slipway/projects/$project/environments")->click('[aria-label="Edit production"]');
ok($page->wait_for('.choice', 't-viewer'), 'members can be approvers');

# --- a guest
$db->sql("UPDATE user SET role = 'guest' WHERE id = $member;"
    . " UPDATE member SET role = 'viewer' WHERE user_id = $member");
$page->visit('/slipway/');
for my $path ('/', '/projects', '/deployments', '/deployments/1', '/runners', '/account', '/pipelines/1',
	map { "/projects/$project$_" } '', qw(/pipelines /environments /schedules /members /settings)) {
	$page->go("/slipway$path");
	ok($page->wait_for('h1:not(.trouble h1)'), "a guest sees $path");
	next if $path eq '/account'; # has own tokens
	is(join(' | ', grep { /Foreign|Deploy$|Add|Edit|Delete|Lock|Retry|Roll/ }
	    $page->texts('main a.button, main button')), '', "$path offers a guest nothing that fails");
}
for my $path (qw(/users /variables /notifiers)) {
	$page->go("/slipway$path");
	ok($page->wait_for('h1', 'Not allowed'), "a guest does not see $path");
}
$page->go('/slipway/projects');
is(join(' ', $page->texts('tbody .cover')), 'Shop',
    'the list shows own projects only') if $page->wait_for('tbody');

# --- signing in by the Git server
my $forge = Slipway::Forge->start(redirect_uri => $api->url . '/slipway/sign-in');
$forge->user(ann => { id => 7, name => 'Ann Lee', email => 'ann@example.org' });
$api->write_conf("[api]\nworkers = 3\n" . $forge->conf . "[auth]\nadmins = ann\n");
$api->reload or die 'the workers were not replaced';
$page->js('return fetch("/api/auth/logout", { method: "POST" }).then(() => true)');
$page->cdp('Network.enable');
$page->cdp('Network.setExtraHTTPHeaders', headers => { 'X-Test-Login' => 'ann' });
$page->visit("/slipway/projects/$project/pipelines")->click('.ways .ways button');
ok($page->wait_for('.menu summary', 'Ann Lee'), 'the Git server signs a user in');
ok($page->wait_until('location.pathname.endsWith("/pipelines")'), 'the requested page follows');

# --- what changes: commits from the Git server
my $repo = $forge->repo('team/shop', users => ['ann']);
my @hash = map { $repo->commit('main', { file => "$_\n" }, "Change $_") } 1 .. 4;
is($api->put("/api/projects/$project", { repository => $repo->clone_url })->{status}, 200,
    'the project moves to the Git server');
my $staging = row("SELECT id FROM environment WHERE name = 'staging'");
$db->sql("UPDATE deployment SET status = 'success', commit_hash = '$hash[1]', environment_id = $staging"
    . " WHERE id = 1; UPDATE environment SET live_deployment = 1 WHERE id = $staging");
$page->go("/slipway/projects/$project/deploy?environment=$staging");
ok($page->wait_for('aside', '2 commits more than what is live'), 'the deploy form counts the new commits');
is_deeply([$page->texts('.commits .subject')], ['Change 4', 'Change 3'],
    'the deploy form lists the new commits, newest first');
sub suggested { return join '|', map { s/\n/ /gr } $page->texts('[role=option]') }
$page->type('[name=branch]', 'ma');
ok($page->wait_for('[role=option]', 'main'), 'it suggests the branches of the Git server')
    or diag(suggested());
$page->press('Down', 'Enter');
is($page->js('return document.querySelector("[name=branch]").value'), 'main', 'a key chooses one of them');
$page->click('[name=commitHash]');
ok($page->wait_until('document.querySelectorAll("[role=option]").length === 4'), 'it suggests the commits');
like(suggested(), qr/^Change 4 [0-9a-f]{8} .*just now/, 'with their hash, author and time');
axe_ok($page, 'the list of commits');
$page->type('[name=commitHash]', 'nge 3');
ok($page->wait_until('document.querySelectorAll("[role=option]").length === 1'),
    'their messages are searched');
$page->click('[role=option]');
ok($page->wait_for('aside', '1 commit more than what is live'), 'the chosen commit is compared');
$page->press('Down');
ok($page->wait_until('document.querySelectorAll("[role=option]").length === 4'),
    'the list has all commits although the field contains one');
$page->press('Escape');
is(suggested(), '', 'Escape closes the list');
$repo->tag('v2', $hash[2]);
$page->reload;
$page->click('[name=source][value=tag]');
ok($page->wait_gone('[name=commitHash]'), 'a tag needs no commit');
ok($page->wait_for('aside', 'Choose a tag'), 'nothing is compared before a tag is chosen');
$page->click('[name=tag]');
ok($page->wait_for('[role=option]', 'v2'), 'it suggests the tags');
$page->press('Escape')->type('[name=tag]', "v2\t");
ok($page->wait_for('aside', '1 commit more than what is live'), 'a tag stands for its commit');
$page->click('#deploy .primary');
ok($page->wait_until('/deployments.\d+$/.test(location.pathname)'), 'a tag is deployed');
is(row('SELECT CONCAT_WS(" ", tag, branch) FROM deployment ORDER BY id DESC LIMIT 1'), 'v2',
    'instead of a branch');

# --- a new project from the list of repositories
my $site = $forge->repo('team/web-site', users => ['ann'], private => 1);
$page->go('/slipway/projects/new')->type('#new-project-repository', 'WEB');
ok($page->wait_for('[role=option]', 'team/web-site'), 'the repositories of the Git server are searched');
ok($page->wait_until('document.querySelectorAll("[role=option]").length === 1'), 'others are not offered');
axe_ok($page, 'the list of repositories');
$page->press('Down');
is($page->js('const i = document.activeElement;'
	. ' return document.getElementById(i.getAttribute("aria-activedescendant")).textContent'),
    'team/web-site', 'a key moves to a repository');
$page->press('Enter');
is($page->js('return ["repository", "name"].map((n) =>'
    . ' document.querySelector(`#new-project-${n}`).value).join(" ")'),
    $site->clone_url . ' web-site', 'Enter takes its address and its name');
ok($page->wait_gone('[role=option]'), 'the list closes');
$page->click('#new-project .primary');
ok($page->wait_for('h1', 'Add a pipeline'), 'the project is added');
$page->go('/slipway/projects/new');
$forge->fault('/api/v1/repos/search', kind => 'status', status => 500);
$page->type('#new-project-repository', 'web');
ok($page->wait_for('.combobox [role=status]', '500'), 'the error of the Git server is shown');
$forge->clear_faults;
$page->type('#new-project-repository', '-')->click('[role=option]');
is($page->js('return document.querySelector("#new-project-repository").value'), $site->clone_url,
    'the list works again when the Git server does, and by a click');

$page->stop;
done_testing;
