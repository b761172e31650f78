#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The page of a deployment and its log viewer, in Chromium: what is shown first, colors,
# links, search, folding, following, a lost connection, keys, and what may be done.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::Browser;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(runner => "[runner]\nslots = 2\n");
my $api = $all->api;
my $live_pid = $api->live_pid;
my $project = $all->project(make_repo(tempdir() . '/repo'));
my $page = Slipway::Browser->start(origin => $api->url, certificate => $api->cacert);
$page->pardon(qr/favicon\.ico/); # which the browser wants beside a file that is no page
my ($version) = slurp(builddir() . '/src/console/index.html') =~ m{/slipway/([^/]+)/main\.js};

sub sign_in {
	my ($name, $role) = @_;
	# a file of the origin that runs no script
	$page->visit("/slipway/$version/icon.svg");
	$page->cookie('__Host-slipway' => $api->new_session($name, $role));
	return;
}

# The rows in view, from the top.
sub in_view {
	return @{ $page->js(<<'JS') };
		const pane = document.querySelector('.log-pane')?.getBoundingClientRect();
		return pane === undefined ? [] : [...document.querySelectorAll('.log-row')].filter((row) => {
			const { top, bottom } = row.getBoundingClientRect();
			return bottom > pane.top + 2 && top < pane.bottom - 2;
		}).map((row) => row.querySelector('.log-text, .log-step-name').textContent);
JS
}
sub sees { my ($text) = @_; return poll(60, sub { grep { index($_, $text) >= 0 } in_view() }) }
sub row_with {
	my ($text) = @_;
	return "[...document.querySelectorAll('.log-row')].find((r) => r.textContent.includes('$text'))";
}

# What code makes of a module of the viewer, `m`, and of arguments, `a`.
sub module {
	my ($name, $code, @args) = @_;
	$name = "log/$name" if $name !~ m{/};
	return $page->js("const a = arguments[0]; return import('/slipway/$version/$name.js')"
	    . ".then((m) => $code)", \@args);
}
sub lines { return grep { !/^$/ } $page->texts('.log-text') }
sub expanded {
	return join ' ', map { $_ eq 'true' ? 'open' : 'closed' }
	    @{ $page->js('return [...document.querySelectorAll(".log-step button")]'
		    . '.map((b) => b.getAttribute("aria-expanded"))') };
}

my $build = <<'SH';
printf '\e[31mred\e[0m \e[1;38;5;208morange\e[0m \e[38;2;10;20;200mblue\e[0m plain\n'
printf 'progress 10%%\rprogress 90%%\rdone\e[K\n'
echo 'see https://example.org/a?b=c. or javascript:alert(1) <img src=x onerror=alert(1)>'
for ((i = 1; i <= 5000; i++)); do echo "made part $i"; done
SH
my $pipeline = $all->pipeline($project,
	{ name => 'Install', script => 'for ((i = 1; i <= 300; i++)); do echo "installed $i"; done' },
	{ name => 'Build <b>', script => $build },
	{ name => 'Test', script => 'echo testing; echo "it is broken"; exit 3' },
	{ name => 'Publish', script => 'true' });
my $failed = $all->post(pipelineId => $pipeline, projectId => $project);
$all->wait($failed);
sign_in('ann', 'admin');

# --- the state of a failed deployment
$page->go("/slipway/deployments/$failed");
ok($page->wait_for('.reason', 'Step 3 (Test) ended with exit status 3.'), 'the reason is on top');
like($page->title, qr/^Failed: project 1 #$failed/, 'the title shows the state');
like($page->js('return document.querySelector("link[rel=icon]").href'), qr{^data:image/svg},
    'the icon of the tab shows the state');
is($page->js('return document.querySelectorAll("h1 .status.failed svg").length'), 1,
    'the state is a shape beside the word');
like($page->js('return document.querySelector(".steps-bar").getAttribute("aria-label")'),
    qr/Install: Succeeded, \d.*Test: Failed, \d.*Publish: Skipped/, 'durations are in words');

# --- the log
ok(sees('it is broken'), 'a failed deployment opens at the step that failed');
is(expanded(), 'closed closed open', 'only the failed step is open');
$page->click('.steps li:first-child a');
ok(sees('installed 1'), 'the name of a step leads to its output');
$page->js('document.querySelector(".log-pane").focus()');
$page->press('G')->click('.steps li:first-child a');
ok(sees('installed 1'), 'again, too');

# --- a part of the log that does not come
# Has this code of a function respond to requests for a part of a log.
sub parts_by {
	my ($code) = @_;
	return $page->js("window.real ??= fetch; window.asked = 0; const part = async (signal) => { $code };"
		. 'window.fetch = (address, init) => { if (!init?.headers?.Range) return real(address, init);'
		. ' window.asked++; return part(init.signal); }');
}
parts_by('await new Promise((done) => signal.addEventListener("abort", done)); throw signal.reason;');
$page->go('/slipway/deployments')->go("/slipway/deployments/$failed");
ok($page->wait_until('asked > 0'), 'a part of the log is on its way');
$page->go('/slipway/deployments');
ok($page->wait_for("tr[data-key='$failed']"), 'its page can be left meanwhile');
parts_by('return new Response("{}", { status: 404 });');
$page->go("/slipway/deployments/$failed");
ok($page->wait_for('.log-problem'), 'a part that does not exist is a problem');
cmp_ok($page->js('return new Promise((done) => setTimeout(() => done(asked), 300))'), '<', 5,
    'it is not requested again and again');
$page->js('window.fetch = real');
$page->go('/slipway/deployments');

$page->go("/slipway/deployments/$failed");
ok(sees('it is broken'), 'the page without the link opens at the failed step again');
is(join(' ', grep { /step \d:/ } lines()), '==> step 3: Test',
    'the line that announces a step is folded with it');
is(scalar(grep { /^\d+(?:\.\d)? m?s$/ } $page->texts('.log-step-time')), 3, 'each step has its duration');
my $failed_icon = $page->js('return document.querySelector("link[rel=icon]").href');
$page->go('/slipway/deployments')->click("tr[data-key='$failed'] a.cover");
ok(sees('it is broken'), 'a click in the list leads to the failed step');
$page->js('document.querySelectorAll(".log-step button")[1].focus()');
$page->press('Enter');
ok(sees('red orange blue plain'), 'a key opens a step');
is($page->js('return document.activeElement.closest(".log-step")?.innerText'),
    $page->js('return document.querySelectorAll(".log-step")[1].innerText'),
    'a step keeps the focus when it is drawn again');
is($page->js('return ' . row_with('red orange') . '.querySelector(".fg1").textContent'), 'red',
    'one of the first eight colors');
is($page->js('return getComputedStyle(' . row_with('red orange') . '.querySelector(".bold")).color'),
    'rgb(255, 135, 0)', 'one of 256 colors');
unlike($page->js('return getComputedStyle(' . row_with('red orange')
	. '.querySelectorAll("span span")[2]).color'), qr/^rgb\(10, 20, 200\)$/,
    'a color too dark for the ground is lightened');
ok((grep { $_ eq 'done' } in_view()), 'of a line that is written again, the last state is shown');
ok(!$page->js('return document.querySelector(".log img")'), 'text of a log never becomes an element');
is_deeply($page->js('return [...' . row_with('example.org') . '.querySelectorAll(".log-text a")]'
	. '.map((a) => [a.href, a.rel])'), [['https://example.org/a?b=c', 'noopener noreferrer']],
    'an address is a link, and a script is not');
cmp_ok($page->js('return document.querySelectorAll(".log-row").length'), '<', 250,
    'a log of thousands of lines needs few elements');

# --- search
$page->press('Control+f');
is($page->js('return document.activeElement.className'), 'log-search', 'Ctrl+F searches the log');
$page->type('.log-search', 'INSTALLED 25');
ok($page->wait_for('.log-count', '1 of 11'), 'the search counts the hits in the whole log');
ok(sees('installed 25'), 'a hit in a closed step opens it');
is($page->text('.log-row.current mark'), 'installed 25', 'and is marked');
$page->press('Enter');
ok($page->wait_for('.log-row.current', 'installed 250'), 'Enter goes to the next hit');
$page->press('Tab')->js('document.querySelector(".log-pane").focus()');
$page->press('N');
ok($page->wait_for('.log-count', '1 of 11'), 'N goes to the previous hit');
$page->clear('.log-search')->type('.log-search', 'no such text');
ok($page->wait_for('.log-count', 'Nothing found'), 'a search without a hit says so');
$page->js('document.querySelector(".log-pane").focus()');

# --- keys, links to lines
$page->press('G');
ok(sees('step 3 ended'), 'G goes to the end');
$page->press('g');
ok(sees('checkout of'), 'g goes to the start');
sub top { return $page->js('return document.querySelector(".log-pane").scrollTop') }
my $before = top();
$page->press('j', 'j');
is(top() - $before, 120, 'j scrolls down');
$page->press('k', 'k');
is(top(), $before, 'k scrolls up');
$page->press('?');
ok($page->wait_for('.log-keys', 'next hit'), '? shows the keys');
$page->press('?', 'j', 'j', 'l');
ok($page->wait_until('/^#L\d+-\d+$/.test(location.hash)'), 'l links to a line');
my $line = $page->text('.log-row.picked .log-text');
$page->go('/slipway/deployments')->go("/slipway/deployments/$failed"
    . $page->js('return arguments[0]', '#L' . index($all->log($failed), 'made part 2500')));
ok($page->wait_for('.log-row.picked', 'made part 2500'), 'a link to a line shows it');
ok(sees('made part 2500'), 'the line is in view');
is($page->text('.log-banner'), 'Build <b>', 'its step is named although the heading is out of view');
sub mark {
	my ($text, $shift) = @_;
	return $page->js('const mark = ' . row_with($text) . '.querySelector(".log-mark");'
	    . ' mark.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true,'
	    . ' shiftKey: arguments[0] === 1 }))', $shift ? 1 : 0);
}
sub picked { return join ' ', map { /(\d+)$/ ? $1 : () } $page->texts('.log-row.picked .log-text') }
mark('made part 2500');
mark('made part 2503', 1);
is(picked(), '2500 2501 2502 2503', 'Shift and a click link to a range');
my $log = $all->log($failed);
is($page->js('return location.hash'), sprintf('#L%d-%d', index($log, 'made part 2500'),
	index($log, 'made part 2504')), 'by its offsets');
$page->reload;
ok(sees('made part 2500'), 'the link to a range shows it');
is(picked(), '2500 2501 2502 2503', 'the link to a range highlights it');

# --- settings
$page->click('.log-choices button[aria-pressed]');
$page->choose('.log-choices select', 'elapsed');
$page->reload;
ok($page->wait_for('.log.wraps .log-time'), 'wrapping and times are remembered');
ok(sees('made part 2500'), 'the line is still in view');
sub time_of {
	my ($text) = @_;
	return $page->wait_until(row_with($text) . '?.querySelector(".log-time")?.dataset.time');
}
like(time_of('made part 2500'), qr/^\d+:\d\d$/, 'the time of a line since the deployment started');
$page->choose('.log-choices select', 'clock');
like(time_of('made part 2500'), qr/^\d\d:\d\d:\d\d$/, 'the time of a line by the clock');
is($page->js(<<'JS'), join("\n", map { "made part $_" } 2500 .. 2502),
	const rows = [...document.querySelectorAll('.log-row')];
	const row = (text) => rows.find((one) => one.textContent.includes(text));
	const range = new Range();
	range.setStartBefore(row('made part 2500'));
	range.setEndAfter(row('made part 2502'));
	getSelection().removeAllRanges();
	getSelection().addRange(range);
	return getSelection().toString().trim().replace(/\n+/g, '\n');
JS
    'copying takes no gutter and no times');
is($page->js('return fetch(document.querySelector(".log-choices a:not([download])").href)'
	. '.then((r) => r.text())'), $log, 'a link leads to the raw log');
is($page->js('return document.querySelector(".log-choices a[download]").download'), "deployment-$failed.log",
    'another one saves it');

# --- where a log opens, and its height
my $long = $all->pipeline($project, 'for ((i = 1; i <= 20500; i++)); do echo "row $i of a long log"; done');
my $short = $all->pipeline($project, 'echo brief');
my ($tall, $flat) = map { $all->post(pipelineId => $_, projectId => $project) } $long, $short;
$all->wait($_) for $tall, $flat;
sub pane { return $page->js('const p = document.querySelector(".log-pane"); return ' . $_[0]) }
$page->go("/slipway/deployments/$tall");
ok(sees('row 20500 of'), 'a log opens at its end');
isnt($page->js('return document.querySelector("link[rel=icon]").href'), $failed_icon,
    'the icon of a success is another one');
cmp_ok(pane('p.clientHeight'), '>', 300, 'a long log fills the window');
$page->click('.log-banner button');
ok($page->wait_until('document.querySelectorAll(".log-step [aria-expanded=false]").length === 1'),
    'a click on the name of the step folds it');
is($page->text('.log-banner'), '', 'a heading in view is not named again');
$page->click('.log-step button')->js('document.querySelector(".log-pane").focus()');
$page->press('g');
ok(sees('row 1 of'), 'its start is a key away');
$page->type('.log-search', 'of a long log');
ok($page->wait_for('.log-count', '1 of the first 20000'), 'a search that stops says so');
$page->go("/slipway/deployments/$flat");
ok(sees('brief'), 'a short log is shown');
ok($page->wait_until('document.querySelector(".log-pane").clientHeight < 200'), 'in a low pane');
is(pane('p.scrollHeight - p.clientHeight'), 0, 'the pane has nothing to scroll');

# --- a running deployment
my $gate = $all->marks('gate');
my $slow = $all->pipeline($project, { name => 'Wait',
	script => "exec 9<> <(:); n=0; while [ \$n -lt 400 ]; do"
	. " mapfile -t want <$gate;"
	. " while [ \$n -lt \${#want[@]} ]; do n=\$((n + 1)); echo \"tick \$n.\"; done;"
	. ' read -rt 0.1 -u 9 || true; done' });
sub tick { my ($n) = @_; return spew($gate, "x\n" x $n) }
tick(100);
my $running = $all->post(pipelineId => $slow, projectId => $project);
my $next = $all->post(pipelineId => $pipeline, projectId => $project);
$page->go("/slipway/deployments/$running");
ok(sees('tick 100.'), 'the log of a running deployment is shown');
tick(110);
ok(sees('tick 110.'), 'the view follows the log');
$page->wheel('.log-pane', -600);
ok(poll(60, sub { !grep { /tick 110\./ } in_view() }), 'the user scrolls up');
tick(120);
ok($page->wait_for('.log-new', 'new lines'), 'new lines below the view are counted');
ok(!(grep { /tick 120\./ } in_view()), 'the view stays where the user reads');
$page->click('.log-new');
ok(sees('tick 120.'), 'the button goes to the end');
ok($page->wait_gone('.log-new'), 'the button vanishes');

$page->js(<<'JS');
	const pane = document.querySelector('.log-pane');
	pane.scrollTop -= 40;
	pane.scrollTop = pane.scrollHeight;
	document.querySelector('.log-bar').style.paddingTop = '60px';
JS
tick(125);
ok(sees('tick 125.'), 'the view follows the log when something appears above it');
$page->js(<<'JS');
	const { style } = document.querySelector('.log-bar');
	const pane = document.querySelector('.log-pane');
	return new Promise((resolve) => {
		requestAnimationFrame(() => requestAnimationFrame(() => {
			style.paddingTop = '';
			pane.scrollTop += 0; // the browser lays out the page
			style.paddingTop = '60px';
			setTimeout(resolve, 100);
		}));
	});
JS
tick(127);
ok(sees('tick 127.'), 'the view follows the log when something vanishes and comes back');
$page->js('document.querySelector(".log-bar").style.paddingTop = ""');

# --- the user scrolls up by less than a banner can move the view
sub touch {
	my ($type, @points) = @_;
	return $page->cdp('Input.dispatchTouchEvent', type => $type, touchPoints => \@points);
}
my ($x, $y) = @{ $page->js('const { left, top, height } = document.querySelector(".log-pane")'
	. '.getBoundingClientRect(); return [left + 200, top + height / 2]') };
my $tick = 127;
for my $way (
	['a finger', sub { touch(touchStart => { x => $x, y => $y });
		touch(touchMove => { x => $x, y => $y + $_ }) for 20, 40, 60 }, sub { touch('touchEnd') }],
	['the key k', sub { $page->press('k') }, sub { }],
	['an arrow key', sub { $page->js('document.querySelector(".log-pane").focus()'); $page->press('Up') },
		sub { }],
) {
	my ($what, $begin, $end) = @$way;
	$begin->();
	tick(++$tick);
	ok($page->wait_for('.log-new', 'new line'), "$what that scrolls up a little ends the following");
	$end->();
	$page->click('.log-new');
	ok(sees("tick $tick."), "the button goes to the end after $what");
}

# --- a log that grows while its first bytes are fetched
my $delay = $page->cdp('Page.addScriptToEvaluateOnNewDocument', source => <<'JS')->{identifier};
	const request = window.fetch;
	window.grown = 0;
	window.fetch = async (address, init) => {
		const response = await request(address, init);
		if (init?.headers?.Range !== undefined && window.release === undefined)
			await new Promise((resolve) => { window.release = resolve; });
		if (String(address).includes('wait=') && response.ok)
			window.grown += 1;
		return response;
	};
JS
$page->visit("/slipway/deployments/$running");
ok($page->wait_until('window.release !== undefined'), 'the first bytes are on their way');
tick(130);
ok($page->wait_until('window.grown > 0'), 'the log grows meanwhile');
$page->js('setTimeout(window.release)');
ok(sees('tick 130.'), 'what came meanwhile is shown');
$page->cdp('Page.removeScriptToEvaluateOnNewDocument', identifier => $delay);

# --- a connection that is lost
stop_process($api->nginx_pid);
ok($page->wait_for('.log-lost'), 'a lost connection is shown');
tick(140);
$api->start_nginx;
ok(sees('tick 140.'), 'the log continues when the connection is back');
ok($page->wait_gone('.log-lost'), 'the connection is shown as restored');
my $ticks = $page->js('return [...document.querySelectorAll(".log-text")]'
    . '.flatMap((e) => /^tick (\d+)\.$/.exec(e.textContent)?.[1] ?? [])');
is("@$ticks", join(' ', $ticks->[0] .. 140), 'no line is missing or shown twice');
$page->press('g');
ok(sees('tick 1.'), 'the start of the log is reachable');
is(expanded(), 'open', 'the step that runs is open');

# --- waiting, canceling, repeating
$page->go("/slipway/deployments/$next");
ok($page->wait_for('.waiting', 'Next in the queue'), 'a pending deployment shows its place in the queue');
ok($page->wait_for('.waiting', "Deployment $running of this project is running."),
    'a pending deployment says what it waits for');
$page->cdp('Page.enable');
my $deaf = $page->cdp('Page.addScriptToEvaluateOnNewDocument', source => <<'JS')->{identifier};
	window.told = [];
	window.Notification = class {
		static permission = 'default';
		static async requestPermission() { Notification.permission = 'granted'; }
		constructor(title) { told.push(title); }
	};
JS
$page->visit("/slipway/deployments/$running")->click('.overview button');
ok($page->wait_gone('.overview button'), 'a running deployment offers a notification');
$page->js('Object.defineProperty(document, "visibilityState", { get: () => "hidden" })');
$page->click('.actions .danger');
ok($page->wait_for('h1 .status.canceled', 'Canceled'), 'a running deployment can be canceled');
is($page->js('return told.join()'), "Canceled: project 1 #$running",
    'its end notifies a user who looks elsewhere');
$page->cdp('Page.removeScriptToEvaluateOnNewDocument', identifier => $deaf);
$page->click('.actions button');
ok($page->wait_until('!location.pathname.endsWith("/" + arguments[0])', $running),
    'a retry shows its own page');
ok($page->wait_for('.facts', "Deployment $running"), 'a retry names the deployment that it repeats');
tick(400);

# --- promoting, rolling back, approving
sub environment {
	my (%with) = @_;
	return $api->make('/api/environments', { projectId => $project, %with })->{id};
}
my $staging = environment(name => 'staging');
my $live = environment(name => 'live', approval => 'required');
my $quick = $all->pipeline($project, 'echo done');
sub button { my ($text) = @_; return ".actions button[data-key=\"$text\"]" }
sub moved_from {
	my ($id) = @_;
	$page->wait_until('/\d+$/.exec(location.pathname)?.[0] !== arguments[0]', "$id");
	return $page->url =~ /(\d+)$/ ? $1 : 0;
}
my ($first, $good) = map {
	$all->post(pipelineId => $quick, projectId => $project, environmentId => $staging) } 1, 2;
is($all->wait($good)->{status}, 'success', 'a deployment to an environment ends')
    or diag(explain($all->show($good)->{waitingFor}));
$page->go("/slipway/deployments/$good")->click(button('Promote'));
ok($page->wait_for('dialog select', 'live'), 'a successful deployment can be promoted');
is($page->js('return document.querySelectorAll("dialog option").length'), 1,
    'its own environment is no choice');
$api->put("/api/projects/$project", { envPresets => [
	{ key => 'GREETING', label => 'Greeting', type => 'input', required => \1 },
	{ key => 'TARGET', label => 'Where to', type => 'select', default => 'a',
		options => [{ label => 'A', value => 'a' }] }] });
$page->click('dialog .actions button:not(.primary)')->click(button('Promote'));
ok($page->wait_for('dialog [data-field="env.GREETING"]', 'Greeting'), 'the dialog asks for the variables');
$page->click('dialog .actions .primary');
ok($page->wait_for('dialog [data-field="env.GREETING"] .fault', 'is required'),
    'a variable that is missing is marked at its field');
$page->type('dialog [name="env.GREETING"]', 'moin')->click('dialog .actions .primary');
my $promoted = moved_from($good);
is($all->show($promoted)->{envVars}{GREETING}, 'moin',
    'the promotion has the variables of the dialog');
$api->put("/api/projects/$project", { envPresets => [] });
is($all->show($promoted)->{environmentId}, $live, 'the promotion deploys to the other environment');
sign_in('bob', 'maintainer');
$page->go("/slipway/deployments/$promoted")->click(button('Deny'));
$page->type('dialog [name=comment]', "Not on a Friday\n");
ok($page->wait_for('h1 .status.canceled', 'Canceled'), 'another user denies it');
is($all->show($promoted)->{approvalComment}, 'Not on a Friday', 'the comment of a denial is stored');
ok($page->wait_for('.facts', 'Denied by bob'), 'the page says who denied it');
ok($page->wait_for('.facts', 'ann, promotion'), 'the page says who started the deployment, and how');
$page->go("/slipway/deployments/$good");
ok($page->wait_for(button('Promote')), 'the page of the live deployment offers other actions');
is($page->js('return document.querySelectorAll(arguments[0]).length', button('Roll back to this')), 0,
    'the page of the live deployment offers no rollback to itself');
$page->go("/slipway/deployments/$first")->click(button('Roll back to this'));
ok($page->wait_for('dialog h2', "Roll back staging to deployment $first"), 'a rollback asks first');
$page->type('dialog [name=reason]', "The second is broken\n");
my $back = moved_from($first);
is($all->show($back)->{rollbackReason}, 'The second is broken', 'with its reason');
is($all->show($back)->{trigger}, 'rollback', 'an earlier deployment is deployed again, ahead of the queue');
ok($page->wait_for('.facts', 'staging'), 'the page of a deployment names its environment');
$page->go('/slipway/deployments');
ok($page->wait_for('tr:first-child .place-name', 'staging'), 'the list names the environment');
ok($page->wait_for('tr:first-child .who', 'bob, rollback'), 'the list says who started it, and how');
$all->wait($back);
tick(0);
my $held = $all->post(pipelineId => $slow, projectId => $project, environmentId => $staging);
$page->go("/slipway/deployments/$held")->click(button('Cancel and roll back'));
ok($page->wait_for('dialog h2', "Cancel deployment $held"), 'canceling with a rollback asks first');
$page->click('dialog button:not(.danger)');
is($all->show($held)->{status}, 'running', 'declining leaves the deployment running');
$page->click(button('Cancel and roll back'))->click('dialog .danger');
ok($page->wait_for('h1 .status.canceled', 'Canceled'), 'a running deployment is canceled and rolled back');
is(scalar(grep { $_->{trigger} eq 'rollback' }
	    @{ $api->get("/api/deployments?environmentId=$staging")->{json}{data} }), 2,
    'the rollback follows');

$page->go('/slipway/runners');
ok($page->wait_for('tbody tr', 'Online'), 'the page of runners shows a runner that is online');
axe_ok($page, 'the page of runners');

# --- the stream of events, without the intervals that stand in for it
$page->cdp('Page.enable');
my $script = $page->cdp('Page.addScriptToEvaluateOnNewDocument', source => <<'JS')->{identifier};
	const wait = setTimeout;
	window.setTimeout = (f, ms, ...more) => ms > 5000 ? 0 : wait(f, ms, ...more);
	window.streams = [];
	window.EventSource = class extends EventSource {
		constructor(url) { super(url); streams.push(this); }
	};
JS
my $first_tab = $page->this_tab;
$page->visit("/slipway/projects/$project");
ok($page->wait_until('streams.length === 1 && streams[0].readyState === 1'), 'a tab listens to the stream');
my $streamed = $all->post(pipelineId => $quick, projectId => $project, environmentId => $staging);
ok($page->wait_for("tr[data-key=\"$streamed\"]", 'Succeeded'), 'the page follows the stream alone');
$page->new_tab;
$page->cdp('Page.addScriptToEvaluateOnNewDocument', source => 'window.silent = true;'
    . ' window.EventSource = class extends EventSource {'
    . ' constructor(url) { super(url); silent = false; } };');
$page->visit('/slipway/');
ok($page->wait_until('silent === false'), 'a tab that is opened in front takes the lead');
$page->tab($first_tab);
ok($page->wait_until('streams[0].readyState === 2'), 'the tab behind closes its stream');
$streamed = $all->post(pipelineId => $quick, projectId => $project, environmentId => $staging);
ok($page->wait_for("tr[data-key=\"$streamed\"]", 'Succeeded'), 'the tab behind still follows');
stop_process($live_pid);
$streamed = $all->post(pipelineId => $quick, projectId => $project, environmentId => $staging);
ok($page->wait_for("tr[data-key=\"$streamed\"]", 'Succeeded'),
    'without the stream, the page follows at intervals');
tick(10);
$running = $all->post(projectId => $project, pipelineId => $slow, environmentId => $staging);
$page->go("/slipway/deployments/$running");
ok(sees('tick 10.'), 'without slipway-live, the log of a running deployment is shown');
tick(20);
ok(sees('tick 20.'), 'without slipway-live, the log that is shown grows');
ok($page->wait_gone('.log-lost'), 'the connection is not lost');
tick(400);
$page->cdp('Page.removeScriptToEvaluateOnNewDocument', identifier => $script);

sign_in('vic', 'viewer');
$page->go("/slipway/deployments/$failed");
ok(sees('it is broken'), 'a viewer reads the log');
is($page->js('return document.querySelectorAll(".actions").length'), 0, 'a viewer can start nothing');

# --- everyone
for my $theme (qw(light dark)) {
	$page->emulate('prefers-color-scheme' => $theme);
	axe_ok($page, "the page of a deployment in $theme colors");
}
$page->size(320, 640);
is($page->overflow, '', 'the page fits into 320 pixels');

$page->size(1280, 800)->emulate(media => 'print');
is($page->js('return ["header", ".log-bar", ".log-mark"]'
	. '.map((css) => getComputedStyle(document.querySelector(css)).display).join()'), 'none,none,none',
    'print leaves out what only a screen can use');
is($page->js('const s = (css) => getComputedStyle(document.querySelector(css));'
	. ' return [s(".log-text").color, s(".log").backgroundColor, s(".log-pane").overflowY].join()'),
    'rgb(0, 0, 0),rgb(255, 255, 255),visible', 'print shows the log in black on white');
$page->emulate(media => '');

# --- a link to a line survives the sign-in
$page->cdp('Network.clearBrowserCookies');
my $at = index $log, 'made part 2500';
$page->visit('about:blank')->visit("/slipway/deployments/$failed#L$at");
$page->type('#sign-in-token', $api->token('viewer') . "\n");
ok($page->wait_for('.log-row.picked', 'made part 2500'), 'a link to a line survives the sign-in');

# --- the modules by themselves
my @states = qw(pending running success failed canceled interrupted skipped locked none);
is(module('lib/status', <<'JS', @states), scalar @states,
	new Set(a.map((state) => {
		const shown = m.deploymentStatus({ status: state, approval: null });
		document.querySelector('main').append(shown);
		return [...shown.querySelectorAll('path, circle')].map((p) => p.getAttribute('d')).join();
	})).size
JS
    'each state has a shape of its own');
sub of_state {
	my ($state, $what) = @_;
	return $page->js("const e = [...document.querySelectorAll('main > .status.$state')].at(-1);"
	    . " return $what");
}
is(scalar(keys %{ { map { of_state($_, 'e.textContent') => 1 } @states } }), scalar @states,
    'each state has a word of its own');
my %color = map { $_ => of_state($_, 'getComputedStyle(e).color') } @states;
is(scalar(keys %{ { map { $color{$_} => 1 } qw(success failed running pending canceled) } }), 5,
    'those of a deployment differ in color, too');
is_deeply(module('source', "import('/slipway/$version/log/lines.js').then(({ Block }) => {"
	. ' const s = new m.LogSource("", new AbortController().signal, () => {});'
	. ' s.blocks.set(0, new Block(0, new Uint8Array([97, 10, 98, 10]))); s.loading.add(0);'
	. ' return [0, 2, 5].map((at) => s.lineAt(at)?.start ?? null); })'), [0, 2, undef],
    'a line is unknown until its bytes have come');
sub shown { my ($text) = @_; return module('ansi', 'm.plain(m.spansOf(a[0]))', $text) }
is(shown("one\rtwo!\b?"), 'two?', 'a carriage return and a backspace move back');
is(shown("long line\r\e[Kend"), 'end', 'the rest of a line is erased');
is(shown("ab\e[2K\e[3Gc"), '  c', 'a line is erased, and the cursor goes to a column');
is(shown("\e]0;title\a\e]8;;https://a.example\e\\a\e(B\e[?25lb"), 'ab', 'other sequences leave no trace');
is(shown("\eP1q#0\ea\eXb\e\\c\e^d\ae\e_f\x{9c}g\x{90}h\x{9c}i\x{9b}1mj\x{85}k\x{9d}0;l"), 'cegijk',
    'command strings leave no trace, with ESC or as C1 characters');
is(shown("a\e]0;b\x18c\e]0;d\e[1me"), 'ace', 'a string without an end ends at CAN or the next sequence');
is(shown("\e[31"), '31', 'a sequence that is cut leaves no control character');
is(module('ansi', 'm.plain(m.spansOf(a[0])).length', "\e[1000C" x 1000 . 'x'), 8193,
    'a cursor far to the right costs no more than a long line');
is_deeply(module('ansi', 'm.spansOf(a[0]).map(({ style }) => [style.fg, style.bg, style.bold])',
	"\e[1;31mx\e[22;48;5;17my\e[38;2;1;2;3mz\e[mw"),
    [map { [@$_[0, 1], $_->[2] ? Cpanel::JSON::XS::true : Cpanel::JSON::XS::false] }
	[1, undef, 1], [1, 17, 0], [[1, 2, 3], 17, 0], [undef, undef, 0]], 'styles accumulate until a reset');

# Lines of a log, read block by block in any order.
my $text = join '', map { "line $_ " . ('x' x ($_ * 37 % 300)) . "\n" } 1 .. 3000;
$text .= ('y' x 200_000) . "\nend";
my $found = module('lines', <<'JS', $text);
{
	const bytes = new TextEncoder().encode(a[0]);
	const starts = [];
	const ends = [];
	for (let i = Math.ceil(bytes.length / m.BLOCK) - 1; i >= 0; i--) {
		const { start, end } = m.extent(i, bytes.length);
		const block = new m.Block(i, bytes.subarray(start, end));
		starts.unshift(...block.starts.slice(0, -1));
		ends.unshift(...block.starts.slice(1));
	}
	return [starts.join(), ends.join(), starts.length];
}
JS
my @starts = split /,/, $found->[0];
my @ends = split /,/, $found->[1];
is($starts[0], 0, 'the first line begins at the start');
is($ends[-1], length $text, 'the last line ends at the end');
is_deeply([grep { $starts[$_ + 1] != $ends[$_] } 0 .. $#starts - 1], [],
    'every line begins where the one before it ends');
my @want = (0);
push @want, $-[0] + 1 while $text =~ /\n/g;
my %have = map { $_ => 1 } @starts;
is_deeply([grep { !$have{$_} } @want], [], 'every line of the text begins a line');
cmp_ok(scalar @starts, '<', @want + 40, 'only lines that are too long are cut');

done_testing;
