# SPDX-License-Identifier: ISC
package Slipway::Forge;

# A private Git server: the stand-in of Slipway::Forge::Server behind nginx with TLS, with
# repositories that the real git http-backend serves.
#
#   my $f = Slipway::Forge->start(type => 'gitea', prefix => '/gitea');
#   $f->user(ann => { id => 7, name => 'Ann', email => 'ann@example.org' });
#   my $repo = $f->repo('team/site', private => 1, users => ['ann']);
#   my $hash = $repo->commit('main', { file => "text\n" }, 'first');
#   my $token = $f->token('ann');
#   …
#   is_deeply([$f->complaints], [], 'every request to the Git server was well-formed');
#
# Options of start: type (gitea, forgejo, gitlab, github); prefix of its paths;
# max_items on a page; commits_range (Gitea's undocumented COMMITS_RANGE_SIZE: the
# same for commits); client_id, client_secret, redirect_uri of its one client;
# token_life in seconds (0: tokens do not expire); rotates => 1|0: whether a refresh
# token works once; ssl: lines of nginx's TLS server; plain => 1: no TLS.
# X-Test-Login in a request to the authorization endpoint names the user.

use strict;
use warnings;
use HTTP::Tiny ();
use Slipway::HTTP;
use IO::Socket::SSL ();
use IO::Socket::UNIX ();
use MIME::Base64 qw(decode_base64);
use Slipway::Certificate;
use Slipway::Forge::Event ();
use Slipway::Forge::Repo ();
use Slipway::Forge::Server ();
use Slipway::Forge::State ();
use Slipway::Front;
use Slipway::Test;

my $made = 0;

sub start {
	my ($class, %opt) = @_;
	my $n = ++$made;
	my $dir = tempdir() . "/forge$n";
	mkdir $_, 0755 or die "$_: $!" for $dir, "$dir/repos", "$dir/clones";
	my $type = ($opt{type} || 'gitea') eq 'forgejo' ? 'gitea' : $opt{type} || 'gitea';
	my $self = bless { dir => $dir, n => $n, type => $type, port => free_port(),
		prefix => $opt{prefix} || '', plain => $opt{plain},
		store => Slipway::Forge::State->open($dir),
		client_id => $opt{client_id} || 'slipway-client', client_secret => $opt{client_secret},
		redirect_uri => $opt{redirect_uri} || 'https://slipway.example.org/login' }, $class;
	$self->{client_secret} = 'the-secret-of-the-client'
	    if $type eq 'github' && !defined $opt{client_secret};
	$self->{store}->change(sub {
		%{ $_[0] } = (type => $type, forgejo => ($opt{type} || '') eq 'forgejo' ? 1 : 0,
		    url => $self->url,
			prefix => $self->{prefix}, max_items => $opt{max_items},
			commits_range => $opt{commits_range}, token_life => $opt{token_life},
			rotates => defined $opt{rotates} ? $opt{rotates} : $type eq 'gitea' ? 0 : 1,
			clients => { $self->{client_id} => { secret => $self->{client_secret},
				redirect_uris => [$self->{redirect_uri}] } },
			map({ $_ => {} } qw(users tokens refresh codes repos ids)),
			map({ $_ => [] } qw(hooks statuses faults)));
	});
	make_front($dir);
	$self->start_server;
	$self->start_nginx($opt{ssl});
	return $self;
}

sub dir { my ($self) = @_; return $self->{dir} }
sub type { my ($self) = @_; return $self->{type} }
sub store { my ($self) = @_; return $self->{store} }
sub port { my ($self) = @_; return $self->{port} }
sub server { my ($self) = @_; return ($self->{plain} ? 'http' : 'https') . "://localhost:$self->{port}" }
sub url { my ($self) = @_; return $self->server . $self->{prefix} }
sub ca { my ($self) = @_; return "$self->{dir}/ca.pem" }
sub client_id { my ($self) = @_; return $self->{client_id} }
sub client_secret { my ($self) = @_; return $self->{client_secret} }
sub redirect_uri { my ($self) = @_; return $self->{redirect_uri} }
sub api {
	my ($self) = @_;
	return $self->url
	    . { gitea => '/api/v1', gitlab => '/api/v4', github => '/api/v3' }->{ $self->{type} };
}

# How many seconds the service waits for it: the default, or more if other processes
# make this machine slow.
my $patience;
sub patience {
	return $patience if defined $patience;
	my $seconds = int 9 * slowness();
	return $patience = $seconds < 12 ? 9 : $seconds > 20 ? 20 : $seconds;
}

# How many seconds a request that waited for it may take: the machine may have become
# faster or slower since the service started.
sub answer_within { return patience() + deadline(1) }

# A [gitserver] section for it.
sub conf {
	my ($self, %more) = @_;
	my %all = (url => $self->url, type => $self->{type}, client_id => $self->{client_id},
		tls_ca => $self->{plain} ? undef : $self->ca, redirect_uri => $self->{redirect_uri},
		client_secret => $self->{client_secret},
		patience() > 9 ? (timeout => patience()) : (), %more);
	return join '', "[gitserver]\n", map { "$_ = $all{$_}\n" } grep { defined $all{$_} } sort keys %all;
}

sub start_server {
	my ($self) = @_;
	my $dir = $self->{dir};
	$self->{pid} = start_process({ name => "forge-$self->{n}" },
	    sub { Slipway::Forge::Server::run($dir) });
	poll(15, sub { IO::Socket::UNIX->new(Peer => "$dir/forge.sock") })
	    or die 'the stand-in did not start: ' . (slurp(tempdir() . "/forge-$self->{n}.log") || '');
	return $self;
}

# Stops the stand-in, so that nginx returns 502.
sub stop_server { my ($self) = @_; return stop_process(delete $self->{pid}) }
# Stops nginx, so that connections are refused.
sub stop_nginx { my ($self) = @_; return stop_process(delete $self->{nginx}) }

sub start_nginx {
	my ($self, $ssl) = @_;
	$self->{nginx} = front_start(dir => $self->{dir}, port => $self->{port},
	    socket => "$self->{dir}/forge.sock",
		name => "forge-nginx-$self->{n}", whole_requests => 1, ssl => $ssl, plain => $self->{plain});
	return $self;
}

sub stop {
	my ($self) = @_;
	$self->stop_nginx if $self->{nginx};
	$self->stop_server if $self->{pid};
	return;
}

# --- users and tokens

sub user {
	my ($self, $login, $more) = @_;
	return $self->{store}->change(sub {
		my ($state) = @_;
		my $id = $more && $more->{id} || Slipway::Forge::State::next_id($state, 'user');
		return $state->{users}{$id} = { name => ucfirst $login, email => "$login\@example.org",
			%{ $more || {} },
			id => $id, login => $login };
	});
}

sub _user_named {
	my ($state, $login) = @_;
	my ($user) = grep { $_->{login} eq $login } values %{ $state->{users} };
	die "unknown user $login" if !$user;
	return $user;
}

sub rename_user {
	my ($self, $login, $new) = @_;
	$self->{store}->change(sub { _user_named($_[0], $login)->{login} = $new });
	return $self;
}

sub remove_user {
	my ($self, $login) = @_;
	$self->{store}->change(sub {
		my ($state) = @_;
		my $id = _user_named($state, $login)->{id};
		delete $state->{users}{$id};
		delete $state->{tokens}{$_}
		    for grep { $state->{tokens}{$_}{user} eq $id } keys %{ $state->{tokens} };
	});
	return $self;
}

# A new access token (in a list: and its refresh token). expires => seconds,
# refresh => 1 or the token itself, access => the token itself.
sub token {
	my ($self, $login, %opt) = @_;
	my @made;
	$self->{store}->change(sub {
		@made = Slipway::Forge::State::token_new($_[0], _user_named($_[0], $login),
		    client => $self->{client_id}, %opt);
	});
	return wantarray ? @made : $made[0];
}

# Expires all access tokens of a user, or only one.
sub expire_tokens {
	my ($self, $login, $only) = @_;
	$self->{store}->change(sub {
		my ($state) = @_;
		my $id = _user_named($state, $login)->{id};
		for my $name (grep { !defined $only || $_ eq $only } keys %{ $state->{tokens} }) {
			$state->{tokens}{$name}{expires} = time - 1 if $state->{tokens}{$name}{user} eq $id;
		}
	});
	return $self;
}

# Expires all codes; deletes all refresh tokens.
sub expire_codes {
	my ($self) = @_;
	$self->{store}->change(sub { $_->{expires} = time - 1 for values %{ $_[0]{codes} } });
	return $self;
}
sub drop_refresh_tokens { my ($self) = @_; $self->{store}->change(sub { $_[0]{refresh} = {} }); return $self }

# The valid access tokens of a user.
sub live_tokens {
	my ($self, $login) = @_;
	my $state = $self->{store}->get;
	my $id = _user_named($state, $login)->{id};
	return sort grep { my $t = $state->{tokens}{$_}; $t->{user} eq $id && !$t->{revoked}
		&& (!$t->{expires} || $t->{expires} > time) } keys %{ $state->{tokens} };
}

# Opens the authorization endpoint as a browser would; { status, location, code,
# state, error } of the redirect.
sub authorize {
	my ($self, $url, $login, %opt) = @_;
	my %headers = (defined $login ? ('X-Test-Login' => $login) : (),
	    $opt{deny} ? ('X-Test-Deny' => 1) : ());
	my $got = $self->http->get($url, { headers => \%headers });
	my $to = $got->{headers}{location};
	my %back = map { my ($k, $v) = split /=/, $_, 2; ($k => $v =~ s/%(..)/chr hex $1/ger) }
	    split /&/, (split /\?/, defined $to ? $to : '', 2)[1] || '';
	return { %back, status => $got->{status}, location => $to, body => $got->{content} };
}

sub http {
	my ($self) = @_;
	return $self->{http} ||= HTTP::Tiny->new(timeout => 600, max_redirect => 0, verify_SSL => 1,
		SSL_options => { SSL_ca_file => $self->ca });
}

# --- repositories

sub repo {
	my ($self, $path, %opt) = @_;
	my $id = $self->{store}->change(sub {
		my ($state) = @_;
		my $new = $opt{id} || 1000 + Slipway::Forge::State::next_id($state, 'repo');
		my %who = map { my $list = $_;
			$list => { map { _user_named($state, $_)->{id} => 1 } @{ $opt{$list} || [] } } }
		    qw(users readers);
		$state->{repos}{$new} = { id => $new, path => $path, private => $opt{private} ? 1 : 0,
			former => [],
			%who, protected => { map { $_ => 1 } @{ $opt{protected} || [] } } };
		return $new;
	});
	return Slipway::Forge::Repo->make($self, $id, $opt{default_branch} || 'main');
}

# --- requests

sub requests {
	my ($self, $path) = @_;
	return grep { !defined $path || $_->{path} =~ $path } $self->{store}->notes('requests');
}
sub forget_requests { my ($self) = @_; $self->{store}->forget('requests'); return $self }
# The passwords and tokens that requests carried, sorted, separated by blanks.
sub passwords {
	my ($self, $path) = @_;
	my %seen;
	for ($self->requests($path)) {
		my ($kind, $value) = ($_->{headers}{authorization} || '') =~ /^(\w+) (\S+)/ or next;
		$value = (split /:/, decode_base64($value), 2)[1] if lc $kind eq 'basic';
		$seen{$value} = 1;
	}
	return join ' ', sort keys %seen;
}
sub complaints { my ($self) = @_; return $self->{store}->notes('complaints') }
sub forget_complaints { my ($self) = @_; $self->{store}->forget('complaints'); return $self }

# The statuses of a commit in the order of their requests: state, context,
# description, target_url, creator (a login), ref.
sub statuses {
	my ($self, $hash) = @_;
	return grep { $_->{hash} eq $hash } @{ $self->{store}->get->{statuses} };
}

# --- faults

# Injects a fault into the next requests (times => N; default: all) to matching paths
# (decoded, without the prefix), or only of one method. kind:
#   silent   no response             slow     body byte by byte, pause => seconds
#   status   status, body, type, headers instead      drop  connection closed
#   cut      body and then the end, ten bytes early   big   size => bytes of [
#   gzip     size => blanks, or body, compressed      delay seconds, then served
#   headers  served, with these headers as well       lost  served, response dropped
sub fault {
	my ($self, $path, %fault) = @_;
	$self->{store}->change(sub { push @{ $_[0]{faults} }, { body => '', %fault, path => "$path" } });
	return $self;
}

sub clear_faults { my ($self) = @_; $self->{store}->change(sub { $_[0]{faults} = [] }); return $self }

# --- events

# Where the server says that objects of Git LFS are; undef: at the server itself.
sub lfs_at {
	my ($self, $url) = @_;
	$self->{store}->change(sub { $_[0]{lfs_at} = $url });
	return $self;
}

# Lets the server report another version, with what its API has since then.
sub version {
	my ($self, $version) = @_;
	$self->{store}->change(sub { $_[0]{version} = $version });
	return $self;
}

# Adds a webhook: pushes to the repository over HTTPS send events to that address.
# more: signing_token => 'whsec_…' (GitLab's newer signatures).
sub hook {
	my ($self, $repo, $url, $secret, %more) = @_;
	my $hook = { repo => $repo->id, url => $url, secret => $secret, %more };
	$self->{store}->change(sub { push @{ $_[0]{hooks} }, $hook });
	return $hook;
}

# An event as the server would send it: of => a hook or { url, secret, ca };
# branch or tag or ref; before, after (hashes; after defaults to the tip,
# deleted => 1 to zeros); kind => 'ping'; by => login; body => another body.
sub push_event {
	my ($self, $repo, %what) = @_;
	my $state = $self->{store}->get;
	my ($hook) = $what{of} || grep { $_->{repo} eq $repo->id } @{ $state->{hooks} };
	my ($user) = defined $what{by}
	    ? _user_named($state, $what{by}) : sort { $a->{id} <=> $b->{id} } values %{ $state->{users} };
	my $zero = '0' x 40;
	$what{ref} ||= defined $what{tag} ? "refs/tags/$what{tag}" : 'refs/heads/'
	    . ($what{branch} || 'main');
	$what{after} ||= $what{deleted} ? $zero : $repo->tip($what{ref});
	$what{before} ||= $what{deleted} ? $repo->tip($what{ref}) || '1' x 40 : $zero;
	return Slipway::Forge::Event::make($self->{store}, { %$hook, repo => $repo->id }, kind => 'push',
	    %what, user => $user);
}

# Sends an event; { status, headers, body, json }.
sub deliver { my ($self, $event) = @_; return Slipway::Forge::Event::deliver($self->{store}, $event) }
# The deliveries of events: { url, status, body, sent }.
sub deliveries { my ($self) = @_; return $self->{store}->notes('deliveries') }

1;
