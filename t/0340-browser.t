#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The browser of the tests: it shows what a page does wrong, acts as a user does, and
# ends with its test.

use strict;
use warnings;
use Slipway::Background;
use Slipway::Browser;
use Slipway::Front;
use Slipway::Test;
use Test2::API qw(intercept);
use Test::More;

my %file = (
	'fine.html' => <<'HTML',
<!DOCTYPE html><html lang="en"><head><title>Fine</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="fine.css">
<script type="module" src="fine.js"></script></head>
<body><main><h1>Fine</h1><label>Name <input id="name"></label>
<button id="say">Say</button><p id="said"></p><button id="late" disabled>Late</button>
<button id="jumps">Jumps</button><p id="hits"></p>
<p id="keys"></p><select id="sizes" aria-label="Size"><option value="s">Small</option>
<option value="l">Large</option></select><p id="size"></p>
<button id="below">Below</button><div id="cover"></div><div id="wide">wide</div></main></body></html>
HTML
	'fine.css' => "\@media (prefers-color-scheme: dark) { body { background: #000; color: #fff } }\n"
	    . "#wide { width: 600px } #below { margin-top: 2000px }\n"
	    . "#cover { position: relative; top: -1em; height: 2em; background: #fff }\n",
	'fine.js' => <<'JS',
const at = (id) => document.getElementById(id);
at('say').addEventListener('click', () => {
	setTimeout(() => { at('said').textContent = 'hello ' + at('name').value; }, 50);
});
at('jumps').addEventListener('mousedown', () => { at('jumps').style.marginLeft = '200px'; });
at('sizes').addEventListener('change', ({ target }) => { at('size').textContent = target.value; });
for (const id of ['late', 'jumps', 'below'])
	at(id).addEventListener('click', () => { at('hits').textContent += id + ' '; });
addEventListener('scroll', () => setTimeout(() => at('cover').remove(), 300), { once: true });
at('below').addEventListener('click', () => setTimeout(() => { at('late').disabled = false; }, 300));
document.addEventListener('keydown', (e) => {
	at('keys').textContent += (e.ctrlKey ? 'C-' : '') + (e.shiftKey ? 'S-' : '') + e.key + ' ';
});
fetch('/api/nothing');
JS
	'throws.html' => '<!DOCTYPE html><link rel="icon" href="data:,"><script src="throws.js"></script>',
	'throws.js' => 'throw new Error("the page is broken");',
	'inline.html' => '<!DOCTYPE html><link rel="icon" href="data:,"><script>var a = 1;</script>',
	'absent.html' => '<!DOCTYPE html><link rel="icon" href="data:,"><script src="absent.js"></script>',
	'faulty.html' => '<!DOCTYPE html><html lang="en"><title>Faulty</title>'
	    . '<link rel="icon" href="data:,"><main><h1>Faulty</h1><img src="data:,"></main></html>',
);

my $dir = tempdir() . '/site';
mkdir $dir or die "$dir: $!";
spew("$dir/$_", $file{$_}, 0644) for keys %file;
my $policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:;"
    . " connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";
my $port = free_port();
front_nginx(<<"HTTP", dir => tempdir(), port => $port, name => 'nginx');
	types { text/html html; text/css css; text/javascript js; }
	server {
		listen 127.0.0.1:$port;
		root $dir;
		add_header Content-Security-Policy "$policy" always;
	}
HTTP
my $page = Slipway::Browser->start(origin => "http://127.0.0.1:$port");

# --- acting
$page->visit('/fine.html');
is($page->title, 'Fine', 'the browser shows the page');
$page->type('#name', "J\x{fc}rgen")->click('#say');
ok($page->wait_for('#said', "hello J\x{fc}rgen"), 'the page sees what is typed and clicked');
is($page->click('#below')->click('#late')->click('#jumps')->text('#hits'), 'below late jumps',
    'a click is repeated until it hits an element that is covered or disabled at first, or moves');
is($page->choose('#sizes', 'Large')->text('#size'), 'l', 'an option is chosen by its text');
is($page->choose('#sizes', 's')->text('#size'), 's', 'an option is chosen by its value');
$page->clear('#name')->click('#name')->press('a', 'Shift+Tab', 'Control+f', 'PageDown');
like($page->text('#keys'), qr/ a S-Shift S-Tab C-Control C-f PageDown$/,
    'the page sees the keys that are pressed');
is($page->js('return arguments[0].b', { b => [1, undef] })->[0], 1, 'a value passes into a script and back');
is(scalar $page->js('return Promise.resolve(7)'), 7, 'the value of a promise is awaited');
ok(!eval { $page->js('throw new Error("no")'); 1 } && $@ =~ /\bno\b/, 'an error in a script dies');

is($page->overflow, '', 'a page that fits does not overflow');
like($page->size(320, 600)->overflow, qr/^\d+px: .*DIV/, 'a page that is too wide for 320 pixels overflows');
is($page->js('return innerWidth'), 320, 'the window has the size that the test sets');
my $background = 'return getComputedStyle(document.body).backgroundColor';
$page->emulate('prefers-color-scheme' => 'dark', 'prefers-reduced-motion' => 'reduce');
is($page->js($background), 'rgb(0, 0, 0)', 'the page is dark where the user wants it');
ok($page->js('return matchMedia("(prefers-reduced-motion)").matches'), 'motion is reduced');
my $first = $page->this_tab;
$page->new_tab;
$page->visit('/fine.html')->tab($first);
is($page->js('return innerWidth'), 320, 'tabs are apart');
like(slurp($page->screenshot), qr/^\x89PNG/, 'a screenshot is a PNG');

# --- judging
is_deeply([$page->errors], [], 'a response of the API is no error of the page');
axe_ok($page, 'a good page');
my $faults = $page->visit('/faulty.html')->axe;
like("@{$faults || ['image-alt']}", qr/image-alt/, 'axe-core finds an image without a text');
for my $case (['throws', qr/the page is broken/, 'an exception'], ['inline', qr/Content Security Policy/,
		'a violation of the content security policy'], ['absent', qr/404/, 'a missing script']) {
	my ($name, $says, $what) = @$case;
	like(join("\n", $page->visit("/$name.html")->errors), $says, "$what is an error of the page");
}
$page->pardon(qr/is broken/)->visit('/throws.html');
is_deeply([$page->errors], [], 'an expected error is pardoned');
$page->visit('/inline.html');
my $events = intercept { $page->stop };
is(scalar(grep { $_->isa('Test2::Event::Fail') || ($_->can('pass') && !$_->pass) } @$events), 1,
    'an error that the test does not read fails the test');

# --- ending
ok(!kill(0, -$page->{pid}), 'a stopped browser leaves no process');
my $other = background(sub {
	my $lost = Slipway::Browser->start;
	spew(tempdir() . '/lost.new', $lost->{pid});
	rename tempdir() . '/lost.new', tempdir() . '/lost';
	sleep 1 while 1;
});
ok(poll(60, sub { -e tempdir() . '/lost' }), 'another test starts a browser');
kill 'KILL', $other->pid;
waitpid $other->pid, 0;
my $lost = slurp(tempdir() . '/lost');
ok(poll(60, sub { !kill 0, -$lost }), 'a test that is killed leaves no browser');

done_testing;
