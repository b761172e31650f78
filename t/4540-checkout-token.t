#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The token for a checkout: whose token is used, that it cannot be read anywhere, and
# that a Git server that does not refresh it delays nothing else.

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
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'deployer'), (2, 'eve', 'deployer'), (3, "
    . "'none', 'deployer')");
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

# A CA file for both servers.
my $ca = spew(tempdir() . '/ca.pem', slurp($forge->ca) . slurp($elsewhere->ca), 0644);
sub conf {
	my (%more) = @_;
	return $forge->conf(token => $service, tls_ca => $ca, report => 'no', allow_local => 'yes', %more)
	    . "[secrets]\nkey_file = $key\n[runner]\nslots = 6\nlease = 8\n";
}
my $file = spew(tempdir() . '/probe.conf', $db->conf . conf(), 0600);
ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
my %token;
# Stores a pair of tokens for a user, as after a sign-in.
sub sign_in {
	my ($login, $user) = @_;
	my ($access, $refresh) = $forge->token($login, expires => 3600, refresh => 1);
	my ($status, $said, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put', $user,
	    $access, $refresh, 3600);
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
	return $runner->deploy($on, { by => $by }, @steps);
}

# --- whose token
for (['a user with a token', 1, 'success', sub { $token{ann} }],
    ['no user', undef, 'success', sub { $service }],
    ['a user without a token', 3, 'success', sub { $service }],
    ['a user without access', 2, 'failed', sub { '' }]) {
	my ($who, $user, $end, $with) = @$_;
	$forge->forget_requests;
	my $id = deploy($user, 'cat file');
	is($runner->wait($id), $end, "a deployment by $who ends as $end") or diag($runner->log($id));
	is($forge->passwords(qr/git-upload-pack|info.refs/), $with->(),
	    "a deployment by $who uses the right token");
	is($runner->column($id, 'COALESCE(reason, "-")'), $end eq 'success' ? '-' : 'checkout_failed',
	    "a deployment by $who has the right reason");
}
my $other = $runner->project(repo => $public->clone_url);
my $id = deploy(1, \$other, 'cat file');
is($runner->wait($id), 'success', 'a repository on another server is deployed') or diag($runner->log($id));
is($elsewhere->passwords(qr/git-upload-pack|info.refs/), '', 'another server receives no token');
is(scalar(grep { defined $_->{headers}{authorization} } $elsewhere->requests), 0,
    'another server receives no Authorization header');

# --- the token cannot be read
my @secrets = ($token{ann}, encode_base64("slipway:$token{ann}", ''), $service);
# The processes that show a secret in their command line or environment.
sub shown {
	my @shown;
	for my $path (glob '/proc/[0-9]*') {
		my ($pid) = $path =~ m{(\d+)$};
		for my $what ('cmdline', 'environ') {
			my $text = slurp("$path/$what");
			next if !defined $text;
			push @shown, "$pid $what " . $text =~ tr/\0/ /r
			    for grep { index($text, $_) >= 0 } @secrets;
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
# in two halves, so that the script itself is not found
my @half = $token{ann} =~ /^(.{8})(.*)$/;
$id = deploy(1,
    "echo up; env; cat .git/config; find . \$HOME -type f | xargs grep -l \$(printf %s $half[0] $half[1]) || "
    . 'echo nothing-found; ls -l /proc/self/fd; ' . waits_until($gate));
sub fetches {
	my ($pid) = @_;
	my $command = slurp("/proc/$pid/cmdline") // '';
	return $command =~ /git-remote-https|remote-https/ && $command =~ /:@{[$forge->port]}\/.*team\/site/;
}
ok(poll(10, sub { grep { fetches($_) } map { m{(\d+)$} } glob '/proc/[0-9]*' }), 'a checkout is running');
is_deeply([shown()], [], 'during the checkout no command line and no environment has the token');
is_deeply([files_with($runner->{spool}, $runner->{workspaces})], [],
    'during the checkout no file in spool and workspaces has the token');
my $text = $runner->wait_log($id, qr/^total /m);
like($text, qr/^nothing-found$/m, 'a step does not find the token');
is_deeply([shown()], [], 'during a step no command line and no environment has the token');
is_deeply([files_with($runner->{spool}, $runner->{workspaces})], [],
    'during a step no file in spool and workspaces has the token');
spew($gate, '');
is($runner->wait($id), 'success', 'the deployment succeeds');
for my $secret (@secrets) {
	unlike($runner->log($id), qr/\Q$secret\E/, 'the log of the deployment does not contain the token');
	unlike($runner->said, qr/\Q$secret\E/, 'the log of the runner does not contain the token');
}
my (undef, $dump) = run_cmd('mariadb-dump', '--no-defaults', '--socket=' . $db->socket,
    '--user=' . getpwuid($>), '--hex-blob', 'slipway');
like($dump, qr/CREATE TABLE `deployment`/, 'the database is dumped');
is((grep { index($dump, $_) >= 0 || index(lc $dump, unpack 'H*', $_) >= 0 } @secrets),
    0, 'the database contains the token only encrypted');
$id = deploy(1, "echo 'the token is $token{ann}'; echo $token{ann} | base64 -w0");
$runner->wait($id);
unlike($runner->log($id), qr/\Q$token{ann}\E/, 'the token is masked in the log of a step that knows it');

# --- an expired token is refreshed once
sub end_of {
	$db->sql("UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 MINUTE WHERE user_id = $_[0]");
	return;
}
sub refreshes {
	return scalar grep { ($_->{body} || '') =~ /refresh_token/ } $forge->requests(qr/access_token$/);
}
my @projects = map { $runner->project(repo => $repo->clone_url) } 1 .. 4;
$forge->forget_requests;
end_of(1);
$forge->expire_tokens('ann');
my @ids = map { my $p = $_; deploy(1, \$p, 'cat file') } @projects;
is($runner->wait($_), 'success', 'a deployment with an expired token succeeds') for @ids;
is(refreshes(), 1, 'four deployments refresh the token once');
unlike($forge->passwords(qr/git-upload-pack|info.refs/), qr/\Q$service\E/, "the service's token is not used");

# --- a Git server that does not respond to a refresh
my $local = $runner->project;
my $over = tempdir() . '/over';
my $talker = $runner->deploy($local, counts_until($over, 0.1) . '; echo last-$n');
$runner->wait_log($talker, qr/^count-3$/m);
$forge->fault('/login/oauth/access_token', kind => 'silent');
end_of(1);
my $began = time;
$id = deploy(1, 'cat file');
my $watch = stopwatch();
my ($slowest, $size, $at, $lapsed) = (0, 0, 0, 0);
my $end = poll(25, sub {
	my ($now, $left, $state) = split /\t/,
	    $db->sql("SELECT COALESCE(MAX(start + length), 0), (SELECT lease_until > NOW(3) FROM deployment "
	    . "WHERE id = $talker),"
	    . "(SELECT status FROM deployment WHERE id = $id) FROM log_chunk WHERE deployment_id = $talker");
	$lapsed++ if !$left;
	if ($now > $size) {
		my $gap = $watch->() - $at;
		$slowest = $gap if $gap > $slowest;
		($size, $at) = ($now, $watch->());
	}
	return $state !~ /pending|running/ && $state;
});
is($end, 'failed', 'a deployment whose token is not refreshed fails, though the service has a token')
    or diag($runner->log($id));
like($runner->column($id, 'detail'), qr/did not renew the token of the user who deploys/,
    'the detail says that the token was not renewed');
cmp_ok(time - $began, '>', 5, 'the refresh gets some seconds');
cmp_ok($slowest, '<', deadline(5),
    sprintf('the log of another deployment continues: at most %.2f s of delay', $slowest));
is($lapsed, 0, 'the lease of another deployment does not expire');
is($runner->column($id, 'epoch'), 1, 'the deployment has its first epoch');
like($runner->said, qr/the token of the user who deploys/, 'the log says that the token was not renewed');

# --- the same if the service has no token
$runner->write_conf(conf(token => undef));
$runner->restart;
end_of(1);
$id = deploy(1, 'cat file');
is($runner->wait($id), 'failed', 'a deployment whose token is not refreshed fails');
is($runner->column($id, 'reason'), 'checkout_failed',
    'a deployment whose token is not refreshed has the reason checkout_failed');
like($runner->column($id, 'detail'), qr/The Git server did not renew the token of the user who deploys\./,
    'the detail says that the token was not renewed');
$id = deploy(3, 'cat file');
is($runner->wait($id), 'failed', 'a deployment without any token fails');
like($runner->column($id, 'detail'), qr/There is no token for the Git server/,
    'the detail says that there is no token');

# --- events during a refresh
my $took = best_of(5, sub {
	end_of(1);
	$id = deploy(1, 'cat file');
	ok(poll(10, sub { $runner->status($id) eq 'running' }), 'a refresh is running');
	my $began = time;
	$runner->cancel($id);
	is($runner->wait($id), 'canceled', 'a deployment can be canceled during a refresh');
	return time - $began;
});
cmp_ok($took, '<', deadline(5), 'a cancel during a refresh takes effect at once');
# a refresh that is late may lose the pair
my $tries = 0;
within(3, sub {
	sign_in('ann', 1) if $tries++;
	$forge->fault('/login/oauth/access_token', kind => 'silent');
	end_of(1);
	$id = deploy(1, 'cat file');
	ok(poll(10, sub { $runner->status($id) eq 'running' }), 'another refresh is running');
	my $dispatcher = $runner->dispatcher;
	$forge->clear_faults;
	kill 'KILL', $dispatcher;
	is($runner->wait($id, undef, 40), 'success',
	    'a deployment succeeds after the dispatcher was killed during a refresh')
	    or diag($runner->column($id, 'detail'));
	cmp_ok($runner->column($id, 'epoch'), '>', 1, 'the deployment was returned to the queue');
});
$tries = 0;
within(3, sub {
	$runner->resume if !$runner->pid;
	sign_in('ann', 1) if $tries++;
	$forge->fault('/login/oauth/access_token', kind => 'silent');
	end_of(1);
	$id = deploy(1, 'cat file');
	ok(poll(10, sub { $runner->status($id) eq 'running' }), 'a third refresh is running');
	is($runner->stop, 0, 'the runner stops during a refresh');
	is($runner->status($id), 'pending', 'the deployment is pending after the stop');
	$forge->clear_faults;
	$runner->resume;
	is($runner->wait($id, undef, 40), 'success', 'the deployment succeeds after the start')
	    or diag($runner->column($id, 'detail'));
});
spew($over, '', 0644);
is($runner->wait($talker), 'success', 'the other deployment succeeds');
my $n = () = $runner->log($talker) =~ /^count-\d+$/mg;
is($n, ($runner->log($talker) =~ /^last-(\d+)$/m)[0], 'the log of the other deployment is complete');
ok($runner->is_clean, 'deployments leave nothing behind');

# --- a missing key file
$runner->stop;
rename $key, "$key.away" or die;
$runner->write_conf(conf());
$runner->resume;
$forge->forget_requests;
$id = deploy(1, 'cat file');
is($runner->wait($id), 'failed', 'without the key file a deployment by a user with a token fails');
is($forge->passwords(qr/git-upload-pack|info.refs/), '',
    "without the key file the service's token is not used instead");
$id = deploy(3, 'cat file');
is($runner->wait($id), 'success', 'without the key file a deployment by a user without a token succeeds')
    or diag($runner->column($id, 'detail'));
is($forge->passwords(qr/git-upload-pack|info.refs/), $service, "that deployment uses the service's token");
is_deeply([grep { $_ !~ /no such/ } $forge->complaints], [],
    'the server received only valid requests');
is($runner->stop, 0, 'the runner stops');
done_testing;
