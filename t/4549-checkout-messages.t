#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a failed checkout says, with a real sshd and git over https: the reason of the
# Git server, the host whose key is unknown, an empty repository, and advice on keys and
# tokens only where another one would help.  A server that rejects the service's own
# application is not a reason to sign in again.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Sshd;
use Slipway::Test;
use Test::More;

my $dir = tempdir();
my $note = 'a note on tokens';
my %named = is_root() ? (limits => ['-N']) : ();

# Expects a checkout that fails with this detail.
sub says {
	my ($want, $name, %o) = @_;
	my $job = job_run(branch => 'main', note => $note, steps => ['echo ran'], %named, %o);
	my ($end, $detail) = job_end($job);
	is($end, 'failed checkout_failed', "$name: the checkout fails") or diag(job_log($job));
	like($detail, $want, "$name: the detail is the cause") or diag(job_log($job));
	return $detail;
}
sub says_only {
	my ($want, $name, %o) = @_;
	unlike(says($want, $name, %o), qr/\Q$note\E|known-host/, "$name: no advice on tokens or keys");
	return;
}

# --- over ssh
SKIP: {
	my $sshd = Slipway::Sshd->start or skip "the account's shell permits no login", 1;
	my $shut = Slipway::Sshd->start;
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/key");
	my $public = slurp("$dir/key.pub") =~ s/\n//r;
	my @ssh = (repository => $sshd->url("$dir/repo"), ssh_key => slurp("$dir/key"),
	    known_hosts => $sshd->known);
	# what the server runs in place of git
	my $replies = sub {
		my (@lines) = @_;
		spew("$dir/reply",
		    "#!/bin/sh\ncat >&2 <<'END'\n" . join('', map { "$_\n" } @lines) . "END\nexit 1\n", 0755);
		$sshd->authorize("command=\"$dir/reply\" $public");
		return;
	};
	$replies->('FATAL: R any team/site ann DENIED by fallthru', '(or you mis-spelled the reponame)');
	says_only(qr/^FATAL: R any team\/site ann DENIED by fallthru$/, 'gitolite', @ssh);
	$replies->('', 'FATAL: autocreate denied: \'team/new\' does not exist', '');
	says_only(qr/^FATAL: autocreate denied/, 'gitolite with empty lines', @ssh);
	$replies->("ERROR: The project you were looking for could not be found or you don't have permission "
	    . 'to view it.', '');
	says_only(qr/^ERROR: The project you were looking for could not be found/, 'GitLab', @ssh);
	$replies->('remote: ', 'remote: ========', 'remote: ',
	    'remote: ERROR: The deploy key has expired.', 'remote: ', 'remote: ========', 'remote: ');
	says_only(qr/ERROR: The deploy key has expired\.$/, 'GitLab with a frame', @ssh);
	$replies->('Gitea: Unauthorized', 'ERROR: Key is not allowed here', 'see the manual');
	says_only(qr/^ERROR: Key is not allowed here$/, 'a reason before other lines', @ssh);
	$sshd->authorize($public);
	make_repo("$dir/repo");
	says_only(qr/couldn't find remote ref/, 'a branch that is not there', @ssh, branch => 'none');
	like(says(qr/Permission denied/, 'another key', @ssh, repository => $shut->url("$dir/repo"),
	    known_hosts => $shut->known), qr/\Q$note\E/, 'another key: the advice is there');

	# --- submodules at other hosts
	my $host = sub { return qr/known-host add 127\.0\.0\.1:@{[$_[0]->port]}\)$/ };
	says($host->($sshd), 'an unknown host', @ssh, known_hosts => '');
	for my $url ($shut->url("$dir/repo"), $shut->url("$dir/repo") =~ s{^ssh://}{git+ssh://}r) {
		my $super = make_repo($dir . '/super-' . ($url =~ /^(\w+)/)[0],
		    "printf '[submodule \"lib\"]\\n\\tpath = lib\\n\\turl = $url\\n' >.gitmodules; git add .;"
		    . " git update-index --add --cacheinfo 160000,\$(git -C $dir/repo rev-parse HEAD),lib;"
		    . ' mkdir lib; git commit -qm sub; echo more >more');
		for my $at ($super, $sshd->url($super)) {
			my $name = "a submodule of $at";
			says($host->($shut), $name, @ssh, repository => $at, submodules => 1);
		}
	}
}

# --- over https
my $forge = Slipway::Forge->start(type => 'gitea', client_secret => 'of the client');
$forge->user('ann', { id => 7 });
my $token = $forge->token('ann');
my $site = $forge->repo('team/site', private => 1, users => ['ann']);
$site->commit('main', { file => "text\n" }, 'first');
my %https = (repository => $site->clone_url, tls_ca => slurp($forge->ca), credential => "slipway\n$token");
says_only(qr/couldn't find remote ref/, 'https: a branch that is not there', %https, branch => 'none');
says_only(qr/certificate/i, 'https: a certificate of another CA', %https, tls_ca => undef);
says_only(qr/refused|connect/i, 'https: a port that is closed', %https,
    repository => 'https://localhost:1/team/site.git');
like(says(qr/Authentication failed|could not read|not found|error: 40/, 'https: another token', %https,
    credential => "slipway\nother"), qr/\Q$note\E/, 'https: another token: the advice is there');

# --- empty repositories
my $empty = "$dir/empty";
run_cmd('git', 'init', '-q', '--bare', '-b', 'main', $empty);
my @empty = (qr/^The repository is empty: push a commit/, 'an empty repository');
says_only(@empty, repository => $empty);
says_only(@empty, repository => $empty, branch => undef);
says_only(@empty, %https, repository => $forge->repo('team/empty', private => 1, users => ['ann'])->clone_url,
    branch => undef);
$forge->stop;

# --- the service's application at the Git server
my $db = Slipway::DB->start;
$db->migrate;
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'maintainer')");
for my $type (qw(gitea gitlab github)) {
	my $server = Slipway::Forge->start(type => $type, client_secret => 'of the client', rotates => 1,
	    token_life => 3600);
	$server->user('ann', { id => 7 });
	my $key = "$dir/$type.key";
	my $conf = $server->conf(report => 'no') . "[secrets]\nkey_file = $key\n";
	my $file = spew("$dir/$type.conf", $db->conf . $conf, 0600);
	make_keys($file, $key);
	my $runner = Slipway::Runner->start(db => $db, conf => $conf);
	my $repo = $server->repo('team/site', private => 1, users => ['ann']);
	$repo->commit('main', { file => "text\n" }, 'first');
	my $project = $runner->project(repo => $repo->clone_url);
	my ($access, $refresh) = $server->token('ann', expires => 3600, refresh => 1);
	run_cmd(program('t/unit/access_probe'), $file, 'put', 1, $access, $refresh, 3600);
	my $client;
	my %faults = (
		'a rotated secret' => sub { $_[0]{clients}{ $server->client_id }{secret} = 'another' },
		'a deleted application' => sub { delete $_[0]{clients}{ $server->client_id } },
	);
	for my $fault (sort keys %faults) {
		my $name = "$type: $fault";
		$server->expire_tokens('ann');
		$server->store->change(sub {
			$client = { %{ $_[0]{clients}{ $server->client_id } } };
			$faults{$fault}->($_[0]);
		});
		my $id = $runner->deploy($project, { by => 1 }, 'cat file');
		is($runner->wait($id), 'failed', "$name: the deployment fails");
		my $detail = $runner->column($id, 'detail');
		like($detail, qr/administrator must check gitserver\.client_id and gitserver\.client_secret/,
		    "$name: the detail names the settings");
		unlike($detail, qr/sign in again|retry/i, "$name: the detail does not say to sign in again");
		$server->store->change(sub { $_[0]{clients}{ $server->client_id } = $client });
		$id = $runner->deploy($project, { by => 1 }, 'cat file');
		is($runner->wait($id), 'success', "$name: once it is mended, the user's token is renewed")
		    or diag($runner->column($id, 'detail'));
	}
	is($runner->stop, 0, "$type: the runner stops");
	$server->stop;
	$db->sql('DELETE FROM git_token');
}
done_testing();
