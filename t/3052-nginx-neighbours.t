#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Installing or upgrading slipway changes nothing of nginx's other sites: a running
# nginx takes the new files at a reload, whichever version it had loaded, and its
# other sites keep their protocols and addresses.

use strict;
use warnings;
use IO::Socket::IP;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $top = srcdir();
my $api = Slipway::API->start(db => Slipway::DB->start);
my $dir = $api->dir;
my %text = map { $_ => slurp("$top/nginx/$_") }
    qw(slipway-http.conf slipway-site.conf.in slipway-locations.conf.in);

# The zones of all earlier versions: name, key.
my @released = (
	[['auth', '$slipway_limited']],
	[['auth', '$slipway_limited'], ['hooks', '$binary_remote_addr']],
	[['auth', '$slipway_limited'], ['begin', '$binary_remote_addr'], ['hooks', '$binary_remote_addr']],
	[['auth', '$slipway_limited'], ['begin', '$binary_remote_addr'], ['hooks', '$binary_remote_addr'],
		['unsigned', '$slipway_unsigned'], ['poll', '$binary_remote_addr']],
	[['auth', '$slipway_limited'], ['begin', '$slipway_client'], ['hooks', '$binary_remote_addr'],
		['unsigned', '$slipway_unsigned'], ['poll', '$slipway_client']],
	[['auth', '$slipway_limited'], ['begin', '$slipway_client'], ['hooks', '$slipway_client'],
		['unsigned', '$slipway_unsigned'], ['poll', '$slipway_client']],
);

# --- names of zones
my @zones = $text{'slipway-http.conf'} =~ /^limit_req_zone (\S+) zone=(\w+:\w+) /mg;
cmp_ok(@zones / 2, '>=', 5, 'the test finds the zones');
my %zone;
while (my ($key, $zone) = splice @zones, 0, 2) {
	my ($name, $size) = split /:/, $zone;
	(my $suffix = "${key}_$size") =~ s/^\$slipway//;
	like($name, qr/^slipway(?:_[a-z]+)\Q$suffix\E$/, "the zone $name is named after its key and size");
	$zone{$name}++;
}
my %used = map { $_ => 1 } $text{'slipway-locations.conf.in'} =~ /limit_req zone=(\w+)/g;
is_deeply([sort keys %used], [sort keys %zone], 'each zone is used');

# --- a reload from each earlier version
# A configuration with another site, which returns this text.
sub conf_write {
	my ($file, $says, $http) = @_;
	spew("$file.new", "pid $file.pid; error_log $file.err; daemon off; worker_processes 1; events {}\n"
	    . "http {\naccess_log off;\n"
	    . join('', map { "${_}_temp_path $file-tmp-$_;\n" } qw(client_body proxy fastcgi uwsgi scgi))
	    . "$http\nserver { listen unix:$file.sock; return 200 $says; }\n}\n");
	rename "$file.new", $file or die "$file: $!";
	return;
}
sub other_site {
	my ($file) = @_;
	return (run_cmd('curl', '-s', '--unix-socket', "$file.sock", 'http://other/'))[1];
}
my $now = "include $dir/slipway-http.conf;\nserver { listen unix:$dir/now.sock;"
    . " include $dir/slipway-locations.conf; }";
my $n = 0;
for my $version (@released, 'itself') {
	my $file = "$dir/old" . ++$n;
	conf_write($file, 'before', ref $version ? join("\n",
	    (map { "limit_req_zone $_->[1] zone=slipway_$_->[0]:1m rate=20r/s;" } @$version),
	    map { "map \$uri \$slipway_$_ { default x; }" } qw(limited client unsigned)) : $now);
	my $nginx = start_process({ name => "nginx-old$n" }, 'nginx', '-c', $file, '-e', "$file.err");
	ok(poll(10, sub { other_site($file) eq 'before' }), "version $n: nginx runs")
	    or diag(slurp("$file.err"));
	unlink "$dir/now.sock" if ref $version;
	conf_write($file, 'after', $now);
	kill HUP => $nginx;
	ok(poll(10, sub { other_site($file) eq 'after' }),
	    "version $n: a reload takes the files of this one") or diag(slurp("$file.err"));
	unlike(slurp("$file.err") // '', qr/\[emerg\]/, "version $n: nginx rejects nothing");
	stop_process($nginx);
	unlink "$dir/now.sock";
}

# --- the sites beside ours on its port
my ($port, $site) = (free_port(), $text{'slipway-site.conf.in'});
my @listen = $site =~ /^\s*listen (.*);/mg;
is_deeply(\@listen, ['80', '443 ssl'], 'the site listens where other sites do, with no protocol of its own');
my $file = "$dir/beside";
my $shipped = slurp("$dir/slipway-site.conf") =~ s/listen \S+ ssl http2/listen 127.0.0.1:$port ssl/r
    =~ s/listen unix:\S+;/listen unix:$dir\/beside-plain.sock;/r;
spew("$dir/beside-site.conf", $shipped);
conf_write($file, 'beside', "include $dir/slipway-http.conf; include $dir/beside-site.conf;\n"
    . "server { listen 127.0.0.1:$port ssl; server_name other; ssl_certificate $dir/cert.pem;"
    . " ssl_certificate_key $dir/cert.key; return 200 other; }");
my $nginx = start_process({ name => 'nginx-beside' }, 'nginx', '-c', $file, '-e', "$file.err");
my @ask = ('curl', '-sk', '--http2', '--resolve', "other:$port:127.0.0.1", '-w', ' %{http_version}');
ok(poll(10, sub { (run_cmd(@ask, "https://other:$port/"))[1] eq 'other 1.1' }),
    'a site beside ours keeps HTTP/1.1') or diag(join ' ', run_cmd(@ask, "https://other:$port/"));
ok(!IO::Socket::IP->new(PeerHost => '::1', PeerPort => $port), 'its port stays closed for IPv6');
stop_process($nginx);
done_testing;
