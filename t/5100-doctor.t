#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin doctor: a sound configuration passes, and each fault is named with
# what to do.

use strict;
use warnings;
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $key = tempdir() . '/secret.key';
my $confs = 0;

sub doctor {
	my ($text) = @_;
	my $conf = spew(tempdir() . '/doctor-' . ++$confs . '.conf', $text, 0600);
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $conf, 'doctor');
	return ($status >> 8, $out . $err);
}

sub base { return $db->conf . "[secrets]\nkey_file = $key\n[auth]\nadmins = ann\n" }

my ($status, $said) = doctor(base());
is($status, 78, 'a missing key file is a fault');
is(scalar(() = $said =~ /^FAULT/mg), 1, 'missing key files are one fault, not three') or diag($said);
like($said, qr/^FAULT  key file: .*slipway-admin key/m,
    'the fault of a missing key file says how to create it');
like($said, qr/^note   Git server: none is configured/m, 'a missing Git server is a note');
like($said, qr/^ok     database/m, 'the database is ok');
my $first = spew(tempdir() . '/key.conf', base(), 0600);
is((run_cmd(program('slipway-admin'), '-c', $first, 'key'))[0], 0, 'slipway-admin creates a key');
($status, $said) = doctor(base());
is($status, 0, 'a sound configuration passes') or diag($said);
unlike($said, qr/older keys/, 'without older keys the doctor does not mention them');
like($said, qr/^ok     $_/m, "the doctor checks: $_") for 'key file', 'public key for variables',
    'private key for variables: .*deploy\.key: the public half belongs to its first key';

($status, $said) = doctor(base() . "[gitserver]\nurl = https://git.example.org\ntype = git\n");
is($status, 0, 'a Git server of type git passes');
like($said, qr/^note   Git server: type git: only the Git protocol is used$/m,
    'a Git server of type git is a note');

# --- the key pair for variables
{
	my ($private, $public) = map { tempdir() . "/deploy.$_" } qw(key pub);
	my @half = (slurp($public));
	is((run_cmd(program('slipway-admin'), '-c', $first, 'key'))[0], 0,
	    'slipway-admin creates another key');
	push @half, slurp($public);
	($status, $said) = doctor(base());
	is($status, 0, 'older keys are no fault');
	like($said, qr/^note   $_: \S+: contains older keys \(1\), .*slipway-admin key --reseal/m,
	    "older keys are a note: $_")
	    or diag($said)
	    for 'key file', 'private key for variables';
	my @faults = (
		[ 'an older public key', sub { spew($public, $half[0], 0644) },
		    qr/^FAULT  private key for variables: .* older key, .*run it again/m ],
		[ 'a public key with an unknown number', sub { spew($public, $half[1] =~ s/^2/7/r, 0644) },
		    qr/^FAULT  private key for variables: .* none of its keys/m ],
		[ 'another public key', sub { spew($public, $half[0] =~ s/^1/2/r, 0644) },
		    qr/^FAULT  private key for variables: .* none of its keys/m ],
		[ 'a missing public key', sub { unlink $public },
		    qr/^FAULT  public key .*: secret variables are rejected: .*is missing: run/m ],
		[ 'a public key that others may write', sub { chmod 0666, $public },
		    qr/^FAULT  public key for variables: .*mode 666 is too permissive: chmod 0644$/m ],
		[ 'a missing private key', sub { rename $private, "$private.away" or die },
		    qr/^FAULT  private key .*: deployments with secret .*deploy\.key: is missing: run/m ],
		[ 'a private key that others may read', sub { chmod 0440, $private },
		    qr/^FAULT  private key for variables: .*mode 440 is too permissive: chmod 0400$/m ],
		[ 'a damaged key file', sub { rename $key, "$key.away" or die; spew($key, "x\n", 0600) },
		    qr/^FAULT  key file: users cannot .*:1: must be .*restore the file from a backup/m ],
	);
	for my $fault (@faults) {
		my ($name, $break, $like) = @$fault;
		$break->();
		($status, $said) = doctor(base());
		is($status, 78, "$name is a fault");
		like($said, $like, "$name is named") or diag($said);
		for ($private, $key) { rename "$_.away", $_ if -e "$_.away" }
		chmod 0400, $private;
		spew($public, $half[1], 0644);
	}
	my $me = getpwuid $>;
	($status, $said) = doctor(base() . "[api]\nuser = $me\n");
	like($said, qr/^FAULT  private key for variables: .*the account of the API, $me, can read it, /m,
	    'a private key that the API can read is a fault') or diag($said);
	like($said, qr/could disclose all secret variables: set user in \[runner\] to another account/m,
	    'the fault names the right owner');
	($status, $said) = doctor(base() . "[api]\nuser = $me\n[runner]\nprivilege_drop = no\n");
	is($status, 0, 'a private key that the API can read passes if all run under one account');
	like($said, qr/^note   private key for variables: .*can read it/m,
	    'a private key that the API can read is a note if all run under one account');
	($status, $said) = doctor(base() . "[runner]\nuser = no-such-account\n");
	is($status, 0, 'an unknown runner.user passes');
	like($said,
	    qr/^note   private key .*: unknown account no-such-account, .*correct user in \[runner\]/m,
	    'an unknown runner.user is a note');
	if (is_root()) {
		($status, $said) = doctor(base() . "[runner]\nuser = nobody\n");
		is($status, 78, 'a private key that the dispatcher cannot read is a fault');
		like($said,
		    qr/^FAULT  private key .*: .*the dispatcher cannot read it, .*: chown nobody /m,
		    'the fault of the dispatcher names the chown command');
		chown +(getpwnam 'nobody')[2], 0, $private;
		($status, $said) = doctor(base() . "[runner]\nuser = nobody\n");
		is($status, 0, 'the private key passes when the dispatcher can read it') or diag($said);
		my $readable = spew(tempdir() . '/daemon.conf', base() . "[runner]\nuser = nobody\n", 0644);
		chown 0, (getpwnam 'daemon')[3], $key;
		chmod 0640, $key;
		($status, my $out) = run_cmd('setpriv', '--reuid=daemon', '--regid=daemon', '--clear-groups',
		    program('slipway-admin'), '-c', $readable, 'doctor');
		like($out, qr/^ok     private key for variables: this account cannot open .*run as root/m,
		    'an account that may not read the private key gets ok') or diag($out);
		like($out, qr/^ok     public key for variables/m,
		    'an account that may not read the private key can check the public one');
		chown 0, 0, $private;
	} else {
		note('not root: files of other accounts are not tested');
	}
}
($status, $said) = doctor(base() . "[database]\nname = nothing\n");
is($status, 78, 'an unknown database is a fault');
like($said, qr/^FAULT  database: /m, 'the fault names the database');
$db->sql("UPDATE user SET status = 'inactive'");
($status, $said) = doctor(base() =~ s/admins = ann/admins =/r);
like($said, qr/^FAULT  people: no active administrator, .*user add/m,
    'a service without an administrator is a fault');
is((run_cmd(program('slipway-admin'), '-c', $first, 'user', 'add', 'eve', '--role', 'admin'))[0], 0,
    'slipway-admin adds an administrator');
($status, $said) = doctor(base() =~ s/admins = ann/admins =/r);
like($said, qr/^ok     people/m, 'a service with an administrator passes');

for my $type (qw(gitea gitlab github)) {
	my $f = Slipway::Forge->start(type => $type, redirect_uri => $api->url . '/login',
	    client_secret => 'client-secret');
	$f->user('ann');
	$f->user('bot');
	my $token = $f->token('bot');
	my %both;
	my $conf = sub { my (%more) = @_; return base() . $f->conf(token => $token, %more) };
	# one file of CAs for both servers
	my $ca = spew(tempdir() . "/ca-$type.pem", slurp($f->ca) . slurp($api->cacert), 0644);
	my @sound = (tls_ca => $ca);
	($status, $said) = doctor($conf->(@sound));
	is($status, 0, "$type: a sound configuration passes") or diag($said);
	like($said, qr/^note   people: .*: eve;/m,
	    "$type: an administrator who has not signed in is a note") or diag($said);
	$db->sql("UPDATE user SET last_login_at = NOW(3) WHERE username = 'eve'");
	unlike((doctor($conf->(@sound)))[1], qr/^note   people/m,
	    "$type: an administrator who has signed in is no note");
	$db->sql("UPDATE user SET last_login_at = NULL WHERE username = 'eve'");
	unlike((doctor($conf->(@sound) . "[auth]\nremote_user = yes\n"))[1], qr/^note   people/m,
	    "$type: with remote_user an administrator is no note");
	like($said, qr/^ok     $_/m, "$type: the doctor checks: $_") or diag($said)
	    for 'Git server: .* responds as ' . $type, 'clock: synchronous',
	    'redirect address: slipway responds', 'client: known to the Git server',
	    $type eq 'gitea' ? 'redirect address: registered at the Git server' : (),
	    'token: the service is bot';
	unlike($said, qr/\Q$token\E|client-secret/, "$type: the output contains no secret");

	my @faults = (
		['another client', qr/^FAULT  client: .*character by character/m, client_id => 'other'],
		['another secret', qr/^FAULT  client: /m, client_secret => 'guessed'],
		$type eq 'gitea' ? ['another redirect address', qr/^FAULT  client: .*redirect/mi,
		    redirect_uri => $api->url . '/elsewhere'] : (),
		['no client', qr/^FAULT  client: .*GITSERVER_CLIENT_ID/m, client_id => undef],
		['no redirect address', qr/^FAULT  client: .*GITSERVER_REDIRECT_URI/m, redirect_uri => undef],
		['a redirect address without TLS', qr/^FAULT  redirect address: .*https/m,
		    redirect_uri => 'http://slipway.example.org/login'],
		['a redirect address with a fragment', qr/^FAULT  redirect address: .*fragment/m,
		    redirect_uri => $api->url . '/#/login'],
		['a redirect address of another site', qr/^FAULT  redirect address: .*returned/m,
		    redirect_uri => $f->url . '/login'],
		['another token', qr/^FAULT  token: .*401/m, token => 'guessed'],
		['a url with http', qr/^FAULT  Git server: .*https/m,
		    url => 'http://git.example.org'],
		['an untrusted certificate',
		    qr/^FAULT  Git server: .*^note   Git server: .*tls_ca/ms, tls_ca => undef],
		['a TLS server reached without TLS', qr{^FAULT  Git server: .*start with https://}m,
		    url => $f->url =~ s/^https/http/r],
		['a server that does not listen', qr/^FAULT  Git server: /m,
		    url => 'https://localhost:' . free_port()],
		['an unknown host name', qr/^FAULT  Git server: /m, url => 'https://git.invalid'],
		['another type', qr/^FAULT  Git server: .*GITSERVER_TYPE/m,
		    type => $type eq 'gitea' ? 'gitlab' : 'gitea'],
	);
	for my $fault (@faults) {
		my ($name, $like, @more) = @$fault;
		($status, $said) = doctor($conf->(@sound, @more));
		is($status, 78, "$type: $name is a fault");
		like($said, $like, "$type: $name is named") or diag($said);
		unlike($said, qr/\Q$token\E|client-secret/, "$type: $name: the output contains no secret");
	}
	$f->fault(qr{access_token$|oauth/token$}, kind => 'status', status => 403, type => 'text/html',
	    body => '<html>');
	($status, $said) = doctor($conf->(@sound));
	like($said, qr/^FAULT  client: .*may not support OAuth 2\.0 \(Gitea: \[oauth2\] ENABLED\)\.$/m,
	    "$type: a server without OAuth is a fault") or diag($said);
	$f->clear_faults;
	$f->fault(qr{/statuses/0{40}$}, kind => 'status', status => 403, type => 'application/json',
		body => '{"message":"token does not have at least one of required scope(s)"}');
	($status, $said) = doctor($conf->(@sound));
	is($status, 78, "$type: a token without write access is a fault");
	like($said,
	    qr/^FAULT  token: it may not set commit statuses: .*403.*required scope.*report = no$/m,
	    "$type: a token without write access is named") or diag($said);
	is((doctor($conf->(@sound, report => 'no')))[0], 0,
	    "$type: a token without write access passes with report = no");
	$f->clear_faults;
	($status, $said) = doctor($conf->(@sound, token => undef));
	is($status, 0, "$type: a missing service token passes");
	like($said, qr/^note   token: .*who created the project's hook secret/m,
	    "$type: a missing service token is a note");
	my $where = { gitea => qr{/api/v1/version$}, gitlab => qr{/api/v4/version$},
	    github => qr{/api/v3/meta$} }->{$type};
	for my $skew (-3600, 3600) {
		$f->fault($where, kind => 'headers', headers => { Date => http_time(time + $skew) });
		($status, $said) = doctor($conf->(@sound));
		is($status, 78, "$type: clocks that differ are a fault");
		like($said, $skew > 0 ? qr/^FAULT  clock: .* behind /m : qr/^FAULT  clock: .* ahead of /m,
		    "$type: the fault of the clocks says how they differ") or diag($said);
		$f->clear_faults;
	}
	$f->repo('team/open');
	$f->repo('team/secret', private => 1, users => ['ann']);
	my $n = 0;
	$db->sql("INSERT INTO project (name, repository, project_dir) VALUES ('$type $_', '" . $f->url
	    . "/team/$_', '$type$_')")
	    for qw(open secret);
	($status, $said) = doctor($conf->(@sound));
	is($status, 78, "$type: a repository that the service cannot read is a fault");
	like($said, qr/^FAULT  project: $type secret: /m,
	    "$type: a repository that the service cannot read is named") or diag($said);
	unlike($said, qr/FAULT  project: $type open/,
	    "$type: a repository that the service can read is no fault");
	is_deeply([$f->complaints], [], "$type: the server received only valid requests");
	$f->stop;
}

{
	my $f = Slipway::Forge->start(type => 'gitea', plain => 1);
	($status, $said) = doctor(base() . $f->conf(url => $f->url =~ s/^http:/https:/r));
	is($status, 78, 'a server without TLS reached with TLS is a fault');
	like($said,
	    qr{^FAULT  Git server: .*failed the TLS handshake.*^note   Git server: .*http://.*allow_http}ms,
	    'a server without TLS reached with TLS is named') or diag($said);
	$f->stop;
}

# --- the configuration in the README passes
my ($lines) = slurp(srcdir() . '/README') =~ /^(    \[gitserver\]\n(?:    .*\n)+)/m;
my $f = Slipway::Forge->start(type => 'gitea', redirect_uri => $api->url . '/login',
    client_secret => 'client-secret');
my %real = ('https://git.example.org' => $f->url, 'THE CLIENT ID' => $f->client_id,
    'THE CLIENT SECRET' => 'client-secret',
	'https://slipway.example.org/slipway/sign-in' => $f->redirect_uri, 'YOUR LOGIN THERE' => 'ann');
for my $example (sort keys %real) {
	ok($lines =~ s/\Q$example\E/$real{$example}/, "the README sets $example");
}
$lines =~ s/^    //mg;
my $ca = spew(tempdir() . '/ca-readme.pem', slurp($f->ca) . slurp($api->cacert), 0644);
($status, $said) = doctor(base() . $lines . "[gitserver]\ntls_ca = $ca\n");
is($status, 0, 'the configuration in the README passes') or diag($said);
like($said, qr/^ok     redirect address: registered at the Git server/m,
    'the redirect address in the README passes');
$f->stop;
done_testing();

# RFC 9110 5.6.7
sub http_time {
	my ($at) = @_;
	my ($s, $m, $h, $day, $month, $year, $week) = gmtime $at;
	return sprintf '%s, %02d %s %d %02d:%02d:%02d GMT', (qw(Sun Mon Tue Wed Thu Fri Sat))[$week], $day,
	    (qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec))[$month], 1900 + $year, $h, $m, $s;
}
