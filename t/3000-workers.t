#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The master and its workers: start, death, reload, shutdown, inherited sockets.

use strict;
use warnings;
use IO::Socket::UNIX ();
use POSIX ();
use Slipway::API;
use Slipway::DB;
use Slipway::FastCGI qw(request ask begin params record);
use Slipway::Test;
use Socket qw(SOCK_DGRAM SOL_SOCKET SO_SNDBUF);
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start(empty => 1);
my $conf = "[api]\nworkers = 3\nslow_workers = 1\n";
my $api = Slipway::API->start(db => $db, no_nginx => 1, conf => $conf);
my $sock = $api->socket;
my $master = $api->pid;

# --- an idle service
sub wakes {
	return map { slurp("/proc/$_/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m }
	    $master, $api->workers;
}
ok(poll(30, sub { my @before = wakes(); sleep 2.5; return "@before" eq join ' ', wakes() }),
    'neither the master nor a worker wakes while the service is idle');

# Clients that send requests until SIGTERM, each over new connections: every
# connection that is accepted must get a complete response.
sub load_begin {
	my ($clients, @params) = @_;
	my @load;
	for my $k (1 .. $clients) {
		pipe my $r, my $w or die "pipe: $!";
		my $pid = fork;
		die "fork: $!" if !defined $pid;
		if ($pid == 0) {
			my ($good, $bad, $none, $end) = (0, 0, 0, 0);
			my $refused = sub { spew(tempdir() . '/refused', '') if !$none++ };
			local $SIG{TERM} = sub { $end = 1 };
			while (!$end) {
				my $c = Slipway::FastCGI->connect($sock);
				if (!$c) { $refused->(); sleep 0.005; next }
				if (!$c->send(request(@params))) { $refused->(); next }
				my $got = $c->answer;
				my $complete = $got && $got->{status} == 200 && $got->{ended};
				if ($complete) { $good++ } else { $bad++ }
			}
			syswrite $w, "$good $bad $none";
			POSIX::_exit(0);
		}
		close $w;
		push @load, [$pid, $r];
	}
	return @load;
}

# Ends the clients: how many requests succeeded, failed and were not accepted.
sub load_end {
	my (@load) = @_;
	my @sum = (0, 0, 0);
	for (@load) {
		my ($pid, $r) = @$_;
		kill 'TERM', $pid;
		my $line = <$r>;
		waitpid $pid, 0;
		my @got = split ' ', defined $line ? $line : '0 1 0';
		$sum[$_] += $got[$_] for 0 .. 2;
	}
	return @sum;
}

# Waits for so many more responses.
sub served {
	my ($more) = @_;
	my $from = length $api->log;
	return poll(60, sub { ($more <= (() = substr($api->log, $from) =~ m{ GET /health 200 }g)) });
}

# A POST that a worker is reading: sends more of the body than the connection
# buffers; $left bytes of it remain.
my $blanks = ' ' x 100_000;
sub in_hands {
	my ($left, @params) = @_;
	my $c = Slipway::FastCGI->connect($sock);
	setsockopt $c->handle, SOL_SOCKET, SO_SNDBUF, pack 'i', 4096 or die "setsockopt: $!";
	$c->send(begin() . params(REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @params,
		CONTENT_LENGTH => $left + length $blanks));
	$c->send(record(5, $_)) for unpack '(a20000)*', $blanks;
	return $c;
}

# --- start
my @first;
poll(10, sub { (@first = $api->workers) == 4 });
is(scalar @first, 4, 'the master starts as many workers as configured');
is(sprintf('%04o', (stat $sock)[2] & 07777), '0660', 'only user and group can use the socket');
if (is_root()) {
	my ($uid) = slurp("/proc/$master/status") =~ /^Uid:\s+(\d+\s+\d+\s+\d+)/m;
	is(join(' ', map { $_ == (getpwnam 'nobody')[2] ? 1 : 0 } split ' ', $uid), '1 1 1',
	    'the service runs as api.user');
	my ($groups) = slurp("/proc/$master/status") =~ /^Groups:\s*(.*?)\s*$/m;
	is($groups, (getpwnam 'nobody')[3], 'the service has the groups of api.user');
	is((stat $sock)[5], (getgrnam 'www-data')[2], 'the socket belongs to socket_group');
} else {
	note('not root: the service keeps its account');
}
is(ask($api->socket($_))->{status}, 200, "the socket $_ is served") for qw(api slow);

# --- configuration
sub slipway_api {
	my ($text, @more) = @_;
	my $file = spew(tempdir() . '/try.conf', $text);
	my ($status, $out, $err) = run_cmd(program('slipway-api'), '-c', $file, @more);
	return (defined $status ? $status >> 8 : -1, $out . $err);
}
my ($status, $out) = slipway_api(slurp($api->conf_file), '-n');
is("$status $out", '0 ', '-n accepts a valid configuration and prints nothing');
for my $case (["[api]\nworkers = 0\n", qr/try\.conf:2: workers: must be a number from 1/],
	["[api]\nworker = 1\n", qr/try\.conf:2: worker: unknown key/],
	["[apis]\n", qr/try\.conf:1: apis: unknown section/],
	["[api]\nsocket = api.sock\n", qr/:2: socket: must be an absolute path/],
	["[api]\nsocket_mode = 9\n", qr/:2: socket_mode: /],
	["[api]\nmetrics = maybe\n", qr/:2: metrics: must be yes or no/],
	["nonsense\n", qr/:1: the line: expected key = value/],
	["[database]\npassword: hunter2\n", qr/:2: password: expected key = value\s*\z/],
	["workers = 1\n", qr/:1: workers: a \[section\] must precede it/]) {
	my ($text, $want) = @$case;
	($status, $out) = slipway_api($text, '-n');
	my $line = $text =~ s/\n/ /gr;
	is($status, 78, "-n exits with EX_CONFIG on \"$line\"");
	like($out, $want, "-n names place and error in \"$line\"");
}
($status, $out) = run_cmd(program('slipway-api'), '-x');
is($status >> 8, 64, 'an unknown option exits with EX_USAGE');
($status, undef, $out) = run_cmd(program('slipway-api'), '-c', '/nonexistent/slipway.conf', '-n');
is($status >> 8, 78, 'a missing configuration file exits with EX_CONFIG');
like($out, qr{/nonexistent/slipway\.conf: no such file}, 'the error names the missing configuration file');
if (is_root()) {
	my $without = slurp($api->conf_file) =~ s/^user = nobody\n//mr =~ s{/api1/}{/other/}gr;
	my $dir = tempdir();
	($status, $out) = slipway_api($without =~ s/^(socket|slow_socket) = .*$/$1 = $dir\/$1/gmr);
	is($status, 78, 'root without api.user exits with EX_CONFIG');
	like($out, qr/api\.user is not set; set it to an account/,
	    'the error names the missing setting api.user');
}
($status, $out) = slipway_api(slurp($api->conf_file));
is($status, 78, 'a second service on the same sockets exits with EX_CONFIG');
like($out, qr/another process serves this socket/, 'the error says that another process serves the socket');
is(ask($sock)->{status}, 200, 'the first service keeps working');
($status, $out) = run_cmd(program('slipway-api'), '-n', '-f', '-c', $api->conf_file);
is($status, 0, '-f is accepted: the service never goes to the background');
($status, undef, $out) = run_cmd(program('slipway-api'), '-n', '-c', $api->conf_file, 'start');
is($status >> 8, 64, 'an argument exits with EX_USAGE');
like($out, qr/^usage: /m, 'an argument prints the usage');

# --- obstacles at start: [lines of [api], error]
my $own = tempdir() . '/own';
mkdir $own or die "$own: $!";
my $elsewhere = slurp($api->conf_file)
    =~ s{^(.*socket) = \Q${\$api->dir}\E/(api|slow)\.sock$}{$1 = $own/$2.sock}gmr;
my $long = "$own/" . 'x' x 100;
my $mine = qr{^socket = \Q$own\E/api\.sock$}m;
my @ways = (
	[ $mine, 'socket = ' . spew("$own/file", 'keep me'), qr{own/file exists and is not a socket} ],
	[ $mine, "socket = $long", qr/x{100} is longer than 107 bytes/ ],
	[ $mine, "socket = $own/none/api.sock", qr{own/none/api\.sock: No such file} ],
	[ $mine, "socket = $own/file/api.sock", qr{own/file/api\.sock: Not a directory} ],
	[ is_root() ? qr/^socket_group = .*\n/m : qr/(?=^$mine)/m, "socket_group = nosuchgroup\n",
	    qr/api\.socket_group: unknown group nosuchgroup/ ]);
push @ways, [ qr/^user = nobody$/m, 'user = nosuchuser',
    qr/try\.conf: api\.user: unknown account nosuchuser/ ]
    if is_root();
for my $way (@ways) {
	my ($from, $to, $want) = @$way;
	($status, $out) = slipway_api($elsewhere =~ s/$from/$to/r);
	my $setting = $to =~ s/\n//r;
	cmp_ok($status, '>', 0, "the service does not start with $setting");
	like($out, $want, "the error names the problem with $setting");
}
is(slurp("$own/file"), 'keep me', 'a file in place of the socket is left alone');

# --- death of workers
for my $signal ('KILL', 'SEGV') {
	my $replaced;
	my $took = best_of(1, sub {
		my ($victim) = $api->workers;
		my $t = stopwatch();
		kill $signal, $victim;
		$replaced = poll(60, sub { my @w = $api->workers; @w == 4 && !grep { $_ == $victim } @w });
		return $t->();
	});
	ok($replaced, "a worker killed by SIG$signal is replaced");
	cmp_ok($took, '<', deadline(1), "a worker killed by SIG$signal is replaced within a second");
	is(ask($sock)->{status}, 200, "requests are served after a worker is killed by SIG$signal");
}
my $busy = in_hands(10);
kill 'KILL', $api->workers;
is($busy->answer, undef, 'a request dies with its worker');
ok(poll(5, sub { my @w = $api->workers; @w == 4 }), 'workers that are all killed at once are all replaced');
is(ask($sock)->{status}, 200, 'requests are served after all workers are killed');
like($api->log, qr/worker \d+: killed by signal 9/, 'the log reports a killed worker');

# --- reload
my @old = $api->workers;
my @load = load_begin(6);
served(50);
for (1 .. 3) {
	kill 'HUP', $master;
	ok(poll(10, sub {
		my %w = map { $_ => 1 } my @now = $api->workers;
		return @now == 4 && !grep { $w{$_} } @old;
	}), "reload $_ replaces all workers");
	@old = $api->workers;
}
served(60);
my ($good, $bad, $none) = load_end(@load);
cmp_ok($good, '>', 100, "the service responds under load during reloads ($good responses)");
is("$bad $none", '0 0', 'no request fails during reloads');
$api->write_conf("[api]\nworkers = 5\nslow_workers = 1\n");
kill 'HUP', $master;
ok(poll(10, sub { my @w = $api->workers; @w == 6 }), 'a reload adds workers');
$api->write_conf("[api]\nworkers = 1\nslow_workers = 1\n");
kill 'HUP', $master;
ok(poll(10, sub { my @w = $api->workers; @w == 2 }), 'a reload removes workers');
my $from_log;
$api->write_conf("[api]\nworkers = many\n");
@old = $api->workers;
kill 'HUP', $master;
my $failed = qr/reload failed, the old configuration stays in use/;
ok(poll(5, sub { $api->log =~ /$failed: .*slipway\.conf:\d+: workers: must be a number/ }),
    'a reload rejects an invalid configuration and logs the reason');
is_deeply([sort $api->workers], [sort @old], 'a rejected reload keeps the workers');
is(ask($sock)->{status}, 200, 'requests are served after a rejected reload');
$from_log = length $api->log;
$api->write_conf("[api]\nworkers = 3\nslow_workers = 1\nsocket_mode = 0600\nmetrics = no\n");
kill 'HUP', $master;
ok(poll(10,
    sub { substr($api->log, $from_log) =~ /api\.socket_mode: restart the service to apply the change/ }),
    'a reload logs settings that need a restart');
my $without;
ok(poll(10, sub { ($without = ask($sock, REQUEST_URI => '/api/metrics'))->{status} == 404 }),
    'a reload can switch metrics off');
like($without->{body}, qr/Metrics are disabled \(api\.metrics\)/, 'switched-off metrics name the setting');
is(sprintf('%04o', (stat $sock)[2] & 07777), '0660', 'a reload does not change the mode of the socket');
{ # a key file that others can read
	my $key = $api->dir . '/secret.key';
	my $was = -e $key ? (stat _)[2] & 07777 : undef;
	my $had = defined $was ? slurp($key) : undef;
	spew($key, '1 ' . 'A' x 43 . "=\n", 0644);
	$from_log = length $api->log;
	kill 'HUP', $master;
	my $why = qr/$failed: .*secret\.key: mode 644 is too permissive: chmod 0640/;
	ok(poll(10, sub { substr($api->log, $from_log) =~ $why }),
	    'a reload rejects a key file that others can read');
	is(ask($sock)->{status}, 200, 'requests are served after a rejected key file');
	if (defined $had) { spew($key, $had, $was) } else { unlink $key }
}
$api->write_conf($conf);
kill 'HUP', $master for 1 .. 10;
ok(poll(10, sub { my @w = $api->workers; @w == 4 }), 'ten reloads at once leave the configured workers');

# --- shutdown under load
unlink tempdir() . '/refused';
@load = load_begin(6);
served(110);
my $t = stopwatch();
is($api->stop_api, 0, 'SIGTERM ends the service with status 0');
cmp_ok($t->(), '<', deadline(20), 'SIGTERM ends the service in time');
poll(60, sub { -e tempdir() . '/refused' });
($good, $bad, $none) = load_end(@load);
cmp_ok($good, '>', 100, "the service responded under load before SIGTERM ($good responses)");
is($bad, 0, 'every accepted connection gets its response');
cmp_ok($none, '>', 0, 'connections after SIGTERM are not accepted');
ok(!-e $sock, 'shutdown removes the socket');

# --- requests in flight at shutdown
$api->start_api;
my @who = (CONTENT_TYPE => 'application/json',
	HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
my @post = (REQUEST_METHOD => 'POST', REQUEST_URI => '/api/projects', @who);
my $body = '{"name":"In flight","repository":"https://git.example.org/a/b"}';
# Waits for the log to report requests in flight.
my $ending = sub {
	my ($from) = @_;
	return poll(60, sub { substr($api->log, $from) =~ /stopping, finishing requests in progress/ });
};
$busy = in_hands(length $body, @who);
my $from = length $api->log;
kill 'TERM', $api->pid;
$ending->($from);
$busy->send(record(5, $body) . record(5, ''));
my $got = $busy->answer;
is($got && $got->{status}, 201, 'a request that was half sent before SIGTERM is completed');
is($api->stop_api, 0, 'the service ends after the request in flight');
$api->write_conf("${conf}io_timeout = 60\n");
$api->start_api;
$busy = in_hands(length $body, @who);
$from = length $api->log;
kill 'TERM', $api->pid;
$ending->($from);
$t = stopwatch();
$api->stop_api('TERM');
cmp_ok($t->(), '<', deadline(20),
    'a second SIGTERM ends the service without waiting for requests in flight');
$api->write_conf($conf);
$api->start_api;
is($api->stop_api('INT'), 0, 'SIGINT ends the service with status 0');
# Also workers that have only just started.
for (1 .. 5) {
	$api->start_api;
	my @orphans = $api->workers;
	$api->stop_api('KILL');
	my @left;
	ok(poll(60, sub { !(@left = grep { (slurp("/proc/$_/stat") || ') Z') !~ /\) Z/ } @orphans) }),
	    'workers do not outlive their master')
	    or kill 'KILL', @left;
}
$api->start_api;
is(ask($sock)->{status}, 200, 'a new service replaces a stale socket');

# --- the database fails while the service runs
my @list = (REQUEST_URI => '/api/projects', HTTP_AUTHORIZATION => 'Bearer ' . $api->token);
is(ask($sock, @list)->{status}, 200, 'a list is served while MariaDB runs');
my @same = $api->workers;
$db->kill9;
$got = ask($sock, @list);
is($got->{status}, 503, 'a list returns 503 without MariaDB');
ok($got->{headers}{'retry-after'}, '503 without MariaDB has Retry-After');
unlike($got->{body}, qr/mysql|maria|socket|\//i, '503 without MariaDB shows no internals');
$db->resume;
ok(poll(15, sub { ask($sock, @list)->{status} == 200 }), 'a list is served once MariaDB is back');
is_deeply([sort $api->workers], [sort @same], 'the workers survive the failure of MariaDB');
$api->stop_api;

# --- start without the database, and with another schema
$db->stop;
$api->start_api;
$got = ask($sock);
is($got->{status}, 503, 'the service starts without MariaDB, and /health returns 503');
like($got->{body}, qr/"code":"unavailable"/, '/health without MariaDB has the code "unavailable"');
ok($got->{headers}{'retry-after'}, '/health without MariaDB has Retry-After');
like($got->{body}, qr/database/, '/health without MariaDB names the database');
is(ask($sock, @post, BODY => $body)->{status}, 503, 'a write returns 503 without MariaDB');
$db->resume;
ok(poll(15, sub { ask($sock)->{status} == 200 }), '/health returns 200 once MariaDB is back');
$api->stop_api;
$db->sql("UPDATE schema_migration SET checksum = REPEAT('0', 64)");
($status, $out) = slipway_api(slurp($api->conf_file));
is($status, 78, 'the service exits with EX_CONFIG on a changed schema');
like($out, qr/0001/, 'the error names the changed migration');
$db->sql("DROP DATABASE slipway; CREATE DATABASE slipway CHARACTER SET utf8mb4", 'mysql');
($status, $out) = slipway_api(slurp($api->conf_file));
is($status, 78, 'the service exits with EX_CONFIG on an empty database');
like($out, qr/0001-schema|migrat/, 'the error names the missing migration');
$db->migrate;

# --- inherited sockets: file descriptor 0, and systemd's
my $path = tempdir() . '/handed.sock';
my $listen = IO::Socket::UNIX->new(Local => $path, Listen => 128) or die "$path: $!";
my $notify = tempdir() . '/notify';
my $hear = IO::Socket::UNIX->new(Local => $notify, Type => SOCK_DGRAM) or die "$notify: $!";
chmod 0777, $notify, $path;

# Starts the service with an inherited socket and these variables; its pid.
sub handed {
	my (%env) = @_;
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		open STDERR, '>>', tempdir() . '/handed.log' or POSIX::_exit(127);
		POSIX::dup2(fileno $listen, 50); # keeps the low descriptors free
		if ($env{LISTEN_FDS}) {
			POSIX::dup2(50, 3 + $_) for 0 .. $env{LISTEN_FDS} - 1;
			$env{LISTEN_PID} = $$;
		} else {
			POSIX::dup2(50, 0);
		}
		%ENV = (%ENV, %env);
		exec program('slipway-api'), '-c', $api->conf_file or POSIX::_exit(127);
	}
	return $pid;
}

# The next message that the service sends to systemd.
sub state_heard {
	my $text = '';
	my $ready = '';
	vec($ready, fileno $hear, 1) = 1;
	recv $hear, $text, 1000, 0 if select $ready, undef, undef, 60;
	return $text;
}
for my $env ({ NOTIFY_SOCKET => $notify }, { NOTIFY_SOCKET => $notify, LISTEN_FDS => 1 },
	{ NOTIFY_SOCKET => $notify, LISTEN_FDS => 2, LISTEN_FDNAMES => 'slow:api' }) {
	my $name = ($env->{LISTEN_FDS} || 'descriptor 0')
	    . ($env->{LISTEN_FDNAMES} ? " $env->{LISTEN_FDNAMES}" : '');
	my $pid = handed(%$env);
	is(state_heard(), 'READY=1', "$name: the service reports that it is ready");
	my $c = Slipway::FastCGI->connect($path);
	$c->send(request());
	is($c->answer->{status}, 200, "$name: the inherited socket is served");
	kill 'HUP', $pid;
	like(state_heard(), qr/^RELOADING=1\nMONOTONIC_USEC=\d+$/, "$name: the service reports a reload");
	is(state_heard(), 'READY=1', "$name: the service reports the end of the reload");
	kill 'TERM', $pid;
	is(state_heard(), 'STOPPING=1', "$name: the service reports shutdown");
	waitpid $pid, 0;
	is($?, 0, "$name: the service ends with status 0");
	ok(-S $path, "$name: shutdown does not remove an inherited socket");
	$c = Slipway::FastCGI->connect($path);
	ok($c, "$name: the inherited socket still accepts connections") or next;
	$c->send(request());
	$pid = handed(%$env);
	state_heard();
	is($c->answer->{status}, 200, "$name: the next service serves a client that waited");
	kill 'TERM', $pid;
	state_heard();
	waitpid $pid, 0;
}
for my $env ({ LISTEN_FDS => 2, LISTEN_FDNAMES => 'api:other' },
	{ LISTEN_FDS => 2, LISTEN_FDNAMES => 'api:api' }) {
	my $pid = handed(%$env);
	waitpid $pid, 0;
	is($? >> 8, 78, "sockets named $env->{LISTEN_FDNAMES} are rejected");
}
{ # a descriptor that is not a socket
	my $null = $listen;
	open $listen, '<', '/dev/null' or die "/dev/null: $!";
	spew(tempdir() . '/handed.log', '');
	waitpid handed(LISTEN_FDS => 1), 0;
	is($? >> 8, 78, 'a descriptor that is not a listening socket is rejected');
	like(slurp(tempdir() . '/handed.log'), qr/file descriptor 3 is not a listening socket/,
	    'the error names the number of the descriptor');
	$listen = $null;
}

done_testing;
