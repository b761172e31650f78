# SPDX-License-Identifier: ISC
package Slipway::FirstSite;

# A host in a chroot (Slipway::Chroot) that already serves a site, with a Git server
# and PHP beside it, on which the README's steps are followed literally.
#
#   site_host();                     instead of chroot_create()
#   my $token = site_follow('Installing behind', sub { ... });
#   site_first($token);              the section "Your first site"
#   site_old();                      what the existing site responds

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use Exporter 'import';
use Test::More;
use Slipway::Chroot;
use Slipway::Readme;
use Slipway::Test;

our @EXPORT = qw(site_add site_first site_follow site_host site_old);

my @names = map { "$_.example.org" } qw(slipway shop git);
my $tls = "ssl_certificate /etc/ssl/certs/slipway.pem;\n"
    . "\tssl_certificate_key /etc/ssl/private/slipway.key;";
my $old_site = "\tlocation / { return 200 \"the old site\\n\"; }\n";

# Gives nginx a server block; the existing site gets these lines in addition.
sub site_add {
	my ($name, $lines) = @_;
	$lines = $old_site . ($lines || '') if $name eq 'example.org';
	spew(chroot_dir() . "/etc/nginx/sites-enabled/$name",
	    "server {\n\tlisten 443 ssl;\n\tserver_name $name;\n\t$tls\n$lines}\n");
	return;
}
sub site_old { return (in_root('curl -sS -w "%{http_code}" https://example.org/'))[1] }

sub site_host {
	chroot_create([qw(nginx curl openssl ca-certificates git fcgiwrap php-fpm php-cli composer rsync
		acl)], ['example.org', @names]);
	site_add('example.org');
	site_add('git.example.org', <<'GIT');
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
	must('a certificate is trusted', in_root('openssl req -x509 -newkey ec '
	    . '-pkeyopt ec_paramgen_curve:P-256 '
	    . "-nodes -days 2 -subj /CN=example.org -addext subjectAltName=$alternatives "
	    . '-keyout /etc/ssl/private/slipway.key -out /etc/ssl/certs/slipway.pem && '
	    . 'cp /etc/ssl/certs/slipway.pem /usr/local/share/ca-certificates/own.crt '
	    . '&& update-ca-certificates'));
	must('nginx, PHP-FPM and the Git server run', in_root('nginx && php-fpm8.2 && '
	    . '{ setsid fcgiwrap -s unix:/run/fcgiwrap.socket >/var/log/fcgiwrap.log 2>&1 </dev/null & } && '
	    . 'until [ -S /run/fcgiwrap.socket ]; do sleep 0.1; done; chmod 666 /run/fcgiwrap.socket'));
	return;
}

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

# Runs the commands of steps, as a section of the README or a list, after `change`
# has replaced in $_ what differs here; returns the token that one of them prints.
sub site_follow {
	my ($steps, $change) = @_;
	my $token;
	for my $step (ref $steps ? @$steps : readme_steps(srcdir() . '/README', $steps)) {
		for (my @commands = @{ $step->{commands} }) {
			s/github\.com/git.example.org/;
			$change->() if $change;
			my $out = must("$step->{number}: $_", in_root("cd /root/slipway\n$_\n"));
			($token) = $out =~ /(slw_[\w-]+)/ if /admin setup/;
			like($out, qr/"status":"ok"/, 'the service is healthy') if /health/;
		}
	}
	return $token;
}

sub shop { return (in_root('curl -sS https://shop.example.org/'))[1] }

# Runs a command of the section; one that reads a deployment is repeated until that
# has succeeded.
sub site_command {
	my ($number, $prelude, $command) = @_;
	my $run = sub { return in_root("$prelude$command\n") };
	my ($id) = $command =~ m{^api /deployments/(\d+)$};
	if (!$id) {
		must("$number: $command", $run->());
		return;
	}
	my $status;
	ok(poll(120, sub {
		$status = eval { decode_json(($run->())[1])->{status} } || '';
		return $status =~ /^(?:success|failed)$/;
	}), "deployment $id ends");
	is($status, 'success', "deployment $id succeeds")
	    or diag((in_root("${prelude}api /deployments/$id/log"))[1]);
	like(shop(), qr/^second by 2$/, 'the site is the second release') if $id == 2;
	return;
}

# Follows the section: a release, the next one, and back.
sub site_first {
	my ($token) = @_;
	my $prelude = "read -rs TOKEN <<<'$token'\n";
	push_site('first');
	for my $step (readme_steps(srcdir() . '/README', 'Your first site')) {
		my $number = $step->{number};
		for (my @commands = @{ $step->{commands} }) {
			s{github\.com/OWNER/REPOSITORY}{git.example.org/team/shop.git};
			push_site('second') if $number == 8 && /"pipelineId":1/;
			if ($number != 1) { site_command($number, $prelude, $_) }
			elsif (!/^read/) { $prelude .= "$_\n" }
		}
		if ($number == 5) {
			site_add('shop.example.org', $step->{text});
			must('nginx accepts the lines for the site', in_root('nginx -t && nginx -s reload'));
		}
		is((in_root('readlink /srv/www/shop/current'))[1], "releases/1\n",
		    'the link points to the release') if $number == 7;
		like(shop(), qr/^first by 1$/, "the site is the first release after step $number")
		    if $number == 7 || $number == 8;
	}
	must('PHP can write shared files',
	    in_root('runuser -u www-data -- touch /srv/www/shop/current/storage/x'));
	return;
}

1;
