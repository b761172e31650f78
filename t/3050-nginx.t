#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The shipped nginx files: nginx accepts them, alone and inside an existing site;
# they contain the settings that matter; each pool gets its own requests.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $top = srcdir();
my %file = map { my ($name) = m{([^/]+)$}; $name => slurp($_) } glob "$top/nginx/*.conf $top/nginx/*.conf.in";
is_deeply([sort keys %file],
    [qw(slipway-console.conf slipway-fastcgi.conf slipway-http.conf slipway-locations.conf.in
	    slipway-root.conf.in slipway-site.conf.in)],
    'the test finds the nginx files');

# Settings that matter, with their effect.
my @rules = (
	['slipway-fastcgi.conf', qr/^fastcgi_param HTTP_PROXY "";/m,
		'the header Proxy does not reach the service (httpoxy)'],
	['slipway-fastcgi.conf', qr/^fastcgi_param REQUEST_MSEC \$msec;/m,
		'the service gets the time of arrival'],
	['slipway-fastcgi.conf', qr/^fastcgi_param REMOTE_USER \$slipway_user;/m,
		'the user comes from a variable, not from a header'],
	['slipway-http.conf', qr/^map "" \$slipway_user \{\s*default "";\s*\}/m,
		'the variable of the user is empty by default'],
	['slipway-site.conf.in', qr/^\t#set \$slipway_user/m,
		'the site sets the user only if an administrator enables that'],
	['slipway-fastcgi.conf', qr/^fastcgi_keep_conn off;/m,
		'connections to the service are not kept open'],
	['slipway-fastcgi.conf', qr/^fastcgi_next_upstream off;/m, 'no request is sent twice'],
	['slipway-fastcgi.conf', qr/^fastcgi_request_buffering on;/m, 'bodies are buffered'],
	['slipway-fastcgi.conf', qr/^fastcgi_max_temp_file_size 4m;/m,
		'a response that nobody reads fills no disk'],
	['slipway-fastcgi.conf', qr/^client_max_body_size 1m;/m, 'bodies have at most 1 MiB'],
	['slipway-fastcgi.conf', qr/REQUEST_URI \$request_uri;/,
		'the service gets the address as the client sent it'],
	['slipway-site.conf.in', qr/ssl_protocols TLSv1\.2 TLSv1\.3;/, 'TLS has at least version 1.2'],
	['slipway-site.conf.in', qr/add_header Strict-Transport-Security \$slipway_hsts always;/,
		'the site sends Strict-Transport-Security'],
	['slipway-locations.conf.in', qr/location = \/api\/metrics \{[^}]*deny all;/,
		'only this host can read metrics'],
);
like($file{ $_->[0] }, $_->[1], $_->[2]) for @rules;
unlike(join('', values %file), qr/^\s*keepalive\b/m, 'no upstream keeps connections open');
unlike(join('', values %file), qr/fastcgi_param\s+(?:SCRIPT_FILENAME|PATH_INFO)/,
    'no parameter is derived from a path of files');
my @locations = map { $file{"slipway-$_.conf.in"} =~ /^location [^@\n]*? (\/\S*) \{\n\t(\w+)/mg }
    qw(locations root);
while (my ($path, $first) = splice @locations, 0, 2) {
	next if $path eq '/.slipway' || $path eq '/slipway';
	is($first, 'include', "location $path includes all parameters");
}

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $dir = $api->dir;
# Exit status and output of nginx -t for an http section with these lines.
sub nginx_test {
	my ($conf) = @_;
	spew("$dir/t.conf",
	    "pid $dir/t.pid; error_log $dir/t.err; events {}\nhttp {\naccess_log $dir/t.log;\n"
	    . join('', map { "${_}_temp_path $dir/tmp-t-$_;\n" } qw(client_body proxy fastcgi uwsgi scgi))
	    . "$conf}\n");
	my ($status, $out, $err) = run_cmd('nginx', '-t', '-q', '-c', "$dir/t.conf", '-e', "$dir/t.err");
	return ($status, $out . $err);
}
my ($status, $out) = nginx_test("include $dir/slipway-http.conf; include $dir/slipway-site.conf;");
is("$status$out", '0', 'nginx accepts the shipped site');
($status, $out) = nginx_test("include $dir/slipway-http.conf; server { listen unix:$dir/x.sock; "
    . "location / { root /var/empty; } location ~ \\.php\$ { return 404; } "
    . 'location = /health { return 200; } location = /projects { return 200; } '
    . "include $dir/slipway-locations.conf; }");
is("$status$out", '0', 'nginx accepts the locations inside an existing site');
($status) = nginx_test("include $dir/slipway-site.conf;");
isnt($status, 0, 'nginx rejects the site without its upstreams');

# Each error page sends the Strict-Transport-Security of its site, and none if the
# site has none.  A page inherits the header fields of the block or repeats them.
my ($block) = $file{'slipway-locations.conf.in'} =~ m{^location \^~ /\.slipway \{\n(.*?)^\}}ms;
my $header = qr/^\s*add_header (?:Cache-Control|X-Request-Id|Strict-Transport-Security) \S+ always;$/m;
is(scalar(() = ($block =~ s/^\tlocation .*?^\t\}//gmsr) =~ /$header/g), 3,
    'the block of the error pages sets three header fields');
my %page = $block =~ m{^\tlocation = /\.slipway/(\d\S*) \{(.*?)^\t\}}gms;
is(keys %page, 14, 'the test finds the error pages');
for my $name (sort keys %page) {
	my $own = () = $page{$name} =~ /$header/g;
	is($own, $page{$name} =~ /add_header/ ? 3 : 0, "error page $name sends them, too");
	like($page{$name}, qr/^\t\treturn \d+ '.*\}\\n';$/m, "error page $name ends with a newline");
}
spew("$dir/n.conf",
    "pid $dir/n.pid; error_log $dir/n.err; daemon off; events {}\nhttp {\naccess_log $dir/n.log;\n"
    . join('', map { "${_}_temp_path $dir/tmp-n-$_;\n" } qw(client_body proxy fastcgi uwsgi scgi))
    . "include $dir/slipway-http.conf;"
    . " server { listen unix:$dir/n.sock; include $dir/slipway-locations.conf; } }\n");
my $own = start_process({ name => 'nginx-own' }, 'nginx', '-c', "$dir/n.conf", '-e', "$dir/n.err");
my @own = ('curl', '-si', '--unix-socket', "$dir/n.sock");
ok(poll(10, sub { -S "$dir/n.sock" && (run_cmd(@own, 'http://localhost/'))[0] == 0 }),
    'a site without Strict-Transport-Security starts');
(undef, $out) = run_cmd(@own, '-X', 'POST', '--data-binary', '@' . program('slipway-api'),
    'http://localhost/api/projects');
like($out, qr/^HTTP\S+ 413 /m, 'a site without Strict-Transport-Security rejects a large body');
unlike($out, qr/Strict-Transport-Security/i, 'an error page adds no Strict-Transport-Security to its site');
stop_process($own);

# The pool that serves a request: the request fails exactly if its socket is away.
sub pool_of {
	my ($method, $path) = @_;
	my @fails;
	for my $pool (qw(api slow)) {
		my $sock = $api->socket($pool);
		rename $sock, "$sock.away" or die "$sock: $!";
		my $got = $api->request($method, $path, $method eq 'POST' ? {} : undef);
		push @fails, $pool if $got->{status} == 502;
		rename "$sock.away", $sock or die "$sock: $!";
	}
	return "@fails";
}
is(pool_of('GET', $_->[0]), $_->[1], "$_->[0] is served by $_->[1]") for
    ['/health', 'api'], ['/projects', 'api'], ['/api/projects', 'api'], ['/api', 'api'],
    ['/api/user/list', 'api'],
    ['/api/deployments', 'api'], ['/api/deployments/1', 'api'], ['/api/deployments/1/log', 'api'],
    ['/api/deployments/1/log/x', 'api'], ['/api/deployments/x/log', 'api'], ['/api/git/branches', 'slow'],
    ['/api/git/x', 'slow'], ['/api/git', 'slow'], ['/api/auth', 'api'], ['/api/auth/info', 'api'],
    ['/api/auth/tokens/1', 'api'], ['/api/auth/tokens', 'api'], ['/api/auth/url', 'api'],
    ['/api/metrics', 'api'], ['/api/projects/1', 'api'], ['/api/projects/1/export', 'slow'],
    ['/api/projects/1/exports', 'api'], ['/api/projects/1/lock', 'api'];
is(pool_of('POST', $_), 'slow', "POST $_ is served by slow") for '/api/auth/login', '/api/projects/import';

# nginx's own errors, and other addresses.
my $sock = $api->socket;
rename $sock, "$sock.away";
my $got = $api->get('/api/projects');
is($got->{status}, 502, 'nginx returns 502 if the service is down');
is($got->{json}{code}, 'upstream_failed', 'the 502 of nginx has the code "upstream_failed"');
is($got->{json}{requestId}, $got->{headers}{'x-request-id'}, 'the 502 of nginx has the request id');
is($got->{headers}{'strict-transport-security'}, 'max-age=31536000',
    'the 502 of nginx sends Strict-Transport-Security');
like($got->{body}, qr/\}\n\z/, 'the 502 of nginx ends with a newline');
rename "$sock.away", $sock;
$got = $api->get('/elsewhere');
is("$got->{status} $got->{json}{code}", '404 not_found', 'an address outside the service returns 404');
is($got->{json}{requestId}, $got->{headers}{'x-request-id'},
    'an address outside the service has a request id');
is($api->get('/.slipway/400')->{status}, 404, 'an error page cannot be requested');
($status, $out) = run_cmd('curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}',
    '--unix-socket', "$dir/plain.sock", 'http://localhost/api/projects?x=1');
is($out, '308 https://localhost/api/projects?x=1', 'a request without TLS is redirected to TLS');
for my $version ('1.0', '1.1') {
	($status) = run_cmd('curl', '-s', '-o', '/dev/null', '--cacert', $api->cacert, '--tls-max', $version,
	    $api->url . '/health');
	isnt($status, 0, "TLS $version is rejected");
}
($status, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-w', '%{http_version} %{http_code}', '-o',
    '/dev/null', $api->url . '/health');
is($out, '2 200', 'nginx supports HTTP/2');
is_deeply([grep { /\[(?:emerg|alert|crit)\]/ && !/connect\(\) to unix/ } split /\n/,
	slurp("$dir/nginx.err") || ''], [],
    'nginx logs no other error');

done_testing;
