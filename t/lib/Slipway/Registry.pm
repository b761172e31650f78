# SPDX-License-Identifier: ISC
package Slipway::Registry;

# A registry on loopback with one package, `leaf`, for Composer, for npm and for pip,
# which caches nothing that came without TLS. It records what is requested.
#
#   my $registry = Slipway::Registry->start;
#   my %files = $registry->project;   a project that depends on the package
#   $registry->downloads;             paths of the archives requested so far
#   $registry->ca;                    the file that certifies it

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Digest::SHA qw(sha1_hex sha256_hex sha512_base64);
use File::Path qw(make_path);
use IO::Compress::Zip qw($ZipError);
use IO::Socket::INET;
use IO::Socket::SSL ();
use POSIX qw(strftime);
use Slipway::Certificate;
use Slipway::Test;

my $json = Cpanel::JSON::XS->new->canonical;

sub start {
	my ($class) = @_;
	my $dir = tempdir() . '/registry';
	make_path("$dir/package");
	my $self = bless { port => free_port(), log => spew("$dir/requests", ''), dir => $dir }, $class;
	make_ca($dir, 'ca');
	make_certificate($dir, 'ca', 'server', 'IP:127.0.0.1');
	$self->_composer;
	$self->_npm;
	$self->_pip;
	$self->{pid} = start_process({ name => 'registry' }, $^X, '-I' . srcdir() . '/t/lib',
	    '-MSlipway::Registry', '-e', 'Slipway::Registry::serve(@ARGV)', $self->{port}, $dir);
	poll(30, sub { return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) })
	    or die 'the registry does not listen';
	return $self;
}

sub url { my ($self) = @_; return "https://127.0.0.1:$self->{port}" }
sub ca { my ($self) = @_; return "$self->{dir}/ca.crt" }
sub downloads { my ($self) = @_; return grep { /\.(?:tar|tgz|whl)$/ } split /\n/, slurp($self->{log}) }

sub _composer {
	my ($self) = @_;
	my $dir = $self->{dir};
	make_path("$dir/library");
	spew("$dir/library/composer.json", $json->encode({ name => 'team/leaf', version => '1.0.0' }));
	my ($status, undef, $err) = run_cmd('tar', '-C', $dir, '-cf', "$dir/leaf-1.0.tar", 'library');
	die "tar: $err" if $status != 0;
	$self->{shasum} = sha1_hex(slurp("$dir/leaf-1.0.tar"));
	return;
}

sub _npm {
	my ($self) = @_;
	my $dir = $self->{dir};
	spew("$dir/package/package.json", $json->encode({ name => 'leaf', version => '1.0.0' }));
	my ($status, undef, $err) = run_cmd('tar', '-C', $dir, '-czf', "$dir/leaf-1.0.0.tgz", 'package');
	die "tar: $err" if $status != 0;
	$self->{integrity} = 'sha512-' . sha512_base64(slurp("$dir/leaf-1.0.0.tgz")) . '==';
	return;
}

sub _pip {
	my ($self) = @_;
	my $info = 'leaf-1.0.dist-info';
	my $wheel = "$self->{dir}/leaf-1.0-py3-none-any.whl";
	my %files = ('leaf.py' => '', "$info/METADATA" => "Metadata-Version: 2.1\nName: leaf\nVersion: 1.0\n",
		"$info/WHEEL" => "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
		    . "Tag: py3-none-any\n",
		"$info/RECORD" => join '', map { "$_,,\n" } 'leaf.py',
		    map { "$info/$_" } qw(METADATA WHEEL RECORD));
	my $zip;
	for my $name (sort keys %files) {
		if (defined $zip) { $zip->newStream(Name => $name) or die "zip: $ZipError" }
		else { $zip = IO::Compress::Zip->new($wheel, Name => $name) or die "zip: $ZipError" }
		$zip->print($files{$name}) if $files{$name} ne '';
	}
	$zip->close or die "zip: $ZipError";
	spew("$self->{dir}/simple", '<a href="../../leaf-1.0-py3-none-any.whl#sha256='
	    . sha256_hex(slurp($wheel)) . '">leaf-1.0-py3-none-any.whl</a>');
	return;
}

sub project {
	my ($self) = @_;
	my %top = (name => 'app', version => '1.0.0', dependencies => { leaf => '1.0.0' });
	my %leaf = (version => '1.0.0', resolved => $self->url . '/leaf-1.0.0.tgz',
		integrity => $self->{integrity});
	my %library = (name => 'team/leaf', version => '1.0.0', type => 'library',
		dist => { type => 'tar', url => $self->url . '/leaf-1.0.tar', shasum => $self->{shasum} });
	return ('composer.json' => $json->encode({ name => 'team/app', version => '1.0.0',
		    require => { 'team/leaf' => '1.0.0' }, config => { cafile => $self->ca },
		    repositories => [{ 'packagist.org' => Cpanel::JSON::XS::false }] }),
		'composer.lock' => $json->encode({ packages => [\%library], 'packages-dev' => [] }),
		'package.json' => $json->encode(\%top),
		'package-lock.json' => $json->encode({ name => 'app', version => '1.0.0',
		    lockfileVersion => 3, packages => { '' => \%top, 'node_modules/leaf' => \%leaf } }),
		'.npmrc' => 'registry=' . $self->url . "/\ncafile=" . $self->ca
		    . "\nupdate-notifier=false\naudit=false\nfund=false\n");
}

# --- the server's process
sub serve {
	my ($port, $dir) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 100,
	    ReuseAddr => 1) or die "listen: $!";
	$SIG{CHLD} = $SIG{PIPE} = 'IGNORE';
	while (my $peer = $listen->accept) {
		next if fork;
		alarm 300;
		IO::Socket::SSL->start_SSL($peer, SSL_server => 1, SSL_cert_file => "$dir/server.crt",
		    SSL_key_file => "$dir/server.key") or last;
		my $head = '';
		while (defined(my $line = <$peer>)) {
			$head .= $line;
			last if $line =~ /^\r?\n$/;
		}
		my ($path) = $head =~ m{^GET (/\S*) } or last;
		open my $log, '>>', "$dir/requests" or die "$dir/requests: $!";
		syswrite $log, "$path\n";
		close $log;
		my ($name) = $path eq '/simple/leaf/' ? 'simple' : $path =~ m{^/(leaf-[^/]*)$};
		my $body = defined $name ? slurp("$dir/$name") : undef;
		my $type = $path =~ m{^/simple} ? 'text/html' : 'application/octet-stream';
		print $peer join "\r\n", defined $body ? 'HTTP/1.1 200 OK' : 'HTTP/1.1 404 Not Found',
		    "Content-Type: $type", 'Date: ' . strftime('%a, %d %b %Y %T GMT', gmtime),
		    'Cache-Control: max-age=31536000, immutable',
		    'Content-Length: ' . length($body // ''), 'Connection: close', '', $body // '';
		last;
	}
	return;
}

1;
