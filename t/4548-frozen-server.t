#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A Git server that accepts connections and then stays silent, or freezes while it
# serves: the checkout does not wait for checkout_timeout, and the deployment waits for
# the server.  A git in front of the real one makes the limits that the job sets shorter;
# it adds none.

use strict;
use warnings;
use IO::Socket::INET;
use Slipway::Forge;
use Slipway::Spool;
use Slipway::Sshd;
use Slipway::Test;
use Test::More;

my $dir = tempdir();
my ($real) = grep { -x } map { "$_/git" } split /:/, $ENV{PATH};
mkdir "$dir/short";
spew("$dir/short/git", <<"PERL", 0755);
#!$^X
s/(ServerAliveInterval|ConnectTimeout|lowSpeedTime)=\\d+/\$1=2/g for \@ARGV;
exec '$real', \@ARGV;
PERL
my %named = is_root() ? (limits => ['-N']) : ();
# A process of sshd that is stopped does not end by itself.
my $owner = $$;
sub thaw { kill 'KILL', split ' ', slurp("$dir/frozen") // ''; unlink "$dir/frozen"; return }
END { thaw() if $$ == $owner }

# Expects a checkout that ends soon, as one that is to be tried again, or for good.
sub gives_up {
	my ($want, $name, %o) = @_;
	for my $patience (600, 0) {
		my $watch = stopwatch();
		my $job = job_run(branch => 'main', path => "$dir/short:/usr/bin:/bin",
		    git_patience => $patience, checkout_timeout => 3600, steps => ['echo ran'], %named, %o);
		cmp_ok($watch->(), '<', deadline(60), "$name: git gives up long before checkout_timeout");
		my ($away) = map { $_->[1] } grep { $_->[0] eq 'git-away' } job_result($job);
		my ($end, $detail) = job_end($job);
		like($patience == 0 ? $detail : $away // '', $want,
		    "$name: the cause is the silence of the server") or diag(job_log($job));
		is($away, undef, "$name: without patience, the checkout fails") if $patience == 0;
		unlike(job_log($job), qr/^ran$/m, "$name: no step runs");
	}
	return;
}

# --- silent from the beginning
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64) or die;
my $port = $mute->sockport;
gives_up(qr/banner exchange|timed out/i, 'ssh without a banner',
    repository => "ssh://git\@127.0.0.1:$port/site.git");

# --- frozen once it has accepted the key
SKIP: {
	my $sshd = Slipway::Sshd->start or skip "the account's shell permits no login", 1;
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/key");
	my $freeze = spew("$dir/freeze",
	    "#!/bin/sh\necho \$PPID >>$dir/frozen\n\$1\nkill -STOP \$PPID\nexec sleep 3\n", 0755);
	for my $before ('', 'printf 0') {
		my $public = slurp("$dir/key.pub") =~ s/\n//r;
		$sshd->authorize("command=\"$freeze '$before'\" $public");
		gives_up(qr/not responding|timed out|unexpected disconnect|early EOF/i,
		    'ssh that freezes ' . ($before eq '' ? 'before the first byte' : 'in the first line'),
		    repository => $sshd->url("$dir/repo"), ssh_key => slurp("$dir/key"),
		    known_hosts => $sshd->known);
		thaw();
	}
}

# --- https: silent, and slower than a byte in the limit
my $forge = Slipway::Forge->start(type => 'gitea');
my $site = $forge->repo('team/site');
$site->commit('main', { file => "text\n" }, 'first');
$forge->fault(qr/info.refs/, kind => 'silent');
gives_up(qr/too slow|timed out/i, 'https without a response', repository => $site->clone_url,
    tls_ca => slurp($forge->ca));
$forge->stop;
done_testing();
