#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The token that a repository is fetched with: whose it is, that it stands
# nowhere it could be read, and that a Git server that does not renew it holds
# up nothing else.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64 encode_base64);
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'deployer'), (2, 'eve', 'deployer'), (3, 'none', 'deployer')");
my $key = tempdir() . '/secret.key';
my $forge = Slipway::Forge->start(type => 'gitea', rotates => 1);
my $id_of = 7;
$forge->user($_, { id => $id_of++ }) for qw(ann eve robot);
my $repo = $forge->repo('team/site', private => 1, users => ['ann', 'robot']);
my $hash = $repo->commit('main', { file => "one\n" }, 'first');
my $elsewhere = Slipway::Forge->start(type => 'gitea');
$elsewhere->user('ann', { id => 7 });
my $public = $elsewhere->repo('team/public', users => ['ann']);
$public->commit('main', { file => "two\n" }, 'first');
my $service = $forge->token('robot');

# One CA file for both.
my $ca = spew(tempdir() . '/ca.pem', slurp($forge->ca) . slurp($elsewhere->ca), 0644);
sub conf { my (%more) = @_; return $forge->conf(token => $service, tls_ca => $ca, report => 'no', allow_local => 'yes', %more)
	. "[secrets]\nkey_file = $key\n[runner]\nslots = 6\nlease = 4\n" }
my $file = spew(tempdir() . '/probe.conf', $db->conf . conf(), 0600);
ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
my %token;
# A pair for a user of ours, as after signing in.
sub sign_in {
	my ($login, $user) = @_;
	my ($access, $refresh) = $forge->token($login, expires => 3600, refresh => 1);
	my ($status, $said, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put', $user, $access, $refresh, 3600);
	is($status, 0, "$login has signed in") or diag "$said$err";
	$token{$login} = $access;
	return ($access, $refresh);
}
sign_in('ann', 1);
sign_in('eve', 2);

my $runner = Slipway::Runner->start(db => $db, conf => conf());
my $project = $runner->project(repo => $repo->clone_url);
sub deploy {
	my ($by, @steps) = @_;
	my $on = ref $steps[0] ? ${ shift @steps } : $project;
	my $user = defined $by ? $by : 'NULL';
	my $id = $db->sql("START TRANSACTION; INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, created_by) VALUES ($on, $on, 'main', 'manual', $user);"
	    . "SET \@id = LAST_INSERT_ID();"
	    . join('', map { my $s = unpack 'H*', $steps[$_]; "INSERT INTO deployment_step (deployment_id, position, name, script, run_when)"
		. " VALUES (\@id, $_, 's$_', CONVERT(UNHEX('$s') USING utf8mb4), 'success');" } 0 .. $#steps) . 'COMMIT; SELECT @id');
	$runner->ring;
	return $id;
}

# --- whose
for (['ann', 1, 'success', sub { $token{ann} }], ['nobody', undef, 'success', sub { $service }],
    ['one without a token', 3, 'success', sub { $service }], ['one who may not read it', 2, 'failed', sub { '' }]) {
	my ($who, $user, $end, $with) = @$_;
	$forge->forget_requests;
	my $id = deploy($user, 'cat file');
	is($runner->wait($id), $end, "deployed by $who: $end") or diag($runner->log($id));
	is($forge->passwords(qr/git-upload-pack|info.refs/), $with->(), 'with the right token');
	is($runner->column($id, 'COALESCE(reason, "-")'), $end eq 'success' ? '-' : 'checkout_failed', 'and reason');
}
my $other = $runner->project(repo => $public->clone_url);
my $id = deploy(1, \$other, 'cat file');
is($runner->wait($id), 'success', 'a repository on another server') or diag($runner->log($id));
is($elsewhere->passwords(qr/git-upload-pack|info.refs/), '', 'is never given a token');
is(scalar(grep { defined $_->{headers}{authorization} } $elsewhere->requests), 0, 'in no header');

# --- nowhere to be read
my @secrets = ($token{ann}, encode_base64("slipway:$token{ann}", ''), $service);
# Who of all processes shows one of them.
sub shown {
	my @shown;
	for my $path (glob '/proc/[0-9]*') {
		my ($pid) = $path =~ m{(\d+)$};
		for my $what ('cmdline', 'environ') {
			my $text = slurp("$path/$what");
			next if !defined $text;
			push @shown, "$pid $what " . $text =~ tr/\0/ /r for grep { index($text, $_) >= 0 } @secrets;
		}
	}
	return @shown;
}
sub files_with {
	my @found;
	for my $dir (@_) {
		my (undef, $list) = run_cmd('find', $dir, '-type', 'f');
		for my $name (split /\n/, $list) {
			my $text = slurp($name);
			push @found, $name if defined $text && grep { index($text, $_) >= 0 } @secrets;
		}
	}
	return @found;
}
my $gate = tempdir() . '/gate';
$forge->fault('git-upload-pack', kind => 'delay', seconds => 3, times => 4);
# in two, so that the script is not what is found
my @half = $token{ann} =~ /^(.{8})(.*)$/;
$id = deploy(1, "echo up; env; cat .git/config; find . \$HOME -type f | xargs grep -l \$(printf %s $half[0] $half[1]) || echo nothing-found; ls -l /proc/self/fd; until test -e $gate; do sleep 0.05; done");
ok(poll(10, sub { grep { my $c = slurp("/proc/$_/cmdline"); defined $c && $c =~ /git-remote-https|remote-https/ && $c =~ /:@{[$forge->port]}\/.*team\/site/ } map { m{(\d+)$} } glob '/proc/[0-9]*' }), 'a checkout is under way');
is_deeply([shown()], [], 'no command line and no environment has the token');
is_deeply([files_with($runner->{spool}, $runner->{workspaces})], [], 'no file of spool and workspaces has it');
my $text = $runner->wait_log($id, qr/^total /m);
like($text, qr/^nothing-found$/m, 'nor does a step find it');
is_deeply([shown()], [], 'while the step runs neither');
is_deeply([files_with($runner->{spool}, $runner->{workspaces})], [], 'in no file');
spew($gate, '');
is($runner->wait($id), 'success', 'it ends');
for my $secret (@secrets) {
	unlike($runner->log($id), qr/\Q$secret\E/, 'the log of the deployment does not have it');
	unlike($runner->said, qr/\Q$secret\E/, 'nor that of the runner');
}
my (undef, $dump) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $db->socket, '--user=' . getpwuid($>), '--hex-blob', 'slipway');
like($dump, qr/CREATE TABLE `deployment`/, 'MariaDB is dumped:');
is((grep { index($dump, $_) >= 0 || index(lc $dump, unpack 'H*', $_) >= 0 } @secrets), 0, 'it has it sealed only');
$id = deploy(1, "echo 'the token is $token{ann}'; echo $token{ann} | base64 -w0");
$runner->wait($id);
unlike($runner->log($id), qr/\Q$token{ann}\E/, 'a step that knows it anyway cannot show it');

# --- it is refreshed where it has ended, once
sub end_of { $db->sql("UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 MINUTE WHERE user_id = $_[0]"); return }
sub refreshes { return scalar grep { ($_->{body} || '') =~ /refresh_token/ } $forge->requests(qr/access_token$/) }
my @projects = map { $runner->project(repo => $repo->clone_url) } 1 .. 4;
$forge->forget_requests;
end_of(1);
$forge->expire_tokens('ann');
my @ids = map { my $p = $_; deploy(1, \$p, 'cat file') } @projects;
is($runner->wait($_), 'success', 'deployed with a token that has ended') for @ids;
is(refreshes(), 1, 'four at once refresh it once');
unlike($forge->passwords(qr/git-upload-pack|info.refs/), qr/\Q$service\E/, 'the service was not needed');

# --- a Git server that is silent when it is to be refreshed
my $local = $runner->project;
my $over = tempdir() . '/over';
my $talker = $runner->deploy($local, "n=0; until test -e $over; do n=\$((n+1)); echo said-\$n; sleep 0.1; done; echo last-\$n");
$runner->wait_log($talker, qr/^said-3$/m);
$forge->fault('/login/oauth/access_token', kind => 'silent');
end_of(1);
my $began = time;
$id = deploy(1, 'cat file');
my ($slowest, $size, $at, $lapsed) = (0, 0, time, 0);
my $end = poll(25, sub {
	my ($now, $left, $state) = split /\t/, $db->sql("SELECT COALESCE(MAX(start + length), 0), (SELECT lease_until > NOW(3) FROM deployment WHERE id = $talker),"
	    . "(SELECT status FROM deployment WHERE id = $id) FROM log_chunk WHERE deployment_id = $talker");
	$lapsed++ if !$left;
	if ($now > $size) { my $gap = time - $at; $slowest = $gap if $gap > $slowest; ($size, $at) = ($now, time) }
	return $state !~ /pending|running/ && $state;
});
is($end, 'failed', 'without a fresh token it fails, though the service has one') or diag($runner->log($id));
like($runner->column($id, 'detail'), qr/did not renew the token of the one who deploys/, 'and says why');
cmp_ok(time - $began, '>', 5, 'after some seconds');
cmp_ok($slowest, '<', deadline(5), sprintf('meanwhile the log of another goes on: at most %.2f s without', $slowest));
is($lapsed, 0, 'and its lease is held');
is($runner->column($id, 'epoch'), 1, 'its own, too');
like($runner->said, qr/the token of the one who deploys/, 'the log of the runner says so');

# --- the same without a token of the service
$runner->write_conf(conf(token => undef));
$runner->restart;
end_of(1);
$id = deploy(1, 'cat file');
is($runner->wait($id), 'failed', 'without that it fails');
is($runner->column($id, 'reason'), 'checkout_failed', 'at the checkout');
like($runner->column($id, 'detail'), qr/The Git server did not renew the token of the one who deploys\./, 'and says why');
$id = deploy(3, 'cat file');
is($runner->wait($id), 'failed', 'one who has no token, and the service neither');
like($runner->column($id, 'detail'), qr/There is no token for the Git server/, 'is told so');

# --- what may happen meanwhile
my $took = best_of(5, sub {
	end_of(1);
	$id = deploy(1, 'cat file');
	ok(poll(10, sub { $runner->status($id) eq 'running' }), 'while it is asked');
	my $began = time;
	$runner->cancel($id);
	is($runner->wait($id), 'canceled', 'it can be canceled');
	return time - $began;
});
cmp_ok($took, '<', deadline(5), 'at once');
end_of(1);
$id = deploy(1, 'cat file');
ok(poll(10, sub { $runner->status($id) eq 'running' }), 'while it is asked again');
my $dispatcher = $runner->dispatcher;
$forge->clear_faults;
kill 'KILL', $dispatcher;
is($runner->wait($id, undef, 40), 'success', 'the dispatcher may be killed') or diag($runner->column($id, 'detail'));
cmp_ok($runner->column($id, 'epoch'), '>', 1, 'it was put back');
$forge->fault('/login/oauth/access_token', kind => 'silent');
end_of(1);
$id = deploy(1, 'cat file');
ok(poll(10, sub { $runner->status($id) eq 'running' }), 'and again');
is($runner->stop, 0, 'the runner may be stopped');
is($runner->status($id), 'pending', 'it waits then');
$forge->clear_faults;
$runner->resume;
is($runner->wait($id, undef, 40), 'success', 'and runs later') or diag($runner->column($id, 'detail'));
spew($over, '', 0644);
is($runner->wait($talker), 'success', 'the other has run through it all');
my $n = () = $runner->log($talker) =~ /^said-\d+$/mg;
is($n, ($runner->log($talker) =~ /^last-(\d+)$/m)[0], 'with its whole log');
ok($runner->is_clean, 'nothing is left');

# --- a key that does not open
$runner->stop;
rename $key, "$key.away" or die;
$runner->write_conf(conf());
$runner->resume;
$forge->forget_requests;
$id = deploy(1, 'cat file');
is($runner->wait($id), 'failed', 'without the key a user has no token');
is($forge->passwords(qr/git-upload-pack|info.refs/), '', 'nor is the one of the service used instead');
$id = deploy(3, 'cat file');
is($runner->wait($id), 'success', 'a user without an account is served by that') or diag($runner->column($id, 'detail'));
is($forge->passwords(qr/git-upload-pack|info.refs/), $service, 'of which there is one');
is_deeply([grep { $_ !~ /no such/ } $forge->complaints], [], 'nothing was sent that the server would not take');
is($runner->stop, 0, 'ends');
done_testing;
