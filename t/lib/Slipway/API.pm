# SPDX-License-Identifier: ISC
package Slipway::API;

# A private slipway-api behind a private nginx with TLS, which uses the shipped
# nginx files.
#
#   my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 2\n");
#   # keys => 1: with the keys for secrets
#   # nginx => sub { my ($name, $text) = @_; … } may change the nginx files
#   # nginx_processes => 2: more than one worker process of nginx;
#   # nginx_connections: of each
#   my $got = $api->post('/api/projects', { name => 'a', … });
#   $got->{status}, $got->{headers}{etag}, $got->{json}, $got->{body}
#
# Requests carry the token of an admin, unless as() or a header says otherwise.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use HTTP::Tiny;
use Slipway::HTTP;
use IO::Socket::SSL ();
use IO::Socket::UNIX ();
use Cpanel::JSON::XS ();
use POSIX ();
use Slipway::Certificate;
use Slipway::Front;
use Slipway::Test;

our @EXPORT_OK = qw(bearer outcome pointers session_cookie);

my $made = 0;
my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref;

sub start {
	my ($class, %opt) = @_;
	my $n = ++$made;
	my $dir = tempdir() . "/api$n";
	my $self = bless { dir => $dir, n => $n, db => $opt{db}, tokens => {},
		port => free_port(), extra => $opt{conf} || '',
		edit => $opt{nginx}, processes => $opt{nginx_processes},
		connections => $opt{nginx_connections} }, $class;
	mkdir $dir, 0777 or die "$dir: $!";
	chmod 0777, $dir or die "$dir: $!";
	$opt{db}->migrate if !$opt{migrated};
	$self->write_conf;
	make_keys($self->conf_file, "$dir/secret.key") if $opt{keys};
	$self->start_api;
	$self->start_nginx if !$opt{no_nginx};
	return $self;
}

sub dir { my ($self) = @_; return $self->{dir} }
sub pid { my ($self) = @_; return $self->{pid} }
sub nginx_pid { my ($self) = @_; return $self->{nginx} }
sub socket { my ($self, $name) = @_; return "$self->{dir}/" . ($name || 'api') . '.sock' }
sub url { my ($self) = @_; return "https://localhost:$self->{port}" }
sub cacert { my ($self) = @_; return "$self->{dir}/cert.pem" }
sub conf_file { my ($self) = @_; return "$self->{dir}/slipway.conf" }
sub log { my ($self) = @_; return slurp(tempdir() . "/slipway-api-$self->{n}.log") }

# Writes slipway.conf; keys in the text of the test come last and win.
sub write_conf {
	my ($self, $extra) = @_;
	my $dir = $self->{dir};
	$self->{extra} = $extra if defined $extra;
	my $user = is_root() ? "user = nobody\nsocket_group = www-data\n" : '';
	my $runner = $self->{extra} =~ /^wake_socket/m ? '' : "wake_socket = $dir/wake.sock\n";
	spew($self->conf_file, $self->{db}->conf . <<"CONF", 0644);
[api]
socket = $dir/api.sock
slow_socket = $dir/slow.sock
live_socket = $dir/live.sock
live_wake_socket = $dir/live-wake.sock
workers = 3
slow_workers = 1
templates = @{[srcdir()]}/src/templates
$user\[gitserver]
allowed_hosts = git.example.org
[secrets]
key_file = $dir/secret.key
[runner]
$runner\[log]
debug = yes
$self->{extra}
CONF
	return $self;
}

sub start_api {
	my ($self) = @_;
	my $before = length($self->log || '');
	$self->{pid} = start_process({ name => "slipway-api-$self->{n}" },
	    program('slipway-api'), '-c', $self->conf_file);
	my $up = poll(60, sub {
		die "slipway-api did not start:\n" . tail($self->log)
		    if waitpid($self->{pid}, POSIX::WNOHANG()) != 0;
		substr($self->log || '', $before) =~ /is ready/
		    && IO::Socket::UNIX->new(Peer => $self->socket);
	});
	die "slipway-api does not listen:\n" . tail($self->log) if !$up;
	return $self;
}

# Starts slipway-live, for streams of events and requests that wait; its process id.
sub live_pid { my ($self) = @_; return $self->{live} }
sub start_live {
	my ($self) = @_;
	$self->{live} = start_process({ name => "slipway-live-$self->{n}" },
	    program('slipway-live'), '-c', $self->conf_file);
	poll(60, sub { IO::Socket::UNIX->new(Peer => $self->socket('live')) })
	    or die "slipway-live does not listen\n";
	return $self->{live};
}

# Replaces the workers, which lose all they had cached.
sub restart_api { my ($self) = @_; $self->stop_api; return $self->start_api }

# Creates the keys for secrets in the file that the configuration names, restarts
# the workers and returns true.
sub create_keys {
	my ($self, $key) = @_;
	make_keys($self->conf_file, $key || "$self->{dir}/secret.key");
	$self->restart_api;
	return 1;
}

# Reloads the configuration, changed to this text if one is given; true when no worker
# of before is left, and a new one runs.
sub reload {
	my ($self, $extra) = @_;
	my %old = map { $_ => 1 } $self->workers;
	$self->write_conf($extra) if defined $extra;
	kill 'HUP', $self->{pid};
	return poll(60, sub {
		my @now = $self->workers;
		return @now > 0 && !grep { $old{$_} } @now;
	});
}

sub stop_api { my ($self, $signal) = @_; return stop_process($self->{pid}, $signal) }

sub workers {
	my ($self) = @_;
	my $pid = $self->{pid};
	return split ' ', slurp("/proc/$pid/task/$pid/children") || '';
}

# Writes a shipped nginx file with this test's directory, port and certificate.
sub nginx_file {
	my ($self, $name) = @_;
	my $dir = $self->{dir};
	my $path = srcdir() . "/nginx/$name";
	my $text = slurp(-e $path ? $path : "$path.in");
	die "$path is missing" if !defined $text;
	my $console = '/src/console';
	my ($version) = slurp(builddir() . "$console/index.html") =~ m{/slipway/([^/]+)/main\.js};
	$text =~ s{\@pkgdatadir\@/nginx}{$dir}g;
	$text =~ s{\@pkgdatadir\@/console/\@VERSION\@}{@{[srcdir()]}$console};
	$text =~ s{\@pkgdatadir\@/console}{@{[builddir()]}$console};
	$text =~ s{\@VERSION\@}{$version}g;
	$text =~ s{/run/slipway/}{$dir/}g;
	$text =~ s{listen 443 ssl}{listen 127.0.0.1:$self->{port} ssl http2};
	$text =~ s{listen 80;}{listen unix:$dir/plain.sock;};
	$text =~ s{slipway\.example\.org}{localhost}g;
	$text =~ s{/etc/ssl/certs/slipway\.pem}{$dir/cert.pem};
	$text =~ s{/etc/ssl/private/slipway\.key}{$dir/cert.key};
	$text = $self->{edit}->($name, $text) if $self->{edit};
	return spew("$dir/$name", $text, 0644);
}

sub start_nginx {
	my ($self) = @_;
	my $dir = $self->{dir};
	make_self_signed("$dir/cert.pem", "$dir/cert.key");
	$self->nginx_file($_) for qw(slipway-http.conf slipway-fastcgi.conf
	    slipway-console.conf slipway-locations.conf slipway-root.conf slipway-site.conf);
	unlink "$dir/plain.sock"; # a crash would free a port
	$self->{nginx} = front_nginx(join('', map { "\tinclude $dir/slipway-$_.conf;\n" } qw(http site)),
	    dir => $dir, port => $self->{port}, name => "nginx-$self->{n}",
	    processes => $self->{processes}, connections => $self->{connections});
	return $self;
}

# A token of a user with this role, inserted into the database once.
sub token {
	my ($self, $role) = @_;
	$role ||= 'admin';
	return $self->{tokens}{$role} ||= $self->new_token($role, "t-$role");
}

sub new_token {
	my ($self, $role, $username) = @_;
	my $token = 'slw_' . sha256_hex("$role $username " . rand);
	my $hash = sha256_hex($token);
	$self->{db}->sql("INSERT IGNORE INTO user (username, role) VALUES ('$username', '$role');"
	    . "INSERT INTO api_token (user_id, name, role, hash) SELECT id, 'test', '$role', '$hash'"
	    . " FROM user WHERE live_username = '$username'");
	return $token;
}

# A new API token of the user with this id, which ends at an SQL time if one is given:
# the token and its id.
sub token_of {
	my ($self, $user, $role, $ends) = @_;
	my $token = 'slw_' . substr sha256_hex("token $user $role " . rand), 0, 43;
	my $hash = sha256_hex($token);
	$ends ||= 'NULL';
	return ($token, $self->{db}->sql('INSERT INTO api_token (user_id, name, role, hash, expires_at)'
	    . " VALUES ($user, 'x', '$role', '$hash', $ends) RETURNING id"));
}

# The token of a new session of this user, whom it creates if necessary; ends is
# an SQL time (default: a day from now).
sub new_session {
	my ($self, $username, $role, $ends) = @_;
	my $token = 'sls_' . substr sha256_hex("session $username " . rand), 0, 43;
	my $hash = sha256_hex($token);
	$ends ||= 'NOW(3) + INTERVAL 1 DAY';
	$self->{db}->sql("INSERT IGNORE INTO user (username, role) VALUES ('$username', '$role');"
	    . "INSERT INTO session (user_id, hash, expires_at) SELECT id, '$hash', $ends"
	    . " FROM user WHERE live_username = '$username'");
	return $token;
}

# Request headers that carry a token, or the cookie of a session.
sub bearer { my ($token) = @_; return { Authorization => "Bearer $token" } }
sub session_cookie { my ($token, %more) = @_; return { Cookie => "__Host-slipway=$token", %more } }

# The members that a response finds errors in, in its order: "/name /steps/0".
sub pointers { my ($got) = @_; return join ' ', map { $_->{pointer} } @{ $got->{json}{errors} || [] } }

# The status of a response and, sorted, the members that it finds errors in.
sub outcome {
	my ($got) = @_;
	return join ' ', $got->{status}, sort map { $_->{pointer} } @{ $got->{json}{errors} || [] };
}

# The same service, with requests of another role; 'none' sends no token.
sub as {
	my ($self, $role) = @_;
	return bless { %$self, role => $role, parent => $self }, ref $self;
}

sub get { my ($self, $path, $headers) = @_; return $self->request('GET', $path, undef, $headers) }
# A GET that is repeated while the Git server is late, as any is on a machine that
# stands still.
sub get_in_time {
	my ($self, @args) = @_;
	my $got;
	poll(300, sub {
		$got = $self->get(@args);
		return $got->{status} != 504 && $got->{body} !~ /failed to respond several times/;
	});
	return $got;
}
# Sends a request (method, path, body, headers) again while it exceeds a rate limit.
sub within_rate {
	my ($self, @request) = @_;
	my $got;
	poll(60, sub { $got = $self->request(@request); return $got->{status} != 429 });
	return $got;
}
sub head { my ($self, $path, $headers) = @_; return $self->request('HEAD', $path, undef, $headers) }
sub delete { my ($self, $path, $headers) = @_; return $self->request('DELETE', $path, undef, $headers) }
sub post { my ($self, $path, $body, $headers) = @_; return $self->request('POST', $path, $body, $headers) }
sub put { my ($self, $path, $body, $headers) = @_; return $self->request('PUT', $path, $body, $headers) }

# The object that a POST creates; dies if it creates none.
sub make {
	my ($self, $path, $body, $headers) = @_;
	my $got = $self->post($path, $body, $headers);
	die "POST $path: $got->{status} $got->{body}\n" if $got->{status} != 201;
	return $got->{json};
}

# Sends a request; a body that is a reference is sent as JSON, text as it is.
sub request {
	my ($self, $method, $path, $body, $headers) = @_;
	my %head = map { lc $_ => $headers->{$_} } keys %{ $headers || {} };
	my $role = $self->{role} || 'admin';
	$head{authorization} = 'Bearer ' . ($self->{parent} || $self)->token($role)
	    if !exists $head{authorization} && $role ne 'none';
	my %arg;
	if (defined $body) {
		$arg{content} = ref $body ? $json->encode($body) : $body;
		$head{'content-type'} = 'application/json' if !exists $head{'content-type'};
	}
	delete $head{$_} for grep { !defined $head{$_} } keys %head;
	my $http = ($self->{parent} || $self)->{http} ||= HTTP::Tiny->new(timeout => 600,
	    max_redirect => 0, keep_alive => 1, verify_SSL => 1,
	    SSL_options => { SSL_ca_file => $self->cacert });
	my $got = $http->request($method, $self->url . $path, { headers => \%head, %arg });
	on_failure('the last response' => sub {
		return "$method $path: $got->{status} " . substr $got->{content} // '', 0, 600;
	});
	my $type = $got->{headers}{'content-type'} || '';
	my $parsed = $type =~ m{^application/(?:problem\+)?json} && length $got->{content}
	    ? eval { $json->decode($got->{content}) } : undef;
	return { status => $got->{status}, headers => $got->{headers},
		body => defined $got->{content} ? $got->{content} : '', json => $parsed };
}

sub stop {
	my ($self) = @_;
	stop_process($self->{nginx}) if $self->{nginx};
	return stop_process($self->{pid});
}

1;
