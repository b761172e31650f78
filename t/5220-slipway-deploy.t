#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway deploys from a checkout, follows the log across failures, and reports
# the result.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use HTTP::Tiny;
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Slipway::Client;
use Slipway::Test;
use Slipway::Whole;

my $all = Slipway::Whole->start;
my $api = $all->api;
my $slipway = Slipway::Client->new($api);
my ($status, $out, $err);
sub run { ($status, $out, $err) = $slipway->run(@_); return $status }
sub git { my ($dir, @args) = @_; return (run_cmd({ cwd => $dir }, 'git', @args))[0] == 0 }

# A project, and a checkout of its repository.
my $origin = make_repo(tempdir() . '/origin.git');
my $project = $all->make('/api/projects', { name => 'shop', repository => $origin, defaultBranch => 'main',
	envPresets => [{ key => 'VERSION', label => 'v', type => 'input' },
		{ key => 'API_KEY', label => 'k', type => 'input', required => \1, secret => \1 }] })->{id};
my $gate = $all->marks('gate');
unlink $gate;
my $wait = "until test -e $gate; do sleep 0.1; done";
my %pipeline = map { $_->[0] => $all->make('/api/pipelines', { projectId => $project, name => $_->[0],
	steps => [map { { name => $_->[0], script => $_->[1], runWhen => $_->[2] || 'success',
		mayFail => $_->[3] ? \1 : \0 } }
		@{ $_->[1] }] })->{id} }
    ['build', [
	['one', 'echo "first $VERSION $SLIPWAY_BRANCH"; echo ${#API_KEY}'], ['two', 'printf "a\nb\nc"']]],
    ['untidy', [['deploy', 'echo fine'], ['prune', 'exit 6', 'success', 1]]],
    ['broken', [['good', 'echo fine'], ['bad', 'echo broken; exit 3'], ['after', 'echo later', 'always']]],
    ['noisy', [['noisy', 'printf "\\033]52;c;aGk=\\007\\033[2Ja\\033[31mred\\033[0m\\302\\2332Jb"; '
	. 'printf "\\033]8;;javascript:x\\033\\\\link \\303\\251 \\302\\251\\n"']]],
    ['slow', [['slow', "seq 1 30000; $wait; seq 30001 60000"]]];
my $checkout = tempdir() . '/checkout';
ok(git(tempdir(), 'clone', '-q', $origin, $checkout), 'the repository is cloned');
my $secret = spew(tempdir() . '/secret', "hidden-word\n", 0600);
my @key = ('--secret', "API_KEY=$secret");
my %here = (cwd => $checkout);

# --- deploy
is(run(\%here, 'deploy', '-P', 'build', '-f', '-e', 'VERSION=2.1', @key), 0,
    'deploy -f succeeds in a checkout');
my ($id) = $err =~ m{^(\d+)\tpending\t\Q@{[$api->url]}\E/slipway/deployments/\d+$}m;
ok($id, 'deploy prints the address of the deployment');
is($out, $all->log($id), 'deploy -f prints the log');
like($out, qr/^first 2\.1 main\n11\n/m, 'the deployment has the variables and the branch of the checkout');
like($err, qr/^deployment $id: success/m, 'deploy -f says how the deployment ended');
unlike($err, qr/warning/, 'deploy does not warn if all is pushed');
is(run(\%here, 'deploy', '-P', 'untidy', '-f', @key), 0, 'a failure that may be is no failed deployment');
my ($untidy) = $err =~ /^(\d+)\t/;
like($err, qr/^deployment $untidy: success with warnings: Step 2 \(prune\) ended with exit status 6\.$/m,
    'deploy -f names the warnings');
my $shown = $all->show($untidy);
is_deeply([@$shown{qw(status reason warnings)},
	map { "$_->{status} " . ($_->{mayFail} ? 1 : 0) } @{ $shown->{steps} }],
    ['success', undef, 1, 'success 0', 'failed 1'],
    'the deployment has its warnings, and the step its failure');
run('status', $untidy);
like($out, qr/^warnings\s+1$/m, 'status shows the number of warnings');
my $repeated = $all->make("/api/deployments/$untidy/retry", {});
$all->wait($repeated->{id});
is($all->show($repeated->{id})->{warnings}, 1, 'a retry copies what may fail');
is(run(\%here, 'deploy', '-P', 'broken', '-f', @key), 1, 'the exit status of a failed deployment is 1');
my ($broken) = $err =~ /^(\d+)\t/;
like($err, qr/^deployment $broken: failed: .*bad/m, 'deploy -f says why the deployment failed');
is(run(\%here, 'deploy', '-P', 'build', @key, '--json'), 0, 'deploy does not wait without -f');
my $made = decode_json($out);
is($made->{branch}, 'main', "deploy --json prints the API's object");
$all->wait($made->{id});
is(run(\%here, 'deploy', '-P', 'build', @key, '--json', '-f'), 0, 'deploy --json -f waits');
is(decode_json($out)->{status}, 'success', 'deploy --json -f prints the deployment that ended, and no log');

git($checkout, 'push', '-q', 'origin', 'HEAD:refs/tags/v1');
is(run('deploy', '-p', 'shop', '-P', 'build', '-t', 'v1', @key, '-f'), 0, 'deploy -t deploys a tag');
is($all->show($err =~ /^(\d+)\t/)->{tag}, 'v1', 'the deployment has the tag');
git($checkout, 'config', 'user.email', 'a@example.org');
git($checkout, 'config', 'user.name', 'a');
git($checkout, 'commit', '-q', '--allow-empty', '-m', 'local');
run(\%here, 'deploy', '-P', 'build', @key);
like($err, qr/warning: 1 commit of HEAD is not pushed to origin, and not deployed/,
    'deploy warns of a commit that is not pushed');
$all->wait($out =~ /^(\d+)/);
git($checkout, 'checkout', '-q', '-b', 'feature');
run(\%here, 'deploy', '-P', 'build', @key, '-f');
like($err, qr/warning: the branch feature may not exist on origin: push it first/,
    'deploy warns of a branch that is not pushed');
is($status, 1, 'the deployment of an unknown branch fails');
git($checkout, 'checkout', '-q', '--detach');
is(run(\%here, 'deploy', '-P', 'build', @key), 64, 'deploy rejects a detached HEAD');
like($err, qr/HEAD is detached: name --branch, --tag or --commit/, 'the error says what to do');
git($checkout, 'checkout', '-q', 'main');

# --- variables
my $file = spew(tempdir() . '/env', "# a note\n\nVERSION=from=file\r\n");
run('deploy', '-p', 'shop', '-P', 'build', '-b', 'main', '--env-file', $file, @key, '-f');
like($out, qr/^first from=file main$/m, 'a file of variables is read');
run('deploy', '-p', 'shop', '-P', 'build', '-b', 'main', '--env-file', $file, '-e', 'VERSION=4', @key, '-f');
like($out, qr/^first 4 main$/m, 'an argument comes before a file');
run({ stdin => "x\n" }, 'deploy', '-p', 'shop', '-P', 'build', '-b', 'main', '-s', 'API_KEY=-', '-f');
like($out, qr/^1$/m, 'a secret is read from standard input');
($status, $out) = run_cmd({ env => $slipway->env }, 'sh', '-c', 'exec "$@" 7<' . $secret, 'sh',
    program('slipway'), 'deploy', '-p', 'shop', '-P', 'build', '-b', 'main', '-s', 'API_KEY=/dev/fd/7', '-f');
like($out, qr/^11$/m, 'a secret is read from an open descriptor');
for ([64, qr/API_KEY is a secret, .*: use --secret API_KEY, or --secret API_KEY=FILE/, '-e', 'API_KEY=x'],
	[64, qr/--env requires KEY=VALUE, not "VERSION"/, '-e', 'VERSION'],
	[65, qr/env:4: must have the form KEY=VALUE/, '--env-file', spew($file, slurp($file) . "VERSION\n")],
	[70, qr/No such file/, '-s', 'API_KEY=/nonexistent'],
	[64, qr/there is no terminal to ask for API_KEY/, '-s', 'API_KEY'],
	[65, qr{\n  --secret API_KEY: .*\n  request id: }, '-e', 'VERSION=1'],
	[65, qr{\n  --env PATH: }, '-e', 'PATH=/tmp', @key],
	[65, qr{\n  --commit: }, '-c', 'xyz', @key],
	[65, qr{\n  --pipeline: }, @key],
	[66, qr/unknown pipeline "biuld"; did you mean "build"\?/, '-P', 'biuld'],
	[66, qr/unknown environment "x"/, '-E', 'x', @key]) {
	my ($exit, $re, @args) = @$_;
	my @pipeline = "@args" eq "@key" || $args[0] eq '-P' ? () : ('-P', 'build');
	is(run('deploy', '-p', 'shop', '-b', 'main', @pipeline, @args), $exit, "deploy rejects @args");
	like($err, $re, "the error gives the reason: @args");
}

# --- on a terminal
my $on = $slipway->terminal(\%here, 'deploy', '-P', 'build', '-f');
ok($on->saw(qr/API_KEY: /), 'on a terminal, deploy asks for a required secret');
$on->type("typed-secret\n");
is($on->end, 0, 'the deployment gets the secret');
unlike($on->screen, qr/typed-secret/, 'the terminal does not show the secret');
like($on->screen, qr/^12\r$/m, 'the value is what was typed');

is(run(\%here, 'deploy', '-P', 'noisy', '-f', @key), 0, 'a step writes control sequences');
my ($noisy) = $err =~ /^(\d+)\tpending/m;
like($out, qr/\e\]52;c;aGk=\x07\e\[2Ja/, 'a pipe gets all control sequences');
$on = $slipway->terminal('logs', $noisy);
is($on->end, 0, 'logs prints them on a terminal');
like($on->screen, qr/^a\e\[31mred\e\[0mblink \xc3\xa9 \xc2\xa9\r$/m, 'a terminal gets colors only');

# --- logs
is(run('logs', $id), 0, 'logs succeeds');
is($out, $all->log($id), 'logs prints the log');
is(run('logs', '-f', $broken), 1, 'logs -f of an ended deployment ends with its result');
is($out, $all->log($broken), 'logs -f prints the log of an ended deployment');
is(run('logs', $broken, '--failed'), 0, 'logs --failed succeeds');
like($out, qr/^broken$/m, 'logs --failed prints the output of the step that failed');
unlike($out, qr/fine|later/, 'logs --failed prints no other step');
run('logs', $broken, '--step', 'good');
like($out, qr/^fine$/m, 'logs --step prints the output of a step by its name');
run('logs', $broken, '--step', 2);
like($out, qr/^later$/m, 'logs --step prints the output of a step by its position');
is(run('logs', $broken, '--step', 'x'), 66, 'logs rejects an unknown step');
is(run('logs', $broken, '--step', 'good', '-f'), 64, 'logs rejects --step with -f');
my $whole = $all->log($id);
for my $n (1, 2, 5, 1000) {
	run('logs', $id, '--tail', $n);
	my @lines = $whole =~ /([^\n]*\n|[^\n]+)/g;
	is($out, join('', @lines > $n ? @lines[-$n .. -1] : @lines), "logs --tail $n prints the last lines");
}
run('logs', $id, '--offset', 7);
is($out, substr($whole, 7), 'logs --offset begins there');

# --- a proxy that loses responses: every third part of a log is cut in its middle,
# and the first response to each POST does not arrive
my $port = free_port();
my $lossy = fork // die "fork: $!";
if (!$lossy) {
	$SIG{PIPE} = 'IGNORE'; # a client that ended reads no more
	my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 50,
	    ReuseAddr => 1)
	    or POSIX::_exit(1);
	my ($http, $n, %posted) = (HTTP::Tiny->new(timeout => 600, verify_SSL => 1,
		SSL_options => { SSL_ca_file => $api->cacert }), 0);
	while (my $client = $server->accept) {
		local $/ = "\r\n";
		my ($method, $path) = split / /, <$client> // '';
		next if !defined $path;
		my %head;
		while (defined(my $line = <$client>)) {
			chomp $line;
			last if $line eq '';
			my ($name, $value) = split /:\s*/, $line, 2;
			$head{lc $name} = $value;
		}
		my $body = '';
		read $client, $body, $head{'content-length'} if $head{'content-length'};
		delete @head{qw(host connection content-length accept-encoding)};
		my $got = $http->request($method, $api->url . $path, { headers => \%head, content => $body });
		next if $method eq 'POST' && !$posted{ $head{'idempotency-key'} // '' }++;
		my @name = grep { !/^(?:connection|content-length|date)$/ } keys %{ $got->{headers} };
		my $text = join "\r\n", "HTTP/1.1 $got->{status} x", 'Connection: close',
		    'Content-Length: ' . length $got->{content},
		    (map { "$_: $got->{headers}{$_}" } @name), '', '';
		my $length = length $got->{content};
		my $is_cut = $path =~ m{/log\?} && $length && ++$n % 3 == 0;
		print {$client} $text, substr $got->{content}, 0, $is_cut ? $length / 2 : $length;
		close $client;
	}
	POSIX::_exit(0);
}
my %lossy = (SLIPWAY_URL => "http://127.0.0.1:$port");
poll(60, sub { IO::Socket::INET->new("127.0.0.1:$port") });
my $count = sub { return $all->db->sql('SELECT COUNT(*) FROM deployment') =~ /(\d+)$/ ? $1 : undef };
my $before = $count->();
is(run({ env => \%lossy }, 'deploy', '-p', 'shop', '-P', 'build', '-b', 'main', @key), 0,
    'deploy repeats a request whose response was lost');
is($count->(), $before + 1, 'the repeated request starts one deployment');
$all->wait($out =~ /^(\d+)/);

# --- following across cut responses and a restart of the service
$on = $slipway->terminal({ %here, env => \%lossy }, 'deploy', '-P', 'slow', '-f', @key);
ok($on->saw(qr/^29999\r$/m), 'deploy -f prints what there is');
my ($slow) = $on->screen =~ /deployment (\d+) is pending/ or die "no deployment";
my $other = tempdir() . '/follower';
my $follower = fork // die "fork: $!";
if (!$follower) {
	$ENV{$_} = $slipway->env->{$_} for grep { defined $slipway->env->{$_} } keys %{ $slipway->env };
	open STDOUT, '>', $other or POSIX::_exit(127);
	open STDERR, '>', '/dev/null' or POSIX::_exit(127);
	{ no warnings; exec program('slipway'), 'logs', '-f', $slow; }
	POSIX::_exit(127);
}
ok(poll(60, sub { (slurp($other) // '') =~ /^29999$/m }), 'logs -f prints what there is');
$on->type("\cC");
is($on->end, 130, 'Ctrl-C ends slipway by SIGINT');
like($on->screen,
    qr/Deployment $slow continues\. To follow it again:\r?\n  slipway logs $slow -f --offset \d+\r?$/m,
    'Ctrl-C prints the command that resumes following');
is($all->show($slow)->{status}, 'running', 'Ctrl-C leaves the deployment running');
my ($offset) = $on->screen =~ /--offset (\d+)/;
$api->stop_api;
ok(!kill(0, $api->pid), 'the service is down');
is(kill(0, $follower), 1, 'logs -f goes on while the service is down');
$api->start_api;
spew($gate, '', 0644);
waitpid $follower, 0;
is($? >> 8, 0, 'logs -f ends when the deployment ends');
$whole = $all->log($slow);
like($whole, qr/^60000$/m, 'the log is complete');
is(slurp($other), $whole, 'logs -f prints every byte once across a restart of the service');
is(run({ env => \%lossy }, 'logs', $slow, '-f', '--offset', $offset), 0, 'the printed command follows again');
is($out, substr($whole, $offset),
    'the printed command prints every byte from there once, across responses that were cut');
my ($screen) = $on->screen =~ /(1\r\n2\r\n.*?)\^C/s;
is(length(substr($whole, 0, $offset) =~ /(^1\n2\n.*)/ms ? $1 : ''), length(($screen // '') =~ s/\r//gr),
    'before Ctrl-C it had printed as many bytes as the offset says');
kill 'TERM', $lossy;
waitpid $lossy, 0;

# --- cancel, retry, open
unlink $gate;
# A reader that ends early, as head does, ends slipway by SIGPIPE.
sub unread {
	my @command = (program('slipway'), @_);
	my $errors = tempdir() . '/unread';
	pipe my $from, my $to or die "pipe: $!";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if (!$pid) {
		close $from;
		my %env = %{ $slipway->env };
		@ENV{keys %env} = values %env;
		open STDOUT, '>&', $to and open STDERR, '>', $errors or POSIX::_exit(99);
		{ no warnings; exec @command; }
		POSIX::_exit(98);
	}
	close $_ for $from, $to;
	waitpid $pid, 0;
	return ($? & 127) . slurp($errors);
}
is(unread(@$_), POSIX::SIGPIPE(), "@$_ ends quietly by SIGPIPE if nothing reads it")
    for ['logs', $slow], ['logs', '-f', $slow], ['list'], ['help'];

run(\%here, 'deploy', '-P', 'slow', @key);
($id) = $out =~ /^(\d+)/;
$all->wait($id, qr/^running$/);
# The logs go to files, so that the terminals show standard error alone.
my @shown = map {
	my $file = tempdir() . "/log-$_";
	my @program = ('sh', '-c', "exec \"\$@\" >$file", 'sh', program('slipway'));
	my $on = $slipway->terminal({ env => { TERM => $_ }, program => \@program }, 'logs', '-f', $id);
	{ file => $file, on => $on }
} 'xterm', 'dumb';
ok($shown[0]{on}->saw(qr/running$/), 'a terminal shows a line of progress');
is(run('cancel', $id), 0, 'cancel succeeds');
is($_->{on}->end, 2, 'logs -f of a canceled deployment ends with 2') for @shown;
like($shown[0]{on}->screen, qr/running\r\e\[K/, 'the line of progress is removed');
unlike($shown[1]{on}->screen, qr/running|\e/, 'TERM=dumb gets no progress');
is(slurp($_->{file}), $all->log($id), 'a file gets the log alone') for @shown;
is($all->wait($id)->{status}, 'canceled', 'cancel cancels the deployment');
is(run('status', $id), 2, 'the exit status of a canceled deployment is 2');
is(run('cancel', $id), 65, 'an ended deployment cannot be canceled');
is(run('cancel'), 64, 'cancel requires an id');
spew($gate, '', 0644);
is(run('retry', $id, '-f'), 0, 'retry -f ends with the result');
my ($again) = $err =~ /^(\d+)\t/;
is($all->show($again)->{retryOf}, $id, 'retry repeats the deployment');
is(run('open', $again), 0, 'open succeeds');
is($out, $api->url . "/slipway/deployments/$again\n", 'open prints the address');
my $seen = tempdir() . '/browser';
my $browser = spew(tempdir() . '/browser.sh', "#!/bin/sh\nprintf %s \"\$1\" >$seen\n", 0755);
is($slipway->terminal({ env => { BROWSER => $browser } }, 'open', $again)->end, 0,
    'open starts a browser on a terminal');
is(slurp($seen), $api->url . "/slipway/deployments/$again", 'the browser gets the address');

# --- locks
is(run('lock', '-p', 'shop', '-m', 'moving', '--until', '2h'), 0, 'lock succeeds');
is($out, "locked project shop\n", 'lock says what it locked');
my $lock = $api->get("/api/projects/$project")->{json}{lock};
is($lock->{reason}, 'moving', 'the lock has the reason');
ok($lock->{until}, 'the lock has an end');
is(run(\%here, 'deploy', '-P', 'build', @key), 75, 'deploy is rejected while the project is locked');
like($err, qr/moving.*"slipway unlock" removes the lock/s, 'the error gives the reason and what to try');
is(run('unlock', '-p', 'shop'), 0, 'unlock succeeds');
is($api->get("/api/projects/$project")->{json}{lock}, undef, 'unlock removes the lock');
is(run('unlock', '-p', 'shop'), 66, 'there is no lock to remove');
is(run('lock', '--service', '-m', 'all', '--json'), 0, 'lock --service locks everything');
is(decode_json($out)->{reason}, 'all', "lock --json prints the API's object");
is(run('unlock', '--service'), 0, 'unlock --service removes that lock');
is(run('lock', '-p', 'shop'), 64, 'lock requires a reason');
like($err, qr/--message is required: say why/, 'the error says so');
is(run('lock', '-p', 'shop', '-m', 'x', '--until', 'soon'), 65, 'the service rejects an invalid time');
like($err, qr{^  --until: }m, 'the error names the option');

done_testing();
