#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin doctor names each cause once with what to do, however many projects
# it concerns, and warns of a Gitea that forgets PKCE challenges.

use strict;
use warnings;
use IO::Socket::INET ();
use Test::More;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;

my $db = Slipway::DB->start;
$db->migrate;
my $key = tempdir() . '/secret.key';
my $confs = 0;
sub doctor {
	my ($text) = @_;
	my $conf = spew(tempdir() . '/doctor-' . ++$confs . '.conf',
	    $db->conf . "[secrets]\nkey_file = $key\n[auth]\nadmins = ann\n$text", 0600);
	run_cmd(program('slipway-admin'), '-c', $conf, 'key') if !-e $key;
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $conf, 'doctor');
	return ($status >> 8, $out . $err);
}
sub faults { my ($said, $what) = @_; return grep { /^FAULT  $what/ } split /\n/, $said }

my $f = Slipway::Forge->start(type => 'gitea', client_secret => 'the-secret');
$f->user($_) for qw(ann bot);
my $token = $f->token('bot');
my $at = $f->url;
for my $n (1 .. 11) {
	$f->repo("team/r$n", private => 1, users => ['ann']) if $n < 11;
	$f->repo("team/r$n", private => 1, users => [ 'ann', 'bot' ]) if $n == 11;
	$db->sql("INSERT INTO project (name, repository, project_dir) VALUES ('site $n', '$at/team/r$n', "
	    . "'r$n')");
}

# --- one message for each cause
my ($status, $said) = doctor($f->conf(token => $token));
my @lines = faults($said, 'projects?:');
is(scalar @lines, 1, 'ten repositories that the token cannot read are one fault') or diag($said);
like($lines[0], qr/repositories of 10: site 1, .*site 9: .*404/,
    'the fault names the repositories and the cause');
unlike($lines[0], qr/site 11/, 'the fault does not name a readable repository');
$db->sql("UPDATE project SET valid = 0 WHERE project_dir NOT IN ('r1', 'r11')");
@lines = faults((doctor($f->conf(token => $token)))[1], 'projects?:');
like($lines[0], qr{^FAULT  project: site 1: the service's token cannot read \Q$at\E/team/r1: },
    'a single repository that cannot be read is named with its address');
$db->sql('UPDATE project SET valid = 1');
for my $case ([ 'a token that expires meanwhile', 401, qr/401/ ], [ 'a server that fails', 500, qr/500/ ]) {
	my ($what, $answer, $like) = @$case;
	$f->forget_requests;
	$f->fault(qr{/repos/team/}, kind => 'status', status => $answer, type => 'application/json',
	    body => '{"message":"no"}');
	($status, $said) = doctor($f->conf(token => $token));
	@lines = faults($said, 'projects?:');
	is(scalar @lines, 1, "$what is one fault") or diag($said);
	like($lines[0], $like, "$what: the fault has the cause");
	is(scalar(my @asked = $f->requests(qr{/repos/team/})), 1,
	    "$what: the doctor checks no further repository");
	$f->clear_faults;
}
($status, $said) = doctor($f->conf(token => 'revoked'));
@lines = faults($said, '');
is(scalar @lines, 1, 'a rejected token is one fault') or diag($said);
like($lines[0], qr/^FAULT  token: .*401.*create another one at the Git server.*reload both/,
    'the fault of a rejected token says what to do');

# --- hosts of repositories over SSH
my $hosts = tempdir() . '/hosts';
my $over = 'ssh://git@127.0.0.1:2222/team/r1';
$db->sql("UPDATE project SET valid = project_dir = 'r1', repository = IF(valid, '$over', repository)");
my $with = $f->conf(token => $token) . "ssh_known_hosts = $hosts\n";
($status, $said) = doctor($f->conf(token => $token));
@lines = faults($said, 'SSH hosts:');
is(scalar @lines, 1, 'an unknown host is one fault') or diag($said);
like($lines[0], qr/site 1 cannot be cloned: set ssh_known_hosts .*known-host add 127\.0\.0\.1:2222$/,
    'the fault says what to set and to run');
($status, $said) = doctor($with);
like($said, qr/^FAULT  SSH hosts: no key of \S+ is in \Q$hosts\E, so site 1 cannot be cloned: run slipway/m,
    'a file that does not exist is a fault');
spew($hosts, '[127.0.0.1]:2222 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI' . 'A' x 43 . "\n");
like((doctor($with))[1], qr/^ok     SSH hosts: a key of every host is known \(1\)$/m, 'a known host is ok');
if (is_root()) {
	my ($gid) = (getpwnam 'nobody')[3];
	my $dropping = "${with}ssh_key_file = $hosts.key\n[runner]\nuser = nobody\n";
	spew("$hosts.key", '', 0600);
	chmod 0600, $hosts;
	@lines = faults((doctor($dropping))[1], 'SSH hosts:');
	is(scalar @lines, 2, 'each file that the dispatcher cannot read is a fault') or diag(@lines);
	like($lines[0], qr/\Q$hosts\E \(ssh_known_hosts in .* nobody, cannot read it.*chmod g\+r/,
	    'the fault names the file, the setting and the account');
	chmod 0640, $hosts;
	chown 0, $gid, $hosts;
	chown((getpwnam 'nobody')[2], 0, "$hosts.key");
	like((doctor($dropping))[1], qr/^ok     SSH hosts: a key/m, 'files of its group, or its own, are ok');
}
$db->sql("UPDATE project SET valid = 1, repository = CONCAT('$at/team/', project_dir)");

# --- hints by cause
my $name = 'https://git.invalid';
my ($hole) = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
my $closed = 'https://localhost:' . free_port();
my @hints = (
	[ 'an unknown host name', { url => $name }, qr/getent hosts/ ],
	[ 'a closed port', { url => $closed }, qr/port is reachable.*curl/ ],
	[ 'a silent server', { url => 'http://127.0.0.1:' . $hole->sockport, tls_ca => undef },
	    qr/hangs.*curl/ ],
	[ 'a private CA', { tls_ca => undef }, qr/gitserver\.tls_ca/ ],
);
for my $case (@hints) {
	my ($what, $more, $like) = @$case;
	($status, $said) = doctor($f->conf(token => $token, %$more));
	is($status, 78, "$what fails the doctor");
	is(scalar faults($said, 'Git server'), 1, "$what is one fault") or diag($said);
	is(scalar(my @hint = $said =~ /^note   Git server: (.*)$/mg), 1, "$what has one hint");
	like($said, qr/^note   Git server: .*$like/m, "$what has the right hint") or diag($said);
	is(scalar faults($said, '(?:token|projects?|client|clock)'), 0, "$what causes no other fault");
}

# --- a Gitea that forgets the challenge of PKCE
my %versions = ('1.22.6' => 1, '1.25.4' => 1, '1.25.0+rc0' => 1, '1.9.0' => 1, '1.25.5' => 0,
    '1.26.0+dev-1-gabc' => 0, '2.0.0' => 0,
	'9.0.3+gitea-1.22.0' => 0, '14.0.2+gitea-1.22.0' => 0, 'main' => 0, '' => 0);
for my $version (sort keys %versions) {
	$f->fault(qr{/api/v1/version$}, kind => 'status', status => 200, type => 'application/json',
	    body => qq({"version":"$version"}));
	my $public = Slipway::Forge::conf($f, token => $token, client_secret => undef);
	$said = (doctor($public))[1];
	my $note = qr/version: Gitea \Q$version\E loses the PKCE challenge .*confidential there/;
	my $advice = qr/and set gitserver\.client_secret, or upgrade Gitea to 1\.25\.5$/m;
	my $warned = $said =~ /^note   $note $advice/m ? 1 : 0;
	is($warned, $versions{$version}, "a public client at version \"$version\": "
	    . ($versions{$version} ? 'a warning' : 'no warning')) or diag($said);
	$said = (doctor($f->conf(token => $token)))[1];
	unlike($said, qr/PKCE/, "a confidential client at version \"$version\": no warning");
	$f->clear_faults;
}
$f->stop;
done_testing;
