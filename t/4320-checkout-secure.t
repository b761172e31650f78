#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Checkout over ssh from a real sshd with a key, and over https from nginx with its
# own CA: both succeed only with the right keys, host keys and certificates, and
# steps find none of them.

use strict;
use warnings;
use Test::More;
use Slipway::Front;
use Slipway::Spool;
use Slipway::Sshd;
use Slipway::Test;

sub have { my ($name) = @_; return grep { -x "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin' }
my $dir = tempdir();
make_repo("$dir/repo", 'echo one >file; touch .git/git-daemon-export-ok');
ok(-d "$dir/repo/.git", 'git creates a repository');

# The files that a step can read contain no key and no credential.
my $look = <<'END';
cat file
ls -A ~ | tr '\n' ' '; echo
grep -rl 'PRIVATE [K]EY' ~ . 2>/dev/null && echo 'A KEY IS' LEFT
env | sed 's/=.*//' | grep -v ^SLIPWAY_ | grep -i -e ssh -e key && echo 'A NAME IS' LEFT
git config -l
echo looked
END

sub deploy {
	my (%o) = @_;
	my $job = job_start(branch => 'main', steps => [$look], %o);
	job_wait($job);
	return ($job, join(' ', job_end($job)), job_log($job));
}
sub nothing_left {
	my ($job, $log, $how) = @_;
	like($log, qr/^looked$/m, "$how: the step runs");
	unlike($log, qr/IS LEFT/, "$how: the step finds no key");
	unlike($log, qr/slipway-(?:ssh-key|known-hosts|ca)/, "$how: the step finds no file of slipway");
}

# --- ssh
my $shell = (getpwuid $>)[8];
ok(-x '/usr/sbin/sshd' && have('ssh'), 'openssh-server and openssh-client are installed');
my $port = free_port();
run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/$_") for qw(host user other);
spew("$dir/authorized", slurp("$dir/user.pub"), 0644);
sshd_start($dir, $port, "$dir/authorized", "$dir/host");
my $me = getpwuid $>;
my $url = "ssh://$me\@127.0.0.1:$port$dir/repo";
my $known = "[127.0.0.1]:$port " . join(' ', (split ' ', slurp("$dir/host.pub"))[0, 1]) . "\n";
my $strange = "[127.0.0.1]:$port " . join(' ', (split ' ', slurp("$dir/other.pub"))[0, 1]) . "\n";
my $key = slurp("$dir/user");
# ssh(1) requires that its account has a name.  Where the job cannot create one (its
# root is no mount point, as in a plain chroot), an account of the host is used.
my %named = is_root() ? (limits => ['-N']) : ();
if (is_root()) {
	my (undef, undef, $log) = deploy(repository => "$dir/repo", %named);
	my $nameless = $log =~ /without a user name/;
	%named = (uid => (getpwnam 'backup')[2]) if $nameless;
	note($nameless ? 'as an account of the host' : 'as an account that the job names');
}

SKIP: {
	skip "the shell of $me, $shell, permits no login", 14 if $shell =~ m{/(?:nologin|false)$};
	my ($job, $end, $log) = deploy(repository => $url, ssh_key => $key, known_hosts => $known, %named);
	like($end, qr{^success -}, 'ssh: the right key checks out the repository')
	    or diag($log, slurp("$dir/sshd.log"));
	like($log, qr/^one$/m, 'ssh: the repository has its files');
	nothing_left($job, $log, 'ssh');
	for (['no key', known_hosts => $known],
	    ['the wrong key', known_hosts => $known, ssh_key => slurp("$dir/other")],
	    ['an unknown host', ssh_key => $key],
	    ['another host key', ssh_key => $key, known_hosts => $strange]) {
		my ($what, %o) = @$_;
		(undef, $end, $log) = deploy(repository => $url, %o, %named);
		like($end, qr{^failed checkout_failed }, "ssh: $what fails the checkout");
		ok(index($log, (split /\n/, $key)[1]) < 0, "ssh: $what: the log contains no key");
	}
}

# --- https
ok(have('nginx'), 'nginx is installed');
run_cmd('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
	'-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost',
	'-keyout', "$dir/tls.key", '-out', "$dir/tls.pem");
my $tls = free_port();
# The dumb protocol: plain files are enough to clone from.
run_cmd({ cwd => "$dir/repo" }, 'git', 'update-server-info');
run_cmd('chmod', '-R', 'a+rX', "$dir/repo");
front_nginx(<<"HTTP", dir => $dir, port => $tls, name => 'nginx');
	server {
		listen 127.0.0.1:$tls ssl;
		ssl_certificate $dir/tls.pem;
		ssl_certificate_key $dir/tls.key;
		root $dir;
	}
HTTP
my ($job, $end, $log) = deploy(repository => "https://localhost:$tls/repo/.git",
    tls_ca => slurp("$dir/tls.pem"));
like($end, qr{^success -}, 'https: the right CA checks out the repository')
    or diag($log, slurp("$dir/nginx.err"));
like($log, qr/^one$/m, 'https: the repository has its files');
nothing_left($job, $log, 'https');
(undef, $end) = deploy(repository => "https://localhost:$tls/repo/.git");
like($end, qr{^failed checkout_failed }, "https: the system's CAs fail the checkout");
run_cmd('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
	'-nodes', '-days', '2', '-subj', '/CN=other', '-keyout', "$dir/other.key", '-out', "$dir/other.pem");
SKIP: {
	my @through = system_cas("$dir/tls.pem");
	skip 'unshare cannot create a mount namespace', 2 if !@through;
	my @same = (repository => "https://localhost:$tls/repo/.git", through => \@through);
	(undef, $end) = deploy(@same);
	like($end, qr{^success -}, "https: without a CA of its own, git trusts the system's");
	(undef, $end) = deploy(@same, tls_ca => slurp("$dir/other.pem"));
	like($end, qr{^failed checkout_failed },
	    "https: with a CA of its own, git does not trust the system's");
}
(undef, $end) = deploy(repository => "https://127.0.0.1:$tls/repo/.git", tls_ca => slurp("$dir/tls.pem"));
like($end, qr{^failed checkout_failed }, 'https: another host name fails the checkout');

done_testing();
