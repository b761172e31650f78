#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The README's installation, first site, upgrade, backup, restore, key rotation and
# removal, followed literally in a minimal Debian with an existing nginx and MariaDB,
# and a Git server beside them.  `make check-install` runs it.

use strict;
use warnings;
use Test::More;
use Slipway::Chroot;
use Slipway::Readme;
use Slipway::Test;

chroot_begin();
my $root = chroot_dir();

# --- a machine with nginx and MariaDB
my @names = map { "$_.example.org" } qw(slipway shop git);
chroot_create([qw(nginx curl openssl ca-certificates git fcgiwrap php-fpm php-cli composer rsync acl)],
    ['example.org', @names]);
my $tls = "ssl_certificate /etc/ssl/certs/slipway.pem;\n"
    . "\tssl_certificate_key /etc/ssl/private/slipway.key;";
sub site {
	my ($name, $lines) = @_;
	spew("$root/etc/nginx/sites-enabled/$name",
	    "server {\n\tlisten 443 ssl;\n\tserver_name $name;\n\t$tls\n$lines}\n");
	return;
}
site('example.org', "\tlocation / { return 200 \"the old site\\n\"; }\n");
site('git.example.org', <<'GIT');
	location / {
		include fastcgi_params;
		fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
		fastcgi_param GIT_PROJECT_ROOT /srv/git;
		fastcgi_param GIT_HTTP_EXPORT_ALL "";
		fastcgi_param PATH_INFO $uri;
		fastcgi_pass unix:/run/fcgiwrap.socket;
	}
GIT
my $alternatives = join ',', map { "DNS:$_" } 'example.org', @names;
must('a certificate is trusted', in_root('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 '
    . "-nodes -days 2 -subj /CN=example.org -addext subjectAltName=$alternatives "
    . '-keyout /etc/ssl/private/slipway.key -out /etc/ssl/certs/slipway.pem && '
    . 'cp /etc/ssl/certs/slipway.pem /usr/local/share/ca-certificates/own.crt && update-ca-certificates'));
must('nginx, PHP-FPM and the Git server run', in_root('nginx && php-fpm8.2 && '
    . '{ setsid fcgiwrap -s unix:/run/fcgiwrap.socket >/var/log/fcgiwrap.log 2>&1 </dev/null & } && '
    . 'until [ -S /run/fcgiwrap.socket ]; do sleep 0.1; done; chmod 666 /run/fcgiwrap.socket'));

# A commit of the site: PHP that names its release.
sub push_site {
	my ($text) = @_;
	must("the repository contains: $text", in_root(<<"PUSH"));
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a\@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a\@example.org
[ -d /srv/git/team/shop.git ] || git init -q --bare -b main /srv/git/team/shop.git
[ -d /root/shop ] || git init -q -b main /root/shop
mkdir -p /root/shop/public
cd /root/shop
printf '{"name": "team/shop", "license": "proprietary", "require": {"php": ">=8.0"}}' \\
    >composer.json
printf '<?php echo "%s by ", basename(dirname(__DIR__)), "\\\\n";' '$text' >public/index.php
git add -A && git commit -q -m '$text' && git push -q /srv/git/team/shop.git main
PUSH
	return;
}

# --- the tarball, and the steps of the README
unlink glob builddir() . '/slipway-*.tar.gz'; # of another version
must('make dist', run_cmd({ env => { MAKEFLAGS => undef } }, 'make', '-s', '-C', builddir(), 'dist'));
must('the tarball is unpacked',
    run_cmd('sh', '-c', 'mkdir "$1"/root/slipway && tar xzf "$0"/slipway-*.tar.gz '
    . '-C "$1"/root/slipway --strip-components=1', builddir(), $root));
my $token;
sub follow {
	my ($step) = @_;
	for my $command (@{ $step->{commands} }) {
		my $out = must("$step->{number}: $command",
			in_root("cd /root/slipway\n" . ($command =~ s/github\.com/git.example.org/r) . "\n"));
		($token) = $out =~ /(slw_[\w-]+)/ if $command =~ /admin setup/;
		like($out, qr/"status":"ok"/, 'the service is healthy') if $command =~ /health/;
	}
}
follow($_) for readme_steps(srcdir() . '/README', 'Installing behind');
ok($token, 'the installation prints a token');

# --- the existing site is unchanged; the service requires a token
my $curl = 'curl -sS -w "%{http_code}" https://slipway.example.org';
my $old = 'curl -sS -w "%{http_code}" https://example.org/';
my (undef, $out) = in_root($old);
is($out, "the old site\n200", 'the existing site is unchanged after the installation');
(undef, $out) = in_root("$curl/api/projects");
like($out, qr/"unauthenticated".*\s401$/, 'a request without a token is rejected');
(undef, $out) = in_root("$curl/api/projects -H 'Authorization: Bearer $token'");
like($out, qr/^\{"data":\[\].*\s200$/, 'a request with a token is accepted');
(undef, $out) = in_root('ls -l /proc/[0-9]*/exe 2>/dev/null');
like($out, qr{/usr/local/libexec/slipway/slipway-dispatch}, 'the runner has started its dispatcher');

# --- the first site
sub shop { return (in_root('curl -sS https://shop.example.org/'))[1] }
my $began = time;
my $prelude = "read -rs TOKEN <<<'$token'\n";
push_site('first');
for my $step (readme_steps(srcdir() . '/README', 'Your first site')) {
	for my $example (@{ $step->{commands} }) {
		my $command = $example =~ s{github\.com/OWNER/REPOSITORY}{git.example.org/team/shop.git}r;
		if ($step->{number} == 1) {
			$prelude .= "$command\n" if $command !~ /^read/;
			next;
		}
		push_site('second') if $step->{number} == 8 && $command =~ /"pipelineId":1/;
		my $run = sub { return in_root("$prelude$command\n") };
		if ($command =~ m{^api /deployments/(\d+)$}) {
			my $said;
			my $ended = qr/"status":"(?:success|failed)"/;
			ok(poll(120, sub { return ($said = ($run->())[1]) =~ $ended }), "deployment $1 ends");
			like($said, qr/"status":"success"/, "deployment $1 succeeds")
			    or diag((in_root("${prelude}api /deployments/$1/log"))[1]);
			like(shop(), qr/^second by 2$/, 'the site is the second release') if $1 == 2;
		} else {
			must("$step->{number}: $command", $run->());
		}
	}
	if ($step->{number} == 5) {
		site('shop.example.org', $step->{text});
		must('nginx accepts the lines for the site', in_root('nginx -t && nginx -s reload'));
	}
	is((in_root('readlink /srv/www/shop/current'))[1], "releases/1\n", 'the link points to the release')
	    if $step->{number} == 7;
	like(shop(), qr/^first by 1$/, "the site is the first release after step $step->{number}")
	    if $step->{number} == 7 || $step->{number} == 8;
}
must('PHP can write shared files', in_root('runuser -u www-data -- touch /srv/www/shop/current/storage/x'));
diag('the first site took ' . (time - $began) . ' seconds');

# --- within an existing site
{
	my @share = readme_steps(srcdir() . '/README', 'Without a host name');
	site('example.org', "\tlocation / { return 200 \"the old site\\n\"; }\n$share[1]{text}");
	follow($share[2]);
	is((in_root($old))[1], "the old site\n200", 'an existing site that includes slipway is unchanged');
	like((in_root('curl -sS https://example.org/api/health'))[1], qr/"status":"ok"/,
	    'the service responds within an existing site');
	is((in_root('curl -sS https://example.org/health'))[1], "the old site\n",
	    'the existing site keeps its own /health');
	site('example.org', "\tlocation / { return 200 \"the old site\\n\"; }\n");
	follow($share[2]);
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
follow($upgrade);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after an upgrade')
    or diag(ask('/api/projects'));
follow($backup);
(undef, $out) = in_root('stat -c %a:%U /var/backups/slipway*');
is($out, "600:root\n600:root\n", 'a backup is readable by root alone');
like(ask('/api/projects/2', '-X DELETE'), qr/204$/, 'the project is deleted');
must('the keys are deleted', in_root('rm -rf /etc/slipway'));
follow($restore);
ok(poll(20, sub { ask('/api/projects') =~ /"name":"kept".*200$/s }), 'the project is there after a restore')
    or diag(ask('/api/projects'));
must('the keys are there after a restore', in_root('runuser -u slipway-api -- slipway-admin check'));
follow($keys);
ok(poll(20, sub { ask('/api/projects/2/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored with the new key');
must('some minutes pass',
    in_root("touch -d '10 minutes ago' /etc/slipway/secret.key /etc/slipway/deploy.key"));
follow($drop);
(undef, $out) = in_root('wc -l </etc/slipway/secret.key;'
    . ' stat -c %a:%U:%G /etc/slipway/secret.key /etc/slipway/deploy.key');
is($out, "1\n640:root:slipway\n400:slipway:root\n",
    'the old keys are dropped, and the files keep owner and mode');
ok(poll(20, sub { ask('/api/projects/2/hook-secret', '-X PUT') =~ /200$/ }),
    'a webhook secret is stored without the old keys');
follow($away);
(undef, $out) = in_root($old);
is($out, "the old site\n200", 'the existing site is unchanged after the removal');
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
