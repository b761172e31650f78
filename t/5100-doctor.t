#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin doctor: a sound configuration passes, and each fault of one is
# named with what to do.

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
is($status, 78, 'without a key file');
like($said, qr/^FAULT  key file: .*slipway-admin key/m, 'says how to make it');
like($said, qr/^note   Git server: none is configured/m, 'a Git server is not needed');
like($said, qr/^ok     database/m, 'the database is well');
my $first = spew(tempdir() . '/key.conf', base(), 0600);
is((run_cmd(program('slipway-admin'), '-c', $first, 'key'))[0], 0, 'a key is made');
($status, $said) = doctor(base());
is($status, 0, 'then all is well') or diag($said);
unlike($said, qr/older keys/, 'there is no older key');
like($said, qr/^ok     $_/m, $_) for 'key file', 'public key for variables', 'private key for variables: .*deploy\.key: the public half is that of its first key';

($status, $said) = doctor(base() . "[gitserver]\nurl = https://git.example.org\ntype = git\n");
is($status, 0, 'a server of type git is well');
like($said, qr/^note   Git server: of type git: nothing but git itself is asked$/m, 'and is not asked');

# --- the halves of the key for variables
{
	my ($private, $public) = map { tempdir() . "/deploy.$_" } qw(key pub);
	my @half = (slurp($public));
	is((run_cmd(program('slipway-admin'), '-c', $first, 'key'))[0], 0, 'another key');
	push @half, slurp($public);
	($status, $said) = doctor(base());
	is($status, 0, 'older keys are no fault');
	like($said, qr/^note   $_: \S+: holds 1 older keys: slipway-admin key --reseal/m, 'but worth a note') or diag($said)
	    for 'key file', 'private key for variables';
	my @faults = (
		[ 'an older half', sub { spew($public, $half[0], 0644) }, qr/^FAULT  private key for variables: .* older key: .*run it again/m ],
		[ 'a half of no key', sub { spew($public, $half[1] =~ s/^2/7/r, 0644) }, qr/^FAULT  private key for variables: .* none of its keys/m ],
		[ 'another half', sub { spew($public, $half[0] =~ s/^1/2/r, 0644) }, qr/^FAULT  private key for variables: .* none of its keys/m ],
		[ 'no public half', sub { unlink $public }, qr/^FAULT  public key for variables: .*is missing.*slipway-admin key makes it/m ],
		[ 'one that others may change', sub { chmod 0666, $public }, qr/^FAULT  public key for variables: .*mode 666/m ],
		[ 'no private half', sub { rename $private, "$private.away" or die }, qr/^FAULT  private key for variables: .*deploy\.key: is missing.*no deployment with secret variables can run/m ],
		[ 'one that others can read', sub { chmod 0440, $private }, qr/^FAULT  private key for variables: .*mode 440 lets others at it/m ],
	);
	for my $fault (@faults) {
		my ($name, $break, $like) = @$fault;
		$break->();
		($status, $said) = doctor(base());
		is($status, 78, $name);
		like($said, $like, 'is named') or diag($said);
		rename "$private.away", $private if -e "$private.away";
		chmod 0400, $private;
		spew($public, $half[1], 0644);
	}
	my $me = getpwuid $>;
	($status, $said) = doctor(base() . "[api]\nuser = $me\n");
	like($said, qr/^FAULT  private key for variables: .*the account of the API, $me, can read it; it should belong to the dispatcher's/m, 'an API that could read it is told') or diag($said);
	($status, $said) = doctor(base() . "[api]\nuser = $me\n[runner]\nprivilege_drop = no\n");
	is($status, 0, 'where all run under one account');
	like($said, qr/^note   private key for variables: .*can read it/m, 'that is worth a note');
	($status, $said) = doctor(base() . "[runner]\nuser = no-such-account\n");
	is($status, 0, 'an account that is not there');
	like($said, qr/^note   private key for variables: there is no account no-such-account \(runner\.user\)/m, 'likewise');
	if (is_root()) {
		($status, $said) = doctor(base() . "[runner]\nuser = nobody\n");
		is($status, 78, 'a dispatcher that cannot read it');
		like($said, qr/^FAULT  private key for variables: .*the dispatcher cannot read it: chown nobody /m, 'is told how it could');
		chown +(getpwnam 'nobody')[2], 0, $private;
		($status, $said) = doctor(base() . "[runner]\nuser = nobody\n");
		is($status, 0, 'then all is well') or diag($said);
		my $readable = spew(tempdir() . '/daemon.conf', base() . "[runner]\nuser = nobody\n", 0644);
		chown 0, (getpwnam 'daemon')[3], $key;
		chmod 0640, $key;
		($status, my $out) = run_cmd('setpriv', '--reuid=daemon', '--regid=daemon', '--clear-groups', program('slipway-admin'), '-c', $readable, 'doctor');
		like($out, qr/^ok     private key for variables: this account cannot open .*run as root/m, 'an account that has nothing to open cannot, and that is well') or diag($out);
		like($out, qr/^ok     public key for variables/m, 'it reads the public half');
		chown 0, 0, $private;
	} else {
		note('not root: files of other accounts are not tried');
	}
}
($status, $said) = doctor(base() . "[database]\nname = nothing\n");
is($status, 78, 'a database that is not there');
like($said, qr/^FAULT  database: /m, 'is named');
$db->sql("UPDATE user SET status = 'inactive'");
($status, $said) = doctor(base() =~ s/admins = ann/admins =/r);
like($said, qr/^FAULT  people: there is no active administrator: .*user add/m, 'nobody could sign in');
is((run_cmd(program('slipway-admin'), '-c', $first, 'user', 'add', 'eve', '--role', 'admin'))[0], 0, 'an administrator');
($status, $said) = doctor(base() =~ s/admins = ann/admins =/r);
like($said, qr/^ok     people/m, 'then somebody can');

for my $type (qw(gitea gitlab github)) {
	my $f = Slipway::Forge->start(type => $type, redirect_uri => $api->url . '/login', client_secret => 'client-secret');
	$f->user('ann');
	$f->user('bot');
	my $token = $f->token('bot');
	my %both;
	my $conf = sub { my (%more) = @_; return base() . $f->conf(token => $token, %more) };
	# one file of CAs for both servers
	my $ca = spew(tempdir() . "/ca-$type.pem", slurp($f->ca) . slurp($api->cacert), 0644);
	my @sound = (tls_ca => $ca);
	($status, $said) = doctor($conf->(@sound));
	is($status, 0, "$type: a sound configuration") or diag($said);
	like($said, qr/^note   people: .*: eve;/m, 'whoever has the login of an administrator who has not signed in') or diag($said);
	$db->sql("UPDATE user SET last_login_at = NOW(3) WHERE username = 'eve'");
	unlike((doctor($conf->(@sound)))[1], qr/^note   people/m, 'once that one has, nobody else becomes it');
	$db->sql("UPDATE user SET last_login_at = NULL WHERE username = 'eve'");
	unlike((doctor($conf->(@sound) . "[auth]\nremote_user = yes\n"))[1], qr/^note   people/m, 'nor where nginx says who somebody is');
	like($said, qr/^ok     $_/m, $_) or diag($said)
	    for 'Git server: .* answers as ' . $type, 'clock: as', 'redirect address: slipway answers',
	    'client: the Git server knows it',
	    $type eq 'gitea' ? 'redirect address: the Git server has it' : (), 'token: the service is bot';
	unlike($said, qr/\Q$token\E|client-secret/, 'no secret is shown');

	my @faults = (
		['another client', qr/^FAULT  client: .*letter by letter/m, client_id => 'other'],
		['another secret', qr/^FAULT  client: /m, client_secret => 'guessed'],
		$type eq 'gitea' ? ['another redirect address', qr/^FAULT  client: .*redirect/mi, redirect_uri => $api->url . '/elsewhere'] : (),
		['no client', qr/^FAULT  client: .*GITSERVER_CLIENT_ID/m, client_id => undef],
		['no redirect address', qr/^FAULT  client: .*GITSERVER_REDIRECT_URI/m, redirect_uri => undef],
		['a redirect address without TLS', qr/^FAULT  redirect address: .*https/m, redirect_uri => 'http://slipway.example.org/login'],
		['one with a fragment', qr/^FAULT  redirect address: .*fragment/m, redirect_uri => $api->url . '/#/login'],
		['one of another site', qr/^FAULT  redirect address: .*answered/m, redirect_uri => $f->url . '/login'],
		['another token', qr/^FAULT  token: .*401/m, token => 'guessed'],
		['an address in plain text', qr/^FAULT  Git server: .*https/m, url => 'http://git.example.org'],
		['a certificate that is not trusted', qr/^FAULT  Git server: .*^note   Git server: .*tls_ca/ms, tls_ca => undef],
		['a server with TLS that is asked without', qr{^FAULT  Git server: .*start with https://}m, url => $f->url =~ s/^https/http/r],
		['a server that does not listen', qr/^FAULT  Git server: /m, url => 'https://localhost:' . free_port()],
		['no server of that name', qr/^FAULT  Git server: /m, url => 'https://git.invalid'],
		['another type', qr/^FAULT  Git server: .*GITSERVER_TYPE/m, type => $type eq 'gitea' ? 'gitlab' : 'gitea'],
	);
	for my $fault (@faults) {
		my ($name, $like, @more) = @$fault;
		($status, $said) = doctor($conf->(@sound, @more));
		is($status, 78, "$type: $name");
		like($said, $like, 'is named') or diag($said);
		unlike($said, qr/\Q$token\E|client-secret/, 'without a secret');
	}
	$f->fault(qr{access_token$|oauth/token$}, kind => 'status', status => 403, type => 'text/html', body => '<html>');
	($status, $said) = doctor($conf->(@sound));
	like($said, qr/^FAULT  client: .*may not offer OAuth 2\.0 \(Gitea: \[oauth2\] ENABLED\)\.$/m, 'a server without OAuth') or diag($said);
	$f->clear_faults;
	$f->fault(qr{/statuses/0{40}$}, kind => 'status', status => 403, type => 'application/json',
		body => '{"message":"token does not have at least one of required scope(s)"}');
	($status, $said) = doctor($conf->(@sound));
	is($status, 78, 'a token that may only read');
	like($said, qr/^FAULT  token: it may not put statuses on commits: .*403.*required scope.*report = no$/m, 'is named') or diag($said);
	is((doctor($conf->(@sound, report => 'no')))[0], 0, 'where no statuses are put it may');
	$f->clear_faults;
	($status, $said) = doctor($conf->(@sound, token => undef));
	is($status, 0, 'no token of the service');
	like($said, qr/^note   token: .*who made the project's hook secret/m, 'is worth a note');
	my $where = { gitea => qr{/api/v1/version$}, gitlab => qr{/api/v4/version$}, github => qr{/api/v3/meta$} }->{$type};
	for my $skew (-3600, 3600) {
		$f->fault($where, kind => 'headers', headers => { Date => http_time(time + $skew) });
		($status, $said) = doctor($conf->(@sound));
		is($status, 78, 'clocks that differ');
		like($said, $skew > 0 ? qr/^FAULT  clock: .* behind /m : qr/^FAULT  clock: .* ahead of /m, 'by how much, and which way') or diag($said);
		$f->clear_faults;
	}
	$f->repo('team/open');
	$f->repo('team/secret', private => 1, users => ['ann']);
	my $n = 0;
	$db->sql("INSERT INTO project (name, repository, project_dir) VALUES ('$type $_', '" . $f->url . "/team/$_', '$type$_')")
	    for qw(open secret);
	($status, $said) = doctor($conf->(@sound));
	is($status, 78, 'a repository that the service cannot read');
	like($said, qr/^FAULT  project: $type secret: /m, 'is named') or diag($said);
	unlike($said, qr/FAULT  project: $type open/, 'and no other');
	is_deeply([$f->complaints], [], 'nothing was sent that the server would not take');
	$f->stop;
}

{
	my $f = Slipway::Forge->start(type => 'gitea', plain => 1);
	($status, $said) = doctor(base() . $f->conf(url => $f->url =~ s/^http:/https:/r));
	is($status, 78, 'a server without TLS that is asked with it');
	like($said, qr{^FAULT  Git server: .*does not speak TLS.*^note   Git server: .*http://.*allow_http}ms, 'is named') or diag($said);
	$f->stop;
}

# --- what README says to write is what the doctor passes
my ($lines) = slurp(srcdir() . '/README') =~ /^(    \[gitserver\]\n(?:    .*\n)+)/m;
my $f = Slipway::Forge->start(type => 'gitea', redirect_uri => $api->url . '/login', client_secret => 'client-secret');
my %real = ('https://git.example.org' => $f->url, 'THE CLIENT ID' => $f->client_id, 'THE CLIENT SECRET' => 'client-secret',
	'https://example.org/login' => $f->redirect_uri, 'YOUR LOGIN THERE' => 'ann');
for my $example (sort keys %real) {
	ok($lines =~ s/\Q$example\E/$real{$example}/, "README sets $example");
}
$lines =~ s/^    //mg;
my $ca = spew(tempdir() . '/ca-readme.pem', slurp($f->ca) . slurp($api->cacert), 0644);
($status, $said) = doctor(base() . $lines . "[gitserver]\ntls_ca = $ca\n");
is($status, 0, 'README\'s lines are sound') or diag($said);
like($said, qr/^ok     redirect address: the Git server has it/m, 'with the redirect address');
$f->stop;
done_testing();

# RFC 9110 5.6.7
sub http_time {
	my ($at) = @_;
	my ($s, $m, $h, $day, $month, $year, $week) = gmtime $at;
	return sprintf '%s, %02d %s %d %02d:%02d:%02d GMT', (qw(Sun Mon Tue Wed Thu Fri Sat))[$week], $day,
	    (qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec))[$month], 1900 + $year, $h, $m, $s;
}
