#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The README's installation, first site, upgrade, backup, restore, key rotation and
# removal, followed literally in a minimal Debian with an existing nginx and MariaDB,
# and a Git server beside them.  `make check-install` runs it.

use strict;
use warnings;
use Test::More;
use Slipway::Chroot;
use Slipway::FirstSite;
use Slipway::Readme;
use Slipway::Test;

chroot_begin();
my $root = chroot_dir();

# --- a machine with nginx and MariaDB
site_host();

# --- the tarball, and the steps of the README
unlink glob builddir() . '/slipway-*.tar.gz'; # of another version
must('make dist', run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(), 'dist'));
must('the tarball is unpacked',
    run_cmd('sh', '-c', 'mkdir "$1"/root/slipway && tar xzf "$0"/slipway-*.tar.gz '
    . '-C "$1"/root/slipway --strip-components=1', builddir(), $root));
my $token = site_follow('Installing behind');
ok($token, 'the installation prints a token');

# --- the existing site is unchanged; the service requires a token
my $curl = 'curl -sS -w "%{http_code}" https://slipway.example.org';
is(site_old(), "the old site\n200", 'the existing site is unchanged after the installation');
my (undef, $out) = in_root("$curl/api/projects");
like($out, qr/"unauthenticated".*\s401$/, 'a request without a token is rejected');
(undef, $out) = in_root("$curl/api/projects -H 'Authorization: Bearer $token'");
like($out, qr/^\{"data":\[\].*\s200$/, 'a request with a token is accepted');
(undef, $out) = in_root('ls -l /proc/[0-9]*/exe 2>/dev/null');
like($out, qr{/usr/local/libexec/slipway/slipway-dispatch}, 'the runner has started its dispatcher');

# --- the first site
my $began = time;
site_first($token);
diag('the first site took ' . (time - $began) . ' seconds');

# --- within an existing site
{
	my @share = readme_steps(srcdir() . '/README', 'Without a host name');
	site_add('example.org', $share[1]{text});
	site_follow([ $share[2] ]);
	is(site_old(), "the old site\n200", 'an existing site that includes slipway is unchanged');
	like((in_root('curl -sS https://example.org/api/health'))[1], qr/"status":"ok"/,
	    'the service responds within an existing site');
	is((in_root('curl -sS https://example.org/health'))[1], "the old site\n",
	    'the existing site keeps its own /health');
	site_add('example.org');
	site_follow([ $share[2] ]);
}

# --- maintenance
sub ask {
	my ($path, @more) = @_;
	my (undef, $out) = in_root("$curl$path -H 'Authorization: Bearer $token' @more");
	return $out;
}
my ($upgrade, $backup, $restore, $keys, $drop, $away) = readme_steps(srcdir() . '/README',
    'Upgrade, back up');
like(ask('/api/projects',
    q{-H 'Content-Type: application/json' -d '{"name":"kept","repository":"git@localhost:a/b"}'}),
	qr/422$/, 'a project with an unknown Git server is rejected');
must('a Git server is allowed', in_root(q{sed -i 's|^allowed_hosts.*|allowed_hosts = localhost|' }
    . '/etc/slipway/slipway.conf && systemctl reload slipway-api'));
ok(poll(20,
    sub { ask('/api/projects',
    q{-H 'Content-Type: application/json' -d '{"name":"kept","repository":"git@localhost:a/b"}'})
	=~ /201$/ }), 'a project is created');
like(ask('/api/projects/2/hook-secret', '-X PUT'), qr/200$/, 'a webhook secret is stored');
site_follow([ $upgrade ]);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after an upgrade')
    or diag(ask('/api/projects'));
site_follow([ $backup ]);
(undef, $out) = in_root('stat -c %a:%U /var/backups/slipway*');
is($out, "600:root\n600:root\n", 'a backup is readable by root alone');
like(ask('/api/projects/2', '-X DELETE'), qr/204$/, 'the project is deleted');
must('the keys are deleted', in_root('rm -rf /etc/slipway'));
site_follow([ $restore ]);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after a restore')
    or diag(ask('/api/projects'));
must('the keys are there after a restore', in_root('runuser -u slipway-api -- slipway-admin check'));
site_follow([ $keys ]);
ok(poll(20, sub { ask('/api/projects/2/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored with the new key');
must('some minutes pass',
    in_root("touch -d '10 minutes ago' /etc/slipway/secret.key /etc/slipway/deploy.key"));
site_follow([ $drop ]);
(undef, $out) = in_root('wc -l </etc/slipway/secret.key;'
    . ' stat -c %a:%U:%G /etc/slipway/secret.key /etc/slipway/deploy.key');
is($out, "1\n640:root:slipway\n400:slipway:root\n",
    'the old keys are dropped, and the files keep owner and mode');
ok(poll(20, sub { ask('/api/projects/2/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored without the old keys');
site_follow([ $away ]);
is(site_old(), "the old site\n200", 'the existing site is unchanged after the removal');
(undef, $out) = in_root("$curl/api/health");
unlike($out, qr/"status"/, 'the service is gone after the removal');
(undef, $out) =
    in_root('find / -xdev -name "*slipway*" ! -path "/root/*" ! -path "/var/log/*" ! -path "/var/backups/*"'
	. ' ! -path "/proc/*" ! -path "/usr/local/bin/*" ! -path "/etc/ssl/*";'
	. ' getent passwd slipway slipway-api; getent group slipway slipway-api;'
	. ' ls -l /proc/[0-9]*/exe 2>/dev/null | grep slipway-; mariadb -BNe "SELECT user FROM mysql.user '
	    . 'WHERE user LIKE \'slipway%\'"');
is($out, '', 'the removal leaves nothing');

done_testing();
