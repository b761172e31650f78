# SPDX-License-Identifier: ISC
package Slipway::Front;

# A private nginx.  front_nginx() starts one with a text in its http block and
# returns its pid.  front_start() starts one with TLS in front of a server that
# listens on a unix socket.

use strict;
use warnings;
use Exporter 'import';
use IO::Socket::INET ();
use Slipway::Test;

our @EXPORT = qw(front_nginx front_start);

# Options: dir, for all of its files; port, which it listens on; name of the
# process; processes: the number of workers (default 1); connections: of each worker.
sub front_nginx {
	my ($http, %opt) = @_;
	my $dir = $opt{dir};
	my $user = is_root() ? "user www-data;\n" : '';
	my $processes = $opt{processes} || 1;
	my $connections = $opt{connections} || 2048;
	spew("$dir/nginx.conf", <<"CONF");
${user}worker_processes $processes;
pid $dir/nginx.pid;
error_log $dir/nginx.err;
daemon off;
worker_rlimit_nofile @{[2 * $connections]};
events { worker_connections $connections; }
http {
	client_body_temp_path $dir/tmp-body;
	proxy_temp_path $dir/tmp-proxy;
	fastcgi_temp_path $dir/tmp-fastcgi;
	uwsgi_temp_path $dir/tmp-uwsgi;
	scgi_temp_path $dir/tmp-scgi;
	access_log $dir/nginx.log;
$http}
CONF
	my $pid = start_process({ name => $opt{name} }, 'nginx', '-c', "$dir/nginx.conf", '-e',
	    "$dir/nginx.err", '-p', $dir);
	poll(15, sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$opt{port}") })
	    or die 'nginx did not start: ' . (slurp("$dir/nginx.err") || '');
	return $pid;
}

# Options: dir, with the certificate and the socket `socket`; port; name of the
# process; ssl: lines that replace those of the certificate; plain => 1: no TLS;
# whole_requests => 1: no part of a request is sent before all of it has arrived.
sub front_start {
	my (%opt) = @_;
	my $scheme = $opt{plain} ? 'http' : 'https';
	my $tls = $opt{plain} ? '' : ' ssl';
	my $buffering = $opt{whole_requests} ? 'on' : 'off';
	my $ssl = $opt{plain} ? '' : $opt{ssl}
	    || "ssl_certificate $opt{dir}/cert.pem;\n\t\tssl_certificate_key $opt{dir}/cert.key;";
	return front_nginx(<<"HTTP", %opt);
	server {
		listen 127.0.0.1:$opt{port}$tls;
		$ssl
		client_max_body_size 0;
		location / {
			proxy_pass http://unix:$opt{socket}:;
			proxy_pass_header Date;
			proxy_http_version 1.1;
			proxy_set_header Host \$http_host;
			proxy_set_header X-Forwarded-Proto $scheme;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_request_buffering $buffering;
			proxy_read_timeout 130s;
		}
	}
HTTP
}

1;
