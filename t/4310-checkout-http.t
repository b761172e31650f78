#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Checkout over HTTP from git http-backend: credentials are sent to the host of the
# repository alone, and steps cannot find them.

use strict;
use warnings;
use IO::Socket::INET;
use MIME::Base64;
use Test::More;
use Slipway::Spool;
use Slipway::Test;

my ($status, $exec) = run_cmd('git', '--exec-path');
chomp $exec;
plan skip_all => 'git http-backend is not installed'
    if !-x "$exec/git-http-backend" || !-x "$exec/git-remote-http";
note(is_root() ? 'as root' : 'without root');

my $root = tempdir() . '/served';
mkdir $root;
make_repo("$root/repo", 'echo one >file; git config http.uploadpack true; touch .git/git-daemon-export-ok');
my $secret = 's3cret%/tok en';

# A minimal server: /open/… needs no password, /private/… needs one, /moved/…
# redirects to another address.  It logs its requests.
sub serve {
	my ($name, $moved) = @_;
	my $log = tempdir() . "/$name.requests";
	spew($log, '');
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 20)
	    or die "listen: $!";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	return ($pid, $listen->sockport, $log) if $pid;
	$SIG{CHLD} = 'IGNORE';
	while (my $peer = $listen->accept) {
		next if fork;
		request($peer, $log, $moved);
		POSIX::_exit(0);
	}
	POSIX::_exit(0);
}

sub request {
	my ($peer, $log, $moved) = @_;
	my ($head, %h) = scalar <$peer>;
	while (defined(my $line = <$peer>)) {
		last if $line =~ /^\r?\n$/;
		$h{lc $1} = $2 if $line =~ /^([^:]+):\s*(.*?)\r?\n/;
	}
	my ($method, $path, $query) = $head =~ m{^(\S+) ([^? ]+)(?:\?(\S*))? };
	my $auth = ($h{authorization} || '') =~ /^Basic (\S+)/ ? decode_base64($1) : '-';
	open my $note, '>>', $log or die;
	syswrite $note, "$method $path $auth\n";
	if ($path =~ m{^/moved/(.*)}) {
		print $peer "HTTP/1.1 302 Found\r\nLocation: $moved/$1?$query\r\nContent-Length: "
		    . "0\r\nConnection: close\r\n\r\n";
		return;
	}
	if ($path =~ m{^/private/} && $auth ne "oauth2:$secret") {
		print $peer "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic "
		    . "realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
		return;
	}
	my $body = '';
	read $peer, $body, $h{'content-length'} || 0;
	my $in = "$log.in.$$";
	spew($in, $body);
	(my $info = $path) =~ s{^/(?:open|private)}{};
	%ENV = (PATH => $ENV{PATH}, GIT_PROJECT_ROOT => $root, GIT_HTTP_EXPORT_ALL => 1, PATH_INFO => $info,
		REQUEST_METHOD => $method, QUERY_STRING => $query || '',
		CONTENT_TYPE => $h{'content-type'} || '',
		CONTENT_LENGTH => length $body, REMOTE_ADDR => '127.0.0.1', GIT_CONFIG_COUNT => 1,
		GIT_CONFIG_KEY_0 => 'safe.directory', GIT_CONFIG_VALUE_0 => '*');
	$ENV{GIT_PROTOCOL} = $h{'git-protocol'} if $h{'git-protocol'};
	$ENV{HTTP_CONTENT_ENCODING} = $h{'content-encoding'} if $h{'content-encoding'};
	open STDIN, '<', $in;
	my $answer = `'$exec/git-http-backend' 2>/dev/null`;
	my ($top, $rest) = split /\r?\n\r?\n/, $answer, 2;
	my $line = $top =~ s/^Status: (.*?)\r?\n// ? $1 : '200 OK';
	print $peer "HTTP/1.1 $line\r\n$top\r\nContent-Length: " . length($rest)
	    . "\r\nConnection: close\r\n\r\n$rest";
}

my ($other_pid, $other_port, $other_log) = serve('other', '');
my ($pid, $port, $log) = serve('main', "http://127.0.0.1:$other_port/private");
END { kill 'TERM', grep { defined } $pid, $other_pid }
my $base = "http://127.0.0.1:$port";
sub deploy {
	my (%o) = @_;
	return job_run(branch => 'main', allow_local => 0, allow_http => 1, checkout_timeout => 30,
	    steps => ['cat file'], %o);
}
sub requests { my $text = slurp($log); spew($log, ''); return $text }

my $job = deploy(repository => "$base/open/repo");
is(scalar job_end($job), 'success -', 'a public repository is checked out');
like(job_log($job), qr/^one$/m, 'a public repository has its files');
unlike(requests(), qr/oauth2/, 'a public repository gets no credential');
$job = deploy(repository => "$base/open/repo", allow_http => 0);
is((job_end($job))[1], 'Repositories without TLS are not allowed here.',
    'http is rejected if TLS is required');
is(requests(), '', 'http is rejected before a request is sent');

# --- credentials
$job = deploy(repository => "$base/private/repo");
is(scalar job_end($job), 'failed checkout_failed',
    'a private repository without a credential fails the checkout');
like((job_end($job))[1], qr/^fatal: .*(?:Authentication failed|could not read)/,
    'the detail is the message of git');
requests();
my $hunt = <<'END';
n=s3; n=${n}cret
grep -rlF $n . "$HOME" && echo FOUND in files
echo $n >~/wanted # not an argument, which grep would find
[ -s ~/wanted ] || echo FOUND nothing to look for
grep -alsF -f ~/wanted /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep . && echo FOUND in a process
env | grep -E "ASKPASS|$n" && echo FOUND in env
ls -l /proc/self/fd | grep memfd && echo FOUND memory
git config --local -l | grep -i -E "helper|$n" && echo FOUND in config
exit 0
END
$job = deploy(repository => "$base/private/repo", credential => "oauth2\n$secret",
    steps => ['cat file', "#!/bin/bash\n$hunt"]);
is(scalar job_end($job), 'success -', 'a private repository with its credential is checked out');
like(job_log($job), qr/^one$/m, 'a private repository has its files');
unlike(job_log($job), qr/FOUND/, 'no step finds the credential') or diag(job_log($job));
like(requests(), qr/oauth2:\Q$secret\E/, 'the server gets the credential');
unlike(job_log($job), qr/s3cret/, 'the log does not contain the credential');
$job = deploy(repository => "$base/private/repo", credential => "oauth2\nwrong");
is(scalar job_end($job), 'failed checkout_failed', 'a wrong credential fails the checkout');
unlike(slurp("$job->{dir}/result"), qr/wrong/, 'the result does not contain the credential');
requests();

# --- redirects and submodules
$job = deploy(repository => "$base/moved/repo", credential => "oauth2\n$secret");
is(scalar job_end($job), 'failed checkout_failed', 'a redirect to another host is not followed');
is(slurp($other_log), '', 'the other host receives no request');
run_cmd({ cwd => "$root/repo" }, 'sh', '-ec', "git init -q -b main '$root/super'; cd '$root/super';"
	. "git config user.email a\@example.org; git config user.name a; printf '[submodule \"s\"]\n\tpath = "
	    . "s\n\turl = http://ann:s3cretpw\@127.0.0.1:$other_port/private/repo\n' >.gitmodules;"
	. "git update-index --add --cacheinfo 160000,\$(git -C ../repo rev-parse HEAD),s; "
	    . "git add .gitmodules; git commit -qm super");
$job = deploy(repository => "$base/private/super", credential => "oauth2\n$secret",
    submodules => 1, steps => ['cat s/file']);
is(scalar job_end($job), 'failed checkout_failed', 'a private submodule on another host fails the checkout');
like(slurp($other_log), qr/^GET/m, 'a submodule on another host is requested');
unlike(slurp($other_log), qr/oauth2/, 'a submodule on another host gets no credential');
like(job_log($job), qr{http://\*\*\*\@127\.0\.0\.1},
    'the log shows the URL of a submodule without its password');
unlike(job_log($job) . slurp("$job->{dir}/result"), qr/s3cretpw/,
    'neither the log nor the result has the password of a URL');
run_cmd('sh', '-ec',
    "cd '$root/super'; printf '[submodule \"s\"]\n\tpath = s\n\turl = ../repo\n' >.gitmodules; "
    . "git add .gitmodules; git commit -qm same");
$job = deploy(repository => "$base/private/super", credential => "oauth2\n$secret",
    submodules => 1, steps => ['cat s/file']);
is(scalar job_end($job), 'success -', 'a submodule on the same host is checked out');
like(job_log($job), qr/^one$/m, 'a submodule on the same host has its files');
$job = deploy(repository => "$base/private/super", credential => "oauth2\n$secret", submodules => 1,
    uid => $job->{uid}, workspace => $job->{workspace}, steps => ['cat s/file']);
like(job_log($job), qr/^one$/m, 'a submodule is checked out again');

# --- submodules: the credential only for what is lent
requests();
my %super = (repository => "$base/private/super", credential => "oauth2\n$secret", submodules => 2,
    steps => ['cat s/file']);
my $rule = qr/not public is read only if a maintainer.* lists it in submoduleRepositories .*projects\/7/;
$job = deploy(%super);
is(scalar job_end($job), 'failed checkout_failed', 'a private submodule needs a credential');
like(job_log($job), $rule, 'the log says why');
unlike(requests(), qr{/private/repo\S* oauth2}, 'the server gets none for it');
$job = deploy(%super, lent => "$base/private/other.git $base/private/rep $base/private/repo2",
    refused => 'a/b is no repository');
is(scalar job_end($job), 'failed checkout_failed', 'those that are lent are others');
like(job_log($job), qr{$rule\); in that list, a/b is no repository\)},
    'the log has the reason of the dispatcher');
unlike(requests(), qr{/private/repo\S* oauth2}, 'the server gets no credential for it');
$job = deploy(%super, lent => "$base/private/other.git $base/private/repo.git");
is(scalar job_end($job), 'success -', 'a submodule that is lent is fetched') or diag(job_log($job));
like(requests(), qr{/private/repo\S* oauth2}, 'the server gets the credential for it');
sub submodule_at {
	my ($url) = @_;
	run_cmd('sh', '-ec',
	    "cd '$root/super'; printf '[submodule \"s\"]\n\tpath = s\n\turl = $url\n' >.gitmodules; "
	    . "git add .gitmodules; git commit --allow-empty -qm changed");
	return;
}
# an address that git's library or the server changes into that of another repository
for my $url ("$base/private/other/../repo", "$base/private/other/%%2e%%2e/repo", "$base/private//repo") {
	submodule_at($url);
	$job = deploy(%super, lent => "$base/private/other.git");
	is(scalar job_end($job), 'failed checkout_failed', "$url is not lent");
	unlike(requests(), qr{repo\S* oauth2}, "the server gets no credential for $url");
}
submodule_at('ssh://git@127.0.0.1:1/private/repo');
$job = deploy(%super, lent => "$base/private/repo.git");
is(scalar job_end($job), 'failed checkout_failed', 'a submodule over SSH is not fetched');
like(job_log($job), qr/Over SSH, submodules are read only with the deploy key/, 'the log says why')
    or diag(job_log($job));
submodule_at("$base/open/repo");
$job = deploy(%super);
is(scalar job_end($job), 'success -', 'a public submodule needs no credential') or diag(job_log($job));

# --- askpass alone
sub ask {
	my ($question, $env, $content) = @_;
	my $file = tempdir() . '/credential';
	spew($file, defined $content ? $content : "https://git.example.org:8443\nme\nmy secret");
	my ($code, $out) = run_cmd({ env => { SLIPWAY_ASKPASS => defined $env ? $env : 4 } }, 'sh', '-c',
	    'exec 4<"$0"; exec "$1" "$2"',
		$file, program('slipway-job'), $question);
	return $code == 0 ? $out : undef;
}
is(ask("Username for 'https://git.example.org:8443': "), "me\n", 'askpass answers the prompt for the user');
is(ask("Password for 'https://me\@git.example.org:8443': "), "my secret\n",
    'askpass answers the prompt for the password');
is(ask($_), undef, "askpass rejects the prompt $_")
    for "Password for 'https://me\@git.example.org': ", "Password for 'http://me\@git.example.org:8443': ",
    "Password for 'https://git.example.org:8443.evil.org': ",
    "Password for 'https://git.example.org:8443\@evil.org': ",
    "Password for 'https://evil.org/https://git.example.org:8443': ", "Passphrase for key '/x': ",
    "Password for '", '', "Password for https://git.example.org:8443";
is(ask("Password for 'https://git.example.org:8443': ", $_), undef, "askpass rejects descriptor $_")
    for 0, 5, '4x', -1;
is(ask("Password for 'https://git.example.org:8443': ", 4, $_), undef,
    'askpass rejects an incomplete credential')
    for '', 'x', "https://git.example.org:8443\nme";

done_testing();
