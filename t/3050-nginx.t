#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The nginx files that are shipped: they parse, alone and inside an existing
# site; what they must say, they say; each pool gets its own requests.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $top = srcdir();
my %file = map { my ($name) = m{([^/]+)$}; $name => slurp($_) } glob "$top/nginx/*.conf $top/nginx/*.conf.in";
is_deeply([sort keys %file], [qw(slipway-fastcgi.conf slipway-http.conf slipway-locations.conf.in slipway-site.conf.in)],
    'the files there are');

# What was measured or read to matter.
my @rules = (
	['slipway-fastcgi.conf', qr/^fastcgi_param HTTP_PROXY "";/m, 'no proxy from a header (httpoxy)'],
	['slipway-fastcgi.conf', qr/^fastcgi_param REQUEST_MSEC \$msec;/m, 'how long it has waited'],
	['slipway-fastcgi.conf', qr/^fastcgi_param REMOTE_USER \$slipway_user;/m, 'no identity from a header'],
	['slipway-http.conf', qr/^map "" \$slipway_user \{\s*default "";\s*\}/m, 'but nobody'],
	['slipway-site.conf.in', qr/^\t#set \$slipway_user/m, 'unless the site says so'],
	['slipway-fastcgi.conf', qr/^fastcgi_keep_conn off;/m, 'no kept connections'],
	['slipway-fastcgi.conf', qr/^fastcgi_next_upstream off;/m, 'no request twice'],
	['slipway-fastcgi.conf', qr/^fastcgi_request_buffering on;/m, 'bodies whole'],
	['slipway-fastcgi.conf', qr/^client_max_body_size 1m;/m, 'bodies of 1 MiB at most'],
	['slipway-fastcgi.conf', qr/REQUEST_URI \$request_uri;/, 'the address as it was sent'],
	['slipway-site.conf.in', qr/ssl_protocols TLSv1\.2 TLSv1\.3;/, 'TLS 1.2 at least'],
	['slipway-site.conf.in', qr/add_header Strict-Transport-Security \$slipway_hsts always;/, 'HSTS'],
	['slipway-locations.conf.in', qr/location = \/api\/metrics \{[^}]*deny all;/, 'metrics for this host only'],
);
like($file{ $_->[0] }, $_->[1], $_->[2]) for @rules;
unlike(join('', values %file), qr/^\s*keepalive\b/m, 'no upstream keepalive');
unlike(join('', values %file), qr/fastcgi_param\s+(?:SCRIPT_FILENAME|PATH_INFO)/, 'nothing that guesses at paths');
my @locations = $file{'slipway-locations.conf.in'} =~ /^location [^@\n]*? (\/\S*) \{\n\t(\w+)/mg;
while (my ($path, $first) = splice @locations, 0, 2) {
	next if $path eq '/.slipway';
	is($first, 'include', "$path has all parameters");
}

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $dir = $api->dir;
sub nginx_test {
	my ($conf) = @_;
	spew("$dir/t.conf", "pid $dir/t.pid; error_log $dir/t.err; events {}\nhttp {\naccess_log $dir/t.log;\n"
	    . join('', map { "${_}_temp_path $dir/tmp-t-$_;\n" } qw(client_body proxy fastcgi uwsgi scgi)) . "$conf}\n");
	my ($status, $out, $err) = run_cmd('nginx', '-t', '-q', '-c', "$dir/t.conf", '-e', "$dir/t.err");
	return ($status, $out . $err);
}
my ($status, $out) = nginx_test("include $dir/slipway-http.conf; include $dir/slipway-site.conf;");
is("$status$out", '0', 'the whole site passes nginx -t');
($status, $out) = nginx_test("include $dir/slipway-http.conf; server { listen unix:$dir/x.sock; "
    . "location / { root /var/empty; } location ~ \\.php\$ { return 404; } include $dir/slipway-locations.conf; }");
is("$status$out", '0', 'so does the snippet in a site that exists');
($status) = nginx_test("include $dir/slipway-site.conf;");
isnt($status, 0, 'without its upstreams it does not');

# What a site says of TLS stands in each page of errors; what it does not say
# is not added.
my @pages = $file{'slipway-locations.conf.in'} =~ /^\tlocation = (\/\.slipway\/\d+ \{.*?)^\t\}/gms;
is(scalar @pages, 11, 'the pages of errors');
for my $page (@pages) {
	my ($name) = $page =~ m{(\d+)};
	like($page, qr/^\t\tadd_header Strict-Transport-Security \$slipway_hsts always;$/m, "the page $name keeps to TLS");
	like($page, qr/^\t\treturn $name '.*\}\\n';$/m, "the page $name is a line");
}
spew("$dir/n.conf", "pid $dir/n.pid; error_log $dir/n.err; daemon off; events {}\nhttp {\naccess_log $dir/n.log;\n"
    . join('', map { "${_}_temp_path $dir/tmp-n-$_;\n" } qw(client_body proxy fastcgi uwsgi scgi))
    . "include $dir/slipway-http.conf; server { listen unix:$dir/n.sock; include $dir/slipway-locations.conf; } }\n");
my $own = start_process({ name => 'nginx-own' }, 'nginx', '-c', "$dir/n.conf", '-e', "$dir/n.err");
ok(poll(10, sub { -S "$dir/n.sock" && (run_cmd('curl', '-s', '--unix-socket', "$dir/n.sock", 'http://localhost/'))[0] == 0 }),
    'a site of another');
(undef, $out) = run_cmd('curl', '-si', '--unix-socket', "$dir/n.sock", '-X', 'POST', '--data-binary', '@' . program('slipway-api'),
    'http://localhost/api/projects');
like($out, qr/^HTTP\S+ 413 /m, 'refuses what is too large');
unlike($out, qr/Strict-Transport-Security/i, 'and promises nothing of TLS that it does not');
stop_process($own);

# Which socket a request comes to: the one whose pool is stopped fails alone.
sub pool_of {
	my ($method, $path) = @_;
	my @fails;
	for my $pool (qw(api slow log)) {
		my $sock = $api->socket($pool);
		rename $sock, "$sock.away" or die "$sock: $!";
		my $got = $api->request($method, $path, $method eq 'POST' ? {} : undef);
		push @fails, $pool if $got->{status} == 502;
		rename "$sock.away", $sock or die "$sock: $!";
	}
	return "@fails";
}
is(pool_of('GET', $_->[0]), $_->[1], "$_->[0] is served by $_->[1]") for
    ['/health', 'api'], ['/projects', 'api'], ['/api/projects', 'api'], ['/api', 'api'], ['/api/user/list', 'api'],
    ['/api/deployments', 'api'], ['/api/deployments/1', 'api'], ['/api/deployments/1/log', 'log'],
    ['/api/deployments/1/log/x', 'api'], ['/api/deployments/x/log', 'api'], ['/api/git/branches', 'slow'],
    ['/api/git/x', 'slow'], ['/api/git', 'slow'], ['/api/auth', 'api'], ['/api/auth/info', 'api'], ['/api/auth/tokens/1', 'api'], ['/api/auth/tokens', 'api'], ['/api/auth/url', 'api'], ['/api/metrics', 'api'];
is(pool_of('POST', '/api/auth/login'), 'slow', 'POST /api/auth/login is served by slow');

# nginx's own 502, and what is none of ours.
my $sock = $api->socket;
rename $sock, "$sock.away";
my $got = $api->get('/api/projects');
is($got->{status}, 502, 'no service behind nginx');
is($got->{json}{code}, 'upstream_failed', 'is a problem like others');
is($got->{json}{requestId}, $got->{headers}{'x-request-id'}, 'with its request id');
is($got->{headers}{'strict-transport-security'}, 'max-age=31536000', 'and TLS from now on');
like($got->{body}, qr/\}\n\z/, 'as a line');
rename "$sock.away", $sock;
$got = $api->get('/elsewhere');
is("$got->{status} $got->{json}{code}", '404 not_found', 'other addresses are nobody\'s');
is($got->{json}{requestId}, $got->{headers}{'x-request-id'}, 'and have a request id, too');
is($api->get('/.slipway/400')->{status}, 404, 'the pages of errors are no pages');
($status, $out) = run_cmd('curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}',
    '--unix-socket', "$dir/plain.sock", 'http://localhost/api/projects?x=1');
is($out, '308 https://localhost/api/projects?x=1', 'without TLS there is only the way to it');
for my $version ('1.0', '1.1') {
	($status) = run_cmd('curl', '-s', '-o', '/dev/null', '--cacert', $api->cacert, '--tls-max', $version, $api->url . '/health');
	isnt($status, 0, "no TLS $version");
}
($status, $out) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-w', '%{http_version} %{http_code}', '-o', '/dev/null', $api->url . '/health');
is($out, '2 200', 'HTTP/2 is spoken');
is_deeply([grep { /\[(?:emerg|alert|crit)\]/ && !/connect\(\) to unix/ } split /\n/, slurp("$dir/nginx.err") || ''], [],
    'nginx has nothing else to complain of');

done_testing;
