# SPDX-License-Identifier: ISC
package Slipway::Browser;

# Chromium without a window, driven by the W3C WebDriver protocol.
#
#   my $page = Slipway::Browser->start(origin => $api->url);
#   $page->visit('/slipway/');
#   ok($page->wait_for('#board'), 'the board appears');
#   $page->click('#new');             # a selector of CSS
#   $page->type('#name', 'site');     # into an element
#   $page->press('Shift+Tab', '?');   # whatever has the focus
#   $page->js('return document.title');
#   $page->go('/slipway/projects');   # by a link; the document stays
#   axe_ok($page, 'the board');
#
# A page may be waited for, never slept for: wait_for() and wait_until() poll. An
# error of the console or a violation of the content security policy fails the test
# unless pardon() names it; a response of the API is no such error. Each failure
# leaves a screenshot in the directory of the test, which prints its name.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Encode qw(decode);
use Exporter 'import';
use File::Path qw(make_path);
use HTTP::Tiny;
use Slipway::HTTP;
use IO::Socket::SSL::Utils qw(PEM_file2cert CERT_asHash);
use MIME::Base64 qw(decode_base64 encode_base64);
use Slipway::Npm;
use Slipway::Test;
use Test2::API ();
use Test::More ();

our @EXPORT = qw(axe_ok);
our @color_rules = qw(color-contrast link-in-text-block); # of axe-core

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;
my $owner = $$;
my $answers = 120; # seconds in which a page responds to its driver, even on a busy machine
my $made = 0;
my %running;

# The keys that press() knows by name; others are one character.
my %key = (Enter => 0xE007, Tab => 0xE004, Escape => 0xE00C, Backspace => 0xE003, Delete => 0xE017,
	Space => 0x20, Up => 0xE013, Down => 0xE015, Left => 0xE012, Right => 0xE014, Home => 0xE011,
	End => 0xE010, PageUp => 0xE00E, PageDown => 0xE00F, Shift => 0xE008, Control => 0xE009,
	Alt => 0xE00A, F3 => 0xE033);

# The browser reaches nothing but this machine, and leaves no file elsewhere.  The window
# of an app has no tabs and no toolbar, which take more processor time than the page.
my @flags = ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--remote-debugging-pipe',
	'--disable-gpu', '--disable-breakpad', '--disable-extensions', '--app=data:,',
	'--no-proxy-server', '--lang=en-US', '--force-color-profile=srgb', '--hide-scrollbars');

# The option that trusts a certificate: files from a server without one are not cached.
sub _trusts {
	my ($file) = @_;
	my $digest = CERT_asHash(PEM_file2cert($file))->{pubkey_digest_sha256};
	return '--ignore-certificate-errors-spki-list=' . encode_base64($digest, '');
}

# Options: origin, which visit() puts before a path; certificate: the file with the
# origin's; width, height of the page; flags: more options of Chromium.
sub start {
	my ($class, %opt) = @_;
	my $n = ++$made;
	my $dir = tempdir() . "/browser$n";
	make_path("$dir/profile");
	my $self = bless { n => $n, dir => $dir, origin => $opt{origin} // '', port => free_port(),
		http => HTTP::Tiny->new(timeout => 3 * $answers, keep_alive => 1), pardoned => [],
		media => {} }, $class;
	$self->_start_driver;
	$self->_start_session(@flags, "--user-data-dir=$dir/profile",
	    $opt{certificate} ? _trusts($opt{certificate}) : (), @{ $opt{flags} || [] });
	$running{$n} = $self;
	$self->size($opt{width} || 1280, $opt{height} || 800);
	on_failure("browser $n" => sub { $self->_tell });
	Test2::API::test2_stack()->top->follow_up(sub { $self->_report_errors }) if $$ == $owner;
	return $self;
}

# The driver leads a session of processes and dies with the test; Chromium ends
# when the pipe to its driver closes.
sub _start_driver {
	my ($self) = @_;
	my $dir = $self->{dir};
	$self->{pid} = start_process({ name => "chromedriver-$self->{n}", env => { HOME => $dir,
		TMPDIR => $dir, TZ => 'UTC', XDG_CONFIG_HOME => undef, XDG_CACHE_HOME => undef,
		XDG_RUNTIME_DIR => undef, DBUS_SESSION_BUS_ADDRESS => undef, DISPLAY => undef } },
	    'setsid', 'setpriv', '--pdeathsig', 'KILL', 'chromedriver', "--port=$self->{port}");
	poll(60, sub {
		my $got = $self->{http}->get("http://127.0.0.1:$self->{port}/status");
		return $got->{success} && $json->decode($got->{content})->{value}{ready};
	}) or die 'chromedriver does not start: ' . tail(slurp(tempdir() . "/chromedriver-$self->{n}.log"));
	return;
}

sub _start_session {
	my ($self, @args) = @_;
	my $made = $self->_send('POST', '/session', { capabilities => { alwaysMatch => {
		browserName => 'chrome', acceptInsecureCerts => Cpanel::JSON::XS::true,
		'goog:loggingPrefs' => { browser => 'ALL' }, 'goog:chromeOptions' => { args => \@args },
		timeouts => { pageLoad => 1000 * $answers, script => 1000 * $answers },
	} } });
	$self->{session} = $made->{sessionId};
	$self->{capabilities} = $made->{capabilities};
	return;
}

# One command of the protocol; dies with the driver's message if it fails.
sub _send {
	my ($self, $method, $path, $body) = @_;
	my $got = $self->{http}->request($method, "http://127.0.0.1:$self->{port}$path", {
		headers => { 'content-type' => 'application/json' },
		defined $body ? (content => $json->encode($body)) : () });
	my $value = eval { $json->decode($got->{content})->{value} };
	return $value if $got->{success};
	die ref $value ? "$value->{error}: $value->{message}\n" : "chromedriver: $got->{content}\n";
}

sub _command {
	my ($self, $method, $path, $body) = @_;
	return $self->_send($method, "/session/$self->{session}$path", $body);
}

# --- where the browser is

# A page that does not load in time is requested again.
sub visit {
	my ($self, $address) = @_;
	$address = $self->{origin} . $address if $address =~ m{^/};
	for my $is_first (1, 0) {
		return $self if eval { $self->_command('POST', '/url', { url => $address }); 1 };
		die $@ if !$is_first || $@ !~ /^timeout:/;
		Test::More::note("again: $@");
	}
}

# Follows a link to another page of the console, as a click would, in a fraction of the
# time that visit() takes: the document stays, and with it the user and the names that it
# has loaded.  If no page of the console is shown, or a dialog is open, it calls visit().
sub go {
	my ($self, $path) = @_;
	return $self->js(<<'JS', $path) ? $self : $self->visit($path);
		const shows = (css) => document.querySelector(css) !== null;
		if (!shows('#app > main:not(.bare)') || shows('dialog'))
			return false;
		document.querySelectorAll('.toast').forEach((e) => e.remove()); // those of the page before
		const link = document.body.appendChild(document.createElement('a'));
		link.href = arguments[0];
		link.click();
		link.remove();
		return true;
JS
}
sub reload { my ($self) = @_; $self->_command('POST', '/refresh', {}); return $self }
sub back { my ($self) = @_; $self->_command('POST', '/back', {}); return $self }
sub url { my ($self) = @_; return $self->_command('GET', '/url') }
sub title { my ($self) = @_; return $self->_command('GET', '/title') }

# Sets a cookie of the origin, which the browser must be on.
sub cookie {
	my ($self, $name, $value, %more) = @_;
	$self->_command('POST', '/cookie', { cookie => { name => $name, value => $value, path => '/',
		secure => Cpanel::JSON::XS::true, httpOnly => Cpanel::JSON::XS::true, %more } });
	return $self;
}

# Opens a tab and goes there; the handle that tab() takes.
sub new_tab {
	my ($self) = @_;
	my $handle = $self->_command('POST', '/window/new', { type => 'tab' })->{handle};
	$self->tab($handle);
	return $handle;
}
sub this_tab { my ($self) = @_; return $self->_command('GET', '/window') }
sub tab { my ($self, $handle) = @_; $self->_command('POST', '/window', { handle => $handle }); return $self }

# --- what the page has

# Runs the body of a function; undef is null. A promise is awaited.
sub js {
	my ($self, $code, @args) = @_;
	return $self->_command('POST', '/execute/sync', { script => $code, args => \@args });
}

# The text of each element that the selector finds, as the page shows it.
sub texts {
	my ($self, $css) = @_;
	return @{ $self->js('return [...document.querySelectorAll(arguments[0])]'
		    . '.map((e) => e.innerText)', $css) };
}
sub text { my ($self, $css) = @_; return ($self->texts($css))[0] }

# Waits until a JavaScript expression is true; its value. The page may change under it.
sub wait_until {
	my ($self, $expression, @args) = @_;
	my ($got, $error);
	poll(60, sub {
		$got = eval { $self->js("return ($expression)", @args) };
		$error = $@;
		return $got;
	});
	Test::More::diag("$expression: $error") if !$got && $error;
	return $got;
}

# Waits until the selector finds something that is shown, with this text if one is given.
sub wait_for {
	my ($self, $css, $text) = @_;
	return $self->wait_until('[...document.querySelectorAll(arguments[0])].some((e) =>'
		. ' e.checkVisibility() && (arguments[1] === null || e.textContent.includes(arguments[1])))',
	    $css, $text);
}
sub wait_gone {
	my ($self, $css) = @_;
	return $self->wait_until('![...document.querySelectorAll(arguments[0])]'
		. '.some((e) => e.checkVisibility())', $css);
}

# How many pixels the page is wider than its window, and what sticks out.
sub overflow {
	my ($self) = @_;
	return $self->js(<<'JS');
		const wide = document.documentElement.scrollWidth - innerWidth;
		if (wide <= 0) return '';
		const out = [...document.body.querySelectorAll('*')]
			.filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
		return wide + 'px: ' + out.slice(0, 5).map((e) => e.tagName + '.' + e.className).join(' ');
JS
}

# --- what a user does

# What JavaScript does to an element before the user acts on it; an exception says why it
# is not ready yet.
my $aim = <<'JS';
	const middle = () => {
		const area = [...wanted.getClientRects()].find((r) => r.width > 0 && r.height > 0);
		if (area === undefined)
			throw new Error('it has no area');
		const { left, right, top, bottom } = area;
		return [Math.max(left, 0) + Math.min(right, innerWidth),
			Math.max(top, 0) + Math.min(bottom, innerHeight)].map((sum) => Math.floor(sum / 2));
	};
	const uncovered = () => wanted.contains(document.elementFromPoint(...middle()));
	if (!uncovered())
		wanted.scrollIntoView({ block: 'center', behavior: 'instant' });
	if (!uncovered())
		throw new Error('something covers it');
	window.hit = false;
	const look = ({ target }) => { // the page may have rendered the element again
		window.hit = [wanted, document.querySelector(arguments[0])].some((e) => e?.contains(target));
	};
	document.addEventListener('click', look, { capture: true, once: true });
	return middle();
JS
my $focus = <<'JS';
	if (document.activeElement !== wanted) {
		wanted.focus();
		if (wanted.selectionEnd != null)
			wanted.selectionStart = wanted.selectionEnd = wanted.value.length;
	}
	if (document.activeElement !== wanted)
		throw new Error('it does not take the focus');
	window.typed = true;
	const look = ({ target }) => { window.typed = wanted === target; };
	document.addEventListener('keydown', look, { capture: true, once: true });
JS
my $choose = <<'JS';
	const all = [...wanted.options];
	const option = all.find(({ text }) => text === arguments[1])
		?? all.find(({ value }) => value === arguments[1]);
	if (option === undefined || option.disabled || wanted.matches(':disabled'))
		throw new Error('it does not offer that option');
	wanted.value = option.value;
	for (const type of ['input', 'change'])
		wanted.dispatchEvent(new Event(type, { bubbles: true }));
JS

# Repeats JavaScript and an action, which gets its value, until an element is ready.
sub _act {
	my ($self, $verb, $css, $script, $act, @args) = @_;
	my $error;
	poll(60, sub {
		my $done = eval { $act->($self->js(<<"JS", $css, @args)); 1 };
			const wanted = document.querySelector(arguments[0]);
			if (!wanted?.checkVisibility())
				throw new Error('the page does not show it');
			$script
JS
		$error = $@;
		return $done;
	}) or die "$verb $css: $error";
	return $self;
}

sub _perform {
	my ($self, $device, @actions) = @_;
	return $self->_command('POST', '/actions',
	    { actions => [{ type => $device, id => $device, actions => \@actions }] });
}

# Clicks the middle of the visible part of an element.  The driver's own click takes many
# times as much processor time.  A click misses an element that is disabled, or that moves
# after the page has said where it is.
sub click {
	my ($self, $css) = @_;
	return $self->_act('click', $css, $aim, sub {
		my ($at) = @_;
		$self->_perform('pointer',
		    { type => 'pointerMove', duration => 0, x => $at->[0], y => $at->[1] },
		    { type => 'pointerDown', button => 0 }, { type => 'pointerUp', button => 0 });
		# a page that the click closes may not respond, and a new one does not know;
		# a second click could do more harm
		return if eval { $self->js('return window.hit ?? true') } // 1;
		$self->_command('DELETE', '/actions'); # the next click is not the second of a double click
		die "the click missed it\n";
	});
}

# Types after the text of a field, or where the caret is if the field has the focus.  If
# the page moves the focus before the first key, the text is elsewhere and the test fails.
sub type {
	my ($self, $css, $text) = @_;
	$self->_act('type into', $css, $focus, sub { });
	$self->press(map { { "\n" => 'Enter', "\t" => 'Tab' }->{$_} // $_ } split //, $text);
	return $self if eval { $self->js('return window.typed ?? true') } // 1;
	die "type into $css: the page moved the focus\n";
}
sub clear {
	my ($self, $css) = @_;
	return $self->_act('clear', $css, "$focus wanted.select();", sub {
		$self->press('Delete');
		$self->js('return document.querySelector(arguments[0])?.value === ""', $css)
		    or die "its text is still there\n";
	});
}

# Chooses the option of a select that has this text or value.
sub choose {
	my ($self, $css, $option) = @_;
	return $self->_act('choose', $css, $choose, sub { }, "$option");
}

# Presses keys one after another: 'j', 'Shift+Tab', 'Control+f'.
sub press {
	my ($self, @presses) = @_;
	my @actions;
	for my $press (@presses) {
		my @keys = map { exists $key{$_} ? chr $key{$_} : $_ } split /(?<=.)\+/, $press;
		push @actions, (map { { type => 'keyDown', value => $_ } } @keys),
		    (map { { type => 'keyUp', value => $_ } } reverse @keys);
	}
	$self->_perform('key', @actions);
	return $self;
}

# Turns the mouse wheel over an element.
sub wheel {
	my ($self, $css, $pixels) = @_;
	my $origin = $self->_command('POST', '/element', { using => 'css selector', value => $css });
	$self->_command('POST', '/actions', { actions => [{ type => 'wheel', id => 'wheel',
		actions => [{ type => 'scroll', x => 0, y => 0, deltaX => 0, deltaY => $pixels,
			origin => $origin }] }] });
	return $self;
}

# --- the machine that the page sees

# A command of the Chrome DevTools Protocol.
sub cdp {
	my ($self, $command, %params) = @_;
	return $self->_command('POST', '/goog/cdp/execute', { cmd => $command, params => \%params });
}

sub size {
	my ($self, $width, $height) = @_;
	$self->cdp('Emulation.setDeviceMetricsOverride', width => $width, height => $height,
	    deviceScaleFactor => 1, mobile => Cpanel::JSON::XS::false);
	return $self;
}

# Sets features of media: 'prefers-color-scheme' => 'dark'; media => 'print'.
sub emulate {
	my ($self, %media) = @_;
	my %now = %{ $self->{media} = { %{ $self->{media} }, %media } };
	my $type = delete $now{media};
	$self->cdp('Emulation.setEmulatedMedia', media => $type // '',
	    features => [map { { name => $_, value => $now{$_} } } sort keys %now]);
	return $self;
}

sub offline {
	my ($self, $is) = @_;
	$self->cdp('Network.enable');
	$self->cdp('Network.emulateNetworkConditions', latency => 0, downloadThroughput => -1,
	    uploadThroughput => -1, offline => $is ? Cpanel::JSON::XS::true : Cpanel::JSON::XS::false);
	return $self;
}

# Saves what the window shows; the path.
sub screenshot {
	my ($self, $name) = @_;
	$name = 'shot' . ++$self->{shots} if !defined $name;
	return spew("$self->{dir}/$name.png", decode_base64($self->_command('GET', '/screenshot')));
}

# --- judging

# The faults that axe-core finds, as text, by all rules or only these; undef without npm's
# packages.
sub axe {
	my ($self, @rules) = @_;
	my $npm = npm_dir() or return undef;
	$self->js(decode('UTF-8', slurp("$npm/node_modules/axe-core/axe.min.js")))
	    if !$self->js('return !!window.axe');
	return $self->js(<<'JS', @rules);
		const only = arguments.length > 0 && { runOnly: { type: 'rule', values: [...arguments] } };
		return axe.run(document, { resultTypes: ['violations'], ...only }).then((result) =>
			result.violations.flatMap(({ id, nodes }) => nodes.map(({ target, any, all, none }) =>
				id + ': ' + target + ': ' + [any, all, none].flat().map((c) => c.message))));
JS
}

# One test: axe-core finds no fault in the page, by all rules or only these.
sub axe_ok {
	my ($self, $name, @rules) = @_;
	my $faults = $self->axe(@rules);
	Test::More::note('axe-core is unavailable') if !$faults;
	my $is_fine = Test::More::ok(!$faults || !@$faults, "axe-core finds no fault in $name");
	Test::More::diag(join "\n", @$faults) if !$is_fine;
	return $is_fine;
}

# Errors that match are expected from now on.
sub pardon { my ($self, @patterns) = @_; push @{ $self->{pardoned} }, @patterns; return $self }

# The errors since the last call.
sub errors {
	my ($self) = @_;
	my $log = $self->_command('POST', '/se/log', { type => 'browser' });
	my @new = grep { _is_error($_) } @$log;
	my @text = map { "$_->{source}: $_->{message}" } @new;
	for my $pattern (@{ $self->{pardoned} }) { @text = grep { $_ !~ $pattern } @text }
	return @text;
}

sub _is_error {
	my ($entry) = @_;
	return 0 if $entry->{source} eq 'network' && $entry->{message} =~ m{^https?://[^/]+/api/};
	return $entry->{level} eq 'SEVERE' || $entry->{source} =~ /^(?:security|violation)$/;
}

# Before the plan of the test: the errors that it has not seen itself.
sub _report_errors {
	my ($self) = @_;
	return if !$self->{session};
	for my $error ($self->errors) {
		my $ctx = Test2::API::context();
		$ctx->fail("the page causes no error in browser $self->{n}", $error);
		$ctx->release;
	}
	return;
}

# What a failure prints: the page, and where its screenshot is.
sub _tell {
	my ($self) = @_;
	return undef if !$self->{session} || $self->{telling};
	local $self->{telling} = 1;
	my $path = eval { $self->screenshot };
	my $text = eval { $self->js('return document.body.innerText') } // $@;
	utf8::encode($text);
	return join "\n", eval { $self->url } // '', $path // 'no screenshot', substr $text, 0, 800;
}

# Ends the browser and its driver, and waits for the last of their processes.
sub stop {
	my ($self) = @_;
	delete $running{ $self->{n} } or return;
	$self->_report_errors;
	$self->_end;
	return;
}

sub _end {
	my ($self) = @_;
	delete $self->{session};
	stop_process($self->{pid});
	kill 'KILL', -$self->{pid} if !poll(30, sub { !kill 0, -$self->{pid} });
	return;
}

END {
	if ($$ == $owner) {
		my $code = $?;
		$_->_end for values %running;
		$? = $code;
	}
}

1;
