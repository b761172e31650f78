#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin known-host: stores the host keys of a real sshd after a confirmation
# on the terminal or with a fingerprint, and loses nothing that the file contains.

use strict;
use warnings;
use Slipway::Client;
use Slipway::Sshd;
use Slipway::Test;
use Test::More;

my $sshd = Slipway::Sshd->start;
plan skip_all => "the account's shell permits no login" if !$sshd;
my $dir = tempdir() . '/conf';
mkdir $dir or die;
my $file = "$dir/known_hosts";
my $conf = spew("$dir/slipway.conf", "[gitserver]\nssh_known_hosts = $file\n", 0600);
my @admin = (program('slipway-admin'), '-c', $conf, 'known-host');
my $host = '127.0.0.1:' . $sshd->port;
my ($print, $other) = map { $sshd->fingerprint($_) } qw(ed25519 ecdsa);

sub known_host {
	my ($status, $out, $err) = run_cmd(@admin, @_);
	return ($status >> 8, $out . $err);
}
sub done {
	my ($want, $what, @args) = @_;
	my ($status, $said) = known_host(@args);
	is($status, 0, $what) or diag($said);
	like($said, $want, "$what: the command says so");
	return;
}
# Expects an error that leaves the file as it is.
sub rejected {
	my ($exit, $want, $what, @args) = @_;
	my $before = slurp($file);
	my ($status, $said) = known_host(@args);
	is($status, $exit, $what) or diag($said);
	like($said, $want, "$what: the error says why");
	is(slurp($file), $before, "$what: the file is unchanged");
	return;
}

# --- scripts
rejected(64, qr/--yes requires --fingerprint/, 'consent without a fingerprint', 'add', $host, '--yes');
rejected(64, qr/no terminal to ask/, 'neither a terminal nor consent', 'add', $host);
rejected(65, qr/presents no key with the fingerprint SHA256:x/, 'another fingerprint', 'add', $host, '--yes',
    '--fingerprint', $print, '--fingerprint', 'SHA256:x');
rejected(64, qr/must be HOST/, 'an invalid name', 'add', '--', $_)
    for 'a b', '-oProxyCommand=x', 'https://x/y', 'x:0';
rejected(69, qr/presents no host key: check/, 'a closed port', 'add', '127.0.0.1:' . free_port());
done(qr/ssh-ed25519 +\Q$print\E\n(?:.*\n)*added to \Q$file\E$/m, 'a key with its fingerprint is added', 'add',
    $host, '--yes', '--fingerprint', $print);
is(slurp($file), $sshd->known, 'the file has this key and no other');
is((stat $file)[2] & 07777, 0644, 'every account can read the new file');
done(qr/\(known\)\n(?:.*\n)*\Q$file\E contains these keys$/m, 'a known key is not added again', 'add', $host,
    '--yes',
    '--fingerprint', $print);
is(slurp($file), $sshd->known, 'the file is unchanged');
my ($status, $out, $err) = run_cmd('ssh', '-F', '/dev/null', '-o', 'BatchMode=yes', '-o',
    "UserKnownHostsFile=$file", '-o', 'HostKeyAlgorithms=ssh-ed25519', '-p', $sshd->port, '127.0.0.1',
    'true');
like($err, qr/Permission denied/, 'ssh accepts the host key');
unlike($err, qr/verification failed/, 'ssh does not ask for the host key');

# --- the question
sub asked {
	my ($answer) = @_;
	my $t = Slipway::Client->new->terminal({ program => [@admin] }, 'add', $host);
	ok($t->saw(qr/ecdsa-sha2-nistp256 +\Q$other\E\r?\n(?:.*\n)*.*\(yes\/no\)\? /),
	    'the terminal shows the fingerprints and asks');
	$t->type("$answer\n");
	return $t->end;
}
isnt(asked($_), 0, "the answer \"$_\" is no consent") for 'no', 'y', '';
is(slurp($file), $sshd->known, 'without consent, the file is unchanged');
is(asked('yes'), 0, 'the answer "yes" is consent');
is(slurp($file), $sshd->known . $sshd->known('ecdsa'), 'the other key is added');

# --- other lines of the file stay
my $text = "# ours\n*.example.org ssh-ed25519 AAAA\n\nbroken";
my @foreign = ($sshd->host_key('ecdsa'))[0, 1];
unlink $file or die;
mkdir "$dir/real" or die;
spew("$dir/real/hosts", $text, 0640);
symlink 'real/hosts', $file or die;
my $gid = is_root() ? 54321 : (split ' ', $))[0];
chown -1, $gid, "$dir/real/hosts" or die;
chmod 0640, "$dir/real/hosts";
my @yes = ('add', $host, '--yes', '--fingerprint', $print);
done(qr/added to \Q$dir\E\/real\/hosts/, 'a key is added to a file behind a link', @yes);
ok(-l $file, 'the link stays one');
is(slurp($file), "$text\n" . $sshd->known, 'the other lines stay');
is_deeply([ (stat $file)[2] & 07777, (stat _)[5] ], [ 0640, $gid ], 'the file keeps its mode and group');
is_deeply([ map { s{.*/}{}r } glob "$dir/* $dir/real/*" ], [qw(known_hosts real slipway.conf hosts)],
    'no other file remains');

# --- names that are hashed, listed or written in another case
my $clear = spew(tempdir() . '/clear', $sshd->known);
run_cmd('ssh-keygen', '-q', '-H', '-f', $clear);
spew($file, slurp($clear));
unlike(slurp($file), qr/127\.0\.0\.1/, 'the names are hashed');
done(qr/contains these keys/, 'a hashed name is found', @yes);
my $localhost = 'localhost:' . $sshd->port;
my $line = $sshd->known =~ s/^\[127.0.0.1\]/other.example.org,[LocalHost]/r;
spew($file, $line);
done(qr/contains these keys/, 'a name in a list and in another case is found', 'add', uc $localhost, '--yes',
    '--fingerprint', $print) if defined gethostbyname 'localhost'; # a new chroot has no /etc/hosts
rejected(65, qr/line 1 .*is not only for .*: edit the file/, 'a line about several hosts is not removed',
    'remove', $localhost);
done(qr/ssh-ed25519\t\Q$print\E$/m, 'the keys are listed', 'list');

spew($file, $sshd->known =~ s/^/\e[31m/r);
unlike((known_host('list'))[1], qr/\e/, 'a list has no control character of the file');

# --- another key of the same host
my $changed = $sshd->known =~ s/(\S+)$/'AAAAC3NzaC1lZDI1NTE5AAAAI' . 'A' x 43/er;
spew($file, $changed);
rejected(65, qr/line 1 of \S+ has another ssh-ed25519 key .*run slipway-admin known-host remove \Q$host\E /,
    'another key of this type', @yes);
spew($file, "#\n" x 100_000 . $changed);
rejected(65, qr/line 100001 of \S+ has another/, 'another key far down in the file', @yes);
done(qr/removed 1 keys/, 'the other key is removed', 'remove', $host);
is(slurp($file), "#\n" x 100_000, 'the other lines of the file stay when a key is removed');
spew($file, $changed);
done(qr/removed 1 keys/, 'a key is removed', 'remove', $host);
is(slurp($file), '', 'the line of a removed key is removed');
rejected(66, qr/has no key of/, 'an unknown host is not removed', 'remove', $host);
spew($file, '@revoked ' . $sshd->known);
rejected(65, qr/line 1 of \S+ revokes the ssh-ed25519 key/, 'a revoked key', @yes);
unlink "$dir/real/hosts";
rejected(78, qr/symbolic link to a file that does not exist/, 'a link that leads nowhere', @yes);
spew($conf, "[gitserver]\n", 0600);
rejected(78, qr/set ssh_known_hosts in \[gitserver\] in \Q$conf\E/, 'no configured file', @yes);
done_testing;
