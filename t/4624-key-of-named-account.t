#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A job under an account of the host: what a step writes to the account's home, where
# ssh(1) looks for its configuration, gives no account the key of a later checkout.  As root,
# in a mount namespace whose passwd and group files have the account.

use strict;
use warnings;
use Slipway::Sshd;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

plan skip_all => 'requires root and a mount namespace' if !own_mounts();
my $sshd = Slipway::Sshd->start;
plan skip_all => "the account's shell permits no login" if !$sshd;
my $dir = tempdir();
my $account = 'slipway-test';
my $number = 64123;
$number++ while getpwuid $number || getgrgid $number;
my $home = "$dir/account";
mkdir $home or die "$home: $!";
chown $number, $number, $home or die "$home: $!";
for ([ passwd => "$account:x:${number}:${number}::$home:/bin/bash\n" ],
    [ group => "$account:x:${number}:\n" ]) {
	my ($name, $line) = @$_;
	my ($status, $out, $err) = run_cmd('mount', '--bind',
	    spew("$dir/$name", slurp("/etc/$name") . $line, 0644), "/etc/$name");
	is($status, 0, "/etc/$name has the account") or diag($err);
}

make_repo("$dir/repo", 'echo one >file');
my $known = spew("$dir/known_hosts", $sshd->known, 0644);
my $git = "[gitserver]\ntype = git\nallowed_hosts = 127.0.0.1:" . $sshd->port
    . "\nssh_known_hosts = $known\n";
my $all = Slipway::Whole->start(api => $git, runner => "${git}[runner]\njob_user = $account\n");
my $api = $all->api;
my $project = $all->project($sshd->url("$dir/repo"));
$sshd->authorize($api->put("/api/projects/$project/deploy-key")->{json}{publicKey});
sub runs {
	my ($what, $script) = @_;
	my $id = $all->post(projectId => $project, pipelineId => $all->pipeline($project, $script));
	my $end = $all->wait($id);
	is($end->{status}, 'success', $what) or diag($end->{detail}, $all->log($id));
	return $all->log($id);
}

# $HOME of git and ssh is that of the job
my $evil = <<'END';
home=$(getent passwd "$(id -u)" | cut -d: -f6)
mkdir "$home/.ssh"
cat >"$home/.ssh/config" <<CONFIG
Host *
	ProxyCommand sh -c 'cat "\$HOME"/slipway-ssh-key >$home/found; exit 1'
CONFIG
chmod 600 "$home/.ssh/config"
id
END
like(runs('a step writes a configuration of ssh for its account', $evil), qr/^uid=$number\b/m,
    'as that account');
runs('the next deployment of the project', 'cat file');
ok(!-e "$home/found", 'the configuration is not read, so the key stays secret');

# --- the key of the service, which all projects without one use
run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/service");
chown((getpwnam 'nobody')[2, 3], "$dir/service");
is($api->delete("/api/projects/$project/deploy-key")->{status}, 204, 'the deploy key is deleted');
$sshd->authorize(slurp("$dir/service.pub") =~ s/\n//r);
my $runner = $all->runner;
$runner->write_conf("$runner->{conf}\[gitserver]\nssh_key_file = $dir/service\n")->restart;
runs('a deployment with the key of the service', 'cat file');
ok(!-e "$home/found", 'the configuration is not read with that key, either');
done_testing;
