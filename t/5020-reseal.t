#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway-admin key --reseal and --prune: --reseal encrypts every stored value with
# the newest key, while others change values, and after a kill or a database crash;
# --prune drops old keys, unless a value needs them.

use strict;
use warnings;
use Fcntl qw(:flock);
use Cpanel::JSON::XS ();
use MIME::Base64 qw(decode_base64 encode_base64);
use POSIX ();
use Test::More;
use Slipway::DB;
use Slipway::Test;

my $json = Cpanel::JSON::XS->new->canonical;
my $db = Slipway::DB->start(empty => 1);
my $dir = tempdir() . '/keys';
mkdir $dir or die;
my ($keyring, $private, $public) = map { "$dir/$_" } qw(secret.key deploy.key deploy.pub);
my $conf = spew("$dir/slipway.conf", $db->conf . "[secrets]\nkey_file = $keyring\n", 0600);
my @admin = (program('slipway-admin'), '-c', $conf);

sub key { my ($status, $out, $err) = run_cmd(@admin, 'key', @_); return ($status >> 8, $out, $err) }
sub files { return join "\n", map { slurp($_) } grep { -e } $keyring, $private, $public }
sub stored {
	return $db->sql('CHECKSUM TABLE git_token, hook_secret, signin, deploy_key, project, deployment');
}

# All output, compared with keys and values at the end.
my ($outputs, %material) = ('');
sub keep {
	my ($text) = @_;
	$outputs .= $text;
	my @keys = map { / (\S{44})$/ ? $1 : () } split /\n/, files();
	$material{$_} = 1 for map { ($_, unpack 'H*', decode_base64($_)) } @keys;
	return;
}
sub done {
	my ($want, @args) = @_;
	my ($status, $out, $err) = key(@args);
	keep("$out$err");
	is($status, 0, "slipway-admin key @args succeeds") or diag($out, $err);
	like($out, $_, "slipway-admin key @args prints its result") for ref $want eq 'ARRAY' ? @$want : $want;
	return $out;
}
sub rejected {
	my ($exit, $why, @args) = @_;
	my ($status, $out, $err) = key(@args);
	keep("$out$err");
	is($status, $exit, "slipway-admin key @args is rejected") or diag($out, $err);
	like($err, $_, "the error gives the reason: key @args") for ref $why eq 'ARRAY' ? @$why : $why;
	return $out . $err;
}

# Expects an error that changes no file.
sub untouched {
	my (@how) = @_;
	my $before = files();
	my $said = rejected(@how);
	is(files(), $before, 'a rejected command leaves the key files unchanged');
	is_deeply([ glob "$dir/*.new" ], [], 'a rejected command leaves no temporary file');
	return $said;
}
sub age { my $then = time - 400; utime $then, $then, $keyring, $private; return }

# --- invalid arguments
untouched(64, qr/separate steps/, '--reseal', '--prune');
untouched(64, qr/--dry-run requires --reseal or --prune/, '--dry-run');
untouched(64, qr/--reseal takes no value/, '--reseal=now');
untouched(64, qr/unexpected argument "now"/, '--prune', 'now');
untouched(64, qr/unknown option --force/, '--prune', '--force');
untouched(78, qr/secret\.key: is missing: run slipway-admin key/, $_) for '--reseal', '--prune';
ok(!-e $keyring && !-e $private, 'a rejected command creates no key');
done(qr/new first key/);
untouched(78, qr/0001-schema has not been applied/, $_) for '--reseal', '--prune';
$db->migrate;
done([ qr/^variables of deployments: 0 values, 0 re-encrypted$/m,
	qr/^\Q$private\E: 0 values depend on key 1 \([0-9a-f]{8}\), the current one$/m,
	qr/^no value depends on an older key$/m ], '--reseal');
done(qr/^no older key exists$/m, '--prune');

# --- values of all kinds
sub sealer {
	my ($work, $file, @lines) = @_;
	my ($status, $out, $err) = run_cmd({ stdin => join '', map { "$_->[0]\t$_->[1]\n" } @lines },
	    program('t/unit/sealer'), $work, $file);
	die "sealer $work: $err" if $status != 0;
	my @got = split /\n/, $out;
	die 'sealer: ' . @got . ' of ' . @lines if @got != @lines;
	return @got;
}
sub sealed { return (sealer('seal', $keyring, [@_]))[0] }
sub publicly_sealed { return (sealer('public-seal', $public, [@_]))[0] }
my $state = 'ab' x 32;
my $many = 1100; # more than two pages of rows
sub fill {
	my @vars = sealer('public-seal', $public,
	    map { [ 'project ' . (1 + $_ % 3) . ', variable TOKEN', "tuna $_" ] } 1 .. $many);
	my @tables = qw(deployment environment variable_project variable pipeline git_token hook_secret signin
	    deploy_key project user);
	my @sql = map { "DELETE FROM $_;" } @tables;
	push @sql, "INSERT INTO user (id, username, role) VALUES (1, 'anna', 'admin'), (2, 'ben', 'viewer');";
	for my $p (1 .. 3) {
		my $defaults = $json->encode({ map {
			$_ => publicly_sealed("project $p, variable $_", "tuna default $p $_")
		} qw(ONE TWO) });
		my $triggers = $json->encode({
			'0123456789abcdef NAME' => publicly_sealed("project $p, variable NAME",
			    "tuna trigger $p") });
		my $valid = $p == 3 ? 0 : 1;
		push @sql,
		    "INSERT INTO project (id, name, repository, project_dir, secret_defaults, "
		    . "trigger_secrets, valid)"
		    . " VALUES ($p, 'shop $p', 'r', 'dir$p', '$defaults', '$triggers', $valid);";
		push @sql, "INSERT INTO pipeline (id, project_id, name) VALUES ($p, $p, 'x');";
		my $shared = $json->encode({ MIRROR => publicly_sealed("project $p, variable MIRROR",
		    "tuna shared $p") });
		push @sql, "INSERT INTO variable (id, `key`, secret) VALUES ($p, 'MIRROR', 1);"
		    . ' INSERT INTO variable_project (variable_id, project_id, `key`, sealed)'
		    . " VALUES ($p, $p, 'MIRROR', '$shared');";
		my $values = $json->encode({ HOST => publicly_sealed("project $p, variable HOST",
		    "tuna environment $p") });
		push @sql, 'INSERT INTO environment (project_id, name, position, secret_values)'
		    . " VALUES ($p, 'live', 0, '$values');";
	}
	push @sql, "INSERT INTO project (id, name, repository, project_dir) VALUES (4, 'open', 'r', 'dir4');";
	my @git = (sealed('git token of user 1', 'tuna a1'), sealed('git token of user 1', 'tuna r1'),
	    sealed('git token of user 2', 'tuna a2'));
	push @sql, "INSERT INTO git_token (user_id, server, access, refresh)"
	    . " VALUES (1, 's', X'$git[0]', X'$git[1]'), (2, 's', X'$git[2]', NULL);";
	push @sql, "INSERT INTO hook_secret (project_id, secret) VALUES (1, X'"
	    . sealed('push events of project 1', 'tuna hook') . "');";
	push @sql, map { 'INSERT INTO deploy_key (project_id, public_key, fingerprint, sealed)'
	    . " VALUES ($_, 'ssh-ed25519 AAAA', 'SHA256:7', '"
	    . publicly_sealed("deploy key of project $_", "tuna key $_") . "');" } 1, 3;
	push @sql, "INSERT INTO signin (state_hash, browser_hash, verifier) VALUES ('$state', '$state', X'"
	    . sealed("sign-in $state", 'tuna verifier') . "');";
	push @sql, join(',',
	    'INSERT INTO deployment (id, project_id, pipeline_id, status, `trigger`, secret_vars) VALUES '
		. "(5000, 4, 1, 'success', 'manual', NULL)",
		map { '(' . $_ . ',' . (1 + $_ % 3) . ',' . (1 + $_ % 3) . ",'"
		. ($_ % 100 ? 'success' : 'pending') . "','manual','"
		    . ($_ == 7 ? $json->encode({ TOKEN => $vars[6], NONE => undef })
		: $json->encode({ TOKEN => $vars[$_ - 1] })) . "')" } 1 .. $many) . ';';
	$db->sql(join "\n", @sql);
	return;
}
my $values = { 'access tokens of users' => 2, 'refresh tokens of users' => 1, 'hook secrets of projects' => 1,
	'pending sign-ins' => 1, 'deploy keys of projects' => 2,
	'defaults of projects' => 6, 'variables of triggers' => 3,
	'variables of environments' => 3, 'shared variables of projects' => 3,
	'variables of deployments' => $many };

sub rows { my ($sql) = @_; return map { [ split /\t/, $_, -1 ] } split /\n/, $db->sql($sql) }

# All stored values, decrypted with the first keys alone; "! why" instead of a value
# that cannot be decrypted.
sub opened {
	my ($keyring_only, $private_only) = map { "$dir/first.$_" } qw(keyring private);
	unlink $keyring_only, $private_only;
	spew($keyring_only, (split /^/, slurp($keyring))[0], 0600);
	spew($private_only, (split /^/, slurp($private))[0], 0400);
	my @tokens = rows(<<'SQL');
SELECT CONCAT('git token of user ', user_id), HEX(access) FROM git_token UNION ALL
SELECT CONCAT('git token of user ', user_id), HEX(refresh) FROM git_token WHERE refresh IS NOT NULL UNION ALL
SELECT CONCAT('push events of project ', project_id), HEX(secret) FROM hook_secret UNION ALL
SELECT CONCAT('sign-in ', state_hash), HEX(verifier) FROM signin
SQL
	my @variables;
	for my $row (rows(<<'SQL')) {
SELECT id, secret_defaults FROM project WHERE secret_defaults IS NOT NULL UNION ALL
SELECT id, trigger_secrets FROM project WHERE trigger_secrets IS NOT NULL UNION ALL
SELECT project_id, secret_values FROM environment WHERE secret_values IS NOT NULL UNION ALL
SELECT project_id, sealed FROM variable_project WHERE sealed IS NOT NULL UNION ALL
SELECT project_id, secret_vars FROM deployment WHERE secret_vars IS NOT NULL
SQL
		my ($project, $vars) = ($row->[0], $json->decode($row->[1]));
		$vars = { A => 'no object' } if ref $vars ne 'HASH';
		push @variables, map { [ "project $project, variable " . s/.* //r, $vars->{$_} ] }
		    grep { defined $vars->{$_} } sort keys %$vars;
	}
	push @variables, rows("SELECT CONCAT('deploy key of project ', project_id), sealed FROM deploy_key");
	return [ sort(sealer('unseal', $keyring_only, @tokens),
	    sealer('private-unseal', $private_only, @variables)) ];
}
my $all = [ sort 'tuna a1', 'tuna r1', 'tuna a2', 'tuna hook', 'tuna verifier', 'tuna key 1', 'tuna key 3',
	(map { my $p = $_; map { "tuna default $p $_" } qw(ONE TWO) } 1 .. 3),
	(map { ("tuna trigger $_", "tuna environment $_", "tuna shared $_") } 1 .. 3),
	map { "tuna $_" } 1 .. $many ];

# Columns that --reseal must not change.
sub beside {
	return $db->sql('SELECT id, version, updated_at, env_presets, triggers FROM project;'
	    . ' SELECT user_id, epoch, updated_at, refresh_by FROM git_token;'
	    . ' SELECT updated_at FROM hook_secret; SELECT created_at, fingerprint FROM deploy_key;'
	    . ' SELECT created_at FROM signin;'
	    . ' SELECT id, status, epoch, env_vars FROM deployment');
}
my ($bytes, $variables, $newest) = (5, 17 + $many, 1);
sub figures {
	my ($said, %anew) = @_;
	return map {
		my $n = $anew{$_} // $anew{all} // $values->{$_};
		qr/^\Q$_\E: $values->{$_} values, $n $said$/m
	} sort keys %$values;
}
sub on {
	my ($file, $key, $n) = @_;
	my $what = $key == $newest ? 'the current one' : 'an older one';
	return qr/^\Q$file\E: $n values depend on key $key \([0-9a-f]{8}\), $what$/m;
}

fill();
is_deeply(opened(), $all, 'all values are encrypted with the first key');
my $beside = beside();
done(qr/new first key/);
$newest = 2;

# --- the number of values of each key
my $sum = stored();
my $said = done([ figures('to re-encrypt'), on($keyring, 1, $bytes), on($keyring, 2, 0),
    on($private, 1, $variables), on($private, 2, 0) ], '--reseal', '--dry-run');
unlike($said, qr/depends on an older/, '--dry-run does not claim that no value needs an older key');
is(stored(), $sum, '--reseal --dry-run stores nothing');
my ($print) = $said =~ /deploy\.key: \d+ values depend on key 1 \(([0-9a-f]{8})\)/;
my %prints = map { $_ => 1 } $said =~ /\(([0-9a-f]{8})\)/g;
is(scalar keys %prints, 4, 'each key has its fingerprint');

# --- no key is dropped that is needed or may be in use
utime time + 900, time + 900, $keyring, $private;
untouched(75, qr/secret\.key was changed 0 seconds ago.*try again in 300 seconds/, '--prune');
for my $dry ([], [ '--dry-run' ]) {
	utime undef, undef, $keyring, $private;
	untouched(75, qr/secret\.key was changed \d+ seconds ago.*try again in \d+ seconds/,
	    '--prune', @$dry);
}
age();
my $why = $bytes + $variables;
my $needed = qr/$why values depend on older keys: nothing was removed; run slipway-admin key --reseal/;
like(untouched(65, qr/^slipway-admin: $needed$/m, '--prune', @$_), on($private, 1, $variables),
    "--prune @$_ names the keys that are needed") for [], [ '--dry-run' ];
is(stored(), $sum, 'a rejected --prune stores nothing');

# --- killed halfway
sub begin { return start_process({ name => 'reseal' }, @admin, 'key', @_) }
sub waits { return ok(poll(60, sub { $db->waiting == 1 }), '--reseal waits for a locked row') }
sub ended { my ($pid) = @_; waitpid $pid, 0; return $? >> 8 }
my $held = $db->hold('SELECT id FROM deployment WHERE id = 700 FOR UPDATE');
my $pid = begin('--reseal');
waits();
is($db->sql('SELECT COUNT(*) FROM information_schema.innodb_trx'), 2, '--reseal works in one transaction');
my ($status, $out, $err) = run_cmd(@admin, 'key', '--prune');
is($status >> 8, 65, 'another slipway-admin key is rejected meanwhile');
like($err, qr/another slipway-admin key is running/, 'the error names the other process');
stop_process($pid, 'KILL');
$db->let_go($held);
ok(poll(60, sub { ($db->client('SELECT COUNT(*) FROM deployment FOR UPDATE NOWAIT'))[0] == 0 }),
    'the killed --reseal has ended');
my ($new, $old) = (0, 0);
for my $vars (map { $_->[0] } rows('SELECT secret_vars FROM deployment WHERE secret_vars IS NOT NULL')) {
	(unpack 'xN', decode_base64($json->decode($vars)->{TOKEN})) == 2 ? $new++ : $old++;
}
ok($new > 600 && $old > 300, "a kill halfway leaves $new new and $old old values");
age();
like(untouched(65, qr/^slipway-admin: $old values depend/m, '--prune'), on($private, 1, $old),
    'after a kill the old key is still needed');
is(scalar(grep { /^! / } @{ opened() }), $old,
    'after a kill old values cannot be decrypted with the new key alone');

# --- resumed
done([ figures('re-encrypted', all => 0, 'variables of deployments' => $old), on($keyring, 1, 0),
    on($keyring, 2, $bytes), on($private, 1, 0), on($private, 2, $variables),
	qr/^no value depends on an older key$/m ], '--reseal');
is_deeply(opened(), $all, 'all values are encrypted with the second key');
is(beside(), $beside, '--reseal changes no version and no time');
is($db->sql('SELECT secret_vars FROM deployment WHERE id = 7') =~ /"NONE":null/, 1, '--reseal keeps null');
$sum = stored();
done([ figures('re-encrypted', all => 0), qr/^no value depends on an older key$/m ], '--reseal');
is(stored(), $sum, 'another --reseal changes nothing');

# --- dropped keys
my ($two_keyring, $two_private, $half) = (slurp($keyring), slurp($private), slurp($public));
my $files = files();
$said = done(qr/./, '--prune', '--dry-run');
is(files(), $files, '--prune --dry-run drops nothing');
like($said, qr/^\Q$private\E: key 1 \($print\) would be dropped$/m, '--prune --dry-run names the key');
chown -1, 54321, $keyring if is_root();
mkdir "$private.new" or die;
rejected(70, qr/deploy\.key\.new: /, '--prune');
is(slurp($keyring), (split /^/, $two_keyring)[0], '--prune writes one file before the other');
is(slurp($private), $two_private, 'a file that cannot be written stays unchanged');
rmdir "$private.new" or die;
spew("$private.new", 'left over by a crash', 0600);
$said = done(qr/^\Q$private\E: key 1 \($print\) was dropped$/m, '--prune');
like($said, qr/reload slipway-api/, '--prune says what to do next');
is(slurp($private), (split /^/, $two_private)[0], 'the next --prune drops the key in the other file');
is(slurp($public), $half, '--prune keeps the public key');
is((stat $keyring)[2] & 07777, 0640, 'secret.key keeps its mode');
is((stat $private)[2] & 07777, 0400, 'deploy.key keeps its mode');
is((stat $keyring)[5], 54321, 'secret.key keeps its group') if is_root();
ok(!-e "$private.new", '--prune leaves no temporary file');
is_deeply(opened(), $all, 'all values can be decrypted after --prune');
done(qr/^no older key exists$/m, '--prune');

# --- others change values during --reseal: their changes stay
done(qr/new first key/);
$newest = 3;
my $theirs = (sealer('public-seal', spew("$dir/old.pub", $half, 0644),
    [ 'project 2, variable ONE', 'tuna theirs' ]))[0];
$theirs = $json->encode({ ONE => $theirs });
sub user_locks {
	return $db->sql("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'");
}
# Starts a client that runs the statements and then waits for the lock "go".
sub client {
	my ($statements) = @_;
	my $pid = start_process({ name => 'other' }, 'mariadb', '--no-defaults', '--socket=' . $db->socket,
	    '--user=' . getpwuid($>), '--execute', $statements, 'slipway');
	return poll(60, sub { user_locks() == 1 }) ? $pid : undef;
}
sub meanwhile {
	my ($change) = @_;
	my $gate = $db->hold("DO GET_LOCK('go', 10)");
	my $other = client("BEGIN; $change; DO GET_LOCK('go', 600); COMMIT");
	ok($other, 'another client has changed a row');
	my $reseal = begin('--reseal');
	waits();
	$db->let_go($gate);
	waitpid $other, 0;
	is($?, 0, 'the other client commits');
	is(ended($reseal), 0, '--reseal succeeds');
	return;
}
meanwhile("UPDATE project SET secret_defaults = '$theirs', version = version + 1 WHERE id = 2");
my $now = [ sort 'tuna theirs', grep { !/default 2/ } @$all ];
is_deeply(opened(), $now, 'a value that changed during --reseal stays, encrypted with the new key');
is($db->sql('SELECT version FROM project WHERE id = 2'), 2, 'the columns that changed with it stay');
done(qr/new first key/);
$newest = 4;
meanwhile('DELETE FROM git_token WHERE user_id = 1; UPDATE project SET secret_defaults = NULL WHERE id = 2;'
    . ' DELETE FROM signin');
$now = [ grep { !/ [ar]1$|theirs|verifier/ } @$now ];
is_deeply(opened(), $now, 'values that were deleted during --reseal stay deleted');
age();
done([ qr/key 2 \(.{8}\) was dropped/, qr/key 3 \(.{8}\) was dropped/ ], '--prune');
is_deeply([ map { scalar(() = slurp($_) =~ /\n/g) } $keyring, $private ], [ 1, 1 ],
    '--prune drops two older keys at once');

# --- a request that read the project's values before --reseal and copies them later
my $before = slurp($public);
done(qr/new first key/);
$newest = 5;
done(qr/no value depends/, '--reseal');
age();
my $late = (sealer('public-seal', spew("$dir/old.pub", $before, 0644),
    [ 'project 1, variable TOKEN', 'tuna late' ]))[0];
$late = $json->encode({ TOKEN => $late });
sub late {
	my ($how) = @_;
	my $gate = $db->hold("DO GET_LOCK('go', 10)");
	my $other = client('BEGIN; SELECT id FROM project WHERE id = 1 FOR UPDATE;'
	    . " INSERT INTO deployment (project_id, pipeline_id, `trigger`, secret_vars)"
	    . " VALUES (1, 1, 'manual', '$late'); DO GET_LOCK('go', 600); $how");
	ok($other, 'a deployment is being created');
	my $files = files();
	my $prune = begin('--prune');
	waits();
	is(files(), $files, '--prune drops nothing while a deployment is being created');
	$db->let_go($gate);
	waitpid $other, 0;
	return ended($prune);
}
my $both = slurp($private);
is(late('COMMIT'), 65, '--prune sees a deployment that was committed');
is(slurp($private), $both, '--prune keeps the key of the new deployment');
done(qr/^variables of deployments: \d+ values, 1 re-encrypted$/m, '--reseal');
is(late('ROLLBACK'), 0, '--prune drops the key after a rollback');
unlike(slurp($private), qr/^4 /m, 'the key is dropped from the file');
push @$now, 'tuna late';
$now = [ sort @$now ];
is_deeply(opened(), $now, 'all values can be decrypted');

# --- values that cannot be decrypted are named and need no key
fill();
my @gone = map { slurp($_) } $keyring, $private, $public;
done(qr/new first key/);
$newest = 6;
my $foreign = publicly_sealed('project 2, variable ONE', 'tuna foreign');
my $lost_key = spew("$dir/lost.key", '77 ' . encode_base64('k' x 32), 0600);
my $lost = (sealer('seal', $lost_key, [ 'push events of project 1', 'x' ]))[0];
my $default = $json->decode($db->sql('SELECT secret_defaults FROM project WHERE id = 1'));
my $moved = $json->encode({ ONE => $default->{TWO}, TWO => $default->{TWO} });
my $cut = $db->sql('SELECT secret_vars FROM deployment WHERE id = 200');
$cut =~ s/(.{60})(.)/$1 . ($2 eq 'A' ? 'B' : 'A')/e;
$db->sql(<<"SQL");
UPDATE git_token SET access = CONCAT(LEFT(access, LENGTH(access) - 1),
	IF(RIGHT(access, 1) = X'00', X'01', X'00')) WHERE user_id = 1;
UPDATE git_token SET access = 'short' WHERE user_id = 2;
UPDATE git_token SET refresh = REPEAT('x', 5000000) WHERE user_id = 2;
UPDATE hook_secret SET secret = X'$lost';
UPDATE project SET secret_defaults = '$moved' WHERE id = 1;
UPDATE project SET trigger_secrets = '["no object"]' WHERE id = 3;
UPDATE deployment SET secret_vars = '{"TOKEN":"plain"}' WHERE id = 100;
UPDATE deployment SET secret_vars = '$cut' WHERE id = 200;
UPDATE deployment SET secret_vars = JSON_OBJECT('TOKEN', '') WHERE id = 300;
UPDATE deployment SET secret_vars = '{}' WHERE id = 400;
SQL
my @why = map { qr/^slipway-admin: $_$/m } (
	qr/Git token of user anna: does not open/,
	qr/Git token of user ben: is not a sealed value/,
	qr/Git token of user ben: too large for a sealed value/,
	qr/hook secret of project 1 \(shop 1\): sealed with key 77, which the key file lacks/,
	qr/project 1 \(shop 1\), variable ONE: it was sealed for another place/,
	qr/project 3 \(shop 3, deleted\): .*not an object/,
	qr/deployment 100 of project 2 \(shop 2\), variable TOKEN: it is not a sealed value/,
	qr/deployment 200 of project 3 \(shop 3, deleted\), variable TOKEN: it is damaged/,
	qr/deployment 300 of .*variable TOKEN: it is not a sealed value/,
	qr/9 values cannot be decrypted with any key: enter them again/,
);
$sum = stored();
untouched(65, \@why, '--reseal', '--dry-run');
is(stored(), $sum, '--reseal --dry-run stores nothing if values cannot be decrypted');
my $told = untouched(65, \@why, '--reseal');
my ($total, $changed) = ($many - 1, $many - 4);
like($told, qr/^variables of deployments: $total values, $changed re-encrypted, 3 cannot be decrypted$/m,
    '--reseal encrypts all other values');
is(scalar(grep { !/^! / } @{ opened() }), @$all - 8 - 1,
    'the other values can be decrypted with the new key');
is($json->decode($db->sql('SELECT secret_defaults FROM project WHERE id = 1'))->{ONE}, $default->{TWO},
    'a value that cannot be decrypted stays unchanged');
untouched(65, \@why, '--reseal');
age();
done([ qr/key 5 \(.{8}\) was dropped/, qr/^9 values cannot be decrypted with any key$/m ], '--prune');

# --- missing and mismatched keys
fill();
spew("$private.away", slurp($private), 0400);
unlink $private;
untouched(78, qr/deploy\.key: is missing/, $_) for '--reseal', '--prune';
rename "$private.away", $private or die;
rename $public, "$public.away" or die;
untouched(78, qr/deploy\.pub: is missing/, $_) for '--reseal', '--prune';
spew($public, $gone[2], 0644);
untouched(78, qr/deploy\.pub is not the public half of the first key/, $_) for '--reseal', '--prune';
rename "$public.away", $public or die;
done(qr/new first key/);
$newest = 7;
my $mine = slurp($keyring);
spew($keyring, "1 AAAA\n");
untouched(78, qr/secret\.key:1: must be a unique number/, $_) for '--reseal', '--prune';
spew($keyring, join '', map { "$_ " . encode_base64(chr($_) x 32) } reverse 1 .. 64);
untouched(78,
    qr/secret\.key: already contains 64 keys: slipway-admin key --reseal, then --prune, removes old ones/);
spew($keyring, $mine);
chmod 0644, $keyring;
untouched(78, qr/secret\.key: mode 644 is too permissive/, '--reseal');
chmod 0640, $keyring;

# --- one process at a time
open my $lock, '<', $private or die;
flock $lock, LOCK_EX or die;
untouched(65, qr/another slipway-admin key is running/, @$_) for [], ['--reseal'], ['--prune'];
close $lock;

# --- other accounts
if (is_root() && defined getpwnam('nobody')) {
	my @nobody = ('setpriv', '--reuid=nobody', '--regid=' . (getpwnam 'nobody')[3], '--clear-groups');
	chmod 0755, tempdir(), $dir;
	chmod 0644, $conf;
	my $as = sub { my ($rc, $o, $e) = run_cmd(@nobody, @admin, 'key', @_); return ($rc >> 8, $o, $e) };
	for my $args ([], ['--reseal'], ['--prune']) {
		my $files = files();
		my ($rc, $o, $e) = $as->(@$args);
		is($rc, @$args ? 78 : 70, "slipway-admin key @$args under another account is rejected")
		    or diag($o, $e);
		like($e, qr/deploy\.key: Permission denied/, 'the error names the file');
		like($e,
		    qr/this account may not read it: run the command as root or as slipway/,
		    'the error names the account to use') if @$args;
		is(files(), $files, 'the files are unchanged under another account');
	}
	chown +(getpwnam 'nobody')[2], -1, $private;
	my ($rc, $o, $e) = $as->('--reseal');
	is($rc, 78, "secret.key is not readable for the runner's account") or diag($o);
	like($e, qr/secret\.key: Permission denied: this account may not read it/,
	    'the error names secret.key');
	chown -1, (getpwnam 'nobody')[3], $keyring;
	($rc, $o, $e) = $as->('--reseal');
	is($rc, 0, 'an account that can read both files can run --reseal') or diag($o, $e);
	is_deeply(opened(), $all, "--reseal under the runner's account encrypts all values");
	age();
	my $files = files();
	($rc, $o, $e) = $as->('--prune');
	is($rc, 78, "--prune under the runner's account is rejected");
	like($e, qr/secret\.key: this account cannot write it: run the command as root/,
	    'the error says to run it as root');
	is(files(), $files, 'a rejected --prune leaves the files unchanged');
	done(qr/key 6 \(.{8}\) was dropped/, '--prune');
	is((stat $private)[4], (getpwnam 'nobody')[2], "deploy.key still belongs to the runner's account");
	is((stat $keyring)[5], (getpwnam 'nobody')[3], 'secret.key still belongs to its group');
	is((stat $keyring)[2] & 07777, 0640, 'secret.key keeps its mode');
} else {
	note('not root: other accounts are not tested');
	done(qr/no value depends/, '--reseal');
	age();
	done(qr/key 6 \(.{8}\) was dropped/, '--prune');
}

# --- many large rows in little memory
my $soft = slurp(builddir() . '/Makefile') =~ /^HARD_CFLAGS = .*(?:sanitize|coverage)/m;
fill();
my @large = sealer('public-seal', $public, map { [ "project 1, variable LARGE$_", 'y' x 65_000 ] } 1 .. 7);
my $large = $json->encode({ map { ("LARGE$_" => $large[$_ - 1]) } 1 .. 7 });
$db->sql('DELETE FROM deployment; INSERT INTO deployment (project_id, pipeline_id, `trigger`, secret_vars)'
    . " SELECT 1, 1, 'manual', '$large' FROM seq_1_to_60");
done(qr/new first key/);
my @little = $soft ? () : ('prlimit', '--data=' . (20 << 20));
($status, $out, $err) = run_cmd(@little, @admin, 'key', '--reseal');
is($status, 0, '--reseal of 36 MB succeeds in 20 MB of memory') or diag($out, $err);
like($out, qr/^variables of deployments: 420 values, 420 re-encrypted$/m,
    '--reseal encrypts all large values');
is(scalar(grep { /^y{65000}$/ } @{ opened() }), 420, 'all large values can be decrypted');
fill();
done(qr/new first key/);

# --- a table is missing; the database goes down and comes back
my $stored = qr/values re-encrypted so far are stored; remove the cause, then run the command again: /;
$db->sql('RENAME TABLE hook_secret TO hook_secret_away');
untouched(70, qr/${stored}sealed_hook_page: .*hook_secret' doesn't exist/, '--reseal');
untouched(70, qr/^slipway-admin: sealed_hook_page: /, '--reseal', '--dry-run');
$db->sql('RENAME TABLE hook_secret_away TO hook_secret');
$held = $db->hold('SELECT id FROM deployment WHERE id = 900 FOR UPDATE');
$pid = start_process({ name => 'reseal-dark' }, @admin, 'key', '--reseal');
waits();
$db->kill9;
is(ended($pid), 75, '--reseal fails when the database goes down');
like(slurp(tempdir() . '/reseal-dark.log'), $stored,
    'the error says to run it again');
untouched(75, qr/connect: 2002/, $_) for '--reseal', '--prune';
$db->restart;
done(qr/^no value depends on an older key$/m, '--reseal');
is_deeply(opened(), $all, 'all values can be decrypted after the database was down');

cmp_ok(scalar keys %material, '>', 20, 'the test collected its keys');
ok(!(grep { index($outputs, $_) >= 0 } keys %material, map { substr $_, 0, 12 } keys %material),
    'no output contains a key or the start of one');
unlike($outputs, qr/tuna/, 'no output contains a value');
done_testing;
