#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin: options, the key file, users, tokens and errors.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Test::More;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start(empty => 1);
my $key = tempdir() . '/secret.key';
my $conf = spew(tempdir() . '/slipway.conf',
    $db->conf . "[secrets]\nkey_file = $key\n[auth]\nadmins = root\n", 0600);

sub admin { return slipway_admin($conf, @_) }

sub rejected {
	my ($exit, $re, @args) = @_;
	my ($status, $out, $err) = admin(@args);
	is($status, $exit, "slipway-admin rejects: @args") or diag("$out$err");
	like($err, $re, "the error gives the reason: @args");
	return;
}

sub done {
	my ($re, @args) = @_;
	my ($status, $out, $err) = admin(@args);
	is($status, 0, "slipway-admin @args succeeds") or diag("$out$err");
	like($out, $re, "slipway-admin @args prints its result");
	return $out;
}

# --- without a command
my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-V');
is($status, 0, '-V succeeds');
like($out, qr/^slipway-admin \d+\.\d+\.\d+$/, '-V prints the version');
($status, $out, $err) = run_cmd(program('slipway-admin'), '-h');
is($status, 0, '-h succeeds');
like($out, qr/^usage: .*^  token add USER/ms, '-h prints the commands');
rejected(64, qr/usage/);
rejected(64, qr/unknown command users\nDid you mean "slipway-admin user"\?$/m, 'users', 'list');
rejected(64, qr/unknown command nothing\nusage: /, 'nothing');
rejected(64, qr/unknown option --stats; did you mean --status\?$/m, 'migrate', '--stats');
like(done(qr/./, 'help', 'token', 'add'), qr/^usage: slipway-admin .* token add USER --name NAME/m,
    'help prints the options of a command');
rejected(64, qr/unknown command tokne; did you mean token\?/, 'help', 'tokne');
rejected(64, qr/user requires a subcommand: user list, user add, user set, user delete$/m, 'user');
rejected(64, qr/unknown command user invent; existing ones: user list, user add, user set, user delete$/m,
    'user', 'invent');
rejected(64, qr/unknown command gitserver mvoe; existing ones: gitserver move$/m, 'gitserver', 'mvoe');
rejected(64, qr/invalid option/, '-x');
rejected(64, qr/unknown option --nothing/, 'migrate', '--nothing');
rejected(64, qr/unexpected argument "now"/, 'migrate', 'now');
rejected(64, qr/--status takes no value/, 'migrate', '--status=1');
($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', '/nonexistent', 'migrate');
is($status >> 8, 78, 'a missing configuration is rejected');
like($err, qr{/nonexistent does not exist}, 'the error names the missing configuration');
my $bad = spew(tempdir() . '/bad.conf', "[database]\nport = many\n", 0600);
($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $bad, 'migrate');
is($status >> 8, 78, 'an invalid configuration is rejected');
like($err, qr{bad\.conf:2: }, 'the error names file and line');

# --- before the schema
rejected(78, qr/0001-schema has not been applied: run slipway-admin migrate/, 'user', 'list');
rejected(78, qr/secret\.key: is missing: run slipway-admin key/, 'check');

# --- the schema
like(done(qr/would apply 0001-schema/, 'migrate', '--dry-run'), qr/^(?:would apply \S+\n)+\z/,
    '--dry-run lists the migrations and applies none');
like(done(qr/./, 'migrate', '--status'), qr/^0001-schema pending$/m, '--status lists a pending migration');
done(qr/^applying 0001-schema$/m, 'migrate');
done(qr/^the schema is up to date$/m, 'migrate');

# --- ids after a restore
sub next_project {
	$db->sql("INSERT INTO project (name, repository, project_dir) VALUES ('p', 'r', 'd')");
	my $id = $db->sql('SELECT MAX(id) FROM project');
	$db->sql('DELETE FROM project');
	return $id;
}
my $given = next_project();
like(done(qr/^the next deployment would have the id 100001$/m, 'skip-ids', '--dry-run'),
    qr/^the next project would have the id @{[$given + 101]}$/m,
        'skip-ids --dry-run prints the ids of projects');
is(next_project(), $given + 1, 'skip-ids --dry-run changes nothing');
done(qr/^the next deployment has the id 100001$/m, 'skip-ids');
is(next_project(), $given + 102, 'skip-ids skips the ids of projects');
done(qr/^the next deployment has the id 100008$/m, 'skip-ids', '--deployments', 7, '--projects', '1');
rejected(64, qr/--deployments must be a number/, 'skip-ids', '--deployments', 'many');
like(done(qr/./, 'migrate', '--status'),
    qr/^0001-schema applied \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/m,
    '--status lists an applied migration with its time');

# --- the key file
done(qr/new first key/, 'key');
is((stat $key)[2] & 07777, 0640, 'the key file is readable by owner and group');
my $first = slurp($key);
like($first, qr{^1 [A-Za-z0-9+/]{43}=\n\z}, 'the key file has one key');
done(qr/new first key/, 'key');
my $both = slurp($key);
like($both, qr{^2 [A-Za-z0-9+/]{43}=\n\Q$first\E\z}, 'a new key comes first, the old one is kept');
done(qr/^# ok: key file\n# ok: public key for variables\n# ok: database and schema$/m, 'check');
my $printed = done(qr/^\[database\]$/m, 'check');
unlike($printed, qr/rows-password|schema-password/, 'check prints no secret');
like($printed, qr/^# password is set$/m, 'check says which secrets are set');
like($printed, qr/^admins = root$/m, 'check prints a setting');
{
	my $named = spew(tempdir() . '/named.conf',
	    slurp($conf) . "[run_as]\nshop = daemon\nteam/site = nobody\n", 0600);
	my $told = (run_cmd(program('slipway-admin'), '-c', $named, 'check'))[1];
	like($told, qr/^\[run_as\]\nshop = daemon\nteam\/site = nobody\n/m,
	    'check prints the accounts of projects');
	my %secret = slurp($named) =~ /^((?:migrate_)?password) = (.*)$/mg;
	my $again = spew(tempdir() . '/again.conf', $told =~ s/^# (\w+) is set$/$1 = $secret{$1}/gmr, 0600);
	is((run_cmd(program('slipway-admin'), '-c', $again, 'check'))[1], $told,
	    'the output of check is an equivalent configuration');
	($status, undef, $err) = run_cmd('sh', '-c', 'exec "$@" >/dev/full', 'sh', program('slipway-admin'),
	    '-c', $conf, 'check');
	is($status >> 8, 74, 'a full disk fails check');
	like($err, qr/standard output: No space left/, 'the error names standard output');
}
my %fault = (
	"1 AAAA\n" => qr/secret\.key:1: must be a unique number/,
	'' => qr/contains no key/,
	$first . $first => qr/secret\.key:2: must be a unique number/,
	"x" . substr($first, 1) => qr/secret\.key:1: /,
	"1 \0" . substr($first, 3) => qr/contains a NUL byte/,
	'#' x 9000 => qr/is too large/,
);
for my $text (sort keys %fault) {
	spew($key, $text, 0600);
	rejected(78, $fault{$text}, 'check');
	rejected(78, $fault{$text}, 'key');
	is(slurp($key), $text, 'an invalid key file is left unchanged');
}
for my $mode (0644, 0660, 0602, 0604) {
	spew($key, $both, $mode);
	rejected(78, qr/mode \d+ is too permissive/, 'check');
}
for my $mode (0600, 0640, 0400, 0440) {
	chmod $mode, $key;
	done(qr/^# ok: key file$/m, 'check');
}
if (is_root()) {
	chown 12345, 12345, $key;
	rejected(78, qr/must belong to root or to the account/, 'check');
	chown 0, 54321, $key;
	done(qr/new first key/, 'key');
	is((stat $key)[5], 54321, 'a new key keeps the group of the file');
} else {
	note('not root: files of other owners are not tested');
}
unlink $key;
symlink "$key.other", $key;
rejected(78, qr/is missing/, 'check');
unlink $key;
mkdir $key;
rejected(78, qr/is not a regular file/, 'check');
rmdir $key;

# --- the key pair for variables: a private key file, and a public one beside it
{
	my ($private, $public) = map { tempdir() . "/deploy.$_" } qw(key pub);
	done(qr/new first key/, 'key');
	unlink $private, $public;
	rejected(78, qr/deploy\.pub: is missing: run slipway-admin key/, 'check');
	done(qr/^\Q$private\E has a new first key, \Q$public\E its public half$/m, 'key');
	my $mode = sub { return sprintf '%04o', (stat $_[0])[2] & 07777 };
	is($mode->($private), '0400', 'the private key is readable by its owner alone');
	is($mode->($public), '0644', 'the public key is readable by all');
	my ($one, $half) = (slurp($private), slurp($public));
	like($one, qr{^1 [A-Za-z0-9+/]{43}=\n\z}, 'the private key file has one key');
	like($half, qr{^1 [A-Za-z0-9+/]{43}=\n\z}, 'the public key file has one key');
	isnt($half, $one, 'the public key differs from the private one');
	done(qr/new first key/, 'key');
	my $two = slurp($private);
	like($two, qr{^2 [A-Za-z0-9+/]{43}=\n\Q$one\E\z},
	    'a new private key comes first, the old one is kept');
	like(slurp($public), qr{^2 [A-Za-z0-9+/]{43}=\n\z}, 'the public key file has the new key alone');
	is($mode->($private), '0400', 'the private key file keeps its mode');

	# one file is written after the other: a run that fails in between
	$half = slurp($public);
	mkdir "$public.new" or die;
	rejected(70, qr/deploy\.pub\.new: /, 'key');
	like(slurp($private), qr{^3 [A-Za-z0-9+/]{43}=\n\Q$two\E\z}, 'the private key file is written first');
	is(slurp($public), $half,
	    'the public key file keeps the old key, which is still in the private file');
	rmdir "$public.new" or die;
	done(qr/new first key/, 'key');
	like(slurp($public), qr/^4 /, 'the next run writes both files');
	spew("$private.new", 'left over by a crash', 0600);
	done(qr/new first key/, 'key');
	ok(!-e "$private.new", 'a temporary file of a crash does not stop the next run');

	my @faults = ([ $private, "1 AAAA\n", 0400, qr/deploy\.key:1: must be a unique number/ ],
	    [ $private, '', 0400, qr/contains no key/ ],
		map { [ $private, $two, $_, qr/deploy\.key: mode \d+ is too permissive: chmod 0400/ ] } 0440,
		0404, 0420, 0640);
	for my $fault (@faults) {
		my ($file, $text, $as, $why) = @$fault;
		unlink $file;
		spew($file, $text, $as);
		rejected(78, $why, 'key');
		is(slurp($file), $text, 'an invalid private key file is left unchanged');
	}
	unlink $private;
	spew($private, $two, 0400);
	for my $fault ([ "1 AAAA\n", 0644, qr/deploy\.pub:1: / ],
	    [ $two, 0644, qr/must contain exactly one key/ ],
	    [ $half, 0664, qr/mode 664 is too permissive/ ], [ $half, 0646, qr/mode 646/ ]) {
		spew($public, $fault->[0], $fault->[1]);
		rejected(78, $fault->[2], 'check');
	}
	done(qr/new first key/, 'key');
	done(qr/^# ok: public key for variables$/m, 'check');
	my $elsewhere = tempdir() . '/elsewhere';
	mkdir $elsewhere or die;
	my $far = spew(tempdir() . '/far.conf',
	    slurp($conf)
	    . "[secrets]\ndeploy_key_file = $elsewhere/private\ndeploy_public_file = $elsewhere/public\n",
	    0600);
	is((run_cmd(program('slipway-admin'), '-c', $far, 'key'))[0], 0,
	    'deploy_key_file and deploy_public_file set the names');
	like(slurp("$elsewhere/$_"), qr/^1 /, "the $_ file has a key") for qw(private public);
	if (is_root()) {
		my ($uid, $name) = (getpwnam 'nobody')[2, 0];
		is((stat $private)[4], 0, "without the dispatcher's account the private key belongs to root")
		    if !defined getpwnam 'slipway';
		unlink glob "$elsewhere/*";
		spew($far, slurp($far) . "[runner]\nuser = $name\n", 0600);
		is((run_cmd(program('slipway-admin'), '-c', $far, 'key'))[0], 0, 'root creates keys');
		is((stat "$elsewhere/private")[4], $uid, 'the private key belongs to runner.user');
		is((stat "$elsewhere/public")[4], 0, 'the public key belongs to root');
		is((run_cmd(program('slipway-admin'), '-c', $far, 'key'))[0], 0, 'root rotates keys');
		is((stat "$elsewhere/private")[4], $uid, 'the private key still belongs to runner.user');
		like(slurp("$elsewhere/private"), qr/^2 .*\n1 /, 'the private key file keeps the old key');
	} else {
		note('not root: the owners of files are not tested');
	}
}

# --- users
rejected(66, qr/unknown user --role$/m, 'user', 'delete', '--', '--role');
rejected(64, qr/unknown option --role/, 'user', 'delete', '--role');
done(qr/user anna was created/, 'user', 'add', 'anna', '--role', 'admin');
done(qr/user ben was created/, 'user', 'add', '--role=viewer', "--name=Ben \xc3\x84", '--email',
    'ben@example.org', 'ben');
is(done(qr/./, 'user', 'list'),
    "anna\tadmin\tactive\t\t\nben\tviewer\tactive\tBen \xc3\x84\tben\@example.org\n",
    'list prints both users');
rejected(64, qr{missing argument\nusage: .* user add USER --role ROLE}, 'user', 'add');
rejected(64, qr/--role requires a value/, 'user', 'add', 'carl', '--role');
rejected(65, qr/role: /, 'user', 'add', 'carl');
rejected(65, qr/role: /, 'user', 'add', 'carl', '--role', 'root');
rejected(65, qr/username: /, 'user', 'add', 'c a r l', '--role', 'viewer');
rejected(65, qr/username: /, 'user', 'add', '', '--role', 'viewer');
rejected(65, qr/email: /, 'user', 'add', 'carl', '--role', 'viewer', '--email', 'nowhere');
rejected(65, qr/name: .*email: |email: .*name: /s, 'user', 'add', 'carl', '--role', 'viewer',
    '--email', 'x', '--name', "a\nb");
rejected(65, qr/Another user has this username/, 'user', 'add', 'anna', '--role', 'viewer');
rejected(65, qr/Another user has this username/, 'user', 'add', 'ANNA', '--role', 'viewer');
rejected(65, qr/last active admin/, 'user', 'set', 'anna', '--role', 'viewer');
rejected(65, qr/last active admin/, 'user', 'set', 'anna', '--status', 'inactive');
rejected(65, qr/last active admin/, 'user', 'delete', 'anna');
rejected(66, qr/unknown user carl/, 'user', 'set', 'carl', '--role', 'viewer');
rejected(66, qr/unknown user carl/, 'user', 'delete', 'carl');
done(qr/user ben was changed/, 'user', 'set', 'ben', '--role', 'deployer', '--email', '');
like(done(qr/./, 'user', 'list'), qr/^ben\tdeployer\tactive\tBen \xc3\x84\t$/m,
    'set changes one member, clears one and keeps the rest');

# --- tokens
sub stored {
	my ($token) = @_;
	return $db->sql("SELECT u.username, t.role, t.name, t.valid, t.expires_at IS NOT NULL"
	    . " FROM api_token t JOIN user u ON u.id = t.user_id WHERE t.hash = '" . sha256_hex($token)
	    . "'");
}
my $token = done(qr/^slw_[A-Za-z0-9_-]{43}$/, 'token', 'add', 'ben', '--name', 'laptop');
chomp $token;
is(stored($token), "ben\tdeployer\tlaptop\t1\t0", 'a token is stored as its hash, with the role of its user');
is($db->sql("SELECT COUNT(*) FROM api_token WHERE hash = '$token' OR name = '$token'"), 0,
    'a token is not stored itself');
my $other = done(qr/^slw_/, 'token', 'add', 'ben', '--role', 'viewer', '--name', 'CI', '--expires', '90d');
chomp $other;
done(qr/user gus was created/, 'user', 'add', 'gus', '--role', 'guest');
my $guest = done(qr/^slw_/, 'token', 'add', 'gus', '--name', 'a guest');
chomp $guest;
is(stored($guest), "gus\tviewer\ta guest\t1\t0", "a guest's token is for a viewer by default");
rejected(65, qr/role: deployer is higher than the user's role, viewer/, 'token', 'add', 'gus', '--role',
    'deployer', '--name', 'x');
isnt($other, $token, 'each token is different');
is(stored($other), "ben\tviewer\tCI\t1\t1", 'a token with a lower role and an expiry is stored');
is($db->sql("SELECT ROUND(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP, expires_at) / 86400) FROM api_token WHERE "
    . "expires_at IS NOT NULL"), 90, 'the token expires in 90 days');
done(qr/^slw_/, 'token', 'add', 'ben', '--name', 'date', '--expires', '2099-01-01T00:00:00Z');
rejected(65, qr/name: /, 'token', 'add', 'ben');
rejected(65, qr/maintainer is higher than the user's role, deployer/, 'token', 'add', 'ben', '--name',
    'x', '--role', 'maintainer');
rejected(65, qr/role: /, 'token', 'add', 'ben', '--name', 'x', '--role', 'god');
rejected(65, qr/expires: must be in the future/, 'token', 'add', 'ben', '--name', 'x',
    '--expires', '2001-01-01T00:00:00Z');
rejected(65, qr/expiresAt: /, 'token', 'add', 'ben', '--name', 'x', '--expires', 'tomorrow');
rejected(65, qr/expiresAt: /, 'token', 'add', 'ben', '--name', 'x', '--expires', '0d');
rejected(66, qr/unknown user carl/, 'token', 'add', 'carl', '--name', 'x');
is($db->sql('SELECT COUNT(*) FROM api_token'), 4, 'rejected tokens are not stored');
like(done(qr/./, 'token', 'list', 'ben'), qr/^(\d+)\tdeployer\tlaptop\t\n(\d+)\tviewer\tCI\t\d{4}-/,
    'list prints the tokens of a user');
done(qr/token 1 was deleted/, 'token', 'delete', 'ben', 1);
is(stored($token), "ben\tdeployer\tlaptop\t0\t0", 'a deleted token is invalid');
rejected(66, qr/ben has no token 1/, 'token', 'delete', 'ben', 1);
rejected(66, qr/anna has no token 2/, 'token', 'delete', 'anna', 2);
rejected(64, qr/not the number of a token/, 'token', 'delete', 'ben', 'CI');
done(qr/user ben was deleted/, 'user', 'delete', 'ben');
is(stored($other), "ben\tviewer\tCI\t0\t1", 'the tokens of a deleted user are invalid');

# --- authentication by unix_socket
my $me = getpwuid $>;
for my $case (['user = slipway', qr/Access denied/], ["user = $me"], ["user = slipway\napi_user = $me"],
    ["user = slipway\nmigrate_user = $me"], ["user = $me\napi_user = slipway\nmigrate_user = slipway"]) {
	my ($text, $refused) = @$case;
	my $own = spew(tempdir() . '/own.conf', "[database]\nsocket = " . $db->socket . "\n$text\n", 0600);
	my ($got, $said, $why) = run_cmd(program('slipway-admin'), '-c', $own, 'user', 'list');
	my $name = join ', ', split /\n/, $text;
	if ($refused) { like($why, $refused, "the database rejects: $name") } else { is($got, 0, $name)
	    or diag($said, $why) }
}

# --- the database is down
$db->stop;
rejected(75, qr/connect: 2002/, 'user', 'list');
rejected(75, qr/connect: 2002/, 'migrate');
rejected(75, qr/database and schema|connect/, 'check') if done(qr/./, 'key');

done_testing();
